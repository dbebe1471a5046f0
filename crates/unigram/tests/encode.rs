//! What the encoder gives, case by case and by law.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use proptest::prelude::*;
use testkit::{laws, strategies, texts};
use tokenizer_core::{Decode, Encode, Model, Span, Token, TokenId, TokenKind, Vocab};
use unigram::{Compat, Unigram, UnigramOptions, naive};

const COMPATS: [Compat; 3] = [Compat::SentencePiece, Compat::SentencePiece021, Compat::HuggingFace];

fn options(compat: Compat, byte_fallback: bool) -> UnigramOptions {
    let mut options = UnigramOptions::default();
    options.compat = compat;
    options.byte_fallback = byte_fallback;
    options
}

fn model(tokens: &[(&[u8], TokenKind, f64)], options: UnigramOptions) -> Unigram {
    let mut vocab = Vocab::builder();
    for &(bytes, kind, _) in tokens {
        vocab.push(bytes, kind).unwrap();
    }
    Unigram::new(vocab.build(), tokens.iter().map(|token| token.2).collect(), options).unwrap()
}

/// `<unk>` (0) and normal pieces.
fn pieces(pieces: &[(&str, f64)], compat: Compat) -> Unigram {
    let mut tokens: Vec<(&[u8], TokenKind, f64)> = vec![(b"<unk>", TokenKind::Unknown, 0.0)];
    tokens.extend(pieces.iter().map(|&(p, score)| (p.as_bytes(), TokenKind::Normal, score)));
    model(&tokens, options(compat, false))
}

/// The tokens as `a|bc|<unk:z>`.
fn shown(model: &Unigram, text: &[u8], tokens: &[Token]) -> String {
    let mut at = 0;
    let mut parts = Vec::new();
    for token in tokens {
        let covered = String::from_utf8_lossy(&text[at..at + token.len as usize]).into_owned();
        at += token.len as usize;
        parts.push(match model.vocab().kind(token.id) {
            Some(TokenKind::Unknown) => format!("<unk:{covered}>"),
            Some(TokenKind::Byte) => {
                format!("<{:02X}>", model.vocab().bytes(token.id).unwrap()[0])
            }
            _ => covered,
        });
    }
    parts.join("|")
}

#[track_caller]
fn check(model: &Unigram, text: &str, expected: &str) {
    let tokens = model.encode(text.as_bytes());
    assert_eq!(
        shown(model, text.as_bytes(), &tokens),
        expected,
        "{text:?} in {:?}",
        model.options()
    );
    assert_eq!(naive::encode(model, text.as_bytes()), tokens, "naive on {text:?}");
    let nbest = model.nbest(text.as_bytes(), 1);
    assert_eq!(nbest[0].tokens, tokens, "the first of the n best on {text:?}");
}

#[test]
fn ties_go_to_the_token_that_begins_earlier() {
    for compat in COMPATS {
        check(&pieces(&[("a", -1.0), ("b", -1.0), ("ab", -2.0)], compat), "ab", "ab");
        let by_twos = pieces(&[("a", -1.0), ("aa", -2.0)], compat);
        check(&by_twos, "aaa", "a|aa");
        let by_twos = pieces(&[("a", -1.0), ("b", -1.0), ("aa", -2.0)], compat);
        check(&by_twos, "aaa", "a|aa");
        check(&by_twos, "aa", "aa");
    }
}

#[test]
fn unknown_characters_in_a_row_are_one_token() {
    for compat in COMPATS {
        let model = pieces(&[("a", -1.0), ("b", -2.0)], compat);
        check(&model, "zza", "<unk:zz>|a");
        check(&model, "azéb", "a|<unk:zé>|b");
        check(&model, "😀", "<unk:😀>");
        assert_eq!(model.unknown_score(), -12.0);
    }
}

