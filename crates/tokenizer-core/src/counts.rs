use alloc::vec::Vec;
use core::fmt;
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// How often each distinct piece occurs in a corpus, and where it occurred first: the only input
/// of every trainer.
///
/// Sorted by the bytes of the pieces. Counts are 64-bit and every sum is checked. Where pieces
/// came from (threads, files, machines) leaves no trace: counting in any order and merging in any
/// grouping gives equal tables, as long as the positions that the caller gives are the same.
///
/// Memory is the bytes of the distinct pieces plus 24 bytes each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceCounts {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    total: u64,
    extent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// Where the piece ends in the arena; it begins where the one before it ends.
    end: u64,
    count: u64,
    first_seen: u64,
}

/// One distinct piece of a [`PieceCounts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceCount<'c> {
    /// The bytes of the piece, never empty.
    pub piece: &'c [u8],
    /// How often it occurs, at least 1.
    pub count: u64,
    /// The position of its first occurrence: byte offset in the corpus, taken as one text.
    pub first_seen: u64,
}

impl PieceCounts {
    /// An empty table that accepts pieces in any order.
    #[must_use]
    pub fn counter() -> PieceCounter {
        PieceCounter::default()
    }

    /// The counts of pieces given with their number of occurrences, first seen in this order.
    ///
    /// # Errors
    ///
    /// As [`PieceCounter::add`].
    pub fn from_pairs<P: AsRef<[u8]>>(
        pairs: impl IntoIterator<Item = (P, u64)>,
    ) -> Result<Self, CountError> {
        let mut counter = Self::counter();
        for (position, (piece, count)) in pairs.into_iter().enumerate() {
            counter.add(piece.as_ref(), count, position as u64)?;
        }
        Ok(counter.finish())
    }

    /// An empty table with room for so many pieces of so many bytes together.
    #[must_use]
    pub fn with_capacity(pieces: usize, bytes: usize) -> Self {
        let (arena, entries) = (Vec::with_capacity(bytes), Vec::with_capacity(pieces));
        Self { arena, entries, ..Self::default() }
    }

    /// The bytes of all distinct pieces together.
    #[must_use]
    pub fn piece_bytes(&self) -> usize {
        self.arena.len()
    }

