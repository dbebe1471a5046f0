//! What SentencePiece does, by values that its library made (Python package sentencepiece 0.2.3).

use std::collections::{BTreeMap, BTreeSet};

use normalize::{Charsmap, NamedRules, SentencePieceNormalizer, SpaceOptions, Symbols};
use testkit::laws;
use tokenizer_core::{Alignment, Normalize, Span};

fn nmt_nfkc() -> SentencePieceNormalizer {
    SentencePieceNormalizer::new(Some(NamedRules::NmtNfkc.charsmap()))
}

/// A normalized text, and for each of its characters and its end where in the original, counted in
/// characters, it begins: `SentencePieceProcessor.Normalize(text, with_offsets=True)`.
type Case = (&'static str, &'static str, &'static [usize]);

fn check(normalizer: &SentencePieceNormalizer, cases: &[Case]) {
    for &(text, expected, starts) in cases {
        let normalized = laws::normalizes(normalizer, text);
        assert_eq!(normalized, expected, "{text:?}");
        let mut edits = Vec::new();
        let _ = normalizer.normalize_with_edits(text, &mut edits);
        let alignment = Alignment::new(edits);
        let count = |at: usize| text[..at].chars().count();
        for (i, (at, c)) in normalized.char_indices().enumerate() {
            let source = alignment.to_source(Span::new(at, at + c.len_utf8()));
            assert_eq!(
                [count(source.start), count(source.end)],
                starts[i..i + 2],
                "{text:?} at {i}"
            );
        }
    }
}

#[test]
fn default_rules_and_spaces() {
    check(&nmt_nfkc(), &DEFAULT);
}

const DEFAULT: [Case; 20] = [
    ("a", "▁a", &[0, 0, 1]),
    ("  a  b ", "▁a▁b", &[2, 2, 3, 5, 6]),
    ("a\u{200b}b", "▁a▁b", &[0, 0, 1, 2, 3]),
    ("▁a", "▁a", &[1, 1, 2]),
    ("\u{3000}a\u{9}\u{9}b\u{a}", "▁a▁b", &[1, 1, 2, 4, 5]),
    (
        "\u{fdfa}x",
        "▁\u{635}\u{644}\u{649}▁\u{627}\u{644}\u{644}\u{647}▁\u{639}\u{644}\u{64a}\u{647}▁\u{648}\u{633}\u{644}\u{645}x",
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2],
    ),
    ("e\u{301}", "▁\u{e9}", &[0, 0, 2]),
    ("\u{2460}\u{3314}\u{fb01}", "▁1\u{30ad}\u{30ed}fi", &[0, 0, 1, 1, 2, 2, 3]),
    ("a\u{1}b", "▁ab", &[0, 0, 2, 3]),
    ("\u{1} ", "", &[0]),
    ("\u{0}a\u{0}", "▁\u{0}a\u{0}", &[0, 0, 1, 2, 3]),
    ("\u{ff76}\u{ff9e} \u{ff8a}\u{ff9f}", "▁\u{30ac}▁\u{30d1}", &[0, 0, 2, 3, 5]),
    ("x\u{ff5e}~", "▁x\u{ff5e}~", &[0, 0, 1, 2, 3]),
    ("a \u{301} b", "▁a▁\u{301}▁b", &[0, 0, 1, 2, 3, 4, 5]),
    ("\u{ac01}\u{ac01}", "▁\u{ac01}\u{ac01}", &[0, 0, 1, 2]),
    ("\u{a8} x", "▁\u{308}▁x", &[0, 0, 1, 2, 3]),
    ("a\u{d}\u{a}b", "▁a▁b", &[0, 0, 1, 3, 4]),
    ("\u{ff21}\u{301}\u{ff22}", "▁\u{c1}B", &[0, 0, 2, 3]),
    ("\u{fb00} \u{fb00}", "▁ff▁ff", &[0, 0, 0, 1, 2, 2, 3]),
    (" \u{2003} ", "", &[0]),
];

#[test]
fn spaces_by_every_option() {
    let text = "  a  b ";
    let with = |change: fn(&mut SpaceOptions)| {
        let mut spaces = SpaceOptions::default();
        change(&mut spaces);
        SentencePieceNormalizer::default().with_spaces(spaces)
    };
    assert_eq!(with(|_| {}).normalize(text), "▁a▁b");
    assert_eq!(with(|s| s.add_dummy_prefix = false).normalize(text), "a▁b");
    assert_eq!(with(|s| s.remove_extra_whitespaces = false).normalize(text), "▁▁▁a▁▁b▁");
    assert_eq!(with(|s| s.escape_whitespaces = false).normalize(text), " a b");
    assert_eq!(with(|s| s.treat_whitespace_as_suffix = true).normalize(text), "a▁b▁");
    let none = SentencePieceNormalizer::default().with_spaces(SpaceOptions::none());
    assert_eq!(none.normalize(text), text);
}

#[test]
fn user_defined_symbols_pass_unchanged_and_first() {
    let symbols: Symbols = ["ﬁx", "Ａ", " b"].into_iter().collect();
    let normalizer = nmt_nfkc().with_user_defined(symbols);
    assert_eq!(normalizer.normalize("ﬁxﬁ ＡＢ c b"), "▁ﬁxfi▁ＡB▁c▁b");
}

