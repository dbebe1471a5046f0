//! A double array (Aoe 1989) over bytes: all pieces that begin at a place, one load a byte.

use alloc::vec;
use alloc::vec::Vec;

/// Maps byte strings to numbers; finds every key that is a prefix of a text.
///
/// A node is one 64-bit unit: its label, the value of the key that ends there, and where its
/// children are. The child for byte `c` of a node with base `b` is the unit `b ^ c`, if its label
/// is `c`; bases are never shared, so the label alone decides (the variant of Yata 2011). Children
/// lie in one block of 256 units, and the first block stays empty for nodes without children.
#[derive(Clone)]
pub(crate) struct DoubleArray {
    units: Vec<u64>,
    root: u32,
}

const LABEL_BITS: u32 = 9;
const LABEL: u64 = (1 << LABEL_BITS) - 1;
/// No byte has this label.
const EMPTY: u64 = 256;
const VALUE_BITS: u32 = 27;
const NO_VALUE: u32 = (1 << VALUE_BITS) - 1;
const BASE_SHIFT: u32 = LABEL_BITS + VALUE_BITS;
const MAX_UNITS: usize = 1 << (64 - BASE_SHIFT);
const BLOCK: usize = 256;
/// Units further back than this many blocks are no longer looked at for room.
const OPEN_BLOCKS: usize = 16;
/// How many places are tried for a node with several children before a new block is opened.
const MAX_TRIES: usize = 512;

/// The keys do not fit: more than 2^27 - 1 values or 2^28 units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl DoubleArray {
    /// The trie of `keys`: sorted by bytes, distinct, none empty.
    ///
    /// `O(bytes)`, times the tries for a free place.
    pub(crate) fn build(keys: &[(&[u8], u32)]) -> Result<Self, TooLarge> {
        debug_assert!(keys.windows(2).all(|w| w[0].0 < w[1].0), "keys are sorted and distinct");
        debug_assert!(keys.iter().all(|key| !key.0.is_empty()), "no key is empty");
        if keys.iter().any(|key| key.1 >= NO_VALUE) {
            return Err(TooLarge);
        }
        Builder::new().build(keys)
    }

    /// Calls `found(length, value)` for every key that `text` begins with, shortest first.
    #[inline(always)] // The loop of every encoder; the closure must fuse with it.
    pub(crate) fn prefixes(&self, text: &[u8], mut found: impl FnMut(usize, u32)) {
        let mut base = self.root;
        for (i, &byte) in text.iter().enumerate() {
            let Some(&unit) = self.units.get((base ^ u32::from(byte)) as usize) else { return };
            if unit & LABEL != u64::from(byte) {
                return;
            }
            let value = (unit >> LABEL_BITS) as u32 & NO_VALUE;
            if value != NO_VALUE {
                found(i + 1, value);
            }
            base = (unit >> BASE_SHIFT) as u32;
        }
    }

    /// The value of exactly this key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<u32> {
        let mut result = None;
        self.prefixes(key, |len, value| {
            if len == key.len() {
                result = Some(value);
            }
        });
        result
    }

    /// The number of units, 8 bytes each.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.units.len()
    }
}

struct Builder {
    units: Vec<u64>,
    /// Which numbers are the base of a node.
    used: Vec<bool>,
    /// The free units of the open blocks, as a doubly linked ring through unit 0, which is never
    /// given away.
    next: Vec<u32>,
    previous: Vec<u32>,
}

impl Builder {
    fn new() -> Self {
        Self {
            units: vec![EMPTY; BLOCK],
            used: vec![true; BLOCK],
            next: vec![0; BLOCK],
            previous: vec![0; BLOCK],
        }
    }

    fn build(mut self, keys: &[(&[u8], u32)]) -> Result<DoubleArray, TooLarge> {
        self.open_block()?;
        // The root is no unit: only its base is kept.
        let mut labels: Vec<(u8, usize, usize)> = Vec::new();
        // A range of keys with a common prefix of `depth` bytes, and the unit that stands for it.
        let mut stack: Vec<(Option<usize>, usize, usize, usize)> = vec![(None, 0, keys.len(), 0)];
        let mut root = 0;
        while let Some((unit, mut low, high, depth)) = stack.pop() {
            let mut value = NO_VALUE;
            if low < high && keys[low].0.len() == depth {
                value = keys[low].1;
                low += 1;
            }
            labels.clear();
            while low < high {
                let label = keys[low].0[depth];
                let first = low;
                while low < high && keys[low].0[depth] == label {
                    low += 1;
                }
                labels.push((label, first, low));
            }
            let base = if labels.is_empty() { 0 } else { self.place(&labels)? };
            match unit {
                None => root = base as u32,
                Some(unit) => {
                    self.units[unit] |=
                        u64::from(value) << LABEL_BITS | (base as u64) << BASE_SHIFT;
                }
            }
            for &(label, first, end) in labels.iter().rev() {
                let child = base ^ usize::from(label);
                self.units[child] = u64::from(label);
                self.unlink(child);
                stack.push((Some(child), first, end, depth + 1));
            }
        }
        Ok(DoubleArray { units: self.units, root })
    }

