//! `tok inspect`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use formats::tokenizer_json as doc;
use pretok::{Engine, RegexOptions, RegexSplitter};
use serde_json::{Map, Value, json};
use tokenizer::{Document, TiktokenEncoding};
use tokenizer_core::TokenKind;

use crate::Mode;
use crate::failure::Failure;
use crate::model;
use crate::output;

#[derive(Args)]
#[command(after_help = "Example:\n  tok inspect tokenizer.json --json")]
pub(crate) struct Inspect {
    /// A vocabulary file of any format
    file: PathBuf,
}

impl Inspect {
    pub(crate) fn run(self, mode: Mode) -> Result<(), Failure> {
        let (bytes, document) = model::read(&self.file)?;
        let mut facts = Map::new();
        facts.insert("path".into(), self.file.display().to_string().into());
        facts.insert("bytes".into(), bytes.len().into());
        describe(&document, &bytes, &mut facts);
        let facts = Value::Object(facts);
        if mode.json {
            return output::print_json(&facts);
        }
        let mut text = String::new();
        for (key, value) in facts.as_object().into_iter().flatten() {
            show(key, value, &mut text);
        }
        output::print(text.as_bytes())
    }
}

/// One fact for people: lists a line each, the first ones of long lists.
fn show(key: &str, value: &Value, text: &mut String) {
    const MOST: usize = 12;
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value {
        Value::Array(items) => {
            let _ = writeln!(text, "{key}: {}", items.len());
            for item in items.iter().take(MOST) {
                let _ = writeln!(text, "  {}", plain(item));
            }
            if items.len() > MOST {
                let _ = writeln!(text, "  and {} more (--json shows all)", items.len() - MOST);
            }
        }
        other => {
            let mut shown = plain(other);
            if shown.chars().count() > 400 {
                shown = shown.chars().take(400).chain(['…']).collect();
            }
            let _ = writeln!(text, "{key}: {shown}");
        }
    }
}

