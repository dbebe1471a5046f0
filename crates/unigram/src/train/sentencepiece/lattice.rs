//! The lattice in SentencePiece's single precision: sums in its order, and its order of equal paths.

use alloc::vec::Vec;

use tokenizer_core::utf8;

use crate::math::{exp, ln};
use crate::train::error::{Kind, TrainError};
use crate::trie::DoubleArray;

/// How much worse an unknown character is than the worst piece.
const UNKNOWN_PENALTY: f32 = 10.0;
/// A search for the second best path ends without one when it has seen so many partial paths.
const MAX_HYPOTHESES: usize = 100_000;
/// The node in front of all others.
const BEGIN: usize = 0;
const NONE: usize = usize::MAX;

/// Pieces in the order of their numbers, with scores.
#[derive(Clone, Debug, Default)]
pub(super) struct Scored {
    pub(super) pieces: Vec<Vec<u8>>,
    pub(super) scores: Vec<f32>,
}

impl Scored {
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn push(&mut self, piece: Vec<u8>, score: f32) {
        self.pieces.push(piece);
        self.scores.push(score);
    }

    pub(super) fn least_score(&self) -> f32 {
        self.scores.iter().copied().fold(f32::MAX, f32::min)
    }

    /// What lattices are made with.
    pub(super) fn model(&self) -> Result<Model<'_>, TrainError> {
        let mut keys: Vec<(&[u8], u32)> =
            self.pieces.iter().enumerate().map(|(i, piece)| (piece.as_slice(), i as u32)).collect();
        keys.sort_unstable();
        let trie = DoubleArray::build(&keys)
            .map_err(|_| TrainError::new(Kind::TooManyPieces { pieces: keys.len() }))?;
        Ok(Model { trie, scores: &self.scores, unknown: self.least_score() - UNKNOWN_PENALTY })
    }
}

/// The trie of the pieces, with their scores.
pub(super) struct Model<'p> {
    trie: DoubleArray,
    scores: &'p [f32],
    unknown: f32,
}

/// An occurrence of a piece, between places in characters.
#[derive(Clone, Copy, Debug)]
struct Node {
    start: u32,
    end: u32,
    /// The number of the piece. Unknown characters have that of the first piece, as there.
    id: u32,
    score: f32,
}

/// All occurrences of pieces in a text: the begin first, then by place and length, the end last.
#[derive(Debug, Default)]
pub(super) struct Lattice {
    nodes: Vec<Node>,
    /// Where the nodes begin that start at each place.
    starts: Vec<usize>,
    /// The nodes by the place where they end, and where each place's begin.
    by_end: Vec<usize>,
    ends: Vec<usize>,
    /// The number of the character at each byte.
    chars: Vec<u32>,
    /// The score of the best path to each node, and the node before it there.
    best: Vec<f32>,
    before: Vec<usize>,
    alpha: Vec<f32>,
    beta: Vec<f32>,
}

/// A path from a node to the end, in the search for the best ones.
#[derive(Clone, Copy, Debug)]
struct Hypothesis {
    node: usize,
    next: usize,
    /// The best score of a whole path that ends so.
    whole: f32,
    /// The score of what is there.
    sum: f32,
}

/// What a piece would be without itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Second {
    /// The piece has no other segmentation.
    None,
    /// Not even the best segmentation is the piece itself.
    First,
    /// The second best one.
    Path(Vec<u32>),
}

impl Lattice {
    /// Makes the lattice of a text, which is well-formed UTF-8 and not empty.
    pub(super) fn fill(&mut self, text: &[u8], model: &Model<'_>) {
        self.chars.clear();
        let mut len = 0;
        for char in utf8::chars(text) {
            self.chars.extend(char.iter().map(|_| len));
            len += 1;
        }
        self.chars.push(len);
        self.nodes.clear();
        self.starts.clear();
        self.nodes.push(Node { start: 0, end: 0, id: 0, score: 0.0 });
        let mut at = 0;
        while at < text.len() {
            let start = self.chars[at];
            self.starts.push(self.nodes.len());
            let mut is_known = false;
            let (nodes, chars) = (&mut self.nodes, &self.chars);
            model.trie.prefixes(&text[at..], |bytes, id| {
                let end = chars[at + bytes];
                is_known |= end == start + 1;
                nodes.push(Node { start, end, id, score: model.scores[id as usize] });
            });
            if !is_known {
                self.nodes.push(Node { start, end: start + 1, id: 0, score: model.unknown });
            }
            at += utf8::char_len(&text[at..]);
        }
        self.starts.push(self.nodes.len());
        self.nodes.push(Node { start: len, end: len, id: 0, score: 0.0 });
        self.starts.push(self.nodes.len());
        self.sort_by_end(len as usize);
    }

