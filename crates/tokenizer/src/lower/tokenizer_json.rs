//! tokenizer.json, as Hugging Face tokenizers 0.23 reads it.

use bpe::{Alphabet, Bpe, BpeOptions, EndOfWord};
use formats::sentencepiece::parse_byte_piece;
use formats::tokenizer_json as doc;
use formats::{IdMap, byte_level};
use hashbrown::{HashMap, HashSet};
use tokenizer_core::{Model, Normalize, TokenId, TokenKind, Vocab, VocabBuilder};
use unigram::{Compat, Unigram, UnigramOptions};
use wordpiece::WordPiece;

use super::vocab::fill_to;
use super::{LowerError, normalizers};
use crate::added::AddedToken;
use crate::decoder::{DecodePattern, DecodeStep, Spelling};
use crate::fit::{PadTo, Padding, Side, Truncation, TruncationStrategy};
use crate::pipeline::{ByteOffsets, Parts, Tokenizer};
use crate::post::{PostProcessor, Template, TemplatePart};

mod steps;

pub(crate) use steps::Mark;

impl Tokenizer {
    /// The tokenizer that a tokenizer.json describes.
    ///
    /// # Errors
    ///
    /// If a part is not what its library would accept, named by its path in the document.
    pub fn from_tokenizer_json(document: &doc::TokenizerJson) -> Result<Self, LowerError> {
        let added = document.resolved_added_tokens();
        let normalizer = document.normalizer.as_ref();
        let byte_level = model_on_bytes(document);
        let spelled_by_normalizer =
            steps::end(document.pre_tokenizer.as_ref()) != steps::End::ByteLevel;
        let special: HashSet<&str> = added
            .iter()
            .filter(|(_, token)| token.special)
            .map(|(_, token)| token.content.as_str())
            .collect();
        let model: Box<dyn Model> = match &document.model {
            doc::Model::Bpe(model) => Box::new(lower_bpe(model, byte_level, &special)?),
            doc::Model::WordPiece(model) => Box::new(lower_wordpiece(model, &special)?),
            doc::Model::WordLevel(model) => Box::new(lower_word_level(model, &special)?),
            doc::Model::Unigram(model) => Box::new(lower_unigram(model, &special)?),
        };
        let mut parts = Parts::new(model);
        parts.normalizer = lower_normalizer(normalizer, byte_level && spelled_by_normalizer)?;
        parts.steps = steps::lower(document.pre_tokenizer.as_ref(), byte_level)?;
        parts.unknown_is_surface = matches!(document.model, doc::Model::Unigram(_));
        if parts.unknown_is_surface {
            parts.byte_offsets = ByteOffsets::Run;
        }
        parts.added_tokens = added
            .iter()
            .map(|&(id, token)| AddedToken {
                content: token.content.clone(),
                id: TokenId(id),
                special: token.special,
                single_word: token.single_word,
                lstrip: token.lstrip,
                rstrip: token.rstrip,
                normalized: token.normalized,
            })
            .collect();
        parts.post_processor =
            document.post_processor.as_ref().map_or(PostProcessor::None, lower_post);
        if parts.post_processor.templates() > 1 {
            return Err(LowerError::new(
                "post_processor",
                "two processors of a sequence add tokens, which only tokenizers itself can follow",
            ));
        }
        if document.post_processor.as_ref().is_some_and(|post| trims_behind(post, &mut false)) {
            return Err(LowerError::new(
                "post_processor",
                "a processor of a sequence trims offsets behind one that puts tokens in front and \
                 counts them, which only tokenizers itself can follow",
            ));
        }
        parts.decoder = match &document.decoder {
            None => vec![DecodeStep::Spaces],
            Some(decoder) => {
                let mut steps = Vec::new();
                let vocabulary = if byte_level { Spelling::Bytes } else { Spelling::Characters };
                lower_decoder(decoder, "decoder", vocabulary, &mut steps)?;
                fuse_byte_level(steps)
            }
        };
        parts.dropout = match &document.model {
            doc::Model::Bpe(model) => model.dropout.filter(|&dropout| dropout > 0.0),
            _ => None,
        };
        parts.truncation = document.truncation.as_ref().map(lower_truncation);
        parts.padding = document.padding.as_ref().map(lower_padding).transpose()?;
        parts.build().map_err(|error| LowerError::caused("tokenizer", error))
    }
}

