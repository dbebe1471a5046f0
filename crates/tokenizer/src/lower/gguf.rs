//! The vocabulary of a GGUF file, as llama.cpp runs it, by way of the document that it was made
//! from.

use formats::gguf::GgufVocab;
use formats::sentencepiece::{ModelType, NormalizerSpec, SentencePieceModel, TrainerSpec};
use formats::tokenizer_json as doc;
use formats::vocab_txt::VocabTxt;
use formats::{IdMap, Strings};
use pretok::Pattern;
use tokenizer_core::TokenKind;

use super::{BertCase, LowerError};
use crate::load::Document;
use crate::pipeline::Tokenizer;

impl Tokenizer {
    /// The tokenizer of a GGUF file.
    ///
    /// # Errors
    ///
    /// If the model or the way to split text (`tokenizer.ggml.pre`) is none that is known exactly:
    /// never a guess.
    pub fn from_gguf(document: &GgufVocab) -> Result<Self, LowerError> {
        match self::document(document)? {
            Document::TokenizerJson(document) => Self::from_tokenizer_json(&document),
            Document::SentencePiece(document) => Self::from_sentencepiece(&document),
            Document::VocabTxt(document) => {
                let case = BertCase::of(&document);
                Self::from_vocab_txt(&document, case)
            }
            other => unreachable!("GGUF is made of no {}", other.format()),
        }
    }
}

/// The document that the vocabulary was made from: a tokenizer.json, a SentencePiece model or a
/// vocab.txt.
pub(crate) fn document(document: &GgufVocab) -> Result<Document, LowerError> {
    Ok(match document.model.as_str() {
        "gpt2" => Document::TokenizerJson(Box::new(byte_level(document)?)),
        "llama" => Document::SentencePiece(Box::new(sentencepiece(document, ModelType::Bpe)?)),
        "t5" => Document::SentencePiece(Box::new(sentencepiece(document, ModelType::Unigram)?)),
        "bert" => Document::VocabTxt(bert(document)),
        other => {
            return Err(LowerError::new(
                "tokenizer.ggml.model",
                format!("{other:?} is none of gpt2, llama, t5, bert"),
            ));
        }
    })
}

fn kind(document: &GgufVocab, id: usize) -> TokenKind {
    match &document.token_types {
        Some(kinds) => kinds.get(id).copied().unwrap_or_default(),
        None => TokenKind::Normal,
    }
}

/// The pattern behind a name that llama.cpp gives to a way of splitting.
fn pattern(pre: &str) -> Option<Pattern> {
    Some(match pre {
        "gpt-2" | "phi-2" | "jina-es" | "jina-de" | "mpt" | "olmo" | "jais" | "trillion"
        | "granite-docling" => Pattern::Gpt2,
        "llama-bpe" | "llama3" | "llama-v3" | "falcon3" | "falcon-h1" | "pixtral" | "smaug-bpe"
        | "midm-2.0" | "lfm2" => Pattern::Llama3,
        "qwen2" | "deepseek-r1-qwen" | "megrez" | "hunyuan" => Pattern::Qwen2,
        "deepseek-v3" | "hunyuan-dense" => Pattern::DeepSeekV3,
        "tekken" => Pattern::Tekken,
        "gpt-4o" | "llama4" => Pattern::O200k,
        "kimi-k2" => Pattern::KimiK2,
        _ => return None,
    })
}

fn byte_level(document: &GgufVocab) -> Result<doc::TokenizerJson, LowerError> {
    let pre = document.pre.as_deref().unwrap_or("default");
    let pattern = pattern(pre).ok_or_else(|| {
        LowerError::new(
            "tokenizer.ggml.pre",
            format!("{pre:?} names no way of splitting that is known exactly"),
        )
    })?;
    let vocab = IdMap::<str>::from_pairs(document.tokens.iter().zip(0..))
        .map_err(|error| LowerError::caused("tokenizer.ggml.tokens", error))?;
    let merges = document
        .resolve_merges()
        .map_err(|error| LowerError::caused("tokenizer.ggml.merges", error))?;
    let model = doc::Bpe {
        vocab,
        merges,
        ignore_merges: pattern == Pattern::Llama3,
        ..doc::Bpe::default()
    };
    let mut json = doc::TokenizerJson::new(doc::Model::Bpe(model));
    let byte_level =
        doc::ByteLevel { add_prefix_space: false, trim_offsets: true, use_regex: false };
    let split = |stage: &&str| doc::PreTokenizer::Split {
        pattern: doc::Pattern::Regex((*stage).to_owned()),
        behavior: doc::SplitBehavior::Isolated,
        invert: false,
    };
    let mut steps: Vec<_> = pattern.stages().iter().map(split).collect();
    steps.push(doc::PreTokenizer::ByteLevel(byte_level));
    json.pre_tokenizer = Some(doc::PreTokenizer::Sequence(steps));
    json.decoder = Some(doc::Decoder::ByteLevel(byte_level));
    json.added_tokens = document
        .tokens
        .iter()
        .enumerate()
        .filter_map(|(id, token)| {
            let special = match kind(document, id) {
                TokenKind::Control | TokenKind::Unknown => true,
                TokenKind::UserDefined => false,
                _ => return None,
            };
            Some(doc::AddedToken {
                id: id as u32,
                content: token.to_owned(),
                single_word: false,
                lstrip: false,
                rstrip: false,
                normalized: false,
                special,
            })
        })
        .collect();
    json.post_processor = template(document);
    Ok(json)
}

