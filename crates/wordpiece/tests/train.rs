//! The trainer: the worked example, the specification, the invariants, the limits.
#![allow(clippy::unwrap_used)] // The helpers of an integration test are tests as well.

use std::ops::ControlFlow;

use proptest::prelude::*;
use testkit::{laws, strategies, texts};
use tokenizer_core::{
    Decode, Encode, Model, Observe, PieceCounts, Silent, TokenId, TokenKind, Train,
};
use wordpiece::{Criterion, Merge, Options, Unit, WordPiece, WordPieceTrainer, naive};

#[derive(Default)]
struct Trace(Vec<Merge>);

impl Observe<Merge> for Trace {
    fn step(&mut self, merge: &Merge) -> ControlFlow<()> {
        self.0.push(merge.clone());
        ControlFlow::Continue(())
    }
}

fn counts<S: AsRef<str>>(pairs: &[(S, u64)]) -> PieceCounts {
    PieceCounts::from_pairs(pairs.iter().map(|(word, count)| (word.as_ref(), *count))).unwrap()
}

fn trainer(vocab_size: usize, set: impl FnOnce(&mut WordPieceTrainer)) -> WordPieceTrainer {
    let mut trainer = WordPieceTrainer::new(vocab_size);
    set(&mut trainer);
    trainer
}

fn tokens(model: &WordPiece) -> Vec<String> {
    model.vocab().iter().map(|(_, bytes, _)| String::from_utf8_lossy(bytes).into_owned()).collect()
}

fn hugs() -> PieceCounts {
    counts(&[("hug", 10), ("pug", 5), ("pun", 12), ("bun", 4), ("hugs", 5)])
}

/// The corpus of Hugging Face's course, recomputed by hand.
#[test]
fn worked_example_of_hugs() {
    let trainer = trainer(18, |_| ());
    let mut trace = Trace::default();
    let model = trainer.train(&hugs(), &mut trace).unwrap();
    assert_eq!(
        tokens(&model),
        [
            "[UNK]", "b", "h", "p", "##g", "##n", "##s", "##u",  // the alphabet
            "##gs", // 5/(20*5) = 1/20
            "pu",   // 1/36 like h ##u, b ##u and others, but 17 times
            "hu",   // 1/19 like b ##u and ##u ##gs, but 15 times
            "bu",   // 4/(4*4)
            "hugs", // 5/(15*5) = 1/15 beats hu ##g = 10/(15*15)
            "hug",  // 10/(10*15) = 1/15 beats bu ##n = 4/(4*16)
            "bun", "pun", "pug",
        ]
    );
    let seen: Vec<_> = trace.0.iter().map(|m| (m.count, m.left_count, m.right_count)).collect();
    assert_eq!(
        seen,
        [
            (5, 20, 5),
            (17, 17, 36),
            (15, 15, 19),
            (4, 4, 4),
            (5, 15, 5),
            (10, 10, 15),
            (4, 4, 16),
            (12, 17, 12),
            (5, 5, 5),
        ]
    );
    let mut ids = Vec::new();
    model.session().encode_ids_into(b"hugs", &[(0..4).into()], &mut ids);
    assert_eq!(model.decode(&ids).unwrap(), b"hugs");
    assert_eq!(ids.len(), 1);
}

#[test]
fn frequency_criterion_is_bpe_with_a_prefix() {
    let trainer = trainer(12, |t| t.criterion = Criterion::Frequency);
    let model = trainer.train(&hugs(), &mut Silent).unwrap();
    // ##u ##g 20, then p ##u 17 (pug and pun: p ##ug 5 and p ##u 12), ...
    assert_eq!(tokens(&model)[8..], ["##ug", "##un", "hug", "pun"]);
}

#[test]
fn ids_are_special_tokens_then_the_sorted_alphabet() {
    let trainer = trainer(9, |t| {
        t.special_tokens = ["[PAD]", "[UNK]", "[CLS]"].map(|s| s.as_bytes().to_vec()).to_vec();
    });
    let model = trainer.train(&counts(&[("ba", 1), ("é", 2), ("ab", 1)]), &mut Silent).unwrap();
    assert_eq!(tokens(&model), ["[PAD]", "[UNK]", "[CLS]", "a", "b", "é", "##a", "##b", "ab"]);
    let kinds: Vec<_> = model.vocab().iter().map(|(.., kind)| kind).take(4).collect();
    use TokenKind::{Control, Normal, Unknown};
    assert_eq!(kinds, [Control, Unknown, Control, Normal]);
}