/// Whether the model can work on bytes instead of the characters that ByteLevel spells them with,
/// and nobody can tell: it is a BPE model that knows every byte and looks at characters nowhere else,
/// the spelling is the last thing that happens before it, and the first that decoding undoes.
fn model_on_bytes(document: &doc::TokenizerJson) -> bool {
    let doc::Model::Bpe(model) = &document.model else {
        return false;
    };
    let affixes = [&model.continuing_subword_prefix, &model.end_of_word_suffix];
    let on_bytes = !model.byte_fallback
        && affixes.into_iter().all(|affix| non_empty(affix).is_none())
        && (0..=255).all(|byte| {
            model.vocab.get(byte_level::to_char(byte).encode_utf8(&mut [0; 4])).is_some()
        });
    let spelled_last = match steps::end(document.pre_tokenizer.as_ref()) {
        steps::End::ByteLevel => true,
        // Added tokens are looked for in the normalized text: there they are spelled too.
        steps::End::Empty => {
            ends_in_byte_level(document.normalizer.as_ref())
                && document.added_tokens.iter().all(|token| !token.normalized)
        }
        steps::End::Other => false,
    };
    let decoded_first = document.decoder.as_ref().is_some_and(begins_with_byte_level);
    on_bytes && spelled_last && decoded_first
}

fn begins_with_byte_level(decoder: &doc::Decoder) -> bool {
    match decoder {
        doc::Decoder::ByteLevel(_) => true,
        doc::Decoder::Sequence(decoders) => {
            // An empty sequence does nothing.
            let nothing =
                |d: &&doc::Decoder| matches!(d, doc::Decoder::Sequence(s) if s.is_empty());
            decoders.iter().find(|d| !nothing(d)).is_some_and(begins_with_byte_level)
        }
        _ => false,
    }
}

/// ByteLevel gives one token: what follows it sees all of the text. A second one in a row has bytes
/// to decode, not the vocabulary's.
fn fuse_byte_level(steps: Vec<DecodeStep>) -> Vec<DecodeStep> {
    let mut fused = Vec::with_capacity(steps.len());
    for step in steps {
        if matches!(fused.last(), Some(DecodeStep::ByteLevel { .. })) {
            fused.push(DecodeStep::Fuse);
        }
        fused.push(step);
    }
    fused
}

/// The normalizer; without its last step where that only spells bytes and the model works on bytes.
fn lower_normalizer(
    normalizer: Option<&doc::Normalizer>,
    without_last: bool,
) -> Result<Option<Box<dyn Normalize>>, LowerError> {
    match normalizer {
        Some(doc::Normalizer::ByteLevel) if without_last => Ok(None),
        Some(doc::Normalizer::Sequence(steps)) if without_last => {
            let steps = steps[..steps.len() - 1].to_vec();
            if steps.is_empty() {
                return Ok(None);
            }
            normalizers::lower(&doc::Normalizer::Sequence(steps), "normalizer").map(Some)
        }
        Some(normalizer) => normalizers::lower(normalizer, "normalizer").map(Some),
        None => Ok(None),
    }
}

fn ends_in_byte_level(normalizer: Option<&doc::Normalizer>) -> bool {
    match normalizer {
        Some(doc::Normalizer::ByteLevel) => true,
        Some(doc::Normalizer::Sequence(steps)) => ends_in_byte_level(steps.last()),
        _ => false,
    }
}

