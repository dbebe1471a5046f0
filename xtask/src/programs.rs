//! Tasks that build a program of the workspace and hand their arguments on to it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::run::{cargo, output, pass_on, succeed};

pub(crate) const BENCH_ALL_HELP: &str = "
usage: cargo xtask bench-all [--quick] [--no-criterion] [OPTIONS OF THE HARNESS]

Runs the criterion benches and then the harness: trains and verifies every algorithm on every
fixture corpus, computes the metrics, times training and encoding, and writes
target/bench-all/report.json, report.md and report.html.

  --quick           smaller runs: under two minutes after the build
  --no-criterion    leave the criterion benches out
  --peers           instead, compare ids, speed, memory and training with other projects'
                    tokenizers: writes peers.json, peers.md and peers.html
  --no-setup        with --peers: use the Python packages that are there
  --check FILE      with --peers: instead, hold a peers.json against its hashes and files

With --peers every other option goes to that program; `cargo run --release -p peers --bin speed -- run
--help` lists them. Without Python, crates alone are compared.

Everything but --no-criterion is handed on to the harness, which runs in the workspace's folder;
`cargo run --release -p harness --bin harness -- bench-all --help` lists its options.

Examples:
  cargo xtask bench-all --quick
  cargo xtask bench-all --peers --against peers-record.json
";

pub(crate) const PEERS_SETUP_HELP: &str = "
usage: cargo xtask peers-setup

Makes a virtual environment in target/peers/venv with python3, and installs the Python packages that
`cargo xtask bench-all --peers` compares with, each in a fixed version and one after the other, from
where pip is configured to look. What cannot be installed is named and skipped; what is installed
is left alone, so the task may be run again.

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

/// Python packages, one at a time: one that cannot be had does not keep the others out.
const PACKAGES: &[&str] = &[
    "tiktoken==0.14.0",
    "tokenizers==0.23.3",
    "sentencepiece==0.2.3",
    "gigatoken==0.10.0",
    "fastokens==0.3.5",
    "splintr-rs==0.22.0",
    "quicktok-v1==0.4.0",
    "tokie==0.1.4",
    "nanotoken==0.1.0",
    "gigabpe==0.1.0",
    "rustbpe==0.1.0",
];

/// Longer than this no package may take; one without a wheel might be compiled.
const INSTALL_LIMIT: Duration = Duration::from_secs(300);

/// Makes the virtual environment of the Python contestants; says what is not to be had.
pub(crate) fn peers_setup(args: &[String]) -> Result<ExitCode, String> {
    if let Some(arg) = args.first() {
        return Err(format!("unknown argument {arg:?}; see --help"));
    }
    let venv = crate::run::root().join(PEERS).join("venv");
    let python = venv.join("bin/python");
    if !python.exists() {
        output(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    let installed = output(Command::new(&python).args(["-m", "pip", "freeze", "--quiet"]))?;
    let mut skipped = 0;
    for package in PACKAGES {
        if installed.lines().any(|line| line == *package) {
            eprintln!("there: {package}");
            continue;
        }
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--prefer-binary", "--no-input"]);
        pip.args(["--disable-pip-version-check", "--retries", "1", package]);
        match complaint(&mut pip, INSTALL_LIMIT) {
            Ok(None) => eprintln!("installed: {package}"),
            Ok(Some(why)) | Err(why) => {
                skipped += 1;
                eprintln!("skipped: {package}: {why}");
            }
        }
    }
    eprintln!("{} of {} packages in {PEERS}/venv", PACKAGES.len() - skipped, PACKAGES.len());
    Ok(ExitCode::SUCCESS)
}

/// Runs a program for at most `limit`; `None` if it succeeds, else the last line of its complaint.
fn complaint(command: &mut Command, limit: Duration) -> Result<Option<String>, String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut stderr = child.stderr.take().expect("it is piped");
    let words = std::thread::spawn(move || {
        let mut words = Vec::new();
        // What could be read of a complaint is enough.
        let _ = stderr.read_to_end(&mut words);
        words
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if start.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("not done within {} s", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if status.success() {
        return Ok(None);
    }
    let words = words.join().unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    let last = words.lines().rev().find(|line| !line.trim().is_empty());
    Ok(Some(last.map_or_else(|| status.to_string(), str::to_owned)))
}

/// The referee of `peers`, with the contestants that can be had.
fn peers(args: &[String]) -> Result<ExitCode, String> {
    let root = crate::run::root();
    let given = |name: &str| args.iter().any(|arg| arg == name);
    let mut speed = cargo(&["run", "--quiet", "--release", "--package", "peers"]);
    // With every contestant also where none is asked: another set of features is another build.
    speed.args(["--features", "natives", "--bin", "speed", "--"]);
    if given("--check") {
        speed.arg("check");
        let own = ["--peers", "--check"];
        return pass_on(speed.args(args.iter().filter(|arg| !own.contains(&arg.as_str()))));
    }
    if !given("--no-setup")
        && let Err(why) = peers_setup(&[])
    {
        eprintln!("skipped: Python contestants: {why}");
    }
    speed.arg("run");
    if !given("--out") {
        speed.arg("--out").arg(root.join("target/bench-all"));
    }
    let python = root.join(PEERS).join("venv/bin/python");
    if python.exists() && !given("--python") {
        speed.arg("--python").arg(python);
    }
    match next(&root) {
        _ if given("--next") => {}
        Ok(program) => {
            speed.arg("--next").arg(program);
        }
        Err(why) => eprintln!("skipped: tokenizers 1.0: {why}"),
    }
    let own = ["--peers", "--no-setup"];
    // Paths among the arguments are of the caller's folder, in which the program runs.
    pass_on(speed.args(args.iter().filter(|arg| !own.contains(&arg.as_str()))))
}

/// Builds the contestant that the workspace cannot hold.
fn next(root: &Path) -> Result<PathBuf, String> {
    let target = root.join(PEERS).join("next");
    let manifest = root.join("crates/peers/next/Cargo.toml");
    let mut build = cargo(&["build", "--quiet", "--release", "--locked", "--manifest-path"]);
    build.arg(manifest).arg("--target-dir").arg(&target);
    output(&mut build)?;
    Ok(target.join("release/peers-next"))
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
fn release(package: &str, program: &str) -> Command {
    cargo(&["run", "--quiet", "--release", "--package", package, "--bin", program, "--"])
}
