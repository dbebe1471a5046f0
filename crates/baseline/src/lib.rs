//! The baselines of the comparison: bytes, characters, whole words.
//!
//! What subword algorithms must beat. [`Bytes`] has the smallest vocabulary and the longest
//! sequences, [`Words`] the shortest sequences and the most unknown text, [`Chars`] is between.
//! Each is a few lines, obvious on purpose.
//!
//! ```
//! use baseline::{Bytes, Words};
//! use tokenizer_core::{Decode, Encode, Model, Token, TokenId, Vocab};
//!
//! let byt5 = Bytes::byt5();
//! let mut tokens = Vec::new();
//! byt5.encoder().encode_piece(b"hi", &mut tokens);
//! // ByT5 counts from 3: "h|i" → [107, 108].
//! assert_eq!(tokens, [Token::new(TokenId(107), 1), Token::new(TokenId(108), 1)]);
//! assert_eq!(byt5.decode(&[TokenId(107), TokenId(108)])?, b"hi");
//!
//! let words = Words::new(Vocab::from_tokens(["<unk>", "hug"])?, Some(TokenId(0)))?;
//! tokens.clear();
//! words.encoder().encode_piece(b"hug", &mut tokens);
//! words.encoder().encode_piece(b"pug", &mut tokens);
//! assert_eq!(tokens, [Token::new(TokenId(1), 3), Token::new(TokenId(0), 3)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Bytes as tokens: Xue et al. 2022, *ByT5: Towards a Token-Free Future with Pre-trained
//! Byte-to-Byte Models* ([arXiv:2105.13626]).
//!
//! [arXiv:2105.13626]: https://arxiv.org/abs/2105.13626
//!
//! # Cost
//!
//! Encoding n bytes takes n steps ([`Bytes`]), a look-up a character ([`Chars`]) or a look-up a
//! word ([`Words`]). Training counts and sorts.
//!
//! # Features
//!
//! `std` (default) changes no result; without it the crate is `no_std` with `alloc`. `train`
//! (default) adds [`CharsTrainer`] and [`WordsTrainer`]; bytes have nothing to learn.

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod bytes;
mod chars;
#[cfg(feature = "train")]
mod train;
mod words;

use alloc::vec::Vec;
use core::fmt;

use tokenizer_core::{DecodeError, TokenId, TokenKind, Vocab};

pub use bytes::Bytes;
pub use chars::Chars;
#[cfg(feature = "train")]
pub use train::{CharsTrainer, Fallback, TrainError, WordsTrainer};
pub use words::Words;

/// The unknown token's id is not in the vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    unk: TokenId,
    vocab_len: usize,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unk, vocab_len } = self;
        write!(f, "the unknown token is {unk}, but the vocabulary holds {vocab_len} tokens")
    }
}

impl core::error::Error for BuildError {}

fn check_unk(vocab: &Vocab, unk: Option<TokenId>) -> Result<(), BuildError> {
    match unk {
        Some(unk) if unk.index() >= vocab.len() => Err(BuildError { unk, vocab_len: vocab.len() }),
        _ => Ok(()),
    }
}

/// The token of exactly these bytes, if it may come from text.
#[inline]
fn find(vocab: &Vocab, bytes: &[u8]) -> Option<TokenId> {
    let id = vocab.get(bytes)?;
    (vocab.kind(id) != Some(TokenKind::Control)).then_some(id)
}

/// Appends the bytes of the tokens, one after the other.
fn concatenate(vocab: &Vocab, ids: &[TokenId], bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
    let before = bytes.len();
    for (at, &id) in ids.iter().enumerate() {
        let Some(token) = vocab.bytes(id) else {
            bytes.truncate(before);
            return Err(DecodeError::new(id, at, vocab.len()));
        };
        bytes.extend_from_slice(token);
    }
    Ok(())
}
