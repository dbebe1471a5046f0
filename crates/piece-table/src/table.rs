//! The driver: spans in, tokens out.

use alloc::vec::Vec;
use core::fmt;

use tokenizer_core::{Span, Token};

use crate::key::{Key, LongKey};
use crate::recent::{Recent, Size};
use crate::run;
use crate::{Sink, Words};

/// The algorithm behind a table: asked for pieces that the table does not know.
///
/// The same piece must give the same tokens every time. Closures are algorithms.
pub trait Miss {
    /// Appends the tokens of a piece.
    fn encode(&mut self, piece: &[u8], tokens: &mut Vec<Token>);
}

impl<F: FnMut(&[u8], &mut Vec<Token>)> Miss for F {
    fn encode(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        self(piece, tokens);
    }
}

/// Spans that are looked at together: enough to hide the way to memory, few enough that keys and
/// hashes stay in the first cache.
const BATCH: usize = 128;

/// What a session knows of pieces: the model's [`Words`] and those it met lately.
///
/// Remembers up to a fixed size and then forgets; never changes what comes out.
#[derive(Clone)]
pub struct PieceTable<'w> {
    words: Option<&'w Words>,
    recent: Recent,
    /// Whether the last batch missed often, so that the words are worth prefetching, too.
    is_cold: bool,
    /// The tokens of a piece that was asked for.
    tokens: Vec<Token>,
}

impl<'w> PieceTable<'w> {
    /// An empty table in front of a model's words, if it has any.
    #[must_use]
    pub fn new(words: Option<&'w Words>) -> Self {
        Self::with_size(words, Size::default())
    }

    /// As [`new`](Self::new), remembering as much as `size` says.
    ///
    /// # Panics
    ///
    /// If a number of lines is not a power of two.
    #[must_use]
    pub fn with_size(words: Option<&'w Words>, size: Size) -> Self {
        Self { words, recent: Recent::new(size), is_cold: true, tokens: Vec::new() }
    }

    /// Whether there are words of a model.
    #[must_use]
    pub fn has_words(&self) -> bool {
        self.words.is_some()
    }

    /// Puts the table in front of a model's words, which may be built when it shows that they are
    /// worth it.
    pub fn set_words(&mut self, words: &'w Words) {
        self.words = Some(words);
    }

    /// Gives the tokens of the pieces of `text` to `sink`, in order.
    ///
    /// # Panics
    ///
    /// If a span does not lie in `text`.
    pub fn encode<S: Sink>(
        &mut self,
        text: &[u8],
        pieces: &[Span],
        miss: &mut impl Miss,
        sink: &mut S,
    ) {
        for batch in pieces.chunks(BATCH) {
            self.batch(text, batch, miss, sink);
        }
    }

    #[inline]
    fn batch<S: Sink>(&mut self, text: &[u8], pieces: &[Span], miss: &mut impl Miss, sink: &mut S) {
        let mut keys = [Key([0; 16]); BATCH];
        let mut hashes = [0; BATCH];
        let cold = self.words.filter(|_| self.is_cold);
        for ((piece, key), hash) in pieces.iter().zip(&mut keys).zip(&mut hashes) {
            let len = piece.end.wrapping_sub(piece.start);
            if Key::fits(len) {
                *key = Key::of(text, piece.start, len);
                *hash = key.hash();
                self.recent.prefetch_short(*hash);
                if let Some(words) = cold {
                    words.prefetch(*hash);
                }
            } else if LongKey::fits(len) {
                *hash = LongKey::of(text, piece.start, len).hash();
                self.recent.prefetch_long(*hash);
            }
        }
        let mut misses = 0;
        for ((piece, &key), &hash) in pieces.iter().zip(&keys).zip(&hashes) {
            let len = piece.end.wrapping_sub(piece.start);
            if !Key::fits(len) {
                self.longer(text, *piece, hash, miss, sink);
                sink.end_piece();
                continue;
            }
            let bucket = self.recent.short(hash);
            match bucket.find(key) {
                Some(words) => {
                    let n = run::count(words[0]);
                    sink.packed(words, n.min(4), len);
                    if n > 4 {
                        sink.packed(bucket.more(), n - 4, 0);
                    }
                }
                None => {
                    misses += 1;
                    self.unknown(&text[piece.range()], key, hash, miss, sink);
                }
            }
            sink.end_piece();
        }
        self.is_cold = misses * 32 > pieces.len();
    }

    /// A short piece that was not met lately.
    #[cold]
    #[inline(never)]
    fn unknown<S: Sink>(
        &mut self,
        piece: &[u8],
        key: Key,
        hash: u64,
        miss: &mut impl Miss,
        sink: &mut S,
    ) {
        if let Some([a, b, c, d]) = self.words.and_then(|words| words.get(key, hash)) {
            sink.packed([a, b, c, d], run::count(a), piece.len());
            self.recent.put_words(key, hash, [a, b, c, d, 0, 0, 0, 0]);
        } else if let Some(tokens) = self.recent.other(piece) {
            sink.extend(tokens);
        } else {
            self.tokens.clear();
            miss.encode(piece, &mut self.tokens);
            sink.extend(&self.tokens);
            self.recent.put_short(key, hash, piece, &self.tokens);
        }
    }

    /// A piece without a short key.
    #[inline(never)]
    fn longer<S: Sink>(
        &mut self,
        text: &[u8],
        piece: Span,
        hash: u64,
        miss: &mut impl Miss,
        sink: &mut S,
    ) {
        let bytes = &text[piece.range()];
        if LongKey::fits(bytes.len()) {
            let key = LongKey::of(text, piece.start, bytes.len());
            if let Some([a, b, c, d, e, f, g, h]) = self.recent.long(key, hash) {
                let n = run::count(a);
                sink.packed([a, b, c, d], n.min(4), bytes.len());
                if n > 4 {
                    sink.packed([e, f, g, h], n - 4, 0);
                }
            } else if let Some(tokens) = self.recent.other(bytes) {
                sink.extend(tokens);
            } else {
                self.tokens.clear();
                miss.encode(bytes, &mut self.tokens);
                sink.extend(&self.tokens);
                self.recent.put_long(key, hash, bytes, &self.tokens);
            }
        } else if let Some(tokens) = self.recent.other(bytes) {
            sink.extend(tokens);
        } else {
            self.tokens.clear();
            miss.encode(bytes, &mut self.tokens);
            sink.extend(&self.tokens);
            self.recent.put_other(bytes, &self.tokens);
        }
    }
}

impl fmt::Debug for PieceTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceTable").field("words", &self.words).finish_non_exhaustive()
    }
}
