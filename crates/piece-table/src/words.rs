//! What a model knows of its own vocabulary.

use core::fmt;

use tokenizer_core::Token;

use crate::key::Key;
use crate::memory::Lines;
use crate::recent::{Added, Bucket};
use crate::run::{self, Word};

/// Strings whose tokens are known when a model is built: immutable, shared by all sessions.
///
/// Need not be complete: what is missing is asked of the algorithm once and then found among what a
/// session met. Strings of more than 15 bytes or four tokens, and those whose line of the table is
/// full, are left out; a builder told the right number of strings keeps about 19 of 20.
#[derive(Clone)]
pub struct Words {
    buckets: Lines<Bucket>,
    len: usize,
}

impl Words {
    /// A builder for about that many strings.
    #[must_use]
    pub fn builder(count: usize) -> WordsBuilder {
        // Two to a bucket, a third to two thirds full.
        let buckets = (count * 3 / 4).next_power_of_two().max(2);
        WordsBuilder { words: Self { buckets: Lines::new(buckets), len: 0 } }
    }

    /// The number of strings that are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no string is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn get(&self, key: Key, hash: u64) -> Option<[Word; 4]> {
        // A string whose line is full stands in the other line of the pair, which hardware often
        // fetches along.
        self.buckets.at(hash).find(key).or_else(|| self.buckets.at(hash ^ 1).find(key))
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.buckets.prefetch(hash);
    }
}

impl Default for Words {
    /// No string.
    fn default() -> Self {
        Self::builder(0).build()
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Builds [`Words`]: the most frequent string first, since the first comers find room.
#[derive(Debug)]
pub struct WordsBuilder {
    words: Words,
}

impl WordsBuilder {
    /// Adds a string and the tokens it encodes to, always. Returns whether it was kept; a string
    /// that was added before is not kept again.
    #[inline]
    pub fn add(&mut self, piece: &[u8], tokens: &[Token]) -> bool {
        let (Some(key), Some(words)) = (Key::new(piece), run::pack(tokens, piece.len())) else {
            return false;
        };
        let Words { buckets, len } = &mut self.words;
        let hash = key.hash();
        let kept = tokens.len() <= 4
            && match buckets.at_mut(hash).add(key, words) {
                Added::New => true,
                Added::Known => false,
                Added::Full => buckets.at_mut(hash ^ 1).add(key, words) == Added::New,
            };
        *len += usize::from(kept);
        kept
    }

    /// What was kept.
    #[must_use]
    pub fn build(self) -> Words {
        self.words
    }
}
