//! What published tokenizers cut, case by case.

use pretok::{
    Align, Behavior, Bert, CharDelimiter, Chars, Delimiter, DigitGroups, DigitSplit, FixedLength,
    Metaspace, Pattern, PatternSplit, Punctuation, Scripts, Sequence, SpacePrefix, WhitespaceSplit,
    Whole, Words, from_spec, names,
};
use std::num::NonZeroUsize;
use testkit::{laws, texts};
use tokenizer_core::Split;

#[track_caller]
fn check(splitter: &dyn Split, text: &str, expected: &[&str]) {
    assert_eq!(laws::splits(splitter, text), expected, "{text:?}");
}

/// Text, and the pieces under gpt2, cl100k, o200k with `|` between. Made with Oniguruma and with
/// Python's `regex`, which agree.
const PUBLISHED: &[(&str, [&str; 3])] = &[
    ("'\u{17F}t", ["'|\u{17F}t", "'\u{17F}|t", "'\u{17F}t"]),
    ("it'\u{17F} x", ["it|'|\u{17F}| x", "it|'\u{17F}| x", "it'\u{17F}| x"]),
    ("'The 'LLama", ["'|The| '|LLama", "'T|he| '|LLama", "'The| '|LLama"]),
    ("CAN'TS", ["CAN|'|TS", "CAN|'T|S", "CAN'T|S"]),
    ("a's's", ["a|'s|'s", "a|'s|'s", "a's|'s"]),
    ("'s's", ["'s|'s", "'s|'s", "'s's"]),
    ("!'s", ["!'|s", "!'|s", "!'|s"]),
    ("''s", ["''|s", "''|s", "''|s"]),
    ("x!abc", ["x|!|abc", "x|!abc", "x|!abc"]),
    ("x!!abc", ["x|!!|abc", "x|!!|abc", "x|!!|abc"]),
    ("  abc", [" | abc", " | abc", " | abc"]),
    ("x\tabc", ["x|\t|abc", "x|\tabc", "x|\tabc"]),
    ("\u{A0}abc", ["\u{A0}|abc", "\u{A0}abc", "\u{A0}abc"]),
    ("a  \n\n  b", ["a|  \n\n | b", "a|  \n\n| | b", "a|  \n\n| | b"]),
    ("a  \r\n\r\n\tb", ["a|  \r\n\r\n|\t|b", "a|  \r\n\r\n|\tb", "a|  \r\n\r\n|\tb"]),
    (".\n//x", [".|\n|//|x", ".\n|//|x", ".\n//|x"]),
    ("e\u{301}a\u{301}", ["e|\u{301}|a|\u{301}", "e|\u{301}a|\u{301}", "e\u{301}a\u{301}"]),
    ("a\u{301}'sb", ["a|\u{301}'|sb", "a|\u{301}'|sb", "a\u{301}'s|b"]),
    ("中Qz", ["中Qz", "中Qz", "中Qz"]),
    ("ʰABC", ["ʰABC", "ʰABC", "ʰ|ABC"]),
    ("亚洲AV", ["亚洲AV", "亚洲AV", "亚洲|AV"]),
    ("HTTPServer", ["HTTPServer", "HTTPServer", "HTTPServer"]),
    ("AxxB", ["AxxB", "AxxB", "Axx|B"]),
    ("éÉé", ["éÉé", "éÉé", "é|Éé"]),
    ("１２３４", ["１２３４", "１２３|４", "１２３|４"]),
    (
        "x\u{B2}\u{B3}\u{BC}",
        ["x|\u{B2}\u{B3}\u{BC}", "x|\u{B2}\u{B3}\u{BC}", "x|\u{B2}\u{B3}\u{BC}"],
    ),
    ("\u{200B}x", ["\u{200B}|x", "\u{200B}x", "\u{200B}x"]),
    ("\u{FEFF}x", ["\u{FEFF}|x", "\u{FEFF}x", "\u{FEFF}x"]),
    ("\u{180E}a", ["\u{180E}|a", "\u{180E}a", "\u{180E}a"]),
    ("\u{1C}x", ["\u{1C}|x", "\u{1C}x", "\u{1C}x"]),
    ("a\u{85}\u{2028}b", ["a|\u{85}|\u{2028}|b", "a|\u{85}|\u{2028}b", "a|\u{85}|\u{2028}b"]),
    ("a\u{3000}b", ["a|\u{3000}|b", "a|\u{3000}b", "a|\u{3000}b"]),
    ("a\u{B}\u{C}b", ["a|\u{B}|\u{C}|b", "a|\u{B}|\u{C}b", "a|\u{B}|\u{C}b"]),
    ("'ll\u{301}", ["'ll|\u{301}", "'ll|\u{301}", "'ll\u{301}"]),
    ("    x = 1", ["   | x| =| 1", "   | x| =| |1", "   | x| =| |1"]),
    ("1234567", ["1234567", "123|456|7", "123|456|7"]),
];

