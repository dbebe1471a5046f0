//! What a tokenizer must be for its text to be cut into units.

use std::any::Any;

use bpe::{Alphabet, Bpe, Rules as Merges};
use normalize::{Metaspace, Prepend, PrependScheme, Replace, SentencePieceNormalizer, Sequence};
use pretok::{Behavior, Delimiter, PatternSplit};
use tokenizer_core::{Model, Normalize, TokenKind, Vocab};
use unigram::{Compat, Unigram};

use super::{Lead, MARK, MARK_CHAR};
use crate::lower::Mark;
use crate::pipeline::{Parts, PieceStep};

/// What the steps around the model do.
pub(super) struct Shape<'p> {
    pub(super) lead: Lead,
    pub(super) strip: bool,
    pub(super) split: bool,
    pub(super) rewrite: Rewrite<'p>,
}

/// What is done to characters, besides the marking of spaces.
#[derive(Clone, Copy)]
pub(in crate::lane) enum Rewrite<'p> {
    None,
    SentencePiece(&'p SentencePieceNormalizer),
}

impl<'p> Rewrite<'p> {
    /// What the tokenizer of a lane does.
    pub(in crate::lane) fn of(parts: &'p Parts) -> Self {
        Shape::of(parts).map_or(Self::None, |shape| shape.rewrite)
    }
}

impl<'p> Shape<'p> {
    pub(super) fn of(parts: &'p Parts) -> Option<Self> {
        let Some(normalizer) = &parts.normalizer else {
            return Self::of_metaspace(&parts.steps);
        };
        let normalizer = normalizer.as_any()?;
        if let Some(sequence) = normalizer.downcast_ref::<Sequence>() {
            let steps: Option<Vec<_>> = sequence.steps().map(Normalize::as_any).collect();
            return Self::of_sequence(&steps?, &parts.steps);
        }
        let normalizer = normalizer.downcast_ref::<SentencePieceNormalizer>()?;
        let spaces = normalizer.spaces();
        let strip = spaces.remove_extra_whitespaces;
        let is_it = parts.steps.is_empty()
            && spaces.escape_whitespaces
            && !spaces.treat_whitespace_as_suffix
            && (spaces.add_dummy_prefix || !strip);
        let lead = if spaces.add_dummy_prefix { Lead::Always } else { Lead::Never };
        let rewrite = Rewrite::SentencePiece(normalizer);
        is_it.then_some(Self { lead, strip, split: false, rewrite })
    }

    /// A mark in front, and one for every space.
    fn of_sequence(normalizers: &[&'p dyn Any], steps: &[PieceStep]) -> Option<Self> {
        let [prepend, replace] = normalizers else { return None };
        let prepend = prepend.downcast_ref::<Prepend>()?;
        let replace = replace.downcast_ref::<Replace>()?;
        let is_it = prepend.prefix() == MARK
            && replace.literal_pattern() == Some(" ")
            && replace.content() == MARK
            && steps.is_empty();
        let shape = Self { lead: Lead::Always, strip: false, split: false, rewrite: Rewrite::None };
        is_it.then_some(shape)
    }

    fn of_metaspace(steps: &'p [PieceStep]) -> Option<Self> {
        let (PieceStep::Edit(edit), rest) = steps.split_first()? else { return None };
        let edit = edit.as_any()?;
        let (metaspace, knows_first) = match edit.downcast_ref::<Mark>() {
            Some(mark) => (mark.0, true),
            None => (*edit.downcast_ref::<Metaspace>()?, false),
        };
        let Metaspace { replacement, scheme, .. } = metaspace;
        let split = match rest {
            [] => false,
            [step] => is_split_at_marks(step).then_some(true)?,
            _ => return None,
        };
        let lead = match scheme {
            PrependScheme::First if knows_first => Lead::UnmarkedFirst,
            PrependScheme::Always | PrependScheme::First => Lead::Unmarked,
            PrependScheme::Never => Lead::Never,
        };
        let shape = Self { lead, strip: false, split, rewrite: Rewrite::None };
        (replacement == MARK_CHAR).then_some(shape)
    }
}

/// Whether a step cuts in front of every mark.
pub(in crate::lane) fn is_split_at_marks(step: &PieceStep) -> bool {
    let PieceStep::Split(split) = step else { return false };
    let split = split.as_any().and_then(|split| split.downcast_ref::<PatternSplit>());
    split.is_some_and(|split| {
        matches!(&split.delimiter, Delimiter::Literal(mark) if mark == MARK)
            && split.behavior == Behavior::MergedWithNext
            && !split.invert
    })
}

/// What is to be known of a model's tokens.
pub(super) struct Tokens<'m> {
    vocab: &'m Vocab,
    /// Whether tokens of a kind match text or are merged.
    counts: fn(TokenKind) -> bool,
    /// Whether a character is known that is a token of this kind.
    knows: fn(TokenKind) -> bool,
    /// Whether two unknown characters side by side are as good as apart.
    pub(super) unknown_apart: bool,
    /// Whether cuts are legal inside of what the splitter at marks leaves.
    pub(super) inside: bool,
    /// Whether scores are summed from the beginning of the text.
    pub(super) sums: bool,
}

