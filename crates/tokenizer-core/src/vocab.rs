use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::{Array, Span, TokenId, TokenKind};

/// An immutable vocabulary: the bytes and the kind of every token, and the way back from bytes
/// to the id.
///
/// Tokens are bytes, not strings: a byte-level token need not be valid UTF-8. What a token's
/// bytes mean is the model's business: byte-level BPE stores the bytes it decodes to, WordPiece
/// stores the `##` of a continuation literally, SentencePiece-style models store `▁`.
///
/// Lookup costs one hash of the bytes and one comparison; memory is the bytes of all tokens plus
/// about 12 bytes a token.
#[derive(Clone)]
pub struct Vocab {
    tokens: Tokens,
    index: LazyIndex,
    byte_ids: [Option<TokenId>; 256],
    max_token_len: usize,
}

/// Tokens by id.
#[derive(Clone, PartialEq, Eq)]
struct Tokens {
    arena: Array<u8>,
    /// Token i begins at `bounds[i]` in the arena and ends at `bounds[i + 1]`.
    bounds: Array<u32>,
    kinds: Vec<TokenKind>,
}

impl Tokens {
    #[inline]
    fn texts(&self) -> Texts<'_> {
        Texts { arena: &self.arena, bounds: &self.bounds }
    }

    #[inline]
    fn slice(&self, i: usize) -> &[u8] {
        self.texts().slice(i)
    }
}

/// The texts of tokens by id, as in [`Tokens`].
#[derive(Clone, Copy)]
struct Texts<'t> {
    arena: &'t [u8],
    bounds: &'t [u32],
}

impl<'t> Texts<'t> {
    #[inline]
    fn slice(self, i: usize) -> &'t [u8] {
        &self.arena[self.bounds[i] as usize..self.bounds[i + 1] as usize]
    }
}

/// Every token except kinds `Byte` and `Unused`, by its bytes.
#[derive(Clone, Default)]
struct Index {
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Index {
    /// The index of tokens that may be found.
    fn of(tokens: &Tokens) -> Self {
        let mut index = Self::default();
        let texts = tokens.texts();
        index.reserve(texts, tokens.kinds.len());
        for (id, &kind) in (0..).zip(&tokens.kinds) {
            if !matches!(kind, TokenKind::Byte | TokenKind::Unused) {
                // The first of equal tokens stays.
                let _ = index.add(texts, texts.slice(id as usize), id);
            }
        }
        index
    }

    /// Makes room for that many more tokens.
    fn reserve(&mut self, texts: Texts<'_>, more: usize) {
        let Self { ids, hasher } = self;
        ids.reserve(more, |&other| hasher.hash_one(texts.slice(other as usize)));
    }

    #[inline]
    fn get(&self, texts: Texts<'_>, bytes: &[u8]) -> Option<TokenId> {
        let hash = self.hasher.hash_one(bytes);
        let id = self.ids.find(hash, |&id| texts.slice(id as usize) == bytes);
        id.map(|&id| TokenId(id))
    }

    /// Adds a token; gives the earlier one of the same bytes, if there is one.
    fn add(&mut self, texts: Texts<'_>, bytes: &[u8], id: u32) -> Result<(), u32> {
        let Self { ids, hasher } = self;
        let entry = ids.entry(
            hasher.hash_one(bytes),
            |&other| texts.slice(other as usize) == bytes,
            |&other| hasher.hash_one(texts.slice(other as usize)),
        );
        match entry {
            Entry::Occupied(first) => Err(*first.get()),
            Entry::Vacant(entry) => {
                entry.insert(id);
                Ok(())
            }
        }
    }
}

/// An index that is built when it is first asked, or with the vocabulary where the standard
/// library's cell is not to be had.
#[derive(Clone)]
struct LazyIndex(
    #[cfg(feature = "std")] std::sync::OnceLock<Index>,
    #[cfg(not(feature = "std"))] Index,
);

impl LazyIndex {
    #[cfg(feature = "std")]
    fn built(index: Index) -> Self {
        Self(index.into())
    }

    #[cfg(not(feature = "std"))]
    fn built(index: Index) -> Self {
        Self(index)
    }

    #[cfg(feature = "std")]
    fn of(_: &Tokens) -> Self {
        Self(std::sync::OnceLock::new())
    }

    #[cfg(not(feature = "std"))]
    fn of(tokens: &Tokens) -> Self {
        Self(Index::of(tokens))
    }

    #[cfg(feature = "std")]
    #[inline]
    fn get(&self, tokens: &Tokens) -> &Index {
        self.0.get_or_init(|| Index::of(tokens))
    }

