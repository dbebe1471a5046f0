use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

use tokenizer_core::{PieceCounts, TokenId, TokenKind, VocabBuilder};

use crate::Bpe;
use crate::train::{BpeTrainer, Compat, Goal, Plan, Ties, TrainError};

/// Trains by the definition: counts all pairs anew for every merge. `O(n m)` for n symbols and m
/// merges. Equal to [`BpeTrainer`]'s own training.
///
/// # Errors
///
/// As the training of [`BpeTrainer`], except that counts are added up without a check.
pub fn train(trainer: &BpeTrainer, counts: &PieceCounts) -> Result<Bpe, TrainError> {
    let parted = trainer.parted(counts)?;
    let counts = parted.as_ref().unwrap_or(counts);
    learn(trainer, &Plan::new(trainer, counts)?, counts)
}

/// Trains on top of a model by the definition: its merges are made first, in their order. Equal to
/// [`BpeTrainer::extend`].
///
/// # Errors
///
/// As [`train`].
pub fn extend(trainer: &BpeTrainer, model: &Bpe, counts: &PieceCounts) -> Result<Bpe, TrainError> {
    let trainer = trainer.like(model);
    learn(&trainer, &Plan::extending(&trainer, model, counts)?, counts)
}

fn learn(trainer: &BpeTrainer, plan: &Plan, counts: &PieceCounts) -> Result<Bpe, TrainError> {
    let mut vocab = plan.vocab.clone();
    let mut tokens: Vec<(Vec<u8>, u64)> = vocab
        .clone()
        .build()
        .iter()
        .map(|(id, bytes, _)| (bytes.to_vec(), plan.units_of(trainer, id, bytes)))
        .collect();
    let mut words: Vec<(Vec<u32>, u64)> = Vec::new();
    for piece in counts.by_first_seen() {
        let mut symbols = Vec::new();
        plan.symbols(trainer, piece.piece, &mut Vec::new(), &mut symbols);
        words.extend(symbols.split(|&s| s == crate::train::GAP).map(|s| (s.to_vec(), piece.count)));
    }
    // Every pair that ever stood in the text, if only between two merges of one sweep.
    let mut seen: BTreeSet<(u32, u32)> = BTreeSet::new();
    for (word, _) in &words {
        seen.extend(word.windows(2).map(|window| (window[0], window[1])));
    }
    let mut merges = Vec::new();
    let mut first = plan.first_merges.iter();
    loop {
        let (left, right) = match first.next() {
            Some(&(left, right)) => (left.0, right.0),
            None if is_done(trainer, &vocab, merges.len()) => break,
            None => match best_pair(trainer, &words, &tokens, &seen, |product| {
                vocab.get(product).is_some_and(|id| id.0 < plan.first_new)
            }) {
                Some(pair) => pair,
                None => break,
            },
        };
        let prefix = trainer.continuing_prefix.as_deref().unwrap_or("").as_bytes();
        let tail = &tokens[right as usize].0;
        let tail = tail.strip_prefix(prefix).unwrap_or(tail);
        let product = [&tokens[left as usize].0[..], tail].concat();
        let units = tokens[left as usize].1 + tokens[right as usize].1;
        let id = match vocab.get(&product) {
            Some(id) => id,
            None => {
                tokens.push((product.clone(), units));
                vocab.push(&product, TokenKind::Normal)?
            }
        };
        merges.push((TokenId(left), TokenId(right)));
        for (word, _) in &mut words {
            merge_pair(word, left, right, id.0, &mut seen);
        }
    }
    Ok(match trainer.compat {
        Compat::Standard => plan.model(vocab.build(), merges, trainer),
        Compat::SentencePiece => plan.model_by_scores(&vocab.build(), trainer),
    })
}

fn is_done(trainer: &BpeTrainer, vocab: &VocabBuilder, merges: usize) -> bool {
    match trainer.goal {
        Goal::VocabSize(size) => vocab.len() >= size,
        Goal::Merges(goal) => merges >= goal,
    }
}

fn best_pair(
    trainer: &BpeTrainer,
    words: &[(Vec<u32>, u64)],
    tokens: &[(Vec<u8>, u64)],
    seen: &BTreeSet<(u32, u32)>,
    is_old: impl Fn(&[u8]) -> bool,
) -> Option<(u32, u32)> {
    // Pair to (count, order of first occurrence).
    let mut pairs: BTreeMap<(u32, u32), (u64, usize)> = BTreeMap::new();
    for (word, count) in words {
        for window in word.windows(2) {
            let first = pairs.len();
            pairs.entry((window[0], window[1])).or_insert((0, first)).0 += count;
        }
    }
    if trainer.compat == Compat::SentencePiece {
        for &pair in seen {
            pairs.entry(pair).or_insert((0, usize::MAX));
        }
    }
    let bytes = |id: u32| &tokens[id as usize].0;
    let units = |id: u32| tokens[id as usize].1;
    let counts_at_all = |&(&(left, right), _): &(&(u32, u32), &(u64, usize))| {
        let max = trainer.max_token_len.map_or(u64::MAX, |len| len as u64);
        let is_short = (units(left) == 1 && units(right) == 1) || units(left) + units(right) < max;
        is_short
            && trainer
                .rules
                .is_none_or(|rules| rules.allow_pair(bytes(left), bytes(right), &mut String::new()))
    };
    let by_rule = |a: &(u32, u32), b: &(u32, u32)| -> Ordering {
        match trainer.ties {
            Ties::LowestIds => a.cmp(b),
            Ties::FirstOccurrence => pairs[a].1.cmp(&pairs[b].1),
            Ties::GreatestBytes => {
                Reverse((bytes(a.0), bytes(a.1))).cmp(&Reverse((bytes(b.0), bytes(b.1))))
            }
            Ties::SentencePiece => {
                let key = |p: &(u32, u32)| {
                    (units(p.0) + units(p.1), [&bytes(p.0)[..], bytes(p.1)].concat(), *p)
                };
                key(a).cmp(&key(b))
            }
        }
    };
    pairs
        .iter()
        .filter(|(_, (count, _))| *count >= trainer.min_frequency)
        .filter(counts_at_all)
        .filter(|&(&(left, right), _)| {
            let prefix = trainer.continuing_prefix.as_deref().unwrap_or("").as_bytes();
            let tail = bytes(right).strip_prefix(prefix).unwrap_or(bytes(right));
            !is_old(&[&bytes(left)[..], tail].concat())
        })
        .min_by(|(a, (a_count, _)), (b, (b_count, _))| b_count.cmp(a_count).then(by_rule(a, b)))
        .map(|(&pair, _)| pair)
}

/// Merges a pair in one word, from left to right; notes the pairs that come to stand.
fn merge_pair(
    word: &mut Vec<u32>,
    left: u32,
    right: u32,
    product: u32,
    seen: &mut BTreeSet<(u32, u32)>,
) {
    let mut at = 0;
    while at + 1 < word.len() {
        if word[at] == left && word[at + 1] == right {
            word[at] = product;
            word.remove(at + 1);
            let around = at.saturating_sub(1)..word.len().min(at + 2);
            seen.extend(word[around].windows(2).map(|window| (window[0], window[1])));
        }
        at += 1;
    }
}
