//! DeepSeek-V3's three stages in one pass.

use alloc::vec::Vec;

use tokenizer_core::{Span, Split};

use crate::classes::{Class, Set, class, class_at};
use crate::scanner::{White, run, white};

/// Cuts as the three stages of [`Pattern::DeepSeekV3`](crate::Pattern::DeepSeekV3) do one after
/// the other, in one pass.
///
/// The first two stages cut the text into stretches: groups of up to three numbers, runs of
/// Chinese and Japanese characters, and the rest. The third cuts inside each stretch and sees it
/// as a whole text. It does not match everything: what it leaves between matches is a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeepSeekV3;

/// A kind of stretch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stretch {
    Number,
    /// `[一-龥぀-ゟ゠-ヿ]`.
    CjkLetters,
    Rest,
}

impl Split for DeepSeekV3 {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        spans.reserve(text.len() / 6);
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            let (kind, len) = stretch_at(text, at);
            at += len;
            let most = if kind == Stretch::Number { 2 } else { usize::MAX };
            for _ in 0..most {
                if at == bytes.len() {
                    break;
                }
                let (next, len) = stretch_at(text, at);
                if next != kind {
                    break;
                }
                at += len;
            }
            match kind {
                // The third stage matches no number.
                Stretch::Number => spans.push(Span::new(start, at)),
                _ => third(&bytes[..at], start, spans),
            }
        }
    }

    /// White space behind a line break and in front of one; no step looks further.
    fn unsettled(&self) -> Option<usize> {
        Some(2)
    }
}

/// The kind of the character at `at`, and its length.
#[inline(always)]
fn stretch_at(text: &str, at: usize) -> (Stretch, usize) {
    match text.as_bytes()[at] {
        b'0'..=b'9' => (Stretch::Number, 1),
        0..0x80 => (Stretch::Rest, 1),
        // `at` is a character boundary before the end.
        _ => text[at..].chars().next().map_or((Stretch::Rest, 1), |c| (stretch(c), c.len_utf8())),
    }
}

#[inline]
fn stretch(c: char) -> Stretch {
    match c {
        '\u{4E00}'..='\u{9FA5}' | '\u{3040}'..='\u{30FF}' => Stretch::CjkLetters,
        _ if Set::NUMBER.has(class(c)) => Stretch::Number,
        _ => Stretch::Rest,
    }
}

/// The third stage on `bytes[at..]`, which holds no number.
fn third(bytes: &[u8], mut at: usize, spans: &mut Vec<Span>) {
    let mut between = at;
    while at < bytes.len() {
        match step(bytes, at) {
            Some(end) => {
                if between < at {
                    spans.push(Span::new(between, at));
                }
                spans.push(Span::new(at, end));
                at = end;
                between = end;
            }
            None => at += class_at(bytes, at).1,
        }
    }
    if between < at {
        spans.push(Span::new(between, at));
    }
}

const WORDS: Set = Set::LETTER.or(Set::MARK);
/// `[^\r\n\p{L}\p{P}\p{S}]`, and a mark in front of a word is of the word anyway.
const PREFIXES: Set =
    Set::of(&[Class::NEWLINE]).or(Set::LETTER).or(Set::SYMBOL).complement().without(Set::MARK);

/// Where the match at `at` ends, if there is one.
#[inline]
fn step(bytes: &[u8], at: usize) -> Option<usize> {
    let (class, len) = class_at(bytes, at);
    let next = at + len;
    if bytes[at].is_ascii_punctuation() {
        let letters = bytes[next..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        if letters > 0 {
            return Some(next + letters);
        }
    }
    if WORDS.has(class) {
        return Some(run(WORDS, bytes, next));
    }
    if next < bytes.len() {
        let (behind, behind_len) = class_at(bytes, next);
        if PREFIXES.has(class) && WORDS.has(behind) {
            return Some(run(WORDS, bytes, next + behind_len));
        }
        if class == Class::SPACE && Set::SYMBOL.has(behind) {
            return Some(symbols(bytes, next + behind_len));
        }
    }
    if Set::SYMBOL.has(class) {
        return Some(symbols(bytes, next));
    }
    Set::SPACE.has(class).then(|| white(White::Lines, bytes, at))
}

/// `[\p{P}\p{S}]*[\r\n]*` from `at`.
fn symbols(bytes: &[u8], at: usize) -> usize {
    run(Set::of(&[Class::NEWLINE]), bytes, run(Set::SYMBOL, bytes, at))
}
