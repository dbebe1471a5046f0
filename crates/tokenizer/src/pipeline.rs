use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use tokenizer_core::{
    Alignment, DecodeError, Edit, Encode, MAX_BATCH, Model, Normalize, Span, Split, Token, TokenId,
    TokenKind, Vocab,
};

use crate::added::{AddedToken, AddedTokenError, AddedVocabulary, Stretch};
use crate::decoder::{Chain, DecodeStep, Piece, Spelling};
use crate::encoding::Encoding;
use crate::fit::{Padding, Truncation, TruncationError};
use crate::lane::{Lane, LaneSession, Part};
use crate::policy::{Policy, SpecialTokenError};
use crate::post::{PostProcessor, TemplateError, to_char_boundaries};
use crate::stream::{DecodeOptions, DecodeStream};

/// A whole tokenizer: added tokens, normalization, splitting, a model, a template, decoding.
///
/// Immutable and shared: any number of threads encode with one. Scratch memory lives in a
/// [`Session`]; the methods here that encode make one for the call.
pub struct Tokenizer {
    pub(crate) parts: Parts,
    pub(crate) added: AddedVocabulary,
    /// The short way from raw text to ids, where the parts allow one.
    pub(crate) lane: Option<Lane>,
    /// Whether byte tokens are given as the byte and not as `<0x0A>`.
    decodes_bytes: bool,
    /// Whether byte tokens enter the decoder as `<0x0A>`.
    bytes_are_text: bool,
    /// Whether the model's tokens are bytes of which a file has spelled each as a character.
    spells_bytes: bool,
}

/// What a [`Tokenizer`] is made of. Public fields: fill in what is needed and
/// [`build`](Parts::build).
#[non_exhaustive]
pub struct Parts {
    /// Rewrites the text between the added tokens.
    pub normalizer: Option<Box<dyn Normalize>>,
    /// Cut the normalized text into pieces, or rewrite the pieces, in order.
    pub steps: Vec<PieceStep>,
    /// Encodes the pieces.
    pub model: Box<dyn Model>,
    /// Tokens that are matched in the text first.
    pub added_tokens: Vec<AddedToken>,
    /// What is added around the tokens.
    pub post_processor: PostProcessor,
    /// How ids become text.
    pub decoder: Vec<DecodeStep>,
    /// How unknown tokens are written when decoding; `None` writes the token's own bytes.
    pub unknown_surface: Option<String>,
    /// Whether an unknown token is known by the text that it stands for, as in Hugging Face's
    /// Unigram, and not by its own name: trimming offsets looks at that.
    pub unknown_is_surface: bool,
    /// What the byte tokens of unknown characters stand for in the text.
    pub byte_offsets: ByteOffsets,
    /// Whether control tokens of the model decode to nothing (SentencePiece) or to their text.
    pub control_is_silent: bool,
    /// How long encodings are cut.
    pub truncation: Option<Truncation>,
    /// How short encodings are padded.
    pub padding: Option<Padding>,
    /// With which probability the file asks to leave merges out; see
    /// [`Tokenizer::dropout`].
    pub dropout: Option<f32>,
}

/// What the byte tokens stand for that spell unknown characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOffsets {
    /// Each for its character.
    #[default]
    Character,
    /// The last one of a character for that character, the others for nothing before it, as
    /// SentencePiece says.
    LastOfCharacter,
    /// All of a run of unknown characters for the whole run, as in Hugging Face's Unigram.
    Run,
}

/// A step between normalization and the model.
pub enum PieceStep {
    /// Cuts every piece further.
    Split(Box<dyn Split>),
    /// Rewrites every piece.
    Edit(Box<dyn EditPiece>),
}

/// Rewrites a piece, knowing whether the text begins with it.
pub trait EditPiece: Send + Sync {
    /// The new piece; appends what was changed to `edits`, as
    /// [`Normalize::normalize_with_edits`]. `first` says that the piece stands at the very
    /// beginning of the original text.
    fn edit<'t>(&self, piece: &'t str, first: bool, edits: &mut Vec<Edit>) -> Cow<'t, str>;

    /// The step itself, for callers that prove something of a type that they know; `None` for all
    /// others.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// Every normalizer edits pieces, wherever they stand.
impl<N: Normalize> EditPiece for N {
    fn edit<'t>(&self, piece: &'t str, _first: bool, edits: &mut Vec<Edit>) -> Cow<'t, str> {
        self.normalize_with_edits(piece, edits)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Normalize::as_any(self)
    }
}

/// Why parts do not make a tokenizer.
#[derive(Debug)]
pub enum PartsError {
    /// The added tokens contradict each other.
    AddedTokens(AddedTokenError),
    /// The template cannot be used.
    Template(TemplateError),
    /// The truncation cannot work with the template.
    Truncation(TruncationError),
}

