//! The main job: every algorithm on every fixture corpus.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use harness::corpus::{Corpus, FixtureManifest};
use harness::experiment::{
    Contender, Data, Outcome, Plan, add_morphology, run as run_experiment, samples,
};
use harness::manifest::{Manifest, seal, utc};
use harness::morphology::Gold;
use harness::report::{Experiment, Report, Rounds, SCHEMA, Speed, Training, WorstCase};
use harness::speed::{HARD_INPUTS, throughput, worst_case};
use serde::Deserialize;

use super::output::{Progress, write_whole};
use super::train_one::{self, Task};
use super::{criterion, machine, read};
use crate::BenchAll;

/// How much is done.
struct Effort {
    /// Vocabulary sizes of the comparison on everything.
    all_sizes: &'static [usize],
    /// Of each corpus on its own.
    own_sizes: &'static [usize],
    bootstrap: usize,
    own_bootstrap: usize,
    speed_rounds: usize,
    train_rounds: usize,
    hard_bytes: usize,
}

const QUICK: Effort = Effort {
    all_sizes: &[8000, 16_000],
    own_sizes: &[1000, 2000, 4000],
    bootstrap: 300,
    own_bootstrap: 0,
    speed_rounds: 3,
    train_rounds: 1,
    hard_bytes: 128 * 1024,
};

const FULL: Effort = Effort {
    all_sizes: &[4000, 8000, 12_000, 16_000, 24_000, 32_000],
    own_sizes: &[1000, 2000, 4000, 8000],
    bootstrap: 1000,
    own_bootstrap: 1000,
    speed_rounds: 9,
    train_rounds: 3,
    hard_bytes: 2 * 1024 * 1024,
};

/// What the comparison on everything is called.
const EVERYTHING: &str = "all corpora";

/// Corpora that are not part of everything: inputs made to be hard would distort its counts.
const APART: [&str; 1] = ["pathological"];

/// Half of this small parallel text is held out, so that premiums rest on enough lines.
const HALVED: &str = "udhr";

/// Runs everything and writes the report; whether every check passed.
pub(crate) fn run(options: &BenchAll) -> Result<bool, String> {
    let progress = Progress::new();
    let effort = if options.quick { &QUICK } else { &FULL };
    progress.step("reading the fixtures");
    let (corpora, mut manifest) = load(&options.fixtures, &options.corpora)?;
    let mut plan = Plan { name: EVERYTHING.into(), seed: options.seed, ..Plan::default() };
    if !options.algorithms.is_empty() {
        plan.algorithms.clone_from(&options.algorithms);
    }
    plan.bootstrap = effort.bootstrap;
    plan.vocab_sizes = effort.all_sizes.to_vec();

    let gold = gold(options.morph.as_deref(), &mut manifest)?;
    let together: Vec<Corpus> =
        corpora.iter().filter(|c| !APART.contains(&c.name.as_str())).cloned().collect();
    let alone = corpora.len() == 1 || together.is_empty();
    let mut experiments: Vec<Experiment> = Vec::new();
    let mut report = Report {
        schema: SCHEMA,
        title: "BPE, WordPiece and Unigram on equal terms".into(),
        manifest: Manifest::default(),
        experiments: Vec::new(),
        speed: Vec::new(),
        training: Vec::new(),
        worst_cases: Vec::new(),
        samples: Vec::new(),
        criterion: criterion::results(&options.criterion),
    };
    if !alone {
        let names: Vec<String> = together.iter().map(|c| c.name.clone()).collect();
        let data = Data::prepare(&plan, together).map_err(|refused| refused.to_string())?;
        let mut outcome = possible(&mut plan, &data, &progress)?;
        if let Some(gold) = &gold {
            let Outcome { experiment, trained } = &mut outcome;
            add_morphology(&plan, &data, gold, trained, experiment)
                .map_err(|refused| refused.to_string())?;
        }
        let size = outcome.experiment.headline_size();
        let shown: Vec<&Contender> = outcome.trained.iter().filter(|c| c.size == size).collect();
        let texts = sample_texts(&options.fixtures, &mut manifest)?;
        report.samples = samples(&shown, data.splitter.as_ref(), None, &texts);
        report.speed = speed(&data, &outcome.experiment, &shown, effort, &progress);
        report.worst_cases = worst_cases(&data, &shown, effort, &progress);
        report.training =
            training(options, &plan, &names, &outcome.experiment, &shown, effort, &progress)?;
        experiments.push(outcome.experiment);
    }
    experiments.extend(each_alone(&plan, corpora, effort, &progress)?);
    report.experiments = experiments;

    manifest.options = plan.options();
    manifest.options.insert("quick".into(), options.quick.to_string());
    manifest.options.insert("own-sizes".into(), format!("{:?}", effort.own_sizes));
    manifest.options.insert("speed-rounds".into(), effort.speed_rounds.to_string());
    manifest.options_sha256 = manifest.options_digest();
    let build = if cfg!(debug_assertions) { " (debug build: times mean nothing)" } else { "" };
    let here = Path::new(".");
    manifest.versions.insert("harness".into(), format!("{}{build}", env!("CARGO_PKG_VERSION")));
    manifest.versions.extend(
        machine::first_line("rustc", &["--version"], here).map(|line| ("rustc".into(), line)),
    );
    manifest.commit = machine::commit(here);
    manifest.machine = Some(machine::this());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    manifest.created = utc(now);
    manifest.seconds = progress.seconds();
    report.manifest = manifest;
    write(&report, &options.out)?;
    progress.end();
    summarise(&report, &options.out);
    Ok(report.passed())
}

