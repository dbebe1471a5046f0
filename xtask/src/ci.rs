//! `ci`: every check, one after the other.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::json::Json;
use crate::run::{cargo, output, root, succeed};
use crate::{browser, generate, instructions, tidy};

pub(crate) const HELP: &str = "
usage: cargo xtask ci [--only STEP].. [--skip STEP].. [--data DIR]

Runs the checks of the project in this order, also when one has failed, and prints the time of each:

  fmt           the code is formatted
  clippy        no lint anywhere but in the crate of other libraries
  test          the tests of the default crates
  doc           the documentation builds without a warning
  features      each crate builds without its features, and with each of them alone
  tidy          the rules that no compiler checks
  gen           the fixtures are what their manifest and their generators say
  conformance   ids equal those of the reference libraries; only with --data
  instructions  fixed pieces of work take no more instructions; only where valgrind is installed
  browser       the report opens in a browser without errors; only where chromium is installed

  --only STEP   only this step; may be given several times
  --skip STEP   all steps but this one; may be given several times
  --data DIR    vocabularies and vectors for the conformance step

Example:
  cargo xtask ci --only fmt --only tidy
";

struct Step {
    name: &'static str,
    run: fn(&Options) -> Result<Outcome, String>,
}

enum Outcome {
    Passed,
    /// Not run, and why.
    Skipped(&'static str),
}

const STEPS: &[Step] = &[
    Step { name: "fmt", run: |_| passed(&["fmt", "--all", "--check"]) },
    Step { name: "clippy", run: |_| clippy() },
    Step { name: "test", run: |_| passed(&["test"]) },
    Step { name: "doc", run: |_| doc() },
    Step { name: "features", run: |_| features() },
    Step { name: "tidy", run: |_| tidy::check().map(|()| Outcome::Passed) },
    Step { name: "gen", run: |_| generate::check().map(|()| Outcome::Passed) },
    Step { name: "conformance", run: conformance },
    Step { name: "instructions", run: |_| instructions() },
    Step { name: "browser", run: |_| browser() },
];

#[derive(Debug, Default, PartialEq)]
struct Options {
    only: Vec<String>,
    skip: Vec<String>,
    data: Option<PathBuf>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value; see --help"));
            match arg.as_str() {
                "--only" => options.only.push(step_name(value()?)?),
                "--skip" => options.skip.push(step_name(value()?)?),
                "--data" => options.data = Some(PathBuf::from(value()?)),
                _ => return Err(format!("unknown argument {arg:?}; see --help")),
            }
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        let is = |step: &String| step == name;
        (self.only.is_empty() || self.only.iter().any(is)) && !self.skip.iter().any(is)
    }
}