/// Builds a vocabulary whose ids may have gaps: what is missing is `Unused`.
fn vocab_of<'t>(
    tokens: impl ExactSizeIterator<Item = (u32, &'t str)>,
    mut add: impl FnMut(&mut VocabBuilder, &'t str) -> Result<(), tokenizer_core::VocabError>,
) -> Result<Vocab, LowerError> {
    let mut vocab = Vocab::builder();
    vocab.reserve(tokens.len(), 0);
    for (id, token) in tokens {
        fill_to(&mut vocab, id, "model.vocab")?;
        add(&mut vocab, token).map_err(|error| LowerError::caused("model.vocab", error))?;
    }
    Ok(vocab.build())
}

fn lower_bpe(
    model: &doc::Bpe,
    byte_level: bool,
    special: &HashSet<&str>,
) -> Result<Bpe, LowerError> {
    // A special token that merging makes or takes must stay one that merging sees, and so must one
    // that is how a byte is spelled.
    let mut merged: HashSet<u32> = HashSet::new();
    for merge in &model.merges {
        merged.extend([merge.left, merge.right, merge.product]);
    }
    let is_control = |id: u32, token: &str| {
        special.contains(token)
            && !merged.contains(&id)
            && !(byte_level && byte_level::decode(token).is_ok_and(|bytes| bytes.len() == 1))
            && model.unk_token.as_deref() != Some(token)
    };
    let mut dead: HashSet<u32> = HashSet::new();
    let vocab = vocab_of(model.vocab.iter(), |vocab, token| {
        let id = vocab.len() as u32;
        if model.byte_fallback
            && let Some(byte) = parse_byte_piece(token)
        {
            return vocab.push(&[byte], TokenKind::Byte).map(drop);
        }
        if is_control(id, token) {
            // The bytes of its text may be those of an ordinary token, which is spelled otherwise.
            let spelled = byte_level::encode(token.as_bytes());
            let is_taken = byte_level && model.vocab.get(&spelled).is_some();
            let kind = if is_taken { TokenKind::Unused } else { TokenKind::Control };
            return vocab.push(token.as_bytes(), kind).map(drop);
        }
        if !byte_level {
            return vocab.push(token.as_bytes(), TokenKind::Normal).map(drop);
        }
        match byte_level::decode(token) {
            Ok(bytes) if vocab.get(&bytes).is_none() => {
                vocab.push(&bytes, TokenKind::Normal).map(drop)
            }
            // No text becomes this token: its characters stand for no bytes.
            _ => {
                dead.insert(id);
                vocab.push(token.as_bytes(), TokenKind::Unused).map(drop)
            }
        }
    })?;
    // Of a dropout of 1 tokenizers never merges: that alone is not random.
    let never_merges = model.dropout.is_some_and(|dropout| dropout >= 1.0);
    let merges = model
        .merges
        .iter()
        .filter(|merge| {
            !never_merges
                && ![merge.left, merge.right, merge.product].iter().any(|id| dead.contains(id))
        })
        .map(|merge| (TokenId(merge.left), TokenId(merge.right)))
        .collect();
    let mut options = BpeOptions::default();
    options.alphabet = if byte_level { Alphabet::Byte } else { Alphabet::Char };
    options.end_of_word = non_empty(&model.end_of_word_suffix).map(EndOfWord::Suffix);
    options.continuing_prefix = non_empty(&model.continuing_subword_prefix);
    options.byte_fallback = model.byte_fallback;
    options.unk = unknown_id(&model.vocab, model.unk_token.as_deref())?;
    options.fuse_unk = model.fuse_unk;
    options.ignore_merges = model.ignore_merges;
    Bpe::from_merges(vocab, merges, options).map_err(|error| LowerError::caused("model", error))
}

fn non_empty(affix: &Option<String>) -> Option<String> {
    affix.clone().filter(|affix| !affix.is_empty())
}

/// The id of the unknown token. Hugging Face fails when a text needs one that is not there; here
/// the file is refused.
fn unknown_id(vocab: &IdMap<str>, unk: Option<&str>) -> Result<Option<TokenId>, LowerError> {
    let Some(unk) = unk else {
        return Ok(None);
    };
    match vocab.get(unk) {
        Some(id) => Ok(Some(TokenId(id))),
        None => Err(LowerError::new(
            "model.unk_token",
            format!("the vocabulary of {} tokens does not hold {unk:?}", vocab.len()),
        )),
    }
}

fn kind_of(token: &str, unk: &str, special: &HashSet<&str>) -> TokenKind {
    if token == unk {
        TokenKind::Unknown
    } else if token.is_empty() {
        TokenKind::Unused
    } else if special.contains(token) {
        TokenKind::Control
    } else {
        TokenKind::Normal
    }
}

fn lower_wordpiece(
    model: &doc::WordPiece,
    special: &HashSet<&str>,
) -> Result<WordPiece, LowerError> {
    let vocab = vocab_of(model.vocab.iter(), |vocab, token| {
        vocab.push(token.as_bytes(), kind_of(token, &model.unk_token, special)).map(drop)
    })?;
    let mut options = wordpiece::Options::default();
    options.continuing_prefix = model.continuing_subword_prefix.clone().into_bytes();
    options.unk = Some(model.unk_token.clone().into_bytes());
    options.max_chars = model.max_input_chars_per_word;
    WordPiece::new(vocab, options).map_err(|error| LowerError::caused("model", error))
}

fn lower_word_level(
    model: &doc::WordLevel,
    special: &HashSet<&str>,
) -> Result<baseline::Words, LowerError> {
    let vocab = vocab_of(model.vocab.iter(), |vocab, token| {
        vocab.push(token.as_bytes(), kind_of(token, &model.unk_token, special)).map(drop)
    })?;
    let unk = unknown_id(&model.vocab, Some(&model.unk_token))?;
    baseline::Words::new(vocab, unk).map_err(|error| LowerError::caused("model", error))
}

fn lower_unigram(model: &doc::Unigram, special: &HashSet<&str>) -> Result<Unigram, LowerError> {
    // A piece that is there twice has the last id.
    let mut last: HashMap<&str, usize> = HashMap::with_capacity(model.pieces.len());
    for (id, piece) in model.pieces.iter().enumerate() {
        last.insert(piece, id);
    }
    let mut vocab = Vocab::builder();
    for (id, piece) in model.pieces.iter().enumerate() {
        let is_last = last.get(piece) == Some(&id);
        if model.byte_fallback
            && is_last
            && let Some(byte) = parse_byte_piece(piece)
        {
            vocab
                .push(&[byte], TokenKind::Byte)
                .map_err(|error| LowerError::caused("model.vocab", error))?;
            continue;
        }
        let kind = if model.unk_id == Some(id as u32) {
            TokenKind::Unknown
        } else if !is_last || piece.is_empty() || special.contains(piece) {
            TokenKind::Unused
        } else {
            TokenKind::Normal
        };
        vocab
            .push(piece.as_bytes(), kind)
            .map_err(|error| LowerError::caused("model.vocab", error))?;
    }
    let mut options = UnigramOptions::default();
    options.compat = Compat::HuggingFace;
    options.byte_fallback = model.byte_fallback;
    Unigram::new(vocab.build(), model.scores.clone(), options)
        .map_err(|error| LowerError::caused("model", error))
}

/// Whether offsets are trimmed, and the first token of a text is treated otherwise, where that is
/// no longer the first: BertProcessing and RobertaProcessing put theirs into the same list.
/// `in_front` says whether one of them came before, and is updated.
fn trims_behind(post: &doc::PostProcessor, in_front: &mut bool) -> bool {
    match post {
        doc::PostProcessor::Bert { .. } => {
            *in_front = true;
            false
        }
        doc::PostProcessor::Roberta { trim_offsets, add_prefix_space, .. } => {
            std::mem::replace(in_front, true) && *trim_offsets && *add_prefix_space
        }
        doc::PostProcessor::ByteLevel(part) => {
            *in_front && part.trim_offsets && part.add_prefix_space
        }
        doc::PostProcessor::Template(_) => false,
        doc::PostProcessor::Sequence(steps) => {
            steps.iter().any(|step| trims_behind(step, in_front))
        }
    }
}

fn lower_post(post: &doc::PostProcessor) -> PostProcessor {
    let added = |id: u32, type_id| TemplatePart::Added { ids: vec![TokenId(id)], type_id };
    let first = TemplatePart::First { type_id: 0 };
    match post {
        doc::PostProcessor::Bert { sep, cls } => PostProcessor::Template(Template {
            single: vec![added(cls.1, 0), first.clone(), added(sep.1, 0)],
            pair: vec![
                added(cls.1, 0),
                first,
                added(sep.1, 0),
                TemplatePart::Second { type_id: 1 },
                added(sep.1, 1),
            ],
        }),
        doc::PostProcessor::Roberta { sep, cls, trim_offsets, add_prefix_space } => {
            let template = PostProcessor::Template(Template {
                single: vec![added(cls.1, 0), first.clone(), added(sep.1, 0)],
                pair: vec![
                    added(cls.1, 0),
                    first,
                    added(sep.1, 0),
                    added(sep.1, 0),
                    TemplatePart::Second { type_id: 0 },
                    added(sep.1, 0),
                ],
            });
            if !trim_offsets {
                return template;
            }
            let trim = PostProcessor::TrimOffsets { add_prefix_space: *add_prefix_space };
            PostProcessor::Sequence(vec![trim, template])
        }
        doc::PostProcessor::ByteLevel(byte_level) if byte_level.trim_offsets => {
            PostProcessor::TrimOffsets { add_prefix_space: byte_level.add_prefix_space }
        }
        doc::PostProcessor::ByteLevel(_) => PostProcessor::None,
        doc::PostProcessor::Template(template) => PostProcessor::Template(Template {
            single: lower_template(&template.single, template),
            pair: lower_template(&template.pair, template),
        }),
        doc::PostProcessor::Sequence(steps) => {
            PostProcessor::Sequence(steps.iter().map(lower_post).collect())
        }
    }
}

fn lower_template(pieces: &[doc::TemplatePiece], template: &doc::Template) -> Vec<TemplatePart> {
    let part = |piece: &doc::TemplatePiece| match piece {
        doc::TemplatePiece::Sequence { id: doc::TemplateSequence::A, type_id } => {
            TemplatePart::First { type_id: *type_id }
        }
        doc::TemplatePiece::Sequence { id: doc::TemplateSequence::B, type_id } => {
            TemplatePart::Second { type_id: *type_id }
        }
        doc::TemplatePiece::SpecialToken { id, type_id } => {
            let ids = template.special_tokens.get(id).map(|token| &token.ids[..]).unwrap_or(&[]);
            TemplatePart::Added {
                ids: ids.iter().map(|&id| TokenId(id)).collect(),
                type_id: *type_id,
            }
        }
    };
    pieces.iter().map(part).collect()
}

fn lower_decoder(
    decoder: &doc::Decoder,
    path: &str,
    vocabulary: Spelling,
    steps: &mut Vec<DecodeStep>,
) -> Result<(), LowerError> {
    steps.push(match decoder {
        doc::Decoder::Bpe { suffix } => DecodeStep::EndOfWord { suffix: suffix.clone() },
        doc::Decoder::ByteLevel(_) => DecodeStep::ByteLevel { vocabulary },
        doc::Decoder::WordPiece { prefix, cleanup } => {
            DecodeStep::WordPiece { prefix: prefix.clone(), cleanup: *cleanup }
        }
        doc::Decoder::Metaspace(metaspace) => DecodeStep::Metaspace {
            replacement: metaspace.replacement,
            strip_first: metaspace.prepend_scheme != doc::PrependScheme::Never,
        },
        doc::Decoder::Ctc { pad_token, word_delimiter_token, cleanup } => DecodeStep::Ctc {
            pad: pad_token.clone(),
            word_delimiter: word_delimiter_token.clone(),
            cleanup: *cleanup,
        },
        doc::Decoder::Replace(replace) => match &replace.pattern {
            doc::Pattern::String(pattern) => {
                DecodeStep::Replace { pattern: pattern.clone(), content: replace.content.clone() }
            }
            doc::Pattern::Regex(pattern) => DecodeStep::ReplaceMatches {
                pattern: DecodePattern::new(pattern)
                    .map_err(|error| LowerError::caused(format!("{path}.pattern"), error))?,
                content: replace.content.clone(),
            },
        },
        doc::Decoder::Fuse => DecodeStep::Fuse,
        doc::Decoder::Strip { content, start, stop } => {
            DecodeStep::Strip { content: *content, start: *start, stop: *stop }
        }
        doc::Decoder::ByteFallback => DecodeStep::ByteFallback,
        doc::Decoder::Sequence(decoders) => {
            for (i, decoder) in decoders.iter().enumerate() {
                lower_decoder(decoder, &format!("{path}.decoders[{i}]"), vocabulary, steps)?;
            }
            return Ok(());
        }
    });
    Ok(())
}

fn side(direction: doc::Direction) -> Side {
    match direction {
        doc::Direction::Left => Side::Left,
        doc::Direction::Right => Side::Right,
    }
}

fn lower_truncation(truncation: &doc::Truncation) -> Truncation {
    Truncation {
        max_length: truncation.max_length,
        stride: truncation.stride,
        strategy: match truncation.strategy {
            doc::TruncationStrategy::LongestFirst => TruncationStrategy::LongestFirst,
            doc::TruncationStrategy::OnlyFirst => TruncationStrategy::OnlyFirst,
            doc::TruncationStrategy::OnlySecond => TruncationStrategy::OnlySecond,
        },
        side: side(truncation.direction),
    }
}

/// The longest padding that a file may ask for: longer ones would take memory for nothing.
const MAX_PADDING: usize = 1 << 20;

fn lower_padding(padding: &doc::Padding) -> Result<Padding, LowerError> {
    let fixed = match padding.strategy {
        doc::PaddingStrategy::Fixed(length) => length,
        doc::PaddingStrategy::BatchLongest => 0,
    };
    let longest = fixed.max(padding.pad_to_multiple_of.unwrap_or(0));
    if longest > MAX_PADDING {
        let what = format!("{longest} tokens is too far: the limit is {MAX_PADDING}");
        return Err(LowerError::new("padding", what));
    }
    Ok(Padding {
        to: match padding.strategy {
            doc::PaddingStrategy::BatchLongest => PadTo::Longest,
            doc::PaddingStrategy::Fixed(length) => PadTo::Fixed(length),
        },
        multiple_of: padding.pad_to_multiple_of.unwrap_or(0),
        side: side(padding.direction),
        id: TokenId(padding.pad_id),
        type_id: padding.pad_type_id,
        token: padding.pad_token.clone(),
    })
}