impl<'m> Tokens<'m> {
    /// `None` if the model's tokens do not allow a proof, or those of the shape.
    pub(super) fn of(model: &'m dyn Model, shape: &Shape<'_>) -> Option<Self> {
        let model = model.as_any()?;
        let tokens = match model.downcast_ref::<Bpe>() {
            Some(model) => bpe_tokens(model)?,
            None => unigram_tokens(model.downcast_ref::<Unigram>()?, shape.split)?,
        };
        // Behind a splitter the mark need not be a token: a piece begins there anyway.
        let has_mark = tokens.knows(MARK.as_bytes()) || shape.split;
        (has_mark && tokens.has_symbols(shape.rewrite)).then_some(tokens)
    }

    /// The tokens that match text or are merged.
    pub(super) fn matching(&self) -> impl Iterator<Item = &'m [u8]> {
        let counts = self.counts;
        self.vocab.iter().filter(move |token| counts(token.2)).map(|token| token.1)
    }

    /// Whether a character is a known one.
    pub(super) fn knows(&self, c: &[u8]) -> bool {
        self.vocab.get(c).and_then(|id| self.vocab.kind(id)).is_some_and(self.knows)
    }

    /// Symbols are copied before any rule, so they must be seen as the tokens they are.
    fn has_symbols(&self, rewrite: Rewrite<'_>) -> bool {
        let Rewrite::SentencePiece(normalizer) = rewrite else { return true };
        normalizer.user_defined().as_slice().iter().all(|symbol| {
            let kind = self.vocab.get(symbol.as_bytes()).and_then(|id| self.vocab.kind(id));
            kind.is_some_and(self.counts) && !symbol.contains(' ')
        })
    }
}

fn bpe_tokens(model: &Bpe) -> Option<Tokens<'_>> {
    let options = model.options();
    let vocab = model.vocab();
    let from_scores = match model.rules() {
        Merges::Scores(_) => true,
        Merges::Merges(_) => false,
        _ => return None,
    };
    let is_plain = options.alphabet == Alphabet::Char
        && options.end_of_word.is_none()
        && options.continuing_prefix.is_none()
        && !options.ignore_merges;
    let splits_unused = from_scores && vocab.iter().any(|(_, _, kind)| kind == TokenKind::Unused);
    let all_bytes = (0..=255).all(|byte| vocab.byte(byte).is_some());
    let falls_back = options.byte_fallback && all_bytes;
    let keeps_unknown = from_scores || falls_back || options.unk.is_some();
    if !is_plain || splits_unused || !keeps_unknown {
        return None;
    }
    Some(Tokens {
        vocab,
        counts: match from_scores {
            true => |kind| {
                matches!(kind, TokenKind::Normal | TokenKind::UserDefined | TokenKind::Unused)
            },
            // A listed merge may make a token of any kind.
            false => |_| true,
        },
        knows: |_| true,
        unknown_apart: falls_back || !options.fuse_unk,
        inside: true,
        sums: false,
    })
}

fn unigram_tokens(model: &Unigram, split: bool) -> Option<Tokens<'_>> {
    let options = model.options();
    let vocab = model.vocab();
    match options.compat {
        Compat::SentencePiece if !split => Some(Tokens {
            vocab,
            counts: |kind| matches!(kind, TokenKind::Normal | TokenKind::UserDefined),
            knows: |kind| matches!(kind, TokenKind::Normal | TokenKind::UserDefined),
            // Those of two units are made one behind the lane.
            unknown_apart: true,
            inside: true,
            sums: true,
        }),
        Compat::HuggingFace if split => {
            let any = |_| true;
            Some(Tokens {
                vocab,
                counts: any,
                knows: any,
                unknown_apart: false,
                inside: false,
                sums: false,
            })
        }
        _ => None,
    }
}
