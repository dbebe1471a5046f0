use core::fmt;
use core::num::TryFromIntError;
use core::ops::Range;

/// The index of a token in its vocabulary.
///
/// Not a merge rank and not an array length: those have types of their own where they occur.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub u32);

impl TokenId {
    /// The id as an index into an array that holds one entry per token.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u32> for TokenId {
    #[inline]
    fn from(id: u32) -> Self {
        Self(id)
    }
}

impl From<TokenId> for u32 {
    #[inline]
    fn from(id: TokenId) -> Self {
        id.0
    }
}

/// A stretch of text: byte offsets, half-open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
}

impl Span {
    /// The span of `start..end`.
    #[inline]
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The length in bytes.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.end - self.start
    }

    /// Whether the span covers no byte.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The span as a range, for indexing.
    #[inline]
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// The same span in a text that begins `by` bytes earlier.
    #[inline]
    #[must_use]
    pub const fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

/// The bytes of a text that a token stands for: half a [`Span`], for texts shorter than 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Offset {
    /// The first byte.
    pub start: u32,
    /// The byte behind the last one.
    pub end: u32,
}

impl Offset {
    /// The offset as a span.
    #[inline]
    #[must_use]
    pub const fn span(self) -> Span {
        Span { start: self.start as usize, end: self.end as usize }
    }
}

impl TryFrom<Span> for Offset {
    type Error = TryFromIntError;

    /// Fails for spans that end behind 4 GiB.
    fn try_from(span: Span) -> Result<Self, TryFromIntError> {
        Ok(Self { start: span.start.try_into()?, end: span.end.try_into()? })
    }
}

/// One token of an encoded piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Which token.
    pub id: TokenId,
    /// How many bytes of the piece it covers. The lengths of a piece's tokens add up to the
    /// piece. A token may cover nothing (a byte-fallback byte after the first of a character
    /// covers one byte; a marker that stands for no text covers zero).
    pub len: u32,
}

impl Token {
    /// A token that covers `len` bytes.
    ///
    /// # Panics
    ///
    /// If `len` does not fit 32 bits; pieces are shorter than 4 GiB.
    #[inline]
    #[must_use]
    pub fn new(id: TokenId, len: usize) -> Self {
        Self { id, len: u32::try_from(len).expect("a piece is shorter than 4 GiB") }
    }
}

/// What a token stands for. The kinds are SentencePiece's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A piece of text.
    #[default]
    Normal,
    /// What stands in for text that the vocabulary cannot express.
    Unknown,
    /// A token that never comes from user text, as beginning of sentence.
    Control,
    /// A piece of text that is never split or merged.
    UserDefined,
    /// One byte, used where text is not otherwise covered (byte fallback). Its bytes in the
    /// vocabulary are that one byte, whatever a file calls it (`<0x0A>`).
    Byte,
    /// An id that is taken but never produced.
    Unused,
}
