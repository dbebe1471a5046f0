//! Who competes: one small trait, so that algorithms of the workspace and adapters to other
//! libraries stand side by side.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

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

    /// Trains a vocabulary of each of `sizes`, which ascend: each what [`train`](Self::train) gives
    /// for it, bit for bit. By default each is trained by itself; an algorithm whose smaller
    /// vocabularies are the beginning of the larger ones trains once.
    fn train_each(
        &self,
        counts: &PieceCounts,
        sizes: &[usize],
        terms: &Terms,
        progress: &mut Progress<'_>,
    ) -> Vec<Rung> {
        each_by_itself(self, counts, sizes, terms, progress)
    }

    /// What a reader must know to read the rows.
    fn notes(&self, terms: &Terms) -> Vec<String> {
        let _ = terms;
        Vec::new()
    }

    /// Whether the algorithm promises decode(encode(x)) = x on these terms.
    fn round_trip(&self, terms: &Terms) -> RoundTrip;
}

/// One size of [`Contestant::train_each`].
pub struct Rung {
    /// The tokenizer, or why there is none.
    pub trained: Result<Trained, String>,
    /// Seconds from the beginning of its training until it had this size.
    pub seconds: f64,
}

/// Every size by a training of its own.
pub(crate) fn each_by_itself<C: Contestant + ?Sized>(
    contestant: &C,
    counts: &PieceCounts,
    sizes: &[usize],
    terms: &Terms,
    progress: &mut Progress<'_>,
) -> Vec<Rung> {
    let train = |&size: &usize| {
        let start = Instant::now();
        let trained = guarded(|| contestant.train(counts, size, terms, progress));
        Rung { trained, seconds: start.elapsed().as_secs_f64() }
    };
    sizes.iter().map(train).collect()
}

/// The result, or what a panic said: a contestant that panics loses its row, not the report.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        Err(format!("panicked: {}", text.unwrap_or_else(|| "without words".into())))
    })
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
type Price = dyn Fn(&[u8]) -> f64 + Send + Sync;

/// A trained tokenizer with its naive twin and its decoder.
#[derive(Clone)]
pub struct Trained {
    model: Arc<dyn Model>,
    naive: Arc<Naive>,
    decode: Arc<Decoder>,
    price: Option<Arc<Price>>,
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
            price: None,
        }
    }

    /// The tokenizer of a model that is a distribution over texts: `bits` is what a piece costs
    /// under it, minus the logarithm (base 2) of its probability.
    #[must_use]
    pub fn with_bits<M>(
        model: M,
        naive: fn(&M) -> NaiveEncode<'_>,
        bits: fn(&M, &[u8]) -> f64,
    ) -> Self
    where
        M: Model + Decode + Clone + 'static,
    {
        let priced = model.clone();
        let price = move |piece: &[u8]| bits(&priced, piece);
        Self { price: Some(Arc::new(price)), ..Self::new(model, naive) }
    }

    /// What a piece costs in bits under the model's own distribution; `None` if it has none.
    #[must_use]
    pub fn bits(&self, piece: &[u8]) -> Option<f64> {
        self.price.as_ref().map(|price| price(piece))
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
