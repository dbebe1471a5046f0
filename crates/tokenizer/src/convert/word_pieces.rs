//! WordPiece: tokenizer.json and vocab.txt.

use formats::tokenizer_json as doc;
use formats::vocab_txt::VocabTxt;
use formats::{IdMap, Strings};

use super::{
    ConvertError, ConvertOptions, Converted, Setting, Target, refuse_flags, refuse_setting,
    refuse_settings,
};
use crate::load::Document;
use crate::lower::BertCase;

const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
const TARGET: Target = Target::VocabTxt;

/// BERT's tokenizer.json of a vocab.txt.
pub(super) fn from_vocab_txt(
    vocab: &VocabTxt,
    case: Option<BertCase>,
) -> Result<doc::TokenizerJson, ConvertError> {
    let ids = vocab.ids();
    let mut pairs: Vec<(&str, u32)> = ids
        .iter()
        .map(|(token, id)| (*token, *id))
        .filter(|(token, _)| !token.is_empty())
        .collect();
    pairs.sort_by_key(|pair| pair.1);
    let map = IdMap::<str>::from_pairs(pairs)
        .map_err(|error| ConvertError::new("vocabulary", error.to_string()))?;
    let special = |content: &str| {
        Some(doc::AddedToken {
            id: map.get(content)?,
            content: content.to_owned(),
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special: true,
        })
    };
    let added_tokens: Vec<doc::AddedToken> = SPECIAL.into_iter().filter_map(special).collect();
    let named = |content: &str| Some((content.to_owned(), map.get(content)?));
    let post_processor =
        named("[CLS]").zip(named("[SEP]")).map(|(cls, sep)| doc::PostProcessor::Bert { sep, cls });
    let case = case.unwrap_or_else(|| BertCase::of(vocab));
    let mut json = doc::TokenizerJson::new(doc::Model::WordPiece(doc::WordPiece {
        unk_token: "[UNK]".into(),
        continuing_subword_prefix: "##".into(),
        max_input_chars_per_word: 100,
        vocab: map,
    }));
    json.normalizer = Some(doc::Normalizer::Bert(bert(case)));
    json.pre_tokenizer = Some(doc::PreTokenizer::Bert);
    json.decoder = Some(doc::Decoder::WordPiece { prefix: "##".into(), cleanup: false });
    json.added_tokens = added_tokens;
    json.post_processor = post_processor;
    Ok(json)
}

fn bert(case: BertCase) -> doc::BertNormalizer {
    doc::BertNormalizer {
        clean_text: true,
        handle_chinese_chars: true,
        strip_accents: None,
        lowercase: case == BertCase::Uncased,
    }
}

