//! What SentencePiece's trainer does otherwise, around the loop.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use tokenizer_core::sentences::{SpecialTexts, covering_alphabet};
use tokenizer_core::{PieceCounts, TokenKind, Vocab};

use crate::train::{BpeTrainer, Compat, Plan, Ties, TrainError};
use crate::{Alphabet, Bpe, BpeOptions};

/// Refuses options that SentencePiece does not have.
pub(super) fn check(trainer: &BpeTrainer) -> Result<(), TrainError> {
    let fail = |says| Err(TrainError::option(says));
    if trainer.unit != Alphabet::Char || trainer.ties != Ties::SentencePiece {
        return fail("SentencePiece's trainer has units of characters and ties of its own");
    }
    if trainer.unk_token.is_none() {
        return fail("SentencePiece's trainer needs an unknown token");
    }
    if trainer.end_of_word.is_some() || trainer.continuing_prefix.is_some() {
        return fail("SentencePiece has no mark of the end or the inside of words");
    }
    if trainer.alphabet_limit.is_some() {
        return fail("SentencePiece limits the alphabet by coverage alone");
    }
    Ok(())
}

/// The characters that become tokens, in the order of SentencePiece's ids.
pub(super) fn alphabet(trainer: &BpeTrainer, counts: &PieceCounts) -> Vec<Vec<u8>> {
    let texts = counts.iter().map(|piece| (piece.piece, piece.count));
    covering_alphabet(texts, &trainer.initial_alphabet, trainer.character_coverage)
        .into_iter()
        .map(|(c, _)| String::from(c).into_bytes())
        .collect()
}

impl BpeTrainer {
    /// With SentencePiece's loop: the counts with special tokens replaced by a character that is no
    /// token, if there is one in any piece.
    pub(crate) fn parted(&self, counts: &PieceCounts) -> Result<Option<PieceCounts>, TrainError> {
        if self.compat == Compat::Standard {
            return Ok(None);
        }
        let tokens = self.special_tokens.iter().chain(&self.user_defined).chain(&self.unk_token);
        let special = SpecialTexts::new(tokens.map(String::as_bytes), self.byte_fallback);
        if !counts.iter().any(|piece| special.are_in(piece.piece)) {
            return Ok(None);
        }
        let mut parted: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for piece in counts.iter() {
            let count = parted.entry(special.replaced(piece.piece)).or_default();
            *count = count.checked_add(piece.count).ok_or_else(TrainError::count_overflow)?;
        }
        PieceCounts::from_pairs(parted).map(Some).map_err(|_| TrainError::count_overflow())
    }
}

impl Plan {
    /// The trained model: special tokens, merges, characters, with scores that fall by one.
    pub(crate) fn model_by_scores(&self, trained: &Vocab, trainer: &BpeTrainer) -> Bpe {
        let initial = self.vocab.len();
        let special = self.first_unit as usize;
        let all: Vec<(&[u8], TokenKind)> =
            trained.iter().map(|(_, bytes, kind)| (bytes, kind)).collect();
        let mut vocab = Vocab::builder();
        let mut scores = Vec::with_capacity(all.len());
        let normal = all[initial..].iter().chain(&all[special..initial]);
        for &(bytes, kind) in all[..special].iter().chain(normal) {
            let at = vocab.len();
            vocab.push(bytes, kind).expect("the same tokens in another order");
            scores.push(if at < special { 0.0 } else { -((at - special) as f32) });
        }
        let options = BpeOptions {
            alphabet: trainer.unit,
            byte_fallback: trainer.byte_fallback,
            unk: self.unk,
            fuse_unk: trainer.fuse_unk,
            ..BpeOptions::default()
        };
        Bpe::from_scores(vocab.build(), scores, options)
            .expect("a score for each token, and pieces of 4096 bytes at most")
    }
}
