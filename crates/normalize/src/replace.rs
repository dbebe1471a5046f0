//! Normalizers that put text in front of the text or in the place of what a pattern matches.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use tokenizer_core::Span;

use crate::rewrite::{Rewriter, normalize_by_rewriting};

/// Puts a text in front of every text that is not empty, even if it is there already. Hugging
/// Face `Prepend`.
///
/// What is put in front stands for the first character.
///
/// ```
/// use normalize::Prepend;
/// use tokenizer_core::Normalize;
///
/// let prepend = Prepend::new("▁");
/// assert_eq!(prepend.normalize("▁a"), "▁▁a");
/// assert_eq!(prepend.normalize(""), "");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prepend {
    prefix: String,
}

impl Prepend {
    /// Puts `prefix` in front.
    #[must_use]
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// What is put in front.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        prepend(&self.prefix, text, out);
    }
}

/// Puts a space in front of every text that is not empty and does not begin with one: what
/// `add_prefix_space` does in Hugging Face `ByteLevel`, which does it to each stretch of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PrefixSpace;

impl PrefixSpace {
    fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        if !text.starts_with(' ') {
            prepend(" ", text, out);
        }
    }
}

/// Replaces spaces by a visible character and puts one in front, by a [`PrependScheme`]: what
/// Hugging Face `Metaspace` does to the text of each stretch (it may then split at that
/// character).
///
/// ```
/// use normalize::{Metaspace, PrependScheme};
/// use tokenizer_core::Normalize;
///
/// let metaspace = Metaspace::new('▁', PrependScheme::Always);
/// assert_eq!(metaspace.normalize("a b "), "▁a▁b▁");
/// assert_eq!(metaspace.normalize(" a"), "▁a");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metaspace {
    /// What stands for a space, usually `▁` (U+2581).
    pub replacement: char,
    /// Where one more is put in front.
    pub scheme: PrependScheme,
}

/// Where [`Metaspace`] puts its character in front of a text that does not begin with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PrependScheme {
    /// In front of every stretch of text.
    #[default]
    Always,
    /// In front of a stretch that begins where the whole text begins; see
    /// [`Metaspace::for_stretch`].
    First,
    /// Nowhere.
    Never,
}

impl Metaspace {
    /// Writes `replacement` for every space, and in front by `scheme`.
    #[must_use]
    pub const fn new(replacement: char, scheme: PrependScheme) -> Self {
        Self { replacement, scheme }
    }

    /// The normalizer for one stretch between special tokens: resolves
    /// [`PrependScheme::First`] by whether the stretch begins where the whole text does. (Used as
    /// it is, `First` takes what it gets for such a stretch.)
    #[must_use]
    pub const fn for_stretch(self, at_text_start: bool) -> Self {
        let scheme = match (self.scheme, at_text_start) {
            (PrependScheme::First, true) => PrependScheme::Always,
            (PrependScheme::First, false) => PrependScheme::Never,
            (scheme, _) => scheme,
        };
        Self { scheme, ..self }
    }

    fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        let mut buffer = [0; 4];
        let replacement: &str = self.replacement.encode_utf8(&mut buffer);
        let marked = text.starts_with(replacement) || text.starts_with(' ');
        if self.scheme != PrependScheme::Never && !marked {
            prepend(replacement, text, out);
        }
        let mut rest = &text[out.at()..];
        while let Some(space) = rest.find(' ') {
            out.keep(space);
            out.replace(1, replacement);
            rest = &rest[space + 1..];
        }
    }
}

/// Writes `prefix` and the first character, which both stand for that character.
fn prepend(prefix: &str, text: &str, out: &mut Rewriter<'_, '_>) {
    let Some(first) = text.chars().next() else { return };
    let mut written = String::with_capacity(prefix.len() + first.len_utf8());
    written.push_str(prefix);
    written.push(first);
    out.replace(first.len_utf8(), &written);
}

