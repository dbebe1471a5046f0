//! The statistics of the comparison: bootstrap intervals, Rényi entropy, Gini coefficient,
//! quantiles.

use serde::{Deserialize, Serialize};
use tokenizer_core::Rng;

/// A number with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value on the documents as they are.
    pub value: f64,
    /// The 2.5 % and 97.5 % percentiles of the bootstrap, where there are enough documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Estimate {
    /// A value without an interval.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { value, interval: None }
    }

    /// The estimate of `factor` times the number; the factor is not negative.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let interval = self.interval.map(|ends| ends.map(|end| end * factor));
        Self { value: self.value * factor, interval }
    }

    /// Whether the interval excludes zero: for differences, whether they are told apart.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        self.interval.is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    }
}

/// Paired bootstrap over documents (Efron and Tibshirani 1993, chapter 13: percentile intervals;
/// Koehn 2004 for pairing in language technology).
///
/// A resample draws as many documents as there are, with replacement. Every call with the same
/// number of documents sees the same resamples, in the same order: that is what pairs
/// contestants. A ratio is resampled as a ratio of sums (numerators and denominators of the drawn
/// documents added up), never as a mean of the documents' ratios, so that long documents weigh
/// what they weigh in the value itself.
///
/// `O(resamples x documents)` time, no memory that grows with it but one number a resample.
#[derive(Clone, Copy, Debug)]
pub struct Bootstrap {
    /// The number of resamples; 0 switches intervals off.
    pub resamples: usize,
    /// The seed of the resamples.
    pub seed: u64,
}

/// Fewer documents than this give no interval: the bootstrap would only repeat them.
const MIN_DOCUMENTS: usize = 5;

impl Bootstrap {
    /// The ratio of sums of `parts` (numerator and denominator of each document) and its interval.
    /// `None` where the denominators add up to zero.
    #[must_use]
    pub fn ratio(&self, parts: &[(f64, f64)]) -> Option<Estimate> {
        let mut table = Table::new(2);
        parts.iter().for_each(|&(above, below)| table.push(&[above, below]));
        self.ratios(&table, &[(0, 1)], &[]).ratios[0]
    }

    /// The difference between the ratios of two contestants on the same documents, `a` minus `b`.
    ///
    /// # Panics
    ///
    /// If the two have different numbers of documents.
    #[must_use]
    pub fn ratio_difference(&self, a: &[(f64, f64)], b: &[(f64, f64)]) -> Option<Estimate> {
        assert_eq!(a.len(), b.len(), "a paired difference needs the same documents on both sides");
        let mut table = Table::new(4);
        a.iter().zip(b).for_each(|(a, b)| table.push(&[a.0, a.1, b.0, b.1]));
        self.ratios(&table, &[(0, 1), (2, 3)], &[(0, 1)]).differences[0]
    }

