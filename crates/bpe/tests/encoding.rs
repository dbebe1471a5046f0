//! Encoding: the laws on every awkward text, and the cases in which reference libraries are
//! peculiar. Expected ids marked so were produced by tokenizers 0.23.3, tiktoken 0.14.0 or
//! sentencepiece 0.2.3; the others follow from the definition by hand.

#![allow(clippy::unwrap_used)] // The whole file is tests; helpers unwrap for them.

use bpe::naive::NaiveEncoder;
use bpe::{Alphabet, Bpe, BpeOptions, EndOfWord, Rules, Size};
use proptest::prelude::*;
use testkit::{laws, strategies, texts};
use tokenizer_core::{Decode, Encode, Model, Rng, Span, Token, TokenId, TokenKind, Vocab};

/// A model whose merges are written as strings.
fn listed(tokens: &[&str], merges: &[(&str, &str)], options: BpeOptions) -> Bpe {
    let vocab = vocab(tokens);
    let id = |token: &str| find(&vocab, token);
    let merges = merges.iter().map(|(left, right)| (id(left), id(right))).collect();
    Bpe::from_merges(vocab.clone(), merges, options).unwrap()
}

/// `<0xNN>` makes a byte token.
fn vocab(tokens: &[&str]) -> Vocab {
    let mut builder = Vocab::builder();
    for token in tokens {
        match byte_token(token) {
            Some(byte) => builder.push(&[byte], TokenKind::Byte).unwrap(),
            None => builder.push(token.as_bytes(), TokenKind::Normal).unwrap(),
        };
    }
    builder.build()
}

