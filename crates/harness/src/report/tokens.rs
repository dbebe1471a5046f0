//! Tokens as coloured text.

use std::fmt::Write as _;

use unicode_segmentation::UnicodeSegmentation;

use super::chart::escape;
use super::{Sample, SampleLine};

/// How many tints neighbouring tokens take turns with.
const TINTS: usize = 5;

/// The tokens of a line of a sample, as HTML inside a paragraph.
pub(super) fn html(sample: &Sample, line: &SampleLine) -> String {
    let mut out = String::new();
    let bytes = sample.text.as_bytes();
    let mut at = 0;
    for (i, token) in line.tokens.iter().enumerate() {
        if token.start > at {
            let dropped = escape(&String::from_utf8_lossy(&bytes[at..token.start]));
            let _ = write!(out, "<del title=\"no token: dropped by the splitter\">{dropped}</del>");
        }
        at = at.max(token.end);
        let part = &bytes[token.start..token.end];
        let hex: Vec<String> = part.iter().map(|byte| format!("{byte:02X}")).collect();
        let mut title = format!("id {} · {} · {}", token.id, count(part.len()), hex.join(" "));
        let mut class = format!("k t{}", i % TINTS);
        if token.unknown {
            class.push_str(" u");
            title.push_str(" · unknown");
        }
        let body = match sample.text.get(token.start..token.end) {
            Some("") => "∅".to_owned(),
            Some(text) => visible(text),
            None => {
                class.push_str(" x");
                hex.join("·")
            }
        };
        let _ = write!(out, "<span class=\"{class}\" title=\"{title}\">{body}</span><wbr>");
        if part.ends_with(b"\n") && token.end < bytes.len() {
            out.push_str("<br>");
        }
    }
    out
}

fn count(bytes: usize) -> String {
    if bytes == 1 { "1 byte".into() } else { format!("{bytes} bytes") }
}

/// Whether a language is written from right to left.
pub(super) fn is_rtl(language: &str) -> bool {
    matches!(
        language.split('-').next().unwrap_or(language),
        "ar" | "he" | "fa" | "ur" | "yi" | "dv" | "ps" | "sd" | "ug" | "ckb"
    )
}

/// Escaped text with white space and invisible characters made visible.
fn visible(text: &str) -> String {
    let mut out = String::new();
    if starts_with_mark(text) {
        out.push('\u{25CC}');
    }
    let drawn = text.chars().any(|c| sign(c).is_none());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match sign(c) {
            // Inside visible text, joiners and selectors do their work unseen.
            Some(Sign::Name(_)) if drawn => out.push(c),
            Some(Sign::Name(name)) => {
                let _ = write!(out, "<i class=\"n\">{name}</i>");
            }
            Some(Sign::Space(glyph)) => {
                let _ = write!(out, "<i>{glyph}</i>");
                // The break of a line that ends inside of the token; at its end the caller's.
                if c == '\n' && !rest.as_str().is_empty() {
                    out.push_str("<br>");
                }
            }
            None => out.push_str(&escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

enum Sign {
    Space(&'static str),
    Name(String),
}

fn sign(c: char) -> Option<Sign> {
    Some(match c {
        ' ' => Sign::Space("·"),
        '\n' => Sign::Space("↵"),
        '\r' => Sign::Space("␍"),
        '\t' => Sign::Space("⇥"),
        '\u{A0}' => Sign::Space("⍽"),
        '\u{3000}' => Sign::Space("□"),
        '\u{200D}' => Sign::Name("ZWJ".into()),
        '\u{200B}' => Sign::Name("ZWSP".into()),
        '\u{FE0F}' => Sign::Name("VS16".into()),
        c if c.is_control() || c.is_whitespace() || is_format(c) => {
            Sign::Name(format!("U+{:04X}", u32::from(c)))
        }
        _ => return None,
    })
}

/// Characters that change their neighbours or nothing at all.
fn is_format(c: char) -> bool {
    matches!(u32::from(c),
        0xAD | 0x061C | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0xFE00..=0xFE0F
        | 0xFEFF | 0xFFF9..=0xFFFB | 0xE0000..=0xE0FFF)
}

fn starts_with_mark(text: &str) -> bool {
    let first = text.chars().next().filter(|&c| !c.is_ascii() && sign(c).is_none());
    first.is_some_and(|c| format!("a{c}").graphemes(true).count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{SampleToken, Standing};

    fn render(text: &str, cuts: &[usize]) -> String {
        let mut start = 0;
        let tokens = cuts
            .iter()
            .map(|&end| {
                let token = SampleToken { id: 7, start, end, unknown: false };
                start = end;
                token
            })
            .collect();
        let line = SampleLine {
            algorithm: "bpe".into(),
            standing: Standing::Contender,
            size: 1000,
            void: None,
            tokens,
        };
        let sample =
            Sample { name: "s".into(), language: "en".into(), text: text.into(), lines: vec![] };
        html(&sample, &line)
    }

    #[test]
    fn parts_of_characters_are_hexadecimal() {
        let out = render("\u{6D77}", &[2, 3]);
        assert!(out.contains("E6·B5</span>") && out.contains("B7</span>"), "{out}");
    }

    #[test]
    fn white_space_is_visible_and_markup_escaped() {
        let out = render("<b> x\n\n  y", &[3, 5, 6, 10]);
        assert!(out.contains("&lt;b&gt;"), "{out}");
        assert!(out.contains("<i>·</i>x"), "{out}");
        assert!(out.contains("<i>↵</i></span><wbr><br>"), "{out}");
        assert!(out.contains("<i>↵</i><br><i>·</i><i>·</i>y"), "{out}");
    }

    #[test]
    fn dropped_text_is_struck_out() {
        let sample = Sample {
            name: "s".into(),
            language: "en".into(),
            text: "a b".into(),
            lines: vec![SampleLine {
                algorithm: "wordpiece".into(),
                standing: Standing::Contender,
                size: 10,
                void: None,
                tokens: vec![
                    SampleToken { id: 0, start: 0, end: 1, unknown: false },
                    SampleToken { id: 1, start: 2, end: 3, unknown: true },
                ],
            }],
        };
        let out = html(&sample, &sample.lines[0]);
        assert!(out.contains("<del") && out.contains(" u\""), "{out}");
    }

    #[test]
    fn joiners_show_their_name_only_when_alone() {
        let out = render("\u{1F468}\u{200D}\u{1F469}", &[4, 7, 11]);
        assert!(out.contains("ZWJ"), "{out}");
        assert!(!render("\u{1F468}\u{200D}", &[7]).contains("ZWJ"));
        assert!(render("e\u{301}", &[1, 3]).contains("\u{25CC}\u{301}"));
    }
}
