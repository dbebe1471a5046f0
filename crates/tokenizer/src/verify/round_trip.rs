use super::{Check, Example, Texts, shortest};
use tokenizer_core::TokenKind;

use crate::decoder::DecodeStep;
use crate::pipeline::{PieceStep, Session, Tokenizer};
use crate::policy::Policy;
use crate::stream::DecodeOptions;
use crate::trace::Stretch;

/// decode(encode(x)) = x. Broken where the pipeline loses nothing of the text and the text still
/// does not come back; exempt where it loses something on the way.
pub(super) fn round_trip(tokenizer: &Tokenizer, texts: &Texts) -> Check {
    let mut check = Check::new("decode(encode(x)) = x");
    let may_promise = keeps_text(tokenizer);
    let mut session = tokenizer.session();
    let (mut broken, mut exempt): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for text in texts.iter() {
        check.cases += 1;
        if comes_back(tokenizer, &mut session, text).is_none() {
            continue;
        }
        if may_promise && loses(tokenizer, &mut session, text).is_none() {
            broken.push(text);
        } else {
            exempt.push(text);
        }
    }
    (check.broken, check.exempt) = (broken.len(), exempt.len());
    check.example = if broken.is_empty() {
        let example = shortest(&mut exempt, &mut |text| comes_back(tokenizer, &mut session, text));
        let reason = |text: &str| match may_promise {
            true => loses(tokenizer, &mut tokenizer.session(), text),
            false => Some("the pipeline rewrites text".to_owned()),
        };
        example.map(|example| {
            let why = example.text.as_deref().and_then(reason).unwrap_or_default();
            Example { what: format!("{} ({why})", example.what), ..example }
        })
    } else {
        shortest(&mut broken, &mut |text| {
            loses(tokenizer, &mut session, text)
                .is_none()
                .then(|| comes_back(tokenizer, &mut session, text))
                .flatten()
        })
    };
    check
}

/// What the text became, if it did not come back.
fn comes_back(tokenizer: &Tokenizer, session: &mut Session<'_>, text: &str) -> Option<String> {
    let mut ids = Vec::new();
    session.ids_into(text, &mut ids);
    match tokenizer.decode(&ids, DecodeOptions::default()) {
        Ok(decoded) if decoded == text => None,
        Ok(decoded) => Some(format!("comes back as {decoded:?}")),
        Err(error) => Some(error.to_string()),
    }
}

/// Whether no step rewrites text and decoding puts the bytes together as they are.
fn keeps_text(tokenizer: &Tokenizer) -> bool {
    let parts = &tokenizer.parts;
    parts.normalizer.is_none()
        && parts.steps.iter().all(|step| matches!(step, PieceStep::Split(_)))
        && parts.decoder.iter().all(|step| {
            matches!(
                step,
                DecodeStep::Bytes
                    | DecodeStep::ByteFallback
                    | DecodeStep::Fuse
                    | DecodeStep::Concatenate
            )
        })
        && parts.decoder.contains(&DecodeStep::Bytes)
}

/// What of the text gets lost on the way to ids, in a pipeline that rewrites nothing.
fn loses(tokenizer: &Tokenizer, session: &mut Session<'_>, text: &str) -> Option<String> {
    let trace = session.trace(text, &Policy::Ordinary).ok()?;
    let mut at = 0;
    for stretch in &trace.stretches {
        match stretch {
            Stretch::Added { id, span } => {
                let content = tokenizer.token_bytes(*id);
                let swallowed = content.as_deref() != Some(&text.as_bytes()[span.range()]);
                if swallowed {
                    return Some("an added token swallows white space".to_owned());
                }
                if span.start != at {
                    return Some("the splitter leaves text out".to_owned());
                }
                at = span.end;
            }
            Stretch::Text(traced) => {
                for piece in &traced.pieces {
                    if piece.source.start != at {
                        return Some("the splitter leaves text out".to_owned());
                    }
                    at = piece.source.end;
                    let covered: usize = piece.tokens.iter().map(|t| t.len as usize).sum();
                    if covered != piece.span.len() {
                        return Some("the model has no token for a part of it".to_owned());
                    }
                    let kind = |token: &tokenizer_core::Token| tokenizer.vocab().kind(token.id);
                    if piece.tokens.iter().any(|t| kind(t) == Some(TokenKind::Unknown)) {
                        return Some("a part of it is unknown".to_owned());
                    }
                }
            }
        }
    }
    (at != text.len()).then(|| "the splitter leaves text out".to_owned())
}
