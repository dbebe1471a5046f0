//! Training on top of a model: what must not move, and the naive twin.
#![allow(clippy::unwrap_used)] // The helpers of an integration test are tests as well.

use std::ops::ControlFlow;

use proptest::prelude::*;
use testkit::strategies;
use tokenizer_core::{Model, Observe, PieceCounts, Silent, TokenId, TokenKind, Train, Vocab};
use wordpiece::{Criterion, Merge, Options, Unit, Unknown, WordPiece, WordPieceTrainer, naive};

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

fn model(tokens: &[&str], set: impl FnOnce(&mut Options)) -> WordPiece {
    let mut options = Options::default();
    set(&mut options);
    WordPiece::new(Vocab::from_tokens(tokens).unwrap(), options).unwrap()
}

fn tokens(model: &WordPiece) -> Vec<String> {
    model.vocab().iter().map(|(_, bytes, _)| String::from_utf8_lossy(bytes).into_owned()).collect()
}

fn ids(model: &WordPiece, word: &[u8]) -> Vec<TokenId> {
    naive::encode(model, word).iter().map(|token| token.id).collect()
}

/// Extends, and checks all that is promised on `words`.
fn extended(
    trainer: &WordPieceTrainer,
    old: &WordPiece,
    counts: &PieceCounts,
    words: &[&[u8]],
) -> WordPiece {
    let mut trace = Trace::default();
    let (new, _) = trainer.extend(old, counts, &mut trace).unwrap();
    let (vocab, merges) = naive::extend(trainer, old, counts).unwrap();
    assert_eq!(trace.0, merges, "the engine must make the merges of the specification");
    assert!(*new.vocab() == vocab, "the engine must build the vocabulary of the specification");
    assert_eq!(new.options(), old.options());
    assert!(new.vocab().len() <= trainer.vocab_size);
    for (id, bytes, kind) in old.vocab().iter() {
        assert_eq!((new.vocab().bytes(id), new.vocab().kind(id)), (Some(bytes), Some(kind)));
    }
    for &word in words {
        let (before, after) = (ids(old, word), ids(&new, word));
        if after.iter().all(|id| id.index() < old.vocab().len()) {
            assert_eq!(before, after, "{:?}", String::from_utf8_lossy(word));
        }
        // What was known stays known.
        if !before.is_empty() && before.iter().all(|&id| Some(id) != old.unk()) {
            assert!(after.iter().all(|&id| Some(id) != new.unk()));
        }
    }
    new
}

#[test]
fn new_tokens_come_behind_the_old_ones() {
    let old = model(&["[UNK]", "u", "##n", "un", "##w", "##a", "##t", "##wa"], |_| ());
    let counts = counts(&[("unwant", 5), ("want", 3), ("unwat", 2)]);
    let trainer = trainer(13, |t| {
        t.special_tokens = vec!["[CLS]".into(), "[UNK]".into()];
        t.criterion = Criterion::Frequency;
    });
    let new = extended(&trainer, &old, &counts, &[b"unwant", b"wan", b"unw", b"x"]);
    // "unwant" begins as un ##wa ##n ##t, "want" as w ##a ##n ##t.
    assert_eq!(tokens(&new)[8..], ["[CLS]", "w", "##nt", "unwa", "unwant"]);
    assert_eq!(new.vocab().kind(TokenId(8)), Some(TokenKind::Control));
    assert_eq!(ids(&new, b"unwant"), [TokenId(12)]);
    assert_eq!(ids(&new, b"wat"), [9, 5, 6].map(TokenId));
}

#[test]
fn what_a_new_token_ends_in_the_middle_of_can_go_on() {
    // ##cd is the only token with a d: a ##bc must not leave it alone.
    let old = model(&["[UNK]", "a", "##b", "##c", "##cd"], |_| ());
    let counts = counts(&[("abc", 9), ("abcd", 1)]);
    let trainer = trainer(7, |t| t.criterion = Criterion::Frequency);
    let new = extended(&trainer, &old, &counts, &[b"abcd", b"abc", b"acd", b"abd"]);
    assert_eq!(tokens(&new)[5..], ["##d", "ab"]);
    let trainer = self::trainer(8, |t| t.criterion = Criterion::Frequency);
    let new = extended(&trainer, &old, &counts, &[b"abcd", b"abc", b"acd", b"abd"]);
    assert_eq!(tokens(&new)[5..], ["##d", "ab", "abc"]);
    assert_eq!(ids(&new, b"abcd"), [7, 5].map(TokenId));
}

#[test]
fn a_size_without_room_is_an_error_that_names_the_least() {
    let old = model(&["[UNK]", "a", "##b"], |_| ());
    let trainer = trainer(4, |t| t.special_tokens = vec!["[CLS]".into()]);
    let error = trainer.extend(&old, &counts(&[("ac", 1)]), &mut Silent).unwrap_err();
    assert_eq!(error.needed_vocab_size(), Some(5));
    assert_eq!(
        error.to_string(),
        "a vocabulary of 4 is too small: the model has 3 tokens, and special tokens and characters \
         that it lacks are 2"
    );
    // A control token of the model is no character of the text.
    let mut vocab = Vocab::builder();
    for (token, kind) in [("[UNK]", TokenKind::Unknown), ("x", TokenKind::Control)] {
        vocab.push(token.as_bytes(), kind).unwrap();
    }
    let old = WordPiece::new(vocab.build(), Options::default()).unwrap();
    let error = trainer.extend(&old, &counts(&[("x", 1)]), &mut Silent).unwrap_err();
    assert_eq!(error.to_string(), "special token 1 (\"x\") is also a character of the text");
}

