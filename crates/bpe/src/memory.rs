//! Pieces met lately, in a few bytes each.

use piece_table::Records;
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
    /// The numbers of the tokens.
    records: Records,
}

/// How many bytes the tokens of a piece take on average.
const USUAL: usize = 12;

/// A number of more than 15 bits has this bit, and its others in a third byte.
const WIDE: u16 = 1 << 15;

impl Memory {
    /// More bytes it has no use for.
    pub(crate) const MOST: usize = Records::MOST;

    /// A memory of about that many bytes, a few KB at least and at most [`MOST`](Self::MOST).
    pub(crate) fn new(bytes: usize) -> Self {
        Self { records: Records::new(bytes, USUAL) }
    }

    /// Whether it takes nothing more before [`grow`](Self::grow) is called.
    pub(crate) fn wants_to_grow(&self) -> bool {
        self.records.wants_to_grow()
    }

    /// Makes the memory as large as was said.
    pub(crate) fn grow(&mut self) {
        self.records.grow();
    }

    /// Asks for the line of a hash.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.records.prefetch(hash);
    }

    /// Where the tokens of a piece of this hash may be. The memory is asked for.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64) -> Option<usize> {
        self.records.find(hash)
    }

    /// The numbers of the tokens at a place that [`find`](Self::find) gave.
    #[inline(always)]
    pub(crate) fn numbers(&self, place: usize) -> impl Iterator<Item = u32> {
        let mut rest = self.records.at(place);
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
        let mut record = [0; Records::SURE];
        let mut len = 0;
        for token in tokens {
            let number = token.id.0;
            let low = number as u16;
            let Some(room) = record.get_mut(len..len + 3).filter(|_| number < 1 << 23) else {
                return;
            };
            if number < WIDE.into() {
                room[..2].copy_from_slice(&low.to_le_bytes());
                len += 2;
            } else {
                room[..2].copy_from_slice(&(low | WIDE).to_le_bytes());
                room[2] = (number >> 15) as u8;
                len += 3;
            }
        }
        self.records.put(hash, &record[..len]);
    }
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