    fn sort_by_end(&mut self, len: usize) {
        let inner = &self.nodes[..self.nodes.len() - 1];
        self.ends.clear();
        self.ends.resize(len + 2, 0);
        for node in inner {
            self.ends[node.end as usize + 1] += 1;
        }
        for place in 0..=len {
            self.ends[place + 1] += self.ends[place];
        }
        self.by_end.clear();
        self.by_end.resize(inner.len(), 0);
        let mut next = self.ends.clone();
        for (i, node) in inner.iter().enumerate() {
            self.by_end[next[node.end as usize]] = i;
            next[node.end as usize] += 1;
        }
    }

    fn len(&self) -> usize {
        self.starts.len() - 2
    }

    fn end(&self) -> usize {
        self.nodes.len() - 1
    }

    fn ending_at(&self, place: usize) -> &[usize] {
        &self.by_end[self.ends[place]..self.ends[place + 1]]
    }

    /// Adds `freq` times the probability of each node to its piece, and gives the logarithm of the
    /// text's probability.
    pub(super) fn expect(&mut self, freq: f32, expected: &mut [f32]) -> f32 {
        let len = self.len();
        // All nodes at a place have the same sum in front of (or behind) them.
        let mut alpha = core::mem::take(&mut self.alpha);
        alpha.clear();
        for place in 0..=len {
            let terms = self.ending_at(place).iter().map(|&i| &self.nodes[i]);
            alpha.push(if place == 0 {
                0.0
            } else {
                log_sum(terms.map(|node| node.score + alpha[node.start as usize]))
            });
        }
        let mut beta = core::mem::take(&mut self.beta);
        beta.clear();
        beta.resize(len + 1, 0.0);
        for place in (0..len).rev() {
            let nodes = &self.nodes[self.starts[place]..self.starts[place + 1]];
            beta[place] = log_sum(nodes.iter().map(|node| node.score + beta[node.end as usize]));
        }
        let total = alpha[len];
        for node in &self.nodes[1..self.end()] {
            let log = alpha[node.start as usize] + node.score + beta[node.end as usize] - total;
            let sum = &mut expected[node.id as usize];
            *sum = (f64::from(*sum) + f64::from(freq) * exp(f64::from(log))) as f32;
        }
        (self.alpha, self.beta) = (alpha, beta);
        total
    }

    /// The score of the best path; of equal ones that whose last node is longest, and so on to the
    /// front.
    fn viterbi(&mut self) -> f32 {
        self.best.clear();
        self.best.resize(self.nodes.len(), 0.0);
        self.before.clear();
        self.before.resize(self.nodes.len(), BEGIN);
        for i in 1..self.nodes.len() {
            let node = self.nodes[i];
            let (mut best, mut before) = (0.0, NONE);
            for &left in self.ending_at(node.start as usize) {
                let score = self.best[left] + node.score;
                if before == NONE || score > best {
                    (best, before) = (score, left);
                }
            }
            (self.best[i], self.before[i]) = (best, before);
        }
        self.best[self.end()]
    }

    /// Calls `found` for the pieces of the best path, last to first.
    pub(super) fn best_path(&mut self, mut found: impl FnMut(u32)) {
        self.viterbi();
        let mut i = self.before[self.end()];
        while i != BEGIN {
            found(self.nodes[i].id);
            i = self.before[i];
        }
    }

