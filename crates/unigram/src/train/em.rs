//! The E-step: how often each piece is expected over all segmentations of the text; and the best
//! segmentation alone.

use alloc::vec;
use alloc::vec::Vec;

use tokenizer_core::{Observe, utf8};

use super::corpus::Corpus;
use super::error::TrainError;
use super::lattice::{Edge, GONE, Lattices, Packing};
use super::pieces::Pieces;
use super::workers::Workers;
use super::{Round, stop_if};
use crate::math::{LogSum, exp, ln, power_of_two};
use crate::trie::DoubleArray;

/// What the E-step found.
pub(super) struct Expected {
    /// By piece.
    pub(super) counts: Vec<f64>,
    /// Of the text, a character.
    pub(super) log_likelihood: f64,
}

/// Passes over the corpus.
pub(super) struct Em<'c> {
    corpus: &'c Corpus,
    lattices: Lattices,
    pub(super) workers: &'c Workers,
    /// The length in characters of the longest piece that there was.
    longest: usize,
}

/// How many parts a pass is reported in.
const REPORTS: usize = 8;

impl<'c> Em<'c> {
    pub(super) fn new(
        pieces: &Pieces,
        longest: usize,
        corpus: &'c Corpus,
        workers: &'c Workers,
    ) -> Result<Self, TrainError> {
        let lattices = Lattices::new(&pieces.trie()?, longest, corpus, workers);
        Ok(Self { corpus, lattices, workers, longest })
    }

    /// Drops pieces from all lattices: `is_kept` says which stay, under the next numbers.
    pub(super) fn retain(&mut self, is_kept: &[bool]) {
        let mut next = 0;
        let renumber = |&is_kept: &bool| {
            let number = if is_kept { next } else { GONE };
            next += u32::from(is_kept);
            number
        };
        let renumbered: Vec<u32> = is_kept.iter().map(renumber).collect();
        self.lattices.retain(&renumbered, self.workers);
    }

    /// The E-step.
    pub(super) fn expect(
        &mut self,
        pieces: &Pieces,
        observe: &mut dyn Observe<Round>,
    ) -> Result<Expected, TrainError> {
        let probs = pieces.probs();
        let least = probs.iter().copied().filter(|&p| p > 0.0).fold(1.0, f64::min);
        // Within the longest piece the probabilities of paths may differ by so many bits; beyond
        // what a double holds, sum logarithms instead.
        let is_narrow = -ln(least) * core::f64::consts::LOG2_E * self.longest as f64 <= 900.0
            // Fixed scores can be anything: so low that no probability says it, or above 0.
            && (0..probs.len()).all(|i| probs[i] <= 2.0 && (probs[i] > 0.0 || !pieces.is_alive(i)));
        // The sum of all expected counts is at most the number of characters.
        let scale = Scale::for_sum(self.corpus.chars);
        let mut states: Vec<Sums> =
            (0..self.workers.threads()).map(|_| Sums::new(pieces.len())).collect();
        let reader = Reader { packing: self.lattices.packing, longest: self.longest };
        self.pass("expectation", &mut states, observe, |sums, edges, chars, count| {
            if is_narrow {
                sums.add_scaled(reader, probs, edges, chars, count, scale)
            } else {
                sums.add_logarithmic(reader, pieces.scores(), edges, chars, count, scale)
            }
        })?;
        let mut states = states.into_iter();
        let mut sums = states.next().expect("there is at least one thread");
        for other in states {
            for (sum, other) in sums.counts.iter_mut().zip(other.counts) {
                *sum = sum.saturating_add(other);
            }
            sums.log_likelihood += other.log_likelihood;
        }
        let chars = (self.corpus.chars as f64).max(1.0);
        Ok(Expected {
            counts: sums.counts.into_iter().map(|sum| scale.back(sum)).collect(),
            log_likelihood: sums.log_likelihood as f64 / LIKELIHOOD_SCALE / chars,
        })
    }

