//! WordPiece's matcher of random vocabularies against the naive twin.

use tokenizer_core::{Encode, Token, Vocab};
use wordpiece::{Options, Unknown, WordPiece, naive};

use super::{Input, joined};

/// One input: tokens, then words.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut options = Options::default();
    options.max_chars = [3, 100, usize::MAX][input.below(3)];
    options.unknown = [Unknown::Word, Unknown::Rest, Unknown::Character][input.below(3)];
    let mut tokens = vec!["[UNK]".to_owned()];
    for _ in 0..input.below(80) {
        let prefix = ["", "##"][input.below(2)];
        let token = format!("{prefix}{}", input.word(5));
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    let mut words: Vec<Vec<u8>> = Vec::new();
    while !input.is_empty() && words.len() < 40 {
        let word = match input.below(4) {
            0 => input.bytes(9).to_vec(),
            _ => input.word(30).into_bytes(),
        };
        words.push(word);
    }
    let vocab = Vocab::from_tokens(&tokens).expect("each token once");
    let model = WordPiece::new(vocab, options).expect("the unknown token is there");
    let expected: Vec<Token> = words.iter().flat_map(|word| naive::encode(&model, word)).collect();
    let (text, spans) = joined(&words);
    let mut session = model.session();
    let mut found = Vec::new();
    session.encode_pieces(&text, &spans, &mut found);
    assert_eq!(found, expected);
    let mut ids = Vec::new();
    session.encode_ids_into(&text, &spans, &mut ids);
    assert!(ids.into_iter().eq(expected.iter().map(|token| token.id)));
    assert_eq!(session.count_pieces(&text, &spans), expected.len());
}