fn step_name(name: &str) -> Result<String, String> {
    if STEPS.iter().any(|step| step.name == name) {
        return Ok(name.to_owned());
    }
    let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
    Err(format!("there is no step {name:?}; the steps are {}", names.join(", ")))
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let mut options = Options::parse(args)?;
    if let Some(data) = &options.data {
        // Steps run in the workspace's folder, wherever we were started.
        let absolute = data.canonicalize();
        options.data = Some(absolute.map_err(|error| format!("{}: {error}", data.display()))?);
    }
    let mut results = Vec::new();
    for step in STEPS.iter().filter(|step| options.wants(step.name)) {
        eprintln!("\n--- {}", step.name);
        let start = Instant::now();
        let result = (step.run)(&options);
        if let Err(problem) = &result {
            eprintln!("xtask ci: {}: {problem}", step.name);
        }
        results.push((step.name, result, start.elapsed()));
    }
    println!("\n{}", summary(&results));
    let failed = results.iter().any(|(_, result, _)| result.is_err());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A line a step: what came out, the time, the name.
fn summary(results: &[(&str, Result<Outcome, String>, Duration)]) -> String {
    let line = |(name, result, time): &(&str, Result<Outcome, String>, Duration)| {
        let outcome = match result {
            Ok(Outcome::Passed) => "passed".to_owned(),
            Ok(Outcome::Skipped(why)) => format!("SKIPPED: {why}"),
            Err(_) => "FAILED".to_owned(),
        };
        format!("{:>7.1} s  {name:<12} {outcome}", time.as_secs_f64())
    };
    results.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Runs Cargo in the workspace's folder.
fn passed(args: &[&str]) -> Result<Outcome, String> {
    succeed(cargo(args).current_dir(root())).map(|()| Outcome::Passed)
}

fn clippy() -> Result<Outcome, String> {
    let mut args = vec!["clippy", "--workspace", "--all-targets", "--quiet"];
    // The libraries that we compare with are large, and theirs to check.
    if root().join("crates/peers").exists() {
        args.extend(["--exclude", "peers"]);
    }
    args.extend(["--", "-D", "warnings"]);
    passed(&args)
}

fn doc() -> Result<Outcome, String> {
    let mut doc = cargo(&["doc", "--no-deps", "--quiet"]);
    succeed(doc.env("RUSTDOCFLAGS", "-D warnings").current_dir(root())).map(|()| Outcome::Passed)
}

fn features() -> Result<Outcome, String> {
    let metadata =
        output(cargo(&["metadata", "--format-version", "1", "--no-deps"]).current_dir(root()))?;
    for (name, features) in with_features(&Json::parse(&metadata)?) {
        eprintln!("{name}: no features");
        let bare = ["check", "--quiet", "--package", &name, "--no-default-features"];
        passed(&bare)?;
        for feature in &features {
            eprintln!("{name}: {feature}");
            passed(&[&bare[..], &["--features", feature]].concat())?;
        }
    }
    Ok(Outcome::Passed)
}

/// The crates that have features, with the names of those.
fn with_features(metadata: &Json) -> Vec<(String, Vec<String>)> {
    let mut crates = Vec::new();
    for package in metadata.get("packages").items() {
        let name = package.get("name").str().unwrap_or_default();
        let features = package.get("features").entries().iter().map(|(feature, _)| feature.clone());
        let features: Vec<String> = features.filter(|feature| feature != "default").collect();
        if !features.is_empty() && name != "peers" {
            crates.push((name.to_owned(), features));
        }
    }
    crates
}

fn conformance(options: &Options) -> Result<Outcome, String> {
    let Some(data) = &options.data else {
        return Ok(Outcome::Skipped("no --data"));
    };
    let build = ["run", "--quiet", "--release", "--package", "harness", "--bin", "conformance"];
    let mut conformance = cargo(&build);
    conformance.args(["--", "--data"]).arg(data);
    succeed(conformance.current_dir(root())).map(|()| Outcome::Passed)
}

fn instructions() -> Result<Outcome, String> {
    let was_counted = instructions::check_all()?;
    Ok(if was_counted { Outcome::Passed } else { Outcome::Skipped(instructions::SKIPPED) })
}

fn browser() -> Result<Outcome, String> {
    let Some(chromium) = browser::find() else {
        return Ok(Outcome::Skipped("chromium is not installed"));
    };
    if !browser::report().exists() {
        eprintln!("no report yet: making a quick one");
        let args = ["--quick".to_owned(), "--no-criterion".to_owned()];
        if crate::programs::bench_all(&args)? != ExitCode::SUCCESS {
            return Err("bench-all failed".to_owned());
        }
    }
    browser::check(&chromium).map(|()| Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &str) -> Result<Options, String> {
        Options::parse(&args.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn wanted(args: &str) -> Vec<&'static str> {
        let options = parse(args).unwrap();
        STEPS.iter().map(|step| step.name).filter(|name| options.wants(name)).collect()
    }

    #[test]
    fn all_steps_run_unless_told_otherwise() {
        assert_eq!(wanted("").len(), STEPS.len());
        assert_eq!(wanted("--only tidy --only fmt"), ["fmt", "tidy"]);
        assert_eq!(wanted("--skip test --data x").len(), STEPS.len() - 1);
        assert_eq!(wanted("--only test --skip test"), Vec::<&str>::new());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for args in ["--only", "--only no-such-step", "--skip", "--data", "fmt", "--onyl fmt"] {
            assert!(parse(args).is_err(), "{args}");
        }
    }

    #[test]
    fn help_names_every_step() {
        for step in STEPS {
            assert!(HELP.contains(&format!("\n  {} ", step.name)), "{}", step.name);
        }
    }

    #[test]
    fn the_summary_shows_what_failed_and_what_was_skipped() {
        let results = [
            ("fmt", Ok(Outcome::Passed), Duration::from_millis(1234)),
            ("test", Err("no".to_owned()), Duration::from_secs(100)),
            ("browser", Ok(Outcome::Skipped("no chromium")), Duration::ZERO),
        ];
        let expected = "    1.2 s  fmt          passed\n  100.0 s  test         FAILED\n    0.0 s  \
                        browser      SKIPPED: no chromium";
        assert_eq!(summary(&results), expected);
    }

    #[test]
    fn crates_with_features_are_found() {
        let metadata = Json::parse(
            r#"{"packages": [{"name": "a", "features": {"default": ["std"], "std": [], "train": []}},
                {"name": "b", "features": {}}, {"name": "peers", "features": {"x": []}}]}"#,
        );
        let found = with_features(&metadata.unwrap());
        assert_eq!(found, [("a".to_owned(), vec!["std".to_owned(), "train".to_owned()])]);
    }
}
