//! `tok encode`.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde::Serialize;
use tokenizer::{EncodeOptions, Encoding, Session, SessionOptions, Tokenizer};
use tokenizer_core::{Span, TokenId};

use crate::Mode;
use crate::failure::Failure;
use crate::input::{self, InputOptions, Source};
use crate::model::ModelOptions;
use crate::output;

#[derive(Args)]
#[command(after_help = "\
Without TEXT every line of standard input is a text. One text gives one line of ids; with --json
one object {\"ids\", \"tokens\", \"offsets\"}, whose offsets are half-open and point into the text.

Examples:
  tok encode \"Hello, world\" --model tokenizer.json
  tok encode --model llama.model --template --json < questions.txt")]
pub(crate) struct Encode {
    /// The text
    #[arg(allow_hyphen_values = true)]
    text: Option<String>,
    #[command(flatten)]
    model: ModelOptions,
    /// Add the tokens of the tokenizer's template: BOS and EOS, CLS and SEP
    #[arg(long)]
    template: bool,
    /// What offsets count
    #[arg(long, value_enum, default_value_t = OffsetUnit::Byte)]
    offset_unit: OffsetUnit,
    /// How much of what it met the tokenizer remembers, as 64M: more makes long inputs of many
    /// languages faster, and changes no ids
    #[arg(long, value_name = "SIZE", value_parser = input::size, default_value = "4M")]
    session_memory: u64,
    /// Replace bytes of standard input that are not UTF-8 by U+FFFD instead of refusing them
    #[arg(long)]
    lossy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OffsetUnit {
    Byte,
    /// Unicode code points
    Char,
}

/// What `--json` prints for a text.
#[derive(Serialize)]
struct Encoded {
    ids: Vec<u32>,
    tokens: Vec<String>,
    offsets: Vec<[usize; 2]>,
}

impl Encode {
    pub(crate) fn run(self, mode: Mode) -> Result<(), Failure> {
        let tokenizer = self.model.load()?;
        let options = EncodeOptions::new().policy(self.model.policy()).template(self.template);
        let memory = usize::try_from(self.session_memory).unwrap_or(usize::MAX);
        let mut session = tokenizer.session_with(&SessionOptions::new().memory(memory));
        let mut out = output::stdout();
        if let Some(text) = &self.text {
            self.one(text, &tokenizer, &mut session, &options, mode, &mut out)?;
        } else {
            let source = Source { path: PathBuf::from("-"), bytes: 0 };
            let lines = InputOptions {
                field: String::new(),
                lines: true,
                lossy: self.lossy,
                sentences: None,
            };
            let mut number = 0u64;
            input::documents(&source, &lines, &ProgressBar::hidden(), &mut |line| {
                number += 1;
                self.one(&line, &tokenizer, &mut session, &options, mode, &mut out).map_err(
                    |failure| match failure {
                        Failure::Input(what) => Failure::Input(format!("line {number}: {what}")),
                        other => other,
                    },
                )
            })?;
        }
        out.flush()?;
        Ok(())
    }

    fn one(
        &self,
        text: &str,
        tokenizer: &Tokenizer,
        session: &mut Session<'_>,
        options: &EncodeOptions,
        mode: Mode,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let encoding = session.encode(text, options).map_err(Failure::input)?;
        if mode.json {
            let line = serde_json::to_vec(&self.describe(text, &encoding, tokenizer))
                .map_err(std::io::Error::from)?;
            out.write_all(&line)?;
        } else {
            for (i, id) in encoding.ids.iter().enumerate() {
                write!(out, "{}{id}", if i == 0 { "" } else { " " })?;
            }
        }
        out.write_all(b"\n")?;
        Ok(())
    }

    fn describe(&self, text: &str, encoding: &Encoding, tokenizer: &Tokenizer) -> Encoded {
        let chars;
        let offsets: &[Span] = match self.offset_unit {
            OffsetUnit::Byte => &encoding.offsets,
            OffsetUnit::Char => {
                chars = encoding.char_offsets(text);
                &chars
            }
        };
        Encoded {
            ids: encoding.ids.iter().map(|id| id.0).collect(),
            tokens: encoding.ids.iter().map(|&id| token_text(tokenizer, id)).collect(),
            offsets: offsets.iter().map(|span| [span.start, span.end]).collect(),
        }
    }
}

/// A token as text; bytes that are not UTF-8 by themselves as U+FFFD.
pub(crate) fn token_text(tokenizer: &Tokenizer, id: TokenId) -> String {
    let bytes = tokenizer.token_bytes(id).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