#[test]
fn published_cases() {
    let patterns = [Pattern::Gpt2, Pattern::Cl100k, Pattern::O200k];
    for (text, expected) in PUBLISHED {
        for (pattern, expected) in patterns.iter().zip(expected) {
            let pieces = laws::splits_losslessly(pattern.splitter().as_ref(), text);
            assert_eq!(pieces.join("|"), *expected, "{pattern} on {text:?}");
        }
        let [_, cl100k, _] = expected;
        check(Pattern::Llama3.splitter().as_ref(), text, &cl100k.split('|').collect::<Vec<_>>());
    }
}

/// tiktoken's cl100k tries the end of the text before line breaks; the exports do not.
#[test]
fn white_space_at_the_end_is_one_piece_for_tiktoken_only() {
    let cases = [
        ("a \n  ", "a| \n  ", "a| \n|  "),
        ("a\n ", "a|\n ", "a|\n| "),
        (" \n ", " \n ", " \n| "),
        ("a\r\n\u{3000}", "a|\r\n\u{3000}", "a|\r\n|\u{3000}"),
        ("a \n b", "a| \n| b", "a| \n| b"),
        ("a  ", "a|  ", "a|  "),
    ];
    for (text, tiktoken, export) in cases {
        let pieces = laws::splits_losslessly(Pattern::Cl100k.splitter().as_ref(), text);
        assert_eq!(pieces.join("|"), tiktoken, "{text:?}");
        let pieces = laws::splits_losslessly(Pattern::Cl100kHf.splitter().as_ref(), text);
        assert_eq!(pieces.join("|"), export, "{text:?}");
    }
}

#[test]
fn other_named_patterns() {
    let cases = [
        (Pattern::Qwen2, "x\u{B2}\u{B3}\u{BC} 12", "x|\u{B2}|\u{B3}|\u{BC}| |1|2"),
        (Pattern::Qwen35, "e\u{301}a\u{301} !\u{301}", "e\u{301}a\u{301}| !|\u{301}"),
        (Pattern::Tekken, "AxxB's 12", "Axx|B|'s| |1|2"),
        (Pattern::KimiK2, "中文ab亚洲AV!\u{2E80}〇1", "中文|ab|亚洲|AV|!\u{2E80}|〇|1"),
        (
            Pattern::DeepSeekV3,
            "a12345中文かなb!x 。\u{200B}\0",
            "a|123|45|中文かな|b|!x| 。|\u{200B}\0",
        ),
        (Pattern::R50k, "it's \n", "it|'s| \n"),
        (Pattern::P50k, "it's \n", "it|'s| \n"),
    ];
    for (pattern, text, expected) in cases {
        let pieces = laws::splits_losslessly(pattern.splitter().as_ref(), text);
        assert_eq!(pieces.join("|"), expected, "{pattern} on {text:?}");
    }
}

/// Of Unicode 16, as Oniguruma 6.9.10 has it: U+1C89 is a letter since 16, U+1FAE8 a symbol since 15.
/// Libraries with tables of Unicode 14 cut otherwise.
#[test]
fn characters_have_the_classes_of_unicode_16() {
    for pattern in [Pattern::Gpt2, Pattern::DeepSeekV3] {
        let splitter = pattern.splitter();
        check(splitter.as_ref(), "a\u{1C89}b", &["a\u{1C89}b"]);
        check(splitter.as_ref(), "-\u{1C89}", &["-", "\u{1C89}"]);
        check(splitter.as_ref(), "a\u{1FAE8}b", &["a", "\u{1FAE8}", "b"]);
    }
}

