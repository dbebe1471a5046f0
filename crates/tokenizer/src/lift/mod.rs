//! Trained models to documents of `formats`: the way back from reading a file.
//!
//! A [`Preparation`] says how text is normalized and cut, for the trainer and for the file alike; a
//! [`Learned`] model and its preparation become a document. What a format cannot say is refused in
//! words ([`LiftError`]), never approximated: the file encodes as the trained model does. A model that
//! goes on from that of a tokenizer.json goes back into its [`Frame`].
//!
//! ```
//! use bpe::{BpeTrainer, Goal};
//! use tokenizer::lift::{self, Learned, Preparation, Target};
//! use tokenizer::{CorpusCounter, Tokenizer};
//! use tokenizer_core::{Silent, Train};
//!
//! let preparation = Preparation::new("none", "gpt2", Target::TokenizerJson)?;
//! let mut counter = CorpusCounter::new(preparation.normalizer(), preparation.splitter());
//! counter.add(&["the cat sat on the mat"])?;
//! let mut trainer = BpeTrainer::default();
//! trainer.goal = Goal::Merges(3);
//! let model = trainer.train(&counter.finish()?, &mut Silent)?;
//!
//! let document = lift::tokenizer_json(Learned::Bpe(&model), &preparation)?;
//! let from_file = Tokenizer::from_tokenizer_json(&document)?;
//! let trained = preparation.tokenizer(Box::new(model))?;
//! assert_eq!(from_file.ids("that cat"), trained.ids("that cat"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod files;
mod frame;
mod json;
mod preparation;
pub(crate) mod splitters;

use std::fmt;

pub use files::{sentencepiece, tiktoken, vocab_txt};
pub use frame::Frame;
pub use json::tokenizer_json;
pub use preparation::{Preparation, Spaces, Target, normalizers};
pub use splitters::single_pattern;

/// A trained model of any of the algorithms.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Learned<'m> {
    /// Byte-pair encoding.
    Bpe(&'m bpe::Bpe),
    /// WordPiece.
    WordPiece(&'m wordpiece::WordPiece),
    /// Unigram.
    Unigram(&'m unigram::Unigram),
    /// Single characters.
    Chars(&'m baseline::Chars),
    /// Whole words.
    Words(&'m baseline::Words),
    /// Single bytes.
    Bytes(&'m baseline::Bytes),
}

impl Learned<'_> {
    /// The algorithm's name, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bpe(_) => "BPE",
            Self::WordPiece(_) => "WordPiece",
            Self::Unigram(_) => "Unigram",
            Self::Chars(_) => "a model of characters",
            Self::Words(_) => "a model of whole words",
            Self::Bytes(_) => "a model of bytes",
        }
    }
}

/// Why a trained model or its preparation cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiftError {
    message: String,
}

impl LiftError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for LiftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LiftError {}
