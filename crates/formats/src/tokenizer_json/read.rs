//! From JSON to the document. Defaults, aliases and old forms are those of tokenizers 0.23.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::TokenizerJson;
use super::model::{Bpe, Merge, Model, Unigram, WordLevel, WordPiece};
use super::parts::{
    AddedToken, BertNormalizer, ByteLevel, Decoder, Direction, Metaspace, Normalizer, Padding,
    PaddingStrategy, Pattern, PostProcessor, PreTokenizer, PrependScheme, Replace, SplitBehavior,
    Template, TemplatePiece, TemplateSequence, TemplateToken, Truncation, TruncationStrategy,
};
use crate::error::quoted;
use crate::id_map::MAX_ID;
use crate::json::{JsonError, Reader, Result};
use crate::tiktoken::fault_kind;
use crate::{ErrorKind, IdMap, Strings};

pub(super) fn document(r: &mut Reader<'_>) -> Result<TokenizerJson> {
    let object = r.mark();
    let mut version = None;
    let mut truncation = None;
    let mut padding = None;
    let mut added_tokens = None;
    let mut normalizer = None;
    let mut pre_tokenizer = None;
    let mut post_processor = None;
    let mut decoder = None;
    let mut model = None;
    r.object(|r, key| match &**key {
        "version" => r.field(&mut version, self::version),
        "truncation" => r.field(&mut truncation, |r| r.optional(self::truncation)),
        "padding" => r.field(&mut padding, |r| r.optional(self::padding)),
        "added_tokens" => r.field(&mut added_tokens, |r| list(r, added_token)),
        "normalizer" => r.field(&mut normalizer, |r| r.optional(self::normalizer)),
        "pre_tokenizer" => r.field(&mut pre_tokenizer, |r| r.optional(self::pre_tokenizer)),
        "post_processor" => r.field(&mut post_processor, |r| r.optional(self::post_processor)),
        "decoder" => r.field(&mut decoder, |r| r.optional(self::decoder)),
        "model" => r.field(&mut model, self::model),
        _ => ignore(r),
    })?;
    Ok(TokenizerJson {
        truncation: truncation.flatten(),
        padding: padding.flatten(),
        added_tokens: added_tokens.unwrap_or_default(),
        normalizer: normalizer.flatten(),
        pre_tokenizer: pre_tokenizer.flatten(),
        post_processor: post_processor.flatten(),
        decoder: decoder.flatten(),
        model: r.require(model, "model", object)?,
    })
}

fn version(r: &mut Reader<'_>) -> Result<()> {
    let mark = r.mark();
    let version = r.string()?;
    if version == "1.0" {
        return Ok(());
    }
    let what = format!("unknown version {}, only \"1.0\" is known", quoted(&version));
    Err(r.error_at(mark, ErrorKind::UnknownPart, what))
}

fn truncation(r: &mut Reader<'_>) -> Result<Truncation> {
    let object = r.mark();
    let (mut side, mut max_length, mut strategy, mut stride) = (None, None, None, None);
    r.object(|r, key| match &**key {
        "direction" => r.field(&mut side, direction),
        "max_length" => r.field(&mut max_length, Reader::usize),
        "strategy" => r.field(&mut strategy, |r| {
            let known = [
                ("LongestFirst", TruncationStrategy::LongestFirst),
                ("OnlyFirst", TruncationStrategy::OnlyFirst),
                ("OnlySecond", TruncationStrategy::OnlySecond),
            ];
            one_of(r, "truncation strategy", &known)
        }),
        "stride" => r.field(&mut stride, Reader::usize),
        _ => ignore(r),
    })?;
    Ok(Truncation {
        direction: side.unwrap_or(Direction::Right),
        max_length: r.require(max_length, "max_length", object)?,
        strategy: r.require(strategy, "strategy", object)?,
        stride: r.require(stride, "stride", object)?,
    })
}

fn direction(r: &mut Reader<'_>) -> Result<Direction> {
    one_of(r, "direction", &[("Left", Direction::Left), ("Right", Direction::Right)])
}

fn padding(r: &mut Reader<'_>) -> Result<Padding> {
    let object = r.mark();
    let (mut strategy, mut side, mut multiple) = (None, None, None);
    let (mut pad_id, mut pad_type_id, mut pad_token) = (None, None, None);
    r.object(|r, key| match &**key {
        "strategy" => r.field(&mut strategy, padding_strategy),
        "direction" => r.field(&mut side, direction),
        "pad_to_multiple_of" => r.field(&mut multiple, |r| r.optional(Reader::usize)),
        "pad_id" => r.field(&mut pad_id, Reader::u32),
        "pad_type_id" => r.field(&mut pad_type_id, Reader::u32),
        "pad_token" => r.field(&mut pad_token, string),
        _ => ignore(r),
    })?;
    Ok(Padding {
        strategy: r.require(strategy, "strategy", object)?,
        direction: r.require(side, "direction", object)?,
        pad_to_multiple_of: multiple.flatten(),
        pad_id: r.require(pad_id, "pad_id", object)?,
        pad_type_id: r.require(pad_type_id, "pad_type_id", object)?,
        pad_token: r.require(pad_token, "pad_token", object)?,
    })
}