#[test]
fn splitters_that_keep_all_text() {
    let three = NonZeroUsize::new(3).expect("3 is not 0");
    let groups = |align| DigitGroups { len: three, align };
    check(&Whole, "a b", &["a b"]);
    check(&Chars, "aé😀", &["a", "é", "😀"]);
    check(&FixedLength(three), "Hello 👋 world", &["Hel", "lo ", "👋 w", "orl", "d"]);
    check(&FixedLength(three), "abc", &["abc"]);
    check(&Punctuation(Behavior::Isolated), "a$$ b。", &["a", "$", "$", " b", "。"]);
    check(&Punctuation(Behavior::Contiguous), "a$$ b。", &["a", "$$", " b", "。"]);
    check(&DigitSplit::Individual, "ab12\u{BC} 3", &["ab", "1", "2", "\u{BC}", " ", "3"]);
    check(&DigitSplit::Runs, "ab12\u{BC} 3", &["ab", "12\u{BC}", " ", "3"]);
    check(&groups(Align::Left), "a1234567b12", &["a", "123", "456", "7", "b", "12"]);
    check(&groups(Align::Right), "a1234567b12", &["a", "1", "234", "567", "b", "12"]);
    check(&groups(Align::Right), "123456", &["123", "456"]);
    check(&groups(Align::Right), "１２３４", &["１", "２３４"]);
    check(&Metaspace, "▁Hey▁▁my friend▁", &["▁Hey", "▁", "▁my friend", "▁"]);
    check(&SpacePrefix, "the cat  sat ", &["the", " cat", " ", " sat", " "]);
    let splitters: [&dyn Split; 9] = [
        &Whole,
        &Chars,
        &FixedLength(three),
        &Punctuation(Behavior::MergedWithPrevious),
        &DigitSplit::Individual,
        &groups(Align::Left),
        &groups(Align::Right),
        &Metaspace,
        &SpacePrefix,
    ];
    for splitter in splitters {
        for (_, text) in texts::AWKWARD {
            laws::splits_losslessly(splitter, text);
        }
    }
}

#[test]
fn splitters_that_remove_text() {
    check(&WhitespaceSplit, " a\u{3000}b.c\n", &["a", "b.c"]);
    check(&Words, "Hey man! a_b--c", &["Hey", "man", "!", "a_b", "--", "c"]);
    check(&Words, "\u{200D}a\u{301} \u{20AC}", &["\u{200D}a\u{301}", "\u{20AC}"]);
    check(&Bert, "Hey, friend!!  a$b", &["Hey", ",", "friend", "!", "!", "a", "$", "b"]);
    check(&Bert, "a+b=c^d~e|f`", &["a", "+", "b", "=", "c", "^", "d", "~", "e", "|", "f", "`"]);
    check(&Bert, "g\u{BC}\u{B2}h <", &["g\u{BC}\u{B2}h", "<"]);
    check(&CharDelimiter('-'), "the-final--countdown", &["the", "final", "countdown"]);
    check(&Scripts, "どこで生れ。Yes", &["どこで生れ", "。", "Yes"]);
    check(&Scripts, "Apples are りんご 林檎", &["Apples are ", "りんご 林檎"]);
    check(&Scripts, "  ab  ", &["ab  "]);
    check(&Scripts, "  ", &[]);
    let splitters: [&dyn Split; 5] =
        [&WhitespaceSplit, &Words, &Bert, &CharDelimiter('a'), &Scripts];
    for splitter in splitters {
        for (_, text) in texts::AWKWARD {
            laws::splits(splitter, text);
        }
    }
}

#[test]
fn literal_delimiters() {
    let split = |literal: &str, behavior, invert| PatternSplit {
        delimiter: Delimiter::Literal(literal.into()),
        behavior,
        invert,
    };
    check(&split("ab", Behavior::Removed, false), "abxababy", &["x", "y"]);
    check(&split("ab", Behavior::Removed, true), "abxababy", &["ab", "ab", "ab"]);
    check(&split("ab", Behavior::Contiguous, false), "abxababy", &["ab", "x", "abab", "y"]);
    check(&split("", Behavior::Isolated, false), "aé", &["a", "é"]);
    check(&split("é", Behavior::MergedWithPrevious, false), "aéé", &["aé", "é"]);
}

