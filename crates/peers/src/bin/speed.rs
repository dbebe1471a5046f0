//! How fast other projects' tokenizers are beside ours; `cargo xtask bench-all --peers` starts it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Args, Parser, Subcommand};
use harness::manifest::{Machine, broken_seal, utc};
use harness::report::Bands;
use peers::speed::contest::OURS;
use peers::speed::report::{Report, standings};
use peers::speed::{self, Options, against, page};

/// Compares ids with those of other projects' tokenizers, then speed.
#[derive(Parser)]
#[command(name = "speed", version)]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure, and write peers.json, peers.md and peers.html
    Run(Run),
    /// Hold a report against its hashes and files, and against a recorded one
    Check(Check),
    /// Write peers.md and peers.html anew from a peers.json
    Render(Render),
    /// Answer requests on standard input, as one of the contestants
    #[command(hide = true)]
    Child,
}

#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 all is well, 1 a reference library gives other ids than ours or something became
worse than in the record, 2 usage, 3 a file cannot be read or written.

Example:
  speed run --python venv/bin/python --corpus english=prose/ --minutes 10")]
struct Run {
    /// Python with the packages of the contestants; without it crates alone are compared
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// The program of the package crates/peers/next, which is tokenizers 1.0
    #[arg(long, value_name = "PATH")]
    next: Option<PathBuf>,
    /// Folder with more models: tokenizer.json and SentencePiece .model files. Of a folder with
    /// `vocabs` in it the published models that the report knows. May be repeated
    #[arg(long, value_name = "DIR")]
    data: Vec<PathBuf>,
    /// A corpus: a file, or all files of a folder; may be repeated, also with the same name
    /// [default: english, code and languages of the fixtures]
    #[arg(long, value_name = "NAME=PATH")]
    corpus: Vec<String>,
    /// The text to train on: a file or a folder; may be repeated [default: the fixtures]
    #[arg(long, value_name = "PATH")]
    train: Vec<PathBuf>,
    /// Folder of the report
    #[arg(long, default_value = "target/bench-all", value_name = "DIR")]
    out: PathBuf,
    /// At most so many interleaved rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// No round begins that would probably end later; the first is always run
    #[arg(long, value_name = "N", default_value_t = 25)]
    minutes: u64,
    /// How much of each corpus is used, in MB
    #[arg(long, value_name = "MB")]
    megabytes: Option<f64>,
    /// How much is trained on at most, in MB
    #[arg(long, value_name = "MB")]
    train_megabytes: Option<f64>,
    /// The number of tokens to train
    #[arg(long, value_name = "N")]
    vocab: Option<usize>,
    /// Only models whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// One round on small texts: some minutes
    #[arg(long)]
    quick: bool,
    /// Print the report as JSON on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    record: Record,
}

#[derive(Args)]
struct Record {
    /// A recorded report: whatever became worse is named
    #[arg(long, value_name = "RECORD.json")]
    against: Option<PathBuf>,
    /// The share of speed that may be lost against the record
    #[arg(long, value_name = "SHARE", default_value_t = Bands::default().speed)]
    speed_band: f64,
    /// How much more memory training may take than in the record
    #[arg(long, value_name = "SHARE", default_value_t = Bands::default().memory)]
    memory_band: f64,
}

#[derive(Args)]
struct Check {
    /// The report
    #[arg(value_name = "peers.json")]
    report: PathBuf,
    /// Folder that the published models of the report are in; may be repeated
    #[arg(long, value_name = "DIR")]
    data: Vec<PathBuf>,
    #[command(flatten)]
    record: Record,
}

#[derive(Args)]
struct Render {
    /// The report
    #[arg(value_name = "peers.json")]
    report: PathBuf,
    /// Where peers.md and peers.html go [default: beside the report]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Task::Run(run) => measure(run),
        Task::Check(check) => self::check(&check),
        Task::Render(render) => self::render(&render).map(|()| true),
        Task::Child => speed::child::serve(speed::crates::CONTESTANTS)
            .map(|()| true)
            .map_err(|error| error.to_string()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("speed: {why}");
            ExitCode::from(3)
        }
    }
}