/// The vocab.txt of BERT's tokenizer.json.
pub(super) fn to_vocab_txt(
    json: &doc::TokenizerJson,
    options: &ConvertOptions,
) -> Result<Converted, ConvertError> {
    let refuse = |part: &str, what: String| Err(ConvertError::new(part, what));
    let doc::Model::WordPiece(model) = &json.model else {
        return refuse(
            "model",
            format!("a vocab.txt holds WordPiece, not {}", json.model.type_name()),
        );
    };
    if model.continuing_subword_prefix != "##" {
        let prefix = &model.continuing_subword_prefix;
        return refuse(
            "model.continuing_subword_prefix",
            format!("a vocab.txt is read with ##, not {prefix:?}"),
        );
    }
    if model.unk_token != "[UNK]" {
        let unk = &model.unk_token;
        return refuse("model.unk_token", format!("a vocab.txt is read with [UNK], not {unk:?}"));
    }
    if model.max_input_chars_per_word != 100 {
        let chars = model.max_input_chars_per_word;
        return refuse(
            "model.max_input_chars_per_word",
            format!("a vocab.txt is read with 100, not {chars}"),
        );
    }
    let case = match &json.normalizer {
        Some(doc::Normalizer::Bert(normalizer)) if *normalizer == bert(BertCase::Cased) => {
            BertCase::Cased
        }
        Some(doc::Normalizer::Bert(normalizer)) if *normalizer == bert(BertCase::Uncased) => {
            BertCase::Uncased
        }
        other => {
            return refuse(
                "normalizer",
                format!("a vocab.txt is read with BERT's normalizer, not with {other:?}"),
            );
        }
    };
    if json.pre_tokenizer != Some(doc::PreTokenizer::Bert) {
        let other = &json.pre_tokenizer;
        return refuse(
            "pre_tokenizer",
            format!("a vocab.txt is read with BERT's splitter, not with {other:?}"),
        );
    }
    let mut tokens = Strings::new();
    for (id, token) in model.vocab.iter() {
        // An empty line is a token that takes an id and matches nothing.
        (tokens.len()..id as usize).for_each(|_| tokens.push(""));
        tokens.push(token);
    }
    let vocab = VocabTxt::new(tokens);
    let mut converted = Converted::new(Document::VocabTxt(vocab.clone()));
    refuse_settings(json, TARGET, &mut converted, options)?;
    refuse_flags(json, TARGET, false)?;
    let added = json.resolved_added_tokens();
    for (_, token) in &added {
        if !SPECIAL.contains(&token.content.as_str()) || !token.special {
            return refuse(
                "added_tokens",
                format!(
                    "{:?} is one, but those of a vocab.txt are [PAD], [UNK], [CLS], [SEP], [MASK]",
                    token.content
                ),
            );
        }
    }
    if let Some(missing) = SPECIAL.iter().find(|special| {
        model.vocab.get(special).is_some()
            && !added.iter().any(|(_, token)| token.content == **special)
    }) {
        return refuse("added_tokens", format!("{missing} is none, but is one in a vocab.txt"));
    }
    let expected = from_vocab_txt(&vocab, Some(case))?.post_processor;
    if json.post_processor.as_ref().map(template) != expected.as_ref().map(template) {
        refuse_setting(
            json.post_processor.is_some(),
            Setting::Template,
            TARGET,
            &mut converted,
            options,
        )?;
        if json.post_processor.is_none() {
            converted.lost.push("that nothing is added: a vocab.txt adds [CLS] and [SEP]".into());
        }
    }
    if json.decoder != (Some(doc::Decoder::WordPiece { prefix: "##".into(), cleanup: false })) {
        converted.lost.push("the decoder: tokens are joined at ## without clean-up".to_owned());
        converted.decodes_otherwise = true;
    }
    if BertCase::of(&vocab) != case {
        let said = match case {
            BertCase::Cased => "text with its case",
            BertCase::Uncased => "lower-cased text",
        };
        converted.lost.push(format!("that it is for {said}, which whoever loads it must say"));
    }
    converted.load.case = Some(case);
    Ok(converted)
}

/// What a template puts around one text and a pair: special tokens by id, texts by letter.
fn template(post: &doc::PostProcessor) -> Option<(Vec<String>, Vec<String>)> {
    let written = |pieces: &[doc::TemplatePiece], template: &doc::Template| {
        pieces
            .iter()
            .map(|piece| match piece {
                doc::TemplatePiece::Sequence { id, type_id } => format!("{id:?}:{type_id}"),
                doc::TemplatePiece::SpecialToken { id, type_id } => {
                    let ids = template.special_tokens.get(id).map(|token| &token.ids);
                    format!("{ids:?}:{type_id}")
                }
            })
            .collect::<Vec<_>>()
    };
    match post {
        doc::PostProcessor::Template(parts) => {
            Some((written(&parts.single, parts), written(&parts.pair, parts)))
        }
        doc::PostProcessor::Bert { sep, cls } => {
            let (sep, cls) = (Some(vec![sep.1]), Some(vec![cls.1]));
            let single = vec![format!("{cls:?}:0"), "A:0".to_owned(), format!("{sep:?}:0")];
            let pair = [&single[..], &["B:1".to_owned(), format!("{sep:?}:1")]].concat();
            Some((single, pair))
        }
        doc::PostProcessor::Sequence(steps) => match &steps[..] {
            [only] => template(only),
            _ => None,
        },
        doc::PostProcessor::Roberta { .. } | doc::PostProcessor::ByteLevel(_) => None,
    }
}
