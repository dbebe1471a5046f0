//! `--continue`: the model that is trained on top of.

use std::path::Path;

use bpe::{Bpe, EndOfWord, Rules};
use formats::tokenizer_json::TokenizerJson;
use serde_json::Value;
use tokenizer::lift::{self, Preparation, Spaces, Target};
use tokenizer::{Document, LoadOptions, Tokenizer};
use tokenizer_core::{Model as _, TokenId, TokenKind, Vocab};
use unigram::{Compat, Unigram};
use wordpiece::WordPiece;

use super::model::Model;
use super::{Algorithm, EndOfWordAs, Train, Unit};
use crate::failure::Failure;
use crate::model::{load_failure, read};

/// What is continued, and how its file prepares text.
pub(super) struct Base {
    pub(super) model: Model,
    pub(super) preparation: Preparation,
}

impl Train {
    /// The model to continue, if its file cuts text as this training does.
    pub(super) fn base(&self, target: Target) -> Result<Option<Base>, Failure> {
        let Some(path) = &self.base else { return Ok(None) };
        let (bytes, document) = read(path)?;
        let loaded = document
            .lower(&LoadOptions::default())
            .map_err(|error| load_failure(path, &document, &error))?;
        let mut model = self.model_of(path, &loaded)?;
        if let (Model::Bpe(bpe), Document::TokenizerJson(document)) = (&model, &document) {
            model = Model::Bpe(with_unknown(bpe, document));
        }
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
        if let Document::TokenizerJson(_) = document {
            self.check_parts(path, &bytes, &model, &preparation)?;
        }
        let trained = preparation.tokenizer(model.clone().boxed()).map_err(Failure::usage)?;
        match PROBES.iter().all(|text| loaded.ids(text) == trained.ids(text)) {
            true => Ok(Some(Base { model, preparation })),
            false => Err(other(path)),
        }
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
        if by_bytes != (self.units() == Unit::Byte) && self.algorithm != Algorithm::Unigram {
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

    /// Refuses a tokenizer.json whose parts are not, word for word, what ours would be.
    fn check_parts(
        &self,
        path: &Path,
        bytes: &[u8],
        model: &Model,
        preparation: &Preparation,
    ) -> Result<(), Failure> {
        let file: Value = serde_json::from_slice(bytes).map_err(|e| Failure::file(path, e))?;
        let target = Target::TokenizerJson;
        let (normalizer, splitter) =
            (self.normalizer_name(preparation.target()), preparation.splitter().spec());
        let preparation = Preparation::new(normalizer, splitter, target).map_err(Failure::usage)?;
        let own = lift::tokenizer_json(model.learned(), &preparation).map_err(Failure::usage)?;
        let own = own.to_json(formats::Layout::Compact).map_err(Failure::usage)?;
        let own: Value = serde_json::from_str(&own).map_err(Failure::usage)?;
        let differs = |key: &str| file.get(key).is_some_and(|part| *part != own[key]);
        match differs("pre_tokenizer") || differs("normalizer") {
            true => Err(other(path)),
            false => Ok(()),
        }
    }
}

/// The model with its unknown token as one, which is an ordinary token where a file is read, if the
/// file says that it is special and no merge takes or makes it.
fn with_unknown(model: &Bpe, document: &TokenizerJson) -> Bpe {
    let (Some(unk), Rules::Merges(merges)) = (model.options().unk, model.rules()) else {
        return model.clone();
    };
    let is_special = document.added_tokens.iter().any(|token| token.id == unk.0 && token.special);
    let is_part = merges.iter().any(|&(left, right)| left == unk || right == unk);
    if !is_special || is_part {
        return model.clone();
    }
    let mut vocab = Vocab::builder();
    for (id, bytes, kind) in model.vocab().iter() {
        let kind = if id == unk { TokenKind::Unknown } else { kind };
        if vocab.push(bytes, kind).is_err() {
            return model.clone();
        }
    }
    let marked = Bpe::from_merges(vocab.build(), merges.clone(), model.options().clone());
    marked.unwrap_or_else(|_| model.clone())
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
