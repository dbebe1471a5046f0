use core::fmt;
use core::hash::BuildHasher;
use core::marker::PhantomData;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::error::quoted_bytes;

/// The greatest id that any format may give a token: 16777215.
///
/// Ids need not be dense in a file, but whoever builds a dense table from them must be able to:
/// this is what keeps a file of a few bytes from asking for gigabytes.
pub const MAX_ID: u32 = (1 << 24) - 1;

/// What an [`IdMap`] can be keyed by: `str` or `[u8]`.
pub trait Key: sealed::Sealed {
    /// The key as bytes.
    fn as_key_bytes(&self) -> &[u8];
    #[doc(hidden)]
    fn from_key_bytes(bytes: &[u8]) -> &Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for str {}
    impl Sealed for [u8] {}
}

impl Key for str {
    fn as_key_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn from_key_bytes(bytes: &[u8]) -> &Self {
        core::str::from_utf8(bytes).expect("only whole strings are appended to the arena")
    }
}

impl Key for [u8] {
    fn as_key_bytes(&self) -> &[u8] {
        self
    }

    fn from_key_bytes(bytes: &[u8]) -> &Self {
        bytes
    }
}

/// Tokens and their ids, one to one: no token twice, no id twice, gaps allowed.
///
/// `IdMap<str>` is the vocabulary of a JSON file, `IdMap<[u8]>` a table of byte ranks. Looking up
/// a token costs one hash, an id one comparison where ids are dense and `O(log n)` otherwise.
/// Memory is the bytes of all tokens plus about 30 bytes a token.
///
/// ```
/// use formats::IdMap;
///
/// let map = IdMap::<str>::from_pairs([("b", 7), ("a", 0)])?;
/// assert_eq!(map.get("b"), Some(7));
/// assert_eq!(map.token(0), Some("a"));
/// assert_eq!(map.iter().collect::<Vec<_>>(), [(0, "a"), (7, "b")]);
/// assert_eq!(map.first_gap(), Some(1));
/// assert!(IdMap::<str>::from_pairs([("a", 0), ("a", 1)]).is_err());
/// # Ok::<(), formats::IdMapError>(())
/// ```
pub struct IdMap<K: Key + ?Sized> {
    arena: Vec<u8>,
    /// Sorted by id, except while [`push`](Self::push) fills it.
    entries: Vec<Entry>,
    /// The entries once more, by token: looking up a merge's tokens is all cache misses, and going
    /// through `entries` would be one more.
    index: HashTable<Entry>,
    hasher: DefaultHashBuilder,
    key: PhantomData<fn() -> Box<K>>,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    len: u32,
    id: u32,
}

impl Entry {
    fn of<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.start as usize..][..self.len as usize]
    }
}

/// A token or an id that occurs twice, an id beyond [`MAX_ID`], or 4 GiB of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdMapError {
    pub(crate) token: Vec<u8>,
    pub(crate) fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    RepeatedToken { id: u32, first: u32 },
    RepeatedId { id: u32, first: Vec<u8> },
    IdLimit { id: u32 },
    ByteLimit,
}

impl fmt::Display for IdMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = quoted_bytes(&self.token);
        match &self.fault {
            Fault::RepeatedToken { id, first } => {
                write!(f, "token {token} has id {id}, but it has id {first} already")
            }
            Fault::RepeatedId { id, first } => {
                let first = quoted_bytes(first);
                write!(f, "token {token} has id {id}, but that is the id of token {first}")
            }
            Fault::IdLimit { id } => {
                write!(f, "token {token} has id {id}, but ids may not pass {MAX_ID}")
            }
            Fault::ByteLimit => write!(f, "with token {token} the tokens pass 4 GiB"),
        }
    }
}

impl std::error::Error for IdMapError {}

