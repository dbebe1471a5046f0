//! What Hugging Face tokenizers do, by values that their library made.

#![allow(clippy::unwrap_used)] // the helpers of tests are tests too

use normalize::{
    BertNormalizer, ByteLevel, Charsmap, Form, Lowercase, Metaspace, Nmt, Precompiled, Prepend,
    PrependScheme, Replace, Sequence, Strip, StripAccents, UnicodeForm,
};
use sha2::{Digest, Sha256};
use testkit::laws;
use tokenizer_core::{Alignment, Normalize, Rng, Span};

fn form(form: Form) -> UnicodeForm {
    UnicodeForm::new(form)
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 of what becomes of every code point on its own, in order, each result ended by the
/// byte 0xFF. Made with the Python package tokenizers 0.23.3 (`normalize_str`).
#[test]
fn every_code_point_becomes_what_the_library_makes_of_it() {
    let bert = BertNormalizer::new;
    let cases: Vec<(&str, Box<dyn Normalize>, &str)> = vec![
        (
            "NFC",
            Box::new(form(Form::Nfc)),
            "de0a2980f40c3e6771c8a205fcc7f21571cec94a5ffe7ab62fee0cc2599fdfde",
        ),
        (
            "NFD",
            Box::new(form(Form::Nfd)),
            "e3f51e80921b6a791f21b3044e57d7a1644bdc47c263a41ec4381db4117f6337",
        ),
        (
            "NFKC",
            Box::new(form(Form::Nfkc)),
            "582c81fc04f210c663348ddfbe5463f9367acf9fd259b3b442f9d8dda697f71a",
        ),
        (
            "NFKD",
            Box::new(form(Form::Nfkd)),
            "e978933f1708002b347fa3ced6f7d938b260a4b11b782da860f4f7b871003750",
        ),
        (
            "Lowercase",
            Box::new(Lowercase),
            "056b020af5d3bc54af9e8e3d07bd52a522c1d728a253d499bc83673fd69d77bc",
        ),
        (
            "Strip",
            Box::new(Strip::default()),
            "6a0966716ada16b3ce58827aab9ac52d713b803d36bbe1a3639095d53b08e6f3",
        ),
        (
            "StripAccents",
            Box::new(StripAccents),
            "2d830a8f2422edc631d1d5c8456abf28a3f434f9ebae92f364b93c56ac086ef6",
        ),
        ("Nmt", Box::new(Nmt), "064686cee4993070cb01c5847674abdb63699b079d70896c90fabc6d3a8448b9"),
        (
            "ByteLevel",
            Box::new(ByteLevel),
            "c27f37a8402af62e5b47f27fb793954e565e84690bd596a4d84c07ba85704adb",
        ),
        (
            "BertNormalizer, clean_text alone",
            Box::new(bert(true, false, Some(false), false)),
            "91eb3845424ed1f91b67021985f3744de6923fe03543a34427de58075bfeb661",
        ),
        (
            "BertNormalizer, handle_chinese_chars alone",
            Box::new(bert(false, true, Some(false), false)),
            "77c8e716bc45945798d6064661e8bb7bc26aef4d8721b9f700fb473fe9deeaf8",
        ),
        (
            "BertNormalizer, strip_accents alone",
            Box::new(bert(false, false, Some(true), false)),
            "abd6b1eddaffcaa30d697903982ba380821fcbfae1001119ab913dbf102b0f3b",
        ),
        (
            "BertNormalizer",
            Box::<BertNormalizer>::default(),
            "be1598699acbcd1409185a58a18552864a3d6ae240bf214c37fa318f46c9673e",
        ),
    ];
    for (name, normalizer, expected) in cases {
        let mut digest = Sha256::new();
        for c in '\0'..=char::MAX {
            digest.update(normalizer.normalize(c.encode_utf8(&mut [0; 4])).as_bytes());
            digest.update([0xFF]);
        }
        assert_eq!(hex(digest), expected, "{name}");
    }
}

/// Rules that show where graphemes begin and end: what a short grapheme holds behind the source of
/// a rule is lost.
fn grapheme_rules() -> Charsmap {
    Charsmap::from_rules([("A", "a"), ("ª", "o"), ("\r", " ")]).unwrap()
}

/// SHA-256 of what becomes of every code point behind `A` and `ª` and before `A`, each result
/// ended by the byte 0xFF. Made with the Python package tokenizers 0.23.3 from the charsmap of
/// `grapheme_rules`. It shows that the grapheme data is of the same Unicode version, as far as
/// that can be seen.
#[test]
fn graphemes_are_those_of_the_library() {
    let precompiled = Precompiled::new(grapheme_rules());
    let mut digest = Sha256::new();
    for c in '\0'..=char::MAX {
        for text in [format!("A{c}"), format!("ª{c}"), format!("{c}A")] {
            digest.update(precompiled.normalize(&text).as_bytes());
            digest.update([0xFF]);
        }
    }
    assert_eq!(hex(digest), "da798fde4d819317e039871683155b8c70de52006793ed1db0c7712cf79f8b1b");
}

/// A text of up to 20 characters that normalizers find hard.
fn hard_text(rng: &mut Rng) -> String {
    let hard: Vec<char> = "abxAZ e\u{1e}\u{1}\t\n\r\u{a0}\u{3000}\u{200b}\u{200d}\0\u{fffd}\u{ad}\
        éÉÅΣςİßẞǅŉ\u{300}\u{301}\u{323}\u{327}\u{344}\u{345}\u{3099}\u{f71}\u{f73}\u{302e}\u{1d165}\
        각\u{1100}\u{1161}\u{11a8}ｶﾞ㌀ﷺﬁ™½Ａ①㋿豈中文▁´\u{1fbf0}\u{378}\u{1f600}\u{e000}"
        .chars()
        .collect();
    (0..rng.below(21)).map(|_| hard[rng.below(hard.len() as u64) as usize]).collect()
}

/// The normalizers of the test below, with their `tokenizer.json` form.
fn chains() -> Vec<(&'static str, Sequence)> {
    let one = |step: Box<dyn Normalize>| Sequence::from_iter([step]);
    let rules = Charsmap::from_rules([
        ("™", "TM"),
        ("\u{1e}", ""),
        ("\u{1}", ""),
        ("Ａ", "A"),
        ("e\u{301}", "é"),
        ("①", "1"),
        ("ﷺ", "صلى الله عليه وسلم"),
        ("\r", " "),
        ("\t", " "),
    ])
    .unwrap();
    vec![
        (r#"[{"type":"NFC"}]"#, one(Box::new(form(Form::Nfc)))),
        (r#"[{"type":"NFD"}]"#, one(Box::new(form(Form::Nfd)))),
        (r#"[{"type":"NFKC"}]"#, one(Box::new(form(Form::Nfkc)))),
        (r#"[{"type":"NFKD"}]"#, one(Box::new(form(Form::Nfkd)))),
        (
            r#"[{"type":"NFD"},{"type":"StripAccents"},{"type":"Lowercase"}]"#,
            Sequence::new().then(form(Form::Nfd)).then(StripAccents).then(Lowercase),
        ),
        (
            r#"[{"type":"Strip","strip_left":true,"strip_right":true},{"type":"ByteLevel"}]"#,
            Sequence::new().then(Strip::default()).then(ByteLevel),
        ),
        (
            r#"[{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true}]"#,
            one(Box::<BertNormalizer>::default()),
        ),
        (
            r#"[{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":false,"lowercase":false},{"type":"NFKC"}]"#,
            Sequence::new()
                .then(BertNormalizer::new(true, true, Some(false), false))
                .then(form(Form::Nfkc)),
        ),
        (
            r#"[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]"#,
            Sequence::new().then(Prepend::new("▁")).then(Replace::literal(" ", "▁")),
        ),
        (
            r#"[{"type":"Nmt"},{"type":"NFKC"},{"type":"Replace","pattern":{"String":"1⁄2"},"content":"half"},{"type":"NFD"}]"#,
            Sequence::new()
                .then(Nmt)
                .then(form(Form::Nfkc))
                .then(Replace::literal("1⁄2", "half"))
                .then(form(Form::Nfd)),
        ),
        (r#"[{"type":"Precompiled"}]"#, one(Box::new(Precompiled::new(rules.clone())))),
        (
            r#"[{"type":"Precompiled"},{"type":"NFD"},{"type":"Replace","pattern":{"String":"TM"},"content":""}]"#,
            Sequence::new()
                .then(Precompiled::new(rules))
                .then(form(Form::Nfd))
                .then(Replace::literal("TM", "")),
        ),
    ]
}

/// SHA-256 over 2000 texts of the normalized text, the byte 0xFF, and the span in the original of
/// each of its characters (two numbers of 32 bits, little endian). Made with the Rust crate
/// tokenizers 0.23.2 (`NormalizedString::convert_offsets`).
#[test]
fn offsets_are_those_of_the_library() {
    let expected = [
        "97a05d01c943abb18f1eb453d3a2ca2c4d73cfecef75676d08acd90d137f8ef5",
        "ec4737c8fb62b7570df8b4ca78a63362da77dcac5497fae5d56de8ff4a006ccf",
        "d304c7081a026873fb573c03058f4bc82752d562c94cd50e24fe24138dd8c0ff",
        "57245475e5b4342efd00516a957b480f27318b04fbe4c9c3c9d64c6ae61aa824",
        "a6b034c6a11f4f33871e6eb46ebc751f9c3890472f2c4d111e3759912bfd833a",
        "afe61c27e2cec27feb2056c5d86ec8afe2aa6a101667d899aed1019e6a55f91f",
        "00c29368d0f15ef91bb254fa3c0a2f5a54120ba73e190ccfe8dd52415bc72c91",
        "58c0ddb55a770c7909236c76c7e29c7b975869a6b044cc441705ffa6370c4702",
        "5ffb66244bae07d441d9dd258532fe3eeb4f7b30621dc75d8206fa4346e82e0e",
        "addffe644eeb7866ea7205032a91f0f136031ca0fb0e0d0ba921491b87e0f978",
        "950e67c9537a8a23c1d40571e886b4930a232025de1f15d69fabc2d77bfc16e1",
        "070bf96ec7d6c757b55f3976649dcaf3c6845ddb748f74d573cf91d6112114a6",
    ];
    for ((json, chain), expected) in chains().into_iter().zip(expected) {
        let (mut digest, mut rng) = (Sha256::new(), Rng::new(5));
        for _ in 0..2000 {
            let text = hard_text(&mut rng);
            let mut edits = Vec::new();
            let normalized = chain.normalize_with_edits(&text, &mut edits);
            let alignment = Alignment::new(edits);
            digest.update(normalized.as_bytes());
            digest.update([0xFF]);
            for (at, c) in normalized.char_indices() {
                let source = alignment.to_source(Span::new(at, at + c.len_utf8()));
                digest.update((source.start as u32).to_le_bytes());
                digest.update((source.end as u32).to_le_bytes());
            }
        }
        assert_eq!(hex(digest), expected, "{json}");
    }
}

fn check(normalizer: &dyn Normalize, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(laws::normalizes(normalizer, text), *expected, "{text:?}");
    }
}

#[test]
fn bert_joins_words_where_it_deletes_and_parts_them_where_it_finds_space() {
    check(
        &BertNormalizer::default(),
        &[
            ("a\u{b}b\u{c}c", "abc"),
            ("a\0b\u{fffd}c\u{200b}d\u{ad}e", "abcde"),
            ("a\tb\nc\rd\u{2028}e\u{3000}f", "a b c d e f"),
            ("İ", "i"),
            ("Σας ΣΑΣ", "σας σασ"),
            ("ẞ", "ß"),
            ("中国x", " 中  国 x"),
            ("\u{378}", "\u{378}"),
        ],
    );
}

/// Accents go where letters become lower case, unless the file says otherwise; the mark goes before
/// the letter is made lower case.
#[test]
fn bert_strips_accents_by_the_case_where_nothing_is_said() {
    let bert = |strip_accents, lowercase| BertNormalizer::new(true, true, strip_accents, lowercase);
    check(&bert(None, true), &[("\u{C9}", "e"), ("E\u{301}", "e")]);
    check(&bert(None, false), &[("\u{C9}", "\u{C9}"), ("E\u{301}", "E\u{301}")]);
    check(&bert(Some(false), true), &[("\u{C9}", "\u{E9}")]);
    check(&bert(Some(true), false), &[("\u{C9}", "E")]);
}

/// U+302E is a spacing mark for the categories of Unicode 8.0 on, so it stays; NFD puts it before
/// an acute accent that precedes it.
#[test]
fn bert_reorders_marks_that_it_keeps() {
    check(&BertNormalizer::default(), &[("a\u{301}\u{302e}b", "a\u{302e}b")]);
}

#[test]
fn new_characters_are_left_alone() {
    check(
        &form(Form::Nfkc),
        &[("㋿", "㋿"), ("\u{1fbf0}", "\u{1fbf0}"), ("ﷺ", "صلى الله عليه وسلم")],
    );
}

#[test]
fn metaspace_marks_spaces_and_the_start() {
    let cases = |scheme| Metaspace::new('▁', scheme);
    check(
        &cases(PrependScheme::Always),
        &[(" a", "▁a"), ("▁a", "▁a"), ("a ", "▁a▁"), ("", ""), ("  a", "▁▁a")],
    );
    check(&cases(PrependScheme::Never), &[("a b", "a▁b"), (" a", "▁a")]);
    let later = cases(PrependScheme::First).for_stretch(false);
    assert_eq!(later.normalize("a b"), "a▁b");
    assert_eq!(cases(PrependScheme::First).for_stretch(true).normalize("a b"), "▁a▁b");
    check(&cases(PrependScheme::First), &[("a", "▁a")]);
}

#[test]
fn prepending_does_not_look_at_what_is_there() {
    let chain = Sequence::new().then(Replace::literal(" ", "▁")).then(Prepend::new("▁"));
    check(&chain, &[(" a", "▁▁a"), ("", "")]);
}

/// Hugging Face takes the shortest rule that a grapheme begins with for all of it, and forgets a
/// deletion at the very start when it counts offsets.
#[test]
fn precompiled_is_as_odd_as_the_library() {
    let rules =
        Charsmap::from_rules([("Ａ", "A"), ("\u{1e}", ""), ("a\u{308}\u{301}", "x"), ("™", "TM")])
            .unwrap();
    let precompiled = Precompiled::new(rules);
    check(
        &precompiled,
        &[
            ("Ａ\u{301}", "A"),
            ("a\u{308}\u{301}", "x"),
            ("a\u{308}", "a\u{308}"),
            ("™\u{1e}g", "TMg"),
        ],
    );
    let mut edits = Vec::new();
    assert_eq!(precompiled.normalize_with_edits("\u{1e}bc", &mut edits), "bc");
    let alignment = Alignment::new(edits);
    assert_eq!(alignment.to_source(Span::new(0, 1)), Span::new(0, 1));
    assert_eq!(alignment.to_source(Span::new(1, 2)), Span::new(1, 2));
}

#[test]
fn byte_level_characters_stand_for_one_byte_each() {
    for byte in 0..=255 {
        assert_eq!(ByteLevel::byte(ByteLevel::char(byte)), Some(byte));
    }
    let chars: Vec<char> = ('\0'..='\u{200}').filter(|&c| ByteLevel::byte(c).is_some()).collect();
    assert_eq!(chars.len(), 256);
    check(&ByteLevel, &[("Hello 我", "HelloĠæĪĳ"), ("\n", "Ċ")]);
}
