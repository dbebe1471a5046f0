//! From a trained model to a file that is proven to encode like it.

use std::path::Path;

use formats::Layout;
use formats::sentencepiece::SentencePieceModel;
use formats::tiktoken;
use formats::tokenizer_json::TokenizerJson;
use tokenizer::lift::{self, Target};
use tokenizer::{LoadOptions, RanksSetup, Tokenizer};
use tokenizer_core::TokenKind;

use super::Train;
use super::model::Model;
use crate::failure::Failure;
use crate::model::chain;
use crate::output::AtomicFile;
use crate::text_rules::TextRules;

/// A file that was written.
pub(super) struct Written {
    pub(super) format: &'static str,
    pub(super) bytes: usize,
    /// How many bytes of text the file was compared with the model on.
    pub(super) compared: usize,
}

impl Train {
    /// Writes a model, after reading the file back and comparing it with the model on `sample`.
    pub(super) fn write(
        &self,
        model: Model,
        path: &Path,
        rules: &TextRules,
        sample: &[String],
    ) -> Result<Written, Failure> {
        let (format, file) = self.document(&model, rules)?;
        let mut options = LoadOptions::default();
        if rules.target() == Target::Tiktoken {
            let pattern = lift::single_pattern(rules.splitter_name()).map_err(Failure::usage)?;
            options.ranks = Some(RanksSetup { pattern, special_tokens: Vec::new() });
        }
        let loaded = Tokenizer::from_file(&file, &options)
            .map_err(|e| Failure::file(path, format!("would not be read back: {}", chain(&e))))?;
        let trained = rules.tokenizer(model.boxed())?;
        let mut compared = 0;
        let (mut in_file, mut in_memory) = (loaded.session(), trained.session());
        let (mut expected, mut ids) = (Vec::new(), Vec::new());
        for text in sample {
            expected.clear();
            ids.clear();
            in_memory.ids_into(text, &mut expected);
            in_file.ids_into(text, &mut ids);
            if ids != expected {
                return Err(differs(path, text, &loaded, &trained));
            }
            compared += text.len();
        }
        AtomicFile::write(path, &file)?;
        Ok(Written { format, bytes: file.len(), compared })
    }

    fn document(
        &self,
        model: &Model,
        rules: &TextRules,
    ) -> Result<(&'static str, Vec<u8>), Failure> {
        let learned = model.learned();
        let preparation = match rules {
            TextRules::Named(preparation) => preparation,
            TextRules::File(frame) => {
                return json(&frame.with_model(learned).map_err(Failure::usage)?);
            }
        };
        Ok(match preparation.target() {
            Target::TokenizerJson => {
                return json(&lift::tokenizer_json(learned, preparation).map_err(Failure::usage)?);
            }
            Target::SentencePiece => {
                let mut document =
                    lift::sentencepiece(learned, preparation).map_err(Failure::usage)?;
                self.note_options(&mut document);
                ("SentencePiece model", document.to_bytes().map_err(Failure::usage)?)
            }
            Target::Tiktoken => {
                let ranks = lift::tiktoken(learned, preparation).map_err(Failure::usage)?;
                ("tiktoken ranks", tiktoken::to_text(&ranks).into_bytes())
            }
            Target::VocabTxt => {
                let document = lift::vocab_txt(learned, preparation).map_err(Failure::usage)?;
                ("vocab.txt", document.to_text().map_err(Failure::usage)?.into_bytes())
            }
        })
    }

    /// Says in a SentencePiece model which tokens have a role and which pieces there may be.
    fn note_options(&self, document: &mut SentencePieceModel) {
        let mut ids = Vec::new();
        for (id, piece) in document.pieces.iter().enumerate() {
            if piece.kind == TokenKind::Control {
                ids.push((piece.piece.to_owned(), id as i32));
            }
        }
        let Some(trainer) = &mut document.trainer_spec else { return };
        let id_of = |piece: &str| ids.iter().find(|(name, _)| name == piece).map(|&(_, id)| id);
        let roles = &self.roles;
        for (name, id, piece) in [
            (&roles.bos, &mut trainer.bos_id, &mut trainer.bos_piece),
            (&roles.eos, &mut trainer.eos_id, &mut trainer.eos_piece),
            (&roles.pad, &mut trainer.pad_id, &mut trainer.pad_piece),
        ] {
            if let Some(name) = name {
                *id = id_of(name).or(Some(-1));
                *piece = Some(name.clone());
                trainer.control_symbols.retain(|symbol| symbol != name);
            }
        }
        if let Some(rules) = self.piece_rules() {
            trainer.max_sentencepiece_length = i32::try_from(rules.max_chars).ok();
            trainer.split_by_unicode_script = Some(rules.script.is_some());
            trainer.split_by_number = Some(rules.split_by_number);
            trainer.split_by_whitespace = Some(rules.split_by_whitespace);
            trainer.split_digits = Some(rules.split_digits);
            trainer.allow_whitespace_only_pieces = Some(rules.whitespace_only);
        }
    }
}

fn json(document: &TokenizerJson) -> Result<(&'static str, Vec<u8>), Failure> {
    let mut json = document.to_json(Layout::Pretty).map_err(Failure::usage)?;
    json.push('\n');
    Ok(("tokenizer.json", json.into_bytes()))
}

/// Says where the file and the trained model part ways.
fn differs(path: &Path, text: &str, loaded: &Tokenizer, trained: &Tokenizer) -> Failure {
    // The first line that shows it is easier to look at than the whole document.
    let line = text.split_inclusive('\n').find(|line| loaded.ids(line) != trained.ids(line));
    let shown: String = line.unwrap_or(text).chars().take(60).collect();
    Failure::input(format!(
        "{}: not written, for the file would not encode as the trained model does: {shown:?}",
        path.display()
    ))
}
