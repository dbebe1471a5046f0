use alloc::boxed::Box;
use alloc::vec::Vec;

use tokenizer_core::{Decode, DecodeError, Encode, Model, Span, Token, TokenId, Vocab, utf8};

use crate::BuildError;

/// Every character of the vocabulary is a token.
///
/// A character without a token becomes its bytes, if the vocabulary holds a token of kind `Byte`
/// for each of them; else one unknown token; without an unknown token it is dropped. A byte that
/// is not part of well-formed UTF-8 counts as a character. Tokens of kind `Control` never match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chars {
    vocab: Vocab,
    unk: Option<TokenId>,
    ascii: [Option<TokenId>; 128],
}

impl Chars {
    /// The model of a vocabulary; tokens that are no single character never occur.
    ///
    /// # Errors
    ///
    /// If the unknown token is not in the vocabulary.
    pub fn new(vocab: Vocab, unk: Option<TokenId>) -> Result<Self, BuildError> {
        crate::check_unk(&vocab, unk)?;
        let ascii = core::array::from_fn(|byte| crate::find(&vocab, &[byte as u8]));
        Ok(Self { vocab, unk, ascii })
    }

    /// The unknown token.
    #[must_use]
    pub fn unk(&self) -> Option<TokenId> {
        self.unk
    }

    #[inline]
    fn encode(&self, piece: &[u8], mut emit: impl FnMut(TokenId, usize)) {
        for char in utf8::chars(piece) {
            let id = match char {
                &[byte @ 0..0x80] => self.ascii[usize::from(byte)],
                _ => crate::find(&self.vocab, char),
            };
            match id {
                Some(id) => emit(id, char.len()),
                None => self.encode_unknown(char, &mut emit),
            }
        }
    }

    #[cold]
    fn encode_unknown(&self, char: &[u8], emit: &mut impl FnMut(TokenId, usize)) {
        if char.iter().all(|&byte| self.vocab.byte(byte).is_some()) {
            for id in char.iter().filter_map(|&byte| self.vocab.byte(byte)) {
                emit(id, 1);
            }
        } else if let Some(unk) = self.unk {
            emit(unk, char.len());
        }
    }
}

impl Model for Chars {
    fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    fn encoder(&self) -> Box<dyn Encode + '_> {
        Box::new(Encoder(self))
    }
}

impl Decode for Chars {
    fn decode_into(&self, ids: &[TokenId], bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
        crate::concatenate(&self.vocab, ids, bytes)
    }
}

struct Encoder<'m>(&'m Chars);

impl Encode for Encoder<'_> {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        self.0.encode(piece, |id, len| tokens.push(Token::new(id, len)));
    }

    fn encode_ids_into(&mut self, text: &[u8], pieces: &[Span], ids: &mut Vec<TokenId>) {
        for piece in pieces {
            self.0.encode(&text[piece.range()], |id, _| ids.push(id));
        }
    }

    fn count_pieces(&mut self, text: &[u8], pieces: &[Span]) -> usize {
        let mut count = 0;
        for piece in pieces {
            self.0.encode(&text[piece.range()], |_, _| count += 1);
        }
        count
    }
}
