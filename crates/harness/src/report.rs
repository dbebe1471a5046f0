//! What the comparison found, as data: serialised to JSON as it is, rendered as Markdown, HTML and
//! terminal tables.
//!
//! The JSON form is stable within [`SCHEMA`]: fields are added, never renamed. Values that do not
//! exist (the fertility of a script without spaces) are left out, never written as zero.

mod against;
mod chart;
mod html;
mod markdown;
mod terminal;
mod tokens;
mod view;

use std::collections::BTreeMap;

pub use against::{Bands, Findings};
use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;
use crate::metrics::Ratio;
use crate::morphology::Morphology;
use crate::stats::Estimate;

/// The version of the JSON form.
pub const SCHEMA: u32 = 1;

/// A whole report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The heading.
    pub title: String,
    /// What was read, with which options, where. [`Manifest::check`] holds it against the files.
    pub manifest: Manifest,
    /// The comparisons. The first one is the headline.
    pub experiments: Vec<Experiment>,
    /// Encoding speed.
    #[serde(default)]
    pub speed: Vec<Speed>,
    /// Training time and memory, each in a process of its own.
    #[serde(default)]
    pub training: Vec<Training>,
    /// Inputs made to be hard.
    #[serde(default)]
    pub worst_cases: Vec<WorstCase>,
    /// Sentences with the tokens of every algorithm.
    #[serde(default)]
    pub samples: Vec<Sample>,
    /// What the criterion benches measured, if they were run.
    #[serde(default)]
    pub criterion: Vec<CriterionResult>,
}

/// One comparison: algorithms trained on the same counts and measured on the same held-out text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Experiment {
    /// What was compared on: the corpus, or "everything".
    pub name: String,
    /// The terms that all contestants share.
    pub terms: Terms,
    /// The corpora.
    pub corpora: Vec<CorpusSummary>,
    /// The training part.
    pub train: Part,
    /// The held-out part.
    pub held_out: Part,
    /// One row for each algorithm and vocabulary size.
    pub rows: Vec<Row>,
    /// Paired differences between the contenders at each size.
    pub differences: Vec<Difference>,
}

/// The terms of a comparison: what must be equal for all contestants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The normalizer, by name.
    pub normalizer: String,
    /// The splitter, by name or pattern.
    pub splitter: String,
    /// Special tokens that take a place in every vocabulary.
    pub special_tokens: Vec<String>,
    /// What happens to text that the vocabulary does not hold.
    pub bytes: BytePolicy,
    /// SHA-256 over the training documents, in order.
    pub train_set: String,
}

/// What happens to text that the vocabulary does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BytePolicy {
    /// Every algorithm covers all 256 bytes, so that nothing is ever unknown: byte-level BPE,
    /// WordPiece over bytes, Unigram and characters with byte fallback.
    #[default]
    Bytes,
    /// Alphabets of characters; what is outside is unknown.
    Unk,
}

impl BytePolicy {
    /// The name of the command line and of JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Unk => "unk",
        }
    }
}

/// A part of the documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Documents.
    pub documents: u64,
    /// Bytes of text.
    pub bytes: u64,
    /// Distinct pieces after splitting; only counted for the training part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub distinct_pieces: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A corpus of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusSummary {
    /// Its name.
    pub name: String,
    /// What kind of text it is.
    pub role: String,
    /// Languages, as BCP-47 tags.
    pub languages: Vec<String>,
    /// The training part.
    pub train: Part,
    /// The held-out part.
    pub held_out: Part,
}

/// Whether an algorithm competes or is there to be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Competes.
    Contender,
    /// Shows what the extremes are: bytes, characters, whole words.
    Baseline,
}

