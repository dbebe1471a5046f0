use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokenizer_core::Span;

use super::facts::START;
use super::{Document, Placed, Tally, TextFacts, touching};
use crate::stats;
use tokenizer_core::Vocab;

/// Everything that is measured of one tokenizer on a set of documents: the sums and the
/// distributions. Profiles of parts add up to the profile of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The sums.
    pub tally: Tally,
    /// How often each token occurs, by id; as long as the vocabulary.
    pub occurrences: Vec<u64>,
    /// How long tokens are.
    pub lengths: Lengths,
    /// How numbers are cut.
    pub digits: DigitGrouping,
}

impl Profile {
    /// An empty profile for a vocabulary of `vocab_len` tokens.
    #[must_use]
    pub fn new(vocab_len: usize) -> Self {
        Self { occurrences: vec![0; vocab_len], ..Self::default() }
    }

    /// Adds a document and returns its tally. Tokens whose id is not in the vocabulary count in
    /// the tally alone.
    pub fn add(&mut self, document: &Document<'_>, facts: &TextFacts, vocab: &Vocab) -> Tally {
        let tally = Tally::of(document, facts, vocab);
        self.add_counted(document, facts, &tally);
        tally
    }

    /// Adds a document whose tally is known.
    pub fn add_counted(&mut self, document: &Document<'_>, facts: &TextFacts, tally: &Tally) {
        self.tally += tally;
        for token in document.tokens {
            if let Some(count) = self.occurrences.get_mut(token.id.index()) {
                *count += 1;
            }
            self.lengths.add(token.span.len());
        }
        self.digits.add(document.tokens, facts);
    }

    /// Adds the profile of other documents under the same vocabulary.
    pub fn merge(&mut self, other: &Self) {
        self.tally += &other.tally;
        self.occurrences.resize(self.occurrences.len().max(other.occurrences.len()), 0);
        for (mine, theirs) in self.occurrences.iter_mut().zip(&other.occurrences) {
            *mine += theirs;
        }
        self.lengths.merge(&other.lengths);
        self.digits.merge(&other.digits);
    }

    /// The Rényi efficiency of order 2.5 of the tokens, over the whole vocabulary.
    ///
    /// No interval is given for it: entropies of resampled documents are biased downwards, since a
    /// resample holds fewer distinct tokens than the documents it draws from.
    #[must_use]
    pub fn renyi_efficiency(&self) -> Option<f64> {
        stats::renyi_efficiency(self.occurrences.iter().copied(), 2.5, self.occurrences.len())
    }

    /// The share of the vocabulary that occurs at least once.
    #[must_use]
    pub fn vocab_use(&self) -> Option<f64> {
        let used = self.occurrences.iter().filter(|&&n| n > 0).count();
        (!self.occurrences.is_empty()).then(|| used as f64 / self.occurrences.len() as f64)
    }
}

/// The distribution of token lengths, in bytes, by occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    counts: BTreeMap<usize, u64>,
}

impl Lengths {
    fn add(&mut self, len: usize) {
        *self.counts.entry(len).or_default() += 1;
    }

    fn merge(&mut self, other: &Self) {
        for (&len, &n) in &other.counts {
            *self.counts.entry(len).or_default() += n;
        }
    }

    /// The smallest length that at least the share `q` of all tokens does not pass; `None` without
    /// tokens. `q` = 1 is the longest token.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<usize> {
        let total: u64 = self.counts.values().sum();
        let needed = (q * total as f64).ceil().max(1.0);
        let mut seen = 0;
        self.counts
            .iter()
            .find(|&(_, n)| {
                seen += n;
                seen as f64 >= needed
            })
            .map(|(&len, _)| len)
    }
}

/// How numbers are cut into tokens.
///
/// A number is a maximal run of 2 to 64 decimal digits of one text. Its cut is the set of places
/// between two of its digits where one token ends and another begins.
///
/// - **Consistency**: for numbers of each length, the share that is cut in that length's most
///   frequent way; averaged over all numbers. 1 means that the length alone decides the cut (as
///   splitting every digit, or groups of three, does); BPE without a rule for digits cuts 2024 and
///   2025 differently.
/// - **Right-aligned**: the share of numbers of 4 digits or more that are cut exactly before every
///   third digit from the right, as people group thousands (Singh and Strouse 2024, "Tokenization
///   counts").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DigitGrouping {
    /// (number of digits, cuts as bits from the right) to occurrences.
    cuts: BTreeMap<(u32, u64), u64>,
}

impl DigitGrouping {
    const MAX_DIGITS: u32 = 64;

    fn add(&mut self, tokens: &[Placed], facts: &TextFacts) {
        let numbers =
            facts.numbers.iter().copied().filter(|n| (2..=Self::MAX_DIGITS).contains(&n.1));
        let spans = numbers.clone().map(|n| n.0);
        for ((span, tokens), (_, digits)) in touching(tokens, spans).zip(numbers) {
            *self.cuts.entry((digits, cut(span, digits, tokens, facts))).or_default() += 1;
        }
    }

    fn merge(&mut self, other: &Self) {
        for (&cut, &n) in &other.cuts {
            *self.cuts.entry(cut).or_default() += n;
        }
    }

