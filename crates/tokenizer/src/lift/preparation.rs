use formats::tokenizer_json as doc;
use normalize::{
    BertNormalizer, Charsmap, Form, Lowercase, NamedRules, Nmt, Precompiled, Prepend, Replace,
    SentencePieceNormalizer, Sequence, SpaceOptions, StripAccents, UnicodeForm,
};
use pretok::Splitter;
use tokenizer_core::{Model, Normalize};

use super::{LiftError, splitters};
use crate::pipeline::{Parts, PartsError, PieceStep, Tokenizer};

/// Stands for a space where pieces begin with one (U+2581).
pub(super) const MARK: &str = "\u{2581}";

/// The format that a trained model will be written in; some decide how text is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// tokenizer.json.
    TokenizerJson,
    /// SentencePiece's `.model`.
    SentencePiece,
    /// tiktoken's ranks.
    Tiktoken,
    /// BERT's `vocab.txt`.
    VocabTxt,
}

/// What becomes of spaces that are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spaces {
    /// All of them stay.
    Kept,
    /// A run of spaces is one, and those at the ends of a text go: SentencePiece's default.
    Tidy,
}

/// How text is normalized and cut, for the trainer and later for the model.
pub struct Preparation {
    pub(super) rules: Vec<Rule>,
    /// The rules as given.
    pub(super) name: String,
    pub(super) target: Target,
    pub(super) marks_spaces: bool,
    pub(super) tidies_spaces: bool,
    normalizer: Option<Box<dyn Normalize>>,
    splitter: Splitter,
}

/// One normalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Form(Form),
    Lowercase,
    StripAccents,
    Nmt,
    Bert { lowercase: bool },
    Named(NamedRules),
}

/// The names that [`Preparation::new`] takes for a normalizer, each with one line on what it does.
#[must_use]
pub fn normalizers() -> &'static [(&'static str, &'static str)] {
    &[
        ("none", "text stays as it is"),
        ("nfc", "Unicode form C"),
        ("nfd", "Unicode form D"),
        ("nfkc", "Unicode form KC (in a .model: SentencePiece's rules of that name)"),
        ("nfkd", "Unicode form KD"),
        ("lowercase", "lower case"),
        ("strip-accents", "combining marks removed; behind nfd"),
        ("nmt", "control characters removed, odd spaces made spaces"),
        ("bert", "BERT uncased: cleaned, lower case, without accents"),
        ("bert-cased", "BERT cased: cleaned"),
        ("nmt_nfkc", "SentencePiece's default rules"),
        ("nmt_nfkc_cf", "the same with case folding"),
        ("nfkc_cf", "SentencePiece's NFKC with case folding"),
    ]
}

impl Rule {
    fn from_name(name: &str, target: Target) -> Option<Self> {
        if target == Target::SentencePiece {
            return NamedRules::from_name(name).map(Self::Named);
        }
        Some(match name {
            "nfc" => Self::Form(Form::Nfc),
            "nfd" => Self::Form(Form::Nfd),
            "nfkc" => Self::Form(Form::Nfkc),
            "nfkd" => Self::Form(Form::Nfkd),
            "lowercase" => Self::Lowercase,
            "strip-accents" => Self::StripAccents,
            "nmt" => Self::Nmt,
            "bert" => Self::Bert { lowercase: true },
            "bert-cased" => Self::Bert { lowercase: false },
            _ => Self::Named(NamedRules::from_name(name)?),
        })
    }

    fn add_to(self, sequence: Sequence) -> Sequence {
        match self {
            Self::Form(form) => sequence.then(UnicodeForm::new(form)),
            Self::Lowercase => sequence.then(Lowercase),
            Self::StripAccents => sequence.then(StripAccents),
            Self::Nmt => sequence.then(Nmt),
            Self::Bert { lowercase } => {
                sequence.then(BertNormalizer::new(true, true, None, lowercase))
            }
            Self::Named(rules) => sequence.then(Precompiled::new(rules.charsmap())),
        }
    }

    pub(super) fn document(self) -> doc::Normalizer {
        match self {
            Self::Form(Form::Nfc) => doc::Normalizer::Nfc,
            Self::Form(Form::Nfd) => doc::Normalizer::Nfd,
            Self::Form(Form::Nfkc) => doc::Normalizer::Nfkc,
            Self::Form(Form::Nfkd) => doc::Normalizer::Nfkd,
            Self::Lowercase => doc::Normalizer::Lowercase,
            Self::StripAccents => doc::Normalizer::StripAccents,
            Self::Nmt => doc::Normalizer::Nmt,
            Self::Bert { lowercase } => doc::Normalizer::Bert(doc::BertNormalizer {
                clean_text: true,
                handle_chinese_chars: true,
                strip_accents: None,
                lowercase,
            }),
            Self::Named(rules) => {
                doc::Normalizer::Precompiled { charsmap: rules.charsmap().to_bytes() }
            }
        }
    }
}

