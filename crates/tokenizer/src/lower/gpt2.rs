//! vocab.json and merges.txt, with the pipeline of GPT-2 around them.

use formats::gpt2::Gpt2;
use formats::tokenizer_json as doc;

use super::LowerError;
use crate::pipeline::Tokenizer;

impl Tokenizer {
    /// The tokenizer of a vocab.json and its merges.txt: byte-level BPE with GPT-2's pattern;
    /// `<|endoftext|>` is special where the vocabulary has it.
    ///
    /// # Errors
    ///
    /// As [`from_tokenizer_json`](Self::from_tokenizer_json).
    pub fn from_gpt2(document: &Gpt2) -> Result<Self, LowerError> {
        Self::from_tokenizer_json(&gpt2_as_tokenizer_json(document))
    }
}

/// The tokenizer.json that says what GPT-2's two files leave unsaid.
#[must_use]
pub fn gpt2_as_tokenizer_json(document: &Gpt2) -> doc::TokenizerJson {
    let byte_level =
        doc::ByteLevel { add_prefix_space: false, trim_offsets: true, use_regex: true };
    let model = doc::Bpe {
        vocab: document.vocab.clone(),
        merges: document.merges.clone(),
        ..doc::Bpe::default()
    };
    let mut json = doc::TokenizerJson::new(doc::Model::Bpe(model));
    json.pre_tokenizer = Some(doc::PreTokenizer::ByteLevel(byte_level));
    json.post_processor = Some(doc::PostProcessor::ByteLevel(byte_level));
    json.decoder = Some(doc::Decoder::ByteLevel(byte_level));
    if let Some(id) = document.vocab.get("<|endoftext|>") {
        json.added_tokens.push(doc::AddedToken {
            id,
            content: "<|endoftext|>".into(),
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special: true,
        });
    }
    json
}