    #[cfg(not(feature = "std"))]
    #[inline]
    fn get(&self, _: &Tokens) -> &Index {
        &self.0
    }

    #[cfg(feature = "std")]
    #[inline]
    fn is_built(&self) -> bool {
        self.0.get().is_some()
    }

    #[cfg(not(feature = "std"))]
    #[inline]
    fn is_built(&self) -> bool {
        true
    }
}

impl Vocab {
    /// An empty builder.
    #[must_use]
    pub fn builder() -> VocabBuilder {
        VocabBuilder::default()
    }

    /// The vocabulary of `tokens`, all of kind `Normal`, with ids in order.
    ///
    /// # Errors
    ///
    /// If a token repeats an earlier one or a limit of [`VocabBuilder::push`] is passed.
    pub fn from_tokens<T: AsRef<[u8]>>(
        tokens: impl IntoIterator<Item = T>,
    ) -> Result<Self, VocabError> {
        let mut builder = Self::builder();
        for token in tokens {
            builder.push(token.as_ref(), TokenKind::Normal)?;
        }
        Ok(builder.build())
    }

    /// The vocabulary of tokens that are known to differ from each other, with ids in order:
    /// `bytes` are those of all of them, end to end, and token i begins at `bounds[i]` and ends at
    /// `bounds[i + 1]`. Tokens are of kind `Normal`, those without bytes `Unused`.
    ///
    /// Takes about a nanosecond a token, since the way back from bytes to ids is built when
    /// [`get`](Self::get) is first called. Of tokens that repeat all the same, `get` finds the first.
    ///
    /// # Errors
    ///
    /// If the bounds do not ascend from 0 to the number of bytes, or are more than 4294967295.
    pub fn from_distinct(
        bytes: impl Into<Array<u8>>,
        bounds: impl Into<Array<u32>>,
    ) -> Result<Self, VocabError> {
        let (bytes, bounds) = (bytes.into(), bounds.into());
        if u32::try_from(bounds.len()).is_err() {
            return Err(VocabError::too_large());
        }
        let lens = bounds.windows(2).map(|bounds| bounds[1].wrapping_sub(bounds[0]));
        let is_ordered = bounds.windows(2).fold(true, |ok, bounds| ok & (bounds[0] <= bounds[1]));
        let ends = bounds.first().zip(bounds.last());
        if !is_ordered || ends.is_none_or(|(&a, &b)| a != 0 || b as usize != bytes.len()) {
            return Err(VocabError::new(Kind::Bounds { len: bytes.len() }));
        }
        let max_token_len = lens.clone().fold(0, u32::max) as usize;
        let kind = |len| if len == 0 { TokenKind::Unused } else { TokenKind::Normal };
        let kinds = lens.map(kind).collect();
        Ok(Self::of_tokens(Tokens { arena: bytes, bounds, kinds }, max_token_len))
    }

    /// As [`from_distinct`](Self::from_distinct), for callers that know which tokens have no bytes, in
    /// order of id, and the length of the longest token: neither bytes nor bounds are read, so tables that
    /// lie in the program cost nothing before they are used.
    ///
    /// What is not true makes later calls give wrong answers, or panic.
    ///
    /// # Errors
    ///
    /// If the bounds do not end with the number of bytes, are more than 4294967295, or an unused id is not
    /// one of theirs.
    pub fn from_known(
        bytes: impl Into<Array<u8>>,
        bounds: impl Into<Array<u32>>,
        unused: &[u32],
        max_token_len: usize,
    ) -> Result<Self, VocabError> {
        let (bytes, bounds) = (bytes.into(), bounds.into());
        let fault = || VocabError::new(Kind::Bounds { len: bytes.len() });
        if u32::try_from(bounds.len()).is_err() {
            return Err(VocabError::too_large());
        }
        let end = *bounds.last().ok_or_else(fault)?;
        if end as usize != bytes.len() {
            return Err(fault());
        }
        let mut kinds = vec![TokenKind::Normal; bounds.len() - 1];
        for &id in unused {
            *kinds.get_mut(id as usize).ok_or_else(fault)? = TokenKind::Unused;
        }
        Ok(Self::of_tokens(Tokens { arena: bytes, bounds, kinds }, max_token_len))
    }

    fn of_tokens(tokens: Tokens, max_token_len: usize) -> Self {
        let index = LazyIndex::of(&tokens);
        Self { tokens, index, byte_ids: [None; 256], max_token_len }
    }

    /// The number of ids, unused ones included.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.kinds.len()
    }

