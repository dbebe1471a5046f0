//! Scanners against the published regular expressions, through `fancy-regex`.
#![cfg(feature = "regex")]

use std::sync::LazyLock;

use pretok::{
    Case, Contractions, Dialect, Digits, Engine, Pattern, RegexOptions, RegexSplitter, Rules,
    Scanner, Sequence, naive::Backtracking,
};
use proptest::prelude::*;
use testkit::{laws, strategies, texts};
use tokenizer_core::{Rng, Split};

/// The published regular expressions, run as published.
fn oracle(pattern: Pattern) -> Sequence {
    let stage = |regex: &&str| {
        let splitter = Backtracking::new(regex).expect("a published pattern is well formed");
        Box::new(splitter) as Box<dyn Split>
    };
    Sequence::new(pattern.stages().iter().map(stage).collect())
}

type Contestant = (Pattern, Box<dyn Split>, Sequence);

/// Patterns that cut differently, with their splitters and oracles.
fn different() -> Vec<Contestant> {
    [
        Pattern::Gpt2,
        Pattern::Cl100k,
        Pattern::Llama3,
        Pattern::O200k,
        Pattern::Qwen2,
        Pattern::Qwen35,
        Pattern::DeepSeekV3,
        Pattern::Tekken,
        Pattern::KimiK2,
    ]
    .into_iter()
    .map(|pattern| (pattern, pattern.splitter(), oracle(pattern)))
    .collect()
}

#[track_caller]
fn check(name: impl std::fmt::Display, fast: &dyn Split, slow: &dyn Split, text: &str) {
    let (fast, slow) = (fast.split(text), slow.split(text));
    if fast != slow {
        let show = |spans: &[tokenizer_core::Span]| -> Vec<String> {
            spans.iter().map(|s| text[s.range()].to_owned()).collect()
        };
        panic!("{name} on {text:?}:\n  fast {:?}\n  slow {:?}", show(&fast), show(&slow));
    }
}

/// A character or more of every kind that some pattern tells apart; the first [`DISTINCT`] of them
/// are of different kinds.
const KINDS: &[char] = &[
    'a',
    's',
    'l',
    'A',
    'ſ',
    'ʰ',
    '中',
    '〇',
    '⺀',
    '\u{16FF0}',
    '\u{301}',
    '1',
    '²',
    ' ',
    '\n',
    '\t',
    '\u{A0}',
    '\'',
    '/',
    '!',
    '\u{200B}',
    '・',
    'é',
    'É',
    'ǅ',
    'あ',
    '々',
    'e',
    'v',
    'r',
    'd',
    'S',
    'E',
    'Z',
    '１',
    '\r',
    '\u{85}',
    '\u{3000}',
    '$',
    '\0',
    '😀',
    '\u{3099}',
];
const DISTINCT: usize = 24;

#[test]
fn awkward_texts() {
    for (pattern, fast, slow) in different() {
        for (_, text) in texts::AWKWARD {
            check(pattern, fast.as_ref(), &slow, text);
            laws::splits_losslessly(fast.as_ref(), text);
        }
        // More than one batch.
        let all: String = texts::AWKWARD.iter().map(|(_, text)| *text).collect();
        check(pattern, fast.as_ref(), &slow, &all);
        laws::splits_losslessly(fast.as_ref(), &all.repeat(8));
    }
}

#[test]
fn all_pairs_and_triples_of_kinds() {
    let mut text = String::new();
    for (pattern, fast, slow) in different() {
        for &a in KINDS {
            for &b in KINDS {
                text.clear();
                text.extend([a, b]);
                check(pattern, fast.as_ref(), &slow, &text);
            }
        }
        for &a in &KINDS[..DISTINCT] {
            for &b in &KINDS[..DISTINCT] {
                text.clear();
                text.extend([a, b]);
                for &c in &KINDS[..DISTINCT] {
                    text.truncate(a.len_utf8() + b.len_utf8());
                    text.push(c);
                    check(pattern, fast.as_ref(), &slow, &text);
                }
            }
        }
    }
}

