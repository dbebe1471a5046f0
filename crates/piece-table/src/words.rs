//! What a model knows of its own vocabulary.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use tokenizer_core::Token;

use crate::key::Key;
use crate::memory::Lines;
use crate::recent::{Added, Bucket};
use crate::run::{self, MOST, Word};

/// Strings whose tokens are known when a model is built: immutable, shared by all sessions.
///
/// Need not be complete: what is missing is asked of the algorithm once and then found among what a
/// session met. Strings of more than 15 bytes or four tokens are left out.
#[derive(Clone)]
pub struct Words {
    buckets: Lines<Bucket>,
    /// Those for which there was no room.
    spill: Option<Box<Self>>,
    len: usize,
    is_complete: bool,
}

impl Words {
    /// A builder for about that many strings.
    #[must_use]
    pub fn builder(count: usize) -> WordsBuilder {
        // Two to a bucket, five eighths full if all are short: a spill of one in twenty.
        let buckets = Lines::new(count * 4 / 5);
        let words = Self { buckets, spill: None, len: 0, is_complete: true };
        WordsBuilder { words, rest: Vec::new() }
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

    /// Whether every string of up to 15 bytes is held that was added.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    #[inline]
    pub(crate) fn get(&self, key: Key, hash: u64) -> Option<[Word; 4]> {
        let mut level = self;
        loop {
            let found =
                level.buckets.at(hash).find(key).or_else(|| level.buckets.beside(hash).find(key));
            match &level.spill {
                Some(spill) if found.is_none() => level = spill,
                _ => return found,
            }
        }
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

/// Builds [`Words`]: the most frequent string first, since the first comers are found fastest.
#[derive(Debug)]
pub struct WordsBuilder {
    words: Words,
    rest: Vec<(Key, [Word; MOST])>,
}

/// Each level of a spill holds a twentieth of the one above, so few are needed, except by strings
/// chosen for their hashes.
const MOST_LEVELS: u32 = 4;

impl WordsBuilder {
    /// Adds a string and the tokens it encodes to, always. Of a string that is added again the
    /// first tokens stay.
    #[inline]
    pub fn add(&mut self, piece: &[u8], tokens: &[Token]) {
        let Some(key) = Key::new(piece) else { return };
        match run::pack(tokens, piece.len()) {
            Some(words) if tokens.len() <= 4 => self.add_words(key, words),
            _ => self.words.is_complete = false,
        }
    }

    #[inline]
    fn add_words(&mut self, key: Key, words: [Word; MOST]) {
        let (first, second) = self.words.buckets.pair_mut(key.hash());
        let mut added = first.add(key, words);
        if added == Added::Full {
            added = second.add(key, words);
        }
        match added {
            Added::New => self.words.len += 1,
            Added::Known => {}
            Added::Full => self.rest.push((key, words)),
        }
    }

    /// What was added.
    #[must_use]
    pub fn build(self) -> Words {
        self.build_levels(MOST_LEVELS)
    }

    fn build_levels(self, levels: u32) -> Words {
        let Self { mut words, rest } = self;
        if levels == 0 {
            words.is_complete &= rest.is_empty();
        } else if !rest.is_empty() {
            let mut spill = Words::builder(rest.len() * 2);
            for (key, words) in rest {
                spill.add_words(key, words);
            }
            let spill = spill.build_levels(levels - 1);
            words.len += spill.len;
            words.is_complete &= spill.is_complete;
            words.spill = Some(Box::new(spill));
        }
        words
    }
}
