//! SentencePiece: tokenizer.json and .model.

use std::collections::HashMap;

use formats::sentencepiece::{
    ModelType, NormalizerSpec, Piece, SentencePieceModel, TrainerSpec, parse_byte_piece,
};
use formats::tokenizer_json as doc;
use formats::{IdMap, Strings};
use tokenizer_core::TokenKind;

use super::spaces::{MARK, Spaces};
use super::{
    ConvertError, ConvertOptions, Converted, Json, Setting, Target, refuse_flags, refuse_settings,
};
use crate::load::Document;

const TARGET: Target = Target::SentencePiece;

/// The tokenizer.json of a SentencePiece model.
pub(super) fn to_json(model: &SentencePieceModel) -> Result<Json, ConvertError> {
    let refuse = |part: &str, what: &str| Err(ConvertError::new(part, what));
    let spaces = Spaces::of(model)?;
    let trainer = model.trainer();
    let of_kind = |kind| model.pieces.iter().find(move |piece| piece.kind == kind);
    if of_kind(TokenKind::UserDefined).is_some() && (spaces.add_dummy_prefix || spaces.remove_extra)
    {
        return refuse(
            "pieces",
            "user-defined symbols stand in text whose spaces are put in front or removed: a \
             tokenizer.json does that to the text between them",
        );
    }
    if let Some(piece) = of_kind(TokenKind::Unused) {
        let what = format!("{:?} is unused, which a tokenizer.json cannot say", piece.piece);
        return Err(ConvertError::new("pieces", what));
    }
    let Some(unk) = model.pieces.first_of_kind(TokenKind::Unknown) else {
        return refuse("pieces", "there is no unknown piece");
    };
    let unk_piece = model.pieces.get(unk).map(|piece| piece.piece).unwrap_or_default();
    let model_type = model
        .model_type()
        .map_err(|error| ConvertError::new("trainer_spec.model_type", error.to_string()))?;
    let (mut lost, mut except) = (Vec::new(), Vec::new());
    let written = match model_type {
        ModelType::Unigram => {
            lost.push(format!(
                "that the text {unk_piece:?} is text: in a tokenizer.json it is the unknown token"
            ));
            except.push(unk_piece.to_owned());
            if trainer.byte_fallback() {
                lost.push(
                    "that the text <0x41> is text: in a tokenizer.json it is the byte".into(),
                );
                except.push("<0x".to_owned());
            }
            doc::Model::Unigram(unigram(model, unk))
        }
        ModelType::Bpe => doc::Model::Bpe(byte_pairs(model, unk_piece, merges(model))?),
        ModelType::Char => doc::Model::Bpe(byte_pairs(model, unk_piece, Vec::new())?),
        ModelType::Word => {
            return refuse(
                "trainer_spec.model_type",
                "whole words: unknown words in a row are one token, and a WordLevel model of a \
                 tokenizer.json makes one of each",
            );
        }
    };
    let mut json = doc::TokenizerJson::new(written);
    json.normalizer = one_or_sequence(spaces.normalizers(), doc::Normalizer::Sequence);
    json.decoder = Some(decoder(model, &spaces, unk_piece));
    for (id, piece) in (0..).zip(model.pieces.iter()) {
        let special = match piece.kind {
            TokenKind::Control => true,
            TokenKind::UserDefined => false,
            _ => continue,
        };
        json.added_tokens.push(doc::AddedToken {
            id,
            content: piece.piece.to_owned(),
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special,
        });
    }
    let control = |name: &str| {
        let mut pieces = model.pieces.iter().enumerate();
        let found = pieces.find(|(_, p)| p.piece == name && p.kind == TokenKind::Control);
        found.map(|(id, _)| (name.to_owned(), id as u32))
    };
    json.post_processor = template(control(trainer.bos_piece()), control(trainer.eos_piece()));
    Ok((json, lost, except))
}

fn one_or_sequence<T>(mut steps: Vec<T>, sequence: impl Fn(Vec<T>) -> T) -> Option<T> {
    match steps.len() {
        0 | 1 => steps.pop(),
        _ => Some(sequence(steps)),
    }
}

/// The beginning and the end of a sentence around one text and around each of a pair.
fn template(bos: Option<(String, u32)>, eos: Option<(String, u32)>) -> Option<doc::PostProcessor> {
    let mut template = doc::Template::default();
    for (token, id) in bos.iter().chain(&eos) {
        template.special_tokens.insert(token.clone(), doc::TemplateToken::one(token, *id));
    }
    if template.special_tokens.is_empty() {
        return None;
    }
    let special = |token: &(String, u32)| doc::TemplatePiece::SpecialToken {
        id: token.0.clone(),
        type_id: 0,
    };
    let around = |id| {
        let text = doc::TemplatePiece::Sequence { id, type_id: 0 };
        bos.iter().map(special).chain([text]).chain(eos.iter().map(special)).collect::<Vec<_>>()
    };
    template.single = around(doc::TemplateSequence::A);
    template.pair = [around(doc::TemplateSequence::A), around(doc::TemplateSequence::B)].concat();
    Some(doc::PostProcessor::Template(template))
}

