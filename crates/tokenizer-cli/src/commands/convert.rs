//! `tok convert`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use tokenizer::convert::{self, ConvertOptions, Converted, Setting, Target};
use tokenizer::verify::{Check, Texts, Verdict};

use super::verify::{add_texts, describe, show};
use crate::Mode;
use crate::failure::Failure;
use crate::input::InputOptions;
use crate::model::{self, FileOptions, chain};
use crate::output::{self, AtomicFile, Progress};

#[derive(Args)]
#[command(after_help = "\
The ending of OUT picks the format: .model, .tiktoken, .txt (vocab.txt), tekken.json, vocab.json
(merges.txt is written beside it), any other .json (tokenizer.json). IN may be any of these or GGUF.

What the format cannot express is refused by name. The result is read back and compared with the
original on a built-in corpus, on every token of the vocabulary and on --text: where they differ,
nothing is written, the shortest text that differs is shown, and the exit code is 1.

Examples:
  tok convert llama.model tokenizer.json
  tok convert tokenizer.json ranks.tiktoken --drop template
  tok convert model.model clean.model --strip-training-info")]
pub(crate) struct Convert {
    /// The original, of any format
    #[arg(value_name = "IN")]
    original: PathBuf,
    /// The file to write
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The format, where the ending of OUT does not say it
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<Format>,
    /// Leave out of a .model what only tells how it was trained: paths, parameters, samples
    #[arg(long)]
    strip_training_info: bool,
    /// Leave these settings of a tokenizer.json out where the format cannot hold them
    #[arg(long, value_enum, value_name = "SETTING[,SETTING..]", value_delimiter = ',')]
    drop: Vec<Dropped>,
    /// More texts to compare on: files, directories (recursively), - for standard input
    #[arg(long, value_name = "FILES", num_args = 1..)]
    text: Vec<PathBuf>,
    /// Write the file although it differs
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    file: FileOptions,
    #[command(flatten)]
    input: InputOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    #[value(name = "tokenizer.json")]
    TokenizerJson,
    #[value(name = "model")]
    SentencePiece,
    Tiktoken,
    #[value(name = "tekken.json")]
    Tekken,
    #[value(name = "vocab.txt")]
    VocabTxt,
    #[value(name = "vocab.json")]
    Gpt2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Dropped {
    Truncation,
    Padding,
    /// The tokens that are added around a text
    Template,
    Dropout,
}

impl Convert {
    fn target(&self) -> Result<Target, Failure> {
        if let Some(format) = self.to {
            return Ok(match format {
                Format::TokenizerJson => Target::TokenizerJson,
                Format::SentencePiece => Target::SentencePiece,
                Format::Tiktoken => Target::Tiktoken,
                Format::Tekken => Target::Tekken,
                Format::VocabTxt => Target::VocabTxt,
                Format::Gpt2 => Target::Gpt2,
            });
        }
        let name = self.out.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        Ok(match name.rsplit_once('.') {
            Some((_, "model")) => Target::SentencePiece,
            Some((_, "tiktoken")) => Target::Tiktoken,
            Some((_, "txt")) => Target::VocabTxt,
            Some((stem, "json")) if stem.ends_with("tekken") => Target::Tekken,
            Some((stem, "json")) if stem.ends_with("vocab") => Target::Gpt2,
            Some((_, "json")) => Target::TokenizerJson,
            _ => {
                return Err(Failure::usage(format!(
                    "{}: the ending names no format (--to FORMAT does)",
                    self.out.display()
                )));
            }
        })
    }

    pub(crate) fn run(self, mode: Mode, progress: Progress) -> Result<(), Failure> {
        let target = self.target()?;
        let (_, original) = model::read(&self.original)?;
        let mut options = ConvertOptions::default();
        options.load = self.file.load_options()?;
        options.strip_training_info = self.strip_training_info;
        options.drop = self.drop.iter().map(|&dropped| dropped.into()).collect();
        let source = original
            .lower(&options.load)
            .map_err(|error| model::load_failure(&self.original, &original, &error))?;
        let mut texts = Texts::builtin();
        texts.push_tokens(&source);
        drop(source);
        add_texts(&mut texts, &self.text, &self.input, progress)?;
        let converted = convert::convert(&original, target, &options).map_err(|error| {
            Failure::file(&self.original, format!("cannot become a {target}: {error}"))
        })?;
        let checks = convert::prove(&original, &converted, &options, &texts)
            .map_err(|error| Failure::file(&self.original, chain(&error)))?;
        let same = checks.iter().all(|check| check.verdict() == Verdict::Passed);
        let written = if same || self.force { self.write(&converted)? } else { Vec::new() };
        if mode.json {
            output::print_json(&json!({
                "in": self.original,
                "out": written.iter().map(|(path, _)| path).collect::<Vec<_>>(),
                "format": target.name(),
                "bytes": written.iter().map(|(_, bytes)| bytes).sum::<usize>(),
                "texts": texts.len(),
                "same": same,
                "ids_move": converted.ids_move,
                "lost": converted.lost,
                "checks": checks.iter().map(describe).collect::<Vec<_>>(),
            }))?;
        } else {
            output::print(self.report(target, &converted, &checks, &written, &texts).as_bytes())?;
        }
        if same { Ok(()) } else { Err(Failure::Check) }
    }

    /// Writes the files; of two the second one beside the first.
    fn write(&self, converted: &Converted) -> Result<Vec<(PathBuf, usize)>, Failure> {
        let files = converted.document.to_files().map_err(|e| Failure::file(&self.out, e))?;
        let mut written = Vec::new();
        for (i, (name, bytes)) in files.iter().enumerate() {
            let path = if i == 0 { self.out.clone() } else { self.beside(name) };
            AtomicFile::write(&path, bytes)?;
            written.push((path, bytes.len()));
        }
        Ok(written)
    }

    fn beside(&self, name: &str) -> PathBuf {
        model::renamed(&self.out, "vocab.json", name)
            .unwrap_or_else(|| self.out.with_file_name(name))
    }

    fn report(
        &self,
        target: Target,
        converted: &Converted,
        checks: &[Check],
        written: &[(PathBuf, usize)],
        texts: &Texts,
    ) -> String {
        let mut text = String::new();
        for (path, bytes) in written {
            let path: &Path = path;
            let _ = writeln!(text, "wrote {} ({target}, {bytes} bytes)", path.display());
        }
        if written.is_empty() {
            let _ = writeln!(text, "nothing written: the {target} would not do the same");
        }
        for lost in &converted.lost {
            let _ = writeln!(text, "not in the file: {lost}");
        }
        let _ = writeln!(text, "compared on {} texts, {} bytes", texts.len(), texts.bytes());
        for check in checks {
            show(check, &mut text);
        }
        text
    }
}

impl From<Dropped> for Setting {
    fn from(dropped: Dropped) -> Self {
        match dropped {
            Dropped::Truncation => Self::Truncation,
            Dropped::Padding => Self::Padding,
            Dropped::Template => Self::Template,
            Dropped::Dropout => Self::Dropout,
        }
    }
}
