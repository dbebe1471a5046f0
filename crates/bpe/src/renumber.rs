//! The same model under other ids.

use alloc::vec;
use alloc::vec::Vec;

use tokenizer_core::{Model, TokenId};

use crate::{Bpe, Rules};

impl Bpe {
    /// The same model with its tokens under other ids, as [`Vocab::renumbered`] has them: `order` has
    /// the present id of each, in the order of the new ones. It encodes as before, but for the ids.
    ///
    /// `None` if `order` does not name every id once, or if the ids are ranks
    /// ([`Rules::Ranks`]), for then they decide what is merged.
    ///
    /// ```
    /// use bpe::{Bpe, BpeOptions};
    /// use tokenizer_core::{Encode, Model, Token, TokenId, Vocab};
    ///
    /// let vocab = Vocab::from_tokens(["<s>", "h", "u", "hu"])?;
    /// let merges = vec![(TokenId(1), TokenId(2))];
    /// let model = Bpe::from_merges(vocab, merges, BpeOptions::default())?;
    /// let model = model.renumbered(&[1, 2, 0, 3].map(TokenId)).expect("every id once");
    /// assert_eq!(model.vocab().bytes(TokenId(2)), Some(&b"<s>"[..]));
    /// let mut tokens = Vec::new();
    /// model.session().encode_piece(b"huh", &mut tokens);
    /// assert_eq!(tokens, [Token::new(TokenId(3), 2), Token::new(TokenId(0), 1)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Vocab::renumbered`]: tokenizer_core::Vocab::renumbered
    #[must_use]
    pub fn renumbered(&self, order: &[TokenId]) -> Option<Self> {
        let vocab = self.vocab().renumbered(order)?;
        let mut new_ids = vec![TokenId(0); order.len()];
        for (new, old) in (0..).zip(order) {
            new_ids[old.index()] = TokenId(new);
        }
        let new_id = |old: TokenId| new_ids[old.index()];
        let mut options = self.options().clone();
        options.unk = options.unk.map(new_id);
        let model = match self.rules() {
            Rules::Ranks => return None,
            Rules::Merges(merges) => {
                let merges: Vec<_> =
                    merges.iter().map(|&(left, right)| (new_id(left), new_id(right))).collect();
                Self::from_merges(vocab, merges, options)
            }
            Rules::Scores(scores) => {
                let scores = order.iter().map(|id| scores[id.index()]).collect();
                Self::from_scores(vocab, scores, options)
            }
        };
        Some(model.expect("what the model allows under its present ids"))
    }
}
