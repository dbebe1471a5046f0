//! BPE-dropout: merges that sit out at random, with a seed.

use bpe::Bpe;
use tokenizer_core::{Encode, Rng, Token};

use crate::pipeline::{Session, Tokenizer};

impl Tokenizer {
    /// The probability with which the file asks to leave merges out when encoding; for training.
    ///
    /// Hugging Face tokenizers draws at every encoding, so that ids differ from call to call. Here
    /// nothing is random without a seed: sessions encode as without dropout (one of the results
    /// that tokenizers may give) unless made by
    /// [`session_with_dropout`](Self::session_with_dropout). A file whose dropout is 1 never
    /// merges, and needs no seed.
    #[must_use]
    pub fn dropout(&self) -> Option<f32> {
        self.parts.dropout
    }

    /// A session that leaves each possible merge out with this probability (Provilkov, Emelianenko
    /// and Voita 2020, "BPE-dropout"). `None` if the model is not BPE.
    ///
    /// The same seed and the same texts in the same order give the same ids. As with tokenizers, a
    /// piece that `ignore_merges` takes whole stays whole.
    ///
    /// ```
    /// # use tokenizer::{TiktokenEncoding, Tokenizer};
    /// let tokenizer = Tokenizer::from_encoding(TiktokenEncoding::R50kBase);
    /// let ids = |seed| {
    ///     let mut ids = Vec::new();
    ///     let mut session = tokenizer.session_with_dropout(0.5, seed).expect("BPE");
    ///     session.ids_into(" tokenization", &mut ids);
    ///     ids
    /// };
    /// assert_eq!(ids(1), ids(1));
    /// assert!((2..9).any(|seed| ids(seed) != ids(1)));
    /// ```
    #[must_use]
    pub fn session_with_dropout(&self, probability: f64, seed: u64) -> Option<Session<'_>> {
        let model = self.model().as_any()?.downcast_ref::<Bpe>()?;
        let rng = Rng::new(seed);
        let encoder = Dropout { session: model.session(), model, probability, rng };
        Some(Session::new(self, Box::new(encoder), None))
    }
}

struct Dropout<'m> {
    model: &'m Bpe,
    session: bpe::Encoder<'m>,
    probability: f64,
    rng: Rng,
}

impl Encode for Dropout<'_> {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        if self.model.options().ignore_merges
            && let Some(id) = self.session.whole_piece(piece)
        {
            tokens.push(Token::new(id, piece.len()));
            return;
        }
        self.session.encode_piece_dropout(piece, &mut self.rng, self.probability, tokens);
    }
}
