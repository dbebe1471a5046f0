use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use tokenizer_core::Array;

use crate::image::{ImageError, Reader, Writer};

/// A symbol of the merge process: a token id, or beyond the vocabulary a character that tokens
/// contain but that is no token itself.
pub(crate) type Symbol = u32;

/// The symbol that merges with nothing.
pub(crate) const NO_SYMBOL: Symbol = Symbol::MAX;

/// The answer for a pair that does not merge: its rank loses against every rank.
pub(crate) const NO_MERGE: Merge = Merge(u64::MAX);

/// What a pair becomes, and when: the rank in the high half, the product in the low half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Merge(u64);

impl Merge {
    #[inline]
    pub(crate) fn new(rank: u32, product: Symbol) -> Self {
        Self(u64::from(rank) << 32 | u64::from(product))
    }

    /// The lower, the earlier; `u32::MAX` for [`NO_MERGE`] only.
    #[inline]
    pub(crate) fn rank(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(crate) fn product(self) -> Symbol {
        self.0 as u32
    }
}

/// Which pairs of symbols merge.
#[derive(Clone)]
pub(crate) enum PairTable {
    /// Any ranks.
    Wide(WideTable),
    /// Ranks are the products' symbols.
    Narrow(Arc<NarrowTable>),
}

impl PairTable {
    /// The merge of a pair, or [`NO_MERGE`].
    #[inline]
    pub(crate) fn get(&self, left: Symbol, right: Symbol) -> Merge {
        match self {
            Self::Wide(table) => table.get(left, right),
            Self::Narrow(table) => match table.get(left, right) {
                Some(product) => Merge::new(product, product),
                None => NO_MERGE,
            },
        }
    }

    /// The highest rank, 0 if there is no pair.
    pub(crate) fn max_rank(&self) -> u32 {
        match self {
            Self::Wide(table) => table.max_rank,
            Self::Narrow(table) => table.max_product,
        }
    }
}

/// Open addressing with linear probing, at most half full.
///
/// 16 bytes a slot, so that a probe touches one cache line and is most often one comparison.
#[derive(Clone)]
pub(crate) struct WideTable {
    slots: Vec<Slot>,
    shift: u32,
    len: usize,
    max_rank: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    key: u64,
    merge: Merge,
}

/// The key of (NO_SYMBOL, NO_SYMBOL), which is never inserted: looking that pair up finds an empty
/// slot and so the right answer.
const EMPTY: Slot = Slot { key: u64::MAX, merge: NO_MERGE };

impl WideTable {
    /// A table that holds `pairs` pairs without growing.
    pub(crate) fn with_capacity(pairs: usize) -> Self {
        let slots = (pairs.max(2) * 2).next_power_of_two();
        Self { slots: vec![EMPTY; slots], shift: 64 - slots.trailing_zeros(), len: 0, max_rank: 0 }
    }

