//! `harness`: the referee. `harness bench-all` trains, verifies and measures every algorithm on
//! every fixture corpus and writes a report; `harness check` holds a report against its files and
//! against a recorded report; `harness render` draws its pages anew.
//!
//! Exit codes: 0 success, 1 a check failed, 2 usage, 3 bad input or file error.

mod program;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use harness::report::Bands;

#[derive(Parser)]
#[command(name = "harness", version, about = "Compares tokenizers on equal terms")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train, verify and measure every algorithm on every fixture corpus, and write the report
    BenchAll(BenchAll),
    /// Hold a report against its hashes and files, and against a recorded one
    Check(Check),
    /// Write report.md and report.html anew from a report.json
    Render(Render),
    /// One training in a process of its own, for bench-all: reads a task, writes what it measured
    #[command(hide = true)]
    TrainOne,
}

/// Options of `bench-all`.
#[derive(Args)]
pub(crate) struct BenchAll {
    /// Fewer sizes, rounds and resamples: under two minutes
    #[arg(long)]
    quick: bool,
    /// Where report.json, report.md and report.html go
    #[arg(long, value_name = "DIR", default_value = "target/bench-all")]
    out: PathBuf,
    /// The folder with MANIFEST.json
    #[arg(long, value_name = "DIR", default_value = "fixtures")]
    fixtures: PathBuf,
    /// Where criterion left its results
    #[arg(long, value_name = "DIR", default_value = "target/criterion")]
    criterion: PathBuf,
    /// Decides the division of the documents and the resamples
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only these corpora, by name
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    corpora: Vec<String>,
    /// Only these algorithms, by name
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    algorithms: Vec<String>,
    /// Gold segmentations of words into morphs: a word, a tab and its morphs a line
    #[arg(long, value_name = "FILE")]
    morph: Option<PathBuf>,
}

/// Options of `render`.
#[derive(Args)]
pub(crate) struct Render {
    /// The report
    #[arg(value_name = "report.json")]
    report: PathBuf,
    /// Where report.md and report.html go [default: beside the report]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Options of `check`.
#[derive(Args)]
#[command(after_help = "\
With --against, the report is also held against a recorded one. On equal terms vocabularies and
metrics must be equal and no row may become void; speed and training time, as ratios to the byte
baseline of the same report, and memory must stay within their bands; what was linear must not
become quadratic.

Exit codes: 0 all holds, 1 something does not, 2 usage, 3 a file cannot be read.

Example:
  harness check target/bench-all/report.json --against record.json --speed-band 0.2")]
pub(crate) struct Check {
    /// The report
    #[arg(value_name = "report.json")]
    report: PathBuf,
    /// A recorded report: whatever became worse is named
    #[arg(long, value_name = "RECORD.json")]
    against: Option<PathBuf>,
    /// The share of speed that may be lost against the record
    #[arg(long, value_name = "SHARE", default_value_t = Bands::default().speed)]
    speed_band: f64,
    /// How much more memory training may take than in the record
    #[arg(long, value_name = "SHARE", default_value_t = Bands::default().memory)]
    memory_band: f64,
    /// The folder that the report's files are in
    #[arg(long, value_name = "DIR", default_value = "fixtures")]
    fixtures: PathBuf,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::BenchAll(options) => program::bench_all::run(&options),
        Command::Check(options) => program::check::run(&options),
        Command::Render(options) => program::render::run(&options).map(|()| true),
        Command::TrainOne => program::train_one::serve().map(|()| true),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(problem) => {
            eprintln!("harness: {problem}");
            ExitCode::from(3)
        }
    }
}
