//! The vocabulary of a GGUF file (ggml, llama.cpp), read only.
//!
//! A GGUF file begins with key-value pairs; those under `tokenizer.` hold the vocabulary, and the
//! weights that follow are of no interest here. So a prefix of the file is enough: where it ends
//! too early the error is [`ErrorKind::Truncated`], and more bytes may help.
//!
//! ```
//! # fn string(text: &str) -> Vec<u8> {
//! #     [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
//! # }
//! use formats::gguf;
//!
//! // Magic, version 3, no tensors, two pairs: a string (type 8), an array (9) of strings.
//! let mut file = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0".to_vec();
//! file.extend([string("tokenizer.ggml.model"), vec![8, 0, 0, 0], string("gpt2")].concat());
//! file.extend([string("tokenizer.ggml.tokens"), vec![9, 0, 0, 0, 8, 0, 0, 0]].concat());
//! file.extend([2u64.to_le_bytes().to_vec(), string("h"), string("u")].concat());
//!
//! let vocab = gguf::parse(&file)?;
//! assert_eq!((vocab.model.as_str(), vocab.tokens.get(1)), ("gpt2", Some("u")));
//! assert_eq!(gguf::parse(&file[..40]).unwrap_err().kind(), formats::ErrorKind::Truncated);
//! # Ok::<(), formats::ReadError>(())
//! ```
//!
//! The format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

use std::collections::BTreeMap;

use tokenizer_core::TokenKind;

use crate::error::{quoted, quoted_bytes};
use crate::id_map::MAX_ID;
use crate::tokenizer_json::Merge;
use crate::tokenizer_json::read::MergeResolver;
use crate::{ErrorKind, Format, IdMap, Position, ReadError, Strings};

/// The first bytes of a file.
pub const MAGIC: [u8; 4] = *b"GGUF";

/// How deep arrays may nest.
const MAX_DEPTH: usize = 8;

/// The longest key, in bytes; the specification's limit.
const MAX_KEY_LEN: u64 = 65535;

/// What a GGUF file says about its tokenizer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GgufVocab {
    /// The version of the format, 2 or 3.
    pub version: u32,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// `general.name`.
    pub name: Option<String>,
    /// `tokenizer.ggml.model`: `llama` (SentencePiece BPE), `gpt2` (byte-level BPE), `bert`
    /// (WordPiece), `t5` (Unigram), ..
    pub model: String,
    /// `tokenizer.ggml.pre`: the name of the way to split text, as `llama-bpe`.
    pub pre: Option<String>,
    /// `tokenizer.ggml.tokens`: token i has id i.
    pub tokens: Strings,
    /// `tokenizer.ggml.scores`, as many as tokens.
    pub scores: Option<Vec<f32>>,
    /// `tokenizer.ggml.token_type`, as many as tokens. Type 0, undefined, is `Unused` here.
    pub token_types: Option<Vec<TokenKind>>,
    /// `tokenizer.ggml.merges`: two tokens with a space between; see
    /// [`resolve_merges`](Self::resolve_merges).
    pub merges: Option<Strings>,
    /// `tokenizer.ggml.*_token_id`, by what stands for `*`: `bos`, `eos`, `unknown`, `padding`, ..;
    /// each below the number of tokens.
    pub special_ids: BTreeMap<String, u32>,
    /// Other members of `tokenizer.ggml.` that are booleans: `add_bos_token`, `add_space_prefix`,
    /// `remove_extra_whitespaces`, ..
    pub flags: BTreeMap<String, bool>,
    /// `tokenizer.ggml.precompiled_charsmap`.
    pub charsmap: Option<Vec<u8>>,
    /// `tokenizer.chat_template`. A program in a template language: data, never run here.
    pub chat_template: Option<String>,
    /// `tokenizer.huggingface.json`: a whole `tokenizer.json`.
    pub huggingface_json: Option<String>,
    /// The keys under `tokenizer.` that are none of the above.
    pub other_keys: Vec<String>,
}

