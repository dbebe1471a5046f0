//! `tekken.json`, the tokenizers of Mistral since 2024.
//!
//! The file holds byte ranks like a `.tiktoken` file, a pattern, and special tokens. Special tokens
//! have the first ids, so that a token of rank r has the id r plus the number of special tokens.
//! Of the ranks only as many count as the vocabulary size leaves room for. Rules as in
//! mistral-common 1.8.
//!
//! ```
//! use formats::Layout;
//! use formats::tekken::Tekken;
//!
//! let mut tekken = Tekken::new(r"\S+|\s+", (0..=255).map(|byte| vec![byte]), 4)?;
//! let file = tekken.to_json(Layout::Pretty);
//! let read = Tekken::parse(file.as_bytes())?;
//! assert_eq!(read, tekken);
//! // Special tokens that the file does not name are numbered.
//! assert_eq!(read.special_tokens()[3].token_str, "<SPECIAL_3>");
//! assert_eq!(read.id_of_rank(b'a'.into()), 4 + 97);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::quoted;
use crate::id_map::{IdMapError, MAX_ID};
use crate::json::{self, JsonError, Layout, Reader, Writer};
use crate::tiktoken::fault_kind;
use crate::{ErrorKind, Format, IdMap, ReadError};

/// The special tokens of files that list none (versions up to v7), all control tokens.
const DEFAULT_SPECIAL_TOKENS: [&str; 20] = [
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
];

/// A whole `tekken.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tekken {
    /// The pattern that splits text.
    pub pattern: String,
    /// The tokens by rank, dense, the 256 single bytes first; more than count if the vocabulary
    /// size says so.
    tokens: IdMap<[u8]>,
    /// Ids, special tokens included.
    vocab_size: u32,
    /// Ids of special tokens.
    num_special_tokens: u32,
    /// `v3`, `v7`, ..
    pub version: Option<String>,
    /// The special tokens that the file lists.
    listed: Option<Vec<SpecialToken>>,
    /// Other members of the file and of its `config`, as JSON.
    extra: Vec<(String, String)>,
    config_extra: Vec<(String, String)>,
}

/// A special token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialToken {
    /// Its text.
    pub token_str: String,
    /// Whether it is a control token.
    pub is_control: bool,
}

