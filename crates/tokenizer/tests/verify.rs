//! The checks find what is broken, and pass what is sound.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

use std::borrow::Cow;

use formats::vocab_txt::VocabTxt;
use tokenizer::verify::{
    By, Check, Texts, UnreachableReason, Verdict, compare, reachability, verify,
};
use tokenizer::{
    AddedToken, BertCase, DecodeStep, Parts, PieceStep, Stretch, TiktokenEncoding, Tokenizer,
};
use tokenizer_core::{Edit, Encode, Model, Normalize, Span, Token, TokenId, TokenKind, Vocab};

fn bert() -> Tokenizer {
    let file = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhug\n##s\na\n##b\nHug\n##\xE6\xB5\xB7\n";
    Tokenizer::from_vocab_txt(&VocabTxt::parse(file).unwrap(), BertCase::Uncased).unwrap()
}

fn failed(checks: &[Check]) -> Vec<&'static str> {
    let failed = checks.iter().filter(|check| check.verdict() == Verdict::Failed);
    failed.map(|check| check.law).collect()
}

#[test]
fn a_published_encoding_obeys_every_law() {
    let tokenizer = Tokenizer::from_encoding(TiktokenEncoding::R50kBase);
    let checks = verify(&tokenizer, &Texts::builtin());
    assert!(checks.iter().all(|check| check.verdict() == Verdict::Passed), "{checks:?}");
    assert!(checks.iter().all(|check| check.cases > 300), "{checks:?}");
}

#[test]
fn what_was_never_promised_is_noted() {
    let checks = verify(&bert(), &Texts::builtin());
    assert_eq!(failed(&checks), [""; 0]);
    assert_eq!(checks[0].law, "decode(encode(x)) = x");
    assert_eq!(checks[0].verdict(), Verdict::Noted);
    let example = checks[0].example.as_ref().unwrap();
    assert_eq!(example.text.as_ref().map(|text| text.chars().count()), Some(1));
}

/// Bytes, with a fault.
struct Faulty {
    vocab: Vocab,
    fault: Fault,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// A session that was used gives other ids.
    Memory,
    /// The count is off on long pieces.
    Count,
    /// Ids alone differ from tokens.
    Ids,
    /// The letter q becomes x.
    Letter,
}

struct FaultySession<'m> {
    model: &'m Faulty,
    pieces: usize,
}

impl Model for Faulty {
    fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    fn encoder(&self) -> Box<dyn Encode + '_> {
        Box::new(FaultySession { model: self, pieces: 0 })
    }
}

impl Encode for FaultySession<'_> {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        self.pieces += 1;
        for &byte in piece {
            let byte = match (self.model.fault, byte) {
                (Fault::Memory, b'q') if self.pieces > 100 => b'x',
                (Fault::Letter, b'q') => b'x',
                _ => byte,
            };
            tokens.push(Token::new(TokenId(u32::from(byte)), 1));
        }
    }

    fn encode_ids_into(&mut self, text: &[u8], pieces: &[Span], ids: &mut Vec<TokenId>) {
        let mut tokens = Vec::new();
        self.encode_pieces(text, pieces, &mut tokens);
        ids.extend(tokens.iter().map(|token| token.id));
        if self.model.fault == Fault::Ids && tokens.len() > 20 {
            ids.pop();
        }
    }

    fn count_pieces(&mut self, _: &[u8], pieces: &[Span]) -> usize {
        let count: usize = pieces.iter().map(|piece| piece.len()).sum();
        count + usize::from(self.model.fault == Fault::Count && count > 9)
    }
}

fn faulty(fault: Fault) -> Tokenizer {
    let mut vocab = Vocab::builder();
    for byte in 0..=255u8 {
        vocab.push(&[byte], TokenKind::Normal).unwrap();
    }
    Parts::new(Box::new(Faulty { vocab: vocab.build(), fault })).build().unwrap()
}

fn some_texts() -> Texts {
    let mut texts = Texts::builtin();
    texts.push("a question and a longer text with a q in it");
    texts
}

#[test]
fn every_fault_is_found() {
    let texts = some_texts();
    assert_eq!(failed(&verify(&faulty(Fault::None), &texts)), [""; 0]);
    for (fault, law) in [
        (Fault::Memory, "ids = offsets = count = trace = fresh session"),
        (Fault::Count, "ids = offsets = count = trace = fresh session"),
        (Fault::Ids, "ids = offsets = count = trace = fresh session"),
        (Fault::Letter, "decode(encode(x)) = x"),
    ] {
        let found = failed(&verify(&faulty(fault), &texts));
        assert!(found.contains(&law), "{law}: {found:?}");
    }
}

#[test]
fn the_shortest_text_that_differs_is_shown() {
    let checks = compare(&faulty(Fault::None), &faulty(Fault::Letter), &some_texts(), By::Ids);
    assert_eq!(
        failed(&checks),
        ["same ids", "same ids, special tokens recognised", "same decoded text"]
    );
    let example = checks[1].example.as_ref().unwrap();
    assert_eq!(example.text.as_deref(), Some("q"));
    assert_eq!(example.what, "q [113] against x [120]");
}

#[test]
fn one_tokenizer_equals_itself() {
    let checks = compare(&bert(), &bert(), &Texts::builtin(), By::Ids);
    assert!(checks.iter().all(|check| check.verdict() == Verdict::Passed), "{checks:?}");
}