#[test]
fn every_code_point_next_to_a_letter_and_a_space() {
    // The planes without characters in them are sampled.
    let sampled = (0x3_2000..0x11_0000u32).filter(|c| c % 0x400 < 4 || *c >> 9 == 0xE_0000 >> 9);
    let points: Vec<char> = (0..0x3_2000).chain(sampled).filter_map(char::from_u32).collect();
    for (pattern, fast, slow) in different() {
        for chunk in points.chunks(4096) {
            let text: String = chunk.iter().flat_map(|&c| [c, 'a', ' ']).collect();
            check(pattern, fast.as_ref(), &slow, &text);
        }
    }
}

fn random_text(rng: &mut Rng, most: u64) -> String {
    // Few kinds at a time, so that runs and repeats happen.
    let few: Vec<char> =
        (0..1 + rng.below(5)).map(|_| KINDS[rng.below(KINDS.len() as u64) as usize]).collect();
    (0..rng.below(most)).map(|_| few[rng.below(few.len() as u64) as usize]).collect()
}

#[test]
fn random_texts_of_few_kinds() {
    let mut rng = Rng::new(1);
    for (pattern, fast, slow) in different() {
        for _ in 0..4_000 {
            let text = random_text(&mut rng, 24);
            check(pattern, fast.as_ref(), &slow, &text);
        }
    }
}

#[test]
fn any_rules_cut_as_the_pattern_they_stand_for_and_are_recognised_from_it() {
    let mut rng = Rng::new(2);
    for rules in (0..Rules::COUNT).map(Rules::numbered) {
        // Compiling is the cost here; one in 24 is tried.
        if rng.below(24) > 0 {
            continue;
        }
        let pattern = rules.pattern();
        let recognised = RegexSplitter::recognise(&pattern, Dialect::Rust);
        assert_eq!(recognised.map(|s| s.rules()), Some(rules), "{pattern}");
        let slow = Backtracking::new(&pattern).unwrap();
        for _ in 0..60 {
            let text = random_text(&mut rng, 16);
            check(&pattern, &Scanner::new(rules), &slow, &text);
        }
    }
}

#[test]
fn published_patterns_are_recognised_by_their_parts() {
    for &pattern in Pattern::ALL {
        let Some(rules) = pattern.rules() else { continue };
        // A space in front of the last alternative's end changes the string and not the meaning.
        let disguised = format!("(?:{})", pattern.stages()[0]);
        let scanner = RegexSplitter::recognise(&disguised, Dialect::Rust);
        assert_eq!(scanner.map(|s| s.rules()), Some(rules), "{pattern}");
        let splitter = RegexSplitter::new(pattern.stages()[0]).unwrap();
        assert_eq!(splitter.engine(), Engine::Scanner);
    }
}

#[test]
fn spellings_that_mean_the_same_are_recognised() {
    let cases: [(&str, Rules); 6] = [
        // llama.cpp's spelling of Llama 3, which does not fold U+017F.
        (
            r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            {
                let mut rules = Rules::LLAMA3;
                rules.contractions = Contractions::Apart(Case::AsciiInsensitive);
                rules
            },
        ),
        // Ling's.
        (
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
            Rules::QWEN2,
        ),
        // Qwen 2 without contractions.
        (r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", {
            let mut rules = Rules::QWEN2;
            rules.contractions = Contractions::None;
            rules
        }),
        // Classes written out otherwise.
        (
            r"'s|'t|'re|'ve|'m|'ll|'d|[ ]?\p{Letter}+| ?\pN+| ?[^\s\pL\pN]+|\s+(?!\S)|\s+",
            Rules::GPT2,
        ),
        (
            r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?(?:[\S&&[^\p{L}\p{N}]])+|\s+(?![^\s])|\s",
            Rules::GPT2,
        ),
        // MiniCPM5's second stage.
        (
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            {
                let mut rules = Rules::LLAMA3;
                rules.digits = Digits::Run;
                rules
            },
        ),
    ];
    let mut rng = Rng::new(3);
    for (pattern, rules) in cases {
        let scanner = RegexSplitter::recognise(pattern, Dialect::Rust).expect(pattern);
        assert_eq!(scanner.rules(), rules, "{pattern}");
        let slow = Backtracking::new(pattern).unwrap();
        for _ in 0..2000 {
            check(pattern, &scanner, &slow, &random_text(&mut rng, 16));
        }
    }
}

