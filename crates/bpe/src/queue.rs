use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// A queue of places to merge at: lowest rank first, of equal ranks the leftmost.
///
/// Merges mostly make pairs that rank later than themselves. So ranks are cut into ranges, and what
/// ranks in a later range is only put aside; when its range is reached it is sorted and streamed. A
/// heap takes what comes up for the range at hand, and is small. One heap for all is as good for
/// short pieces (then there is one range), but on a piece of 2,000,000 letters it spends its time
/// waiting for memory.
#[derive(Clone, Default)]
pub(crate) struct Queue {
    /// What was known of the range at hand when it was reached, sorted; used up to `at`.
    sorted: Vec<u64>,
    at: usize,
    /// What came up since, and what ranks even lower.
    fresh: BinaryHeap<Reverse<u64>>,
    later: Vec<Vec<u64>>,
    range: usize,
    shift: u32,
}

/// The number of places to a range that is aimed at: 16 KiB, which stays in the nearest cache.
const PLACES_A_RANGE: usize = 2048;
const MOST_RANGES: usize = 1024;

/// `rank << 32 | place`, so that comparing numbers compares ranks and then places.
#[inline]
fn entry(rank: u32, place: u32) -> u64 {
    u64::from(rank) << 32 | u64::from(place)
}

impl Queue {
    /// Empties the queue and makes it ready for about `places` places with ranks up to `max_rank`.
    pub(crate) fn start(&mut self, places: usize, max_rank: u32) {
        let ranges = (places / PLACES_A_RANGE).clamp(1, MOST_RANGES).next_power_of_two();
        self.shift = (u32::BITS - max_rank.leading_zeros()).saturating_sub(ranges.trailing_zeros());
        self.later.resize_with(ranges, Vec::new);
        for range in &mut self.later {
            range.clear();
        }
        self.sorted.clear();
        self.fresh.clear();
        (self.at, self.range) = (0, 0);
    }

    /// Adds a place before the first [`pop`](Self::pop).
    #[inline]
    pub(crate) fn add(&mut self, rank: u32, place: u32) {
        match self.range_of(rank) {
            0 => self.sorted.push(entry(rank, place)),
            range => self.later[range].push(entry(rank, place)),
        }
    }

    /// To be called when all places to begin with were added.
    pub(crate) fn sort(&mut self) {
        self.sorted.sort_unstable();
    }

    /// Adds a place.
    #[inline]
    pub(crate) fn push(&mut self, rank: u32, place: u32) {
        let range = self.range_of(rank);
        if range > self.range {
            self.later[range].push(entry(rank, place));
        } else {
            self.fresh.push(Reverse(entry(rank, place)));
        }
    }

    /// Takes the first place and its rank.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u32, u32)> {
        loop {
            let known = self.sorted.get(self.at).copied();
            let fresh = self.fresh.peek().map(|&Reverse(entry)| entry);
            let entry = match (known, fresh) {
                (None, None) => {
                    self.next_range()?;
                    continue;
                }
                (Some(known), fresh) if fresh.is_none_or(|fresh| known <= fresh) => {
                    self.at += 1;
                    known
                }
                _ => self.fresh.pop()?.0,
            };
            return Some(((entry >> 32) as u32, entry as u32));
        }
    }

    fn next_range(&mut self) -> Option<()> {
        let later = &self.later[self.range + 1..];
        self.range += 1 + later.iter().position(|range| !range.is_empty())?;
        self.sorted.clear();
        core::mem::swap(&mut self.sorted, &mut self.later[self.range]);
        self.sorted.sort_unstable();
        self.at = 0;
        Some(())
    }

    #[inline]
    fn range_of(&self, rank: u32) -> usize {
        rank.checked_shr(self.shift).unwrap_or(0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_lowest_rank_and_of_equal_ranks_the_leftmost() {
        for places in [1, 3000, 5000, 1 << 23] {
            for max_rank in [0, 1, 999, u32::MAX - 1] {
                let mut queue = Queue::default();
                queue.start(places, max_rank);
                let mut expected = Vec::new();
                let mut state = 7u32;
                let mut draw = || {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let rank = ((u64::from(state) * (u64::from(max_rank) + 1)) >> 32) as u32;
                    (rank, state % 100)
                };
                for _ in 0..500 {
                    let (rank, place) = draw();
                    queue.add(rank, place);
                    expected.push((rank, place));
                }
                queue.sort();
                for i in 0..1000 {
                    let lowest = (0..expected.len()).min_by_key(|&i| expected[i]);
                    assert_eq!(queue.pop(), lowest.map(|i| expected.swap_remove(i)));
                    if i % 3 == 0 {
                        let (rank, place) = draw();
                        queue.push(rank, place);
                        expected.push((rank, place));
                    }
                }
            }
        }
    }
}
