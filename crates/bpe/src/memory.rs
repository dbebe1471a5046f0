//! Pieces met lately, in a few bytes each.

use alloc::boxed::Box;
use alloc::vec;

use piece_table::prefetch;
use tokenizer_core::Token;

/// The tokens of pieces that were met lately, found by a hash of the piece and known by their text: what
/// is kept are the numbers of the tokens alone, two or three bytes each, and four bytes that say where.
///
/// Whoever asks has to see whether the tokens spell the piece. If they do, they are its tokens: they
/// are those of some piece, and that is the one that they spell. So no hash is trusted.
///
/// A piece of four tokens costs about 15 bytes, where a table of pieces has 32 or 64. In exchange the text of
/// each token must be looked at.
#[derive(Clone)]
pub(crate) struct Memory {
    /// `tag | 1 + place`, 0 where free. In a line each tag stands once.
    index: Box<[Line]>,
    /// At a place: the number of bytes, then as many, the numbers of the tokens. Begins again when it is
    /// full. In two halves, of which the second is empty at first: nothing moves when it comes.
    ring: [Box<[u8]>; 2],
    /// The next place, and the end of the part that it is in.
    at: usize,
    end: usize,
    /// What is overwritten is forgotten in parts of so many bytes.
    part: usize,
    is_full: bool,
    /// How many pieces came.
    met: usize,
}

/// Once the memory is full, only one in so many pieces is taken. In a text that is longer than the
/// memory and comes again, this keeps most of what is there until it is needed; taking all would have
/// everything overwritten just before it comes again.
const ADMITTED: usize = 4;

/// A line of cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; SLOTS]);

const SLOTS: usize = 16;

impl Line {
    /// The slot with a tag, 0 if there is none.
    #[inline(always)]
    fn find(&self, tag: u32) -> u32 {
        // No branch for each slot: the tag stands once or not at all.
        let only = |slot| if slot >> PLACE_BITS == tag { slot } else { 0 };
        self.0.iter().fold(0, |found, &slot| found | only(slot))
    }

    /// Slots are filled from the first one on.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.0[SLOTS - 1] != 0
    }

    /// Where something with a tag may go: in place of what has it, or where nothing is.
    fn room(&self, tag: u32) -> Option<usize> {
        let with_tag = self.0.iter().position(|&slot| slot >> PLACE_BITS == tag);
        with_tag.or_else(|| self.0.iter().position(|&slot| slot == 0))
    }
}

const PLACE_BITS: u32 = 21;
const PLACE: u32 = (1 << PLACE_BITS) - 1;
/// A number of more than 15 bits has this bit, and its others in a third byte.
const WIDE: u16 = 1 << 15;
const MOST_BYTES: usize = 255;
const PARTS: usize = 32;
const HALF: usize = PARTS / 2;

impl Memory {
    /// More bytes it has no use for.
    pub(crate) const MOST: usize = 3 << 20;

    /// A memory of about that many bytes, a few KB at least and at most [`MOST`](Self::MOST).
    pub(crate) fn new(bytes: usize) -> Self {
        let index = bytes.min(Self::MOST) * 5 / 16;
        let lines = (index / size_of::<Line>()).next_multiple_of(2).max(2);
        let ring = (bytes - index).min(PLACE as usize);
        let part = (ring / PARTS).max(1 + MOST_BYTES);
        Self {
            index: vec![Line([0; SLOTS]); lines].into(),
            ring: [vec![0; part * HALF].into(), Box::default()],
            at: 0,
            end: part,
            part,
            is_full: false,
            met: 0,
        }
    }

    /// Whether the first half is full and there is no second one: then nothing more is taken before
    /// [`grow`](Self::grow) is called.
    pub(crate) fn wants_to_grow(&self) -> bool {
        self.at == self.part * HALF && self.ring[1].is_empty()
    }

    /// Makes the memory as large as was said.
    pub(crate) fn grow(&mut self) {
        self.ring[1] = vec![0; self.part * HALF].into();
    }

    /// The ring from a place to the end of its half.
    #[inline(always)]
    fn from(&self, place: usize) -> &[u8] {
        let half = self.part * HALF;
        if place < half { &self.ring[0][place..] } else { &self.ring[1][place - half..] }
    }