    /// How often each piece is used in the best segmentation.
    pub(super) fn best_counts(
        &mut self,
        pieces: &Pieces,
        observe: &mut dyn Observe<Round>,
    ) -> Result<Vec<u64>, TrainError> {
        let scores = pieces.scores();
        let mut states: Vec<BestCounts> = (0..self.workers.threads())
            .map(|_| BestCounts { counts: vec![0; pieces.len()], best: Vec::new() })
            .collect();
        let packing = self.lattices.packing;
        self.pass("segmentation", &mut states, observe, |state, edges, chars, count| {
            state.add(packing, scores, edges, chars, count)
        })?;
        let mut states = states.into_iter();
        let mut counts = states.next().expect("there is at least one thread").counts;
        for state in states {
            for (sum, other) in counts.iter_mut().zip(state.counts) {
                *sum = sum.saturating_add(other);
            }
        }
        Ok(counts)
    }

    /// Calls `work` with the lattice of every unit, as a slice of edges that begins with those of
    /// the unit, with its length in characters and its count; `work` says how many edges it had.
    fn pass<S: Send>(
        &self,
        phase: &'static str,
        states: &mut [S],
        observe: &mut dyn Observe<Round>,
        work: impl Fn(&mut S, &[Edge], usize, u64) -> usize + Sync,
    ) -> Result<(), TrainError> {
        let Lattices { runs, edges, .. } = &self.lattices;
        let count = runs.len() - 1;
        for report in 0..REPORTS {
            stop_if(observe.progress(phase, report as u64, REPORTS as u64))?;
            let range = count * report / REPORTS..count * (report + 1) / REPORTS;
            self.workers.run(states, range, 1, |state, range| {
                for run in range {
                    let mut edges = &edges[run][..];
                    for i in runs[run]..runs[run + 1] {
                        let (chars, count) = self.corpus.chars_of(i);
                        edges = &edges[work(state, edges, chars, count)..];
                    }
                }
            });
        }
        stop_if(observe.progress(phase, REPORTS as u64, REPORTS as u64))
    }
}

/// Fixed-point numbers: sums of integers are the same in any order, so that no result depends on
/// how the work was shared out.
#[derive(Clone, Copy)]
struct Scale {
    up: f64,
    down: f64,
}

/// Of the sum of log-likelihoods: 30 bits behind the point.
const LIKELIHOOD_SCALE: f64 = (1u64 << 30) as f64;

impl Scale {
    /// As many bits behind the point as leave room for sums up to `most` before it.
    fn for_sum(most: u64) -> Self {
        let bits = i64::from(most.leading_zeros()).min(50) - 1;
        Self { up: power_of_two(bits), down: power_of_two(-bits) }
    }

    #[inline]
    fn fixed(self, x: f64) -> u64 {
        // The cast takes what is not finite to the nearest end of the range.
        (x * self.up + 0.5) as u64
    }

    fn back(self, sum: u64) -> f64 {
        sum as f64 * self.down
    }
}

/// A thread's sums of the E-step, and its scratch memory.
struct Sums {
    counts: Vec<u64>,
    log_likelihood: i128,
    /// By character: the summed probability of all ways to it (`forward`) and from it.
    forward: Vec<f64>,
    backward: Vec<f64>,
    /// Where `forward` was scaled up.
    scaled_at: Vec<u32>,
}

/// How edges are read.
#[derive(Clone, Copy)]
struct Reader {
    packing: Packing,
    longest: usize,
}

/// Sums below this are scaled up, by its inverse.
const SMALL: f64 = 1.0 / SCALE_UP;
const SCALE_UP: f64 = 3.273_390_607_896_142e150; // 2^500

impl Sums {
    fn new(pieces: usize) -> Self {
        Self {
            counts: vec![0; pieces],
            log_likelihood: 0,
            forward: Vec::new(),
            backward: Vec::new(),
            scaled_at: Vec::new(),
        }
    }

