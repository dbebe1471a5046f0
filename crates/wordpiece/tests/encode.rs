//! The model: Hugging Face's semantics as cases, and the laws.
#![allow(clippy::unwrap_used)] // The helpers of an integration test are tests as well.

use proptest::prelude::*;
use testkit::{laws, strategies, texts};
use tokenizer_core::{Decode, Encode, Model, Token, TokenId, TokenKind, Vocab};
use wordpiece::{Options, Outcome, Stop, Unit, Unknown, WordPiece, naive};

fn model_with(tokens: &[&str], set: impl FnOnce(&mut Options)) -> WordPiece {
    let mut options = Options::default();
    set(&mut options);
    WordPiece::new(Vocab::from_tokens(tokens).unwrap(), options).unwrap()
}

fn encode(model: &WordPiece, word: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    model.session().encode_piece(word.as_bytes(), &mut tokens);
    assert_eq!(tokens, naive::encode(model, word.as_bytes()), "fast = naive on {word:?}");
    let text = |token: &Token| model.vocab().bytes(token.id).unwrap();
    tokens
        .iter()
        .map(|token| format!("{}:{}", String::from_utf8_lossy(text(token)), token.len))
        .collect()
}

#[track_caller]
fn check(tokens: &[&str], word: &str, expected: &[&str]) {
    assert_eq!(encode(&model_with(tokens, |_| ()), word), expected);
}

#[test]
fn longest_match_first() {
    let tokens = ["[UNK]", "un", "##want", "##ed", "##e", "##d", "unw"];
    check(&tokens, "unwanted", &["[UNK]:8"]);
    let tokens = ["[UNK]", "un", "##want", "##ed", "##e", "##d"];
    check(&tokens, "unwanted", &["un:2", "##want:4", "##ed:2"]);
    check(&tokens, "", &[]);
}

#[test]
fn unmatched_tail_makes_the_whole_word_one_unknown() {
    let tokens = ["[UNK]", "un", "##want", "##ed"];
    check(&tokens, "unwantedX", &["[UNK]:9"]);
    check(&tokens, "Xunwanted", &["[UNK]:9"]);
    check(&tokens, "é", &["[UNK]:2"]);
}

#[test]
fn the_limit_counts_characters_not_bytes() {
    let tokens = ["[UNK]", "a", "##a", "é", "##é", "aaaaaa"];
    let model = model_with(&tokens, |options| options.max_chars = 5);
    assert_eq!(encode(&model, "aaaaa").len(), 5);
    assert_eq!(encode(&model, "ééééé").len(), 5);
    assert_eq!(encode(&model, "éééééé"), ["[UNK]:12"]);
    // Also for a word that is a token.
    assert_eq!(encode(&model, "aaaaaa"), ["[UNK]:6"]);
    let bytes = model_with(&tokens, |options| {
        options.max_chars = 5;
        options.unit = Unit::Byte;
    });
    assert_eq!(encode(&bytes, "ééé"), ["[UNK]:6"]);
}

#[test]
fn a_literal_prefix_matches_at_the_beginning_of_a_word() {
    let tokens = ["[UNK]", "b", "##a"];
    check(&tokens, "##a", &["##a:3"]);
    check(&tokens, "ba", &["b:1", "##a:1"]);
    check(&tokens, "#", &["[UNK]:1"]);
    check(&tokens, "##", &["[UNK]:2"]);
    check(&tokens, "##aa", &["##a:3", "##a:1"]);
    check(&tokens, "b##a", &["[UNK]:4"]);
    check(&["[UNK]", "#", "###", "##a"], "##a", &["##a:3"]);
    check(&["[UNK]", "#", "###", "##a"], "###a", &["###:3", "##a:1"]);
}

#[test]
fn a_bare_prefix_is_no_empty_continuation() {
    let tokens = ["[UNK]", "b", "##"];
    check(&tokens, "b", &["b:1"]);
    check(&tokens, "bb", &["[UNK]:2"]);
    check(&tokens, "##", &["##:2"]);
    check(&tokens, "##b", &["[UNK]:3"]);
}

#[test]
fn an_empty_prefix_makes_all_tokens_alike() {
    let model = model_with(&["[UNK]", "a", "ab", "bc"], |o| o.continuing_prefix.clear());
    assert_eq!(encode(&model, "abc"), ["[UNK]:3"]);
    assert_eq!(encode(&model, "aab"), ["a:1", "ab:2"]);
    assert_eq!(encode(&model, "bcbc"), ["bc:2", "bc:2"]);
    assert_eq!(model.decode(&[TokenId(1), TokenId(3)]).unwrap(), b"abc");
}

