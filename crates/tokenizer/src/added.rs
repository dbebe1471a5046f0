use std::collections::HashMap;
use std::fmt;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use tokenizer_core::{Normalize, Span, TokenId};

use crate::policy::{Policy, SpecialTokenError, Verdict};

/// A token that is matched in the text before the model sees it.
///
/// The flags are Hugging Face's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedToken {
    /// The text of the token.
    pub content: String,
    /// Its id: one of the model's, or one behind them.
    pub id: TokenId,
    /// Recognised only under a [`Policy`] that allows it, and skipped on request when decoding.
    pub special: bool,
    /// Matches only where no word character stands next to it.
    pub single_word: bool,
    /// Takes the white space before it.
    pub lstrip: bool,
    /// Takes the white space after it.
    pub rstrip: bool,
    /// Matched in the normalized text (after its own content was normalized), not in the original.
    pub normalized: bool,
}

impl AddedToken {
    /// A special token that matches exactly, in the text as it came.
    #[must_use]
    pub fn special(content: impl Into<String>, id: TokenId) -> Self {
        Self {
            content: content.into(),
            id,
            special: true,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
        }
    }
}

/// Why a set of added tokens was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedTokenError(String);

impl fmt::Display for AddedTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AddedTokenError {}

/// All added tokens, and the automata that find them: leftmost, then longest.
///
/// Building is linear in the bytes of all tokens; a scan is linear in the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddedVocabulary {
    tokens: Vec<AddedToken>,
    by_content: HashMap<String, usize>,
    by_id: HashMap<TokenId, usize>,
    /// What a token is to the decoder, where that is not its text: normalized.
    decoded: HashMap<TokenId, String>,
    raw: Matcher,
    /// Every token of `raw` is special.
    raw_is_special: bool,
    normalized: Matcher,
}

#[derive(Clone, Debug, Default)]
struct Matcher {
    automaton: Option<AhoCorasick>,
    /// The token of each pattern.
    tokens: Vec<usize>,
}

/// A stretch of a scanned text: an added token, or text for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) token: Option<TokenId>,
    pub(crate) span: Span,
}

impl AddedVocabulary {
    pub(crate) fn new(
        tokens: Vec<AddedToken>,
        normalizer: Option<&dyn Normalize>,
    ) -> Result<Self, AddedTokenError> {
        let mut by_content = HashMap::with_capacity(tokens.len());
        let mut by_id = HashMap::with_capacity(tokens.len());
        for (i, token) in tokens.iter().enumerate() {
            if token.content.is_empty() {
                return Err(AddedTokenError(format!("added token {} is empty", token.id)));
            }
            if by_content.insert(token.content.clone(), i).is_some() {
                return Err(AddedTokenError(format!(
                    "added token {:?} stands twice in the list",
                    token.content
                )));
            }
            by_id.entry(token.id).or_insert(i);
        }
        // Where two contents are equal after normalization the special token wins, then the
        // earlier one.
        let mut order: Vec<usize> = (0..tokens.len()).collect();
        order.sort_by_key(|&i| !tokens[i].special);
        let raw = Matcher::new(
            order
                .iter()
                .filter(|&&i| !tokens[i].normalized)
                .map(|&i| (i, tokens[i].content.clone())),
        )?;
        let mut decoded = HashMap::new();
        let normalized = Matcher::new(order.iter().filter(|&&i| tokens[i].normalized).map(|&i| {
            let AddedToken { content, id, .. } = &tokens[i];
            let normalized = normalizer.map_or_else(
                || content.clone(),
                |normalizer| normalizer.normalize(content).into_owned(),
            );
            if normalized != *content && by_id.get(id) == Some(&i) {
                decoded.insert(*id, normalized.clone());
            }
            (i, normalized)
        }))?;
        let raw_is_special = raw.tokens.iter().all(|&i| tokens[i].special);
        Ok(Self { tokens, by_content, by_id, decoded, raw, raw_is_special, normalized })
    }

    pub(crate) fn tokens(&self) -> &[AddedToken] {
        &self.tokens
    }

    pub(crate) fn get(&self, content: &str) -> Option<&AddedToken> {
        self.by_content.get(content).map(|&i| &self.tokens[i])
    }

    /// The text that the decoder gets for an added token.
    pub(crate) fn decoded(&self, id: TokenId) -> Option<&str> {
        let content = &self.by_id(id)?.content;
        Some(self.decoded.get(&id).unwrap_or(content))
    }