#[test]
fn byte_units_leave_nothing_unknown() {
    let trainer = trainer(600, |t| t.options = Options::bytes());
    let model = trainer.train(&counts(&[("xin chào", 5), ("chào", 3)]), &mut Silent).unwrap();
    assert_eq!(tokens(&model)[512..515], ["xi", "## c", "##n c"]);
    for (name, text) in texts::all_bytes() {
        let tokens = laws::encodes_piece(&model, &mut model.session(), text);
        let ids: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
        assert_eq!(model.decode(&ids).unwrap(), text, "{name}");
    }
    let text = "\u{0739}\u{0741}".as_bytes();
    assert_eq!(naive::encode(&model, text).len(), 4);
}

#[test]
fn too_small_a_vocabulary_is_an_error_that_names_the_least() {
    let corpus: Vec<_> =
        (0..300).map(|i| (char::from_u32(0x4E00 + i).unwrap().to_string(), 1)).collect();
    let corpus = counts(&corpus);
    let error = trainer(100, |_| ()).train(&corpus, &mut Silent).unwrap_err();
    assert_eq!(error.needed_vocab_size(), Some(301));
    assert_eq!(
        error.to_string(),
        "a vocabulary of 100 is too small: 1 special tokens and an alphabet of 300 need at least 301"
    );
    assert_eq!(trainer(301, |_| ()).train(&corpus, &mut Silent).unwrap().vocab().len(), 301);
    let limited = trainer(100, |t| t.alphabet_limit = Some(99));
    let (model, report) = limited.train_reporting(&corpus, &mut Silent).unwrap();
    assert_eq!((model.vocab().len(), report.dropped_chars), (100, 201));
}

#[test]
fn limits_keep_the_most_frequent_characters_and_part_words_at_the_others() {
    let corpus = counts(&[("axb", 1), ("ab", 5), ("ya", 1)]);
    let limited = trainer(50, |t| t.alphabet_limit = Some(2));
    let (model, report) = limited.train_reporting(&corpus, &mut Silent).unwrap();
    // No a ##b from "axb", and its parts count.
    assert_eq!(tokens(&model), ["[UNK]", "a", "##a", "##b", "ab"]);
    assert_eq!((report.dropped_chars, report.dropped_count, report.ran_dry), (2, 2, true));
    let covering = trainer(50, |t| t.coverage = 0.86);
    let (model, _) = covering.train_reporting(&corpus, &mut Silent).unwrap();
    assert_eq!(tokens(&model), ["[UNK]", "a", "##a", "##b", "ab"]);
}

#[test]
fn required_characters_get_both_forms() {
    let trainer = trainer(50, |t| {
        t.initial_alphabet = vec!["é".into(), "z".into()];
        t.alphabet_limit = Some(2);
    });
    let model = trainer.train(&counts(&[("ab", 9)]), &mut Silent).unwrap();
    assert_eq!(tokens(&model), ["[UNK]", "z", "é", "##z", "##é"]);
}

#[test]
fn long_words_are_skipped_and_counted() {
    let corpus = counts(&[("aaaa", 2), ("éé", 3), ("qqqqq", 4)]);
    let trainer = trainer(50, |t| t.max_word_len = Some(3));
    let (model, report) = trainer.train_reporting(&corpus, &mut Silent).unwrap();
    assert_eq!((report.skipped_pieces, report.skipped_count), (2, 6));
    assert_eq!(tokens(&model), ["[UNK]", "é", "##é", "éé"]);
}

#[test]
fn token_length_and_frequency_are_bounded() {
    let corpus = counts(&[("abcdef", 10), ("xy", 2)]);
    let trainer = trainer(50, |t| {
        t.max_token_len = Some(2);
        t.min_frequency = 3;
    });
    let model = trainer.train(&corpus, &mut Silent).unwrap();
    assert!(tokens(&model).iter().skip(1).all(|t| t.trim_start_matches("##").len() <= 2));
    assert!(!tokens(&model).contains(&"xy".to_owned()));
    assert!(tokens(&model).contains(&"ab".to_owned()));
}

