//! The table of pieces, of every size and with words or without, against the algorithm behind it.

use piece_table::{Backend, Located, PieceTable, Size, Words};
use tokenizer_core::{Offset, Token, TokenId};

use super::{Input, joined};

/// One input: the sizes, then pieces.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut size = Size::TINY;
    size.short = 2 << input.below(6);
    size.long = 2 << input.below(4);
    size.ring = 64 << input.below(6);
    let n_words = input.below(20);
    let mut pieces: Vec<&[u8]> = Vec::new();
    while !input.is_empty() {
        let len = match input.byte() {
            byte @ 0..200 => usize::from(byte % 18),
            byte => usize::from(byte),
        };
        // An earlier one again, now and then.
        match input.byte() {
            byte @ 0..100 if !pieces.is_empty() => {
                pieces.push(pieces[usize::from(byte) % pieces.len()]);
            }
            _ => pieces.push(input.bytes(len)),
        }
    }
    let (text, spans) = joined(&pieces);
    let mut words = Words::builder(n_words);
    for piece in pieces.iter().take(n_words) {
        let mut tokens = Vec::new();
        algorithm(piece, &mut tokens);
        words.add(piece, &tokens);
    }
    let words = words.build();
    let (mut expected, mut at) = (Vec::new(), Vec::new());
    for (piece, span) in pieces.iter().zip(&spans) {
        let first = expected.len();
        algorithm(piece, &mut expected);
        let mut start = span.start as u32;
        for token in &expected[first..] {
            at.push(Offset { start, end: start + token.len });
            start += token.len;
        }
    }
    let expected_ids: Vec<TokenId> = expected.iter().map(|token| token.id).collect();
    let backends = Backend::ALL.into_iter().filter(|backend| backend.is_available());
    for (words, backend) in backends.flat_map(|b| [(None, b), (Some(&words), b)]) {
        let table = PieceTable::with_size(words, size);
        let mut table = table.with_backend(backend).expect("an available one");
        for _ in 0..2 {
            let mut tokens: Vec<Token> = Vec::new();
            table.encode(&text, &spans, &mut algorithm, &mut tokens);
            assert_eq!(tokens, expected);
            let mut ids: Vec<TokenId> = Vec::new();
            table.encode(&text, &spans, &mut algorithm, &mut ids);
            assert_eq!(ids, expected_ids);
            let (mut ids, mut offsets) = (Vec::new(), Vec::new());
            table.encode(&text, &spans, &mut algorithm, &mut Located::new(&mut ids, &mut offsets));
            assert_eq!((ids, offsets), (expected_ids.clone(), at.clone()));
            let mut count = 0;
            table.encode(&text, &spans, &mut algorithm, &mut count);
            assert_eq!(count, expected.len());
        }
    }
}

/// Tokens of every kind: none, many, long ones, ids that tables cannot hold.
fn algorithm(piece: &[u8], tokens: &mut Vec<Token>) {
    let id = piece.iter().fold(17u32, |id, &byte| id.wrapping_mul(31).wrapping_add(byte.into()));
    let step = match piece.first() {
        None | Some(0) => return,
        Some(1..20) => return tokens.push(Token::new(TokenId(id), piece.len())),
        Some(byte) => 1 + usize::from(byte % 7),
    };
    let parts = piece.chunks(step).zip(0..);
    tokens.extend(parts.map(|(part, i)| Token::new(TokenId((id + i) & 0xFF_FFFF), part.len())));
}
