//! Training on top of a model: what must not move.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use core::ops::ControlFlow;

use proptest::prelude::*;
use testkit::strategies;
use tokenizer_core::{Model, PieceCounts, Silent, TokenId, TokenKind, Train, Vocab};
use unigram::{
    Compat, SpecialToken, State, TrainCompat, Unigram, UnigramOptions, UnigramTrainer, VocabLimit,
    naive,
};

fn counts<S: AsRef<str>>(pairs: &[(S, u64)]) -> PieceCounts {
    PieceCounts::from_pairs(pairs.iter().map(|(piece, n)| (piece.as_ref(), *n))).unwrap()
}

fn words(stems: &[&str], ends: &[&str]) -> PieceCounts {
    let mut pairs = Vec::new();
    for (i, stem) in stems.iter().enumerate() {
        for (j, end) in ends.iter().enumerate() {
            pairs.push((format!("▁{stem}{end}"), 1 + (i * 7 + j * 13) as u64 % 29));
            pairs.push((format!("▁un{stem}{end}"), 1 + (i * j) as u64 % 3));
        }
    }
    counts(&pairs)
}

fn english() -> PieceCounts {
    let stems = ["work", "walk", "talk", "play", "read", "sing", "jump", "think", "look", "call"];
    words(&stems, &["", "s", "ed", "ing", "er", "ers", "able", "less", "ful", "fully"])
}

fn german() -> PieceCounts {
    let stems = ["geh", "steh", "seh", "hör", "lauf", "sing", "spring", "denk", "schau", "ruf"];
    words(&stems, &["", "e", "st", "t", "en", "end", "er", "erin", "bar", "ung"])
}

fn trainer(size: usize, set: impl FnOnce(&mut UnigramTrainer)) -> UnigramTrainer {
    let mut trainer = UnigramTrainer::new(size);
    trainer.coverage = 1.0;
    set(&mut trainer);
    trainer
}

/// A trained model in another arithmetic.
fn with(model: &Unigram, set: impl FnOnce(&mut UnigramOptions)) -> Unigram {
    let mut options = model.options().clone();
    set(&mut options);
    Unigram::new(model.vocab().clone(), model.scores().to_vec(), options).unwrap()
}

/// Checks all that is promised on some texts; gives back how many of them kept their ids.
fn check<'t>(old: &Unigram, new: &Unigram, texts: impl IntoIterator<Item = &'t [u8]>) -> usize {
    let n = old.vocab().len();
    assert_eq!(old.options(), new.options());
    assert_eq!(old.scores(), &new.scores()[..n]);
    for (id, bytes, kind) in old.vocab().iter() {
        assert_eq!((new.vocab().bytes(id), new.vocab().kind(id)), (Some(bytes), Some(kind)));
    }
    assert_eq!(old.unknown_score(), new.unknown_score());
    let scores = new.vocab().iter().zip(new.scores()).skip(n);
    let trained: Vec<f64> =
        scores.filter(|((.., kind), _)| *kind == TokenKind::Normal).map(|(_, &s)| s).collect();
    assert!(trained.iter().all(|score| score.is_finite() && *score <= 0.0));
    assert!(trained.is_sorted_by(|a, b| a >= b));
    let mut kept = 0;
    for text in texts {
        let (before, after) = (old.encode(text), new.encode(text));
        assert_eq!(after, naive::encode(new, text));
        if after.iter().all(|token| token.id.index() < n) {
            assert_eq!(before, after, "{:?}", String::from_utf8_lossy(text));
            kept += 1;
        }
    }
    kept
}

fn texts(counts: &PieceCounts) -> impl Iterator<Item = &[u8]> {
    counts.iter().map(|piece| piece.piece)
}

#[test]
fn old_tokens_stay_and_new_ones_shorten_the_new_text() {
    let (english, german) = (english(), german());
    let trained = trainer(60, |_| ()).train(&english, &mut Silent).unwrap();
    for compat in [Compat::SentencePiece, Compat::SentencePiece021, Compat::HuggingFace] {
        let old = with(&trained, |options| options.compat = compat);
        let mut models =
            trainer(120, |_| ()).extend(&old, &german, &[90], &mut Silent).unwrap().into_iter();
        let (small, large) = (models.next().unwrap().0, models.next().unwrap().0);
        assert_eq!((small.vocab().len(), large.vocab().len()), (90, 120));
        let tokens = |model: &Unigram, counts: &PieceCounts| -> u64 {
            counts.iter().map(|p| p.count * model.encode(p.piece).len() as u64).sum()
        };
        for new in [&small, &large] {
            let kept = check(&old, new, texts(&english).chain(texts(&german)));
            assert!(kept > 50, "{kept}");
            assert!(texts(&german).all(|text| {
                new.encode(text).iter().all(|token| Some(token.id) != new.unknown())
            }));
        }
        assert!(tokens(&large, &german) < tokens(&small, &german));
        assert!(tokens(&small, &german) * 4 < tokens(&old, &german) * 3);
    }
}

