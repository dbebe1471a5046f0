//! What SentencePiece does to white space, as normalizers of a tokenizer.json and back.

use formats::sentencepiece::SentencePieceModel;
use formats::tokenizer_json as doc;

use super::{ConvertError, Target};

pub(super) const MARK: char = '\u{2581}';
/// SentencePiece drops spaces in front, and behind the text spaces and marks.
const OUTER: &str = r"\A +|[ \u2581]+\z";
const OUTER_UNMARKED: &str = r"\A +| +\z";
const INNER: &str = " {2,}";
const TARGET: Target = Target::SentencePiece;

/// The normalization of a SentencePiece model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spaces {
    pub(super) charsmap: Vec<u8>,
    pub(super) add_dummy_prefix: bool,
    pub(super) remove_extra: bool,
    pub(super) escape: bool,
    /// Text is cut in front of every mark, which changes nothing where no piece holds one inside.
    pub(super) cuts_at_marks: bool,
    /// A mark is put in front of the text alone, not of text behind a special token.
    pub(super) first_only: bool,
}

fn regex(pattern: &str, content: &str) -> doc::Normalizer {
    doc::Normalizer::Replace(doc::Replace {
        pattern: doc::Pattern::Regex(pattern.to_owned()),
        content: content.to_owned(),
    })
}

fn outer(escape: bool) -> String {
    let pattern = if escape { OUTER } else { OUTER_UNMARKED };
    pattern.replace(r"\u2581", "\u{2581}")
}

impl Spaces {
    pub(super) fn of(model: &SentencePieceModel) -> Result<Self, ConvertError> {
        if model.trainer().treat_whitespace_as_suffix() {
            return Err(ConvertError::new(
                "trainer_spec.treat_whitespace_as_suffix",
                "a tokenizer.json puts nothing behind a text",
            ));
        }
        let spec = model.normalizer();
        Ok(Self {
            charsmap: spec.charsmap().to_vec(),
            add_dummy_prefix: spec.add_dummy_prefix(),
            remove_extra: spec.remove_extra_whitespaces(),
            escape: spec.escape_whitespaces(),
            ..Self::default()
        })
    }

    /// The normalizers, in order.
    pub(super) fn normalizers(&self) -> Vec<doc::Normalizer> {
        let mut steps = Vec::new();
        if !self.charsmap.is_empty() {
            steps.push(doc::Normalizer::Precompiled { charsmap: self.charsmap.clone() });
        }
        if self.remove_extra {
            steps.push(regex(&outer(self.escape), ""));
            steps.push(regex(INNER, " "));
        }
        let mark = if self.escape { MARK } else { ' ' };
        if self.add_dummy_prefix {
            steps.push(doc::Normalizer::Prepend { prepend: mark.to_string() });
        }
        if self.escape {
            steps.push(doc::Normalizer::Replace(doc::Replace {
                pattern: doc::Pattern::String(" ".into()),
                content: MARK.to_string(),
            }));
        }
        steps
    }

    /// What the normalizers and pre-tokenizers of a tokenizer.json amount to.
    pub(super) fn of_json(json: &doc::TokenizerJson) -> Result<Self, ConvertError> {
        let mut spaces = Self::default();
        let mut normalizers = Vec::new();
        if let Some(normalizer) = &json.normalizer {
            flatten(normalizer, &mut normalizers);
        }
        for (place, normalizer) in normalizers.iter().enumerate() {
            spaces.take(normalizer, place)?;
        }
        let mut splitters = Vec::new();
        if let Some(pre_tokenizer) = &json.pre_tokenizer {
            flatten_splitters(pre_tokenizer, &mut splitters);
        }
        for splitter in splitters {
            match splitter {
                doc::PreTokenizer::WhitespaceSplit if !spaces.escape => spaces.remove_extra = true,
                doc::PreTokenizer::Metaspace(metaspace)
                    if metaspace.replacement == MARK && !spaces.add_dummy_prefix =>
                {
                    spaces.escape = true;
                    spaces.cuts_at_marks |= metaspace.split;
                    spaces.add_dummy_prefix = metaspace.prepend_scheme != doc::PrependScheme::Never;
                    spaces.first_only = metaspace.prepend_scheme == doc::PrependScheme::First;
                }
                doc::PreTokenizer::Split {
                    pattern: doc::Pattern::String(at),
                    behavior: doc::SplitBehavior::MergedWithNext,
                    invert: false,
                } if at.starts_with(MARK) && at.chars().count() == 1 && spaces.escape => {
                    spaces.cuts_at_marks = true;
                }
                // A cut at spaces of which none is left.
                doc::PreTokenizer::Split { pattern: doc::Pattern::String(at), .. }
                    if at == " " && spaces.escape => {}
                other => {
                    return Err(ConvertError::new(
                        "pre_tokenizer",
                        format!("a {TARGET} marks spaces and cuts nothing, unlike {other:?}"),
                    ));
                }
            }
        }
        Ok(spaces)
    }

    fn take(&mut self, normalizer: &doc::Normalizer, place: usize) -> Result<(), ConvertError> {
        let mark = MARK.to_string();
        match normalizer {
            doc::Normalizer::Precompiled { charsmap } if place == 0 => {
                self.charsmap.clone_from(charsmap);
            }
            doc::Normalizer::Prepend { prepend }
                if !self.add_dummy_prefix
                    && (*prepend == mark || (prepend == " " && !self.escape)) =>
            {
                self.add_dummy_prefix = true;
            }
            doc::Normalizer::Replace(doc::Replace {
                pattern: doc::Pattern::String(pattern),
                content,
            }) if pattern == " " && *content == mark => self.escape = true,
            // What transformers' own converters write, and what `normalizers` writes.
            doc::Normalizer::Strip { right: true, .. } => self.remove_extra = true,
            doc::Normalizer::Replace(doc::Replace {
                pattern: doc::Pattern::Regex(pattern),
                content,
            }) if (pattern == INNER && (content == " " || *content == mark))
                || ([outer(true), outer(false)].contains(pattern) && content.is_empty()) =>
            {
                self.remove_extra = true;
            }
            other => {
                let shown = match other {
                    doc::Normalizer::Precompiled { .. } => "a charsmap behind other steps".into(),
                    other => format!("{other:?}"),
                };
                return Err(ConvertError::new(
                    "normalizer",
                    format!("a {TARGET} has a charsmap and rules for spaces, but not {shown}"),
                ));
            }
        }
        Ok(())
    }
}

fn flatten<'d>(normalizer: &'d doc::Normalizer, steps: &mut Vec<&'d doc::Normalizer>) {
    match normalizer {
        doc::Normalizer::Sequence(inner) => inner.iter().for_each(|step| flatten(step, steps)),
        other => steps.push(other),
    }
}

fn flatten_splitters<'d>(
    pre_tokenizer: &'d doc::PreTokenizer,
    steps: &mut Vec<&'d doc::PreTokenizer>,
) {
    match pre_tokenizer {
        doc::PreTokenizer::Sequence(inner) => {
            inner.iter().for_each(|step| flatten_splitters(step, steps));
        }
        other => steps.push(other),
    }
}