    /// The merge of a pair, or [`NO_MERGE`].
    #[inline]
    pub(crate) fn get(&self, left: Symbol, right: Symbol) -> Merge {
        let key = key(left, right);
        let mut at = self.home(key);
        loop {
            let slot = &self.slots[at];
            if slot.key == key || slot.key == EMPTY.key {
                return slot.merge;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Sets the merge of a pair; the last one said wins.
    pub(crate) fn insert(&mut self, left: Symbol, right: Symbol, merge: Merge) {
        debug_assert!(left != NO_SYMBOL && right != NO_SYMBOL && merge != NO_MERGE);
        if (self.len + 1) * 2 > self.slots.len() {
            let mut grown = Self::with_capacity(self.slots.len());
            for slot in self.slots.iter().filter(|slot| slot.key != EMPTY.key) {
                grown.place(slot.key, slot.merge);
            }
            grown.max_rank = self.max_rank;
            *self = grown;
        }
        self.max_rank = self.max_rank.max(merge.rank());
        self.place(key(left, right), merge);
    }

    fn place(&mut self, key: u64, merge: Merge) {
        let mut at = self.home(key);
        while self.slots[at].key != key {
            if self.slots[at].key == EMPTY.key {
                self.len += 1;
                break;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = Slot { key, merge };
    }

    /// Fibonacci hashing: the high bits of the product depend on every bit of the key.
    #[inline]
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }
}

#[inline]
fn key(left: Symbol, right: Symbol) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// Pairs and what they become, without ranks: 8 bytes a slot, at most 4/7 full.
#[derive(Clone)]
pub(crate) struct NarrowTable {
    /// The complement of `left << 43 | right << 22 | product`; 0 where free, so that what is free need not be
    /// written.
    slots: Array<u64>,
    max_product: Symbol,
}

/// Symbols are less than all ones, so that no pair looks like a free slot.
const SYMBOL_BITS: u32 = 21;
const PRODUCT_BITS: u32 = u64::BITS - 2 * SYMBOL_BITS;
const FREE: u64 = 0;
const SLOTS_OF_A_PAGE: usize = 4096 / size_of::<u64>();

/// What a slot holds.
#[inline(always)]
fn narrow_slot(left: Symbol, right: Symbol, product: Symbol) -> u64 {
    !((u64::from(left) << SYMBOL_BITS | u64::from(right)) << PRODUCT_BITS | u64::from(product))
}

impl NarrowTable {
    /// A table for that many pairs of symbols below `n_symbols`. `None` where they are too many.
    pub(crate) fn new(n_symbols: usize, pairs: usize) -> Option<Self> {
        if n_symbols >= 1 << SYMBOL_BITS {
            return None;
        }
        // At least one slot stays free, where searches end.
        let mut slots = vec![FREE; pairs * 7 / 4 + 2];
        // Nearly every page is used, and memory that is read before it is written comes from the system in
        // two steps, which take twice as long.
        for slot in slots.iter_mut().step_by(SLOTS_OF_A_PAGE) {
            *slot = core::hint::black_box(FREE);
        }
        Some(Self { slots: slots.into(), max_product: 0 })
    }

    /// What a pair becomes.
    #[inline(always)]
    pub(crate) fn get(&self, left: Symbol, right: Symbol) -> Option<Symbol> {
        // Too large a symbol, as NO_SYMBOL, must not look like another pair.
        if (left | right) >> SYMBOL_BITS != 0 {
            return None;
        }
        let key = narrow_slot(left, right, 0) >> PRODUCT_BITS;
        let mut at = self.home(key);
        loop {
            let slot = self.slots[at];
            if slot >> PRODUCT_BITS == key {
                return Some(!slot as Symbol & ((1 << PRODUCT_BITS) - 1));
            }
            if slot == FREE {
                return None;
            }
            at = self.after(at);
        }
    }

    /// The pairs and what they become, in no particular order, and for each free slot the greatest numbers:
    /// no product is as great as that of a free slot, and which slots are free cannot be guessed.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Symbol, Symbol, Symbol)> {
        let mask = (1 << SYMBOL_BITS) - 1;
        self.slots.iter().map(move |&slot| {
            let key = !slot >> PRODUCT_BITS;
            let product = !slot & ((1 << PRODUCT_BITS) - 1);
            ((key >> SYMBOL_BITS) as Symbol, (key & mask) as Symbol, product as Symbol)
        })
    }

    /// The greatest product, 0 if there is no pair.
    pub(crate) fn max_product(&self) -> Symbol {
        self.max_product
    }

    /// Adds a pair that was not added before.
    pub(crate) fn insert(&mut self, left: Symbol, right: Symbol, product: Symbol) {
        let key = narrow_slot(left, right, 0) >> PRODUCT_BITS;
        let mut at = self.home(key);
        let slots = self.slots.to_mut();
        while slots[at] != FREE {
            at = if at + 1 == slots.len() { 0 } else { at + 1 };
        }
        slots[at] = narrow_slot(left, right, product);
        self.max_product = self.max_product.max(product);
    }

    pub(crate) fn write(&self, image: &mut Writer) {
        image.array(&[self.max_product]);
        image.array(&self.slots);
    }

    pub(crate) fn read(image: &mut Reader) -> Result<Self, ImageError> {
        let [max_product] = image.numbers()?;
        let slots = image.array()?;
        image.check(!slots.is_empty() && max_product >> PRODUCT_BITS == 0, "pairs")?;
        Ok(Self { slots, max_product })
    }

    #[inline(always)]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    /// Fibonacci hashing, scaled to any number of slots.
    #[inline(always)]
    fn home(&self, key: u64) -> usize {
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        ((hash * self.slots.len() as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_inserted_last_and_nothing_else() {
        let mut table = WideTable::with_capacity(0);
        for i in 0..5000u32 {
            table.insert(i, i.wrapping_mul(7919) % 1000, Merge::new(i, i + 1));
        }
        table.insert(3, 3 * 7919 % 1000, Merge::new(9, 9));
        for i in 0..5000u32 {
            let expected = if i == 3 { Merge::new(9, 9) } else { Merge::new(i, i + 1) };
            assert_eq!(table.get(i, i.wrapping_mul(7919) % 1000), expected);
            assert_eq!(table.get(i, 1000), NO_MERGE);
        }
        assert_eq!(table.get(NO_SYMBOL, NO_SYMBOL), NO_MERGE);
        assert_eq!(table.len, 5000);
    }

    #[test]
    fn narrow_tables_find_what_was_inserted_and_nothing_else() {
        let mut table = NarrowTable::new(6000, 5000).unwrap();
        let other = |i: u32| i.wrapping_mul(7919) % 1000;
        for i in 0..5000 {
            table.insert(i, other(i), i + 1);
        }
        for i in 0..5000 {
            assert_eq!(table.get(i, other(i)), Some(i + 1));
            assert_eq!(table.get(i, 1000), None);
            assert_eq!(table.get(i, other(i) | 1 << 21), None);
        }
        assert_eq!(table.get(NO_SYMBOL, NO_SYMBOL), None);
        assert_eq!(PairTable::Narrow(Arc::new(table)).max_rank(), 5000);
        assert!(NarrowTable::new(1 << 21, 1).is_none());
        assert_eq!(NarrowTable::new(9, 0).unwrap().get(1, 2), None);
    }
}