/// One trained tokenizer and what it measured on the held-out part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The algorithm.
    pub algorithm: String,
    /// Contender or baseline.
    pub standing: Standing,
    /// The vocabulary size that was asked for.
    pub size: usize,
    /// The vocabulary size that it has. Baselines may be smaller than asked.
    pub vocab_len: usize,
    /// Why the row does not count, if a check failed or training was impossible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// What a reader must know to read the row.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Every check with its outcome.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Seconds of training, once, in the process that ran the experiment; of an algorithm that
    /// trains once for all sizes, until it had this size.
    pub train_seconds: f64,
    /// Bytes of the strings of the vocabulary.
    pub vocab_bytes: u64,
    /// |V| x d for the width of the plan.
    pub embedding_parameters: u64,
    /// SHA-256 over the vocabulary: kinds, lengths and bytes in order of id.
    pub vocab_sha256: String,
    /// All held-out documents.
    pub overall: Measures,
    /// The held-out documents of each corpus.
    #[serde(default)]
    pub corpora: Vec<Group>,
    /// The held-out documents of each language.
    #[serde(default)]
    pub languages: Vec<Group>,
    /// Parity between languages, for each parallel corpus; the one with most languages first.
    #[serde(default)]
    pub parity: Vec<Parity>,
    /// How token boundaries agree with those of morphs, if gold segmentations were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub morphology: Option<Morphology>,
}

/// A named group of documents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Group {
    /// The corpus or language.
    pub name: String,
    /// What was measured.
    pub measures: Measures,
}

/// What was measured on a group of documents. See [`crate::metrics`] for every definition.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measures {
    /// Documents.
    pub documents: u64,
    /// Bytes of text.
    pub bytes: u64,
    /// Tokens.
    pub tokens: u64,
    /// The ratios that exist on these documents.
    pub ratios: BTreeMap<Ratio, Estimate>,
    /// Rényi efficiency, order 2.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renyi_efficiency: Option<f64>,
    /// The share of the vocabulary that occurs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocab_use: Option<f64>,
    /// Token lengths in bytes: 5 %, 50 %, 95 % quantile and the longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengths: Option<[usize; 4]>,
    /// Numbers of 2 digits or more.
    #[serde(default)]
    pub numbers: u64,
    /// The share of numbers cut as most of their length are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digit_consistency: Option<f64>,
    /// The share of numbers of 4 digits or more cut in groups of three from the right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digit_alignment: Option<f64>,
    /// Σ L² relative to the byte baseline (or the first algorithm without one).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_cost: Option<f64>,
}

impl Measures {
    /// The value of a ratio, if it exists here.
    #[must_use]
    pub fn value(&self, ratio: Ratio) -> Option<f64> {
        self.ratios.get(&ratio).map(|estimate| estimate.value)
    }
}

/// Parity between languages on parallel text: the same content in each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parity {
    /// The parallel corpus.
    pub corpus: String,
    /// The reference language.
    pub reference: String,
    /// Aligned documents that were used.
    pub documents: u64,
    /// Tokens of each language / tokens of the reference, in order of the language tag.
    pub premiums: BTreeMap<String, Estimate>,
    /// The Gini coefficient of the languages' tokens.
    pub gini: Option<Estimate>,
}

/// A paired difference between two contenders: the first minus the second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Difference {
    /// The vocabulary size.
    pub size: usize,
    /// The metric.
    pub ratio: Ratio,
    /// The first.
    pub a: String,
    /// The second.
    pub b: String,
    /// a - b.
    pub difference: Estimate,
}

/// One check of a trained tokenizer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What must hold.
    pub law: String,
    /// How many cases were looked at.
    pub cases: u64,
    /// The first case that broke it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Check {
    /// Whether it held.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failure.is_none()
    }
}

/// The middle and the ends of several timed rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// How many.
    pub rounds: usize,
}

impl Rounds {
    /// The summary of these values; `None` if there is none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let median = crate::stats::median(values)?;
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { median, min, max, rounds: values.len() })
    }
}

