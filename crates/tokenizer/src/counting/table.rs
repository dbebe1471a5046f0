//! The table in which pieces are counted: a slot of 32 bytes holds a short piece itself.

use std::cmp::Ordering;

use tokenizer_core::{PieceCount, Span};

/// Counts of pieces: open addressing with linear probing.
///
/// The key of a piece of up to 15 bytes is these bytes and their number, so that equal keys are
/// equal pieces and the order of keys is that of pieces. Longer pieces, which are rare in text, lie
/// in an arena. Counts are not checked here: no more can be added than a text has bytes.
pub(super) struct CountTable {
    slots: Vec<Slot>,
    shift: u32,
    len: usize,
    arena: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Slot {
    key: Key,
    /// 0 for a piece whose occurrences were all taken back: it was never there.
    count: u64,
    first_seen: u64,
}

/// A short piece: its bytes, the first one highest, and in the lowest byte their number. A long one:
/// its first ten bytes, five bytes of where it is in the arena, and [`LONG`].
type Key = u128;

const EMPTY: Key = 0;
const LONG: u8 = u8::MAX;
const FREE: Slot = Slot { key: EMPTY, count: 0, first_seen: 0 };

/// The longest piece that is its own key.
const SHORT: usize = 15;
const MIN_SLOTS: usize = 1 << 10;
/// Of long pieces: the bytes of the key that the piece begins with.
const PREFIX: Key = !((1 << 48) - 1);

/// By length, which bytes of a key are of the piece.
const MASKS: [Key; SHORT + 1] = {
    let mut masks = [0; SHORT + 1];
    let mut len = 1;
    while len <= SHORT {
        masks[len] = Key::MAX << (128 - 8 * len);
        len += 1;
    }
    masks
};

impl CountTable {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![FREE; MIN_SLOTS],
            shift: 64 - MIN_SLOTS.ilog2(),
            len: 0,
            arena: Vec::new(),
        }
    }

    /// Counts the pieces of `text`; the first byte of it is at `base` in the corpus.
    #[inline]
    pub(super) fn add_spans(&mut self, text: &[u8], spans: &[Span], base: u64) {
        for span in spans {
            let position = base + span.start as u64;
            match text.get(span.start..span.start + 16) {
                Some(bytes) if span.len() <= SHORT => {
                    let bytes: [u8; 16] = bytes.try_into().expect("16 bytes");
                    let len = span.len();
                    let key = Key::from_be_bytes(bytes) & MASKS[len] | len as Key;
                    self.add_key(key, position);
                }
                _ => self.add(&text[span.range()], position),
            }
        }
    }

    /// Counts one occurrence of a piece that is not empty, at a position of the corpus.
    pub(super) fn add(&mut self, piece: &[u8], position: u64) {
        match short_key(piece) {
            Some(key) => self.add_key(key, position),
            None => self.add_long(piece, position),
        }
    }

    #[inline]
    fn add_key(&mut self, key: Key, position: u64) {
        let mut at = (hash(key) >> self.shift) as usize;
        loop {
            let slot = &mut self.slots[at];
            if slot.key == key {
                return slot.count_at(position);
            }
            if slot.key == EMPTY {
                *slot = Slot { key, count: 1, first_seen: position };
                return self.grow_if_full();
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    #[cold]
    fn add_long(&mut self, piece: &[u8], position: u64) {
        match self.find_long(piece) {
            Ok(at) => self.slots[at].count_at(position),
            Err(at) => {
                let offset = self.arena.len() as u64;
                assert!(offset < 1 << 40, "an arena of a terabyte");
                let mut bytes = [0; 16];
                bytes[..10].copy_from_slice(&piece[..10]);
                bytes[10..15].copy_from_slice(&offset.to_be_bytes()[3..]);
                bytes[15] = LONG;
                let key = Key::from_be_bytes(bytes);
                self.arena.extend_from_slice(&(piece.len() as u32).to_le_bytes());
                self.arena.extend_from_slice(piece);
                self.slots[at] = Slot { key, count: 1, first_seen: position };
                self.grow_if_full();
            }
        }
    }

    fn find_long(&self, piece: &[u8]) -> Result<usize, usize> {
        let mut prefix = [0; 16];
        prefix[..10].copy_from_slice(&piece[..10]);
        let prefix = Key::from_be_bytes(prefix);
        let mut at = (hash_long(piece) >> self.shift) as usize;
        loop {
            let key = self.slots[at].key;
            if key == EMPTY {
                return Err(at);
            }
            if key as u8 == LONG && key & PREFIX == prefix && self.long(key) == piece {
                return Ok(at);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Takes one occurrence of a piece back that was counted before.
    pub(super) fn remove(&mut self, piece: &[u8]) {
        let at = match short_key(piece) {
            None => self.find_long(piece).expect("the piece was counted"),
            Some(key) => {
                let mut at = (hash(key) >> self.shift) as usize;
                while self.slots[at].key != key {
                    assert!(self.slots[at].key != EMPTY, "the piece was counted");
                    at = (at + 1) & (self.slots.len() - 1);
                }
                at
            }
        };
        self.slots[at].count -= 1;
    }

    #[inline]
    fn grow_if_full(&mut self) {
        self.len += 1;
        if self.len * 4 > self.slots.len() * 3 {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = vec![FREE; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, slots);
        self.shift -= 1;
        for slot in old.into_iter().filter(|slot| slot.key != EMPTY) {
            let hash = if slot.key as u8 == LONG {
                hash_long(self.long(slot.key))
            } else {
                hash(slot.key)
            };
            let mut at = (hash >> self.shift) as usize;
            while self.slots[at].key != EMPTY {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = slot;
        }
    }

    /// The most memory in bytes that is held while pieces of `more` bytes together are added.
    pub(super) fn bytes_after(&self, more: usize) -> usize {
        // There are few different pieces of less than three bytes.
        let len = self.len + more / 3 + 1024;
        let mut slots = self.slots.len();
        let mut bytes = slots;
        while len * 4 > slots * 3 {
            bytes = slots * 3; // The old ones and the new.
            slots *= 2;
        }
        let arena = self.arena.len() + more + more / 4;
        let arena = if arena > self.arena.capacity() {
            self.arena.capacity() + arena.max(2 * self.arena.capacity())
        } else {
            self.arena.capacity()
        };
        bytes * size_of::<Slot>() + arena
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pieces in order, in place of the table; it is empty then, and holds no memory.
    pub(super) fn take_sorted(&mut self) -> Sorted {
        let table = std::mem::replace(self, Self::new());
        let mut slots = table.slots;
        slots.retain(|slot| slot.count > 0);
        let arena = table.arena;
        slots.sort_unstable_by(|a, b| compare(&arena, a.key, b.key));
        Sorted { slots, arena }
    }

    fn long(&self, key: Key) -> &[u8] {
        long(&self.arena, key)
    }
}

impl Slot {
    #[inline]
    fn count_at(&mut self, position: u64) {
        if self.count == 0 || position < self.first_seen {
            self.first_seen = position;
        }
        self.count += 1;
    }
}

/// Counted pieces in ascending order.
pub(super) struct Sorted {
    slots: Vec<Slot>,
    arena: Vec<u8>,
}

impl Sorted {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Piece `i`; `bytes` is memory for it.
    pub(super) fn get<'b>(&'b self, i: usize, bytes: &'b mut [u8; 16]) -> PieceCount<'b> {
        let slot = &self.slots[i];
        let piece = match slot.key as u8 {
            LONG => long(&self.arena, slot.key),
            len => {
                *bytes = slot.key.to_be_bytes();
                &bytes[..usize::from(len)]
            }
        };
        PieceCount { piece, count: slot.count, first_seen: slot.first_seen }
    }

    /// The order of two pieces of two lists.
    pub(super) fn compare(&self, i: usize, other: &Self, j: usize) -> Ordering {
        let (a, b) = (self.slots[i].key, other.slots[j].key);
        if a as u8 != LONG && b as u8 != LONG {
            return a.cmp(&b);
        }
        let (mut x, mut y) = ([0; 16], [0; 16]);
        self.get(i, &mut x).piece.cmp(other.get(j, &mut y).piece)
    }
}

fn compare(arena: &[u8], a: Key, b: Key) -> Ordering {
    let prefixes = (a & PREFIX).cmp(&(b & PREFIX));
    if prefixes.is_ne() {
        return prefixes;
    }
    match (a as u8, b as u8) {
        (LONG, LONG) => long(arena, a).cmp(long(arena, b)),
        (LONG, len) => long(arena, a).cmp(&b.to_be_bytes()[..usize::from(len)]),
        (len, LONG) => a.to_be_bytes()[..usize::from(len)].cmp(long(arena, b)),
        _ => a.cmp(&b),
    }
}

fn long(arena: &[u8], key: Key) -> &[u8] {
    let offset = (key >> 8 & ((1 << 40) - 1)) as usize;
    let len: [u8; 4] = arena[offset..offset + 4].try_into().expect("4 bytes");
    let start = offset + 4;
    &arena[start..start + u32::from_le_bytes(len) as usize]
}

fn short_key(piece: &[u8]) -> Option<Key> {
    if piece.len() > SHORT {
        return None;
    }
    let mut bytes = [0; 16];
    bytes[..piece.len()].copy_from_slice(piece);
    bytes[15] = piece.len() as u8;
    Some(Key::from_be_bytes(bytes))
}

#[inline]
fn hash(key: Key) -> u64 {
    fold((key >> 64) as u64 ^ 0x9E37_79B9_7F4A_7C15, key as u64 ^ 0xD6E8_FEB8_6659_FD93)
}

fn hash_long(piece: &[u8]) -> u64 {
    let mut state = piece.len() as u64 ^ 0x9E37_79B9_7F4A_7C15;
    for chunk in piece.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = fold(state ^ u64::from_le_bytes(word), 0xD6E8_FEB8_6659_FD93);
    }
    state
}

/// The upper bits depend on all bits of both.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizer_core::PieceCounts;

    use super::*;

    proptest! {
        #[test]
        fn counts_as_the_counter_does(
            pieces in prop::collection::vec("[ab\\x00é]{1,24}", 0..400),
            taken_back in prop::collection::vec("[ab\\x00é]{1,24}", 0..40),
        ) {
            let (mut table, mut naive) = (CountTable::new(), PieceCounts::counter());
            for (position, piece) in pieces.iter().enumerate() {
                table.add(piece.as_bytes(), position as u64);
                naive.add(piece.as_bytes(), 1, position as u64).unwrap();
            }
            let known: std::collections::HashSet<&str> = pieces.iter().map(|p| &p[..]).collect();
            for piece in taken_back.iter().filter(|piece| !known.contains(&piece[..])) {
                table.add(piece.as_bytes(), 0);
                table.remove(piece.as_bytes());
            }
            let sorted = table.take_sorted();
            let naive = naive.finish();
            prop_assert_eq!(sorted.len(), naive.len());
            for (i, expected) in naive.iter().enumerate() {
                let mut bytes = [0; 16];
                prop_assert_eq!(sorted.get(i, &mut bytes), expected);
            }
        }
    }

    #[test]
    fn many_pieces_of_all_lengths_stay_apart() {
        let piece = |i: usize| format!("{}{i}", "x".repeat(i % 19));
        let mut table = CountTable::new();
        for round in 0..2 {
            for i in 0..20_000 {
                table.add(piece(i).as_bytes(), (round * 20_000 + i) as u64);
            }
        }
        let sorted = table.take_sorted();
        assert_eq!(sorted.len(), 20_000);
        let (mut before, mut bytes) = (Vec::new(), [0; 16]);
        for i in 0..sorted.len() {
            let found = sorted.get(i, &mut bytes);
            assert!(found.piece > &before[..] && found.count == 2 && found.first_seen < 20_000);
            before = found.piece.to_vec();
        }
        assert!(table.is_empty());
    }
}
