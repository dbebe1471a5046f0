//! Short records that are found by a hash, the newest of them.

use alloc::boxed::Box;
use alloc::vec;

use crate::prefetch;

/// Runs of up to some hundred bytes, found by a hash of what they are about: a ring of bytes, and an index of four
/// bytes for each of them.
///
/// What is found may be about something else with a similar hash, so whoever asks has to see from the
/// record itself whether it is what was asked for.
///
/// Begins with half of its ring, and takes nothing more once that is full, until it is told to
/// [`grow`](Self::grow). Once the whole is full, the oldest records are forgotten.
#[derive(Clone, Debug)]
pub struct Records {
    /// `tag | 1 + place`, 0 where free. In a line each tag stands once.
    index: Box<[Line]>,
    /// At a place: the number of bytes, [`SHORT`] and the number in two bytes if it is not less, and as
    /// many. Begins again when it is full. In two halves, of which the second is empty at first: nothing
    /// moves when it comes.
    ring: [Box<[u8]>; 2],
    /// The next place, and the end of the part that it is in.
    at: usize,
    end: usize,
    /// What is overwritten is forgotten in parts of so many bytes.
    part: usize,
    is_full: bool,
    /// How many records came.
    met: usize,
}

/// Once the ring is full, only one in so many records is taken. In a text that is longer than the
/// memory and comes again, this keeps most of what is there until it is needed; taking all would have
/// everything overwritten just before it comes again.
const ADMITTED: usize = 4;

/// A line of cache.
#[derive(Clone, Copy, Debug)]
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
const PARTS: usize = 32;
const HALF: usize = PARTS / 2;
/// Lengths below are one byte.
const SHORT: u8 = 255;

impl Records {
    /// Records of at most so many bytes are taken, if the memory is more than a few KB longer ones, too.
    pub const SURE: usize = 255;

    /// More bytes than these are not used.
    pub const MOST: usize = 3 << 20;

    /// At most about so many bytes, a few KB at least and [`MOST`](Self::MOST) at most, for records that have
    /// `len` bytes on average: then the index is two thirds full when the ring is.
    ///
    /// An index that is 86 % full forgot 6,000 pieces of 115,000 a pass, one that is 64 % full 800.
    #[must_use]
    pub fn new(bytes: usize, len: usize) -> Self {
        let bytes = bytes.min(Self::MOST);
        let index = bytes * 6 / (len + 1 + 6);
        let lines = (index / size_of::<Line>()).next_multiple_of(2).max(2);
        let ring = (bytes - index).min(PLACE as usize);
        let part = (ring / PARTS).max(3 + Self::SURE);
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
    #[inline]
    #[must_use]
    pub fn wants_to_grow(&self) -> bool {
        self.at == self.part * HALF && self.ring[1].is_empty()
    }

    /// Makes the memory as large as was said, if it is not. What it holds stays where it is.
    #[cold]
    #[inline(never)]
    pub fn grow(&mut self) {
        if self.ring[1].is_empty() {
            self.ring[1] = vec![0; self.part * HALF].into();
        }
    }

    /// The ring from a place to the end of its half.
    #[inline(always)]
    fn from(&self, place: usize) -> &[u8] {
        let half = self.part * HALF;
        if place < half { &self.ring[0][place..] } else { &self.ring[1][place - half..] }
    }

    /// Asks for the line of a hash.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.index[self.line(hash)]);
    }

