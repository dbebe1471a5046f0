use alloc::vec::Vec;

use tokenizer_core::PieceCounts;

use crate::Alphabet;
use crate::train::plan::GAP;
use crate::train::weights::Weights;
use crate::train::{BpeTrainer, Plan, Ties, TrainError};

/// All distinct pieces as one array of symbols with a gap before, between and behind them.
///
/// A symbol that was merged covers several slots. Its first slot and its last one hold the symbol
/// and how many there are, so both neighbours of any symbol are found in its cache line, and what
/// stands in the array is 4 bytes for each symbol that there was in the beginning.
pub(crate) struct Arena {
    slots: Vec<u32>,
    weights: Weights,
}

/// From the lowest bit: 24 of the symbol, 7 of the number of slots, and [`INNER`]. A number that 7 bits
/// do not hold is written into slots behind the first and before the last one, which are free then.
const SYMBOL: u32 = (1 << LEN_SHIFT) - 1;
const LEN_SHIFT: u32 = 24;
/// As a number of slots: so many, or more.
const LONG: u32 = 127;
/// Set in all slots of a symbol but its first one.
const INNER: u32 = 1 << 31;
/// A gap between pieces.
pub(crate) const BREAK: u32 = SYMBOL;

/// The most symbols, with the gaps: their places are counted in 32 bits.
const MOST_SLOTS: u64 = u32::MAX as u64 - 1;

impl Arena {
    /// Pieces lie in the order in which they were first seen where the tie rule asks for it, else
    /// the most frequent come first, so that equal counts are next to each other.
    pub(crate) fn new(
        trainer: &BpeTrainer,
        plan: &Plan,
        counts: &PieceCounts,
    ) -> Result<Self, TrainError> {
        let tokens = plan.vocab.len() as u64;
        if tokens > u64::from(BREAK) {
            return Err(TrainError::too_many_tokens());
        }
        let pieces = match trainer.ties {
            Ties::FirstOccurrence => counts.by_first_seen(),
            _ => counts.by_count(),
        };
        let mut arena = Self { slots: Vec::new(), weights: Weights::default() };
        if trainer.unit == Alphabet::Byte {
            arena.slots.reserve_exact(counts.piece_bytes() + counts.len() + 1);
        }
        let (mut symbols, mut buffer) = (Vec::new(), Vec::new());
        let mut windows = 0u64;
        arena.slots.push(one(BREAK));
        for piece in pieces {
            symbols.clear();
            plan.symbols(trainer, piece.piece, &mut buffer, &mut symbols);
            let slots = arena.slots.len() as u64 + symbols.len() as u64 + 1;
            if slots > MOST_SLOTS {
                return Err(TrainError::corpus_too_large(slots));
            }
            // No pair count can pass this sum, so none is checked later.
            windows = piece
                .count
                .checked_mul(symbols.len() as u64)
                .and_then(|more| windows.checked_add(more))
                .ok_or_else(TrainError::count_overflow)?;
            arena.slots.extend(symbols.iter().map(|&s| one(if s == GAP { BREAK } else { s })));
            arena.slots.push(one(BREAK));
            arena.weights.extend_to(arena.slots.len() as u32, piece.count);
        }
        Ok(arena)
    }

