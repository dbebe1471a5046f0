//! The normalizers in their plainest form, as specification: no fast path, and an alignment for
//! every byte.
//!
//! [`Aligned`] is the model of Hugging Face's `NormalizedString`, [`sentencepiece`] that of
//! SentencePiece's `Normalizer`. The tests compare the fast normalizers with these on all code
//! points and on random text, and these with the libraries.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use tokenizer_core::{Span, utf8};
use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible,
};
use unicode_segmentation::UnicodeSegmentation;

use crate::unicode::{Properties, is_ideograph};
use crate::{
    BertNormalizer, ByteLevel, Charsmap, Form, Metaspace, PrependScheme, SentencePieceNormalizer,
    UnicodeForm,
};

/// A normalized text, and for each of its bytes the span of the original that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// The text so far.
    pub text: String,
    /// For each byte of `text`, a span of the original text.
    pub sources: Vec<Span>,
}

impl Aligned {
    /// The original text: every byte stands for the character that it belongs to.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut sources = Vec::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            let len = c.len_utf8();
            sources.extend(core::iter::repeat_n(Span::new(at, at + len), len));
        }
        Self { text: text.to_owned(), sources }
    }

    /// Writes `changes` in the place of the whole text, of which the first `skip` characters are
    /// left out. A change of 1 inserts its character, 0 puts it in the place of the next one, -n
    /// does that and leaves out n more.
    pub fn transform(&mut self, changes: &[(char, isize)], skip: usize) {
        let lens: Vec<usize> = self.text.chars().map(char::len_utf8).collect();
        let mut read = skip;
        let mut at: usize = lens[..skip].iter().sum();
        let (mut text, mut sources) = (String::new(), Vec::new());
        for &(c, change) in changes {
            let source = match change {
                1.. if at == 0 => Span::new(0, 0),
                1.. => self.sources[at - 1],
                _ => self.sources[at],
            };
            if change <= 0 {
                let more = 1 + change.unsigned_abs();
                at += lens[read..read + more].iter().sum::<usize>();
                read += more;
            }
            text.push(c);
            sources.extend(core::iter::repeat_n(source, c.len_utf8()));
        }
        *self = Self { text, sources };
    }

    /// Keeps the characters that `keep` holds for.
    pub fn filter(&mut self, keep: impl Fn(char) -> bool) {
        let mut changes: Vec<(char, isize)> = Vec::new();
        let mut skip = 0;
        for c in self.text.chars() {
            match changes.last_mut() {
                _ if keep(c) => changes.push((c, 0)),
                Some((_, change)) => *change -= 1,
                None => skip += 1,
            }
        }
        self.transform(&changes, if changes.is_empty() { 0 } else { skip });
    }

    /// Writes what `write` appends in the place of each character.
    pub fn expand(&mut self, mut write: impl FnMut(char, &mut Vec<char>)) {
        let (mut changes, mut chars) = (Vec::new(), Vec::new());
        for c in self.text.chars() {
            chars.clear();
            write(c, &mut chars);
            changes.extend(chars.iter().enumerate().map(|(i, &c)| (c, isize::from(i > 0))));
        }
        self.transform(&changes, 0);
    }

    /// As [`UnicodeForm`]. `O(n log n)`, by the letter of UAX #15.
    pub fn unicode_form(&mut self, form: UnicodeForm) {
        let late = |c: char| form.version.lacks(c);
        let class = |c: char| if late(c) { 0 } else { canonical_combining_class(c) };
        let mut parts: Vec<(u8, char, isize)> = Vec::new();
        for c in self.text.chars() {
            let mut first = true;
            let part = |part: char| {
                parts.push((class(part), part, isize::from(!core::mem::take(&mut first))));
            };
            match form.form {
                _ if late(c) => core::iter::once(c).for_each(part),
                Form::Nfd | Form::Nfc => decompose_canonical(c, part),
                Form::Nfkd | Form::Nfkc => decompose_compatible(c, part),
            }
        }
        for marks in parts.chunk_by_mut(|_, next| next.0 != 0) {
            marks.sort_by_key(|part| part.0);
        }
        if matches!(form.form, Form::Nfc | Form::Nfkc) {
            let mut composed: Vec<(u8, char, isize)> = Vec::new();
            let mut starter = None;
            for part in parts {
                if let Some(at) = starter {
                    let between = &composed[at + 1..];
                    let blocked = between.last().is_some_and(|last: &(u8, _, _)| last.0 >= part.0);
                    let left: (u8, char, isize) = composed[at];
                    let pair = compose(left.1, part.1).filter(|&c| !blocked && !late(c));
                    if let Some(c) = pair {
                        composed[at] = (left.0, c, left.2 + part.2 - 1);
                        continue;
                    }
                }
                if part.0 == 0 {
                    starter = Some(composed.len());
                }
                composed.push(part);
            }
            parts = composed;
        }
        let changes: Vec<_> = parts.into_iter().map(|(_, c, change)| (c, change)).collect();
        self.transform(&changes, 0);
    }

    /// As [`Lowercase`](crate::Lowercase).
    pub fn lowercase(&mut self) {
        self.expand(|c, lower| lower.extend(c.to_lowercase()));
    }

    /// As [`Strip`](crate::Strip).
    pub fn strip(&mut self, left: bool, right: bool) {
        let chars: Vec<char> = self.text.chars().collect();
        let white = |c: &&char| c.is_whitespace();
        let start = if left { chars.iter().take_while(white).count() } else { 0 };
        let rest = &chars[start..];
        let end = if right { rest.iter().rev().take_while(white).count() } else { 0 };
        let changes: Vec<_> = rest[..rest.len() - end].iter().map(|&c| (c, 0)).collect();
        self.transform(&changes, start);
    }

    /// As [`StripAccents`](crate::StripAccents).
    pub fn strip_accents(&mut self) {
        self.filter(|c| !Properties::of(c).any(Properties::MARK));
    }

    /// As [`Nmt`](crate::Nmt).
    pub fn nmt(&mut self) {
        self.filter(|c| {
            !matches!(
                u32::from(c),
                0x1..=0x8 | 0xB | 0xE..=0x1F | 0x7F | 0x8F | 0x9F
            )
        });
        self.expand(|c, out| {
            let space = matches!(
                u32::from(c),
                0x9 | 0xA | 0xC | 0xD | 0x1680 | 0x200B
                    ..=0x200F | 0x2028 | 0x2029 | 0x2581 | 0xFEFF | 0xFFFD
            );
            out.push(if space { ' ' } else { c });
        });
    }

    /// As [`ByteLevel`].
    pub fn byte_level(&mut self) {
        self.expand(|c, out| {
            let mut buffer = [0; 4];
            out.extend(c.encode_utf8(&mut buffer).bytes().map(ByteLevel::char));
        });
    }

    /// As [`BertNormalizer`], step by step.
    pub fn bert(&mut self, bert: BertNormalizer) {
        if bert.clean_text {
            self.filter(|c| match c {
                '\t' | '\n' | '\r' => true,
                '\0' | '\u{FFFD}' => false,
                c => !Properties::of(c).any(Properties::OTHER),
            });
            self.expand(|c, out| out.push(if c.is_whitespace() { ' ' } else { c }));
        }
        if bert.handle_chinese_chars {
            self.expand(|c, out| match is_ideograph(c) {
                true => out.extend([' ', c, ' ']),
                false => out.push(c),
            });
        }
        if bert.strips_accents() {
            self.unicode_form(UnicodeForm::new(Form::Nfd));
            self.filter(|c| !Properties::of(c).any(Properties::NONSPACING));
        }
        if bert.lowercase {
            self.lowercase();
        }
    }

    /// As [`Prepend`](crate::Prepend).
    pub fn prepend(&mut self, prefix: &str) {
        let Some(first) = self.text.chars().next() else { return };
        let len = first.len_utf8();
        self.sources.splice(..len, core::iter::repeat_n(self.sources[0], prefix.len() + len));
        self.text.insert_str(0, prefix);
    }

    /// As [`Metaspace`].
    pub fn metaspace(&mut self, metaspace: Metaspace) {
        self.expand(|c, out| out.push(if c == ' ' { metaspace.replacement } else { c }));
        let never = metaspace.scheme == PrependScheme::Never;
        if !never && !self.text.starts_with(metaspace.replacement) {
            self.prepend(metaspace.replacement.encode_utf8(&mut [0; 4]));
        }
    }

    /// As [`Replace`](crate::Replace), given the matches.
    pub fn replace(&mut self, matches: &[Span], content: &str) {
        let (mut text, mut sources, mut at) = (String::new(), Vec::new(), 0);
        for found in matches {
            text.push_str(&self.text[at..found.start]);
            sources.extend_from_slice(&self.sources[at..found.start]);
            let source = match found.end {
                0 => Span::new(0, 0),
                end => self.sources[end - 1],
            };
            text.push_str(content);
            sources.extend(core::iter::repeat_n(source, content.len()));
            at = found.end;
        }
        text.push_str(&self.text[at..]);
        sources.extend_from_slice(&self.sources[at..]);
        *self = Self { text, sources };
    }

    /// As [`Precompiled`](crate::Precompiled).
    pub fn precompiled(&mut self, charsmap: &Charsmap) {
        let mut changes: Vec<(char, isize)> = Vec::new();
        for grapheme in self.text.graphemes(true) {
            let whole = charsmap.shortest_prefix(grapheme.as_bytes());
            if let Some(target) = whole.filter(|_| grapheme.len() < 6) {
                rewritten(&mut changes, grapheme, target);
                continue;
            }
            for c in grapheme.chars() {
                let mut buffer = [0; 4];
                let source: &str = c.encode_utf8(&mut buffer);
                match charsmap.shortest_prefix(source.as_bytes()) {
                    Some(target) => rewritten(&mut changes, source, target),
                    None => changes.push((c, 0)),
                }
            }
        }
        self.transform(&changes, 0);
    }
}

