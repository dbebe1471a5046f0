use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use tokenizer_core::{
    Decode, DecodeError, Encode, Model, Token, TokenId, TokenKind, Vocab, sort_by_bytes,
};

use crate::error::{BuildError, Kind};
use crate::trie::DoubleArray;
use crate::viterbi::{EdgeScores, Session};

/// The greatest magnitude of a score: no sum of so many tokens as fit 4 GiB passes the range of
/// 32-bit floats then, so every score of every path is finite.
pub const MAX_SCORE: f64 = 1e27;

/// A unigram language model: a vocabulary with a log-probability for every token.
///
/// Immutable and shareable. Encoding gives the tokens whose scores have the greatest sum; which
/// one of several equal sums, and how sums are rounded, is the [`Compat`] mode's affair.
///
/// A character that no token covers is unknown: consecutive ones become one unknown token, or
/// their bytes ([`UnigramOptions::byte_fallback`]). If the vocabulary has neither an unknown token
/// nor the bytes, such characters are dropped, and only then do the lengths of the tokens not add
/// up to the piece.
///
/// Decoding appends the bytes of every token, whatever its kind: decode(encode(x)) = x for every x
/// without unknown characters (and, in Hugging Face mode, without the names of byte tokens, which
/// decode to the byte there). What is shown for unknown and control tokens is the caller's
/// business.
#[derive(Clone)]
pub struct Unigram {
    pub(crate) vocab: Vocab,
    /// As given, by id.
    scores: Vec<f64>,
    pub(crate) options: UnigramOptions,
    pub(crate) unk: Option<TokenId>,
    pub(crate) trie: DoubleArray,
    /// The length in bytes of the text that a token matches, by id.
    pub(crate) lens: Vec<u32>,
    pub(crate) max_len: usize,
    pub(crate) edges: EdgeScores,
}

/// How a [`Unigram`] reads text.
///
/// ```
/// use unigram::{Compat, UnigramOptions};
///
/// let mut options = UnigramOptions::default();
/// options.compat = Compat::HuggingFace;
/// options.byte_fallback = true;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnigramOptions {
    /// Whose arithmetic and whose rules.
    pub compat: Compat,
    /// Unknown characters become byte tokens. Default: no.
    pub byte_fallback: bool,
    /// Consecutive unknown characters are one unknown token. Default: yes, which is what both
    /// libraries do.
    pub fuse_unk: bool,
}

impl Default for UnigramOptions {
    fn default() -> Self {
        Self { compat: Compat::default(), byte_fallback: false, fuse_unk: true }
    }
}

/// Whose ids are the right ones.
///
/// In every mode the earliest beginning wins among equally good tokens that end at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compat {
    /// SentencePiece 0.2.3. Scores and sums are 32-bit floats, summed from the beginning of the
    /// piece, moved back to 0 whenever they pass ±100000. A user-defined token of n bytes scores
    /// 0.1 (n - 1). Normal and user-defined tokens match, others never. An unknown character
    /// scores 10 less than the worst normal token. Byte fallback needs all 256 bytes.
    #[default]
    SentencePiece,
    /// SentencePiece 0.2.1 and before: a sum is compared as a 64-bit float (but for that of an
    /// unknown character) and kept as a 32-bit one, is never moved back, and a user-defined token of n bytes scores n times the best score
    /// of a normal token, at least 0 times, less 0.1.
    SentencePiece021,
    /// Hugging Face tokenizers 0.23. All arithmetic is 64-bit. Every token matches its text,
    /// whatever its kind: the unknown token, control tokens, and byte tokens as `<0x41>`. An
    /// unknown character scores 10 less than the worst token. Byte fallback replaces a whole run
    /// of unknown characters, and only if each of its bytes has a token; a run that spells a
    /// token becomes that token.
    HuggingFace,
}