#[test]
fn unknown_characters_stay_apart_if_asked() {
    for compat in COMPATS {
        let mut options = options(compat, false);
        options.fuse_unk = false;
        let model =
            model(&[(b"<unk>", TokenKind::Unknown, 0.0), (b"a", TokenKind::Normal, -1.0)], options);
        check(&model, "zéa", "<unk:z>|<unk:é>|a");
    }
}

fn with_bytes(bytes: impl Iterator<Item = u8>, compat: Compat) -> Unigram {
    let bytes: Vec<[u8; 1]> = bytes.map(|byte| [byte]).collect();
    let mut tokens: Vec<(&[u8], TokenKind, f64)> = vec![
        (b"<unk>", TokenKind::Unknown, 0.0),
        (b"a", TokenKind::Normal, -1.0),
        (b"b", TokenKind::Normal, -1.5),
    ];
    tokens.extend(bytes.iter().map(|byte| (&byte[..], TokenKind::Byte, 0.0)));
    model(&tokens, options(compat, true))
}

#[test]
fn byte_fallback_of_hugging_face_needs_every_byte_of_the_run() {
    let model = with_bytes([0xC3, 0xA9].into_iter(), Compat::HuggingFace);
    check(&model, "é", "<C3>|<A9>");
    check(&model, "aéb", "a|<C3>|<A9>|b");
    check(&model, "éza", "<unk:éz>|a");
}

#[test]
fn byte_fallback_of_sentencepiece_is_for_every_unknown_character() {
    for compat in [Compat::SentencePiece, Compat::SentencePiece021] {
        check(&with_bytes(0..=255, compat), "éza", "<C3>|<A9>|<7A>|a");
    }
}

#[test]
fn byte_fallback_of_sentencepiece_needs_all_bytes() {
    let mut vocab = Vocab::builder();
    vocab.push(b"a", TokenKind::Byte).unwrap();
    let error = Unigram::new(vocab.build(), vec![0.0], options(Compat::SentencePiece, true));
    let message = error.unwrap_err().to_string();
    assert_eq!(message, "byte fallback needs all 256 byte tokens, but <0x00> is missing");
}

#[test]
fn hugging_face_matches_tokens_of_every_kind_by_their_text() {
    let tokens: &[(&[u8], TokenKind, f64)] = &[
        (b"<unk>", TokenKind::Unknown, 0.0),
        (b"</s>", TokenKind::Control, 0.0),
        (b"a", TokenKind::Normal, -1.0),
        (b"A", TokenKind::Byte, 0.0),
    ];
    let hugging_face = model(tokens, options(Compat::HuggingFace, true));
    check(&hugging_face, "</s>a<0x41>", "</s>|a|<41>");
    // The text of the unknown token is unknown text: it joins what stands beside it.
    check(&hugging_face, "a<unk>z", "a|<unk:<unk>z>");
    let sentencepiece = model(tokens, options(Compat::SentencePiece, false));
    check(&sentencepiece, "</s>a<0x41>", "<unk:</s>>|a|<unk:<0x41>>");
}

#[test]
fn run_of_unknown_that_spells_a_token_is_that_token_in_hugging_face_mode() {
    // With positive scores two unknown characters can beat the token that they spell.
    let model = pieces(&[("a", 30.0), ("zz", 25.0)], Compat::HuggingFace);
    assert_eq!(model.unknown_score(), -10.0);
    let tokens = [
        (&b"<unk>"[..], TokenKind::Unknown, 100.0),
        (b"a", TokenKind::Normal, 90.0),
        (b"zz", TokenKind::Normal, 89.0),
    ];
    let model = self::model(&tokens, options(Compat::HuggingFace, false));
    assert_eq!(model.unknown_score(), 79.0);
    check(&model, "azz", "a|zz");
    assert_eq!(model.best_score(b"azz"), 90.0 + 2.0 * 79.0);
}