    /// The place of what may be the record of this hash. The memory there is asked for.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, hash: u64) -> Option<usize> {
        let line = self.line(hash);
        let mut found = self.index[line].find(tag(hash));
        if found == 0 && self.index[line].is_full() {
            found = self.index[line ^ 1].find(tag(hash));
        }
        let place = ((found & PLACE) as usize).checked_sub(1)?;
        prefetch(&self.from(place)[0]);
        Some(place)
    }

    /// The record at a place that [`find`](Self::find) gave, if nothing was put since.
    ///
    /// # Panics
    ///
    /// May panic at another place.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, place: usize) -> &[u8] {
        let ring = self.from(place);
        match ring[0] {
            SHORT => {
                let len = u16::from_le_bytes([ring[1], ring[2]]);
                &ring[3..][..usize::from(len)]
            }
            len => &ring[1..][..usize::from(len)],
        }
    }

    /// Puts a record in place of one of the same hash. Says whether it is not too long; none is taken while
    /// the memory [wants to grow](Self::wants_to_grow), and once the ring is full, only one in four.
    pub fn put(&mut self, hash: u64, record: &[u8]) -> bool {
        let Ok(len) = u16::try_from(record.len()) else { return false };
        let [low, high] = len.to_le_bytes();
        let (head, used) = if len < SHORT.into() { (low, 1) } else { (SHORT, 3) };
        if used + record.len() > self.part {
            return false;
        }
        self.met += 1;
        if self.is_full && !self.met.is_multiple_of(ADMITTED) {
            return true;
        }
        if self.at + used + record.len() > self.end {
            self.next_part();
        }
        if self.wants_to_grow() {
            return true;
        }
        let place = self.at;
        self.at += used + record.len();
        let half = self.part * HALF;
        let second = place >= half;
        let start = if second { place - half } else { place };
        let room = &mut self.ring[usize::from(second)][start..][..used + record.len()];
        room[..used].copy_from_slice(&[head, low, high][..used]);
        room[used..].copy_from_slice(record);
        let (line, tag) = (self.line(hash), tag(hash));
        let (line, slot) = [line, line ^ 1]
            .into_iter()
            .find_map(|line| Some((line, self.index[line].room(tag)?)))
            .unwrap_or((line, place % SLOTS));
        self.index[line].0[slot] = tag << PLACE_BITS | (place as u32 + 1);
        true
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

    use tokenizer_core::Rng;

    use super::*;

    #[test]
    fn gives_what_was_put_or_another_whole_record() {
        for bytes in [0, 12_000, 100_000] {
            let mut records = Records::new(bytes, 13);
            let mut rng = Rng::new(bytes as u64);
            let mut put: Vec<(u64, Vec<u8>)> = Vec::new();
            let (mut found, mut newest) = (0, 0);
            for i in 0..6_000u32 {
                let hash = rng.below(u64::MAX);
                // Who put it are the first bytes.
                let mut record = i.to_le_bytes().to_vec();
                record.extend((0..rng.below(251)).map(|at| (at * u64::from(i)) as u8));
                records.put(hash, &record);
                // A few are lost in between.
                if i % 7 == 0 && records.wants_to_grow() {
                    records.grow();
                }
                put.push((hash, record));
                for (hash, record) in put.iter().rev().take(100) {
                    let Some(place) = records.find(*hash) else { continue };
                    let got = records.at(place);
                    let who = u32::from_le_bytes(*got.first_chunk().unwrap());
                    assert_eq!(put[who as usize].1, got, "all of some record");
                    found += usize::from(got == record);
                    newest += usize::from(who == i);
                }
            }
            assert!(newest > 1_000 && found >= newest, "{bytes}: {found} {newest}");
        }
    }

    #[test]
    fn records_of_any_length_that_leaves_room_for_others() {
        let check = |bytes: usize, len: usize, fits: bool| {
            let mut records = Records::new(bytes, 13);
            let hash = (len as u64) << PLACE_BITS;
            let record: Vec<u8> = (0..len).map(|at| at as u8).collect();
            assert_eq!(records.put(hash, &record), fits, "{bytes} {len}");
            let found = records.find(hash).map(|place| records.at(place));
            assert_eq!(found, fits.then_some(&record[..]), "{bytes} {len}");
        };
        for len in [0, 1, 254, Records::SURE] {
            check(0, len, true);
        }
        check(0, 256, false);
        check(1 << 20, 256, true);
        check(1 << 20, 10_000, true);
        check(1 << 20, 30_000, false);
        check(usize::MAX, 1 << 16, false);
    }
}
