//! How fast other projects' tokenizers are beside ours; `cargo xtask bench-all --peers` starts it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use harness::manifest::{Machine, utc};
use peers::speed::{self, Options};

/// Compares ids with those of other projects' tokenizers, then speed, and writes
/// peers.json, peers.md and peers.html.
#[derive(Parser)]
#[command(name = "speed")]
struct Args {
    /// Answer requests on standard input, as one of the contestants
    #[arg(long, hide = true)]
    child: bool,
    /// Python with the packages of the contestants
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Folder with more models: tokenizer.json and SentencePiece .model files; may be repeated
    #[arg(long, value_name = "DIR")]
    data: Vec<PathBuf>,
    /// A corpus: a file, or all files of a folder; may be repeated [default: the fixtures]
    #[arg(long, value_name = "NAME=PATH")]
    corpus: Vec<String>,
    /// Folder of the report
    #[arg(long, default_value = "target/bench-all", value_name = "DIR")]
    out: PathBuf,
    /// Interleaved rounds
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How much of each corpus is used
    #[arg(long, default_value_t = 2.0, value_name = "MB")]
    megabytes: f64,
    /// The text to train on; without it nothing is trained
    #[arg(long, value_name = "FILE")]
    train: Option<PathBuf>,
    /// The number of tokens to train
    #[arg(long, default_value_t = 32_000)]
    vocab: usize,
    /// Only models whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// The commit, for the report
    #[arg(long, hide = true)]
    commit: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.child {
        return match speed::child::serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

fn run(args: Args) -> Result<(), String> {
    let start = Instant::now();
    let mut corpora = Vec::new();
    for corpus in &args.corpus {
        let (name, path) =
            corpus.split_once('=').ok_or_else(|| format!("{corpus} is not NAME=PATH"))?;
        corpora.push((name.to_owned(), PathBuf::from(path)));
    }
    if corpora.is_empty() {
        let fixtures = testkit::fixtures::root().join("corpora");
        for (name, folder) in [("english", "prose"), ("code", "code"), ("languages", "sentences")] {
            corpora.push((name.to_owned(), fixtures.join(folder)));
        }
    }
    let options = Options {
        python: args.python,
        data: args.data,
        corpora,
        out: args.out.clone(),
        rounds: args.rounds.max(1),
        bytes: (args.megabytes * 1e6) as usize,
        train: args.train,
        vocab: args.vocab,
        only: args.only,
    };
    let seconds = || start.elapsed().as_secs();
    let mut report = speed::run(&options, &mut |line| eprintln!("[{:4} s] {line}", seconds()))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    report.manifest.created = utc(now);
    report.manifest.commit = args.commit;
    report.manifest.seconds = seconds();
    report.manifest.machine = Some(machine());
    report.manifest.options = BTreeMap::from([
        ("rounds".to_owned(), options.rounds.to_string()),
        ("bytes of a corpus".to_owned(), options.bytes.to_string()),
        ("vocab".to_owned(), options.vocab.to_string()),
    ]);
    report.manifest.options_sha256 = report.manifest.options_digest();
    for gate in &report.gates {
        report.manifest.versions.insert(gate.contestant.clone(), gate.model.clone());
    }
    let write = |name: &str, text: String| {
        let path = args.out.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write("peers.json", report.to_json()?)?;
    write("peers.md", report.to_markdown())?;
    write("peers.html", report.to_html())?;
    eprintln!("wrote peers.json, peers.md and peers.html in {}", args.out.display());
    Ok(())
}

fn machine() -> Machine {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name"));
    Machine {
        cpu: model.map_or("unknown", |name| name.trim_start_matches([':', '\t', ' '])).to_owned(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: None,
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    }
}