    /// Forward-backward on probabilities. Where sums get small, all that lies ahead within reach of
    /// a piece is scaled up; how often is remembered.
    fn add_scaled(
        &mut self,
        reader: Reader,
        probs: &[f64],
        edges: &[Edge],
        n: usize,
        count: u64,
        scale: Scale,
    ) -> usize {
        let Reader { packing, longest } = reader;
        self.scaled_at.clear();
        self.forward.clear();
        self.forward.resize(n + 1, 0.0);
        self.forward[0] = 1.0;
        let (mut start, mut here, mut used) = (0, 1.0, 0);
        for &edge in edges {
            used += 1;
            self.forward[start + packing.len(edge)] += here * probs[packing.piece(edge)];
            if edge.is_last() {
                start += 1;
                here = self.forward[start];
                if start == n {
                    break;
                }
                if here < SMALL {
                    scale_up(&mut self.forward[start..=(start + longest).min(n)]);
                    self.scaled_at.push(start as u32);
                    here = self.forward[start];
                }
            }
        }
        let total = self.forward[n];
        if total <= 0.0 {
            // Every character of the corpus has a piece: there is always a way.
            debug_assert!(false, "a unit has no segmentation");
            return used;
        }
        let weight = count as f64;
        let scalings = self.scaled_at.len() as i64;
        let log_total = ln(total) - scalings as f64 * ln(SCALE_UP);
        self.log_likelihood += (weight * log_total * LIKELIHOOD_SCALE) as i128;

        self.backward.clear();
        self.backward.resize(n + 1, 0.0);
        self.backward[n] = 1.0;
        let per_total = weight / total;
        // How often the product of forward and backward sums is scaled up more than the total.
        let mut excess = 0i64;
        let mut end_edge = used;
        for start in (0..n).rev() {
            let first_edge =
                edges[..end_edge - 1].iter().rposition(|edge| edge.is_last()).map_or(0, |i| i + 1);
            // The sums ahead of a scaling do not have it, those behind it do.
            let forward = self.forward[start];
            let factor = match excess {
                0 => forward * per_total,
                // Kept finite, so that nothing times nothing is nothing.
                _ => (forward * per_total * power_of_two((-500 * excess).clamp(-1000, 1000)))
                    .min(f64::MAX),
            };
            let mut sum = 0.0;
            for &edge in &edges[first_edge..end_edge] {
                let piece = packing.piece(edge);
                let behind = probs[piece] * self.backward[start + packing.len(edge)];
                sum += behind;
                // No piece is expected more often than its unit occurs.
                let expected = (factor * behind).min(weight);
                self.counts[piece] += scale.fixed(expected);
            }
            end_edge = first_edge;
            self.backward[start] = sum;
            if self.scaled_at.last() == Some(&(start as u32)) {
                self.scaled_at.pop();
                excess -= 1;
            }
            if sum < SMALL {
                scale_up(&mut self.backward[start..=(start + longest).min(n)]);
                excess += 1;
            }
        }
        used
    }

    /// Forward-backward on logarithms: slower, for any range of numbers.
    fn add_logarithmic(
        &mut self,
        reader: Reader,
        scores: &[f64],
        edges: &[Edge],
        n: usize,
        count: u64,
        scale: Scale,
    ) -> usize {
        let packing = reader.packing;
        let mut forward = vec![LogSum::EMPTY; n + 1];
        forward[0].add(0.0);
        let (mut start, mut used) = (0, 0);
        let mut starts = vec![0];
        while start < n {
            let here = forward[start].value();
            let edge = edges[used];
            used += 1;
            forward[start + packing.len(edge)].add(here + scores[packing.piece(edge)]);
            if edge.is_last() {
                start += 1;
                starts.push(used);
            }
        }
        let total = forward[n].value();
        let weight = count as f64;
        self.log_likelihood += (weight * total * LIKELIHOOD_SCALE) as i128;
        let mut backward = vec![f64::NEG_INFINITY; n + 1];
        backward[n] = 0.0;
        for start in (0..n).rev() {
            let here = forward[start].value() - total;
            let mut sum = LogSum::EMPTY;
            for &edge in &edges[starts[start]..starts[start + 1]] {
                let piece = packing.piece(edge);
                let behind = scores[piece] + backward[start + packing.len(edge)];
                sum.add(behind);
                let expected = (weight * exp(here + behind)).min(weight);
                self.counts[piece] += scale.fixed(expected);
            }
            backward[start] = sum.value();
        }
        used
    }
}

#[cold]
fn scale_up(sums: &mut [f64]) {
    for sum in sums {
        *sum *= SCALE_UP;
    }
}

/// A thread's counts of the best segmentations.
struct BestCounts {
    counts: Vec<u64>,
    /// By character: the best score of a way to it, and the last edge on it.
    best: Vec<(f64, Edge)>,
}