impl fmt::Display for PartsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddedTokens(error) => error.fmt(f),
            Self::Template(error) => error.fmt(f),
            Self::Truncation(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PartsError {}

impl Parts {
    /// A model alone: the text is one piece, tokens decode to their bytes.
    #[must_use]
    pub fn new(model: Box<dyn Model>) -> Self {
        Self {
            normalizer: None,
            steps: Vec::new(),
            model,
            added_tokens: Vec::new(),
            post_processor: PostProcessor::None,
            decoder: vec![DecodeStep::Bytes],
            unknown_surface: None,
            unknown_is_surface: false,
            byte_offsets: ByteOffsets::default(),
            control_is_silent: false,
            truncation: None,
            padding: None,
            dropout: None,
        }
    }

    /// Checks everything that could fail later and assembles the tokenizer.
    ///
    /// # Errors
    ///
    /// If added tokens are empty or repeat, a template lacks a text, or a truncation has no room
    /// for what the template adds.
    pub fn build(self) -> Result<Tokenizer, PartsError> {
        let added = AddedVocabulary::new(self.added_tokens.clone(), self.normalizer.as_deref())
            .map_err(PartsError::AddedTokens)?;
        check_templates(&self.post_processor).map_err(PartsError::Template)?;
        if let Some(truncation) = &self.truncation {
            truncation.check(self.post_processor.added(false)).map_err(PartsError::Truncation)?;
        }
        let lane = if added.has_normalized() { None } else { Lane::of(&self) };
        let any = |wanted: fn(&DecodeStep) -> bool| self.decoder.iter().any(wanted);
        let takes_bytes =
            any(|step| matches!(step, DecodeStep::Bytes | DecodeStep::SentencePieceBytes));
        let spells_bytes = any(
            |step| matches!(step, DecodeStep::ByteLevel { vocabulary } if *vocabulary == Spelling::Bytes),
        );
        let decodes_bytes =
            takes_bytes || spells_bytes || any(|step| matches!(step, DecodeStep::ByteFallback));
        Ok(Tokenizer {
            added,
            lane,
            decodes_bytes,
            bytes_are_text: !takes_bytes,
            spells_bytes,
            parts: self,
        })
    }
}

fn check_templates(post_processor: &PostProcessor) -> Result<(), TemplateError> {
    match post_processor {
        PostProcessor::None | PostProcessor::TrimOffsets { .. } => Ok(()),
        PostProcessor::Template(template) => template.check(),
        PostProcessor::Sequence(steps) => steps.iter().try_for_each(check_templates),
    }
}

/// How a text is encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncodeOptions {
    /// What the text of special tokens means.
    pub policy: Policy,
    /// Whether the post-processor's template is filled in (BOS, EOS, CLS, SEP).
    pub template: bool,
}

impl EncodeOptions {
    /// Special tokens are text, and nothing is added.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With this policy for special tokens.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// With the template filled in, or not.
    #[must_use]
    pub fn template(mut self, template: bool) -> Self {
        self.template = template;
        self
    }
}

impl Tokenizer {
    /// The ids of `text`: special tokens are ordinary text, nothing is added. Cannot fail.
    #[must_use]
    pub fn ids(&self, text: &str) -> Vec<TokenId> {
        let mut ids = Vec::new();
        self.session().ids_into(text, &mut ids);
        ids
    }

