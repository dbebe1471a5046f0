//! The fair comparison: one normalizer, one splitter, one count table, one budget, one policy; the
//! algorithms differ in nothing else.
//!
//! [`Plan`] says what is compared, [`Data`] is the text, prepared once, [`Entry`] a contestant with
//! the terms that it competes on. [`check_equal_terms`] refuses entries that do not compete on
//! equal terms and says why; [`run`] trains, verifies and measures.
//!
//! ```
//! use harness::corpus::Corpus;
//! use harness::experiment::{Data, Plan, run};
//!
//! let mut corpus = Corpus::new("rhyme", "prose");
//! for n in 0..400 {
//!     corpus.push_text("en", &format!("the cat number {n} sat on the mat number {}\n", n * 7));
//! }
//! let plan = Plan {
//!     algorithms: vec!["bpe".into(), "wordpiece".into()],
//!     vocab_sizes: vec![520],
//!     bootstrap: 100,
//!     ..Plan::default()
//! };
//! let data = Data::prepare(&plan, vec![corpus])?;
//! let outcome = run(&plan, &plan.entries(&data)?, &data, &mut |_| {})?;
//! assert_eq!(outcome.experiment.rows.len(), 2);
//! assert!(outcome.experiment.rows.iter().all(|row| row.void.is_none()));
//! # Ok::<(), harness::experiment::Refused>(())
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokenizer_core::{Normalize, PieceCounts, Span, Split, TokenKind, Vocab};

use crate::algorithms;
use crate::contestant::{Contestant, Rung, Trained, guarded};
use crate::corpus::Corpus;
use crate::manifest::Manifest;
use crate::metrics::{
    Document, MICRO, Placed, Profile, Ratio, Tally, TextFacts, TokenCosts, embedding_parameters,
    relative_attention_cost,
};
use crate::morphology::{self, Gold};
use crate::report::{
    BytePolicy, Check, CorpusSummary, Difference, Experiment, Group, Measures, Parity, Part,
    Report, Row, SCHEMA, Sample, SampleLine, SampleToken, Standing, Terms,
};
use crate::stats::{Bootstrap, Estimate, Table, gini};
use crate::verify::{self, Promise};

/// What is compared, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What the comparison is called in the report.
    pub name: String,
    /// The algorithms, by name; see [`algorithms::names`].
    pub algorithms: Vec<String>,
    /// Vocabulary sizes, special tokens included.
    pub vocab_sizes: Vec<usize>,
    /// A splitter, as [`pretok::from_spec`] reads it.
    pub splitter: String,
    /// A normalizer, as [`algorithms::normalizer`] reads it; `none` for none.
    pub normalizer: String,
    /// Special tokens that take a place in every vocabulary.
    pub special_tokens: Vec<String>,
    /// What happens to text that the vocabulary does not hold.
    pub bytes: BytePolicy,
    /// The share of documents that is held out, where a corpus does not say otherwise.
    pub held_out: f64,
    /// Decides the division and the resamples.
    pub seed: u64,
    /// Resamples of the bootstrap; 0 for no intervals.
    pub bootstrap: usize,
    /// The language that premiums are relative to.
    pub reference: String,
    /// The width of the embedding matrix whose parameters are reported.
    pub embedding_width: usize,
}

impl Default for Plan {
    /// All algorithms at 8,000 tokens, pieces as GPT-2 cuts them, every byte covered, a fifth held
    /// out, 1,000 resamples.
    fn default() -> Self {
        Self {
            name: "comparison".into(),
            algorithms: algorithms::names().iter().map(|name| (*name).to_owned()).collect(),
            vocab_sizes: vec![8000],
            splitter: "gpt2".into(),
            normalizer: "none".into(),
            special_tokens: vec!["<|endoftext|>".into()],
            bytes: BytePolicy::Bytes,
            held_out: 0.2,
            seed: 1,
            bootstrap: 1000,
            reference: "en".into(),
            embedding_width: 768,
        }
    }
}

