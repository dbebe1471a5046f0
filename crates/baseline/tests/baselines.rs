//! The laws, and the few rules that the baselines have.
#![allow(clippy::unwrap_used)] // The helpers of an integration test are tests as well.

use std::ops::ControlFlow;

use baseline::{Bytes, Chars, CharsTrainer, Fallback, Words, WordsTrainer};
use proptest::prelude::*;
use testkit::{laws, strategies, texts};
use tokenizer_core::{
    Decode, Model, Observe, PieceCounts, Silent, Token, TokenId, TokenKind, Train, Vocab, utf8,
};

fn counts(pairs: &[(&str, u64)]) -> PieceCounts {
    PieceCounts::from_pairs(pairs.iter().copied()).unwrap()
}

fn tokens(model: &dyn Model) -> Vec<String> {
    model.vocab().iter().map(|(_, bytes, _)| String::from_utf8_lossy(bytes).into_owned()).collect()
}

fn encode(model: &dyn Model, piece: &[u8]) -> Vec<(u32, u32)> {
    let tokens = laws::encodes_piece(model, model.encoder().as_mut(), piece);
    tokens.iter().map(|token| (token.id.0, token.len)).collect()
}

fn round_trips<M: Model + Decode>(model: &M, piece: &[u8]) {
    let ids: Vec<_> = encode(model, piece).iter().map(|&(id, _)| TokenId(id)).collect();
    assert_eq!(model.decode(&ids).unwrap(), piece);
}

#[test]
fn byt5_counts_bytes_from_three() {
    let model = Bytes::byt5();
    assert_eq!(model.vocab().len(), 259);
    assert_eq!(encode(&model, "é".as_bytes()), [(0xC3 + 3, 1), (0xA9 + 3, 1)]);
    assert_eq!(model.vocab().kind(TokenId(2)), Some(TokenKind::Unknown));
    let pieces: Vec<&[u8]> = texts::all_bytes().map(|(_, bytes)| bytes).collect();
    let naive = |piece: &[u8]| {
        let token = |byte: &u8| Token::new(model.vocab().get(&[*byte]).unwrap(), 1);
        piece.iter().map(token).collect()
    };
    laws::encodes_like(&model, naive, &pieces);
    pieces.iter().for_each(|piece| round_trips(&model, piece));
    assert_eq!(model.decode(&[TokenId(259)]).unwrap_err().id(), TokenId(259));
    assert!(Bytes::new([("a", TokenKind::Control)]).is_err());
}

#[test]
fn characters_are_found_or_unknown() {
    let vocab = Vocab::from_tokens(["<unk>", "a", "é", "ab"]).unwrap();
    let model = Chars::new(vocab.clone(), Some(TokenId(0))).unwrap();
    assert_eq!(encode(&model, "aéb😀".as_bytes()), [(1, 1), (2, 2), (0, 1), (0, 4)]);
    assert_eq!(encode(&model, b"\xC3a"), [(0, 1), (1, 1)]);
    let error = Chars::new(vocab, Some(TokenId(4))).unwrap_err();
    assert_eq!(error.to_string(), "the unknown token is 4, but the vocabulary holds 4 tokens");
}

#[test]
fn byte_fallback_leaves_no_character_unknown() {
    let mut trainer = CharsTrainer::new(258);
    trainer.fallback = Fallback::Bytes;
    let model = trainer.train(&counts(&[("aab", 3), ("é", 1)]), &mut Silent).unwrap();
    assert_eq!(&tokens(&model)[256..], ["a", "b"]);
    assert_eq!(encode(&model, "aé".as_bytes()), [(256, 1), (0xC3, 1), (0xA9, 1)]);
    texts::all_bytes().for_each(|(_, bytes)| round_trips(&model, bytes));
}

#[test]
fn words_are_found_or_unknown() {
    let vocab = Vocab::from_tokens(["a", "<unk>", "ab"]).unwrap();
    let model = Words::new(vocab.clone(), Some(TokenId(1))).unwrap();
    assert_eq!(encode(&model, b"ab"), [(2, 2)]);
    assert_eq!(encode(&model, b"abc"), [(1, 3)]);
    assert_eq!(encode(&model, b"<unk>"), [(1, 5)]);
    assert_eq!(encode(&model, b""), []);
    let dropping = Words::new(vocab, None).unwrap();
    let mut tokens = Vec::new();
    dropping.encoder().encode_piece(b"abc", &mut tokens);
    assert_eq!(tokens, []);
}