fn decoder(model: &SentencePieceModel, spaces: &Spaces, unk_piece: &str) -> doc::Decoder {
    let replace = |pattern: &str, content: &str| {
        doc::Decoder::Replace(doc::Replace {
            pattern: doc::Pattern::String(pattern.to_owned()),
            content: content.to_owned(),
        })
    };
    let mut steps = Vec::new();
    let surface = model.trainer().unk_surface();
    let holds_unk = model.pieces.iter().filter(|piece| piece.piece.contains(unk_piece)).count();
    if surface != unk_piece && holds_unk == 1 {
        steps.push(replace(unk_piece, surface));
    }
    steps.push(replace(&MARK.to_string(), " "));
    steps.push(doc::Decoder::ByteFallback);
    steps.push(doc::Decoder::Fuse);
    if spaces.escape && (spaces.add_dummy_prefix || spaces.remove_extra) {
        // One, also where all marks go: an unknown token's own space stays.
        steps.push(doc::Decoder::Strip { content: ' ', start: 1, stop: 0 });
    }
    doc::Decoder::Sequence(steps)
}

fn unigram(model: &SentencePieceModel, unk: usize) -> doc::Unigram {
    let mut pieces = Strings::new();
    model.pieces.iter().for_each(|piece| pieces.push(piece.piece));
    doc::Unigram {
        unk_id: Some(unk as u32),
        pieces,
        scores: model.pieces.iter().map(|piece| f64::from(piece.score)).collect(),
        byte_fallback: model.trainer().byte_fallback(),
    }
}

fn byte_pairs(
    model: &SentencePieceModel,
    unk_piece: &str,
    merges: Vec<doc::Merge>,
) -> Result<doc::Bpe, ConvertError> {
    let pairs = model.pieces.iter().zip(0..).map(|(piece, id)| (piece.piece, id));
    let vocab = IdMap::<str>::from_pairs(pairs)
        .map_err(|error| ConvertError::new("pieces", error.to_string()))?;
    Ok(doc::Bpe {
        unk_token: Some(unk_piece.to_owned()),
        fuse_unk: true,
        byte_fallback: model.trainer().byte_fallback(),
        vocab,
        merges,
        ..doc::Bpe::default()
    })
}

/// Every pair of pieces that makes a piece, the best score first; of one score the lower id of the
/// product, then of the left part.
fn merges(model: &SentencePieceModel) -> Vec<doc::Merge> {
    let normal = |piece: &Piece<'_>| piece.kind == TokenKind::Normal;
    let pieces = model.pieces.iter().zip(0u32..).filter(|(piece, _)| normal(piece));
    let ids: HashMap<&str, u32> = pieces.clone().map(|(piece, id)| (piece.piece, id)).collect();
    let mut scored = Vec::new();
    for (piece, product) in pieces {
        for (at, _) in piece.piece.char_indices().skip(1) {
            let (left, right) = piece.piece.split_at(at);
            if let (Some(&left), Some(&right)) = (ids.get(left), ids.get(right)) {
                scored.push((piece.score, doc::Merge { left, right, product }));
            }
        }
    }
    scored.sort_by(|(a, x), (b, y)| {
        b.total_cmp(a).then((x.product, x.left).cmp(&(y.product, y.left)))
    });
    scored.into_iter().map(|(_, merge)| merge).collect()
}

