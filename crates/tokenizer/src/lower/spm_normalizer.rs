//! What a SentencePiece model does to text before its pieces.

use formats::sentencepiece::SentencePieceModel;
use normalize::{Charsmap, SentencePieceNormalizer, SpaceOptions, Symbols};
use tokenizer_core::{Normalize, Span, Split, utf8};

use super::LowerError;

pub(super) fn lower(
    document: &SentencePieceModel,
    user_defined: &[&str],
) -> Result<Box<dyn Normalize>, LowerError> {
    let spec = document.normalizer();
    let charsmap =
        match spec.charsmap() {
            [] => None,
            bytes => Some(Charsmap::from_bytes(bytes).map_err(|error| {
                LowerError::caused("normalizer_spec.precompiled_charsmap", error)
            })?),
        };
    let mut spaces = SpaceOptions::default();
    spaces.add_dummy_prefix = spec.add_dummy_prefix();
    spaces.remove_extra_whitespaces = spec.remove_extra_whitespaces();
    spaces.escape_whitespaces = spec.escape_whitespaces();
    spaces.treat_whitespace_as_suffix = document.trainer().treat_whitespace_as_suffix();
    let normalizer = SentencePieceNormalizer::new(charsmap)
        .with_spaces(spaces)
        .with_user_defined(user_defined.iter().copied().collect());
    Ok(Box::new(normalizer))
}

/// Cuts into characters; the longest user-defined symbol at a place stays whole.
pub(super) fn characters(user_defined: &[&str]) -> Box<dyn Split> {
    Box::new(Characters(user_defined.iter().copied().collect()))
}

struct Characters(Symbols);

impl Split for Characters {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        let mut at = 0;
        while at < text.len() {
            let rest = &text.as_bytes()[at..];
            let len = self.0.longest_prefix(rest).map_or_else(|| utf8::char_len(rest), str::len);
            spans.push(Span::new(at, at + len));
            at += len;
        }
    }
}

/// Cuts before (or where the mark is a suffix, behind) every `▁`.
pub(super) fn words(as_suffix: bool) -> Box<dyn Split> {
    use pretok::{Behavior, Delimiter, PatternSplit};
    let behavior = if as_suffix { Behavior::MergedWithPrevious } else { Behavior::MergedWithNext };
    let delimiter = Delimiter::Literal("\u{2581}".to_owned());
    Box::new(PatternSplit { delimiter, behavior, invert: false })
}
