//! Can every token come out?

use std::any::Any;
use std::collections::HashMap;
use std::fmt;

use bpe::Bpe;
use tokenizer_core::{Encode, TokenId, TokenKind};
use unigram::Unigram;
use wordpiece::{Position, WordPiece};

use super::show_ids;
use crate::pipeline::{Session, Tokenizer};
use crate::policy::Policy;
use crate::stream::DecodeOptions;
use crate::trace::Stretch;

/// Which tokens no text that was tried becomes, and why. Made by [`reachability`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reachability {
    /// Tokens that were looked at.
    pub tokens: usize,
    /// Those that some text becomes.
    pub reached: usize,
    /// Tokens that are a part of a character, which the model makes of their bytes.
    pub partial: usize,
    /// Tokens that stand for no text: unused, unknown, byte fallback, control tokens of the model.
    pub silent: usize,
    /// The others, in order of id.
    pub unreachable: Vec<Unreachable>,
}

/// A token that no text that was tried becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreachable {
    /// The token.
    pub id: TokenId,
    /// Its text as the vocabulary writes it.
    pub token: Vec<u8>,
    /// Why.
    pub reason: UnreachableReason,
}

/// Why a token does not come out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnreachableReason {
    /// The model makes these tokens of its text, wherever it stands.
    Outdone(Vec<TokenId>),
    /// The splitter cuts its text into these pieces.
    Cut(Vec<String>),
    /// What is done to text before the model turns its text into this.
    Rewritten(String),
    /// An added token whose text becomes these tokens even where it is allowed.
    Hidden(Vec<TokenId>),
}

impl fmt::Display for UnreachableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outdone(ids) => write!(f, "the model makes {} of its text", show_ids(ids)),
            Self::Cut(pieces) => {
                let pieces: Vec<String> = pieces.iter().map(|p| format!("{p:?}")).collect();
                write!(f, "the splitter cuts its text into {}", pieces.join(" "))
            }
            Self::Rewritten(text) => write!(f, "its text becomes {text:?} before the model"),
            Self::Hidden(ids) => write!(f, "its text becomes {} even where allowed", show_ids(ids)),
        }
    }
}

/// Looks for a text that becomes each token: its own, then its own between other characters.
///
/// That the model outdoes a token (BPE, Unigram) holds for every text; the other reasons are what
/// happens to the texts that were tried. Encodes a short text or a few for every token.
#[must_use]
pub fn reachability(tokenizer: &Tokenizer) -> Reachability {
    let mut found = Reachability::default();
    let mut session = tokenizer.session();
    let model = OfModel::new(tokenizer);
    let mut encoder = tokenizer.model().encoder();
    let text_of = TextOf { tokenizer };
    for id in (0..tokenizer.vocab_len() as u32).map(TokenId) {
        let Some(token) = tokenizer.token_bytes(id).map(|bytes| bytes.into_owned()) else {
            continue;
        };
        let added = tokenizer.added.by_id(id).is_some();
        let kind = tokenizer.vocab().kind(id);
        if !added && !matches!(kind, Some(TokenKind::Normal | TokenKind::UserDefined)) {
            found.silent += 1;
            continue;
        }
        found.tokens += 1;
        let reason = if added {
            let content = String::from_utf8_lossy(&token).into_owned();
            hidden(&mut session, id, &content)
        } else {
            let candidates = text_of.candidates(id, &token);
            if candidates.iter().any(|text| becomes(&mut session, id, text)) {
                None
            } else if let Some(ids) = model.outdone(id, &token, encoder.as_mut()) {
                Some(UnreachableReason::Outdone(ids))
            } else if candidates.is_empty() {
                found.partial += 1;
                continue;
            } else {
                Some(why(&mut session, &token, &candidates[0]))
            }
        };
        match reason {
            None => found.reached += 1,
            Some(reason) => found.unreachable.push(Unreachable { id, token, reason }),
        }
    }
    found
}

fn becomes(session: &mut Session<'_>, id: TokenId, text: &str) -> bool {
    let mut ids = Vec::new();
    session.ids_into(text, &mut ids);
    ids.contains(&id)
}

