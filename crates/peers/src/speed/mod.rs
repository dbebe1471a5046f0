//! The referee of speed: every contestant is a process of its own that speaks the protocol of
//! `python/runner.py`, be it Python or a crate built in here ([`child`]).
//!
//! A contestant's rows count only if its ids are ours on every document and awkward text
//! ([`mod@gate`]); ours must be those of the reference libraries, which stand in the same table. Rounds
//! are interleaved: in each, every contestant starts afresh, and every other round goes the other
//! way round. Rounds go on until their number or the time is used up.

pub mod against;
pub mod child;
pub mod contest;
pub mod corpora;
pub mod crates;
pub mod gate;
pub mod models;
pub mod page;
pub mod report;
pub mod throughput;
pub mod trainers;
pub mod training;
pub mod worst;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use contest::Contest;
use corpora::Corpus;
use report::Report;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Python with the packages, if there is one.
    pub python: Option<PathBuf>,
    /// The program of the package `next`, if it was built.
    pub next: Option<PathBuf>,
    /// Folders with more models.
    pub data: Vec<PathBuf>,
    /// Corpora by name, each of files or folders; what is not given is taken from the fixtures.
    pub corpora: Vec<(String, Vec<PathBuf>)>,
    /// The text to train on, files or folders.
    pub train: Vec<PathBuf>,
    /// Folder of the report and of the files made on the way.
    pub out: PathBuf,
    /// At most so many rounds.
    pub rounds: usize,
    /// No round begins that would probably end later than this.
    pub budget: Duration,
    /// How much of a corpus is used, in bytes.
    pub bytes: usize,
    /// How much is trained on at most, in bytes.
    pub train_bytes: usize,
    /// The number of tokens to train.
    pub vocab: usize,
    /// Only models whose name contains this.
    pub only: Option<String>,
    /// Smaller hard texts and no large ones.
    pub quick: bool,
}

/// Runs everything; `progress` receives lines. `keep` is given the report after every round.
///
/// # Errors
///
/// If files cannot be read or written, a model of ours cannot be loaded, or this program cannot
/// start itself.
pub fn run(
    options: &Options,
    progress: &mut dyn FnMut(&str),
    keep: &mut dyn FnMut(&Report) -> Result<(), String>,
) -> Result<Report, String> {
    let began = Instant::now();
    let folder = options.out.join(models::FOLDER);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // Contestants may run elsewhere.
    let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    let contest = Contest::new(options.python.as_deref(), options.next.as_deref())?;
    let mut report = Report { kind: report::KIND.to_owned(), ..Report::default() };
    progress("reading the corpora");
    let corpora = corpora(options, &folder, &mut report)?;
    let task = task(options, &folder, &mut report)?;
    progress("training the models that no published file stands for");
    let train = fs::read_to_string(&task.file).map_err(|error| error.to_string())?;
    let wanted = |name: &str| options.only.as_deref().is_none_or(|only| name.contains(only));
    let models = models::all(&folder, &options.data, &train, options.vocab, &wanted)?;
    for (name, path) in models.iter().flat_map(|model| &model.files) {
        add_file(&mut report, name, path)?;
    }
    let mut admitted: Vec<Vec<&'static str>> = Vec::new();
    for model in &models {
        progress(&format!("{}: whose ids are ours", model.name));
        admitted.push(gate::gate(model, &corpora, &contest, &mut report)?);
    }
    let mut learned = training::Learned::default();
    let mut out_of_race: HashSet<(String, &'static str)> = HashSet::new();
    for round in 0..options.rounds {
        let start = Instant::now();
        let mut slow = HashSet::new();
        for (model, admitted) in models.iter().zip(&admitted) {
            for corpus in &corpora {
                // Every other round goes the other way round: nobody always runs behind the same.
                let order: Vec<&'static str> = match round % 2 {
                    0 => admitted.clone(),
                    _ => admitted.iter().rev().copied().collect(),
                };
                for name in order {
                    if out_of_race.contains(&(model.name.clone(), name)) {
                        continue;
                    }
                    let at = format!("{}, {}, {name}", model.name, corpus.name);
                    progress(&format!("round {}: {at}", round + 1));
                    match throughput::measure(&contest, model, corpus, name, round, &mut report) {
                        Ok(speed) if speed >= throughput::PATIENCE => {}
                        // This round is finished, so that no corpus is without a row.
                        Ok(_) => drop(slow.insert((model.name.clone(), name))),
                        Err(why) => {
                            report.failures.push(format!("{at}: {why}"));
                            out_of_race.insert((model.name.clone(), name));
                        }
                    }
                }
            }
            if model.worst {
                hard(model, admitted, &contest, options, &folder, round, &mut report, progress);
            }
        }
        learned.round(&contest, &task, round, &mut report, progress);
        out_of_race.extend(slow);
        learned.judge(&mut report);
        report.rounds = round + 1;
        keep(&report)?;
        // The first round includes what is measured once.
        if began.elapsed() + start.elapsed().mul_f64(0.9) > options.budget {
            break;
        }
    }
    worst::clean(&folder);
    Ok(report)
}

