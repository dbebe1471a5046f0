//! The pieces that are being trained, with their scores.

use alloc::vec::Vec;

use tokenizer_core::utf8;

use super::Expected;
use super::error::{Kind, TrainError};
use crate::math::{digamma, exp, ln};
use crate::trie::DoubleArray;

/// Pieces expected less often than this are dropped, as in SentencePiece.
const MIN_EXPECTED: f64 = 0.5;

/// The current pieces in order of their bytes. A piece that EM dropped stays, dead, until the
/// next pruning, so that the trie stays good.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pieces {
    arena: Vec<u8>,
    /// Where each piece ends in the arena.
    ends: Vec<usize>,
    /// Natural logarithms; negative infinity for dead pieces.
    scores: Vec<f64>,
    /// `exp` of the scores; 0 for dead pieces.
    probs: Vec<f64>,
    /// Whether the piece is a character of the alphabet, which is never dropped.
    is_required: Vec<bool>,
}

impl Pieces {
    /// Pieces in order of their bytes, with weights in proportion to their probabilities.
    pub(super) fn from_weights<'p>(
        pieces: impl Iterator<Item = (&'p [u8], u64)>,
        is_required: impl Fn(&[u8]) -> bool,
    ) -> Self {
        let mut result = Self::empty();
        let mut weights = Vec::new();
        for (bytes, weight) in pieces {
            result.push(bytes, is_required(bytes));
            weights.push((weight as f64).max(1.0));
        }
        let total = ln(weights.iter().sum());
        result.set_scores(weights.into_iter().map(|weight| ln(weight) - total).collect());
        result
    }

    pub(super) fn empty() -> Self {
        Self {
            arena: Vec::new(),
            ends: Vec::new(),
            scores: Vec::new(),
            probs: Vec::new(),
            is_required: Vec::new(),
        }
    }

    fn push(&mut self, bytes: &[u8], is_required: bool) {
        self.arena.extend_from_slice(bytes);
        self.ends.push(self.arena.len());
        self.is_required.push(is_required);
    }

    fn set_scores(&mut self, scores: Vec<f64>) {
        self.probs = scores.iter().map(|&score| exp(score)).collect();
        self.scores = scores;
    }

    /// The number of pieces, dead ones included.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of pieces that are not dead.
    pub(super) fn alive(&self) -> usize {
        (0..self.len()).filter(|&i| self.is_alive(i)).count()
    }

    pub(super) fn bytes(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.arena[start..self.ends[i]]
    }

    /// The length in characters of the longest piece.
    pub(super) fn longest(&self) -> usize {
        let lens = (0..self.len()).map(|i| utf8::chars(self.bytes(i)).count());
        lens.max().unwrap_or(1)
    }

    /// Adds a piece behind all others, with its score.
    pub(super) fn push_scored(&mut self, bytes: &[u8], score: f64, is_required: bool) {
        self.push(bytes, is_required);
        self.scores.push(score);
        self.probs.push(exp(score));
    }

    /// The trie of all pieces.
    pub(super) fn trie(&self) -> Result<DoubleArray, TrainError> {
        let keys: Vec<(&[u8], u32)> = (0..self.len()).map(|i| (self.bytes(i), i as u32)).collect();
        DoubleArray::build(&keys)
            .map_err(|_| TrainError::new(Kind::TooManyPieces { pieces: keys.len() }))
    }

    pub(super) fn is_required(&self, i: usize) -> bool {
        self.is_required[i]
    }

    pub(super) fn is_alive(&self, i: usize) -> bool {
        self.probs[i] > 0.0
    }

    pub(super) fn score(&self, i: usize) -> f64 {
        self.scores[i]
    }

    pub(super) fn scores(&self) -> &[f64] {
        &self.scores
    }

    pub(super) fn probs(&self) -> &[f64] {
        &self.probs
    }

    /// The M-step: new scores from expected counts (Kudo 2018 by way of Liang & Klein 2007: with
    /// a Dirichlet prior the best estimate is `digamma(count) - digamma(sum)` instead of
    /// `ln(count) - ln(sum)`).
    ///
    /// Drops what is expected too rarely, but not below `keep` pieces, and no required character.
    pub(super) fn maximize(&mut self, expected: &Expected, keep: usize) {
        let mut is_kept: Vec<bool> = (0..self.len())
            .map(|i| {
                self.is_alive(i) && (expected.counts[i] >= MIN_EXPECTED || self.is_required[i])
            })
            .collect();
        let kept = is_kept.iter().filter(|&&kept| kept).count();
        if kept < keep {
            let mut rest: Vec<usize> =
                (0..self.len()).filter(|&i| self.is_alive(i) && !is_kept[i]).collect();
            rest.sort_by(|&a, &b| expected.counts[b].total_cmp(&expected.counts[a]));
            for i in rest.into_iter().take(keep - kept) {
                is_kept[i] = true;
            }
        }
        let counts: Vec<f64> = (0..self.len())
            .map(|i| if is_kept[i] { expected.counts[i].max(MIN_EXPECTED) } else { 0.0 })
            .collect();
        let total = digamma(counts.iter().sum());
        let score =
            |count: f64| if count > 0.0 { digamma(count) - total } else { f64::NEG_INFINITY };
        self.set_scores(counts.into_iter().map(score).collect());
    }

    /// Makes the pieces dead for which `is_kept` does not hold.
    pub(super) fn kill(&mut self, is_kept: &[bool]) {
        for i in (0..self.len()).filter(|&i| !is_kept[i]) {
            self.scores[i] = f64::NEG_INFINITY;
            self.probs[i] = 0.0;
        }
    }

    /// Takes the dead pieces away.
    pub(super) fn bury(&mut self) {
        let is_alive: Vec<bool> = (0..self.len()).map(|i| self.is_alive(i)).collect();
        self.retain(&is_alive);
    }

    /// Keeps the pieces for which `is_kept` holds.
    pub(super) fn retain(&mut self, is_kept: &[bool]) {
        let mut kept = Self::empty();
        for i in (0..self.len()).filter(|&i| is_kept[i]) {
            kept.push(self.bytes(i), self.is_required[i]);
            kept.scores.push(self.scores[i]);
            kept.probs.push(self.probs[i]);
        }
        *self = kept;
    }
}