fn padding_strategy(r: &mut Reader<'_>) -> Result<PaddingStrategy> {
    if r.peek()? == b'"' {
        let known = [("BatchLongest", PaddingStrategy::BatchLongest)];
        return one_of(r, "padding strategy", &known);
    }
    variant(r, "padding strategy", |r, key| {
        Ok(match key {
            "Fixed" => Some(PaddingStrategy::Fixed(r.usize()?)),
            _ => None,
        })
    })
}

fn added_token(r: &mut Reader<'_>) -> Result<AddedToken> {
    let object = r.mark();
    let (mut id, mut content, mut single_word) = (None, None, None);
    let (mut lstrip, mut rstrip, mut normalized, mut special) = (None, None, None, None);
    r.object(|r, key| match &**key {
        "id" => r.field(&mut id, |r| r.unsigned(u64::from(MAX_ID))),
        "content" => r.field(&mut content, string),
        "single_word" => r.field(&mut single_word, Reader::bool),
        "lstrip" => r.field(&mut lstrip, Reader::bool),
        "rstrip" => r.field(&mut rstrip, Reader::bool),
        "normalized" => r.field(&mut normalized, Reader::bool),
        "special" => r.field(&mut special, Reader::bool),
        _ => ignore(r),
    })?;
    Ok(AddedToken {
        id: r.require(id, "id", object)? as u32,
        content: r.require(content, "content", object)?,
        single_word: r.require(single_word, "single_word", object)?,
        lstrip: r.require(lstrip, "lstrip", object)?,
        rstrip: r.require(rstrip, "rstrip", object)?,
        normalized: r.require(normalized, "normalized", object)?,
        special: r.require(special, "special", object)?,
    })
}

fn normalizer(r: &mut Reader<'_>) -> Result<Normalizer> {
    // Without a type the first of these whose fields are all there, as tokenizers tries them.
    let by_fields: &[(&str, &[&str])] = &[
        ("BertNormalizer", &["clean_text", "handle_chinese_chars", "lowercase"]),
        ("Strip", &["strip_left", "strip_right"]),
        ("Sequence", &["normalizers"]),
        ("Replace", &["pattern", "content"]),
        ("Prepend", &["prepend"]),
    ];
    let part = Part::of(r, "normalizer", by_fields)?;
    Ok(match &*part.name {
        "BertNormalizer" | "Bert" => Normalizer::Bert(bert_normalizer(r)?),
        "Strip" => {
            let (mut left, mut right) = (None, None);
            r.object(|r, key| match &**key {
                "strip_left" => r.field(&mut left, Reader::bool),
                "strip_right" => r.field(&mut right, Reader::bool),
                _ => ignore(r),
            })?;
            Normalizer::Strip {
                left: r.require(left, "strip_left", part.object)?,
                right: r.require(right, "strip_right", part.object)?,
            }
        }
        "StripAccents" => part.bare(r, Normalizer::StripAccents)?,
        "NFC" => part.bare(r, Normalizer::Nfc)?,
        "NFD" => part.bare(r, Normalizer::Nfd)?,
        "NFKC" => part.bare(r, Normalizer::Nfkc)?,
        "NFKD" => part.bare(r, Normalizer::Nfkd)?,
        "Lowercase" => part.bare(r, Normalizer::Lowercase)?,
        "Nmt" => part.bare(r, Normalizer::Nmt)?,
        "ByteLevel" => part.bare(r, Normalizer::ByteLevel)?,
        "Precompiled" => {
            Normalizer::Precompiled { charsmap: part.only(r, "precompiled_charsmap", charsmap)? }
        }
        "Replace" => Normalizer::Replace(replace(r)?),
        "Prepend" => Normalizer::Prepend { prepend: part.only(r, "prepend", string)? },
        "Sequence" => Normalizer::Sequence(part.only(r, "normalizers", |r| list(r, normalizer))?),
        _ => return Err(part.unknown(r)),
    })
}

fn bert_normalizer(r: &mut Reader<'_>) -> Result<BertNormalizer> {
    let object = r.mark();
    let (mut clean, mut chinese, mut accents, mut lowercase) = (None, None, None, None);
    r.object(|r, key| match &**key {
        "clean_text" => r.field(&mut clean, Reader::bool),
        "handle_chinese_chars" => r.field(&mut chinese, Reader::bool),
        "strip_accents" => r.field(&mut accents, |r| r.optional(Reader::bool)),
        "lowercase" => r.field(&mut lowercase, Reader::bool),
        _ => ignore(r),
    })?;
    Ok(BertNormalizer {
        clean_text: r.require(clean, "clean_text", object)?,
        handle_chinese_chars: r.require(chinese, "handle_chinese_chars", object)?,
        strip_accents: accents.flatten(),
        lowercase: r.require(lowercase, "lowercase", object)?,
    })
}

/// A charsmap in base64, checked for its sizes.
fn charsmap(r: &mut Reader<'_>) -> Result<Vec<u8>> {
    let mark = r.mark();
    let text = r.string()?;
    let charsmap = STANDARD
        .decode(text.as_bytes())
        .map_err(|error| r.error_at(mark, ErrorKind::Syntax, format!("invalid base64: {error}")))?;
    match crate::sentencepiece::check_charsmap(&charsmap) {
        Ok(()) => Ok(charsmap),
        Err(what) => Err(r.error_at(mark, ErrorKind::Invalid, what)),
    }
}

