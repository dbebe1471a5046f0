use alloc::boxed::Box;
use alloc::vec::Vec;

use tokenizer_core::{
    Decode, DecodeError, Encode, Model, Span, Token, TokenId, TokenKind, Vocab, VocabError,
};

/// Every byte is a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes {
    vocab: Vocab,
    /// The id of byte 0.
    first: u32,
}

impl Bytes {
    /// The special tokens, then the 256 bytes in order.
    ///
    /// # Errors
    ///
    /// If a special token is empty, is a single byte, or repeats an earlier one.
    pub fn new<T: AsRef<[u8]>>(
        special_tokens: impl IntoIterator<Item = (T, TokenKind)>,
    ) -> Result<Self, VocabError> {
        let mut vocab = Vocab::builder();
        for (token, kind) in special_tokens {
            vocab.push(token.as_ref(), kind)?;
        }
        let first = vocab.len() as u32;
        for byte in 0..=255u8 {
            vocab.push(&[byte], TokenKind::Normal)?;
        }
        Ok(Self { vocab: vocab.build(), first })
    }

    /// The vocabulary of ByT5 without its 125 sentinels: `<pad>`, `</s>`, `<unk>`, then the bytes
    /// from id 3.
    #[must_use]
    pub fn byt5() -> Self {
        Self::new([
            ("<pad>", TokenKind::Control),
            ("</s>", TokenKind::Control),
            ("<unk>", TokenKind::Unknown),
        ])
        .expect("three different tokens longer than a byte")
    }

    /// The token of a byte.
    #[must_use]
    pub fn id(&self, byte: u8) -> TokenId {
        TokenId(self.first + u32::from(byte))
    }
}

impl Model for Bytes {
    fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    fn encoder(&self) -> Box<dyn Encode + '_> {
        Box::new(Encoder(self))
    }
}

impl Decode for Bytes {
    fn decode_into(&self, ids: &[TokenId], bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
        crate::concatenate(&self.vocab, ids, bytes)
    }
}

struct Encoder<'m>(&'m Bytes);

impl Encode for Encoder<'_> {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        tokens.extend(piece.iter().map(|&byte| Token::new(self.0.id(byte), 1)));
    }

    fn encode_ids_into(&mut self, text: &[u8], pieces: &[Span], ids: &mut Vec<TokenId>) {
        for piece in pieces {
            ids.extend(text[piece.range()].iter().map(|&byte| self.0.id(byte)));
        }
    }

    fn count_pieces(&mut self, text: &[u8], pieces: &[Span]) -> usize {
        pieces.iter().map(|piece| text[piece.range()].len()).sum()
    }
}
