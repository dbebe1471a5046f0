//! The lattices of all units, kept from pass to pass: which pieces begin at each character.
//!
//! A pass over the text with a trie is mostly waiting for memory. The pieces only ever become
//! fewer, so the lattices are found once, and pruned as the pieces are.

use alloc::vec::Vec;

use tokenizer_core::utf8;

use super::corpus::Corpus;
use super::workers::Workers;
use crate::trie::DoubleArray;

/// A piece at a place of a unit, in 32 bits: its number, its length in characters less 1, and
/// whether it is the longest one there.
#[derive(Clone, Copy)]
pub(super) struct Edge(u32);

/// How an edge is packed.
#[derive(Clone, Copy)]
pub(super) struct Packing {
    len_bits: u32,
}

/// How many pieces can be told apart where the longest has so many characters.
pub(super) fn most_pieces(longest: usize) -> usize {
    1 << (31 - Packing::new(longest).len_bits)
}

impl Packing {
    fn new(longest: usize) -> Self {
        Self { len_bits: usize::BITS - longest.saturating_sub(1).leading_zeros() }
    }

    fn edge(self, piece: u32, chars: usize) -> Edge {
        Edge(piece << (self.len_bits + 1) | (chars as u32 - 1) << 1)
    }

    #[inline]
    pub(super) fn piece(self, edge: Edge) -> usize {
        (edge.0 >> (self.len_bits + 1)) as usize
    }

    /// In characters.
    #[inline]
    pub(super) fn len(self, edge: Edge) -> usize {
        ((edge.0 >> 1 & ((1 << self.len_bits) - 1)) + 1) as usize
    }
}

impl Edge {
    /// Whether the next edge begins at the next character.
    #[inline]
    pub(super) fn is_last(self) -> bool {
        self.0 & 1 == 1
    }
}

/// The edges of all units, run by run.
pub(super) struct Lattices {
    pub(super) packing: Packing,
    /// Where each run of units begins that a thread takes at once, and the end of the last one.
    pub(super) runs: Vec<usize>,
    /// By run, the edges of its units: by the character at which they begin, shorter ones first.
    /// Every character has at least its own piece.
    pub(super) edges: Vec<Vec<Edge>>,
}

impl Lattices {
    /// Finds all edges. `longest` is the length in characters of the longest piece.
    pub(super) fn new(
        trie: &DoubleArray,
        longest: usize,
        corpus: &Corpus,
        workers: &Workers,
    ) -> Self {
        let packing = Packing::new(longest);
        let runs = corpus.runs();
        let mut states: Vec<Vec<(usize, Vec<Edge>)>> = Vec::new();
        states.resize_with(workers.threads(), Vec::new);
        workers.run(&mut states, 0..runs.len() - 1, 1, |found, range| {
            for run in range {
                let mut edges = Vec::new();
                for i in runs[run]..runs[run + 1] {
                    unit_edges(trie, packing, corpus.unit(i).0, &mut edges);
                }
                edges.shrink_to_fit();
                found.push((run, edges));
            }
        });
        let mut edges: Vec<Vec<Edge>> = Vec::new();
        edges.resize_with(runs.len() - 1, Vec::new);
        for (run, found) in states.into_iter().flatten() {
            edges[run] = found;
        }
        Self { packing, runs, edges }
    }

    /// Drops the edges of pieces that are gone and renumbers the others: `renumbered` has the new
    /// number of each piece, [`GONE`] for what is gone, which is never a single character.
    pub(super) fn retain(&mut self, renumbered: &[u32], workers: &Workers) {
        let packing = self.packing;
        let shift = packing.len_bits + 1;
        workers.each(&mut self.edges, |edges| {
            let mut kept = 0;
            for i in 0..edges.len() {
                let edge = edges[i];
                let number = renumbered[packing.piece(edge)];
                if number != GONE {
                    edges[kept] = Edge(number << shift | edge.0 & ((1 << shift) - 1));
                    kept += 1;
                } else if edge.is_last() {
                    edges[kept - 1].0 |= 1;
                }
            }
            edges.truncate(kept);
            if kept < edges.capacity() / 2 {
                edges.shrink_to_fit();
            }
        });
    }
}

/// No number of a piece.
pub(super) const GONE: u32 = u32::MAX;

fn unit_edges(trie: &DoubleArray, packing: Packing, unit: &[u8], edges: &mut Vec<Edge>) {
    let mut start = 0;
    while start < unit.len() {
        let (mut at, mut chars) = (start, 0);
        trie.prefixes(&unit[start..], |len, piece| {
            while at < start + len {
                at += utf8::char_len(&unit[at..]);
                chars += 1;
            }
            edges.push(packing.edge(piece, chars));
        });
        debug_assert!(chars > 0, "every character of the corpus has a piece");
        if let Some(last) = edges.last_mut() {
            last.0 |= 1;
        }
        start += utf8::char_len(&unit[start..]);
    }
}
