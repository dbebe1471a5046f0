//! What a session met lately.

use alloc::vec::Vec;

use tokenizer_core::Token;

use crate::archive::Archive;
use crate::key::{Key, LongKey};
use crate::memory::Lines;
use crate::ring::Ring;
use crate::run::{self, MOST, Word};

/// How much a session remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// Lines of 64 bytes for pieces of up to 15 bytes, two pieces in each. Two at least.
    pub short: usize,
    /// Lines of 64 bytes for pieces of 16 to 31 bytes, one in each. Two at least.
    pub long: usize,
    /// Bytes of longer pieces, and tokens of pieces of more than eight.
    pub ring: usize,
    /// Bytes for pieces of up to 1024 bytes that lines have no room for, 3 MB at most: about half of them are
    /// used once a thousand pieces were asked for, all of them when that is full.
    pub archive: usize,
}

impl Default for Size {
    /// About 4 MB: 2.75 for short pieces, 0.75 for longer ones, and a ring of 0.5.
    fn default() -> Self {
        Self::of_bytes(4 << 20)
    }
}

impl Size {
    /// About so many bytes in all: 11 of 16 for short pieces, 3 for longer ones, and 2 for the ring, which
    /// takes 64 MB at most. A few hundred bytes at least.
    #[must_use]
    pub const fn of_bytes(bytes: usize) -> Self {
        let kilobytes = bytes >> 10;
        let ring = if kilobytes < 512 << 10 { 8 * kilobytes } else { 4 << 20 };
        Self { short: 2 + 11 * kilobytes, long: 2 + 3 * kilobytes, ring, archive: 0 }
    }

    /// About so many bytes in all, of which 5 of 8 and up to 2.5 MB are an archive: for those who ask what
    /// takes long to answer. It remembers more than twice as many pieces, most of them in a place that takes
    /// two more looks at memory.
    #[must_use]
    pub const fn archived(bytes: usize) -> Self {
        let (least, most) = (1 << 14, 5 << 19);
        let share = if bytes / 8 < most / 5 { bytes / 8 * 5 } else { most };
        let archive = if share < least { 0 } else { share };
        let lines = (bytes - archive) / 64;
        Self { short: 2 + lines / 8 * 7, long: 2 + lines / 8, ring: 0, archive }
    }

    /// Hardly anything, for tests that want everything forgotten soon.
    pub const TINY: Self = Self { short: 2, long: 2, ring: 64, archive: 0 };
}

/// Two short pieces in a line of cache, or one of five to eight tokens.
///
/// ```text
/// key 0 | key 1         | words 0..4 | words 4..8      two pieces of up to four tokens each
/// key   | CONTINUATION  | words 0..8                   one piece
/// ```
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    pub(crate) keys: [Key; 2],
    pub(crate) runs: [[Word; 4]; 2],
}

/// What became of a piece.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    New,
    /// The piece is there already.
    Known,
    /// There is no room.
    Full,
}

/// In place of a key where the place belongs to the piece before: says a length that no key has.
const CONTINUATION: Key = Key([0xFF; 16]);
const EMPTY: Key = Key([0; 16]);

impl Bucket {
    /// The first four words of a piece, of as many tokens as they say.
    #[inline(always)]
    pub(crate) fn find(&self, key: Key) -> Option<[Word; 4]> {
        // Both keys are in the line at hand, so looking at both is cheaper than a guess which.
        let second = usize::from(self.keys[1] == key);
        (self.keys[second] == key).then_some(self.runs[second])
    }

    /// Adds a piece of up to four tokens if there is room.
    #[inline]
    pub(crate) fn add(&mut self, key: Key, words: [Word; MOST]) -> Added {
        let place = match self.keys {
            [EMPTY, _] => 0,
            [first, second] if first == key || second == key => return Added::Known,
            [_, EMPTY] => 1,
            _ => return Added::Full,
        };
        self.set(place, key, run::halves(words)[0]);
        Added::New
    }

    fn set(&mut self, place: usize, key: Key, run: [Word; 4]) {
        self.keys[place] = key;
        self.runs[place] = run;
    }

