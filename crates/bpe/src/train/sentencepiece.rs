//! What SentencePiece's trainer does otherwise, around the loop.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use hashbrown::HashMap;
use tokenizer_core::{PieceCounts, PieceRules, TokenKind, Vocab};

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

/// The characters that become tokens, in the order of SentencePiece's ids: those that are required
/// first, then by frequency, then by code point, until the share is covered.
pub(super) fn alphabet(trainer: &BpeTrainer, counts: &PieceCounts) -> Vec<Vec<u8>> {
    let mut seen: HashMap<char, (bool, u64)> = HashMap::new();
    for c in trainer.initial_alphabet.chars() {
        seen.entry(c).or_default().0 = true;
    }
    let mut total = 0u64;
    for piece in counts.iter() {
        for c in String::from_utf8_lossy(piece.piece).chars().filter(|&c| c != '\0' && c != ' ') {
            let count = &mut seen.entry(c).or_default().1;
            *count = count.saturating_add(piece.count);
            total = total.saturating_add(piece.count);
        }
    }
    seen.retain(|&c, _| c != '\0');
    let mut found: Vec<(char, (bool, u64))> = seen.into_iter().collect();
    found.sort_unstable_by_key(|&(c, (is_required, count))| (Reverse((is_required, count)), c));
    let mut covered = 0u64;
    let mut alphabet: Vec<(char, u64)> = Vec::new();
    for (c, (_, count)) in found {
        // In single precision, as there.
        if (covered as f64 / total as f64) as f32 >= trainer.character_coverage as f32 {
            break;
        }
        covered = covered.saturating_add(count);
        if c != PieceRules::BOUNDARY && c != PieceRules::UNKNOWN {
            alphabet.push((c, count));
        }
    }
    alphabet.sort_unstable_by_key(|&(c, count)| (Reverse(count), c));
    alphabet.into_iter().map(|(c, _)| String::from(c).into_bytes()).collect()
}

impl BpeTrainer {
    /// With SentencePiece's loop: the counts with special tokens replaced by a character that is no
    /// token, if there is one in any piece.
    pub(crate) fn parted(&self, counts: &PieceCounts) -> Result<Option<PieceCounts>, TrainError> {
        if self.compat == Compat::Standard {
            return Ok(None);
        }
        let mut special: Vec<&[u8]> =
            self.special_tokens.iter().chain(&self.user_defined).map(String::as_bytes).collect();
        special.extend(self.unk_token.as_ref().map(String::as_bytes));
        let names: Vec<String> =
            (0..=u8::MAX).map(|byte| alloc::format!("<0x{byte:02X}>")).collect();
        if self.byte_fallback {
            special.extend(names.iter().map(String::as_bytes));
        }
        special.retain(|token| !token.is_empty());
        // The longest that is there is taken.
        special.sort_unstable_by_key(|token| Reverse(token.len()));
        let mut firsts = [false; 256];
        for token in &special {
            firsts[usize::from(token[0])] = true;
        }
        let at = |rest: &[u8]| {
            firsts[usize::from(rest[0])]
                .then(|| special.iter().find(|token| rest.starts_with(token)))
                .flatten()
                .map(|token| token.len())
        };
        let is_parted = |piece: &[u8]| (0..piece.len()).any(|start| at(&piece[start..]).is_some());
        if !counts.iter().any(|piece| is_parted(piece.piece)) {
            return Ok(None);
        }
        let mut parted: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for piece in counts.iter() {
            let mut text = Vec::with_capacity(piece.piece.len());
            let mut rest = piece.piece;
            while !rest.is_empty() {
                let len = match at(rest) {
                    Some(len) => {
                        text.push(PieceRules::BOUNDARY as u8);
                        len
                    }
                    None => {
                        text.push(rest[0]);
                        1
                    }
                };
                rest = &rest[len..];
            }
            let count = parted.entry(text).or_default();
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