fn replace(r: &mut Reader<'_>) -> Result<Replace> {
    let object = r.mark();
    let (mut from, mut content) = (None, None);
    r.object(|r, key| match &**key {
        "pattern" => r.field(&mut from, pattern),
        "content" => r.field(&mut content, string),
        _ => ignore(r),
    })?;
    Ok(Replace {
        pattern: r.require(from, "pattern", object)?,
        content: r.require(content, "content", object)?,
    })
}

fn pattern(r: &mut Reader<'_>) -> Result<Pattern> {
    variant(r, "pattern", |r, key| {
        Ok(match key {
            "String" => Some(Pattern::String(string(r)?)),
            "Regex" => Some(Pattern::Regex(string(r)?)),
            _ => None,
        })
    })
}

fn pre_tokenizer(r: &mut Reader<'_>) -> Result<PreTokenizer> {
    let part = Part::of(r, "pre-tokenizer", &[])?;
    Ok(match &*part.name {
        "BertPreTokenizer" => part.bare(r, PreTokenizer::Bert)?,
        "ByteLevel" => PreTokenizer::ByteLevel(byte_level(r)?),
        "CharDelimiterSplit" => {
            PreTokenizer::CharDelimiterSplit { delimiter: part.only(r, "delimiter", Reader::char)? }
        }
        "Metaspace" => PreTokenizer::Metaspace(metaspace(r)?),
        "Whitespace" => part.bare(r, PreTokenizer::Whitespace)?,
        "WhitespaceSplit" => part.bare(r, PreTokenizer::WhitespaceSplit)?,
        "UnicodeScripts" => part.bare(r, PreTokenizer::UnicodeScripts)?,
        "Split" => {
            let (mut at, mut behavior, mut invert) = (None, None, None);
            r.object(|r, key| match &**key {
                "pattern" => r.field(&mut at, pattern),
                "behavior" => r.field(&mut behavior, split_behavior),
                "invert" => r.field(&mut invert, Reader::bool),
                _ => ignore(r),
            })?;
            PreTokenizer::Split {
                pattern: r.require(at, "pattern", part.object)?,
                behavior: r.require(behavior, "behavior", part.object)?,
                invert: r.require(invert, "invert", part.object)?,
            }
        }
        "Punctuation" => {
            let behavior = part.maybe(r, "behavior", split_behavior)?;
            PreTokenizer::Punctuation { behavior: behavior.unwrap_or(SplitBehavior::Isolated) }
        }
        "Digits" => PreTokenizer::Digits {
            individual_digits: part.only(r, "individual_digits", Reader::bool)?,
        },
        "FixedLength" => {
            let length = part.maybe(r, "length", |r| {
                let mark = r.mark();
                match r.usize()? {
                    0 => Err(r.error_at(mark, ErrorKind::Limit, "pieces of 0 characters")),
                    length => Ok(length),
                }
            })?;
            PreTokenizer::FixedLength { length: length.unwrap_or(5) }
        }
        "Sequence" => {
            PreTokenizer::Sequence(part.only(r, "pretokenizers", |r| list(r, pre_tokenizer))?)
        }
        _ => return Err(part.unknown(r)),
    })
}

fn byte_level(r: &mut Reader<'_>) -> Result<ByteLevel> {
    let object = r.mark();
    let (mut prefix, mut trim, mut regex) = (None, None, None);
    r.object(|r, key| match &**key {
        "add_prefix_space" => r.field(&mut prefix, Reader::bool),
        "trim_offsets" => r.field(&mut trim, Reader::bool),
        "use_regex" => r.field(&mut regex, Reader::bool),
        _ => ignore(r),
    })?;
    Ok(ByteLevel {
        add_prefix_space: r.require(prefix, "add_prefix_space", object)?,
        trim_offsets: r.require(trim, "trim_offsets", object)?,
        use_regex: regex.unwrap_or(true),
    })
}

fn metaspace(r: &mut Reader<'_>) -> Result<Metaspace> {
    let object = r.mark();
    let (mut replacement, mut scheme, mut prefix) = (None, None, None);
    let (mut split, mut str_rep) = (None, None);
    r.object(|r, key| match &**key {
        "replacement" => r.field(&mut replacement, Reader::char),
        "prepend_scheme" => r.field(&mut scheme, |r| {
            let known = [
                ("first", PrependScheme::First),
                ("never", PrependScheme::Never),
                ("always", PrependScheme::Always),
            ];
            one_of(r, "prepend scheme", &known)
        }),
        "add_prefix_space" => r.field(&mut prefix, |r| r.optional(Reader::bool)),
        "split" => r.field(&mut split, |r| r.optional(Reader::bool)),
        // Written by old versions, never read by any.
        "str_rep" => r.field(&mut str_rep, |r| r.optional(string)),
        _ => ignore(r),
    })?;
    let prepend_scheme = match (scheme, prefix.flatten()) {
        // Files older than `prepend_scheme`. tokenizers 0.23 refuses them, because it compares
        // with the default `always`; the versions that wrote them meant `never`.
        (None | Some(PrependScheme::Never), Some(false)) => PrependScheme::Never,
        (Some(_), Some(false)) => {
            let what = "add_prefix_space is false, but prepend_scheme is not \"never\"";
            return Err(r.error_at(object, ErrorKind::Invalid, what));
        }
        (scheme, _) => scheme.unwrap_or(PrependScheme::Always),
    };
    Ok(Metaspace {
        replacement: r.require(replacement, "replacement", object)?,
        prepend_scheme,
        split: split.flatten().unwrap_or(true),
    })
}

