//! The driver: spans in, tokens out.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use tokenizer_core::{Span, Token};

use crate::batch::{BATCH, Batch, GiveKnown, Locate};
use crate::key::{Key, LongKey, hash_bytes};
use crate::recent::{Recent, Size};
use crate::run;
use crate::simd::{Machine, Work};
use crate::sink::sealed::Write;
use crate::{Backend, Sink, Words};

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

/// What a session knows of pieces: the model's [`Words`] and those it met lately.
///
/// Remembers up to a fixed size and then forgets; never changes what comes out.
#[derive(Clone)]
pub struct PieceTable<'w> {
    words: Option<&'w Words>,
    recent: Recent,
    backend: Backend,
    /// The pieces that are looked for.
    batch: Box<Batch>,
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
            backend: Backend::best(),
            batch: Box::new(Batch::EMPTY),
            is_cold: true,
            tokens: Vec::new(),
            missing: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The same with this back end instead of the fastest one; `None` if this machine has it not.
    #[must_use]
    pub fn with_backend(mut self, backend: Backend) -> Option<Self> {
        self.backend = backend;
        backend.is_available().then_some(self)
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
        let backend = self.backend;
        self.recent.begin(text);
        backend.run(Encoding { table: self, text, pieces, miss, sink });
    }

    /// Looks for all pieces of a batch and asks for those that are missing together. Returns how
    /// many were. Where little is missing this costs more than it saves.
    #[inline(never)]
    fn warm(&mut self, text: &[u8], pieces: &[Span], miss: &mut impl Miss) -> usize {
        let mut misses = 0;
        // The last missing piece of each of some hashes: what is missing twice is asked for once.
        let mut last = [0; BATCH];
        let mut hashes = [0; BATCH];
        self.missing.clear();
        for (i, piece) in pieces.iter().enumerate() {
            let len = piece.end.wrapping_sub(piece.start);
            let (key, mut hash) = (self.batch.key(i), 0);
            let is_known = if Key::fits(len) {
                if self.batch.is_at_home(i, self.recent.short()) {
                    continue;
                }
                hash = key.hash();
                self.recent.has_short(key, hash)
            } else if LongKey::fits(len) {
                hash = self.batch.long_hash(i);
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
            } else if core::mem::replace(&mut last[hash as usize % BATCH], hash) != hash {
                if let Some(archive) = self.recent.archive() {
                    archive.prefetch(hash);
                }
                hashes[self.missing.len()] = hash;
                self.missing.push(*piece);
            }
        }
        self.recall(text, &mut hashes);
        self.tokens.clear();
        self.ends.clear();
        miss.encode_many(text, &self.missing, &mut self.tokens, &mut self.ends);
        let mut start = 0;
        for ((piece, &end), &hash) in self.missing.iter().zip(&self.ends).zip(&hashes) {
            let (bytes, tokens) = (&text[piece.range()], &self.tokens[start..end]);
            start = end;
            // A piece may be missing twice.
            if Key::fits(bytes.len()) {
                let key = Key::of(text, piece.start, bytes.len());
                if !self.recent.has_short(key, hash) {
                    self.recent.learn_short(key, hash, bytes, tokens);
                }
            } else {
                let key = LongKey::of(text, piece.start, bytes.len());
                if self.recent.long(key, hash).is_none() {
                    self.recent.learn_long(key, hash, bytes, tokens);
                }
            }
        }
        misses
    }

    /// Puts what is remembered elsewhere of the missing pieces into their lines, if it fits, and leaves the
    /// others with their hashes.
    fn recall(&mut self, text: &[u8], hashes: &mut [u64; BATCH]) {
        let Self { recent, missing, tokens, .. } = self;
        let mut places = [None; BATCH];
        if let Some(archive) = recent.archive() {
            for (place, &hash) in places.iter_mut().zip(&*hashes).take(missing.len()) {
                *place = archive.find(hash);
            }
        }
        let mut left = 0;
        for i in 0..missing.len() {
            let (piece, hash) = (missing[i], hashes[i]);
            let bytes = &text[piece.range()];
            tokens.clear();
            if !recent.other_at(places[i], bytes, tokens) {
                (missing[left], hashes[left]) = (piece, hash);
                left += 1;
            } else if Key::fits(bytes.len()) {
                recent.put_short(Key::of(text, piece.start, bytes.len()), hash, bytes, tokens);
            } else {
                recent.put_long(LongKey::of(text, piece.start, bytes.len()), hash, bytes, tokens);
            }
        }
        missing.truncate(left);
    }

    /// A short piece that was not met lately, or stands in the bucket beside its own. Returns which.
    #[cold]
    #[inline(never)]
    fn unknown<S: Sink>(
        &mut self,
        text: &[u8],
        piece: Span,
        key: Key,
        miss: &mut impl Miss,
        sink: &mut S,
    ) -> bool {
        let mut out = sink.writer(1);
        let bytes = &text[piece.range()];
        let hash = key.hash();
        if let Some(words) = self.recent.fetch(key, hash) {
            out.four(&words, run::count(words[0]), piece);
            return false;
        }
        if let Some(words) = self.words.and_then(|words| words.get(key, hash)) {
            out.four(&words, run::count(words[0]), piece);
            self.recent.put_words(key, hash, run::whole([words, [0; 4]]));
        } else if self.recall_one(bytes, hash) {
            out.tokens(&self.tokens, piece);
            self.recent.put_short(key, hash, bytes, &self.tokens);
        } else {
            self.ask(text, piece, miss);
            out.tokens(&self.tokens, piece);
            self.recent.learn_short(key, hash, bytes, &self.tokens);
        }
        true
    }

    /// Looks for one piece that is in no line.
    #[inline]
    fn recall_one(&mut self, bytes: &[u8], hash: u64) -> bool {
        self.tokens.clear();
        let place = self.recent.archive().and_then(|archive| archive.find(hash));
        self.recent.other_at(place, bytes, &mut self.tokens)
    }

    /// Asks for one piece, as a part of its text: that is read faster.
    #[inline]
    fn ask(&mut self, text: &[u8], piece: Span, miss: &mut impl Miss) {
        self.tokens.clear();
        self.ends.clear();
        miss.encode_many(text, &[piece], &mut self.tokens, &mut self.ends);
    }

    /// A piece without a short key; `hash` is that of its long one, if it has one.
    #[inline(never)]
    fn longer<S: Sink>(
        &mut self,
        text: &[u8],
        piece: Span,
        hash: u64,
        miss: &mut impl Miss,
        sink: &mut S,
    ) {
        let mut out = sink.writer(1);
        let bytes = &text[piece.range()];
        if !LongKey::fits(bytes.len()) {
            let hash = hash_bytes(bytes);
            if !self.recall_one(bytes, hash) {
                self.ask(text, piece, miss);
                self.recent.learn_other(hash, bytes, &self.tokens);
            }
            out.tokens(&self.tokens, piece);
            return;
        }
        let key = LongKey::of(text, piece.start, bytes.len());
        if let Some(words) = self.recent.long(key, hash) {
            out.eight(&words, piece);
        } else if self.recall_one(bytes, hash) {
            out.tokens(&self.tokens, piece);
            self.recent.put_long(key, hash, bytes, &self.tokens);
        } else {
            self.ask(text, piece, miss);
            out.tokens(&self.tokens, piece);
            self.recent.learn_long(key, hash, bytes, &self.tokens);
        }
    }
}

