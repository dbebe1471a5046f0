//! What is added around the tokens of a text, and how offsets are trimmed.

use std::fmt;

use tokenizer_core::{Span, TokenId};

use crate::encoding::Encoding;

/// Runs after the model: adds the tokens of a template, trims offsets.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PostProcessor {
    /// Nothing is added.
    #[default]
    None,
    /// A template with a part for one text and one for a pair.
    Template(Template),
    /// Offsets lose the white space that their tokens carry.
    TrimOffsets {
        /// A leading space of the first token was added by the splitter and stays.
        add_prefix_space: bool,
    },
    /// One after the other.
    Sequence(Vec<PostProcessor>),
}

/// The order of texts and added tokens, for one text and for a pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// For one text.
    pub single: Vec<TemplatePart>,
    /// For a pair.
    pub pair: Vec<TemplatePart>,
}

/// One part of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// The tokens of the first text.
    First {
        /// Their type id.
        type_id: u32,
    },
    /// The tokens of the second text.
    Second {
        /// Their type id.
        type_id: u32,
    },
    /// Tokens that are added.
    Added {
        /// Their ids.
        ids: Vec<TokenId>,
        /// Their type id.
        type_id: u32,
    },
}

/// A template that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError(String);

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// The template that adds `before` and `after` one text, and around both texts of a pair.
    #[must_use]
    pub fn around(before: &[TokenId], after: &[TokenId]) -> Self {
        let added = |ids: &[TokenId]| TemplatePart::Added { ids: ids.to_vec(), type_id: 0 };
        let first = TemplatePart::First { type_id: 0 };
        let second = TemplatePart::Second { type_id: 0 };
        let keep = |parts: Vec<TemplatePart>| {
            let empty =
                |p: &TemplatePart| matches!(p, TemplatePart::Added { ids, .. } if ids.is_empty());
            parts.into_iter().filter(|p| !empty(p)).collect()
        };
        Self {
            single: keep(vec![added(before), first.clone(), added(after)]),
            pair: keep(vec![
                added(before),
                first,
                added(after),
                added(before),
                second,
                added(after),
            ]),
        }
    }

    /// Checks that every text occurs in its template, and the second one only for pairs.
    ///
    /// # Errors
    ///
    /// If the single template names the second text or lacks the first, or the pair template
    /// lacks one of them.
    pub fn check(&self) -> Result<(), TemplateError> {
        let has = |parts: &[TemplatePart], second: bool| {
            parts.iter().any(|part| match part {
                TemplatePart::First { .. } => !second,
                TemplatePart::Second { .. } => second,
                TemplatePart::Added { .. } => false,
            })
        };
        if has(&self.single, true) {
            return Err(TemplateError("the template for one text names a second text".into()));
        }
        let pair_is_whole = has(&self.pair, false) && has(&self.pair, true);
        if !self.pair.is_empty() && !pair_is_whole {
            return Err(TemplateError("the template for a pair lacks one of its texts".into()));
        }
        Ok(())
    }

    fn added(parts: &[TemplatePart]) -> usize {
        let count = |part: &TemplatePart| match part {
            TemplatePart::Added { ids, .. } => ids.len(),
            _ => 0,
        };
        parts.iter().map(count).sum()
    }

    /// Lays out the texts; `added` says whether the added tokens are put in too.
    fn apply(&self, first: &Encoding, second: Option<&Encoding>, added: bool) -> Encoding {
        let parts = if second.is_some() { &self.pair } else { &self.single };
        let build = |first: &Encoding, second: Option<&Encoding>| {
            let mut out = Encoding::default();
            for part in parts {
                let (text, type_id) = match part {
                    TemplatePart::First { type_id } => (Some(first), type_id),
                    TemplatePart::Second { type_id } => (second, type_id),
                    TemplatePart::Added { ids, type_id } => {
                        if added {
                            for &id in ids {
                                out.push_added(id, *type_id, true);
                            }
                        }
                        continue;
                    }
                };
                if let Some(text) = text {
                    let start = out.len();
                    out.extend(text);
                    out.type_ids[start..].fill(*type_id);
                }
            }
            out
        };
        let leads = parts.iter().find(|part| !matches!(part, TemplatePart::Added { .. }));
        match second {
            // The text that comes first is the one whose windows are counted slowest.
            Some(second) if matches!(leads, Some(TemplatePart::Second { .. })) => {
                combine(second, Some(first), |second, first| {
                    build(first.expect("both texts are there"), Some(second))
                })
            }
            _ => combine(first, second, build),
        }
    }
}

/// Builds the main encoding, and those of all combinations of overflowing windows.
fn combine(
    first: &Encoding,
    second: Option<&Encoding>,
    build: impl Fn(&Encoding, Option<&Encoding>) -> Encoding,
) -> Encoding {
    let mut out = build(first, second);
    let mut overflowing = Vec::new();
    for window in &first.overflowing {
        overflowing.push(build(window, second));
        if let Some(second) = second {
            for other in &second.overflowing {
                overflowing.push(build(window, Some(other)));
            }
        }
    }
    if let Some(second) = second {
        for other in &second.overflowing {
            overflowing.push(build(first, Some(other)));
        }
    }
    out.overflowing = overflowing;
    out
}