    /// The number of tokens of `text`: special tokens are ordinary text. Cannot fail.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        self.session().count(text)
    }

    /// Encodes with offsets, words, template, truncation (not padding, which is a batch's).
    ///
    /// # Errors
    ///
    /// If the policy refuses a special token of the text.
    pub fn encode(
        &self,
        text: &str,
        options: &EncodeOptions,
    ) -> Result<Encoding, SpecialTokenError> {
        self.session().encode(text, options)
    }

    /// Encodes two texts that belong together.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn encode_pair(
        &self,
        first: &str,
        second: &str,
        options: &EncodeOptions,
    ) -> Result<Encoding, SpecialTokenError> {
        self.session().encode_pair(first, second, options)
    }

    /// The text of `ids`; bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    ///
    /// If an id is not in the vocabulary.
    pub fn decode(&self, ids: &[TokenId], options: DecodeOptions) -> Result<String, DecodeError> {
        let bytes = self.decode_bytes(ids, options)?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// The bytes of `ids`, which need not be UTF-8.
    ///
    /// # Errors
    ///
    /// If an id is not in the vocabulary.
    pub fn decode_bytes(
        &self,
        ids: &[TokenId],
        options: DecodeOptions,
    ) -> Result<Vec<u8>, DecodeError> {
        let mut chain = self.chain();
        let mut bytes = Vec::new();
        for (at, &id) in ids.iter().enumerate() {
            if let Some(piece) = self.decoded_piece(id, options, at)? {
                chain.push(piece, &mut bytes);
            }
        }
        chain.finish(&mut bytes);
        Ok(bytes)
    }

    /// Decodes ids as they come.
    #[must_use]
    pub fn decode_stream(&self, options: DecodeOptions) -> DecodeStream<'_> {
        DecodeStream::new(self, options)
    }

    /// Whether ids are found by a fast lane: most words are looked up as they stand in the raw text,
    /// because normalizer, steps and model prove that this gives the same.
    #[must_use]
    pub fn has_lane(&self) -> bool {
        self.lane.is_some()
    }

    pub(crate) fn lane(&self) -> Option<&Lane> {
        self.lane.as_ref()
    }

    /// What cuts the text for the model, if nothing else happens to ordinary text.
    pub(crate) fn only_splits(&self) -> Option<&dyn Split> {
        let is_plain = self.parts.normalizer.is_none()
            && !self.added.has_normalized()
            && !self.added.needs_raw(&Policy::Ordinary);
        match &self.parts.steps[..] {
            [PieceStep::Split(split)] if is_plain => Some(split.as_ref()),
            _ => None,
        }
    }

    /// A session that remembers nothing, for [`Session::pieces_into`].
    pub(crate) fn session_for_pieces(&self) -> Session<'_> {
        Session::new(self, self.parts.model.encoder_within(0), None)
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &dyn Model {
        self.parts.model.as_ref()
    }

    /// The model's vocabulary, without the tokens that were added to it.
    #[must_use]
    pub fn vocab(&self) -> &Vocab {
        self.parts.model.vocab()
    }

    /// The number of ids: the model's and those added behind them.
    #[must_use]
    pub fn vocab_len(&self) -> usize {
        let last = self.added.tokens().iter().map(|token| token.id.index() + 1).max();
        self.vocab().len().max(last.unwrap_or(0))
    }

    /// The added tokens, in the order they were given.
    #[must_use]
    pub fn added_tokens(&self) -> &[AddedToken] {
        self.added.tokens()
    }

    /// The id of a token by its text: an added token, else one of the model's.
    #[must_use]
    pub fn token_id(&self, token: &str) -> Option<TokenId> {
        match self.added.get(token) {
            Some(added) => Some(added.id),
            None => self.vocab().get(token.as_bytes()),
        }
    }

    /// The bytes of a token as the vocabulary writes it: an added token's text, else the model's.
    #[must_use]
    pub fn token_bytes(&self, id: TokenId) -> Option<Cow<'_, [u8]>> {
        if let Some(added) = self.added.by_id(id) {
            return Some(Cow::Borrowed(added.content.as_bytes()));
        }
        let bytes = self.vocab().bytes(id)?;
        if self.vocab().kind(id) == Some(TokenKind::Byte) && !self.decodes_bytes {
            return Some(Cow::Owned(format!("<0x{:02X}>", bytes[0]).into_bytes()));
        }
        Some(Cow::Borrowed(bytes))
    }

    /// What the post-processor adds.
    #[must_use]
    pub fn post_processor(&self) -> &PostProcessor {
        &self.parts.post_processor
    }

    /// The same tokenizer with another truncation.
    ///
    /// # Errors
    ///
    /// If it has no room for what the template adds, or its stride is too long.
    pub fn with_truncation(
        mut self,
        truncation: Option<Truncation>,
    ) -> Result<Self, TruncationError> {
        if let Some(truncation) = &truncation {
            truncation.check(self.parts.post_processor.added(false))?;
        }
        self.parts.truncation = truncation;
        Ok(self)
    }

    /// The same tokenizer with another padding.
    #[must_use]
    pub fn with_padding(mut self, padding: Option<Padding>) -> Self {
        self.parts.padding = padding;
        self
    }

    /// The parts again, to change some and build another tokenizer.
    #[must_use]
    pub fn into_parts(self) -> Parts {
        self.parts
    }

    /// The tokenizer whose tokens are the 256 bytes, each its own id.
    #[must_use]
    pub fn bytes() -> Self {
        let no_special: [(&[u8], TokenKind); 0] = [];
        let model = baseline::Bytes::new(no_special).expect("256 bytes, each once");
        Parts::new(Box::new(model)).build().expect("nothing to contradict")
    }

    pub(crate) fn chain(&self) -> Chain {
        Chain::new(&self.parts.decoder)
    }

    /// Whether decoding leaves the token out on request: it is a control token, or its text as the
    /// decoder sees it is that of a special token.
    fn is_skipped(&self, id: TokenId) -> bool {
        if self.added.by_id(id).is_some() {
            return self.added.is_special_text(self.added.decoded(id).unwrap_or_default());
        }
        match self.vocab().kind(id) {
            Some(TokenKind::Control) => true,
            // A piece that is there twice is ordinary under its last id alone.
            Some(TokenKind::Unused) => {
                let bytes = self.vocab().bytes(id).unwrap_or_default();
                std::str::from_utf8(bytes).is_ok_and(|text| self.added.is_special_text(text))
            }
            _ => false,
        }
    }

    /// What enters the decoding chain for an id; `None` where it is skipped.
    pub(crate) fn decoded_piece(
        &self,
        id: TokenId,
        options: DecodeOptions,
        at: usize,
    ) -> Result<Option<Piece>, DecodeError> {
        if options.skip_special && self.is_skipped(id) {
            // A silent control token still ends a run of byte tokens.
            let silence = self.parts.control_is_silent.then(|| Piece::text(Vec::new()));
            return Ok(silence);
        }
        if let Some(text) = self.added.decoded(id) {
            return Ok(Some(Piece::text(text.as_bytes().to_vec())));
        }
        let Some(bytes) = self.vocab().bytes(id) else {
            return Err(DecodeError::new(id, at, self.vocab_len()));
        };
        let mut piece = Piece::text(bytes.to_vec());
        match (self.vocab().kind(id), &self.parts.unknown_surface) {
            (Some(TokenKind::Normal), _) => piece.is_model = true,
            (Some(TokenKind::Byte), _) if self.bytes_are_text => {
                piece.bytes = format!("<0x{:02X}>", bytes[0]).into_bytes();
            }
            (Some(TokenKind::Byte), _) => piece.is_byte = true,
            (Some(TokenKind::Unknown), Some(surface)) => {
                piece = Piece::verbatim(surface.as_bytes().to_vec());
            }
            (Some(TokenKind::Control), _) if self.parts.control_is_silent => piece.bytes.clear(),
            // An id that the vocabulary leaves out.
            (Some(TokenKind::Unused), _) if bytes.is_empty() => return Ok(None),
            _ => {}
        }
        Ok(Some(piece))
    }

    /// The leading and trailing white space of a token in characters, as it is spelled where
    /// offsets are trimmed; `surface` is what it stands for in the text.
    fn white_space(&self, id: TokenId, surface: &str) -> (usize, usize) {
        let ends = |text: &str, blank: fn(char) -> bool| {
            let count =
                |chars: &mut dyn Iterator<Item = char>| chars.take_while(|&c| blank(c)).count();
            (count(&mut text.chars()), count(&mut text.chars().rev()))
        };
        // The character that byte-level models have for a space counts too, wherever it is from.
        let spelled = |c: char| c.is_whitespace() || c == '\u{120}';
        if let Some(added) = self.added.by_id(id) {
            // The model's unknown token may be an added one too: then it is not what was matched.
            let with_blanks =
                (added.lstrip || added.rstrip) && surface.trim() == added.content.trim();
            let text = self.added.decoded(id).unwrap_or(&added.content);
            return ends(if with_blanks { surface } else { text }, spelled);
        }
        let Some(bytes) = self.vocab().bytes(id) else {
            return (0, 0);
        };
        match self.vocab().kind(id) {
            Some(TokenKind::Byte) => (0, 0),
            Some(TokenKind::Unknown) if self.parts.unknown_is_surface => ends(surface, spelled),
            // Where tokens are bytes a space is the only one that is spelled as white space.
            Some(TokenKind::Normal) if self.spells_bytes => {
                let count = |bytes: &mut dyn Iterator<Item = &u8>| {
                    bytes.take_while(|&&byte| byte == b' ').count()
                };
                (count(&mut bytes.iter()), count(&mut bytes.iter().rev()))
            }
            _ => ends(&String::from_utf8_lossy(bytes), spelled),
        }
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").field("vocab_len", &self.vocab_len()).finish_non_exhaustive()
    }
}

