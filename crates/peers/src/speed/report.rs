//! What came out, as data.

use std::collections::BTreeMap;

use harness::manifest::Manifest;
use harness::report::Rounds;
use serde::{Deserialize, Serialize};

use super::contest::is_ours;

/// What tells this kind of report from others.
pub const KIND: &str = "peers";

/// Everything.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// [`KIND`].
    pub kind: String,
    /// Where it comes from.
    pub manifest: Manifest,
    /// How many programs wanted a processor at the beginning and at the end, on average of a
    /// minute.
    pub load_average: Option<[f64; 2]>,
    /// How many rounds were run.
    pub rounds: usize,
    /// Who gives our ids.
    pub gates: Vec<Gate>,
    /// Speed of those who do.
    pub speeds: Vec<Speed>,
    /// What loading costs them.
    pub costs: Vec<Cost>,
    /// Hard texts.
    pub worst: Vec<Worst>,
    /// Training.
    pub training: Vec<Training>,
    /// What did not work, in words.
    pub failures: Vec<String>,
}

/// A measurement, round by round; `None` where the round has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series(pub Vec<Option<f64>>);

impl Series {
    /// Sets the value of a round.
    pub fn set(&mut self, round: usize, value: f64) {
        if self.0.len() <= round {
            self.0.resize(round + 1, None);
        }
        self.0[round] = Some(value);
    }

    /// Median and ends.
    #[must_use]
    pub fn rounds(&self) -> Option<Rounds> {
        Rounds::of(&self.0.iter().copied().flatten().collect::<Vec<_>>())
    }

    /// This over another, round by round: only rounds that have both count.
    #[must_use]
    pub fn over(&self, other: &Self) -> Option<Rounds> {
        let pairs = self.0.iter().zip(&other.0);
        let ratios: Vec<f64> =
            pairs.filter_map(|(a, b)| Some((*a)? / (*b)?)).filter(|r| r.is_finite()).collect();
        Rounds::of(&ratios)
    }
}

/// Whether a contestant's ids are ours.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Gate {
    /// The model.
    pub model: String,
    /// The contestant.
    pub contestant: String,
    /// Whether it defines the model: if it differs, the fault is ours.
    pub reference: bool,
    /// How many texts were compared.
    pub texts: usize,
    /// On how many ids differ.
    pub differing: usize,
    /// The smallest text found on which they do.
    pub smallest: Option<String>,
    /// Our ids of it.
    pub ours: Option<String>,
    /// Theirs.
    pub theirs: Option<String>,
    /// Why it could not be asked.
    pub skipped: Option<String>,
}

impl Gate {
    /// Whether its times count.
    #[must_use]
    pub fn admits(&self) -> bool {
        self.skipped.is_none() && self.differing == 0
    }
}

/// Speed of one contestant on one corpus in MB/s (1 MB is 10^6 bytes): of processor time, but for
/// the batch, which is of wall time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Speed {
    /// The model.
    pub model: String,
    /// The corpus.
    pub corpus: String,
    /// Bytes of the corpus.
    pub bytes: usize,
    /// The contestant.
    pub contestant: String,
    /// The whole text, never seen before.
    pub first: Series,
    /// The same text again: the fastest of some passes.
    pub later: Series,
    /// Documents of 2 KB, one by one: the fastest of some passes.
    pub documents: Series,
    /// Counting the whole text.
    pub count: Series,
    /// The documents in one call, two threads, wall time.
    pub batch: Series,
    /// The first pass by wall time.
    pub first_wall: Series,
    /// Later passes by wall time.
    pub later_wall: Series,
}

/// What loading one model costs a contestant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// The model.
    pub model: String,
    /// The contestant.
    pub contestant: String,
    /// Wall seconds from the request to the first id; imports of Python packages are part of it.
    pub load: Series,
    /// Processor seconds of the same.
    pub load_cpu: Series,
    /// Resident bytes that loading added.
    pub loaded: Series,
    /// The most resident bytes while encoding, less those before loading.
    pub peak: Series,
}

/// The times of a contestant on a hard text.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Worst {
    /// The model.
    pub model: String,
    /// The kind of text.
    pub text: String,
    /// The contestant.
    pub contestant: String,
    /// Bytes of the text.
    pub bytes: usize,
    /// Processor seconds for all of it, first met.
    pub seconds: Series,
    /// The same over that of half of it: 2 is linear, 4 quadratic.
    pub doubling: Series,
    /// Why there is no time.
    pub failure: Option<String>,
}

