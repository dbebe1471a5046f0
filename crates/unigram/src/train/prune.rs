//! Pruning: which pieces the likelihood misses least.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::em::BestPath;
use super::pieces::Pieces;
use super::workers::Workers;
use crate::math::ln;
use crate::trie::DoubleArray;

/// Which pieces to keep: the `size` best, and at least `least` of them if there are so many alive.
pub(super) fn choose(worth: &[Worth], size: usize, least: usize) -> Vec<bool> {
    let mut is_kept: Vec<bool> = worth.iter().map(|worth| *worth == Worth::Required).collect();
    let mut order: Vec<usize> =
        (0..worth.len()).filter(|&i| worth[i] > Worth::Useless(f64::NEG_INFINITY)).collect();
    order.retain(|&i| !is_kept[i]);
    // Stable: equally good pieces stay in order of their bytes.
    order.sort_by(|&a, &b| worth[b].total_cmp(&worth[a]));
    let mut kept = is_kept.iter().filter(|&&kept| kept).count();
    for i in order {
        let wanted = if matches!(worth[i], Worth::Loss(_)) { size } else { least };
        if kept < wanted {
            is_kept[i] = true;
            kept += 1;
        }
    }
    is_kept
}

/// What a piece is worth.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum Worth {
    /// Never used; the score says what it would be worth if it were.
    Useless(f64),
    /// What the log-likelihood of the text would lose.
    Loss(f64),
    /// A character of the alphabet.
    Required,
}

impl Worth {
    fn total_cmp(&self, other: &Self) -> Ordering {
        self.partial_cmp(other).expect("losses and scores are numbers")
    }
}

/// A piece is worth what the likelihood would lose without it, if every use of it in the best
/// segmentation became its own best segmentation into other pieces (`used` is how often that is).
/// A piece that is not used, or that its own parts beat, is not worth keeping; the required
/// characters are kept in any case.
///
/// Where a model is extended the parts keep their scores, most of them for good: the loss is the
/// difference of the scores.
pub(super) fn worths(
    trie: &DoubleArray,
    workers: &Workers,
    pieces: &Pieces,
    used: &[u64],
) -> Vec<Worth> {
    let total: f64 = used.iter().map(|&count| count as f64).sum();
    let log_total = ln(total.max(1.0));
    let is_extended = pieces.fixed() > 0;
    let worth = |path: &mut BestPath, i: usize| {
        if pieces.is_required(i) {
            return Worth::Required;
        }
        let score = pieces.score(i);
        if used[i] == 0 || !pieces.is_alive(i) {
            return Worth::Useless(score);
        }
        path.find(trie, pieces.scores(), pieces.bytes(i), Some(i as u32));
        if path.score > score {
            return Worth::Useless(score);
        }
        let count = used[i] as f64;
        if is_extended {
            return Worth::Loss(count * (score - path.score));
        }
        let log_prob = ln(count) - log_total;
        let log_total_without = ln(total + count * (path.pieces.len() as f64 - 1.0));
        let log_prob_without: f64 = path
            .pieces
            .iter()
            .map(|&part| ln(used[part as usize] as f64 + count) - log_total_without)
            .sum();
        Worth::Loss(count * (log_prob - log_prob_without))
    };
    let mut worths = vec![Worth::Required; pieces.len()];
    let mut states: Vec<(BestPath, Vec<(usize, Worth)>)> =
        (0..workers.threads()).map(|_| Default::default()).collect();
    workers.run(&mut states, 0..pieces.len(), 4096, |(path, found), range| {
        found.extend(range.map(|i| (i, worth(path, i))));
    });
    for (i, worth) in states.into_iter().flat_map(|state| state.1) {
        worths[i] = worth;
    }
    worths
}