impl GgufVocab {
    /// The merges as ids.
    ///
    /// # Errors
    ///
    /// If a token is there twice, or a merge is not two tokens of the vocabulary whose product is
    /// one too.
    pub fn resolve_merges(&self) -> Result<Vec<Merge>, ReadError> {
        let fault = |kind, what| ReadError::new(Format::Gguf, Position::Whole, kind, what);
        let vocab: IdMap<str> = IdMap::from_pairs(self.tokens.iter().zip(0..))
            .map_err(|error| fault(ErrorKind::Duplicate, error.to_string()))?;
        let mut resolver = MergeResolver::new(&vocab, "");
        let lines = self.merges.iter().flat_map(Strings::iter).enumerate();
        lines
            .map(|(rank, line)| {
                resolver
                    .resolve_line(line)
                    .map_err(|(kind, what)| fault(kind, format!("merge {rank}: {what}")))
            })
            .collect()
    }
}

/// Reads the key-value pairs of a file, or of a prefix that holds them all.
///
/// # Errors
///
/// If the bytes are not GGUF of version 2 or 3 (little endian), end before the last pair, hold a
/// key twice, or if the vocabulary has no model or tokens, or lists of different lengths. Nothing
/// is allocated that the file only claims.
pub fn parse(prefix: &[u8]) -> Result<GgufVocab, ReadError> {
    let mut r = Reader { bytes: prefix, at: 0 };
    if r.take(4)? != MAGIC {
        return Err(r.error_at(0, ErrorKind::Syntax, "the first bytes are not \"GGUF\""));
    }
    let version = r.u32()?;
    if !(2..=3).contains(&version) {
        let what = match version.swap_bytes() {
            1..=3 => "a big-endian file, which is not supported".to_owned(),
            _ => format!("version {version}, known are 2 and 3"),
        };
        return Err(r.error_at(4, ErrorKind::UnknownPart, what));
    }
    let _tensors = r.u64()?;
    let pairs = r.u64()?;
    let mut vocab = GgufVocab { version, ..GgufVocab::default() };
    let mut seen = std::collections::HashSet::new();
    let (mut model, mut tokens) = (None, None);
    for _ in 0..pairs {
        let at = r.at;
        let key = r.key()?;
        if !seen.insert(key) {
            let what = format!("key {} is there twice", quoted(key));
            return Err(r.error_at(at, ErrorKind::Duplicate, what));
        }
        let kind = Kind::read(&mut r)?;
        let Some(rest) = key.strip_prefix("tokenizer.") else {
            match key {
                "general.architecture" => vocab.architecture = Some(r.text(kind)?.to_owned()),
                "general.name" => vocab.name = Some(r.text(kind)?.to_owned()),
                _ => r.skip(kind, 0)?,
            }
            continue;
        };
        match rest {
            "ggml.model" => model = Some(r.text(kind)?.to_owned()),
            "ggml.pre" => vocab.pre = Some(r.text(kind)?.to_owned()),
            "ggml.tokens" => tokens = Some(r.texts(kind)?),
            "ggml.scores" => vocab.scores = Some(r.floats(kind)?),
            "ggml.token_type" => vocab.token_types = Some(r.token_types(kind)?),
            "ggml.merges" => vocab.merges = Some(r.texts(kind)?),
            "ggml.precompiled_charsmap" => vocab.charsmap = Some(r.octets(kind)?),
            "chat_template" => vocab.chat_template = Some(r.text(kind)?.to_owned()),
            "huggingface.json" => vocab.huggingface_json = Some(r.text(kind)?.to_owned()),
            _ => match rest.strip_prefix("ggml.") {
                Some(name) if name.ends_with("_token_id") => {
                    let name = name.trim_end_matches("_token_id").to_owned();
                    let id = r.id(kind)?;
                    vocab.special_ids.insert(name, id);
                }
                Some(name) if kind == Kind::Bool => {
                    let flag = r.flag()?;
                    vocab.flags.insert(name.to_owned(), flag);
                }
                _ => {
                    r.skip(kind, 0)?;
                    vocab.other_keys.push(key.to_owned());
                }
            },
        }
    }
    let missing = |key: &str| {
        let what = format!("key {key} is missing");
        ReadError::new(Format::Gguf, Position::Whole, ErrorKind::Missing, what)
    };
    vocab.model = model.ok_or_else(|| missing("tokenizer.ggml.model"))?;
    vocab.tokens = tokens.ok_or_else(|| missing("tokenizer.ggml.tokens"))?;
    check(&vocab)?;
    Ok(vocab)
}

