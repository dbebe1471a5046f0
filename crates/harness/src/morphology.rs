//! How well token boundaries are morpheme boundaries: precision, recall and F1 against a gold
//! segmentation that the caller has.
//!
//! A gold file is UTF-8 text, a word a line: the word, a tab, its morphs with a space between them,
//! and behind a second tab the language (a BCP-47 tag) if the file has several. Alternative
//! segmentations are separated by a comma and a space, as in the Morpho Challenge. Lines that are
//! empty or begin with `#` say nothing.
//!
//! ```text
//! # word   segmentations          language
//! walked   walk ed                en
//! unlocked un lock ed, unlock ed  en
//! evlerde  ev ler de              tr
//! ```
//!
//! The morphs of a word are its text, so they concatenate to it: segmentations into underlying
//! forms (`running` as `run -ing`) have no boundaries in the text and are refused.
//!
//! ```
//! use harness::morphology::Gold;
//!
//! let gold = Gold::parse("walked\twalk ed\ncats\tcat s\n")?;
//! assert_eq!(gold.len(), 2);
//! assert!(Gold::parse("running\trun ing\n").is_err());
//! # Ok::<(), harness::morphology::GoldError>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use tokenizer_core::{Model, Normalize, Split};

use crate::metrics::Placed;
use crate::stats::{Bootstrap, Estimate, Table};

/// Words with the places of their morpheme boundaries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gold {
    words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    text: String,
    language: String,
    /// One list of morphs or more.
    segmentations: Vec<Vec<String>>,
}

/// What is wrong with a gold file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldError {
    line: usize,
    problem: String,
}

impl fmt::Display for GoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for GoldError {}

impl Gold {
    /// The words of a gold file.
    ///
    /// # Errors
    ///
    /// If a line has no tab, an empty word or morph, white space inside of the word, or morphs that
    /// do not concatenate to the word; if there is no word at all.
    pub fn parse(text: &str) -> Result<Self, GoldError> {
        let mut words = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim_end_matches('\r');
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fail = |problem: String| GoldError { line: n + 1, problem };
            let mut columns = line.split('\t');
            let word = columns.next().unwrap_or_default();
            let Some(given) = columns.next() else {
                return Err(fail("there is no tab between the word and its morphs".into()));
            };
            let language = columns.next().unwrap_or("und").to_owned();
            if columns.next().is_some() {
                return Err(fail("there are more than three columns".into()));
            }
            if word.is_empty() || word.contains(char::is_whitespace) {
                return Err(fail(format!("{word:?} is not a word")));
            }
            let mut segmentations = Vec::new();
            for one in given.split(", ") {
                let morphs: Vec<String> = one.split(' ').map(str::to_owned).collect();
                if morphs.iter().any(String::is_empty) {
                    return Err(fail(format!("{one:?} has an empty morph")));
                }
                let joined = morphs.concat();
                if joined != word {
                    return Err(fail(format!("the morphs make {joined:?}, the word is {word:?}")));
                }
                segmentations.push(morphs);
            }
            words.push(Word { text: word.to_owned(), language, segmentations });
        }
        if words.is_empty() {
            return Err(GoldError { line: 1, problem: "there is no word".into() });
        }
        Ok(Self { words })
    }

    /// The number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no word.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// How token boundaries agree with morpheme boundaries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Morphology {
    /// All words.
    pub overall: Agreement,
    /// The words of each language, if there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub languages: BTreeMap<String, Agreement>,
}

/// The agreement on some words. Boundaries are places inside of a word; its ends do not count.
/// Intervals are bootstrapped over words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Words.
    pub words: u64,
    /// Words that were left out because the normalizer changes them so that their morphs do not
    /// add up any more.
    #[serde(default)]
    pub skipped: u64,
    /// Boundaries in both / boundaries of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Estimate>,
    /// Boundaries in both / boundaries of morphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<Estimate>,
    /// Twice the boundaries in both / the sum of both: the harmonic mean of precision and recall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f1: Option<Estimate>,
    /// Words whose tokens are exactly their morphs / words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Estimate>,
    /// Words without a token boundary inside / words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Estimate>,
}

