use core::error::Error;
use core::ops::ControlFlow;

use crate::{Model, PieceCounts};

/// Trains a model from piece counts, the only trainer input.
///
/// The same counts give the same model on any machine with any number of threads.
pub trait Train {
    /// What is trained.
    type Model: Model;
    /// What the trainer reports while it works: one merge, one pruning round.
    type Step;
    /// Why training can fail.
    type Error: Error + Send + Sync + 'static;

    /// Trains; `observe` sees every step and may stop it.
    ///
    /// # Errors
    ///
    /// If the options are impossible for these counts, or the observer stopped the training.
    fn train(
        &self,
        counts: &PieceCounts,
        observe: &mut dyn Observe<Self::Step>,
    ) -> Result<Self::Model, Self::Error>;
}

/// Watches a training: for progress bars, traces and interrupts.
pub trait Observe<S> {
    /// A step was made. `Break` stops the training with an error that says so.
    fn step(&mut self, step: &S) -> ControlFlow<()> {
        let _ = step;
        ControlFlow::Continue(())
    }

    /// `done` of `total` units of the named phase are finished; called often enough to move a bar
    /// and to notice an interrupt. `Break` stops the training.
    fn progress(&mut self, phase: &'static str, done: u64, total: u64) -> ControlFlow<()> {
        let _ = (phase, done, total);
        ControlFlow::Continue(())
    }
}

/// The observer that watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl<S> Observe<S> for Silent {}