/// The words of a gold file, which the manifest then names.
fn gold(path: Option<&Path>, manifest: &mut Manifest) -> Result<Option<Gold>, String> {
    let Some(path) = path else { return Ok(None) };
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = read(path)?;
    manifest.add_file(&path.display().to_string(), &bytes);
    let text = String::from_utf8(bytes).map_err(|error| fail(&error))?;
    Gold::parse(&text).map(Some).map_err(|error| fail(&error))
}

/// The corpora under a folder of fixtures, all or those of these names, and a manifest with the
/// files that were read.
pub(crate) fn load(fixtures: &Path, names: &[String]) -> Result<(Vec<Corpus>, Manifest), String> {
    let mut manifest = Manifest::default();
    let json = read(&fixtures.join("MANIFEST.json"))?;
    manifest.add_file("MANIFEST.json", &json);
    let all = FixtureManifest::parse(&json).map_err(|error| error.to_string())?;
    let mut corpora = all
        .corpora(|path| {
            let bytes = read(&fixtures.join(path))?;
            manifest.add_file(path, &bytes);
            Ok(bytes)
        })
        .map_err(|error| error.to_string())?;
    if let Some(name) = names.iter().find(|&name| corpora.iter().all(|c| c.name != *name)) {
        let known: Vec<&str> = corpora.iter().map(|corpus| corpus.name.as_str()).collect();
        return Err(format!("there is no corpus {name}; there are {}", known.join(", ")));
    }
    corpora.retain(|corpus| names.is_empty() || names.contains(&corpus.name));
    for corpus in &mut corpora {
        if corpus.name == HALVED {
            corpus.held_out = Some(0.5);
        }
    }
    Ok((corpora, manifest))
}

/// One comparison for each corpus, in their order. Nothing is timed here, so all processors work.
fn each_alone(
    plan: &Plan,
    corpora: Vec<Corpus>,
    effort: &Effort,
    progress: &Progress,
) -> Result<Vec<Experiment>, String> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(corpora.len());
    let results: Vec<Mutex<Option<Result<Experiment, String>>>> =
        corpora.iter().map(|_| Mutex::new(None)).collect();
    let queue = Mutex::new(corpora.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let compare = |corpus: Corpus| {
        let mut plan = Plan {
            name: corpus.name.clone(),
            vocab_sizes: effort.own_sizes.to_vec(),
            bootstrap: effort.own_bootstrap,
            ..plan.clone()
        };
        let data = Data::prepare(&plan, vec![corpus]).map_err(|refused| refused.to_string())?;
        Ok(possible(&mut plan, &data, progress)?.experiment)
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((i, corpus)) = next() {
                    let result = compare(corpus);
                    *results[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                }
            });
        }
    });
    let done = results.into_iter().map(|result| {
        let result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.unwrap_or_else(|| Err("a comparison was not run".into()))
    });
    done.collect()
}

/// Runs the plan at those of its sizes that are in everybody's reach.
fn possible(plan: &mut Plan, data: &Data, progress: &Progress) -> Result<Outcome, String> {
    let entries = plan.entries(data).map_err(|refused| refused.to_string())?;
    let mut smallest = 0;
    for entry in &entries {
        smallest = smallest.max(entry.contestant.smallest(&data.counts, &entry.terms)?);
    }
    plan.vocab_sizes.retain(|&size| size >= smallest);
    if plan.vocab_sizes.is_empty() {
        // Some room for merges behind the alphabet.
        plan.vocab_sizes.push((smallest + 500).next_multiple_of(500));
    }
    run_experiment(plan, &entries, data, &mut |what| progress.step(what))
        .map_err(|refused| refused.to_string())
}

/// Text to time on, at most this much of a corpus.
const SPEED_BYTES: usize = 2_000_000;

fn speed(
    data: &Data,
    experiment: &Experiment,
    shown: &[&Contender],
    effort: &Effort,
    progress: &Progress,
) -> Vec<Speed> {
    let trained: Vec<_> = shown.iter().map(|contender| &contender.trained).collect();
    let mut groups: Vec<(String, Vec<&str>)> =
        vec![(experiment.name.clone(), data.held_out_texts().collect())];
    for name in ["prose", "code", "sentences"] {
        let texts: Vec<&str> = data.held_out_of(name).collect();
        if !texts.is_empty() {
            groups.push((name.to_owned(), texts));
        }
    }
    let mut rows = Vec::new();
    for (corpus, mut texts) in groups {
        progress.step(&format!("speed on {corpus}"));
        let mut bytes = 0;
        texts.retain(|text| {
            bytes += text.len();
            bytes <= SPEED_BYTES
        });
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        let times = throughput(&trained, data.splitter.as_ref(), &texts, effort.speed_rounds);
        rows.extend(shown.iter().zip(times).map(|(contender, time)| Speed {
            corpus: corpus.clone(),
            algorithm: contender.algorithm.clone(),
            standing: contender.standing,
            size: contender.size,
            bytes: bytes as u64,
            encode: time.encode,
            pipeline: time.pipeline,
            first: Some(time.first),
        }));
    }
    rows
}

