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

    /// Appends the tokens of pieces of `text`, and to `ends`, for each, how many there are after
    /// it. Algorithms that can work on several pieces at once wait less for memory.
    fn encode_many(
        &mut self,
        text: &[u8],
        pieces: &[Span],
        tokens: &mut Vec<Token>,
        ends: &mut Vec<usize>,
    ) {
        for piece in pieces {
            self.encode(&text[piece.range()], tokens);
            ends.push(tokens.len());
        }
    }
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
    /// The tokens of pieces that were asked for.
    tokens: Vec<Token>,
    /// Pieces of a batch that are to be asked for, and where their tokens end.
    missing: Vec<Span>,
    ends: Vec<usize>,
}

impl<'w> PieceTable<'w> {
    /// An empty table in front of a model's words, if it has any.
    #[must_use]
    pub fn new(words: Option<&'w Words>) -> Self {
        Self::with_size(words, Size::default())
    }

    /// As [`new`](Self::new), remembering as much as `size` says.
    #[must_use]
    pub fn with_size(words: Option<&'w Words>, size: Size) -> Self {
        Self {
            words,
            recent: Recent::new(size),
            is_cold: true,
            tokens: Vec::new(),
            missing: Vec::new(),
            ends: Vec::new(),
        }
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

    /// Makes the table remember as much as `size` says from now on. What there is no room for is
    /// forgotten.
    #[inline]
    pub fn set_size(&mut self, size: Size) {
        if self.recent.size() != size {
            self.recent.resize(size);
        }
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
                if self.is_cold {
                    self.recent.prefetch_beside(*hash);
                }
                if let Some(words) = cold {
                    words.prefetch(*hash);
                }
            } else if LongKey::fits(len) {
                *hash = LongKey::of(text, piece.start, len).hash();
                self.recent.prefetch_long(*hash);
            }
        }
        let mut misses =
            if self.is_cold { self.warm(text, pieces, &keys, &hashes, miss) } else { 0 };
        for ((piece, &key), &hash) in pieces.iter().zip(&keys).zip(&hashes) {
            let len = piece.end.wrapping_sub(piece.start);
            sink.begin_piece(piece.start);
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
                    let is_missing = self.unknown(text, *piece, key, hash, miss, sink);
                    misses += usize::from(is_missing);
                }
            }
            sink.end_piece();
        }
        self.is_cold = misses * 32 > pieces.len();
    }

    /// Looks for all pieces of a batch and asks for those that are missing together. Returns how
    /// many were. Where little is missing this costs more than it saves.
    #[inline(never)]
    fn warm(
        &mut self,
        text: &[u8],
        pieces: &[Span],
        keys: &[Key; BATCH],
        hashes: &[u64; BATCH],
        miss: &mut impl Miss,
    ) -> usize {
        let mut misses = 0;
        // The last missing piece of each of some hashes: what is missing twice is asked for once.
        let mut last = [0; BATCH];
        self.missing.clear();
        for ((piece, &key), &hash) in pieces.iter().zip(keys).zip(hashes) {
            let len = piece.end.wrapping_sub(piece.start);
            let is_known = if Key::fits(len) {
                self.recent.has_short(key, hash)
            } else if LongKey::fits(len) {
                let key = LongKey::of(text, piece.start, len);
                self.recent.long(key, hash).is_some()
            } else {
                true // Or unknown, and long enough to be asked for alone.
            };
            if is_known {
                continue;
            }
            misses += 1;
            let words = self.words.filter(|_| Key::fits(len));
            if let Some([a, b, c, d]) = words.and_then(|words| words.get(key, hash)) {
                self.recent.put_words(key, hash, [a, b, c, d, 0, 0, 0, 0]);
            } else if core::mem::replace(&mut last[hash as usize % BATCH], hash) != hash
                && self.recent.other(&text[piece.range()]).is_none()
            {
                self.missing.push(*piece);
            }
        }
        self.tokens.clear();
        self.ends.clear();
        miss.encode_many(text, &self.missing, &mut self.tokens, &mut self.ends);
        let mut start = 0;
        for (piece, &end) in self.missing.iter().zip(&self.ends) {
            let (bytes, tokens) = (&text[piece.range()], &self.tokens[start..end]);
            start = end;
            // A piece may be missing twice.
            if Key::fits(bytes.len()) {
                let key = Key::of(text, piece.start, bytes.len());
                let hash = key.hash();
                if !self.recent.has_short(key, hash) {
                    self.recent.put_short(key, hash, bytes, tokens);
                }
            } else {
                let key = LongKey::of(text, piece.start, bytes.len());
                let hash = key.hash();
                if self.recent.long(key, hash).is_none() {
                    self.recent.put_long(key, hash, bytes, tokens);
                }
            }
        }
        misses
    }

    /// A short piece that was not met lately, or stands in the bucket beside its own. Returns which.
    #[cold]
    #[inline(never)]
    fn unknown<S: Sink>(
        &mut self,
        text: &[u8],
        piece: Span,
        key: Key,
        hash: u64,
        miss: &mut impl Miss,
        sink: &mut S,
    ) -> bool {
        let bytes = &text[piece.range()];
        if let Some(words) = self.recent.fetch(key, hash) {
            sink.packed(words, run::count(words[0]), piece.len());
            return false;
        }
        if let Some([a, b, c, d]) = self.words.and_then(|words| words.get(key, hash)) {
            sink.packed([a, b, c, d], run::count(a), piece.len());
            self.recent.put_words(key, hash, [a, b, c, d, 0, 0, 0, 0]);
        } else if let Some(tokens) = self.recent.other(bytes) {
            sink.extend(tokens);
        } else {
            self.ask(text, piece, miss);
            sink.extend(&self.tokens);
            self.recent.put_short(key, hash, bytes, &self.tokens);
        }
        true
    }

    /// Asks for one piece, as a part of its text: that is read faster.
    #[inline]
    fn ask(&mut self, text: &[u8], piece: Span, miss: &mut impl Miss) {
        self.tokens.clear();
        self.ends.clear();
        miss.encode_many(text, &[piece], &mut self.tokens, &mut self.ends);
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
                self.ask(text, piece, miss);
                sink.extend(&self.tokens);
                self.recent.put_long(key, hash, bytes, &self.tokens);
            }
        } else if let Some(tokens) = self.recent.other(bytes) {
            sink.extend(tokens);
        } else {
            self.ask(text, piece, miss);
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
