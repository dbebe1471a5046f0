//! WordPiece: subword tokens by longest match, with `##` for the inside of words.
//!
//! A vocabulary holds tokens that begin words (`hug`) and tokens that continue them (`##s`). A
//! word is encoded by taking the longest token that matches, from left to right (MaxMatch), in
//! time linear in the word. The trainer merges the pair of symbols that stands together most
//! often *for how often its parts occur*: count(ab) / (count(a) * count(b)).
//!
//! ```
//! use tokenizer_core::{Decode, Encode, Token, TokenId, Vocab};
//! use wordpiece::{Options, WordPiece};
//!
//! let vocab = Vocab::from_tokens(["[UNK]", "hug", "##g", "##s", "hugging"])?;
//! let model = WordPiece::new(vocab, Options::default())?;
//! let mut tokens = Vec::new();
//! model.session().encode_piece(b"hugs", &mut tokens);
//! model.session().encode_piece(b"bug", &mut tokens);
//! // "hug|##s" → [1, 3]; nothing matches "b", so all of "bug" is unknown.
//! assert_eq!(tokens, [(1, 3), (3, 1), (0, 3)].map(|(id, len)| Token::new(TokenId(id), len)));
//! assert_eq!(model.decode(&[TokenId(1), TokenId(3)])?, b"hugs");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Papers
//!
//! Training: Schuster and Nakajima 2012, *Japanese and Korean Voice Search*; Wu et al. 2016,
//! *Google's Neural Machine Translation System*, section 4.1 ([arXiv:1609.08144]). Encoding: Song
//! et al. 2021, *Fast WordPiece Tokenization* ([arXiv:2012.15524]). docs/algorithms/wordpiece.md
//! has worked traces and says where we differ.
//!
//! [arXiv:1609.08144]: https://arxiv.org/abs/1609.08144
//! [arXiv:2012.15524]: https://arxiv.org/abs/2012.15524
//!
//! # Cost
//!
//! Encoding a word of n bytes takes at most 2n steps of one load each, and no memory. A model
//! takes about 24 bytes a trie node. Training takes 16 bytes for each character of the distinct
//! words and 4 bytes for each place of a pair; every merge touches only the places of its pair.
//!
//! # When to use something else
//!
//! MaxMatch looks at no frequency when it encodes, and one unknown character makes a whole word
//! unknown ([`Unit::Byte`] avoids that). For a new vocabulary byte-level BPE or Unigram usually
//! compress better; WordPiece is what BERT and its descendants need.
//!
//! # Features
//!
//! `std` (default) changes no result; without it the crate is `no_std` with `alloc`. `train`
//! (default) adds [`WordPieceTrainer`].

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "train")]
mod alphabet;
mod encoder;
#[cfg(feature = "train")]
mod engine;
mod explain;
#[cfg(feature = "train")]
mod extend;
mod matcher;
mod model;
pub mod naive;
#[cfg(feature = "train")]
mod score;
#[cfg(feature = "train")]
mod trainer;

pub use encoder::Encoder;
pub use explain::{Explanation, Match, Outcome, Stop};
pub use model::{BuildError, Options, Position, Unit, Unknown, WordPiece};
#[cfg(feature = "train")]
pub use trainer::{Criterion, Merge, Report, TrainError, WordPieceTrainer};
