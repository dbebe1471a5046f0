use alloc::vec::Vec;

/// How often the piece of each place occurs, for pieces that lie one behind the other.
///
/// Neighbours that occur equally often are one run; pieces in order of their counts are few runs.
#[derive(Default)]
pub(crate) struct Weights {
    /// By run, the place behind it.
    ends: Vec<u32>,
    counts: Vec<u64>,
    /// By block of places, the run that its first place is in.
    first_runs: Vec<u32>,
}

/// Blocks have so many places.
const BLOCK: u32 = 256;

impl Weights {
    /// Gives the places up to `end` that have none yet this weight. Each call has a greater end.
    pub(crate) fn extend_to(&mut self, end: u32, count: u64) {
        if self.counts.last() == Some(&count) {
            *self.ends.last_mut().expect("a run has an end") = end;
        } else {
            self.ends.push(end);
            self.counts.push(count);
        }
        let run = self.ends.len() as u32 - 1;
        self.first_runs.resize(end.div_ceil(BLOCK) as usize, run);
    }

    /// The weight of a place.
    #[inline]
    pub(crate) fn at(&self, at: u32) -> u64 {
        let block = (at / BLOCK) as usize;
        let first = self.first_runs[block] as usize;
        let last = self.first_runs.get(block + 1).map_or(self.ends.len() - 1, |&run| run as usize);
        let run = match first == last {
            true => first,
            false => first + self.ends[first..last].partition_point(|&end| end <= at),
        };
        self.counts[run]
    }

    /// The runs in order: where each ends, and its weight.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.ends.iter().copied().zip(self.counts.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_the_weight_of_its_run() {
        let mut weights = Weights::default();
        let mut expected = Vec::new();
        let lens = [1u32, 2, 3, 255, 256, 257, 1, 1, 1, 2000, 5, 512, 4, 4, 4];
        for (i, len) in lens.into_iter().cycle().take(200).enumerate() {
            let count = [9, 7, 7, 1 << 40, 3][i % 5];
            expected.extend((0..len).map(|_| count));
            weights.extend_to(expected.len() as u32, count);
        }
        for (at, &count) in expected.iter().enumerate() {
            assert_eq!(weights.at(at as u32), count, "{at}");
        }
        let runs: Vec<(u32, u64)> = weights.iter().collect();
        assert!(runs.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1));
        assert_eq!(runs.last().map(|run| run.0 as usize), Some(expected.len()));
    }
}
