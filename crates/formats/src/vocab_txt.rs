//! `vocab.txt` of BERT: a token a line, whose id is the number of the line from 0.
//!
//! Read as Hugging Face tokenizers reads it: white space at the end of a line is not part of the
//! token, white space at its beginning is; an empty line is an empty token and takes an id; of a
//! token that is there twice the last id counts.
//!
//! ```
//! use formats::vocab_txt::VocabTxt;
//!
//! let vocab = VocabTxt::parse(b"[UNK]\nhug\n##s\n")?;
//! assert_eq!(vocab.token(2), Some("##s"));
//! assert_eq!(vocab.ids()["hug"], 1);
//! assert_eq!(vocab.to_text()?, "[UNK]\nhug\n##s\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::HashMap;

use crate::error::quoted;
use crate::id_map::MAX_ID;
use crate::lines::{lines, utf8};
use crate::{ErrorKind, Format, Position, ReadError, Strings, WriteError};

const FORMAT: Format = Format::VocabTxt;

/// The tokens of a `vocab.txt` in order of id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VocabTxt {
    tokens: Strings,
}

impl VocabTxt {
    /// A vocabulary of these tokens, ids in order.
    #[must_use]
    pub fn new(tokens: Strings) -> Self {
        Self { tokens }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If a line is not UTF-8, there is no line, or there are more than ids
    /// ([`MAX_ID`]).
    pub fn parse(file: &[u8]) -> Result<Self, ReadError> {
        let mut tokens = Strings::new();
        for (number, line) in lines(file) {
            if number > MAX_ID as usize + 1 {
                let what = format!("ids may not pass {MAX_ID}");
                return Err(ReadError::new(FORMAT, Position::Line(number), ErrorKind::Limit, what));
            }
            tokens.push(utf8(FORMAT, number, line)?.trim_end());
        }
        if tokens.is_empty() {
            let what = "the vocabulary is empty";
            return Err(ReadError::new(FORMAT, Position::Whole, ErrorKind::Missing, what));
        }
        Ok(Self { tokens })
    }

    /// The tokens in order of id, repeated and empty ones too.
    #[must_use]
    pub fn tokens(&self) -> &Strings {
        &self.tokens
    }

    /// The token of an id.
    #[must_use]
    pub fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize)
    }

    /// The id of every token; of a token that is there twice the last.
    #[must_use]
    pub fn ids(&self) -> HashMap<&str, u32> {
        self.tokens.iter().zip(0..).collect()
    }

    /// The ids whose token comes again under a later id, and so are never produced.
    #[must_use]
    pub fn shadowed(&self) -> Vec<u32> {
        let ids = self.ids();
        self.tokens.iter().zip(0..).filter(|(token, id)| ids[token] != *id).map(|t| t.1).collect()
    }

    /// The text of a file.
    ///
    /// # Errors
    ///
    /// If there is no token, or one that would not be read back: it holds a line feed or ends in
    /// white space.
    pub fn to_text(&self) -> Result<String, WriteError> {
        if self.tokens.is_empty() {
            return Err(WriteError::new(FORMAT, "the vocabulary is empty"));
        }
        let mut text = String::new();
        for (id, token) in self.tokens.iter().enumerate() {
            let fault = if token.contains('\n') {
                "holds a line feed"
            } else if token.ends_with(char::is_whitespace) {
                "ends in white space"
            } else {
                text.push_str(token);
                text.push('\n');
                continue;
            };
            return Err(WriteError::new(FORMAT, format!("token {id} {} {fault}", quoted(token))));
        }
        Ok(text)
    }
}
