//! Normalizers that change one character at a time.

use alloc::string::String;

use crate::rewrite::{Rewriter, normalize_by_rewriting};
use crate::unicode::Properties;

/// Lowercases every character on its own, as [`char::to_lowercase`] has it: `Σ` becomes `σ` at the
/// end of a word too, `İ` becomes `i` and a dot above. Hugging Face `Lowercase`.
///
/// ```
/// use normalize::Lowercase;
/// use tokenizer_core::Normalize;
///
/// assert_eq!(Lowercase.normalize("ΣΑΣ İẞ"), "σασ i\u{307}ß");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lowercase;

impl Lowercase {
    fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        let unchanged = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
        each_char(text, out, unchanged, push_lowercase);
    }
}

/// Removes white space ([`char::is_whitespace`]) at the ends. Hugging Face `Strip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Strip {
    /// Whether to strip the start.
    pub left: bool,
    /// Whether to strip the end.
    pub right: bool,
}

impl Default for Strip {
    fn default() -> Self {
        Self { left: true, right: true }
    }
}

impl Strip {
    /// Strips the start if `left`, the end if `right`.
    #[must_use]
    pub const fn new(left: bool, right: bool) -> Self {
        Self { left, right }
    }

    fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        let start = if self.left { text.len() - text.trim_start().len() } else { 0 };
        let rest = &text[start..];
        let kept = if self.right { rest.trim_end().len() } else { rest.len() };
        out.delete(start);
        out.keep(kept);
        out.delete(rest.len() - kept);
    }
}

/// Removes every character of general category M (combining marks: Mn, Mc and Me) as of Unicode
/// 9.0. It does not decompose: put NFD or NFKD before it. Hugging Face `StripAccents`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StripAccents;

impl StripAccents {
    fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        each_char(
            text,
            out,
            |byte| byte.is_ascii(),
            |c, kept| {
                if !Properties::of(c).any(Properties::MARK) {
                    kept.push(c);
                }
            },
        );
    }
}

/// Removes control characters and turns a few white and invisible characters into spaces, as for
/// neural machine translation. Hugging Face `Nmt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nmt;

impl Nmt {
    fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        each_char(
            text,
            out,
            |byte| matches!(byte, 0 | b' '..=b'~'),
            |c, kept| match c {
                '\u{1}'..='\u{8}' | '\u{B}' | '\u{E}'..='\u{1F}' => {}
                '\u{7F}' | '\u{8F}' | '\u{9F}' => {}
                '\t' | '\n' | '\u{C}' | '\r' | '\u{1680}' | '\u{200B}'..='\u{200F}' => {
                    kept.push(' ');
                }
                '\u{2028}' | '\u{2029}' | '\u{2581}' | '\u{FEFF}' | '\u{FFFD}' => kept.push(' '),
                c => kept.push(c),
            },
        );
    }
}

/// Writes every byte as the visible character that stands for it in GPT-2's vocabulary: a space
/// as `Ġ`, `é` as `Ã©`. Hugging Face `ByteLevel`, which as a pre-tokenizer does the same after
/// [`PrefixSpace`](crate::PrefixSpace).
///
/// ```
/// use normalize::ByteLevel;
/// use tokenizer_core::Normalize;
///
/// assert_eq!(ByteLevel.normalize(" né"), "ĠnÃ©");
/// assert_eq!(ByteLevel::byte('Ġ'), Some(b' '));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByteLevel;

impl ByteLevel {
    /// The character that stands for `byte`: itself where it is a visible character of Latin-1,
    /// else the next free one from U+0100 on.
    #[must_use]
    pub const fn char(byte: u8) -> char {
        let code = match byte {
            0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => byte as u32,
            0..=0x20 => 0x100 + byte as u32,
            0x7F..=0xA0 => 0x121 + (byte as u32 - 0x7F),
            0xAD => 0x143,
        };
        match char::from_u32(code) {
            Some(c) => c,
            None => unreachable!(),
        }
    }

    /// The byte that `c` stands for, if it stands for one.
    #[must_use]
    pub const fn byte(c: char) -> Option<u8> {
        match c {
            '!'..='~' | '\u{A1}'..='\u{AC}' | '\u{AE}'..='\u{FF}' => Some(c as u8),
            '\u{100}'..='\u{120}' => Some((c as u32 - 0x100) as u8),
            '\u{121}'..='\u{142}' => Some((c as u32 - 0x121 + 0x7F) as u8),
            '\u{143}' => Some(0xAD),
            _ => None,
        }
    }

    fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        each_char(
            text,
            out,
            |byte| matches!(byte, b'!'..=b'~'),
            |c, written| {
                let mut buffer = [0; 4];
                written.extend(c.encode_utf8(&mut buffer).bytes().map(Self::char));
            },
        );
    }
}

/// Appends the lowercase of `c`.
pub(crate) fn push_lowercase(c: char, lower: &mut String) {
    // Most scripts have one case only; the standard library would search its table to say so.
    match c {
        '\u{590}'..='\u{109F}'
        | '\u{1100}'..='\u{139F}'
        | '\u{2D30}'..='\u{A63F}'
        | '\u{ABC0}'..='\u{FF20}' => lower.push(c),
        _ => lower.extend(c.to_lowercase()),
    }
}

/// Rewrites each character of `text` on its own, copying bytes that are `unchanged` in runs.
/// `unchanged` holds for ASCII bytes alone.
pub(crate) fn each_char(
    text: &str,
    out: &mut Rewriter<'_, '_>,
    unchanged: impl Fn(u8) -> bool,
    mut rewrite: impl FnMut(char, &mut String),
) {
    let mut written = String::new();
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(out.at()) {
        if unchanged(byte) {
            let rest = &bytes[out.at()..];
            let run = rest.iter().position(|&byte| !unchanged(byte)).unwrap_or(rest.len());
            out.keep(run);
            continue;
        }
        let Some(c) = text[out.at()..].chars().next() else { return };
        written.clear();
        rewrite(c, &mut written);
        out.replace(c.len_utf8(), &written);
    }
}

normalize_by_rewriting!(Lowercase, Strip, StripAccents, Nmt, ByteLevel);
