//! Byte-pair encoders of random merges, on short pieces and on long ones, against the naive twin.

use bpe::naive::NaiveEncoder;
use bpe::{Bpe, BpeOptions, Size};
use tokenizer_core::{Encode, Token, TokenId, TokenKind, Vocab};

use super::{Input, joined};

/// One input: merges, then pieces.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let mut merges = Vec::new();
    let letters: Vec<u32> = b"aabbcd \xC3\xA9".iter().map(|&byte| byte.into()).collect();
    for _ in 0..input.below(60) {
        let mut part = || {
            let made = tokens.len() - 256;
            match input.below(2) {
                0 if made > 0 => 256 + input.below(made) as u32,
                _ => letters[input.below(letters.len())],
            }
        };
        let (left, right) = (part(), part());
        let token = [&tokens[left as usize][..], &tokens[right as usize]].concat();
        if token.len() < 40 && !tokens.contains(&token) {
            tokens.push(token);
            merges.push((TokenId(left), TokenId(right)));
        }
    }
    let is_long = input.below(16) == 0;
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    while !input.is_empty() && pieces.len() < 40 {
        let piece = match input.below(4) {
            0 => input.bytes(12).to_vec(),
            _ => input.word(40).into_bytes(),
        };
        pieces.push(piece);
    }
    if is_long && let Some(piece) = pieces.first_mut() {
        // Longer than the windows in which long pieces are merged.
        *piece = piece.repeat(5000 / piece.len().max(1) + 1);
        pieces.truncate(1);
    }
    let vocab = Vocab::from_tokens(&tokens).expect("each token once");
    let options = BpeOptions::default();
    let listed = Bpe::from_merges(vocab.clone(), merges, options.clone()).expect("merges fit");
    check(&listed, &pieces);
    check(&Bpe::from_ranks(vocab, options).expect("all bytes are there"), &pieces);
    by_scores(&tokens, &pieces);
}

/// The same tokens as SentencePiece has them: characters, and the earlier token the better.
fn by_scores(tokens: &[Vec<u8>], pieces: &[Vec<u8>]) {
    let mut vocab = Vocab::builder();
    vocab.push(b"<unk>", TokenKind::Unknown).expect("the first token");
    for token in tokens.iter().filter(|token| str::from_utf8(token).is_ok()) {
        vocab.push(token, TokenKind::Normal).expect("each token once");
    }
    let vocab = vocab.build();
    let mut options = BpeOptions::default();
    options.alphabet = bpe::Alphabet::Char;
    options.unk = Some(TokenId(0));
    let scores = (0..vocab.len()).map(|id| -((id / 3) as f32)).collect();
    let model = Bpe::from_scores(vocab, scores, options).expect("a score for each token");
    let texts: Vec<_> = pieces.iter().map(|piece| String::from_utf8_lossy(piece)).collect();
    let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    check(&model, &texts);
}

fn check(model: &Bpe, pieces: &[Vec<u8>]) {
    let naive = NaiveEncoder::new(model);
    let expected: Vec<Token> = pieces.iter().flat_map(|piece| naive.encode_piece(piece)).collect();
    let (text, spans) = joined(pieces);
    // A session that remembers hardly anything soon has what encodes pieces without merging.
    for size in [Size::default(), Size::TINY] {
        let mut session = model.session_of_size(size);
        for _ in 0..2 {
            let mut tokens = Vec::new();
            session.encode_pieces(&text, &spans, &mut tokens);
            assert_eq!(tokens, expected, "a batch");
        }
        let mut tokens = Vec::new();
        for piece in pieces {
            session.encode_piece(piece, &mut tokens);
        }
        assert_eq!(tokens, expected, "one by one");
        assert_eq!(session.count_pieces(&text, &spans), expected.len(), "the count");
    }
}
