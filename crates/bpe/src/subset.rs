//! A smaller model that encodes as the one it is taken from, wherever that gives tokens that stay.

use alloc::vec;
use alloc::vec::Vec;

use tokenizer_core::{Model, TokenId, TokenKind, Vocab};

use crate::engine::{Scratch, Watch};
use crate::pairs::{Merge, Symbol};
use crate::{Bpe, Rules};

/// What [`Bpe::subset`] gives.
#[derive(Clone)]
#[non_exhaustive]
pub struct Subset {
    /// The smaller model. Its tokens stand in the order in which they stood.
    pub model: Bpe,
    /// The id in the larger model of each token of the smaller one; ascending.
    pub old_ids: Vec<TokenId>,
}

impl Subset {
    /// The id in the smaller model of a token of the larger one, if it stayed. `O(log n)`.
    #[must_use]
    pub fn new_id(&self, old: TokenId) -> Option<TokenId> {
        self.old_ids.binary_search(&old).ok().map(|id| TokenId(id as u32))
    }
}

impl Bpe {
    /// The model of these tokens and of what they need: the parts that their merges go through,
    /// every token of one unit, and all tokens that are not ordinary. Ids outside the vocabulary are
    /// passed over. `O(n log n)` for n bytes of tokens to keep.
    ///
    /// A piece whose tokens all stay is encoded as before. The merges of the smaller model are some
    /// of those of the larger, in the same order, and hold every merge that made those tokens: what
    /// was the lowest and leftmost of all pairs is the lowest and leftmost of fewer. Other pieces
    /// fall apart into tokens that stay; a character that only longer tokens knew becomes unknown.
    ///
    /// ```
    /// use bpe::{Bpe, BpeOptions};
    /// use tokenizer_core::{Encode, Model, TokenId, Vocab};
    ///
    /// let vocab = Vocab::from_tokens(["h", "e", "l", "o", "lo", "he", "ll", "hell", "hello"])?;
    /// let merges = [(2, 3), (0, 1), (2, 2), (5, 6), (7, 3)];
    /// let merges = merges.map(|(left, right)| (TokenId(left), TokenId(right))).to_vec();
    /// let model = Bpe::from_merges(vocab, merges, BpeOptions::default())?;
    /// // "lo" merges first, so "hello" is "he|l|lo", and "he" and "l" are all that "he" needs.
    /// let subset = model.subset([TokenId(5)]);
    /// assert_eq!(subset.old_ids, [0, 1, 2, 3, 5].map(TokenId));
    /// assert_eq!(subset.new_id(TokenId(5)), Some(TokenId(4)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn subset(&self, keep: impl IntoIterator<Item = TokenId>) -> Subset {
        let old_ids = self.closure(keep);
        let mut new_ids = vec![None; self.vocab().len()];
        let mut vocab = Vocab::builder();
        for (new, &old) in old_ids.iter().enumerate() {
            let bytes = self.vocab().bytes(old).expect("ids of the vocabulary");
            let kind = self.vocab().kind(old).expect("ids of the vocabulary");
            vocab.push(bytes, kind).expect("the larger vocabulary has no token twice either");
            new_ids[old.index()] = Some(TokenId(new as u32));
        }
        let vocab = vocab.build();
        let mut options = self.options().clone();
        options.unk = options.unk.and_then(|unk| new_ids[unk.index()]);
        let model = match self.rules() {
            Rules::Ranks => Self::from_ranks(vocab, options),
            Rules::Scores(scores) => {
                let scores = old_ids.iter().map(|id| scores[id.index()]).collect();
                Self::from_scores(vocab, scores, options)
            }
            Rules::Merges(merges) => {
                let stays = |&(left, right): &(TokenId, TokenId)| {
                    let product = TokenId(self.pairs().get(left.0, right.0).product());
                    let product = new_ids.get(product.index()).copied().flatten();
                    product.and(Some((new_ids[left.index()]?, new_ids[right.index()]?)))
                };
                Self::from_merges(vocab, merges.iter().filter_map(stays).collect(), options)
            }
        };
        Subset { model: model.expect("what the larger model allows"), old_ids }
    }

    /// The tokens of [`subset`](Self::subset), ascending.
    fn closure(&self, keep: impl IntoIterator<Item = TokenId>) -> Vec<TokenId> {
        let mut wanted = vec![false; self.vocab().len()];
        for id in keep {
            if let Some(wanted) = wanted.get_mut(id.index()) {
                *wanted = true;
            }
        }
        let mark = self.affixes().1.and_then(|mark| self.vocab().get(mark));
        let mut stays = Stays { stays: vec![false; self.vocab().len()] };
        let (mut nodes, mut scratch, mut buffer) = (Vec::new(), Scratch::default(), Vec::new());
        for (id, bytes, kind) in self.vocab().iter() {
            let is_needed = match kind {
                TokenKind::Normal => Some(id) == self.options().unk || Some(id) == mark,
                // A place that no token has; scores merge unused pieces and split them again.
                TokenKind::Unused => !bytes.is_empty() && matches!(self.rules(), Rules::Scores(_)),
                _ => true,
            };
            stays.stays[id.index()] |= is_needed || wanted[id.index()];
            for (text, context) in self.own_texts(id) {
                nodes.clear();
                self.initial(text, context, &mut nodes, &mut buffer);
                if let [node] = nodes[..] {
                    stays.keep(node.symbol);
                } else if wanted[id.index()] {
                    scratch.run_queue(self.pairs(), &mut nodes, &mut stays);
                } else if is_needed {
                    // It stays for its kind; if merging makes it of text, then as before.
                    let mut parts = Parts::default();
                    scratch.run_queue(self.pairs(), &mut nodes, &mut parts);
                    if nodes.iter().map(|node| node.symbol).eq([id.0]) {
                        parts.symbols.iter().for_each(|&symbol| stays.keep(symbol));
                    }
                }
            }
        }
        let stays = stays.stays.iter().enumerate().filter(|(_, stays)| **stays);
        stays.map(|(id, _)| TokenId(id as u32)).collect()
    }
}

/// What merges take and make.
#[derive(Default)]
struct Parts {
    symbols: Vec<Symbol>,
}

impl Watch for Parts {
    fn merge(&mut self, _: usize, left: Symbol, right: Symbol, merge: Merge) {
        self.symbols.extend([left, right, merge.product()]);
    }
}

/// Keeps every token that a merge takes or makes.
struct Stays {
    stays: Vec<bool>,
}

impl Stays {
    fn keep(&mut self, symbol: Symbol) {
        // Symbols beyond the vocabulary are characters without a token.
        if let Some(stays) = self.stays.get_mut(symbol as usize) {
            *stays = true;
        }
    }
}

impl Watch for Stays {
    fn merge(&mut self, _: usize, left: Symbol, right: Symbol, merge: Merge) {
        for symbol in [left, right, merge.product()] {
            self.keep(symbol);
        }
    }
}