fn hidden(session: &mut Session<'_>, id: TokenId, content: &str) -> Option<UnreachableReason> {
    let mut ids = Vec::new();
    session.ids_with_policy_into(content, &Policy::AllowAll, &mut ids).ok()?;
    (!ids.contains(&id)).then_some(UnreachableReason::Hidden(ids))
}

/// Texts that may become a token.
struct TextOf<'t> {
    tokenizer: &'t Tokenizer,
}

impl TextOf<'_> {
    fn candidates(&self, id: TokenId, token: &[u8]) -> Vec<String> {
        let mut plain: Vec<String> = Vec::new();
        let mut push = |text: String| {
            if !text.is_empty() && !text.contains('\u{FFFD}') && !plain.contains(&text) {
                plain.push(text);
            }
        };
        if let Ok(text) = std::str::from_utf8(token) {
            push(text.replace('\u{2581}', " "));
            push(text.to_owned());
            if let Some(model) = self.model::<WordPiece>()
                && let Some((rest, Position::Continuation)) = model.text_of(id)
            {
                // A continuation needs a beginning.
                let rest = String::from_utf8_lossy(rest).into_owned();
                plain.clear();
                for c in ["a", "e", "1", "\u{6D77}", "\u{3042}", "\u{430}", "\u{627}", "un", "x"] {
                    plain.push(format!("{c}{rest}"));
                }
                return plain;
            }
        }
        if let Ok(text) = self.tokenizer.decode(&[id], DecodeOptions::default()) {
            push(text.trim_end().to_owned());
            push(text);
        }
        let around: Vec<String> = plain
            .iter()
            .take(1)
            .flat_map(|text| {
                [
                    format!("a{text}"),
                    format!("{text}a"),
                    format!("1{text}"),
                    format!("\n{text}"),
                    format!(" {text}"),
                    format!(".{text}"),
                    format!("{text}."),
                    format!("x {text} x"),
                    format!("{text} x"),
                    format!("{text}\n"),
                ]
            })
            .collect();
        plain.extend(around);
        plain
    }

    fn model<M: Any>(&self) -> Option<&M> {
        self.tokenizer.model().as_any()?.downcast_ref()
    }
}

/// What the model alone says.
struct OfModel<'t> {
    tokenizer: &'t Tokenizer,
    /// BPE knows all its unreachable tokens at once.
    by_merging: Option<HashMap<TokenId, Vec<TokenId>>>,
}

impl<'t> OfModel<'t> {
    fn new(tokenizer: &'t Tokenizer) -> Self {
        let model = tokenizer.model().as_any().and_then(|model| model.downcast_ref::<Bpe>());
        let by_merging = model.map(|model| {
            let unreachable = model.unreachable_tokens().into_iter();
            unreachable.map(|found| (found.token, found.encoding)).collect()
        });
        Self { tokenizer, by_merging }
    }

    /// What the model makes of the bytes of a token instead of it.
    fn outdone(&self, id: TokenId, token: &[u8], encoder: &mut dyn Encode) -> Option<Vec<TokenId>> {
        if let Some(unreachable) = &self.by_merging {
            return unreachable.get(&id).cloned();
        }
        if !self.tokenizer.model().as_any().is_some_and(|model| model.is::<Unigram>()) {
            return None;
        }
        let mut tokens = Vec::new();
        encoder.encode_piece(token, &mut tokens);
        let ids: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
        (ids != [id]).then_some(ids)
    }
}

/// What happens to a text on its way to the model.
fn why(session: &mut Session<'_>, token: &[u8], text: &str) -> UnreachableReason {
    let trace = session.trace(text, &Policy::Ordinary).unwrap_or_default();
    let mut pieces = Vec::new();
    let mut prepared = String::new();
    for stretch in &trace.stretches {
        if let Stretch::Text(traced) = stretch {
            prepared.push_str(&traced.text);
            pieces.extend(
                traced.pieces.iter().map(|piece| traced.text[piece.span.range()].to_owned()),
            );
        }
    }
    let contains = |text: &str| memchr::memmem::find(text.as_bytes(), token).is_some();
    if contains(&prepared) && !pieces.iter().any(|piece| contains(piece)) {
        return UnreachableReason::Cut(pieces);
    }
    if !contains(&prepared) {
        return UnreachableReason::Rewritten(prepared);
    }
    UnreachableReason::Outdone(trace.ids())
}