#[allow(clippy::too_many_arguments)] // They are what a round has, and nothing else has them together.
fn hard(
    model: &models::Model,
    admitted: &[&'static str],
    contest: &Contest,
    options: &Options,
    folder: &Path,
    round: usize,
    report: &mut Report,
    progress: &mut dyn FnMut(&str),
) {
    let bytes = if options.quick { worst::QUICK } else { worst::COMMON };
    // How much a session remembers makes no difference to one piece.
    for &name in admitted.iter().filter(|name| **name != contest::OURS_PREPARED) {
        progress(&format!("round {}: {}, hard texts, {name}", round + 1, model.name));
        worst::measure(contest, model, folder, name, bytes, round, report);
    }
    // The large ones tell what the others only hint at; once is enough for a slope.
    if round == 0 && !options.quick {
        progress(&format!("{}: hard texts of 16 MB, ours", model.name));
        worst::measure(contest, model, folder, "ours", worst::LARGE, round, report);
    }
}

/// The corpora: those that were given, else folders of the fixtures.
fn corpora(options: &Options, folder: &Path, report: &mut Report) -> Result<Vec<Corpus>, String> {
    let fixtures = testkit::fixtures::root().join("corpora");
    let mut paths: BTreeMap<String, Vec<PathBuf>> = options.corpora.iter().cloned().collect();
    if paths.is_empty() {
        for (name, part) in [("english", "prose"), ("code", "code"), ("languages", "sentences")] {
            paths.insert(name.to_owned(), vec![fixtures.join(part)]);
        }
    }
    let mut corpora = Vec::new();
    for (name, paths) in paths {
        let text = corpora::mixed(&paths, options.bytes)?;
        let corpus = Corpus::write(folder, &format!("corpus-{name}"), text)?;
        let listed = format!("{}/corpus-{name}.txt", models::FOLDER);
        report.manifest.add_file(&listed, corpus.text.as_bytes());
        corpora.push(Corpus { name, ..corpus });
    }
    Ok(corpora)
}

/// The text to train on, and the part of it that is held out.
fn task(options: &Options, folder: &Path, report: &mut Report) -> Result<training::Task, String> {
    let fixtures = testkit::fixtures::root().join("corpora");
    let of_fixtures = ["prose", "code", "sentences", "parallel", "data"];
    let paths = match options.train.is_empty() {
        true => of_fixtures.map(|part| fixtures.join(part)).to_vec(),
        false => options.train.clone(),
    };
    let (train, held_out) = corpora::divided(&corpora::mixed(&paths, options.train_bytes)?);
    let file = Corpus::write(folder, "train", train)?;
    report.manifest.add_file(&format!("{}/train.txt", models::FOLDER), file.text.as_bytes());
    let held_out = Corpus::write(folder, "held-out", held_out)?;
    let listed = format!("{}/held-out.txt", models::FOLDER);
    report.manifest.add_file(&listed, held_out.text.as_bytes());
    Ok(training::Task {
        file: file.file,
        held_out: held_out.text,
        vocab: options.vocab,
        folder: folder.to_owned(),
    })
}

fn add_file(report: &mut Report, name: &str, path: &Path) -> Result<(), String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    report.manifest.add_file(name, &bytes);
    Ok(())
}