    /// The number of numbers.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        self.cuts.values().sum()
    }

    /// See the type. `None` without numbers.
    #[must_use]
    pub fn consistency(&self) -> Option<f64> {
        let mut most: BTreeMap<u32, u64> = BTreeMap::new();
        for (&(digits, _), &n) in &self.cuts {
            let most = most.entry(digits).or_default();
            *most = n.max(*most);
        }
        let total = self.numbers();
        (total > 0).then(|| most.values().sum::<u64>() as f64 / total as f64)
    }

    /// See the type. `None` without numbers of 4 digits.
    #[must_use]
    pub fn right_aligned(&self) -> Option<f64> {
        let long = self.cuts.iter().filter(|((digits, _), _)| *digits >= 4);
        let total: u64 = long.clone().map(|(_, n)| n).sum();
        let aligned: u64 = long
            .filter(|&(&(digits, cut), _)| {
                (3..digits).step_by(3).fold(0, |bits, at| bits | 1 << at) == cut
            })
            .map(|(_, n)| n)
            .sum();
        (total > 0).then(|| aligned as f64 / total as f64)
    }
}

/// The cut of one number: bit k is set where k digits lie to the right of a token boundary. A
/// boundary inside a digit (of two bytes or more) counts as one before that digit.
fn cut(span: Span, digits: u32, tokens: &[Placed], facts: &TextFacts) -> u64 {
    let mut bits = 0;
    for token in tokens {
        let end = token.span.end;
        if span.start < end && end < span.end {
            let left = facts.classes[span.start..end].iter().filter(|c| **c & START != 0).count();
            let whole = facts.classes[end] & START != 0;
            let right = digits - left as u32 + u32::from(!whole);
            if right < digits {
                bits |= 1 << right;
            }
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile_of(cuts: &[&str]) -> Profile {
        let parts = cuts.iter().flat_map(|cut| cut.split('|'));
        let mut distinct: Vec<&str> = Vec::new();
        for part in parts {
            if !distinct.contains(&part) {
                distinct.push(part);
            }
        }
        let vocab = Vocab::from_tokens(&distinct).unwrap();
        let mut profile = Profile::new(vocab.len());
        for cut in cuts {
            let text = cut.replace('|', "");
            let mut at = 0;
            let tokens: Vec<Placed> = cut
                .split('|')
                .map(|part| {
                    let span = Span::new(at, at + part.len());
                    at = span.end;
                    Placed { id: vocab.get(part.as_bytes()).unwrap(), span }
                })
                .collect();
            let pieces = [Span::new(0, text.len())];
            let document = Document { text: &text, pieces: &pieces, tokens: &tokens };
            profile.add(&document, &TextFacts::new(&text), &vocab);
        }
        profile
    }

    #[test]
    fn quantiles_of_lengths_by_hand() {
        // Lengths 1 1 1 2 5.
        let lengths = profile_of(&["a|b|c|dd|eeeee"]).lengths;
        let quantiles = [0.0, 0.5, 0.6, 0.61, 0.8, 0.81, 1.0].map(|q| lengths.quantile(q).unwrap());
        assert_eq!(quantiles, [1, 1, 1, 2, 2, 5, 5]);
        assert_eq!(Lengths::default().quantile(0.5), None);
    }

    #[test]
    fn digit_grouping_by_hand() {
        // Four digits: 12|34 twice, 1|234 once; five digits: 12|345 once. Consistency (2 + 1) / 4;
        // right-aligned: 1|234 and 12|345, so 2 / 4.
        let digits = profile_of(&["12|34| |56|78", "1|234", " 12|345| x"]).digits;
        assert_eq!(digits.numbers(), 4);
        assert_eq!(digits.consistency(), Some(0.75));
        assert_eq!(digits.right_aligned(), Some(0.5));
    }

    #[test]
    fn digit_grouping_of_fixed_rules() {
        let single = profile_of(&["1|2|3|4", "9|9|9|9", "4|5"]).digits;
        assert_eq!((single.consistency(), single.right_aligned()), (Some(1.0), Some(0.0)));
        let from_left = profile_of(&["123|456|7", "123|456", "100|000"]).digits;
        assert_eq!(from_left.consistency(), Some(1.0));
        assert_eq!(from_left.right_aligned(), Some(2.0 / 3.0));
        assert_eq!(profile_of(&["a|1|b"]).digits.consistency(), None);
    }

    #[test]
    fn digits_of_two_bytes_and_neighbours_outside_the_number() {
        let digits = profile_of(&["a٢|٠٢٤b"]).digits;
        assert_eq!(digits.right_aligned(), Some(1.0));
    }

    #[test]
    fn vocabulary_use_and_renyi() {
        let mut profile = profile_of(&["a|b|a|b"]);
        assert_eq!(profile.vocab_use(), Some(1.0));
        assert!((profile.renyi_efficiency().unwrap() - 1.0).abs() < 1e-12);
        profile.occurrences.extend([0, 0]);
        assert_eq!(profile.vocab_use(), Some(0.5));
        assert!((profile.renyi_efficiency().unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(Profile::new(0).renyi_efficiency(), None);
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let whole = profile_of(&["ab|12|34", "ab|ab| c"]);
        let vocab_len = whole.occurrences.len();
        let mut sum = Profile::new(vocab_len);
        sum.merge(&whole);
        sum.merge(&whole);
        assert_eq!(sum.tally.tokens, 2 * whole.tally.tokens);
        assert_eq!(sum.digits.numbers(), 2);
        assert_eq!(sum.renyi_efficiency(), whole.renyi_efficiency());
    }
}
