use alloc::vec::Vec;

use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible,
};

use crate::rewrite::{Rewriter, normalize_by_rewriting};
use crate::unicode::{Properties, is_new_in_18};

/// A Unicode normalization form (UAX #15): NFC, NFD, NFKC or NFKD.
///
/// By default with the data of Unicode 9.0, which Hugging Face tokenizers carry (as of 0.23);
/// characters that were added later are left alone. `O(n)` for n bytes, `O(m log m)` in a run of
/// m combining marks; runs that need no change are copied as they are.
///
/// ```
/// use normalize::{Form, UnicodeForm};
/// use tokenizer_core::Normalize;
///
/// let nfkc = UnicodeForm::new(Form::Nfkc);
/// assert_eq!(nfkc.normalize("ﬁx ｶﾞ e\u{301}"), "fix ガ é");
/// assert_eq!(nfkc.normalize("\u{32FF}"), "\u{32FF}"); // added in Unicode 12.1
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct UnicodeForm {
    /// Which form.
    pub form: Form,
    /// Which version's data.
    pub version: UnicodeVersion,
}

/// The four forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Canonical decomposition.
    Nfd,
    /// Compatibility decomposition.
    Nfkd,
    /// Canonical decomposition, then canonical composition.
    Nfc,
    /// Compatibility decomposition, then canonical composition.
    Nfkc,
}

/// A version of the Unicode character data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnicodeVersion {
    /// Unicode 9.0, as in Hugging Face tokenizers 0.23 and before.
    #[default]
    V9_0,
    /// Unicode 17.0, as in SentencePiece 0.2.3.
    V17_0,
    /// The version of the `unicode-normalization` crate that this crate is built with
    /// ([`unicode_normalization::UNICODE_VERSION`]; 18.0 with 0.1.26).
    Current,
}

impl UnicodeVersion {
    /// Whether `c` has normalization data, but only since a later version.
    #[inline]
    pub(crate) fn lacks(self, c: char) -> bool {
        match self {
            Self::V9_0 => Properties::of(c).any(Properties::LATE),
            Self::V17_0 => Properties::of(c).any(Properties::LATE) && is_new_in_18(c),
            Self::Current => false,
        }
    }
}

impl UnicodeForm {
    /// The form with the data of Unicode 9.0.
    #[must_use]
    pub const fn new(form: Form) -> Self {
        Self { form, version: UnicodeVersion::V9_0 }
    }

    /// The same form with the data of another version.
    #[must_use]
    pub const fn with_version(self, version: UnicodeVersion) -> Self {
        Self { version, ..self }
    }

    /// Whether `c` may change, move, or compose with what precedes it.
    #[inline]
    fn is_active(self, c: char) -> bool {
        let properties = Properties::of(c);
        let bit = match self.form {
            Form::Nfd => Properties::NFD,
            Form::Nfkd => Properties::NFKD,
            Form::Nfc => Properties::NFC,
            Form::Nfkc => Properties::NFKC,
        };
        properties.any(bit) && !self.version.lacks(c)
    }

    fn composes(self) -> bool {
        matches!(self.form, Form::Nfc | Form::Nfkc)
    }

    pub(crate) fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        let mut segment = Vec::new();
        loop {
            let run = &text[out.at()..];
            let Some(start) = self.first_active(run) else { return };
            // What precedes an active character may compose with it.
            let before = match self.composes() {
                true => run[..start].chars().next_back().map_or(0, char::len_utf8),
                false => 0,
            };
            out.keep(start - before);
            let first_active = start;
            let mut at = start - before;
            for c in run[at..].chars() {
                if at > first_active && !self.is_active(c) {
                    break;
                }
                at += c.len_utf8();
                self.decompose(c, &mut segment, out);
            }
            self.flush(&mut segment, out);
        }
    }

    /// Where the first active character of `text` begins.
    fn first_active(self, text: &str) -> Option<usize> {
        // No form touches a character below U+00A0.
        let mut at = 0;
        loop {
            at += ascii_prefix(&text.as_bytes()[at..]);
            let c = text[at..].chars().next()?;
            if self.is_active(c) {
                return Some(at);
            }
            at += c.len_utf8();
        }
    }

    /// Appends the decomposition of `c`, having passed on what precedes if `c` cannot touch it.
    fn decompose(self, c: char, segment: &mut Vec<Part>, out: &mut Rewriter<'_, '_>) {
        let mut change = 0;
        let mut part = |part: char| {
            let class = self.combining_class(part);
            if change == 0 && class == 0 && !(self.composes() && self.is_active(part)) {
                self.flush(segment, out);
            }
            segment.push(Part { class, c: part, change });
            change = 1;
        };
        if self.version.lacks(c) {
            part(c);
        } else {
            match self.form {
                Form::Nfd | Form::Nfc => decompose_canonical(c, part),
                Form::Nfkd | Form::Nfkc => decompose_compatible(c, part),
            }
        }
    }

    fn combining_class(self, c: char) -> u8 {
        // The table spares most characters the lookup: what has a class is active in every form.
        match Properties::of(c).any(Properties::NFD) && !self.version.lacks(c) {
            true => canonical_combining_class(c),
            false => 0,
        }
    }

    /// Puts a whole segment in order, composes it, and writes it.
    fn flush(self, segment: &mut Vec<Part>, out: &mut Rewriter<'_, '_>) {
        for marks in segment.chunk_by_mut(|_, next| next.class != 0) {
            // A chunk begins with a starter, except perhaps the first; a starter sorts first.
            if marks.len() > 1 {
                marks.sort_by_key(|part| part.class);
            }
        }
        if self.composes() {
            self.compose(segment);
        }
        for part in segment.drain(..) {
            out.push(part.c, part.change);
        }
    }

    /// Canonical composition in place. A composed character reads what its parts read together.
    fn compose(self, segment: &mut Vec<Part>) {
        let (mut starter, mut last_class, mut kept) = (None, None, 0);
        for i in 0..segment.len() {
            let part = segment[i];
            if let Some(at) = starter {
                let left: Part = segment[at];
                let blocked = last_class.is_some_and(|class| class >= part.class);
                let composed = if blocked { None } else { self.compose_pair(left.c, part.c) };
                if let Some(c) = composed {
                    segment[at] = Part { c, change: left.change + part.change - 1, ..left };
                    continue;
                }
            }
            if part.class == 0 {
                (starter, last_class) = (Some(kept), None);
            } else {
                last_class = Some(part.class);
            }
            segment[kept] = part;
            kept += 1;
        }
        segment.truncate(kept);
    }

    fn compose_pair(self, left: char, right: char) -> Option<char> {
        compose(left, right).filter(|&c| !self.version.lacks(c))
    }
}

/// A character of a decomposition.
#[derive(Clone, Copy)]
struct Part {
    /// Its canonical combining class.
    class: u8,
    c: char,
    /// 0 if it is the first of what its character decomposes to, else 1; less by one for each
    /// character more that it was composed with. (What [`Rewriter::push`] takes.)
    change: isize,
}

/// The number of bytes before the first that is not ASCII.
pub(crate) fn ascii_prefix(bytes: &[u8]) -> usize {
    let words = bytes.chunks_exact(8).take_while(|word| word.is_ascii()).count();
    let at = words * 8;
    at + bytes[at..].iter().take_while(|byte| byte.is_ascii()).count()
}

normalize_by_rewriting!(UnicodeForm);