    /// Whether a special token has this text.
    pub(crate) fn is_special_text(&self, text: &str) -> bool {
        self.get(text).is_some_and(|token| token.special)
    }

    pub(crate) fn by_id(&self, id: TokenId) -> Option<&AddedToken> {
        self.by_id.get(&id).map(|&i| &self.tokens[i])
    }

    /// Whether the original text may hold a token under this policy, or one that it refuses.
    pub(crate) fn needs_raw(&self, policy: &Policy) -> bool {
        let takes_none = matches!(policy, Policy::Ordinary) && self.raw_is_special;
        self.raw.automaton.is_some() && !takes_none
    }

    pub(crate) fn has_normalized(&self) -> bool {
        self.normalized.automaton.is_some()
    }

    /// The bytes of the longest content, as written.
    pub(crate) fn max_len(&self) -> usize {
        self.tokens.iter().map(|token| token.content.len()).max().unwrap_or(0)
    }

    /// Cuts the original text at the tokens that are matched in it.
    pub(crate) fn scan_raw(
        &self,
        text: &str,
        policy: &Policy,
        out: &mut Vec<Stretch>,
    ) -> Result<(), SpecialTokenError> {
        self.scan(&self.raw, text, 0, policy, out, &mut |_| {})
    }

    /// As [`scan_raw`](Self::scan_raw), but the text before `from` is only looked at, not given;
    /// `hidden` receives the matches that were found and not taken, in order.
    pub(crate) fn scan_raw_from(
        &self,
        text: &str,
        from: usize,
        policy: &Policy,
        out: &mut Vec<Stretch>,
        hidden: &mut Vec<Span>,
    ) -> Result<(), SpecialTokenError> {
        self.scan(&self.raw, text, from, policy, out, &mut |span| hidden.push(span))
    }

    /// Cuts a normalized text at the tokens that are matched in normalized text.
    pub(crate) fn scan_normalized(
        &self,
        text: &str,
        policy: &Policy,
        out: &mut Vec<Stretch>,
    ) -> Result<(), SpecialTokenError> {
        self.scan(&self.normalized, text, 0, policy, out, &mut |_| {})
    }

    fn scan(
        &self,
        matcher: &Matcher,
        text: &str,
        from: usize,
        policy: &Policy,
        out: &mut Vec<Stretch>,
        hidden: &mut dyn FnMut(Span),
    ) -> Result<(), SpecialTokenError> {
        let mut done = from;
        let mut push = |token: Option<TokenId>, start: usize, end: usize| {
            if start < end {
                out.push(Stretch { token, span: Span::new(start, end) });
            }
        };
        if let Some(automaton) = &matcher.automaton {
            for found in automaton.find_iter(Input::new(text).range(from..)) {
                let token = &self.tokens[matcher.tokens[found.pattern().as_usize()]];
                let (mut start, mut end) = (found.start(), found.end());
                if token.special {
                    match policy.judge(&token.content) {
                        Verdict::Token => {}
                        Verdict::Text => {
                            hidden(Span::new(start, end));
                            continue;
                        }
                        Verdict::Refuse => {
                            return Err(SpecialTokenError {
                                token: token.content.clone(),
                                span: Span::new(start, end),
                            });
                        }
                    }
                }
                if token.single_word {
                    let before = text[..start].chars().next_back().is_some_and(is_word);
                    let after = text[end..].chars().next().is_some_and(is_word);
                    if before || after {
                        hidden(Span::new(start, end));
                        continue;
                    }
                }
                if token.lstrip {
                    start = text[..start].trim_end().len().max(done);
                }
                if token.rstrip {
                    end = text.len() - text[end..].trim_start().len();
                }
                push(None, done, start);
                push(Some(token.id), start, end);
                done = end;
            }
        }
        push(None, done, text.len());
        Ok(())
    }
}

impl Matcher {
    fn new(patterns: impl Iterator<Item = (usize, String)>) -> Result<Self, AddedTokenError> {
        let (tokens, contents): (Vec<_>, Vec<_>) = patterns.unzip();
        if contents.is_empty() {
            return Ok(Self::default());
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&contents)
            .map_err(|e| AddedTokenError(format!("the added tokens are too many: {e}")))?;
        Ok(Self { automaton: Some(automaton), tokens })
    }
}

/// What a regular expression's `\w` matches.
fn is_word(c: char) -> bool {
    regex_syntax::is_word_character(c)
}
