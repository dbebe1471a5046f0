//! Documents of one format to documents of another.
//!
//! [`convert`] refuses what the target cannot express, by name: a normalizer, a flag of an added
//! token, a splitter, merges that ranks would not give. What changes no ids (clean-up of decoded
//! text, offsets without white space) is left out and said in [`Converted::lost`]. [`prove`] then
//! writes the file, reads it back, and holds it against the original on a differential corpus:
//! whatever was not foreseen shows there.
//!
//! ```
//! use formats::vocab_txt::VocabTxt;
//! use tokenizer::Document;
//! use tokenizer::convert::{ConvertOptions, Target, convert, prove};
//! use tokenizer::verify::{Texts, Verdict};
//!
//! let vocab = VocabTxt::parse(b"[UNK]\n[CLS]\n[SEP]\nhug\n##s\n")?;
//! let original = Document::VocabTxt(vocab);
//! let converted = convert(&original, Target::TokenizerJson, &ConvertOptions::default())?;
//! let checks = prove(&original, &converted, &ConvertOptions::default(), &Texts::builtin())?;
//! assert!(checks.iter().all(|check| check.verdict() == Verdict::Passed));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod byte_pairs;
mod sentencepiece;
mod spaces;
mod word_pieces;

use std::fmt;

use formats::tokenizer_json as doc;
use formats::{Layout, WriteError, tiktoken};

use crate::load::{Document, LoadError, LoadOptions};
use crate::lower::{LowerError, gpt2_as_tokenizer_json};
use crate::pipeline::Tokenizer;
use crate::verify::{By, Check, Texts, compare};

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// tokenizer.json.
    TokenizerJson,
    /// SentencePiece's .model.
    SentencePiece,
    /// tiktoken's ranks.
    Tiktoken,
    /// tekken.json.
    Tekken,
    /// vocab.txt.
    VocabTxt,
    /// vocab.json and merges.txt.
    Gpt2,
}

impl Target {
    /// Every format.
    pub const ALL: [Self; 6] = [
        Self::TokenizerJson,
        Self::SentencePiece,
        Self::Tiktoken,
        Self::Tekken,
        Self::VocabTxt,
        Self::Gpt2,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenizerJson => "tokenizer.json",
            Self::SentencePiece => "SentencePiece model",
            Self::Tiktoken => ".tiktoken file",
            Self::Tekken => "tekken.json",
            Self::VocabTxt => "vocab.txt",
            Self::Gpt2 => "vocab.json with merges.txt",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A setting of a tokenizer.json that is no part of the way from text to tokens, and may be left
/// out on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Setting {
    /// How long encodings are cut.
    Truncation,
    /// How short ones are padded.
    Padding,
    /// The tokens that are added around a text.
    Template,
    /// The probability of leaving merges out.
    Dropout,
}

impl Setting {
    /// Every setting.
    pub const ALL: [Self; 4] = [Self::Truncation, Self::Padding, Self::Template, Self::Dropout];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncation => "truncation",
            Self::Padding => "padding",
            Self::Template => "template",
            Self::Dropout => "dropout",
        }
    }
}

/// How a document is converted.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// What the original leaves unsaid.
    pub load: LoadOptions,
    /// Settings that are left out where the target cannot hold them; else that is an error.
    pub drop: Vec<Setting>,
    /// Whether what only tells how the model was trained is left out of a .model.
    pub strip_training_info: bool,
}

/// A document of another format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Converted {
    /// The document.
    pub document: Document,
    /// What has to be said when the file is loaded, as it does not say it itself.
    pub load: LoadOptions,
    /// What the file does not hold and ids do not depend on.
    pub lost: Vec<String>,
    /// Whether tokens have other ids than before, as those of a tekken.json must.
    pub ids_move: bool,
    /// Whether decoding differs by design, as [`lost`](Self::lost) says.
    pub decodes_otherwise: bool,
    /// Texts that contain one of these are encoded otherwise by design, as [`lost`](Self::lost)
    /// says.
    pub except: Vec<String>,
}

impl Converted {
    fn new(document: Document) -> Self {
        Self {
            document,
            load: LoadOptions::default(),
            lost: Vec::new(),
            ids_move: false,
            decodes_otherwise: false,
            except: Vec::new(),
        }
    }
}

/// Why a document cannot be converted.
#[derive(Debug)]
pub struct ConvertError {
    part: String,
    message: String,
}

impl ConvertError {
    fn new(part: impl Into<String>, message: impl Into<String>) -> Self {
        Self { part: part.into(), message: message.into() }
    }

    /// What cannot be expressed, as `normalizer` or `added_tokens[3]`.
    #[must_use]
    pub fn part(&self) -> &str {
        &self.part
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.message)
    }
}

impl std::error::Error for ConvertError {}

