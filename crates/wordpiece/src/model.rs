use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use tokenizer_core::{Decode, DecodeError, Encode, Model, TokenId, TokenKind, Vocab, VocabError};

use crate::matcher::Matcher;
use crate::{Encoder, Explanation};

/// How a [`WordPiece`] model reads words. The default is BERT's.
///
/// The struct may gain fields: begin with [`Options::default`] and set what differs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// What a token that continues a word begins with in the vocabulary; default `##`. Empty
    /// means that tokens at the beginning and inside of words are the same.
    pub continuing_prefix: Vec<u8>,
    /// The token that stands in for text without a match; default `[UNK]`. With `None` such text
    /// is dropped: its tokens' lengths do not add up to the word.
    pub unk: Option<Vec<u8>>,
    /// Words of more characters than this are unknown as a whole; default 100. The encoder is
    /// linear, so this is a matter of compatibility, not of safety: `usize::MAX` is fine.
    pub max_chars: usize,
    /// How much of a word becomes unknown when a part of it does not match.
    pub unknown: Unknown,
    /// What counts as a character.
    pub unit: Unit,
    /// What the decoder puts between two words; default one space. Make it empty where the
    /// splitter keeps white space inside of the words.
    pub word_separator: Vec<u8>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            continuing_prefix: b"##".to_vec(),
            unk: Some(b"[UNK]".to_vec()),
            max_chars: 100,
            unknown: Unknown::Word,
            unit: Unit::Char,
            word_separator: b" ".to_vec(),
        }
    }
}

impl Options {
    /// For vocabularies that hold all 256 bytes and all 256 continuations, so that nothing is
    /// unknown: [`Unit::Byte`], no limit, no unknown token.
    #[must_use]
    pub fn bytes() -> Self {
        Self { unit: Unit::Byte, max_chars: usize::MAX, unk: None, ..Self::default() }
    }
}

/// How much of a word becomes unknown when a part of it does not match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// The whole word is one unknown token: BERT, Hugging Face.
    ///
    /// With tokens `un ##want`, `unwantedX` → `[UNK]`.
    #[default]
    Word,
    /// What matched stays, the rest of the word is one unknown token.
    ///
    /// `unwantedX` → `un ##want [UNK]`.
    Rest,
    /// What matched stays, a character without a match is one unknown token, and matching goes on
    /// behind it inside of the word: TensorFlow Text with `split_unknown_characters`.
    ///
    /// `unwantedX` → `un ##want [UNK] [UNK] [UNK]`. The one mode that is not linear: after an
    /// unknown character the bytes that were looked at are read again, at most the longest
    /// token's.
    Character,
}

/// What counts as a character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    /// A Unicode scalar value; a byte that is not part of well-formed UTF-8 counts as one.
    #[default]
    Char,
    /// A byte: for vocabularies whose tokens need not be valid UTF-8.
    Byte,
}

/// A WordPiece model: a vocabulary in which continuations of words carry a prefix (`##ing`), and
/// the rule to take the longest token that matches, from left to right (MaxMatch).
///
/// Tokens match as byte strings. Where the vocabulary and the words are valid UTF-8, so are all
/// tokens of the result. Tokens of kind `Normal`, `UserDefined` and `Unknown` match; `Control`,
/// `Byte` and `Unused` never do. (Hugging Face's vocabularies know no kinds and match everything:
/// a loader that wants the same marks `[CLS]` and its like `Normal`.)
///
/// A literal `##a` at the beginning of a word matches the token `##a` there, as it does in
/// Hugging Face's implementation; the bare token `##` never matches as an empty continuation.
///
/// Memory: the vocabulary, and about 24 bytes for each node of the tries.
#[derive(Clone)]
pub struct WordPiece {
    vocab: Vocab,
    options: Options,
    unk: Option<TokenId>,
    pub(crate) matcher: Matcher,
}

impl WordPiece {
    /// The model of a vocabulary. `O(n)` for n bytes of tokens, but for the sorting.
    ///
    /// # Errors
    ///
    /// If the vocabulary does not hold [`Options::unk`], or passes 2^32 trie nodes.
    pub fn new(vocab: Vocab, options: Options) -> Result<Self, BuildError> {
        let unk = match &options.unk {
            None => None,
            Some(unk) => Some(vocab.get(unk).ok_or_else(|| {
                BuildError::new(BuildErrorKind::MissingUnk {
                    unk: unk.clone(),
                    vocab_len: vocab.len(),
                })
            })?),
        };
        let tokens =
            vocab.iter().filter(|&(_, _, kind)| matches(kind)).map(|(id, bytes, _)| (bytes, id.0));
        let matcher = Matcher::new(tokens, &options.continuing_prefix)
            .map_err(|_| BuildError::new(BuildErrorKind::TooLarge))?;
        Ok(Self { vocab, options, unk, matcher })
    }

    /// The options the model was made with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The id of the unknown token.
    #[must_use]
    pub fn unk(&self) -> Option<TokenId> {
        self.unk
    }