#[test]
fn other_ids_of_the_same_tokens_are_seen_by_tokens() {
    let moved = |by: usize| {
        let bytes = (0..256).map(|i| ((i + by) % 256) as u8);
        let mut vocab = Vocab::builder();
        for byte in bytes {
            vocab.push(&[byte], TokenKind::Normal).unwrap();
        }
        let model = bpe::Bpe::from_ranks(vocab.build(), bpe::BpeOptions::default()).unwrap();
        Parts::new(Box::new(model)).build().unwrap()
    };
    let texts = Texts::builtin();
    let by_id = compare(&moved(0), &moved(7), &texts, By::Ids);
    assert_eq!(failed(&by_id).len(), 3);
    let by_token = compare(&moved(0), &moved(7), &texts, By::Tokens);
    assert_eq!(failed(&by_token), [""; 0]);
}

#[test]
fn a_vocabulary_that_differs_is_seen() {
    let mut parts = Tokenizer::bytes().into_parts();
    parts.added_tokens.push(AddedToken::special("<x>", TokenId(256)));
    let checks = compare(&Tokenizer::bytes(), &parts.build().unwrap(), &Texts::builtin(), By::Ids);
    assert_eq!(checks[0].broken, 1);
    assert_eq!(checks[0].example.as_ref().unwrap().what, "id 256 is \"\" against \"<x>\"");
}

/// Makes text upper case.
struct Shout;

impl Normalize for Shout {
    fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        Cow::Owned(text.to_ascii_uppercase())
    }

    fn normalize_with_edits<'t>(&self, text: &'t str, edits: &mut Vec<Edit>) -> Cow<'t, str> {
        let new = text.to_ascii_uppercase();
        edits.push(Edit { source: Span::new(0, text.len()), target: Span::new(0, new.len()) });
        Cow::Owned(new)
    }
}

fn reasons(tokenizer: &Tokenizer) -> Vec<(u32, UnreachableReason)> {
    let found = reachability(tokenizer);
    assert_eq!(found.reached + found.partial + found.unreachable.len(), found.tokens);
    found.unreachable.into_iter().map(|token| (token.id.0, token.reason)).collect()
}

#[test]
fn tokens_that_never_come_out_have_a_reason() {
    // a b c ab abc, but no merge makes abc; of bc the merge comes too late.
    let vocab = Vocab::from_tokens(["a", "b", "c", "ab", "abc", "bc"]).unwrap();
    let merges = vec![(TokenId(0), TokenId(1)), (TokenId(1), TokenId(2))];
    let model = bpe::Bpe::from_merges(vocab, merges, bpe::BpeOptions::default()).unwrap();
    let found = reasons(&Parts::new(Box::new(model)).build().unwrap());
    let instead = UnreachableReason::Outdone(vec![TokenId(3), TokenId(2)]);
    assert_eq!(found, [(4, instead)]);
}

#[test]
fn rewriting_and_cutting_keep_tokens_from_coming_out() {
    let vocab = Vocab::from_tokens(["A", "b", "A B", "B", " ", " B"]).unwrap();
    let model = bpe::Bpe::from_ranks(vocab, bpe::BpeOptions::default()).unwrap();
    let mut parts = Parts::new(Box::new(model));
    parts.normalizer = Some(Box::new(Shout));
    parts.steps = vec![PieceStep::Split(pretok::Pattern::Gpt2.splitter())];
    let found = reasons(&parts.build().unwrap());
    let pieces = vec!["A".to_owned(), " B".to_owned()];
    assert_eq!(
        found,
        [(1, UnreachableReason::Rewritten("B".into())), (2, UnreachableReason::Cut(pieces))]
    );
}

#[test]
fn continuations_are_reached_behind_a_beginning() {
    // "Hug" cannot come out of lower-cased text; "##海" cannot, for 海 is always a word of its own.
    let found = reasons(&bert());
    let ids: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [9, 10]);
    assert_eq!(found[0].1, UnreachableReason::Rewritten("hug".into()));
}

#[test]
fn parts_of_characters_count_as_reached() {
    let found = reachability(&Tokenizer::bytes());
    assert_eq!((found.tokens, found.reached, found.partial), (256, 128, 128));
}

#[test]
fn a_trace_shows_every_step() {
    let tokenizer = bert();
    let trace = tokenizer.trace("Hugs [SEP]", &tokenizer::Policy::AllowAll).unwrap();
    let [Stretch::Text(text), Stretch::Added { id, span }] = &trace.stretches[..] else {
        panic!("{trace:?}")
    };
    assert_eq!((text.text.as_str(), text.pieces.len()), ("hugs ", 1));
    assert_eq!((text.pieces[0].span, text.pieces[0].source), (Span::new(0, 4), Span::new(0, 4)));
    assert_eq!((id.0, *span), (3, Span::new(5, 10)));
    assert_eq!(trace.ids(), [TokenId(5), TokenId(6), TokenId(3)]);
}

#[test]
fn streams_that_hold_text_still_equal_the_whole() {
    let mut parts = Tokenizer::bytes().into_parts();
    parts.decoder =
        vec![DecodeStep::Fuse, DecodeStep::Replace { pattern: "a".into(), content: "b".into() }];
    let checks = verify(&parts.build().unwrap(), &Texts::builtin());
    assert_eq!(failed(&checks), [""; 0]);
}
