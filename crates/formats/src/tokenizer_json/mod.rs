//! `tokenizer.json`, the one-file format of Hugging Face tokenizers.
//!
//! The document holds everything that version 0.23 knows, and nothing that it does not: a part of
//! unknown type is an error that names it, while unknown fields are ignored, as tokenizers does.
//! Defaults, aliases and old forms (no `model.type`, merges as strings, `add_prefix_space`) are
//! tokenizers' own; docs/formats.md lists where we are stricter.
//!
//! ```
//! use formats::Layout;
//! use formats::tokenizer_json::{Model, TokenizerJson};
//!
//! let file = br#"{
//!   "version": "1.0",
//!   "added_tokens": [],
//!   "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
//!   "model": {"type": "BPE", "vocab": {"h": 0, "u": 1, "hu": 2}, "merges": ["h u"]}
//! }"#;
//! let document = TokenizerJson::parse(file)?;
//! let Model::Bpe(bpe) = &document.model else { panic!("the file says BPE") };
//! assert_eq!(bpe.vocab.token(bpe.merges[0].product), Some("hu"));
//!
//! // Written as tokenizers writes it; what was left out is spelled out.
//! let written = document.to_json(Layout::Compact)?;
//! assert!(written.contains(r#""trim_offsets":true,"use_regex":true"#));
//! assert!(written.ends_with(r#""vocab":{"h":0,"u":1,"hu":2},"merges":[["h","u"]]}}"#));
//! assert_eq!(TokenizerJson::parse(written.as_bytes())?, document);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod model;
mod parts;
pub(crate) mod read;
pub(crate) mod write;

use std::collections::{BTreeMap, HashMap};

pub use model::{Bpe, Merge, Model, Unigram, WordLevel, WordPiece};
pub use parts::{
    AddedToken, BertNormalizer, ByteLevel, Decoder, Direction, Metaspace, Normalizer, Padding,
    PaddingStrategy, Pattern, PostProcessor, PreTokenizer, PrependScheme, Replace, SplitBehavior,
    Template, TemplatePiece, TemplateSequence, TemplateToken, Truncation, TruncationStrategy,
};

use crate::error::quoted;
use crate::json::{self, Layout, Writer};
use crate::{Format, ReadError, WriteError};

/// A whole `tokenizer.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenizerJson {
    /// How long sequences are cut.
    pub truncation: Option<Truncation>,
    /// How short sequences are filled.
    pub padding: Option<Padding>,
    /// Tokens that are found before the model sees the text.
    pub added_tokens: Vec<AddedToken>,
    /// Text to text.
    pub normalizer: Option<Normalizer>,
    /// Text to pieces.
    pub pre_tokenizer: Option<PreTokenizer>,
    /// Where special tokens are put.
    pub post_processor: Option<PostProcessor>,
    /// Tokens to text.
    pub decoder: Option<Decoder>,
    /// Pieces to tokens.
    pub model: Model,
}

impl TokenizerJson {
    /// A document that holds a model and nothing else.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self {
            truncation: None,
            padding: None,
            added_tokens: Vec::new(),
            normalizer: None,
            pre_tokenizer: None,
            post_processor: None,
            decoder: None,
            model,
        }
    }

    /// Reads a file. Linear in its length; memory is what the document takes.
    ///
    /// # Errors
    ///
    /// If it is not JSON, nests deeper than 127 levels, lacks a field, holds a part of unknown type, or
    /// contradicts itself: a token or an id twice, an id beyond [`MAX_ID`](crate::MAX_ID), a merge
    /// of tokens that the vocabulary lacks, a continuing prefix longer than a token that carries
    /// it, an empty vocabulary. The error has line, column and path.
    pub fn parse(file: &[u8]) -> Result<Self, ReadError> {
        json::read(Format::TokenizerJson, file, read::document)
    }

    /// Writes the file as tokenizers does: its field order, vocabularies in order of id, merges as
    /// pairs.
    ///
    /// Reading it back gives an equal document, with one exception that is the reader's: tokenizers
    /// rounds scores a unit in the last place off at times, and some scores cannot be written so
    /// that they are read as they are. Scores that were read themselves can;
    /// [`canonicalize`](Self::canonicalize) makes all others so.
    ///
    /// # Errors
    ///
    /// As [`validate`](Self::validate).
    pub fn to_json(&self, layout: Layout) -> Result<String, WriteError> {
        self.validate()?;
        let mut writer = Writer::new(layout);
        write::document(&mut writer, self);
        Ok(writer.finish())
    }

    /// Checks what a parsed document obeys by construction and one made by hand need not.
    ///
    /// # Errors
    ///
    /// If the vocabulary is empty, a merge does not fit the vocabulary, `unk_id` or a dropout is
    /// out of range, scores are not finite or not as many as pieces, a template names a token that
    /// it lacks, a fixed length is 0, or an added token's id passes [`MAX_ID`](crate::MAX_ID).
    pub fn validate(&self) -> Result<(), WriteError> {
        check(self).map_err(|what| WriteError::new(Format::TokenizerJson, what))
    }

    /// The added tokens under the ids that Hugging Face gives them, in order of id.
    ///
    /// tokenizers does not take over the ids of a file: a token that the vocabulary has keeps the
    /// vocabulary's id, and the others are numbered on from the *number* of the vocabulary's tokens
    /// in the order of the file. Where that differs from the file, tokenizers only warns. A token
    /// without text is dropped; of two tokens with one text the later one's flags count; of two
    /// tokens with one id (possible where the vocabulary has gaps) the later stays.
    ///
    /// `O(n log n)` for n added tokens, plus the size of the vocabulary for Unigram.
    #[must_use]
    pub fn resolved_added_tokens(&self) -> Vec<(u32, &AddedToken)> {
        let in_unigram: HashMap<&str, u32> = match self.model.unigram() {
            Some(model) => model.pieces.iter().zip(0..).collect(),
            None => HashMap::new(),
        };
        let in_model = |content: &str| match self.model.map() {
            Some(vocab) => vocab.get(content),
            None => in_unigram.get(content).copied(),
        };
        let mut next_id = self.model.len() as u32;
        let mut by_content: HashMap<&str, u32> = HashMap::new();
        let mut by_id = BTreeMap::new();
        for token in self.added_tokens.iter().filter(|token| !token.content.is_empty()) {
            let content = token.content.as_str();
            let known = by_content.get(content).copied().or_else(|| in_model(content));
            let id = known.unwrap_or_else(|| {
                next_id += 1;
                next_id - 1
            });
            by_content.insert(content, id);
            by_id.insert(id, token);
        }
        by_id.into_iter().collect()
    }

    /// Makes the document what tokenizers makes of it on loading, so that
    /// [`to_json`](Self::to_json) gives what its `to_str` gives: added tokens as
    /// [resolved](Self::resolved_added_tokens), of a merge that is there twice only the last, and
    /// scores as they are read.
    pub fn canonicalize(&mut self) {
        self.added_tokens = self
            .resolved_added_tokens()
            .into_iter()
            .map(|(id, token)| AddedToken { id, ..token.clone() })
            .collect();
        if let Model::Unigram(unigram) = &mut self.model {
            unigram.scores.iter_mut().for_each(|score| *score = Writer::reread(*score));
        }
        if let Model::Bpe(bpe) = &mut self.model {
            let last: HashMap<(u32, u32), usize> = bpe
                .merges
                .iter()
                .enumerate()
                .map(|(rank, merge)| ((merge.left, merge.right), rank))
                .collect();
            let mut rank = 0;
            bpe.merges.retain(|merge| {
                rank += 1;
                last[&(merge.left, merge.right)] == rank - 1
            });
        }
    }
}

