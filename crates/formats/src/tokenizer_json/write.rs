//! From the document to JSON, with the field order of tokenizers 0.23.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::TokenizerJson;
use super::model::{Bpe, Model};
use super::parts::{
    AddedToken, ByteLevel, Decoder, Direction, Metaspace, Normalizer, Padding, PaddingStrategy,
    Pattern, PostProcessor, PreTokenizer, PrependScheme, Replace, SplitBehavior, TemplatePiece,
    TemplateSequence, Truncation, TruncationStrategy,
};
use crate::IdMap;
use crate::json::Writer;

pub(super) fn document(w: &mut Writer, document: &TokenizerJson) {
    w.object(|w| {
        text(w, "version", "1.0");
        w.member("truncation", |w| w.optional(document.truncation.as_ref(), truncation));
        w.member("padding", |w| w.optional(document.padding.as_ref(), padding));
        w.member("added_tokens", |w| {
            w.array(|w| {
                for token in &document.added_tokens {
                    w.item(|w| added_token(w, token));
                }
            });
        });
        w.member("normalizer", |w| w.optional(document.normalizer.as_ref(), normalizer));
        w.member("pre_tokenizer", |w| w.optional(document.pre_tokenizer.as_ref(), pre_tokenizer));
        w.member("post_processor", |w| {
            w.optional(document.post_processor.as_ref(), post_processor);
        });
        w.member("decoder", |w| w.optional(document.decoder.as_ref(), decoder));
        w.member("model", |w| model(w, &document.model));
    });
}

fn text(w: &mut Writer, key: &str, value: &str) {
    w.member(key, |w| w.string(value));
}

fn maybe_text(w: &mut Writer, key: &str, value: Option<&str>) {
    w.member(key, |w| w.optional(value, Writer::string));
}

fn flag(w: &mut Writer, key: &str, value: bool) {
    w.member(key, |w| w.bool(value));
}

fn number(w: &mut Writer, key: &str, value: u64) {
    w.member(key, |w| w.number(value));
}

fn truncation(w: &mut Writer, truncation: &Truncation) {
    w.object(|w| {
        text(w, "direction", direction(truncation.direction));
        number(w, "max_length", truncation.max_length as u64);
        let strategy = match truncation.strategy {
            TruncationStrategy::LongestFirst => "LongestFirst",
            TruncationStrategy::OnlyFirst => "OnlyFirst",
            TruncationStrategy::OnlySecond => "OnlySecond",
        };
        text(w, "strategy", strategy);
        number(w, "stride", truncation.stride as u64);
    });
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Left => "Left",
        Direction::Right => "Right",
    }
}

fn padding(w: &mut Writer, padding: &Padding) {
    w.object(|w| {
        w.member("strategy", |w| match padding.strategy {
            PaddingStrategy::BatchLongest => w.string("BatchLongest"),
            PaddingStrategy::Fixed(length) => w.object(|w| number(w, "Fixed", length as u64)),
        });
        text(w, "direction", direction(padding.direction));
        w.member("pad_to_multiple_of", |w| {
            w.optional(padding.pad_to_multiple_of, |w, n| w.number(n as u64));
        });
        number(w, "pad_id", padding.pad_id.into());
        number(w, "pad_type_id", padding.pad_type_id.into());
        text(w, "pad_token", &padding.pad_token);
    });
}

fn added_token(w: &mut Writer, token: &AddedToken) {
    w.object(|w| {
        number(w, "id", token.id.into());
        text(w, "content", &token.content);
        flag(w, "single_word", token.single_word);
        flag(w, "lstrip", token.lstrip);
        flag(w, "rstrip", token.rstrip);
        flag(w, "normalized", token.normalized);
        flag(w, "special", token.special);
    });
}

/// An object with its type and what `fields` adds.
fn part(w: &mut Writer, name: &str, fields: impl FnOnce(&mut Writer)) {
    w.object(|w| {
        text(w, "type", name);
        fields(w);
    });
}

