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
    /// The compiled rules of each named set: making them takes long.
    charsmaps: Vec<(NamedRules, Charsmap)>,
    /// The rules of an older SentencePiece model, in the place of all others.
    older: Option<Charsmap>,
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

    fn add_to(self, sequence: Sequence, charsmap: impl Fn(NamedRules) -> Charsmap) -> Sequence {
        match self {
            Self::Form(form) => sequence.then(UnicodeForm::new(form)),
            Self::Lowercase => sequence.then(Lowercase),
            Self::StripAccents => sequence.then(StripAccents),
            Self::Nmt => sequence.then(Nmt),
            Self::Bert { lowercase } => {
                sequence.then(BertNormalizer::new(true, true, None, lowercase))
            }
            Self::Named(rules) => sequence.then(Precompiled::new(charsmap(rules))),
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
        let mut charsmaps: Vec<(NamedRules, Charsmap)> = Vec::new();
        for rule in &rules {
            if let Rule::Named(named) = *rule
                && charsmaps.iter().all(|(known, _)| *known != named)
            {
                charsmaps.push((named, named.charsmap()));
            }
        }
        let mut preparation = Self {
            name: names_of(&rules),
            rules,
            target,
            marks_spaces,
            tidies_spaces: false,
            charsmaps,
            older: None,
            normalizer: None,
            splitter: split,
        };
        preparation.normalizer = preparation.new_normalizer();
        Ok(preparation)
    }

    fn new_normalizer(&self) -> Option<Box<dyn Normalize>> {
        if self.target == Target::SentencePiece {
            let mut spaces = SpaceOptions::default();
            spaces.add_dummy_prefix = self.marks_spaces;
            spaces.remove_extra_whitespaces = self.tidies_spaces;
            spaces.escape_whitespaces = self.marks_spaces;
            let normalizer = SentencePieceNormalizer::new(self.charsmap().cloned());
            return Some(Box::new(normalizer.with_spaces(spaces)));
        }
        let charsmap = |named| self.charsmap_of(named).clone();
        let mut sequence = self
            .rules
            .iter()
            .fold(Sequence::new(), |sequence, rule| rule.add_to(sequence, charsmap));
        if self.marks_spaces {
            sequence = sequence.then(Prepend::new(MARK)).then(Replace::literal(" ", MARK));
        }
        (!sequence.is_empty()).then(|| sequence.boxed())
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
        self.normalizer = self.new_normalizer();
        Ok(self)
    }

    /// Whether the rules are, one by one, those of a SentencePiece model, whose compiled form this is
    /// (empty if it has none).
    #[must_use]
    pub fn has_rules(&self, charsmap: &[u8]) -> bool {
        match self.charsmap() {
            None => charsmap.is_empty(),
            Some(own) => Charsmap::from_bytes(charsmap)
                .is_ok_and(|file| file == *own || file.rules() == own.rules()),
        }
    }

    /// This preparation with the rules of an older SentencePiece model, by the name that it has for
    /// them and in their compiled form, which is empty if there are none. Models carry the rules of
    /// the Unicode version of their time.
    ///
    /// # Errors
    ///
    /// If the format is not SentencePiece's, or the rules cannot be read.
    pub fn with_rules_of(mut self, name: &str, charsmap: &[u8]) -> Result<Self, LiftError> {
        if self.target != Target::SentencePiece {
            return Err(LiftError::new("only a SentencePiece model has compiled rules"));
        }
        let older = match charsmap {
            [] => None,
            bytes => Some(Charsmap::from_bytes(bytes).map_err(|e| LiftError::new(e.to_string()))?),
        };
        (self.rules, self.name, self.older) = (Vec::new(), name.to_owned(), older);
        self.normalizer = self.new_normalizer();
        Ok(self)
    }

    /// The rules of a SentencePiece model, if it has any.
    pub(super) fn charsmap(&self) -> Option<&Charsmap> {
        if self.older.is_some() {
            return self.older.as_ref();
        }
        match self.rules[..] {
            [Rule::Named(named)] => Some(self.charsmap_of(named)),
            _ => None,
        }
    }

    fn charsmap_of(&self, named: NamedRules) -> &Charsmap {
        let known = self.charsmaps.iter().find(|(known, _)| *known == named);
        &known.expect("the rules of all names were compiled").1
    }

    /// The normalizers as parts of a tokenizer.json.
    pub(super) fn documents(&self) -> Vec<doc::Normalizer> {
        self.rules.iter().map(|&rule| self.document(rule)).collect()
    }

    fn document(&self, rule: Rule) -> doc::Normalizer {
        match rule {
            Rule::Form(Form::Nfc) => doc::Normalizer::Nfc,
            Rule::Form(Form::Nfd) => doc::Normalizer::Nfd,
            Rule::Form(Form::Nfkc) => doc::Normalizer::Nfkc,
            Rule::Form(Form::Nfkd) => doc::Normalizer::Nfkd,
            Rule::Lowercase => doc::Normalizer::Lowercase,
            Rule::StripAccents => doc::Normalizer::StripAccents,
            Rule::Nmt => doc::Normalizer::Nmt,
            Rule::Bert { lowercase } => doc::Normalizer::Bert(doc::BertNormalizer {
                clean_text: true,
                handle_chinese_chars: true,
                strip_accents: None,
                lowercase,
            }),
            Rule::Named(rules) => {
                doc::Normalizer::Precompiled { charsmap: self.charsmap_of(rules).to_bytes() }
            }
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

    /// What becomes of spaces, where they are marked.
    #[must_use]
    pub fn spaces(&self) -> Option<Spaces> {
        let kept = if self.tidies_spaces { Spaces::Tidy } else { Spaces::Kept };
        self.marks_spaces.then_some(kept)
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
    pub fn tokenizer(&self, model: Box<dyn Model>) -> Result<Tokenizer, PartsError> {
        let mut parts = Parts::new(model);
        parts.normalizer = self.new_normalizer();
        if self.target != Target::SentencePiece {
            let splitter = pretok::from_spec(self.splitter.spec());
            let splitter = splitter.expect("it was made from this specification before");
            parts.steps = vec![PieceStep::Split(Box::new(splitter))];
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