fn check(document: &TokenizerJson) -> Result<(), String> {
    if document.model.is_empty() {
        return Err("the vocabulary is empty".to_owned());
    }
    match &document.model {
        Model::Bpe(bpe) => check_bpe(bpe)?,
        Model::Unigram(unigram) => check_unigram(unigram)?,
        Model::WordPiece(_) | Model::WordLevel(_) => {}
    }
    if let Some(pre_tokenizer) = &document.pre_tokenizer {
        check_pre_tokenizer(pre_tokenizer)?;
    }
    if let Some(post_processor) = &document.post_processor {
        check_post_processor(post_processor)?;
    }
    match document.added_tokens.iter().find(|token| token.id > crate::MAX_ID) {
        Some(token) => Err(format!(
            "added token {} has id {}, but ids may not pass {}",
            quoted(&token.content),
            token.id,
            crate::MAX_ID
        )),
        None => Ok(()),
    }
}

fn check_bpe(bpe: &Bpe) -> Result<(), String> {
    if let Some(dropout) = bpe.dropout
        && !(0.0..=1.0).contains(&dropout)
    {
        return Err(format!("a dropout of {dropout} is not between 0 and 1"));
    }
    let prefix = bpe.continuing_subword_prefix.as_deref().unwrap_or("");
    let mut resolver = read::MergeResolver::new(&bpe.vocab, prefix);
    for (rank, merge) in bpe.merges.iter().enumerate() {
        let token = |id: u32| {
            bpe.vocab
                .token(id)
                .ok_or_else(|| format!("merge {rank} names id {id}, which has no token"))
        };
        let (left, right) = (token(merge.left)?, token(merge.right)?);
        match resolver.resolve(left, right) {
            Ok(resolved) if resolved == *merge => {}
            Ok(resolved) => {
                let (given, right) = (merge.product, resolved.product);
                return Err(format!(
                    "merge {rank} makes token {given}, but its texts make {right}"
                ));
            }
            Err((_, what)) => return Err(format!("merge {rank}: {what}")),
        }
    }
    Ok(())
}

fn check_unigram(unigram: &Unigram) -> Result<(), String> {
    let (pieces, scores) = (unigram.pieces.len(), unigram.scores.len());
    if pieces != scores {
        return Err(format!("{scores} scores for {pieces} pieces"));
    }
    if let Some(id) = unigram.scores.iter().position(|score| !score.is_finite()) {
        return Err(format!("piece {id} has score {}", unigram.scores[id]));
    }
    match unigram.unk_id {
        Some(id) if id as usize >= pieces => {
            Err(format!("unk_id is {id}, but there are {pieces} pieces"))
        }
        _ => Ok(()),
    }
}

fn check_pre_tokenizer(pre_tokenizer: &PreTokenizer) -> Result<(), String> {
    match pre_tokenizer {
        PreTokenizer::FixedLength { length: 0 } => Err("pieces of 0 characters".to_owned()),
        PreTokenizer::Sequence(parts) => parts.iter().try_for_each(check_pre_tokenizer),
        _ => Ok(()),
    }
}

fn check_post_processor(post_processor: &PostProcessor) -> Result<(), String> {
    match post_processor {
        PostProcessor::Template(template) => template.check().map_err(|(_, what)| what),
        PostProcessor::Sequence(parts) => parts.iter().try_for_each(check_post_processor),
        _ => Ok(()),
    }
}
