//! Ids with offsets, for callers that want nothing else of an encoding.

use std::fmt;

use tokenizer_core::{Encode, Offset, Span, TokenId, Vocab};

use crate::encoding::Encoding;
use crate::pipeline::{ByteOffsets, EncodingSink, Prepared, Session, Sink, Tokenizer};
use crate::policy::{Policy, SpecialTokenError};
use crate::post::to_char_boundaries;

/// Why a text has no offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffsetsError {
    /// The policy refuses a special token of the text.
    SpecialToken(SpecialTokenError),
    /// The text has so many bytes, which is 4 GiB or more.
    TooLong(usize),
}

impl fmt::Display for OffsetsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SpecialToken(error) => error.fmt(f),
            Self::TooLong(len) => write!(
                f,
                "the text has {len} bytes, but offsets of 32 bits reach to {} at most",
                u32::MAX
            ),
        }
    }
}

impl std::error::Error for OffsetsError {}

impl From<SpecialTokenError> for OffsetsError {
    fn from(error: SpecialTokenError) -> Self {
        Self::SpecialToken(error)
    }
}

impl Tokenizer {
    /// The ids of `text` and the bytes of it that each token stands for; special tokens are text.
    ///
    /// ```
    /// use tokenizer::{TiktokenEncoding, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::from_encoding(TiktokenEncoding::R50kBase);
    /// let text = "hello world";
    /// let (ids, offsets) = tokenizer.ids_with_offsets(text)?;
    /// assert_eq!(ids, tokenizer.ids(text));
    /// assert_eq!(&text[offsets[1].span().range()], " world");
    /// # Ok::<(), tokenizer::OffsetsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the text has 4 GiB or more.
    pub fn ids_with_offsets(
        &self,
        text: &str,
    ) -> Result<(Vec<TokenId>, Vec<Offset>), OffsetsError> {
        let (mut ids, mut offsets) = (Vec::new(), Vec::new());
        let mut session = self.session();
        session.ids_with_offsets_into(text, &Policy::Ordinary, &mut ids, &mut offsets)?;
        Ok((ids, offsets))
    }
}

impl Session<'_> {
    /// Appends the ids of `text`, and for each token the bytes of the original text that it stands
    /// for, on character boundaries: the [`offsets`](Encoding::offsets) of
    /// [`encode`](Self::encode) without template, truncation and trimming.
    ///
    /// Costs little more than [`ids_into`](Self::ids_into) where nothing normalizes the text: 8
    /// bytes a token are written beside its id. [`CharIndex`](crate::CharIndex) turns bytes into
    /// characters.
    ///
    /// # Errors
    ///
    /// If the policy refuses a special token of the text, or the text has 4 GiB or more. Tokens
    /// before a refused one may have been appended.
    pub fn ids_with_offsets_into(
        &mut self,
        text: &str,
        policy: &Policy,
        ids: &mut Vec<TokenId>,
        offsets: &mut Vec<Offset>,
    ) -> Result<(), OffsetsError> {
        if u32::try_from(text.len()).is_err() {
            return Err(OffsetsError::TooLong(text.len()));
        }
        let parts = &self.tokenizer().parts;
        let (byte_offsets, vocab) = (parts.byte_offsets, parts.model.vocab());
        let mut sink = OffsetSink { original: text, ids, offsets, byte_offsets, vocab };
        Ok(self.run(text, policy, &mut sink)?)
    }
}

struct OffsetSink<'o> {
    original: &'o str,
    ids: &'o mut Vec<TokenId>,
    offsets: &'o mut Vec<Offset>,
    byte_offsets: ByteOffsets,
    vocab: &'o Vocab,
}

