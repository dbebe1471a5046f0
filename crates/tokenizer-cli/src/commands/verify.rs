//! `tok verify`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokenizer::verify::{self, By, Check, Reachability, Texts, Verdict};

use crate::Mode;
use crate::failure::Failure;
use crate::input::{self, InputOptions};
use crate::model::FileOptions;
use crate::output::{self, Progress, Unit};

#[derive(Args)]
#[command(after_help = "\
One tokenizer is held to the laws that every tokenizer obeys: the text comes back where nothing
rewrites it; every way to the ids gives the same ids (alone, with offsets, counted, in parallel, in
chunks cut anywhere); a stream of ids decodes to the whole; every token can come out.
Two are held against each other: ids, special tokens, decoded text.

The texts are a built-in corpus of awkward ones, the tokens of the vocabularies themselves, and
those of --text. Whatever differs is shown in the shortest text that still differs.

A law is \"noted\" where it does not hold but was never promised: a normalizer that lower-cases does
not give the text back, and most vocabularies have tokens that no text becomes. --strict takes
notes for failures.

Exit code 1 when a check fails.

Examples:
  tok verify tokenizer.json
  tok verify llama.model llama.json --text corpus/ --json
  tok verify cl100k_base cl100k.json")]
pub(crate) struct Verify {
    /// A vocabulary file of any format, or the name of a published encoding
    a: String,
    /// Another one, that must do the same
    b: Option<String>,
    /// More texts: files, directories (recursively), - for standard input
    #[arg(long, value_name = "FILES", num_args = 1..)]
    text: Vec<PathBuf>,
    /// What two tokenizers are compared by
    #[arg(long, value_enum, default_value_t = Compared::Ids)]
    by: Compared,
    /// Take notes for failures
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    file: FileOptions,
    #[command(flatten)]
    input: InputOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compared {
    Ids,
    /// The bytes of tokens, where ids differ by design
    Tokens,
}

impl From<Compared> for By {
    fn from(compared: Compared) -> Self {
        match compared {
            Compared::Ids => Self::Ids,
            Compared::Tokens => Self::Tokens,
        }
    }
}

/// Longer documents are looked at in parts of about this many bytes, cut behind a line.
const PART: usize = 8 << 10;

/// Adds the documents of these files.
pub(crate) fn add_texts(
    texts: &mut Texts,
    paths: &[PathBuf],
    options: &InputOptions,
    progress: Progress,
) -> Result<(), Failure> {
    let sources = input::sources(paths)?;
    let bar = progress.bar("reading", sources.iter().map(|s| s.bytes).sum(), Unit::Bytes);
    for source in &sources {
        input::documents(source, options, &bar, &mut |document| {
            let mut part = String::new();
            for line in document.split_inclusive('\n') {
                part.push_str(line);
                if part.len() >= PART {
                    texts.push(std::mem::take(&mut part));
                }
            }
            texts.push(part);
            Ok(())
        })?;
    }
    bar.finish_and_clear();
    Ok(())
}

impl Verify {
    pub(crate) fn run(self, mode: Mode, progress: Progress) -> Result<(), Failure> {
        let a = self.file.named(&self.a)?;
        let b = self.b.as_deref().map(|b| self.file.named(b)).transpose()?;
        let mut texts = Texts::builtin();
        texts.push_tokens(&a);
        if let Some(b) = &b {
            texts.push_tokens(b);
        }
        add_texts(&mut texts, &self.text, &self.input, progress)?;
        let (checks, reachability) = match &b {
            Some(b) => (verify::compare(&a, b, &texts, self.by.into()), None),
            None => (verify::verify(&a, &texts), Some(verify::reachability(&a))),
        };
        let fails = |check: &Check| match check.verdict() {
            Verdict::Passed => false,
            Verdict::Noted => self.strict,
            Verdict::Failed => true,
        };
        let unreachable = reachability.as_ref().map_or(0, |found| found.unreachable.len());
        let passed = !(checks.iter().any(fails) || self.strict && unreachable > 0);
        if mode.json {
            output::print_json(&json!({
                "a": self.a,
                "b": self.b,
                "texts": texts.len(),
                "bytes": texts.bytes(),
                "checks": checks.iter().map(describe).collect::<Vec<_>>(),
                "reachability": reachability.as_ref().map(reach_json),
                "passed": passed,
            }))?;
        } else {
            let mut text = format!("{} texts, {} bytes\n", texts.len(), texts.bytes());
            for check in &checks {
                show(check, &mut text);
            }
            if let Some(found) = &reachability {
                show_reachability(found, &mut text);
            }
            output::print(text.as_bytes())?;
        }
        if passed { Ok(()) } else { Err(Failure::Check) }
    }
}

/// A check as JSON.
pub(crate) fn describe(check: &Check) -> Value {
    json!({
        "law": check.law,
        "verdict": check.verdict().to_string().to_lowercase(),
        "cases": check.cases,
        "broken": check.broken,
        "exempt": check.exempt,
        "example": check.example.as_ref().map(|example| json!({
            "text": example.text,
            "what": example.what,
        })),
    })
}

/// A check for people.
pub(crate) fn show(check: &Check, text: &mut String) {
    let verdict = check.verdict();
    let _ = write!(text, "{verdict:6}  {:44}", check.law);
    let _ = match verdict {
        Verdict::Passed => writeln!(text, "  {} cases", check.cases),
        Verdict::Noted => writeln!(text, "  not promised for {} of {}", check.exempt, check.cases),
        Verdict::Failed => writeln!(text, "  {} of {}", check.broken, check.cases),
    };
    if let Some(example) = &check.example {
        let _ = match &example.text {
            Some(shortest) => writeln!(text, "        {shortest:?}: {}", example.what),
            None => writeln!(text, "        {}", example.what),
        };
    }
}

/// How many unreachable tokens are listed.
const LISTED: usize = 12;

fn show_reachability(found: &Reachability, text: &mut String) {
    let verdict = if found.unreachable.is_empty() { "passed" } else { "noted" };
    let _ = writeln!(
        text,
        "{verdict:6}  {:44}  {} of {} come out, {} as part of a character{}",
        "every token can come out",
        found.reached + found.partial,
        found.tokens,
        found.partial,
        match found.silent {
            0 => String::new(),
            silent => format!("; {silent} stand for no text"),
        }
    );
    for token in found.unreachable.iter().take(LISTED) {
        let shown = String::from_utf8_lossy(&token.token);
        let _ = writeln!(text, "        {} {shown:?}: {}", token.id, token.reason);
    }
    if found.unreachable.len() > LISTED {
        let more = found.unreachable.len() - LISTED;
        let _ = writeln!(text, "        and {more} more (--json shows all)");
    }
}

fn reach_json(found: &Reachability) -> Value {
    let unreachable = found.unreachable.iter().map(|token| {
        json!({
            "id": token.id.0,
            "token": String::from_utf8_lossy(&token.token),
            "reason": token.reason.to_string(),
        })
    });
    json!({
        "tokens": found.tokens,
        "reached": found.reached,
        "partial": found.partial,
        "silent": found.silent,
        "unreachable": unreachable.collect::<Vec<_>>(),
    })
}