#[test]
fn user_defined_tokens_win_by_their_length() {
    let tokens: &[(&[u8], TokenKind, f64)] = &[
        (b"<unk>", TokenKind::Unknown, 0.0),
        (b"a", TokenKind::Normal, -1.0),
        (b"b", TokenKind::Normal, -1.0),
        (b"ab", TokenKind::UserDefined, 0.0),
        (b"abab", TokenKind::UserDefined, -7.0),
    ];
    for compat in [Compat::SentencePiece, Compat::SentencePiece021] {
        check(&model(tokens, options(compat, false)), "abab", "abab");
    }
    // 0.2.3: 0.1 (n - 1) each: 0.3 against 0.2. 0.2.1: n · tiny - 0.1 each, so fewer are better.
    let new = model(tokens, options(Compat::SentencePiece, false));
    assert!((new.best_score(b"abab") - 0.3).abs() < 1e-6);
    let old = model(tokens, options(Compat::SentencePiece021, false));
    assert!((old.best_score(b"abab") + 0.1).abs() < 1e-6);
    let hugging_face = model(tokens, options(Compat::HuggingFace, false));
    check(&hugging_face, "abab", "ab|ab");
}

#[test]
fn control_and_unused_tokens_never_match() {
    let tokens: &[(&[u8], TokenKind, f64)] = &[
        (b"<unk>", TokenKind::Unknown, 0.0),
        (b"<s>", TokenKind::Control, 0.0),
        (b"ab", TokenKind::Unused, 0.0),
        (b"a", TokenKind::Normal, -1.0),
        (b"b", TokenKind::Normal, -1.0),
    ];
    let model = model(tokens, options(Compat::SentencePiece, false));
    check(&model, "ab", "a|b");
    check(&model, "<s>", "<unk:<s>>");
}

#[test]
fn sums_are_32_bit_in_sentencepiece_mode_and_64_bit_in_hugging_face_mode() {
    // After a long prefix 0.0001 is lost in a 32-bit sum near 2000: a tie, which goes to "ab".
    let scores = [("x", -20.0), ("a", -1.0), ("b", -1.0), ("ab", -2.000_05)];
    let text = format!("{}ab", "x".repeat(1000));
    let (prefix, tail) = (vec!["x"; 1000].join("|"), ["ab", "a|b"]);
    check(&pieces(&scores, Compat::SentencePiece), &text, &format!("{prefix}|{}", tail[0]));
    check(&pieces(&scores, Compat::HuggingFace), &text, &format!("{prefix}|{}", tail[1]));
    check(&pieces(&scores, Compat::SentencePiece), "ab", "a|b");
    // Beyond 100000 the sum starts again from 0, and the difference counts again.
    let text = format!("{}ab", "x".repeat(5001));
    let prefix = vec!["x"; 5001].join("|");
    check(&pieces(&scores, Compat::SentencePiece), &text, &format!("{prefix}|a|b"));
    check(&pieces(&scores, Compat::SentencePiece021), &text, &format!("{prefix}|ab"));
}

#[test]
fn sums_with_unknown_characters_are_32_bit_in_0_2_1_too() {
    // Expected ids from sentencepiece 0.2.1, scores as its model file had them.
    let tokens: &[(&[u8], TokenKind, f64)] = &[
        (b"<unk>", TokenKind::Unknown, 0.0),
        (b"aa", TokenKind::Normal, f64::from(f32::from_bits(0xC13B_4DFA))),
        (b"b", TokenKind::UserDefined, 0.0),
        (b"ab", TokenKind::Normal, f64::from(-4.6f32)),
        (b"bab", TokenKind::UserDefined, 0.0),
        (b"bac", TokenKind::Normal, -3.5),
        (b"cbc", TokenKind::UserDefined, 0.0),
        (b"abab", TokenKind::Normal, f64::from(f32::from_bits(0xC008_2B47))),
        (b"cbab", TokenKind::Normal, -7.25),
        (b"acca", TokenKind::Normal, -4.5),
        (b"ababc", TokenKind::Normal, f64::from(f32::from_bits(0xC116_745D))),
    ];
    let model = model(tokens, options(Compat::SentencePiece021, false));
    let text = "zzazzzcbcbbbzbaaczabzzzbabbaaa";
    let parts = "<unk:zzazzz>|cbc|b|b|b|<unk:z>|b|aa|<unk:cz>|ab|<unk:zzz>|bab|b|<unk:a>|aa";
    check(&model, text, parts);
}

