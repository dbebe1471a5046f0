//! Tasks that build a program of the workspace and hand their arguments on to it.

use std::process::ExitCode;

use crate::run::{cargo, pass_on, succeed};

pub(crate) const BENCH_ALL_HELP: &str = "
usage: cargo xtask bench-all [--quick] [--no-criterion] [OPTIONS OF THE HARNESS]

Runs the criterion benches and then the harness: trains and verifies every algorithm on every
fixture corpus, computes the metrics, times training and encoding, and writes
target/bench-all/report.json, report.md and report.html.

  --quick           smaller runs: under two minutes after the build
  --no-criterion    leave the criterion benches out
  --peers           instead, compare ids and speed with other projects' tokenizers: writes
                    peers.json, peers.md and peers.html; --no-setup uses the Python packages that
                    are there; other options go to the program, whose --help lists them.
                    A draft: it compiles, but no whole run has been checked yet

Everything but --no-criterion is handed on to the harness, which runs in the workspace's folder;
`cargo run --release -p harness --bin harness -- bench-all --help` lists its options.

Example:
  cargo xtask bench-all --quick
";

pub(crate) const PEERS_SETUP_HELP: &str = "
usage: cargo xtask peers-setup

Makes a virtual environment in target/peers/venv and installs the Python packages that
`cargo xtask bench-all --peers` compares with. What cannot be installed is named and skipped.
A draft, as is what it prepares.

Example:
  cargo xtask peers-setup
";

pub(crate) const COMPARE_HELP: &str = "
usage: cargo xtask compare FILES.. [OPTIONS OF tok compare]

The side-by-side experiment on your own text: the same as `tok compare`, built first. Options of tok
that tok is to explain itself stand behind `--`.

Examples:
  cargo xtask compare my-text.txt --html comparison.html
  cargo xtask compare -- --help
";

pub(crate) const CONFORMANCE_HELP: &str = "
usage: cargo xtask conformance --data DIR

Loads the vocabularies in DIR/vocabs, encodes the texts in DIR/vectors/conformance/*.jsonl and
compares the ids with those that the reference libraries gave. Prints a row per file and a last line
`conformance: P passed, F failed`. Exits with 1 if any failed.

Example:
  cargo xtask conformance --data path/to/data
";

/// Folder of the results of criterion, under the folder of the workspace, where the harness looks
/// for them unless it is told otherwise.
const CRITERION: &str = "target/criterion";

/// What makes criterion quick: it stops as soon as a measurement is steady.
const QUICK: &[&str] = &["--quick", "--warm-up-time", "0.1", "--measurement-time", "0.5"];

/// The benches, then the referee.
pub(crate) fn bench_all(args: &[String]) -> Result<ExitCode, String> {
    if args.iter().any(|arg| arg == "--peers") {
        return peers(args);
    }
    let quick = args.iter().any(|arg| arg == "--quick");
    let criterion = args.iter().all(|arg| arg != "--no-criterion");
    let root = crate::run::root();
    if criterion {
        let mut benches = cargo(&["bench", "--package", "benches", "--"]);
        benches.args(if quick { QUICK } else { &[] });
        // Criterion takes this variable before any other guess.
        benches.env("CRITERION_HOME", root.join(CRITERION)).current_dir(&root);
        succeed(&mut benches)?;
    }
    let mut harness = release("harness", "harness");
    harness.arg("bench-all").args(args.iter().filter(|arg| *arg != "--no-criterion"));
    if !criterion {
        // Results of an earlier run are not results of this one.
        harness.args(["--criterion", "target/no-criterion"]);
    }
    pass_on(harness.current_dir(root))
}

/// Where the Python packages of other projects are installed, under the folder of the workspace.
const PEERS: &str = "target/peers";

/// Packages from PyPI, one at a time: one that cannot be had does not keep the others out.
const PACKAGES: &[&str] = &[
    "tiktoken==0.14.0",
    "tokenizers==0.23.3",
    "sentencepiece==0.2.3",
    "protobuf",
    "gigatoken==0.10.0",
    "fastokens==0.3.5",
    "splintr-rs==0.22.0",
    "quicktok-v1==0.4.0",
    "tokie==0.1.4",
    "nanotoken==0.1.0",
    "gigabpe==0.1.0",
    "rustbpe==0.1.0",
];

/// Makes the virtual environment of the Python contestants; says what is not to be had.
pub(crate) fn peers_setup(_args: &[String]) -> Result<ExitCode, String> {
    let venv = crate::run::root().join(PEERS).join("venv");
    let python = venv.join("bin/python");
    if !python.exists() {
        succeed(std::process::Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    for package in PACKAGES {
        let mut pip = std::process::Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--prefer-binary", package]);
        match pip.output() {
            Ok(done) if done.status.success() => eprintln!("installed: {package}"),
            Ok(done) => {
                let words = String::from_utf8_lossy(&done.stderr);
                eprintln!("skipped: {package}: {}", words.lines().last().unwrap_or_default());
            }
            Err(error) => eprintln!("skipped: {package}: {error}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Models of ours for the formats that no embedded encoding has, and then the referee of `peers`.
fn peers(args: &[String]) -> Result<ExitCode, String> {
    let root = crate::run::root();
    if args.iter().all(|arg| arg != "--no-setup")
        && let Err(why) = peers_setup(&[])
    {
        eprintln!("skipped: Python contestants: {why}");
    }
    let models = root.join(PEERS).join("models");
    std::fs::create_dir_all(&models).map_err(|error| format!("{}: {error}", models.display()))?;
    let trained = [
        ("wordpiece", "wordpiece-uncased.json", &["--normalizer", "bert", "--pretok", "bert"][..]),
        ("unigram", "unigram.model", &[][..]),
    ];
    for (algorithm, name, options) in trained {
        let out = models.join(name);
        if !out.exists() {
            let mut tok = release("tokenizer-cli", "tok");
            tok.args(["train", algorithm, "fixtures/corpora/prose", "fixtures/corpora/sentences"]);
            tok.args(["--vocab-size", "8000", "--out"]).arg(&out).args(options);
            succeed(tok.current_dir(&root))?;
        }
    }
    let mut speed = cargo(&["run", "--quiet", "--release", "--package", "peers"]);
    speed.args(["--features", "natives", "--bin", "speed", "--", "--data"]).arg(&models);
    let python = root.join(PEERS).join("venv/bin/python");
    if python.exists() && args.iter().all(|arg| arg != "--python") {
        speed.arg("--python").arg(python);
    }
    speed.args(args.iter().filter(|arg| !["--peers", "--no-setup"].contains(&arg.as_str())));
    pass_on(speed.current_dir(root))
}

/// `tok compare`.
pub(crate) fn compare(args: &[String]) -> Result<ExitCode, String> {
    let mut tok = release("tokenizer-cli", "tok");
    // The first `--` separated tok's options from ours.
    let ours = args.iter().position(|arg| arg == "--");
    let args = args.iter().enumerate().filter(|(at, _)| Some(*at) != ours).map(|(_, arg)| arg);
    pass_on(tok.arg("compare").args(args))
}

/// The program `conformance` of the harness.
pub(crate) fn conformance(args: &[String]) -> Result<ExitCode, String> {
    pass_on(release("harness", "conformance").args(args))
}

/// A program of the workspace, optimised; it runs where we run.
fn release(package: &str, program: &str) -> std::process::Command {
    cargo(&["run", "--quiet", "--release", "--package", package, "--bin", program, "--"])
}
