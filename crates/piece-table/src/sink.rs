//! Where tokens go.

use alloc::vec::Vec;

use tokenizer_core::{Offset, Token, TokenId};

use crate::memory::push_some;
use crate::run::{self, Word};

/// Takes tokens: `Vec<TokenId>` their ids, `Vec<Token>` ids and lengths, `usize` their number,
/// [`Apart`] which are whose, [`Located`] where they are.
pub trait Sink: sealed::Packed {
    /// Takes tokens one after the other.
    fn extend(&mut self, tokens: &[Token]);
}

pub(crate) mod sealed {
    use crate::run::Word;

    pub trait Packed {
        /// Takes the first `n` of four packed tokens of a piece of `piece_len` bytes.
        fn packed(&mut self, words: [Word; 4], n: usize, piece_len: usize);

        /// The tokens that follow are of a piece that begins at this byte of the text.
        #[inline(always)]
        fn begin_piece(&mut self, _start: usize) {}

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

/// Ids, and the bytes of the text that each token covers.
#[derive(Debug)]
pub struct Located<'o> {
    ids: &'o mut Vec<TokenId>,
    offsets: &'o mut Vec<Offset>,
    /// Where the next token begins.
    at: u32,
}

impl<'o> Located<'o> {
    /// Appends to both; offsets are of texts shorter than 4 GiB.
    pub fn new(ids: &'o mut Vec<TokenId>, offsets: &'o mut Vec<Offset>) -> Self {
        Self { ids, offsets, at: 0 }
    }
}

impl sealed::Packed for Located<'_> {
    #[inline(always)]
    fn packed(&mut self, words: [Word; 4], n: usize, piece_len: usize) {
        push_some(self.ids, run::ids(words), n);
        let begin = self.at;
        if n == 1 && piece_len > 0 {
            self.offsets.push(Offset { start: begin, end: begin.wrapping_add(piece_len as u32) });
            return;
        }
        // Words behind the first n are zero and so are their lengths.
        let ends = run::ends(words).map(|end| begin.wrapping_add(end));
        let offsets = [
            Offset { start: begin, end: ends[0] },
            Offset { start: ends[0], end: ends[1] },
            Offset { start: ends[1], end: ends[2] },
            Offset { start: ends[2], end: ends[3] },
        ];
        push_some(self.offsets, offsets, n);
        self.at = ends[3];
    }

    #[inline(always)]
    fn begin_piece(&mut self, start: usize) {
        self.at = start as u32;
    }
}

impl Sink for Located<'_> {
    fn extend(&mut self, tokens: &[Token]) {
        for token in tokens {
            self.ids.push(token.id);
            let end = self.at.wrapping_add(token.len);
            self.offsets.push(Offset { start: self.at, end });
            self.at = end;
        }
    }
}
