//! What SentencePiece does to white space, as normalizers of a tokenizer.json and back.

use std::collections::BTreeMap;

use formats::sentencepiece::SentencePieceModel;
use formats::tokenizer_json as doc;
use normalize::Charsmap;
use tokenizer_core::Normalize;

use super::{ConvertError, Target};
use crate::lower::normalizers;

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
    /// A mark is put in front only where the text does not begin with one or with a space.
    pub(super) looks_at_first: bool,
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
        let mut rest = &normalizers[..];
        if let [doc::Normalizer::Precompiled { charsmap }, behind @ ..] = rest {
            spaces.charsmap.clone_from(charsmap);
            rest = behind;
        }
        let (by_char, rest) =
            rest.split_at(rest.iter().take_while(|step| is_char_by_char(step)).count());
        if !by_char.is_empty() {
            spaces.charsmap = with_chars(&spaces.charsmap, by_char)?;
        }
        rest.iter().try_for_each(|step| spaces.take(step))?;
        let puts_in_front = spaces.add_dummy_prefix && !spaces.remove_extra;
        if puts_in_front && by_char.iter().any(|step| deletes(step)) {
            return Err(ConvertError::new(
                "normalizer",
                format!(
                    "deletes characters: a {TARGET} puts a space in front of a text of nothing else"
                ),
            ));
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
                    spaces.looks_at_first = spaces.add_dummy_prefix;
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

    fn take(&mut self, normalizer: &doc::Normalizer) -> Result<(), ConvertError> {
        let mark = MARK.to_string();
        match normalizer {
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
                    other if is_char_by_char(other) => format!("{other:?} behind these"),
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

/// Whether a normalizer makes of each character what it makes of it alone.
fn is_char_by_char(normalizer: &doc::Normalizer) -> bool {
    match normalizer {
        doc::Normalizer::Lowercase | doc::Normalizer::StripAccents | doc::Normalizer::Nmt => true,
        doc::Normalizer::Replace(doc::Replace {
            pattern: doc::Pattern::String(pattern),
            content,
        }) => {
            let marks_spaces = pattern == " " && content.starts_with(MARK);
            pattern.chars().count() == 1 && !marks_spaces
        }
        _ => false,
    }
}

/// Whether such a normalizer leaves nothing of some character.
fn deletes(normalizer: &doc::Normalizer) -> bool {
    match normalizer {
        doc::Normalizer::Replace(replace) => replace.content.is_empty(),
        doc::Normalizer::StripAccents | doc::Normalizer::Nmt => true,
        _ => false,
    }
}

/// The rules of a charsmap, none if it is empty, followed by steps that work character by character:
/// what the rules write goes through them, and so does every character that no rule is for. A rule
/// for one character takes nothing from longer ones, which come first.
fn with_chars(charsmap: &[u8], steps: &[&doc::Normalizer]) -> Result<Vec<u8>, ConvertError> {
    let fail = |error: &dyn std::fmt::Display| ConvertError::new("normalizer", error.to_string());
    let steps = doc::Normalizer::Sequence(steps.iter().map(|&step| step.clone()).collect());
    let steps = normalizers::lower(&steps, "normalizer").map_err(|error| fail(&error))?;
    let mut rules: BTreeMap<String, String> = BTreeMap::new();
    for c in '\u{1}'..=char::MAX {
        let c = c.to_string();
        let target = steps.normalize(&c).into_owned();
        if target != c {
            rules.insert(c, target);
        }
    }
    if !charsmap.is_empty() {
        let charsmap = Charsmap::from_bytes(charsmap).map_err(|error| fail(&error))?;
        for (source, target) in charsmap.rules() {
            let source = String::from_utf8(source)
                .map_err(|_| fail(&"the charsmap has a rule for a part of a character"))?;
            rules.insert(source, steps.normalize(target).into_owned());
        }
    }
    let charsmap = Charsmap::from_rules(rules).map_err(|error| fail(&error))?;
    Ok(charsmap.to_bytes())
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