#[test]
fn without_unknown_token_and_bytes_unknown_text_is_dropped() {
    for compat in COMPATS {
        let model = model(&[(b"a", TokenKind::Normal, -1.0)], options(compat, false));
        assert_eq!(model.encode("zaéza".as_bytes()), vec![Token::new(TokenId(0), 1); 2]);
        assert_eq!(naive::encode(&model, "zaéza".as_bytes()).len(), 2);
        assert_eq!(model.unknown(), None);
    }
}

#[test]
fn hugging_face_example_with_positive_scores() {
    let model = pieces(
        &[
            ("a", 0.0),
            ("b", 0.0),
            ("c", 0.0),
            ("d", 0.0),
            ("cd", 1.0),
            ("ab", 2.0),
            ("abc", 5.0),
            ("abcd", 10.0),
        ],
        Compat::HuggingFace,
    );
    check(&model, "abcdacdxx", "abcd|a|cd|<unk:xx>");
}

#[test]
fn faults_of_a_vocabulary_are_named() {
    let build = |scores: Vec<f64>, kinds: &[TokenKind]| {
        let mut vocab = Vocab::builder();
        for (i, &kind) in kinds.iter().enumerate() {
            vocab.push(format!("t{i}").as_bytes(), kind).unwrap();
        }
        Unigram::new(vocab.build(), scores, UnigramOptions::default()).unwrap_err()
    };
    use TokenKind::{Normal, Unknown};
    let error = build(vec![0.0], &[Normal, Normal]);
    assert_eq!(error.to_string(), "the vocabulary holds 2 tokens, but there are 1 scores");
    for bad in [f64::NAN, f64::INFINITY, -2e27] {
        let error = build(vec![0.0, bad], &[Normal, Normal]);
        assert_eq!(error.token(), Some(TokenId(1)));
    }
    let error = build(vec![0.0, 0.0], &[Unknown, Unknown]);
    assert_eq!(error.to_string(), "token 1 is an unknown token, but token 0 is one already");
}

#[test]
fn empty_vocabulary_encodes_to_nothing() {
    for compat in COMPATS {
        let model = model(&[], options(compat, false));
        assert_eq!(model.encode(b"abc"), []);
        assert_eq!(model.encode(b""), []);
        assert_eq!(model.nbest(b"abc", 3).len(), 1);
    }
}

#[test]
fn decoding_gives_the_bytes_back() {
    let model = with_bytes(0..=255, Compat::SentencePiece);
    let text = "aéb 😀\0".as_bytes();
    let ids: Vec<TokenId> = model.encode(text).iter().map(|token| token.id).collect();
    assert_eq!(model.decode(&ids).unwrap(), text);
    let error = model.decode(&[ids[0], TokenId(9999)]).unwrap_err();
    assert_eq!((error.id(), error.at()), (TokenId(9999), 1));
}

#[test]
fn two_million_letters_in_one_piece() {
    let scores = [("a", -3.0), ("aa", -5.0), ("aaaa", -8.0), ("b", -3.0)];
    for compat in COMPATS {
        let model = pieces(&scores, compat);
        let text = vec![b'a'; 2_000_000];
        let mut session = model.session();
        let spans = [Span::new(0, text.len())];
        assert_eq!(session.count_pieces(&text, &spans), 500_000);
        assert!(model.best_score(&text).is_finite());
    }
    let model = pieces(&scores, Compat::SentencePiece);
    let text = vec![b'a'; 200_000];
    assert!(model.log_likelihood(&text).is_finite());
    let nbest = model.nbest(&text, 3);
    assert_eq!(nbest.len(), 3);
    assert!(nbest.iter().all(|s| s.score.is_finite()));
}