    /// Whether there is no token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.kinds.is_empty()
    }

    /// The token of exactly these bytes, of any kind except `Byte` and `Unused`.
    #[inline]
    #[must_use]
    pub fn get(&self, bytes: &[u8]) -> Option<TokenId> {
        self.index.get(&self.tokens).get(self.tokens.texts(), bytes)
    }

    /// Whether [`get`](Self::get) can answer at once: where the index is built when it is first
    /// asked, some tens of nanoseconds a token are still to be paid.
    #[inline]
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        self.index.is_built()
    }

    /// For each byte the token of that byte alone, as [`get`](Self::get) finds it, but without its
    /// index. `O(n)` for n tokens; less where low ids are bytes.
    #[must_use]
    pub fn single_bytes(&self) -> [Option<TokenId>; 256] {
        let mut ids = [None; 256];
        let mut missing = ids.len();
        for (id, bounds) in (0..).zip(self.tokens.bounds.windows(2)) {
            let is_found =
                !matches!(self.tokens.kinds[id as usize], TokenKind::Byte | TokenKind::Unused);
            if bounds[1] - bounds[0] == 1 && is_found {
                let slot = &mut ids[usize::from(self.tokens.arena[bounds[0] as usize])];
                if slot.is_none() {
                    *slot = Some(TokenId(id));
                    missing -= 1;
                    if missing == 0 {
                        break;
                    }
                }
            }
        }
        ids
    }

    /// The token of kind `Byte` for this byte.
    #[inline]
    #[must_use]
    pub fn byte(&self, byte: u8) -> Option<TokenId> {
        self.byte_ids[usize::from(byte)]
    }

    /// The bytes of a token, or `None` if there is no such id.
    #[inline]
    #[must_use]
    pub fn bytes(&self, id: TokenId) -> Option<&[u8]> {
        (id.index() < self.len()).then(|| self.tokens.slice(id.index()))
    }

    /// The bytes of all tokens in order of id, end to end.
    #[must_use]
    pub fn all_bytes(&self) -> &[u8] {
        &self.tokens.arena
    }

    /// Where the tokens lie in [`all_bytes`](Self::all_bytes), in order of id: token i begins at the i-th
    /// number and ends at the next one.
    #[must_use]
    pub fn bounds(&self) -> &[u32] {
        &self.tokens.bounds
    }

    /// Where the bytes of a token lie in [`all_bytes`](Self::all_bytes), or `None` if there is no such id.
    #[inline]
    #[must_use]
    pub fn span(&self, id: TokenId) -> Option<Span> {
        let bounds = self.tokens.bounds.get(id.index()..id.index() + 2)?;
        Some(Span::new(bounds[0] as usize, bounds[1] as usize))
    }

    /// The length in bytes of a token, or `None` if there is no such id.
    #[inline]
    #[must_use]
    pub fn token_len(&self, id: TokenId) -> Option<usize> {
        let bounds = &self.tokens.bounds[..];
        let end = *bounds.get(id.index() + 1)?;
        Some((end - bounds[id.index()]) as usize)
    }

    /// The kind of a token, or `None` if there is no such id.
    #[inline]
    #[must_use]
    pub fn kind(&self, id: TokenId) -> Option<TokenKind> {
        self.tokens.kinds.get(id.index()).copied()
    }

    /// The kinds of all tokens in order of id.
    #[must_use]
    pub fn kinds(&self) -> &[TokenKind] {
        &self.tokens.kinds
    }

    /// The length in bytes of the longest token.
    #[must_use]
    pub fn max_token_len(&self) -> usize {
        self.max_token_len
    }

    /// All tokens in order of id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (TokenId, &[u8], TokenKind)> + '_ {
        let tokens = &self.tokens;
        (0..self.len()).map(|i| (TokenId(i as u32), tokens.slice(i), tokens.kinds[i]))
    }

    /// The same tokens under other ids: `order` has the present id of each, in the order of the new
    /// ones. `None` if it does not name every id once.
    #[must_use]
    pub fn renumbered(&self, order: &[TokenId]) -> Option<Self> {
        let mut is_named = vec![false; self.len()];
        for id in order {
            if core::mem::replace(is_named.get_mut(id.index())?, true) {
                return None;
            }
        }
        if order.len() < self.len() {
            return None;
        }
        let mut builder = Self::builder();
        for id in order {
            builder.push(self.tokens.slice(id.index()), self.tokens.kinds[id.index()]).ok()?;
        }
        Some(builder.build())
    }

    /// The first token of a kind.
    #[must_use]
    pub fn first_of_kind(&self, kind: TokenKind) -> Option<TokenId> {
        self.tokens.kinds.iter().position(|&k| k == kind).map(|i| TokenId(i as u32))
    }
}

