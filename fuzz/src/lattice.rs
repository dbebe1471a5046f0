//! Viterbi over random vocabularies and scores against the naive twin, and a unit's certified path
//! against the path behind any sum below its limit.

use tokenizer_core::{Encode, Token, TokenKind, Vocab};
use unigram::{Compat, Unigram, UnigramOptions, UnitSession, naive};

use super::{Input, joined};

/// One input: the mode, tokens with their scores, then pieces.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut options = UnigramOptions::default();
    options.compat =
        [Compat::SentencePiece, Compat::SentencePiece021, Compat::HuggingFace][input.below(3)];
    options.fuse_unk = options.compat == Compat::HuggingFace || input.below(4) > 0;
    options.byte_fallback = input.below(3) == 0;
    // Scores that are equal, nearly equal, or far apart.
    let step = [0.0, 1e-6, 0.1, 3.0][input.below(4)];
    let mut vocab = Vocab::builder();
    vocab.push(b"<unk>", TokenKind::Unknown).expect("the first token");
    let mut scores = vec![0.0];
    for _ in 0..input.below(80) {
        let token = input.word(6);
        if vocab.get(token.as_bytes()).is_none() {
            vocab.push(token.as_bytes(), TokenKind::Normal).expect("each token once");
            scores.push(-2.0 * token.len() as f64 - step * input.below(256) as f64);
        }
    }
    if options.byte_fallback {
        for byte in 0..=255 {
            vocab.push(&[byte], TokenKind::Byte).expect("each byte once");
            scores.push(-20.0);
        }
    }
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    while !input.is_empty() && pieces.len() < 30 {
        let piece = match input.below(5) {
            0 => input.bytes(9).to_vec(),
            _ => input.word(40).into_bytes(),
        };
        pieces.push(piece);
    }
    let model = Unigram::new(vocab.build(), scores, options).expect("scores are finite");
    let expected: Vec<Token> = pieces.iter().flat_map(|p| naive::encode(&model, p)).collect();
    let (text, spans) = joined(&pieces);
    let mut session = model.session();
    for _ in 0..2 {
        let mut found = Vec::new();
        session.encode_pieces(&text, &spans, &mut found);
        assert_eq!(found, expected);
    }
    assert_eq!(session.count_pieces(&text, &spans), expected.len());
    let Some(mut units) = UnitSession::new(&model) else { return };
    for piece in &pieces {
        let mut steps = Vec::new();
        let limit = units.certify(piece, &mut steps);
        for sum in [0.0, -limit / 3.0, -limit * 0.999] {
            if steps.is_empty() || sum.abs() >= limit {
                continue;
            }
            let mut tokens = Vec::new();
            let behind = units.encode(piece, sum, &mut tokens);
            assert!(tokens.iter().map(|t| t.id).eq(steps.iter().map(|step| step.id)), "{sum}");
            assert_eq!(units.replay(sum, &steps).to_bits(), behind.to_bits(), "{sum}");
        }
    }
}
