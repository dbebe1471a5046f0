//! BPE without a memory of its own: the table of the lane stands in front.

use bpe::{Bpe, Encoder};
use piece_table::Size;
use tokenizer_core::{Encode, Token};

use crate::pipeline::Parts;

/// Merges every piece. A memory of pieces would hold what the table of a lane holds already, and look
/// for every piece that is not in it.
pub(super) struct Direct<'t>(Encoder<'t>);

impl<'t> Direct<'t> {
    /// For tokenizers whose model is BPE.
    pub(super) fn of(parts: &'t Parts) -> Option<Self> {
        let model = parts.model.as_any()?.downcast_ref::<Bpe>()?;
        Some(Self(model.session_of_size(Size::TINY)))
    }
}

impl Encode for Direct<'_> {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        match self.0.whole_piece(piece) {
            Some(id) => tokens.push(Token::new(id, piece.len())),
            None => self.0.merge_piece(piece, tokens),
        }
    }
}
