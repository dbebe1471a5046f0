//! The specification: MaxMatch and the trainer as one would write them on a blackboard.
//!
//! For tests, benches and readers. Slow on purpose: nothing here is cached, shared or incremental.

use alloc::vec::Vec;

use tokenizer_core::{Model, Token, utf8};

use crate::model::matches;
use crate::{Unit, Unknown, WordPiece};

/// The tokens of `word`: at each place the longest that is in the vocabulary, found by looking up
/// every prefix of the rest, longest first.
///
/// `O(n^2)` look-ups for n bytes.
#[must_use]
pub fn encode(model: &WordPiece, word: &[u8]) -> Vec<Token> {
    let (vocab, options) = (model.vocab(), model.options());
    let unknown = |len| model.unk().map(|unk| Token::new(unk, len));
    let chars = match options.unit {
        Unit::Char => utf8::chars(word).count(),
        Unit::Byte => word.len(),
    };
    if chars > options.max_chars {
        return unknown(word.len()).into_iter().collect();
    }
    let mut tokens = Vec::new();
    let mut start = 0;
    while start < word.len() {
        let longest = (start + 1..=word.len()).rev().find_map(|end| {
            let mut candidate = Vec::new();
            if start > 0 {
                candidate.extend_from_slice(&options.continuing_prefix);
            }
            candidate.extend_from_slice(&word[start..end]);
            let id = vocab.get(&candidate)?;
            vocab.kind(id).is_some_and(matches).then(|| Token::new(id, end - start))
        });
        if let Some(token) = longest {
            tokens.push(token);
            start += token.len as usize;
            continue;
        }
        match options.unknown {
            Unknown::Word => return unknown(word.len()).into_iter().collect(),
            Unknown::Rest => {
                tokens.extend(unknown(word.len() - start));
                return tokens;
            }
            Unknown::Character => {
                let len = match options.unit {
                    Unit::Char => utf8::char_len(&word[start..]),
                    Unit::Byte => 1,
                };
                tokens.extend(unknown(len));
                start += len;
            }
        }
    }
    tokens
}

#[cfg(feature = "train")]
pub use train::{extend, train};

#[cfg(feature = "train")]
mod train {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use tokenizer_core::{PieceCounts, Silent, TokenId, TokenKind, Vocab};

    use super::encode;
    use crate::alphabet::{Corpus, Product, Tokens, prepare};
    use crate::score::Candidate;
    use crate::trainer::{Criterion, Merge, TrainError, WordPieceTrainer};
    use crate::{WordPiece, extend};

    /// Trains as [`WordPieceTrainer`] does, counting everything anew for every merge.
    ///
    /// `O(n)` look-ups a merge for n characters of distinct words.
    ///
    /// # Errors
    ///
    /// As the trainer.
    pub fn train(
        trainer: &WordPieceTrainer,
        counts: &PieceCounts,
    ) -> Result<(Vocab, Vec<Merge>), TrainError> {
        let (tokens, corpus) = prepare(trainer, counts, &mut Silent)?;
        learn(trainer, tokens, &corpus)
    }

    /// Trains on top of a model as [`WordPieceTrainer::extend`] does, by the same definitions.
    ///
    /// # Errors
    ///
    /// As the trainer.
    pub fn extend(
        trainer: &WordPieceTrainer,
        model: &WordPiece,
        counts: &PieceCounts,
    ) -> Result<(Vocab, Vec<Merge>), TrainError> {
        let trainer = trainer.like(model);
        let segment = |reader: &WordPiece, word: &[u8], tokens: &mut Vec<_>| {
            tokens.extend(encode(reader, word));
        };
        let (tokens, corpus) = extend::prepare(&trainer, model, counts, &segment, &mut Silent)?;
        learn(&trainer, tokens, &corpus)
    }

    fn learn(
        trainer: &WordPieceTrainer,
        mut tokens: Tokens,
        corpus: &Corpus,
    ) -> Result<(Vocab, Vec<Merge>), TrainError> {
        let mut words = Vec::new();
        let mut start = 0;
        for run in &corpus.runs {
            words.push((corpus.symbols[start..run.end].to_vec(), run.weight));
            start = run.end;
        }
        let mut merges = Vec::new();
        while tokens.len() < trainer.vocab_size {
            let mut symbol_counts = BTreeMap::new();
            let mut pair_counts = BTreeMap::new();
            for (word, weight) in &words {
                for &symbol in word {
                    *symbol_counts.entry(symbol).or_insert(0u64) += weight;
                }
                for pair in word.windows(2) {
                    *pair_counts.entry((pair[0], pair[1])).or_insert(0u64) += weight;
                }
            }
            let best = pair_counts
                .into_iter()
                .filter(|&(_, count)| count >= trainer.min_frequency)
                .filter(|&((left, right), _)| {
                    let max = trainer.max_token_len.map_or(u64::MAX, |max| max as u64);
                    tokens.joint_len(left, right) <= max
                        && !matches!(tokens.product(left, right), Product::Special)
                })
                .map(|((left, right), count)| {
                    let denominator = match trainer.criterion {
                        Criterion::Frequency => 1,
                        Criterion::Pmi => {
                            u128::from(symbol_counts[&left]) * u128::from(symbol_counts[&right])
                        }
                    };
                    Candidate { denominator, count, left, right }
                })
                .max();
            let Some(Candidate { left, right, count, .. }) = best else {
                break;
            };
            let id = match tokens.product(left, right) {
                Product::Known(id) => id,
                Product::New(text) => {
                    let len = tokens.joint_len(left, right);
                    tokens.push(text, TokenKind::Normal, len)?
                }
                Product::Special => unreachable!("such pairs were filtered out"),
            };
            merges.push(Merge {
                step: merges.len() as u64 + 1,
                left: TokenId(left),
                right: TokenId(right),
                id: TokenId(id),
                left_bytes: tokens.text(left).to_vec(),
                right_bytes: tokens.text(right).to_vec(),
                token: tokens.text(id).to_vec(),
                count,
                left_count: symbol_counts[&left],
                right_count: symbol_counts[&right],
            });
            for (word, _) in &mut words {
                *word = merged(word, left, right, id);
            }
        }
        Ok((tokens.into_vocab(), merges))
    }

    /// The word with each pair replaced, from left to right.
    fn merged(word: &[u32], left: u32, right: u32, id: u32) -> Vec<u32> {
        let mut result = Vec::with_capacity(word.len());
        let mut rest = word;
        while let Some((&first, tail)) = rest.split_first() {
            if first == left && tail.first() == Some(&right) {
                result.push(id);
                rest = &tail[1..];
            } else {
                result.push(first);
                rest = tail;
            }
        }
        result
    }
}