/// Measures `model` against `gold`.
///
/// Every word is encoded as it stands in running text, behind a space; the boundaries are those of
/// tokens (and so of pieces). Of alternative segmentations the one that agrees best counts, the
/// first of equally good ones.
#[must_use]
pub fn measure(
    gold: &Gold,
    model: &dyn Model,
    splitter: &dyn Split,
    normalizer: Option<&dyn Normalize>,
    bootstrap: Bootstrap,
) -> Morphology {
    let mut overall = Sums::default();
    let mut languages: BTreeMap<String, Sums> = BTreeMap::new();
    let mut session = model.encoder();
    let (mut tokens, mut placed) = (Vec::new(), Vec::new());
    let normal = |text: &str| match normalizer {
        Some(normalizer) => normalizer.normalize(text).into_owned(),
        None => text.to_owned(),
    };
    for word in &gold.words {
        let of_language = languages.entry(word.language.clone()).or_default();
        let text = normal(&format!(" {}", word.text));
        let whole = normal(&word.text);
        let possible: Vec<Vec<usize>> = word
            .segmentations
            .iter()
            .map(|morphs| morphs.iter().map(|morph| normal(morph)).collect::<Vec<String>>())
            .filter(|morphs| morphs.concat() == whole && text.ends_with(&whole))
            .map(|morphs| {
                let mut end = 0;
                let ends = morphs.iter().map(|morph| {
                    end += morph.len();
                    end
                });
                ends.filter(|&end| end > 0 && end < whole.len()).collect()
            })
            .collect();
        if possible.is_empty() {
            overall.skipped += 1;
            of_language.skipped += 1;
            continue;
        }
        let pieces = splitter.split(&text);
        tokens.clear();
        placed.clear();
        session.encode_pieces(text.as_bytes(), &pieces, &mut tokens);
        Placed::place_into(&pieces, &tokens, &mut placed)
            .expect("a row is measured only if its tokens tile the pieces");
        let start = text.len() - whole.len();
        let mut found: Vec<usize> = placed
            .iter()
            .flat_map(|token| [token.span.start, token.span.end])
            .filter(|&at| at > start && at < text.len())
            .map(|at| at - start)
            .collect();
        found.sort_unstable();
        found.dedup();
        let counted = best(&found, &possible);
        overall.rows.push(counted);
        of_language.rows.push(counted);
    }
    let languages = match languages.len() {
        1 => BTreeMap::new(),
        _ => languages.into_iter().map(|(l, sums)| (l, sums.agreement(bootstrap))).collect(),
    };
    Morphology { overall: overall.agreement(bootstrap), languages }
}

/// Boundaries of a word: in both, of tokens, of morphs.
type Counted = (u32, u32, u32);

/// The counts of the segmentation that agrees best with the boundaries `found`.
fn best(found: &[usize], possible: &[Vec<usize>]) -> Counted {
    let counted = |gold: &Vec<usize>| {
        let both = gold.iter().filter(|at| found.contains(at)).count() as u32;
        (both, found.len() as u32, gold.len() as u32)
    };
    // F1 is 2 both / sum; where no boundary is, nothing is wrong.
    let f1 = |&(both, found, gold): &Counted| match found + gold {
        0 => 1.0,
        sum => f64::from(2 * both) / f64::from(sum),
    };
    let mut best = counted(&possible[0]);
    for other in possible[1..].iter().map(counted) {
        if f1(&other) > f1(&best) {
            best = other;
        }
    }
    best
}

#[derive(Default)]
struct Sums {
    rows: Vec<Counted>,
    skipped: u64,
}

impl Sums {
    fn agreement(&self, bootstrap: Bootstrap) -> Agreement {
        let mut table = Table::new(8);
        for &(both, found, gold) in &self.rows {
            let exact = both == found && both == gold;
            let whole = found == 0;
            let row = [both, found, gold, 2 * both, found + gold, exact.into(), 1, whole.into()];
            table.push(&row.map(f64::from));
        }
        let asked = [(0, 1), (0, 2), (3, 4), (5, 6), (7, 6)];
        let estimates = bootstrap.ratios(&table, &asked, &[]).ratios;
        Agreement {
            words: self.rows.len() as u64,
            skipped: self.skipped,
            precision: estimates[0],
            recall: estimates[1],
            f1: estimates[2],
            exact: estimates[3],
            whole: estimates[4],
        }
    }
}