/// How fast a trained tokenizer encodes a corpus, one thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Speed {
    /// The corpus.
    pub corpus: String,
    /// The algorithm.
    pub algorithm: String,
    /// Contender or baseline.
    pub standing: Standing,
    /// The vocabulary size that was asked for.
    pub size: usize,
    /// Bytes of text in a round.
    pub bytes: u64,
    /// MB/s (1 MB = 10^6 bytes) from pieces to ids: the algorithm alone, in a session that has
    /// seen the text.
    pub encode: Rounds,
    /// MB/s from text to ids: splitting and encoding, in a session that has seen the text.
    pub pipeline: Rounds,
    /// MB/s from text to ids, in a new session each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Rounds>,
}

impl Speed {
    /// The speed on text that was not seen before, where it was measured; else on seen text.
    #[must_use]
    pub fn on_new_text(&self) -> Rounds {
        self.first.unwrap_or(self.pipeline)
    }
}

/// Training in a process of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Training {
    /// The corpus.
    pub corpus: String,
    /// The algorithm.
    pub algorithm: String,
    /// Contender or baseline.
    pub standing: Standing,
    /// The vocabulary size that was asked for.
    pub size: usize,
    /// Seconds from counts to model.
    pub seconds: Rounds,
    /// Seconds of them that the process had a processor, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<Rounds>,
    /// Largest resident memory of the process while it trained, in bytes, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// Resident memory before training began (program, counts), in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_bytes: Option<u64>,
    /// Whether every process trained the model of the experiment.
    pub same_model: bool,
}

/// A hard input at two sizes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorstCase {
    /// What it consists of.
    pub input: String,
    /// The algorithm.
    pub algorithm: String,
    /// Contender or baseline.
    pub standing: Standing,
    /// Bytes of the larger input.
    pub bytes: u64,
    /// MB/s from text to ids on the larger input.
    pub mb_per_second: f64,
    /// Time on the larger input / time on the half of it. About 2 is linear, 4 quadratic.
    pub doubling: f64,
}

/// A sentence and the tokens that every algorithm makes of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// What it shows.
    pub name: String,
    /// Its language, a BCP-47 tag; sets the direction and the font.
    pub language: String,
    /// The text.
    pub text: String,
    /// One line for each algorithm.
    pub lines: Vec<SampleLine>,
}

/// The tokens of one algorithm for a sample.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SampleLine {
    /// The algorithm.
    pub algorithm: String,
    /// Contender or baseline.
    pub standing: Standing,
    /// The vocabulary size.
    pub size: usize,
    /// Why the tokens do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// Ids with byte offsets into the text, half-open.
    pub tokens: Vec<SampleToken>,
}

/// A token of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleToken {
    /// The id.
    pub id: u32,
    /// The offset of its first byte.
    pub start: usize,
    /// The offset after its last byte.
    pub end: usize,
    /// Whether it stands for something unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
}

/// A result of the criterion benches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CriterionResult {
    /// The benchmark, as criterion names it.
    pub name: String,
    /// Nanoseconds an iteration: the median (or the mean where criterion has no median).
    pub nanoseconds: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// Bytes an iteration, where the benchmark says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl Report {
    /// Whether every check of every row passed and every process trained the same model.
    #[must_use]
    pub fn passed(&self) -> bool {
        let rows = self.experiments.iter().flat_map(|experiment| &experiment.rows);
        rows.flat_map(|row| &row.checks).all(Check::passed)
            && self.training.iter().all(|training| training.same_model)
    }

    /// The report as JSON, indented.
    ///
    /// # Panics
    ///
    /// Never: every key is a string and every number is finite or left out.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has string keys only")
    }

    /// A report from its JSON.
    ///
    /// # Errors
    ///
    /// If the JSON does not have the form of this [`SCHEMA`].
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The report as Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        markdown::render(self)
    }

    /// The report as one self-contained HTML page: styles and charts inline, no script.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::render(self)
    }

    /// The headline as plain text for a terminal of `width` columns.
    #[must_use]
    pub fn to_terminal(&self, width: usize) -> String {
        terminal::render(self, width)
    }
}
