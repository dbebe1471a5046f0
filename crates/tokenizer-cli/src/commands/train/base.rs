//! `--continue`: the model that is trained on top of.

use std::path::Path;

use bpe::{Bpe, EndOfWord, Rules};
use formats::tokenizer_json::TokenizerJson;
use tokenizer::lift::{Frame, Spaces, Target};
use tokenizer::{Document, LoadOptions, Tokenizer};
use tokenizer_core::{PieceCounts, TokenId, TokenKind, Vocab};
use unigram::{Compat, Unigram};
use wordpiece::WordPiece;

use super::model::Model;
use super::{Algorithm, EndOfWordAs, Train, Unit};
use crate::failure::Failure;
use crate::model::{load_failure, read};
use crate::text_rules::TextRules;

/// What is continued, and how its file normalizes and cuts text.
pub(super) struct Base {
    pub(super) model: Model,
    pub(super) rules: TextRules,
}

impl Train {
    /// The model to continue, if its file cuts text as this training does.
    pub(super) fn base(&self, target: Target) -> Result<Option<Base>, Failure> {
        let Some(path) = &self.base else { return Ok(None) };
        let (_, document) = read(path)?;
        if let Document::TokenizerJson(document) = document {
            return self.framed(path, *document, target).map(Some);
        }
        let loaded = document
            .lower(&LoadOptions::default())
            .map_err(|error| load_failure(path, &document, &error))?;
        let model = self.model_of(path, &loaded)?;
        self.check_like(path, &model)?;
        self.check_room(path, &model)?;
        let mut preparation = self.preparation(target)?;
        if let (Document::SentencePiece(document), Target::SentencePiece) = (&document, target) {
            let spec = document.normalizer();
            if spec.remove_extra_whitespaces() {
                let tidy = preparation.with_marked_spaces(Spaces::Tidy);
                preparation = tidy.map_err(Failure::usage)?;
            }
            if self.normalizer.is_none() {
                let name = spec.name.as_deref().unwrap_or("user_defined");
                let same = preparation.with_rules_of(name, spec.charsmap());
                preparation = same.map_err(|error| Failure::file(path, error))?;
            } else if !preparation.has_rules(spec.charsmap()) {
                return Err(other(path));
            }
        }
        let trained = preparation.tokenizer(model.clone().boxed()).map_err(Failure::usage)?;
        match PROBES.iter().all(|text| loaded.ids(text) == trained.ids(text)) {
            true => Ok(Some(Base { model, rules: TextRules::named(preparation) })),
            false => Err(other(path)),
        }
    }

    /// A tokenizer.json to go on from, all of which stays but the model.
    fn framed(
        &self,
        path: &Path,
        document: TokenizerJson,
        target: Target,
    ) -> Result<Base, Failure> {
        if target != Target::TokenizerJson {
            return Err(Failure::usage(format!(
                "{}: a tokenizer.json goes on as one (`tok convert` makes others of it)",
                path.display()
            )));
        }
        let frame = Frame::of(document).map_err(|error| Failure::file(path, error))?;
        let model = self.model_of(path, frame.tokenizer())?;
        self.check_like(path, &model)?;
        self.check_room(path, &model)?;
        let rules = TextRules::File(Box::new(frame));
        if self.pretok.is_some() || self.normalizer.is_some() {
            let named = TextRules::named(self.preparation(target)?);
            if pieces_of_probes(&rules) != pieces_of_probes(&named) {
                return Err(other(path));
            }
        }
        Ok(Base { model, rules })
    }

    /// The model of a tokenizer, if it is of this algorithm.
    fn model_of(&self, path: &Path, loaded: &Tokenizer) -> Result<Model, Failure> {
        let any = loaded.model().as_any();
        let model = if let Some(model) = any.and_then(|any| any.downcast_ref::<Bpe>()) {
            Model::Bpe(model.clone())
        } else if let Some(model) = any.and_then(|any| any.downcast_ref::<WordPiece>()) {
            Model::WordPiece(model.clone())
        } else if let Some(model) = any.and_then(|any| any.downcast_ref::<Unigram>()) {
            Model::Unigram(model.clone())
        } else {
            return Err(Failure::file(path, "--continue takes bpe, wordpiece or unigram"));
        };
        let algorithm = match model {
            Model::Bpe(_) => Algorithm::Bpe,
            Model::WordPiece(_) => Algorithm::Wordpiece,
            _ => Algorithm::Unigram,
        };
        match algorithm == self.algorithm {
            true => Ok(model),
            false => Err(Failure::file(
                path,
                format!(
                    "is a {} tokenizer, which `tok train {}` cannot continue",
                    algorithm.name(),
                    self.algorithm.name()
                ),
            )),
        }
    }