fn measure(args: Run) -> Result<bool, String> {
    let start = Instant::now();
    let load = load_average();
    let mut corpora: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for corpus in &args.corpus {
        let (name, path) =
            corpus.split_once('=').ok_or_else(|| format!("--corpus {corpus} is not NAME=PATH"))?;
        corpora.entry(name.to_owned()).or_default().push(PathBuf::from(path));
    }
    let megabytes = |given: Option<f64>, full: f64, quick: f64| {
        (given.unwrap_or(if args.quick { quick } else { full }) * 1e6) as usize
    };
    let options = Options {
        bytes: megabytes(args.megabytes, 2.0, 0.3),
        train_bytes: megabytes(args.train_megabytes, 100.0, 1.0),
        rounds: args.rounds.map_or(if args.quick { 1 } else { 5 }, usize::from),
        vocab: args.vocab.unwrap_or(if args.quick { 4000 } else { 32_000 }),
        budget: Duration::from_secs(args.minutes * 60),
        corpora: corpora.into_iter().collect(),
        python: args.python,
        next: args.next,
        data: args.data,
        train: args.train,
        out: args.out,
        only: args.only,
        quick: args.quick,
    };
    let commit = commit();
    let finish = |report: &mut Report| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let manifest = &mut report.manifest;
        manifest.created = utc(now);
        manifest.commit.clone_from(&commit);
        manifest.seconds = start.elapsed().as_secs();
        manifest.machine = Some(machine());
        manifest.options = named(&options, manifest);
        manifest.options_sha256 = manifest.options_digest();
        report.load_average = load.zip(load_average()).map(|(start, end)| [start, end]);
    };
    let shown = std::io::stderr().is_terminal();
    let mut progress = |line: &str| {
        if shown {
            let seconds = start.elapsed().as_secs();
            let line: String = line.chars().take(100).collect();
            // Erases the line first. A terminal that is gone is no reason to stop.
            let _ = write!(
                std::io::stderr(),
                "\r\x1B[2K{:>3}:{:02}  {line}",
                seconds / 60,
                seconds % 60
            );
        }
    };
    let mut keep = |report: &Report| {
        let mut report = report.clone();
        finish(&mut report);
        write(&report, &options.out).map(|_| ())
    };
    let mut report = speed::run(&options, &mut progress, &mut keep)?;
    finish(&mut report);
    let json = write(&report, &options.out)?;
    progress("");
    if shown {
        eprint!("\r\x1B[2K");
    }
    let mut holds = report.faults().next().is_none();
    let findings = match &args.record.against {
        Some(path) => Some(held(&report, path, &args.record)?),
        None => None,
    };
    if args.json {
        print!("{json}");
    } else {
        summarise(&report, &options.out);
        holds &= findings.as_ref().is_none_or(|(lines, _)| {
            lines.iter().for_each(|line| println!("{line}"));
            true
        });
    }
    Ok(holds && findings.is_none_or(|(_, passed)| passed))
}