impl Tekken {
    /// A tokenizer of these tokens in order of rank, all of which count, with so many special
    /// tokens, all of them numbered.
    ///
    /// # Errors
    ///
    /// If a token is there twice or there are more ids than [`MAX_ID`].
    pub fn new(
        pattern: &str,
        tokens: impl IntoIterator<Item = Vec<u8>>,
        num_special_tokens: u32,
    ) -> Result<Self, IdMapError> {
        let tokens = IdMap::<[u8]>::from_pairs(tokens.into_iter().zip(0..))?;
        Ok(Self {
            pattern: pattern.to_owned(),
            vocab_size: tokens.id_bound().saturating_add(num_special_tokens),
            tokens,
            num_special_tokens,
            version: Some("v3".to_owned()),
            listed: Some(Vec::new()),
            extra: Vec::new(),
            config_extra: Vec::new(),
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it is not JSON of this form, a rank is not its place in the list, the first 256 tokens
    /// are not the single bytes, a token or a special token is there twice, a special token's rank
    /// is not its place in the list, or the sizes contradict each other.
    pub fn parse(file: &[u8]) -> Result<Self, ReadError> {
        json::read(Format::Tekken, file, read)
    }

    /// Ids, special tokens included.
    #[must_use]
    pub fn vocab_size(&self) -> u32 {
        self.vocab_size
    }

    /// How many of the ids, the first, are special tokens.
    #[must_use]
    pub fn num_special_tokens(&self) -> u32 {
        self.num_special_tokens
    }

    /// The id of a token: special tokens come first.
    #[must_use]
    pub fn id_of_rank(&self, rank: u32) -> u32 {
        rank + self.num_special_tokens
    }

    /// All tokens of the file by rank, also those that do not count.
    #[must_use]
    pub fn all_tokens(&self) -> &IdMap<[u8]> {
        &self.tokens
    }

    /// The tokens that count, in order of rank.
    pub fn tokens(&self) -> impl Iterator<Item = (u32, &[u8])> + Clone + '_ {
        self.tokens.iter().take((self.vocab_size - self.num_special_tokens) as usize)
    }

    /// All special tokens, whose id is their place: those that the file lists, or the 20 usual ones
    /// if it lists none, then `<SPECIAL_n>`.
    #[must_use]
    pub fn special_tokens(&self) -> Vec<SpecialToken> {
        let control = |token: &str| SpecialToken { token_str: token.to_owned(), is_control: true };
        let count = self.num_special_tokens as usize;
        let mut tokens = match &self.listed {
            Some(listed) => listed.clone(),
            None => DEFAULT_SPECIAL_TOKENS.into_iter().map(control).collect(),
        };
        tokens.extend((tokens.len()..count).map(|id| control(&format!("<SPECIAL_{id}>"))));
        tokens
    }

    /// Lists the first special tokens in the file.
    pub fn list_special_tokens(&mut self, tokens: Vec<SpecialToken>) {
        self.listed = Some(tokens);
    }

    /// Writes the file.
    #[must_use]
    pub fn to_json(&self, layout: Layout) -> String {
        let mut w = Writer::new(layout);
        w.object(|w| {
            w.member("config", |w| {
                w.object(|w| {
                    w.member("pattern", |w| w.string(&self.pattern));
                    w.member("num_vocab_tokens", |w| w.number(self.tokens.len() as u64));
                    w.member("default_vocab_size", |w| w.number(self.vocab_size));
                    w.member("default_num_special_tokens", |w| w.number(self.num_special_tokens));
                    if let Some(version) = &self.version {
                        w.member("version", |w| w.string(version));
                    }
                    for (key, json) in &self.config_extra {
                        w.member(key, |w| w.raw(json));
                    }
                });
            });
            w.member("vocab", |w| {
                w.array(|w| {
                    for (rank, token) in self.tokens.iter() {
                        w.item(|w| {
                            w.object(|w| {
                                w.member("rank", |w| w.number(rank));
                                w.member("token_bytes", |w| w.string(&STANDARD.encode(token)));
                                w.member("token_str", |w| {
                                    w.optional(core::str::from_utf8(token).ok(), Writer::string);
                                });
                            });
                        });
                    }
                });
            });
            if let Some(listed) = &self.listed {
                w.member("special_tokens", |w| {
                    w.array(|w| {
                        for (rank, token) in listed.iter().enumerate() {
                            w.item(|w| {
                                w.object(|w| {
                                    w.member("rank", |w| w.number(rank as u64));
                                    w.member("token_str", |w| w.string(&token.token_str));
                                    w.member("is_control", |w| w.bool(token.is_control));
                                });
                            });
                        }
                    });
                });
            }
            for (key, json) in &self.extra {
                w.member(key, |w| w.raw(json));
            }
        });
        w.finish()
    }
}

fn read(r: &mut Reader<'_>) -> json::Result<Tekken> {
    let object = r.mark();
    let (mut config, mut tokens, mut listed) = (None, None, None);
    let mut extra = Vec::new();
    r.object(|r, key| match &**key {
        "config" => {
            let at = r.mark();
            r.field(&mut config, |r| Ok((at, self::config(r)?)))
        }
        "vocab" => r.field(&mut tokens, vocab),
        "special_tokens" => r.field(&mut listed, |r| r.optional(special_tokens)),
        _ => {
            extra.push((key.to_string(), r.skip()?.to_owned()));
            Ok(())
        }
    })?;
    let (config_at, config) = r.require(config, "config", object)?;
    let tokens = r.require(tokens, "vocab", object)?;
    let tekken = Tekken {
        pattern: config.pattern,
        tokens,
        vocab_size: config.vocab_size,
        num_special_tokens: config.num_special_tokens,
        version: config.version,
        listed: listed.flatten(),
        extra,
        config_extra: config.extra,
    };
    check(&tekken)
        .map_err(|what| r.error_at(config_at, ErrorKind::Invalid, what).within("config"))?;
    Ok(tekken)
}

/// What the sizes of a file must obey.
fn check(tekken: &Tekken) -> Result<(), String> {
    let (size, special) = (tekken.vocab_size, tekken.num_special_tokens);
    let tokens = tekken.tokens.len();
    if special > size {
        return Err(format!("{special} special tokens in a vocabulary of {size}"));
    }
    if (size - special) as usize > tokens {
        return Err(format!(
            "a vocabulary of {size} with {special} special tokens, but there are {tokens} tokens"
        ));
    }
    let version = tekken.version.as_deref().and_then(|v| v.strip_prefix('v')?.parse::<u32>().ok());
    if tekken.listed.is_none() && version.is_some_and(|version| version > 7) {
        return Err("versions after v7 must list their special tokens".to_owned());
    }
    let count = tekken.listed.as_ref().map_or(DEFAULT_SPECIAL_TOKENS.len(), Vec::len);
    if count > special as usize {
        return Err(format!("{count} special tokens, but there is room for {special}"));
    }
    let mut seen = std::collections::HashSet::new();
    match tekken.special_tokens().into_iter().find(|token| !seen.insert(token.token_str.clone())) {
        Some(token) => Err(format!("special token {} is there twice", quoted(&token.token_str))),
        None => Ok(()),
    }
}

struct Config {
    pattern: String,
    vocab_size: u32,
    num_special_tokens: u32,
    version: Option<String>,
    extra: Vec<(String, String)>,
}

fn config(r: &mut Reader<'_>) -> json::Result<Config> {
    let object = r.mark();
    let (mut pattern, mut tokens, mut size, mut special) = (None, None, None, None);
    let mut version = None;
    let mut extra = Vec::new();
    let limit = |r: &mut Reader<'_>| r.unsigned(u64::from(MAX_ID)).map(|n| n as u32);
    r.object(|r, key| match &**key {
        "pattern" => r.field(&mut pattern, |r| r.string().map(String::from)),
        // The number of all tokens; the list itself says it.
        "num_vocab_tokens" => r.field(&mut tokens, limit),
        "default_vocab_size" => r.field(&mut size, limit),
        "default_num_special_tokens" => r.field(&mut special, limit),
        "version" => r.field(&mut version, |r| r.string().map(String::from)),
        _ => {
            extra.push((key.to_string(), r.skip()?.to_owned()));
            Ok(())
        }
    })?;
    Ok(Config {
        pattern: r.require(pattern, "pattern", object)?,
        vocab_size: r.require(size, "default_vocab_size", object)?,
        num_special_tokens: r.require(special, "default_num_special_tokens", object)?,
        version,
        extra,
    })
}

fn vocab(r: &mut Reader<'_>) -> json::Result<IdMap<[u8]>> {
    let mark = r.mark();
    let mut tokens: IdMap<[u8]> = IdMap::new();
    let mut bytes = Vec::new();
    r.array(|r, i| {
        let at = r.mark();
        bytes.clear();
        let rank = token(r, &mut bytes)?;
        in_place(r, at, rank, i)?;
        if i < 256 && bytes != [i as u8] {
            let what = format!("token {i} must be the single byte 0x{i:02X}");
            return Err(r.error_at(at, ErrorKind::Invalid, what));
        }
        tokens
            .push(&bytes, rank)
            .map_err(|error| r.error_at(at, fault_kind(&error), error.to_string()))
    })?;
    if tokens.len() < 256 {
        let what = format!("{} tokens, but the 256 single bytes must be there", tokens.len());
        return Err(r.error_at(mark, ErrorKind::Missing, what));
    }
    Ok(tokens)
}

fn token(r: &mut Reader<'_>, bytes: &mut Vec<u8>) -> json::Result<u32> {
    let object = r.mark();
    let (mut rank, mut base64, mut text) = (None, None, None);
    r.object(|r, key| match &**key {
        "rank" => r.field(&mut rank, Reader::u32),
        "token_bytes" => r.field(&mut base64, |r| {
            let at = r.mark();
            let base64 = r.string()?;
            STANDARD.decode_vec(base64.as_bytes(), bytes).map_err(|error| {
                let what = format!("invalid base64 {}: {error}", quoted(&base64));
                r.error_at(at, ErrorKind::Syntax, what)
            })
        }),
        // The same in UTF-8, or null; for people.
        "token_str" => r.field(&mut text, |r| r.optional(Reader::string)),
        _ => r.skip().map(|_| ()),
    })?;
    r.require(base64, "token_bytes", object)?;
    r.require(rank, "rank", object)
}

fn special_tokens(r: &mut Reader<'_>) -> json::Result<Vec<SpecialToken>> {
    let mut tokens = Vec::new();
    r.array(|r, i| {
        let object = r.mark();
        let (mut rank, mut token_str, mut is_control) = (None, None, None);
        r.object(|r, key| match &**key {
            "rank" => r.field(&mut rank, Reader::u32),
            "token_str" => r.field(&mut token_str, |r| r.string().map(String::from)),
            "is_control" => r.field(&mut is_control, Reader::bool),
            _ => r.skip().map(|_| ()),
        })?;
        let rank = r.require(rank, "rank", object)?;
        in_place(r, object, rank, i)?;
        tokens.push(SpecialToken {
            token_str: r.require(token_str, "token_str", object)?,
            is_control: r.require(is_control, "is_control", object)?,
        });
        Ok(())
    })?;
    Ok(tokens)
}

fn in_place(r: &Reader<'_>, at: usize, rank: u32, i: usize) -> Result<(), Box<JsonError>> {
    if rank as usize == i {
        return Ok(());
    }
    let what = format!("rank {rank} at place {i} of the list, but ranks count up from 0");
    Err(r.error_at(at, ErrorKind::Invalid, what))
}