impl Unigram {
    /// The model of this vocabulary; `scores[id]` is the natural logarithm of the probability of
    /// token `id` (any finite number will do: scores need not be normalized).
    ///
    /// In the SentencePiece modes scores are rounded to 32-bit floats, as model files hold them.
    /// The first token of kind `Unknown` stands for unknown characters.
    ///
    /// # Errors
    ///
    /// If there is not one score for each token, if a score is not finite or beyond
    /// [`MAX_SCORE`], if there are two unknown tokens, or if byte fallback misses a byte in a
    /// SentencePiece mode.
    pub fn new(
        vocab: Vocab,
        scores: Vec<f64>,
        options: UnigramOptions,
    ) -> Result<Self, BuildError> {
        if vocab.len() != scores.len() {
            let (tokens, scores) = (vocab.len(), scores.len());
            return Err(BuildError::new(Kind::ScoreCount { tokens, scores }));
        }
        let mut unk = None;
        for ((id, _, kind), &score) in vocab.iter().zip(&scores) {
            if score.is_nan() || score.abs() > MAX_SCORE {
                return Err(BuildError::new(Kind::Score { id, score }));
            }
            if kind == TokenKind::Unknown {
                if let Some(first) = unk {
                    return Err(BuildError::new(Kind::TwoUnknown { id, first }));
                }
                unk = Some(id);
            }
        }
        let hugging_face = options.compat == Compat::HuggingFace;
        if options.byte_fallback
            && !hugging_face
            && let Some(byte) = (0..=255).find(|&byte| vocab.byte(byte).is_none())
        {
            return Err(BuildError::new(Kind::MissingByte { byte }));
        }

        let min_score = least_score(&vocab, &scores, options.compat).unwrap_or(0.0);

        let byte_names: Vec<[u8; 6]> = (0..=u8::MAX).map(byte_piece).collect();
        let mut keys: Vec<(&[u8], u32)> = Vec::with_capacity(vocab.len());
        let mut lens = Vec::with_capacity(vocab.len());
        for (id, bytes, kind) in vocab.iter() {
            let text = match kind {
                TokenKind::Normal | TokenKind::UserDefined => bytes,
                TokenKind::Unknown | TokenKind::Control if hugging_face => bytes,
                TokenKind::Byte if hugging_face => &byte_names[usize::from(bytes[0])],
                _ => &[],
            };
            lens.push(text.len() as u32);
            if !text.is_empty() {
                keys.push((text, id.0));
            }
        }
        sort_by_bytes(&mut keys);
        let mut sorted: Vec<(&[u8], u32)> = Vec::with_capacity(keys.len());
        for (text, id) in keys {
            match sorted.last_mut() {
                Some((last, kept)) if *last == text => {
                    // A token that spells a byte's name comes before that byte.
                    if vocab.kind(TokenId(id)) != Some(TokenKind::Byte) {
                        *kept = id;
                    }
                }
                _ => sorted.push((text, id)),
            }
        }
        let max_len = sorted.iter().map(|key| key.0.len()).max().unwrap_or(0);
        let trie = DoubleArray::build(&sorted)
            .map_err(|_| BuildError::new(Kind::TooLarge { tokens: vocab.len() }))?;
        let edges = EdgeScores::new(options.compat, &vocab, &scores, min_score);
        Ok(Self { vocab, scores, options, unk, trie, lens, max_len, edges })
    }

    /// The tokens of one piece. For more than a few, keep a [`session`](Self::session).
    #[must_use]
    pub fn encode(&self, piece: &[u8]) -> Vec<Token> {
        let mut tokens = Vec::new();
        self.session().encode_piece(piece, &mut tokens);
        tokens
    }

    /// A new session; [`Model::encoder`] without the box.
    #[must_use]
    pub fn session(&self) -> Session<'_> {
        Session::new(self)
    }

    /// The options that the model was built with.
    #[must_use]
    pub fn options(&self) -> &UnigramOptions {
        &self.options
    }

    /// The score that was given for a token, or `None` if there is no such id.
    #[must_use]
    pub fn score(&self, id: TokenId) -> Option<f64> {
        self.scores.get(id.index()).copied()
    }

    /// The scores of all tokens, by id, as they were given.
    #[must_use]
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// The token that stands for unknown characters.
    #[must_use]
    pub fn unknown(&self) -> Option<TokenId> {
        self.unk
    }

    /// The score of an unknown character.
    #[must_use]
    pub fn unknown_score(&self) -> f64 {
        self.edges.unknown()
    }

    /// The token that `text` is, if it is one that matches text.
    pub(crate) fn exact(&self, text: &[u8]) -> Option<TokenId> {
        self.trie.get(text).map(TokenId)
    }
}

impl Model for Unigram {
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

impl Decode for Unigram {
    fn decode_into(&self, ids: &[TokenId], bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
        let before = bytes.len();
        for (at, &id) in ids.iter().enumerate() {
            match self.vocab.bytes(id) {
                Some(token) => bytes.extend_from_slice(token),
                None => {
                    bytes.truncate(before);
                    return Err(DecodeError::new(id, at, self.vocab.len()));
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Unigram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unigram")
            .field("vocab", &self.vocab)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The least score of the tokens that decide what an unknown character scores.
pub(crate) fn least_score(vocab: &Vocab, scores: &[f64], compat: Compat) -> Option<f64> {
    let counts = |kind| compat == Compat::HuggingFace || kind == TokenKind::Normal;
    let scores = vocab.iter().zip(scores).filter(|((.., kind), _)| counts(*kind));
    scores.map(|(_, &score)| score).reduce(f64::min)
}

/// Two models are equal when their vocabularies, scores and options are.
impl PartialEq for Unigram {
    fn eq(&self, other: &Self) -> bool {
        self.vocab == other.vocab && self.scores == other.scores && self.options == other.options
    }
}

/// One way to cut a piece into tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Segmentation {
    /// The tokens. Their lengths add up to the piece, as in encoding.
    pub tokens: Vec<Token>,
    /// The sum of the scores along the path, in 64-bit arithmetic: a natural logarithm. A fused
    /// run of unknown characters counts once for each character.
    pub score: f64,
}

/// The name of a byte token, `<0x0A>`.
pub(crate) fn byte_piece(byte: u8) -> [u8; 6] {
    let digit = |nibble: u8| b"0123456789ABCDEF"[usize::from(nibble)];
    [b'<', b'0', b'x', digit(byte >> 4), digit(byte & 15), b'>']
}