    /// Any number of ratios of column sums, and of differences between those ratios, from the same
    /// resamples in one go.
    ///
    /// `ratios` are pairs of columns, above and below the line; `differences` are pairs of indices
    /// into `ratios`. What is not defined (nothing below the line) is `None`; resamples where it is
    /// not are left out, and if they are more than one in ten there is no interval.
    ///
    /// `O(resamples x documents x columns)`.
    ///
    /// # Panics
    ///
    /// If a column or ratio does not exist.
    #[must_use]
    pub fn ratios(
        &self,
        table: &Table,
        ratios: &[(usize, usize)],
        differences: &[(usize, usize)],
    ) -> Ratios {
        let columns = table.columns;
        let n = table.len();
        let divide = |sums: &[f64], (above, below): (usize, usize)| {
            (sums[below] > 0.0).then(|| sums[above] / sums[below])
        };
        let mut sums = vec![0.0; columns];
        let add = |sums: &mut [f64], row: &[f64]| {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        };
        table.values.chunks_exact(columns).for_each(|row| add(&mut sums, row));
        let of_all: Vec<Option<f64>> = ratios.iter().map(|&pair| divide(&sums, pair)).collect();
        let mut spread = vec![Vec::new(); ratios.len()];
        let mut difference_spread = vec![Vec::new(); differences.len()];
        if n >= MIN_DOCUMENTS {
            let mut rng = Rng::new(self.seed);
            let mut drawn = vec![None; ratios.len()];
            for _ in 0..self.resamples {
                sums.fill(0.0);
                for _ in 0..n {
                    let at = rng.below(n as u64) as usize * columns;
                    add(&mut sums, &table.values[at..at + columns]);
                }
                for ((value, &pair), spread) in drawn.iter_mut().zip(ratios).zip(&mut spread) {
                    *value = divide(&sums, pair);
                    spread.extend(*value);
                }
                for (&(a, b), spread) in differences.iter().zip(&mut difference_spread) {
                    spread.extend(drawn[a].zip(drawn[b]).map(|(a, b): (f64, f64)| a - b));
                }
            }
        }
        let estimate = |value: Option<f64>, spread: &mut Vec<f64>| {
            value.map(|value| Estimate { value, interval: self.interval(spread) })
        };
        Ratios {
            ratios: of_all.iter().zip(&mut spread).map(|(&v, s)| estimate(v, s)).collect(),
            differences: differences
                .iter()
                .zip(&mut difference_spread)
                .map(|(&(a, b), s)| estimate(of_all[a].zip(of_all[b]).map(|(a, b)| a - b), s))
                .collect(),
        }
    }

    /// The percentile interval of the values of all resamples.
    fn interval(&self, values: &mut [f64]) -> Option<[f64; 2]> {
        let enough = !values.is_empty() && values.len() * 10 >= self.resamples * 9;
        values.sort_by(f64::total_cmp);
        enough.then(|| [percentile(values, 0.025), percentile(values, 0.975)])
    }

    /// Any statistic of `n` weighted documents. It is called with weight 1 for each document
    /// first, then with the multiplicities of each resample. Resamples where it is not defined are
    /// left out; if they are more than one in ten there is no interval.
    pub fn statistic(
        &self,
        n: usize,
        mut statistic: impl FnMut(&[f64]) -> Option<f64>,
    ) -> Option<Estimate> {
        let mut weights = vec![1.0; n];
        let value = statistic(&weights)?;
        if n < MIN_DOCUMENTS || self.resamples == 0 {
            return Some(Estimate::exact(value));
        }
        let mut rng = Rng::new(self.seed);
        let mut values = Vec::with_capacity(self.resamples);
        for _ in 0..self.resamples {
            weights.fill(0.0);
            for _ in 0..n {
                weights[rng.below(n as u64) as usize] += 1.0;
            }
            values.extend(statistic(&weights));
        }
        Some(Estimate { value, interval: self.interval(&mut values) })
    }
}

/// Numbers of documents: a row each, the same columns in every row.
#[derive(Clone, Debug)]
pub struct Table {
    columns: usize,
    values: Vec<f64>,
}

impl Table {
    /// A table without rows.
    ///
    /// # Panics
    ///
    /// If there is no column.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        assert!(columns > 0, "a table needs a column");
        Self { columns, values: Vec::new() }
    }

    /// Adds the row of a document.
    ///
    /// # Panics
    ///
    /// If it has another number of columns.
    pub fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.columns, "every row has the same columns");
        self.values.extend_from_slice(row);
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// What [`Bootstrap::ratios`] gives, in the order of what was asked.
#[derive(Clone, Debug)]
pub struct Ratios {
    /// The ratios.
    pub ratios: Vec<Option<Estimate>>,
    /// The differences.
    pub differences: Vec<Option<Estimate>>,
}

/// The `q` quantile of sorted values, by linear interpolation between the two nearest.
///
/// # Panics
///
/// If there is no value.
#[must_use]
pub fn percentile(sorted: &[f64], q: f64) -> f64 {
    assert!(!sorted.is_empty(), "a percentile needs at least one value");
    let at = q * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

/// The median of values in any order; `None` if there is none.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| percentile(&values, 0.5))
}