fn worst_cases(
    data: &Data,
    shown: &[&Contender],
    effort: &Effort,
    progress: &Progress,
) -> Vec<WorstCase> {
    let mut rows = Vec::new();
    for input in HARD_INPUTS {
        for contender in shown {
            progress.step(&format!("worst case {}: {}", input.name, contender.algorithm));
            let cost = worst_case(
                &contender.trained,
                data.splitter.as_ref(),
                input,
                effort.hard_bytes,
                Duration::from_secs(1),
            );
            rows.push(WorstCase {
                input: input.name.to_owned(),
                algorithm: contender.algorithm.clone(),
                standing: contender.standing,
                bytes: cost.bytes,
                mb_per_second: cost.mb_per_second,
                doubling: cost.doubling,
            });
        }
    }
    rows
}

fn training(
    options: &BenchAll,
    plan: &Plan,
    corpora: &[String],
    experiment: &Experiment,
    shown: &[&Contender],
    effort: &Effort,
    progress: &Progress,
) -> Result<Vec<Training>, String> {
    let mut measured: HashMap<usize, Vec<train_one::Measured>> = HashMap::new();
    for round in 1..=effort.train_rounds {
        for (i, contender) in shown.iter().enumerate() {
            progress.step(&format!("training {} alone, round {round}", contender.algorithm));
            let task = Task {
                fixtures: options.fixtures.clone(),
                corpora: corpora.to_vec(),
                plan: plan.clone(),
                algorithm: contender.algorithm.clone(),
                size: contender.size,
            };
            measured.entry(i).or_default().push(train_one::run(&task)?);
        }
    }
    let rows = shown.iter().enumerate().filter_map(|(i, contender)| {
        let rounds = measured.get(&i)?;
        let expected = experiment
            .rows
            .iter()
            .find(|row| row.algorithm == contender.algorithm && row.size == contender.size)?;
        let seconds: Vec<f64> = rounds.iter().map(|round| round.seconds).collect();
        let cpu: Option<Vec<f64>> = rounds.iter().map(|round| round.cpu_seconds).collect();
        Some(Training {
            corpus: experiment.name.clone(),
            algorithm: contender.algorithm.clone(),
            standing: contender.standing,
            size: contender.size,
            seconds: Rounds::of(&seconds)?,
            cpu_seconds: cpu.and_then(|cpu| Rounds::of(&cpu)),
            peak_bytes: rounds.iter().filter_map(|round| round.peak_bytes).max(),
            before_bytes: rounds.iter().filter_map(|round| round.before_bytes).max(),
            same_model: rounds.iter().all(|round| round.vocab_sha256 == expected.vocab_sha256),
        })
    });
    Ok(rows.collect())
}

#[derive(Deserialize)]
struct SampleFile {
    samples: Vec<SampleText>,
}

#[derive(Deserialize)]
struct SampleText {
    name: String,
    language: String,
    text: String,
}

/// The sentences of `samples.json`.
fn sample_texts(
    fixtures: &Path,
    manifest: &mut Manifest,
) -> Result<Vec<(String, String, String)>, String> {
    let path = fixtures.join("samples.json");
    let json = read(&path)?;
    manifest.add_file("samples.json", &json);
    let file: SampleFile =
        serde_json::from_slice(&json).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(file.samples.into_iter().map(|s| (s.name, s.language, s.text)).collect())
}

fn write(report: &Report, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let json = seal(&report.to_json()).ok_or("the report has no place for its hash")?;
    write_whole(&folder.join("report.json"), json.as_bytes())?;
    write_whole(&folder.join("report.md"), report.to_markdown().as_bytes())?;
    write_whole(&folder.join("report.html"), report.to_html().as_bytes())
}

/// The headline on standard output.
fn summarise(report: &Report, folder: &Path) {
    let mut short = report.clone();
    short.experiments.truncate(1);
    println!("{}", short.to_terminal(110));
    let rows = report.experiments.iter().flat_map(|experiment| &experiment.rows);
    let failed: Vec<String> = rows
        .filter(|row| row.checks.iter().any(|check| !check.passed()))
        .map(|row| {
            let reason = row.void.as_deref().unwrap_or("");
            format!("{} at {}: {reason}", row.algorithm, row.size)
        })
        .collect();
    for failure in &failed {
        println!("FAILED {failure}");
    }
    println!("{} s; report in {}", report.manifest.seconds, folder.display());
}
