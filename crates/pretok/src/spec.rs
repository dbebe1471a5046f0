//! Splitters by name, as command lines give them.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::num::NonZeroUsize;

use tokenizer_core::{Span, Split};

use crate::{
    Align, Behavior, Bert, CharDelimiter, Chars, DigitGroups, DigitSplit, FixedLength, Metaspace,
    Pattern, Punctuation, Scripts, Sequence, SpacePrefix, WhitespaceSplit, Whole, Words,
};

/// A splitter that was made from a specification; `Display` gives the specification back.
pub struct Splitter {
    spec: String,
    split: Box<dyn Split>,
    engine: &'static str,
}

impl Splitter {
    /// The specification.
    #[must_use]
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// What does the work, for people: `scanner`, `automaton`, `backtracking`, or for a sequence
    /// the slowest of its stages.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.engine
    }
}

impl Split for Splitter {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        self.split.split_into(text, spans);
    }

    fn split_batches(&self, text: &str, batch: &mut dyn FnMut(&[Span])) {
        self.split.split_batches(text, batch);
    }

    fn unsettled(&self) -> Option<usize> {
        self.split.unsettled()
    }
}

impl fmt::Display for Splitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spec)
    }
}

impl fmt::Debug for Splitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Splitter")
            .field("spec", &self.spec)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

/// The names that [`from_spec`] takes, each with one line on what it does. `N` stands for a
/// number of 1 or more, `PATTERN` for a regular expression.
#[must_use]
pub fn names() -> &'static [(&'static str, &'static str)] {
    NAMES
}

const NAMES: &[(&str, &str)] = &[
    ("none", "the whole text is one piece"),
    ("chars", "every character is a piece"),
    ("whitespace", "cut at white space, which is removed"),
    ("spaces", "cut at spaces, which are removed; other white space stays"),
    ("words", r"\w+|[^\w\s]+, white space removed (Hugging Face Whitespace)"),
    ("bert", "white space removed, every punctuation character a piece"),
    ("punctuation", "every punctuation character a piece"),
    ("punctuation-removed", "cut at punctuation, which is removed"),
    ("punctuation-merged-with-previous", "punctuation ends the piece in front"),
    ("punctuation-merged-with-next", "punctuation begins the piece behind"),
    ("punctuation-contiguous", "runs of punctuation are pieces"),
    ("digits", "every digit a piece"),
    ("digit-runs", "every run of digits a piece"),
    ("digitsN", "runs of digits in groups of N from the left"),
    ("digitsN-right", "runs of digits in groups of N from the right"),
    ("metaspace", "cut before every ▁ (SentencePiece)"),
    ("space-prefix", "cut before every space"),
    ("scripts", "cut where the script changes (Hugging Face UnicodeScripts)"),
    ("fixedN", "N characters a piece"),
    ("gpt2", "GPT-2, Hugging Face ByteLevel"),
    ("r50k", "tiktoken r50k_base, cuts as gpt2"),
    ("p50k", "tiktoken p50k_base, cuts as gpt2"),
    ("cl100k", "tiktoken cl100k_base"),
    ("cl100k-hf", "cl100k_base as exported for Hugging Face, cuts as llama3"),
    ("o200k", "tiktoken o200k_base"),
    ("llama3", "Llama 3"),
    ("qwen2", "Qwen 2 and 2.5"),
    ("qwen3.5", "Qwen 3.5"),
    ("deepseek-v3", "DeepSeek-V3 and R1, three stages"),
    ("tekken", "Mistral Tekken"),
    ("kimi-k2", "Kimi K2"),
    #[cfg(feature = "regex")]
    ("regex:PATTERN", "any regular expression, last in a list; what it does not match is kept"),
];

