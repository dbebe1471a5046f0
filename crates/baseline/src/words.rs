use alloc::boxed::Box;
use alloc::vec::Vec;

use tokenizer_core::{Decode, DecodeError, Encode, Model, Span, Token, TokenId, Vocab};

use crate::BuildError;

/// Every piece of the vocabulary is a token, any other piece is unknown: Hugging Face's WordLevel.
///
/// Without an unknown token other pieces are dropped. Tokens of kind `Control` never match (a
/// loader that wants Hugging Face's behaviour marks them `Normal`). Decoding concatenates; what
/// stood between the pieces is the caller's affair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    vocab: Vocab,
    unk: Option<TokenId>,
}

impl Words {
    /// The model of a vocabulary.
    ///
    /// # Errors
    ///
    /// If the unknown token is not in the vocabulary.
    pub fn new(vocab: Vocab, unk: Option<TokenId>) -> Result<Self, BuildError> {
        crate::check_unk(&vocab, unk)?;
        Ok(Self { vocab, unk })
    }

    /// The unknown token.
    #[must_use]
    pub fn unk(&self) -> Option<TokenId> {
        self.unk
    }

    #[inline]
    fn token(&self, piece: &[u8]) -> Option<TokenId> {
        if piece.is_empty() {
            return None;
        }
        crate::find(&self.vocab, piece).or(self.unk)
    }
}

impl Model for Words {
    fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    fn encoder(&self) -> Box<dyn Encode + '_> {
        Box::new(Encoder(self))
    }
}

impl Decode for Words {
    fn decode_into(&self, ids: &[TokenId], bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
        crate::concatenate(&self.vocab, ids, bytes)
    }
}

struct Encoder<'m>(&'m Words);

impl Encode for Encoder<'_> {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        tokens.extend(self.0.token(piece).map(|id| Token::new(id, piece.len())));
    }

    fn encode_ids_into(&mut self, text: &[u8], pieces: &[Span], ids: &mut Vec<TokenId>) {
        ids.extend(pieces.iter().filter_map(|piece| self.0.token(&text[piece.range()])));
    }

    fn count_pieces(&mut self, text: &[u8], pieces: &[Span]) -> usize {
        pieces.iter().filter(|piece| self.0.token(&text[piece.range()]).is_some()).count()
    }
}