fn sequence<T>(w: &mut Writer, key: &str, parts: &[T], write: fn(&mut Writer, &T)) {
    part(w, "Sequence", |w| {
        w.member(key, |w| {
            w.array(|w| {
                for part in parts {
                    w.item(|w| write(w, part));
                }
            });
        });
    });
}

fn normalizer(w: &mut Writer, normalizer: &Normalizer) {
    match normalizer {
        Normalizer::Bert(bert) => part(w, "BertNormalizer", |w| {
            flag(w, "clean_text", bert.clean_text);
            flag(w, "handle_chinese_chars", bert.handle_chinese_chars);
            w.member("strip_accents", |w| w.optional(bert.strip_accents, Writer::bool));
            flag(w, "lowercase", bert.lowercase);
        }),
        Normalizer::Strip { left, right } => part(w, "Strip", |w| {
            flag(w, "strip_left", *left);
            flag(w, "strip_right", *right);
        }),
        Normalizer::StripAccents => part(w, "StripAccents", |_| {}),
        Normalizer::Nfc => part(w, "NFC", |_| {}),
        Normalizer::Nfd => part(w, "NFD", |_| {}),
        Normalizer::Nfkc => part(w, "NFKC", |_| {}),
        Normalizer::Nfkd => part(w, "NFKD", |_| {}),
        Normalizer::Lowercase => part(w, "Lowercase", |_| {}),
        Normalizer::Nmt => part(w, "Nmt", |_| {}),
        Normalizer::Precompiled { charsmap } => part(w, "Precompiled", |w| {
            text(w, "precompiled_charsmap", &STANDARD.encode(charsmap));
        }),
        Normalizer::Replace(fields) => replace(w, fields),
        Normalizer::Prepend { prepend } => {
            part(w, "Prepend", |w| text(w, "prepend", prepend));
        }
        Normalizer::ByteLevel => part(w, "ByteLevel", |_| {}),
        Normalizer::Sequence(parts) => sequence(w, "normalizers", parts, self::normalizer),
    }
}

fn replace(w: &mut Writer, replace: &Replace) {
    part(w, "Replace", |w| {
        pattern(w, &replace.pattern);
        text(w, "content", &replace.content);
    });
}

fn pattern(w: &mut Writer, pattern: &Pattern) {
    w.member("pattern", |w| {
        w.object(|w| match pattern {
            Pattern::String(literal) => text(w, "String", literal),
            Pattern::Regex(regex) => text(w, "Regex", regex),
        });
    });
}

fn pre_tokenizer(w: &mut Writer, pre_tokenizer: &PreTokenizer) {
    match pre_tokenizer {
        PreTokenizer::Bert => part(w, "BertPreTokenizer", |_| {}),
        PreTokenizer::ByteLevel(fields) => byte_level(w, fields),
        PreTokenizer::CharDelimiterSplit { delimiter } => part(w, "CharDelimiterSplit", |w| {
            text(w, "delimiter", &delimiter.to_string());
        }),
        PreTokenizer::Metaspace(fields) => metaspace(w, fields),
        PreTokenizer::Whitespace => part(w, "Whitespace", |_| {}),
        PreTokenizer::WhitespaceSplit => part(w, "WhitespaceSplit", |_| {}),
        PreTokenizer::Split { pattern, behavior, invert } => part(w, "Split", |w| {
            self::pattern(w, pattern);
            text(w, "behavior", split_behavior(*behavior));
            flag(w, "invert", *invert);
        }),
        PreTokenizer::Punctuation { behavior } => part(w, "Punctuation", |w| {
            text(w, "behavior", split_behavior(*behavior));
        }),
        PreTokenizer::Digits { individual_digits } => part(w, "Digits", |w| {
            flag(w, "individual_digits", *individual_digits);
        }),
        PreTokenizer::UnicodeScripts => part(w, "UnicodeScripts", |_| {}),
        PreTokenizer::FixedLength { length } => part(w, "FixedLength", |w| {
            number(w, "length", *length as u64);
        }),
        PreTokenizer::Sequence(parts) => sequence(w, "pretokenizers", parts, self::pre_tokenizer),
    }
}