fn split_behavior(r: &mut Reader<'_>) -> Result<SplitBehavior> {
    let known = [
        ("Removed", SplitBehavior::Removed),
        ("Isolated", SplitBehavior::Isolated),
        ("MergedWithPrevious", SplitBehavior::MergedWithPrevious),
        ("MergedWithNext", SplitBehavior::MergedWithNext),
        ("Contiguous", SplitBehavior::Contiguous),
    ];
    one_of(r, "behavior", &known)
}

fn post_processor(r: &mut Reader<'_>) -> Result<PostProcessor> {
    let by_fields: &[(&str, &[&str])] = &[
        ("RobertaProcessing", &["sep", "cls", "trim_offsets", "add_prefix_space"]),
        ("BertProcessing", &["sep", "cls"]),
        ("TemplateProcessing", &["single", "pair", "special_tokens"]),
    ];
    let part = Part::of(r, "post-processor", by_fields)?;
    Ok(match &*part.name {
        "BertProcessing" | "RobertaProcessing" => {
            let (mut sep, mut cls, mut trim, mut prefix) = (None, None, None, None);
            r.object(|r, key| match &**key {
                "sep" => r.field(&mut sep, |r| pair(r, string, Reader::u32)),
                "cls" => r.field(&mut cls, |r| pair(r, string, Reader::u32)),
                "trim_offsets" => r.field(&mut trim, Reader::bool),
                "add_prefix_space" => r.field(&mut prefix, Reader::bool),
                _ => ignore(r),
            })?;
            let sep = r.require(sep, "sep", part.object)?;
            let cls = r.require(cls, "cls", part.object)?;
            if part.name == "BertProcessing" {
                // tokenizers looks at the fields and not at the type, and takes this for Roberta.
                if trim.is_some() && prefix.is_some() {
                    let what = "BertProcessing with the fields of RobertaProcessing";
                    return Err(r.error_at(part.object, ErrorKind::Invalid, what));
                }
                PostProcessor::Bert { sep, cls }
            } else {
                PostProcessor::Roberta {
                    sep,
                    cls,
                    trim_offsets: r.require(trim, "trim_offsets", part.object)?,
                    add_prefix_space: r.require(prefix, "add_prefix_space", part.object)?,
                }
            }
        }
        "ByteLevel" => PostProcessor::ByteLevel(byte_level(r)?),
        "TemplateProcessing" => PostProcessor::Template(template(r)?),
        "Sequence" => {
            PostProcessor::Sequence(part.only(r, "processors", |r| list(r, post_processor))?)
        }
        _ => return Err(part.unknown(r)),
    })
}

fn template(r: &mut Reader<'_>) -> Result<Template> {
    let object = r.mark();
    let (mut single, mut pair, mut tokens) = (None, None, None);
    r.object(|r, key| match &**key {
        "single" => r.field(&mut single, |r| list(r, template_piece)),
        "pair" => r.field(&mut pair, |r| list(r, template_piece)),
        "special_tokens" => r.field(&mut tokens, |r| {
            let mut tokens = std::collections::BTreeMap::new();
            r.object(|r, key| {
                let mark = r.mark();
                let token = template_token(r)?;
                match tokens.insert(key.to_string(), token) {
                    None => Ok(()),
                    Some(_) => {
                        let what = "this special token is here twice";
                        Err(r.error_at(mark, ErrorKind::Duplicate, what))
                    }
                }
            })?;
            Ok(tokens)
        }),
        _ => ignore(r),
    })?;
    let template = Template {
        single: r.require(single, "single", object)?,
        pair: r.require(pair, "pair", object)?,
        special_tokens: r.require(tokens, "special_tokens", object)?,
    };
    template.check().map_err(|(kind, what)| r.error_at(object, kind, what))?;
    Ok(template)
}

fn template_piece(r: &mut Reader<'_>) -> Result<TemplatePiece> {
    variant(r, "template piece", |r, key| {
        let object = r.mark();
        let is_sequence = match key {
            "Sequence" => true,
            "SpecialToken" => false,
            _ => return Ok(None),
        };
        let (mut sequence, mut token, mut type_id) = (None, None, None);
        r.object(|r, key| match &**key {
            "id" if is_sequence => r.field(&mut sequence, |r| {
                let known = [("A", TemplateSequence::A), ("B", TemplateSequence::B)];
                one_of(r, "sequence", &known)
            }),
            "id" => r.field(&mut token, string),
            "type_id" => r.field(&mut type_id, Reader::u32),
            _ => ignore(r),
        })?;
        let type_id = r.require(type_id, "type_id", object)?;
        Ok(Some(if is_sequence {
            TemplatePiece::Sequence { id: r.require(sequence, "id", object)?, type_id }
        } else {
            TemplatePiece::SpecialToken { id: r.require(token, "id", object)?, type_id }
        }))
    })
}