/// The options that decide what is measured.
fn named(options: &Options, manifest: &harness::manifest::Manifest) -> BTreeMap<String, String> {
    let trained = manifest.files.iter().find(|file| file.path.ends_with("/train.txt"));
    let names: Vec<&str> = options.corpora.iter().map(|(name, _)| name.as_str()).collect();
    let corpora = if names.is_empty() { "fixtures".to_owned() } else { names.join(",") };
    let train = if options.train.is_empty() { "fixtures" } else { "given" };
    [
        ("bytes of a corpus", options.bytes.to_string()),
        ("bytes of training", trained.map_or(0, |file| file.bytes).to_string()),
        ("corpora", corpora),
        ("only", options.only.clone().unwrap_or_default()),
        ("quick", options.quick.to_string()),
        ("next", options.next.is_some().to_string()),
        ("python", options.python.is_some().to_string()),
        ("train", train.to_owned()),
        ("vocab", options.vocab.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Writes data and pages; gives the data.
fn write(report: &Report, folder: &Path) -> Result<String, String> {
    let json = report.to_json()?;
    write_whole(&folder.join("peers.json"), &json)?;
    pages(report, folder)?;
    Ok(json)
}

fn pages(report: &Report, folder: &Path) -> Result<(), String> {
    write_whole(&folder.join("peers.md"), &page::markdown(report))?;
    write_whole(&folder.join("peers.html"), &page::html(report))
}

/// Writes a file under a temporary name and renames it: an interrupt leaves the old file.
fn write_whole(path: &Path, text: &str) -> Result<(), String> {
    let temporary = path.with_extension("tmp");
    fs::write(&temporary, text)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(|error| fail(path, &error))
}

fn fail(path: &Path, error: &dyn Display) -> String {
    format!("{}: {error}", path.display())
}

fn summarise(report: &Report, folder: &Path) {
    for gate in &report.gates {
        let name = report.shown(&gate.contestant);
        if let Some(why) = &gate.skipped {
            let why = why.lines().next().unwrap_or_default();
            println!("skipped: {name} with {}: {why}", gate.model);
        } else if gate.differing > 0 {
            let smallest = gate.smallest.as_deref().unwrap_or_default();
            println!("differs: {name} on {} texts of {}: {smallest:?}", gate.differing, gate.model);
        }
    }
    for row in report.training.iter().filter(|row| row.failure.is_some()) {
        let why = row.failure.as_deref().unwrap_or_default();
        println!("skipped: training {} with {}: {why}", row.algorithm, row.trainer);
    }
    report.failures.iter().for_each(|why| println!("failed: {why}"));
    for gate in report.faults() {
        println!("FAILED: {} defines {} and differs", report.shown(&gate.contestant), gate.model);
    }
    let all = standings(report, OURS);
    let won = all.iter().filter(|standing| standing.ratio.median >= 1.0).count();
    println!(
        "{} rounds, {} s; the fastest in {won} of {} columns; report in {}",
        report.rounds,
        report.manifest.seconds,
        all.len(),
        folder.display()
    );
}

fn load_report(path: &Path) -> Result<(String, Report), String> {
    let json = fs::read_to_string(path).map_err(|error| fail(path, &error))?;
    let report = Report::from_json(&json).map_err(|error| fail(path, &error))?;
    Ok((json, report))
}

/// What became worse than in a record, in lines, and whether nothing did.
fn held(report: &Report, path: &Path, options: &Record) -> Result<(Vec<String>, bool), String> {
    let (json, record) = load_report(path)?;
    let bands = Bands { speed: options.speed_band, memory: options.memory_band };
    let findings = against::against(report, &record, bands);
    let broken = broken_seal(&json);
    let mut lines: Vec<String> =
        broken.iter().map(|mismatch| format!("record: {mismatch}")).collect();
    lines.extend(findings.notes.iter().map(|note| format!("note: {note}")));
    lines.extend(findings.regressions.iter().map(|what| format!("REGRESSION {what}")));
    lines.push(format!(
        "{} values compared with the record of {}: {} regressions",
        findings.compared,
        record.manifest.created,
        findings.regressions.len()
    ));
    Ok((lines, findings.passed() && broken.is_none()))
}

fn check(options: &Check) -> Result<bool, String> {
    let (json, report) = load_report(&options.report)?;
    let mut mismatches: Vec<_> = broken_seal(&json).into_iter().collect();
    let beside = options.report.parent().unwrap_or(Path::new("."));
    let folders: Vec<&Path> =
        std::iter::once(beside).chain(options.data.iter().map(PathBuf::as_path)).collect();
    mismatches.extend(report.manifest.check(|file| {
        let found = folders.iter().find_map(|folder| fs::read(folder.join(file)).ok());
        found.ok_or_else(|| "not found beside the report or in --data".to_owned())
    }));
    mismatches.iter().for_each(|mismatch| println!("{mismatch}"));
    let mut holds = mismatches.is_empty();
    if holds {
        let files = report.manifest.files.len();
        println!("the report, its options and its {files} files are what the manifest says");
    }
    if let Some(path) = &options.record.against {
        let (lines, passed) = held(&report, path, &options.record)?;
        lines.iter().for_each(|line| println!("{line}"));
        holds &= passed;
    }
    Ok(holds)
}

fn render(options: &Render) -> Result<(), String> {
    let (_, report) = load_report(&options.report)?;
    let beside = options.report.parent().unwrap_or(Path::new("."));
    let folder = options.out.as_deref().unwrap_or(beside);
    fs::create_dir_all(folder).map_err(|error| fail(folder, &error))?;
    pages(&report, folder)
}

/// The commit of the working tree, with `+changes` if files differ from it.
fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}+changes") })
}

/// How many programs want a processor, on average of the last minute.
fn load_average() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

fn machine() -> Machine {
    let value = |file: &str, key: &str| {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let kilobytes = value("/proc/meminfo", "MemTotal");
    let kilobytes = kilobytes.and_then(|text| text.strip_suffix("kB")?.trim().parse::<u64>().ok());
    Machine {
        cpu: value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into()),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: kilobytes.map(|kilobytes| kilobytes * 1024),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    }
}
