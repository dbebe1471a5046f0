//! Where tokens go.

use alloc::vec::Vec;

use tokenizer_core::{Offset, Span, Token, TokenId};

use crate::memory::Writer;
use crate::run::{self, MOST, Word};

/// Takes tokens: `Vec<TokenId>` their ids, `Vec<Token>` ids and lengths, `usize` their number,
/// [`Apart`] which are whose, [`Located`] where they are.
pub trait Sink: sealed::Open {
    /// Takes tokens one after the other.
    fn extend(&mut self, tokens: &[Token]);
}

pub(crate) mod sealed {
    use tokenizer_core::{Span, Token};

    use crate::run::{MOST, Word};

    /// What tokens are given to in a loop: the state is local, so that it can be in registers.
    pub trait Open {
        /// See [`Write`].
        type Writer<'s>: Write
        where
            Self: 's;

        /// A writer, with room for four tokens of each of so many pieces.
        fn writer(&mut self, pieces: usize) -> Self::Writer<'_>;
    }

    /// Takes the tokens of one piece after the other.
    pub trait Write {
        /// Takes the first `n` of four packed tokens: all of a piece of up to 15 bytes.
        fn four(&mut self, words: &[Word; 4], n: usize, piece: Span);

        /// Takes all tokens of a piece.
        fn eight(&mut self, words: &[Word; MOST], piece: Span);

        /// Takes all tokens of a piece.
        fn tokens(&mut self, tokens: &[Token], piece: Span);
    }
}

use sealed::{Open, Write};

impl Open for Vec<TokenId> {
    type Writer<'s> = Writer<'s, TokenId>;

    #[inline(always)]
    fn writer(&mut self, pieces: usize) -> Self::Writer<'_> {
        Writer::new(self, 4 * pieces)
    }
}

impl Write for Writer<'_, TokenId> {
    #[inline(always)]
    fn four(&mut self, words: &[Word; 4], n: usize, _: Span) {
        self.push_some(run::ids(words), n);
    }

    #[inline(always)]
    fn eight(&mut self, words: &[Word; MOST], _: Span) {
        let n = run::count(words[0]);
        let [first, second] = run::halves(*words);
        self.push_some(run::ids(&first), n.min(4));
        self.push_some(run::ids(&second), n.saturating_sub(4));
    }

    #[inline]
    fn tokens(&mut self, tokens: &[Token], _: Span) {
        tokens.iter().for_each(|token| self.push(token.id));
    }
}

impl Sink for Vec<TokenId> {
    fn extend(&mut self, tokens: &[Token]) {
        Extend::extend(self, tokens.iter().map(|token| token.id));
    }
}

impl Open for Vec<Token> {
    type Writer<'s> = Writer<'s, Token>;

    #[inline(always)]
    fn writer(&mut self, pieces: usize) -> Self::Writer<'_> {
        Writer::new(self, 4 * pieces)
    }
}

impl Write for Writer<'_, Token> {
    #[inline(always)]
    fn four(&mut self, words: &[Word; 4], n: usize, _: Span) {
        self.push_some(run::tokens(words), n);
    }

    #[inline]
    fn eight(&mut self, words: &[Word; MOST], piece: Span) {
        run::all_tokens(words, piece.len()).for_each(|token| self.push(token));
    }

    #[inline]
    fn tokens(&mut self, tokens: &[Token], _: Span) {
        tokens.iter().for_each(|&token| self.push(token));
    }
}

impl Sink for Vec<Token> {
    fn extend(&mut self, tokens: &[Token]) {
        self.extend_from_slice(tokens);
    }
}

/// Counts tokens.
#[derive(Debug)]
pub struct Count<'s> {
    total: &'s mut usize,
    n: usize,
}

impl Drop for Count<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.total += self.n;
    }
}

impl Open for usize {
    type Writer<'s> = Count<'s>;

    #[inline(always)]
    fn writer(&mut self, _: usize) -> Self::Writer<'_> {
        Count { total: self, n: 0 }
    }
}