#[test]
fn what_the_model_lacks_comes_before_the_pieces() {
    let old = trainer(60, |_| ()).train(&english(), &mut Silent).unwrap();
    let extend = |size, tokens: &[&str]| {
        let trainer = trainer(size, |t| {
            let special = tokens.iter().map(|&token| SpecialToken::new(token, TokenKind::Control));
            t.special_tokens = special.collect();
        });
        Ok::<_, unigram::TrainError>(trainer.extend(&old, &german(), &[], &mut Silent)?.remove(0).0)
    };
    let new = extend(70, &["<unk>", "<s>", "▁geh"]).unwrap();
    check(&old, &new, texts(&german()));
    assert_eq!(new.vocab().bytes(TokenId(60)), Some(&b"<s>"[..]));
    assert_eq!(new.vocab().bytes(TokenId(61)), Some("▁geh".as_bytes()));
    assert_eq!(new.vocab().kind(TokenId(61)), Some(TokenKind::Control));
    // Then the characters that the model lacks, with other pieces: c, h, ö, v and so on.
    let known = |model: &Unigram, c: &str| model.vocab().get(c.as_bytes()).is_some();
    let missing: Vec<&str> = ["c", "h", "ö", "m"].into_iter().filter(|c| !known(&old, c)).collect();
    assert!(missing.contains(&"ö") && missing.iter().all(|c| *c == "m" || known(&new, c)));
    let error = extend(61, &["<s>"]).unwrap_err();
    let needed = error.needed_vocab_size().unwrap();
    let says = error.to_string();
    assert!(says.starts_with("the vocabulary size is 61, but 60 tokens of the model, 1 special"));
    assert_eq!(extend(needed, &["<s>"]).unwrap().vocab().len(), needed);
    assert!(extend(needed - 1, &["<s>"]).is_err());
    let error = extend(5000, &[]).unwrap_err();
    let possible = error.possible_vocab_size().unwrap();
    assert_eq!(extend(possible, &[]).unwrap().vocab().len(), possible);
    assert_eq!(extend(possible + 1, &[]).unwrap_err().possible_vocab_size(), Some(possible));
}

#[test]
fn what_cannot_be_extended_is_an_error() {
    let old = trainer(60, |_| ()).train(&english(), &mut Silent).unwrap();
    let error = |model: &Unigram, set: fn(&mut UnigramTrainer)| {
        trainer(90, set).extend(model, &german(), &[], &mut Silent).unwrap_err().to_string()
    };
    assert_eq!(
        error(&old, |t| t.compat = TrainCompat::SentencePiece),
        "SentencePiece's trainer knows no model to begin with"
    );
    let with_id = |t: &mut UnigramTrainer| {
        let mut token = SpecialToken::new("<s>", TokenKind::Control);
        token.id = Some(TokenId(3));
        t.special_tokens.push(token);
    };
    assert_eq!(error(&old, with_id), "special token 1 wants id 3, but the vocabulary size is 60");
    let mut vocab = Vocab::builder();
    vocab.push(b"<unk>", TokenKind::Unknown).unwrap();
    let bare = Unigram::new(vocab.build(), vec![0.0], UnigramOptions::default()).unwrap();
    assert_eq!(error(&bare, |_| ()), "the model has no piece that a text could be cut into");
}

#[test]
fn a_character_that_is_required_twice_is_counted_once() {
    let old = trainer(60, |_| ()).train(&english(), &mut Silent).unwrap();
    let with = |chars: &str| {
        let trainer = trainer(90, |t| t.required_chars = chars.to_owned());
        let extended = trainer.extend(&old, &german(), &[], &mut Silent).unwrap();
        (extended, trainer.train(&german(), &mut Silent).unwrap())
    };
    // The model has an e; in a new one the second e must not take the place of the first.
    assert!(with("") == with("eehh"));
}