    /// Finds a base with room for these children, and marks it used.
    fn place(&mut self, labels: &[(u8, usize, usize)]) -> Result<usize, TooLarge> {
        let first = usize::from(labels[0].0);
        let mut unit = self.next[0] as usize;
        let mut tries = 0;
        while unit != 0 && tries < MAX_TRIES {
            let base = unit ^ first;
            if !self.used[base]
                && labels[1..].iter().all(|l| self.units[base ^ usize::from(l.0)] == EMPTY)
            {
                self.used[base] = true;
                return Ok(base);
            }
            unit = self.next[unit] as usize;
            tries += 1;
        }
        let base = self.open_block()?;
        self.used[base] = true;
        Ok(base)
    }

    /// Adds a block of free units and closes the one that is too far back. Returns its first unit.
    fn open_block(&mut self) -> Result<usize, TooLarge> {
        let start = self.units.len();
        if start + BLOCK > MAX_UNITS {
            return Err(TooLarge);
        }
        self.units.resize(start + BLOCK, EMPTY);
        self.used.resize(start + BLOCK, false);
        self.next.resize(start + BLOCK, 0);
        self.previous.resize(start + BLOCK, 0);
        let mut last = self.previous[0] as usize;
        for unit in start..start + BLOCK {
            self.next[last] = unit as u32;
            self.previous[unit] = last as u32;
            last = unit;
        }
        self.next[last] = 0;
        self.previous[0] = last as u32;
        if let Some(closed) = start.checked_sub(OPEN_BLOCKS * BLOCK)
            && closed >= BLOCK
        {
            for unit in closed..closed + BLOCK {
                if self.units[unit] == EMPTY {
                    self.unlink(unit);
                }
            }
        }
        Ok(start)
    }

    fn unlink(&mut self, unit: usize) {
        let (next, previous) = (self.next[unit], self.previous[unit]);
        self.next[previous as usize] = next;
        self.previous[next as usize] = previous;
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use tokenizer_core::Rng;

    use super::*;

    fn check(keys: &[Vec<u8>], texts: &[Vec<u8>]) {
        let map: BTreeMap<&[u8], u32> =
            keys.iter().enumerate().map(|(i, k)| (k.as_slice(), i as u32)).collect();
        let sorted: Vec<(&[u8], u32)> = map.iter().map(|(k, v)| (*k, *v)).collect();
        let trie = DoubleArray::build(&sorted).unwrap();
        for text in texts.iter().chain(keys) {
            let mut found = Vec::new();
            trie.prefixes(text, |len, value| found.push((len, value)));
            let expected: Vec<_> = (1..=text.len())
                .filter_map(|len| map.get(&text[..len]).map(|&value| (len, value)))
                .collect();
            assert_eq!(found, expected, "{text:?}");
            assert_eq!(trie.get(text), map.get(text.as_slice()).copied());
        }
    }

    #[test]
    fn finds_exactly_the_prefixes() {
        let mut rng = Rng::new(3);
        for round in 0..60 {
            let alphabet = [2, 4, 256][round % 3];
            let mut random = |max_len: u64| -> Vec<u8> {
                (0..=rng.below(max_len))
                    .map(|_| (rng.below(alphabet) * 255 / alphabet) as u8)
                    .collect()
            };
            let keys: Vec<_> = (0..round * 40).map(|_| random(8)).collect();
            let texts: Vec<_> = (0..200).map(|_| random(12)).collect();
            check(&keys, &texts);
        }
    }

    #[test]
    fn empty_trie_finds_nothing() {
        check(&[], &[b"".to_vec(), b"\0".to_vec(), b"abc".to_vec(), vec![255]]);
    }

    #[test]
    fn one_node_with_every_byte_below_it() {
        let keys: Vec<_> = (0..=255u8).flat_map(|b| [vec![b], vec![b'x', b]]).collect();
        check(&keys, &[b"xx".to_vec(), vec![0, 0], b"xyz".to_vec()]);
    }

    #[test]
    fn little_room_is_wasted() {
        let mut rng = Rng::new(9);
        let mut keys: Vec<Vec<u8>> = (0..20_000)
            .map(|_| {
                (0..3 + rng.below(8))
                    .map(|_| b'a' + (rng.below(26) * rng.below(26) / 26) as u8)
                    .collect()
            })
            .collect();
        keys.sort();
        keys.dedup();
        let nodes: usize = keys.len() * 5; // At least the last letters.
        let sorted: Vec<(&[u8], u32)> = keys.iter().map(|k| (k.as_slice(), 0)).collect();
        let trie = DoubleArray::build(&sorted).unwrap();
        assert!(trie.len() < nodes * 2, "{} units for {} keys", trie.len(), keys.len());
    }
}