/// A tokenizer and its scratch memory, for one thread.
pub struct Session<'t> {
    tokenizer: &'t Tokenizer,
    encoder: Box<dyn Encode + 't>,
    lane: Option<LaneSession<'t>>,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    stretches: Vec<Stretch>,
    inner: Vec<Stretch>,
    pieces: Vec<Span>,
    spare: Vec<Span>,
    tokens: Vec<Token>,
    ends: Vec<usize>,
}

/// Pieces of a text, ready for the model.
pub(crate) struct Prepared<'a> {
    pub(crate) text: &'a str,
    pub(crate) pieces: &'a [Span],
    pub(crate) source: Source<'a>,
}

/// Where a text comes from: byte `at` of it is byte `at + base` of what `alignment` maps to the
/// stretch of the original text that begins at `start`.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) base: usize,
    pub(crate) alignment: &'a Alignment,
    pub(crate) start: usize,
}

impl Source<'_> {
    /// The bytes of the original text that a span of the text stands for.
    pub(crate) fn original(&self, span: Span) -> Span {
        self.alignment.to_source(span.shifted(self.base)).shifted(self.start)
    }
}

/// Takes what the pipeline finds, in order.
pub(crate) trait Sink {
    /// Whether [`text`](Self::text) needs the alignment.
    const WANTS_ALIGNMENT: bool;
    /// An added token and its span in the original text.
    fn token(&mut self, id: TokenId, span: Span);
    /// Text for the model.
    fn text(&mut self, prepared: &Prepared<'_>, encoder: &mut dyn Encode);
    /// Takes raw text by the lane, and returns whether it did: only ids come out of a lane.
    fn raw(
        &mut self,
        text: &str,
        is_first: bool,
        lane: &mut LaneSession<'_>,
        encoder: &mut dyn Encode,
    ) -> bool {
        let _ = (text, is_first, lane, encoder);
        false
    }
}

struct IdSink<'o>(&'o mut Vec<TokenId>);