/// The splitter of a specification: a name of [`names`], or several with commas between, each of
/// which cuts the pieces of the one before. `regex:` takes the rest of the string, commas too.
///
/// ```
/// use tokenizer_core::Split;
///
/// let splitter = pretok::from_spec("digits3,gpt2")?;
/// let text = "in 20241 it's";
/// let pieces: Vec<_> = splitter.split(text).iter().map(|s| &text[s.range()]).collect();
/// assert_eq!(pieces, ["in", " ", "202", "41", " it", "'s"]);
/// assert_eq!(splitter.to_string(), "digits3,gpt2");
/// # Ok::<(), pretok::SpecError>(())
/// ```
///
/// # Errors
///
/// If a name is not known, or the pattern behind `regex:` cannot be compiled.
pub fn from_spec(spec: &str) -> Result<Splitter, SpecError> {
    let mut stages: Vec<(Box<dyn Split>, &'static str)> = Vec::new();
    let mut rest = Some(spec);
    while let Some(items) = rest {
        let item;
        (item, rest) = match items.split_once(',') {
            Some((item, rest)) if !items.starts_with("regex:") => (item, Some(rest)),
            _ => (items, None),
        };
        stages.push(stage(item)?);
    }
    let engine = stages.iter().map(|s| s.1).max_by_key(|&engine| rank(engine)).unwrap_or(SCANNER);
    let split = if stages.len() == 1 {
        stages.remove(0).0
    } else {
        Box::new(Sequence::new(stages.into_iter().map(|s| s.0).collect()))
    };
    Ok(Splitter { spec: spec.to_owned(), split, engine })
}

const SCANNER: &str = "scanner";

fn rank(engine: &str) -> usize {
    [SCANNER, "automaton", "backtracking"].iter().position(|&e| e == engine).unwrap_or(0)
}

fn stage(item: &str) -> Result<(Box<dyn Split>, &'static str), SpecError> {
    #[cfg(feature = "regex")]
    if let Some(pattern) = item.strip_prefix("regex:") {
        let splitter = crate::RegexSplitter::new(pattern)
            .map_err(|source| SpecError { item: item.to_owned(), source: Some(source) })?;
        let engine = match splitter.engine() {
            crate::Engine::Scanner => SCANNER,
            crate::Engine::Automaton => "automaton",
            crate::Engine::Backtracking => "backtracking",
        };
        return Ok((Box::new(splitter), engine));
    }
    match simple(item) {
        Some(split) => Ok((split, SCANNER)),
        None => Err(SpecError {
            item: item.to_owned(),
            #[cfg(feature = "regex")]
            source: None,
        }),
    }
}

fn simple(name: &str) -> Option<Box<dyn Split>> {
    if let Some(pattern) = Pattern::from_name(name) {
        return Some(pattern.splitter());
    }
    if let Some(behavior) = name.strip_prefix("punctuation-") {
        return Some(Box::new(Punctuation(Behavior::from_name(behavior)?)));
    }
    Some(match name {
        "none" => Box::new(Whole),
        "chars" => Box::new(Chars),
        "whitespace" => Box::new(WhitespaceSplit),
        "spaces" => Box::new(CharDelimiter(' ')),
        "words" => Box::new(Words),
        "bert" => Box::new(Bert),
        "punctuation" => Box::new(Punctuation(Behavior::Isolated)),
        "digits" => Box::new(DigitSplit::Individual),
        "digit-runs" => Box::new(DigitSplit::Runs),
        "metaspace" => Box::new(Metaspace),
        "space-prefix" => Box::new(SpacePrefix),
        "scripts" => Box::new(Scripts),
        _ => return numbered(name),
    })
}

fn numbered(name: &str) -> Option<Box<dyn Split>> {
    if let Some(len) = name.strip_prefix("fixed") {
        return Some(Box::new(FixedLength(number(len)?)));
    }
    let len = name.strip_prefix("digits")?;
    let (len, align) = match len.strip_suffix("-right") {
        Some(len) => (len, Align::Right),
        None => (len, Align::Left),
    };
    Some(Box::new(DigitGroups { len: number(len)?, align }))
}

/// A number without sign or leading zero, so that a specification has one spelling.
fn number(digits: &str) -> Option<NonZeroUsize> {
    let number: NonZeroUsize = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// Why a specification gives no splitter.
#[derive(Clone, Debug)]
pub struct SpecError {
    item: String,
    #[cfg(feature = "regex")]
    source: Option<crate::RegexError>,
}

impl SpecError {
    /// The part of the specification that is wrong.
    #[must_use]
    pub fn item(&self) -> &str {
        &self.item
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "regex")]
        if self.source.is_some() {
            return f.write_str("the regular expression of the splitter is not usable");
        }
        write!(f, "no splitter is called `{}`; there are ", self.item)?;
        for (i, (name, _)) in NAMES.iter().enumerate() {
            write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Error for SpecError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        #[cfg(feature = "regex")]
        if let Some(source) = &self.source {
            return Some(source);
        }
        None
    }
}
