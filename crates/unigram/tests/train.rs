//! The trainer: sizes, limits, determinism, awkward corpora.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use core::ops::ControlFlow;

use proptest::prelude::*;
use testkit::{laws, strategies};
use tokenizer_core::{Decode, Model, Observe, PieceCounts, Silent, TokenId, TokenKind, Train};
use unigram::{Round, SpecialToken, State, Unigram, UnigramTrainer, VocabLimit};

fn words(text: &str) -> PieceCounts {
    PieceCounts::from_pairs(text.split_whitespace().map(|word| (format!("▁{word}"), 1))).unwrap()
}

/// Enough text to have something to prune.
fn prose() -> PieceCounts {
    let mut pairs = Vec::new();
    let stems = ["work", "walk", "talk", "play", "read", "sing", "jump", "think", "look", "call"];
    let ends = ["", "s", "ed", "ing", "er", "ers", "able", "less", "ful", "fully"];
    for (i, stem) in stems.iter().enumerate() {
        for (j, end) in ends.iter().enumerate() {
            pairs.push((format!("▁{stem}{end}"), 1 + (i * 7 + j * 13) as u64 % 29));
            pairs.push((format!("▁re{stem}{end}"), 1 + (i + j) as u64 % 5));
            pairs.push((format!("▁un{stem}{end}"), 1 + (i * j) as u64 % 3));
        }
    }
    PieceCounts::from_pairs(pairs).unwrap()
}

fn check(model: &Unigram, size: usize) {
    assert_eq!(model.vocab().len(), size);
    assert!(model.scores().iter().all(|score| score.is_finite()));
    // Scores fit 32 bits, and trained pieces are sorted by score, then bytes.
    let mut trained = Vec::new();
    for (id, bytes, kind) in model.vocab().iter() {
        let score = model.score(id).unwrap();
        assert_eq!(f64::from(score as f32), score);
        if kind == TokenKind::Normal {
            assert!(score <= 0.0);
            trained.push((-score, bytes.to_vec()));
        }
    }
    assert!(trained.is_sorted(), "{trained:?}");
}

#[test]
fn the_size_is_exactly_what_was_asked_for() {
    let counts = prose();
    for size in [28, 29, 30, 40, 57, 100, 150] {
        let model = UnigramTrainer::new(size).train(&counts, &mut Silent).unwrap();
        check(&model, size);
    }
}