fn template_token(r: &mut Reader<'_>) -> Result<TemplateToken> {
    let object = r.mark();
    let (mut id, mut ids, mut tokens) = (None, None, None);
    r.object(|r, key| match &**key {
        "id" => r.field(&mut id, string),
        "ids" => r.field(&mut ids, |r| list(r, Reader::u32)),
        "tokens" => r.field(&mut tokens, |r| list(r, string)),
        _ => ignore(r),
    })?;
    Ok(TemplateToken {
        id: r.require(id, "id", object)?,
        ids: r.require(ids, "ids", object)?,
        tokens: r.require(tokens, "tokens", object)?,
    })
}

fn decoder(r: &mut Reader<'_>) -> Result<Decoder> {
    let by_fields: &[(&str, &[&str])] = &[
        ("BPEDecoder", &["suffix"]),
        ("WordPiece", &["prefix", "cleanup"]),
        ("CTC", &["pad_token", "word_delimiter_token", "cleanup"]),
        ("Replace", &["pattern", "content"]),
        ("Strip", &["content", "start", "stop"]),
    ];
    let part = Part::of(r, "decoder", by_fields)?;
    Ok(match &*part.name {
        "BPEDecoder" => Decoder::Bpe { suffix: part.only(r, "suffix", string)? },
        "ByteLevel" => Decoder::ByteLevel(byte_level(r)?),
        "WordPiece" => {
            let (mut prefix, mut cleanup) = (None, None);
            r.object(|r, key| match &**key {
                "prefix" => r.field(&mut prefix, string),
                "cleanup" => r.field(&mut cleanup, Reader::bool),
                _ => ignore(r),
            })?;
            Decoder::WordPiece {
                prefix: r.require(prefix, "prefix", part.object)?,
                cleanup: r.require(cleanup, "cleanup", part.object)?,
            }
        }
        "Metaspace" => Decoder::Metaspace(metaspace(r)?),
        "CTC" => {
            let (mut pad, mut delimiter, mut cleanup) = (None, None, None);
            r.object(|r, key| match &**key {
                "pad_token" => r.field(&mut pad, string),
                "word_delimiter_token" => r.field(&mut delimiter, string),
                "cleanup" => r.field(&mut cleanup, Reader::bool),
                _ => ignore(r),
            })?;
            Decoder::Ctc {
                pad_token: r.require(pad, "pad_token", part.object)?,
                word_delimiter_token: r.require(delimiter, "word_delimiter_token", part.object)?,
                cleanup: r.require(cleanup, "cleanup", part.object)?,
            }
        }
        "Replace" => Decoder::Replace(replace(r)?),
        "Fuse" => part.bare(r, Decoder::Fuse)?,
        "Strip" => {
            let (mut content, mut start, mut stop) = (None, None, None);
            r.object(|r, key| match &**key {
                "content" => r.field(&mut content, Reader::char),
                "start" => r.field(&mut start, Reader::usize),
                "stop" => r.field(&mut stop, Reader::usize),
                _ => ignore(r),
            })?;
            Decoder::Strip {
                content: r.require(content, "content", part.object)?,
                start: r.require(start, "start", part.object)?,
                stop: r.require(stop, "stop", part.object)?,
            }
        }
        "ByteFallback" => part.bare(r, Decoder::ByteFallback)?,
        "Sequence" => Decoder::Sequence(part.only(r, "decoders", |r| list(r, decoder))?),
        _ => return Err(part.unknown(r)),
    })
}

fn model(r: &mut Reader<'_>) -> Result<Model> {
    let (name, at) = match r.look_ahead("type")? {
        Some(found) => found,
        None => (untyped_model(r)?.into(), r.mark()),
    };
    Ok(match &*name {
        "BPE" => Model::Bpe(bpe(r)?),
        "WordPiece" => Model::WordPiece(word_piece(r)?),
        "WordLevel" => Model::WordLevel(word_level(r)?),
        "Unigram" => Model::Unigram(unigram(r)?),
        _ => {
            let what = format!("unknown model {}", quoted(&name));
            return Err(r.error_at(at, ErrorKind::UnknownPart, what).within("type"));
        }
    })
}