/// A vocabulary over a few letters with scores that tie often.
fn random_model() -> impl Strategy<Value = Unigram> {
    let piece = prop_oneof![
        8 => "[abc ]{1,4}",
        1 => "[é▁😀a]{1,3}",
        1 => Just("<0x62>".to_owned()),
        1 => Just("<unk>a".to_owned()),
    ];
    let kind = prop_oneof![
        8 => Just(TokenKind::Normal),
        1 => Just(TokenKind::UserDefined),
        1 => Just(TokenKind::Control),
        1 => Just(TokenKind::Unused),
    ];
    // Quarters tie exactly, the others by rounding.
    let score = prop_oneof![
        3 => (-40i32..4).prop_map(|s| f64::from(s) / 4.0),
        2 => -12.0f64..0.5,
        1 => (-30i32..0).prop_map(|s| f64::from(s) * 0.1),
    ];
    let tokens = prop::collection::btree_map(piece, (kind, score), 0..24);
    let bytes = prop_oneof![
        Just(Vec::new()),
        Just((0..=255).collect::<Vec<u8>>()),
        prop::collection::vec(any::<u8>(), 0..200)
    ];
    (tokens, bytes, prop::sample::select(COMPATS.to_vec()), any::<[bool; 3]>()).prop_map(
        |(tokens, mut bytes, compat, [fallback, fuse, has_unk])| {
            let mut vocab = Vocab::builder();
            let mut scores = Vec::new();
            if has_unk {
                vocab.push(b"<unk>", TokenKind::Unknown).unwrap();
                scores.push(0.0);
            }
            for (bytes, (kind, score)) in tokens {
                vocab.push(bytes.as_bytes(), kind).unwrap();
                scores.push(score);
            }
            bytes.sort_unstable();
            bytes.dedup();
            for &byte in &bytes {
                vocab.push(&[byte], TokenKind::Byte).unwrap();
                scores.push(0.0);
            }
            let fallback = fallback && (compat == Compat::HuggingFace || bytes.len() == 256);
            let mut options = options(compat, fallback);
            options.fuse_unk = fuse;
            Unigram::new(vocab.build(), scores, options).unwrap()
        },
    )
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[abc ]{0,30}".prop_map(String::into_bytes),
        2 => "[abcé▁😀<unk>0x62]{0,24}".prop_map(String::into_bytes),
        1 => strategies::mixed_text().prop_map(String::into_bytes),
        1 => strategies::any_bytes(),
    ]
}

/// Whether every text has tokens for all of it.
fn covers(model: &Unigram) -> bool {
    model.unknown().is_some()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn fast_equals_naive(model in random_model(), texts in prop::collection::vec(any_text(), 1..6)) {
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        if covers(&model) {
            laws::encodes_like(&model, |piece| naive::encode(&model, piece), &texts);
        }
        let mut session = model.session();
        for text in texts {
            let mut tokens = Vec::new();
            session.encode_piece(text, &mut tokens);
            prop_assert_eq!(tokens, naive::encode(&model, text));
        }
    }
}

#[test]
fn awkward_texts_obey_the_laws() {
    for compat in COMPATS {
        let model = with_bytes(0..=255, compat);
        let texts: Vec<&[u8]> = texts::all_bytes().map(|(_, text)| text).collect();
        laws::encodes_like(&model, |piece| naive::encode(&model, piece), &texts);
        for text in texts {
            if compat == Compat::HuggingFace && text.windows(6).any(|name| name == b"<0x0A>") {
                continue; // The name of a byte is that byte there.
            }
            let ids: Vec<TokenId> = model.encode(text).iter().map(|token| token.id).collect();
            assert_eq!(model.decode(&ids).unwrap(), text);
        }
    }
}
