//! Patterns of Oniguruma, with Ruby syntax, in the words of `fancy-regex`.
//!
//! `fancy-regex` has a mode for Oniguruma's quantifiers and anchors. What is left are names that
//! mean other characters there: `\w`, `\b`, POSIX brackets, and the flag `m`.

use alloc::borrow::Cow;
use alloc::string::String;

/// `\w` of Oniguruma 6.9.10 in UTF-8: without the joiners U+200C and U+200D, with the numbers of
/// Latin-1.
const WORD: &str = r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}]";
const NOT_WORD: &str = r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}]";
/// In brackets it is without those numbers.
const WORD_IN_BRACKETS: &str = r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]";
const NOT_WORD_IN_BRACKETS: &str = r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]";

/// POSIX brackets: all of Unicode, where the `regex` crates have ASCII.
const POSIX: [(&str, &str); 14] = [
    ("alnum", r"\p{Alphabetic}\p{Nd}"),
    ("alpha", r"\p{Alphabetic}"),
    ("ascii", r"\x00-\x7F"),
    ("blank", r"\p{Zs}\t"),
    ("cntrl", r"\p{Cc}"),
    ("digit", r"\p{Nd}"),
    ("graph", r"[^\s\p{Cc}\p{Cn}\p{Cs}]"),
    ("lower", r"\p{Lowercase}"),
    ("print", r"[[^\s\p{Cc}\p{Cn}\p{Cs}]\p{Zs}]"),
    ("punct", r"\p{P}\p{S}"),
    ("space", r"\s"),
    ("upper", r"\p{Uppercase}"),
    ("word", r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"),
    ("xdigit", r"0-9A-Fa-f"),
];

/// The pattern with those names replaced.
pub(crate) fn translate(pattern: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = pattern;
    let mut depth = 0;
    // What was copied so far is `pattern` up to `rest`, with replacements.
    while let Some(c) = rest.chars().next() {
        let (taken, replacement) = token(rest, c, depth);
        if depth == 0 && c == '[' || depth > 0 && taken == "[" {
            depth += 1;
            // A bracket right behind the opening is a character.
            let opening = rest.strip_prefix("[^]").or(rest.strip_prefix("[]"));
            let opening = opening.map_or(1, |after| rest.len() - after.len());
            out.push_str(&rest[..opening]);
            rest = &rest[opening..];
            continue;
        }
        if depth > 0 && c == ']' {
            depth -= 1;
        }
        match replacement {
            Some(replacement) => out.push_str(&replacement),
            None => out.push_str(taken),
        }
        rest = &rest[taken.len()..];
    }
    if out == pattern { Cow::Borrowed(pattern) } else { Cow::Owned(out) }
}

/// The next token of a pattern, which begins with `c`, and what replaces it.
fn token(rest: &str, c: char, depth: usize) -> (&str, Option<Cow<'static, str>>) {
    let first = &rest[..c.len_utf8()];
    match c {
        '\\' => {
            let escaped = rest[1..].chars().next().map_or(0, char::len_utf8);
            let taken = &rest[..1 + escaped];
            let replacement = match (taken, depth) {
                (r"\w", 0) => WORD.into(),
                (r"\W", 0) => NOT_WORD.into(),
                (r"\w", _) => WORD_IN_BRACKETS.into(),
                (r"\W", _) => NOT_WORD_IN_BRACKETS.into(),
                (r"\b", 0) => boundary("(?<=W)(?!W)|(?<!W)(?=W)"),
                (r"\B", 0) => boundary("(?<=W)(?=W)|(?<!W)(?!W)"),
                _ => return (taken, None),
            };
            (taken, Some(replacement))
        }
        '[' if depth > 0 => match posix(rest) {
            Some((taken, replacement)) => (taken, Some(replacement)),
            None => (first, None),
        },
        '(' if depth == 0 && rest.starts_with("(?") => {
            let flags = rest[2..].find(|c: char| !c.is_ascii_lowercase() && c != '-');
            let taken = &rest[..2 + flags.unwrap_or(0)];
            // `m` is for the dot to match line breaks, which is `s` elsewhere.
            (taken, taken.contains('m').then(|| taken.replace('m', "s").into()))
        }
        _ => (first, None),
    }
}

fn boundary(looks: &str) -> Cow<'static, str> {
    alloc::format!("(?:{})", looks.replace('W', WORD)).into()
}

/// A POSIX bracket at the beginning of `rest`.
fn posix(rest: &str) -> Option<(&str, Cow<'static, str>)> {
    let inner = rest.strip_prefix("[:")?;
    let (inner, not) = match inner.strip_prefix('^') {
        Some(inner) => (inner, "^"),
        None => (inner, ""),
    };
    let (name, after) = inner.split_once(":]")?;
    let (_, class) = POSIX.iter().find(|(known, _)| *known == name)?;
    let taken = &rest[..rest.len() - after.len()];
    Some((taken, alloc::format!("[{not}{class}]").into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_other_characters_are_replaced() {
        let (word, in_brackets) = (WORD, WORD_IN_BRACKETS);
        let cases = [
            (r"\p{L}+|[^\s\p{L}]", r"\p{L}+|[^\s\p{L}]".into()),
            (r"\w+", alloc::format!("{word}+")),
            (r"[\w-]", alloc::format!("[{in_brackets}-]")),
            (r"\\w", r"\\w".into()),
            ("[[:digit:]x[:^upper:]]", r"[[\p{Nd}]x[^\p{Uppercase}]]".into()),
            ("[:digit:]", "[:digit:]".into()),
            ("[]:w]", "[]:w]".into()),
            (r"[^]\w]", alloc::format!("[^]{in_brackets}]")),
            (r"[a[b\w]c]\b", {
                let end = boundary("(?<=W)(?!W)|(?<!W)(?=W)");
                alloc::format!("[a[b{in_brackets}]c]{end}")
            }),
            ("(?m:a.b)(?<name>m)(?i-m:m)", "(?s:a.b)(?<name>m)(?i-s:m)".into()),
            ("é[é\\é]", "é[é\\é]".into()),
            ("a\\", "a\\".into()),
            ("(?", "(?".into()),
            ("[", "[".into()),
        ];
        for (pattern, expected) in cases {
            assert_eq!(translate(pattern), expected, "{pattern}");
        }
    }
}
