//! Two tokenizers against each other.

use rayon::prelude::*;
use tokenizer_core::{TokenId, TokenKind};

use super::{Check, Example, Texts, shortest, show_ids};
use crate::pipeline::{Session, Tokenizer};
use crate::policy::Policy;
use crate::stream::DecodeOptions;

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Ids.
    #[default]
    Ids,
    /// The bytes of the tokens, where the ids differ by design.
    Tokens,
}

/// Holds two tokenizers against each other: ids (or tokens) with special tokens as text and
/// recognised, the decoded text, and the size of the vocabulary.
///
/// Texts run in parallel; the result does not depend on it.
#[must_use]
pub fn compare(a: &Tokenizer, b: &Tokenizer, texts: &Texts, by: By) -> Vec<Check> {
    let (plain, parsed) = match by {
        By::Ids => ("same ids", "same ids, special tokens recognised"),
        By::Tokens => ("same tokens", "same tokens, special tokens recognised"),
    };
    vec![
        vocabularies(a, b, by),
        law(plain, a, b, texts, &|x, y, text| tokens(x, y, text, &Policy::Ordinary, by)),
        law(parsed, a, b, texts, &|x, y, text| tokens(x, y, text, &Policy::AllowAll, by)),
        law("same decoded text", a, b, texts, &decoded),
    ]
}

type Breaks<'f> = dyn Fn(&mut Session<'_>, &mut Session<'_>, &str) -> Option<String> + Sync + 'f;

fn law(
    law: &'static str,
    a: &Tokenizer,
    b: &Tokenizer,
    texts: &Texts,
    breaks: &Breaks<'_>,
) -> Check {
    let all: Vec<&str> = texts.iter().collect();
    let mut broken: Vec<&str> = all
        .par_iter()
        .map_init(
            || (a.session(), b.session()),
            |(x, y), text| breaks(x, y, text).is_some().then_some(*text),
        )
        .flatten()
        .collect();
    let mut check = Check::new(law);
    (check.cases, check.broken) = (all.len(), broken.len());
    let (mut x, mut y) = (a.session(), b.session());
    check.example = shortest(&mut broken, &mut |text| breaks(&mut x, &mut y, text));
    check
}

fn tokens(
    a: &mut Session<'_>,
    b: &mut Session<'_>,
    text: &str,
    policy: &Policy,
    by: By,
) -> Option<String> {
    let ids = |session: &mut Session<'_>| {
        let mut ids = Vec::new();
        session.ids_with_policy_into(text, policy, &mut ids).ok()?;
        Some(ids)
    };
    let (x, y) = (ids(a)?, ids(b)?);
    let same = match by {
        By::Ids => x == y,
        By::Tokens => {
            let (a, b) = (a.tokenizer(), b.tokenizer());
            let same = |(&x, &y): (&TokenId, &TokenId)| a.token_bytes(x) == b.token_bytes(y);
            x.len() == y.len() && x.iter().zip(&y).all(same)
        }
    };
    (!same).then(|| {
        format!(
            "{} {} against {} {}",
            surface(a.tokenizer(), &x),
            show_ids(&x),
            surface(b.tokenizer(), &y),
            show_ids(&y)
        )
    })
}

fn decoded(a: &mut Session<'_>, b: &mut Session<'_>, text: &str) -> Option<String> {
    let decode = |session: &mut Session<'_>| {
        let mut ids = Vec::new();
        session.ids_into(text, &mut ids);
        session.tokenizer().decode(&ids, DecodeOptions::default()).ok()
    };
    let (x, y) = (decode(a)?, decode(b)?);
    (x != y).then(|| format!("{x:?} against {y:?}"))
}

/// The tokens with bars between.
fn surface(tokenizer: &Tokenizer, ids: &[TokenId]) -> String {
    let token = |&id: &TokenId| {
        let bytes = tokenizer.token_bytes(id).unwrap_or_default();
        String::from_utf8_lossy(&bytes).escape_debug().to_string()
    };
    let shown: Vec<String> = ids.iter().take(16).map(token).collect();
    format!("{}{}", shown.join("|"), if ids.len() > 16 { "|.." } else { "" })
}

/// The same token under every id; by tokens, the same tokens at all.
fn vocabularies(a: &Tokenizer, b: &Tokenizer, by: By) -> Check {
    let mut check = Check::new("same vocabulary");
    if by == By::Tokens {
        let (mut x, mut y) = (all_tokens(a), all_tokens(b));
        x.sort_unstable();
        y.sort_unstable();
        check.cases = x.len().max(y.len());
        let only = |these: &[Vec<u8>], others: &[Vec<u8>]| {
            let lacks = |token: &&Vec<u8>| others.binary_search(token).is_err();
            let missing = these.iter().filter(lacks);
            (missing.clone().count(), missing.min_by_key(|t| t.len()).cloned())
        };
        let (in_a, in_b) = (only(&x, &y), only(&y, &x));
        check.broken = in_a.0 + in_b.0;
        check.example = in_a
            .1
            .map(|token| (token, "only in the first"))
            .or(in_b.1.map(|token| (token, "only in the second")))
            .map(|(token, what)| Example {
                text: Some(String::from_utf8_lossy(&token).into_owned()),
                what: what.to_owned(),
            });
        return check;
    }
    let len = a.vocab_len().max(b.vocab_len());
    check.cases = len;
    for id in (0..len as u32).map(TokenId) {
        let bytes = |tokenizer: &Tokenizer| {
            // No text becomes an unused token, so that its spelling is nobody's.
            let unused = tokenizer.vocab().kind(id) == Some(TokenKind::Unused)
                && tokenizer.added.by_id(id).is_none();
            let bytes = tokenizer.token_bytes(id).filter(|_| !unused);
            bytes.map(|bytes| bytes.into_owned()).unwrap_or_default()
        };
        let (x, y) = (bytes(a), bytes(b));
        if x != y {
            check.broken += 1;
            let show = |bytes: &[u8]| format!("{:?}", String::from_utf8_lossy(bytes));
            let what = || format!("id {id} is {} against {}", show(&x), show(&y));
            check.example.get_or_insert_with(|| Example { text: None, what: what() });
        }
    }
    check
}

fn all_tokens(tokenizer: &Tokenizer) -> Vec<Vec<u8>> {
    let ids = (0..tokenizer.vocab_len() as u32).map(TokenId);
    let bytes = ids.filter_map(|id| tokenizer.token_bytes(id));
    bytes.filter(|bytes| !bytes.is_empty()).map(|bytes| bytes.into_owned()).collect()
}
