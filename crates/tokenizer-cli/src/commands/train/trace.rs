//! The steps of a training: as JSON lines in a file, and as a bar on a terminal.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use serde::Serialize;
use tokenizer_core::{Observe, TokenId};

use super::checkpoint::Checkpoint;
use super::placing::Placing;
use crate::failure::Failure;
use crate::output::{AtomicFile, Progress, Unit};

/// A file of JSON lines.
pub(super) struct Trace {
    path: PathBuf,
    file: AtomicFile,
}

impl Trace {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        Ok(Self { path: path.to_owned(), file: AtomicFile::create(path)? })
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let line = serde_json::to_vec(value).map_err(|e| Failure::file(&self.path, e))?;
        self.file.write_all(&line).map_err(|e| Failure::file(&self.path, e))?;
        self.file.write_all(b"\n").map_err(|e| Failure::file(&self.path, e))
    }
}

/// Watches a training.
pub(super) struct Watch<'c> {
    bar: ProgressBar,
    checkpoint: Option<&'c mut Checkpoint>,
    /// All merges so far, where they are kept.
    merges: Vec<(TokenId, TokenId)>,
    phase: &'static str,
    trace: Option<Trace>,
    failure: Option<Failure>,
    /// Which ids the trace tells.
    pub(super) placing: Placing,
    /// Steps so far.
    pub(super) steps: u64,
}

impl<'c> Watch<'c> {
    pub(super) fn new(
        progress: Progress,
        trace: Option<Trace>,
        checkpoint: Option<&'c mut Checkpoint>,
    ) -> Self {
        let bar = progress.bar("training", 0, Unit::Things);
        let placing = Placing::default();
        let merges = Vec::new();
        Self { bar, checkpoint, merges, phase: "", trace, failure: None, placing, steps: 0 }
    }

    fn merged(&mut self, left: TokenId, right: TokenId) {
        if self.checkpoint.is_some() {
            self.merges.push((left, right));
        }
    }

    /// Keeps the merges so far, if it is time.
    fn keep_merges(&mut self) -> ControlFlow<()> {
        if let Some(checkpoint) = &mut self.checkpoint
            && let Err(failure) = checkpoint.merges(&self.merges)
        {
            self.failure = Some(failure);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Ends the watch: the trace appears, or what went wrong with it is said.
    pub(super) fn finish<T>(self, result: Result<T, Failure>) -> Result<(T, u64), Failure> {
        self.bar.finish_and_clear();
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let trained = result?;
        if let Some(trace) = self.trace {
            trace.file.commit()?;
        }
        Ok((trained, self.steps))
    }

    fn write<L: Serialize>(&mut self, line: impl FnOnce() -> L) -> ControlFlow<()> {
        self.steps += 1;
        if let Some(trace) = &mut self.trace
            && let Err(failure) = trace.line(&line())
        {
            self.failure = Some(failure);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn moved(&mut self, phase: &'static str, done: u64, total: u64) -> ControlFlow<()> {
        if self.phase != phase {
            self.phase = phase;
            self.bar.set_prefix(phase);
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
        ControlFlow::Continue(())
    }
}

/// A merge; the fields in the order that scripts know.
#[derive(Serialize)]
struct MergeLine {
    step: u64,
    /// In hexadecimal, as all tokens.
    left: String,
    right: String,
    token: String,
    id: u32,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    right_count: Option<u64>,
}

/// A pruning round.
#[derive(Serialize)]
struct RoundLine {
    round: usize,
    pieces_before: usize,
    pieces_after: usize,
    log_likelihood: f64,
    tokens: u64,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Observe<bpe::MergeStep> for Watch<'_> {
    fn step(&mut self, step: &bpe::MergeStep) -> ControlFlow<()> {
        self.merged(step.left, step.right);
        let id = self.placing.of(step.id.0);
        self.write(|| MergeLine {
            step: step.step,
            left: hex(&step.left_bytes),
            right: hex(&step.right_bytes),
            token: hex(&step.token),
            id,
            count: step.count,
            left_count: None,
            right_count: None,
        })
    }

    fn progress(&mut self, phase: &'static str, done: u64, total: u64) -> ControlFlow<()> {
        self.keep_merges()?;
        self.moved(phase, done, total)
    }
}

impl Observe<wordpiece::Merge> for Watch<'_> {
    fn step(&mut self, step: &wordpiece::Merge) -> ControlFlow<()> {
        self.merged(step.left, step.right);
        let id = self.placing.of(step.id.0);
        self.write(|| MergeLine {
            step: step.step,
            left: hex(&step.left_bytes),
            right: hex(&step.right_bytes),
            token: hex(&step.token),
            id,
            count: step.count,
            left_count: Some(step.left_count),
            right_count: Some(step.right_count),
        })
    }

    fn progress(&mut self, phase: &'static str, done: u64, total: u64) -> ControlFlow<()> {
        self.keep_merges()?;
        self.moved(phase, done, total)
    }
}

impl Observe<unigram::Round> for Watch<'_> {
    fn step(&mut self, round: &unigram::Round) -> ControlFlow<()> {
        self.write(|| RoundLine {
            round: round.round,
            pieces_before: round.pieces_before,
            pieces_after: round.pieces_after,
            log_likelihood: round.log_likelihood,
            tokens: round.tokens,
        })
    }

    fn progress(&mut self, phase: &'static str, done: u64, total: u64) -> ControlFlow<()> {
        self.moved(phase, done, total)
    }
}

impl Observe<()> for Watch<'_> {
    fn progress(&mut self, phase: &'static str, done: u64, total: u64) -> ControlFlow<()> {
        self.moved(phase, done, total)
    }
}
