//! Why a piece splits as it does.

use alloc::vec;
use alloc::vec::Vec;

use tokenizer_core::{Span, TokenId};

use crate::lattice::Lattice;
use crate::math::exp;
use crate::model::{Segmentation, Unigram};
use crate::viterbi::{UNKNOWN, edge_len};

/// Everything the encoder weighed. Made by [`Unigram::explain`].
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// All edges of the lattice, by start, then by end.
    pub edges: Vec<Edge>,
    /// What the encoder gives.
    pub best: Segmentation,
    /// The runner-up, if there is more than one segmentation.
    pub second: Option<Segmentation>,
    /// By how much the best scores better than the runner-up; 0 is a tie (which went to the one
    /// whose last differing token begins earlier).
    pub margin: Option<f64>,
    /// The logarithm of the summed likelihood of all segmentations.
    pub log_likelihood: f64,
}

/// A token, or an unknown character, somewhere in the piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The bytes of the piece that it covers.
    pub span: Span,
    /// The token; `None` for an unknown character.
    pub id: Option<TokenId>,
    /// Its score.
    pub score: f64,
    /// The score of the best segmentation that goes through it.
    pub best_through: f64,
    /// How probable it is that a segmentation goes through it.
    pub posterior: f64,
    /// Whether the best segmentation goes through it.
    pub is_best: bool,
}

impl Unigram {
    /// The whole lattice of a piece with its scores, the best two segmentations, and the margin
    /// between them. `O(n d)` time and memory; meant for words and sentences.
    #[must_use]
    pub fn explain(&self, piece: &[u8]) -> Explanation {
        let lattice = Lattice::new(self, piece);
        let mut nbest = self.nbest(piece, 2).into_iter();
        let best = nbest.next().expect("every piece has a segmentation");
        let second = nbest.next();
        let margin = second.as_ref().map(|second| (best.score - second.score).max(0.0));

        let n = piece.len();
        let mut before = vec![f64::NEG_INFINITY; n + 1];
        before[0] = 0.0;
        for &arc in &lattice.arcs {
            let through = before[arc.start as usize] + lattice.score(arc);
            let end = &mut before[arc.end as usize];
            *end = end.max(through);
        }
        let mut behind = vec![f64::NEG_INFINITY; n + 1];
        behind[n] = 0.0;
        for &arc in lattice.arcs.iter().rev() {
            let through = behind[arc.end as usize] + lattice.score(arc);
            let start = &mut behind[arc.start as usize];
            *start = start.max(through);
        }
        let (sums, sums_behind) = (lattice.log_sums(1.0), lattice.log_sums_backward());

        let best_edges = self.session().best_edges(piece);
        let mut on_best = vec![false; lattice.arcs.len()];
        let mut end = n;
        while end > 0 {
            for (i, arc) in lattice.ending_at(end) {
                on_best[i as usize] |= arc.id == best_edges[end];
            }
            end -= edge_len(self, best_edges[end]);
        }

        let edges = lattice.arcs.iter().zip(on_best).map(|(&arc, is_best)| {
            let (start, end) = (arc.start as usize, arc.end as usize);
            let score = lattice.score(arc);
            Edge {
                span: Span::new(start, end),
                id: (arc.id < UNKNOWN).then_some(TokenId(arc.id)),
                score,
                best_through: before[start] + score + behind[end],
                posterior: exp(sums[start] + score + sums_behind[end] - sums[n]).min(1.0),
                is_best,
            }
        });
        Explanation { edges: edges.collect(), best, second, margin, log_likelihood: sums[n] }
    }
}
