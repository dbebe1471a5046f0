//! `tok explain`.

mod page;

use std::fmt::Write;
use std::path::PathBuf;

use bpe::Bpe;
use clap::Args;
use serde_json::{Value, json};
use tokenizer::{Stretch, Tokenizer, TracedPiece, TracedText};
use tokenizer_core::{Span, TokenId};
use unigram::Unigram;
use wordpiece::{Outcome, Stop, WordPiece};

use crate::Mode;
use crate::commands::encode::token_text;
use crate::failure::Failure;
use crate::model::ModelOptions;
use crate::output::{self, AtomicFile};

#[derive(Args)]
#[command(after_help = "\
Every step is shown: added tokens, the text as the model sees it, the pieces, and for each piece why
it splits as it does. BPE: the merges in the order in which they were made, with their ranks.
WordPiece: each longest match and what ended it. Unigram: the best segmentation and the runner-up,
with the margin between them, and all tokens that were weighed.

Examples:
  tok explain \"unbelievable\" --model tokenizer.json
  tok explain \"Xin chào\" --model spm.model --html why.html")]
pub(crate) struct Explain {
    /// The text
    #[arg(allow_hyphen_values = true)]
    text: String,
    #[command(flatten)]
    model: ModelOptions,
    /// Write a page with the lattice of a Unigram model, or the merges
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// More steps of one piece are not listed on a terminal.
const LISTED: usize = 200;

/// Why a piece splits as it does.
enum Why {
    Bpe(bpe::Trace),
    WordPiece(wordpiece::Explanation),
    Unigram(unigram::Explanation),
    /// Another model looks pieces up whole, or takes every byte or character for a token.
    Lookup,
}

/// A piece and the reason for its tokens.
struct Explained<'t> {
    text: &'t str,
    piece: &'t TracedPiece,
    why: Why,
}

impl Explain {
    pub(crate) fn run(self, mode: Mode) -> Result<(), Failure> {
        let tokenizer = self.model.load()?;
        let trace = tokenizer.trace(&self.text, &self.model.policy()).map_err(Failure::input)?;
        if let Some(path) = &self.html {
            let page = page::page(&self.text, &trace.stretches, &tokenizer);
            AtomicFile::write(path, page.as_bytes())?;
        }
        if mode.json {
            let stretches = trace.stretches.iter().map(|stretch| match stretch {
                Stretch::Added { id, span } => json!({
                    "added": id.0,
                    "token": token_text(&tokenizer, *id),
                    "source": [span.start, span.end],
                }),
                Stretch::Text(text) => json!({
                    "text": text.text,
                    "pieces": explained(text, &tokenizer)
                        .iter()
                        .map(|piece| describe(piece, &tokenizer))
                        .collect::<Vec<_>>(),
                }),
                _ => Value::Null,
            });
            return output::print_json(&json!({
                "text": self.text,
                "ids": trace.ids().iter().map(|id| id.0).collect::<Vec<_>>(),
                "stretches": stretches.collect::<Vec<_>>(),
            }));
        }
        let mut out = String::new();
        for stretch in &trace.stretches {
            match stretch {
                Stretch::Added { id, span } => {
                    let token = token_text(&tokenizer, *id);
                    let _ = writeln!(
                        out,
                        "added token {token:?} [{id}] at {}..{}",
                        span.start, span.end
                    );
                }
                Stretch::Text(text) => {
                    let _ = writeln!(out, "the model sees {:?}", text.text);
                    for piece in explained(text, &tokenizer) {
                        show(&piece, &tokenizer, &mut out);
                    }
                }
                _ => {}
            }
        }
        let ids: Vec<String> = trace.ids().iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "ids {}", ids.join(" "));
        output::print(out.as_bytes())
    }
}

/// The pieces of a text with the reasons for their tokens.
fn explained<'t>(text: &'t TracedText, tokenizer: &Tokenizer) -> Vec<Explained<'t>> {
    let model = tokenizer.model().as_any();
    let why = |piece: &str| {
        let bytes = piece.as_bytes();
        if let Some(model) = model.and_then(|model| model.downcast_ref::<Bpe>()) {
            return Why::Bpe(model.trace(bytes));
        }
        if let Some(model) = model.and_then(|model| model.downcast_ref::<WordPiece>()) {
            return Why::WordPiece(model.explain(bytes));
        }
        match model.and_then(|model| model.downcast_ref::<Unigram>()) {
            Some(model) if !bytes.is_empty() => Why::Unigram(model.explain(bytes)),
            _ => Why::Lookup,
        }
    };
    let pieces = text.pieces.iter().map(|piece| {
        let text = &text.text[piece.span.range()];
        Explained { text, piece, why: why(text) }
    });
    pieces.collect()
}