/// The model of a file older than `model.type`: the first of these that has all it needs, in the
/// order in which tokenizers tries them.
fn untyped_model(r: &mut Reader<'_>) -> Result<&'static str> {
    let mark = r.mark();
    let mut fields = Vec::new();
    let mut vocab = 0;
    r.object(|r, key| {
        if key == "vocab" {
            vocab = r.peek()?;
        }
        fields.push(key.to_string());
        ignore(r)
    })?;
    r.rewind(mark);
    let has = |names: &[&str]| names.iter().all(|name| fields.iter().any(|field| field == name));
    let word_piece = ["unk_token", "continuing_subword_prefix", "max_input_chars_per_word"];
    Ok(match vocab {
        b'{' if has(&["merges"]) => "BPE",
        b'{' if has(&word_piece) => "WordPiece",
        b'{' if has(&["unk_token"]) => "WordLevel",
        b'[' => "Unigram",
        _ => {
            let what = "a model without type whose fields are those of no known model";
            return Err(r.error_at(mark, ErrorKind::UnknownPart, what));
        }
    })
}

fn bpe(r: &mut Reader<'_>) -> Result<Bpe> {
    let object = r.mark();
    let (mut dropout, mut unk_token, mut prefix, mut suffix) = (None, None, None, None);
    let (mut fuse_unk, mut byte_fallback, mut ignore_merges) = (None, None, None);
    let (mut vocab, mut merges_at, mut merges) = (None, None, None);
    r.object(|r, key| match &**key {
        "dropout" => r.field(&mut dropout, |r| r.optional(self::dropout)),
        "unk_token" => r.field(&mut unk_token, |r| r.optional(string)),
        "continuing_subword_prefix" => r.field(&mut prefix, |r| r.optional(string)),
        "end_of_word_suffix" => r.field(&mut suffix, |r| r.optional(string)),
        "fuse_unk" => r.field(&mut fuse_unk, |r| r.optional(Reader::bool)),
        "byte_fallback" => r.field(&mut byte_fallback, |r| r.optional(Reader::bool)),
        "ignore_merges" => r.field(&mut ignore_merges, |r| r.optional(Reader::bool)),
        "vocab" => r.field(&mut vocab, token_map),
        "merges" => {
            let mark = r.mark();
            r.field(&mut merges_at, |_| Ok(mark))?;
            match (&vocab, &prefix) {
                (Some(vocab), Some(prefix)) => {
                    merges = Some(self::merges(r, vocab, prefix.as_deref().unwrap_or(""))?);
                    Ok(())
                }
                // What merges depend on comes behind them, or not at all: read them at the end.
                _ => ignore(r),
            }
        }
        _ => ignore(r),
    })?;
    let vocab = r.require(vocab, "vocab", object)?;
    let merges_at = r.require(merges_at, "merges", object)?;
    let prefix: Option<String> = prefix.flatten();
    let merges = match merges {
        Some(merges) => merges,
        None => {
            let end = r.mark();
            r.rewind(merges_at);
            let merges = self::merges(r, &vocab, prefix.as_deref().unwrap_or(""))
                .map_err(|error| error.within("merges"))?;
            r.rewind(end);
            merges
        }
    };
    Ok(Bpe {
        dropout: dropout.flatten(),
        unk_token: unk_token.flatten(),
        continuing_subword_prefix: prefix,
        end_of_word_suffix: suffix.flatten(),
        fuse_unk: fuse_unk.flatten().unwrap_or(false),
        byte_fallback: byte_fallback.flatten().unwrap_or(false),
        ignore_merges: ignore_merges.flatten().unwrap_or(false),
        vocab,
        merges,
    })
}

fn dropout(r: &mut Reader<'_>) -> Result<f32> {
    let mark = r.mark();
    let dropout = r.f64()? as f32;
    if (0.0..=1.0).contains(&dropout) {
        return Ok(dropout);
    }
    let what = format!("a dropout of {dropout} is not between 0 and 1");
    Err(r.error_at(mark, ErrorKind::Limit, what))
}

/// A vocabulary as an object, with its error where the token at fault is.
pub(crate) fn token_map(r: &mut Reader<'_>) -> Result<IdMap<str>> {
    let mark = r.mark();
    let mut map: IdMap<str> = IdMap::new();
    r.object(|r, token| {
        let at = r.mark();
        let id = r.u32()?;
        map.push(token, id).map_err(|error| r.error_at(at, fault_kind(&error), error.to_string()))
    })?;
    if map.is_empty() {
        return Err(r.error_at(mark, ErrorKind::Missing, "the vocabulary is empty"));
    }
    if let Err(error) = map.finish() {
        // Only an id that occurs twice is found this late: look for the token once more.
        r.rewind(mark);
        let mut seen = 0;
        r.object(|r, token| {
            let at = r.mark();
            ignore(r)?;
            if token.as_bytes() == error.token {
                seen = at;
            }
            Ok(())
        })?;
        return Err(r.error_at(seen, fault_kind(&error), error.to_string()));
    }
    Ok(map)
}

/// Merges, as strings `"a b"` or as pairs `["a", "b"]`.
fn merges(r: &mut Reader<'_>, vocab: &IdMap<str>, prefix: &str) -> Result<Vec<Merge>> {
    let mut resolver = MergeResolver::new(vocab, prefix);
    let mut merges = Vec::new();
    let mut form = None;
    r.array(|r, _| {
        let mark = r.mark();
        let this = r.peek()?;
        if *form.get_or_insert(this) != this {
            let what = "merges as strings and as pairs in one list";
            return Err(r.error_at(mark, ErrorKind::WrongType, what));
        }
        let merge = if this == b'[' {
            let (left, right) = pair(r, Reader::string, Reader::string)?;
            resolver.resolve(&left, &right)
        } else {
            let line = r.string()?;
            if line.starts_with("#version") {
                return Ok(());
            }
            resolver.resolve_line(&line)
        };
        merges.push(merge.map_err(|(kind, what)| r.error_at(mark, kind, what))?);
        Ok(())
    })?;
    Ok(merges)
}

/// Turns pairs of texts into merges of ids.
pub(crate) struct MergeResolver<'v> {
    vocab: &'v IdMap<str>,
    prefix: &'v str,
    product: String,
    /// The id of the last product.
    last: u32,
}

