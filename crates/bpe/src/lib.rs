//! Byte-pair encoding: model, encoders, trainer.
//!
//! Training merges the most frequent pair of neighbouring symbols into one token, again and again
//! (Gage 1994, "A new algorithm for data compression"; Sennrich, Haddow and Birch 2016, "Neural
//! machine translation of rare words with subword units",
//! <https://aclanthology.org/P16-1162/>). Encoding repeats the merges in the order in which they
//! were learned: of all neighbours that merge, the pair of lowest rank goes first, of equal ranks
//! the leftmost.
//!
//! ```
//! use bpe::{Bpe, BpeOptions};
//! use tokenizer_core::{Encode, TokenId, Vocab};
//!
//! let vocab = Vocab::from_tokens(["h", "u", "g", "s", "ug", "hug"])?;
//! let merges = vec![(TokenId(1), TokenId(2)), (TokenId(0), TokenId(4))];
//! let model = Bpe::from_merges(vocab, merges, BpeOptions::default())?;
//! let mut tokens = Vec::new();
//! model.session().encode_piece(b"hugs", &mut tokens); // "hug|s"
//! assert_eq!(tokens.iter().map(|t| t.id.0).collect::<Vec<_>>(), [5, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Models
//!
//! [`Bpe::from_merges`] takes an ordered list of merges (Hugging Face, GPT-2, subword-nmt),
//! [`Bpe::from_ranks`] tiktoken's ranks, [`Bpe::from_scores`] SentencePiece's scores. Each gives
//! exactly the tokens of its reference library; [`BpeOptions`] has the modes. A model also says
//! what it is like: [`Bpe::trace`], [`Bpe::unreachable_tokens`], [`Bpe::recover_merges`]; and
//! [`Bpe::subset`] makes a smaller one of it.
//!
//! # Cost
//!
//! A piece that is one token costs a look-up. Another piece of n bytes costs `O(n log n)`; up to
//! 32 symbols all pairs are scanned for the lowest rank, above that they wait in a queue. Nothing
//! recurses. Sessions of byte-level models that meet much text do not merge: they try the longest
//! token first and test neighbours, which gives the same tokens. Training touches each place of a pair when the pair is merged and rescans nothing.
//!
//! # When to use something else
//!
//! Unigram chooses among all segmentations by probability and can sample them properly; WordPiece
//! with longest match first encodes without a list of merges. BPE is the one whose training is
//! simplest and whose tokenizers are in widest use.
//!
//! # Features
//!
//! - `std` (default): changes no result; without it the crate is `no_std` with `alloc`.
//! - `train` (default): the trainer.

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod compact;
mod encoder;
mod engine;
mod error;
mod explain;
mod frozen;
mod image;
mod longest;
mod memory;
mod model;
pub mod naive;
mod options;
mod pairs;
mod queue;
mod renumber;
mod subset;
#[cfg(feature = "train")]
mod train;

pub use encoder::Encoder;
pub use error::BuildError;
pub use explain::{Trace, TracedMerge, Unreachable};
pub use image::ImageError;
pub use model::{Bpe, Rules};
pub use options::{Alphabet, BpeOptions, EndOfWord};
/// What [`Bpe::session_of_size`] takes.
pub use piece_table::Size;
pub use subset::Subset;
#[cfg(feature = "train")]
pub use train::{BpeTrainer, ByteOrder, Compat, Goal, InitialBytes, MergeStep, Ties, TrainError};
