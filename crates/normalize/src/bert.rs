use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use tokenizer_core::{Edit, Normalize};
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};

use crate::chars::{Lowercase, each_char, push_lowercase};
use crate::rewrite::{Rewriter, normalize_by_rewriting};
use crate::unicode::{Properties, is_ideograph};
use crate::{Form, Sequence, UnicodeForm};

/// Cleans text as BERT does, in this order: removes control characters and turns white space into
/// spaces (`clean_text`), puts spaces round ideographs (`handle_chinese_chars`), decomposes (NFD)
/// and removes nonspacing marks (`strip_accents`), lowercases. Hugging Face `BertNormalizer`.
///
/// Its tables are as old as Hugging Face's: NFD of Unicode 9.0, categories of Unicode 8.0.
///
/// ```
/// use normalize::BertNormalizer;
/// use tokenizer_core::Normalize;
///
/// let bert = BertNormalizer::default();
/// assert_eq!(bert.normalize("Héllo\t中国\u{0} İ"), "hello  中  国  i");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BertNormalizer {
    /// Removes NUL, U+FFFD and the categories Cc, Cf and Co, except tab, line feed and carriage
    /// return; turns those and every [`char::is_whitespace`] into a space.
    pub clean_text: bool,
    /// Puts a space before and after each ideograph.
    pub handle_chinese_chars: bool,
    /// Decomposes and removes nonspacing marks; `None` does what `lowercase` does.
    pub strip_accents: Option<bool>,
    /// Lowercases each character on its own.
    pub lowercase: bool,
}

impl Default for BertNormalizer {
    /// All of it, as for the uncased models.
    fn default() -> Self {
        Self { clean_text: true, handle_chinese_chars: true, strip_accents: None, lowercase: true }
    }
}

impl BertNormalizer {
    /// The normalizer with these settings, in the order of `tokenizer.json`.
    #[must_use]
    pub const fn new(
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: Option<bool>,
        lowercase: bool,
    ) -> Self {
        Self { clean_text, handle_chinese_chars, strip_accents, lowercase }
    }

    /// Whether accents are stripped, all things considered.
    #[must_use]
    pub fn strips_accents(&self) -> bool {
        self.strip_accents.unwrap_or(self.lowercase)
    }

    fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        let (clean, lowercase) = (self.clean_text, self.lowercase);
        let unchanged = |byte: u8| match byte {
            b' '..=b'~' => !(lowercase && byte.is_ascii_uppercase()),
            0x80.. => false,
            _ => !clean,
        };
        each_char(text, out, unchanged, |c, written| self.write(c, written));
    }

    /// Appends what becomes of `c` where no character that stays can change places with another.
    fn write(&self, c: char, written: &mut String) {
        let Some(c) = self.cleaned(c) else { return };
        let spaced = self.handle_chinese_chars && is_ideograph(c);
        if spaced {
            written.push(' ');
        }
        let mut lower = |c: char| match self.lowercase {
            true => push_lowercase(c, written),
            false => written.push(c),
        };
        if self.strips_accents() {
            let mut strip = |c: char| {
                if !Properties::of(c).any(Properties::NONSPACING) {
                    lower(c);
                }
            };
            let properties = Properties::of(c);
            match properties.any(Properties::NFD) && !properties.any(Properties::LATE) {
                true => decompose_canonical(c, strip),
                false => strip(c),
            }
        } else {
            lower(c);
        }
        if spaced {
            written.push(' ');
        }
    }

    /// What cleaning leaves of `c`.
    fn cleaned(&self, c: char) -> Option<char> {
        match c {
            _ if !self.clean_text => Some(c),
            '\t' | '\n' | '\r' => Some(' '),
            '\0' | '\u{FFFD}' => None,
            _ if Properties::of(c).any(Properties::OTHER) => None,
            _ if c.is_whitespace() => Some(' '),
            _ => Some(c),
        }
    }

    /// Whether a mark of `text` may change places with another and stay: a reordering mark that
    /// is not removed as nonspacing (the Hangul tone marks, some of musical notation, and what
    /// Unicode 8.0 did not know yet).
    fn may_reorder(&self, text: &str) -> bool {
        let stays = |c: char| {
            let properties = Properties::of(c);
            let active = properties.any(Properties::NFD) && !properties.any(Properties::LATE);
            active && !properties.any(Properties::NONSPACING) && {
                let mut found = false;
                decompose_canonical(c, |part| {
                    found |= canonical_combining_class(part) != 0
                        && !Properties::of(part).any(Properties::NONSPACING);
                });
                found
            }
        };
        self.strips_accents() && !text.is_ascii() && text.chars().any(stays)
    }

    /// The steps one after the other, for text in which marks may change places.
    fn steps(&self) -> Sequence {
        let accents = BertNormalizer { strip_accents: Some(false), lowercase: false, ..*self };
        let mut steps = Sequence::new().then(accents);
        steps = steps.then(UnicodeForm::new(Form::Nfd)).then(StripNonspacing);
        if self.lowercase { steps.then(Lowercase) } else { steps }
    }
}

/// Removes nonspacing marks (Mn as of Unicode 8.0).
struct StripNonspacing;

impl StripNonspacing {
    fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        each_char(
            text,
            out,
            |byte| byte.is_ascii(),
            |c, kept| {
                if !Properties::of(c).any(Properties::NONSPACING) {
                    kept.push(c);
                }
            },
        );
    }
}

normalize_by_rewriting!(StripNonspacing);

impl Normalize for BertNormalizer {
    fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.may_reorder(text) {
            return self.steps().normalize(text);
        }
        let mut out = Rewriter::new(text, None);
        self.rewrite(text, &mut out);
        out.finish()
    }

    fn normalize_with_edits<'t>(&self, text: &'t str, edits: &mut Vec<Edit>) -> Cow<'t, str> {
        if self.may_reorder(text) {
            return self.steps().normalize_with_edits(text, edits);
        }
        let mut out = Rewriter::new(text, Some(edits));
        self.rewrite(text, &mut out);
        out.finish()
    }

    fn as_any(&self) -> Option<&dyn core::any::Any> {
        Some(self)
    }
}
