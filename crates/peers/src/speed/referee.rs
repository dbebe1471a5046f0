//! The contest itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harness::report::Rounds;
use serde_json::{Value, json};
use testkit::{pathological, texts};

use super::child;
use super::models::{self, Model};
use super::report::{Gate, Report, Speed, Training, Worst};
use crate::contestant::{Contestant, Outcome, Request};
use crate::runner::Runner;
use crate::shrink;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Python with the packages, if there is one.
    pub python: Option<PathBuf>,
    /// Folders with more models.
    pub data: Vec<PathBuf>,
    /// Corpora by name.
    pub corpora: Vec<(String, PathBuf)>,
    /// Folder of the report and of the files made on the way.
    pub out: PathBuf,
    /// Interleaved rounds.
    pub rounds: usize,
    /// How much of a corpus is used, in bytes.
    pub bytes: usize,
    /// The text to train on; without it nothing is trained.
    pub train: Option<PathBuf>,
    /// The number of tokens to train.
    pub vocab: usize,
    /// Only models whose name contains this.
    pub only: Option<String>,
}

/// Longer than this no single measurement takes.
const LIMIT: Duration = Duration::from_secs(120);
/// Longer than this no worst case takes.
const WORST_LIMIT: Duration = Duration::from_secs(30);
/// Documents of each corpus on which ids must be equal.
const GATE_DOCUMENTS: usize = 250;

/// Runs everything; `progress` receives lines.
///
/// # Errors
///
/// If files cannot be read or written, or this program cannot start itself.
pub fn run(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Report, String> {
    let folder = options.out.join("peers-files");
    let mut report = Report::default();
    let mut models = models::all(&folder, &options.data)?;
    models.retain(|model| options.only.as_deref().is_none_or(|only| model.name.contains(only)));
    for path in models.iter().flat_map(|model| &model.files) {
        report.add_file(path)?;
    }
    let mut corpora = Vec::new();
    for (name, path) in &options.corpora {
        let text = read_text(path)?;
        let part = &text[..floor(&text, options.bytes)];
        let file = folder.join(format!("corpus-{name}.txt"));
        fs::write(&file, part).map_err(|error| format!("{}: {error}", file.display()))?;
        report.add_text(name, part);
        corpora.push((name.clone(), file, part.to_owned()));
    }
    for model in &models {
        progress(&format!("{}: ids", model.name));
        let admitted = gate(model, &corpora, options, &mut report, progress)?;
        speeds(model, &corpora, &admitted, options, &mut report, progress);
        if model.name == "cl100k_base" || model.name.contains("uncased") {
            worst(model, &admitted, options, &folder, &mut report, progress)?;
        }
    }
    if let Some(text) = &options.train {
        report.add_file(text)?;
        training(text, options, &mut report, progress);
    }
    Ok(report)
}

/// The text of a file, or of all files of a folder one after the other.
fn read_text(path: &Path) -> Result<String, String> {
    let paths = if path.is_dir() { crate::fuzz::files(path)? } else { vec![path.to_owned()] };
    let mut text = String::new();
    for path in paths {
        let part = fs::read_to_string(&path);
        text.push_str(&part.map_err(|error| format!("{}: {error}", path.display()))?);
    }
    Ok(text)
}

fn floor(text: &str, bytes: usize) -> usize {
    let end = bytes.min(text.len());
    (0..=end).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0)
}