    /// Asks for the line of a hash.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.index[self.line(hash)]);
    }

    /// Where the tokens of a piece of this hash may be. The memory is asked for.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64) -> Option<usize> {
        let line = self.line(hash);
        let mut found = self.index[line].find(tag(hash));
        if found == 0 && self.index[line].is_full() {
            found = self.index[line ^ 1].find(tag(hash));
        }
        let place = ((found & PLACE) as usize).checked_sub(1)?;
        prefetch(&self.from(place)[0]);
        Some(place)
    }

    /// The numbers of the tokens at a place that [`find`](Self::find) gave.
    #[inline(always)]
    pub(crate) fn numbers(&self, place: usize) -> impl Iterator<Item = u32> {
        let ring = self.from(place);
        let mut rest = &ring[1..][..usize::from(ring[0])];
        core::iter::from_fn(move || {
            let (&low, others) = rest.split_first_chunk()?;
            rest = others;
            let low = u16::from_le_bytes(low);
            if low & WIDE == 0 {
                return Some(low.into());
            }
            let (&high, others) = rest.split_first()?;
            rest = others;
            Some(u32::from(low & !WIDE) | u32::from(high) << 15)
        })
    }

    /// Remembers a piece by its hash and tokens, whose ids are numbers here; not if they take too
    /// many bytes.
    pub(crate) fn put(&mut self, hash: u64, tokens: &[Token]) {
        self.met += 1;
        if self.is_full && !self.met.is_multiple_of(ADMITTED) {
            return;
        }
        let mut len = 0;
        for token in tokens {
            let number = token.id.0;
            if number >= 1 << 23 {
                return;
            }
            len += if number < WIDE.into() { 2 } else { 3 };
        }
        if len > MOST_BYTES {
            return;
        }
        if self.at + 1 + len > self.end {
            self.next_part();
        }
        if self.wants_to_grow() {
            return;
        }
        let place = self.at;
        let half = self.part * HALF;
        let ring = &mut self.ring[usize::from(place >= half)][place % half..];
        ring[0] = len as u8;
        let mut at = 1;
        for token in tokens {
            let number = token.id.0;
            let low = number as u16;
            if number < WIDE.into() {
                ring[at..at + 2].copy_from_slice(&low.to_le_bytes());
                at += 2;
            } else {
                ring[at..at + 2].copy_from_slice(&(low | WIDE).to_le_bytes());
                ring[at + 2] = (number >> 15) as u8;
                at += 3;
            }
        }
        self.at += at;
        let (line, tag) = (self.line(hash), tag(hash));
        let (line, slot) = [line, line ^ 1]
            .into_iter()
            .find_map(|line| Some((line, self.index[line].room(tag)?)))
            .unwrap_or((line, place % SLOTS));
        self.index[line].0[slot] = tag << PLACE_BITS | (place as u32 + 1);
    }

    /// Goes on to the next part and forgets what is in it: then no slot ever leads to what was
    /// overwritten.
    #[cold]
    #[inline(never)]
    fn next_part(&mut self) {
        self.at = self.end;
        if self.at == self.part * PARTS {
            (self.at, self.is_full) = (0, true);
        }
        self.end = self.at + self.part;
        if self.is_full {
            let (start, end) = (self.at as u32 + 1, self.end as u32 + 1);
            for slot in self.index.iter_mut().flat_map(|line| &mut line.0) {
                let place = *slot & PLACE;
                if start <= place && place < end {
                    *slot = 0;
                }
            }
        }
    }

    #[inline(always)]
    fn line(&self, hash: u64) -> usize {
        (((hash >> 32) * self.index.len() as u64) >> 32) as usize
    }
}

/// Not 0, which is what is free.
#[inline(always)]
fn tag(hash: u64) -> u32 {
    (hash as u32 >> PLACE_BITS).max(1)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use tokenizer_core::{Rng, TokenId};

    use super::*;

    #[test]
    fn gives_what_was_put_or_nothing() {
        for bytes in [0, 12_000, 100_000] {
            let mut memory = Memory::new(bytes);
            let mut rng = Rng::new(bytes as u64);
            let mut put: Vec<(u64, Vec<u32>)> = Vec::new();
            let (mut found, mut newest) = (0, 0);
            for i in 0..6_000usize {
                let hash = rng.below(u64::MAX);
                let n = rng.below(130) as u32;
                let wide = rng.below(1 << 23) as u32;
                // Who put them is the first number.
                let mut numbers: Vec<u32> = (0..n).map(|at| at * wide % (1 << 23)).collect();
                numbers.insert(0, i as u32);
                let token = |&number| Token { id: TokenId(number), len: 1 };
                memory.put(hash, &numbers.iter().map(token).collect::<Vec<_>>());
                // A few are lost in between.
                if i % 7 == 0 && memory.wants_to_grow() {
                    memory.grow();
                }
                put.push((hash, numbers));
                for (hash, numbers) in put.iter().rev().take(100) {
                    let Some(place) = memory.find(*hash) else { continue };
                    let got: Vec<u32> = memory.numbers(place).collect();
                    assert_eq!(put[got[0] as usize].1, got, "all tokens of some piece");
                    found += usize::from(got == *numbers);
                    newest += usize::from(got[0] == i as u32);
                }
            }
            assert!(newest > 1_000 && found >= newest, "{bytes}: {found} {newest}");
        }
    }

    #[test]
    fn too_large_numbers_are_not_kept() {
        let mut memory = Memory::new(0);
        let token = |number| Token { id: TokenId(number), len: 1 };
        for (hash, number) in [(1, 0), (2 << 21, (1 << 23) - 1), (3 << 21, 1 << 23)] {
            memory.put(hash, &[token(number)]);
            let found = memory.find(hash).map(|place| memory.numbers(place).collect::<Vec<_>>());
            assert_eq!(found, (number < 1 << 23).then(|| [number].into()));
        }
    }
}