impl Sink for IdSink<'_> {
    const WANTS_ALIGNMENT: bool = false;

    fn token(&mut self, id: TokenId, _span: Span) {
        self.0.push(id);
    }

    fn text(&mut self, prepared: &Prepared<'_>, encoder: &mut dyn Encode) {
        encoder.encode_ids_into(prepared.text.as_bytes(), prepared.pieces, self.0);
    }

    fn raw(
        &mut self,
        text: &str,
        is_first: bool,
        lane: &mut LaneSession<'_>,
        encoder: &mut dyn Encode,
    ) -> bool {
        lane.run(text, is_first, Part::WHOLE, encoder, self.0, |_| false);
        true
    }
}

/// Counts tokens, and stops counting soon after the limit is passed.
struct CountSink {
    count: usize,
    limit: usize,
}

impl Sink for CountSink {
    const WANTS_ALIGNMENT: bool = false;

    fn token(&mut self, _id: TokenId, _span: Span) {
        self.count += 1;
    }

    fn text(&mut self, prepared: &Prepared<'_>, encoder: &mut dyn Encode) {
        for batch in prepared.pieces.chunks(MAX_BATCH) {
            if self.count > self.limit {
                return;
            }
            self.count += encoder.count_pieces(prepared.text.as_bytes(), batch);
        }
    }

    fn raw(
        &mut self,
        text: &str,
        is_first: bool,
        lane: &mut LaneSession<'_>,
        encoder: &mut dyn Encode,
    ) -> bool {
        let limit = self.limit;
        lane.run(text, is_first, Part::WHOLE, encoder, &mut self.count, |&count| count > limit);
        true
    }
}

pub(crate) struct EncodingSink<'o> {
    pub(crate) original: &'o str,
    pub(crate) encoding: &'o mut Encoding,
    pub(crate) tokens: &'o mut Vec<Token>,
    pub(crate) ends: &'o mut Vec<usize>,
    pub(crate) words: u32,
    pub(crate) byte_offsets: ByteOffsets,
    pub(crate) vocab: &'o Vocab,
}

impl Sink for EncodingSink<'_> {
    const WANTS_ALIGNMENT: bool = true;

    fn token(&mut self, id: TokenId, span: Span) {
        self.encoding.push(id, span, Some(self.words));
        self.words += 1;
    }

    fn text(&mut self, prepared: &Prepared<'_>, encoder: &mut dyn Encode) {
        let Source { base, alignment, start } = prepared.source;
        for batch in prepared.pieces.chunks(MAX_BATCH) {
            self.tokens.clear();
            self.ends.clear();
            encoder.encode_pieces_apart(prepared.text.as_bytes(), batch, self.tokens, self.ends);
            if alignment.is_identity() {
                self.push(prepared.text, batch, |span| span.shifted(base + start));
            } else {
                self.push(prepared.text, batch, |span| {
                    alignment.to_source(span.shifted(base)).shifted(start)
                });
            }
        }
    }
}

impl EncodingSink<'_> {
    /// Adds the tokens of some pieces; `to_original` maps a span of their text.
    #[inline]
    fn push(&mut self, text: &str, pieces: &[Span], to_original: impl Fn(Span) -> Span) {
        let Self { original, encoding, tokens, ends, words, byte_offsets, vocab } = self;
        encoding.ids.extend(tokens.iter().map(|token| token.id));
        encoding.offsets.reserve(tokens.len());
        encoding.words.reserve(tokens.len());
        let mut rest = &tokens[..];
        let mut done = 0;
        for (piece, &end) in pieces.iter().zip(ends.iter()) {
            let of_piece;
            (of_piece, rest) = rest.split_at(end - done);
            done = end;
            let from = encoding.offsets.len();
            let mut at = piece.start;
            for token in of_piece {
                let end = at + token.len as usize;
                let span = to_char_boundaries(original, to_original(Span::new(at, end)));
                encoding.offsets.push(span);
                at = end;
            }
            if *byte_offsets != ByteOffsets::Character {
                let piece = &text.as_bytes()[piece.range()];
                let offsets = &mut encoding.offsets[from..];
                set_byte_offsets(*byte_offsets, vocab, piece, of_piece, offsets);
            }
            encoding.words.extend(of_piece.iter().map(|_| Some(*words)));
            *words += 1;
        }
    }
}