#[test]
fn counts_above_32_bits_and_near_64_bits_are_right() {
    let scale = 1u64 << 40;
    let small = [("hug", 10), ("pug", 5), ("pun", 12), ("bun", 4), ("hugs", 5)];
    let large = small.map(|(word, count)| (word, count * scale));
    let trainer = trainer(18, |_| ());
    let model =
        |pairs: &[(&str, u64)]| tokens(&trainer.train(&counts(pairs), &mut Silent).unwrap());
    assert_eq!(model(&small), model(&large));
    // One more occurrence in 2^61 decides: scores are not rounded.
    let n = 1u64 << 60;
    let mut trace = Trace::default();
    let corpus = counts(&[("ab", n), ("cd", n - 1), ("c", 1)]);
    trainer.train(&corpus, &mut trace).unwrap();
    // ab: n/(n*n) = 1/n.  cd: (n-1)/(n*(n-1)) = 1/n, a tie; the count decides.
    assert_eq!(trace.0[0].token, b"ab");
    let mut trace = Trace::default();
    let corpus = counts(&[("ab", n), ("cd", n - 1)]);
    trainer.train(&corpus, &mut trace).unwrap();
    // 1/(n-1) is above 1/n.
    assert_eq!(trace.0[0].token, b"cd");
    let corpus = counts(&[("abcd", u64::MAX / 3)]);
    let error = trainer.train(&corpus, &mut Silent).unwrap_err();
    assert_eq!(error.to_string(), "the text has more than 18446744073709551615 characters");
}

#[test]
fn options_are_checked() {
    let check = |set: fn(&mut WordPieceTrainer), message: &str| {
        let error = trainer(1000, set).train(&hugs(), &mut Silent).unwrap_err();
        assert_eq!(error.to_string(), message);
    };
    check(|t| t.coverage = 0.0, "the coverage is 0, but must be above 0 and at most 1");
    check(|t| t.coverage = f64::NAN, "the coverage is NaN, but must be above 0 and at most 1");
    check(
        |t| t.initial_alphabet = vec![b"ab".to_vec()],
        "\"ab\" in the initial alphabet has 2 characters, but must have 1",
    );
    check(
        |t| {
            t.initial_alphabet = vec![b"a".to_vec()];
            t.alphabet_limit = Some(0);
        },
        "the alphabet is limited to 0 characters, but the initial alphabet has 1",
    );
    check(
        |t| {
            t.options.unit = Unit::Byte;
            t.alphabet_limit = Some(9);
        },
        "an alphabet limit or coverage is not possible with bytes as units, of which all 256 are kept",
    );
    check(
        |t| t.special_tokens = vec![b"h".to_vec()],
        "special token 1 (\"h\") is also a character of the text",
    );
    check(
        |t| t.special_tokens = vec![b"<s>".to_vec(), b"<s>".to_vec()],
        "the special tokens or the merged tokens do not fit",
    );
}

#[test]
fn a_merge_that_spells_a_special_token_is_never_made() {
    let trainer = trainer(50, |t| t.special_tokens = vec![b"ab".to_vec()]);
    let model = trainer.train(&counts(&[("ab", 9), ("abc", 4)]), &mut Silent).unwrap();
    assert_eq!(tokens(&model), ["[UNK]", "ab", "a", "##b", "##c", "##bc", "abc"]);
}

#[test]
fn two_merges_of_one_spelling_are_one_token() {
    // "abc" arises as ab+##c and as a+##bc, depending on the word's surroundings.
    let corpus = [("abc", 5), ("abcx", 3), ("bc", 50), ("zbc", 70), ("ab", 60), ("abq", 8)];
    let trainer = trainer(40, |t| t.criterion = Criterion::Frequency);
    let (model, merges) = both(&trainer, &counts(&corpus));
    assert!(merges.iter().enumerate().all(|(i, m)| m.step == i as u64 + 1));
    assert!(model.vocab().len() <= 40);
}

#[test]
fn the_fitted_frequency_is_the_highest_that_fills() {
    let words: Vec<(String, u64)> = (0..200u32)
        .map(|i| {
            (
                format!(
                    "{}{}ing",
                    char::from(b'a' + (i % 17) as u8),
                    "xyzw".repeat(1 + i as usize % 3)
                ),
                u64::from(i * i % 97 + 1),
            )
        })
        .collect();
    let corpus = counts(&words);
    for size in [45, 60, 80] {
        let fitted = trainer(size, |_| ()).fitted(&corpus, &mut Silent).unwrap();
        let runs_dry = |min_frequency| {
            let trainer = trainer(size, |t| t.min_frequency = min_frequency);
            trainer.train_reporting(&corpus, &mut Silent).unwrap().1.ran_dry
        };
        assert!(fitted.min_frequency > 1, "{size}");
        assert!(!runs_dry(fitted.min_frequency));
        assert!(runs_dry(fitted.min_frequency + fitted.min_frequency / 50 + 1));
    }
    assert_eq!(trainer(10_000, |_| ()).fitted(&corpus, &mut Silent).unwrap().min_frequency, 1);
    assert_eq!(
        trainer(10, |_| ()).fitted(&PieceCounts::default(), &mut Silent).unwrap().min_frequency,
        1
    );
    let error = trainer(3, |_| ()).fitted(&corpus, &mut Silent).unwrap_err();
    // The alphabet alone fills this one at any frequency.
    let alphabet = error.needed_vocab_size().unwrap();
    let fitted = trainer(alphabet, |_| ()).fitted(&corpus, &mut Silent).unwrap();
    assert_eq!(fitted.min_frequency, 1);
}