#[test]
fn control_tokens_never_match_text() {
    let mut vocab = Vocab::builder();
    vocab.push(b"<s>", TokenKind::Control).unwrap();
    vocab.push(b"<unk>", TokenKind::Unknown).unwrap();
    let model = Words::new(vocab.build(), Some(TokenId(1))).unwrap();
    assert_eq!(encode(&model, b"<s>"), [(1, 3)]);
}

#[test]
fn the_most_frequent_are_kept_and_ties_fall_by_bytes() {
    let corpus = counts(&[("b", 3), ("a", 3), ("c", 9), ("aé", 1), ("<s>", 50)]);
    let mut trainer = WordsTrainer::new(5);
    trainer.special_tokens = vec![b"<s>".to_vec()];
    assert_eq!(
        tokens(&trainer.train(&corpus, &mut Silent).unwrap()),
        ["<unk>", "<s>", "c", "a", "b"]
    );
    trainer.special_tokens.push(b"<unk>".to_vec());
    assert_eq!(
        tokens(&trainer.train(&corpus, &mut Silent).unwrap()),
        ["<s>", "<unk>", "c", "a", "b"]
    );
    let corpus = counts(&[("ba", 3), ("ab", 1), ("cc", 3)]);
    let model = CharsTrainer::new(3).train(&corpus, &mut Silent).unwrap();
    assert_eq!(tokens(&model), ["<unk>", "c", "a"]);
}

#[test]
fn counts_near_64_bits_are_right() {
    let corpus = counts(&[("aaaaaaaa", u64::MAX / 2), ("b", u64::MAX / 2)]);
    let model = CharsTrainer::new(2).train(&corpus, &mut Silent).unwrap();
    assert_eq!(tokens(&model), ["<unk>", "a"]);
}

#[test]
fn too_small_a_vocabulary_is_an_error_that_names_the_least() {
    let mut trainer = CharsTrainer::new(256);
    trainer.fallback = Fallback::Bytes;
    trainer.special_tokens = vec![b"<s>".to_vec()];
    let error = trainer.train(&counts(&[("a", 1)]), &mut Silent).unwrap_err();
    assert_eq!(error.needed_vocab_size(), Some(257));
    assert_eq!(
        error.to_string(),
        "a vocabulary of 256 is too small: special and byte tokens need at least 257"
    );
    assert_eq!(
        WordsTrainer::new(1).train(&counts(&[("a", 1)]), &mut Silent).unwrap().vocab().len(),
        1
    );
    assert!(WordsTrainer::new(0).train(&counts(&[]), &mut Silent).is_err());
}

#[test]
fn the_observer_can_stop() {
    struct Stop;
    impl Observe<()> for Stop {
        fn progress(&mut self, _: &'static str, _: u64, _: u64) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    let corpus = counts(&[("a", 1)]);
    assert!(WordsTrainer::new(9).train(&corpus, &mut Stop).unwrap_err().is_stopped());
    assert!(CharsTrainer::new(9).train(&corpus, &mut Stop).unwrap_err().is_stopped());
}

proptest! {
    #[test]
    fn trained_models_keep_the_laws(
        corpus in strategies::tiny_corpus(),
        text in strategies::mixed_text(),
        bytes in strategies::any_bytes(),
        size in 1..8usize,
    ) {
        let trainer = CharsTrainer::new(size);
        laws::trains_from_any_order(&trainer, &corpus);
        laws::trains_from_any_order(&WordsTrainer::new(size), &corpus);
        let table = PieceCounts::from_pairs(corpus.iter().cloned()).unwrap();
        let mut pieces: Vec<&[u8]> = corpus.iter().map(|(word, _)| word.as_bytes()).collect();
        pieces.extend([text.as_bytes(), &bytes]);
        let chars = trainer.train(&table, &mut Silent).unwrap();
        laws::encodes_like(&chars, |piece| {
            utf8::chars(piece)
                .map(|c| Token::new(chars.vocab().get(c).unwrap_or(TokenId(0)), c.len()))
                .collect()
        }, &pieces);
        let words = WordsTrainer::new(size).train(&table, &mut Silent).unwrap();
        laws::encodes_like(&words, |piece| {
            let id = words.vocab().get(piece).unwrap_or(TokenId(0));
            (!piece.is_empty()).then(|| Token::new(id, piece.len())).into_iter().collect()
        }, &pieces);
    }
}