    /// A session without a box; [`Model::encoder`] is the same behind the trait.
    #[must_use]
    pub fn session(&self) -> Encoder<'_> {
        Encoder::new(self)
    }

    /// Why `word` splits as it does: every longest match and what ended it.
    #[must_use]
    pub fn explain(&self, word: &[u8]) -> Explanation {
        crate::explain::explain(self, word)
    }

    /// The bytes that a token stands for, and whether it continues a word. `None` if there is no
    /// such id.
    #[must_use]
    pub fn text_of(&self, id: TokenId) -> Option<(&[u8], Position)> {
        let bytes = self.vocab.bytes(id)?;
        let continues = self.vocab.kind(id).is_some_and(matches)
            && self.unk != Some(id)
            && bytes.len() > self.options.continuing_prefix.len();
        Some(match bytes.strip_prefix(&self.options.continuing_prefix[..]) {
            Some(rest) if continues => (rest, Position::Continuation),
            _ => (bytes, Position::Initial),
        })
    }

    /// The model of the first `len` tokens. As training only appends, this is the model that
    /// training at that size would have given.
    ///
    /// # Errors
    ///
    /// If the unknown token is cut off.
    pub fn prefix(&self, len: usize) -> Result<Self, BuildError> {
        let mut vocab = Vocab::builder();
        for (_, bytes, kind) in self.vocab.iter().take(len) {
            vocab
                .push(bytes, kind)
                .map_err(|error| BuildError::new(BuildErrorKind::Vocab(error)))?;
        }
        Self::new(vocab.build(), self.options.clone())
    }

    /// The same model with its tokens under other ids, as [`Vocab::renumbered`] has them: `order` has
    /// the present id of each, in the order of the new ones. `None` if that does not name every id
    /// once.
    #[must_use]
    pub fn renumbered(&self, order: &[TokenId]) -> Option<Self> {
        let vocab = self.vocab.renumbered(order)?;
        Some(Self::new(vocab, self.options.clone()).expect("the same tokens make a model"))
    }

    /// The bytes of memory that the matcher takes, without the vocabulary.
    #[must_use]
    pub fn matcher_memory(&self) -> usize {
        self.matcher.memory()
    }
}

/// Where in a word a token belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// At the beginning: the token is spelled without the prefix.
    Initial,
    /// Inside: the token is spelled with the prefix, which is not text.
    Continuation,
}

/// Whether tokens of this kind match text.
pub(crate) fn matches(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Normal | TokenKind::UserDefined | TokenKind::Unknown)
}

impl Model for WordPiece {
    fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    fn encoder(&self) -> Box<dyn Encode + '_> {
        Box::new(self.session())
    }

    fn as_any(&self) -> Option<&dyn core::any::Any> {
        Some(self)
    }
}

/// Joins tokens into words: a continuation loses its prefix and is appended; any other token
/// begins a word, and a word that is not the first gets the
/// [`word_separator`](Options::word_separator) in front.
///
/// A continuation at the very beginning loses its prefix as well. Decoding gives the words,
/// separated, wherever no token is unknown and no word began with a literal `##` that matched a
/// continuation. Clean-up of spaces before punctuation is another layer's choice.
impl Decode for WordPiece {
    fn decode_into(&self, ids: &[TokenId], bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
        let before = bytes.len();
        for (at, &id) in ids.iter().enumerate() {
            let Some((text, position)) = self.text_of(id) else {
                bytes.truncate(before);
                return Err(DecodeError::new(id, at, self.vocab.len()));
            };
            if position == Position::Initial && at > 0 {
                bytes.extend_from_slice(&self.options.word_separator);
            }
            bytes.extend_from_slice(text);
        }
        Ok(())
    }
}

impl fmt::Debug for WordPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WordPiece")
            .field("vocab", &self.vocab)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Why a model could not be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    kind: BuildErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum BuildErrorKind {
    MissingUnk { unk: Vec<u8>, vocab_len: usize },
    Vocab(VocabError),
    TooLarge,
}

impl BuildError {
    fn new(kind: BuildErrorKind) -> Self {
        Self { kind }
    }

    #[cfg(feature = "train")]
    pub(crate) fn vocab(error: VocabError) -> Self {
        Self::new(BuildErrorKind::Vocab(error))
    }

    /// The unknown token, if the fault is that the vocabulary does not hold it.
    #[must_use]
    pub fn missing_unk(&self) -> Option<&[u8]> {
        match &self.kind {
            BuildErrorKind::MissingUnk { unk, .. } => Some(unk),
            _ => None,
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            BuildErrorKind::MissingUnk { unk, vocab_len } => write!(
                f,
                "the unknown token {:?} is not among the {vocab_len} tokens of the vocabulary",
                String::from_utf8_lossy(unk)
            ),
            BuildErrorKind::Vocab(_) => write!(f, "the vocabulary could not be rebuilt"),
            BuildErrorKind::TooLarge => {
                write!(f, "the tokens need more than 4294967295 nodes of the matcher")
            }
        }
    }
}

impl core::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            BuildErrorKind::Vocab(error) => Some(error),
            _ => None,
        }
    }
}
