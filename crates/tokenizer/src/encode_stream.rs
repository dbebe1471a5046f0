use tokenizer_core::{Span, TokenId};

use crate::added::Stretch;
use crate::pipeline::{PieceStep, Session, Tokenizer};
use crate::policy::{Policy, SpecialTokenError};

/// Encodes text that arrives in chunks; the ids are those of the whole text.
///
/// Gives ids as soon as no further text can change them, where that can be known: without a
/// normalizer, and with splitters that say how many of their last pieces may still change
/// ([`Split::unsettled`](tokenizer_core::Split::unsettled)). Otherwise everything comes at the end.
///
/// ```
/// use tokenizer::{Policy, Tokenizer};
///
/// let tokenizer = Tokenizer::bytes();
/// let mut stream = tokenizer.encode_stream(Policy::Ordinary);
/// let mut ids = Vec::new();
/// for chunk in ["he", "llo ", "wor", "ld"] {
///     stream.push(chunk, &mut ids)?;
/// }
/// stream.finish(&mut ids)?;
/// assert_eq!(ids, tokenizer.ids("hello world"));
/// # Ok::<(), tokenizer::SpecialTokenError>(())
/// ```
pub struct EncodeStream<'t> {
    session: Session<'t>,
    policy: Policy,
    /// Text whose ids are not certain yet, after `before` bytes of context.
    buffer: String,
    /// Bytes at the front of the buffer whose ids were given already: the last character, which a
    /// whole-word token looks at.
    context: usize,
    /// Bytes that left the buffer.
    dropped: usize,
    unsettled: Option<usize>,
    /// Do not look again before the buffer has this many bytes: the work is linear in all.
    wait_for: usize,
}

impl Tokenizer {
    /// Encodes text that arrives in chunks. See [`EncodeStream`].
    #[must_use]
    pub fn encode_stream(&self, policy: Policy) -> EncodeStream<'_> {
        EncodeStream {
            session: self.session(),
            policy,
            buffer: String::new(),
            context: 0,
            dropped: 0,
            unsettled: self.unsettled(),
            wait_for: 0,
        }
    }

    /// How many of the last pieces of a text without added tokens may change when text follows.
    fn unsettled(&self) -> Option<usize> {
        let parts = &self.parts;
        if parts.normalizer.is_some() || self.added.has_normalized() {
            return None;
        }
        match parts.steps.as_slice() {
            [PieceStep::Split(split)] => split.unsettled(),
            _ => None,
        }
    }
}

impl EncodeStream<'_> {
    /// Takes a chunk and appends the ids that are certain.
    ///
    /// # Errors
    ///
    /// If the policy refuses a special token of the text; its span is that in the whole text.
    pub fn push(&mut self, chunk: &str, ids: &mut Vec<TokenId>) -> Result<(), SpecialTokenError> {
        self.buffer.push_str(chunk);
        let Some(unsettled) = self.unsettled else {
            return Ok(());
        };
        if self.buffer.len() < self.wait_for {
            return Ok(());
        }
        let done = self.encode_settled(unsettled, ids)?;
        self.forget(done);
        self.wait_for = self.buffer.len() * 2;
        Ok(())
    }

    /// Appends the remaining ids.
    ///
    /// # Errors
    ///
    /// If the policy refuses a special token of the text.
    pub fn finish(mut self, ids: &mut Vec<TokenId>) -> Result<(), SpecialTokenError> {
        let mut stretches = Vec::new();
        let from = self.context;
        self.scan(&mut stretches)?;
        for stretch in stretches {
            self.encode(stretch, from, ids)?;
        }
        Ok(())
    }

    /// Encodes what no further text can change; gives the number of bytes that are done.
    fn encode_settled(
        &mut self,
        unsettled: usize,
        ids: &mut Vec<TokenId>,
    ) -> Result<usize, SpecialTokenError> {
        let added = &self.session.tokenizer().added;
        // A token that begins before `certain` ends inside the buffer; text before it is text. A
        // token that takes white space before or after it moves the edge further back.
        let reach = added.max_len().saturating_sub(1).min(self.buffer.len());
        let mut certain = self.buffer.len() - reach;
        while !self.buffer.is_char_boundary(certain) {
            certain -= 1;
        }
        certain = self.buffer[..certain].trim_end().len();
        // A refused match hides what overlaps it, so no cut may fall inside one.
        let mut stretches = Vec::new();
        let hidden = self.scan(&mut stretches)?;
        if let Some(span) = hidden.iter().find(|span| span.end > certain) {
            certain = certain.min(span.start);
        }
        let from = self.context;
        let mut done = from;
        for stretch in stretches {
            let span = stretch.span;
            if span.end < certain {
                self.encode(stretch, from, ids)?;
                done = span.end;
                continue;
            }
            if stretch.token.is_none() {
                let start = span.start.max(from);
                done = done.max(self.encode_front(start, certain, unsettled, ids));
            }
            break;
        }
        Ok(done)
    }

    /// Encodes the settled pieces of the text `start..end`; gives where they end.
    fn encode_front(
        &mut self,
        start: usize,
        end: usize,
        unsettled: usize,
        ids: &mut Vec<TokenId>,
    ) -> usize {
        let Some(text) = self.buffer.get(start..end) else {
            return start;
        };
        let tokenizer = self.session.tokenizer();
        let Some(PieceStep::Split(split)) = tokenizer.parts.steps.first() else {
            return start;
        };
        let mut pieces = split.split(text);
        pieces.truncate(pieces.len().saturating_sub(unsettled));
        let Some(last) = pieces.last() else {
            return start;
        };
        let done = start + last.end;
        self.session.encode_pieces(&self.buffer[start..end], &pieces, ids);
        done
    }

    /// Encodes a whole stretch, without what was given already.
    fn encode(
        &mut self,
        stretch: Stretch,
        from: usize,
        ids: &mut Vec<TokenId>,
    ) -> Result<(), SpecialTokenError> {
        match stretch.token {
            Some(id) => ids.push(id),
            None => {
                let span = Span::new(stretch.span.start.max(from), stretch.span.end);
                self.session.encode_stretch(&self.buffer, span, &self.policy, ids)?;
            }
        }
        Ok(())
    }

    /// The added tokens and the text of the buffer, and the spans of refused matches.
    fn scan(&self, stretches: &mut Vec<Stretch>) -> Result<Vec<Span>, SpecialTokenError> {
        let mut hidden = Vec::new();
        let added = &self.session.tokenizer().added;
        added
            .scan_raw_from(&self.buffer, self.context, &self.policy, stretches, &mut hidden)
            .map_err(|error| SpecialTokenError {
                span: error.span.shifted(self.dropped),
                ..error
            })?;
        Ok(hidden)
    }

    /// Drops what is done, but for its last character.
    fn forget(&mut self, done: usize) {
        if done == 0 {
            return;
        }
        let mut keep_from = done - 1;
        while !self.buffer.is_char_boundary(keep_from) {
            keep_from -= 1;
        }
        self.buffer.drain(..keep_from);
        self.dropped += keep_from;
        self.context = done - keep_from;
    }
}