impl From<LowerError> for ConvertError {
    fn from(error: LowerError) -> Self {
        Self::new(error.part().to_owned(), error.to_string())
    }
}

impl From<LoadError> for ConvertError {
    fn from(error: LoadError) -> Self {
        Self::new("original", error.to_string())
    }
}

/// The document in another format.
///
/// A tokenizer.json is the widest of the formats, so most ways lead over it; a document of the
/// target's own format stays as it is, but for training information.
///
/// # Errors
///
/// If the original is incomplete, or the target cannot express a part of it; the error names the
/// part.
pub fn convert(
    document: &Document,
    target: Target,
    options: &ConvertOptions,
) -> Result<Converted, ConvertError> {
    if let Document::Gguf(vocab) = document {
        return convert(&crate::lower::gguf_document(vocab)?, target, options);
    }
    if let (Document::SentencePiece(model), Target::SentencePiece) = (document, target) {
        let mut model = model.clone();
        if options.strip_training_info {
            model.strip_training_info();
        }
        return Ok(Converted::new(Document::SentencePiece(model)));
    }
    if target_of(document) == Some(target) {
        let mut same = Converted::new(document.clone());
        same.load = options.load.clone();
        return Ok(same);
    }
    let (json, mut lost, except) = to_tokenizer_json(document, options)?;
    let mut converted = match target {
        Target::TokenizerJson => Converted::new(Document::TokenizerJson(Box::new(json))),
        Target::SentencePiece => sentencepiece::from_json(&json, options)?,
        Target::Tiktoken => byte_pairs::to_tiktoken(&json, options)?,
        Target::Tekken => byte_pairs::to_tekken(&json, options)?,
        Target::VocabTxt => word_pieces::to_vocab_txt(&json, options)?,
        Target::Gpt2 => byte_pairs::to_gpt2(&json, options)?,
    };
    lost.append(&mut converted.lost);
    converted.lost = lost;
    converted.except.extend(except);
    Ok(converted)
}

fn target_of(document: &Document) -> Option<Target> {
    match document {
        Document::TokenizerJson(_) => Some(Target::TokenizerJson),
        Document::SentencePiece(_) => Some(Target::SentencePiece),
        Document::Tiktoken(_) => Some(Target::Tiktoken),
        Document::Tekken(_) => Some(Target::Tekken),
        Document::VocabTxt(_) => Some(Target::VocabTxt),
        Document::Gpt2(_) => Some(Target::Gpt2),
        Document::Gguf(_) => None,
    }
}

type Json = (doc::TokenizerJson, Vec<String>, Vec<String>);

/// The document as tokenizer.json, what got lost, and which texts are excepted.
fn to_tokenizer_json(document: &Document, options: &ConvertOptions) -> Result<Json, ConvertError> {
    let plain = |json: doc::TokenizerJson| (json, Vec::new(), Vec::new());
    let (mut json, lost, except) = match document {
        Document::TokenizerJson(json) => return Ok(plain((**json).clone())),
        Document::Gpt2(files) => plain(gpt2_as_tokenizer_json(files)),
        Document::Gguf(vocab) => {
            return to_tokenizer_json(&crate::lower::gguf_document(vocab)?, options);
        }
        Document::Tiktoken(ranks) => {
            let setup = options.load.ranks_setup(ranks)?;
            plain(byte_pairs::from_ranks(
                ranks.iter(),
                &setup.pattern,
                &setup.special_tokens,
                "special_tokens",
            )?)
        }
        Document::Tekken(tekken) => {
            let special = tekken.special_tokens();
            let special: Vec<(String, u32)> =
                special.into_iter().zip(0..).map(|(token, id)| (token.token_str, id)).collect();
            let tokens = tekken.tokens().map(|(rank, token)| (tekken.id_of_rank(rank), token));
            plain(byte_pairs::from_ranks(tokens, &tekken.pattern, &special, "special_tokens")?)
        }
        Document::VocabTxt(vocab) => plain(word_pieces::from_vocab_txt(vocab, options.load.case)?),
        Document::SentencePiece(model) => sentencepiece::to_json(model)?,
    };
    // What other readers make of the file must be what this program makes of it.
    json.canonicalize();
    json.validate().map_err(|error| ConvertError::new("tokenizer.json", error.to_string()))?;
    Ok((json, lost, except))
}

/// Refuses a setting that the target does not hold, unless it may be left out.
fn refuse_setting(
    is_set: bool,
    setting: Setting,
    target: Target,
    converted: &mut Converted,
    options: &ConvertOptions,
) -> Result<(), ConvertError> {
    if !is_set {
        return Ok(());
    }
    if options.drop.contains(&setting) {
        converted.lost.push(format!("{} (left out as asked)", setting.name()));
        return Ok(());
    }
    Err(ConvertError::new(
        setting.name(),
        format!("a {target} cannot hold it; it may be left out on request"),
    ))
}

