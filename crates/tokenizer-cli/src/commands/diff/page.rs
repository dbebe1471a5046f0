//! The page of `tok diff`: one file, no script, for wide and narrow windows, light and dark.

use std::fmt::Write;

use super::{Block, Placed, Summary};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5b6570;--line:#c9d1d9;--paper:#fff;--a:#dbeafe;--b:#ede0f8;--bad:#fbd5d5;--mark:#fff6d6}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa5b1;--line:#3a434d;--paper:#0f1419;--a:#17324f;--b:#3a2750;--bad:#5c2626;--mark:#2f2a15}}\
*{box-sizing:border-box}\
body{margin:0 auto;max-width:70rem;padding:1rem;background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,sans-serif}\
h1{font-size:1.3rem}.wide{overflow-x:auto}\
table{border-collapse:collapse}td,th{padding:.15rem .8rem .15rem 0;text-align:left}\
td.n{text-align:right;font-variant-numeric:tabular-nums}\
.text{font-family:ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.9}\
.block{display:inline-block;vertical-align:top;background:var(--mark);border:1px solid var(--line);border-radius:.3rem;margin:.1rem;padding:0 .2rem;max-width:100%}\
.block>div{white-space:pre-wrap}\
.t{unicode-bidi:isolate;border-radius:.2rem;padding:0 .1rem}.t:nth-of-type(odd){background:var(--a)}.t:nth-of-type(even){background:var(--b)}.t.u{background:var(--bad)}\
small{color:var(--soft);font-family:system-ui,sans-serif}";

/// The whole page.
pub(super) fn page(
    names: &[String],
    documents: &[(String, Vec<Block>)],
    summary: &Summary,
) -> String {
    let mut body = String::from(
        "<div class=wide><table><tr><th>tokenizer<th>tokens<th>kinds that no other has",
    );
    for (i, name) in names.iter().enumerate() {
        let only = summary.only(i).len();
        let (name, tokens) = (escape(name), summary.tokens[i]);
        let _ = write!(body, "<tr><td>{} {name}<td class=n>{tokens}<td class=n>{only}", i + 1);
    }
    let _ = write!(
        body,
        "</table></div><p>{} of {} boundaries are shared by all ({:.1} %); {} of {} stretches differ and stand in boxes, a line a tokenizer.</p>",
        summary.shared,
        summary.boundaries,
        100.0 * summary.agreement(),
        summary.differing,
        summary.blocks
    );
    for (text, blocks) in documents {
        body.push_str("<div class=text dir=auto>");
        for block in blocks {
            if !block.differs {
                body.push_str(&escape(&text[block.span.range()]));
                continue;
            }
            body.push_str("<span class=block>");
            for (i, tokens) in block.tokens.iter().enumerate() {
                let _ = write!(body, "<div><small>{}</small> {}</div>", i + 1, row(tokens));
            }
            body.push_str("</span>");
            // Boxes show a line break as `\n`; the text behind it stands on a line of its own.
            if text[block.span.range()].ends_with('\n') {
                body.push_str("<br>");
            }
        }
        body.push_str("</div>");
    }
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <title>Where tokenizers differ</title><style>{STYLE}</style>\
         <h1>Where tokenizers differ</h1>{body}</html>\n"
    )
}

fn row(tokens: &[Placed]) -> String {
    let mut out = String::new();
    for token in tokens {
        let class = if token.is_unknown { "t u" } else { "t" };
        let shown = escape(&token.shown.escape_debug().to_string());
        let _ = write!(out, "<span class=\"{class}\">{shown}</span>");
    }
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
