//! Special tokens under ids beyond the first ones.
//!
//! Training gives the first ids to special tokens. Where others are chosen for them, the finished
//! vocabulary is numbered anew: they get theirs, and all other tokens keep their order.

use tokenizer_core::TokenId;

use super::model::Model;
use super::options::Special;
use crate::failure::Failure;

/// What moves where.
#[derive(Clone, Debug, Default)]
pub(super) struct Placing {
    /// The id in training, the id that was chosen, and whose; ascending by the chosen id.
    chosen: Vec<(u32, u32, String)>,
}

impl Placing {
    /// The chosen ids among the special tokens of a training, which get ids in this order.
    pub(super) fn new(specials: &[Special]) -> Self {
        let chosen = (0..)
            .zip(specials)
            .filter_map(|(at, special)| Some((at, special.id?, special.token.clone())));
        let mut chosen: Vec<_> = chosen.collect();
        chosen.sort_by_key(|&(_, id, _)| id);
        Self { chosen }
    }

    /// Where a token goes that has this id in training.
    pub(super) fn of(&self, id: u32) -> u32 {
        if let Some((_, chosen, _)) = self.chosen.iter().find(|(at, ..)| *at == id) {
            return *chosen;
        }
        let before = self.chosen.iter().filter(|(at, ..)| *at < id).count();
        // Its number among all tokens that are not chosen, and then the chosen ones in front.
        let mut place = id - before as u32;
        for (_, chosen, _) in &self.chosen {
            place += u32::from(*chosen <= place);
        }
        place
    }

    /// Refuses a vocabulary that is too small for a chosen id.
    pub(super) fn check(&self, size: usize) -> Result<(), Failure> {
        match self.chosen.last() {
            Some((_, id, token)) if *id as usize >= size => Err(Failure::usage(format!(
                "the ids of a vocabulary of {size} tokens are below {size}: {id} is not possible for \
                 {token}"
            ))),
            _ => Ok(()),
        }
    }

    /// The model with the chosen ids.
    pub(super) fn apply(&self, model: Model) -> Result<Model, Failure> {
        let size = model.vocab_len();
        self.check(size)?;
        if self.chosen.iter().all(|(at, id, _)| at == id) {
            return Ok(model);
        }
        let mut order = vec![TokenId(0); size];
        for id in 0..size as u32 {
            order[self.of(id) as usize] = TokenId(id);
        }
        let placed = match &model {
            Model::Bpe(model) => model.renumbered(&order).map(Model::Bpe),
            Model::WordPiece(model) => model.renumbered(&order).map(Model::WordPiece),
            _ => None,
        };
        placed.ok_or_else(|| Failure::usage("this model cannot be numbered anew"))
    }
}

#[cfg(test)]
mod tests {
    use tokenizer_core::TokenKind;

    use super::*;

    #[test]
    fn chosen_ids_are_taken_and_all_others_keep_their_order() {
        let special =
            |token: &str, id| Special { token: token.to_owned(), kind: TokenKind::Control, id };
        let check = |ids: &[Option<u32>], expected: &[u32]| {
            let specials: Vec<Special> = ids.iter().map(|&id| special("t", id)).collect();
            let placing = Placing::new(&specials);
            let found: Vec<u32> = (0..expected.len() as u32).map(|id| placing.of(id)).collect();
            assert_eq!(found, expected, "{ids:?}");
        };
        check(&[None, None], &[0, 1, 2, 3]);
        check(&[Some(0), None, Some(2)], &[0, 1, 2, 3]);
        check(&[None, Some(4)], &[0, 4, 1, 2, 3, 5]);
        check(&[Some(5), Some(0), None, Some(3)], &[5, 0, 1, 3, 2, 4, 6]);
        check(&[Some(3), Some(2)], &[3, 2, 0, 1, 4]);
    }
}