/// The Rényi entropy of order `alpha` of the distribution of `counts`, in nats:
/// `log(Σ p^α) / (1 - α)`; at `alpha` = 1 its limit, the Shannon entropy `-Σ p log p`.
/// 0 if nothing was counted.
#[must_use]
pub fn renyi_entropy(counts: impl Iterator<Item = u64> + Clone, alpha: f64) -> f64 {
    let total: u64 = counts.clone().sum();
    let shares = counts.filter(|&n| n > 0).map(|n| n as f64 / total as f64);
    if (alpha - 1.0).abs() < 1e-9 {
        -shares.map(|p| p * p.ln()).sum::<f64>()
    } else if total == 0 {
        0.0
    } else {
        shares.map(|p| p.powf(alpha)).sum::<f64>().ln() / (1.0 - alpha)
    }
}

/// The Rényi efficiency of order `alpha`: the Rényi entropy as a share of the largest possible,
/// `log(vocab_len)` (Zouhar et al. 2023, "Tokenization and the Noiseless Channel").
///
/// `counts` are the occurrences of each token. `None` if fewer than two tokens exist or nothing
/// was counted.
#[must_use]
pub fn renyi_efficiency(
    counts: impl Iterator<Item = u64> + Clone,
    alpha: f64,
    vocab_len: usize,
) -> Option<f64> {
    let counted = counts.clone().any(|n| n > 0);
    (vocab_len > 1 && counted).then(|| renyi_entropy(counts, alpha) / (vocab_len as f64).ln())
}