#[cfg(test)]
mod tests {
    use tokenizer_core::{Encode, Token, TokenId, Vocab};

    use super::*;

    /// Cuts every piece into its words of three bytes or fewer, from the left.
    struct Threes(Vocab);

    impl Model for Threes {
        fn vocab(&self) -> &Vocab {
            &self.0
        }

        fn encoder(&self) -> Box<dyn Encode + '_> {
            Box::new(ThreesEncoder)
        }
    }

    struct ThreesEncoder;

    impl Encode for ThreesEncoder {
        fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
            tokens.extend(piece.chunks(3).map(|part| Token::new(TokenId(0), part.len())));
        }
    }

    fn threes() -> Threes {
        Threes(Vocab::from_tokens(["x"]).unwrap())
    }

    fn measured(gold: &str, normalizer: Option<&dyn Normalize>) -> Morphology {
        let splitter = pretok::from_spec("gpt2").unwrap();
        let bootstrap = Bootstrap { resamples: 0, seed: 1 };
        measure(&Gold::parse(gold).unwrap(), &threes(), &splitter, normalizer, bootstrap)
    }

    #[test]
    fn agreement_by_hand() {
        // " walked" is " wa|lke|d": boundaries of tokens at 2 and 5 of "walked", of morphs at 4.
        // " re" is one token of three bytes. " redo" is " re|do": both at 2.
        let all = measured("walked\twalk ed\nre\tre\nredo\tre do\n", None);
        let Agreement { words, skipped, precision, recall, f1, exact, whole } = all.overall;
        assert_eq!((words, skipped), (3, 0));
        assert_eq!(precision.unwrap().value, 1.0 / 3.0);
        assert_eq!(recall.unwrap().value, 1.0 / 2.0);
        assert_eq!(f1.unwrap().value, 2.0 / 5.0);
        assert_eq!(exact.unwrap().value, 2.0 / 3.0);
        assert_eq!(whole.unwrap().value, 1.0 / 3.0);
        assert!(all.languages.is_empty());
    }

    #[test]
    fn the_alternative_that_agrees_best_counts() {
        // Boundaries of tokens at 2 and 5.
        let all = measured("undoes\tundo es, un do es, un doe s\n", None).overall;
        assert_eq!(all.precision.unwrap().value, 1.0);
        assert_eq!(all.exact.unwrap().value, 1.0);
    }

    #[test]
    fn without_boundaries_there_is_no_score() {
        let all = measured("re\tre\n", None).overall;
        assert_eq!((all.precision, all.recall, all.f1), (None, None, None));
        assert_eq!(all.exact.unwrap().value, 1.0);
    }

    #[test]
    fn languages_are_measured_apart() {
        let all = measured("redo\tre do\ten\nevde\tev de\ttr\n# end\n\n", None);
        assert_eq!(all.languages.len(), 2);
        assert_eq!(all.languages["tr"].f1.unwrap().value, 1.0);
    }

    #[test]
    fn words_that_the_normalizer_tears_are_left_out() {
        let nfc = crate::algorithms::normalizer("nfc").unwrap().unwrap();
        // The boundary falls between a letter and its accent.
        let all = measured("caf\u{65}\u{301}\tcafe \u{301}\nredo\tre do\n", Some(&*nfc)).overall;
        assert_eq!((all.words, all.skipped), (1, 1));
    }

    #[test]
    fn faults_are_named_with_their_line() {
        for (text, problem) in [
            ("", "line 1: there is no word"),
            ("# a\nword\n", "line 2: there is no tab between the word and its morphs"),
            ("a b\ta b\n", "line 1: \"a b\" is not a word"),
            ("ab\ta  b\n", "line 1: \"a  b\" has an empty morph"),
            ("running\trun ing\n", "line 1: the morphs make \"runing\", the word is \"running\""),
            ("ab\ta b\ten\tx\n", "line 1: there are more than three columns"),
        ] {
            assert_eq!(Gold::parse(text).unwrap_err().to_string(), problem);
        }
    }
}
