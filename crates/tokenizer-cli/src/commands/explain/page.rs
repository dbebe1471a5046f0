//! The page of `tok explain`: one file, no script, for wide and narrow windows, light and dark.

use std::fmt::Write;

use tokenizer::{Stretch, Tokenizer};

use super::{Explained, Why, edge_text, explained, outcome, path, states, stop, tokens_of};
use crate::commands::encode::token_text;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5b6570;--line:#c9d1d9;--paper:#fff;--chip:#eef2f7;--best:#0b6bcb}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa5b1;--line:#3a434d;--paper:#0f1419;--chip:#1c242d;--best:#5db0ff}}\
*{box-sizing:border-box}\
body{margin:0 auto;max-width:70rem;padding:1rem;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
h1{font-size:1.3rem}h2{font-size:1.05rem;margin:1.6rem 0 .3rem}\
p{margin:.3rem 0}small,.soft{color:var(--soft)}\
.chips{display:flex;flex-wrap:wrap;gap:.25rem}\
.chip{background:var(--chip);border:1px solid var(--line);border-radius:.3rem;padding:0 .35rem;font-family:ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;max-width:100%;unicode-bidi:isolate}\
.wide{overflow-x:auto}.wide .chip{white-space:pre}\
table{border-collapse:collapse}td,th{padding:.15rem .6rem .15rem 0;text-align:left;vertical-align:top}\
td.n{text-align:right;font-variant-numeric:tabular-nums;color:var(--soft)}\
svg{display:block}svg text{fill:var(--ink);font:13px ui-monospace,monospace;paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}\
svg text.s{fill:var(--soft);font-size:11px}\
svg path{fill:none;stroke:var(--line);stroke-width:1.5}svg path.best{stroke:var(--best);stroke-width:3}\
svg circle{fill:var(--ink)}";

/// The whole page.
pub(super) fn page(text: &str, stretches: &[Stretch], tokenizer: &Tokenizer) -> String {
    let mut body = String::new();
    for stretch in stretches {
        match stretch {
            Stretch::Added { id, span } => {
                let _ = write!(
                    body,
                    "<h2>Added token</h2>{}<p class=soft>id {id}, bytes {}..{}</p>",
                    chips([token_text(tokenizer, *id)]),
                    span.start,
                    span.end
                );
            }
            Stretch::Text(traced) => {
                if traced.text != text {
                    let shown = chips([&traced.text]);
                    let _ = write!(body, "<h2>The text as the model sees it</h2>{shown}");
                }
                for piece in explained(traced, tokenizer) {
                    section(&piece, tokenizer, &mut body);
                }
            }
            _ => {}
        }
    }
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <title>Why this split</title><style>{STYLE}</style>\
         <h1>Why this split</h1>{}{body}</html>\n",
        chips([text])
    )
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

fn chips<S: AsRef<str>>(tokens: impl IntoIterator<Item = S>) -> String {
    let mut out = String::from("<div class=chips>");
    for token in tokens {
        let _ = write!(out, "<span class=chip>{}</span>", escape(token.as_ref()));
    }
    out.push_str("</div>");
    out
}

fn section(piece: &Explained<'_>, tokenizer: &Tokenizer, out: &mut String) {
    let source = piece.piece.source;
    let _ = write!(
        out,
        "<h2>Piece <span class=chip>{}</span> <small>bytes {}..{}</small></h2>",
        escape(piece.text),
        source.start,
        source.end
    );
    match &piece.why {
        Why::Bpe(trace) => {
            let states = states(trace, piece.text, tokenizer);
            out.push_str("<div class=wide><table><tr><th>rank<th>symbols");
            let _ = write!(out, "<tr><td class=n>start<td>{}", chips(&states[0]));
            for (merge, state) in trace.merges.iter().zip(&states[1..]) {
                let _ = write!(out, "<tr><td class=n>{}<td>{}", merge.rank, chips(state));
            }
            out.push_str("</table></div>");
            if trace.taken_whole {
                out.push_str("<p>The piece is a token, which goes before merging.</p>");
            }
        }
        Why::WordPiece(explanation) => {
            out.push_str("<div class=wide><table><tr><th>longest match<th>ended by");
            for found in &explanation.matches {
                let token = match found.token {
                    Some(id) => chips([token_text(tokenizer, id)]),
                    None => "nothing".to_owned(),
                };
                let _ = write!(out, "<tr><td>{token}<td>{}", escape(&stop(found, piece.text)));
            }
            out.push_str("</table></div>");
            if let Some(words) = outcome(explanation) {
                let _ = write!(out, "<p>{}</p>", escape(&words));
            }
        }
        Why::Unigram(explanation) => {
            lattice(explanation, piece.text, tokenizer, out);
            let row = |name: &str, segmentation: &unigram::Segmentation| {
                format!(
                    "<tr><td>{name}<td class=n>{:.4}<td><span class=chip>{}</span>",
                    segmentation.score,
                    escape(&path(segmentation, tokenizer))
                )
            };
            let _ = write!(out, "<div class=wide><table>{}", row("best", &explanation.best));
            if let Some(second) = &explanation.second {
                out.push_str(&row("second", second));
            }
            if let Some(margin) = explanation.margin {
                let _ = write!(out, "<tr><td>margin<td class=n>{margin:.4}<td>");
            }
            out.push_str("</table></div>");
        }
        Why::Lookup => out.push_str("<p>Looked up as it is.</p>"),
    }
    out.push_str("<p class=soft>tokens</p>");
    out.push_str(&chips(tokens_of(piece.piece, tokenizer)));
}

/// Edges of more pieces than this are not drawn: nobody could read them.
const DRAWN: usize = 400;

/// The lattice: characters on a line, tokens as arcs over what they cover.
fn lattice(
    explanation: &unigram::Explanation,
    piece: &str,
    tokenizer: &Tokenizer,
    out: &mut String,
) {
    const STEP: usize = 72;
    const LEVEL: usize = 34;
    if explanation.edges.len() > DRAWN {
        let edges = explanation.edges.len();
        let _ =
            write!(out, "<p class=soft>The lattice of {edges} tokens is too large to draw.</p>");
        return;
    }
    let places: Vec<usize> = piece.char_indices().map(|(at, _)| at).chain([piece.len()]).collect();
    let column = |at: usize| places.iter().take_while(|&&place| place < at).count();
    // Longer tokens go above shorter ones; those that overlap get levels of their own.
    let mut edges: Vec<&unigram::Edge> = explanation.edges.iter().collect();
    edges.sort_by_key(|edge| (edge.span.len(), edge.span.start));
    let mut levels: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut placed = Vec::new();
    for edge in edges {
        let (from, to) = (column(edge.span.start), column(edge.span.end));
        let free = |level: &Vec<(usize, usize)>| level.iter().all(|&(a, b)| to <= a || b <= from);
        let level = levels.iter().position(free).unwrap_or(levels.len());
        if level == levels.len() {
            levels.push(Vec::new());
        }
        levels[level].push((from, to));
        placed.push((edge, from, to, level));
    }
    let base = 24 + LEVEL * (levels.len() + 1);
    let width = 24 + STEP * places.len();
    let _ = write!(
        out,
        "<div class=wide><svg role=img aria-label=\"lattice of tokens\" width={width} height={} viewBox=\"0 0 {width} {}\">",
        base + 28,
        base + 28
    );
    // Labels go over all arcs, and the best path over the others.
    placed.sort_by_key(|(edge, ..)| edge.is_best);
    let mut labels = String::new();
    for (edge, from, to, level) in placed {
        let (x, end) = (16 + from * STEP, 16 + to * STEP);
        let y = base - LEVEL * (level + 1);
        let class = if edge.is_best { " class=best" } else { "" };
        let _ = write!(
            out,
            "<path{class} d=\"M{x} {base}C{} {y} {} {y} {} {y}L{} {y}C{} {y} {} {y} {end} {base}\"><title>{} score {:.4}, best through it {:.4}, posterior {:.3}</title></path>",
            x + 4,
            x + 6,
            x + 14,
            end - 14,
            end - 6,
            end - 4,
            escape(&edge_text(edge, piece, tokenizer)),
            edge.score,
            edge.best_through,
            edge.posterior
        );
        let _ = write!(
            labels,
            "<text x={} y={} text-anchor=middle>{}</text><text class=s x={} y={} text-anchor=middle>{:.2}</text>",
            (x + end) / 2,
            y - 3,
            escape(&edge_text(edge, piece, tokenizer)),
            (x + end) / 2,
            y + 12,
            edge.score
        );
    }
    out.push_str(&labels);
    for (i, window) in places.iter().enumerate() {
        let x = 16 + i * STEP;
        let _ = write!(out, "<circle cx={x} cy={base} r=3 />");
        if let Some(c) = piece[*window..].chars().next() {
            let c = escape(&c.to_string());
            let _ = write!(
                out,
                "<text class=s x={} y={} text-anchor=middle>{c}</text>",
                x + STEP / 2,
                base + 18
            );
        }
    }
    out.push_str("</svg></div>");
}