/// The Gini coefficient: half the mean absolute difference between two values drawn at random, as
/// a share of the mean. 0 where all are equal; at most `1 - 1/n`. `None` if there is no value or
/// all are zero.
#[must_use]
pub fn gini(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let sum: f64 = sorted.iter().sum();
    // Σ|x - y| over all ordered pairs is 2 Σ (2i - n - 1) x_i with i from 1.
    let weighted: f64 =
        sorted.iter().zip(1u32..).map(|(x, i)| (2.0 * f64::from(i) - n - 1.0) * x).sum();
    (sum > 0.0).then(|| weighted / (n * sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn renyi_of_a_uniform_distribution_is_the_logarithm_of_its_size() {
        for alpha in [0.5, 1.0, 2.0, 2.5] {
            close(renyi_entropy([7u64; 8].into_iter(), alpha), 8f64.ln());
            close(renyi_efficiency([7u64; 8].into_iter(), alpha, 8).unwrap(), 1.0);
        }
        close(renyi_efficiency([7u64; 8].into_iter(), 2.5, 64).unwrap(), 0.5);
    }

    #[test]
    fn renyi_by_hand() {
        // p = 1/2, 1/4, 1/4. Order 2: -ln(1/4 + 1/16 + 1/16) = ln(8/3).
        close(renyi_entropy([2u64, 1, 1].into_iter(), 2.0), (8.0f64 / 3.0).ln());
        // Order 1: 1/2 ln 2 + 2/4 ln 4 = 1.5 ln 2.
        close(renyi_entropy([2u64, 1, 1].into_iter(), 1.0), 1.5 * 2f64.ln());
        // Order 2.5: ln(2^-2.5 + 2 * 4^-2.5) / -1.5 = ln(2^-2.5 + 2^-4) / -1.5.
        let by_hand = (2f64.powf(-2.5) + 2f64.powi(-4)).ln() / -1.5;
        close(renyi_entropy([2u64, 1, 1].into_iter(), 2.5), by_hand);
        assert_eq!(renyi_efficiency([0u64, 0].into_iter(), 2.5, 2), None);
        assert_eq!(renyi_efficiency([3u64].into_iter(), 2.5, 1), None);
        close(renyi_entropy([5u64, 0].into_iter(), 2.5), 0.0);
    }

    #[test]
    fn gini_by_hand() {
        assert_eq!(gini(&[3.0, 3.0, 3.0]), Some(0.0));
        // (0, 1): mean absolute difference over ordered pairs 2/4, mean 1/2: 0.5 / (2 * 0.5).
        close(gini(&[1.0, 0.0]).unwrap(), 0.5);
        // (1, 2, 3): ordered pairs differ by 8 in total; 8 / (2 * 9 * 2).
        close(gini(&[3.0, 1.0, 2.0]).unwrap(), 2.0 / 9.0);
        close(gini(&[0.0, 0.0, 0.0, 9.0]).unwrap(), 0.75);
        assert_eq!(gini(&[]), None);
        assert_eq!(gini(&[0.0]), None);
    }

    #[test]
    fn percentiles_interpolate() {
        let values = [1.0, 2.0, 3.0, 4.0];
        close(percentile(&values, 0.0), 1.0);
        close(percentile(&values, 1.0), 4.0);
        close(percentile(&values, 0.5), 2.5);
        assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_ratio_is_a_ratio_of_sums_and_repeats_with_its_seed() {
        let parts: Vec<(f64, f64)> =
            (1..=20u32).map(|i| (f64::from(i), f64::from(i % 3 + 1))).collect();
        let bootstrap = Bootstrap { resamples: 500, seed: 7 };
        let estimate = bootstrap.ratio(&parts).unwrap();
        let sums = parts.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
        close(estimate.value, sums.0 / sums.1);
        let [low, high] = estimate.interval.unwrap();
        assert!(low < estimate.value && estimate.value < high, "{estimate:?}");
        assert_eq!(bootstrap.ratio(&parts), Some(estimate));
        assert_ne!(Bootstrap { seed: 8, ..bootstrap }.ratio(&parts), Some(estimate));
    }

    #[test]
    fn equal_documents_have_no_spread_and_few_have_no_interval() {
        let bootstrap = Bootstrap { resamples: 100, seed: 1 };
        let same = bootstrap.ratio(&[(6.0, 2.0); 9]).unwrap();
        assert_eq!(same, Estimate { value: 3.0, interval: Some([3.0, 3.0]) });
        assert_eq!(bootstrap.ratio(&[(6.0, 2.0); 4]), Some(Estimate::exact(3.0)));
        assert_eq!(bootstrap.ratio(&[(6.0, 0.0); 9]), None);
        assert_eq!(bootstrap.ratio(&[]), None);
    }

    #[test]
    fn pairing_sees_a_difference_that_the_single_intervals_hide() {
        // Documents differ much, contestants differ by exactly a tenth on each.
        let a: Vec<(f64, f64)> = (1..=30u32).map(|i| (f64::from(i * i), 1.0)).collect();
        let b: Vec<(f64, f64)> = a.iter().map(|p| (p.0 - 0.1, p.1)).collect();
        let bootstrap = Bootstrap { resamples: 400, seed: 3 };
        let difference = bootstrap.ratio_difference(&a, &b).unwrap();
        assert!((difference.value - 0.1).abs() < 1e-9);
        assert!(difference.excludes_zero());
        let [_, high] = bootstrap.ratio(&b).unwrap().interval.unwrap();
        assert!(high > bootstrap.ratio(&a).unwrap().value, "the single intervals overlap");
    }

    #[test]
    fn interval_covers_the_truth_about_as_often_as_it_says() {
        // 200 experiments of 40 uniform draws around 0.5: 95 % intervals should cover 0.5 in
        // about 190; the percentile interval is a little narrow.
        let mut rng = Rng::new(11);
        let mut covered = 0;
        for seed in 0..200 {
            let parts: Vec<(f64, f64)> = (0..40).map(|_| (rng.next_f64(), 1.0)).collect();
            let estimate = Bootstrap { resamples: 200, seed }.ratio(&parts).unwrap();
            let [low, high] = estimate.interval.unwrap();
            covered += u32::from(low <= 0.5 && 0.5 <= high);
        }
        assert!((176..=199).contains(&covered), "{covered} of 200");
    }
}
