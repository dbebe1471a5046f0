//! Lays out a trie as a double array.

use alloc::vec;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

/// The unit is a value.
pub(crate) const VALUE: u32 = 1 << 31;
/// A value hangs below the node.
pub(crate) const HAS_VALUE: u32 = 1 << 8;
/// The offset counts in blocks of 256 units.
pub(crate) const FAR: u32 = 1 << 9;

/// How many of the last units are searched for a place.
const SEARCHED: usize = 16 * 256;

/// The units for sorted, distinct keys without NUL, at least one; `None` if they do not fit.
///
/// Node by node, each in the first place where its children fit. Nodes with the same below them share
/// their children. `O(n)` look-ups for n bytes of keys.
pub(crate) fn units(keys: &[(&[u8], u32)]) -> Option<Vec<u32>> {
    let nodes = Nodes::of(keys);
    let mut layout = Layout::new();
    // A unit, and the node that it is.
    let mut open = vec![(0, nodes.root)];
    let mut labels = Vec::new();
    // Where the children of a node are.
    let mut bases: Vec<Option<usize>> = vec![None; nodes.len()];
    while let Some((at, node)) = open.pop() {
        let edges = nodes.edges(node);
        if let Some(base) = bases[node as usize]
            && let Some(offset) = offset_bits(at ^ base)
        {
            let has_value = if edges[0].label == 0 { HAS_VALUE } else { 0 };
            layout.units[at] |= offset | has_value;
            continue;
        }
        labels.clear();
        labels.extend(edges.iter().map(|edge| edge.label));
        let base = layout.place(at, &labels)?;
        bases[node as usize] = Some(base);
        for &Edge { label, to } in edges {
            let child = base ^ usize::from(label);
            if label == 0 {
                layout.units[at] |= HAS_VALUE;
                layout.units[child] = VALUE | to;
            } else {
                layout.units[child] = u32::from(label);
                open.push((child, to));
            }
        }
    }
    Some(layout.finish())
}

/// The nodes of a trie, those with the same below them being one: the smallest automaton that reads
/// the keys.
struct Nodes {
    /// Where the edges of each node end.
    ends: Vec<u32>,
    edges: Vec<Edge>,
    root: u32,
}

/// To the node behind a byte; label 0 ends a key and leads to its value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Edge {
    label: u8,
    to: u32,
}

impl Nodes {
    /// Key by key: what the next one does not begin with is finished, from its end on (Daciuk,
    /// Mihov, Watson & Watson 2000, section 3).
    fn of(keys: &[(&[u8], u32)]) -> Self {
        let mut nodes = Self { ends: Vec::new(), edges: Vec::new(), root: 0 };
        let mut known = HashTable::new();
        let hasher = DefaultHashBuilder::default();
        // The edges of the nodes on the way to the last key, so far.
        let mut path: Vec<Vec<Edge>> = vec![Vec::new()];
        let mut last: &[u8] = &[];
        for &(key, value) in keys {
            let shared = last.iter().zip(key).take_while(|(a, b)| a == b).count();
            nodes.finish(&mut path, last, shared, &mut known, &hasher);
            if path.len() <= key.len() {
                path.resize(key.len() + 1, Vec::new());
            }
            path[key.len()].push(Edge { label: 0, to: value });
            last = key;
        }
        nodes.finish(&mut path, last, 0, &mut known, &hasher);
        nodes.root = nodes.number(&path[0], &mut known, &hasher);
        nodes
    }

    /// Gives numbers to the nodes on the path deeper than `shared`.
    fn finish(
        &mut self,
        path: &mut [Vec<Edge>],
        key: &[u8],
        shared: usize,
        known: &mut HashTable<u32>,
        hasher: &DefaultHashBuilder,
    ) {
        for depth in (shared + 1..=key.len()).rev() {
            let to = self.number(&path[depth], known, hasher);
            path[depth].clear();
            path[depth - 1].push(Edge { label: key[depth - 1], to });
        }
    }

    /// The number of the node with these edges.
    fn number(
        &mut self,
        edges: &[Edge],
        known: &mut HashTable<u32>,
        hasher: &DefaultHashBuilder,
    ) -> u32 {
        let number = self.ends.len() as u32;
        let entry = known.entry(
            hasher.hash_one(edges),
            |&other| self.edges(other) == edges,
            |&other| hasher.hash_one(self.edges(other)),
        );
        match entry {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                entry.insert(number);
                self.edges.extend_from_slice(edges);
                self.ends.push(self.edges.len() as u32);
                number
            }
        }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn edges(&self, node: u32) -> &[Edge] {
        let start = node.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.edges[start as usize..self.ends[node as usize] as usize]
    }
}

/// The units so far.
struct Layout {
    units: Vec<u32>,
    /// Whether a unit is taken, a bit each.
    taken: Vec<u64>,
    /// Whether the children of some node are at this base.
    based: Vec<bool>,
    /// No unit before this one is free.
    first_free: usize,
}

impl Layout {
    fn new() -> Self {
        let mut layout = Self { units: vec![], taken: vec![], based: vec![], first_free: 1 };
        layout.grow();
        layout.take(0);
        // The children of the root may not be at base 0, for its offset must not be 0.
        layout.based[0] = true;
        layout
    }