/// Refuses truncation, padding and dropout.
fn refuse_settings(
    json: &doc::TokenizerJson,
    target: Target,
    converted: &mut Converted,
    options: &ConvertOptions,
) -> Result<(), ConvertError> {
    let mut refuse = |is_set, setting| refuse_setting(is_set, setting, target, converted, options);
    refuse(json.truncation.is_some(), Setting::Truncation)?;
    refuse(json.padding.is_some(), Setting::Padding)?;
    let dropout = match &json.model {
        doc::Model::Bpe(model) => model.dropout.is_some_and(|dropout| dropout > 0.0),
        _ => false,
    };
    refuse(dropout, Setting::Dropout)
}

/// The flag of an added token that the target cannot express, if one is set.
fn flag_of(token: &doc::AddedToken, normalized_matters: bool) -> Option<&'static str> {
    let flags = [
        (token.single_word, "single_word"),
        (token.lstrip, "lstrip"),
        (token.rstrip, "rstrip"),
        (token.normalized && normalized_matters, "normalized"),
    ];
    flags.into_iter().find_map(|(is_set, name)| is_set.then_some(name))
}

fn refuse_flags(
    json: &doc::TokenizerJson,
    target: Target,
    normalized_matters: bool,
) -> Result<(), ConvertError> {
    for (_, token) in json.resolved_added_tokens() {
        if let Some(flag) = flag_of(token, normalized_matters) {
            return Err(ConvertError::new(
                "added_tokens",
                format!("{:?} is {flag}, which a {target} cannot say", token.content),
            ));
        }
    }
    Ok(())
}

/// A file of a document: what it is called by itself, and its bytes.
pub type File = (&'static str, Vec<u8>);

impl Document {
    /// The files of the document: one, or for vocab.json with merges.txt both.
    ///
    /// # Errors
    ///
    /// If the document would not be read back, or the format cannot be written (GGUF).
    pub fn to_files(&self) -> Result<Vec<File>, WriteError> {
        Ok(match self {
            Self::TokenizerJson(json) => {
                let mut text = json.to_json(Layout::Pretty)?;
                text.push('\n');
                vec![("tokenizer.json", text.into_bytes())]
            }
            Self::SentencePiece(model) => vec![("tokenizer.model", model.to_bytes()?)],
            Self::Tiktoken(ranks) => {
                vec![("ranks.tiktoken", tiktoken::to_text(ranks).into_bytes())]
            }
            Self::Tekken(tekken) => {
                vec![("tekken.json", tekken.to_json(Layout::Pretty).into_bytes())]
            }
            Self::VocabTxt(vocab) => vec![("vocab.txt", vocab.to_text()?.into_bytes())],
            Self::Gpt2(files) => vec![
                ("vocab.json", files.vocab_json().into_bytes()),
                ("merges.txt", files.merges_txt()?.into_bytes()),
            ],
            Self::Gguf(_) => {
                return Err(WriteError::unsupported(self.format()));
            }
        })
    }

    /// The document that these files hold; the way back from [`to_files`](Self::to_files).
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn from_files(files: &[File]) -> Result<Self, LoadError> {
        match files {
            [("vocab.json", vocab), ("merges.txt", merges)] => {
                Ok(Self::Gpt2(Box::new(formats::gpt2::Gpt2::parse(vocab, merges)?)))
            }
            [("tokenizer.json", file)] => {
                Ok(Self::TokenizerJson(Box::new(doc::TokenizerJson::parse(file)?)))
            }
            [("vocab.txt", file)] => Ok(Self::VocabTxt(formats::vocab_txt::VocabTxt::parse(file)?)),
            [(_, file)] => Self::parse(file),
            _ => Err(LoadError::Unknown),
        }
    }
}

/// Writes the converted document, reads it back, and holds it against the original on `texts`.
///
/// # Errors
///
/// If the file would not be read back, or one of the two documents does not load.
pub fn prove(
    original: &Document,
    converted: &Converted,
    options: &ConvertOptions,
    texts: &Texts,
) -> Result<Vec<Check>, LoadError> {
    let files = converted.document.to_files().map_err(|error| {
        LoadError::Incomplete(format!("the converted file cannot be written: {error}"))
    })?;
    let source: Tokenizer = original.lower(&options.load)?;
    let target = Document::from_files(&files)?.lower(&converted.load)?;
    let mut chosen = Texts::new();
    for text in texts.iter() {
        if !converted.except.iter().any(|except| text.contains(except.as_str())) {
            chosen.push(text);
        }
    }
    let by = if converted.ids_move { By::Tokens } else { By::Ids };
    let mut checks = compare(&source, &target, &chosen, by);
    if converted.decodes_otherwise {
        checks.retain(|check| check.law != "same decoded text");
    }
    Ok(checks)
}
