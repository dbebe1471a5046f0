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
  --peers           other libraries as contestants too

Everything but --no-criterion is handed on to the harness, which runs in the workspace's folder;
`cargo run --release -p harness --bin harness -- bench-all --help` lists its options.

Example:
  cargo xtask bench-all --quick
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
