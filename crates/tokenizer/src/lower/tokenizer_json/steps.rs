//! Pre-tokenizers and normalizers of a tokenizer.json.

use std::any::Any;
use std::borrow::Cow;
use std::num::NonZeroUsize;

use formats::tokenizer_json as doc;
use normalize::{Metaspace, PrefixSpace, PrependScheme};
use pretok::{Behavior, Delimiter, PatternSplit, RegexOptions, RegexSplitter};
use tokenizer_core::{Edit, Normalize, Split};

use crate::lower::LowerError;
use crate::pipeline::{EditPiece, PieceStep};

/// Metaspace, which looks at whether the text begins with the piece.
pub(crate) struct Mark(pub(crate) Metaspace);

impl EditPiece for Mark {
    fn edit<'t>(&self, piece: &'t str, first: bool, edits: &mut Vec<Edit>) -> Cow<'t, str> {
        self.0.for_stretch(first).normalize_with_edits(piece, edits)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// The steps of a pre-tokenizer. Where the model works on bytes, the ByteLevel that ends them does
/// not spell the text.
pub(super) fn lower(
    pre_tokenizer: Option<&doc::PreTokenizer>,
    model_on_bytes: bool,
) -> Result<Vec<PieceStep>, LowerError> {
    let flat = flat(pre_tokenizer);
    let mut steps = Vec::new();
    let last = flat.len();
    for (i, (pre_tokenizer, path)) in flat.into_iter().enumerate() {
        lower_one(pre_tokenizer, &path, model_on_bytes && i + 1 == last, &mut steps)?;
    }
    Ok(steps)
}

/// How a pre-tokenizer ends.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum End {
    /// There is no step.
    Empty,
    /// In ByteLevel: it spells bytes as characters.
    ByteLevel,
    /// In something else.
    Other,
}

pub(super) fn end(pre_tokenizer: Option<&doc::PreTokenizer>) -> End {
    match flat(pre_tokenizer).last() {
        None => End::Empty,
        Some((doc::PreTokenizer::ByteLevel(_), _)) => End::ByteLevel,
        Some(_) => End::Other,
    }
}

/// The steps of all sequences in order, each with its path in the document.
fn flat(pre_tokenizer: Option<&doc::PreTokenizer>) -> Vec<(&doc::PreTokenizer, String)> {
    let mut flat = Vec::new();
    if let Some(pre_tokenizer) = pre_tokenizer {
        flatten(pre_tokenizer, "pre_tokenizer".to_owned(), &mut flat);
    }
    flat
}

fn flatten<'d>(
    pre_tokenizer: &'d doc::PreTokenizer,
    path: String,
    flat: &mut Vec<(&'d doc::PreTokenizer, String)>,
) {
    match pre_tokenizer {
        doc::PreTokenizer::Sequence(inner) => {
            for (i, pre_tokenizer) in inner.iter().enumerate() {
                flatten(pre_tokenizer, format!("{path}.pretokenizers[{i}]"), flat);
            }
        }
        other => flat.push((other, path)),
    }
}

fn lower_one(
    pre_tokenizer: &doc::PreTokenizer,
    path: &str,
    without_spelling: bool,
    steps: &mut Vec<PieceStep>,
) -> Result<(), LowerError> {
    let split: Box<dyn Split> = match pre_tokenizer {
        doc::PreTokenizer::Sequence(_) => unreachable!("sequences were flattened"),
        doc::PreTokenizer::Bert => Box::new(pretok::Bert),
        doc::PreTokenizer::Whitespace => Box::new(pretok::Words),
        doc::PreTokenizer::WhitespaceSplit => Box::new(pretok::WhitespaceSplit),
        doc::PreTokenizer::UnicodeScripts => Box::new(pretok::Scripts),
        doc::PreTokenizer::CharDelimiterSplit { delimiter } => {
            Box::new(pretok::CharDelimiter(*delimiter))
        }
        doc::PreTokenizer::Punctuation { behavior } => {
            Box::new(pretok::Punctuation(lower_behavior(*behavior)))
        }
        doc::PreTokenizer::Digits { individual_digits: true } => {
            Box::new(pretok::DigitSplit::Individual)
        }
        doc::PreTokenizer::Digits { individual_digits: false } => {
            Box::new(pretok::DigitSplit::Runs)
        }
        doc::PreTokenizer::FixedLength { length } => {
            let length = NonZeroUsize::new(*length)
                .ok_or_else(|| LowerError::new(format!("{path}.length"), "must be at least 1"))?;
            Box::new(pretok::FixedLength(length))
        }
        doc::PreTokenizer::Split { pattern, behavior, invert } => {
            lower_split(pattern, *behavior, *invert, path)?
        }
        doc::PreTokenizer::Metaspace(metaspace) => {
            let scheme = match metaspace.prepend_scheme {
                doc::PrependScheme::Always => PrependScheme::Always,
                doc::PrependScheme::First => PrependScheme::First,
                doc::PrependScheme::Never => PrependScheme::Never,
            };
            let mark = metaspace.replacement;
            steps.push(PieceStep::Edit(Box::new(Mark(Metaspace::new(mark, scheme)))));
            if !metaspace.split {
                return Ok(());
            }
            Box::new(PatternSplit {
                delimiter: Delimiter::Literal(mark.to_string()),
                behavior: Behavior::MergedWithNext,
                invert: false,
            })
        }
        doc::PreTokenizer::ByteLevel(byte_level) => {
            if byte_level.add_prefix_space {
                steps.push(PieceStep::Edit(Box::new(PrefixSpace)));
            }
            if byte_level.use_regex {
                steps.push(PieceStep::Split(pretok::Pattern::Gpt2.splitter()));
            }
            if !without_spelling {
                steps.push(PieceStep::Edit(Box::new(normalize::ByteLevel)));
            }
            return Ok(());
        }
    };
    steps.push(PieceStep::Split(split));
    Ok(())
}

fn lower_split(
    pattern: &doc::Pattern,
    behavior: doc::SplitBehavior,
    invert: bool,
    path: &str,
) -> Result<Box<dyn Split>, LowerError> {
    let delimiter = match pattern {
        doc::Pattern::String(literal) => Delimiter::Literal(literal.clone()),
        doc::Pattern::Regex(pattern) => {
            let regex = RegexSplitter::with_options(pattern, RegexOptions::oniguruma())
                .map_err(|error| LowerError::caused(format!("{path}.pattern"), error))?;
            // A delimiter that keeps everything and stands alone is the splitter itself.
            if behavior == doc::SplitBehavior::Isolated && !invert {
                return Ok(Box::new(regex));
            }
            Delimiter::Regex(regex)
        }
    };
    Ok(Box::new(PatternSplit { delimiter, behavior: lower_behavior(behavior), invert }))
}

fn lower_behavior(behavior: doc::SplitBehavior) -> Behavior {
    match behavior {
        doc::SplitBehavior::Removed => Behavior::Removed,
        doc::SplitBehavior::Isolated => Behavior::Isolated,
        doc::SplitBehavior::MergedWithPrevious => Behavior::MergedWithPrevious,
        doc::SplitBehavior::MergedWithNext => Behavior::MergedWithNext,
        doc::SplitBehavior::Contiguous => Behavior::Contiguous,
    }
}