/// The whole of [`PieceTable::encode`], as work for a back end.
struct Encoding<'a, 'w, M, S> {
    table: &'a mut PieceTable<'w>,
    text: &'a [u8],
    pieces: &'a [Span],
    miss: &'a mut M,
    sink: &'a mut S,
}

impl<M: Miss, S: Sink> Work for Encoding<'_, '_, M, S> {
    type Output = ();

    #[inline(always)]
    fn run<A: Machine>(mut self, machine: A) {
        for pieces in self.pieces.chunks(BATCH) {
            self.batch(machine, pieces);
        }
    }
}

impl<M: Miss, S: Sink> Encoding<'_, '_, M, S> {
    #[inline(always)]
    fn batch(&mut self, machine: impl Machine, pieces: &[Span]) {
        let Self { table, text, miss, sink, .. } = self;
        let PieceTable { batch, recent, words, is_cold, .. } = &mut **table;
        let mut misses = 0;
        if *is_cold {
            machine.run(Locate::<true> { batch, text, pieces, recent, words: *words });
            misses = table.warm(text, pieces, *miss);
        } else {
            machine.run(Locate::<false> { batch, text, pieces, recent, words: None });
        }
        let mut from = 0;
        loop {
            let PieceTable { batch, recent, .. } = &mut **table;
            let lines = recent.short();
            let out = sink.writer(pieces.len() - from);
            let at = machine.run(GiveKnown { batch, pieces, lines, from, out });
            let Some(&piece) = pieces.get(at) else { break };
            if Key::fits(piece.end.wrapping_sub(piece.start)) {
                let key = batch.key(at);
                misses += usize::from(table.unknown(text, piece, key, *miss, *sink));
            } else {
                let hash = batch.long_hash(at);
                table.longer(text, piece, hash, *miss, *sink);
            }
            from = at + 1;
        }
        table.is_cold = misses * 32 > pieces.len();
    }
}

impl fmt::Debug for PieceTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceTable").field("words", &self.words).finish_non_exhaustive()
    }
}
