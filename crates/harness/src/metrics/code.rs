//! What of a text is indentation and what are operators. Lines and characters decide it alone: no
//! language is parsed, so strings and comments count like code.

use tokenizer_core::Span;

/// Operators of two characters or more that are one lexical token wherever they occur in C, Go,
/// Java, JavaScript, Python or Rust. Left out is what depends on the language: `//` (a comment or a
/// division), `--` (a comment, a decrement or a flag), `>>` (a shift or the end of two type
/// lists), `?.` and `??`.
const OPERATORS: [&[u8]; 32] = [
    b">>>=", b"===", b"!==", b"**=", b"<<=", b">>=", b"...", b"..=", b"->", b"=>", b"::", b"==",
    b"!=", b"<=", b">=", b"&&", b"||", b"<<", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=",
    b"^=", b":=", b"<-", b"++", b"**", b"|>", b"..",
];

/// Whether a byte is a character of operators.
pub(super) fn is_operator(byte: u8) -> bool {
    b"!%&*+-./:<=>?^|~".contains(&byte)
}

/// Whether a byte may be a part of a name: letters and digits of ASCII and `_`.
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The spaces and tabs at the beginning of every line that has something behind them.
pub(super) fn indentations(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut start = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let width = line.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
        let blank = line.get(width).is_none_or(|byte| b"\r\n".contains(byte));
        if width > 0 && !blank {
            found.push(Span::new(start, start + width));
        }
        start += line.len();
    }
    found
}

/// The operators: in each run of operator characters the longest one that begins at each place,
/// from left to right. A run of four equal characters or more is a rule or an underline and has
/// none.
pub(super) fn operators(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let equal = bytes[at..].iter().take_while(|&&byte| byte == bytes[at]).count();
        if !is_operator(bytes[at]) {
            at += 1;
        } else if equal > 3 {
            at += equal;
        } else if let Some(operator) = OPERATORS.iter().find(|o| bytes[at..].starts_with(o)) {
            found.push(Span::new(at, at + operator.len()));
            at += operator.len();
        } else {
            at += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(text: &str, spans: Vec<Span>) -> Vec<&str> {
        spans.into_iter().map(|span| &text[span.range()]).collect()
    }

    #[test]
    fn longer_operators_come_before_their_beginnings() {
        for (i, long) in OPERATORS.iter().enumerate() {
            for before in &OPERATORS[..i] {
                assert!(!long.starts_with(before), "{long:?} is never found behind {before:?}");
            }
            assert!(long.iter().all(|&byte| is_operator(byte)), "{long:?}");
        }
    }

    #[test]
    fn indentations_are_of_lines_with_text() {
        let text = "a\n  b\n\n   \n\tc\n    \r\n \t d";
        assert_eq!(slices(text, indentations(text)), ["  ", "\t", " \t "]);
        assert_eq!(indentations(""), []);
        assert_eq!(indentations("   "), []);
    }

    #[test]
    fn operators_are_cut_from_the_left_as_long_as_possible() {
        for (text, expected) in [
            ("a == b", &["=="][..]),
            ("x===y", &["==="]),
            ("f(|a| &&b)->c", &["&&", "->"]),
            ("a::<T>()", &["::"]),
            ("a<=-1", &["<="]),
            ("0..=9, 1..n", &["..=", ".."]),
            ("a = b; // c -- d", &[]),
            ("====\n-----\n....", &[]),
            ("Vec<Vec<u8>>", &[]),
            ("x >>>= 1", &[">>>="]),
        ] {
            assert_eq!(slices(text, operators(text)), expected, "{text}");
        }
    }
}