impl Preparation {
    /// The preparation of these normalizers (a name of [`normalizers`], or several with commas
    /// between) and this splitter ([`pretok::from_spec`]) for files of this format.
    ///
    /// A splitter that begins with `metaspace` also marks spaces: one is put in front of the text,
    /// and every space becomes `▁`.
    ///
    /// # Errors
    ///
    /// If a name is not known, or the format cannot say it.
    pub fn new(normalizer: &str, splitter: &str, target: Target) -> Result<Self, LiftError> {
        let names: Vec<&str> = match normalizer {
            "none" => Vec::new(),
            names => names.split(',').collect(),
        };
        let mut rules = Vec::new();
        for name in names {
            rules.push(Rule::from_name(name, target).ok_or_else(|| unknown_rule(name, target))?);
        }
        let split = pretok::from_spec(splitter).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            LiftError::new(format!("{error}{}", cause.unwrap_or_default()))
        })?;
        let marks_spaces = splitters::marks_spaces(splitter)?;
        check(&rules, splitter, target)?;
        let normalizer: Option<Box<dyn Normalize>> = match target {
            Target::SentencePiece => {
                let charsmap = match rules[..] {
                    [Rule::Named(rules)] => Some(rules.charsmap()),
                    _ => None,
                };
                Some(Box::new(sentencepiece_normalizer(charsmap, marks_spaces, false)))
            }
            _ => {
                let mut sequence =
                    rules.iter().fold(Sequence::new(), |sequence, rule| rule.add_to(sequence));
                if marks_spaces {
                    sequence = sequence.then(Prepend::new(MARK)).then(Replace::literal(" ", MARK));
                }
                (!sequence.is_empty()).then(|| sequence.boxed())
            }
        };
        let name = names_of(&rules);
        let tidies_spaces = false;
        Ok(Self { rules, name, target, marks_spaces, tidies_spaces, normalizer, splitter: split })
    }

    /// This preparation with marked spaces, whatever the splitter.
    ///
    /// # Errors
    ///
    /// If the format is not SentencePiece's.
    pub fn with_marked_spaces(mut self, spaces: Spaces) -> Result<Self, LiftError> {
        if self.target != Target::SentencePiece {
            return Err(LiftError::new(
                "only a SentencePiece model marks spaces that it does not cut at",
            ));
        }
        (self.marks_spaces, self.tidies_spaces) = (true, spaces == Spaces::Tidy);
        let normalizer = sentencepiece_normalizer(self.charsmap(), true, self.tidies_spaces);
        self.normalizer = Some(Box::new(normalizer));
        Ok(self)
    }

    /// SentencePiece's rules, if there are any.
    fn charsmap(&self) -> Option<Charsmap> {
        match self.rules[..] {
            [Rule::Named(rules)] => Some(rules.charsmap()),
            _ => None,
        }
    }

    /// Rewrites the text before it is cut; for a trainer and for a model.
    #[must_use]
    pub fn normalizer(&self) -> Option<&dyn Normalize> {
        self.normalizer.as_deref()
    }

    /// Cuts the text for the trainer.
    #[must_use]
    pub fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    /// The format.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// The pipeline of a trained model with this preparation, without special tokens: what a file
    /// of the model must encode like.
    ///
    /// SentencePiece cuts nothing: its pieces hold `▁` only in front, so none reaches over one.
    ///
    /// # Errors
    ///
    /// As [`Parts::build`].
    pub fn tokenizer(self, model: Box<dyn Model>) -> Result<Tokenizer, PartsError> {
        let mut parts = Parts::new(model);
        parts.normalizer = self.normalizer;
        if self.target != Target::SentencePiece {
            parts.steps = vec![PieceStep::Split(Box::new(self.splitter))];
        }
        parts.build()
    }
}

fn names_of(rules: &[Rule]) -> String {
    match rules {
        [Rule::Named(rules)] => rules.name().to_owned(),
        [] => "identity".to_owned(),
        _ => "user_defined".to_owned(),
    }
}

fn unknown_rule(name: &str, target: Target) -> LiftError {
    let known: Vec<&str> = match target {
        Target::SentencePiece => [&["none"][..], &NamedRules::ALL.map(NamedRules::name)].concat(),
        _ => normalizers().iter().map(|(name, _)| *name).collect(),
    };
    let place = match target {
        Target::SentencePiece => "SentencePiece has no normalizer",
        _ => "there is no normalizer",
    };
    LiftError::new(format!("{place} `{name}`; there are {}", known.join(", ")))
}

/// What a format says about text before any model is known.
fn check(rules: &[Rule], splitter: &str, target: Target) -> Result<(), LiftError> {
    match target {
        Target::TokenizerJson => splitters::lift(splitter).map(drop),
        Target::SentencePiece => {
            if !["metaspace", "none"].contains(&splitter) {
                return Err(LiftError::new(format!(
                    "a SentencePiece model cuts text at `▁` or not at all: the splitter must be \
                     metaspace or none, not {splitter}"
                )));
            }
            if rules.len() > 1 {
                return Err(LiftError::new("a SentencePiece model has one set of rules at most"));
            }
            Ok(())
        }
        Target::Tiktoken => {
            if !rules.is_empty() {
                return Err(LiftError::new("tiktoken has no normalizers"));
            }
            splitters::single_pattern(splitter).map(drop)
        }
        Target::VocabTxt => match (rules, splitter) {
            ([Rule::Bert { .. }], "bert") => Ok(()),
            _ => Err(LiftError::new(
                "readers of a vocab.txt normalize and cut as BERT does: the normalizer must be \
                 bert or bert-cased, and the splitter bert",
            )),
        },
    }
}

pub(super) fn sentencepiece_normalizer(
    charsmap: Option<Charsmap>,
    marks_spaces: bool,
    tidies_spaces: bool,
) -> SentencePieceNormalizer {
    let mut spaces = SpaceOptions::default();
    spaces.add_dummy_prefix = marks_spaces;
    spaces.remove_extra_whitespaces = tidies_spaces;
    spaces.escape_whitespaces = marks_spaces;
    SentencePieceNormalizer::new(charsmap).with_spaces(spaces)
}
