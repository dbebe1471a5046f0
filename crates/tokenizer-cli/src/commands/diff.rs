//! `tok diff`.

mod page;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use tokenizer::{Policy, Stretch, Tokenizer};
use tokenizer_core::{Span, TokenKind};

use crate::Mode;
use crate::commands::encode::token_text;
use crate::failure::Failure;
use crate::input::{self, InputOptions, Source};
use crate::model::FileOptions;
use crate::output::{self, AtomicFile};

#[derive(Args)]
#[command(after_help = "\
The text is cut where all tokenizers have a boundary; every stretch that they cut otherwise is shown,
a line a tokenizer. Boundaries are bytes of the text, so that tokenizers that normalize can be
compared with those that do not. A token of unknown text counts as another one than a known token.

Exit code 1 when they differ.

Examples:
  tok diff gpt2.json cl100k_base \"It's 12345 tokens\"
  tok diff a.json b.model c.txt corpus.txt --html diff.html")]
pub(crate) struct Diff {
    /// Two tokenizers or more (files of any format, or names of published encodings), then the text
    /// or a file of it
    #[arg(value_name = "A B [C..] TEXT|FILE", num_args = 3.., required = true)]
    words: Vec<String>,
    /// Show all differences, not the first ones alone
    #[arg(long)]
    all: bool,
    /// Write a page with the whole text
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    file: FileOptions,
    #[command(flatten)]
    input: InputOptions,
}

/// How many differences are shown.
const SHOWN: usize = 40;

/// A token where it stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Placed {
    span: Span,
    shown: String,
    is_unknown: bool,
}

/// A stretch of the text between boundaries that all tokenizers share.
struct Block {
    span: Span,
    /// The tokens of each tokenizer.
    tokens: Vec<Vec<Placed>>,
    differs: bool,
}

/// What the tokenizers do with all texts.
#[derive(Default)]
struct Summary {
    /// Tokens of each tokenizer.
    tokens: Vec<usize>,
    /// Boundaries that some have, and those that all have.
    boundaries: usize,
    shared: usize,
    blocks: usize,
    differing: usize,
    /// Texts of tokens, for each tokenizer.
    texts: Vec<BTreeSet<String>>,
}

impl Diff {
    pub(crate) fn run(mut self, mode: Mode) -> Result<(), Failure> {
        let text = self.words.pop().unwrap_or_default();
        let names = std::mem::take(&mut self.words);
        let loaded: Result<Vec<Tokenizer>, Failure> =
            names.iter().map(|name| self.file.named(name)).collect();
        let tokenizers = loaded?;
        let policy = self.file.policy();
        let mut summary = Summary {
            tokens: vec![0; names.len()],
            texts: vec![BTreeSet::new(); names.len()],
            ..Summary::default()
        };
        let mut documents: Vec<(String, Vec<Block>)> = Vec::new();
        for document in self.documents(&text)? {
            let blocks = blocks(&document, &tokenizers, &policy)?;
            summary.add(&document, &blocks);
            documents.push((document, blocks));
        }
        if let Some(path) = &self.html {
            let page = page::page(&names, &documents, &summary);
            AtomicFile::write(path, page.as_bytes())?;
        }
        if mode.json {
            output::print_json(&json(&names, &documents, &summary))?;
        } else {
            output::print(self.show(&names, &documents, &summary).as_bytes())?;
        }
        if summary.differing == 0 { Ok(()) } else { Err(Failure::Check) }
    }

    /// The text, or the documents of the file of that name.
    fn documents(&self, text: &str) -> Result<Vec<String>, Failure> {
        let path = Path::new(text);
        if text != "-" && !path.exists() {
            return Ok(vec![text.to_owned()]);
        }
        let sources = match text {
            "-" => vec![Source { path: PathBuf::from("-"), bytes: 0 }],
            _ => input::sources(&[path.to_owned()])?,
        };
        let mut documents = Vec::new();
        for source in &sources {
            input::documents(source, &self.input, &ProgressBar::hidden(), &mut |document| {
                documents.push(document);
                Ok(())
            })?;
        }
        Ok(documents)
    }