impl Plan {
    /// The options by name, for the manifest.
    #[must_use]
    pub fn options(&self) -> BTreeMap<String, String> {
        let sizes: Vec<String> = self.vocab_sizes.iter().map(usize::to_string).collect();
        [
            ("algorithms", self.algorithms.join(",")),
            ("vocab-sizes", sizes.join(",")),
            ("splitter", self.splitter.clone()),
            ("normalizer", self.normalizer.clone()),
            ("special-tokens", self.special_tokens.join(" ")),
            ("byte-policy", self.bytes.name().to_owned()),
            ("held-out", self.held_out.to_string()),
            ("seed", self.seed.to_string()),
            ("bootstrap", self.bootstrap.to_string()),
            ("reference-language", self.reference.clone()),
            ("embedding-width", self.embedding_width.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// The terms that this plan and data give to every contestant.
    #[must_use]
    pub fn terms(&self, data: &Data) -> Terms {
        Terms {
            normalizer: self.normalizer.clone(),
            splitter: self.splitter.clone(),
            special_tokens: self.special_tokens.clone(),
            bytes: self.bytes,
            train_set: data.train_set.clone(),
        }
    }

    /// The algorithms of the plan, all on its terms.
    ///
    /// # Errors
    ///
    /// If an algorithm is not known.
    pub fn entries(&self, data: &Data) -> Result<Vec<Entry>, Refused> {
        let terms = self.terms(data);
        self.algorithms
            .iter()
            .map(|name| match algorithms::by_name(name) {
                Some(contestant) => Ok(Entry { contestant, terms: terms.clone() }),
                None => Err(Refused::because(format!(
                    "there is no algorithm {name}; there are {}",
                    algorithms::names().join(", ")
                ))),
            })
            .collect()
    }
}

/// A contestant with the terms that it competes on.
pub struct Entry {
    /// Who competes.
    pub contestant: Box<dyn Contestant>,
    /// On which terms. [`run`] accepts only entries with equal ones.
    pub terms: Terms,
}

/// The text of a comparison, normalized, split and counted once for everybody.
pub struct Data {
    corpora: Vec<(String, String)>,
    /// Piece counts of the training part.
    pub counts: PieceCounts,
    /// The splitter.
    pub splitter: Box<dyn Split>,
    train: Vec<Part>,
    train_texts: HashSet<[u8; 32]>,
    train_set: String,
    held_out: Vec<HeldOut>,
}

/// A held-out document, prepared.
struct HeldOut {
    corpus: usize,
    language: String,
    line: Option<usize>,
    is_code: bool,
    text: String,
    pieces: Vec<Span>,
    facts: OnceLock<TextFacts>,
    digest: [u8; 32],
}

impl HeldOut {
    /// The facts, computed when they are first asked for: who only trains never does.
    fn facts(&self) -> &TextFacts {
        self.facts.get_or_init(|| {
            let facts = TextFacts::in_language(&self.text, &self.language);
            if self.is_code { facts.with_code(&self.text) } else { facts }
        })
    }
}

impl Data {
    /// Normalizes, divides, splits and counts `corpora`. What is repeated in both parts is dropped
    /// from the held-out one.
    ///
    /// # Errors
    ///
    /// If the splitter or normalizer is not known, or a part is empty.
    pub fn prepare(plan: &Plan, corpora: Vec<Corpus>) -> Result<Self, Refused> {
        let splitter: Box<dyn Split> = match pretok::from_spec(&plan.splitter) {
            Ok(splitter) => Box::new(splitter),
            Err(error) => return Err(Refused::because(format!("splitter: {error}"))),
        };
        let normalizer = algorithms::normalizer(&plan.normalizer).map_err(Refused::because)?;
        let mut data = Self {
            corpora: corpora.iter().map(|c| (c.name.clone(), c.role.clone())).collect(),
            counts: PieceCounts::default(),
            splitter,
            train: vec![Part::default(); corpora.len()],
            train_texts: HashSet::new(),
            train_set: String::new(),
            held_out: Vec::new(),
        };
        let mut counter = PieceCounts::counter();
        let mut digest = Sha256::new();
        let mut position = 0u64;
        let mut spans = Vec::new();
        let mut held_out = Vec::new();
        for (i, corpus) in corpora.into_iter().enumerate() {
            let held: Vec<bool> = corpus
                .documents
                .iter()
                .map(|document| corpus.holds_out(document, plan.held_out, plan.seed))
                .collect();
            for (document, held) in corpus.documents.into_iter().zip(held) {
                let text = match &normalizer {
                    Some(normalizer) => normalizer.normalize(&document.text).into_owned(),
                    None => document.text,
                };
                if text.is_empty() {
                    continue;
                }
                if held {
                    held_out.push((i, document.language, document.line, text));
                    continue;
                }
                let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
                digest.update(hash);
                data.train_texts.insert(hash);
                data.train[i].documents += 1;
                data.train[i].bytes += text.len() as u64;
                spans.clear();
                data.splitter.split_into(&text, &mut spans);
                for span in &spans {
                    counter
                        .add(&text.as_bytes()[span.range()], 1, position + span.start as u64)
                        .map_err(|error| Refused::because(error.to_string()))?;
                }
                position += text.len() as u64;
            }
        }
        data.counts = counter.finish();
        data.train_set = hex(&digest.finalize());
        for (corpus, language, line, text) in held_out {
            data.hold_out(corpus, language, line, text);
        }
        if data.counts.is_empty() {
            return Err(Refused::because("the training part is empty".into()));
        }
        if data.held_out.is_empty() {
            return Err(Refused::because(
                "the held-out part is empty: there are too few documents to hold some out".into(),
            ));
        }
        Ok(data)
    }

    /// Adds a held-out document, unless the same text was trained on.
    fn hold_out(&mut self, corpus: usize, language: String, line: Option<usize>, text: String) {
        let digest = Sha256::digest(text.as_bytes()).into();
        if self.train_texts.contains(&digest) {
            return;
        }
        let pieces = self.splitter.split(&text);
        let facts = OnceLock::new();
        let is_code = self.corpora[corpus].1 == "code";
        let held = HeldOut { corpus, language, line, is_code, text, pieces, facts, digest };
        self.held_out.push(held);
    }

    /// The held-out texts, after normalization.
    pub fn held_out_texts(&self) -> impl Iterator<Item = &str> {
        self.held_out.iter().map(|document| document.text.as_str())
    }

    /// The held-out texts of one corpus.
    pub fn held_out_of<'d>(&'d self, corpus: &'d str) -> impl Iterator<Item = &'d str> {
        let of_corpus = move |d: &&HeldOut| self.corpora[d.corpus].0 == corpus;
        self.held_out.iter().filter(of_corpus).map(|document| document.text.as_str())
    }

    /// Short held-out texts to show the tokens of, one for each language or else each corpus:
    /// name, language, text.
    #[must_use]
    pub fn samples(&self, most: usize) -> Vec<(String, String, String)> {
        let mut best: BTreeMap<(usize, &str), &HeldOut> = BTreeMap::new();
        // As close as possible to a line of a page.
        let distance = |d: &HeldOut| d.text.chars().count().abs_diff(70);
        for document in &self.held_out {
            let key = (document.corpus, document.language.as_str());
            let now = best.entry(key).or_insert(document);
            if distance(document) < distance(now) {
                *now = document;
            }
        }
        let mut languages = HashSet::new();
        let samples = best.into_iter().filter(|((_, language), _)| {
            ["und", "zxx"].contains(language) || languages.insert(*language)
        });
        samples
            .take(most)
            .map(|((corpus, language), document)| {
                let mut text: String = document.text.chars().take(160).collect();
                text.truncate(text.trim_end().len());
                (self.corpora[corpus].0.clone(), language.to_owned(), text)
            })
            .collect()
    }

    fn parts(&self) -> (Part, Part, Vec<CorpusSummary>) {
        let mut summaries: Vec<CorpusSummary> = self
            .corpora
            .iter()
            .zip(&self.train)
            .map(|((name, role), &train)| CorpusSummary {
                name: name.clone(),
                role: role.clone(),
                languages: Vec::new(),
                train,
                held_out: Part::default(),
            })
            .collect();
        for document in &self.held_out {
            let summary = &mut summaries[document.corpus];
            summary.held_out.documents += 1;
            summary.held_out.bytes += document.text.len() as u64;
            if !summary.languages.contains(&document.language) {
                summary.languages.push(document.language.clone());
            }
        }
        let sum = |part: fn(&CorpusSummary) -> Part| {
            summaries.iter().map(part).fold(Part::default(), |a, b| Part {
                documents: a.documents + b.documents,
                bytes: a.bytes + b.bytes,
                distinct_pieces: 0,
            })
        };
        let mut train = sum(|summary| summary.train);
        train.distinct_pieces = self.counts.len() as u64;
        (train, sum(|summary| summary.held_out), summaries)
    }
}

/// Why a comparison is refused: every reason, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The reasons; at least one.
    pub reasons: Vec<String>,
}

impl Refused {
    fn because(reason: String) -> Self {
        Self { reasons: vec![reason] }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the comparison is not on equal terms: {}", self.reasons.join("; "))
    }
}

impl std::error::Error for Refused {}

/// Checks that all entries compete on equal terms and that the plan is possible for each.
///
/// # Errors
///
/// With every reason against it: two contestants of one name; terms that differ (normalizer,
/// splitter, special tokens, byte policy, training set); held-out documents that were trained on;
/// vocabulary sizes below what an algorithm needs, with the needed minimum; no contestant, no
/// size.
pub fn check_equal_terms(plan: &Plan, entries: &[Entry], data: &Data) -> Result<(), Refused> {
    let mut reasons = Vec::new();
    let Some(first) = entries.first() else {
        return Err(Refused::because("there is no contestant".into()));
    };
    if plan.vocab_sizes.is_empty() {
        reasons.push("there is no vocabulary size".to_owned());
    }
    let mut names = HashSet::new();
    for entry in entries {
        let name = entry.contestant.name();
        if !names.insert(name) {
            reasons.push(format!("{name} competes twice"));
        }
        let other = first.contestant.name();
        let (a, b) = (&first.terms, &entry.terms);
        let specials = |terms: &Terms| format!("{:?}", terms.special_tokens);
        for (what, a, b) in [
            ("normalizers", a.normalizer.clone(), b.normalizer.clone()),
            ("splitters", a.splitter.clone(), b.splitter.clone()),
            ("special tokens", specials(a), specials(b)),
            ("byte policies", a.bytes.name().into(), b.bytes.name().into()),
            ("training sets", a.train_set.clone(), b.train_set.clone()),
        ] {
            if a != b {
                reasons.push(format!("{what} differ: {other} has {a}, {name} has {b}"));
            }
        }
    }
    if first.terms != plan.terms(data) {
        reasons.push("the contestants' terms are not those of the plan and its data".into());
    }
    let seen: Vec<&HeldOut> =
        data.held_out.iter().filter(|d| data.train_texts.contains(&d.digest)).collect();
    if let Some(document) = seen.first() {
        let head: String = document.text.chars().take(40).collect();
        reasons.push(format!(
            "{} held-out documents were trained on, the first begins {head:?}",
            seen.len()
        ));
    }
    for entry in entries {
        let name = entry.contestant.name();
        match entry.contestant.smallest(&data.counts, &entry.terms) {
            Err(problem) => reasons.push(format!("{name}: {problem}")),
            Ok(smallest) => {
                let small: Vec<String> = plan
                    .vocab_sizes
                    .iter()
                    .filter(|&&size| size < smallest)
                    .map(usize::to_string)
                    .collect();
                if !small.is_empty() {
                    reasons.push(format!(
                        "{name} needs at least {smallest} tokens here, so a vocabulary of {} is \
                         out of its reach",
                        small.join(", ")
                    ));
                }
            }
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(Refused { reasons }) }
}

/// The whole comparison of `corpora` in one call: prepares, runs, and adds sample lines of every
/// language from the held-out part. With `gold`, token boundaries are held against morphs. The caller fills in what it knows of the manifest (files,
/// machine, time).
///
/// # Errors
///
/// As [`Data::prepare`] and [`check_equal_terms`].
pub fn compare(
    plan: &Plan,
    corpora: Vec<Corpus>,
    gold: Option<&Gold>,
    watch: &mut dyn FnMut(&str),
) -> Result<Report, Refused> {
    watch("splitting and counting");
    let data = Data::prepare(plan, corpora)?;
    let Outcome { mut experiment, trained } = run(plan, &plan.entries(&data)?, &data, watch)?;
    if let Some(gold) = gold {
        watch("morphs");
        add_morphology(plan, &data, gold, &trained, &mut experiment)?;
    }
    let size = experiment.headline_size();
    let shown: Vec<&Contender> = trained.iter().filter(|c| c.size == size).collect();
    let texts = data.samples(12);
    let mut manifest = Manifest { options: plan.options(), ..Manifest::default() };
    manifest.options_sha256 = manifest.options_digest();
    manifest.versions.insert("harness".into(), env!("CARGO_PKG_VERSION").into());
    Ok(Report {
        schema: SCHEMA,
        title: "Tokenizer comparison".into(),
        manifest,
        samples: samples(&shown, data.splitter.as_ref(), None, &texts),
        experiments: vec![experiment],
        speed: Vec::new(),
        training: Vec::new(),
        worst_cases: Vec::new(),
        criterion: Vec::new(),
    })
}

/// What [`run`] gives.
pub struct Outcome {
    /// The results.
    pub experiment: Experiment,
    /// The trained tokenizers whose rows count, in order of size, then of the entries.
    pub trained: Vec<Contender>,
}

/// A trained tokenizer of an [`Outcome`].
pub struct Contender {
    /// The algorithm.
    pub algorithm: String,
    /// Its standing.
    pub standing: Standing,
    /// The vocabulary size that was asked for.
    pub size: usize,
    /// The tokenizer.
    pub trained: Trained,
}

/// Checks the terms, then trains, verifies and measures every entry at every size. `watch` is told
/// what comes next.
///
/// A row whose training fails or panics, or whose checks fail, does not count: it says why and is
/// not measured.
///
/// # Errors
///
/// As [`check_equal_terms`].
pub fn run(
    plan: &Plan,
    entries: &[Entry],
    data: &Data,
    watch: &mut dyn FnMut(&str),
) -> Result<Outcome, Refused> {
    check_equal_terms(plan, entries, data)?;
    let bootstrap = Bootstrap { resamples: plan.bootstrap, seed: plan.seed };
    let (train, held_out, corpora) = data.parts();
    let mut sizes = plan.vocab_sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let mut experiment = Experiment {
        name: plan.name.clone(),
        terms: plan.terms(data),
        corpora,
        train,
        held_out,
        rows: Vec::new(),
        differences: Vec::new(),
    };
    // Every algorithm at all sizes first: some need one training for all of them.
    let mut rungs: Vec<std::vec::IntoIter<Rung>> = Vec::new();
    for entry in entries {
        watch(&format!("{}: training {}", plan.name, entry.contestant.name()));
        rungs.push(train_each(entry, data, &sizes).into_iter());
    }
    let mut trained_all = Vec::new();
    for size in sizes {
        let mut measured: Vec<Measured> = Vec::new();
        for (entry, rungs) in entries.iter().zip(&mut rungs) {
            let name = entry.contestant.name();
            watch(&format!("{}: {name} at {size}", plan.name));
            let rung = rungs.next().expect("there is a rung for each size");
            let (row, tokenizer) = verified(plan, entry, data, size, rung);
            let tallies = match (&row.void, &tokenizer) {
                (None, Some(trained)) => Some(tallies(trained, data)),
                _ => None,
            };
            if let (Some(trained), None) = (tokenizer, &row.void) {
                trained_all.push(Contender {
                    algorithm: name.to_owned(),
                    standing: entry.contestant.standing(),
                    size,
                    trained,
                });
            }
            measured.push(Measured { row, tallies });
        }
        watch(&format!("{}: intervals at {size}", plan.name));
        finish_size(plan, data, bootstrap, size, measured, &mut experiment);
    }
    Ok(Outcome { experiment, trained: trained_all })
}

/// Holds the token boundaries of every trained tokenizer against `gold`, in its row.
///
/// # Errors
///
/// If the normalizer of the plan is not known.
pub fn add_morphology(
    plan: &Plan,
    data: &Data,
    gold: &Gold,
    trained: &[Contender],
    experiment: &mut Experiment,
) -> Result<(), Refused> {
    let normalizer = algorithms::normalizer(&plan.normalizer).map_err(Refused::because)?;
    let bootstrap = Bootstrap { resamples: plan.bootstrap, seed: plan.seed };
    for contender in trained {
        let rows = experiment.rows.iter_mut();
        let mut rows =
            rows.filter(|row| row.algorithm == contender.algorithm && row.size == contender.size);
        if let Some(row) = rows.next() {
            row.morphology = Some(morphology::measure(
                gold,
                contender.trained.model(),
                data.splitter.as_ref(),
                normalizer.as_deref(),
                bootstrap,
            ));
        }
    }
    Ok(())
}

struct Measured {
    row: Row,
    tallies: Option<Tallies>,
}

/// What the held-out documents gave: a tally each, profiles by group.
struct Tallies {
    each: Vec<Tally>,
    overall: Profile,
    corpora: Vec<Profile>,
    languages: BTreeMap<String, Profile>,
}

/// The tokenizers of all sizes. If one training for all of them fails, it fails for each.
fn train_each(entry: &Entry, data: &Data, sizes: &[usize]) -> Vec<Rung> {
    let trained = guarded(|| {
        let mut go_on = |_: &'static str, _: u64, _: u64| ControlFlow::Continue(());
        Ok(entry.contestant.train_each(&data.counts, sizes, &entry.terms, &mut go_on))
    });
    let problem = match trained {
        Ok(rungs) if rungs.len() == sizes.len() => return rungs,
        Ok(rungs) => format!("it trained {} sizes of {}", rungs.len(), sizes.len()),
        Err(problem) => problem,
    };
    sizes.iter().map(|_| Rung { trained: Err(problem.clone()), seconds: 0.0 }).collect()
}

/// The row of a tokenizer, with its checks but without its measures.
fn verified(
    plan: &Plan,
    entry: &Entry,
    data: &Data,
    size: usize,
    rung: Rung,
) -> (Row, Option<Trained>) {
    let contestant = entry.contestant.as_ref();
    let Rung { trained, seconds } = rung;
    let mut row = Row {
        algorithm: contestant.name().to_owned(),
        standing: contestant.standing(),
        size,
        vocab_len: 0,
        void: None,
        notes: contestant.notes(&entry.terms),
        checks: Vec::new(),
        train_seconds: seconds,
        vocab_bytes: 0,
        embedding_parameters: 0,
        vocab_sha256: String::new(),
        overall: Measures::default(),
        corpora: Vec::new(),
        languages: Vec::new(),
        parity: Vec::new(),
        morphology: None,
    };
    let trained = match trained {
        Ok(trained) => trained,
        Err(problem) => {
            row.void = Some(format!("training: {problem}"));
            return (row, None);
        }
    };
    let vocab = trained.model().vocab();
    row.vocab_len = vocab.len();
    row.vocab_bytes = vocab.iter().map(|(_, bytes, _)| bytes.len() as u64).sum();
    row.embedding_parameters = embedding_parameters(vocab.len(), plan.embedding_width);
    row.vocab_sha256 = vocab_digest(vocab);
    let promise = Promise {
        round_trip: contestant.round_trip(&entry.terms),
        size: None,
        bytes: entry.terms.bytes,
    };
    let documents: Vec<verify::Split<'_>> =
        data.held_out.iter().map(|d| verify::Split { text: &d.text, pieces: &d.pieces }).collect();
    let checks = guarded(|| Ok(verify::verify(&trained, promise, &documents, plan.seed)));
    row.checks = checks.unwrap_or_else(|problem| {
        vec![Check { law: "encoding never panics".into(), cases: 1, failure: Some(problem) }]
    });
    let broken: Vec<String> = row
        .checks
        .iter()
        .filter_map(|check| {
            check.failure.as_ref().map(|failure| format!("{}: {failure}", check.law))
        })
        .collect();
    if !broken.is_empty() {
        row.void = Some(broken.join("; "));
    } else if row.standing == Standing::Contender && row.vocab_len != size {
        row.void =
            Some(format!("it ends at {} tokens of {size}: the text gives no more", row.vocab_len));
    }
    (row, Some(trained))
}

/// What the tokens of `trained` cost, as often as they occur in the training part.
fn token_costs(trained: &Trained, data: &Data) -> TokenCosts {
    let vocab = trained.model().vocab();
    let mut occurrences = vec![0u64; vocab.len()];
    let mut session = trained.model().encoder();
    let mut tokens = Vec::new();
    for piece in data.counts.iter() {
        tokens.clear();
        session.encode_piece(piece.piece, &mut tokens);
        for token in &tokens {
            if let Some(occurrences) = occurrences.get_mut(token.id.index()) {
                *occurrences += piece.count;
            }
        }
    }
    TokenCosts::estimate(&occurrences, vocab)
}

fn tallies(trained: &Trained, data: &Data) -> Tallies {
    let vocab = trained.model().vocab();
    let mut result = Tallies {
        each: Vec::with_capacity(data.held_out.len()),
        overall: Profile::new(vocab.len()),
        corpora: vec![Profile::new(vocab.len()); data.corpora.len()],
        languages: BTreeMap::new(),
    };
    let costs = token_costs(trained, data);
    let mut bits_of: HashMap<&[u8], Option<u64>> = HashMap::new();
    let mut session = trained.model().encoder();
    let (mut tokens, mut placed) = (Vec::new(), Vec::new());
    for held in &data.held_out {
        tokens.clear();
        placed.clear();
        session.encode_pieces(held.text.as_bytes(), &held.pieces, &mut tokens);
        Placed::place_into(&held.pieces, &tokens, &mut placed)
            .expect("a row is measured only if its tokens tile the pieces");
        let document = Document { text: &held.text, pieces: &held.pieces, tokens: &placed };
        let text = held.text.as_bytes();
        let model_bits = held.pieces.iter().map(|piece| {
            let piece = &text[piece.range()];
            let bits = || Some((trained.bits(piece)? * MICRO).round() as u64);
            *bits_of.entry(piece).or_insert_with(bits)
        });
        let tally = Tally::of(&document, held.facts(), vocab)
            .priced(costs.of(&document, vocab), model_bits.sum());
        result.corpora[held.corpus].add_counted(&document, held.facts(), &tally);
        result
            .languages
            .entry(held.language.clone())
            .or_insert_with(|| Profile::new(vocab.len()))
            .add_counted(&document, held.facts(), &tally);
        result.each.push(tally);
    }
    for profile in &result.corpora {
        result.overall.merge(profile);
    }
    result
}

/// Fills in what needs all contestants of a size: attention relative to the baseline, parity,
/// differences.
fn finish_size(
    plan: &Plan,
    data: &Data,
    bootstrap: Bootstrap,
    size: usize,
    measured: Vec<Measured>,
    experiment: &mut Experiment,
) {
    // The byte baseline if it competes, else the first whose row counts.
    let baseline = measured
        .iter()
        .position(|m| m.row.algorithm == "byte" && m.tallies.is_some())
        .or_else(|| measured.iter().position(|m| m.tallies.is_some()));
    let select = |keep: &dyn Fn(&HeldOut) -> bool| -> Vec<usize> {
        (0..data.held_out.len()).filter(|&i| keep(&data.held_out[i])).collect()
    };
    let all: Vec<usize> = (0..data.held_out.len()).collect();
    let by_corpus: Vec<Vec<usize>> =
        (0..data.corpora.len()).map(|corpus| select(&|d| d.corpus == corpus)).collect();
    let languages: Vec<String> = measured
        .iter()
        .find_map(|m| m.tallies.as_ref())
        .map_or_else(Vec::new, |t| t.languages.keys().cloned().collect());
    let by_language: Vec<Vec<usize>> =
        languages.iter().map(|language| select(&|d| d.language == *language)).collect();
    let groups: Vec<&[usize]> =
        std::iter::once(&all).chain(&by_corpus).chain(&by_language).map(Vec::as_slice).collect();
    let counted: Vec<&Tallies> = measured.iter().filter_map(|m| m.tallies.as_ref()).collect();
    let standing: Vec<(&str, Standing)> = measured
        .iter()
        .filter(|m| m.tallies.is_some())
        .map(|m| (m.row.algorithm.as_str(), m.row.standing))
        .collect();
    // Contenders are paired with each other on all documents.
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (a, &(_, one)) in standing.iter().enumerate() {
        for (b, &(_, other)) in standing.iter().enumerate().skip(a + 1) {
            if (one, other) == (Standing::Contender, Standing::Contender) {
                pairs.push((a, b));
            }
        }
    }
    let each: Vec<&[Tally]> = counted.iter().map(|tallies| tallies.each.as_slice()).collect();
    let mut estimates: Vec<Vec<BTreeMap<Ratio, Estimate>>> = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        let pairs = if i == 0 { pairs.as_slice() } else { &[] };
        let (of_group, differences) = group_estimates(&each, group, pairs, bootstrap);
        estimates.push(of_group);
        experiment.differences.extend(differences.into_iter().map(
            |(ratio, (a, b), difference)| Difference {
                size,
                ratio,
                a: standing[a].0.to_owned(),
                b: standing[b].0.to_owned(),
                difference,
            },
        ));
    }
    let alignments = alignments(plan, data);
    let base = baseline.and_then(|i| measured[i].tallies.as_ref());
    let mut nth = 0;
    for m in &measured {
        let mut row = m.row.clone();
        if let Some(tallies) = &m.tallies {
            let measure = |profile: &Profile, base: Option<&Profile>, group: usize| {
                measures(profile, base, estimates[group][nth].clone())
            };
            row.overall = measure(&tallies.overall, base.map(|b| &b.overall), 0);
            for (i, (name, _)) in data.corpora.iter().enumerate() {
                if !by_corpus[i].is_empty() {
                    let base = base.map(|b| &b.corpora[i]);
                    let measures = measure(&tallies.corpora[i], base, 1 + i);
                    row.corpora.push(Group { name: name.clone(), measures });
                }
            }
            for (i, language) in languages.iter().enumerate() {
                let base = base.map(|b| &b.languages[language]);
                let group = 1 + by_corpus.len() + i;
                let measures = measure(&tallies.languages[language], base, group);
                row.languages.push(Group { name: language.clone(), measures });
            }
            row.parity = alignments.iter().map(|a| parity(a, &tallies.each, bootstrap)).collect();
            nth += 1;
        }
        experiment.rows.push(row);
    }
}

/// The metrics whose differences are reported.
const PAIRED: [Ratio; 4] =
    [Ratio::BytesPerToken, Ratio::TokensPerWord, Ratio::SingleTokenWords, Ratio::BitsPerByte];

type PairedDifference = (Ratio, (usize, usize), Estimate);

/// Every ratio of every contestant (`each`: the tallies of all documents) on the documents of a
/// group, and the differences of `pairs` of contestants: from the same resamples.
fn group_estimates(
    each: &[&[Tally]],
    documents: &[usize],
    pairs: &[(usize, usize)],
    bootstrap: Bootstrap,
) -> (Vec<BTreeMap<Ratio, Estimate>>, Vec<PairedDifference>) {
    let field = |name: &str| Tally::FIELDS.iter().position(|&field| field == name);
    // Columns that are equal (what all contestants share, what never occurs) are kept once.
    let mut columns: Vec<Vec<u64>> = Vec::new();
    let mut known: HashMap<Vec<u64>, usize> = HashMap::new();
    let mut column = |contestant: usize, name: &str| -> usize {
        let field = field(name).expect("ratios name fields of the tally");
        let values: Vec<u64> =
            documents.iter().map(|&i| each[contestant][i].values()[field]).collect();
        *known.entry(values).or_insert_with_key(|values| {
            columns.push(values.clone());
            columns.len() - 1
        })
    };
    let mut ratios = Vec::new();
    for contestant in 0..each.len() {
        for ratio in Ratio::ALL {
            let (above, below) = ratio.fields();
            ratios.push((column(contestant, above), column(contestant, below)));
        }
    }
    if ratios.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut table = Table::new(columns.len());
    let mut row = vec![0.0; columns.len()];
    for i in 0..documents.len() {
        for (value, column) in row.iter_mut().zip(&columns) {
            *value = column[i] as f64;
        }
        table.push(&row);
    }
    let of = |contestant: usize, ratio: Ratio| {
        let at = Ratio::ALL.iter().position(|&other| other == ratio);
        contestant * Ratio::ALL.len() + at.expect("ALL holds every ratio")
    };
    let asked: Vec<(Ratio, (usize, usize))> =
        PAIRED.iter().flat_map(|&ratio| pairs.iter().map(move |&pair| (ratio, pair))).collect();
    let differences: Vec<(usize, usize)> =
        asked.iter().map(|&(ratio, (a, b))| (of(a, ratio), of(b, ratio))).collect();
    let found = bootstrap.ratios(&table, &ratios, &differences);
    let by_contestant = found
        .ratios
        .chunks(Ratio::ALL.len())
        .map(|estimates| {
            let named = Ratio::ALL.iter().zip(estimates);
            named.filter_map(|(&r, estimate)| Some((r, (*estimate)?.scaled(r.scale())))).collect()
        })
        .collect();
    let differences = asked
        .into_iter()
        .zip(found.differences)
        .filter_map(|((r, pair), difference)| Some((r, pair, difference?.scaled(r.scale()))))
        .collect();
    (by_contestant, differences)
}

fn measures(
    profile: &Profile,
    baseline: Option<&Profile>,
    ratios: BTreeMap<Ratio, Estimate>,
) -> Measures {
    let tally = &profile.tally;
    let quantile = |q| profile.lengths.quantile(q);
    let lengths = match [0.05, 0.5, 0.95, 1.0].map(quantile) {
        [Some(a), Some(b), Some(c), Some(d)] => Some([a, b, c, d]),
        _ => None,
    };
    Measures {
        documents: tally.documents,
        bytes: tally.bytes,
        tokens: tally.tokens,
        ratios,
        renyi_efficiency: profile.renyi_efficiency(),
        vocab_use: profile.vocab_use(),
        lengths,
        numbers: profile.digits.numbers(),
        digit_consistency: profile.digits.consistency(),
        digit_alignment: profile.digits.right_aligned(),
        attention_cost: baseline.and_then(|b| relative_attention_cost(tally, &b.tally)),
    }
}

/// A parallel corpus: the indices of the held-out documents that exist in every language, line by
/// line.
struct Alignment {
    corpus: String,
    reference: String,
    languages: Vec<String>,
    /// For each line, one document for each of `languages`.
    lines: Vec<Vec<usize>>,
}

fn alignments(plan: &Plan, data: &Data) -> Vec<Alignment> {
    let mut found: Vec<Alignment> = Vec::new();
    for (corpus, (name, _)) in data.corpora.iter().enumerate() {
        let mut lines: BTreeMap<usize, HashMap<&str, usize>> = BTreeMap::new();
        let mut languages: Vec<String> = Vec::new();
        for (i, document) in data.held_out.iter().enumerate() {
            if let (true, Some(line)) = (document.corpus == corpus, document.line) {
                lines.entry(line).or_default().insert(&document.language, i);
                if !languages.contains(&document.language) {
                    languages.push(document.language.clone());
                }
            }
        }
        languages.sort();
        let lines: Vec<Vec<usize>> = lines
            .values()
            .filter_map(|line| {
                languages.iter().map(|language| line.get(language.as_str()).copied()).collect()
            })
            .collect();
        if languages.len() > 1 && !lines.is_empty() && languages.contains(&plan.reference) {
            let reference = plan.reference.clone();
            found.push(Alignment { corpus: name.clone(), reference, languages, lines });
        }
    }
    // The one with most languages leads.
    found.sort_by_key(|alignment| std::cmp::Reverse(alignment.languages.len()));
    found
}

fn parity(alignment: &Alignment, each: &[Tally], bootstrap: Bootstrap) -> Parity {
    let Alignment { corpus, reference, languages, lines } = alignment;
    let tokens = |line: &[usize], language: usize| each[line[language]].tokens as f64;
    let at = languages.iter().position(|language| language == reference).unwrap_or(0);
    let premiums = languages.iter().enumerate().filter_map(|(k, language)| {
        let parts: Vec<(f64, f64)> =
            lines.iter().map(|line| (tokens(line, k), tokens(line, at))).collect();
        Some((language.clone(), bootstrap.ratio(&parts)?))
    });
    let inequality = bootstrap.statistic(lines.len(), |weights| {
        let mut sums = vec![0.0; languages.len()];
        for (line, weight) in lines.iter().zip(weights) {
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum += tokens(line, k) * weight;
            }
        }
        gini(&sums)
    });
    Parity {
        corpus: corpus.clone(),
        reference: reference.clone(),
        documents: lines.len() as u64,
        premiums: premiums.collect(),
        gini: inequality,
    }
}

/// The tokens that each of `contenders` makes of each sample (name, language, text).
#[must_use]
pub fn samples(
    contenders: &[&Contender],
    splitter: &dyn Split,
    normalizer: Option<&dyn Normalize>,
    texts: &[(String, String, String)],
) -> Vec<Sample> {
    let sample = |(name, language, text): &(String, String, String)| {
        let text = match normalizer {
            Some(normalizer) => normalizer.normalize(text).into_owned(),
            None => text.clone(),
        };
        let pieces = splitter.split(&text);
        let lines = contenders.iter().map(|contender| {
            let model = contender.trained.model();
            let (mut tokens, mut placed) = (Vec::new(), Vec::new());
            model.encoder().encode_pieces(text.as_bytes(), &pieces, &mut tokens);
            let void = Placed::place_into(&pieces, &tokens, &mut placed).err();
            let tokens = placed.iter().map(|token| SampleToken {
                id: token.id.0,
                start: token.span.start,
                end: token.span.end,
                unknown: model.vocab().kind(token.id) == Some(TokenKind::Unknown),
            });
            SampleLine {
                algorithm: contender.algorithm.clone(),
                standing: contender.standing,
                size: contender.size,
                void: void.map(|error| error.to_string()),
                tokens: tokens.collect(),
            }
        });
        let lines = lines.collect();
        Sample { name: name.clone(), language: language.clone(), text, lines }
    };
    texts.iter().map(sample).collect()
}

/// SHA-256 over a vocabulary: kind, length and bytes of every token in order of id.
#[must_use]
pub fn vocab_digest(vocab: &Vocab) -> String {
    let mut hash = Sha256::new();
    for (_, bytes, kind) in vocab.iter() {
        hash.update([match kind {
            TokenKind::Normal => 0,
            TokenKind::Unknown => 1,
            TokenKind::Control => 2,
            TokenKind::UserDefined => 3,
            TokenKind::Byte => 4,
            TokenKind::Unused => 5,
        }]);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use tokenizer_core::{Decode, DecodeError, Encode, Model, Token, TokenId};

    use super::*;
    use crate::contestant::Progress;

    fn corpus() -> Corpus {
        let mut corpus = Corpus::new("rhyme", "prose");
        for n in 0..300 {
            corpus.push_text("en", &format!("the cat {n} sat on the mat of number {}\n", n * 7));
        }
        corpus
    }

    fn parallel() -> Corpus {
        let lines = |words: [&str; 3]| -> String {
            let line = |n: usize| format!("{} {n} {} {}\n", words[0], words[1], words[n % 3]);
            (0..120).map(line).collect()
        };
        let texts = [
            ("en", lines(["the cat", "sat", "on the mat"])),
            ("vi", lines(["con mèo", "ngồi", "trên tấm thảm"])),
            ("zh-Hans", lines(["这只猫", "坐在", "垫子上"])),
        ];
        Corpus::parallel("animals", &texts).unwrap()
    }

    fn plan(algorithms: &[&str], sizes: &[usize]) -> Plan {
        Plan {
            algorithms: algorithms.iter().map(|name| (*name).to_owned()).collect(),
            vocab_sizes: sizes.to_vec(),
            bootstrap: 50,
            ..Plan::default()
        }
    }

    fn refusal(plan: &Plan, data: &Data, change: impl Fn(&mut Vec<Entry>)) -> String {
        let mut entries = plan.entries(data).unwrap();
        change(&mut entries);
        check_equal_terms(plan, &entries, data).unwrap_err().to_string()
    }

    #[test]
    fn unequal_terms_are_refused_with_both_sides_named() {
        let plan = plan(&["bpe", "wordpiece"], &[520]);
        let data = Data::prepare(&plan, vec![corpus()]).unwrap();
        check_equal_terms(&plan, &plan.entries(&data).unwrap(), &data).unwrap();
        let text = refusal(&plan, &data, |e| e[1].terms.splitter = "bert".into());
        assert!(text.contains("splitters differ: bpe has gpt2, wordpiece has bert"), "{text}");
        let text = refusal(&plan, &data, |e| e[1].terms.normalizer = "nfc".into());
        assert!(text.contains("normalizers differ: bpe has none, wordpiece has nfc"), "{text}");
        let text = refusal(&plan, &data, |e| e[1].terms.special_tokens.clear());
        assert!(text.contains("special tokens differ"), "{text}");
        let text = refusal(&plan, &data, |e| e[1].terms.bytes = BytePolicy::Unk);
        assert!(text.contains("byte policies differ: bpe has bytes, wordpiece has unk"), "{text}");
        let text = refusal(&plan, &data, |e| e[1].terms.train_set = "other".into());
        assert!(text.contains("training sets differ"), "{text}");
        let text = refusal(&plan, &data, Vec::clear);
        assert!(text.contains("there is no contestant"), "{text}");
        let text = refusal(&plan, &data, |e| {
            let again = Entry { contestant: algorithms::by_name("bpe").unwrap(), ..e.remove(1) };
            e.push(again);
        });
        assert!(text.contains("bpe competes twice"), "{text}");
    }

    #[test]
    fn terms_of_other_data_are_refused() {
        let plan = plan(&["bpe"], &[300]);
        let data = Data::prepare(&plan, vec![corpus()]).unwrap();
        let text = refusal(&plan, &data, |e| e[0].terms.train_set = "other".into());
        assert!(text.contains("not those of the plan"), "{text}");
    }

    #[test]
    fn sizes_out_of_reach_are_refused_with_the_minimum() {
        let plan = plan(&["bpe", "wordpiece"], &[300, 600]);
        let data = Data::prepare(&plan, vec![corpus()]).unwrap();
        let text =
            check_equal_terms(&plan, &plan.entries(&data).unwrap(), &data).unwrap_err().to_string();
        // WordPiece needs 256 bytes twice, and the special token.
        assert!(text.contains("wordpiece needs at least 513 tokens"), "{text}");
        assert!(text.contains("a vocabulary of 300 is out of its reach"), "{text}");
        assert!(!text.contains("bpe needs"), "{text}");
    }

    #[test]
    fn held_out_text_that_was_trained_on_is_refused() {
        let plan = plan(&["bpe"], &[300]);
        let mut data = Data::prepare(&plan, vec![corpus()]).unwrap();
        let digest = data.held_out[0].digest;
        data.train_texts.insert(digest);
        let text = refusal(&plan, &data, |_| {});
        assert!(text.contains("1 held-out documents were trained on"), "{text}");
    }

    #[test]
    fn repeated_documents_are_never_in_both_parts() {
        let mut doubled = corpus();
        let again = doubled.documents.clone();
        doubled.documents.extend(again);
        // Lines of a parallel corpus that repeat in another line.
        let texts = [("en", "same\nsame\nsame\nsame\nother\n".repeat(20))];
        let parallel = Corpus::parallel("p", &texts).unwrap();
        let data = Data::prepare(&plan(&["bpe"], &[300]), vec![doubled, parallel]).unwrap();
        assert!(data.held_out.iter().all(|d| !data.train_texts.contains(&d.digest)));
    }

    #[test]
    fn too_little_text_is_refused() {
        let plan = plan(&["bpe"], &[300]);
        let one = |text: &str| {
            let mut corpus = Corpus::new("one", "prose");
            corpus.push_text("en", text);
            Data::prepare(&plan, vec![corpus]).err().map(|refused| refused.to_string())
        };
        assert!(one("").is_some_and(|text| text.contains("empty")));
        assert!(one("a single document").is_some_and(|text| text.contains("empty")));
        let unknown = Plan { splitter: "no-such".into(), ..plan.clone() };
        assert!(Data::prepare(&unknown, vec![corpus()]).is_err());
        let unknown = Plan { algorithms: vec!["no-such".into()], ..plan.clone() };
        let data = Data::prepare(&plan, vec![corpus()]).unwrap();
        assert!(unknown.entries(&data).is_err());
    }

    #[test]
    fn every_algorithm_passes_every_check_under_both_policies() {
        for bytes in [BytePolicy::Bytes, BytePolicy::Unk] {
            let plan = Plan { bytes, vocab_sizes: vec![700], bootstrap: 20, ..Plan::default() };
            let plan = Plan {
                // The alphabet is small, so a smaller vocabulary has room for merges.
                vocab_sizes: vec![if bytes == BytePolicy::Unk { 150 } else { 550 }],
                ..plan
            };
            let data = Data::prepare(&plan, vec![corpus(), parallel()]).unwrap();
            let outcome = run(&plan, &plan.entries(&data).unwrap(), &data, &mut |_| {}).unwrap();
            for row in &outcome.experiment.rows {
                let name = &row.algorithm;
                assert!(row.checks.iter().all(Check::passed), "{name} {bytes:?}: {:?}", row.void);
                assert!(row.void.is_none(), "{name} {bytes:?}: {:?}", row.void);
                assert!(row.overall.tokens > 0, "{name}");
            }
        }
    }

    #[test]
    fn one_training_for_all_sizes_gives_what_each_by_itself_gives() {
        for bytes in [BytePolicy::Bytes, BytePolicy::Unk] {
            // The largest is more than the text gives; the smallest has no merge.
            let sizes = match bytes {
                BytePolicy::Bytes => vec![513, 560, 2000],
                BytePolicy::Unk => vec![130, 150, 2000],
            };
            let names = ["bpe", "wordpiece-freq", "wordpiece"];
            let plan = Plan { bytes, ..plan(&names, &sizes) };
            let data = Data::prepare(&plan, vec![corpus(), parallel()]).unwrap();
            for entry in plan.entries(&data).unwrap() {
                let mut go_on = |_: &'static str, _: u64, _: u64| ControlFlow::Continue(());
                let contestant = entry.contestant;
                let rungs = contestant.train_each(&data.counts, &sizes, &entry.terms, &mut go_on);
                assert_eq!(rungs.len(), sizes.len());
                for (rung, &size) in rungs.iter().zip(&sizes) {
                    let name = contestant.name();
                    let one = rung.trained.as_ref().unwrap().model();
                    let other =
                        contestant.train(&data.counts, size, &entry.terms, &mut go_on).unwrap();
                    let other = other.model();
                    assert_eq!(
                        vocab_digest(one.vocab()),
                        vocab_digest(other.vocab()),
                        "{name} {size}"
                    );
                    let (mut a, mut b) = (Vec::new(), Vec::new());
                    let (mut first, mut second) = (one.encoder(), other.encoder());
                    for piece in data.counts.iter() {
                        first.encode_piece(piece.piece, &mut a);
                        second.encode_piece(piece.piece, &mut b);
                    }
                    assert_eq!(a, b, "{name} {size}");
                }
            }
        }
    }

    #[test]
    fn bits_per_byte_of_the_unigram_model_are_below_those_of_its_tokens() {
        let plan = plan(&["unigram", "byte"], &[400]);
        let data = Data::prepare(&plan, vec![corpus()]).unwrap();
        let outcome = run(&plan, &plan.entries(&data).unwrap(), &data, &mut |_| {}).unwrap();
        let [unigram, byte] = &outcome.experiment.rows[..] else { panic!("two rows") };
        let bits = |row: &Row, ratio| row.overall.value(ratio).unwrap();
        // Summing over all segmentations can only be shorter than one of them, and the text was
        // not in the training set, so its own scores fit no better than counted ones by much.
        let own = bits(unigram, Ratio::ModelBitsPerByte);
        let tokens = bits(unigram, Ratio::BitsPerByte);
        assert!(own < tokens * 1.02, "{own} and {tokens}");
        assert!(tokens < bits(byte, Ratio::BitsPerByte));
        assert!(bits(byte, Ratio::BitsPerByte) < 8.0);
        assert_eq!(byte.overall.value(Ratio::ModelBitsPerByte), None);
    }

    #[test]
    fn morphs_are_measured_for_every_row() {
        let plan = plan(&["bpe", "byte"], &[400, 450]);
        let gold = Gold::parse("cats\tcat s\n").unwrap();
        let report = compare(&plan, vec![corpus()], Some(&gold), &mut |_| {}).unwrap();
        for row in &report.experiments[0].rows {
            let morphology = row.morphology.as_ref().unwrap();
            assert_eq!(morphology.overall.words, 1, "{}", row.algorithm);
            assert_eq!(morphology.overall.recall.unwrap().value, 1.0, "{}", row.algorithm);
        }
    }

    #[test]
    fn code_is_measured_where_the_role_says_so() {
        let mut code = Corpus::new("source", "code");
        for n in 0..200 {
            code.push_text("zxx", &format!("if a{n} == b:\n    return a{n}\n"));
        }
        let plan = plan(&["bpe"], &[300]);
        let data = Data::prepare(&plan, vec![code, corpus()]).unwrap();
        let outcome = run(&plan, &plan.entries(&data).unwrap(), &data, &mut |_| {}).unwrap();
        let row = &outcome.experiment.rows[0];
        let groups: Vec<Option<f64>> =
            row.corpora.iter().map(|g| g.measures.value(Ratio::TokensPerIndentation)).collect();
        // GPT-2's splitter gives the last space of an indentation to the word behind it.
        assert!(groups[0].is_some_and(|tokens| tokens >= 2.0), "{groups:?}");
        assert_eq!(groups[1], None);
        assert_eq!(row.overall.value(Ratio::MergedIndentations), Some(1.0));
        assert_eq!(row.overall.value(Ratio::SingleTokenOperators), Some(1.0));
    }

    #[test]
    fn the_same_plan_gives_the_same_numbers() {
        let plan = plan(&["bpe", "wordpiece-freq"], &[520, 560]);
        let once = || {
            let data = Data::prepare(&plan, vec![corpus(), parallel()]).unwrap();
            let outcome = run(&plan, &plan.entries(&data).unwrap(), &data, &mut |_| {}).unwrap();
            let mut experiment = outcome.experiment;
            experiment.rows.iter_mut().for_each(|row| row.train_seconds = 0.0);
            serde_json::to_string(&experiment).unwrap()
        };
        assert_eq!(once(), once());
    }

    #[test]
    fn parity_is_measured_line_by_line() {
        let plan = plan(&["byte"], &[300]);
        let data = Data::prepare(&plan, vec![parallel(), corpus()]).unwrap();
        let outcome = run(&plan, &plan.entries(&data).unwrap(), &data, &mut |_| {}).unwrap();
        let parity = &outcome.experiment.rows[0].parity[0];
        assert_eq!(parity.premiums["en"].value, 1.0);
        // With a token for each byte, the premium is the ratio of bytes of the aligned lines.
        let bytes = |language: &str| {
            let of = data.held_out.iter().filter(|d| d.language == language && d.line.is_some());
            of.map(|d| d.text.len()).sum::<usize>() as f64
        };
        assert_eq!(parity.premiums["vi"].value, bytes("vi") / bytes("en"));
        let gini = parity.gini.unwrap().value;
        assert!((gini - gini_of(&[bytes("en"), bytes("vi"), bytes("zh-Hans")])).abs() < 1e-12);
    }

    fn gini_of(values: &[f64]) -> f64 {
        gini(values).unwrap()
    }

    #[test]
    fn differences_are_paired_and_signed() {
        let plan = plan(&["bpe", "wordpiece", "byte"], &[560]);
        let data = Data::prepare(&plan, vec![corpus()]).unwrap();
        let outcome = run(&plan, &plan.entries(&data).unwrap(), &data, &mut |_| {}).unwrap();
        let experiment = &outcome.experiment;
        let value = |name: &str| {
            let row = experiment.rows.iter().find(|row| row.algorithm == name).unwrap();
            row.overall.value(Ratio::BytesPerToken).unwrap()
        };
        let all = experiment.differences.iter().filter(|d| d.ratio == Ratio::BytesPerToken);
        let all: Vec<_> = all.collect();
        assert_eq!(all.len(), 1, "baselines are not paired");
        let expected = value("bpe") - value("wordpiece");
        assert!((all[0].difference.value - expected).abs() < 1e-12);
    }

    /// Encodes bytes, but not as its twin says; or panics.
    struct Broken {
        panics: bool,
    }

    struct BrokenModel {
        vocab: Vocab,
    }

    impl Model for BrokenModel {
        fn vocab(&self) -> &Vocab {
            &self.vocab
        }

        fn encoder(&self) -> Box<dyn Encode + '_> {
            Box::new(BrokenEncoder)
        }
    }

    struct BrokenEncoder;

    impl Encode for BrokenEncoder {
        fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
            tokens.extend(piece.iter().map(|&b| Token::new(TokenId(u32::from(b)), 1)));
        }
    }