impl BestCounts {
    /// Ties go to the piece that begins earlier.
    fn add(
        &mut self,
        packing: Packing,
        scores: &[f64],
        edges: &[Edge],
        n: usize,
        count: u64,
    ) -> usize {
        let Some(&none) = edges.first() else { return 0 };
        self.best.clear();
        self.best.resize(n + 1, (f64::NEG_INFINITY, none));
        self.best[0].0 = 0.0;
        let (mut start, mut here, mut used) = (0, 0.0, 0);
        for &edge in edges {
            used += 1;
            let score = here + scores[packing.piece(edge)];
            let end = &mut self.best[start + packing.len(edge)];
            if score > end.0 {
                *end = (score, edge);
            }
            if edge.is_last() {
                start += 1;
                here = self.best[start].0;
                if start == n {
                    break;
                }
            }
        }
        let mut end = n;
        while end > 0 && self.best[end].0 > f64::NEG_INFINITY {
            let edge = self.best[end].1;
            let sum = &mut self.counts[packing.piece(edge)];
            *sum = sum.saturating_add(count);
            end -= packing.len(edge);
        }
        used
    }
}

/// The best segmentation of short texts. Reused.
#[derive(Default)]
pub(super) struct BestPath {
    /// Its pieces, the last one first.
    pub(super) pieces: Vec<u32>,
    /// Its score; negative infinity if there is none.
    pub(super) score: f64,
    /// By byte offset: the best score of a way to it, and its last piece and start.
    best: Vec<(f64, u32, u32)>,
}