    /// Every pair of neighbours while each symbol covers one slot: its place, its parts, the
    /// weight of its piece.
    pub(crate) fn initial_pairs(&self) -> impl Iterator<Item = (u32, u32, u32, u64)> + '_ {
        let places = self.slots.windows(2).zip(0u32..).filter_map(|(pair, at)| {
            let (left, right) = (pair[0] & SYMBOL, pair[1] & SYMBOL);
            (left != BREAK && right != BREAK).then_some((at, left, right))
        });
        let mut runs = self.weights.iter();
        let (mut end, mut weight) = (0, 0);
        places.map(move |(at, left, right)| {
            while at >= end {
                (end, weight) = runs.next().expect("every place has a weight");
            }
            (at, left, right, weight)
        })
    }

    /// Where the right part begins and where it ends, if the pair still stands at this place.
    #[inline]
    pub(crate) fn pair_at(&self, at: u32, left: u32, right: u32) -> Option<(u32, u32)> {
        let slot = self.slots[at as usize];
        if slot & (INNER | SYMBOL) != left {
            return None;
        }
        let middle = at + self.slots_of(slot, at, Side::First);
        let slot = self.slots[middle as usize];
        if slot & (INNER | SYMBOL) != right {
            return None;
        }
        Some((middle, middle + self.slots_of(slot, middle, Side::First)))
    }

    /// The symbol that ends before this place, and where it begins; [`BREAK`] if there is none.
    #[inline]
    pub(crate) fn before(&self, at: u32) -> (u32, u32) {
        let last = at - 1;
        let slot = self.slots[last as usize];
        (slot & SYMBOL, at - self.slots_of(slot, last, Side::Last))
    }

    /// The symbol that begins at this place; [`BREAK`] if there is none.
    #[inline]
    pub(crate) fn symbol(&self, at: u32) -> u32 {
        self.slots[at as usize] & SYMBOL
    }

    /// How often the piece of the symbol at this place occurs.
    #[inline]
    pub(crate) fn weight(&self, at: u32) -> u64 {
        self.weights.at(at)
    }

    /// Makes one symbol of `at..middle` and `middle..end`.
    #[inline]
    pub(crate) fn join(&mut self, at: u32, middle: u32, end: u32, symbol: u32) {
        let len = end - at;
        let head = len.min(LONG) << LEN_SHIFT | symbol;
        self.slots[middle as usize] = INNER;
        self.slots[at as usize] = head;
        self.slots[end as usize - 1] = INNER | head;
        if len >= LONG {
            for (i, part) in [len & SYMBOL, len >> LEN_SHIFT].into_iter().enumerate() {
                self.slots[at as usize + 1 + i] = INNER | part;
                self.slots[end as usize - 2 - i] = INNER | part;
            }
        }
    }

    /// How many slots the symbol covers whose first or last `slot` is at this place.
    #[inline]
    fn slots_of(&self, slot: u32, at: u32, side: Side) -> u32 {
        let len = slot >> LEN_SHIFT & LONG;
        if len < LONG {
            return len;
        }
        let at = at as usize;
        let [low, high] = match side {
            Side::First => [at + 1, at + 2],
            Side::Last => [at - 1, at - 2],
        };
        self.slots[low] & SYMBOL | (self.slots[high] & !INNER) << LEN_SHIFT
    }
}

/// Which slot of a symbol.
#[derive(Clone, Copy)]
enum Side {
    First,
    Last,
}

/// The slot of a symbol that covers no other.
fn one(symbol: u32) -> u32 {
    1 << LEN_SHIFT | symbol
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_of_any_length_is_found_from_both_sides() {
        let len = 1000;
        let mut arena = Arena { slots: Vec::new(), weights: Weights::default() };
        arena.slots.push(one(BREAK));
        arena.slots.extend((0..len).map(|_| one(7)));
        arena.slots.push(one(BREAK));
        arena.weights.extend_to(len + 2, 3);
        // One more of the letters at a time, from the right.
        for end in 2..=len {
            let at = len - end + 1;
            let right = if end == 2 { 7 } else { 8 };
            let (middle, behind) = arena.pair_at(at, 7, right).expect("the pair stands");
            assert_eq!((middle, behind), (at + 1, len + 1));
            arena.join(at, middle, behind, 8);
            assert_eq!((arena.symbol(at), arena.symbol(behind)), (8, BREAK));
            assert_eq!(arena.before(behind), (8, at));
            assert_eq!(arena.before(at).0, if end == len { BREAK } else { 7 });
            // Nothing begins inside of it.
            assert!((at + 1..=len).all(|inner| (0..9).all(|s| {
                arena.pair_at(inner, s, BREAK).is_none() && arena.pair_at(inner, BREAK, s).is_none()
            })));
        }
    }
}
