//! The unigram language model tokenizer: every token has a log-probability, and a text becomes
//! the sequence of tokens with the greatest sum.
//!
//! ```
//! use tokenizer_core::{TokenKind, Vocab};
//! use unigram::{Unigram, UnigramOptions};
//!
//! let mut vocab = Vocab::builder();
//! let scores = [("<unk>", 0.0), ("h", -3.0), ("u", -3.0), ("g", -3.0), ("s", -2.5), ("hug", -4.0)];
//! for (i, (piece, _)) in scores.iter().enumerate() {
//!     vocab.push(piece.as_bytes(), if i == 0 { TokenKind::Unknown } else { TokenKind::Normal })?;
//! }
//! let model = Unigram::new(vocab.build(), scores.map(|s| s.1).to_vec(), UnigramOptions::default())?;
//! // "hug|s" scores -6.5, "h|u|g|s" -11.5.
//! let ids: Vec<u32> = model.encode(b"hugs").iter().map(|token| token.id.0).collect();
//! assert_eq!(ids, [5, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is here
//!
//! - [`Unigram`]: the model. It encodes exactly as SentencePiece or as Hugging Face tokenizers do
//!   ([`Compat`]), and can give the n best segmentations, sample one, sum over all of them, and
//!   explain a choice.
//! - [`Session`]: the encoder, one forward pass over a double array.
//! - [`UnitSession`]: the encoder for a text in units that are kept, exact to the last bit of the
//!   sums.
//! - [`naive`]: the encoder as the papers describe it, slow and short: the specification.
//! - [`UnigramTrainer`] (feature `train`): seed pieces from a suffix array, EM, pruning by loss.
//!
//! # Papers
//!
//! Taku Kudo, *Subword Regularization* (ACL 2018), <https://arxiv.org/abs/1804.10959>: the model,
//! its training, n-best and sampling. Taku Kudo and John Richardson, *SentencePiece* (EMNLP 2018),
//! <https://arxiv.org/abs/1808.06226>. `docs/algorithms/unigram.md` has a worked trace and names
//! every deviation from the reference implementations.
//!
//! # Cost
//!
//! Encoding is `O(n d)` for n bytes, where d is how far pieces agree with the text at a place (3
//! to 8 bytes in practice, never more than the longest piece), and takes 8 bytes of scratch per
//! byte of the piece (16 in Hugging Face mode), reused. It never recurses and has no quadratic
//! case. Training is `O(n d)` a pass over the distinct pieces, some 30 passes.
//!
//! # When to use something else
//!
//! Where every character needs a token of its own and nothing may be unknown, take byte-level
//! BPE; where training must follow simple counts, BPE as well. Unigram is the choice for several
//! segmentations of one text (subword regularization) and for scripts without spaces.
//!
//! # Features
//!
//! - `std` (default): threads for the trainer. Changes no result; without it the crate is `no_std`
//!   with `alloc`.
//! - `train` (default): [`UnigramTrainer`].

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod certify;
mod error;
mod explain;
mod lattice;
mod math;
mod model;
pub mod naive;
mod nbest;
mod sample;
mod trie;
mod viterbi;

#[cfg(feature = "train")]
mod train;

pub use certify::UnitSession;
pub use error::BuildError;
pub use explain::{Edge, Explanation};
pub use model::{Compat, MAX_SCORE, Segmentation, Unigram, UnigramOptions};

#[cfg(feature = "train")]
pub use train::{
    Report, Round, SpecialToken, State, StateError, TrainCompat, TrainError, UnigramTrainer,
    VocabLimit,
};
pub use viterbi::Session;