    /// Puts a piece in, or into the bucket beside. Returns whether another had to go.
    fn put(&mut self, beside: &mut Self, key: Key, words: [Word; MOST]) -> bool {
        let [first, second] = run::halves(words);
        if run::count(words[0]) > 4 {
            let old =
                core::mem::replace(self, Self { keys: [key, CONTINUATION], runs: [first, second] });
            let places = old.keys.into_iter().zip(old.runs);
            return match old.keys {
                [_, CONTINUATION] => true,
                // No short circuit: both have to move.
                _ => places.fold(false, |lost, (key, run)| {
                    lost | (key != EMPTY && !beside.take(key, run))
                }),
            };
        }
        if self.take(key, first) {
            return false;
        }
        if self.keys[1] == CONTINUATION {
            if beside.take(key, first) {
                return false;
            }
            *self = Self { keys: [key, EMPTY], runs: [first, [0; 4]] };
            return true;
        }
        // One token is most often a word of the vocabulary and found again at once; what took
        // merging to find stays longer. Else the older one goes.
        let single = self.runs.map(|run| run::count(run[0]) <= 1);
        let goes = usize::from(single != [true, false]);
        let (old_key, old_run) = (self.keys[goes], self.runs[goes]);
        if goes == 1 {
            (self.keys[1], self.runs[1]) = (self.keys[0], self.runs[0]);
        }
        self.set(0, key, first);
        !beside.take(old_key, old_run)
    }

    /// Puts a piece of up to four tokens into a free place, if there is one.
    fn take(&mut self, key: Key, run: [Word; 4]) -> bool {
        match self.keys {
            [EMPTY, _] => self.set(0, key, run),
            [_, EMPTY] => self.set(1, key, run),
            _ => return false,
        }
        true
    }
}

/// A piece of 16 to 31 bytes and its tokens: a line of cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct LongSlot {
    key: LongKey,
    words: [Word; MOST],
}

/// The tables of a session; they grow with what they hold.
#[derive(Clone)]
pub(crate) struct Recent {
    size: Size,
    short: Lines<Bucket>,
    /// How often a piece of the table had to go since the table has this size.
    lost_short: usize,
    long: Lines<LongSlot>,
    lost_long: usize,
    ring: Ring,
    /// Once it is worth it.
    archive: Option<Archive>,
    /// How many pieces were asked for.
    asked: usize,
    /// Whether the text that is encoded is a long one.
    is_long_text: bool,
}

/// A session that asked for so many pieces has an archive, if it may have one.
const ASKED_BEFORE_ARCHIVE: usize = 1024;

/// Tables begin with so many lines, and grow by this factor or to their final size when an eighth as
/// many pieces had to go: a session for one short text is cheap, and one for much text soon has its
/// final size.
const FIRST: usize = 32;
const GROWTH: usize = 8;

/// A text of so many bytes needs tables of their final size.
const LONG_TEXT: usize = 1 << 19;

impl Recent {
    pub(crate) fn new(size: Size) -> Self {
        Self {
            size,
            short: Lines::new(size.short.min(FIRST)),
            lost_short: 0,
            long: Lines::new(size.long.min(FIRST / 4)),
            lost_long: 0,
            ring: Ring::new(size.ring),
            archive: None,
            asked: 0,
            is_long_text: false,
        }
    }

