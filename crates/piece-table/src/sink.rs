//! Where tokens go.

use alloc::vec::Vec;

use tokenizer_core::{Token, TokenId};

use crate::memory::push_some;
use crate::run::{self, Word};

/// Takes tokens: `Vec<TokenId>` their ids, `Vec<Token>` ids and lengths, `usize` their number,
/// [`Apart`] which are whose.
pub trait Sink: sealed::Packed {
    /// Takes tokens one after the other.
    fn extend(&mut self, tokens: &[Token]);
}

pub(crate) mod sealed {
    use crate::run::Word;

    pub trait Packed {
        /// Takes the first `n` of four packed tokens of a piece of `piece_len` bytes.
        fn packed(&mut self, words: [Word; 4], n: usize, piece_len: usize);

        /// All tokens of a piece were given.
        #[inline(always)]
        fn end_piece(&mut self) {}
    }
}

impl sealed::Packed for Vec<TokenId> {
    #[inline(always)]
    fn packed(&mut self, words: [Word; 4], n: usize, _: usize) {
        push_some(self, run::ids(words), n);
    }
}

impl Sink for Vec<TokenId> {
    fn extend(&mut self, tokens: &[Token]) {
        Extend::extend(self, tokens.iter().map(|token| token.id));
    }
}

impl sealed::Packed for Vec<Token> {
    #[inline(always)]
    fn packed(&mut self, words: [Word; 4], n: usize, piece_len: usize) {
        push_some(self, run::tokens(words, piece_len), n);
    }
}

impl Sink for Vec<Token> {
    fn extend(&mut self, tokens: &[Token]) {
        self.extend_from_slice(tokens);
    }
}

impl sealed::Packed for usize {
    #[inline(always)]
    fn packed(&mut self, _: [Word; 4], n: usize, _: usize) {
        *self += n;
    }
}

impl Sink for usize {
    fn extend(&mut self, tokens: &[Token]) {
        *self += tokens.len();
    }
}

/// Tokens, and for each piece how many there are after it.
#[derive(Debug)]
pub struct Apart<'o> {
    /// Ids and lengths.
    pub tokens: &'o mut Vec<Token>,
    /// The number of `tokens` after each piece.
    pub ends: &'o mut Vec<usize>,
}

impl sealed::Packed for Apart<'_> {
    #[inline(always)]
    fn packed(&mut self, words: [Word; 4], n: usize, piece_len: usize) {
        self.tokens.packed(words, n, piece_len);
    }

    #[inline(always)]
    fn end_piece(&mut self) {
        self.ends.push(self.tokens.len());
    }
}

impl Sink for Apart<'_> {
    fn extend(&mut self, tokens: &[Token]) {
        self.tokens.extend_from_slice(tokens);
    }
}