/// Sets the offsets of byte tokens, of which each has its character's so far.
fn set_byte_offsets(
    how: ByteOffsets,
    vocab: &Vocab,
    piece: &[u8],
    tokens: &[Token],
    offsets: &mut [Span],
) {
    // The text `<0x0A>` can be a byte token too, where Hugging Face finds it in the vocabulary.
    let is_byte = |token: &Token| token.len <= 4 && vocab.kind(token.id) == Some(TokenKind::Byte);
    match how {
        ByteOffsets::Character => {}
        ByteOffsets::LastOfCharacter => {
            let mut at = 0;
            for (token, offset) in tokens.iter().zip(offsets) {
                at += token.len as usize;
                let ends_character = piece.get(at).is_none_or(|byte| byte & 0xC0 != 0x80);
                if is_byte(token) && !ends_character {
                    offset.end = offset.start;
                }
            }
        }
        ByteOffsets::Run => {
            let mut at = 0;
            for run in tokens.chunk_by(|a, b| is_byte(a) && is_byte(b)) {
                let end = at + run.len();
                let whole = Span::new(offsets[at].start, offsets[end - 1].end);
                offsets[at..end].fill(whole);
                at = end;
            }
        }
    }
}

impl<'t> Session<'t> {
    /// A session with this encoder; a lane knows the model's own tokens, not those of another
    /// encoder.
    pub(crate) fn new(
        tokenizer: &'t Tokenizer,
        encoder: Box<dyn Encode + 't>,
        lane: Option<LaneSession<'t>>,
    ) -> Self {
        Self { tokenizer, encoder, lane, scratch: Scratch::default() }
    }