impl Sink for OffsetSink<'_> {
    const WANTS_ALIGNMENT: bool = true;

    fn token(&mut self, id: TokenId, span: Span) {
        self.ids.push(id);
        self.offsets.push(in_reach(span));
    }

    fn text(&mut self, prepared: &Prepared<'_>, encoder: &mut dyn Encode) {
        let source = prepared.source;
        let is_plain =
            source.alignment.is_identity() && self.byte_offsets == ByteOffsets::Character;
        let fits = u32::try_from(prepared.text.len()).is_ok();
        if !is_plain || !fits {
            return self.edited_text(prepared, encoder);
        }
        let from = self.offsets.len();
        let text = prepared.text.as_bytes();
        encoder.encode_offsets_into(text, prepared.pieces, self.ids, self.offsets);
        let shift = (source.base + source.start) as u32;
        let new = &mut self.offsets[from..];
        if shift > 0 {
            for offset in new.iter_mut() {
                *offset = Offset { start: offset.start + shift, end: offset.end + shift };
            }
        }
        let (first, last) = (prepared.pieces.first(), prepared.pieces.last());
        let Some((first, last)) = first.zip(last) else { return };
        if !text[first.start..last.end].is_ascii() {
            self.widen(from);
        }
    }
}

impl OffsetSink<'_> {
    /// Widens the offsets from one on to whole characters. They are those of pieces, which begin and
    /// end between characters: an offset inside of one is where a token ends and the next begins.
    fn widen(&mut self, from: usize) {
        let text = self.original.as_bytes();
        let new = &mut self.offsets[from..];
        for i in 0..new.len() {
            let end = new[i].end;
            let is_inside = text.get(end as usize).is_some_and(|&byte| byte & 0xC0 == 0x80);
            if is_inside {
                let at = Span::new(end as usize, end as usize);
                let around = in_reach(to_char_boundaries(self.original, at));
                new[i].end = around.end;
                if let Some(next) = new.get_mut(i + 1) {
                    next.start = around.start;
                }
            }
        }
    }

    /// Text whose bytes are not those of the original, in the general way.
    #[inline(never)]
    fn edited_text(&mut self, prepared: &Prepared<'_>, encoder: &mut dyn Encode) {
        let mut encoding = Encoding::default();
        let mut sink = EncodingSink {
            original: self.original,
            encoding: &mut encoding,
            tokens: &mut Vec::new(),
            ends: &mut Vec::new(),
            words: 0,
            byte_offsets: self.byte_offsets,
            vocab: self.vocab,
        };
        sink.text(prepared, encoder);
        self.ids.append(&mut encoding.ids);
        self.offsets.extend(encoding.offsets.iter().map(|&span| in_reach(span)));
    }
}

/// A span of the original text, whose length was looked at.
fn in_reach(span: Span) -> Offset {
    Offset::try_from(span).expect("spans of a text shorter than 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::TiktokenEncoding;
    use crate::pipeline::EncodeOptions;
    use crate::policy::SpecialSet;

    #[test]
    fn offsets_are_those_of_the_encoding() {
        for encoding in [TiktokenEncoding::R50kBase, TiktokenEncoding::Cl100kBase] {
            let tokenizer = Tokenizer::from_encoding(encoding);
            let mut session = tokenizer.session();
            for (_, text) in testkit::texts::AWKWARD {
                let text = format!("{text}<|endoftext|>\u{1F9D1}\u{200D}{text}\u{10348} {text}");
                for policy in [Policy::Ordinary, Policy::AllowAll] {
                    let (mut ids, mut offsets) = (vec![TokenId(1)], vec![Offset::default()]);
                    session
                        .ids_with_offsets_into(&text, &policy, &mut ids, &mut offsets)
                        .expect("nothing is refused");
                    let options = EncodeOptions::new().policy(policy);
                    let expected = session.encode(&text, &options).expect("nothing is refused");
                    assert_eq!(ids[1..], expected.ids);
                    assert!(offsets[1..].iter().map(|offset| offset.span()).eq(expected.offsets));
                }
            }
        }
    }

    #[test]
    fn refused_tokens_are_named() {
        let tokenizer = Tokenizer::from_encoding(TiktokenEncoding::R50kBase);
        let mut session = tokenizer.session();
        let refused = session.ids_with_offsets_into(
            "a<|endoftext|>",
            &Policy::Reject(SpecialSet::all()),
            &mut Vec::new(),
            &mut Vec::new(),
        );
        assert!(matches!(refused, Err(OffsetsError::SpecialToken(error)) if error.span.start == 1));
    }
}