impl Write for Count<'_> {
    #[inline(always)]
    fn four(&mut self, _: &[Word; 4], n: usize, _: Span) {
        self.n += n;
    }

    #[inline(always)]
    fn eight(&mut self, words: &[Word; MOST], _: Span) {
        self.n += run::count(words[0]);
    }

    #[inline(always)]
    fn tokens(&mut self, tokens: &[Token], _: Span) {
        self.n += tokens.len();
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

/// The writer of an [`Apart`].
pub struct ApartWriter<'s> {
    tokens: Writer<'s, Token>,
    ends: Writer<'s, usize>,
}

impl Open for Apart<'_> {
    type Writer<'s>
        = ApartWriter<'s>
    where
        Self: 's;

    #[inline(always)]
    fn writer(&mut self, pieces: usize) -> Self::Writer<'_> {
        ApartWriter { tokens: self.tokens.writer(pieces), ends: Writer::new(self.ends, pieces) }
    }
}

impl ApartWriter<'_> {
    #[inline(always)]
    fn end_piece(&mut self) {
        self.ends.push(self.tokens.len());
    }
}

impl Write for ApartWriter<'_> {
    #[inline(always)]
    fn four(&mut self, words: &[Word; 4], n: usize, piece: Span) {
        self.tokens.four(words, n, piece);
        self.end_piece();
    }

    #[inline]
    fn eight(&mut self, words: &[Word; MOST], piece: Span) {
        self.tokens.eight(words, piece);
        self.end_piece();
    }

    #[inline]
    fn tokens(&mut self, tokens: &[Token], piece: Span) {
        self.tokens.tokens(tokens, piece);
        self.end_piece();
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

/// The writer of a [`Located`].
pub struct LocatedWriter<'s> {
    ids: Writer<'s, TokenId>,
    offsets: Writer<'s, Offset>,
}

impl Open for Located<'_> {
    type Writer<'s>
        = LocatedWriter<'s>
    where
        Self: 's;

    #[inline(always)]
    fn writer(&mut self, pieces: usize) -> Self::Writer<'_> {
        LocatedWriter {
            ids: self.ids.writer(pieces),
            offsets: Writer::new(self.offsets, 4 * pieces),
        }
    }
}

impl Write for LocatedWriter<'_> {
    #[inline(always)]
    fn four(&mut self, words: &[Word; 4], n: usize, piece: Span) {
        self.ids.four(words, n, piece);
        let begin = piece.start as u32;
        if n == 1 {
            let end = begin.wrapping_add(words[0] >> 24 & 15);
            self.offsets.push(Offset { start: begin, end });
            return;
        }
        let ends = run::ends(words);
        let [a, b, c, _] = ends;
        let starts = [0, a, b, c];
        let offset = |i: usize| Offset {
            start: begin.wrapping_add(starts[i]),
            end: begin.wrapping_add(ends[i]),
        };
        self.offsets.push_some(core::array::from_fn(offset), n);
    }

    #[inline]
    fn eight(&mut self, words: &[Word; MOST], piece: Span) {
        self.ids.eight(words, piece);
        self.locate(run::all_tokens(words, piece.len()), piece);
    }

    #[inline]
    fn tokens(&mut self, tokens: &[Token], piece: Span) {
        self.ids.tokens(tokens, piece);
        self.locate(tokens.iter().copied(), piece);
    }
}

impl LocatedWriter<'_> {
    #[inline]
    fn locate(&mut self, tokens: impl Iterator<Item = Token>, piece: Span) {
        locate(piece.start as u32, tokens, |offset| self.offsets.push(offset));
    }
}

/// Gives the offsets of tokens that follow each other, and returns where they end.
#[inline]
fn locate(mut at: u32, tokens: impl Iterator<Item = Token>, mut give: impl FnMut(Offset)) -> u32 {
    for token in tokens {
        let start = at;
        at = at.wrapping_add(token.len);
        give(Offset { start, end: at });
    }
    at
}

impl Sink for Located<'_> {
    /// The first token begins where the last one given here ended.
    fn extend(&mut self, tokens: &[Token]) {
        Sink::extend(self.ids, tokens);
        self.at = locate(self.at, tokens.iter().copied(), |offset| self.offsets.push(offset));
    }
}