    pub(crate) fn tokenizer(&self) -> &'t Tokenizer {
        self.tokenizer
    }

    /// Appends the ids of pieces that were cut already.
    pub(crate) fn encode_pieces(&mut self, text: &str, pieces: &[Span], ids: &mut Vec<TokenId>) {
        self.encoder.encode_ids_into(text.as_bytes(), pieces, ids);
    }

    /// Appends the ids of a stretch that holds no added token of the original text.
    pub(crate) fn encode_stretch(
        &mut self,
        original: &str,
        span: Span,
        policy: &Policy,
        ids: &mut Vec<TokenId>,
    ) -> Result<(), SpecialTokenError> {
        self.run_stretch(original, span, policy, &mut IdSink(ids))
    }

    /// Hands the pieces of `text` to a sink, and what is added to it as tokens: special tokens are
    /// ordinary text.
    pub(crate) fn pieces_into<S: Sink>(&mut self, text: &str, sink: &mut S) {
        let run = self.run(text, &Policy::Ordinary, sink);
        run.expect("the ordinary policy refuses nothing");
    }

    /// Appends the ids of `text`: special tokens are ordinary text, nothing is added.
    pub fn ids_into(&mut self, text: &str, ids: &mut Vec<TokenId>) {
        let run = self.run(text, &Policy::Ordinary, &mut IdSink(ids));
        run.expect("the ordinary policy refuses nothing");
    }

    /// Appends the ids of a part of a text that is one stretch, which the [lane](Tokenizer::lane) has
    /// taken apart.
    pub(crate) fn lane_ids_into(&mut self, text: &str, part: Part, ids: &mut Vec<TokenId>) {
        let lane = self.lane.as_mut().expect("only a lane gives parts");
        lane.run(text, part.begins, part, self.encoder.as_mut(), ids, |_| false);
    }

    /// Appends the ids of `text` under a policy for special tokens; nothing is added.
    ///
    /// # Errors
    ///
    /// If the policy refuses a special token of the text. Ids before it may have been appended.
    pub fn ids_with_policy_into(
        &mut self,
        text: &str,
        policy: &Policy,
        ids: &mut Vec<TokenId>,
    ) -> Result<(), SpecialTokenError> {
        self.run(text, policy, &mut IdSink(ids))
    }

    /// The number of tokens of `text`: special tokens are ordinary text, nothing is added.
    pub fn count(&mut self, text: &str) -> usize {
        self.count_while(text, usize::MAX)
    }

    /// The number of tokens, or some number above `limit` if there are more.
    pub(crate) fn count_while(&mut self, text: &str, limit: usize) -> usize {
        let mut sink = CountSink { count: 0, limit };
        let run = self.run(text, &Policy::Ordinary, &mut sink);
        run.expect("the ordinary policy refuses nothing");
        sink.count
    }

    /// Ids and offsets under the ordinary policy, without template or truncation.
    pub(crate) fn encode_plain(&mut self, text: &str) -> Encoding {
        self.encode_text(text, &Policy::Ordinary).expect("the ordinary policy refuses nothing")
    }

    /// The number of tokens of `text` under a policy for special tokens; nothing is added.
    ///
    /// # Errors
    ///
    /// If the policy refuses a special token of the text.
    pub fn count_with_policy(
        &mut self,
        text: &str,
        policy: &Policy,
    ) -> Result<usize, SpecialTokenError> {
        let mut sink = CountSink { count: 0, limit: usize::MAX };
        self.run(text, policy, &mut sink)?;
        Ok(sink.count)
    }

    /// Encodes with offsets, words, template and truncation.
    ///
    /// # Errors
    ///
    /// If the policy refuses a special token of the text.
    pub fn encode(
        &mut self,
        text: &str,
        options: &EncodeOptions,
    ) -> Result<Encoding, SpecialTokenError> {
        let encoding = self.encode_text(text, &options.policy)?;
        Ok(self.finish((text, encoding), None, options))
    }

    /// Encodes two texts that belong together.
    ///
    /// # Errors
    ///
    /// If the policy refuses a special token of a text.
    pub fn encode_pair(
        &mut self,
        first: &str,
        second: &str,
        options: &EncodeOptions,
    ) -> Result<Encoding, SpecialTokenError> {
        let of_first = self.encode_text(first, &options.policy)?;
        let of_second = self.encode_text(second, &options.policy)?;
        Ok(self.finish((first, of_first), Some((second, of_second)), options))
    }

    fn encode_text(&mut self, text: &str, policy: &Policy) -> Result<Encoding, SpecialTokenError> {
        let parts = &self.tokenizer.parts;
        let mut encoding = Encoding::default();
        let mut tokens = std::mem::take(&mut self.scratch.tokens);
        let mut ends = std::mem::take(&mut self.scratch.ends);
        let mut sink = EncodingSink {
            original: text,
            encoding: &mut encoding,
            tokens: &mut tokens,
            ends: &mut ends,
            words: 0,
            byte_offsets: parts.byte_offsets,
            vocab: parts.model.vocab(),
        };
        let run = self.run(text, policy, &mut sink);
        self.scratch.tokens = tokens;
        self.scratch.ends = ends;
        run?;
        encoding.fill_text();
        Ok(encoding)
    }

    fn finish<'o>(
        &self,
        mut first: (&'o str, Encoding),
        mut second: Option<(&'o str, Encoding)>,
        options: &EncodeOptions,
    ) -> Encoding {
        let parts = &self.tokenizer.parts;
        let added = if options.template { parts.post_processor.added(second.is_some()) } else { 0 };
        if let Some(truncation) = &parts.truncation {
            truncation.apply(&mut first.1, second.as_mut().map(|(_, second)| second), added);
        }
        for (text, encoding) in std::iter::once(&mut first).chain(&mut second) {
            let white_space = |id, span: Span| self.tokenizer.white_space(id, &text[span.range()]);
            parts.post_processor.trim(encoding, text, &white_space);
        }
        parts.post_processor.assemble(first.1, second.map(|(_, second)| second), options.template)
    }

    /// The pipeline: added tokens, normalization, added tokens of normalized text, pieces.
    pub(crate) fn run<S: Sink>(
        &mut self,
        text: &str,
        policy: &Policy,
        sink: &mut S,
    ) -> Result<(), SpecialTokenError> {
        let added = &self.tokenizer.added;
        if !added.needs_raw(policy) {
            return self.run_stretch(text, Span::new(0, text.len()), policy, sink);
        }
        let mut stretches = std::mem::take(&mut self.scratch.stretches);
        stretches.clear();
        let mut run = added.scan_raw(text, policy, &mut stretches);
        for stretch in &stretches {
            if run.is_err() {
                break;
            }
            match stretch.token {
                Some(id) => sink.token(id, stretch.span),
                None => run = self.run_stretch(text, stretch.span, policy, sink),
            }
        }
        self.scratch.stretches = stretches;
        run
    }

    /// A stretch of the original text between added tokens.
    fn run_stretch<S: Sink>(
        &mut self,
        original: &str,
        span: Span,
        policy: &Policy,
        sink: &mut S,
    ) -> Result<(), SpecialTokenError> {
        let text = &original[span.range()];
        if let Some(lane) = &mut self.lane
            && sink.raw(text, span.start == 0, lane, self.encoder.as_mut())
        {
            return Ok(());
        }
        let mut edits = Vec::new();
        let normalized = match &self.tokenizer.parts.normalizer {
            None => Cow::Borrowed(text),
            Some(normalizer) if S::WANTS_ALIGNMENT || self.tokenizer.added.has_normalized() => {
                normalizer.normalize_with_edits(text, &mut edits)
            }
            Some(normalizer) => normalizer.normalize(text),
        };
        let alignment = Alignment::new(edits);
        if !self.tokenizer.added.has_normalized() {
            let source = Source { base: 0, alignment: &alignment, start: span.start };
            self.run_text(&normalized, source, sink);
            return Ok(());
        }
        let mut inner = std::mem::take(&mut self.scratch.inner);
        inner.clear();
        let scan = self.tokenizer.added.scan_normalized(&normalized, policy, &mut inner);
        if scan.is_ok() {
            for stretch in &inner {
                match stretch.token {
                    Some(id) => {
                        let source = alignment.to_source(stretch.span).shifted(span.start);
                        sink.token(id, to_char_boundaries(original, source));
                    }
                    None => {
                        let base = stretch.span.start;
                        let source = Source { base, alignment: &alignment, start: span.start };
                        self.run_text(&normalized[stretch.span.range()], source, sink);
                    }
                }
            }
        }
        self.scratch.inner = inner;
        scan.map_err(|error| SpecialTokenError {
            span: alignment.to_source(error.span).shifted(span.start),
            ..error
        })
    }

    /// A stretch of the normalized text that goes to the model.
    fn run_text<S: Sink>(&mut self, text: &str, source: Source<'_>, sink: &mut S) {
        if text.is_empty() {
            return;
        }
        // Most tokenizers only cut the text: then pieces go on while they are warm.
        if let [PieceStep::Split(split)] = &self.tokenizer.parts.steps[..] {
            let encoder = self.encoder.as_mut();
            split.split_batches(text, &mut |pieces| {
                sink.text(&Prepared { text, pieces, source }, encoder);
            });
            return;
        }
        let mut pieces = std::mem::take(&mut self.scratch.pieces);
        let mut spare = std::mem::take(&mut self.scratch.spare);
        pieces.clear();
        pieces.push(Span::new(0, text.len()));
        let mut text = Cow::Borrowed(text);
        let base = source.base;
        let mut edited: Option<Alignment> = None;
        for step in &self.tokenizer.parts.steps {
            spare.clear();
            match step {
                PieceStep::Split(split) => split_pieces(split.as_ref(), &text, &pieces, &mut spare),
                PieceStep::Edit(edit) => {
                    let so_far = edited.as_ref().unwrap_or(source.alignment);
                    let (new_text, mut edits) =
                        edit_pieces(edit.as_ref(), &text, &pieces, &mut spare, |at| {
                            let at = at + base;
                            source.start + so_far.to_source(Span::new(at, at + 1)).start == 0
                        });
                    // The text may be a stretch of a longer one, which is edited nowhere else.
                    for edit in &mut edits {
                        edit.source = edit.source.shifted(base);
                        edit.target = edit.target.shifted(base);
                    }
                    let composed = tokenizer_core::compose(so_far.edits(), &edits);
                    edited = Some(Alignment::new(composed));
                    text = Cow::Owned(new_text);
                }
            }
            std::mem::swap(&mut pieces, &mut spare);
        }
        let alignment = edited.as_ref().unwrap_or(source.alignment);
        let source = Source { alignment, ..source };
        sink.text(&Prepared { text: &text, pieces: &pieces, source }, self.encoder.as_mut());
        self.scratch.pieces = pieces;
        self.scratch.spare = spare;
    }
}

