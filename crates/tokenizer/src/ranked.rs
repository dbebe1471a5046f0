//! The models of the embedded ranks. The build script has this file, too.

use bpe::{Bpe, BpeOptions};
use encodings::Ranks;
use tokenizer_core::{TokenId, Vocab};

/// The model that a file of these ranks gives.
pub(crate) fn model(ranks: Ranks) -> Bpe {
    let (bytes, mut bounds, merges) = ranks.unpack().into_parts();
    for gap in merges.gaps() {
        // Tokens of no bytes are ids that are not used.
        let at = gap.start as usize;
        let begin = bounds[at];
        bounds.splice(at..at, gap.map(|_| begin));
    }
    let merges =
        merges.iter().map(|(left, right, rank)| (TokenId(left), TokenId(right), TokenId(rank)));
    let vocab = Vocab::from_distinct(bytes, bounds).expect("bounds that unpacking gave ascend");
    let model = Bpe::from_ranks_and_merges(vocab, merges, BpeOptions::default());
    model.expect("the tests load every published encoding")
}
