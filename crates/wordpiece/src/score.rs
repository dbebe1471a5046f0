//! Exact comparison of scores.

use core::cmp::Ordering;

/// A candidate merge in the order in which merges are made: the greatest is made first.
///
/// The score is `count / denominator`. Under the PMI criterion the denominator is the product of
/// the counts of the parts, under the frequency criterion it is 1.
///
/// The order is total on pairs: higher score, then higher count, then lower left id, then lower
/// right id. Scores are compared by cross-multiplication in 192 bits, so no count rounds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) denominator: u128,
    pub(crate) count: u64,
    pub(crate) left: u32,
    pub(crate) right: u32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_ratios(self.count, self.denominator, other.count, other.denominator)
            .then_with(|| self.count.cmp(&other.count))
            .then_with(|| other.left.cmp(&self.left))
            .then_with(|| other.right.cmp(&self.right))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `a / b` against `c / d`, exactly; the denominators are positive.
fn compare_ratios(a: u64, b: u128, c: u64, d: u128) -> Ordering {
    multiply(a, d).cmp(&multiply(c, b))
}

/// The product in 192 bits: the high 64 and the low 128.
fn multiply(a: u64, b: u128) -> (u64, u128) {
    let low = u128::from(a) * u128::from(b as u64);
    let high = u128::from(a) * (b >> 64);
    let (sum, carry) = low.overflowing_add(high << 64);
    ((high >> 64) as u64 + u64::from(carry), sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(count: u64, left_count: u64, right_count: u64) -> Candidate {
        let denominator = u128::from(left_count) * u128::from(right_count);
        Candidate { denominator, count, left: 0, right: 0 }
    }

    #[test]
    fn multiply_carries_into_the_high_word() {
        assert_eq!(
            multiply(u64::MAX, u128::MAX),
            (u64::MAX - 1, u128::MAX - u128::from(u64::MAX) + 1)
        );
        assert_eq!(multiply(1 << 63, 1 << 127), (1 << 62, 0));
        assert_eq!(multiply(3, 1 << 127), (1, 1 << 127));
        assert_eq!(multiply(0, u128::MAX), (0, 0));
    }

    #[test]
    fn huge_counts_that_a_float_cannot_tell_apart_are_told_apart() {
        let big = 1u64 << 62;
        // (big - 1) / big^2 < big / big^2, though both round to the same f64.
        assert!(candidate(big - 1, big, big) < candidate(big, big, big));
        assert_eq!((big - 1) as f64 / big as f64, 1.0);
        // Equal ratios: the count decides.
        assert!(candidate(2, 2, 2) > candidate(1, 1, 2));
    }

    #[test]
    fn ties_fall_to_the_count_then_to_the_lower_ids() {
        let at = |left, right| Candidate { left, right, ..candidate(6, 6, 6) };
        assert!(at(1, 9) > at(2, 0));
        assert!(at(1, 2) > at(1, 3));
        // 1/20 beats 1/36.
        assert!(candidate(5, 20, 5) > candidate(20, 36, 20));
        // The tutorial's "tie" is none: 5 / (15 * 5) against 10 / (15 * 15).
        assert!(candidate(5, 15, 5) > candidate(10, 15, 15));
    }
}