    fn show(
        &self,
        names: &[String],
        documents: &[(String, Vec<Block>)],
        summary: &Summary,
    ) -> String {
        let colour = std::io::stdout().is_terminal();
        let mut out = String::new();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(24);
        let mut shown = 0;
        for (number, (document, blocks)) in documents.iter().enumerate() {
            for block in blocks.iter().filter(|block| block.differs) {
                shown += 1;
                if shown > SHOWN && !self.all {
                    continue;
                }
                let place = match documents.len() {
                    1 => String::new(),
                    _ => format!("text {} ", number + 1),
                };
                let line = 1 + document[..block.span.start].matches('\n').count();
                let Span { start, end } = block.span;
                let _ = writeln!(out, "{place}line {line}, bytes {start}..{end}");
                for (name, tokens) in names.iter().zip(&block.tokens) {
                    let name: String = tail(name, width);
                    let _ = writeln!(out, "  {name:width$}  {}", row(tokens, colour));
                }
            }
        }
        if shown > SHOWN && !self.all {
            let _ = writeln!(out, "and {} differences more (--all shows them)", shown - SHOWN);
        }
        for (i, name) in names.iter().enumerate() {
            let only = summary.only(i);
            let examples: Vec<String> = only.iter().take(8).map(|t| format!("{t:?}")).collect();
            let _ = writeln!(
                out,
                "{:width$}  {} tokens, {} kinds that no other has{}{}",
                tail(name, width),
                summary.tokens[i],
                only.len(),
                if only.is_empty() { "" } else { ": " },
                examples.join(" ")
            );
        }
        let _ = writeln!(
            out,
            "boundaries: {} of {} shared by all ({:.1} %); {} of {} stretches differ",
            summary.shared,
            summary.boundaries,
            100.0 * summary.agreement(),
            summary.differing,
            summary.blocks
        );
        out
    }
}

/// The end of a long name.
fn tail(name: &str, width: usize) -> String {
    let skip = name.chars().count().saturating_sub(width);
    name.chars().skip(skip).collect()
}

fn row(tokens: &[Placed], colour: bool) -> String {
    let mut out = String::new();
    for (i, token) in tokens.iter().enumerate() {
        let shown = token.shown.escape_debug();
        let _ = match colour {
            true => {
                let tint = if token.is_unknown { 41 } else { [44, 45][i % 2] };
                write!(out, "\x1b[{tint};97m{shown}\x1b[0m")
            }
            false => write!(out, "{}{shown}", if i == 0 { "" } else { "|" }),
        };
    }
    out
}