    /// Whether the text, which is piece `id`, has a segmentation that scores better than itself.
    pub(super) fn is_shadowed(&mut self, id: u32) -> bool {
        let len = self.len() as u32;
        let first = self.starts[0]..self.starts[1];
        let whole = first.clone().find(|&i| self.nodes[i].id == id && self.nodes[i].end == len);
        let Some(whole) = whole else { return true };
        let score = core::mem::replace(&mut self.nodes[whole].score, f32::NEG_INFINITY);
        let other = self.viterbi();
        self.nodes[whole].score = score;
        other > score
    }

    /// The second best path, by the A* search of SentencePiece (Nagata 1994), which takes equal
    /// paths in the order that its heap has them in.
    pub(super) fn second(&mut self) -> Second {
        let whole = self.viterbi();
        let mut all = Vec::new();
        all.push(Hypothesis { node: self.end(), next: NONE, whole, sum: 0.0 });
        let mut agenda = Agenda::default();
        agenda.push(0, &all);
        let mut is_second = false;
        while let Some(top) = agenda.pop(&all) {
            let Hypothesis { node, mut next, sum, .. } = all[top];
            if node == BEGIN {
                let mut path = Vec::new();
                while all[next].next != NONE {
                    path.push(self.nodes[all[next].node].id);
                    next = all[next].next;
                }
                if is_second {
                    return Second::Path(path);
                }
                if path.len() > 1 {
                    return Second::First;
                }
                is_second = true;
                continue;
            }
            for &left in self.ending_at(self.nodes[node].start as usize) {
                all.push(Hypothesis {
                    node: left,
                    next: top,
                    whole: self.best[left] + sum,
                    sum: self.nodes[left].score + sum,
                });
                agenda.push(all.len() - 1, &all);
            }
            if all.len() > MAX_HYPOTHESES {
                break;
            }
        }
        Second::None
    }
}

/// A binary heap that orders equal scores as the one of GNU's C++ library does.
#[derive(Debug, Default)]
struct Agenda {
    heap: Vec<usize>,
}

impl Agenda {
    fn push(&mut self, item: usize, all: &[Hypothesis]) {
        self.heap.push(item);
        self.rise(self.heap.len() - 1, item, all);
    }

