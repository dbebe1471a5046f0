use alloc::vec::Vec;

use hashbrown::HashMap;
use tokenizer_core::PieceCounts;

use crate::Alphabet;
use crate::train::plan::GAP;
use crate::train::{BpeTrainer, Plan, TrainError};

/// All distinct pieces as one array of symbols with a gap before, between and behind them.
///
/// A symbol that was merged covers several slots. Its first slot holds the symbol, its second and
/// its last one hold how many there are, so both neighbours of any symbol are found in its cache
/// line, and what stands in the array is 8 bytes for each symbol that there was in the beginning.
pub(crate) struct Arena {
    slots: Vec<Slot>,
    /// The distinct counts of pieces.
    weights: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Slot {
    /// A symbol where one begins; [`BREAK`]; [`INNER`] or the symbol with [`LAST`] set in the
    /// slots after the first.
    symbol: u32,
    /// Where a symbol begins: the index of the weight of its piece. In the second and the last
    /// slot of a symbol: how many slots it covers.
    extra: u32,
}

/// Set in the last slot of a symbol that covers more than one.
const LAST: u32 = 1 << 31;
/// A slot in the middle of a symbol, or the second one.
const INNER: u32 = u32::MAX;
/// A gap between pieces.
pub(crate) const BREAK: u32 = LAST - 1;

/// The most symbols, with the gaps: their places are counted in 32 bits.
const MOST_SLOTS: u64 = u32::MAX as u64 - 1;

impl Arena {
    /// Pieces lie in the order in which they were first seen.
    pub(crate) fn new(
        trainer: &BpeTrainer,
        plan: &Plan,
        counts: &PieceCounts,
    ) -> Result<Self, TrainError> {
        let pieces = counts.by_first_seen();
        let mut arena = Self { slots: Vec::new(), weights: Vec::new() };
        if trainer.unit == Alphabet::Byte {
            let bytes: usize = pieces.iter().map(|piece| piece.piece.len() + 1).sum();
            arena.slots.reserve_exact(bytes + 1);
        }
        let mut weight_index: HashMap<u64, u32> = HashMap::new();
        let (mut symbols, mut buffer) = (Vec::new(), Vec::new());
        let mut windows = 0u64;
        arena.slots.push(Slot { symbol: BREAK, extra: 0 });
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
            let extra = *weight_index.entry(piece.count).or_insert_with(|| {
                arena.weights.push(piece.count);
                (arena.weights.len() - 1) as u32
            });
            arena.slots.extend(
                symbols.iter().map(|&symbol| Slot {
                    symbol: if symbol == GAP { BREAK } else { symbol },
                    extra,
                }),
            );
            arena.slots.push(Slot { symbol: BREAK, extra: 0 });
        }
        Ok(arena)
    }

    /// Every pair of neighbours while each symbol covers one slot: its place, its parts, the
    /// weight of its piece.
    pub(crate) fn initial_pairs(&self) -> impl Iterator<Item = (u32, u32, u32, u64)> + '_ {
        self.slots.windows(2).zip(0u32..).filter_map(|(pair, at)| {
            let (left, right) = (pair[0].symbol, pair[1].symbol);
            (left != BREAK && right != BREAK)
                .then(|| (at, left, right, self.weights[pair[0].extra as usize]))
        })
    }

    /// Where the right part begins and where it ends, if the pair still stands at this place.
    #[inline]
    pub(crate) fn pair_at(&self, at: u32, left: u32, right: u32) -> Option<(u32, u32)> {
        if self.slots[at as usize].symbol != left {
            return None;
        }
        let middle = at + self.slots_of(at);
        if self.slots[middle as usize].symbol != right {
            return None;
        }
        Some((middle, middle + self.slots_of(middle)))
    }

    /// The symbol that ends before this place, and where it begins; [`BREAK`] if there is none.
    #[inline]
    pub(crate) fn before(&self, at: u32) -> (u32, u32) {
        let slot = self.slots[at as usize - 1];
        match slot.symbol {
            LAST.. => (slot.symbol & !LAST, at - slot.extra),
            symbol => (symbol, at - 1),
        }
    }

    /// The symbol that begins at this place; [`BREAK`] if there is none.
    #[inline]
    pub(crate) fn symbol(&self, at: u32) -> u32 {
        self.slots[at as usize].symbol
    }

    /// How often the piece of the symbol at this place occurs.
    #[inline]
    pub(crate) fn weight(&self, at: u32) -> u64 {
        self.weights[self.slots[at as usize].extra as usize]
    }

    /// Makes one symbol of `at..middle` and `middle..end`.
    #[inline]
    pub(crate) fn join(&mut self, at: u32, middle: u32, end: u32, symbol: u32) {
        let extra = end - at;
        self.slots[at as usize].symbol = symbol;
        self.slots[middle as usize].symbol = INNER;
        self.slots[at as usize + 1] = Slot { symbol: INNER, extra };
        self.slots[end as usize - 1] = Slot { symbol: symbol | LAST, extra };
    }

    #[inline]
    fn slots_of(&self, at: u32) -> u32 {
        let next = self.slots[at as usize + 1];
        if next.symbol >= LAST { next.extra } else { 1 }
    }
}
