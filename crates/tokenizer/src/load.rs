//! Files of any format, recognised by their content.

use std::fmt;

use formats::gguf::{self, GgufVocab};
use formats::gpt2::Gpt2;
use formats::sentencepiece::SentencePieceModel;
use formats::tekken::Tekken;
use formats::tokenizer_json::TokenizerJson;
use formats::vocab_txt::VocabTxt;
use formats::{Format, IdMap, ReadError, detect, tiktoken};

use crate::lower::{BertCase, LowerError, RanksSetup, TiktokenEncoding};
use crate::pipeline::Tokenizer;

/// What a vocabulary file holds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Document {
    /// A tokenizer.json.
    TokenizerJson(Box<TokenizerJson>),
    /// A SentencePiece model.
    SentencePiece(Box<SentencePieceModel>),
    /// tiktoken's ranks.
    Tiktoken(IdMap<[u8]>),
    /// A tekken.json.
    Tekken(Box<Tekken>),
    /// A vocab.json with its merges.txt.
    Gpt2(Box<Gpt2>),
    /// A vocab.txt.
    VocabTxt(VocabTxt),
    /// The vocabulary of a GGUF file.
    Gguf(Box<GgufVocab>),
}

/// What some files leave unsaid.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The pattern and the special tokens of a file of ranks. Without it the published encodings
    /// are recognised by their ranks, and others are refused.
    pub ranks: Option<RanksSetup>,
    /// Whether a vocab.txt is of lower-cased text. Without it the tokens tell.
    pub case: Option<BertCase>,
}

/// Why a file could not become a tokenizer.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The format was not recognised.
    Unknown,
    /// The format is recognised but needs another file beside it, or is no vocabulary.
    Incomplete(String),
    /// The file does not keep to its format.
    Read(ReadError),
    /// The file says what its library would not accept.
    Lower(LowerError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str(
                "not a vocabulary file of a known format (tokenizer.json, .model, .tiktoken, tekken.json, vocab.txt, vocab.json with merges.txt, GGUF)",
            ),
            Self::Incomplete(what) => f.write_str(what),
            Self::Read(error) => error.fmt(f),
            Self::Lower(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unknown | Self::Incomplete(_) => None,
            Self::Read(error) => std::error::Error::source(error),
            Self::Lower(error) => std::error::Error::source(error),
        }
    }
}

impl From<ReadError> for LoadError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<LowerError> for LoadError {
    fn from(error: LowerError) -> Self {
        Self::Lower(error)
    }
}

impl LoadOptions {
    /// What is said about ranks, else what is known of them.
    pub(crate) fn ranks_setup(&self, ranks: &IdMap<[u8]>) -> Result<RanksSetup, LoadError> {
        let known = || TiktokenEncoding::of_ranks(ranks).map(RanksSetup::from);
        self.ranks.clone().or_else(known).ok_or_else(|| {
            LoadError::Incomplete(format!(
                "{} ranks of no published encoding: name the pattern that cuts the text",
                ranks.len()
            ))
        })
    }
}

impl Document {
    /// Reads a file of any format that holds a whole vocabulary.
    ///
    /// # Errors
    ///
    /// If the format is not known, the file does not keep to it, or it holds but one part of a
    /// vocabulary (a vocab.json without its merges.txt, piece counts).
    pub fn parse(file: &[u8]) -> Result<Self, LoadError> {
        Ok(match detect(file).ok_or(LoadError::Unknown)? {
            Format::TokenizerJson => Self::TokenizerJson(Box::new(TokenizerJson::parse(file)?)),
            Format::SentencePiece => {
                Self::SentencePiece(Box::new(SentencePieceModel::parse(file)?))
            }
            Format::Tiktoken => Self::Tiktoken(tiktoken::parse(file)?),
            Format::Tekken => Self::Tekken(Box::new(Tekken::parse(file)?)),
            Format::VocabTxt => Self::VocabTxt(VocabTxt::parse(file)?),
            Format::Gguf => Self::Gguf(Box::new(gguf::parse(file)?)),
            format @ (Format::VocabJson | Format::MergesTxt) => {
                return Err(LoadError::Incomplete(format!(
                    "a {format} alone is no tokenizer: vocab.json and merges.txt go together"
                )));
            }
            format => {
                return Err(LoadError::Incomplete(format!("{format} are no vocabulary")));
            }
        })
    }

    /// The format; of two files that go together, the vocabulary's.
    #[must_use]
    pub fn format(&self) -> Format {
        match self {
            Self::TokenizerJson(_) => Format::TokenizerJson,
            Self::SentencePiece(_) => Format::SentencePiece,
            Self::Tiktoken(_) => Format::Tiktoken,
            Self::Tekken(_) => Format::Tekken,
            Self::Gpt2(_) => Format::VocabJson,
            Self::VocabTxt(_) => Format::VocabTxt,
            Self::Gguf(_) => Format::Gguf,
        }
    }

    /// The tokenizer that the document describes.
    ///
    /// # Errors
    ///
    /// If a part cannot be run exactly, or the document leaves unsaid what `options` do not say.
    pub fn lower(&self, options: &LoadOptions) -> Result<Tokenizer, LoadError> {
        Ok(match self {
            Self::TokenizerJson(document) => Tokenizer::from_tokenizer_json(document)?,
            Self::SentencePiece(document) => Tokenizer::from_sentencepiece(document)?,
            Self::Tiktoken(ranks) => Tokenizer::from_ranks(ranks, &options.ranks_setup(ranks)?)?,
            Self::Tekken(document) => Tokenizer::from_tekken(document)?,
            Self::Gpt2(document) => Tokenizer::from_gpt2(document)?,
            Self::VocabTxt(document) => {
                let case = options.case.unwrap_or_else(|| BertCase::of(document));
                Tokenizer::from_vocab_txt(document, case)?
            }
            Self::Gguf(document) => Tokenizer::from_gguf(document)?,
        })
    }
}

impl Tokenizer {
    /// The tokenizer of a file of any format, told by its content.
    ///
    /// # Errors
    ///
    /// As [`Document::parse`] and [`Document::lower`].
    pub fn from_file(file: &[u8], options: &LoadOptions) -> Result<Self, LoadError> {
        Document::parse(file)?.lower(options)
    }
}
