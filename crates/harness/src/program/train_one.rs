//! One training in a process of its own, so that time and memory are its alone.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use harness::experiment::{Data, Plan, vocab_digest};
use serde::{Deserialize, Serialize};

use super::{bench_all, machine};

/// What to train on and how.
#[derive(Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) fixtures: PathBuf,
    pub(crate) corpora: Vec<String>,
    pub(crate) plan: Plan,
    pub(crate) algorithm: String,
    pub(crate) size: usize,
}

/// What was measured.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) peak_bytes: Option<u64>,
    pub(crate) before_bytes: Option<u64>,
    pub(crate) vocab_sha256: String,
}

/// Starts this program again for the task.
pub(crate) fn run(task: &Task) -> Result<Measured, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let fail = |error: &dyn std::fmt::Display| {
        format!("training {} in a process of its own: {error}", task.algorithm)
    };
    let mut child = Command::new(program)
        .arg("train-one")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| fail(&error))?;
    let input = serde_json::to_vec(task).map_err(|error| fail(&error))?;
    // Written and closed at once; the task is far smaller than a pipe.
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(&input));
    let output = child.wait_with_output().map_err(|error| fail(&error))?;
    if !output.status.success() {
        return Err(fail(&String::from_utf8_lossy(&output.stderr).trim()));
    }
    written.transpose().map_err(|error| fail(&error))?;
    serde_json::from_slice(&output.stdout).map_err(|error| fail(&error))
}

/// The other side: reads a task from standard input, trains, and writes what it measured.
pub(crate) fn serve() -> Result<(), String> {
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input).map_err(|error| error.to_string())?;
    let task: Task = serde_json::from_slice(&input).map_err(|error| error.to_string())?;
    let (corpora, _) = bench_all::load(&task.fixtures, &task.corpora)?;
    let plan = Plan { algorithms: vec![task.algorithm.clone()], ..task.plan };
    let data = Data::prepare(&plan, corpora).map_err(|error| error.to_string())?;
    let entries = plan.entries(&data).map_err(|error| error.to_string())?;
    let entry = entries.first().ok_or("the task names no algorithm")?;
    // Only the counts are kept: held-out texts are no part of training.
    let counts = data.counts;
    let reset = machine::reset_peak_memory();
    let before_bytes = machine::memory("VmRSS");
    let cpu = machine::processor_seconds();
    let start = Instant::now();
    let mut go_on = |_: &'static str, _: u64, _: u64| ControlFlow::Continue(());
    let trained = entry.contestant.train(&counts, task.size, &entry.terms, &mut go_on)?;
    let seconds = start.elapsed().as_secs_f64();
    // The system's clock for this has steps of milliseconds; of a short training it says nothing.
    let cpu_seconds = machine::processor_seconds()
        .zip(cpu)
        .map(|(end, start)| end - start)
        .filter(|&seconds| seconds >= 0.1);
    // Without the reset the peak is that of reading the corpora.
    let peak_bytes = machine::memory("VmHWM").filter(|_| reset);
    let vocab_sha256 = vocab_digest(trained.model().vocab());
    let measured = Measured { seconds, cpu_seconds, peak_bytes, before_bytes, vocab_sha256 };
    let json = serde_json::to_string(&measured).map_err(|error| error.to_string())?;
    println!("{json}");
    Ok(())
}