#[test]
fn the_longest_symbol_wins() {
    let symbols: Symbols = ["a", "aba", "ab", ""].into_iter().collect();
    assert_eq!(symbols.as_slice(), ["a", "ab", "aba"]);
    assert_eq!(symbols.longest_prefix(b"abac"), Some("aba"));
    assert_eq!(symbols.longest_prefix(b"abc"), Some("ab"));
    assert_eq!(symbols.longest_prefix(b"ba"), None);
    assert_eq!(Symbols::default().longest_prefix(b"a"), None);
    // Of 70 that match, SentencePiece sees 64.
    let many: Symbols = (1..=70).map(|n| "x".repeat(n)).collect();
    assert_eq!(many.longest_prefix("x".repeat(100).as_bytes()).map(str::len), Some(64));
}

#[test]
fn ill_formed_bytes_become_replacement_characters() {
    let plain = SentencePieceNormalizer::default();
    assert_eq!(plain.normalize_bytes(b"a\xFF\xE1\xBB", None), "▁a\u{FFFD}\u{FFFD}\u{FFFD}");
}

#[test]
fn faults_of_a_charsmap_are_named() {
    let fault = |bytes: &[u8]| Charsmap::from_bytes(bytes).unwrap_err().to_string();
    assert_eq!(fault(b""), "a charsmap of 0 bytes is cut short");
    assert_eq!(
        fault(&[5, 0, 0, 0, 0]),
        "the trie of the charsmap claims 5 bytes, not a multiple of 4"
    );
    assert_eq!(
        fault(&[0xFC, 0xFF, 0xFF, 0xFF, 0]),
        "the trie of the charsmap claims 4294967292 bytes, but 1 are left"
    );
    let mut bytes = Charsmap::from_rules([("a", "b")]).unwrap().to_bytes();
    let last = bytes.len() - 2;
    bytes[last] = 0xFF;
    assert_eq!(fault(&bytes), format!("the texts of the charsmap are not UTF-8 at byte {last}"));
    // The value of "a" points past the texts.
    let mut bytes = Charsmap::from_rules([("a", "b")]).unwrap().to_bytes();
    let value = bytes.chunks(4).position(|unit| unit == [0, 0, 0, 0x80]).unwrap();
    bytes[4 * value] = 2;
    assert!(fault(&bytes).ends_with("points to text 2, where none begins"));
    let rule = |source, target| Charsmap::from_rules([("x", "y"), (source, target)]).unwrap_err();
    assert_eq!(
        rule("", "a").to_string(),
        "rule 1 of the charsmap has an empty source or holds NUL"
    );
    assert!(rule("a", "\0").to_string().starts_with("rule 1"));
    assert!(Charsmap::from_rules([("\0", "a")]).is_err());
}

#[test]
fn compiled_rules_are_read_back() {
    let rules = [("a", "x"), ("aaa", "y"), ("b", ""), ("ba", "x"), ("é", "e"), ("\u{10FFFF}", "z")];
    let charsmap = Charsmap::from_rules(rules).unwrap();
    let read: Vec<(Vec<u8>, &str)> = charsmap.rules();
    let expected: Vec<_> = rules.iter().map(|(s, t)| (s.as_bytes().to_vec(), *t)).collect();
    assert_eq!(read, expected);
    assert_eq!(charsmap.longest_prefix(b"aaab"), Some((3, "y")));
    assert_eq!(charsmap.longest_prefix(b"aab"), Some((1, "x")));
    assert_eq!(charsmap.shortest_prefix(b"aaab"), Some("x"));
    assert_eq!(charsmap.longest_prefix(b"c"), None);
    assert_eq!(charsmap.longest_prefix(b""), None);
    assert!(charsmap.is_plain(b'c') && !charsmap.is_plain(b'a') && !charsmap.is_plain(0x80));
    let again = Charsmap::from_bytes(&charsmap.to_bytes()).unwrap();
    assert_eq!(again, charsmap);
}

/// A rule may go round in circles in a hostile file; listing its rules ends all the same.
#[test]
fn a_cyclic_trie_is_harmless() {
    // Every unit is its own child by 'a', at offset 'a'.
    let mut bytes = 1024_u32.to_le_bytes().to_vec();
    for _ in 0..256 {
        bytes.extend((u32::from(b'a') | u32::from(b'a') << 10).to_le_bytes());
    }
    bytes.push(0);
    let charsmap = Charsmap::from_bytes(&bytes).unwrap();
    assert_eq!(charsmap.longest_prefix(&[b'a'; 5000]), None);
    assert!(charsmap.rules().is_empty());
}

/// What rules of several characters write first, told by all rules.
#[test]
fn first_characters_are_those_of_the_rules() {
    for rules in NamedRules::ALL {
        let charsmap = rules.charsmap();
        let mut expected: BTreeMap<char, BTreeSet<Option<char>>> = BTreeMap::new();
        for (source, target) in charsmap.rules() {
            let source = String::from_utf8(source).unwrap();
            let mut chars = source.chars();
            if let (Some(first), Some(_)) = (chars.next(), chars.next()) {
                expected.entry(first).or_default().insert(target.chars().next());
            }
        }
        let mut told = 0;
        charsmap.each_extended(|c, firsts| {
            let expected = expected.remove(&c).expect("rules begin with it");
            match firsts {
                Some(firsts) => {
                    told += 1;
                    assert_eq!(firsts.len(), expected.len(), "{c:?}: each once");
                    assert!(firsts.iter().all(|first| expected.contains(first)), "{c:?}");
                }
                None => assert!(expected.len() > 64, "{c:?}: {} are not too many", expected.len()),
            }
        });
        assert!(expected.is_empty(), "{expected:?} were left out");
        assert!(told > 500, "{told} characters of {}", rules.name());
    }
}
