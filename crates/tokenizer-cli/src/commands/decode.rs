//! `tok decode`.

use std::io::{BufRead, Write};

use clap::Args;
use serde_json::json;
use tokenizer::{DecodeOptions, Tokenizer};
use tokenizer_core::TokenId;

use crate::Mode;
use crate::failure::Failure;
use crate::model::ModelOptions;
use crate::output;

#[derive(Args)]
#[command(after_help = "\
Ids are separated by spaces or commas. Given as arguments, the bytes of their text are printed and
nothing else. Without them every line of standard input is a list of ids, and its text is printed
as a line.

Examples:
  tok decode 9906 11 1917 --model tokenizer.json
  tok encode --model tokenizer.json < in.txt | tok decode --model tokenizer.json")]
pub(crate) struct Decode {
    /// The ids
    ids: Vec<String>,
    #[command(flatten)]
    model: ModelOptions,
    /// Leave special tokens out
    #[arg(long)]
    skip_special: bool,
    /// Print U+FFFD for bytes that are not UTF-8
    #[arg(long, conflicts_with = "strict")]
    lossy: bool,
    /// Refuse ids whose text is not UTF-8, and say where
    #[arg(long)]
    strict: bool,
}

impl Decode {
    pub(crate) fn run(self, mode: Mode) -> Result<(), Failure> {
        let tokenizer = self.model.load()?;
        let mut out = output::stdout();
        if !self.ids.is_empty() {
            let bytes = self.text(&tokenizer, &self.ids.join(" "))?;
            self.print(&bytes, mode, &mut out)?;
            if mode.json {
                out.write_all(b"\n")?;
            }
            out.flush()?;
            return Ok(());
        }
        let mut input = std::io::stdin().lock();
        let (mut line, mut number) = (Vec::new(), 0u64);
        loop {
            line.clear();
            let fail = |what: String| Failure::Input(format!("standard input: {what}"));
            if input.read_until(b'\n', &mut line).map_err(|e| fail(e.to_string()))? == 0 {
                break;
            }
            number += 1;
            let text = std::str::from_utf8(&line)
                .map_err(|_| fail(format!("line {number} is not UTF-8")))?;
            let bytes = self.text(&tokenizer, text).map_err(|failure| match failure {
                Failure::Input(what) => Failure::Input(format!("line {number}: {what}")),
                other => other,
            })?;
            self.print(&bytes, mode, &mut out)?;
            if mode.json || line.ends_with(b"\n") {
                out.write_all(b"\n")?;
            }
        }
        out.flush()?;
        Ok(())
    }

    /// The bytes of a list of ids.
    fn text(&self, tokenizer: &Tokenizer, list: &str) -> Result<Vec<u8>, Failure> {
        let numbers = list.split(|c: char| c.is_whitespace() || ",[]".contains(c));
        let ids = numbers.filter(|number| !number.is_empty()).map(|number| {
            number.parse().map(TokenId).map_err(|_| {
                Failure::input(format!("{number:?} is no id: ids are 0 to {}", u32::MAX))
            })
        });
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        let mut options = DecodeOptions::default();
        options.skip_special = self.skip_special;
        let bytes = tokenizer.decode_bytes(&ids, options).map_err(Failure::input)?;
        match String::from_utf8(bytes) {
            Err(error) if self.strict => Err(Failure::input(format!(
                "the text is not UTF-8 from byte {} on",
                error.utf8_error().valid_up_to()
            ))),
            Err(error) if self.lossy => {
                Ok(String::from_utf8_lossy(error.as_bytes()).into_owned().into_bytes())
            }
            Err(error) => Ok(error.into_bytes()),
            Ok(text) => Ok(text.into_bytes()),
        }
    }

    fn print(&self, bytes: &[u8], mode: Mode, out: &mut dyn Write) -> Result<(), Failure> {
        if mode.json {
            let text = String::from_utf8_lossy(bytes);
            let is_utf8 = std::str::from_utf8(bytes).is_ok();
            write!(out, "{}", json!({"text": text, "utf8": is_utf8}))?;
        } else {
            out.write_all(bytes)?;
        }
        Ok(())
    }
}