impl fmt::Debug for Vocab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocab").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Two vocabularies are equal when they hold the same tokens of the same kinds under the same ids.
impl PartialEq for Vocab {
    fn eq(&self, other: &Self) -> bool {
        self.tokens == other.tokens
    }
}

impl Eq for Vocab {}

/// Builds a [`Vocab`] token by token; ids are given in order from 0.
#[derive(Clone)]
pub struct VocabBuilder {
    /// As in [`Tokens`].
    arena: Vec<u8>,
    bounds: Vec<u32>,
    kinds: Vec<TokenKind>,
    index: Index,
    byte_ids: [Option<TokenId>; 256],
    max_token_len: usize,
}

impl Default for VocabBuilder {
    fn default() -> Self {
        Self {
            arena: Vec::new(),
            bounds: vec![0],
            kinds: Vec::new(),
            index: Index::default(),
            byte_ids: [None; 256],
            max_token_len: 0,
        }
    }
}

impl VocabBuilder {
    /// Adds a token under the next id.
    ///
    /// Tokens of kind `Unused` may have any bytes, none too, and may repeat; they are never found
    /// by [`Vocab::get`]. Tokens of kind `Byte` must be one byte and are found by
    /// [`Vocab::byte`] only.
    ///
    /// # Errors
    ///
    /// If an earlier token has the same bytes (for kind `Byte`: stands for the same byte), if a
    /// token that is to be found is empty, if a `Byte` token is not one byte long, or if the bytes
    /// of all tokens pass 4 GiB.
    pub fn push(&mut self, bytes: &[u8], kind: TokenKind) -> Result<TokenId, VocabError> {
        let Self { arena, bounds, kinds, index, byte_ids, max_token_len } = self;
        let id = u32::try_from(kinds.len()).map_err(|_| VocabError::too_large())?;
        let end = arena
            .len()
            .checked_add(bytes.len())
            .and_then(|end| u32::try_from(end).ok())
            .ok_or_else(VocabError::too_large)?;
        let repeats = |first| VocabError::new(Kind::Duplicate { id, first });
        match kind {
            TokenKind::Unused => {}
            TokenKind::Byte => {
                let &[byte] = bytes else {
                    return Err(VocabError::new(Kind::ByteLength { id, len: bytes.len() }));
                };
                let slot = &mut byte_ids[usize::from(byte)];
                if let Some(first) = *slot {
                    return Err(repeats(first.0));
                }
                *slot = Some(TokenId(id));
            }
            _ if bytes.is_empty() => return Err(VocabError::new(Kind::Empty { id })),
            _ => index.add(Texts { arena, bounds }, bytes, id).map_err(repeats)?,
        }
        arena.extend_from_slice(bytes);
        bounds.push(end);
        kinds.push(kind);
        *max_token_len = (*max_token_len).max(bytes.len());
        Ok(TokenId(id))
    }

    /// Makes room for that many more tokens of that many bytes in all, which saves growing.
    pub fn reserve(&mut self, tokens: usize, bytes: usize) {
        self.index.reserve(Texts { arena: &self.arena, bounds: &self.bounds }, tokens);
        self.arena.reserve(bytes);
        self.bounds.reserve(tokens);
        self.kinds.reserve(tokens);
    }

    /// The number of tokens so far, which is the next id.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether no token was added yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The token of these bytes, if it was added already.
    #[must_use]
    pub fn get(&self, bytes: &[u8]) -> Option<TokenId> {
        self.index.get(Texts { arena: &self.arena, bounds: &self.bounds }, bytes)
    }

    /// The finished vocabulary.
    #[must_use]
    pub fn build(self) -> Vocab {
        let Self { arena, bounds, kinds, index, byte_ids, max_token_len } = self;
        let tokens = Tokens { arena: arena.into(), bounds: bounds.into(), kinds };
        Vocab { tokens, index: LazyIndex::built(index), byte_ids, max_token_len }
    }
}

/// Why a vocabulary could not be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VocabError {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Duplicate { id: u32, first: u32 },
    Empty { id: u32 },
    Bounds { len: usize },
    ByteLength { id: u32, len: usize },
    TooLarge,
}

impl VocabError {
    fn new(kind: Kind) -> Self {
        Self { kind }
    }

    fn too_large() -> Self {
        Self::new(Kind::TooLarge)
    }

    /// The id of the token that could not be added, where the fault lies with one token.
    #[must_use]
    pub fn token(&self) -> Option<TokenId> {
        match self.kind {
            Kind::Duplicate { id, .. } | Kind::Empty { id } | Kind::ByteLength { id, .. } => {
                Some(TokenId(id))
            }
            Kind::Bounds { .. } | Kind::TooLarge => None,
        }
    }
}