/// The SentencePiece model of a tokenizer.json.
pub(super) fn from_json(
    json: &doc::TokenizerJson,
    options: &ConvertOptions,
) -> Result<Converted, ConvertError> {
    let refuse = |part: &str, what: String| Err(ConvertError::new(part, what));
    let mut converted = Converted::new(Document::SentencePiece(Box::default()));
    refuse_settings(json, TARGET, &mut converted, options)?;
    let spaces = Spaces::of_json(json)?;
    refuse_flags(json, TARGET, json.normalizer.is_some())?;
    let added = json.resolved_added_tokens();
    if let Some((_, token)) = added.iter().find(|(_, token)| !token.special)
        && (spaces.add_dummy_prefix || spaces.remove_extra)
    {
        return refuse(
            "added_tokens",
            format!(
                "{:?} is recognised in every text and stands between texts whose spaces are put in \
                 front or removed: a {TARGET} does that to the whole text",
                token.content
            ),
        );
    }
    let (model_type, unk, byte_fallback, scored) = match &json.model {
        doc::Model::Unigram(model) => {
            let Some(unk) = model.unk_id else {
                return refuse("model.unk_id", format!("a {TARGET} needs an unknown piece"));
            };
            if model.scores.iter().any(|&score| f64::from(score as f32) != score) {
                converted.lost.push("digits of scores, which are 32-bit numbers".to_owned());
            }
            let unk_piece = model.pieces.get(unk as usize).unwrap_or_default();
            converted.lost.push(format!(
                "that the text {unk_piece:?} is the unknown token: in a .model it is text"
            ));
            converted.except.push(unk_piece.to_owned());
            if model.byte_fallback {
                converted
                    .lost
                    .push("that the text <0x41> is the byte: in a .model it is text".into());
                converted.except.push("<0x".to_owned());
            }
            let scored: Vec<(&str, f32)> =
                model.pieces.iter().zip(&model.scores).map(|(p, &s)| (p, s as f32)).collect();
            (ModelType::Unigram, unk, model.byte_fallback, scored)
        }
        doc::Model::Bpe(model) => {
            let unk = check_bpe(model)?;
            (ModelType::Bpe, unk, model.byte_fallback, merge_scores(model)?)
        }
        other => {
            return refuse(
                "model",
                format!(
                    "a {TARGET} holds Unigram or BPE over characters, not {}",
                    other.type_name()
                ),
            );
        }
    };
    if spaces.cuts_at_marks {
        let inner =
            |piece: &&(&str, f32)| piece.0.char_indices().any(|(at, c)| at > 0 && c == MARK);
        if let Some((piece, _)) = scored.iter().find(inner) {
            return refuse(
                "pre_tokenizer",
                format!(
                    "cuts in front of every {MARK}, but {piece:?} holds one inside: a {TARGET} cuts nothing"
                ),
            );
        }
    }
    let mut document = SentencePieceModel::default();
    let added_kind: HashMap<u32, TokenKind> = added
        .iter()
        .map(|(id, token)| {
            (*id, if token.special { TokenKind::Control } else { TokenKind::UserDefined })
        })
        .collect();
    for ((piece, score), id) in scored.iter().zip(0u32..) {
        let kind = if id == unk {
            TokenKind::Unknown
        } else if byte_fallback && parse_byte_piece(piece).is_some() {
            TokenKind::Byte
        } else {
            added_kind.get(&id).copied().unwrap_or(TokenKind::Normal)
        };
        document.pieces.push(piece, *score, kind);
    }
    for (id, token) in &added {
        if (*id as usize) < scored.len() {
            continue;
        }
        if *id as usize != document.pieces.len() {
            return refuse("added_tokens", format!("ids before {id} have no token"));
        }
        document.pieces.push(&token.content, 0.0, added_kind[id]);
    }
    let mut trainer = TrainerSpec::default();
    trainer.set_model_type(model_type);
    trainer.vocab_size = i32::try_from(document.pieces.len()).ok();
    trainer.byte_fallback = Some(byte_fallback);
    trainer.unk_id = Some(unk as i32);
    let unk_piece = scored.get(unk as usize).map(|(piece, _)| (*piece).to_owned());
    trainer.unk_surface = unk_piece.as_deref().map(|piece| surface(json, piece));
    trainer.unk_piece = unk_piece;
    name_ends(json, &document, &mut trainer, &mut converted, options)?;
    document.trainer_spec = Some(trainer);
    document.normalizer_spec = Some(NormalizerSpec {
        precompiled_charsmap: Some(spaces.charsmap.clone()),
        add_dummy_prefix: Some(spaces.add_dummy_prefix),
        remove_extra_whitespaces: Some(spaces.remove_extra),
        escape_whitespaces: Some(spaces.escape),
        ..NormalizerSpec::default()
    });
    if spaces.first_only && added.iter().any(|(_, token)| token.special) {
        converted.lost.push(
            "that text behind a special token begins without a space: a .model begins all alike"
                .to_owned(),
        );
        converted.except.extend(added.iter().map(|(_, token)| token.content.clone()));
    }
    if spaces.looks_at_first {
        converted.lost.push(
            "that a text which begins with a space gets no mark in front: a .model puts one in \
             front of every text"
                .to_owned(),
        );
    }
    document
        .to_bytes()
        .map_err(|error| ConvertError::new("model.vocab", error.what().to_owned()))?;
    converted.document = Document::SentencePiece(Box::new(document));
    Ok(converted)
}

/// What an unknown token decodes to.
fn surface(json: &doc::TokenizerJson, unk_piece: &str) -> String {
    let steps = match &json.decoder {
        Some(doc::Decoder::Sequence(steps)) => &steps[..],
        Some(step) => std::slice::from_ref(step),
        None => &[],
    };
    let replaced = steps.iter().find_map(|step| match step {
        doc::Decoder::Replace(doc::Replace { pattern: doc::Pattern::String(pattern), content })
            if pattern == unk_piece =>
        {
            Some(content.clone())
        }
        _ => None,
    });
    replaced.unwrap_or_else(|| unk_piece.to_owned())
}

