//! The fast normalizers against the naive ones, and against the laws.

#![allow(clippy::unwrap_used)] // the helpers of tests are tests too

use std::borrow::Cow;
use std::sync::LazyLock;

use fancy_regex::Regex;
use normalize::naive::{self, Aligned};
use normalize::{
    BertNormalizer, ByteLevel, Charsmap, Form, Lowercase, Metaspace, Nmt, Precompiled, PrefixSpace,
    Prepend, PrependScheme, Replace, SentencePieceNormalizer, Sequence, SpaceOptions, Strip,
    StripAccents, Symbols, UnicodeForm, UnicodeVersion,
};
use proptest::prelude::*;
use testkit::{laws, strategies, texts};
use tokenizer_core::{Alignment, Edit, Normalize, Span};

/// A normalizer and its naive twin.
struct Twins {
    name: String,
    fast: Box<dyn Normalize>,
    naive: Naive,
}

type Naive = Box<dyn Fn(&mut Aligned) + Send + Sync>;

static TWINS: LazyLock<Vec<Twins>> = LazyLock::new(twins);

fn twins() -> Vec<Twins> {
    let mut all = Vec::new();
    let mut add = |name: &str, fast: Box<dyn Normalize>, naive: Naive| {
        all.push(Twins { name: name.to_owned(), fast, naive });
    };
    for version in [UnicodeVersion::V9_0, UnicodeVersion::V17_0, UnicodeVersion::Current] {
        for form in [Form::Nfd, Form::Nfkd, Form::Nfc, Form::Nfkc] {
            let form = UnicodeForm::new(form).with_version(version);
            add(&format!("{form:?}"), Box::new(form), Box::new(move |t| t.unicode_form(form)));
        }
    }
    add("lowercase", Box::new(Lowercase), Box::new(Aligned::lowercase));
    for (left, right) in [(true, true), (true, false), (false, true), (false, false)] {
        add("strip", Box::new(Strip::new(left, right)), Box::new(move |t| t.strip(left, right)));
    }
    add("strip accents", Box::new(StripAccents), Box::new(Aligned::strip_accents));
    add("nmt", Box::new(Nmt), Box::new(Aligned::nmt));
    add("byte level", Box::new(ByteLevel), Box::new(Aligned::byte_level));
    for bits in 0..16 {
        let accents = [None, Some(true), Some(false)][bits as usize % 3];
        let bert = BertNormalizer::new(bits & 1 != 0, bits & 2 != 0, accents, bits & 8 != 0);
        add(&format!("{bert:?}"), Box::new(bert), Box::new(move |t| t.bert(bert)));
    }
    add("prepend", Box::new(Prepend::new("▁x")), Box::new(|t| t.prepend("▁x")));
    add("prepend nothing", Box::new(Prepend::new("")), Box::new(|t| t.prepend("")));
    let prefix_space = |t: &mut Aligned| {
        if !t.text.starts_with(' ') {
            t.prepend(" ");
        }
    };
    add("prefix space", Box::new(PrefixSpace), Box::new(prefix_space));
    for scheme in [PrependScheme::Always, PrependScheme::First, PrependScheme::Never] {
        let metaspace = Metaspace::new('▁', scheme);
        add("metaspace", Box::new(metaspace), Box::new(move |t| t.metaspace(metaspace)));
    }
    for (pattern, content) in
        [(" ", "▁"), ("ab", "é"), ("a", ""), ("aa", "a"), ("", "-é"), ("é", "e")]
    {
        let fast = Replace::literal(pattern, content);
        let naive = move |t: &mut Aligned| {
            let found = find(&Regex::new(&fancy_regex::escape(pattern)).unwrap(), &t.text);
            t.replace(&found, content);
        };
        add(&format!("{fast:?}"), Box::new(fast), Box::new(naive));
    }
    for (pattern, content) in
        [(r"\s+", " "), ("a|é", ""), ("[^a]x*", "yz"), ("x*", "-"), ("$", "é")]
    {
        let regex = Regex::new(pattern).unwrap();
        let engine = regex.clone();
        let matcher = move |text: &str, each: &mut dyn FnMut(Span)| {
            find(&engine, text).into_iter().for_each(each);
        };
        let naive = move |t: &mut Aligned| t.replace(&find(&regex, &t.text), content);
        add(pattern, Box::new(Replace::matches(matcher, content)), Box::new(naive));
    }
    let charsmap = charsmap();
    let fast = Precompiled::new(charsmap.clone());
    add("precompiled", Box::new(fast), Box::new(move |t| t.precompiled(&charsmap)));
    all
}