impl fmt::Display for VocabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Duplicate { id, first } => write!(f, "token {id} repeats token {first}"),
            Kind::Empty { id } => write!(f, "token {id} is empty"),
            Kind::Bounds { len } => {
                write!(f, "the bounds of tokens do not ascend from 0 to their {len} bytes")
            }
            Kind::ByteLength { id, len } => {
                write!(f, "byte token {id} holds {len} bytes, but must hold 1")
            }
            Kind::TooLarge => {
                write!(f, "the vocabulary passes 4 GiB of token bytes or 4294967295 tokens")
            }
        }
    }
}

impl core::error::Error for VocabError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn finds_every_token_and_nothing_else() {
        let vocab = Vocab::from_tokens(["a", "ab", "b", "\u{1F600}"]).unwrap();
        for (id, bytes, _) in vocab.iter() {
            assert_eq!(vocab.get(bytes), Some(id));
        }
        assert_eq!(vocab.get(b""), None);
        assert_eq!(vocab.get(b"ba"), None);
        assert_eq!(vocab.bytes(TokenId(4)), None);
        assert_eq!(vocab.bytes(TokenId(u32::MAX)), None);
        assert_eq!(vocab.max_token_len(), 4);
    }

    #[test]
    fn distinct_tokens_are_those_of_a_builder() {
        let tokens = [&b"a"[..], b"bc", b"", b"c", b"\xFF"];
        let mut builder = Vocab::builder();
        for token in tokens {
            let kind = if token.is_empty() { TokenKind::Unused } else { TokenKind::Normal };
            builder.push(token, kind).unwrap();
        }
        let built = builder.build();
        let quick = Vocab::from_distinct(tokens.concat(), vec![0, 1, 3, 3, 4, 5]).unwrap();
        assert_eq!(quick, built);
        assert_eq!(quick.is_indexed(), !cfg!(feature = "std"));
        assert_eq!(quick.single_bytes(), built.single_bytes());
        for token in tokens.into_iter().chain([&b"b"[..], b"cc"]) {
            assert_eq!(quick.get(token), built.get(token), "{token:?}");
            if let [byte] = *token {
                assert_eq!(quick.single_bytes()[usize::from(byte)], built.get(token));
            }
        }
        assert!(quick.is_indexed() && built.is_indexed());
        assert_eq!(quick.max_token_len(), 2);
        let known = Vocab::from_known(tokens.concat(), vec![0, 1, 3, 3, 4, 5], &[2], 2).unwrap();
        assert!(known == built && known.get(b"bc") == built.get(b"bc"));
        for (bounds, unused) in [(&[][..], 0), (&[0, 4], 0), (&[0, 5], 1)] {
            let known = Vocab::from_known(tokens.concat(), bounds.to_vec(), &[unused], 2);
            assert!(known.is_err(), "{bounds:?}");
        }
        assert_eq!(quick.token_len(TokenId(1)), Some(2));
        assert_eq!(quick.token_len(TokenId(5)), None);
        for bounds in [&[][..], &[0], &[0, 4], &[0, 6], &[1, 5], &[0, 3, 2, 5]] {
            assert!(Vocab::from_distinct(tokens.concat(), bounds.to_vec()).is_err(), "{bounds:?}");
        }
        let repeated = Vocab::from_distinct(b"aa".to_vec(), vec![0, 1, 2]).unwrap();
        assert_eq!(repeated.get(b"a"), Some(TokenId(0)));
    }

    #[test]
    fn byte_tokens_are_apart_from_text() {
        let mut builder = Vocab::builder();
        builder.push(b"A", TokenKind::Normal).unwrap();
        let byte = builder.push(b"A", TokenKind::Byte).unwrap();
        let vocab = builder.build();
        assert_eq!(vocab.get(b"A"), Some(TokenId(0)));
        assert_eq!(vocab.byte(b'A'), Some(byte));
    }

    #[test]
    fn faults_name_the_token() {
        let mut builder = Vocab::builder();
        builder.push(b"a", TokenKind::Normal).unwrap();
        let error = builder.push(b"a", TokenKind::Control).unwrap_err();
        assert_eq!(error.to_string(), "token 1 repeats token 0");
        assert_eq!(error.token(), Some(TokenId(1)));
        assert!(builder.push(b"", TokenKind::Normal).is_err());
        assert!(builder.push(b"ab", TokenKind::Byte).is_err());
        builder.push(b"", TokenKind::Unused).unwrap();
        assert_eq!(builder.len(), 2);
    }
}