    /// Takes the units for the children of the node at `at` and returns their base.
    fn place(&mut self, at: usize, labels: &[u8]) -> Option<usize> {
        self.first_free = self.next_free(self.first_free);
        // Old blocks are nearly full; to search them again and again would take quadratic time.
        let mut free = self.first_free.max(self.units.len().saturating_sub(SEARCHED));
        let base = loop {
            free = self.next_free(free);
            if free == self.units.len() {
                self.grow();
            }
            let base = free ^ usize::from(labels[0]);
            let fits = |&label: &u8| !self.is_taken(base ^ usize::from(label));
            if !self.based[base] && labels.iter().all(fits) && offset_bits(at ^ base).is_some() {
                break base;
            }
            free += 1;
            if free > 1 << 29 {
                return None;
            }
        };
        self.based[base] = true;
        for &label in labels {
            self.take(base ^ usize::from(label));
        }
        self.units[at] |= offset_bits(at ^ base)?;
        Some(base)
    }

    fn is_taken(&self, unit: usize) -> bool {
        self.taken[unit / 64] >> (unit % 64) & 1 == 1
    }

    fn take(&mut self, unit: usize) {
        self.taken[unit / 64] |= 1 << (unit % 64);
    }

    /// The first unit from this one on that is not taken; behind the last one if all are.
    fn next_free(&self, unit: usize) -> usize {
        let mut at = unit / 64;
        // Units before the first count as taken.
        let mut before = (1u64 << (unit % 64)) - 1;
        while let Some(taken) = self.taken.get(at) {
            let taken = taken | before;
            if taken != u64::MAX {
                return at * 64 + taken.trailing_ones() as usize;
            }
            before = 0;
            at += 1;
        }
        self.units.len()
    }

    /// Adds a block. Whole blocks of 256 units keep every child of a base in the array.
    fn grow(&mut self) {
        let len = self.units.len() + 256;
        self.units.resize(len, 0);
        self.taken.resize(len / 64, 0);
        self.based.resize(len, false);
    }

    fn finish(mut self) -> Vec<u32> {
        // A free unit must not look like a child of the base whose label-th unit it would be.
        for at in 0..self.units.len() {
            if !self.is_taken(at) {
                let unlike = (0..=255_usize).find(|&label| !self.based[at ^ label]);
                self.units[at] = unlike.unwrap_or(0) as u32;
            }
        }
        self.units
    }
}

/// The bits that say `offset`, if it can be said.
fn offset_bits(offset: usize) -> Option<u32> {
    match u32::try_from(offset).ok()? {
        near if near < 1 << 21 => Some(near << 10),
        far if far < 1 << 29 && far & 0xFF == 0 => Some(far << 2 | FAR),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The same by the definition: two nodes share their children if the ends of keys below them, and
    /// their values, are the same.
    fn naive(keys: &[(&[u8], u32)]) -> Option<Vec<u32>> {
        let mut layout = Layout::new();
        let mut open = vec![(0, keys, 0)];
        let mut shared: BTreeMap<Vec<(&[u8], u32)>, usize> = BTreeMap::new();
        while let Some((at, keys, depth)) = open.pop() {
            let label = |key: &[u8]| key.get(depth).copied().unwrap_or(0);
            let groups = || keys.chunk_by(|a, b| label(a.0) == label(b.0));
            let labels: Vec<u8> = groups().map(|group| label(group[0].0)).collect();
            let below: Vec<_> = keys.iter().map(|&(key, value)| (&key[depth..], value)).collect();
            if let Some(&base) = shared.get(&below)
                && let Some(offset) = offset_bits(at ^ base)
            {
                layout.units[at] |= offset | if labels[0] == 0 { HAS_VALUE } else { 0 };
                continue;
            }
            let base = layout.place(at, &labels)?;
            shared.insert(below, base);
            for group in groups() {
                let child = base ^ usize::from(label(group[0].0));
                if label(group[0].0) == 0 {
                    layout.units[at] |= HAS_VALUE;
                    layout.units[child] = VALUE | group[0].1;
                } else {
                    layout.units[child] = u32::from(label(group[0].0));
                    open.push((child, group, depth + 1));
                }
            }
        }
        Some(layout.finish())
    }

    proptest! {
        #[test]
        fn nodes_are_shared_as_the_definition_says(
            keys in prop::collection::btree_map(
                prop::collection::vec(1u8..6, 1..7), 0u32..4, 1..300),
        ) {
            let keys: Vec<(&[u8], u32)> = keys.iter().map(|(key, &v)| (&key[..], v)).collect();
            prop_assert_eq!(units(&keys), naive(&keys));
        }

        #[test]
        fn bytes_of_all_values_are_laid_out_alike(
            keys in prop::collection::btree_map(
                prop::collection::vec(1u8..=255, 1..4), any::<u16>(), 1..2000),
        ) {
            let keys: Vec<(&[u8], u32)> =
                keys.iter().map(|(key, &v)| (&key[..], u32::from(v))).collect();
            prop_assert_eq!(units(&keys), naive(&keys));
        }
    }
}