/// The matches as Hugging Face takes them: none in an empty text.
fn find(regex: &Regex, text: &str) -> Vec<Span> {
    if text.is_empty() {
        return Vec::new();
    }
    regex.find_iter(text).map(|m| m.unwrap()).map(|m| Span::new(m.start(), m.end())).collect()
}

/// Rules that delete, expand, contract, and are prefixes of one another.
fn charsmap() -> Charsmap {
    let rules = [
        ("™", "TM"),
        ("\u{1e}", ""),
        ("\u{1}", ""),
        ("Ａ", "A"),
        ("A\u{301}", "Á"),
        ("e\u{301}", "é"),
        ("e\u{301}\u{323}", "ẹ\u{301}"),
        ("ﷺ", "صلى الله عليه وسلم"),
        ("\r", " "),
        ("\n", " "),
        ("\t", "\u{20}"),
        ("\u{3000}", " "),
        ("ab", "c"),
        ("é", "e"),
        ("½", "1⁄2"),
        ("x", "x"),
    ];
    Charsmap::from_rules(rules).unwrap()
}

/// What `edits` say of every character of `text`.
fn sources(text: &str, edits: Vec<Edit>) -> Vec<Span> {
    let alignment = Alignment::new(edits);
    let end = |(at, c): (usize, char)| Span::new(at, at + c.len_utf8());
    text.char_indices().map(end).map(|span| alignment.to_source(span)).collect()
}

fn check(twins: &Twins, text: &str) {
    let normalized = laws::normalizes(twins.fast.as_ref(), text);
    let mut naive = Aligned::new(text);
    (twins.naive)(&mut naive);
    assert_eq!(normalized, naive.text, "{} on {text:?}", twins.name);
    let mut edits = Vec::new();
    let _ = twins.fast.normalize_with_edits(text, &mut edits);
    if normalized == text && edits.is_empty() {
        let borrowed = matches!(twins.fast.normalize(text), Cow::Borrowed(_));
        assert!(borrowed, "{} must not copy {text:?}", twins.name);
    }
    let expected: Vec<Span> = normalized.char_indices().map(|(at, _)| naive.sources[at]).collect();
    assert_eq!(
        sources(&normalized, edits),
        expected,
        "{} on {text:?} → {normalized:?}",
        twins.name
    );
}

/// Texts that are awkward for normalizers in particular.
const HARD: &[&str] = &[
    "\u{1e}ab",
    "™\u{1e}g",
    "\u{301}\u{323}e\u{301}\u{323}",
    "e\u{344}\u{323}x\u{f73}\u{301}",
    "\u{0344}",
    "각\u{11a8} \u{1100}\u{1161}\u{11a8} \u{1100}\u{1161}\u{11a7}",
    "㌀\u{3099} ｶﾞ ﾊﾟ ㋿ \u{1fbf0} ﷺ ﬁ",
    "\u{302e}\u{1d165}\u{1d15e} \u{1d1bc}",
    "a\u{16ff0}\u{302e}\u{301}\u{345}",
    "Σας ΣΑΣ İ ẞ ǅ ŉ",
    "\u{378}\u{e000}\u{f0000}\u{10ffff}\u{fffd}\u{ad}\u{feff}",
    "\u{2028}\u{3000}\u{85}\u{b}\u{c}",
    "豈\u{2f800}更\u{2b820}\u{2b920}",
];