    impl Decode for BrokenModel {
        fn decode_into(&self, ids: &[TokenId], bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
            bytes.extend(ids.iter().map(|id| id.0 as u8));
            Ok(())
        }
    }

    impl Contestant for Broken {
        fn name(&self) -> &str {
            "broken"
        }

        fn standing(&self) -> Standing {
            Standing::Contender
        }

        fn smallest(&self, _: &PieceCounts, _: &Terms) -> Result<usize, String> {
            Ok(0)
        }

        fn train(
            &self,
            _: &PieceCounts,
            _: usize,
            _: &Terms,
            _: &mut Progress<'_>,
        ) -> Result<Trained, String> {
            assert!(!self.panics, "this one panics");
            let vocab = Vocab::from_tokens((0..=255u8).map(|byte| [byte])).unwrap();
            Ok(Trained::new(BrokenModel { vocab }, |_| Box::new(|_| Vec::new())))
        }

        fn round_trip(&self, _: &Terms) -> RoundTrip {
            RoundTrip::Always
        }
    }

    use crate::contestant::RoundTrip;

    #[test]
    fn a_failed_check_or_a_panic_voids_the_row_and_only_that() {
        for panics in [false, true] {
            let plan = plan(&["bpe"], &[300]);
            let data = Data::prepare(&plan, vec![corpus()]).unwrap();
            let mut entries = plan.entries(&data).unwrap();
            let contestant = Box::new(Broken { panics });
            entries.push(Entry { contestant, terms: plan.terms(&data) });
            let outcome = run(&plan, &entries, &data, &mut |_| {}).unwrap();
            let [good, bad] = &outcome.experiment.rows[..] else { panic!("two rows") };
            assert!(good.void.is_none() && good.overall.tokens > 0);
            assert_eq!(bad.overall.tokens, 0);
            let reason = bad.void.as_deref().unwrap();
            let expected = if panics { "this one panics" } else { "fast encoder = naive encoder" };
            assert!(reason.contains(expected), "{reason}");
            assert_eq!(outcome.trained.len(), 1);
            if !panics {
                assert!(bad.checks.iter().any(|check| !check.passed()));
            }
        }
    }

    #[test]
    fn samples_tile_their_texts() {
        let plan = plan(&["bpe", "word"], &[400]);
        let data = Data::prepare(&plan, vec![corpus(), parallel()]).unwrap();
        let outcome = run(&plan, &plan.entries(&data).unwrap(), &data, &mut |_| {}).unwrap();
        let shown: Vec<&Contender> = outcome.trained.iter().collect();
        let texts = data.samples(12);
        let languages: Vec<&str> = texts.iter().map(|text| text.1.as_str()).collect();
        assert_eq!(languages, ["en", "vi", "zh-Hans"]);
        let samples = samples(&shown, data.splitter.as_ref(), None, &texts);
        for sample in &samples {
            assert_eq!(sample.lines.len(), 2);
            for line in &sample.lines {
                let covered: usize = line.tokens.iter().map(|t| t.end - t.start).sum();
                assert_eq!(covered, sample.text.len(), "{}", sample.name);
            }
        }
    }
}
