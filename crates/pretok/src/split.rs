//! Cutting at the matches of a pattern, with a behaviour.

use alloc::string::String;
use alloc::vec::Vec;

use tokenizer_core::{Span, Split};

use crate::Behavior;
use crate::behavior::Cutter;

/// Cuts at the matches of a delimiter. Hugging Face's `Split`.
///
/// ```
/// use pretok::{Behavior, Delimiter, PatternSplit};
/// use tokenizer_core::Split;
///
/// let split = PatternSplit {
///     delimiter: Delimiter::Literal("-".into()),
///     behavior: Behavior::MergedWithNext,
///     invert: false,
/// };
/// let text = "the-final--countdown";
/// let pieces: Vec<_> = split.split(text).iter().map(|s| &text[s.range()]).collect();
/// assert_eq!(pieces, ["the", "-final", "-", "-countdown"]);
/// ```
#[derive(Clone, Debug)]
pub struct PatternSplit {
    /// What is looked for.
    pub delimiter: Delimiter,
    /// What becomes of a match.
    pub behavior: Behavior,
    /// Whether what lies between matches counts as a match, and matches do not.
    pub invert: bool,
}

/// What a [`PatternSplit`] looks for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Delimiter {
    /// This string. The empty string is found between any two characters.
    Literal(String),
    /// The matches of a regular expression.
    #[cfg(feature = "regex")]
    Regex(crate::RegexSplitter),
}

impl Split for PatternSplit {
    /// If the engine of a regular expression passes its limit, what is left of the text counts as
    /// lying between matches.
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        let mut cutter = Cutter::new(self.behavior, self.invert, spans);
        match &self.delimiter {
            Delimiter::Literal(literal) => {
                for (at, found) in text.match_indices(literal.as_str()) {
                    cutter.matched(Span::new(at, at + found.len()));
                }
            }
            #[cfg(feature = "regex")]
            Delimiter::Regex(regex) => {
                // Which matches there are is all that is promised; see above for the rest.
                let _ = regex.for_each_match(text, |span| cutter.matched(span));
            }
        }
        cutter.finish(text.len());
    }

    fn as_any(&self) -> Option<&dyn core::any::Any> {
        Some(self)
    }
}