fn byte_token(token: &str) -> Option<u8> {
    u8::from_str_radix(token.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok()
}

fn find(vocab: &Vocab, token: &str) -> TokenId {
    match byte_token(token) {
        Some(byte) => vocab.byte(byte).unwrap(),
        None => vocab.get(token.as_bytes()).unwrap(),
    }
}

fn chars() -> BpeOptions {
    let mut options = BpeOptions::default();
    options.alphabet = Alphabet::Char;
    options
}

/// Encodes and holds the result against the naive encoder.
fn encode(model: &Bpe, piece: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    model.session().encode_piece(piece.as_bytes(), &mut tokens);
    assert_eq!(tokens, NaiveEncoder::new(model).encode_piece(piece.as_bytes()), "{piece:?}");
    tokens
}

/// Checks the tokens of a piece, written as `token|token`.
fn check(model: &Bpe, piece: &str, expected: &str) {
    let names: Vec<String> = encode(model, piece)
        .iter()
        .map(|token| match (model.vocab().kind(token.id), model.vocab().bytes(token.id)) {
            (Some(TokenKind::Byte), Some(bytes)) => format!("<0x{:02X}>", bytes[0]),
            (_, bytes) => String::from_utf8(bytes.unwrap().to_vec()).unwrap(),
        })
        .collect();
    assert_eq!(names.join("|"), expected, "{piece:?}");
}

fn lens(model: &Bpe, piece: &str) -> Vec<u32> {
    encode(model, piece).iter().map(|token| token.len).collect()
}

/// All bytes and some words, as byte-level BPE and as ranks.
fn byte_models() -> [Bpe; 2] {
    let merges = [
        (b'a', b'a'),
        (b' ', b'a'),
        (b'l', b'o'),
        (b't', b'h'),
        (0xF0, 0x9F),
        (0xE2, 0x80),
        (b'\r', b'\n'),
        (b' ', b' '),
        (0xFF, 0xFF),
    ];
    let mut builder = Vocab::builder();
    for byte in 0..=255u8 {
        builder.push(&[byte], TokenKind::Normal).unwrap();
    }
    let mut list = Vec::new();
    for (left, right) in merges {
        builder.push(&[left, right], TokenKind::Normal).unwrap();
        list.push((TokenId(left.into()), TokenId(right.into())));
    }
    let aa = builder.get(b"aa").unwrap();
    builder.push(b"aaaa", TokenKind::Normal).unwrap();
    list.push((aa, aa));
    let vocab = builder.build();
    [
        Bpe::from_merges(vocab.clone(), list, BpeOptions::default()).unwrap(),
        Bpe::from_ranks(vocab, BpeOptions::default()).unwrap(),
    ]
}

#[test]
fn byte_models_obey_the_laws_on_awkward_texts() {
    let long = "aab lo\u{1F600}".repeat(300);
    let pieces: Vec<&[u8]> =
        texts::all_bytes().map(|(_, bytes)| bytes).chain([long.as_bytes()]).collect();
    for model in byte_models() {
        let naive = NaiveEncoder::new(&model);
        laws::encodes_like(&model, |piece| naive.encode_piece(piece), &pieces);
        for piece in &pieces {
            let mut tokens = Vec::new();
            model.session().encode_piece(piece, &mut tokens);
            let ids: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
            assert_eq!(model.decode(&ids).unwrap(), *piece);
        }
    }
}

#[test]
fn character_models_obey_the_laws_on_awkward_texts() {
    let mut options = chars();
    options.unk = Some(TokenId(0));
    let tokens = ["<unk>", "a", "b", " ", "é", "aa", " a"];
    let merges = [("a", "a"), (" ", "a")];
    for (fuse_unk, fall_back) in [(false, false), (true, false), (true, true)] {
        let mut tokens = tokens.to_vec();
        let bytes: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
        if fall_back {
            tokens.extend(bytes.iter().map(String::as_str));
        }
        options.fuse_unk = fuse_unk;
        options.byte_fallback = fall_back;
        let model = listed(&tokens, &merges, options.clone());
        let naive = NaiveEncoder::new(&model);
        let pieces: Vec<&[u8]> = texts::all_bytes().map(|(_, bytes)| bytes).collect();
        laws::encodes_like(&model, |piece| naive.encode_piece(piece), &pieces);
    }
}

#[test]
fn a_token_can_be_unreachable_and_ignore_merges_reaches_it() {
    // tokenizers 0.23.3.
    let tokens = ["a", "b", "c", "ab", "bc", "abc"];
    let merges = [("a", "b"), ("b", "c"), ("a", "bc")];
    let model = listed(&tokens, &merges, chars());
    check(&model, "abc", "ab|c");
    let unreachable = model.unreachable_tokens();
    let found: Vec<(u32, Vec<u32>)> = unreachable
        .iter()
        .map(|u| (u.token.0, u.encoding.iter().map(|id| id.0).collect()))
        .collect();
    assert_eq!(found, [(5, vec![3, 2])]);
    let mut options = chars();
    options.ignore_merges = true;
    let model = listed(&tokens, &merges, options);
    check(&model, "abc", "abc");
    check(&model, "abca", "ab|c|a");
    assert!(model.trace(b"abc").taken_whole);
    assert!(!model.trace(b"ab").taken_whole);
}

#[test]
fn ranks_take_a_whole_piece_that_merging_cannot_reach() {
    // tiktoken 0.14.0.
    let mut builder = Vocab::builder();
    for byte in 0..=255u8 {
        builder.push(&[byte], TokenKind::Normal).unwrap();
    }
    builder.push(b"abc", TokenKind::Normal).unwrap();
    let end = builder.push(b"<|endoftext|>", TokenKind::Control).unwrap();
    let model = Bpe::from_ranks(builder.build(), BpeOptions::default()).unwrap();
    check(&model, "abc", "abc");
    check(&model, "abcd", "a|b|c|d");
    assert_eq!(encode(&model, "<|endoftext|>").len(), 13, "control tokens never come from text");
    assert_ne!(encode(&model, "<|endoftext|>")[0].id, end);
    assert_eq!(model.unreachable_tokens().len(), 1);
    assert_eq!(model.recover_merges(), []);
}

#[test]
fn the_last_rank_of_a_repeated_merge_counts() {
    // tokenizers 0.23.3.
    let tokens = ["a", "b", "c", "ab", "bc"];
    let model = listed(&tokens, &[("b", "c"), ("a", "b"), ("b", "c")], chars());
    check(&model, "abc", "ab|c");
    let model = listed(&tokens, &[("b", "c"), ("a", "b")], chars());
    check(&model, "abc", "a|bc");
}

#[test]
fn without_unk_unknown_characters_are_dropped_and_neighbours_merge() {
    // tokenizers 0.23.3.
    let model = listed(&["a", "b", "ab"], &[("a", "b")], chars());
    check(&model, "azb", "ab");
    assert_eq!(lens(&model, "azb"), [2]);
    check(&model, "z", "");
    check(&model, "", "");
}

#[test]
fn unknown_characters_are_one_token_each_or_fused() {
    // tokenizers 0.23.3.
    let mut options = chars();
    options.unk = Some(TokenId(0));
    let tokens = ["<unk>", "a", "b", "ab"];
    check(&listed(&tokens, &[("a", "b")], options.clone()), "zzazb", "<unk>|<unk>|a|<unk>|b");
    options.fuse_unk = true;
    let model = listed(&tokens, &[("a", "b")], options);
    check(&model, "zzazb", "<unk>|a|<unk>|b");
    assert_eq!(lens(&model, "zéazb"), [3, 1, 1, 1]);
}

#[test]
fn a_held_back_unk_comes_after_the_bytes_of_the_next_character() {
    // tokenizers 0.23.3: the order is odd, and so lengths are given to the wrong characters.
    let mut options = chars();
    options.unk = Some(TokenId(0));
    options.byte_fallback = true;
    let tokens = ["<unk>", "a", "b", "<0xC3>", "<0xA9>"];
    for fuse_unk in [false, true] {
        options.fuse_unk = fuse_unk;
        let model = listed(&tokens, &[], options.clone());
        check(&model, "azéb", "a|<0xC3>|<0xA9>|<unk>|b");
        assert_eq!(lens(&model, "azéb"), [1, 1, 1, 1, 1]);
    }
    check(&listed(&tokens, &[], options), "zéz", "<0xC3>|<0xA9>|<unk>");
}

#[test]
fn equal_ranks_merge_from_the_left() {
    let model = listed(&["a", "aa"], &[("a", "a")], chars());
    check(&model, "aaa", "aa|a");
    check(&model, "aaaaa", "aa|aa|a");
}

#[test]
fn merge_rank_differs_from_id() {
    // As RoBERTa: ids are sorted by frequency and say nothing about ranks.
    let model = listed(&["bc", "c", "ab", "b", "a"], &[("a", "b"), ("b", "c")], chars());
    check(&model, "abc", "ab|c");
    let mut builder = Vocab::builder();
    for token in ["bc", "c", "ab", "b", "a"] {
        builder.push(token.as_bytes(), TokenKind::Normal).unwrap();
    }
    check(&Bpe::from_ranks(builder.build(), chars()).unwrap(), "abc", "a|bc");
}

#[test]
fn missing_byte_tokens_are_unknown() {
    // As GPT-NeoX, which lacks C0, C1 and F5 to FF.
    let model = listed(&["a", "b", "ab"], &[("a", "b")], BpeOptions::default());
    let mut tokens = Vec::new();
    model.session().encode_piece(b"a\xC0b\xFF", &mut tokens);
    assert_eq!(tokens, [Token::new(TokenId(2), 2)]);
}

#[test]
fn a_literal_character_wins_over_its_byte_token() {
    // As Gemma: a literal tab in the vocabulary, and the byte tokens apart.
    let mut options = chars();
    options.byte_fallback = true;
    let model = listed(&["\t", "<0x09>", "<0x0A>"], &[], options);
    check(&model, "\t\n\t", "\t|<0x0A>|\t");
}

#[test]
fn affixes_are_part_of_the_first_symbols() {
    // tokenizers 0.23.3.
    let mut options = chars();
    options.continuing_prefix = Some("##".into());
    options.end_of_word = Some(EndOfWord::Suffix("</w>".into()));
    let tokens = ["h", "##u", "##g", "##g</w>", "hu", "hug</w>", "g</w>", "hug"];
    let merges = [("h", "##u"), ("hu", "##g</w>"), ("hu", "##g")];
    let model = listed(&tokens, &merges, options);
    check(&model, "hug", "hug</w>");
    check(&model, "hugg", "hug|##g</w>");
    check(&model, "g", "g</w>");
    check(&model, "gug", "##u|##g</w>");
    let decoded = |piece: &str| {
        let ids: Vec<TokenId> = encode(&model, piece).iter().map(|token| token.id).collect();
        model.decode(&ids).unwrap()
    };
    assert_eq!(decoded("hugg"), b"hugg");
    assert_eq!(model.unreachable_tokens(), []);
}

#[test]
fn low_lower_newest() {
    // Sennrich et al. 2016, listing 1, with these counts.
    let mut options = chars();
    options.end_of_word = Some(EndOfWord::Symbol("</w>".into()));
    let tokens = [
        "</w>",
        "d",
        "e",
        "i",
        "l",
        "n",
        "o",
        "r",
        "s",
        "t",
        "w",
        "es",
        "est",
        "est</w>",
        "lo",
        "low",
        "ne",
        "new",
        "newest</w>",
        "low</w>",
    ];
    let merges = [
        ("e", "s"),
        ("es", "t"),
        ("est", "</w>"),
        ("l", "o"),
        ("lo", "w"),
        ("n", "e"),
        ("ne", "w"),
        ("new", "est</w>"),
        ("low", "</w>"),
    ];
    let model = listed(&tokens, &merges, options);
    check(&model, "lowest", "low|est</w>");
    check(&model, "newer", "new|e|r|</w>");
    assert_eq!(lens(&model, "newer"), [3, 1, 1, 0]);
    let trace = model.trace(b"lowest");
    let merges: Vec<(u32, usize)> = trace.merges.iter().map(|m| (m.rank, m.position)).collect();
    assert_eq!(merges, [(0, 3), (1, 3), (2, 3), (3, 0), (4, 0)]);
    assert_eq!(trace.initial.len(), 7);
    assert_eq!(trace.tokens, encode(&model, "lowest"));
}

#[test]
fn the_order_of_merges_decides() {
    let tokens = ["乌", "鲁", "木", "齐", "乌鲁", "鲁木"];
    let model = listed(&tokens, &[("乌", "鲁"), ("鲁", "木")], chars());
    check(&model, "乌鲁木齐", "乌鲁|木|齐");
    let model = listed(&tokens, &[("鲁", "木"), ("乌", "鲁")], chars());
    check(&model, "乌鲁木齐", "乌|鲁木|齐");
}

#[test]
fn appended_merges_can_make_an_unreachable_token() {
    let tokens = ["乌", "鲁", "木", "齐", "乌鲁", "木齐", "乌鲁木", "乌鲁木齐"];
    let merges = [("乌", "鲁"), ("木", "齐"), ("乌鲁", "木"), ("乌鲁木", "齐")];
    let model = listed(&tokens, &merges, chars());
    check(&model, "乌鲁木齐", "乌鲁|木齐");
    check(&model, "乌鲁木", "乌鲁木");
    let unreachable = model.unreachable_tokens();
    assert_eq!(unreachable.len(), 1);
    assert_eq!(unreachable[0].token, TokenId(7));
    assert_eq!(unreachable[0].encoding, [TokenId(4), TokenId(5)]);
}

/// A model of scores from `(token, kind, score)`; token 0 is the unknown token.
fn scored(tokens: &[(&str, TokenKind, f32)], options: BpeOptions) -> Bpe {
    let mut builder = Vocab::builder();
    builder.push(b"<unk>", TokenKind::Unknown).unwrap();
    let mut scores = vec![0.0];
    for &(token, kind, score) in tokens {
        builder.push(token.as_bytes(), kind).unwrap();
        scores.push(score);
    }
    Bpe::from_scores(builder.build(), scores, options).unwrap()
}

fn sentencepiece() -> BpeOptions {
    let mut options = chars();
    options.unk = Some(TokenId(0));
    options.fuse_unk = true;
    options
}

#[test]
fn scores_merge_best_first_then_leftmost() {
    use TokenKind::Normal as N;
    let letters = [("a", N, -9.0), ("b", N, -9.0), ("c", N, -9.0)];
    let with = |more: &[(&'static str, TokenKind, f32)]| {
        scored(&[&letters[..], more].concat(), sentencepiece())
    };
    check(&with(&[("ab", N, -2.0), ("bc", N, -1.0)]), "abc", "a|bc");
    check(&with(&[("ab", N, -1.0), ("bc", N, -1.0)]), "abc", "ab|c");
    check(&with(&[("bc", N, -1.0), ("ab", N, -1.0)]), "abc", "ab|c");
}

#[test]
fn unknown_characters_merge_by_their_text_before_they_are_unknown() {
    use TokenKind::Normal as N;
    // "b" is no piece, but "ab" is.
    let model = scored(&[("a", N, -2.0), ("ab", N, -1.0)], sentencepiece());
    check(&model, "abbxa", "ab|<unk>|a");
    assert_eq!(lens(&model, "abbxa"), [2, 2, 1]);
}

#[test]
fn user_defined_symbols_are_frozen_longest_first() {
    use TokenKind::{Normal as N, UserDefined as U};
    let tokens = [
        ("a", N, -5.0),
        ("b", N, -5.0),
        ("c", N, -5.0),
        ("ab", N, -1.0),
        ("bc", U, 0.0),
        ("bca", U, 0.0),
        ("abc", N, -2.0),
    ];
    let model = scored(&tokens, sentencepiece());
    check(&model, "abc", "a|bc");
    check(&model, "abcab", "a|bca|b");
    check(&model, "abab", "ab|ab");
}

#[test]
fn control_pieces_never_come_from_text() {
    use TokenKind::{Control as C, Normal as N};
    let tokens = [("<", N, -3.0), ("s", N, -3.0), (">", N, -3.0), ("<s>", C, 0.0), ("<s", N, -1.0)];
    check(&scored(&tokens, sentencepiece()), "<s>", "<s|>");
}

#[test]
fn unused_pieces_split_again_down_to_the_last() {
    use TokenKind::{Normal as N, Unused as X};
    // sentencepiece 0.2.3: "aaaa" and "aa" are unused.
    let tokens = [("a", N, -9.0), ("b", N, -9.0), ("aa", X, -1.0), ("aaaa", X, -2.0)];
    check(&scored(&tokens, sentencepiece()), "aaaaab", "a|a|a|a|a|b");
    // An unused single character is unknown, but takes part in merges.
    let tokens = [("a", N, -9.0), ("b", X, -9.0), ("ab", N, -1.0)];
    check(&scored(&tokens, sentencepiece()), "abbba", "ab|<unk>|a");
    // A deep chain: each piece is the one before and one more letter.
    let chain: Vec<String> = (1..=400).map(|n| "a".repeat(n)).collect();
    let tokens: Vec<(&str, TokenKind, f32)> = chain
        .iter()
        .enumerate()
        .map(|(i, s)| (s.as_str(), if i == 0 { N } else { X }, -(i as f32)))
        .collect();
    let mut out = Vec::new();
    scored(&tokens, sentencepiece()).session().encode_piece(chain[399].as_bytes(), &mut out);
    assert_eq!(out, vec![Token::new(TokenId(1), 1); 400]);
}

#[test]
fn ignore_merges_makes_no_control_token_of_text() {
    let mut builder = Vocab::builder();
    for (token, kind) in
        [("<", TokenKind::Normal), ("s", TokenKind::Normal), ("<s", TokenKind::Control)]
    {
        builder.push(token.as_bytes(), kind).unwrap();
    }
    let mut options = chars();
    options.ignore_merges = true;
    let model = Bpe::from_merges(builder.build(), Vec::new(), options).unwrap();
    check(&model, "<s", "<|s");
}

/// huggingface/tokenizers#1668, #1109; sentencepiece#426: a vocabulary cannot be pruned. What a token
/// needs stays with it, the token still comes out, and old ids are told.
#[test]
fn a_pruned_vocabulary_keeps_what_its_tokens_need() {
    let tokens = ["h", "e", "l", "o", "lo", "he", "ll", "hell", "hello"];
    let merges = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("l", "o")];
    let model = listed(&tokens, &merges, chars());
    let hello = find(model.vocab(), "hello");
    let subset = model.subset([hello]);
    let kept: Vec<&[u8]> = subset.model.vocab().iter().map(|(_, bytes, _)| bytes).collect();
    assert_eq!(kept, [&b"h"[..], b"e", b"l", b"o", b"he", b"ll", b"hell", b"hello"]);
    assert_eq!(subset.old_ids, [0, 1, 2, 3, 5, 6, 7, 8].map(TokenId));
    assert_eq!(subset.new_id(hello), Some(TokenId(7)));
    assert_eq!(subset.new_id(find(model.vocab(), "lo")), None);
    check(&subset.model, "hello", "hello");
    check(&model, "helo", "he|lo");
    check(&subset.model, "helo", "he|l|o");
    // Nothing is kept of it: the letters are.
    assert_eq!(model.subset([]).old_ids, [0, 1, 2, 3].map(TokenId));
    assert_eq!(model.subset([TokenId(u32::MAX)]).old_ids.len(), 4);
}

#[test]
fn dropout_runs_from_the_plain_encoding_to_no_merge() {
    for model in byte_models() {
        let mut session = model.session();
        let mut plain = Vec::new();
        let piece = b"aaaaaa lo th aaaa";
        session.encode_piece(piece, &mut plain);
        for (p, expected) in
            [(0.0, plain.len()), (-3.0, plain.len()), (f64::NAN, plain.len()), (1.0, 17), (7.0, 17)]
        {
            let mut tokens = Vec::new();
            session.encode_piece_dropout(piece, &mut Rng::new(1), p, &mut tokens);
            assert_eq!(tokens.len(), expected, "p = {p}");
        }
        let mut draw = |seed| {
            let mut tokens = Vec::new();
            session.encode_piece_dropout(piece, &mut Rng::new(seed), 0.5, &mut tokens);
            tokens
        };
        assert_eq!(draw(5), draw(5), "a seed is a result");
        assert!((0..50).any(|seed| draw(seed) != plain));
        assert!((0..50).any(|seed| draw(seed).len() < 17));
    }
}

#[test]
fn dropout_drops_a_merge_as_often_as_it_says() {
    // One possible merge: the two letters stay apart with probability p.
    let model = listed(&["a", "b", "ab"], &[("a", "b")], chars());
    let mut session = model.session();
    let mut rng = Rng::new(11);
    let apart = (0..20_000)
        .filter(|_| {
            let mut tokens = Vec::new();
            session.encode_piece_dropout(b"ab", &mut rng, 0.3, &mut tokens);
            tokens.len() == 2
        })
        .count();
    assert!((5_700..6_300).contains(&apart), "{apart}");
}

#[test]
fn one_enormous_piece_does_not_stall() {
    for model in byte_models() {
        for piece in [vec![b'a'; 300_000], b"th lo".repeat(60_000), vec![0xFF; 300_001]] {
            let mut tokens = Vec::new();
            model.session().encode_piece(&piece, &mut tokens);
            assert_eq!(tokens.iter().map(|t| t.len as usize).sum::<usize>(), piece.len());
        }
    }
}

#[test]
fn merges_behind_ranks_are_recovered() {
    let [listed, ranked] = byte_models();
    let merges = ranked.recover_merges();
    assert_eq!(merges, listed.recover_merges());
    // "abc" ranks below its parts' merges, so lower ranks leave three parts of it.
    let tokens = ["a", "b", "c", "abc", "bc", "ab", "cab"];
    let model = Bpe::from_ranks(vocab(&tokens), chars()).unwrap();
    let merges: Vec<(u32, u32)> = model.recover_merges().iter().map(|(l, r)| (l.0, r.0)).collect();
    assert_eq!(merges, [(1, 2), (0, 1), (2, 5)]);
}

#[test]
fn faults_name_the_merge_and_the_limit() {
    let vocab = vocab(&["a", "b", "ab"]);
    let from = |merges: &[(u32, u32)]| {
        let merges = merges.iter().map(|&(l, r)| (TokenId(l), TokenId(r))).collect();
        Bpe::from_merges(vocab.clone(), merges, BpeOptions::default()).unwrap_err()
    };
    let error = from(&[(0, 1), (70_000, 1)]);
    assert_eq!(error.to_string(), "merge 1 names token 70000, but the vocabulary holds 3");
    assert_eq!(error.merge(), Some(1));
    assert_eq!(
        from(&[(1, 0)]).to_string(),
        "merge 0 joins tokens 1 and 0, but the vocabulary does not hold what they make"
    );
    let mut options = BpeOptions::default();
    options.unk = Some(TokenId(3));
    assert_eq!(
        Bpe::from_ranks(vocab.clone(), options).unwrap_err().to_string(),
        "the unknown token is 3, but the vocabulary holds 3"
    );
    let scores = |scores: &[f32]| {
        Bpe::from_scores(vocab.clone(), scores.to_vec(), chars()).unwrap_err().to_string()
    };
    assert_eq!(scores(&[0.0]), "1 scores were given, but the vocabulary holds 3");
    assert_eq!(scores(&[0.0, f32::NAN, 0.0]), "the score of token 1 is not a number");
    let mut options = BpeOptions::default();
    options.continuing_prefix = Some("##".into());
    assert_eq!(
        Bpe::from_ranks(vocab.clone(), options).unwrap_err().to_string(),
        "continuing_prefix needs a list of merges, but ranks or scores are given"
    );
    let mut options = BpeOptions::default();
    options.end_of_word = Some(EndOfWord::Symbol("</w>".into()));
    assert!(Bpe::from_merges(vocab.clone(), Vec::new(), options).is_err());
    let mut options = BpeOptions::default();
    options.end_of_word = Some(EndOfWord::Suffix(String::new()));
    assert!(Bpe::from_merges(vocab, Vec::new(), options).is_err());
}

#[test]
fn an_empty_vocabulary_encodes_everything_to_nothing() {
    let empty = || Vocab::builder().build();
    let models = [
        Bpe::from_merges(empty(), Vec::new(), chars()).unwrap(),
        Bpe::from_ranks(empty(), BpeOptions::default()).unwrap(),
        Bpe::from_scores(empty(), Vec::new(), chars()).unwrap(),
    ];
    for model in models {
        check(&model, "abé", "");
    }
}

/// Tokens over a tiny alphabet with kinds and scores, and options.
fn any_model() -> impl Strategy<Value = Bpe> {
    let kind = prop_oneof![
        8 => Just(TokenKind::Normal),
        2 => Just(TokenKind::Unused),
        1 => Just(TokenKind::UserDefined),
        1 => Just(TokenKind::Control),
        1 => Just(TokenKind::Byte),
    ];
    let token = ("[abcé]{1,5}", kind, 0u8..12);
    let flags = (0..3usize, any::<[bool; 5]>());
    (proptest::collection::vec(token, 0..24), flags).prop_map(|(tokens, (rules, flags))| {
        let mut builder = Vocab::builder();
        let mut scores = Vec::new();
        let [unk, fuse_unk, byte_fallback, ignore_merges, bytes] = flags;
        let unk = unk.then(|| {
            scores.push(0.0);
            builder.push(b"<unk>", TokenKind::Unknown).unwrap()
        });
        for (token, kind, score) in &tokens {
            let token =
                if *kind == TokenKind::Byte { &token.as_bytes()[..1] } else { token.as_bytes() };
            // Repeats are refused, which is as good as not drawn.
            if builder.push(token, *kind).is_ok() {
                scores.push(-f32::from(*score));
            }
        }
        let mut options = BpeOptions::default();
        options.alphabet = if bytes { Alphabet::Byte } else { Alphabet::Char };
        (options.unk, options.fuse_unk) = (unk, fuse_unk);
        (options.byte_fallback, options.ignore_merges) = (byte_fallback, ignore_merges);
        let vocab = builder.build();
        match rules {
            0 => Bpe::from_scores(vocab, scores, options).unwrap(),
            1 => Bpe::from_ranks(vocab, options).unwrap(),
            _ => {
                let findable: Vec<TokenId> = vocab
                    .iter()
                    .filter(|&(_, _, kind)| kind != TokenKind::Unused)
                    .map(|(id, _, _)| id)
                    .collect();
                let mut merges = Vec::new();
                for &left in &findable {
                    for &right in &findable {
                        let text =
                            [vocab.bytes(left).unwrap(), vocab.bytes(right).unwrap()].concat();
                        if vocab.get(&text).is_some() {
                            merges.push((left, right));
                        }
                    }
                }
                // Any order will do, as long as it is not that of the ids.
                merges.sort_by_key(|(left, right)| (left.0 * 7 + right.0 * 5) % 11);
                Bpe::from_merges(vocab, merges, options).unwrap()
            }
        }
    })
}

/// Models of all 256 bytes, whose merges for short pieces are renumbered by rank: tokens come before
/// or behind the bytes, in any order, and lists of merges in another.
fn any_byte_model() -> impl Strategy<Value = Bpe> {
    let tokens = proptest::collection::vec("[ab é中]{1,3}", 0..40);
    (tokens, any::<[bool; 2]>(), 0..40usize, 1..97u32).prop_map(
        |(tokens, [ranks, ignore_merges], before, shuffle)| {
            let mut builder = Vocab::builder();
            let mut push = |token: &[u8]| {
                // Repeats are refused, which is as good as not drawn.
                let _ = builder.push(token, TokenKind::Normal);
            };
            let (first, last) = tokens.split_at(before.min(tokens.len()));
            // Parts of characters are tokens, too.
            let cut = |token: &String| token.as_bytes()[usize::from(token.len() > 4)..].to_vec();
            first.iter().map(cut).for_each(|token| push(&token));
            (0..=255u8).for_each(|byte| push(&[byte]));
            last.iter().map(cut).for_each(|token| push(&token));
            let vocab = builder.build();
            let mut options = BpeOptions::default();
            options.ignore_merges = ignore_merges;
            if ranks {
                return Bpe::from_ranks(vocab, options).unwrap();
            }
            let mut merges = Vec::new();
            for (_, bytes, _) in vocab.iter() {
                for at in 1..bytes.len() {
                    let (left, right) = bytes.split_at(at);
                    if let (Some(left), Some(right)) = (vocab.get(left), vocab.get(right)) {
                        merges.push((left, right));
                    }
                }
            }
            merges.sort_by_key(|(left, right)| (left.0 * 7 + right.0 * 5) * shuffle % 101);
            Bpe::from_merges(vocab, merges, options).unwrap()
        },
    )
}

/// The lengths need not add up where characters are dropped or were given wrong lengths on
/// purpose, so the laws of `testkit` do not apply here.
fn fast_is_naive(model: &Bpe, piece: &[u8]) {
    let naive = NaiveEncoder::new(model).encode_piece(piece);
    let mut session = model.session();
    let mut tokens = Vec::new();
    session.encode_piece(piece, &mut tokens);
    assert_eq!(tokens, naive, "{piece:?}");
    let trace = model.trace(piece);
    assert_eq!(trace.tokens, naive);
    if let Some(id) = session.whole_piece(piece) {
        assert_eq!(naive.iter().map(|token| token.id).collect::<Vec<_>>(), [id]);
    }
    let mut dropped = Vec::new();
    session.encode_piece_dropout(piece, &mut Rng::new(3), 0.0, &mut dropped);
    assert_eq!(dropped, naive);
    // A session that forgets at once, with neighbours of the piece between.
    let mut session = model.session_of_size(Size::TINY);
    let half = piece.len() / 2;
    let spans = [(0, piece.len()), (0, half), (half, piece.len()), (0, piece.len())];
    let spans = spans.map(|(start, end)| Span::new(start, end));
    let (mut tokens, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        session.encode_pieces(piece, &spans, &mut tokens);
        for span in spans {
            expected.extend(NaiveEncoder::new(model).encode_piece(&piece[span.range()]));
        }
    }
    assert_eq!(tokens, expected, "{:?}", String::from_utf8_lossy(piece));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn fast_equals_naive_on_any_model(
        model in any_model(),
        pieces in proptest::collection::vec("[abcéz]{0,16}", 1..6),
        long in "[abé]{65,140}",
        bytes in strategies::any_bytes(),
    ) {
        for piece in &pieces {
            fast_is_naive(&model, piece.as_bytes());
        }
        fast_is_naive(&model, long.as_bytes());
        fast_is_naive(&model, &bytes);
    }

    #[test]
    fn fast_equals_naive_on_any_bytes(
        model in any_byte_model(),
        pieces in proptest::collection::vec("[ab é中]{0,16}", 1..6),
        long in "[ab é中]{10,50}",
        bytes in strategies::any_bytes(),
    ) {
        for piece in &pieces {
            fast_is_naive(&model, piece.as_bytes());
        }
        fast_is_naive(&model, long.as_bytes());
        fast_is_naive(&model, &bytes);
    }

    #[test]
    fn a_subset_encodes_alike_what_it_keeps(
        model in prop_oneof![any_model(), any_byte_model()],
        pieces in proptest::collection::vec("[abcéz 中]{0,12}", 1..8),
        keep in proptest::collection::vec(0..60u32, 0..8),
    ) {
        let mut keep: Vec<TokenId> = keep.into_iter().map(TokenId).collect();
        let tokens = |model: &Bpe, piece: &str| {
            let mut tokens = Vec::new();
            model.session().encode_piece(piece.as_bytes(), &mut tokens);
            tokens
        };
        // What the first piece needs stays too, so that one is sure to.
        keep.extend(tokens(&model, &pieces[0]).iter().map(|token| token.id));
        let subset = model.subset(keep.iter().copied());
        prop_assert!(keep.iter().all(|&id| id.index() >= model.vocab().len()
            || subset.new_id(id).is_some()));
        for piece in &pieces {
            let old = tokens(&model, piece);
            let new = tokens(&subset.model, piece);
            if old.iter().all(|token| subset.new_id(token.id).is_some()) {
                let new: Vec<Token> = new
                    .iter()
                    .map(|token| Token { id: subset.old_ids[token.id.index()], len: token.len })
                    .collect();
                prop_assert_eq!(&new, &old, "{:?}", piece);
            }
        }
    }

    #[test]
    fn known_merges_build_the_model_that_ranks_build(
        model in any_byte_model(),
        piece in "[ab é中]{0,40}",
    ) {
        let Rules::Ranks = model.rules() else { return Ok(()) };
        // The last merge of each token that merging makes.
        let merges: Vec<_> = model
            .vocab()
            .iter()
            .filter_map(|(id, bytes, _)| {
                let last = *model.trace(bytes).merges.last()?;
                (last.product == id).then_some((last.left?, last.right?, id))
            })
            .collect();
        let options = model.options().clone();
        let vocab = model.vocab();
        let mut vocabs = vec![vocab.clone()];
        if vocab.kinds().iter().all(|&kind| kind == TokenKind::Normal) {
            // One that has no index yet.
            let tokens: Vec<&[u8]> = vocab.iter().map(|(_, bytes, _)| bytes).collect();
            let ends = tokens.iter().scan(0, |end, token| {
                *end += token.len() as u32;
                Some(*end)
            });
            let bounds: Vec<u32> = std::iter::once(0).chain(ends).collect();
            vocabs.push(Vocab::from_distinct(tokens.concat(), bounds).unwrap());
        }
        for vocab in vocabs {
            let merges = merges.iter().copied();
            let quick = Bpe::from_ranks_and_merges(vocab, merges, options.clone()).unwrap();
            prop_assert_eq!(encode(&quick, &piece), encode(&model, &piece));
            let mut session = quick.session();
            let mut tokens = Vec::new();
            session.merge_piece(piece.as_bytes(), &mut tokens);
            if let Some(id) = session.whole_piece(piece.as_bytes()) {
                let whole = [Token::new(id, piece.len())];
                prop_assert_eq!(encode(&model, &piece), &whole[..]);
            } else {
                prop_assert_eq!(encode(&model, &piece), tokens);
            }
        }
        let quick = Bpe::from_ranks_and_merges(vocab.clone(), merges.into_iter(), options).unwrap();
        prop_assert_eq!(quick.trace(piece.as_bytes()), model.trace(piece.as_bytes()));
        prop_assert_eq!(quick.unreachable_tokens(), model.unreachable_tokens());
        prop_assert_eq!(quick.recover_merges(), model.recover_merges());
    }

    #[test]
    fn unreachable_tokens_are_those_that_merging_does_not_make(model in any_model()) {
        for unreachable in model.unreachable_tokens() {
            prop_assert_ne!(&unreachable.encoding, &vec![unreachable.token]);
        }
    }
}