/// Names the tokens at the beginning and the end of a sentence.
fn name_ends(
    json: &doc::TokenizerJson,
    document: &SentencePieceModel,
    trainer: &mut TrainerSpec,
    converted: &mut Converted,
    options: &ConvertOptions,
) -> Result<(), ConvertError> {
    let id_of = |name: &str| {
        let mut pieces = document.pieces.iter();
        let id = pieces.position(|p| p.piece == name && p.kind == TokenKind::Control);
        id.map_or(-1, |id| id as i32)
    };
    let (mut bos, mut eos) = (None, None);
    let mut simple = true;
    match &json.post_processor {
        None => {}
        Some(doc::PostProcessor::Template(template)) => {
            let mut behind = false;
            for piece in &template.single {
                let doc::TemplatePiece::SpecialToken { id, .. } = piece else {
                    behind = true;
                    continue;
                };
                let slot = if behind { &mut eos } else { &mut bos };
                let tokens = template.special_tokens.get(id).map(|token| &token.tokens[..]);
                match tokens {
                    Some([token]) if slot.is_none() => *slot = Some(token.clone()),
                    _ => simple = false,
                }
            }
        }
        Some(_) => simple = false,
    }
    if !simple {
        super::refuse_setting(true, Setting::Template, TARGET, converted, options)?;
    }
    let added = (bos.is_some(), eos.is_some());
    let bos = bos.unwrap_or_else(|| "<s>".to_owned());
    let eos = eos.unwrap_or_else(|| "</s>".to_owned());
    trainer.bos_id = Some(id_of(&bos));
    trainer.eos_id = Some(id_of(&eos));
    if added != (id_of(&bos) >= 0, id_of(&eos) >= 0) {
        converted.lost.push(format!("which of {bos} and {eos} is added: that is for the caller"));
    }
    (trainer.bos_piece, trainer.eos_piece) = (Some(bos), Some(eos));
    let pad = json.padding.as_ref().map_or("<pad>", |padding| &padding.pad_token);
    trainer.pad_id = Some(id_of(pad));
    trainer.pad_piece = Some(pad.to_owned());
    Ok(())
}

/// The unknown token, if SentencePiece can merge like the model.
fn check_bpe(model: &doc::Bpe) -> Result<u32, ConvertError> {
    let refuse = |part: &str, what: &str| {
        Err(ConvertError::new(format!("model.{part}"), format!("a {TARGET} {what}")))
    };
    for (affix, name) in [
        (&model.continuing_subword_prefix, "continuing_subword_prefix"),
        (&model.end_of_word_suffix, "end_of_word_suffix"),
    ] {
        if affix.as_deref().is_some_and(|affix| !affix.is_empty()) {
            return refuse(name, "has no mark of the inside or the end of words");
        }
    }
    if model.ignore_merges {
        return refuse("ignore_merges", "always merges");
    }
    if !model.fuse_unk {
        return refuse("fuse_unk", "takes unknown characters in a row as one");
    }
    match model.unk_token.as_deref().and_then(|unk| model.vocab.get(unk)) {
        Some(unk) => Ok(unk),
        None => refuse("unk_token", "needs an unknown piece"),
    }
}

/// Pieces in order of id with their scores: minus the place of the first merge that makes them.
///
/// SentencePiece merges every pair that makes a piece, so the list must hold every pair, and those
/// of one product one after the other.
fn merge_scores(model: &doc::Bpe) -> Result<Vec<(&str, f32)>, ConvertError> {
    if let Some(gap) = model.vocab.first_gap() {
        return Err(ConvertError::new("model.vocab", format!("id {gap} has no token")));
    }
    let refuse = |what: String| Err(ConvertError::new("model.merges", what));
    let name = |id: u32| model.vocab.token(id).unwrap_or_default();
    let mut scores: HashMap<u32, f32> = HashMap::new();
    let mut before = None;
    for (rank, merge) in model.merges.iter().enumerate() {
        if before != Some(merge.product) {
            let next = -(scores.len() as f32);
            if scores.insert(merge.product, next).is_some() {
                return refuse(format!(
                    "merge {rank} makes {:?} again, behind merges of other tokens: a {TARGET} has \
                     one score for a token",
                    name(merge.product)
                ));
            }
        }
        before = Some(merge.product);
    }
    let mut unmade = -(scores.len() as f32);
    Ok(model
        .vocab
        .iter()
        .map(|(id, token)| {
            let score = scores.get(&id).copied().unwrap_or_else(|| {
                let single = token.chars().count() < 2 || parse_byte_piece(token).is_some();
                if !single {
                    unmade -= 1.0;
                }
                if single { 0.0 } else { unmade }
            });
            (token, score)
        })
        .collect())
}