#[test]
fn any_number_of_threads_extends_alike() {
    let old = trainer(60, |_| ()).train(&english(), &mut Silent).unwrap();
    let models = [1, 2, 3, 7].map(|threads| {
        trainer(110, |t| t.threads = threads).extend(&old, &german(), &[80], &mut Silent).unwrap()
    });
    assert!(models.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_resumed_extension_is_the_whole_one() {
    let (english, german) = (english(), german());
    let old = trainer(60, |_| ()).train(&english, &mut Silent).unwrap();
    let trainer = trainer(100, |t| t.seed_size = Some(2000));
    let mut saved = Vec::new();
    let mut save = |state: &State| {
        saved.push(state.to_bytes());
        ControlFlow::Continue(())
    };
    let whole =
        trainer.resume_extending(&old, None, &german, &[80], &mut save, &mut Silent).unwrap();
    assert!(saved.len() >= 3, "{}", saved.len());
    let mut ignore = |_: &State| ControlFlow::Continue(());
    for bytes in &saved {
        let state = State::from_bytes(bytes).unwrap();
        let resumed = trainer
            .resume_extending(&old, Some(state), &german, &[80], &mut ignore, &mut Silent)
            .unwrap();
        assert!(resumed == whole);
    }
    // A state of a training is none of an extension, nor the other way round.
    let state = || Some(State::from_bytes(&saved[0]).unwrap());
    let other = |result: Result<Vec<_>, unigram::TrainError>| {
        let says = result.unwrap_err().to_string();
        assert_eq!(says, "the state to go on from is of other counts or other options");
    };
    other(trainer.resume(state(), &german, &[80], &mut ignore, &mut Silent));
    let another = self::trainer(59, |_| ()).train(&english, &mut Silent).unwrap();
    let (mut again, mut silent) = (|_: &State| ControlFlow::Continue(()), Silent);
    other(trainer.resume_extending(&another, state(), &german, &[80], &mut again, &mut silent));
}

#[test]
fn scores_of_any_size_can_be_fixed() {
    // As a list of merges would have them, far beyond what a probability can say, and above 0.
    for spread in [1.0, 40.0, 4000.0] {
        let mut vocab = Vocab::builder();
        let mut scores = vec![0.0];
        vocab.push(b"<unk>", TokenKind::Unknown).unwrap();
        for (i, piece) in ["▁", "g", "e", "h", "s", "t", "▁ge", "▁geh", "st"].iter().enumerate()
        {
            vocab.push(piece.as_bytes(), TokenKind::Normal).unwrap();
            scores.push(spread * (2.0 - i as f64));
        }
        let old = Unigram::new(vocab.build(), scores, UnigramOptions::default()).unwrap();
        let trainer = trainer(60, |t| t.limit = VocabLimit::Soft);
        let (new, report) = trainer.extend(&old, &german(), &[], &mut Silent).unwrap().remove(0);
        check(&old, &new, texts(&german()));
        assert!(report.log_likelihood.is_finite());
        assert!(new.vocab().len() > 30);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn extending_moves_no_id_and_no_text_without_new_pieces(
        first in strategies::tiny_corpus(),
        second in strategies::tiny_corpus(),
        others in prop::collection::vec(strategies::mixed_text(), 0..6),
        sizes in (5usize..20, 0usize..40),
        compat in prop::sample::select(vec![
            Compat::SentencePiece, Compat::SentencePiece021, Compat::HuggingFace]),
        byte_fallback in any::<bool>(),
        coverage in prop::sample::select(vec![1.0, 0.9]),
    ) {
        let first_trainer = trainer(sizes.0 + if byte_fallback { 256 } else { 0 }, |t| {
            t.limit = VocabLimit::Soft;
            t.options.byte_fallback = byte_fallback;
        });
        let Ok(old) = first_trainer.train(&counts(&first), &mut Silent) else { return Ok(()) };
        let old = with(&old, |options| options.compat = compat);
        let longer = trainer(old.vocab().len() + 6 + sizes.1, |t| {
            t.limit = VocabLimit::Soft;
            t.coverage = coverage;
        });
        let new = match longer.extend(&old, &counts(&second), &[], &mut Silent) {
            Ok(models) => models.into_iter().next().unwrap().0,
            Err(error) => {
                let has_piece = old.vocab().kinds().contains(&TokenKind::Normal);
                prop_assert!(error.needed_vocab_size().is_some() || !has_piece, "{error}");
                return Ok(());
            }
        };
        let pieces = first.iter().chain(&second).map(|(piece, _)| piece.as_bytes());
        check(&old, &new, pieces.chain(others.iter().map(|text| text.as_bytes())));
    }
}
