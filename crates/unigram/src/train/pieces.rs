//! The pieces that are being trained, with their scores.

use alloc::vec::Vec;

use tokenizer_core::utf8;

use super::Expected;
use super::error::{Kind, TrainError};
use crate::math::{digamma, exp, ln};
use crate::trie::DoubleArray;

/// Pieces expected less often than this are dropped, as in SentencePiece.
const MIN_EXPECTED: f64 = 0.5;
/// How often a piece of a finished model counts at least: what the text has only within longer
/// pieces is not less likely elsewhere than what it has once.
const MIN_SETTLED: f64 = 1.0;

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
    roles: Vec<Role>,
    /// No score that is trained is less.
    floor: f64,
}

/// What may become of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Trained,
    /// A character of the alphabet, which is never dropped.
    Required,
    /// A piece of a model that is extended, which keeps its score, too.
    Fixed,
}

impl Role {
    fn of(is_required: bool) -> Self {
        if is_required { Self::Required } else { Self::Trained }
    }
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
            result.push(bytes, Role::of(is_required(bytes)));
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
            roles: Vec::new(),
            floor: f64::NEG_INFINITY,
        }
    }

    fn push(&mut self, bytes: &[u8], role: Role) {
        self.arena.extend_from_slice(bytes);
        self.ends.push(self.arena.len());
        self.roles.push(role);
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
        self.push(bytes, Role::of(is_required));
        self.scores.push(score);
        self.probs.push(exp(score));
    }

    /// The same for one that keeps its score.
    pub(super) fn push_fixed(&mut self, bytes: &[u8], score: f64) {
        self.push_scored(bytes, score, true);
        self.roles[self.ends.len() - 1] = Role::Fixed;
    }

    /// From now on no score that is trained gets less.
    pub(super) fn set_floor(&mut self, floor: f64) {
        self.floor = floor;
    }

    /// How many pieces keep their score.
    pub(super) fn fixed(&self) -> usize {
        (0..self.len()).filter(|&i| self.is_fixed(i)).count()
    }

    /// The trie of all pieces.
    pub(super) fn trie(&self) -> Result<DoubleArray, TrainError> {
        let keys: Vec<(&[u8], u32)> = (0..self.len()).map(|i| (self.bytes(i), i as u32)).collect();
        DoubleArray::build(&keys)
            .map_err(|_| TrainError::new(Kind::TooManyPieces { pieces: keys.len() }))
    }

    /// Whether the piece is never dropped.
    pub(super) fn is_required(&self, i: usize) -> bool {
        self.roles[i] != Role::Trained
    }

    /// Whether the piece keeps its score.
    pub(super) fn is_fixed(&self, i: usize) -> bool {
        self.roles[i] == Role::Fixed
    }

    pub(super) fn is_alive(&self, i: usize) -> bool {
        self.scores[i] > f64::NEG_INFINITY
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
    /// Drops what is expected too rarely, but not below `keep` pieces, and no required one. Fixed
    /// pieces count for the sum alone.
    pub(super) fn maximize(&mut self, expected: &Expected, keep: usize) {
        let mut is_kept: Vec<bool> = (0..self.len())
            .map(|i| {
                self.is_alive(i) && (expected.counts[i] >= MIN_EXPECTED || self.is_required(i))
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
        self.score_by(|i| is_kept[i], expected, MIN_EXPECTED, digamma);
    }

    /// The scores of a finished model: the logarithm of the share of each living piece in all that
    /// is expected, so that probabilities add up to 1 unless some are fixed. The prior of
    /// [`maximize`](Self::maximize) drops pieces and has done its work; here it would only take
    /// probability away, most from what is rare.
    pub(super) fn settle(&mut self, expected: &Expected) {
        let is_alive: Vec<bool> = (0..self.len()).map(|i| self.is_alive(i)).collect();
        self.score_by(|i| is_alive[i], expected, MIN_SETTLED, ln);
    }

    /// Scores from counts, which are at least `least`; fixed pieces keep theirs.
    fn score_by(
        &mut self,
        is_kept: impl Fn(usize) -> bool,
        expected: &Expected,
        least: f64,
        log: fn(f64) -> f64,
    ) {
        let counts: Vec<f64> = (0..self.len())
            .map(|i| match is_kept(i) {
                true if self.is_fixed(i) => expected.counts[i],
                true => expected.counts[i].max(least),
                false => 0.0,
            })
            .collect();
        let total = log(counts.iter().sum::<f64>().max(least));
        let score = |(i, count): (usize, f64)| match count > 0.0 {
            _ if self.is_fixed(i) => self.scores[i],
            true => (log(count) - total).max(self.floor),
            false => f64::NEG_INFINITY,
        };
        let scores = counts.into_iter().enumerate().map(score).collect();
        self.set_scores(scores);
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
        let mut kept = Self { floor: self.floor, ..Self::empty() };
        for i in (0..self.len()).filter(|&i| is_kept[i]) {
            kept.push(self.bytes(i), self.roles[i]);
            kept.scores.push(self.scores[i]);
            kept.probs.push(self.probs[i]);
        }
        *self = kept;
    }
}