#[test]
fn patterns_that_mean_something_else_are_not_recognised() {
    let almost = [
        // No final alternative: a single space in front of a word is not matched.
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
        // Six of the seven contractions.
        r"'s|'t|'re|'ve|'m|'ll| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        // Another order: the numbers take the prefix of nothing, but the white space comes first.
        r"'s|'t|'re|'ve|'m|'ll|'d|\s+(?!\S)|\s+| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+",
        // ASCII letters.
        r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?\d{1,3}| ?[^\sA-Za-z\d]+|\s+",
        // Lazy.
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+?| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        // The look-ahead is positive.
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?=\S)|\s+",
    ];
    for pattern in almost {
        assert_eq!(RegexSplitter::recognise(pattern, Dialect::Rust), None, "{pattern}");
    }
    // In Oniguruma `{1,3}+` is no possessive group of three, and `$` is the end of a line.
    let cl100k = Pattern::Cl100k.stages()[0];
    assert_eq!(RegexSplitter::recognise(cl100k, Dialect::Oniguruma), None);
    let llama3 = Pattern::Llama3.stages()[0];
    let scanner = RegexSplitter::recognise(llama3, Dialect::Oniguruma);
    assert_eq!(scanner.map(|s| s.rules()), Some(Rules::LLAMA3));
    let disguised = format!("(?:{llama3})");
    let scanner = RegexSplitter::recognise(&disguised, Dialect::Oniguruma);
    assert_eq!(scanner.map(|s| s.rules()), Some(Rules::LLAMA3));
}

#[test]
fn automata_cut_as_backtracking_does() {
    let mut options = RegexOptions::default();
    options.engine = Some(Engine::Automaton);
    let mut rng = Rng::new(4);
    let patterns = Pattern::ALL.iter().flat_map(|p| p.stages()).copied().chain([
        r"\p{L}++'?|[\s--\n]+(?![^\s--\n])|\n",
        r"(a+)b|[ab]++$|\s",
        r"(?i)'s|\w{1,2}+|[^\w]",
        r"x*",
        r"a*?|é",
        r"(?m)^\s*|$|\b",
    ]);
    for pattern in patterns {
        let fast = RegexSplitter::with_options(pattern, options).expect(pattern);
        assert_eq!(fast.engine(), Engine::Automaton);
        let slow = Backtracking::new(pattern).unwrap();
        for (_, text) in texts::AWKWARD {
            check(pattern, &fast, &slow, text);
        }
        for _ in 0..500 {
            check(pattern, &fast, &slow, &random_text(&mut rng, 16));
        }
    }
}

#[test]
fn scanning_on_from_any_boundary_gives_the_rest() {
    for &pattern in Pattern::ALL {
        let Some(rules) = pattern.rules() else { continue };
        let scanner = Scanner::new(rules);
        for (_, text) in texts::AWKWARD {
            let (mut at, mut ends) = (0, Vec::new());
            while let Some(end) = scanner.next_end(text, at) {
                ends.push(end);
                at = end;
            }
            let spans = scanner.split(text);
            assert_eq!(ends, spans.iter().map(|s| s.end).collect::<Vec<_>>(), "{text:?}");
        }
    }
}

/// Compiled once for all cases.
static DIFFERENT: LazyLock<Vec<Contestant>> = LazyLock::new(different);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn mixed_text(text in strategies::mixed_text()) {
        for (pattern, fast, slow) in DIFFERENT.iter() {
            check(pattern, fast.as_ref(), slow, &text);
        }
    }
}