#[test]
fn fast_equals_naive_on_awkward_texts() {
    for twins in TWINS.iter() {
        for text in texts::AWKWARD.iter().map(|(_, text)| *text).chain(HARD.iter().copied()) {
            check(twins, text);
        }
    }
}

#[test]
fn fast_equals_naive_on_every_character() {
    let chosen = ["UnicodeForm", "lowercase", "strip accents", "nmt", "Bert"];
    for twins in TWINS.iter().filter(|twins| chosen.iter().any(|name| twins.name.starts_with(name)))
    {
        // Between ASCII letters, so that characters do not meet.
        let planes = (0..=0x10_u32).map(|plane| plane << 16);
        for plane in planes.filter(|&plane| plane <= 0x3_0000 || plane == 0xE_0000) {
            let chars = (plane..plane + 0x1_0000).filter_map(char::from_u32);
            let text: String = chars.flat_map(|c| [c, 'x']).collect();
            check_text(twins, &text);
        }
    }
}

/// As [`check`], without the laws, which are slow on long texts.
fn check_text(twins: &Twins, text: &str) {
    let mut naive = Aligned::new(text);
    (twins.naive)(&mut naive);
    let mut edits = Vec::new();
    let normalized = twins.fast.normalize_with_edits(text, &mut edits);
    assert!(normalized == naive.text, "{}", twins.name);
    assert!(twins.fast.normalize(text) == naive.text, "{}", twins.name);
    let expected: Vec<Span> = normalized.char_indices().map(|(at, _)| naive.sources[at]).collect();
    assert!(sources(&normalized, edits) == expected, "{}", twins.name);
}

fn marks() -> impl Strategy<Value = String> {
    let marks = "\u{301}\u{323}\u{327}\u{344}\u{345}\u{f71}\u{f72}\u{f73}\u{302e}\u{3099}\u{1d165}\
                 \u{16ff0}\u{5b0}\u{1e}\u{200d}";
    let starters = "aeéAΣ ıİǅ각\u{1100}\u{1161}\u{11a8}ｶﾟ㌀ﷺﬁ豈中\t™½Å";
    let chars: Vec<char> = marks.chars().chain(starters.chars()).collect();
    proptest::collection::vec(proptest::sample::select(chars), 0..16)
        .prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn fast_equals_naive(text in prop_oneof![strategies::mixed_text(), marks()]) {
        for twins in TWINS.iter() {
            check(twins, &text);
        }
    }

    #[test]
    fn a_sequence_is_its_steps(
        text in prop_oneof![strategies::mixed_text(), marks()],
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        // An insertion at the very start, which only an empty match makes, is no character's.
        let reads_one_char = |twins: &&Twins| {
            !["x*", "$", "Replace { pattern: \"\""].iter().any(|name| twins.name.starts_with(name))
        };
        let mut naive = Aligned::new(&text);
        let mut steps: Vec<Box<dyn Normalize>> = Vec::new();
        for pick in picks {
            let twins: Vec<&Twins> = TWINS.iter().filter(reads_one_char).collect();
            let twins = twins[pick.index(twins.len())];
            (twins.naive)(&mut naive);
            steps.push(Box::new(Step(twins.fast.as_ref())));
        }
        let sequence: Sequence = steps.into_iter().collect();
        let normalized = laws::normalizes(&sequence, &text);
        prop_assert_eq!(&normalized, &naive.text);
        let mut edits = Vec::new();
        let _ = sequence.normalize_with_edits(&text, &mut edits);
        let expected: Vec<Span> =
            normalized.char_indices().map(|(at, _)| naive.sources[at]).collect();
        prop_assert_eq!(sources(&normalized, edits), expected);
    }

    #[test]
    fn sentencepiece_equals_naive(
        text in prop_oneof![strategies::mixed_text(), strategies::tiny_alphabet(), marks()],
        options in any::<[bool; 6]>(),
    ) {
        let normalizer = sentencepiece(options);
        check_sentencepiece(&normalizer, &text);
    }

    #[test]
    fn sentencepiece_takes_any_bytes(
        bytes in strategies::any_bytes(),
        options in any::<[bool; 6]>(),
    ) {
        let normalizer = sentencepiece(options);
        prop_assert_eq!(
            normalizer.normalize_bytes(&bytes, None),
            naive::sentencepiece(&normalizer, &bytes).0
        );
    }

    #[test]
    fn a_damaged_charsmap_is_an_error_or_harmless(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        text in strategies::mixed_text(),
    ) {
        let mut bytes = charsmap().to_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(charsmap) = Charsmap::from_bytes(&bytes) {
            prop_assert_eq!(charsmap.to_bytes(), bytes);
            let _ = charsmap.rules();
            laws::normalizes(&Precompiled::new(charsmap.clone()), &text);
            let normalizer = SentencePieceNormalizer::new(Some(charsmap));
            let (normalized, _) = naive::sentencepiece(&normalizer, text.as_bytes());
            prop_assert_eq!(normalizer.normalize(&text), normalized);
        }
    }
}