#[test]
fn a_stage_sees_each_piece_as_a_whole_text() {
    // Alone, GPT-2's pattern leaves the last space to the digit; behind the digit splitter, the
    // spaces are the end of their text.
    let digits = || Box::new(DigitSplit::Individual) as Box<dyn Split>;
    let gpt2 = || Pattern::Gpt2.splitter();
    check(gpt2().as_ref(), "a  12", &["a", " ", " 12"]);
    check(&Sequence::new(vec![digits(), gpt2()]), "a  12", &["a", "  ", "1", "2"]);
    check(&Sequence::new(vec![]), "a b", &["a b"]);
    check(&Sequence::new(vec![gpt2()]), "a b", &["a", " b"]);
    let three = Sequence::new(vec![Box::new(WhitespaceSplit), digits(), Box::new(Chars)]);
    check(&three, " ab 12", &["a", "b", "1", "2"]);
}

#[test]
fn every_name_makes_a_splitter_and_is_given_back() {
    for (name, line) in names() {
        assert!(!line.is_empty() && !line.contains('\n'));
        for n in ["1", "4", "17"] {
            let spec = match *name {
                "regex:PATTERN" => "regex:a+,b".to_owned(),
                name => name.replace('N', n),
            };
            let splitter = from_spec(&spec).unwrap_or_else(|e| panic!("{spec}: {e}"));
            assert_eq!(splitter.to_string(), spec);
            for (_, text) in texts::AWKWARD {
                laws::splits(&splitter, text);
            }
        }
    }
}

#[test]
fn specifications() {
    let cases: [(&str, &str, &str); 6] = [
        ("digits3,gpt2", "in 20241", "in| |202|41"),
        ("digits3-right", "20241", "20|241"),
        ("whitespace,punctuation-merged-with-previous", "a, b!", "a,|b!"),
        ("fixed2", "abc", "ab|c"),
        ("deepseek-v3", "a12345", "a|123|45"),
        ("space-prefix", "a b", "a| b"),
    ];
    for (spec, text, expected) in cases {
        let splitter = from_spec(spec).unwrap();
        assert_eq!(laws::splits(&splitter, text).join("|"), expected, "{spec}");
        assert_eq!(splitter.engine(), "scanner");
    }
    for wrong in
        ["", "gpt3", "gpt2,", "digits0", "digits03", "fixed", "fixed-1", "digits+3", "Gpt2"]
    {
        let error = from_spec(wrong).unwrap_err();
        assert!(error.to_string().starts_with("no splitter is called"), "{wrong}: {error}");
    }
}

#[cfg(feature = "regex")]
mod regular_expressions {
    use pretok::{Dialect, Engine, RegexOptions, RegexSplitter};

    use super::*;

    #[test]
    fn specification_takes_the_rest_of_the_string() {
        let splitter = from_spec(r"whitespace,regex:\d{1,2}|,").unwrap();
        assert_eq!(laws::splits(&splitter, "a,123 4"), ["a", ",", "12", "3", "4"]);
        assert_eq!(splitter.engine(), "automaton");
        assert_eq!(from_spec(r"regex:(a)\1").unwrap().engine(), "backtracking");
        let error = from_spec("gpt2,regex:(").unwrap_err();
        assert_eq!(error.item(), "regex:(");
        assert!(std::error::Error::source(&error).is_some());
    }