fn check(vocab: &GgufVocab) -> Result<(), ReadError> {
    let fault = |kind, what| Err(ReadError::new(Format::Gguf, Position::Whole, kind, what));
    let tokens = vocab.tokens.len();
    if tokens == 0 {
        return fault(ErrorKind::Missing, "the vocabulary is empty".to_owned());
    }
    if tokens > MAX_ID as usize + 1 {
        return fault(ErrorKind::Limit, format!("{tokens} tokens, but ids may not pass {MAX_ID}"));
    }
    let lists = [
        ("scores", vocab.scores.as_ref().map(Vec::len)),
        ("token types", vocab.token_types.as_ref().map(Vec::len)),
    ];
    for (name, len) in lists {
        if let Some(len) = len
            && len != tokens
        {
            return fault(ErrorKind::Invalid, format!("{len} {name} for {tokens} tokens"));
        }
    }
    match vocab.special_ids.iter().find(|(_, id)| **id as usize >= tokens) {
        Some((name, id)) => {
            let what = format!("the id of {name} is {id}, but there are {tokens} tokens");
            fault(ErrorKind::Dangling, what)
        }
        None => Ok(()),
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl Kind {
    fn read(r: &mut Reader<'_>) -> Result<Self, ReadError> {
        let at = r.at;
        Ok(match r.u32()? {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            8 => Self::String,
            9 => Self::Array,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            other => {
                let what = format!("value type {other}, known are 0 to 12");
                return Err(r.error_at(at, ErrorKind::UnknownPart, what));
            }
        })
    }

    /// The least bytes that a value of this type takes.
    fn min_size(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::String => 8,
            Self::Array => 12,
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn error_at(&self, at: usize, kind: ErrorKind, what: impl Into<String>) -> ReadError {
        ReadError::new(Format::Gguf, Position::Byte(at as u64), kind, what)
    }

    fn truncated(&self, wanted: u64) -> ReadError {
        let left = self.bytes.len() - self.at;
        let what = format!("a value of {wanted} bytes where {left} are left");
        self.error_at(self.at, ErrorKind::Truncated, what)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], ReadError> {
        let left = &self.bytes[self.at..];
        match usize::try_from(length).ok().and_then(|length| left.get(..length)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(self.truncated(length)),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        Ok(self.take(N as u64)?.try_into().expect("as many bytes as were taken"))
    }

    fn u32(&mut self) -> Result<u32, ReadError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, ReadError> {
        self.array().map(u64::from_le_bytes)
    }

    fn key(&mut self) -> Result<&'a str, ReadError> {
        let at = self.at;
        let length = self.u64()?;
        if length > MAX_KEY_LEN {
            let what = format!("a key of {length} bytes, the limit is {MAX_KEY_LEN}");
            return Err(self.error_at(at, ErrorKind::Limit, what));
        }
        let bytes = self.take(length)?;
        self.utf8(at, bytes)
    }

    fn utf8(&self, at: usize, bytes: &'a [u8]) -> Result<&'a str, ReadError> {
        core::str::from_utf8(bytes).map_err(|error| {
            let what = format!("{} is not UTF-8: {error}", quoted_bytes(bytes));
            self.error_at(at, ErrorKind::Syntax, what)
        })
    }

    fn wrong_type(&self, kind: Kind, expected: &str) -> ReadError {
        let what = format!("expected {expected}, found {kind:?}");
        self.error_at(self.at, ErrorKind::WrongType, what)
    }

    fn text(&mut self, kind: Kind) -> Result<&'a str, ReadError> {
        if kind != Kind::String {
            return Err(self.wrong_type(kind, "a string"));
        }
        let at = self.at;
        let length = self.u64()?;
        let bytes = self.take(length)?;
        self.utf8(at, bytes)
    }

    /// The type and length of an array whose items are then read one by one. As many bytes as the
    /// items take at least are there.
    fn items(&mut self, kind: Kind) -> Result<(Kind, usize), ReadError> {
        if kind != Kind::Array {
            return Err(self.wrong_type(kind, "an array"));
        }
        let item = Kind::read(self)?;
        let count = self.u64()?;
        let left = (self.bytes.len() - self.at) as u64;
        let needed = count.saturating_mul(item.min_size() as u64);
        if needed > left {
            return Err(self.truncated(needed));
        }
        // Fits: at most the bytes that are left.
        Ok((item, count as usize))
    }

    fn texts(&mut self, kind: Kind) -> Result<Strings, ReadError> {
        let (item, count) = self.items(kind)?;
        let mut texts = Strings::new();
        for _ in 0..count {
            texts.push(self.text(item)?);
        }
        Ok(texts)
    }

    fn floats(&mut self, kind: Kind) -> Result<Vec<f32>, ReadError> {
        let (item, count) = self.items(kind)?;
        if item != Kind::F32 {
            return Err(self.wrong_type(item, "an array of F32"));
        }
        (0..count).map(|_| self.array().map(f32::from_le_bytes)).collect()
    }

    fn token_types(&mut self, kind: Kind) -> Result<Vec<TokenKind>, ReadError> {
        let (item, count) = self.items(kind)?;
        if !matches!(item, Kind::I32 | Kind::U32) {
            return Err(self.wrong_type(item, "an array of I32"));
        }
        (0..count)
            .map(|id| {
                let at = self.at;
                Ok(match self.u32()? {
                    0 | 5 => TokenKind::Unused,
                    1 => TokenKind::Normal,
                    2 => TokenKind::Unknown,
                    3 => TokenKind::Control,
                    4 => TokenKind::UserDefined,
                    6 => TokenKind::Byte,
                    other => {
                        let what = format!("token {id} has type {other}, known are 0 to 6");
                        return Err(self.error_at(at, ErrorKind::UnknownPart, what));
                    }
                })
            })
            .collect()
    }

    fn octets(&mut self, kind: Kind) -> Result<Vec<u8>, ReadError> {
        let (item, count) = self.items(kind)?;
        if !matches!(item, Kind::I8 | Kind::U8) {
            return Err(self.wrong_type(item, "an array of bytes"));
        }
        Ok(self.take(count as u64)?.to_vec())
    }

    fn flag(&mut self) -> Result<bool, ReadError> {
        let at = self.at;
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => {
                let what = format!("a boolean of value {other}");
                Err(self.error_at(at, ErrorKind::Invalid, what))
            }
        }
    }

    fn id(&mut self, kind: Kind) -> Result<u32, ReadError> {
        let at = self.at;
        let id = match kind {
            Kind::U8 => u64::from(self.array::<1>()?[0]),
            Kind::U16 => u64::from(u16::from_le_bytes(self.array()?)),
            Kind::U32 | Kind::I32 => u64::from(self.u32()?),
            Kind::U64 | Kind::I64 => self.u64()?,
            _ => return Err(self.wrong_type(kind, "an id")),
        };
        u32::try_from(id).map_err(|_| {
            self.error_at(at, ErrorKind::Limit, format!("id {id}, but ids may not pass {MAX_ID}"))
        })
    }

    fn skip(&mut self, kind: Kind, depth: usize) -> Result<(), ReadError> {
        match kind {
            Kind::String => {
                let length = self.u64()?;
                self.take(length)?;
            }
            Kind::Array => {
                if depth == MAX_DEPTH {
                    let what = format!("arrays nest deeper than {MAX_DEPTH}");
                    return Err(self.error_at(self.at, ErrorKind::Limit, what));
                }
                let (item, count) = self.items(kind)?;
                match item {
                    Kind::String | Kind::Array => {
                        for _ in 0..count {
                            self.skip(item, depth + 1)?;
                        }
                    }
                    // No overflow: so many bytes are there.
                    _ => drop(self.take((count * item.min_size()) as u64)?),
                }
            }
            _ => drop(self.take(kind.min_size() as u64)?),
        }
        Ok(())
    }
}