    /// Says how long the text is whose pieces come next.
    #[inline]
    pub(crate) fn begin(&mut self, text: &[u8]) {
        self.is_long_text = text.len() >= LONG_TEXT;
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Takes another size. A table that becomes smaller forgets all, so that it need not stand beside the
    /// one before; and so does the ring.
    #[cold]
    #[inline(never)]
    pub(crate) fn resize(&mut self, size: Size) {
        if self.short.count() > size.short.max(2).next_multiple_of(2) {
            self.short = Lines::new(0);
            self.short = Lines::new(size.short);
            self.lost_short = 0;
        }
        if self.long.count() > size.long.max(2).next_multiple_of(2) {
            self.long = Lines::new(0);
            self.long = Lines::new(size.long);
            self.lost_long = 0;
        }
        self.ring = Ring::new(size.ring);
        (self.archive, self.asked) = (None, 0);
        self.size = size;
    }

    /// The archive, if there is one yet.
    #[inline(always)]
    pub(crate) fn archive(&self) -> Option<&Archive> {
        self.archive.as_ref()
    }

    /// The lines of short pieces.
    #[inline(always)]
    pub(crate) fn short(&self) -> &Lines<Bucket> {
        &self.short
    }

    /// As [`beside`](Self::beside); the piece and the older one of its own bucket change places, so
    /// that frequent pieces end up in their own buckets.
    #[inline]
    pub(crate) fn fetch(&mut self, key: Key, hash: u64) -> Option<[Word; 4]> {
        let (bucket, beside) = self.short.pair_mut(hash);
        let place = beside.keys.iter().position(|&other| other == key)?;
        let words = beside.runs[place];
        if bucket.keys[1] != CONTINUATION {
            core::mem::swap(&mut bucket.keys[1], &mut beside.keys[place]);
            core::mem::swap(&mut bucket.runs[1], &mut beside.runs[place]);
        }
        Some(words)
    }

    /// The tokens of a piece that is not in its own bucket: it may be in the one beside, if it has
    /// no more than four tokens.
    #[inline]
    pub(crate) fn beside(&self, key: Key, hash: u64) -> Option<[Word; 4]> {
        self.short.beside(hash).find(key)
    }

    #[inline(always)]
    pub(crate) fn prefetch_long(&self, hash: u64) {
        self.long.prefetch(hash);
    }

    #[inline(always)]
    pub(crate) fn long(&self, key: LongKey, hash: u64) -> Option<[Word; MOST]> {
        let pair = [self.long.at(hash), self.long.beside(hash)];
        pair.into_iter().find(|slot| slot.key == key).map(|slot| slot.words)
    }

    /// Appends the tokens of a piece that is in none of its lines, but maybe at a place of the archive, or
    /// among those that neither takes.
    #[inline]
    pub(crate) fn other_at(
        &self,
        place: Option<usize>,
        piece: &[u8],
        tokens: &mut Vec<Token>,
    ) -> bool {
        if let (Some(archive), Some(place)) = (&self.archive, place)
            && archive.read(place, piece, tokens)
        {
            return true;
        }
        let found = self.ring.get(piece);
        tokens.extend_from_slice(found.unwrap_or_default());
        found.is_some()
    }

    /// Remembers a piece that was asked for: of up to 15 bytes,
    pub(crate) fn learn_short(&mut self, key: Key, hash: u64, piece: &[u8], tokens: &[Token]) {
        let is_archived = self.learn(hash, piece, tokens);
        if !self.put_short(key, hash, piece, tokens) && !is_archived {
            self.ring.put(piece, tokens);
        }
    }

    /// of 16 to 31 bytes,
    pub(crate) fn learn_long(&mut self, key: LongKey, hash: u64, piece: &[u8], tokens: &[Token]) {
        let is_archived = self.learn(hash, piece, tokens);
        if !self.put_long(key, hash, piece, tokens) && !is_archived {
            self.ring.put(piece, tokens);
        }
    }

    /// or more.
    pub(crate) fn learn_other(&mut self, hash: u64, piece: &[u8], tokens: &[Token]) {
        if !self.learn(hash, piece, tokens) {
            self.ring.put(piece, tokens);
        }
    }

    fn learn(&mut self, hash: u64, piece: &[u8], tokens: &[Token]) -> bool {
        if self.size.archive == 0 {
            return false;
        }
        self.asked += 1;
        if self.archive.is_none() && self.asked > ASKED_BEFORE_ARCHIVE.min(self.size.short) {
            self.archive = Some(Archive::new(self.size.archive));
        }
        self.archive.as_mut().is_some_and(|archive| archive.put(hash, piece, tokens))
    }

    pub(crate) fn put_words(&mut self, key: Key, hash: u64, words: [Word; MOST]) {
        self.lost_short += usize::from(put(&mut self.short, key, hash, words));
        let count = self.short.count();
        if self.lost_short > count / 8 && count < self.size.short {
            self.grow_short();
        }
    }

    /// Whether a short piece is in one of its buckets.
    #[inline]
    pub(crate) fn has_short(&self, key: Key, hash: u64) -> bool {
        self.short.at(hash).find(key).or_else(|| self.beside(key, hash)).is_some()
    }

    /// Puts a piece into its line, if it fits.
    pub(crate) fn put_short(
        &mut self,
        key: Key,
        hash: u64,
        piece: &[u8],
        tokens: &[Token],
    ) -> bool {
        let packed = run::pack(tokens, piece.len());
        packed.map(|words| self.put_words(key, hash, words)).is_some()
    }

    /// Puts a piece into its line, if it fits.
    pub(crate) fn put_long(
        &mut self,
        key: LongKey,
        hash: u64,
        piece: &[u8],
        tokens: &[Token],
    ) -> bool {
        let Some(words) = run::pack(tokens, piece.len()) else { return false };
        self.lost_long += usize::from(place(&mut self.long, hash, LongSlot { key, words }));
        let count = self.long.count();
        if self.lost_long > count / 8 && count < self.size.long {
            self.grow_long();
        }
        true
    }

    /// Tables with an archive behind them are small as it is, and what they lose is soon found again.
    fn step(&self) -> Step {
        match (self.is_long_text, self.size.archive) {
            (true, _) => Step::AtOnce,
            (false, 0) => Step::Half,
            (false, _) => Step::Few,
        }
    }

    #[cold]
    #[inline(never)]
    fn grow_short(&mut self) {
        self.resize_short(grown(self.short.count(), self.size.short, self.step()));
    }

    fn resize_short(&mut self, count: usize) {
        let old = core::mem::replace(&mut self.short, Lines::new(count));
        self.lost_short = 0;
        for bucket in old.iter() {
            let [[a, b, c, d], second] = bucket.runs;
            let is_wide = bucket.keys[1] == CONTINUATION;
            // The older one first.
            if !is_wide && bucket.keys[1] != EMPTY {
                let [e, f, g, h] = second;
                let key = bucket.keys[1];
                put(&mut self.short, key, key.hash(), [e, f, g, h, 0, 0, 0, 0]);
            }
            if bucket.keys[0] != EMPTY {
                let [e, f, g, h] = if is_wide { second } else { [0; 4] };
                let key = bucket.keys[0];
                put(&mut self.short, key, key.hash(), [a, b, c, d, e, f, g, h]);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn grow_long(&mut self) {
        self.resize_long(grown(self.long.count(), self.size.long, self.step()));
    }

    fn resize_long(&mut self, count: usize) {
        let old = core::mem::replace(&mut self.long, Lines::new(count));
        self.lost_long = 0;
        for slot in old.iter().filter(|slot| slot.key != LongKey::EMPTY) {
            place(&mut self.long, slot.key.hash(), *slot);
        }
    }
}

/// The next number of lines of a table with `count` of them and `most` at last. None near the last but half of
/// it: the memory of a table that was outgrown is often of no more use.
fn grown(count: usize, most: usize, step: Step) -> usize {
    let next = match step {
        Step::AtOnce if count < AT_ONCE => AT_ONCE,
        Step::AtOnce => count * GROWTH / 2,
        _ => count * GROWTH,
    };
    match step {
        _ if next < most / 4 => next,
        Step::Half if count < most / 4 => most / 2,
        _ => most,
    }
}

/// So many lines, 2 MB, a table has at once for a long text. Tens of megabytes are another matter: to touch
/// them takes longer than to encode some megabytes of text.
const AT_ONCE: usize = 1 << 15;

/// How a table comes to its final size.
#[derive(Clone, Copy)]
enum Step {
    /// By way of half of it: that is enough for texts of some 100 KB, and half as many pages are touched.
    Half,
    /// From a few lines.
    Few,
    /// At once, if it is no more than a few megabytes.
    AtOnce,
}

fn put(lines: &mut Lines<Bucket>, key: Key, hash: u64, words: [Word; MOST]) -> bool {
    let (bucket, beside) = lines.pair_mut(hash);
    bucket.put(beside, key, words)
}

/// Puts a piece into its pair of lines. Returns whether another had to go: the older one.
fn place(lines: &mut Lines<LongSlot>, hash: u64, slot: LongSlot) -> bool {
    let (first, second) = lines.pair_mut(hash);
    if first.key == LongKey::EMPTY {
        *first = slot;
        return false;
    }
    let is_lost = second.key != LongKey::EMPTY;
    *second = core::mem::replace(first, slot);
    is_lost
}