/// The symbols of a piece after each merge, in order; the first entry is before any.
fn states(trace: &bpe::Trace, piece: &str, tokenizer: &Tokenizer) -> Vec<Vec<String>> {
    let mut at = 0;
    let mut symbols: Vec<(usize, String)> = Vec::new();
    for (id, len) in &trace.initial {
        let shown = match id {
            Some(id) => token_text(tokenizer, *id),
            None => bytes_text(piece, at, *len as usize),
        };
        symbols.push((at, shown));
        at += *len as usize;
    }
    let texts = |symbols: &[(usize, String)]| symbols.iter().map(|s| s.1.clone()).collect();
    let mut states = vec![texts(&symbols)];
    for merge in &trace.merges {
        // A symbol that covers no byte shares its place with the next one.
        let left = symbols.iter().rposition(|symbol| symbol.0 == merge.position);
        if let Some(left) = left.filter(|left| left + 1 < symbols.len()) {
            symbols.remove(left + 1);
            symbols[left].1 = token_text(tokenizer, merge.product);
        }
        states.push(texts(&symbols));
    }
    states
}

fn bytes_text(piece: &str, at: usize, len: usize) -> String {
    let bytes = piece.as_bytes().get(at..at + len).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn bars<S: AsRef<str>>(tokens: impl IntoIterator<Item = S>) -> String {
    let shown: Vec<String> =
        tokens.into_iter().map(|token| token.as_ref().escape_debug().to_string()).collect();
    shown.join("|")
}

fn tokens_of(piece: &TracedPiece, tokenizer: &Tokenizer) -> Vec<String> {
    piece.tokens.iter().map(|token| token_text(tokenizer, token.id)).collect()
}

fn show(piece: &Explained<'_>, tokenizer: &Tokenizer, out: &mut String) {
    let Span { start, end } = piece.piece.source;
    let _ = writeln!(out, "piece {:?}  bytes {start}..{end}", piece.text);
    match &piece.why {
        Why::Bpe(trace) => show_merges(trace, piece.text, tokenizer, out),
        Why::WordPiece(explanation) => show_matches(explanation, piece.text, tokenizer, out),
        Why::Unigram(explanation) => show_lattice(explanation, piece.text, tokenizer, out),
        Why::Lookup => {
            let _ = writeln!(out, "  looked up as it is");
        }
    }
    let ids: Vec<String> = piece.piece.tokens.iter().map(|token| token.id.to_string()).collect();
    let _ =
        writeln!(out, "  tokens  {}  [{}]", bars(tokens_of(piece.piece, tokenizer)), ids.join(" "));
}

fn show_merges(trace: &bpe::Trace, piece: &str, tokenizer: &Tokenizer, out: &mut String) {
    let states = states(trace, piece, tokenizer);
    let _ = writeln!(out, "  start   {}", bars(&states[0]));
    for (merge, state) in trace.merges.iter().zip(&states[1..]).take(LISTED) {
        let _ = writeln!(out, "  rank {:<7} {}", merge.rank, bars(state));
    }
    if trace.merges.len() > LISTED {
        let _ =
            writeln!(out, "  and {} merges more (--json shows all)", trace.merges.len() - LISTED);
    }
    if trace.taken_whole {
        let _ = writeln!(out, "  the piece is a token, which goes before merging");
    }
}

/// What ended a match, in words.
fn stop(found: &wordpiece::Match, word: &str) -> String {
    match found.stop {
        Stop::EndOfWord => "the end of the word".to_owned(),
        Stop::NoLongerToken => "no token goes on with the next character".to_owned(),
        Stop::LongerTokensDiffer => {
            let agreed = bytes_text(word, found.span.start, found.agrees_to - found.span.start);
            format!("longer tokens begin with {agreed:?}, but none of them ends here")
        }
    }
}

fn outcome(explanation: &wordpiece::Explanation) -> Option<String> {
    match explanation.outcome {
        Outcome::Matched => None,
        Outcome::TooLong { chars } => {
            Some(format!("too long: {chars} characters, nothing was looked up"))
        }
        Outcome::Unmatched { at } => Some(format!("no token matches at byte {at} of the word")),
    }
}

fn show_matches(
    explanation: &wordpiece::Explanation,
    word: &str,
    tokenizer: &Tokenizer,
    out: &mut String,
) {
    for found in explanation.matches.iter().take(LISTED) {
        let text = bytes_text(word, found.span.start, found.span.len());
        let _ = match found.token {
            Some(id) => writeln!(
                out,
                "  longest match {:?} [{id}], ended by: {}",
                token_text(tokenizer, id),
                stop(found, word)
            ),
            None => writeln!(out, "  nothing matches {text:?}"),
        };
    }
    if let Some(words) = outcome(explanation) {
        let _ = writeln!(out, "  {words}");
    }
}

fn path(segmentation: &unigram::Segmentation, tokenizer: &Tokenizer) -> String {
    bars(segmentation.tokens.iter().map(|token| token_text(tokenizer, token.id)))
}

fn show_lattice(
    explanation: &unigram::Explanation,
    piece: &str,
    tokenizer: &Tokenizer,
    out: &mut String,
) {
    let best = &explanation.best;
    let _ = writeln!(out, "  best    {:>10.4}  {}", best.score, path(best, tokenizer));
    if let Some(second) = &explanation.second {
        let _ = writeln!(out, "  second  {:>10.4}  {}", second.score, path(second, tokenizer));
    }
    if let Some(margin) = explanation.margin {
        let _ = writeln!(out, "  margin  {margin:>10.4}");
    }
    let mut edges: Vec<&unigram::Edge> = explanation.edges.iter().collect();
    edges.sort_by_key(|edge| edge.span);
    for edge in edges.iter().take(LISTED) {
        let _ = writeln!(
            out,
            "  {} {:>3}..{:<3} {:>9.4}  best through it {:>9.4}  {}",
            if edge.is_best { "*" } else { " " },
            edge.span.start,
            edge.span.end,
            edge.score,
            edge.best_through,
            edge_text(edge, piece, tokenizer).escape_debug(),
        );
    }
    if edges.len() > LISTED {
        let _ = writeln!(out, "  and {} tokens more (--json shows all)", edges.len() - LISTED);
    }
}

/// The token of an edge; an unknown character as it is.
fn edge_text(edge: &unigram::Edge, piece: &str, tokenizer: &Tokenizer) -> String {
    match edge.id {
        Some(id) => token_text(tokenizer, id),
        None => format!("{} (unknown)", bytes_text(piece, edge.span.start, edge.span.len())),
    }
}

fn describe(piece: &Explained<'_>, tokenizer: &Tokenizer) -> Value {
    let named =
        |id: Option<TokenId>| id.map(|id| json!({"id": id.0, "token": token_text(tokenizer, id)}));
    let path = |segmentation: &unigram::Segmentation| {
        json!({
            "score": segmentation.score,
            "tokens": segmentation
                .tokens
                .iter()
                .map(|token| json!({
                    "id": token.id.0,
                    "token": token_text(tokenizer, token.id),
                    "bytes": token.len,
                }))
                .collect::<Vec<_>>(),
        })
    };
    let why = match &piece.why {
        Why::Bpe(trace) => {
            let states = states(trace, piece.text, tokenizer);
            let merges = trace.merges.iter().zip(&states[1..]).map(|(merge, state)| {
                json!({
                    "rank": merge.rank,
                    "left": named(merge.left),
                    "right": named(merge.right),
                    "product": named(Some(merge.product)),
                    "position": merge.position,
                    "symbols": state,
                })
            });
            json!({
                "algorithm": "bpe",
                "initial": states[0],
                "merges": merges.collect::<Vec<_>>(),
                "taken_whole": trace.taken_whole,
            })
        }
        Why::WordPiece(explanation) => {
            let matches = explanation.matches.iter().map(|found| {
                json!({
                    "span": [found.span.start, found.span.end],
                    "token": named(found.token),
                    "agrees_to": found.agrees_to,
                    "stop": stop(found, piece.text),
                })
            });
            json!({
                "algorithm": "wordpiece",
                "matches": matches.collect::<Vec<_>>(),
                "outcome": outcome(explanation).unwrap_or_else(|| "every part matches".to_owned()),
            })
        }
        Why::Unigram(explanation) => {
            let edges = explanation.edges.iter().map(|edge| {
                json!({
                    "span": [edge.span.start, edge.span.end],
                    "token": named(edge.id),
                    "score": edge.score,
                    "best_through": edge.best_through,
                    "posterior": edge.posterior,
                    "is_best": edge.is_best,
                })
            });
            json!({
                "algorithm": "unigram",
                "best": path(&explanation.best),
                "second": explanation.second.as_ref().map(path),
                "margin": explanation.margin,
                "log_likelihood": explanation.log_likelihood,
                "edges": edges.collect::<Vec<_>>(),
            })
        }
        Why::Lookup => json!({"algorithm": "lookup"}),
    };
    json!({
        "piece": piece.text,
        "source": [piece.piece.source.start, piece.piece.source.end],
        "ids": piece.piece.tokens.iter().map(|token| token.id.0).collect::<Vec<_>>(),
        "tokens": tokens_of(piece.piece, tokenizer),
        "why": why,
    })
}
