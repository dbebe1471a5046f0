use tokenizer_core::{Encode, Model, Token, TokenId, Vocab};

#[derive(Debug)]
pub(crate) struct ByteModel(Vocab);

impl Default for ByteModel {
    fn default() -> Self {
        Self(Vocab::from_tokens((0..=255u8).map(|b| [b])).expect("distinct"))
    }
}

impl Model for ByteModel {
    fn vocab(&self) -> &Vocab {
        &self.0
    }
    fn encoder(&self) -> Box<dyn Encode + '_> {
        Box::new(S)
    }
}
struct S;
impl Encode for S {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        tokens.extend(piece.iter().map(|&b| Token::new(TokenId(b.into()), 1)));
    }
}