    /// Puts an item into a hole, or above it while it is greater than what is there.
    fn rise(&mut self, mut hole: usize, item: usize, all: &[Hypothesis]) {
        while hole > 0 {
            let parent = (hole - 1) / 2;
            if all[self.heap[parent]].whole >= all[item].whole {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = item;
    }

    fn pop(&mut self, all: &[Hypothesis]) -> Option<usize> {
        let last = self.heap.pop()?;
        let Some(&top) = self.heap.first() else { return Some(last) };
        // The hole sinks to the bottom by the greater child, the right one of equals; from there
        // the last item rises.
        let len = self.heap.len();
        let mut hole = 0;
        while 2 * hole + 1 < len {
            let (left, right) = (2 * hole + 1, 2 * hole + 2);
            let is_left = right >= len || all[self.heap[right]].whole < all[self.heap[left]].whole;
            let child = if is_left { left } else { right };
            self.heap[hole] = self.heap[child];
            hole = child;
        }
        self.rise(hole, last, all);
        Some(top)
    }
}

/// The logarithm of the sum of exponentials, added one after the other and rounded each time.
fn log_sum(terms: impl Iterator<Item = f32>) -> f32 {
    terms
        .reduce(|sum, term| {
            let (least, most) = if sum < term { (sum, term) } else { (term, sum) };
            if most > least + 50.0 {
                return most;
            }
            (f64::from(most) + ln_1p(exp(f64::from(least - most)))) as f32
        })
        .unwrap_or(0.0)
}

/// `ln(1 + x)` for x from 0 to 1, small ones included.
fn ln_1p(x: f64) -> f64 {
    let rounded = 1.0 + x;
    // The quotient takes back what rounding did to the sum (Goldberg 1991, theorem 4).
    if rounded == 1.0 { x } else { ln(rounded) * x / (rounded - 1.0) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(scored: &[(&str, f32)]) -> Scored {
        let mut pieces = Scored::default();
        for (piece, score) in scored {
            pieces.push(piece.as_bytes().to_vec(), *score);
        }
        pieces
    }

    /// The scores of all segmentations, best first, with the pieces of each.
    fn all(text: &str, pieces: &Scored) -> Vec<(f32, Vec<u32>)> {
        if text.is_empty() {
            return [(0.0, Vec::new())].into();
        }
        let mut paths = Vec::new();
        for (id, piece) in pieces.pieces.iter().enumerate() {
            let piece = core::str::from_utf8(piece).unwrap();
            let Some(rest) = text.strip_prefix(piece) else { continue };
            for (score, mut path) in all(rest, pieces) {
                path.insert(0, id as u32);
                paths.push((pieces.scores[id] + score, path));
            }
        }
        paths.sort_by(|a, b| b.0.total_cmp(&a.0));
        paths
    }

    proptest! {
        #[test]
        fn the_second_best_and_the_expected_are_those_of_all_segmentations(
            text in "[ab]{1,6}",
            // Whole numbers are exact in single precision, and make many equal paths.
            scores in prop::collection::vec(-9i8..0, 6),
        ) {
            let names = ["a", "b", "ab", "ba", "aab", &text];
            let known = names.iter().position(|name| *name == text).unwrap();
            let scores: Vec<f32> = scores.into_iter().map(f32::from).collect();
            let scored: Vec<(&str, f32)> =
                names.iter().copied().zip(scores).take(known.max(4) + 1).collect();
            let pieces = pieces(&scored);
            let paths = all(&text, &pieces);
            let mut lattice = Lattice::default();
            let model = pieces.model().unwrap();
            lattice.fill(text.as_bytes(), &model);
            let score = |path: &[u32]| path.iter().map(|&i| pieces.scores[i as usize]).sum::<f32>();
            let mut best = Vec::new();
            lattice.best_path(|id| best.insert(0, id));
            prop_assert_eq!(score(&best), paths[0].0);
            match lattice.second() {
                Second::None => prop_assert_eq!(paths.len(), 1),
                Second::First => prop_assert!(paths.iter().any(|p| p.0 == paths[0].0 && p.1.len() > 1)),
                Second::Path(path) => prop_assert_eq!(score(&path), paths[1].0),
            }
            let mut expected = [0.0; 6];
            let total = lattice.expect(3.0, &mut expected);
            let sum: f64 = paths.iter().map(|path| f64::from(path.0).exp()).sum();
            prop_assert!((f64::from(total) - sum.ln()).abs() < 1e-4);
            for (id, &expected) in expected.iter().enumerate() {
                let count = |path: &[u32]| path.iter().filter(|&&i| i as usize == id).count() as f64;
                let exact: f64 = paths.iter().map(|p| f64::from(p.0).exp() * count(&p.1)).sum();
                prop_assert!((f64::from(expected) - 3.0 * exact / sum).abs() < 1e-3);
            }
        }
    }

    #[test]
    fn unknown_characters_count_for_the_first_piece() {
        let pieces = pieces(&[("a", -1.0), ("b", -2.0)]);
        let mut lattice = Lattice::default();
        lattice.fill("bé".as_bytes(), &pieces.model().unwrap());
        let mut expected = [0.0; 2];
        assert_eq!(lattice.expect(2.0, &mut expected), -14.0);
        assert_eq!(expected, [2.0, 2.0]);
    }

    #[test]
    fn parts_that_score_better_shadow_a_piece() {
        let pieces = pieces(&[("a", -1.0), ("aa", -2.5), ("aaa", -3.0)]);
        let model = pieces.model().unwrap();
        let mut lattice = Lattice::default();
        let shadowed = [0, 1, 2].map(|id: u32| {
            lattice.fill(&pieces.pieces[id as usize], &model);
            lattice.is_shadowed(id)
        });
        // An equal score is not better.
        assert_eq!(shadowed, [false, true, false]);
    }

    #[test]
    fn long_runs_end_the_search_for_the_second_best() {
        let pieces = pieces(&[("a", -1.0), ("aa", -2.0), ("aaa", -3.0), ("aaaa", -4.0)]);
        let mut lattice = Lattice::default();
        lattice.fill(&[b'a'; 512], &pieces.model().unwrap());
        assert!(matches!(lattice.second(), Second::First | Second::None));
    }
}