/// Replaces every match of a pattern by a text. Hugging Face `Replace`.
///
/// The new text stands for the last character of the match (the rest of the match is left out),
/// and where the match is empty for the character before it; that is how Hugging Face has it.
///
/// ```
/// use normalize::Replace;
/// use tokenizer_core::Normalize;
///
/// let quotes = Replace::literal("``", "\"");
/// assert_eq!(quotes.normalize("``so`"), "\"so`");
/// ```
pub struct Replace {
    pattern: Pattern,
    content: String,
}

enum Pattern {
    Literal(String),
    Find(Box<dyn Find>),
}

/// Finds the matches of a pattern: a regular expression of any engine. A closure
/// `Fn(&str, &mut dyn FnMut(Span))` will do.
pub trait Find: Send + Sync {
    /// Calls `each` with every match in `text`: in order, not overlapping, on character
    /// boundaries; an empty match never at the end of the match before it.
    fn find(&self, text: &str, each: &mut dyn FnMut(Span));

    /// The regular expression, for callers that prove something of one that they know; `None` for
    /// other patterns.
    fn regex(&self) -> Option<&str> {
        None
    }
}

impl<F: Fn(&str, &mut dyn FnMut(Span)) + Send + Sync> Find for F {
    fn find(&self, text: &str, each: &mut dyn FnMut(Span)) {
        self(text, each);
    }
}

impl Replace {
    /// Replaces every occurrence of `pattern`, from left to right. The empty pattern matches
    /// before and after every character.
    #[must_use]
    pub fn literal(pattern: impl Into<String>, content: impl Into<String>) -> Self {
        Self { pattern: Pattern::Literal(pattern.into()), content: content.into() }
    }

    /// Replaces every match that `pattern` finds.
    #[must_use]
    pub fn matches(pattern: impl Find + 'static, content: impl Into<String>) -> Self {
        Self { pattern: Pattern::Find(Box::new(pattern)), content: content.into() }
    }

    /// The text that is replaced; `None` where a pattern is.
    #[must_use]
    pub fn literal_pattern(&self) -> Option<&str> {
        match &self.pattern {
            Pattern::Literal(pattern) => Some(pattern),
            Pattern::Find(_) => None,
        }
    }

    /// The regular expression that is replaced, if the pattern says that it is one.
    #[must_use]
    pub fn regex_pattern(&self) -> Option<&str> {
        match &self.pattern {
            Pattern::Literal(_) => None,
            Pattern::Find(pattern) => pattern.regex(),
        }
    }

    /// The text that replaces a match.
    #[must_use]
    pub fn content(&self) -> &str {
        &self.content
    }

    fn rewrite(&self, text: &str, out: &mut Rewriter<'_, '_>) {
        if text.is_empty() {
            return;
        }
        let mut replace = |found: Span| {
            out.keep(found.start - out.at());
            match text[found.range()].chars().next_back() {
                None => out.insert(&self.content),
                Some(last) => {
                    out.delete(found.len() - last.len_utf8());
                    out.replace(last.len_utf8(), &self.content);
                }
            }
        };
        match &self.pattern {
            Pattern::Literal(pattern) if pattern.len() == 1 => {
                // The standard library finds one character faster than a text of one.
                let c = char::from(pattern.as_bytes()[0]);
                let found = |(at, _): (usize, &str)| Span::new(at, at + 1);
                text.match_indices(c).map(found).for_each(replace);
            }
            Pattern::Literal(pattern) => {
                let found = |(at, part): (usize, &str)| Span::new(at, at + part.len());
                text.match_indices(pattern.as_str()).map(found).for_each(replace);
            }
            Pattern::Find(pattern) => pattern.find(text, &mut replace),
        }
    }
}

impl fmt::Debug for Replace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pattern: &dyn fmt::Debug = match &self.pattern {
            Pattern::Literal(pattern) => pattern,
            Pattern::Find(_) => &"..",
        };
        f.debug_struct("Replace").field("pattern", pattern).field("content", &self.content).finish()
    }
}

normalize_by_rewriting!(Prepend, PrefixSpace, Metaspace, Replace);
