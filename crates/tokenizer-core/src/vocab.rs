use alloc::vec::Vec;
use core::fmt;
use core::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::{TokenId, TokenKind};

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
    arena: Vec<u8>,
    /// `ends[i]` is where token i ends in the arena; it begins where token i-1 ends.
    ends: Vec<u32>,
    kinds: Vec<TokenKind>,
    /// Every token except kinds `Byte` and `Unused`, by its bytes.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    byte_ids: [Option<TokenId>; 256],
    max_token_len: usize,
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

    /// The number of ids, unused ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The token of exactly these bytes, of any kind except `Byte` and `Unused`.
    #[inline]
    #[must_use]
    pub fn get(&self, bytes: &[u8]) -> Option<TokenId> {
        let hash = self.hasher.hash_one(bytes);
        self.index.find(hash, |&id| self.slice(id as usize) == bytes).map(|&id| TokenId(id))
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
        (id.index() < self.len()).then(|| self.slice(id.index()))
    }

    /// The kind of a token, or `None` if there is no such id.
    #[inline]
    #[must_use]
    pub fn kind(&self, id: TokenId) -> Option<TokenKind> {
        self.kinds.get(id.index()).copied()
    }

    /// The length in bytes of the longest token.
    #[must_use]
    pub fn max_token_len(&self) -> usize {
        self.max_token_len
    }

    /// All tokens in order of id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (TokenId, &[u8], TokenKind)> + '_ {
        (0..self.len()).map(|i| (TokenId(i as u32), self.slice(i), self.kinds[i]))
    }

    /// The first token of a kind.
    #[must_use]
    pub fn first_of_kind(&self, kind: TokenKind) -> Option<TokenId> {
        self.kinds.iter().position(|&k| k == kind).map(|i| TokenId(i as u32))
    }

    #[inline]
    fn slice(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.arena[start..self.ends[i] as usize]
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
        self.ends == other.ends && self.kinds == other.kinds && self.arena == other.arena
    }
}

impl Eq for Vocab {}

/// Builds a [`Vocab`] token by token; ids are given in order from 0.
#[derive(Clone)]
pub struct VocabBuilder {
    vocab: Vocab,
}

impl Default for VocabBuilder {
    fn default() -> Self {
        Self {
            vocab: Vocab {
                arena: Vec::new(),
                ends: Vec::new(),
                kinds: Vec::new(),
                index: HashTable::new(),
                hasher: DefaultHashBuilder::default(),
                byte_ids: [None; 256],
                max_token_len: 0,
            },
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
        let vocab = &mut self.vocab;
        let id = u32::try_from(vocab.ends.len()).map_err(|_| VocabError::too_large())?;
        let end = vocab
            .arena
            .len()
            .checked_add(bytes.len())
            .and_then(|end| u32::try_from(end).ok())
            .ok_or_else(VocabError::too_large)?;
        match kind {
            TokenKind::Unused => {}
            TokenKind::Byte => {
                let &[byte] = bytes else {
                    return Err(VocabError::new(Kind::ByteLength { id, len: bytes.len() }));
                };
                let slot = &mut vocab.byte_ids[usize::from(byte)];
                if let Some(first) = *slot {
                    return Err(VocabError::new(Kind::Duplicate { id, first: first.0 }));
                }
                *slot = Some(TokenId(id));
            }
            _ => {
                if bytes.is_empty() {
                    return Err(VocabError::new(Kind::Empty { id }));
                }
                let Vocab { index, hasher, arena, ends, .. } = &mut *vocab;
                let slice = |other: u32| {
                    let i = other as usize;
                    let start = if i == 0 { 0 } else { ends[i - 1] as usize };
                    &arena[start..ends[i] as usize]
                };
                let hash = hasher.hash_one(bytes);
                let entry = index.entry(
                    hash,
                    |&other| slice(other) == bytes,
                    |&other| hasher.hash_one(slice(other)),
                );
                match entry {
                    Entry::Occupied(first) => {
                        let first = *first.get();
                        return Err(VocabError::new(Kind::Duplicate { id, first }));
                    }
                    Entry::Vacant(entry) => {
                        entry.insert(id);
                    }
                }
            }
        }
        vocab.arena.extend_from_slice(bytes);
        vocab.ends.push(end);
        vocab.kinds.push(kind);
        vocab.max_token_len = vocab.max_token_len.max(bytes.len());
        Ok(TokenId(id))
    }

    /// Makes room for that many more tokens of that many bytes in all, which saves growing.
    pub fn reserve(&mut self, tokens: usize, bytes: usize) {
        let Vocab { index, hasher, arena, ends, kinds, .. } = &mut self.vocab;
        index.reserve(tokens, |&other| {
            let i = other as usize;
            let start = if i == 0 { 0 } else { ends[i - 1] as usize };
            hasher.hash_one(&arena[start..ends[i] as usize])
        });
        arena.reserve(bytes);
        ends.reserve(tokens);
        kinds.reserve(tokens);
    }

    /// The number of tokens so far, which is the next id.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vocab.len()
    }

    /// Whether no token was added yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vocab.is_empty()
    }

    /// The token of these bytes, if it was added already.
    #[must_use]
    pub fn get(&self, bytes: &[u8]) -> Option<TokenId> {
        self.vocab.get(bytes)
    }

    /// The finished vocabulary.
    #[must_use]
    pub fn build(self) -> Vocab {
        self.vocab
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
            Kind::TooLarge => None,
        }
    }
}

impl fmt::Display for VocabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Duplicate { id, first } => write!(f, "token {id} repeats token {first}"),
            Kind::Empty { id } => write!(f, "token {id} is empty"),
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