fn byte_level(w: &mut Writer, byte_level: &ByteLevel) {
    part(w, "ByteLevel", |w| {
        flag(w, "add_prefix_space", byte_level.add_prefix_space);
        flag(w, "trim_offsets", byte_level.trim_offsets);
        flag(w, "use_regex", byte_level.use_regex);
    });
}

fn metaspace(w: &mut Writer, metaspace: &Metaspace) {
    part(w, "Metaspace", |w| {
        text(w, "replacement", &metaspace.replacement.to_string());
        let scheme = match metaspace.prepend_scheme {
            PrependScheme::First => "first",
            PrependScheme::Never => "never",
            PrependScheme::Always => "always",
        };
        text(w, "prepend_scheme", scheme);
        flag(w, "split", metaspace.split);
    });
}

fn split_behavior(behavior: SplitBehavior) -> &'static str {
    match behavior {
        SplitBehavior::Removed => "Removed",
        SplitBehavior::Isolated => "Isolated",
        SplitBehavior::MergedWithPrevious => "MergedWithPrevious",
        SplitBehavior::MergedWithNext => "MergedWithNext",
        SplitBehavior::Contiguous => "Contiguous",
    }
}

fn post_processor(w: &mut Writer, post_processor: &PostProcessor) {
    let token = |w: &mut Writer, key: &str, token: &(String, u32)| {
        w.member(key, |w| {
            w.array(|w| {
                w.item(|w| w.string(&token.0));
                w.item(|w| w.number(token.1));
            });
        });
    };
    match post_processor {
        PostProcessor::Bert { sep, cls } => part(w, "BertProcessing", |w| {
            token(w, "sep", sep);
            token(w, "cls", cls);
        }),
        PostProcessor::Roberta { sep, cls, trim_offsets, add_prefix_space } => {
            part(w, "RobertaProcessing", |w| {
                token(w, "sep", sep);
                token(w, "cls", cls);
                flag(w, "trim_offsets", *trim_offsets);
                flag(w, "add_prefix_space", *add_prefix_space);
            });
        }
        PostProcessor::ByteLevel(fields) => byte_level(w, fields),
        PostProcessor::Template(template) => part(w, "TemplateProcessing", |w| {
            template_pieces(w, "single", &template.single);
            template_pieces(w, "pair", &template.pair);
            w.member("special_tokens", |w| {
                w.object(|w| {
                    for (key, token) in &template.special_tokens {
                        w.member(key, |w| {
                            w.object(|w| {
                                text(w, "id", &token.id);
                                w.member("ids", |w| {
                                    w.array(|w| {
                                        token.ids.iter().for_each(|&id| w.item(|w| w.number(id)));
                                    });
                                });
                                w.member("tokens", |w| {
                                    w.array(|w| {
                                        token.tokens.iter().for_each(|t| w.item(|w| w.string(t)));
                                    });
                                });
                            });
                        });
                    }
                });
            });
        }),
        PostProcessor::Sequence(parts) => sequence(w, "processors", parts, self::post_processor),
    }
}

fn template_pieces(w: &mut Writer, key: &str, pieces: &[TemplatePiece]) {
    w.member(key, |w| {
        w.array(|w| {
            for piece in pieces {
                let (kind, id, type_id) = match piece {
                    TemplatePiece::Sequence { id: TemplateSequence::A, type_id } => {
                        ("Sequence", "A", type_id)
                    }
                    TemplatePiece::Sequence { id: TemplateSequence::B, type_id } => {
                        ("Sequence", "B", type_id)
                    }
                    TemplatePiece::SpecialToken { id, type_id } => {
                        ("SpecialToken", id.as_str(), type_id)
                    }
                };
                w.item(|w| {
                    w.object(|w| {
                        w.member(kind, |w| {
                            w.object(|w| {
                                text(w, "id", id);
                                number(w, "type_id", (*type_id).into());
                            });
                        });
                    });
                });
            }
        });
    });
}

