//! Some pieces that are looked for together, so that the ways to memory overlap.
#![allow(unsafe_code, reason = "entries at places that are known to be there")]

use tokenizer_core::Span;

use crate::Words;
use crate::key::{Key, LongKey};
use crate::memory::{Lines, Windows, prefetch};
use crate::recent::{Bucket, Recent};
use crate::run;
use crate::simd::{Machine, Work};
use crate::sink::sealed::Write;

/// So many pieces are looked at together: enough to hide the way to memory, few enough that keys
/// and places stay in the first cache.
pub(crate) const BATCH: usize = 128;

/// The pieces of a batch as numbers, and where they are looked for.
#[derive(Clone)]
pub(crate) struct Batch {
    /// How many pieces there are.
    len: usize,
    /// Their places are of a table of so many lines; each of the first `len` is less than that.
    lines: usize,
    places: [u32; BATCH],
    keys: [Key; BATCH],
    /// The hashes of pieces of 16 to 31 bytes.
    hashes: [u64; BATCH],
}

/// In place of the key of a piece that has none: says a length that no key has, and not that which
/// tables use for something else.
const NO_KEY: Key = Key([0xFE; 16]);

impl Batch {
    pub(crate) const EMPTY: Self =
        Self { len: 0, lines: 0, places: [0; BATCH], keys: [NO_KEY; BATCH], hashes: [0; BATCH] };

    /// The key of a piece of up to 15 bytes.
    #[inline(always)]
    pub(crate) fn key(&self, i: usize) -> Key {
        self.keys[i]
    }

    /// Whether a piece of up to 15 bytes is in its own line. Says no where the table has grown since
    /// pieces were located.
    #[inline(always)]
    pub(crate) fn is_at_home(&self, i: usize, lines: &Lines<Bucket>) -> bool {
        let (Some(&place), true) = (self.places[..self.len].get(i), self.lines == lines.count())
        else {
            return false;
        };
        // SAFETY: the first `len` places are less than `batch.lines`, which is how many lines there are.
        unsafe { lines.entries().entry(place as usize) }.find(self.keys[i]).is_some()
    }

    /// The hash of a piece of 16 to 31 bytes.
    #[inline(always)]
    pub(crate) fn long_hash(&self, i: usize) -> u64 {
        self.hashes[i]
    }

    /// After the table has grown.
    #[cold]
    #[inline(never)]
    fn locate_again(&mut self, lines: &Lines<Bucket>) {
        self.lines = lines.count();
        for (place, key) in self.places.iter_mut().zip(&self.keys).take(self.len) {
            *place = if *key == NO_KEY { 0 } else { lines.entries().place(key.hash()) as u32 };
        }
    }
}

/// Puts up to [`BATCH`] pieces into a batch and asks for the memory where they will be looked for.
/// Where much is missing, `COLD`, that is more.
pub(crate) struct Locate<'a, const COLD: bool> {
    pub(crate) batch: &'a mut Batch,
    pub(crate) text: &'a [u8],
    pub(crate) pieces: &'a [Span],
    pub(crate) recent: &'a Recent,
    pub(crate) words: Option<&'a Words>,
}

impl<const COLD: bool> Work for Locate<'_, COLD> {
    type Output = ();

    #[inline(always)]
    fn run<M: Machine>(self, machine: M) {
        let Self { batch, text, pieces, recent, words } = self;
        assert!(pieces.len() <= BATCH, "a batch has room");
        (batch.len, batch.lines) = (pieces.len(), recent.short().count());
        let lines = recent.short().entries();
        let windows = Windows::new(text);
        let places = batch.places.iter_mut().zip(&mut batch.keys).zip(&mut batch.hashes);
        for (piece, ((place, key), hash)) in pieces.iter().zip(places) {
            let len = piece.end.wrapping_sub(piece.start);
            if !Key::fits(len) {
                (*key, *place) = (NO_KEY, 0);
                if LongKey::fits(len) {
                    *hash = LongKey::of(text, piece.start, len).hash();
                    recent.prefetch_long(*hash);
                }
                continue;
            }
            *key = machine.key(windows, piece.start, len);
            let hash = key.hash();
            let at = lines.place(hash);
            *place = at as u32;
            // SAFETY: the place of a hash is less than the number of entries.
            prefetch(unsafe { lines.entry(at) });
            if COLD {
                prefetch(recent.short().beside(hash));
                if let Some(words) = words {
                    words.prefetch(hash);
                }
            }
        }
    }
}

/// Gives out the tokens of pieces from one on, and returns the first that is not in its line of the
/// table. `pieces` are those that were located.
pub(crate) struct GiveKnown<'a, W> {
    pub(crate) batch: &'a mut Batch,
    pub(crate) pieces: &'a [Span],
    pub(crate) lines: &'a Lines<Bucket>,
    pub(crate) from: usize,
    pub(crate) out: W,
}

impl<W: Write> Work for GiveKnown<'_, W> {
    type Output = usize;

    #[inline(always)]
    fn run<M: Machine>(self, machine: M) -> usize {
        let Self { batch, pieces, lines, from, mut out } = self;
        if batch.lines != lines.count() {
            batch.locate_again(lines);
        }
        let lines = lines.entries();
        let len = batch.len.min(pieces.len());
        let located = batch.keys[from..len].iter().zip(&batch.places[from..len]);
        for (i, (piece, (key, &place))) in pieces[from..len].iter().zip(located).enumerate() {
            // SAFETY: the first `len` places are less than `batch.lines`, since they were computed
            // for so many lines, or are the lower part of such a number; and there are so many.
            let bucket = unsafe { lines.entry(place as usize) };
            let Some(which) = machine.find(&bucket.keys, key) else { return from + i };
            let words = &bucket.runs[which & 1];
            let n = run::count(words[0]);
            if n <= 4 {
                out.four(words, n, *piece);
            } else {
                out.eight(&run::whole(bucket.runs), *piece);
            }
        }
        len
    }
}
