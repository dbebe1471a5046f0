//! Who competes: one small trait, so that algorithms of the workspace and adapters to other
//! libraries stand side by side.

use std::ops::ControlFlow;
use std::sync::Arc;

use tokenizer_core::{Decode, DecodeError, Model, Observe, PieceCounts, Token, TokenId};

use crate::report::{Standing, Terms};

/// An algorithm that can be trained.
pub trait Contestant: Send + Sync {
    /// The name, in lower case: the column and row head of the report.
    fn name(&self) -> &str;

    /// Whether it competes.
    fn standing(&self) -> Standing;

    /// The smallest vocabulary size that is possible for these counts on these terms, and 0 for
    /// an algorithm that takes any size.
    ///
    /// # Errors
    ///
    /// If no size is possible; the text says why.
    fn smallest(&self, counts: &PieceCounts, terms: &Terms) -> Result<usize, String>;

    /// Trains a vocabulary of `size` tokens, special tokens included.
    ///
    /// # Errors
    ///
    /// If that is impossible or `progress` stopped it; the text says why.
    fn train(
        &self,
        counts: &PieceCounts,
        size: usize,
        terms: &Terms,
        progress: &mut Progress<'_>,
    ) -> Result<Trained, String>;

    /// What a reader must know to read the rows.
    fn notes(&self, terms: &Terms) -> Vec<String> {
        let _ = terms;
        Vec::new()
    }

    /// Whether the algorithm promises decode(encode(x)) = x on these terms.
    fn round_trip(&self, terms: &Terms) -> RoundTrip;
}

/// What is promised of decode(encode(x)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundTrip {
    /// It is x for any x.
    Always,
    /// It is x where no token is unknown.
    UnlessUnknown,
}

/// Called while a trainer works: phase, units done, units in all. `Break` stops the training.
pub type Progress<'p> = dyn FnMut(&'static str, u64, u64) -> ControlFlow<()> + 'p;

/// Passes a trainer's progress on; steps themselves are not looked at.
pub struct Watch<'w, 'p>(pub &'w mut Progress<'p>);

impl<S> Observe<S> for Watch<'_, '_> {
    fn progress(&mut self, phase: &'static str, done: u64, total: u64) -> ControlFlow<()> {
        (self.0)(phase, done, total)
    }
}

/// The naive encoder of a model: the tokens of one piece.
pub type NaiveEncode<'m> = Box<dyn Fn(&[u8]) -> Vec<Token> + 'm>;

/// Makes the naive encoder and hands it to what needs it.
type Naive = dyn Fn(&mut dyn FnMut(&dyn Fn(&[u8]) -> Vec<Token>)) + Send + Sync;
type Decoder = dyn Fn(&[TokenId]) -> Result<Vec<u8>, DecodeError> + Send + Sync;

/// A trained tokenizer with its naive twin and its decoder.
#[derive(Clone)]
pub struct Trained {
    model: Arc<dyn Model>,
    naive: Arc<Naive>,
    decode: Arc<Decoder>,
}

impl Trained {
    /// The tokenizer of `model`; `naive` makes the encoder that specifies it.
    #[must_use]
    pub fn new<M>(model: M, naive: fn(&M) -> NaiveEncode<'_>) -> Self
    where
        M: Model + Decode + 'static,
    {
        let model = Arc::new(model);
        let (for_naive, for_decode) = (Arc::clone(&model), Arc::clone(&model));
        Self {
            model,
            naive: Arc::new(move |work| work(&naive(&for_naive))),
            decode: Arc::new(move |ids| for_decode.decode(ids)),
        }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &dyn Model {
        self.model.as_ref()
    }

    /// Calls `work` with the naive twin, which gives the tokens of one piece. Making it may cost a
    /// walk over the vocabulary, so ask it for many pieces at once.
    pub fn with_naive<T>(&self, work: impl FnOnce(&dyn Fn(&[u8]) -> Vec<Token>) -> T) -> T {
        let (mut work, mut result) = (Some(work), None);
        (self.naive)(&mut |naive| result = work.take().map(|work| work(naive)));
        result.expect("the naive twin is made once and handed on")
    }

    /// The bytes of ids.
    ///
    /// # Errors
    ///
    /// If an id is not in the vocabulary.
    pub fn decode(&self, ids: &[TokenId]) -> Result<Vec<u8>, DecodeError> {
        (self.decode)(ids)
    }
}