fn decoder(w: &mut Writer, decoder: &Decoder) {
    match decoder {
        Decoder::Bpe { suffix } => part(w, "BPEDecoder", |w| text(w, "suffix", suffix)),
        Decoder::ByteLevel(fields) => byte_level(w, fields),
        Decoder::WordPiece { prefix, cleanup } => part(w, "WordPiece", |w| {
            text(w, "prefix", prefix);
            flag(w, "cleanup", *cleanup);
        }),
        Decoder::Metaspace(fields) => metaspace(w, fields),
        Decoder::Ctc { pad_token, word_delimiter_token, cleanup } => part(w, "CTC", |w| {
            text(w, "pad_token", pad_token);
            text(w, "word_delimiter_token", word_delimiter_token);
            flag(w, "cleanup", *cleanup);
        }),
        Decoder::Replace(fields) => replace(w, fields),
        Decoder::Fuse => part(w, "Fuse", |_| {}),
        Decoder::Strip { content, start, stop } => part(w, "Strip", |w| {
            text(w, "content", &content.to_string());
            number(w, "start", *start as u64);
            number(w, "stop", *stop as u64);
        }),
        Decoder::ByteFallback => part(w, "ByteFallback", |_| {}),
        Decoder::Sequence(parts) => sequence(w, "decoders", parts, self::decoder),
    }
}

fn model(w: &mut Writer, model: &Model) {
    part(w, model.type_name(), |w| match model {
        Model::Bpe(model) => bpe(w, model),
        Model::WordPiece(model) => {
            text(w, "unk_token", &model.unk_token);
            text(w, "continuing_subword_prefix", &model.continuing_subword_prefix);
            number(w, "max_input_chars_per_word", model.max_input_chars_per_word as u64);
            w.member("vocab", |w| token_map(w, &model.vocab));
        }
        Model::WordLevel(model) => {
            w.member("vocab", |w| token_map(w, &model.vocab));
            text(w, "unk_token", &model.unk_token);
        }
        Model::Unigram(model) => {
            w.member("unk_id", |w| w.optional(model.unk_id, Writer::number));
            w.member("vocab", |w| {
                w.array(|w| {
                    for (piece, &score) in model.pieces.iter().zip(&model.scores) {
                        w.item(|w| {
                            w.array(|w| {
                                w.item(|w| w.string(piece));
                                w.item(|w| w.float(score));
                            });
                        });
                    }
                });
            });
            flag(w, "byte_fallback", model.byte_fallback);
        }
    });
}

fn bpe(w: &mut Writer, model: &Bpe) {
    w.member("dropout", |w| w.optional(model.dropout, Writer::float32));
    maybe_text(w, "unk_token", model.unk_token.as_deref());
    maybe_text(w, "continuing_subword_prefix", model.continuing_subword_prefix.as_deref());
    maybe_text(w, "end_of_word_suffix", model.end_of_word_suffix.as_deref());
    flag(w, "fuse_unk", model.fuse_unk);
    flag(w, "byte_fallback", model.byte_fallback);
    flag(w, "ignore_merges", model.ignore_merges);
    w.member("vocab", |w| token_map(w, &model.vocab));
    w.member("merges", |w| {
        w.array(|w| {
            for merge in &model.merges {
                w.item(|w| {
                    w.array(|w| {
                        for id in [merge.left, merge.right] {
                            // `validate` refuses documents where this would be missing.
                            w.item(|w| w.string(model.vocab.token(id).unwrap_or("")));
                        }
                    });
                });
            }
        });
    });
}

pub(crate) fn token_map(w: &mut Writer, map: &IdMap<str>) {
    w.object(|w| {
        for (id, token) in map.iter() {
            w.member(token, |w| w.number(id));
        }
    });
}
