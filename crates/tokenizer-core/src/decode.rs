use alloc::vec::Vec;
use core::fmt;

use crate::TokenId;

/// Turns ids back into bytes.
pub trait Decode: Send + Sync {
    /// Appends the bytes of `ids`. The bytes need not be valid UTF-8: ids may begin or end inside
    /// a character.
    ///
    /// # Errors
    ///
    /// If an id is not in the vocabulary. Nothing is appended then.
    fn decode_into(&self, ids: &[TokenId], bytes: &mut Vec<u8>) -> Result<(), DecodeError>;

    /// The bytes of `ids`.
    ///
    /// # Errors
    ///
    /// As [`decode_into`](Self::decode_into).
    fn decode(&self, ids: &[TokenId]) -> Result<Vec<u8>, DecodeError> {
        let mut bytes = Vec::new();
        self.decode_into(ids, &mut bytes)?;
        Ok(bytes)
    }
}

/// An id that the vocabulary does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    id: TokenId,
    at: usize,
    vocab_len: usize,
}

impl DecodeError {
    /// The id at index `at` of the input, where the vocabulary holds `vocab_len` ids.
    #[must_use]
    pub fn new(id: TokenId, at: usize, vocab_len: usize) -> Self {
        Self { id, at, vocab_len }
    }

    /// The offending id.
    #[must_use]
    pub fn id(&self) -> TokenId {
        self.id
    }

    /// Its index in the input.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, at, vocab_len } = self;
        write!(f, "id {id} at index {at} is not in the vocabulary of {vocab_len} tokens")
    }
}

impl core::error::Error for DecodeError {}