/// Where the tokens of a text stand in it, in order and without overlap.
fn place(text: &str, tokenizer: &Tokenizer, policy: &Policy) -> Result<Vec<Placed>, Failure> {
    let trace = tokenizer.trace(text, policy).map_err(Failure::input)?;
    let mut placed: Vec<Placed> = Vec::new();
    let mut push = |span: Span, id| {
        // Tokens that share a character stand side by side where the first one begins.
        let start = placed.last().map_or(0, |last: &Placed| last.span.end);
        let span = Span::new(span.start.max(start).min(span.end.max(start)), span.end.max(start));
        let is_unknown = tokenizer.vocab().kind(id) == Some(TokenKind::Unknown);
        placed.push(Placed { span, shown: token_text(tokenizer, id), is_unknown });
    };
    for stretch in &trace.stretches {
        match stretch {
            Stretch::Added { id, span } => push(*span, *id),
            Stretch::Text(text) => {
                for piece in &text.pieces {
                    for (token, &source) in piece.tokens.iter().zip(&piece.sources) {
                        push(source, token.id);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(placed)
}

/// Cuts a text where all tokenizers have a boundary.
fn blocks(text: &str, tokenizers: &[Tokenizer], policy: &Policy) -> Result<Vec<Block>, Failure> {
    let placed: Result<Vec<Vec<Placed>>, Failure> =
        tokenizers.iter().map(|tokenizer| place(text, tokenizer, policy)).collect();
    let placed = placed?;
    // A place is a boundary of a tokenizer unless one of its tokens covers it.
    let mut shared: BTreeSet<usize> = BTreeSet::from([0, text.len()]);
    shared.extend(placed.iter().flatten().flat_map(|token| [token.span.start, token.span.end]));
    for token in placed.iter().flatten() {
        let (start, end) = (token.span.start + 1, token.span.end);
        if start < end {
            let inside: Vec<usize> = shared.range(start..end).copied().collect();
            shared.retain(|at| !inside.contains(at));
        }
    }
    let places: Vec<usize> = shared.into_iter().collect();
    let mut next = vec![0; placed.len()];
    let mut blocks = Vec::new();
    for window in places.windows(2) {
        let span = Span::new(window[0], window[1]);
        let last = span.end == text.len();
        let tokens: Vec<Vec<Placed>> = placed
            .iter()
            .zip(&mut next)
            .map(|(tokens, next)| {
                let from = *next;
                while let Some(token) = tokens.get(*next)
                    && (token.span.start < span.end || last)
                {
                    *next += 1;
                }
                tokens[from..*next].to_vec()
            })
            .collect();
        let shape = |tokens: &[Placed]| {
            tokens.iter().map(|token| (token.span, token.is_unknown)).collect::<Vec<_>>()
        };
        let differs = tokens.windows(2).any(|pair| shape(&pair[0]) != shape(&pair[1]));
        blocks.push(Block { span, tokens, differs });
    }
    Ok(blocks)
}

impl Summary {
    fn add(&mut self, text: &str, blocks: &[Block]) {
        let mut some: BTreeSet<usize> = BTreeSet::new();
        let mut all: Option<BTreeSet<usize>> = None;
        for i in 0..self.tokens.len() {
            let tokens = || blocks.iter().flat_map(|block| &block.tokens[i]);
            self.tokens[i] += tokens().count();
            let ends: BTreeSet<usize> =
                tokens().map(|t| t.span.end).filter(|&end| end < text.len()).collect();
            some.extend(&ends);
            all = Some(match all {
                None => ends,
                Some(all) => all.intersection(&ends).copied().collect(),
            });
            self.texts[i].extend(tokens().map(|t| text[t.span.range()].to_owned()));
        }
        self.boundaries += some.len();
        self.shared += all.map_or(0, |all| all.len());
        self.blocks += blocks.len();
        self.differing += blocks.iter().filter(|block| block.differs).count();
    }

    fn agreement(&self) -> f64 {
        match self.boundaries {
            0 => 1.0,
            boundaries => self.shared as f64 / boundaries as f64,
        }
    }

    /// What only one tokenizer has a token for, as it stands in the text.
    fn only(&self, i: usize) -> Vec<&str> {
        let others = |text: &&String| {
            let mut rest = self.texts.iter().enumerate().filter(|(other, _)| *other != i);
            !rest.any(|(_, texts)| texts.contains(*text))
        };
        self.texts[i].iter().filter(others).map(String::as_str).collect()
    }
}

fn json(
    names: &[String],
    documents: &[(String, Vec<Block>)],
    summary: &Summary,
) -> serde_json::Value {
    let differences = documents.iter().enumerate().flat_map(|(number, (document, blocks))| {
        blocks.iter().filter(|block| block.differs).map(move |block| {
            let tokens = block.tokens.iter().map(|tokens| {
                tokens
                    .iter()
                    .map(|token| {
                        json!({
                            "span": [token.span.start, token.span.end],
                            "token": token.shown,
                            "unknown": token.is_unknown,
                        })
                    })
                    .collect::<Vec<_>>()
            });
            json!({
                "document": number,
                "span": [block.span.start, block.span.end],
                "text": &document[block.span.range()],
                "tokens": tokens.collect::<Vec<_>>(),
            })
        })
    });
    json!({
        "tokenizers": names
            .iter()
            .enumerate()
            .map(|(i, name)| json!({
                "name": name,
                "tokens": summary.tokens[i],
                "only": summary.only(i),
            }))
            .collect::<Vec<_>>(),
        "boundaries": summary.boundaries,
        "shared_boundaries": summary.shared,
        "agreement": summary.agreement(),
        "stretches": summary.blocks,
        "differing": summary.differing,
        "same": summary.differing == 0,
        "differences": differences.collect::<Vec<_>>(),
    })
}
