//! Every way to the ids is the same way.

use tokenizer_core::{Rng, TokenId};

use super::{Check, Example, Texts, over_texts, show_ids};
use crate::encoding::Encoding;
use crate::fit::Side;
use crate::pipeline::{EncodeOptions, Session, Tokenizer};
use crate::policy::Policy;
use crate::stream::DecodeOptions;

/// Streams are looked at on all texts up to this length cut everywhere, on others in some places.
const CUT_EVERYWHERE: usize = 48;
/// Of so many texts, more only every n-th.
const STREAMED: usize = 1200;

fn ids(session: &mut Session<'_>, text: &str) -> Vec<TokenId> {
    let mut ids = Vec::new();
    session.ids_into(text, &mut ids);
    ids
}

fn differ(way: &str, found: &[TokenId], expected: &[TokenId]) -> Option<String> {
    (found != expected)
        .then(|| format!("{way}: {} against {}", show_ids(found), show_ids(expected)))
}

/// Ids alone, with offsets, the trace, the count, and a fresh session.
pub(super) fn ways(tokenizer: &Tokenizer, texts: &Texts) -> Check {
    let mut used = tokenizer.session();
    // Truncation is not part of the way to the ids.
    over_texts("ids = offsets = count = trace = fresh session", texts, |text| {
        let expected = ids(&mut tokenizer.session(), text);
        let reused = ids(&mut used, text);
        if let Some(what) = differ("a used session", &reused, &expected) {
            return Some(what);
        }
        let encoding: Encoding = used.encode_plain(text);
        if let Some(what) = differ("with offsets", &encoding.ids, &expected) {
            return Some(what);
        }
        let trace = used.trace(text, &Policy::Ordinary).map(|trace| trace.ids());
        if let Some(what) = differ("traced", &trace.unwrap_or_default(), &expected) {
            return Some(what);
        }
        let count = used.count(text);
        (count != expected.len()).then(|| format!("{count} tokens against {}", expected.len()))
    })
}

/// Many texts at once, on all threads.
pub(super) fn batches(tokenizer: &Tokenizer, texts: &Texts) -> Check {
    let mut check = Check::new("parallel = serial");
    let all: Vec<&str> = texts.iter().collect();
    let mut session = tokenizer.session();
    for (text, found) in all.iter().zip(tokenizer.ids_batch(&all)) {
        check.cases += 1;
        if let Some(what) = differ("in a batch", &found, &ids(&mut session, text)) {
            check.broken += 1;
            let shorter = check.example.as_ref().is_none_or(|example| {
                example.text.as_ref().is_none_or(|known| text.len() < known.len())
            });
            if shorter {
                check.example = Some(Example { text: Some((*text).to_owned()), what });
            }
        }
    }
    check
}

/// The texts that streams are looked at on: all sentences and every n-th of the others.
fn some(texts: &Texts) -> Texts {
    let step = texts.len().div_ceil(STREAMED).max(1);
    let mut chosen = Texts::new();
    for (i, text) in texts.iter().enumerate() {
        if i % step == 0 || text.len() > CUT_EVERYWHERE {
            chosen.push(text);
        }
    }
    chosen
}

/// Chunks: cut in two at every place, character by character, and in random pieces.
pub(super) fn encode_streams(tokenizer: &Tokenizer, texts: &Texts) -> Check {
    let mut session = tokenizer.session();
    over_texts("a stream of chunks = the whole text", &some(texts), |text| {
        [Policy::Ordinary, Policy::AllowAll].iter().find_map(|policy| {
            let mut expected = Vec::new();
            session.ids_with_policy_into(text, policy, &mut expected).ok()?;
            cuts(text).into_iter().find_map(|chunks| {
                let mut stream = tokenizer.encode_stream(policy.clone());
                let mut found = Vec::new();
                for chunk in &chunks {
                    if let Err(error) = stream.push(chunk, &mut found) {
                        return Some(error.to_string());
                    }
                }
                if let Err(error) = stream.finish(&mut found) {
                    return Some(error.to_string());
                }
                differ(&format!("in chunks {chunks:?}"), &found, &expected)
            })
        })
    })
}

/// Ways to cut a text into chunks.
fn cuts(text: &str) -> Vec<Vec<&str>> {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
    let mut all: Vec<Vec<&str>> = Vec::new();
    let step = places.len().div_ceil(CUT_EVERYWHERE).max(1);
    for &at in places.iter().step_by(step) {
        all.push(vec![&text[..at], &text[at..]]);
    }
    let chars = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
    all.push(chars.collect());
    let mut rng = Rng::new(text.len() as u64);
    let mut chunks = Vec::new();
    let mut start = 0;
    for &at in &places {
        if rng.below(5) == 0 {
            chunks.push(&text[start..at]);
            start = at;
        }
    }
    chunks.push(&text[start..]);
    all.push(chunks);
    all
}

/// Ids one by one.
pub(super) fn decode_streams(tokenizer: &Tokenizer, texts: &Texts) -> Check {
    let mut session = tokenizer.session();
    over_texts("a stream of ids = the whole decode", texts, |text| {
        let ids = ids(&mut session, text);
        let whole = match tokenizer.decode(&ids, DecodeOptions::default()) {
            Ok(whole) => whole,
            Err(error) => return Some(error.to_string()),
        };
        let mut stream = tokenizer.decode_stream(DecodeOptions::default());
        let mut pieces = String::new();
        for &id in &ids {
            match stream.push(id) {
                Ok(piece) => pieces.push_str(&piece),
                Err(error) => return Some(error.to_string()),
            }
        }
        pieces.push_str(&stream.finish());
        (pieces != whole).then(|| format!("{pieces:?} against {whole:?}"))
    })
}

/// Offsets lie in the text, on character boundaries, and each text of a token is where it says.
pub(super) fn offsets(tokenizer: &Tokenizer, texts: &Texts) -> Check {
    let mut session = tokenizer.session();
    let options = EncodeOptions::new().policy(Policy::AllowAll);
    over_texts("offsets lie in the text, on characters", texts, |text| {
        let encoding = session.encode(text, &options).ok()?;
        encoding.offsets.iter().find_map(|span| {
            let sound = span.start <= span.end && text.get(span.range()).is_some();
            (!sound).then(|| format!("{}..{}", span.start, span.end))
        })
    })
}

/// What is cut to n tokens has at most n; counting to a limit agrees with counting.
pub(super) fn limits(tokenizer: &Tokenizer, texts: &Texts) -> Check {
    let mut session = tokenizer.session();
    over_texts("cut to n tokens = at most n tokens", &some(texts), |text| {
        let count = session.count(text);
        [count / 3, count / 2, count.saturating_sub(1), count].into_iter().find_map(|limit| {
            let within = session.count_till_limit(text, limit);
            if within != (count <= limit).then_some(count) {
                return Some(format!("{count} tokens, but {within:?} up to {limit}"));
            }
            [Side::Left, Side::Right].into_iter().find_map(|side| {
                let part = session.cut(text, limit, side).to_owned();
                let tokens = session.count(&part);
                (tokens > limit).then(|| format!("cut to {limit}: {part:?} has {tokens}"))
            })
        })
    })
}
