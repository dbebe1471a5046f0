use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use crate::{Offset, Span, Token, TokenId, Vocab};

/// A trained model: immutable, shared by any number of sessions on any number of threads.
pub trait Model: Send + Sync {
    /// The model's vocabulary.
    fn vocab(&self) -> &Vocab;

    /// A new session. Sessions hold the scratch memory; make one per thread and keep it.
    fn encoder(&self) -> Box<dyn Encode + '_>;

    /// As [`encoder`](Self::encoder), for a session that remembers pieces in about so many bytes, if
    /// the model's sessions remember any. The tokens are the same.
    fn encoder_within(&self, memory: usize) -> Box<dyn Encode + '_> {
        let _ = memory;
        self.encoder()
    }

    /// Builds what sessions share and the first of them that needs it would build. Changes no
    /// tokens.
    fn prepare(&self) {}

    /// The model itself, for callers that prove something of a type that they know; `None` for all
    /// others.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// A session: a model and its scratch memory. One thread at a time uses it.
///
/// Encoding cannot fail: whatever could make it fail was checked when the model was built, and
/// any bytes at all encode to something (bytes that are not UTF-8 count as one unknown character
/// each where the model works on characters). Methods append and never clear.
pub trait Encode: Send {
    /// Appends the tokens of one piece. The lengths of the tokens add up to `piece.len()`, except
    /// where the model drops text that it has no token for (see the model's documentation).
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>);

    /// Appends the tokens of the pieces of `text`, in order. Equal to
    /// [`encode_piece`](Self::encode_piece) one by one.
    fn encode_pieces(&mut self, text: &[u8], pieces: &[Span], tokens: &mut Vec<Token>) {
        for piece in pieces {
            self.encode_piece(&text[piece.range()], tokens);
        }
    }

    /// As [`encode_pieces`](Self::encode_pieces), and appends to `ends`, for each piece, how many
    /// tokens `tokens` holds after it. Lengths alone do not say which tokens are whose: text may be
    /// dropped, and tokens may cover nothing.
    fn encode_pieces_apart(
        &mut self,
        text: &[u8],
        pieces: &[Span],
        tokens: &mut Vec<Token>,
        ends: &mut Vec<usize>,
    ) {
        for piece in pieces {
            self.encode_piece(&text[piece.range()], tokens);
            ends.push(tokens.len());
        }
    }

    /// Appends the ids alone, for callers that want no lengths.
    fn encode_ids_into(&mut self, text: &[u8], pieces: &[Span], ids: &mut Vec<TokenId>) {
        let mut tokens = Vec::new();
        for piece in pieces {
            tokens.clear();
            self.encode_piece(&text[piece.range()], &mut tokens);
            ids.extend(tokens.iter().map(|token| token.id));
        }
    }

    /// Appends the ids, and for each token the bytes of `text` that it covers, which begin where the
    /// token before it in its piece ends.
    ///
    /// # Panics
    ///
    /// If a piece ends behind 4 GiB.
    fn encode_offsets_into(
        &mut self,
        text: &[u8],
        pieces: &[Span],
        ids: &mut Vec<TokenId>,
        offsets: &mut Vec<Offset>,
    ) {
        let mut tokens = Vec::new();
        for piece in pieces {
            let piece_offset = Offset::try_from(*piece).expect("pieces of less than 4 GiB");
            tokens.clear();
            self.encode_piece(&text[piece.range()], &mut tokens);
            let mut start = piece_offset.start;
            for Token { id, len } in &tokens {
                ids.push(*id);
                offsets.push(Offset { start, end: start + len });
                start += len;
            }
        }
    }

    /// The number of tokens of the pieces of `text`.
    fn count_pieces(&mut self, text: &[u8], pieces: &[Span]) -> usize {
        let mut tokens = Vec::new();
        let mut count = 0;
        for piece in pieces {
            tokens.clear();
            self.encode_piece(&text[piece.range()], &mut tokens);
            count += tokens.len();
        }
        count
    }
}
