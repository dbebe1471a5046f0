//! What the pipeline does with one text, step by step.

use tokenizer_core::{Encode, Span, Token, TokenId};

use crate::pipeline::{Prepared, Session, Sink, Tokenizer};
use crate::policy::{Policy, SpecialTokenError};
use crate::post::to_char_boundaries;

/// What the pipeline did with a text: its stretches in order.
///
/// ```
/// use tokenizer::{Policy, Stretch, Tokenizer};
///
/// let trace = Tokenizer::bytes().trace("né", &Policy::Ordinary)?;
/// let Stretch::Text(text) = &trace.stretches[0] else { panic!("no added tokens") };
/// assert_eq!(text.text, "né"); // nothing was normalized
/// assert_eq!(text.pieces[0].tokens.len(), 3);
/// # Ok::<(), tokenizer::SpecialTokenError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// Added tokens and the text between them.
    pub stretches: Vec<Stretch>,
}

/// An added token, or text for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stretch {
    /// An added token.
    Added {
        /// Its id.
        id: TokenId,
        /// The bytes of the original text that it takes, white space that it swallows included.
        span: Span,
    },
    /// Text for the model.
    Text(TracedText),
}

/// Text for the model, as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracedText {
    /// The text after all steps that rewrite it.
    pub text: String,
    /// The pieces that it was cut into.
    pub pieces: Vec<TracedPiece>,
}

/// A piece and its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracedPiece {
    /// Where it stands in [`TracedText::text`].
    pub span: Span,
    /// What it stands for: bytes of the original text, outward to whole characters.
    pub source: Span,
    /// Its tokens.
    pub tokens: Vec<Token>,
    /// What each token stands for: bytes of the original text, outward to whole characters.
    pub sources: Vec<Span>,
}

impl Trace {
    /// The ids of all tokens, in order.
    #[must_use]
    pub fn ids(&self) -> Vec<TokenId> {
        let mut ids = Vec::new();
        for stretch in &self.stretches {
            match stretch {
                Stretch::Added { id, .. } => ids.push(*id),
                Stretch::Text(text) => {
                    ids.extend(text.pieces.iter().flat_map(|p| &p.tokens).map(|token| token.id));
                }
            }
        }
        ids
    }
}

impl Tokenizer {
    /// What the pipeline does with a text, step by step. For people: it copies what the pipeline
    /// only looks at.
    ///
    /// # Errors
    ///
    /// If the policy refuses a special token of the text.
    pub fn trace(&self, text: &str, policy: &Policy) -> Result<Trace, SpecialTokenError> {
        self.session().trace(text, policy)
    }
}

impl Session<'_> {
    /// As [`Tokenizer::trace`].
    ///
    /// # Errors
    ///
    /// If the policy refuses a special token of the text.
    pub fn trace(&mut self, text: &str, policy: &Policy) -> Result<Trace, SpecialTokenError> {
        let mut sink = TraceSink { original: text, trace: Trace::default(), batch: None };
        self.run(text, policy, &mut sink)?;
        Ok(sink.trace)
    }
}

struct TraceSink<'o> {
    original: &'o str,
    trace: Trace,
    /// The text whose pieces are coming, by where it lies.
    batch: Option<(usize, usize)>,
}

impl Sink for TraceSink<'_> {
    const WANTS_ALIGNMENT: bool = true;

    fn token(&mut self, id: TokenId, span: Span) {
        self.batch = None;
        self.trace.stretches.push(Stretch::Added { id, span });
    }

    fn text(&mut self, prepared: &Prepared<'_>, encoder: &mut dyn Encode) {
        // The pieces of one text come in batches.
        let address = (prepared.text.as_ptr().addr(), prepared.text.len());
        if self.batch != Some(address) {
            let text = prepared.text.to_owned();
            self.trace.stretches.push(Stretch::Text(TracedText { text, pieces: Vec::new() }));
            self.batch = Some(address);
        }
        let Some(Stretch::Text(traced)) = self.trace.stretches.last_mut() else {
            return;
        };
        for &span in prepared.pieces {
            let source = to_char_boundaries(self.original, prepared.source.original(span));
            let mut tokens = Vec::new();
            encoder.encode_piece(&prepared.text.as_bytes()[span.range()], &mut tokens);
            let mut at = span.start;
            let place = |token: &Token| {
                let of_token = Span::new(at, at + token.len as usize);
                at = of_token.end;
                to_char_boundaries(self.original, prepared.source.original(of_token))
            };
            let sources = tokens.iter().map(place).collect();
            traced.pieces.push(TracedPiece { span, source, tokens, sources });
        }
    }
}