impl<K: Key + ?Sized> IdMap<K> {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self {
            arena: Vec::new(),
            entries: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            key: PhantomData,
        }
    }

    /// The map of these pairs, in any order.
    ///
    /// # Errors
    ///
    /// If a token or an id occurs twice, an id passes [`MAX_ID`], or all tokens together 4 GiB.
    pub fn from_pairs<T: AsRef<K>>(
        pairs: impl IntoIterator<Item = (T, u32)>,
    ) -> Result<Self, IdMapError> {
        let mut map = Self::new();
        for (token, id) in pairs {
            map.push(token.as_ref(), id)?;
        }
        map.finish()?;
        Ok(map)
    }

    /// Adds a token; [`finish`](Self::finish) must follow before ids are looked up.
    pub(crate) fn push(&mut self, token: &K, id: u32) -> Result<(), IdMapError> {
        let bytes = token.as_key_bytes();
        let fault = |fault| IdMapError { token: bytes.to_vec(), fault };
        if id > MAX_ID {
            return Err(fault(Fault::IdLimit { id }));
        }
        let (start, end) = (self.arena.len(), self.arena.len().saturating_add(bytes.len()));
        if u32::try_from(end).is_err() {
            return Err(fault(Fault::ByteLimit));
        }
        let hash = self.hasher.hash_one(bytes);
        let Self { arena, entries, index, hasher, .. } = self;
        let slot = index.entry(
            hash,
            |entry| entry.of(arena) == bytes,
            |entry| hasher.hash_one(entry.of(arena)),
        );
        match slot {
            hashbrown::hash_table::Entry::Occupied(slot) => {
                Err(fault(Fault::RepeatedToken { id, first: slot.get().id }))
            }
            hashbrown::hash_table::Entry::Vacant(slot) => {
                // Both fit, as the end does.
                let entry = Entry { start: start as u32, len: bytes.len() as u32, id };
                slot.insert(entry);
                entries.push(entry);
                arena.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Puts the entries in order of id and finds ids that occur twice.
    pub(crate) fn finish(&mut self) -> Result<(), IdMapError> {
        // Stable, so that the first of two equal ids stays first.
        self.entries.sort_by_key(|entry| entry.id);
        match self.entries.windows(2).position(|pair| pair[0].id == pair[1].id) {
            None => Ok(()),
            Some(i) => Err(IdMapError {
                token: self.bytes(&self.entries[i + 1]).to_vec(),
                fault: Fault::RepeatedId {
                    id: self.entries[i].id,
                    first: self.bytes(&self.entries[i]).to_vec(),
                },
            }),
        }
    }

    /// The number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The id of a token.
    #[must_use]
    pub fn get(&self, token: &K) -> Option<u32> {
        let bytes = token.as_key_bytes();
        let hash = self.hasher.hash_one(bytes);
        self.index.find(hash, |entry| self.bytes(entry) == bytes).map(|entry| entry.id)
    }

    /// The token of an id.
    #[must_use]
    pub fn token(&self, id: u32) -> Option<&K> {
        let dense = self.entries.get(id as usize).filter(|entry| entry.id == id);
        let entry = match dense {
            Some(entry) => entry,
            None => &self.entries[self.entries.binary_search_by_key(&id, |entry| entry.id).ok()?],
        };
        Some(K::from_key_bytes(self.bytes(entry)))
    }

    /// The tokens in order of id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &K)> + Clone + '_ {
        self.entries.iter().map(|entry| (entry.id, K::from_key_bytes(self.bytes(entry))))
    }

    /// One past the greatest id; the length of a dense table of all ids. At most [`MAX_ID`] + 1.
    #[must_use]
    pub fn id_bound(&self) -> u32 {
        self.entries.last().map_or(0, |entry| entry.id + 1)
    }

    /// The smallest id below [`id_bound`](Self::id_bound) that has no token.
    #[must_use]
    pub fn first_gap(&self) -> Option<u32> {
        let gap = self.entries.iter().zip(0..).find(|(entry, id)| entry.id != *id);
        gap.map(|(_, id)| id)
    }

    fn bytes(&self, entry: &Entry) -> &[u8] {
        entry.of(&self.arena)
    }
}

impl<K: Key + ?Sized> Default for IdMap<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key + ?Sized> Clone for IdMap<K> {
    fn clone(&self) -> Self {
        Self {
            arena: self.arena.clone(),
            entries: self.entries.clone(),
            index: self.index.clone(),
            hasher: self.hasher.clone(),
            key: PhantomData,
        }
    }
}

impl<K: Key + ?Sized> PartialEq for IdMap<K> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.entries.iter().zip(&other.entries).all(|(ours, theirs)| {
                ours.id == theirs.id && self.bytes(ours) == other.bytes(theirs)
            })
    }
}

impl<K: Key + ?Sized> Eq for IdMap<K> {}

impl<K: Key + ?Sized> fmt::Debug for IdMap<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdMap")
            .field("len", &self.len())
            .field("id_bound", &self.id_bound())
            .finish_non_exhaustive()
    }
}

/// A list of strings in one allocation.
///
/// ```
/// use formats::Strings;
///
/// let list: Strings = ["hug", "", "s"].into_iter().collect();
/// assert_eq!(list.get(2), Some("s"));
/// assert_eq!(list.get(3), None);
/// assert_eq!(list.iter().collect::<Vec<_>>(), ["hug", "", "s"]);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Strings {
    arena: String,
    ends: Vec<usize>,
}

impl Strings {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a string.
    pub fn push(&mut self, string: &str) {
        self.arena.push_str(string);
        self.ends.push(self.arena.len());
    }

    /// The number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no string.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(&self.arena[start..end])
    }

    /// The strings, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone + '_ {
        (0..self.len()).map(|i| self.get(i).expect("the index is below the length"))
    }
}

impl<S: AsRef<str>> FromIterator<S> for Strings {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut list = Self::new();
        list.extend(strings);
        list
    }
}

impl<S: AsRef<str>> Extend<S> for Strings {
    fn extend<I: IntoIterator<Item = S>>(&mut self, strings: I) {
        for string in strings {
            self.push(string.as_ref());
        }
    }
}

impl fmt::Debug for Strings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_may_come_in_any_order_and_have_gaps() {
        let map = IdMap::<str>::from_pairs([("c", 9), ("a", 2), ("b", 5)]).unwrap();
        assert_eq!(map.iter().collect::<Vec<_>>(), [(2, "a"), (5, "b"), (9, "c")]);
        for (id, token) in map.iter() {
            assert_eq!(map.get(token), Some(id));
            assert_eq!(map.token(id), Some(token));
        }
        assert_eq!((map.token(0), map.token(3), map.token(u32::MAX)), (None, None, None));
        assert_eq!((map.id_bound(), map.first_gap()), (10, Some(0)));
        assert_eq!(IdMap::<str>::from_pairs([("a", 0), ("b", 1)]).unwrap().first_gap(), None);
    }

    #[test]
    fn repeated_tokens_and_ids_are_refused() {
        let error = IdMap::<str>::from_pairs([("a", 0), ("b", 1), ("a", 2)]).unwrap_err();
        assert_eq!(error.to_string(), "token \"a\" has id 2, but it has id 0 already");
        let error = IdMap::<str>::from_pairs([("x", 4), ("a", 0), ("b", 4)]).unwrap_err();
        assert_eq!(error.to_string(), "token \"b\" has id 4, but that is the id of token \"x\"");
        let error = IdMap::<[u8]>::from_pairs([(b"\xFF", u32::MAX)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "token \"\u{FFFD}\" has id 4294967295, but ids may not pass 16777215"
        );
    }
}