/// Takes pieces through the steps, none of which asks where the text begins. Returns the text that
/// the pieces are of in the end.
pub(crate) fn run_steps<'a>(
    steps: &[PieceStep],
    mut text: Cow<'a, str>,
    pieces: &mut Vec<Span>,
    spare: &mut Vec<Span>,
) -> Cow<'a, str> {
    for step in steps {
        spare.clear();
        match step {
            PieceStep::Split(split) => split_pieces(split.as_ref(), &text, pieces, spare),
            PieceStep::Edit(edit) => {
                let (edited, _) = edit_pieces(edit.as_ref(), &text, pieces, spare, |_| false);
                text = Cow::Owned(edited);
            }
        }
        std::mem::swap(pieces, spare);
    }
    text
}

/// Cuts every piece.
fn split_pieces(split: &dyn Split, text: &str, pieces: &[Span], new_pieces: &mut Vec<Span>) {
    for piece in pieces {
        let from = new_pieces.len();
        split.split_into(&text[piece.range()], new_pieces);
        for span in &mut new_pieces[from..] {
            *span = span.shifted(piece.start);
        }
    }
}

/// Rewrites every piece; what lies between pieces stays as it is. Appends the new pieces.
fn edit_pieces(
    edit: &dyn EditPiece,
    text: &str,
    pieces: &[Span],
    new_pieces: &mut Vec<Span>,
    is_first: impl Fn(usize) -> bool,
) -> (String, Vec<Edit>) {
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    let mut edits = Vec::new();
    let mut at = 0;
    for piece in pieces {
        out.push_str(&text[at..piece.start]);
        at = piece.end;
        let target = out.len();
        let from = edits.len();
        let new = edit.edit(&text[piece.range()], is_first(piece.start), &mut edits);
        for edit in &mut edits[from..] {
            edit.source = edit.source.shifted(piece.start);
            edit.target = edit.target.shifted(target);
        }
        out.push_str(&new);
        if out.len() > target {
            new_pieces.push(Span::new(target, out.len()));
        }
    }
    out.push_str(&text[at..]);
    (out, edits)
}
