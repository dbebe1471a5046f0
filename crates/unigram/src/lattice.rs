//! All tokens that match somewhere in a piece, as a graph over its byte offsets. The encoder
//! never builds it; what looks at more than the best path does.

use alloc::vec;
use alloc::vec::Vec;

use tokenizer_core::{Token, utf8};

use crate::math::LogSum;
use crate::model::{Segmentation, Unigram};
use crate::viterbi::{UNKNOWN, emit_edges};

/// An edge: a token, or an unknown character, between two character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arc {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The token's id, or [`UNKNOWN`] + length.
    pub(crate) id: u32,
}

/// The lattice of one piece. `O(n d)` to build; 16 bytes an edge and 16 a byte.
///
/// Every character boundary can be reached from the beginning, and the end from it, because a
/// character without a token has an edge as unknown character.
pub(crate) struct Lattice<'a> {
    pub(crate) model: &'a Unigram,
    pub(crate) piece: &'a [u8],
    /// By start, then by end.
    pub(crate) arcs: Vec<Arc>,
    /// `arcs[first_from[i]..first_from[i + 1]]` begin at byte i.
    first_from: Vec<u32>,
    /// `into[first_into[i]..first_into[i + 1]]` are the arcs that end at byte i, by start.
    first_into: Vec<u32>,
    into: Vec<u32>,
}

impl<'a> Lattice<'a> {
    pub(crate) fn new(model: &'a Unigram, piece: &'a [u8]) -> Self {
        let n = piece.len();
        let mut is_boundary = vec![false; n + 1];
        is_boundary[0] = true;
        let mut at = 0;
        while at < n {
            at += utf8::char_len(&piece[at..]);
            is_boundary[at] = true;
        }
        let mut arcs = Vec::with_capacity(2 * n);
        let mut first_from = Vec::with_capacity(n + 2);
        for start in 0..n {
            first_from.push(arcs.len() as u32);
            if !is_boundary[start] {
                continue;
            }
            let char_len = utf8::char_len(&piece[start..]);
            let mut arc = |len: usize, id| {
                arcs.push(Arc { start: start as u32, end: (start + len) as u32, id });
            };
            let mut has_char = false;
            model.trie.prefixes(&piece[start..], |len, id| {
                // Tokens that end inside of a character lead nowhere.
                if is_boundary[start + len] {
                    arc(len, id);
                }
                has_char |= len == char_len;
            });
            if !has_char {
                arc(char_len, UNKNOWN + char_len as u32);
                // The unknown character may be shorter than a token found before.
                let from = first_from[start] as usize;
                arcs[from..].sort_by_key(|arc| arc.end);
            }
        }
        first_from.extend([arcs.len() as u32; 2]);

        let mut first_into = vec![0u32; n + 2];
        for arc in &arcs {
            first_into[arc.end as usize + 1] += 1;
        }
        for i in 1..first_into.len() {
            first_into[i] += first_into[i - 1];
        }
        let mut next = first_into.clone();
        let mut into = vec![0u32; arcs.len()];
        for (i, arc) in arcs.iter().enumerate() {
            let slot = &mut next[arc.end as usize];
            into[*slot as usize] = i as u32;
            *slot += 1;
        }
        Self { model, piece, arcs, first_from, first_into, into }
    }

    /// The score of an edge.
    pub(crate) fn score(&self, arc: Arc) -> f64 {
        self.model.edges.edge(arc.id)
    }

    /// The edges that begin at a byte offset, shortest first.
    pub(crate) fn beginning_at(&self, at: usize) -> impl Iterator<Item = Arc> + '_ {
        self.arcs[self.first_from[at] as usize..self.first_from[at + 1] as usize].iter().copied()
    }

    /// The edges that end at a byte offset, with their numbers; the earliest beginning first.
    pub(crate) fn ending_at(&self, at: usize) -> impl Iterator<Item = (u32, Arc)> + '_ {
        let range = self.first_into[at] as usize..self.first_into[at + 1] as usize;
        self.into[range].iter().map(|&i| (i, self.arcs[i as usize]))
    }

    /// For each byte offset the logarithm of the sum over all paths from the beginning to it, of
    /// `exp(theta · score)`; negative infinity inside of characters.
    pub(crate) fn log_sums(&self, theta: f64) -> Vec<f64> {
        let mut sums = vec![f64::NEG_INFINITY; self.piece.len() + 1];
        sums[0] = 0.0;
        for end in 1..sums.len() {
            let mut sum = LogSum::EMPTY;
            for (_, arc) in self.ending_at(end) {
                sum.add(sums[arc.start as usize] + theta * self.score(arc));
            }
            sums[end] = sum.value();
        }
        sums
    }

    /// For each byte offset the logarithm of the sum over all paths from it to the end.
    pub(crate) fn log_sums_backward(&self) -> Vec<f64> {
        let mut sums = vec![f64::NEG_INFINITY; self.piece.len() + 1];
        sums[self.piece.len()] = 0.0;
        for start in (0..self.piece.len()).rev() {
            let mut sum = LogSum::EMPTY;
            for arc in self.beginning_at(start) {
                sum.add(sums[arc.end as usize] + self.score(arc));
            }
            sums[start] = sum.value();
        }
        sums
    }

    /// The tokens and the score of a path, given by its edges, the last one first.
    pub(crate) fn segmentation(&self, backwards: &[Arc]) -> Segmentation {
        let mut tokens = Vec::new();
        let edges = backwards.iter().map(|arc| arc.id);
        emit_edges(self.model, self.piece, edges, |id, len| tokens.push(Token::new(id, len)));
        tokens.reverse();
        let score = backwards.iter().rev().map(|&arc| self.score(arc)).sum();
        Segmentation { tokens, score }
    }
}
