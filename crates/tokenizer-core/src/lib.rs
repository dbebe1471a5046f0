//! The shared words and traits of the tokenizer workspace.
//!
//! Types are nouns ([`TokenId`], [`Span`], [`Token`], [`Vocab`], [`PieceCounts`]), traits are
//! verbs ([`Normalize`], [`Split`], [`Encode`], [`Decode`], [`Train`]). The algorithm crates
//! implement the traits and never depend on each other; the `tokenizer` crate assembles them.
//!
//! ```
//! use tokenizer_core::{TokenKind, Vocab};
//!
//! let mut vocab = Vocab::builder();
//! let hug = vocab.push(b"hug", TokenKind::Normal)?;
//! let s = vocab.push(b"s", TokenKind::Normal)?;
//! let vocab = vocab.build();
//! assert_eq!(vocab.get(b"hug"), Some(hug));
//! assert_eq!(vocab.bytes(s), Some(&b"s"[..]));
//! # Ok::<(), tokenizer_core::VocabError>(())
//! ```
//!
//! # Data flow
//!
//! ```text
//! bytes -utf8-> text -special tokens-> stretches -Normalize-> text' -Split-> spans -Encode-> (id, len)* -> ids
//!                                         '- edits -> alignment <- running sum of len (only when offsets are wanted)
//! ids -Decode-> bytes
//! ```
//!
//! # Laws
//!
//! Every model is tested for them (see the `testkit` crate): the lengths of a piece's tokens add
//! up to the piece; decode(encode(x)) = x wherever the model promises it; the fast encoder equals
//! the naive one; a batch equals its pieces one by one; a reused session equals a fresh one; any
//! thread count and any input order train the same model (where the tie rule does not itself
//! read the order).
//!
//! # Features
//!
//! `std` (default) changes no result; without it the crate is `no_std` with `alloc`.

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod align;
mod array;
mod counts;
mod decode;
mod encode;
mod piece_rules;
mod rng;
pub mod sentences;
mod sort;
mod text;
mod token;
mod train;
pub mod utf8;
mod vocab;

pub use align::{Alignment, Edit, compose};
pub use array::Array;
pub use counts::{CountError, PieceCount, PieceCounter, PieceCounts};
pub use decode::{Decode, DecodeError};
pub use encode::{Encode, Model};
pub use piece_rules::PieceRules;
pub use rng::Rng;
pub use sort::sort_by_bytes;
pub use text::{MAX_BATCH, Normalize, Split};
pub use token::{Offset, Span, Token, TokenId, TokenKind};
pub use train::{Observe, Silent, Train};
pub use vocab::{Vocab, VocabBuilder, VocabError};