impl<'v> MergeResolver<'v> {
    pub(crate) fn new(vocab: &'v IdMap<str>, prefix: &'v str) -> Self {
        Self { vocab, prefix, product: String::new(), last: 0 }
    }

    /// The merge of a line `left right`.
    pub(crate) fn resolve_line(
        &mut self,
        line: &str,
    ) -> core::result::Result<Merge, (ErrorKind, String)> {
        match line.split_once(' ') {
            Some((left, right)) if !right.contains(' ') => self.resolve(left, right),
            _ => {
                let what =
                    format!("a merge is two tokens with one space between, not {}", quoted(line));
                Err((ErrorKind::Syntax, what))
            }
        }
    }

    pub(crate) fn resolve(
        &mut self,
        left: &str,
        right: &str,
    ) -> core::result::Result<Merge, (ErrorKind, String)> {
        let known = |role: &str, token: &str| {
            self.vocab.get(token).ok_or_else(|| {
                let (token, n) = (quoted(token), self.vocab.len());
                let what = format!("{role} token {token} is not among the {n} of the vocabulary");
                (ErrorKind::Dangling, what)
            })
        };
        let (left_id, right_id) = (known("left", left)?, known("right", right)?);
        // tokenizers cuts so many bytes off, whatever they are.
        let Some(rest) = right.get(self.prefix.len()..) else {
            let what = format!(
                "continuing_subword_prefix {} of {} bytes cannot be cut from token {} of {}",
                quoted(self.prefix),
                self.prefix.len(),
                quoted(right),
                right.len(),
            );
            return Err((ErrorKind::Invalid, what));
        };
        self.product.clear();
        self.product.push_str(left);
        self.product.push_str(rest);
        // Merges mostly come in the order of their products: try the last and the next id first,
        // which are at hand, where the hash table would be a cache miss.
        let near = [self.last, self.last.saturating_add(1)]
            .into_iter()
            .find(|&id| self.vocab.token(id) == Some(&self.product));
        match near.or_else(|| self.vocab.get(&self.product)) {
            Some(product) => {
                self.last = product;
                Ok(Merge { left: left_id, right: right_id, product })
            }
            None => Err(known("merged", &self.product).expect_err("it was just looked up")),
        }
    }
}

fn word_piece(r: &mut Reader<'_>) -> Result<WordPiece> {
    let object = r.mark();
    let (mut unk_token, mut prefix, mut max_chars, mut vocab) = (None, None, None, None);
    r.object(|r, key| match &**key {
        "unk_token" => r.field(&mut unk_token, string),
        "continuing_subword_prefix" => r.field(&mut prefix, string),
        "max_input_chars_per_word" => r.field(&mut max_chars, Reader::usize),
        "vocab" => r.field(&mut vocab, token_map),
        _ => ignore(r),
    })?;
    Ok(WordPiece {
        unk_token: r.require(unk_token, "unk_token", object)?,
        continuing_subword_prefix: r.require(prefix, "continuing_subword_prefix", object)?,
        max_input_chars_per_word: r.require(max_chars, "max_input_chars_per_word", object)?,
        vocab: r.require(vocab, "vocab", object)?,
    })
}

fn word_level(r: &mut Reader<'_>) -> Result<WordLevel> {
    let object = r.mark();
    let (mut unk_token, mut vocab) = (None, None);
    r.object(|r, key| match &**key {
        "unk_token" => r.field(&mut unk_token, string),
        "vocab" => r.field(&mut vocab, token_map),
        _ => ignore(r),
    })?;
    Ok(WordLevel {
        vocab: r.require(vocab, "vocab", object)?,
        unk_token: r.require(unk_token, "unk_token", object)?,
    })
}

fn unigram(r: &mut Reader<'_>) -> Result<Unigram> {
    let object = r.mark();
    let (mut unk_id, mut vocab, mut byte_fallback) = (None, None, None);
    r.object(|r, key| match &**key {
        "unk_id" => {
            let at = r.mark();
            r.field(&mut unk_id, |r| Ok((at, r.optional(Reader::usize)?)))
        }
        "byte_fallback" => r.field(&mut byte_fallback, Reader::bool),
        "vocab" => r.field(&mut vocab, |r| {
            let mark = r.mark();
            let (mut pieces, mut scores) = (Strings::new(), Vec::new());
            r.array(|r, _| {
                let (piece, score) = pair(r, Reader::string, Reader::f64)?;
                pieces.push(&piece);
                scores.push(score);
                Ok(())
            })?;
            if pieces.is_empty() {
                return Err(r.error_at(mark, ErrorKind::Missing, "the vocabulary is empty"));
            }
            if pieces.len() > MAX_ID as usize + 1 {
                let what = format!("{} pieces, but ids may not pass {MAX_ID}", pieces.len());
                return Err(r.error_at(mark, ErrorKind::Limit, what));
            }
            Ok((pieces, scores))
        }),
        _ => ignore(r),
    })?;
    let (pieces, scores) = r.require(vocab, "vocab", object)?;
    let unk_id = match unk_id {
        Some((at, Some(id))) if id >= pieces.len() => {
            let what = format!("unk_id is {id}, but there are {} pieces", pieces.len());
            return Err(r.error_at(at, ErrorKind::Dangling, what).within("unk_id"));
        }
        Some((_, id)) => id.map(|id| id as u32),
        None => None,
    };
    Ok(Unigram { unk_id, pieces, scores, byte_fallback: byte_fallback.unwrap_or(false) })
}

