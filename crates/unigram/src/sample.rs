//! Sampling a segmentation, and summing over all of them.

use alloc::vec::Vec;

use tokenizer_core::Rng;

use crate::lattice::Lattice;
use crate::math::exp;
use crate::model::{Segmentation, Unigram};
use crate::viterbi::edge_len;

/// Exponents beyond this only ever tell "the best" from "the rest".
const MAX_ALPHA: f64 = 1e9;

impl Unigram {
    /// A random segmentation, drawn with a probability proportional to `exp(alpha · score)`
    /// (subword regularization, Kudo 2018, section 3.2): forward filtering, backward sampling.
    ///
    /// With `alpha` 1 the model's own distribution, with 0 all segmentations alike, with a large
    /// one nearly always the best. Not a number counts as 0, and what lies beyond ±10^9 as ±10^9.
    /// The draw depends on `rng` alone: the same seed gives the same segmentations for ever.
    ///
    /// `O(n d)` with an exponential for each edge of the lattice.
    #[must_use]
    pub fn sample(&self, piece: &[u8], alpha: f64, rng: &mut Rng) -> Segmentation {
        let alpha = if alpha.is_nan() { 0.0 } else { alpha.clamp(-MAX_ALPHA, MAX_ALPHA) };
        let lattice = Lattice::new(self, piece);
        let sums = lattice.log_sums(alpha);
        let mut edges = Vec::new();
        let mut end = piece.len();
        while end > 0 {
            let mut left = rng.next_f64();
            let mut chosen = None;
            for (_, arc) in lattice.ending_at(end) {
                let weight = sums[arc.start as usize] + alpha * lattice.score(arc) - sums[end];
                let probability = exp(weight);
                // Rounding may leave a little at the end; it goes to the last possible edge.
                if probability > 0.0 || chosen.is_none() {
                    chosen = Some(arc);
                }
                left -= probability;
                if left < 0.0 {
                    break;
                }
            }
            let arc = chosen.expect("every boundary can be reached");
            edges.push(arc);
            end = arc.start as usize;
        }
        lattice.segmentation(&edges)
    }

    /// The logarithm of the sum of `exp(score)` over all segmentations: the likelihood of the
    /// piece under the model, if the scores are normalized log-probabilities. 0 for an empty
    /// piece.
    #[must_use]
    pub fn log_likelihood(&self, piece: &[u8]) -> f64 {
        let sums = Lattice::new(self, piece).log_sums(1.0);
        sums[piece.len()]
    }

    /// The score of the best segmentation, the one that [`encode`](Self::encode) gives, summed
    /// in 64-bit arithmetic. 0 for an empty piece.
    #[must_use]
    pub fn best_score(&self, piece: &[u8]) -> f64 {
        let best = self.session().best_edges(piece);
        let mut end = piece.len();
        let mut score = 0.0;
        while end > 0 {
            score += self.edges.edge(best[end]);
            end -= edge_len(self, best[end]);
        }
        score
    }
}