#[test]
fn any_number_of_threads_trains_the_same_model() {
    let counts = prose();
    let models = [1, 2, 3, 7].map(|threads| {
        let mut trainer = UnigramTrainer::new(60);
        trainer.threads = threads;
        trainer.train(&counts, &mut Silent).unwrap()
    });
    assert!(models.windows(2).all(|pair| pair[0] == pair[1]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_order_trains_the_same_model(pairs in strategies::tiny_corpus(), size in 5usize..20) {
        let mut trainer = UnigramTrainer::new(size);
        trainer.coverage = 1.0;
        trainer.limit = VocabLimit::Soft;
        laws::trains_from_any_order(&trainer, &pairs);
    }

    #[test]
    fn any_text_trains_to_finite_scores(
        texts in prop::collection::vec(strategies::mixed_text(), 0..8), bytes in strategies::any_bytes(),
    ) {
        let pieces = texts.iter().map(|t| t.as_bytes().to_vec()).chain([bytes]);
        let counts = PieceCounts::from_pairs(pieces.map(|piece| (piece, 3))).unwrap();
        let mut trainer = UnigramTrainer::new(2000);
        trainer.limit = VocabLimit::Soft;
        let model = trainer.train(&counts, &mut Silent).unwrap();
        prop_assert!(model.scores().iter().all(|score| score.is_finite()));
        for counted in counts.iter() {
            prop_assert!(model.best_score(counted.piece).is_finite());
        }
    }

    #[test]
    fn hard_limit_names_a_size_that_works(pairs in strategies::tiny_corpus()) {
        let counts = PieceCounts::from_pairs(pairs).unwrap();
        let mut trainer = UnigramTrainer::new(5000);
        trainer.coverage = 1.0;
        let error = trainer.train(&counts, &mut Silent).unwrap_err();
        let possible = error.possible_vocab_size().unwrap();
        trainer.vocab_size = possible;
        let hard = trainer.train(&counts, &mut Silent).unwrap();
        prop_assert_eq!(hard.vocab().len(), possible);
        trainer.vocab_size = 5000;
        trainer.limit = VocabLimit::Soft;
        prop_assert_eq!(trainer.train(&counts, &mut Silent).unwrap(), hard);
        trainer.vocab_size = possible + 1;
        trainer.limit = VocabLimit::Hard;
        prop_assert_eq!(trainer.train(&counts, &mut Silent).unwrap_err().possible_vocab_size(), Some(possible));
    }
}

#[test]
fn too_large_names_the_true_maximum() {
    let counts = words("a b c d a b c");
    let error = UnigramTrainer::new(4000).train(&counts, &mut Silent).unwrap_err();
    // <unk>, ▁ a b c d, ▁a ▁b ▁c.
    assert_eq!(error.to_string(), "the vocabulary size is 4000, but the text supports at most 9");
    let mut trainer = UnigramTrainer::new(4000);
    trainer.limit = VocabLimit::Soft;
    check(&trainer.train(&counts, &mut Silent).unwrap(), 9);
}

#[test]
fn too_small_names_the_size_that_is_needed() {
    let alphabet: String = ('\u{4E00}'..).take(300).collect();
    let counts = PieceCounts::from_pairs([(alphabet, 5)]).unwrap();
    let mut trainer = UnigramTrainer::new(100);
    trainer.coverage = 1.0;
    let error = trainer.train(&counts, &mut Silent).unwrap_err();
    assert_eq!(error.needed_vocab_size(), Some(301));
    assert_eq!(
        error.to_string(),
        "the vocabulary size is 100, but 1 special tokens, 0 bytes and 300 characters need 301"
    );
    trainer.vocab_size = 301;
    let model = trainer.train(&counts, &mut Silent).unwrap();
    check(&model, 301);
    trainer.options.byte_fallback = true;
    let error = trainer.train(&counts, &mut Silent).unwrap_err();
    assert_eq!(error.needed_vocab_size(), Some(557));
}

#[test]
fn empty_counts_train_the_special_tokens_alone() {
    let counts = PieceCounts::default();
    check(&UnigramTrainer::new(1).train(&counts, &mut Silent).unwrap(), 1);
    let error = UnigramTrainer::new(2).train(&counts, &mut Silent).unwrap_err();
    assert_eq!(error.possible_vocab_size(), Some(1));
    let one = PieceCounts::from_pairs([("a", 1)]).unwrap();
    check(&UnigramTrainer::new(2).train(&one, &mut Silent).unwrap(), 2);
}

#[test]
fn bytes_count_for_the_size_and_nothing_is_unknown() {
    let mut trainer = UnigramTrainer::new(256 + 60);
    trainer.options.byte_fallback = true;
    let model = trainer.train(&prose(), &mut Silent).unwrap();
    check(&model, 316);
    let text = "▁rework 😀\0".as_bytes();
    let ids: Vec<TokenId> = model.encode(text).iter().map(|token| token.id).collect();
    assert_eq!(model.decode(&ids).unwrap(), text);
    assert_eq!(model.vocab().byte(0), Some(TokenId(1)));
}

#[test]
fn special_tokens_take_the_ids_they_want() {
    let mut trainer = UnigramTrainer::new(50);
    trainer.special_tokens = vec![
        SpecialToken { bytes: b"<pad>".to_vec(), kind: TokenKind::Control, id: Some(TokenId(3)) },
        SpecialToken::new("<unk>", TokenKind::Unknown),
        SpecialToken { bytes: b"<end>".to_vec(), kind: TokenKind::Control, id: Some(TokenId(49)) },
        SpecialToken::new("work", TokenKind::UserDefined),
        SpecialToken::new("", TokenKind::Unused),
    ];
    let model = trainer.train(&prose(), &mut Silent).unwrap();
    assert_eq!(model.vocab().len(), 50);
    let at = |id| model.vocab().bytes(TokenId(id)).unwrap();
    assert_eq!(
        [at(0), at(1), at(2), at(3), at(49)],
        [b"<unk>", &b"work"[..], b"", b"<pad>", b"<end>"]
    );
    assert_eq!(model.unknown(), Some(TokenId(0)));
    // No piece grew across the user's symbol.
    for (_, bytes, kind) in model.vocab().iter().filter(|token| token.2 == TokenKind::Normal) {
        assert!(!bytes.windows(4).any(|w| w == b"work"), "{kind:?} {bytes:?}");
    }
    trainer.special_tokens[0].id = Some(TokenId(50));
    let error = trainer.train(&prose(), &mut Silent).unwrap_err();
    assert_eq!(error.to_string(), "special token 0 wants id 50, but the vocabulary size is 50");
    trainer.special_tokens[0].id = Some(TokenId(49));
    let error = trainer.train(&prose(), &mut Silent).unwrap_err();
    assert_eq!(error.to_string(), "special token 2 wants id 49, which an earlier one has");
}

#[test]
fn special_tokens_part_the_text() {
    let counts = PieceCounts::from_pairs([("ab<s>ab", 10), ("ab", 3)]).unwrap();
    let mut trainer = UnigramTrainer::new(5);
    trainer.special_tokens.push(SpecialToken::new("<s>", TokenKind::Control));
    let model = trainer.train(&counts, &mut Silent).unwrap();
    let pieces: Vec<_> = model.vocab().iter().skip(2).map(|token| token.1).collect();
    assert_eq!(pieces, [&b"ab"[..], b"a", b"b"]);
}

#[test]
fn coverage_leaves_rare_characters_out_and_required_ones_in() {
    let counts =
        PieceCounts::from_pairs([("aaaa", 1000), ("bbbb", 1000), ("aq", 1), ("az", 1)]).unwrap();
    let mut trainer = UnigramTrainer::new(8);
    trainer.coverage = 0.999;
    trainer.required_chars = "xz".into();
    trainer.limit = VocabLimit::Soft;
    let (model, report) = trainer.train_reporting(&counts, &mut Silent).unwrap();
    let has = |piece: &str| model.vocab().get(piece.as_bytes()).is_some();
    assert!(has("a") && has("b") && has("x") && has("z") && !has("q"));
    assert_eq!(report.alphabet, 4);
    assert!(report.coverage > 0.999 && report.coverage < 1.0);
}

#[test]
fn pieces_are_no_longer_than_allowed() {
    for max in [1, 2, 3, 16] {
        let mut trainer = UnigramTrainer::new(60);
        trainer.max_piece_len = max;
        trainer.limit = VocabLimit::Soft;
        let model = trainer.train(&prose(), &mut Silent).unwrap();
        for (_, bytes, _) in model.vocab().iter().skip(1) {
            assert!(std::str::from_utf8(bytes).unwrap().chars().count() <= max);
        }
    }
}

#[test]
fn one_long_line_among_short_ones_trains() {
    let long: String = (0..10_000u32).map(|i| char::from(b'a' + (i * i % 23) as u8)).collect();
    let mut pairs = vec![(long, 1)];
    pairs.extend((0..40).map(|i| (format!("▁word{i}"), 3)));
    let counts = PieceCounts::from_pairs(pairs).unwrap();
    let model = UnigramTrainer::new(50).train(&counts, &mut Silent).unwrap();
    check(&model, 50);
}

#[test]
fn enormous_pieces_are_cut_and_counted() {
    let mut rng = tokenizer_core::Rng::new(4);
    let dna: String = (0..100_000).map(|_| ['A', 'C', 'G', 'T'][rng.below(4) as usize]).collect();
    let counts = PieceCounts::from_pairs([(dna.as_str(), 1), ("ACGT", 2)]).unwrap();
    let (model, report) = UnigramTrainer::new(100).train_reporting(&counts, &mut Silent).unwrap();
    check(&model, 100);
    assert_eq!(report.cut_pieces, 1);
    assert!(model.log_likelihood(dna.as_bytes()).is_finite());
}

#[test]
fn counts_pass_32_bits_and_stop_at_64() {
    let counts =
        PieceCounts::from_pairs([("ab", 3_000_000_000_000u64), ("cd", 5), ("ab", 1)]).unwrap();
    let mut trainer = UnigramTrainer::new(6);
    trainer.coverage = 1.0;
    let model = trainer.train(&counts, &mut Silent).unwrap();
    check(&model, 6);
    assert_eq!(model.encode(b"ab").len(), 1);
    let counts = PieceCounts::from_pairs([("abc", u64::MAX / 2)]).unwrap();
    let error = UnigramTrainer::new(6).train(&counts, &mut Silent).unwrap_err();
    assert_eq!(error.to_string(), "the characters times their counts pass 18446744073709551615");
    let counts = PieceCounts::from_pairs([("abab", u64::MAX / 4), ("b", 1)]).unwrap();
    check(&UnigramTrainer::new(4).train(&counts, &mut Silent).unwrap(), 4);
}

#[test]
fn odd_options_are_refused() {
    let counts = prose();
    let refused = |change: fn(&mut UnigramTrainer)| {
        let mut trainer = UnigramTrainer::new(60);
        change(&mut trainer);
        trainer.train(&counts, &mut Silent).unwrap_err().to_string()
    };
    assert_eq!(
        refused(|t| t.coverage = f64::NAN),
        "the character coverage is NaN, but must be above 0 and at most 1"
    );
    assert_eq!(
        refused(|t| t.max_piece_len = 0),
        "the longest piece is 0 characters, but must be 1 to 512"
    );
    assert_eq!(
        refused(|t| t.shrinking_factor = 1.0),
        "the shrinking factor is 1, but must be 0.05 to 0.95"
    );
    assert_eq!(
        refused(|t| t.sub_iterations = 0),
        "there are 0 sub-iterations, but must be 1 to 100"
    );
    assert!(
        refused(|t| t.special_tokens.push(SpecialToken::new("x", TokenKind::Normal)))
            .contains("token 1")
    );
    assert!(refused(|t| t.vocab_size = usize::MAX).contains("134217728"));
    assert!(
        refused(|t| t.special_tokens.push(SpecialToken::new("<unk>", TokenKind::Control)))
            .contains("way")
    );
}

struct StopAfter(usize);

impl Observe<Round> for StopAfter {
    fn step(&mut self, round: &Round) -> ControlFlow<()> {
        assert!(
            round.pieces_after < round.pieces_before
                && round.log_likelihood < 0.0
                && round.tokens > 0
        );
        if round.round == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

struct StopAt(u64);

impl Observe<Round> for StopAt {
    fn progress(&mut self, _: &'static str, done: u64, total: u64) -> ControlFlow<()> {
        assert!(done <= total);
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn observer_stops_training_anywhere() {
    let error = UnigramTrainer::new(40).train(&prose(), &mut StopAfter(1)).unwrap_err();
    assert!(error.is_stopped());
    assert_eq!(error.to_string(), "stopped");
    for calls in 1..60 {
        assert!(UnigramTrainer::new(40).train(&prose(), &mut StopAt(calls)).is_err());
    }
}

#[test]
fn report_tells_what_happened() {
    let (model, report) = UnigramTrainer::new(40).train_reporting(&prose(), &mut Silent).unwrap();
    assert_eq!(report.rounds.last().unwrap().pieces_after, 39);
    assert!(report.seeds > 100);
    // The likelihood that EM reports is what the model says, but for the last update of scores.
    let (mut sum, mut chars) = (0.0, 0);
    for counted in prose().iter() {
        sum += counted.count as f64 * model.log_likelihood(counted.piece);
        chars += counted.count * std::str::from_utf8(counted.piece).unwrap().chars().count() as u64;
    }
    let found = sum / chars as f64;
    assert!((found - report.log_likelihood).abs() < 0.02, "{found} {}", report.log_likelihood);
}

#[test]
fn frequent_parts_become_pieces() {
    let model = UnigramTrainer::new(60).train(&prose(), &mut Silent).unwrap();
    for piece in ["ing", "▁work", "able"] {
        assert!(model.vocab().get(piece.as_bytes()).is_some(), "{piece}");
    }
}

/// One training gives every size; the largest is that of its own training.
#[test]
fn sizes_on_the_way_down_are_models_of_their_size() {
    let counts = prose();
    let trainer = UnigramTrainer::new(200);
    let models = trainer.train_sizes(&counts, &[90, 120, 150, 200], &mut Silent).unwrap();
    let alone = trainer.train_reporting(&counts, &mut Silent).unwrap();
    assert_eq!(models.len(), 4);
    assert_eq!(models[3].0.scores(), alone.0.scores());
    assert_eq!(models[3].1, alone.1);
    for ((model, report), size) in models.iter().zip([90, 120, 150, 200]) {
        check(model, size);
        let own = UnigramTrainer::new(size).train_reporting(&counts, &mut Silent).unwrap().1;
        // The same seeds serve all sizes; the loss against an own training is small.
        let loss = own.log_likelihood - report.log_likelihood;
        assert!(loss < 0.05, "{size}: {} against {}", report.log_likelihood, own.log_likelihood);
    }
    let error = trainer.train_sizes(&counts, &[3], &mut Silent).unwrap_err();
    assert!(error.needed_vocab_size() > Some(3));
}

#[test]
fn a_resumed_training_is_the_whole_one_bit_for_bit() {
    let counts = prose();
    let mut trainer = UnigramTrainer::new(150);
    trainer.shrinking_factor = 0.9; // Many rounds.
    let mut states = Vec::new();
    let mut save = |state: &State| {
        states.push(state.to_bytes());
        ControlFlow::Continue(())
    };
    let whole = trainer.resume(None, &counts, &[60, 100], &mut save, &mut Silent).unwrap();
    assert!(states.len() > 4, "{} rounds", states.len());
    for bytes in &states {
        let state = State::from_bytes(bytes).unwrap();
        let go_on = &mut |_: &State| ControlFlow::Continue(());
        let resumed = trainer.resume(Some(state), &counts, &[60, 100], go_on, &mut Silent).unwrap();
        for ((a, a_report), (b, b_report)) in whole.iter().zip(&resumed) {
            assert!(a.vocab() == b.vocab() && a.scores() == b.scores() && a_report == b_report);
        }
        for end in [0, 7, bytes.len() / 2, bytes.len() - 1] {
            assert!(State::from_bytes(&bytes[..end]).is_err());
        }
        assert!(State::from_bytes(&[&bytes[..], b"x"].concat()).is_err());
    }
}
