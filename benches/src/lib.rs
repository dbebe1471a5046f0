//! What the criterion benches share: a fixture corpus and the models that are trained on it.
//!
//! Each bench verifies its answer outside of the timed part. The corpora are small, so that the
//! whole set takes well under a minute; `harness bench-all` measures on all of them.

use std::ops::ControlFlow;
use std::path::Path;

use harness::contestant::Trained;
use harness::corpus::{Corpus, FixtureManifest};
use harness::experiment::{Data, Entry, Plan};

/// The vocabulary size of every bench.
pub const VOCAB_SIZE: usize = 4000;

/// The corpora that are benched: English, Rust and Python, ten languages. Every algorithm can reach
/// [`VOCAB_SIZE`] on them.
pub const CORPORA: [&str; 3] = ["prose", "code", "typescript"];

/// A fixture corpus by name.
///
/// # Panics
///
/// If the fixtures cannot be read or have no corpus of this name: a bench without its input is
/// no bench.
#[must_use]
pub fn corpus(name: &str) -> Corpus {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let read = |path: &str| {
        let path = root.join(path);
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let json = read("MANIFEST.json").unwrap_or_else(|problem| panic!("{problem}"));
    let corpora = FixtureManifest::parse(&json).and_then(|manifest| manifest.corpora(read));
    let corpora = corpora.unwrap_or_else(|problem| panic!("{problem}"));
    let found = corpora.into_iter().find(|corpus| corpus.name == name);
    found.unwrap_or_else(|| panic!("there is no fixture corpus {name}"))
}

/// The plan of every bench: all algorithms, pieces as GPT-2 cuts them, all bytes covered.
#[must_use]
pub fn plan() -> Plan {
    Plan { vocab_sizes: vec![VOCAB_SIZE], bootstrap: 0, ..Plan::default() }
}

/// A corpus, divided, split and counted, and the contestants.
///
/// # Panics
///
/// If the corpus cannot be prepared.
#[must_use]
pub fn prepared(name: &str) -> (Data, Vec<Entry>) {
    let plan = plan();
    let data =
        Data::prepare(&plan, vec![corpus(name)]).unwrap_or_else(|refused| panic!("{refused}"));
    let entries = plan.entries(&data).unwrap_or_else(|refused| panic!("{refused}"));
    (data, entries)
}

/// A contestant trained on the counts of its data.
///
/// # Panics
///
/// If training fails.
#[must_use]
pub fn train(data: &Data, entry: &Entry) -> Trained {
    let mut go_on = |_: &'static str, _: u64, _: u64| ControlFlow::Continue(());
    let trained = entry.contestant.train(&data.counts, VOCAB_SIZE, &entry.terms, &mut go_on);
    trained.unwrap_or_else(|problem| panic!("{}: {problem}", entry.contestant.name()))
}
