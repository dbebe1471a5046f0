use tokenizer_core::{Span, TokenId};

/// An encoded text: one entry per token in every array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// The ids.
    pub ids: Vec<TokenId>,
    /// Which bytes of the original text each token stands for, on character boundaries. `0..0`
    /// for tokens that a template or padding added.
    pub offsets: Vec<Span>,
    /// The index of the piece that each token is part of; `None` for added ones.
    pub words: Vec<Option<u32>>,
    /// 0 for the first text and 1 for the second of a pair, or as the template says.
    pub type_ids: Vec<u32>,
    /// Whether a template or padding added the token.
    pub special: Vec<bool>,
    /// False for padding.
    pub attention: Vec<bool>,
    /// What truncation cut off, in windows of the same length that overlap by the stride.
    pub overflowing: Vec<Encoding>,
}

impl Encoding {
    /// The number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Adds a token of the text; [`fill_text`](Self::fill_text) says the rest.
    pub(crate) fn push(&mut self, id: TokenId, offset: Span, word: Option<u32>) {
        self.ids.push(id);
        self.offsets.push(offset);
        self.words.push(word);
    }

    /// Says of all tokens that came without it that they are of the first text, and not added.
    pub(crate) fn fill_text(&mut self) {
        self.type_ids.resize(self.ids.len(), 0);
        self.special.resize(self.ids.len(), false);
        self.attention.resize(self.ids.len(), true);
    }

    pub(crate) fn push_added(&mut self, id: TokenId, type_id: u32, attention: bool) {
        self.ids.push(id);
        self.offsets.push(Span::default());
        self.words.push(None);
        self.type_ids.push(type_id);
        self.special.push(true);
        self.attention.push(attention);
    }

    /// Appends the tokens of `other`, not what it overflowed.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.ids.extend_from_slice(&other.ids);
        self.offsets.extend_from_slice(&other.offsets);
        self.words.extend_from_slice(&other.words);
        self.type_ids.extend_from_slice(&other.type_ids);
        self.special.extend_from_slice(&other.special);
        self.attention.extend_from_slice(&other.attention);
    }

    /// The tokens `start..end` alone.
    pub(crate) fn window(&self, start: usize, end: usize) -> Self {
        Self {
            ids: self.ids[start..end].to_vec(),
            offsets: self.offsets[start..end].to_vec(),
            words: self.words[start..end].to_vec(),
            type_ids: self.type_ids[start..end].to_vec(),
            special: self.special[start..end].to_vec(),
            attention: self.attention[start..end].to_vec(),
            overflowing: Vec::new(),
        }
    }

    /// The offsets in characters (Unicode code points) of `text`, the text that was encoded.
    ///
    /// # Panics
    ///
    /// If `text` is shorter than the offsets.
    #[must_use]
    pub fn char_offsets(&self, text: &str) -> Vec<Span> {
        let index = CharIndex::new(text);
        let convert = |span: &Span| Span::new(index.at(span.start), index.at(span.end));
        self.offsets.iter().map(convert).collect()
    }
}

/// Turns byte offsets of a text into character offsets: a count every 64 bytes, and a short scan.
#[derive(Debug)]
pub struct CharIndex<'t> {
    text: &'t [u8],
    /// The number of characters that begin before byte 64 * i. Empty where all bytes are ASCII.
    counts: Vec<usize>,
}

impl<'t> CharIndex<'t> {
    /// The index of `text`. `O(n)`.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        if text.is_ascii() {
            return Self { text: bytes, counts: Vec::new() };
        }
        let mut counts = Vec::with_capacity(bytes.len() / 64 + 1);
        let mut count = 0;
        for block in bytes.chunks(64) {
            counts.push(count);
            count += count_chars(block);
        }
        counts.push(count);
        Self { text: bytes, counts }
    }

    /// The number of characters that begin before byte `at`.
    ///
    /// # Panics
    ///
    /// If `at` lies behind the end of the text.
    #[must_use]
    pub fn at(&self, at: usize) -> usize {
        if self.counts.is_empty() {
            return at;
        }
        let block = at / 64;
        self.counts[block] + count_chars(&self.text[block * 64..at])
    }
}

fn count_chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| (byte as i8) >= -0x40).count()
}
