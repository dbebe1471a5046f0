//! Normalizers of a tokenizer.json.

use formats::tokenizer_json as doc;
use normalize::{
    BertNormalizer, Charsmap, Form, Lowercase, Nmt, Precompiled, Prepend, Replace, Sequence, Strip,
    StripAccents, UnicodeForm,
};
use pretok::{RegexOptions, RegexSplitter};
use tokenizer_core::{Normalize, Span};

use super::LowerError;

/// BERT's normalizer.
pub(super) fn bert(uncased: bool) -> Box<dyn Normalize> {
    Box::new(BertNormalizer::new(true, true, None, uncased))
}

pub(crate) fn lower(
    normalizer: &doc::Normalizer,
    path: &str,
) -> Result<Box<dyn Normalize>, LowerError> {
    Ok(match normalizer {
        doc::Normalizer::Bert(bert) => Box::new(BertNormalizer::new(
            bert.clean_text,
            bert.handle_chinese_chars,
            bert.strip_accents,
            bert.lowercase,
        )),
        doc::Normalizer::Strip { left, right } => Box::new(Strip::new(*left, *right)),
        doc::Normalizer::StripAccents => Box::new(StripAccents),
        doc::Normalizer::Nfc => Box::new(UnicodeForm::new(Form::Nfc)),
        doc::Normalizer::Nfd => Box::new(UnicodeForm::new(Form::Nfd)),
        doc::Normalizer::Nfkc => Box::new(UnicodeForm::new(Form::Nfkc)),
        doc::Normalizer::Nfkd => Box::new(UnicodeForm::new(Form::Nfkd)),
        doc::Normalizer::Lowercase => Box::new(Lowercase),
        doc::Normalizer::Nmt => Box::new(Nmt),
        doc::Normalizer::ByteLevel => Box::new(normalize::ByteLevel),
        doc::Normalizer::Prepend { prepend } => Box::new(Prepend::new(prepend)),
        doc::Normalizer::Precompiled { charsmap } => {
            let charsmap = Charsmap::from_bytes(charsmap).map_err(|error| {
                LowerError::caused(format!("{path}.precompiled_charsmap"), error)
            })?;
            Box::new(Precompiled::new(charsmap))
        }
        doc::Normalizer::Replace(replace) => Box::new(match &replace.pattern {
            doc::Pattern::String(pattern) => Replace::literal(pattern, &replace.content),
            doc::Pattern::Regex(pattern) => {
                let regex = RegexSplitter::with_options(pattern, RegexOptions::oniguruma())
                    .map_err(|error| LowerError::caused(format!("{path}.pattern"), error))?;
                Replace::matches(Matches(regex, pattern.clone()), &replace.content)
            }
        }),
        doc::Normalizer::Sequence(steps) => {
            let mut sequence = Sequence::new();
            for (i, step) in steps.iter().enumerate() {
                sequence = sequence.then(lower(step, &format!("{path}.normalizers[{i}]"))?);
            }
            sequence.boxed()
        }
    })
}

/// The matches of a regular expression; where the engine passes its limit, those before that place.
struct Matches(RegexSplitter, String);

impl normalize::Find for Matches {
    fn find(&self, text: &str, each: &mut dyn FnMut(Span)) {
        let _ = self.0.for_each_match(text, each);
    }

    fn regex(&self) -> Option<&str> {
        Some(&self.1)
    }
}