#[test]
fn other_unknown_modes_keep_what_matched() {
    let tokens = ["[UNK]", "un", "##want", "##e", "##é"];
    let rest = model_with(&tokens, |options| options.unknown = Unknown::Rest);
    assert_eq!(encode(&rest, "unwantXe"), ["un:2", "##want:4", "[UNK]:2"]);
    assert_eq!(encode(&rest, "Xun"), ["[UNK]:3"]);
    let character = model_with(&tokens, |options| options.unknown = Unknown::Character);
    assert_eq!(encode(&character, "unwantXe"), ["un:2", "##want:4", "[UNK]:1", "##e:1"]);
    assert_eq!(encode(&character, "un😀é"), ["un:2", "[UNK]:4", "##é:2"]);
    assert_eq!(
        encode(&character, "wantwant"),
        ["[UNK]:1", "[UNK]:1", "[UNK]:1", "[UNK]:1", "##want:4"]
    );
}

#[test]
fn without_an_unknown_token_text_is_dropped() {
    let tokens = ["a", "##b"];
    let word = model_with(&tokens, |options| options.unk = None);
    assert_eq!(encode(&word, "abX"), [""; 0]);
    let rest = model_with(&tokens, |options| {
        options.unk = None;
        options.unknown = Unknown::Rest;
    });
    assert_eq!(encode(&rest, "abX"), ["a:1", "##b:1"]);
}

#[test]
fn a_missing_unknown_token_is_an_error_that_names_it() {
    let vocab = Vocab::from_tokens(["a"]).unwrap();
    let error = WordPiece::new(vocab, Options::default()).unwrap_err();
    assert_eq!(error.missing_unk(), Some(&b"[UNK]"[..]));
    assert_eq!(
        error.to_string(),
        "the unknown token \"[UNK]\" is not among the 1 tokens of the vocabulary"
    );
}

#[test]
fn control_tokens_never_match_text() {
    let mut vocab = Vocab::builder();
    vocab.push(b"[UNK]", TokenKind::Unknown).unwrap();
    vocab.push(b"[CLS]", TokenKind::Control).unwrap();
    vocab.push(b"[", TokenKind::Normal).unwrap();
    let model = WordPiece::new(vocab.build(), Options::default()).unwrap();
    assert_eq!(encode(&model, "[CLS]"), ["[UNK]:5"]);
    assert_eq!(encode(&model, "[UNK]"), ["[UNK]:5"]);
    assert_eq!(encode(&model, "["), ["[:1"]);
}

#[test]
fn bytes_that_are_no_text_match_as_bytes() {
    let mut vocab = Vocab::builder();
    vocab.push(b"[UNK]", TokenKind::Unknown).unwrap();
    for byte in 0..=255u8 {
        vocab.push(&[byte], TokenKind::Normal).unwrap();
        vocab.push(&[b'#', b'#', byte], TokenKind::Normal).unwrap();
    }
    vocab.push(b"##\x9F\x98", TokenKind::Normal).unwrap();
    let mut options = Options::default();
    options.unit = Unit::Byte;
    let model = WordPiece::new(vocab.build(), options).unwrap();
    let pieces: Vec<&[u8]> = texts::all_bytes().map(|(_, bytes)| bytes).collect();
    laws::encodes_like(&model, |piece| naive::encode(&model, piece), &pieces);
    let mut tokens = Vec::new();
    model.session().encode_piece("😀".as_bytes(), &mut tokens);
    assert_eq!(tokens.iter().map(|token| token.len).collect::<Vec<_>>(), [1, 2, 1]);
    let ids: Vec<_> = tokens.iter().map(|token| token.id).collect();
    assert_eq!(model.decode(&ids).unwrap(), "😀".as_bytes());
}

#[test]
fn decoding_joins_and_separates() {
    let tokens = ["[UNK]", "hug", "##s", "pug", "##", "##en"];
    let model = model_with(&tokens, |_| ());
    let check = |ids: &[u32], expected: &str| {
        let ids: Vec<TokenId> = ids.iter().copied().map(TokenId).collect();
        assert_eq!(String::from_utf8(model.decode(&ids).unwrap()).unwrap(), expected);
    };
    check(&[1, 2, 3, 2], "hugs pugs");
    check(&[5], "en");
    check(&[5, 1], "en hug");
    check(&[0, 2, 0], "[UNK]s [UNK]");
    check(&[1, 4, 2], "hug ##s");
    check(&[], "");
    let error = model.decode(&[TokenId(1), TokenId(6)]).unwrap_err();
    assert_eq!((error.id(), error.at()), (TokenId(6), 1));
    let joined = model_with(&tokens, |options| options.word_separator.clear());
    assert_eq!(joined.decode(&[TokenId(1), TokenId(3)]).unwrap(), b"hugpug");
}

