//! SentencePiece's models of characters and of words: pieces are looked up whole.

use tokenizer_core::{Encode, Model, Span, Split, Token, TokenId, TokenKind, Vocab};

/// Cuts the text and looks every part up.
///
/// What is not there is unknown, and unknown parts in a row are one token, wherever they were cut;
/// with byte fallback each of their bytes is a token instead.
pub(super) struct WholePieces {
    pub(super) vocab: Vocab,
    pub(super) unk: TokenId,
    pub(super) byte_fallback: bool,
    pub(super) cut: Box<dyn Split>,
}

impl Model for WholePieces {
    fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    fn encoder(&self) -> Box<dyn Encode + '_> {
        Box::new(Session { model: self, parts: Vec::new() })
    }
}

struct Session<'m> {
    model: &'m WholePieces,
    parts: Vec<Span>,
}

impl Encode for Session<'_> {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        let first = tokens.len();
        self.parts.clear();
        match std::str::from_utf8(piece) {
            Ok(text) => self.model.cut.split_into(text, &mut self.parts),
            // The pipeline gives text alone; of other bytes nothing is known.
            Err(_) => self.parts.push(Span::new(0, piece.len())),
        }
        for part in &self.parts {
            self.model.push(&piece[part.range()], first, tokens);
        }
    }
}

impl WholePieces {
    /// Appends the tokens of one part; those of its piece begin at `first`.
    fn push(&self, part: &[u8], first: usize, tokens: &mut Vec<Token>) {
        if let Some(id) = self.vocab.get(part)
            && self.vocab.kind(id) != Some(TokenKind::Unknown)
        {
            tokens.push(Token::new(id, part.len()));
            return;
        }
        if self.byte_fallback {
            let byte = |&byte: &u8| Token::new(self.vocab.byte(byte).unwrap_or(self.unk), 1);
            tokens.extend(part.iter().map(byte));
            return;
        }
        match tokens[first..].last_mut() {
            Some(last) if last.id == self.unk => last.len += part.len() as u32,
            _ => tokens.push(Token::new(self.unk, part.len())),
        }
    }
}
