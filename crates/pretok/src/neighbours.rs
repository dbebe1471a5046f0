//! Places of a text by the two bytes that meet there.

use crate::Backend;
use crate::simd::{Block, FLAG, Simd, Table, Work};

/// Looks at each byte of a text and the one before it, 64 bytes at a time: for callers that cut text
/// where certain bytes meet.
///
/// Two tables give each byte seven bits, one for where it stands before a place, one for where it
/// stands behind; where the two bytes at a place have a bit in common, they *meet*. So seven sets of
/// pairs can be told, each "any of these bytes before any of those". The eighth bit of the second table
/// is a flag. All bytes from 0x80 on are the same to the tables.
///
/// ```
/// use pretok::Neighbours;
///
/// // A lower case letter before an upper case one; flagged are digits.
/// let (mut before, mut behind) = ([0; 129], [0; 129]);
/// before[97..123].fill(1);
/// behind[65..91].fill(1);
/// behind[48..58].fill(Neighbours::FLAG);
/// let neighbours = Neighbours::new(&before, &behind);
/// let found = neighbours.look(b"camelCase2", 0);
/// assert_eq!((found.met, found.flagged), (1 << 5, 1 << 9));
/// ```
#[derive(Clone, Debug)]
pub struct Neighbours {
    tables: [Table; 2],
    backend: Backend,
}

/// What is found in 64 bytes of a text; the lowest bit is the first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// The bytes that meet the byte before them. The first byte of a text meets none.
    pub met: u64,
    /// The bytes that are flagged.
    pub flagged: u64,
    /// The bytes from 0x80 on.
    pub high: u64,
    /// The bytes from 0xC0 on: those that begin a character of several.
    pub leads: u64,
}

impl Neighbours {
    /// The flag of the second table.
    pub const FLAG: u8 = FLAG;

    /// From what bytes say before a place and behind it. The last entries are for all bytes from
    /// 0x80 on.
    #[must_use]
    pub fn new(before: &[u8; 129], behind: &[u8; 129]) -> Self {
        Self::with_backend(before, behind, Backend::best())
    }

    /// As [`new`](Self::new), with a back end, or the portable one where the machine has it not.
    #[must_use]
    pub fn with_backend(before: &[u8; 129], behind: &[u8; 129], backend: Backend) -> Self {
        let table = |of: &[u8; 129]| Table {
            ascii: *of.first_chunk().expect("129 are more than 128"),
            high: of[128],
        };
        Self { tables: [table(before), table(behind)], backend }
    }

    /// Looks at the 64 bytes at `at`, or as many as there are.
    ///
    /// # Panics
    ///
    /// If `at` lies behind the text.
    #[must_use]
    pub fn look(&self, text: &[u8], at: usize) -> Met {
        let mut found = [Met::default()];
        self.look_into(text, at, &mut found);
        found[0]
    }

    /// Looks at as many blocks of 64 bytes from `at` on as there is room for in `found`, or as many as
    /// there are, and returns how many.
    ///
    /// # Panics
    ///
    /// If `at` lies behind the text.
    #[inline]
    pub fn look_into(&self, text: &[u8], at: usize, found: &mut [Met]) -> usize {
        assert!(at <= text.len(), "{at} lies behind the text of {} bytes", text.len());
        let blocks = found.len().min((text.len() - at).div_ceil(BLOCK));
        let found = &mut found[..blocks];
        self.backend.run(Look { tables: &self.tables, text, at, found });
        blocks
    }
}

const BLOCK: usize = size_of::<Block>();

struct Look<'a> {
    tables: &'a [Table; 2],
    text: &'a [u8],
    at: usize,
    found: &'a mut [Met],
}

impl Work for Look<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tables, text, mut at, found } = self;
        let mut before = match at.checked_sub(1) {
            Some(before) => tables[0].get(text[before]),
            None => 0,
        };
        for found in found {
            let rest = &text[at..];
            match rest.first_chunk::<BLOCK>() {
                Some(block) => {
                    *found = look(simd, block, before, tables);
                    before = tables[0].get(block[BLOCK - 1]);
                }
                None => {
                    let mut block = [0; BLOCK];
                    block[..rest.len()].copy_from_slice(rest);
                    let all = look(simd, &block, before, tables);
                    let there = (1 << rest.len()) - 1;
                    *found = Met {
                        met: all.met & there,
                        flagged: all.flagged & there,
                        high: all.high & there,
                        leads: all.leads & there,
                    };
                }
            }
            at += BLOCK;
        }
    }
}

#[inline(always)]
fn look<S: Simd>(simd: S, block: &Block, before: u8, tables: &[Table; 2]) -> Met {
    let meet = simd.meet(block, before, tables);
    let (high, leads) = match simd.high(block) {
        0 => (0, 0),
        high => (high, simd.leads(block)),
    };
    Met { met: meet.common, flagged: meet.flagged, high, leads }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use tokenizer_core::Rng;

    use super::*;

    /// The bits of all blocks, byte by byte.
    fn naive(before: &[u8; 129], behind: &[u8; 129], text: &[u8], at: usize) -> Vec<Met> {
        let entry = |table: &[u8; 129], byte: u8| table[usize::from(byte.min(128))];
        let mut found = Vec::new();
        for (i, &byte) in text.iter().enumerate().skip(at) {
            let bit = (i - at) % 64;
            if bit == 0 {
                found.push(Met::default());
            }
            let met = i > 0 && entry(before, text[i - 1]) & entry(behind, byte) & 0x7F != 0;
            let last = found.last_mut().unwrap();
            last.met |= u64::from(met) << bit;
            last.flagged |= u64::from(entry(behind, byte) >= 0x80) << bit;
            last.high |= u64::from(byte >= 0x80) << bit;
            last.leads |= u64::from(byte >= 0xC0) << bit;
        }
        found
    }

    #[test]
    fn every_back_end_sees_every_place_of_a_text() {
        let mut rng = Rng::new(3);
        for round in 0..300usize {
            let mut table = || core::array::from_fn(|_| (rng.below(256) & rng.below(256)) as u8);
            let (before, behind) = (table(), table());
            let text: Vec<u8> =
                (0..round).map(|_| (rng.below(256) & rng.below(256)) as u8).collect();
            let at = rng.below(round as u64 + 1) as usize;
            let expected = naive(&before, &behind, &text, at);
            for backend in Backend::ALL.into_iter().filter(|b| b.is_available()) {
                let neighbours = Neighbours::with_backend(&before, &behind, backend);
                let mut found = [Met::default(); 8];
                let blocks = neighbours.look_into(&text, at, &mut found);
                assert_eq!(found[..blocks], expected, "{backend:?} {at} {text:?}");
                let mut first = [Met::default()];
                let blocks = neighbours.look_into(&text, at, &mut first);
                assert_eq!(first[..blocks], expected[..expected.len().min(1)]);
            }
        }
    }
}
