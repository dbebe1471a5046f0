use alloc::vec;
use alloc::vec::Vec;

/// How often every pair of neighbouring symbols occurs and where: open addressing with linear
/// probing, everything about a pair in one slot of 32 bytes.
///
/// Pairs are shared out to many small tables by their hash. Each grows by itself and by a third
/// only: a table that is twice as large beside the old one would be the peak of memory.
pub(crate) struct PairCounts {
    tables: Vec<Table>,
}

struct Table {
    slots: Vec<Entry>,
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

/// Where an entry is: good until the next insertion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    table: u32,
    slot: u32,
}

const EMPTY: Entry = Entry { key: u64::MAX, count: 0, start: 0, len: 0 };

/// So many bits of a hash choose the table.
const TABLE_BITS: u32 = 6;
const FEWEST_SLOTS: usize = 16;

impl PairCounts {
    pub(crate) fn new() -> Self {
        let table = || Table { slots: vec![EMPTY; FEWEST_SLOTS], len: 0 };
        Self { tables: (0..1 << TABLE_BITS).map(|_| table()).collect() }
    }

    /// Where a pair is, if it was ever inserted.
    #[inline]
    pub(crate) fn find(&self, left: u32, right: u32) -> Option<Place> {
        let key = key(left, right);
        let (table, rest) = split(hash(key));
        let Table { slots, .. } = &self.tables[table as usize];
        let slot = probe(slots, key, rest);
        (slots[slot].key == key).then_some(Place { table, slot: slot as u32 })
    }

    /// Where a pair is, inserted with count 0 if it is new.
    #[inline]
    pub(crate) fn find_or_insert(&mut self, left: u32, right: u32) -> Place {
        let key = key(left, right);
        let (number, rest) = split(hash(key));
        let table = &mut self.tables[number as usize];
        let mut slot = probe(&table.slots, key, rest);
        if table.slots[slot].key != key {
            // At most 5/8 full.
            if (table.len + 1) * 8 > table.slots.len() * 5 {
                table.grow();
                slot = probe(&table.slots, key, rest);
            }
            table.slots[slot] = Entry { key, ..EMPTY };
            table.len += 1;
        }
        Place { table: number, slot: slot as u32 }
    }

    #[inline]
    pub(crate) fn entry(&self, at: Place) -> &Entry {
        &self.tables[at.table as usize].slots[at.slot as usize]
    }

    #[inline]
    pub(crate) fn entry_mut(&mut self, at: Place) -> &mut Entry {
        &mut self.tables[at.table as usize].slots[at.slot as usize]
    }

    /// All pairs, in no order that means anything, and where they are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Place, u32, u32)> + '_ {
        self.tables.iter().zip(0..).flat_map(|(table, number)| {
            let slots = table.slots.iter().zip(0..).filter(|(entry, _)| entry.key != EMPTY.key);
            slots.map(move |(entry, slot)| {
                (Place { table: number, slot }, (entry.key >> 32) as u32, entry.key as u32)
            })
        })
    }
}

impl Table {
    /// Makes room for a third more. Pairs that are used up and have left no place go.
    #[cold]
    fn grow(&mut self) {
        let alive = |entry: &&Entry| entry.key != EMPTY.key && (entry.count > 0 || entry.len > 0);
        let kept = self.slots.iter().filter(alive).count();
        let wanted = (kept + kept / 3) * 8 / 5;
        let mut slots = vec![EMPTY; wanted.max(FEWEST_SLOTS)];
        for entry in self.slots.iter().filter(alive) {
            let (_, rest) = split(hash(entry.key));
            let slot = probe(&slots, entry.key, rest);
            slots[slot] = *entry;
        }
        *self = Self { slots, len: kept };
    }
}

/// The slot of a pair, or the one where it would be.
#[inline]
fn probe(slots: &[Entry], key: u64, rest: u32) -> usize {
    let mut at = ((u64::from(rest) * slots.len() as u64) >> 32) as usize;
    while slots[at].key != key && slots[at].key != EMPTY.key {
        at += 1;
        if at == slots.len() {
            at = 0;
        }
    }
    at
}

#[inline]
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

#[inline]
fn hash(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The table of a hash, and the next 32 bits of it.
#[inline]
fn split(hash: u64) -> (u32, u32) {
    ((hash >> (64 - TABLE_BITS)) as u32, ((hash << TABLE_BITS) >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    #[test]
    fn pairs_are_found_while_tables_grow_and_those_that_are_used_up_go() {
        let mut rng = tokenizer_core::Rng::new(4);
        let (mut pairs, mut known) = (PairCounts::new(), BTreeMap::new());
        for round in 0..200_000u64 {
            let (left, right) = (rng.below(3000) as u32, rng.below(300) as u32);
            let at = pairs.find_or_insert(left, right);
            let entry = pairs.entry_mut(at);
            let count: &mut u64 = known.entry((left, right)).or_default();
            assert_eq!(entry.count, *count, "{left} {right}");
            // Every fourth is used up.
            *count = if round % 4 == 0 { 0 } else { round };
            entry.count = *count;
        }
        for (&(left, right), &count) in &known {
            let found = pairs.find(left, right).map_or(0, |at| pairs.entry(at).count);
            assert_eq!(found, count, "{left} {right}");
        }
        let listed: BTreeMap<(u32, u32), u64> =
            pairs.iter().map(|(at, left, right)| ((left, right), pairs.entry(at).count)).collect();
        assert!(listed.iter().all(|(pair, count)| known[pair] == *count));
        assert_eq!(pairs.iter().count(), listed.len());
        assert!(listed.len() < known.len(), "nothing went");
    }
}