    /// The number of distinct pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of occurrences of all pieces together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The length of the counted text in positions: one past the largest position seen, or more
    /// where the counter was told so. [`append`](Self::append) shifts the other table by this.
    #[must_use]
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// The distinct pieces, sorted by their bytes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = PieceCount<'_>> + Clone + '_ {
        (0..self.len()).map(|i| self.view(i))
    }

    /// The distinct pieces in the order in which they first occurred.
    #[must_use]
    pub fn by_first_seen(&self) -> Vec<PieceCount<'_>> {
        let mut pieces: Vec<_> = self.iter().collect();
        // Pieces of one table can share a position only if the caller said so; the bytes decide.
        pieces.sort_by(|a, b| (a.first_seen, a.piece).cmp(&(b.first_seen, b.piece)));
        pieces
    }

    /// The distinct pieces, the most frequent first; equally frequent ones by their bytes.
    #[must_use]
    pub fn by_count(&self) -> Vec<PieceCount<'_>> {
        let mut pieces: Vec<_> = self.iter().collect();
        // Stable, and they are in order of their bytes.
        pieces.sort_by_key(|piece| core::cmp::Reverse(piece.count));
        pieces
    }

    /// One piece, if it occurs.
    #[must_use]
    pub fn get(&self, piece: &[u8]) -> Option<PieceCount<'_>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.bytes(middle).cmp(piece) {
                core::cmp::Ordering::Less => low = middle + 1,
                core::cmp::Ordering::Equal => return Some(self.view(middle)),
                core::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Appends a piece that sorts behind all pieces so far: how a sorted stream becomes a table
    /// without hashing or sorting. The extent grows to the end of the piece.
    ///
    /// # Errors
    ///
    /// If the total or the end of the piece passes 64 bits, or the piece is 4 GiB or longer; `self`
    /// is unchanged then.
    ///
    /// # Panics
    ///
    /// If the piece is empty, its count is 0, or it does not sort behind the last.
    pub fn push_sorted(&mut self, piece: PieceCount<'_>) -> Result<(), CountError> {
        assert!(
            !piece.piece.is_empty() && piece.count > 0,
            "an empty piece or count cannot be kept"
        );
        if let Some(last) = self.len().checked_sub(1) {
            assert!(self.bytes(last) < piece.piece, "pieces must be pushed in ascending order");
        }
        let overflow = || CountError { _private: () };
        u32::try_from(piece.piece.len()).map_err(|_| overflow())?;
        let end = piece.first_seen.checked_add(piece.piece.len() as u64).ok_or_else(overflow)?;
        self.total = self.total.checked_add(piece.count).ok_or_else(overflow)?;
        self.extent = self.extent.max(end);
        self.push(piece);
        Ok(())
    }

    /// Says that the counted text reaches to `extent`, even if no piece lies at its end.
    pub fn extend_to(&mut self, extent: u64) {
        self.extent = self.extent.max(extent);
    }

    /// Adds `other` as the counts of the same text positions (another thread's share): positions
    /// are kept as they are. Commutative and associative. `O(n)` for n distinct pieces together.
    ///
    /// # Errors
    ///
    /// If a count passes 64 bits; `self` is unchanged then.
    pub fn merge(&mut self, other: &Self) -> Result<(), CountError> {
        self.merge_shifted(other, 0)
    }

    /// Adds `other` as the counts of a text that follows: its positions are moved behind ours.
    /// Associative. The order matters only to what reads positions (the first-occurrence tie rule).
    ///
    /// # Errors
    ///
    /// If a count or position passes 64 bits; `self` is unchanged then.
    pub fn append(&mut self, other: &Self) -> Result<(), CountError> {
        self.merge_shifted(other, self.extent)
    }

    fn merge_shifted(&mut self, other: &Self, shift: u64) -> Result<(), CountError> {
        let overflow = || CountError { _private: () };
        let mut merged = Self {
            arena: Vec::with_capacity(self.arena.len().max(other.arena.len())),
            entries: Vec::with_capacity(self.len().max(other.len())),
            total: self.total.checked_add(other.total).ok_or_else(overflow)?,
            extent: other.extent.checked_add(shift).ok_or_else(overflow)?.max(self.extent),
        };
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => core::cmp::Ordering::Less,
                (None, Some(_)) => core::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.piece.cmp(b.piece),
            };
            let mine = if order.is_le() { left.next() } else { None };
            let theirs = if order.is_ge() { right.next() } else { None };
            let theirs = theirs.map(|t| PieceCount { first_seen: t.first_seen + shift, ..t });
            let entry = match (mine, theirs) {
                (Some(a), Some(b)) => PieceCount {
                    piece: a.piece,
                    count: a.count.checked_add(b.count).ok_or_else(overflow)?,
                    first_seen: a.first_seen.min(b.first_seen),
                },
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => unreachable!("one side was peeked"),
            };
            merged.push(entry);
        }
        drop((left, right));
        *self = merged;
        Ok(())
    }

    fn push(&mut self, entry: PieceCount<'_>) {
        self.arena.extend_from_slice(entry.piece);
        let end = self.arena.len() as u64;
        self.entries.push(Entry { end, count: entry.count, first_seen: entry.first_seen });
    }

    fn view(&self, i: usize) -> PieceCount<'_> {
        let Entry { count, first_seen, .. } = self.entries[i];
        PieceCount { piece: self.bytes(i), count, first_seen }
    }

    fn bytes(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.entries[i - 1].end };
        &self.arena[start as usize..self.entries[i].end as usize]
    }
}

/// Counts pieces as they come; [`finish`](Self::finish) sorts them into a [`PieceCounts`].
#[derive(Clone, Default)]
pub struct PieceCounter {
    counts: PieceCounts,
    index: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

impl PieceCounter {
    /// Counts `count` more occurrences of `piece`, the first of them at `position` (byte offset in
    /// the corpus, taken as one text). An empty piece or a count of 0 adds nothing.
    ///
    /// Amortised: one hash and one comparison of the piece.
    ///
    /// # Errors
    ///
    /// If a count passes 64 bits, or the piece is 4 GiB or longer.
    pub fn add(&mut self, piece: &[u8], count: u64, position: u64) -> Result<(), CountError> {
        if piece.is_empty() || count == 0 {
            return Ok(());
        }
        let overflow = CountError { _private: () };
        if u32::try_from(piece.len()).is_err() {
            return Err(overflow);
        }
        let end = position.checked_add(piece.len() as u64).ok_or(overflow.clone())?;
        let total = self.counts.total.checked_add(count).ok_or(overflow)?;
        let hash = self.hasher.hash_one(piece);
        let counts = &mut self.counts;
        match self.index.find(hash, |&i| counts.bytes(i) == piece) {
            Some(&i) => {
                let entry = &mut counts.entries[i];
                // No single count passes the total, which was checked.
                entry.count += count;
                entry.first_seen = entry.first_seen.min(position);
            }
            None => {
                let i = counts.entries.len();
                counts.push(PieceCount { piece, count, first_seen: position });
                let hasher = &self.hasher;
                self.index.insert_unique(hash, i, |&i| hasher.hash_one(counts.bytes(i)));
            }
        }
        counts.total = total;
        counts.extent = counts.extent.max(end);
        Ok(())
    }