/// Starts a contestant with a model.
fn start(name: &str, model: &Model, options: &Options) -> Result<Runner, String> {
    let own = name == "ours" || name.starts_with("crate ");
    if !own {
        let python = options.python.as_deref().ok_or("no Python was given")?;
        return Runner::start(python, name, &model.value, false);
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg("--child").env("RAYON_NUM_THREADS", "2");
    let mut runner = Runner::spawn(command, name)?;
    let answer = runner.ask(&json!({"op": "load", "peer": name, "model": model.value}))?;
    runner.loaded(&answer);
    Ok(runner)
}

/// Compares ids; gives the names of those who may be timed, ours first.
fn gate(
    model: &Model,
    corpora: &[(String, PathBuf, String)],
    options: &Options,
    report: &mut Report,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<&'static str>, String> {
    let mut all: Vec<&str> = texts::AWKWARD.iter().map(|(_, text)| *text).collect();
    for (_, _, text) in corpora {
        let documents = child::cut(text);
        let step = (documents.len() / GATE_DOCUMENTS).max(1);
        all.extend(documents.into_iter().step_by(step));
    }
    let requests: Vec<Request<'_>> = all.iter().map(|text| request(text)).collect();
    let ids = |outcome: &Outcome<crate::contestant::Encoded>| match outcome {
        Outcome::Value(encoded) => Some(encoded.ids.clone()),
        _ => None,
    };
    let mut ours = start("ours", model, options)?;
    let expected: Vec<_> = ours.encode_all(&requests).iter().map(ids).collect();
    let mut admitted = vec!["ours"];
    for &name in &model.contestants {
        let mut row = Gate { model: model.name.clone(), texts: all.len(), ..Gate::default() };
        row.contestant = name.to_owned();
        match start(name, model, options) {
            Err(why) => row.skipped = Some(why),
            Ok(mut theirs) => {
                theirs.name().clone_into(&mut row.contestant);
                let found: Vec<_> = theirs.encode_all(&requests).iter().map(ids).collect();
                let wrong: Vec<usize> =
                    (0..all.len()).filter(|&i| found[i] != expected[i]).collect();
                row.differing = wrong.len();
                if let Some(&shortest) = wrong.iter().min_by_key(|&&i| all[i].len()) {
                    let mut differs = |text: &str| {
                        ids(&theirs.encode(&request(text))) != ids(&ours.encode(&request(text)))
                    };
                    let text = shrink::text(all[shortest], 400, &mut differs);
                    let answer = |runner: &mut Runner| match runner.encode(&request(&text)) {
                        Outcome::Value(encoded) => format!("{:?}", encoded.ids),
                        Outcome::Refused(why) | Outcome::Crashed(why) => why,
                    };
                    row.ours = Some(answer(&mut ours));
                    row.theirs = Some(answer(&mut theirs));
                    row.smallest = Some(text);
                } else {
                    admitted.push(name);
                }
            }
        }
        if let Some(why) = &row.skipped {
            progress(&format!("skipped: {name} with {}: {why}", model.name));
        } else if row.differing > 0 {
            progress(&format!(
                "differs: {} on {} texts of {}",
                row.contestant, row.differing, model.name
            ));
        }
        report.gates.push(row);
    }
    Ok(admitted)
}

/// The question for the ids of ordinary text.
fn request(first: &str) -> Request<'_> {
    Request { first, second: None, special: false, template: false }
}

/// The measurements of one contestant on one corpus.
#[derive(Default)]
struct Samples {
    version: String,
    values: BTreeMap<&'static str, Vec<f64>>,
}