/// The name of a part and where its object is.
struct Part<'a> {
    what: &'static str,
    name: std::borrow::Cow<'a, str>,
    name_at: usize,
    object: usize,
}

impl<'a> Part<'a> {
    /// The part that comes next: by its type, or without one by its fields.
    fn of(
        r: &mut Reader<'a>,
        what: &'static str,
        by_fields: &[(&'static str, &[&str])],
    ) -> Result<Self> {
        let object = r.mark();
        if let Some((name, name_at)) = r.look_ahead("type")? {
            return Ok(Self { what, name, name_at, object });
        }
        let mut fields = Vec::new();
        r.object(|r, key| {
            fields.push(key.to_string());
            ignore(r)
        })?;
        r.rewind(object);
        let has_all = |names: &[&str]| names.iter().all(|n| fields.iter().any(|f| f == n));
        match by_fields.iter().find(|(_, names)| has_all(names)) {
            Some(&(name, _)) => Ok(Self { what, name: name.into(), name_at: object, object }),
            None => {
                let what = format!("a {what} without type whose fields are those of no known one");
                Err(r.error_at(object, ErrorKind::UnknownPart, what))
            }
        }
    }

    fn unknown(&self, r: &Reader<'_>) -> Box<JsonError> {
        let what = format!("unknown {} {}", self.what, quoted(&self.name));
        r.error_at(self.name_at, ErrorKind::UnknownPart, what).within("type")
    }

    /// A part without fields.
    fn bare<T>(&self, r: &mut Reader<'_>, value: T) -> Result<T> {
        ignore(r)?;
        Ok(value)
    }

    /// The one field of a part, if it is there.
    fn maybe<'r, T>(
        &self,
        r: &mut Reader<'r>,
        name: &str,
        read: impl Fn(&mut Reader<'r>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut value = None;
        r.object(|r, key| if *key == name { r.field(&mut value, &read) } else { ignore(r) })?;
        Ok(value)
    }

    /// The one field of a part, which must be there.
    fn only<'r, T>(
        &self,
        r: &mut Reader<'r>,
        name: &str,
        read: impl Fn(&mut Reader<'r>) -> Result<T>,
    ) -> Result<T> {
        let value = self.maybe(r, name, read)?;
        r.require(value, name, self.object)
    }
}

fn ignore(r: &mut Reader<'_>) -> Result<()> {
    r.skip().map(|_| ())
}

fn string(r: &mut Reader<'_>) -> Result<String> {
    r.string().map(std::borrow::Cow::into_owned)
}

fn list<'r, T>(r: &mut Reader<'r>, item: impl Fn(&mut Reader<'r>) -> Result<T>) -> Result<Vec<T>> {
    let mut items = Vec::new();
    r.array(|r, _| {
        items.push(item(r)?);
        Ok(())
    })?;
    Ok(items)
}

/// An array of exactly two.
fn pair<'r, A, B>(
    r: &mut Reader<'r>,
    first: impl Fn(&mut Reader<'r>) -> Result<A>,
    second: impl Fn(&mut Reader<'r>) -> Result<B>,
) -> Result<(A, B)> {
    let object = r.mark();
    let (mut a, mut b) = (None, None);
    r.array(|r, i| match i {
        0 => r.field(&mut a, &first),
        1 => r.field(&mut b, &second),
        _ => Err(r.error(ErrorKind::WrongType, "an array of 2 holds more")),
    })?;
    match (a, b) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => Err(r.error_at(object, ErrorKind::WrongType, "an array of 2 holds less")),
    }
}

/// An object with one member, whose key says how to read its value.
fn variant<'r, T>(
    r: &mut Reader<'r>,
    what: &str,
    read: impl Fn(&mut Reader<'r>, &str) -> Result<Option<T>>,
) -> Result<T> {
    let object = r.mark();
    let mut value = None;
    r.object(|r, key| {
        let at = r.mark();
        r.field(&mut value, |r| match read(r, key)? {
            Some(value) => Ok(value),
            None => {
                let what = format!("unknown {what} {}", quoted(key));
                Err(r.error_at(at, ErrorKind::UnknownPart, what))
            }
        })
    })?;
    value.ok_or_else(|| r.error_at(object, ErrorKind::Missing, format!("an empty {what}")))
}

/// A string that is one of some names.
fn one_of<T: Copy>(r: &mut Reader<'_>, what: &str, known: &[(&str, T)]) -> Result<T> {
    let mark = r.mark();
    let name = r.string()?;
    match known.iter().find(|(known, _)| *known == name) {
        Some((_, value)) => Ok(*value),
        None => {
            let names: Vec<String> = known.iter().map(|(known, _)| quoted(known)).collect();
            let what = format!("unknown {what} {}, not {}", quoted(&name), names.join(" or "));
            Err(r.error_at(mark, ErrorKind::UnknownPart, what))
        }
    }
}