impl PostProcessor {
    /// How many tokens are added to one text or to a pair.
    #[must_use]
    pub fn added(&self, pair: bool) -> usize {
        match self {
            Self::None | Self::TrimOffsets { .. } => 0,
            Self::Template(template) => {
                Template::added(if pair { &template.pair } else { &template.single })
            }
            Self::Sequence(steps) => steps.iter().map(|step| step.added(pair)).sum(),
        }
    }

    /// How many templates there are; only the first is filled in.
    pub(crate) fn templates(&self) -> usize {
        match self {
            Self::None | Self::TrimOffsets { .. } => 0,
            Self::Template(_) => 1,
            Self::Sequence(steps) => steps.iter().map(Self::templates).sum(),
        }
    }

    /// Trims offsets in `text`; `white_space` gives the leading and trailing white space in
    /// characters of a token and where it is from.
    pub(crate) fn trim(
        &self,
        encoding: &mut Encoding,
        text: &str,
        white_space: &dyn Fn(TokenId, Span) -> (usize, usize),
    ) {
        let mut trims = Vec::new();
        self.collect_trims(&mut trims);
        if !trims.is_empty() {
            trim_offsets(encoding, text, &trims, white_space);
        }
    }

    /// Appends `add_prefix_space` of every step that trims.
    fn collect_trims(&self, trims: &mut Vec<bool>) {
        match self {
            Self::None | Self::Template(_) => {}
            Self::TrimOffsets { add_prefix_space } => trims.push(*add_prefix_space),
            Self::Sequence(steps) => steps.iter().for_each(|step| step.collect_trims(trims)),
        }
    }

    /// Puts the texts together; without `template` nothing is added, but the order and the type
    /// ids are still the template's.
    pub(crate) fn assemble(
        &self,
        first: Encoding,
        second: Option<Encoding>,
        template: bool,
    ) -> Encoding {
        match self.template() {
            Some(parts) if second.is_none() || !parts.pair.is_empty() => {
                parts.apply(&first, second.as_ref(), template)
            }
            _ => join(first, second),
        }
    }

    fn template(&self) -> Option<&Template> {
        match self {
            Self::Template(template) => Some(template),
            Self::Sequence(steps) => steps.iter().find_map(Self::template),
            Self::None | Self::TrimOffsets { .. } => None,
        }
    }
}

/// The two texts one behind the other; the second one has type id 1.
fn join(first: Encoding, second: Option<Encoding>) -> Encoding {
    let Some(mut second) = second else {
        return first;
    };
    set_type(&mut second, 1);
    combine(&first, Some(&second), |first, second| {
        let mut out = Encoding::default();
        out.extend(first);
        if let Some(second) = second {
            out.extend(second);
        }
        out
    })
}

fn set_type(encoding: &mut Encoding, type_id: u32) {
    encoding.type_ids.fill(type_id);
    for window in &mut encoding.overflowing {
        set_type(window, type_id);
    }
}

/// Takes the white space of every token off its offsets, once for each of `trims`: what a token is
/// spelled with is the same each time.
fn trim_offsets(
    encoding: &mut Encoding,
    text: &str,
    trims: &[bool],
    white_space: &dyn Fn(TokenId, Span) -> (usize, usize),
) {
    for (i, (offset, &id)) in encoding.offsets.iter_mut().zip(&encoding.ids).enumerate() {
        let of_token = white_space(id, *offset);
        for &add_prefix_space in trims {
            trim_offset(offset, i == 0, text, add_prefix_space, of_token);
        }
    }
    for window in &mut encoding.overflowing {
        trim_offsets(window, text, trims, white_space);
    }
}

fn trim_offset(
    offset: &mut Span,
    is_first: bool,
    text: &str,
    add_prefix_space: bool,
    (mut leading, trailing): (usize, usize),
) {
    if leading > 0 {
        // One space may be the one that was added; of more none was.
        if (is_first || offset.start == 0) && add_prefix_space && leading == 1 {
            leading = 0;
        }
        // Hugging Face counts characters and moves byte offsets by as many bytes; only its
        // character offsets are right where the white space is not ASCII, and those are these.
        let surface = &text[offset.range()];
        offset.start += surface.char_indices().nth(leading).map_or(surface.len(), |(at, _)| at);
    }
    if trailing > 0 && text[..offset.end].chars().nth(trailing - 1).is_some() {
        let surface = &text[offset.range()];
        offset.end = match surface.char_indices().nth_back(trailing - 1) {
            Some((at, _)) => offset.start + at,
            None => offset.start,
        };
    }
}

/// Keeps spans inside the text and on its character boundaries: outward to whole characters.
pub(crate) fn to_char_boundaries(text: &str, span: Span) -> Span {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    Span::new(start, end.max(start))
}