/// The tokens that the file says to add at the beginning and the end.
fn template(document: &GgufVocab) -> Option<doc::PostProcessor> {
    let wanted = |flag: &str, name: &str| {
        let id = *document.special_ids.get(name)?;
        let token = document.tokens.get(id as usize)?;
        document.flags.get(flag).copied().unwrap_or(false).then(|| (token.to_owned(), id))
    };
    let bos = wanted("add_bos_token", "bos");
    let eos = wanted("add_eos_token", "eos");
    let mut template = doc::Template::default();
    for (token, id) in bos.iter().chain(&eos) {
        template.special_tokens.insert(token.clone(), doc::TemplateToken::one(token, *id));
    }
    let around = |sequence, type_id| {
        let special = |token: &(String, u32)| doc::TemplatePiece::SpecialToken {
            id: token.0.clone(),
            type_id,
        };
        let text = doc::TemplatePiece::Sequence { id: sequence, type_id };
        bos.iter().map(special).chain([text]).chain(eos.iter().map(special)).collect::<Vec<_>>()
    };
    if template.special_tokens.is_empty() {
        return None;
    }
    template.single = around(doc::TemplateSequence::A, 0);
    template.pair = around(doc::TemplateSequence::A, 0);
    template.pair.extend(around(doc::TemplateSequence::B, 0));
    Some(doc::PostProcessor::Template(template))
}

fn sentencepiece(
    document: &GgufVocab,
    model_type: ModelType,
) -> Result<SentencePieceModel, LowerError> {
    let scores = document.scores.as_ref().ok_or_else(|| {
        LowerError::new("tokenizer.ggml.scores", "a model of pieces needs their scores")
    })?;
    let mut model = SentencePieceModel::default();
    let mut bytes = 0;
    for (id, (token, &score)) in document.tokens.iter().zip(scores).enumerate() {
        let kind = kind(document, id);
        bytes += usize::from(kind == TokenKind::Byte);
        model.pieces.push(token, score, kind);
    }
    let piece = |name: &str| {
        let id = *document.special_ids.get(name)?;
        document.tokens.get(id as usize).map(str::to_owned)
    };
    let flag = |name: &str, default| document.flags.get(name).copied().unwrap_or(default);
    let mut trainer = TrainerSpec::default();
    trainer.set_model_type(model_type);
    trainer.byte_fallback = Some(bytes == 256);
    trainer.unk_piece = piece("unknown");
    trainer.bos_piece = piece("bos");
    trainer.eos_piece = piece("eos");
    model.trainer_spec = Some(trainer);
    let normalizer = NormalizerSpec {
        precompiled_charsmap: document.charsmap.clone(),
        add_dummy_prefix: Some(flag("add_space_prefix", true)),
        remove_extra_whitespaces: Some(flag(
            "remove_extra_whitespaces",
            model_type == ModelType::Unigram,
        )),
        escape_whitespaces: Some(true),
        ..NormalizerSpec::default()
    };
    model.normalizer_spec = Some(normalizer);
    Ok(model)
}

/// llama.cpp marks the beginning of words with `▁` instead of marking what continues them.
fn bert(document: &GgufVocab) -> VocabTxt {
    let mut tokens = Strings::new();
    for (id, token) in document.tokens.iter().enumerate() {
        match token.strip_prefix('\u{2581}') {
            Some(word) => tokens.push(word),
            None if kind(document, id) != TokenKind::Normal || token.starts_with('[') => {
                tokens.push(token);
            }
            None => tokens.push(&format!("##{token}")),
        }
    }
    VocabTxt::new(tokens)
}