#[test]
fn the_observer_can_stop_at_any_time() {
    struct Stop(u64);
    impl Observe<Merge> for Stop {
        fn step(&mut self, merge: &Merge) -> ControlFlow<()> {
            if merge.step == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
        fn progress(&mut self, _: &'static str, done: u64, total: u64) -> ControlFlow<()> {
            assert!(done <= total);
            if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    for at in [0, 1, 3] {
        let error = trainer(18, |_| ()).train(&hugs(), &mut Stop(at)).unwrap_err();
        assert!(error.is_stopped());
        assert_eq!(error.to_string(), "the training was stopped");
    }
}

#[test]
fn nothing_trains_to_the_special_tokens() {
    let model = trainer(10, |_| ()).train(&PieceCounts::default(), &mut Silent).unwrap();
    assert_eq!(tokens(&model), ["[UNK]"]);
    let one = trainer(10, |_| ()).train(&counts(&[("a", 1)]), &mut Silent).unwrap();
    assert_eq!(tokens(&one), ["[UNK]", "a"]);
}

#[test]
fn awkward_texts_train_as_one_word() {
    for (name, text) in texts::all_bytes() {
        let counts = PieceCounts::from_pairs([(text, 3)]).unwrap();
        for unit in [Unit::Char, Unit::Byte] {
            let trainer = trainer(700, |t| t.options.unit = unit);
            let (model, _) = both(&trainer, &counts);
            if !text.is_empty() && text.len() < 100 {
                let tokens = naive::encode(&model, text);
                assert!(tokens.iter().all(|t| Some(t.id) != model.unk()), "{name}");
            }
        }
    }
}

/// Trains with the engine and by the specification; both must make the same merges.
fn both(trainer: &WordPieceTrainer, counts: &PieceCounts) -> (WordPiece, Vec<Merge>) {
    let mut trace = Trace::default();
    let model = trainer.train(counts, &mut trace).unwrap();
    let (vocab, merges) = naive::train(trainer, counts).unwrap();
    assert_eq!(trace.0, merges, "the engine must make the merges of the specification");
    assert!(*model.vocab() == vocab, "the engine must build the vocabulary of the specification");
    (model, merges)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_engine_makes_the_merges_of_the_specification(
        corpus in strategies::tiny_corpus(),
        size in 12..60usize,
        criterion in proptest::sample::select(vec![Criterion::Pmi, Criterion::Frequency]),
        min_frequency in 0..6u64,
        max_token_len in proptest::option::of(1..5usize),
        prefix in proptest::sample::select(vec!["##", "##", "", "a", "_"]),
        special in proptest::option::of("[abc]{2,3}"),
        unit in proptest::sample::select(vec![Unit::Char, Unit::Char, Unit::Byte]),
    ) {
        let trainer = trainer(if unit == Unit::Byte { 520 + size } else { size }, |t| {
            t.criterion = criterion;
            t.min_frequency = min_frequency;
            t.max_token_len = max_token_len;
            t.options.continuing_prefix = prefix.into();
            t.options.unit = unit;
            t.special_tokens = special.into_iter().map(String::into_bytes).collect();
        });
        match naive::train(&trainer, &counts(&corpus)) {
            Ok(_) => drop(both(&trainer, &counts(&corpus))),
            Err(error) => {
                let result = trainer.train(&counts(&corpus), &mut Silent);
                prop_assert_eq!(result.unwrap_err(), error);
            }
        }
        laws::trains_from_any_order(&trainer, &corpus);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Larger counts and symbols in many pairs, which change owners' keys all the time.
    #[test]
    fn symbols_in_many_pairs_and_huge_counts(
        words in proptest::collection::vec(("[a-j]{1,8}", 1u64..5000), 20..80),
        scale in proptest::sample::select(vec![1u64, 1 << 33, 1 << 43]),
    ) {
        let corpus: Vec<_> = words.iter().map(|(word, n)| (word.clone(), n * scale)).collect();
        both(&trainer(120, |_| ()), &counts(&corpus));
    }

    /// Few distinct counts, so that hundreds of pairs share the best score.
    #[test]
    fn masses_of_ties(
        words in proptest::collection::vec(("[a-p]{1,4}s", 1u64..3), 20..120),
        min_frequency in 1u64..4,
    ) {
        both(&trainer(150, |t| t.min_frequency = min_frequency), &counts(&words));
    }

    #[test]
    fn a_smaller_vocabulary_is_a_prefix(corpus in strategies::tiny_corpus(), size in 12..40usize) {
        let corpus = counts(&corpus);
        let large = trainer(60, |_| ()).train(&corpus, &mut Silent).unwrap();
        let small = trainer(size, |_| ()).train(&corpus, &mut Silent).unwrap();
        prop_assert_eq!(tokens(&small), tokens(&large.prefix(size).unwrap()));
    }

    #[test]
    fn trained_models_keep_the_laws_and_round_trip(corpus in strategies::tiny_corpus()) {
        let trainer = trainer(40, |t| t.options.word_separator.clear());
        let model = trainer.train(&counts(&corpus), &mut Silent).unwrap();
        let words: Vec<&[u8]> = corpus.iter().map(|(word, _)| word.as_bytes()).collect();
        laws::encodes_like(&model, |word| naive::encode(&model, word), &words);
        for word in words {
            let ids: Vec<TokenId> = naive::encode(&model, word).iter().map(|t| t.id).collect();
            prop_assert_eq!(model.decode(&ids).unwrap(), word);
        }
    }
}

#[test]
fn one_enormous_word_trains_without_stalling() {
    let mut word = Vec::new();
    let mut rng = tokenizer_core::Rng::new(1);
    for _ in 0..2_000_000 {
        word.push(b"ACGT"[rng.below(4) as usize]);
    }
    let counts = PieceCounts::from_pairs([(word, 1)]).unwrap();
    let model = trainer(512, |t| t.min_frequency = 100).train(&counts, &mut Silent).unwrap();
    assert_eq!(model.vocab().len(), 512);
    // The one pair `a ##a` always beats the two million `##a ##a`: 1/n against (n-1)/(n*n).
    let run = PieceCounts::from_pairs([("a".repeat(2_000_000), 1)]).unwrap();
    let model = trainer(512, |_| ()).train(&run, &mut Silent).unwrap();
    assert_eq!(tokens(&model).last().unwrap(), &"a".repeat(510));
    // Twice as long each time, until the word is one token.
    let frequency = trainer(512, |t| t.criterion = Criterion::Frequency);
    let (model, report) = frequency.train_reporting(&run, &mut Silent).unwrap();
    assert!(report.ran_dry);
    assert_eq!(model.vocab().max_token_len(), 2_000_000);
}

#[test]
fn a_resumed_training_is_the_whole_one() {
    struct Steps(Vec<(tokenizer_core::TokenId, tokenizer_core::TokenId)>);
    impl Observe<Merge> for Steps {
        fn step(&mut self, merge: &Merge) -> core::ops::ControlFlow<()> {
            self.0.push((merge.left, merge.right));
            core::ops::ControlFlow::Continue(())
        }
    }
    let words: Vec<(String, u64)> =
        (0..300u64).map(|i| (format!("{}", i * i * 7919 % 100_003), 1 + i % 17)).collect();
    let counts = counts(&words);
    for criterion in [Criterion::Pmi, Criterion::Frequency] {
        let trainer = trainer(200, |t| {
            t.criterion = criterion;
            t.min_frequency = 2;
        });
        let mut steps = Steps(Vec::new());
        let whole = trainer.train_reporting(&counts, &mut steps).unwrap();
        assert!(steps.0.len() > 100);
        for at in [0, 1, 17, 60, steps.0.len()] {
            let resumed = trainer.resume(&steps.0[..at], &counts, &mut Silent).unwrap();
            assert!(resumed.0.vocab() == whole.0.vocab() && resumed.1 == whole.1, "{at}");
        }
        // The unknown token stands in no pair, and the last token is not made yet.
        for wrong in [0, 199].map(tokenizer_core::TokenId) {
            let error = trainer.resume(&[(wrong, wrong)], &counts, &mut Silent);
            assert!(error.is_err(), "{wrong:?}");
        }
    }
}