/// The changes that put `target` in the place of `source`: the first characters replace one each,
/// more are inserted, and what is left of the source is a change of the character before, if any.
fn rewritten(changes: &mut Vec<(char, isize)>, source: &str, target: &str) {
    let (old, new) = (source.chars().count(), target.chars().count());
    changes.extend(target.chars().enumerate().map(|(i, c)| (c, isize::from(i >= old))));
    if let Some((_, change)) = changes.last_mut() {
        *change -= old.saturating_sub(new) as isize;
    }
}

/// As [`SentencePieceNormalizer`]: the normalized text, and for each of its bytes and its end the
/// position in the input where what became of it begins.
#[must_use]
pub fn sentencepiece(normalizer: &SentencePieceNormalizer, bytes: &[u8]) -> (String, Vec<usize>) {
    let spaces = normalizer.spaces();
    let next = |rest: &[u8]| -> (String, usize) {
        let symbols = normalizer.user_defined().as_slice().iter();
        let symbol = symbols.filter(|s| rest.starts_with(s.as_bytes())).max_by_key(|s| s.len());
        if let Some(symbol) = symbol {
            return (symbol.clone(), symbol.len());
        }
        let rule = normalizer.charsmap().and_then(|charsmap| charsmap.longest_prefix(rest));
        if let Some((len, target)) = rule {
            return (target.to_owned(), len);
        }
        let (c, len) = utf8::decode(rest);
        (c.unwrap_or('\u{FFFD}').into(), len)
    };
    let mark = if spaces.escape_whitespaces { '\u{2581}' } else { ' ' };
    let mut at = 0;
    while spaces.remove_extra_whitespaces && at < bytes.len() {
        match next(&bytes[at..]) {
            (target, len) if target == " " => at += len,
            _ => break,
        }
    }
    if at == bytes.len() {
        return (String::new(), Vec::from([at]));
    }
    let mut chars: Vec<(char, usize)> = Vec::new();
    if spaces.add_dummy_prefix && !spaces.treat_whitespace_as_suffix {
        chars.push((mark, at));
    }
    let mut after_space = spaces.remove_extra_whitespaces;
    while at < bytes.len() {
        let (target, len) = next(&bytes[at..]);
        let target = if after_space { target.trim_start_matches(' ') } else { &target };
        chars.extend(target.chars().map(|c| (if c == ' ' { mark } else { c }, at)));
        if !target.is_empty() {
            after_space = target.ends_with(' ');
        }
        after_space &= spaces.remove_extra_whitespaces;
        at += len;
    }
    while spaces.remove_extra_whitespaces && chars.last().is_some_and(|last| last.0 == mark) {
        at = chars.pop().map_or(at, |last| last.1);
    }
    if spaces.add_dummy_prefix && spaces.treat_whitespace_as_suffix {
        chars.push((mark, at));
    }
    let (mut text, mut starts) = (String::new(), Vec::new());
    for (c, start) in chars {
        text.push(c);
        starts.extend(core::iter::repeat_n(start, c.len_utf8()));
    }
    starts.push(at);
    (text, starts)
}
