use alloc::vec;
use alloc::vec::Vec;

/// How often every pair of neighbouring symbols occurs and where: open addressing with linear
/// probing, everything about a pair in one slot of 32 bytes.
pub(crate) struct PairCounts {
    slots: Vec<Entry>,
    shift: u32,
    len: usize,
}

/// A pair: its count, and its list of places as a stretch of the pool of places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    key: u64,
    pub(crate) count: u64,
    /// Every place where the pair occurs is in `pool[start..start + len]`, ascending; places
    /// where it does not occur any more may still be there.
    pub(crate) start: usize,
    pub(crate) len: u32,
}

const EMPTY: Entry = Entry { key: u64::MAX, count: 0, start: 0, len: 0 };

impl PairCounts {
    pub(crate) fn with_capacity(pairs: usize) -> Self {
        let slots = slots_for(pairs);
        Self { slots: vec![EMPTY; slots], shift: 64 - slots.trailing_zeros(), len: 0 }
    }

    /// Makes room: the next `more` insertions move no slot.
    pub(crate) fn reserve(&mut self, more: usize) {
        // At most 5/8 full.
        if (self.len + more) * 8 <= self.slots.len() * 5 {
            return;
        }
        // Pairs that are used up and have left no place go.
        let alive = |entry: &&Entry| entry.key != EMPTY.key && (entry.count > 0 || entry.len > 0);
        let kept = self.slots.iter().filter(alive).count();
        let wanted = kept + more + kept / 8;
        if slots_for(wanted) <= self.slots.len() {
            // Enough are gone: the others are put aside, for a second table would be the peak of
            // memory.
            let entries: Vec<Entry> = self.slots.iter().filter(alive).copied().collect();
            self.slots.fill(EMPTY);
            self.len = entries.len();
            for entry in entries {
                let at = self.slot(entry.key);
                self.slots[at] = entry;
            }
            return;
        }
        let mut grown = Self::with_capacity(wanted);
        for entry in self.slots.iter().filter(alive) {
            let at = grown.slot(entry.key);
            grown.slots[at] = *entry;
            grown.len += 1;
        }
        *self = grown;
    }

    /// The slot of a pair, if it was ever inserted. Good until the next [`reserve`](Self::reserve).
    #[inline]
    pub(crate) fn find(&self, left: u32, right: u32) -> Option<usize> {
        let key = key(left, right);
        let at = self.slot(key);
        (self.slots[at].key == key).then_some(at)
    }

    /// The slot of a pair, inserted with count 0 if it is new; room must have been reserved.
    #[inline]
    pub(crate) fn find_or_insert(&mut self, left: u32, right: u32) -> usize {
        let key = key(left, right);
        let at = self.slot(key);
        if self.slots[at].key != key {
            self.slots[at] = Entry { key, ..EMPTY };
            self.len += 1;
        }
        at
    }

    #[inline]
    pub(crate) fn entry(&self, slot: usize) -> &Entry {
        &self.slots[slot]
    }

    #[inline]
    pub(crate) fn entry_mut(&mut self, slot: usize) -> &mut Entry {
        &mut self.slots[slot]
    }

    /// All pairs, in no order that means anything, with their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u32, u32)> + '_ {
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.key != EMPTY.key)
            .map(|(at, entry)| (at, (entry.key >> 32) as u32, entry.key as u32))
    }

    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mut at = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        while self.slots[at].key != key && self.slots[at].key != EMPTY.key {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }
}

/// How many slots so many pairs take: at most 5/8 are full.
fn slots_for(pairs: usize) -> usize {
    (pairs.max(8) * 8).div_ceil(5).next_power_of_two()
}

#[inline]
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}