/// Training of a vocabulary.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Training {
    /// The algorithm.
    pub algorithm: String,
    /// The trainer.
    pub trainer: String,
    /// Wall seconds of the call, reading included.
    pub seconds: Series,
    /// Processor seconds.
    pub cpu: Series,
    /// The most resident bytes of the process, less those before.
    pub peak: Series,
    /// How many tokens it made.
    pub tokens: Option<usize>,
    /// How its vocabulary stands to ours.
    pub verdict: Option<String>,
    /// How its vocabulary does on text that it was not trained on.
    pub quality: Option<Quality>,
    /// Why there is nothing.
    pub failure: Option<String>,
}

/// A vocabulary on held-out text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Bytes of held-out text for a token.
    pub bytes_per_token: f64,
    /// Rényi efficiency of order 2.5.
    pub renyi: Option<f64>,
    /// The share of the vocabulary that occurs.
    pub used: f64,
    /// Of Unigram models the log-likelihood, in nats a byte: of all segmentations, and of the best.
    #[serde(default)]
    pub likelihood: Option<[f64; 2]>,
}

impl Report {
    /// A contestant as tables name it: its version, and where it is called.
    #[must_use]
    pub fn shown(&self, contestant: &str) -> String {
        let version = self.manifest.versions.get(contestant).map_or(contestant, String::as_str);
        if is_ours(contestant) || contestant.starts_with("crate ") {
            version.to_owned()
        } else {
            format!("{version} (Python)")
        }
    }

    /// Everything by its model, in the order of the gates.
    #[must_use]
    pub fn models(&self) -> Vec<&str> {
        let mut models: Vec<&str> = Vec::new();
        for gate in &self.gates {
            if !models.contains(&gate.model.as_str()) {
                models.push(&gate.model);
            }
        }
        models
    }

    /// The references that differ from ours: faults of this project.
    pub fn faults(&self) -> impl Iterator<Item = &Gate> {
        self.gates.iter().filter(|gate| gate.reference && gate.differing > 0)
    }

    /// The data, sealed as the other reports are.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, String> {
        let mut report = self.clone();
        report.manifest.report_sha256 = "0".repeat(64);
        let mut json = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        json.push('\n');
        harness::manifest::seal(&json).ok_or_else(|| "the report has no place for its hash".into())
    }

    /// Reads [`to_json`](Self::to_json).
    ///
    /// # Errors
    ///
    /// If it is no report of this kind.
    pub fn from_json(json: &str) -> Result<Self, String> {
        let report: Self = serde_json::from_str(json).map_err(|error| error.to_string())?;
        if report.kind == KIND { Ok(report) } else { Err(format!("it is no {KIND} report")) }
    }
}

/// A column of the table of speed.
pub type Column = fn(&Speed) -> &Series;

/// The columns of the table of speed: the title, and where the numbers are.
pub const COLUMNS: [(&str, Column); 5] = [
    ("first", |speed| &speed.first),
    ("later", |speed| &speed.later),
    ("2 KB documents", |speed| &speed.documents),
    ("count", |speed| &speed.count),
    ("batch, 2 threads", |speed| &speed.batch),
];

/// How ours stands to the fastest of the others in one column of one table.
#[derive(Clone, Debug)]
pub struct Standing<'r> {
    /// The model.
    pub model: &'r str,
    /// The corpus.
    pub corpus: &'r str,
    /// The column.
    pub column: &'static str,
    /// Ours over theirs, by rounds.
    pub ratio: Rounds,
    /// Whose: the fastest by median.
    pub peer: &'r str,
}

/// [`Standing`]s of one of our contestants in every table and column in which it and somebody else are.
#[must_use]
pub fn standings<'r>(report: &'r Report, name: &str) -> Vec<Standing<'r>> {
    let mut tables: BTreeMap<(usize, &str), Vec<&Speed>> = BTreeMap::new();
    let models = report.models();
    for speed in &report.speeds {
        let Some(at) = models.iter().position(|model| *model == speed.model) else { continue };
        tables.entry((at, &speed.corpus)).or_default().push(speed);
    }
    let mut standings = Vec::new();
    for ((at, corpus), rows) in tables {
        let Some(ours) = rows.iter().find(|row| row.contestant == name) else { continue };
        for (column, of) in COLUMNS {
            let others = rows.iter().filter(|row| !is_ours(&row.contestant));
            let timed = others.filter_map(|row| Some((*row, of(row).rounds()?.median)));
            let Some((peer, _)) = timed.max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
            let Some(ratio) = of(ours).over(of(peer)) else { continue };
            let (model, peer) = (models[at], peer.contestant.as_str());
            standings.push(Standing { model, corpus, column, ratio, peer });
        }
    }
    standings
}
