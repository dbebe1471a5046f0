//! Patterns of published tokenizers beside the named ones: which engine they get, and that it cuts
//! as backtracking does. They are quoted from llama.cpp's `llama-vocab.cpp`, which has them from the
//! `tokenizer.json` files; where it quotes both, from its comment.
#![cfg(feature = "regex")]

use pretok::{Dialect, Engine, RegexOptions, RegexSplitter};
use testkit::texts;
use tokenizer_core::{Rng, Split};

use Engine::{Automaton, Backtracking, Scanner};

const WILD: &[(&str, Engine, &str)] = &[
    (
        "seed_coder_without_tail",
        Scanner,
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "bailing_moe_possessive",
        Scanner,
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ),
    (
        "youtu_cased_with_ascii_contractions",
        Scanner,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "ufakzeka_without_contractions",
        Scanner,
        r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "starcoder_as_llama_cpp_has_it",
        Automaton,
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    ),
    (
        "exaone_moe_words_with_spaces",
        Automaton,
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
    ),
    (
        "spark_line_breaks_apart",
        Automaton,
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"##,
    ),
    ("bloom", Automaton, r" ?[^(\s|.,!?…。，、।۔،)]+"),
    ("deepseek_coder_words", Automaton, r"\s?\p{L}+"),
    ("falcon_punctuation", Automaton, r"[\p{P}\$\+<=>\^~\|`]+"),
    ("falcon_digits", Automaton, "[0-9][0-9][0-9]"),
    ("gemma_lines", Automaton, "[^\n]+|[\n]+"),
    ("jina_words", Automaton, r"\S+"),
    ("chameleon_images", Automaton, "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
    ("tiny_aya_digits_from_the_right", Backtracking, r"\d{1,3}(?=(?:\d{3})*\b)"),
    ("superbpe_digits_from_the_right", Backtracking, r"(?=(\d{3})+(?!\d))"),
    (
        "tekken_as_llama_cpp_has_it",
        Backtracking,
        r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+|[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
];

#[test]
fn patterns_in_the_wild_get_the_engine_they_should_and_cut_alike() {
    const KINDS: &[char] = &[
        'a', 's', 'l', 'A', 'Z', 'I', 'M', 'G', '中', 'ʰ', '\u{301}', '1', '2', ' ', '\n', '\r',
        '\t', '\'', '/', '!', '.', '。', '$', '😀', '\u{3000}',
    ];
    for dialect in [Dialect::Rust, Dialect::Oniguruma] {
        for &(name, engine, pattern) in WILD {
            let mut options = RegexOptions::default();
            options.dialect = dialect;
            let fast = RegexSplitter::with_options(pattern, options).expect(name);
            assert_eq!(fast.engine(), engine, "{name} {dialect:?}");
            options.engine = Some(Backtracking);
            let slow = RegexSplitter::with_options(pattern, options).expect(name);
            let mut rng = Rng::new(1);
            let random = (0..300).map(|_| {
                let few: [char; 6] =
                    std::array::from_fn(|_| KINDS[rng.below(KINDS.len() as u64) as usize]);
                (0..rng.below(90)).map(|_| few[rng.below(6) as usize]).collect::<String>()
            });
            let awkward = texts::AWKWARD.iter().map(|(_, text)| (*text).to_owned());
            for text in random.chain(awkward) {
                assert_eq!(fast.split(&text), slow.split(&text), "{name} {dialect:?} {text:?}");
            }
        }
    }
}
