//! Is a tokenizer what it should be, and are two of them the same?
//!
//! [`verify`] holds one tokenizer to the laws that every tokenizer obeys; [`compare`] holds two
//! against each other. Both work on [`Texts`], a corpus of texts on which tokenizers are known to
//! differ, and say where a law breaks in the shortest text that still breaks it.
//!
//! ```
//! use tokenizer::Tokenizer;
//! use tokenizer::verify::{Texts, Verdict, verify};
//!
//! let mut texts = Texts::new();
//! texts.push("Xin chào");
//! let checks = verify(&Tokenizer::bytes(), &texts);
//! assert!(checks.iter().all(|check| check.verdict() == Verdict::Passed));
//! ```

mod pair;
mod paths;
mod reach;
mod round_trip;
mod shrink;
mod texts;

use std::fmt;

pub use pair::{By, compare};
pub use reach::{Reachability, Unreachable, UnreachableReason, reachability};
pub use shrink::shrink;
pub use texts::Texts;

use crate::pipeline::Tokenizer;

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// The law.
    pub law: &'static str,
    /// How many cases were looked at.
    pub cases: usize,
    /// How many of them break the law although it is promised for them.
    pub broken: usize,
    /// How many do what the law says not, where the tokenizer never promised it: a normalizer that
    /// lower-cases does not give the text back.
    pub exempt: usize,
    /// The shortest broken case, else the shortest exempt one, in words.
    pub example: Option<Example>,
}

/// A case, shrunk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Example {
    /// The text; `None` where the case is no text.
    pub text: Option<String>,
    /// What is wrong with it.
    pub what: String,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The law holds for all cases.
    Passed,
    /// It does not hold for all, but for all for which it is promised.
    Noted,
    /// It is broken.
    Failed,
}

impl Check {
    fn new(law: &'static str) -> Self {
        Self { law, cases: 0, broken: 0, exempt: 0, example: None }
    }

    /// Whether the law holds.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.broken, self.exempt) {
            (0, 0) => Verdict::Passed,
            (0, _) => Verdict::Noted,
            _ => Verdict::Failed,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed => "passed",
            Self::Noted => "noted",
            Self::Failed => "FAILED",
        })
    }
}

/// How many broken texts are shrunk to find the shortest one.
const SHRUNK: usize = 12;

/// A law over texts: `breaks` says what is wrong with a text.
fn over_texts(
    law: &'static str,
    texts: &Texts,
    mut breaks: impl FnMut(&str) -> Option<String>,
) -> Check {
    let mut check = Check::new(law);
    let mut broken: Vec<&str> = Vec::new();
    for text in texts.iter() {
        check.cases += 1;
        if breaks(text).is_some() {
            check.broken += 1;
            broken.push(text);
        }
    }
    check.example = shortest(&mut broken, &mut breaks);
    check
}

/// The shortest text that the broken ones shrink to, the first in order of bytes among those.
fn shortest(
    broken: &mut [&str],
    breaks: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<Example> {
    broken.sort_by_key(|text| text.len());
    let shrunk = broken.iter().take(SHRUNK);
    let shrunk = shrunk.map(|text| shrink(text, |text| breaks(text).is_some()));
    let text = shrunk.min_by(|a, b| (a.len(), a).cmp(&(b.len(), b)))?;
    let what = breaks(&text).unwrap_or_default();
    Some(Example { text: Some(text), what })
}

/// Holds a tokenizer to the laws that every tokenizer obeys.
///
/// - the text comes back when its ids are decoded, where the pipeline loses nothing;
/// - ids alone, ids with offsets, counts, traces, a used session and a fresh one agree;
/// - a batch in parallel equals its texts one by one;
/// - a stream of chunks, cut anywhere, equals the whole text; a stream of ids decodes to the whole;
/// - offsets lie in the text, on character boundaries;
/// - a text cut to n tokens has at most n.
///
/// Reachability is a check of its own: [`reachability`].
#[must_use]
pub fn verify(tokenizer: &Tokenizer, texts: &Texts) -> Vec<Check> {
    vec![
        round_trip::round_trip(tokenizer, texts),
        paths::ways(tokenizer, texts),
        paths::batches(tokenizer, texts),
        paths::encode_streams(tokenizer, texts),
        paths::decode_streams(tokenizer, texts),
        paths::offsets(tokenizer, texts),
        paths::limits(tokenizer, texts),
    ]
}

/// The beginning of a list of ids, for messages.
fn show_ids(ids: &[tokenizer_core::TokenId]) -> String {
    let shown: Vec<String> = ids.iter().take(16).map(ToString::to_string).collect();
    format!("[{}{}]", shown.join(" "), if ids.len() > 16 { " .." } else { "" })
}