impl BestPath {
    /// Finds the best segmentation of `text`, `without` one piece if there is one. Ties go to the
    /// piece that begins earlier.
    pub(super) fn find(
        &mut self,
        trie: &DoubleArray,
        scores: &[f64],
        text: &[u8],
        without: Option<u32>,
    ) {
        self.best.clear();
        self.best.resize(text.len() + 1, (f64::NEG_INFINITY, 0, 0));
        self.best[0].0 = 0.0;
        let mut start = 0;
        while start < text.len() {
            let here = self.best[start].0;
            let ahead = &mut self.best[start..];
            trie.prefixes(&text[start..], |len, piece| {
                let score = here + scores[piece as usize];
                if score > ahead[len].0 && Some(piece) != without {
                    ahead[len] = (score, piece, start as u32);
                }
            });
            start += utf8::char_len(&text[start..]);
        }
        self.pieces.clear();
        self.score = self.best[text.len()].0;
        if self.score == f64::NEG_INFINITY {
            return;
        }
        let mut end = text.len();
        while end > 0 {
            let (_, piece, start) = self.best[end];
            self.pieces.push(piece);
            end = start as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizer_core::{PieceCounts, Silent};

    use super::*;
    use crate::train::{Report, UnigramTrainer};

    fn corpus(words: &[(alloc::string::String, u64)]) -> Corpus {
        let mut trainer = UnigramTrainer::new(1000);
        trainer.special_tokens.clear();
        trainer.coverage = 1.0;
        let counts = PieceCounts::from_pairs(words.iter().cloned()).unwrap();
        Corpus::new(&trainer, &counts, &mut Silent, &mut Report::default()).unwrap()
    }

    /// Expected counts by enumerating all segmentations.
    fn enumerated(pieces: &Pieces, corpus: &Corpus) -> (Vec<f64>, f64) {
        fn paths(pieces: &Pieces, text: &[u8], path: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
            if text.is_empty() {
                return found.push(path.clone());
            }
            for i in 0..pieces.len() {
                if pieces.is_alive(i) && text.starts_with(pieces.bytes(i)) {
                    path.push(i);
                    paths(pieces, &text[pieces.bytes(i).len()..], path, found);
                    path.pop();
                }
            }
        }
        let mut counts = vec![0.0; pieces.len()];
        let mut log_likelihood = 0.0;
        for u in 0..corpus.len() {
            let (unit, count) = corpus.unit(u);
            let mut found = Vec::new();
            paths(pieces, unit, &mut Vec::new(), &mut found);
            let prob = |path: &Vec<usize>| path.iter().map(|&i| pieces.probs()[i]).product::<f64>();
            let total: f64 = found.iter().map(prob).sum();
            log_likelihood += count as f64 * total.ln();
            for path in &found {
                for &i in path {
                    counts[i] += count as f64 * prob(path) / total;
                }
            }
        }
        (counts, log_likelihood / (corpus.chars as f64).max(1.0))
    }

    fn both_ways(pieces: &Pieces, corpus: &Corpus) -> [(Vec<f64>, f64); 2] {
        let workers = Workers::new(1);
        let em = Em::new(pieces, pieces.longest(), corpus, &workers).unwrap();
        let scale = Scale::for_sum(corpus.chars);
        let reader = Reader { packing: em.lattices.packing, longest: em.longest };
        [true, false].map(|scaled| {
            let mut states = [Sums::new(pieces.len())];
            em.pass("", &mut states, &mut Silent, |sums, edges, chars, count| match scaled {
                true => sums.add_scaled(reader, pieces.probs(), edges, chars, count, scale),
                false => sums.add_logarithmic(reader, pieces.scores(), edges, chars, count, scale),
            })
            .unwrap();
            let [sums] = states;
            let chars = (corpus.chars as f64).max(1.0);
            (
                sums.counts.iter().map(|&sum| scale.back(sum)).collect(),
                sums.log_likelihood as f64 / LIKELIHOOD_SCALE / chars,
            )
        })
    }

    fn close(a: &(Vec<f64>, f64), b: &(Vec<f64>, f64)) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-7 * (1.0 + a.abs().max(b.abs()));
        near(a.1, b.1) && a.0.iter().zip(&b.0).all(|(&a, &b)| near(a, b))
    }

    proptest! {
        #[test]
        fn expectation_equals_enumeration(
            words in prop::collection::vec(("[abé]{1,8}", 1u64..50), 1..6),
            extra in prop::collection::btree_map("[abé]{2,4}", 1u64..1000, 0..12),
        ) {
            let corpus = corpus(&words);
            let mut weights: alloc::collections::BTreeMap<_, u64> = extra;
            weights.extend(["a", "b", "é"].map(|c| (c.into(), 7)));
            let pieces = Pieces::from_weights(
                weights.iter().map(|(p, &w)| (p.as_bytes(), w)), |p| utf8::char_len(p) == p.len());
            let expected = enumerated(&pieces, &corpus);
            for found in both_ways(&pieces, &corpus) {
                prop_assert!(close(&found, &expected), "{found:?} {expected:?}");
            }
        }

        #[test]
        fn scaling_changes_nothing_where_probabilities_underflow(
            seed in 0u64..1000, length in 1usize..2000, spread in 1i32..60,
        ) {
            let mut rng = tokenizer_core::Rng::new(seed);
            let word: alloc::string::String =
                (0..length).map(|_| ['a', 'b', 'c'][rng.below(3) as usize]).collect();
            let corpus = corpus(&[(word, 3), ("abc".into(), 2)]);
            let keys = ["a", "ab", "abca", "b", "bbbbbbbb", "bc", "c", "cab"];
            // Probabilities from 1 down to 2^-59.
            let pieces = Pieces::from_weights(
                keys.iter().map(|k| (k.as_bytes(), 1u64 << rng.below(spread as u64))),
                |p| p.len() == 1);
            let [scaled, logarithmic] = both_ways(&pieces, &corpus);
            prop_assert!(close(&scaled, &logarithmic));
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let words: Vec<_> =
            (0..3000).map(|i| (alloc::format!("{:b}", i * 7919), 1 + i % 13)).collect();
        let corpus = corpus(&words);
        let weights = ["0", "00", "01", "1", "10", "101", "11", "110"].map(|p| (p.as_bytes(), 5));
        let pieces = Pieces::from_weights(weights.into_iter(), |p| p.len() == 1);
        let results = [1, 2, 3, 8].map(|threads| {
            let workers = Workers::new(threads);
            let mut em = Em::new(&pieces, pieces.longest(), &corpus, &workers).unwrap();
            let expected = em.expect(&pieces, &mut Silent).unwrap();
            (
                expected.counts,
                expected.log_likelihood,
                em.best_counts(&pieces, &mut Silent).unwrap(),
            )
        });
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