/// A normalizer that lives elsewhere, as a step of a sequence.
struct Step(&'static dyn Normalize);

impl Normalize for Step {
    fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.0.normalize(text)
    }

    fn normalize_with_edits<'t>(&self, text: &'t str, edits: &mut Vec<Edit>) -> Cow<'t, str> {
        self.0.normalize_with_edits(text, edits)
    }
}

fn sentencepiece(options: [bool; 6]) -> SentencePieceNormalizer {
    let [prefix, extra, escape, suffix, rules, symbols] = options;
    let mut spaces = SpaceOptions::none();
    spaces.add_dummy_prefix = prefix;
    spaces.remove_extra_whitespaces = extra;
    spaces.escape_whitespaces = escape;
    spaces.treat_whitespace_as_suffix = suffix;
    let user_defined = ["<c>", "▁foo", " b", "ab", "aba", "é", "  ", ""];
    let user_defined: Symbols =
        if symbols { user_defined.into_iter().collect() } else { Symbols::default() };
    SentencePieceNormalizer::new(rules.then(charsmap))
        .with_spaces(spaces)
        .with_user_defined(user_defined)
}

fn check_sentencepiece(normalizer: &SentencePieceNormalizer, text: &str) {
    let normalized = laws::normalizes(normalizer, text);
    let (expected, starts) = naive::sentencepiece(normalizer, text.as_bytes());
    assert_eq!(normalized, expected, "{text:?}");
    let mut edits = Vec::new();
    let _ = normalizer.normalize_with_edits(text, &mut edits);
    let alignment = Alignment::new(edits);
    let ends: Vec<usize> =
        normalized.char_indices().map(|(at, _)| at).chain([normalized.len()]).collect();
    for (i, &start) in ends.iter().enumerate() {
        for &end in &ends[i + 1..] {
            let source = alignment.to_source(Span::new(start, end));
            assert_eq!(source, Span::new(starts[start], starts[end]), "{start}..{end} of {text:?}");
        }
    }
}

#[test]
fn sentencepiece_equals_naive_on_awkward_texts() {
    for bits in 0..64 {
        let normalizer = sentencepiece([0, 1, 2, 3, 4, 5].map(|bit| bits >> bit & 1 != 0));
        for text in texts::AWKWARD.iter().map(|(_, text)| *text).chain(HARD.iter().copied()) {
            check_sentencepiece(&normalizer, text);
        }
        for (_, bytes) in texts::ILL_FORMED {
            let expected = naive::sentencepiece(&normalizer, bytes).0;
            assert_eq!(normalizer.normalize_bytes(bytes, None), expected);
        }
    }
}
