//! Contestants as processes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::runner::{self, Runner};

/// Longer than this no load, pass or batch of questions takes; who takes longer is out.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Starts contestants.
#[derive(Clone, Debug)]
pub struct Contest {
    /// This program, which is every contestant that is a crate.
    program: PathBuf,
    /// The program of the package `next`, if it was built.
    next: Option<PathBuf>,
    /// Python with the packages, if there is one.
    python: Option<PathBuf>,
}

/// This workspace's tokenizer.
pub const OURS: &str = "ours";
/// The same as a server would use it: the tables of the model are built when it loads, as others build
/// theirs, and sessions remember as much as those of others do.
pub const OURS_PREPARED: &str = "ours, prepared, 64 MB a session";

/// Whether a contestant is this workspace's.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    matches!(name, OURS | OURS_PREPARED)
}

/// The contestant of the package `next`.
pub const NEXT: &str = "crate tokenizers 1.0";

impl Contest {
    /// With these programs; contestants of what is missing cannot be started.
    ///
    /// # Errors
    ///
    /// If this program cannot be found.
    pub fn new(python: Option<&Path>, next: Option<&Path>) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
        Ok(Self { program, next: next.map(Path::to_owned), python: python.map(Path::to_owned) })
    }

    /// A process in which nothing is loaded yet.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn spawn(&self, name: &str) -> Result<Runner, String> {
        let mut command = if name == NEXT {
            Command::new(self.next.as_deref().ok_or("its program was not built")?)
        } else if is_ours(name) || name.starts_with("crate ") {
            let mut command = Command::new(&self.program);
            command.arg("child");
            command
        } else {
            let python = self.python.as_deref().ok_or("there is no Python with the packages")?;
            let mut command = Command::new(python);
            command.arg("-X").arg("utf8").arg(runner::folder().join("runner.py"));
            command
        };
        command.env("RAYON_NUM_THREADS", "2").env("TOKENIZERS_PARALLELISM", "true");
        let mut runner = Runner::spawn(command, name)?;
        runner.limit = LIMIT;
        Ok(runner)
    }

    /// Loads a model; gives the answer, which has the times.
    ///
    /// # Errors
    ///
    /// In the contestant's words why not, or that it took too long.
    pub fn load(&self, runner: &mut Runner, name: &str, model: &Value) -> Result<Value, String> {
        let request = json!({"op": "load", "peer": name, "model": model});
        let answer = runner.ask_within(&request, LIMIT)?;
        runner.loaded(&answer);
        Ok(answer)
    }

    /// A process with a model.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn) and [`load`](Self::load).
    pub fn start(&self, name: &str, model: &Value) -> Result<Runner, String> {
        let mut runner = self.spawn(name)?;
        self.load(&mut runner, name, model)?;
        Ok(runner)
    }
}

/// The resident memory of a contestant's process: `now` or its `peak`.
pub fn memory(runner: &mut Runner, what: &str) -> Option<f64> {
    runner.ask_within(&json!({"op": "memory"}), LIMIT).ok()?[what].as_f64()
}

/// Wall and processor seconds of one pass: `whole`, `documents`, `count` or `batch`.
///
/// # Errors
///
/// If the contestant cannot do it or took longer than the limit.
pub fn time(runner: &mut Runner, what: &str, limit: Duration) -> Result<(f64, f64), String> {
    let answer = runner.ask_within(&json!({"op": "time", "what": what}), limit)?;
    let seconds = |name: &str| answer[name].as_f64().ok_or_else(|| format!("no {name}"));
    Ok((seconds("seconds")?, seconds("cpu")?))
}

/// Lets a contestant read a text.
///
/// # Errors
///
/// If it cannot.
pub fn read(runner: &mut Runner, file: &Path) -> Result<(), String> {
    runner.ask_within(&json!({"op": "texts", "file": file}), LIMIT).map(|_| ())
}
