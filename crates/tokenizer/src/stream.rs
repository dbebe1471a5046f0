use tokenizer_core::{DecodeError, TokenId};

use crate::decoder::Chain;
use crate::pipeline::Tokenizer;

/// Decodes ids as they come.
///
/// Never gives half a character, never repeats, and its pieces concatenate to the full decode:
/// a full decode runs through the same machine.
///
/// ```
/// # use tokenizer::{Tokenizer, DecodeOptions};
/// # use tokenizer_core::TokenId;
/// let tokenizer = Tokenizer::bytes();
/// let mut stream = tokenizer.decode_stream(DecodeOptions::default());
/// let mut text = String::new();
/// for byte in "né".bytes() {
///     text.push_str(&stream.push(TokenId(byte.into()))?);
/// }
/// text.push_str(&stream.finish());
/// assert_eq!(text, "né");
/// # Ok::<(), tokenizer_core::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct DecodeStream<'t> {
    tokenizer: &'t Tokenizer,
    options: DecodeOptions,
    chain: Chain,
    /// The beginning of a character whose end has not come yet.
    partial: Vec<u8>,
    pushed: usize,
}

/// How ids are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeOptions {
    /// Special tokens give no text.
    pub skip_special: bool,
}

impl DecodeOptions {
    /// Special tokens give no text.
    #[must_use]
    pub fn skip_special() -> Self {
        Self { skip_special: true }
    }
}

impl<'t> DecodeStream<'t> {
    pub(crate) fn new(tokenizer: &'t Tokenizer, options: DecodeOptions) -> Self {
        Self { tokenizer, options, chain: tokenizer.chain(), partial: Vec::new(), pushed: 0 }
    }

    /// The text that is certain with this id, often empty while a character is incomplete.
    ///
    /// # Errors
    ///
    /// If the id is not in the vocabulary; the stream goes on as if it had not come.
    pub fn push(&mut self, id: TokenId) -> Result<String, DecodeError> {
        let piece = self.tokenizer.decoded_piece(id, self.options, self.pushed)?;
        self.pushed += 1;
        if let Some(piece) = piece {
            self.chain.push(piece, &mut self.partial);
        }
        Ok(take_characters(&mut self.partial))
    }

    /// The rest: what a step held back, and U+FFFD for a character that never ended.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.chain.finish(&mut self.partial);
        String::from_utf8_lossy(&self.partial).into_owned()
    }
}

/// Takes what is certain from the front: all but the beginning of a character that may still end.
/// Ill-formed bytes become U+FFFD as in [`String::from_utf8_lossy`].
fn take_characters(partial: &mut Vec<u8>) -> String {
    let mut text = String::with_capacity(partial.len());
    let mut at = 0;
    while at < partial.len() {
        match std::str::from_utf8(&partial[at..]) {
            Ok(rest) => {
                text.push_str(rest);
                at = partial.len();
            }
            Err(error) => {
                let valid = at + error.valid_up_to();
                text.push_str(std::str::from_utf8(&partial[at..valid]).expect("checked"));
                at = valid;
                match error.error_len() {
                    Some(len) => {
                        text.push('\u{FFFD}');
                        at += len;
                    }
                    None => break,
                }
            }
        }
    }
    partial.drain(..at);
    text
}