    #[test]
    fn the_engine_depends_on_the_pattern() {
        let cases = [
            (Pattern::O200k.stages()[0], Engine::Scanner),
            (r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?\d{1,3}| ?[^\sA-Za-z\d]+|\s+", Engine::Automaton),
            (r"[a-z]++|\s+(?!\S)|\s", Engine::Automaton),
            // Giving back may help: possessive is not greedy here.
            (r"[a-z]++a", Engine::Backtracking),
            (r"(?>ab|a)b", Engine::Backtracking),
            (r"(?<=a)b", Engine::Backtracking),
            (r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", Engine::Backtracking),
            (r"(a)\1", Engine::Backtracking),
        ];
        for (pattern, engine) in cases {
            assert_eq!(RegexSplitter::new(pattern).unwrap().engine(), engine, "{pattern}");
        }
        let mut options = RegexOptions::default();
        options.engine = Some(Engine::Automaton);
        let error = RegexSplitter::with_options(r"(a)\1", options).unwrap_err();
        assert_eq!(
            error.to_string(),
            r"the automaton engine is not proven to match the pattern `(a)\1`"
        );
        assert_eq!(RegexSplitter::new("a(").unwrap_err().pattern(), "a(");
    }

    #[test]
    fn matches_and_what_lies_between_are_pieces() {
        for pattern in [r"\d+", r"\d+(?=.|\n|$)", r"(?:)\d+"] {
            let splitter = RegexSplitter::new(pattern).unwrap();
            assert_eq!(laws::splits_losslessly(&splitter, "a12b"), ["a", "12", "b"], "{pattern}");
            for (_, text) in texts::AWKWARD {
                laws::splits_losslessly(&splitter, text);
            }
        }
    }

    #[test]
    fn right_aligned_groups_are_the_published_look_ahead() {
        let three = NonZeroUsize::new(3).unwrap();
        let groups = DigitGroups { len: three, align: Align::Right };
        let regex = RegexSplitter::new(r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))").unwrap();
        for text in ["1", "12a1234", "1234567890", "x１２３４²", "no digits", "12 345 6789"] {
            assert_eq!(groups.split(text), regex.split(text), "{text}");
        }
    }

    #[test]
    fn removed_and_inverted_drops_what_lies_between() {
        let split = PatternSplit {
            delimiter: Delimiter::Regex(RegexSplitter::new(r"\w+").unwrap()),
            behavior: Behavior::Removed,
            invert: true,
        };
        check(&split, "a, b", &["a", "b"]);
    }

    #[test]
    fn oniguruma_reads_some_patterns_otherwise() {
        let cases = [
            (r"\d{1,3}+", "12345", "123|45", "12345"),
            ("$", "a\nb", "a\nb", "a|\nb"),
            ("^b", "a\nbb", "a\nbb", "a\n|b|b"),
            (r"\w+", "\u{200D}²a", "\u{200D}|²|a", "\u{200D}|²a"),
            (r"[\w]+", "\u{200D}a²", "\u{200D}a|²", "\u{200D}|a|²"),
            ("[[:alpha:]]+", "aé1", "a|é1", "aé|1"),
            (r"\<a\>", "<a>a", "<|a|>|a", "<a>|a"),
        ];
        for (pattern, text, rust, oniguruma) in cases {
            let splitter = RegexSplitter::new(pattern).unwrap();
            assert_eq!(laws::splits(&splitter, text).join("|"), rust, "{pattern}");
            let options = RegexOptions::oniguruma();
            assert_eq!(options.dialect, Dialect::Oniguruma);
            let splitter = RegexSplitter::with_options(pattern, options).unwrap();
            assert_eq!(laws::splits(&splitter, text).join("|"), oniguruma, "{pattern}");
        }
    }

    #[test]
    fn a_search_that_passes_its_limit_loses_no_text() {
        let mut options = RegexOptions::default();
        options.backtrack_limit = 1000;
        let splitter = RegexSplitter::with_options(r"b|(?:a|a|aa)+(?<!b)c", options).unwrap();
        assert_eq!(splitter.engine(), Engine::Backtracking);
        let text = format!("bx{}", "a".repeat(60));
        let mut spans = Vec::new();
        let error = splitter.try_split_into(&text, &mut spans).unwrap_err();
        assert_eq!(error.at(), 1);
        assert!(error.to_string().contains("1000 steps back"), "{error}");
        assert_eq!(laws::splits_losslessly(&splitter, &text), ["b", &text[1..]]);
    }

    #[test]
    fn the_pattern_of_a_worked_example() {
        let pattern = r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?\d{1,3}| ?[^\sA-Za-z\d]+|\s+";
        let splitter = RegexSplitter::new(pattern).unwrap();
        let text = "It's 2024: don't  stop!";
        let pieces = laws::splits_losslessly(&splitter, text);
        assert_eq!(pieces.join("|"), "It|'s| 202|4|:| don|'t|  |stop|!");
    }
}
