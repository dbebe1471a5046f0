//! The n best segmentations.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use crate::lattice::{Arc, Lattice};
use crate::model::{Segmentation, Unigram};

impl Unigram {
    /// The `n` best segmentations of a piece, or all if there are fewer. The first is what
    /// [`encode`](Self::encode) gives, in every mode.
    ///
    /// Segmentations are paths: two of them show the same tokens where unknown characters are
    /// dropped, or where, in Hugging Face mode, the text spells the unknown token.
    ///
    /// The order is by score, best first; scores are summed in 64-bit arithmetic, and a path that
    /// only the rounding of the mode's own sums puts behind its rival counts as equal to it. Among
    /// equals the one comes first that leaves the best path later in the piece.
    ///
    /// `O(n_bytes d + n · (n_bytes d + log n))`; memory is the lattice and n candidates, so a
    /// search is exact and bounded at once.
    #[must_use]
    pub fn nbest(&self, piece: &[u8], n: usize) -> Vec<Segmentation> {
        let lattice = Lattice::new(self, piece);
        Search::new(&lattice).run(n)
    }
}

/// A best-first search from the end over the exact forward scores.
///
/// The forward pass leaves a tree: from each offset the best way back to the beginning. A path is
/// known by where it leaves the tree: it follows an edge outside of it (a sidetrack, Eppstein
/// 1998), then the tree again. Its cost, what it loses against the best path, is the sum of the
/// losses of its sidetracks, none of which is negative. Taking the cheapest path and adding the
/// ones with one more sidetrack before its first one meets every path once, in order of cost.
/// As every candidate is a whole path, no more than the n cheapest need to be kept.
struct Search<'l, 'a> {
    lattice: &'l Lattice<'a>,
    /// For each offset the number of the tree's edge into it.
    tree: Vec<u32>,
    /// For each offset the score of the tree's path to it.
    scores: Vec<f64>,
    paths: Vec<Path>,
}

/// A path: the tree to where `sidetrack` begins, the sidetrack, then what `rest` does from there.
#[derive(Clone, Copy)]
struct Path {
    sidetrack: u32,
    rest: u32,
}

const NONE: u32 = u32::MAX;

impl<'l, 'a> Search<'l, 'a> {
    fn new(lattice: &'l Lattice<'a>) -> Self {
        let best = lattice.model.session().best_edges(lattice.piece);
        let n = lattice.piece.len();
        let mut tree = vec![NONE; n + 1];
        let mut scores = vec![0.0; n + 1];
        for end in 1..=n {
            let found = lattice.ending_at(end).find(|(_, arc)| arc.id == best[end]);
            if let Some((i, arc)) = found {
                tree[end] = i;
                scores[end] = scores[arc.start as usize] + lattice.score(arc);
            }
        }
        Self { lattice, tree, scores, paths: Vec::new() }
    }

    fn run(&mut self, n: usize) -> Vec<Segmentation> {
        let mut results = Vec::new();
        // Cost (never negative, so that its bits sort like it), then age, then the path.
        let mut agenda: BTreeSet<(u64, usize, u32)> = BTreeSet::new();
        let mut age = 0;
        if n > 0 {
            self.paths.push(Path { sidetrack: NONE, rest: NONE });
            agenda.insert((0, 0, 0));
        }
        let mut dropped: Vec<u32> = Vec::new();
        while let Some((bits, _, path)) = agenda.pop_first() {
            results.push(self.lattice.segmentation(&self.edges(path)));
            let wanted = n - results.len();
            if wanted == 0 {
                break;
            }
            let cost = f64::from_bits(bits);
            let mut end = match self.paths[path as usize].sidetrack {
                NONE => self.lattice.piece.len(),
                sidetrack => self.lattice.arcs[sidetrack as usize].start as usize,
            };
            while end > 0 {
                for (i, arc) in self.lattice.ending_at(end) {
                    if i == self.tree[end] {
                        continue;
                    }
                    let through = self.scores[arc.start as usize] + self.lattice.score(arc);
                    let bits = (cost + (self.scores[end] - through).max(0.0)).to_bits();
                    let full = agenda.len() >= wanted;
                    if full && agenda.last().is_some_and(|worst| worst.0 <= bits) {
                        continue;
                    }
                    if full && let Some(worst) = agenda.pop_last() {
                        dropped.push(worst.2);
                    }
                    let new = Path { sidetrack: i, rest: path };
                    let slot = match dropped.pop() {
                        Some(slot) => {
                            self.paths[slot as usize] = new;
                            slot
                        }
                        None => {
                            self.paths.push(new);
                            (self.paths.len() - 1) as u32
                        }
                    };
                    age += 1;
                    agenda.insert((bits, age, slot));
                }
                end = self.lattice.arcs[self.tree[end] as usize].start as usize;
            }
        }
        results
    }

    /// The edges of a path, the last one first.
    fn edges(&self, path: u32) -> Vec<Arc> {
        // The sidetracks, the last one in the text first.
        let mut sidetracks = Vec::new();
        let mut next = path;
        while next != NONE {
            let path = self.paths[next as usize];
            if path.sidetrack != NONE {
                sidetracks.push(path.sidetrack);
            }
            next = path.rest;
        }
        let mut edges = Vec::new();
        let mut end = self.lattice.piece.len();
        while end > 0 {
            let edge = match sidetracks.last() {
                Some(&i) if self.lattice.arcs[i as usize].end as usize == end => {
                    sidetracks.pop();
                    i
                }
                _ => self.tree[end],
            };
            let arc = self.lattice.arcs[edge as usize];
            edges.push(arc);
            end = arc.start as usize;
        }
        edges
    }
}