#[test]
fn limits_are_for_characters_that_the_model_lacks() {
    let old = model(&["[UNK]", "a", "##b"], |_| ());
    let counts = counts(&[("ab", 1), ("xb", 9), ("yb", 8)]);
    let trainer = trainer(6, |t| t.alphabet_limit = Some(2));
    let mut trace = Trace::default();
    let (new, report) = trainer.extend(&old, &counts, &mut trace).unwrap();
    // b and x are the most frequent; a is known, y is left out.
    assert_eq!(tokens(&new)[3..], ["x", "xb", "ab"]);
    assert_eq!((report.dropped_chars, report.dropped_count), (1, 8));
}

#[test]
fn a_resumed_extension_is_the_whole_one() {
    let words: Vec<(String, u64)> =
        (0..300u64).map(|i| (format!("{}", i * i * 7919 % 100_003), 1 + i % 17)).collect();
    let (first, second) = (counts(&words[..100]), counts(&words[100..]));
    for criterion in [Criterion::Pmi, Criterion::Frequency] {
        let set = |t: &mut WordPieceTrainer| {
            t.criterion = criterion;
            t.min_frequency = 2;
        };
        let old = trainer(60, set).train(&first, &mut Silent).unwrap();
        let longer = trainer(160, set);
        let mut trace = Trace::default();
        let whole = longer.extend(&old, &second, &mut trace).unwrap();
        let made: Vec<_> = trace.0.iter().map(|merge| (merge.left, merge.right)).collect();
        assert!(made.len() > 50);
        for at in [0, 1, 17, made.len()] {
            let resumed = longer.resume_extending(&old, &made[..at], &second, &mut Silent).unwrap();
            assert!(resumed.0.vocab() == whole.0.vocab() && resumed.1 == whole.1, "{at}");
        }
        let wrong = [(TokenId(0), TokenId(0))];
        assert!(longer.resume_extending(&old, &wrong, &second, &mut Silent).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn extending_moves_no_id_and_equals_the_naive_twin(
        first in strategies::tiny_corpus(),
        second in strategies::tiny_corpus(),
        sizes in (8..30usize, 0..40usize),
        criterion in proptest::sample::select(vec![Criterion::Pmi, Criterion::Frequency]),
        min_frequency in 0..4u64,
        prefix in proptest::sample::select(vec!["##", "##", "", "a"]),
        unknown in proptest::sample::select(vec![
            Unknown::Word, Unknown::Word, Unknown::Rest, Unknown::Character]),
        special in proptest::option::of("[abc]{2,3}"),
        unit in proptest::sample::select(vec![Unit::Char, Unit::Char, Unit::Byte]),
        max_chars in proptest::sample::select(vec![3usize, 100]),
    ) {
        let set = |t: &mut WordPieceTrainer| {
            t.criterion = criterion;
            t.options.continuing_prefix = prefix.into();
            t.options.unit = unit;
            t.options.unknown = unknown;
            t.options.max_chars = max_chars;
        };
        let alphabet = if unit == Unit::Byte { 520 } else { 12 };
        let Ok(old) = trainer(alphabet + sizes.0, set).train(&counts(&first), &mut Silent) else {
            return Ok(());
        };
        let longer = trainer(old.vocab().len() + 8 + sizes.1, |t| {
            set(t);
            t.min_frequency = min_frequency;
            t.special_tokens = special.into_iter().map(String::into_bytes).collect();
        });
        let words: Vec<&[u8]> =
            first.iter().chain(&second).map(|(word, _)| word.as_bytes()).collect();
        if naive::extend(&longer, &old, &counts(&second)).is_ok() {
            extended(&longer, &old, &counts(&second), &words);
        } else {
            prop_assert!(longer.extend(&old, &counts(&second), &mut Silent).is_err());
        }
    }

    /// Vocabularies that no training makes: characters that only longer tokens have, literal
    /// prefixes, tokens of the prefix alone.
    #[test]
    fn any_vocabulary_can_be_extended(
        old in proptest::collection::btree_set("#{0,3}[abc]{0,4}", 1..12),
        second in proptest::collection::vec(("#{0,2}[abcd]{1,6}", 1u64..9), 0..12),
        words in proptest::collection::vec("#{0,2}[abcde]{1,8}", 0..40),
        more in 0..30usize,
    ) {
        let old: Vec<&str> =
            ["[UNK]"].into_iter().chain(old.iter().map(String::as_str).filter(|t| !t.is_empty())).collect();
        let old = model(&old, |_| ());
        let size = old.vocab().len() + 24 + more;
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        extended(&trainer(size, |_| ()), &old, &counts(&second), &words);
    }
}