    /// Says that the counted text reaches to `extent`, even if no piece lies at its end.
    pub fn extend_to(&mut self, extent: u64) {
        self.counts.extent = self.counts.extent.max(extent);
    }

    /// The number of distinct pieces so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether nothing was counted yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The sorted table. `O(n log n)` comparisons for n distinct pieces.
    #[must_use]
    pub fn finish(self) -> PieceCounts {
        let unsorted = self.counts;
        drop(self.index);
        let mut order: Vec<usize> = (0..unsorted.len()).collect();
        order.sort_unstable_by(|&a, &b| unsorted.bytes(a).cmp(unsorted.bytes(b)));
        let mut sorted = PieceCounts {
            arena: Vec::with_capacity(unsorted.arena.len()),
            entries: Vec::with_capacity(unsorted.len()),
            total: unsorted.total,
            extent: unsorted.extent,
        };
        for i in order {
            sorted.push(unsorted.view(i));
        }
        sorted
    }
}

impl fmt::Debug for PieceCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceCounter").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A count or a position passed 64 bits, or a piece is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountError {
    _private: (),
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a piece count or position passes 18446744073709551615, or a piece passes 4294967295 bytes"
        )
    }
}

impl core::error::Error for CountError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(&str, u64)]) -> PieceCounts {
        PieceCounts::from_pairs(pairs.iter().copied()).unwrap()
    }

    #[test]
    fn counts_are_sorted_and_summed() {
        let table = counts(&[("b", 2), ("a", 1), ("b", 3), ("", 9), ("z", 0)]);
        let seen: Vec<_> = table.iter().map(|p| (p.piece, p.count, p.first_seen)).collect();
        assert_eq!(seen, [(&b"a"[..], 1, 1), (&b"b"[..], 5, 0)]);
        assert_eq!(table.total(), 6);
        assert_eq!(table.get(b"b").map(|p| p.count), Some(5));
        assert_eq!(table.get(b"z"), None);
    }

    #[test]
    fn pushing_in_order_is_counting() {
        let table = counts(&[("b", 2), ("a", 1), ("ab", 3)]);
        let mut pushed = PieceCounts::default();
        for piece in table.iter() {
            pushed.push_sorted(piece).unwrap();
        }
        pushed.extend_to(table.extent());
        assert_eq!(pushed, table);
        let late = PieceCount { piece: b"z", count: 1, first_seen: u64::MAX };
        assert!(pushed.push_sorted(late).is_err(), "the end passes 64 bits");
        let many = PieceCount { piece: b"z", count: u64::MAX, first_seen: 0 };
        assert!(pushed.push_sorted(many).is_err(), "the total passes 64 bits");
        assert_eq!(pushed, table);
    }

    #[test]
    fn merging_is_counting_together() {
        let (a, b) = (counts(&[("x", 1), ("y", 2)]), counts(&[("y", 5), ("w", 1)]));
        let mut ab = a.clone();
        ab.merge(&b).unwrap();
        let mut ba = b.clone();
        ba.merge(&a).unwrap();
        assert_eq!(ab, ba);
        assert_eq!(ab.get(b"y").map(|p| p.count), Some(7));
    }

    #[test]
    fn the_most_frequent_come_first_then_the_lesser() {
        let table = counts(&[("b", 2), ("ab", 7), ("a", 2), ("c", 9)]);
        let order: Vec<_> = table.by_count().iter().map(|p| (p.piece, p.count)).collect();
        assert_eq!(order, [(&b"c"[..], 9), (b"ab", 7), (b"a", 2), (b"b", 2)]);
    }

    #[test]
    fn appending_moves_positions_behind() {
        let mut a = counts(&[("x", 1)]);
        a.append(&counts(&[("w", 1), ("x", 1)])).unwrap();
        let order: Vec<_> = a.by_first_seen().iter().map(|p| p.piece).collect();
        assert_eq!(order, [b"x", b"w"]);
        assert_eq!(a.get(b"w").map(|p| p.first_seen), Some(1));
    }

    #[test]
    fn counts_pass_32_bits_and_stop_at_64() {
        let table = counts(&[("ab", 3_000_000_000), ("ab", 3_000_000_000)]);
        assert_eq!(table.get(b"ab").map(|p| p.count), Some(6_000_000_000));
        let mut full = counts(&[("a", u64::MAX)]);
        let before = full.clone();
        assert!(full.merge(&counts(&[("b", 1)])).is_err());
        assert_eq!(full, before);
        assert!(PieceCounts::from_pairs([("a", u64::MAX), ("a", 1)]).is_err());
    }
}
