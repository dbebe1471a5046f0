//! The encoder as the papers and the reference libraries describe it: the specification.
//!
//! No trie, no session, every token looked up by its text at every place. `O(n m)` hash look-ups
//! for n bytes and the longest token of m bytes. The fast encoder must give the same tokens.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use tokenizer_core::{Model, Token, TokenId, TokenKind, utf8};

use crate::model::byte_piece;
use crate::{Compat, Unigram};

/// The tokens of one piece.
#[must_use]
pub fn encode(model: &Unigram, piece: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    for part in fuse(model, best_path(model, piece)) {
        let text = &piece[part.span.clone()];
        if part.id.is_some() && part.id != model.unknown() {
            tokens.extend(part.id.map(|id| Token::new(id, text.len())));
        } else {
            tokens.extend(unknown(model, text));
        }
    }
    tokens
}

/// A token of the best path; without id an unknown character or a run of them.
#[derive(Clone, Debug)]
struct Part {
    span: Range<usize>,
    id: Option<TokenId>,
}

/// The score of the best path to a byte offset, and the last token of it.
#[derive(Clone, Debug)]
struct Best {
    score: f64,
    last: Part,
}

/// Viterbi: from every character boundary, in order, every token that matches there (or the
/// character alone, as unknown) may become the last token of the best path to where it ends.
fn best_path(model: &Unigram, piece: &[u8]) -> Vec<Part> {
    // The name of a byte token has 6 bytes.
    let longest = model.vocab().max_token_len().max(6);
    let mut best: Vec<Option<Best>> = vec![None; piece.len() + 1];
    let mut start = 0;
    while start < piece.len() {
        let mut here = best[start].as_ref().map_or(0.0, |best| best.score);
        if model.options().compat == Compat::SentencePiece && here.abs() > 100_000.0 {
            for best in best[start..].iter_mut().flatten() {
                best.score = f64::from(best.score as f32 - here as f32);
            }
            here = 0.0;
        }
        let char_end = start + utf8::char_len(&piece[start..]);
        let mut relax = |end: usize, id: Option<TokenId>, score: f64| {
            let candidate = add(model, here, score, id);
            if best[end].as_ref().is_none_or(|best| candidate > best.score) {
                let score = store(model, candidate);
                best[end] = Some(Best { score, last: Part { span: start..end, id } });
            }
        };
        let mut has_char = false;
        for end in start + 1..=piece.len().min(start + longest) {
            if let Some(id) = matching_token(model, &piece[start..end]) {
                relax(end, Some(id), token_score(model, id));
                has_char |= end == char_end;
            }
        }
        if !has_char {
            relax(char_end, None, model.unknown_score());
        }
        start = char_end;
    }
    let mut parts = Vec::new();
    let mut end = piece.len();
    while end > 0 {
        let part = best[end].as_ref().expect("every boundary is reached").last.clone();
        end = part.span.start;
        parts.push(part);
    }
    parts.reverse();
    parts
}

/// The sum of a path's score and a token's, before it is compared.
fn add(model: &Unigram, path: f64, token: f64, id: Option<TokenId>) -> f64 {
    match model.options().compat {
        Compat::SentencePiece => f64::from(path as f32 + token as f32),
        Compat::SentencePiece021 if id.is_none() => f64::from(path as f32 + token as f32),
        Compat::SentencePiece021 | Compat::HuggingFace => path + token,
    }
}

/// The sum as it is kept.
fn store(model: &Unigram, score: f64) -> f64 {
    match model.options().compat {
        Compat::HuggingFace => score,
        Compat::SentencePiece | Compat::SentencePiece021 => f64::from(score as f32),
    }
}

fn matching_token(model: &Unigram, text: &[u8]) -> Option<TokenId> {
    let vocab = model.vocab();
    let id = vocab.get(text);
    if model.options().compat == Compat::HuggingFace {
        let named = |&byte: &u8| text.len() == 6 && byte_piece(byte) == text;
        return id.or_else(|| vocab.byte((0..=255).find(named)?));
    }
    id.filter(|&id| matches!(vocab.kind(id), Some(TokenKind::Normal | TokenKind::UserDefined)))
}

fn token_score(model: &Unigram, id: TokenId) -> f64 {
    let vocab = model.vocab();
    let score = model.score(id).expect("the token exists");
    let is_user_defined = vocab.kind(id) == Some(TokenKind::UserDefined);
    let len = vocab.bytes(id).map_or(0, <[u8]>::len);
    match model.options().compat {
        Compat::HuggingFace => score,
        Compat::SentencePiece if is_user_defined => f64::from((0.1 * (len as f64 - 1.0)) as f32),
        Compat::SentencePiece021 if is_user_defined => {
            let normal = vocab.iter().zip(model.scores()).filter(|(t, _)| t.2 == TokenKind::Normal);
            let best = normal.fold(f32::MIN_POSITIVE, |best, (_, &score)| best.max(score as f32));
            f64::from(len as f32 * best) - 0.1
        }
        _ => f64::from(score as f32),
    }
}

/// Joins unknown characters in a row.
fn fuse(model: &Unigram, parts: Vec<Part>) -> Vec<Part> {
    if !model.options().fuse_unk {
        return parts;
    }
    let mut fused: Vec<Part> = Vec::new();
    for part in parts {
        let is_unknown = |part: &Part| part.id.is_none() || part.id == model.unknown();
        match fused.last_mut() {
            Some(last) if is_unknown(last) && is_unknown(&part) => last.span.end = part.span.end,
            _ => fused.push(part),
        }
    }
    fused
}

/// What stands for unknown text.
fn unknown(model: &Unigram, text: &[u8]) -> Vec<Token> {
    if model.options().compat == Compat::HuggingFace
        && let Some(id) = matching_token(model, text)
    {
        return vec![Token::new(id, text.len())];
    }
    let bytes: Option<Vec<Token>> =
        text.iter().map(|&b| model.vocab().byte(b).map(|id| Token::new(id, 1))).collect();
    match bytes {
        Some(bytes) if model.options().byte_fallback => bytes,
        _ => model.unknown().map(|id| Token::new(id, text.len())).into_iter().collect(),
    }
}