fn speeds(
    model: &Model,
    corpora: &[(String, PathBuf, String)],
    admitted: &[&'static str],
    options: &Options,
    report: &mut Report,
    progress: &mut dyn FnMut(&str),
) {
    let mut samples: BTreeMap<(usize, usize), Samples> = BTreeMap::new();
    for round in 0..options.rounds {
        progress(&format!("{}: round {} of {}", model.name, round + 1, options.rounds));
        for (c, (_, file, text)) in corpora.iter().enumerate() {
            // Every other round goes the other way round: nobody always runs behind the same.
            let mut order: Vec<usize> = (0..admitted.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for p in order {
                let sample = samples.entry((c, p)).or_default();
                measure(admitted[p], model, file, text.len(), options, sample);
            }
        }
    }
    for (c, (corpus, ..)) in corpora.iter().enumerate() {
        for (p, name) in admitted.iter().enumerate() {
            let Some(sample) = samples.remove(&(c, p)) else { continue };
            let rounds = |what: &str| sample.values.get(what).and_then(|v| Rounds::of(v));
            report.speeds.push(Speed {
                model: model.name.clone(),
                corpus: corpus.clone(),
                contestant: if *name == "ours" {
                    "ours".to_owned()
                } else {
                    sample.version.clone()
                },
                first: rounds("first"),
                later: rounds("later"),
                documents: rounds("documents"),
                count: rounds("count"),
                batch: rounds("batch"),
                load: rounds("load"),
                memory: rounds("memory"),
                peak: rounds("peak"),
            });
        }
    }
}

/// One fresh process: load, a pass over a text never seen, the same again, documents, batch.
fn measure(
    name: &'static str,
    model: &Model,
    file: &Path,
    bytes: usize,
    options: &Options,
    sample: &mut Samples,
) {
    let Ok(mut runner) = start(name, model, options) else { return };
    runner.name().clone_into(&mut sample.version);
    let mut keep = |what, value: f64| sample.values.entry(what).or_default().push(value);
    keep("load", runner.load_seconds);
    let memory = |runner: &mut Runner, what: &str| {
        let answer = runner.ask(&json!({"op": "memory"})).ok()?;
        answer[what].as_f64()
    };
    if let Some(now) = memory(&mut runner, "now") {
        keep("memory", now);
    }
    if runner.ask(&json!({"op": "texts", "file": file})).is_err() {
        return;
    }
    let passes = [
        ("first", "whole"),
        ("later", "whole"),
        ("documents", "documents"),
        ("count", "count"),
        ("batch", "batch"),
    ];
    for (kept, what) in passes {
        let answer = runner.ask_within(&json!({"op": "time", "what": what}), LIMIT);
        if let Some(seconds) = answer.ok().and_then(|answer| answer["seconds"].as_f64()) {
            keep(kept, bytes as f64 / 1e6 / seconds);
        }
    }
    if let Some(peak) = memory(&mut runner, "peak") {
        keep("peak", peak);
    }
}

/// Hard texts of 1 MB, and ours of 8 and 16 MB.
fn worst(
    model: &Model,
    admitted: &[&'static str],
    options: &Options,
    folder: &Path,
    report: &mut Report,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    const KINDS: &[&str] = &[
        "one_letter",
        "random_letters",
        "spaces",
        "blank_mix",
        "digits",
        "zwj_emoji",
        "han_without_punctuation",
        "thai_without_spaces",
        "apostrophes",
        "any_characters",
    ];
    for name in KINDS {
        let Some(kind) = pathological::kind(name) else { continue };
        progress(&format!("{}: worst case {name}", model.name));
        let mut row =
            Worst { model: model.name.clone(), text: (*name).to_owned(), ..Worst::default() };
        let write = |bytes: usize| {
            let file = folder.join(format!("worst-{name}-{bytes}.txt"));
            fs::write(&file, kind.text(bytes)).map_err(|error| error.to_string())?;
            Ok::<_, String>(file)
        };
        let time = |peer: &'static str, file: &Path| -> Result<(String, f64), String> {
            let mut runner = start(peer, model, options)?;
            let version = runner.name().to_owned();
            runner.ask(&json!({"op": "texts", "file": file}))?;
            let answer = runner.ask_within(&json!({"op": "time", "what": "whole"}), WORST_LIMIT)?;
            Ok((version, answer["seconds"].as_f64().ok_or("no seconds")?))
        };
        let file = write(1 << 20)?;
        for &peer in admitted {
            let cell = match time(peer, &file) {
                Ok((version, seconds)) => {
                    let name = if peer == "ours" { "ours".to_owned() } else { version };
                    (name, Ok(seconds))
                }
                Err(why) => (peer.to_owned(), Err(why)),
            };
            row.seconds.push(cell);
        }
        let (half, whole) = (write(1 << 23)?, write(1 << 24)?);
        if let (Ok((_, half)), Ok((_, whole))) = (time("ours", &half), time("ours", &whole)) {
            row.ours_16_mb = Some(whole);
            row.ratio_of_double = Some(whole / half);
        }
        report.worst.push(row);
        for bytes in [1 << 20, 1 << 23, 1 << 24] {
            let _ = fs::remove_file(folder.join(format!("worst-{name}-{bytes}.txt")));
        }
    }
    Ok(())
}

/// Byte-level BPE with GPT-2's splitter by everybody who can, interleaved.
fn training(text: &Path, options: &Options, report: &mut Report, progress: &mut dyn FnMut(&str)) {
    let trainers = ["ours", "gigabpe", "rustbpe", "tokenizers"];
    let mut seconds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut peaks: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut tokens: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    for round in 0..options.rounds.min(3) {
        for (i, trainer) in trainers.iter().enumerate() {
            progress(&format!("training: round {}, {trainer}", round + 1));
            match train_once(trainer, text, options) {
                Ok((version, time, peak, learned)) => {
                    names.insert(i, version);
                    seconds.entry(i).or_default().push(time);
                    peaks.entry(i).or_default().push(peak);
                    tokens.insert(i, learned);
                }
                Err(why) => {
                    progress(&format!("skipped: training with {trainer}: {why}"));
                    names.entry(i).or_insert_with(|| format!("{trainer} (skipped: {why})"));
                }
            }
        }
    }
    let ours = tokens.get(&0).cloned().unwrap_or_default();
    for (i, name) in names {
        let verdict = tokens.get(&i).map(|theirs| {
            match theirs.iter().zip(&ours).position(|(theirs, ours)| theirs != ours) {
                Some(at) => format!("merge {at} is the first other"),
                None if theirs.len() == ours.len() => "identical".to_owned(),
                None => format!("identical as far as both go: {} and {}", ours.len(), theirs.len()),
            }
        });
        report.training.push(Training {
            trainer: name,
            seconds: seconds.get(&i).and_then(|values| Rounds::of(values)),
            peak: peaks.get(&i).and_then(|values| Rounds::of(values)),
            merges: tokens.get(&i).map(Vec::len),
            verdict,
        });
    }
}

fn train_once(
    trainer: &str,
    text: &Path,
    options: &Options,
) -> Result<(String, f64, f64, Vec<String>), String> {
    let command = if trainer == "ours" {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg("--child");
        command
    } else {
        let python = options.python.as_deref().ok_or("no Python was given")?;
        let mut command = Command::new(python);
        command.arg(crate::runner::folder().join("runner.py"));
        command
    };
    let mut runner = Runner::spawn(command, trainer)?;
    let request = json!({"op": "train", "trainer": trainer, "file": text, "vocab": options.vocab});
    let answer = runner.ask_within(&request, Duration::from_secs(600))?;
    let memory: Value = runner.ask(&json!({"op": "memory"}))?;
    let tokens = serde_json::from_value(answer["tokens"].clone()).map_err(|e| e.to_string())?;
    Ok((
        answer["version"].as_str().unwrap_or(trainer).to_owned(),
        answer["seconds"].as_f64().ok_or("no seconds")?,
        memory["peak"].as_f64().ok_or("no peak")?,
        tokens,
    ))
}
