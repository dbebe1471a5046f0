//! `vocab.json` and `merges.txt`, the two files of GPT-2 and its kin.
//!
//! `vocab.json` is an object of tokens and ids. `merges.txt` has a merge a line, two tokens with a
//! space between; lines that begin with `#version` are left out. Byte-level vocabularies write
//! bytes in the [byte alphabet](crate::byte_level). Neither file says whether the vocabulary is
//! byte-level, how text is split or what is special.
//!
//! ```
//! use formats::gpt2::Gpt2;
//!
//! let files = Gpt2::parse(br#"{"h": 0, "u": 1, "hu": 2}"#, b"#version: 0.2\nh u\n")?;
//! assert_eq!(files.vocab.token(files.merges[0].product), Some("hu"));
//! assert_eq!(files.vocab_json(), r#"{"h":0,"u":1,"hu":2}"#);
//! assert_eq!(files.merges_txt()?, "#version: 0.2\nh u\n");
//!
//! let error = Gpt2::parse(br#"{"h": 0}"#, b"h u\n").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "merges.txt, line 1: right token \"u\" is not among the 1 of the vocabulary"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::error::quoted;
use crate::json::{self, Layout, Writer};
use crate::lines::{lines, utf8};
use crate::tokenizer_json::Merge;
use crate::tokenizer_json::read::{MergeResolver, token_map};
use crate::tokenizer_json::write;
use crate::{Format, IdMap, Position, ReadError, WriteError};

/// A vocabulary and its merges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpt2 {
    /// The tokens as the file writes them.
    pub vocab: IdMap<str>,
    /// The merges, the first of the lowest rank. A pair may be there twice; the last counts.
    pub merges: Vec<Merge>,
}

impl Gpt2 {
    /// Reads both files.
    ///
    /// # Errors
    ///
    /// If `vocab_json` is not an object of whole numbers, is empty, or has a token or an id twice
    /// or an id beyond [`MAX_ID`](crate::MAX_ID); if a line of `merges_txt` is not two tokens with
    /// a space between (an empty line is not), or they or their product are not in the vocabulary.
    pub fn parse(vocab_json: &[u8], merges_txt: &[u8]) -> Result<Self, ReadError> {
        let vocab = parse_vocab(vocab_json)?;
        let mut resolver = MergeResolver::new(&vocab, "");
        let mut merges = Vec::new();
        for (number, line) in lines(merges_txt) {
            let line = utf8(Format::MergesTxt, number, line)?;
            if line.starts_with("#version") {
                continue;
            }
            merges.push(resolver.resolve_line(line).map_err(|(kind, what)| {
                ReadError::new(Format::MergesTxt, Position::Line(number), kind, what)
            })?);
        }
        Ok(Self { vocab, merges })
    }

    /// The text of `vocab.json`, in order of id.
    #[must_use]
    pub fn vocab_json(&self) -> String {
        let mut writer = Writer::new(Layout::Compact);
        write::token_map(&mut writer, &self.vocab);
        writer.finish()
    }

    /// The text of `merges.txt`, with its version line.
    ///
    /// # Errors
    ///
    /// If a merge names an id without token, or would not be read back: a token is empty or holds
    /// a space or a line break, or a line would begin with `#version`.
    pub fn merges_txt(&self) -> Result<String, WriteError> {
        let mut text = String::from("#version: 0.2\n");
        for (rank, merge) in self.merges.iter().enumerate() {
            let fault =
                |what: String| WriteError::new(Format::MergesTxt, format!("merge {rank} {what}"));
            let token = |id: u32| {
                self.vocab.token(id).ok_or_else(|| fault(format!("names id {id} without token")))
            };
            let (left, right) = (token(merge.left)?, token(merge.right)?);
            for token in [left, right] {
                if token.is_empty() || token.contains([' ', '\n', '\r']) {
                    return Err(fault(format!("is of token {}", quoted(token))));
                }
            }
            if left.starts_with("#version") {
                return Err(fault("would be taken for a version line".to_owned()));
            }
            text.push_str(&format!("{left} {right}\n"));
        }
        Ok(text)
    }
}

/// Reads a `vocab.json` alone.
///
/// # Errors
///
/// As [`Gpt2::parse`].
pub fn parse_vocab(vocab_json: &[u8]) -> Result<IdMap<str>, ReadError> {
    json::read(Format::VocabJson, vocab_json, token_map)
}

/// Whether this looks like a line of `merges.txt`.
pub(crate) fn is_merge_line(line: &str) -> bool {
    let mut parts = line.split(' ');
    let (left, right) = (parts.next(), parts.next());
    parts.next().is_none()
        && left.is_some_and(|token| !token.is_empty())
        && right.is_some_and(|token| !token.is_empty())
}
