//! Proptest generators of text that tokenizers find hard.

use proptest::collection::vec;
use proptest::prelude::*;

/// Text over a tiny alphabet, so that merges, ties and repeats happen all the time.
pub fn tiny_alphabet() -> impl Strategy<Value = String> {
    vec(prop_oneof![Just('a'), Just('b'), Just('c'), Just(' ')], 0..40)
        .prop_map(|chars| chars.into_iter().collect())
}

/// Words with multiplicity over a tiny alphabet: a corpus for trainers.
pub fn tiny_corpus() -> impl Strategy<Value = Vec<(String, u64)>> {
    let word =
        vec(prop_oneof![4 => Just('a'), 3 => Just('b'), 2 => Just('c'), 1 => Just('é')], 1..9)
            .prop_map(|chars| chars.into_iter().collect::<String>());
    vec((word, 1u64..20), 0..12)
}

/// Text that mixes scripts, white space, digits, marks, emoji, controls and arbitrary characters.
pub fn mixed_text() -> impl Strategy<Value = String> {
    let char = prop_oneof![
        6 => proptest::char::range('a', 'z'),
        2 => proptest::char::range('A', 'Z'),
        2 => proptest::char::range('0', '9'),
        4 => proptest::sample::select(vec![' ', ' ', '\n', '\r', '\t', '\u{A0}', '\u{3000}', '\u{85}', '\u{200B}']),
        3 => proptest::sample::select("'.,!?-_/\\\"#$%&()[]{}<>|=+*^~`@;:".chars().collect::<Vec<_>>()),
        1 => proptest::char::range('\u{C0}', '\u{17F}'),
        1 => proptest::char::range('\u{300}', '\u{36F}'),
        1 => proptest::char::range('\u{400}', '\u{4FF}'),
        1 => proptest::char::range('\u{E00}', '\u{E5B}'),
        1 => proptest::char::range('\u{4E00}', '\u{4FFF}'),
        1 => proptest::char::range('\u{3040}', '\u{30FF}'),
        1 => proptest::char::range('\u{1F300}', '\u{1F6FF}'),
        1 => proptest::sample::select(vec!['\u{200D}', '\u{FE0F}', '\u{2581}', '\u{17F}', '\u{130}', '\u{FFFD}', '\0']),
        1 => any::<char>(),
    ];
    vec(char, 0..60).prop_map(|chars| chars.into_iter().collect())
}

/// Arbitrary bytes, mostly ill-formed as UTF-8.
pub fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}