#[test]
fn explanations_say_what_stopped_each_match() {
    let tokens = ["[UNK]", "hug", "hugging", "##g", "##i", "##ing"];
    let model = model_with(&tokens, |_| ());
    let explanation = model.explain(b"huggier");
    let steps: Vec<_> = explanation
        .matches
        .iter()
        .map(|step| (step.span.start, step.span.end, step.agrees_to, step.stop))
        .collect();
    assert_eq!(
        steps,
        [
            (0, 3, 5, Stop::LongerTokensDiffer),
            (3, 4, 4, Stop::NoLongerToken),
            (4, 5, 5, Stop::NoLongerToken),
            (5, 7, 5, Stop::NoLongerToken)
        ]
    );
    assert_eq!(explanation.outcome, Outcome::Unmatched { at: 5 });
    assert_eq!(explanation.tokens, [Token::new(TokenId(0), 7)]);
    let explanation = model.explain(b"hugging");
    assert_eq!(explanation.matches.len(), 1);
    assert_eq!(explanation.matches[0].stop, Stop::EndOfWord);
    assert_eq!(explanation.outcome, Outcome::Matched);
    assert_eq!(model.explain(&[b'a'; 101]).outcome, Outcome::TooLong { chars: 101 });
    assert_eq!(model.explain(b"").outcome, Outcome::Matched);
}

#[test]
fn a_prefix_of_the_vocabulary_is_a_model() {
    let model = model_with(&["[UNK]", "a", "##b", "ab"], |_| ());
    assert_eq!(encode(&model.prefix(3).unwrap(), "ab"), ["a:1", "##b:1"]);
    assert!(model.prefix(0).is_err());
}

#[test]
fn one_enormous_word_is_linear() {
    // Naive trie matching would look 5,000 bytes ahead at each of 2,000,000 places.
    let long = format!("##{}b", "a".repeat(5_000));
    let model = model_with(&["[UNK]", "a", "##a", &long], |options| options.max_chars = usize::MAX);
    let word = vec![b'a'; 2_000_000];
    let mut tokens = Vec::new();
    model.session().encode_piece(&word, &mut tokens);
    assert_eq!(tokens.len(), word.len());
}

/// Tokens over a tiny alphabet, some with the prefix, some with a literal one.
fn vocabulary() -> impl Strategy<Value = Vec<String>> {
    let text = "[ab#]{1,5}|[abé]{1,7}|#{1,5}";
    let token = (any::<bool>(), text)
        .prop_map(|(inner, text)| if inner { format!("##{text}") } else { text });
    proptest::collection::btree_set(token, 0..14).prop_map(|set| set.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_automaton_is_max_match(
        tokens in vocabulary(),
        words in proptest::collection::vec("[ab#]{0,12}|[abé]{0,20}", 1..20),
        mode in 0..3usize,
        prefix in proptest::sample::select(vec!["##", "", "a", "é"]),
        max_chars in proptest::sample::select(vec![100, 6]),
        unit in proptest::sample::select(vec![Unit::Char, Unit::Byte]),
    ) {
        let mut options = Options::default();
        options.continuing_prefix = prefix.into();
        options.unknown = [Unknown::Word, Unknown::Rest, Unknown::Character][mode];
        options.max_chars = max_chars;
        options.unit = unit;
        let tokens = [vec!["[UNK]".to_owned()], tokens].concat();
        let model = WordPiece::new(Vocab::from_tokens(&tokens).unwrap(), options).unwrap();
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        laws::encodes_like(&model, |word| naive::encode(&model, word), &words);
        for word in words {
            let explanation = model.explain(word);
            if explanation.outcome == Outcome::Matched {
                let matches: Vec<_> = explanation
                    .matches
                    .iter()
                    .map(|step| Token::new(step.token.unwrap(), step.span.len()))
                    .collect();
                prop_assert_eq!(matches, explanation.tokens);
            }
        }
    }

    #[test]
    fn any_bytes_encode(
        tokens in proptest::collection::btree_set(
            proptest::collection::vec(proptest::sample::select(b"a#\xC3\xA9\xF0\x9F".to_vec()), 1..6), 0..12),
        word in strategies::any_bytes(),
        tight in proptest::collection::vec(proptest::sample::select(b"a#\xC3\xA9\xF0\x9F".to_vec()), 0..12),
        mode in 0..3usize,
    ) {
        let mut options = Options::default();
        options.unknown = [Unknown::Word, Unknown::Rest, Unknown::Character][mode];
        let tokens = [vec![b"[UNK]".to_vec()], tokens.into_iter().collect()].concat();
        let model = WordPiece::new(Vocab::from_tokens(&tokens).unwrap(), options).unwrap();
        laws::encodes_like(&model, |word| naive::encode(&model, word), &[&word, &tight]);
    }
}