fn describe(document: &Document, bytes: &[u8], facts: &mut Map<String, Value>) {
    let mut fact = |key: &str, value: Value| {
        facts.insert(key.to_owned(), value);
    };
    let format = match document {
        Document::Gpt2(_) => "vocab.json with merges.txt".to_owned(),
        document => document.format().to_string(),
    };
    fact("format", format.into());
    match document {
        Document::Gpt2(files) => {
            fact("model", "BPE".into());
            fact("vocab_size", files.vocab.len().into());
            fact("merges", files.merges.len().into());
        }
        Document::TokenizerJson(document) => {
            fact("model", document.model.type_name().into());
            fact("vocab_size", document.model.len().into());
            match &document.model {
                doc::Model::Bpe(model) => {
                    fact("merges", model.merges.len().into());
                    fact("byte_fallback", model.byte_fallback.into());
                    fact("ignore_merges", model.ignore_merges.into());
                    fact("dropout", model.dropout.into());
                    fact("unk_token", model.unk_token.clone().into());
                    fact("end_of_word_suffix", model.end_of_word_suffix.clone().into());
                    fact("continuing_prefix", model.continuing_subword_prefix.clone().into());
                }
                doc::Model::WordPiece(model) => {
                    fact("unk_token", model.unk_token.clone().into());
                    fact("continuing_prefix", model.continuing_subword_prefix.clone().into());
                    fact("max_input_chars_per_word", model.max_input_chars_per_word.into());
                }
                doc::Model::WordLevel(model) => fact("unk_token", model.unk_token.clone().into()),
                doc::Model::Unigram(model) => {
                    fact("unk_id", model.unk_id.into());
                    fact("byte_fallback", model.byte_fallback.into());
                }
            }
            let added = document.resolved_added_tokens();
            let tokens = added.iter().map(
                |(id, token)| json!({"id": id, "content": token.content, "special": token.special}),
            );
            fact("added_tokens", tokens.collect::<Vec<_>>().into());
            // As the file has them.
            let file: Value = serde_json::from_slice(bytes).unwrap_or_default();
            for part in [
                "normalizer",
                "pre_tokenizer",
                "post_processor",
                "decoder",
                "truncation",
                "padding",
            ] {
                if let Some(value) = file.get(part).filter(|value| !value.is_null()) {
                    fact(part, value.clone());
                }
            }
            let mut engines = Vec::new();
            if let Some(pre_tokenizer) = &document.pre_tokenizer {
                splitters(pre_tokenizer, &mut engines);
            }
            fact("splitters", engines.into());
        }
        Document::SentencePiece(document) => {
            let model = document.model_type().map_or_else(|e| e.to_string(), |t| format!("{t:?}"));
            fact("model", model.into());
            fact("vocab_size", document.pieces.len().into());
            let of_kind = |kind| document.pieces.iter().filter(|p| p.kind == kind).count();
            fact("byte_pieces", of_kind(TokenKind::Byte).into());
            fact("unused_pieces", of_kind(TokenKind::Unused).into());
            let special = document.pieces.iter().enumerate().filter(|(_, piece)| {
                matches!(
                    piece.kind,
                    TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined
                )
            });
            let special = special.map(|(id, piece)| {
                json!({"id": id, "content": piece.piece, "kind": format!("{:?}", piece.kind)})
            });
            fact("special_tokens", special.collect::<Vec<_>>().into());
            let normalizer = document.normalizer();
            fact(
                "normalizer",
                json!({
                    "name": normalizer.name,
                    "charsmap_bytes": normalizer.charsmap().len(),
                    "add_dummy_prefix": normalizer.add_dummy_prefix(),
                    "remove_extra_whitespaces": normalizer.remove_extra_whitespaces(),
                    "escape_whitespaces": normalizer.escape_whitespaces(),
                }),
            );
            let info = document.training_info();
            fact("training_info", info.iter().map(ToString::to_string).collect::<Vec<_>>().into());
        }
        Document::Tiktoken(ranks) => {
            fact("model", "BPE by ranks".into());
            fact("vocab_size", ranks.len().into());
            let encoding = TiktokenEncoding::of_ranks(ranks);
            fact("encoding", encoding.map(TiktokenEncoding::name).into());
            if let Some(encoding) = encoding {
                fact(
                    "splitters",
                    splitter_facts(encoding.pattern().stages()[0], RegexOptions::default()).into(),
                );
                let special = encoding.special_tokens();
                let special = special.iter().map(|(name, id)| json!({"id": id, "content": name}));
                fact("special_tokens", special.collect::<Vec<_>>().into());
            }
        }
        Document::Tekken(document) => {
            fact("model", "BPE by ranks".into());
            fact(
                "vocab_size",
                (document.tokens().count() + document.special_tokens().len()).into(),
            );
            fact("splitters", splitter_facts(&document.pattern, RegexOptions::default()).into());
            let tokens = document.special_tokens();
            let special = tokens.iter().enumerate();
            let special = special.map(|(id, token)| json!({"id": id, "content": token.token_str}));
            fact("special_tokens", special.collect::<Vec<_>>().into());
        }
        Document::VocabTxt(document) => {
            fact("model", "WordPiece".into());
            fact("vocab_size", document.tokens().len().into());
            let case = format!("{:?}", tokenizer::BertCase::of(document)).to_lowercase();
            fact("case", case.into());
            fact("shadowed_tokens", document.shadowed().len().into());
            let ids = document.ids();
            let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
                .iter()
                .filter_map(|token| ids.get(token).map(|id| json!({"id": id, "content": token})));
            fact("special_tokens", special.collect::<Vec<_>>().into());
        }
        Document::Gguf(document) => {
            fact("model", document.model.clone().into());
            fact("vocab_size", document.tokens.len().into());
            fact("pre", document.pre.clone().into());
            let special = document.special_ids.iter().map(|(name, id)| {
                let content = document.tokens.get(*id as usize);
                json!({"id": id, "name": name, "content": content})
            });
            fact("special_tokens", special.collect::<Vec<_>>().into());
        }
        // A format that this program does not know yet has at least a name.
        _ => {}
    }
}

fn splitters(pre_tokenizer: &doc::PreTokenizer, found: &mut Vec<Value>) {
    match pre_tokenizer {
        doc::PreTokenizer::Sequence(steps) => {
            steps.iter().for_each(|step| splitters(step, found));
        }
        doc::PreTokenizer::Split { pattern: doc::Pattern::Regex(pattern), .. } => {
            found.extend(splitter_facts(pattern, RegexOptions::oniguruma()));
        }
        doc::PreTokenizer::ByteLevel(byte_level) if byte_level.use_regex => {
            let pattern = pretok::Pattern::Gpt2.stages()[0];
            found.extend(splitter_facts(pattern, RegexOptions::default()));
        }
        _ => {}
    }
}

/// A pattern, its published name, and what finds its matches.
fn splitter_facts(pattern: &str, options: RegexOptions) -> Vec<Value> {
    let engine = match RegexSplitter::with_options(pattern, options) {
        Ok(splitter) => match splitter.engine() {
            Engine::Scanner => "scanner".to_owned(),
            other => other.to_string(),
        },
        Err(error) => format!("none: {error}"),
    };
    let name = pretok::Pattern::from_stages(&[pattern]).map(pretok::Pattern::name);
    vec![json!({"pattern": pattern, "name": name, "engine": engine})]
}