    /// Refuses options that the model decides otherwise.
    fn check_like(&self, path: &Path, model: &Model) -> Result<(), Failure> {
        let differs = |option: &str, has: String| {
            Err(Failure::usage(format!("{}: {option} is not what it has: {has}", path.display())))
        };
        let vocab = model.vocab();
        let (unk, prefix, by_bytes) = match model {
            Model::Bpe(model) => {
                let options = model.options();
                let end = self.end_of_word.clone().map(|mark| match self.end_of_word_as {
                    Some(EndOfWordAs::Suffix) => EndOfWord::Suffix(mark),
                    None | Some(EndOfWordAs::Symbol) => EndOfWord::Symbol(mark),
                });
                if end.is_some() && end != options.end_of_word {
                    return differs("--end-of-word", format!("{:?}", options.end_of_word));
                }
                let prefix = options.continuing_prefix.clone().map(String::into_bytes);
                (options.unk, prefix, options.alphabet == bpe::Alphabet::Byte)
            }
            Model::WordPiece(model) => {
                let options = model.options();
                let by_bytes = options.unit == wordpiece::Unit::Byte;
                (model.unk(), Some(options.continuing_prefix.clone()), by_bytes)
            }
            Model::Unigram(model) => (model.unknown(), None, false),
            Model::Chars(_) | Model::Words(_) | Model::Bytes(_) => return Ok(()),
        };
        let shown = |bytes: Option<&[u8]>| {
            bytes.map_or("none".into(), |bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let differs_in_unit = self.unit.is_some_and(|unit| (unit == Unit::Byte) != by_bytes);
        if differs_in_unit && self.algorithm != Algorithm::Unigram {
            let unit = if by_bytes { "byte" } else { "char" };
            return Err(Failure::usage(format!("{}: give --unit {unit}", path.display())));
        }
        let given = self.continuing_prefix.as_ref().map(String::as_bytes);
        if given.is_some() && given != prefix.as_deref() {
            return differs("--continuing-prefix", shown(prefix.as_deref()));
        }
        let unk = unk.and_then(|unk| vocab.bytes(unk));
        let given = self.unk.as_ref().map(String::as_bytes);
        if given.is_some() && given != unk {
            return differs("--unk", shown(unk));
        }
        if self.byte_fallback && vocab.byte(0).is_none() {
            return differs("--byte-fallback", "none".to_owned());
        }
        if !self.user_defined.is_empty() {
            return Err(Failure::usage("--continue has no --user-defined: it changes old texts"));
        }
        self.check_ids(path, vocab, &shown(unk))
    }

    /// Refuses ids that tokens do not have: those of the model stay, new ones get the next.
    fn check_ids(&self, path: &Path, vocab: &Vocab, unk: &str) -> Result<(), Failure> {
        for special in self.special_tokens(unk)? {
            let Some(id) = special.id else { continue };
            let has = vocab.iter().find(|(_, bytes, kind)| {
                *kind != TokenKind::Byte && *bytes == special.token.as_bytes()
            });
            match has {
                Some((TokenId(has), ..)) if has == id => {}
                Some((has, ..)) => {
                    return Err(Failure::usage(format!(
                        "{}: {} has id {has}, which stays: {id} is not possible",
                        path.display(),
                        special.token
                    )));
                }
                None => {
                    return Err(Failure::usage(format!(
                        "{}: a new token gets the next id: {id} cannot be chosen for {}",
                        path.display(),
                        special.token
                    )));
                }
            }
        }
        Ok(())
    }

    /// Refuses sizes that leave no room for anything new.
    fn check_room(&self, path: &Path, model: &Model) -> Result<(), Failure> {
        let path = path.display();
        let old = model.vocab_len();
        if let Some(&size) = self.sizes().first()
            && size <= old
        {
            return Err(Failure::usage(format!(
                "{path} has {old} tokens already: a --vocab-size of {size} leaves nothing to train, \
                 it needs more than {old}"
            )));
        }
        if let (Some(merges), Model::Bpe(model)) = (self.merges, model)
            && let Rules::Merges(old) = model.rules()
            && merges <= old.len()
        {
            let old = old.len();
            return Err(Failure::usage(format!(
                "{path} has {old} merges already: --merges {merges} leaves nothing to train, it \
                 needs more than {old}"
            )));
        }
        if let (Model::Unigram(model), Ok(target)) = (model, self.target()) {
            let is_json = model.options().compat == Compat::HuggingFace;
            if is_json != (target == Target::TokenizerJson) {
                let ending = if is_json { ".json" } else { ".model" };
                return Err(Failure::usage(format!(
                    "{path}: scores are summed as in its format: write a {ending} (`tok convert` \
                     makes others of it)"
                )));
            }
        }
        Ok(())
    }
}

/// How rules normalize and cut texts that show what they are.
fn pieces_of_probes(rules: &TextRules) -> Option<PieceCounts> {
    let mut counter = rules.counter();
    counter.add(&PROBES).ok()?;
    counter.finish().ok()
}

fn other(path: &Path) -> Failure {
    Failure::usage(format!(
        "{}: cuts text in another way than --pretok and --normalizer say",
        path.display()
    ))
}

/// Texts on which a splitter and a normalizer show what they are.
const PROBES: [&str; 4] = [
    "The cat's 12345 mats,\u{a0}isn't  it?\n\n  def f(x):\treturn x+=1; HELLO camelCase",
    "\u{212B}ngstr\u{f6}m \u{FB01}ne \u{65E5}\u{672C}\u{8A9E}\u{3002}\u{C548}\u{B155} e\u{301}a",
    " leading and trailing ",
    "''re I'LL a.b.c http://x.org/?q=1&r=2\r\n\u{1F468}\u{200D}\u{1F469}",
];
