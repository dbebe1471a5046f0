//! Whatever a table remembers or forgets, its answers are the algorithm's.

use piece_table::{Apart, Backend, Located, PieceTable, Size, Words};
use proptest::prelude::*;
use tokenizer_core::{Offset, Rng, Span, Token, TokenId};

/// An algorithm with tokens of every kind: none, many, long ones, ids that tables cannot hold. A
/// piece's first byte says which.
fn algorithm(piece: &[u8], tokens: &mut Vec<Token>) {
    let id = piece.iter().fold(17u32, |id, &b| id.wrapping_mul(31).wrapping_add(b.into()));
    let step = match piece.first() {
        None | Some(0) => return,
        Some(1) => return tokens.push(Token::new(TokenId(id), piece.len())),
        Some(2) => return tokens.push(Token::new(TokenId(id & 0xFFFF), piece.len() + 1)),
        Some(3) => piece.len().div_ceil(4),
        Some(4) => 17,
        Some(_) => 1 + piece.len() % 5,
    };
    let parts = piece.chunks(step).zip(0..);
    tokens.extend(parts.map(|(part, i)| Token::new(TokenId((id + i) & 0xFF_FFFF), part.len())));
}

fn check(table: &mut PieceTable<'_>, text: &[u8], spans: &[Span]) {
    let mut expected = Vec::new();
    for span in spans {
        algorithm(&text[span.range()], &mut expected);
    }
    // Tokens, ids and the count, in turns: what one has put in, the others find.
    let mut tokens: Vec<Token> = vec![Token::new(TokenId(1), 1)];
    table.encode(text, spans, &mut algorithm, &mut tokens);
    assert_eq!(tokens[1..], expected, "a sink is appended to");
    let mut ids: Vec<TokenId> = Vec::new();
    table.encode(text, spans, &mut algorithm, &mut ids);
    assert!(ids.iter().eq(expected.iter().map(|token| &token.id)));
    let (mut apart, mut ends) = (Vec::new(), Vec::new());
    let mut sink = Apart { tokens: &mut apart, ends: &mut ends };
    table.encode(text, spans, &mut algorithm, &mut sink);
    let mut start = 0;
    for (span, end) in spans.iter().zip(&ends) {
        let mut tokens = Vec::new();
        algorithm(&text[span.range()], &mut tokens);
        assert_eq!(apart[start..*end], tokens);
        start = *end;
    }
    assert_eq!(ends.len(), spans.len());
    let (mut ids, mut offsets) = (Vec::new(), Vec::new());
    table.encode(text, spans, &mut algorithm, &mut Located::new(&mut ids, &mut offsets));
    assert!(ids.iter().eq(expected.iter().map(|token| &token.id)));
    assert_eq!(offsets, located(text, spans), "offsets");
    let mut count = 5;
    table.encode(text, spans, &mut algorithm, &mut count);
    assert_eq!(count, expected.len() + 5);
}

/// Where the algorithm's tokens are.
fn located(text: &[u8], spans: &[Span]) -> Vec<Offset> {
    let mut offsets = Vec::new();
    for span in spans {
        let mut tokens = Vec::new();
        algorithm(&text[span.range()], &mut tokens);
        let mut start = span.start as u32;
        for token in tokens {
            offsets.push(Offset { start, end: start + token.len });
            start += token.len;
        }
    }
    offsets
}

/// Words for some of the pieces, most of them what the algorithm says and so never wrong.
fn words(text: &[u8], spans: &[Span]) -> Words {
    let mut words = Words::builder(spans.len() / 4);
    for span in spans.iter().step_by(3) {
        let mut tokens = Vec::new();
        algorithm(&text[span.range()], &mut tokens);
        words.add(&text[span.range()], &tokens);
    }
    words.build()
}

/// Pieces from a few bytes, so that many are equal and many differ in one byte alone.
fn pieces(rng: &mut Rng, count: usize, longest: u64) -> (Vec<u8>, Vec<Span>) {
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let start = text.len();
        let len = match rng.next_u64() % 8 {
            0 => rng.next_u64() % longest,
            1 => 14 + rng.next_u64() % 4,
            2 => 30 + rng.next_u64() % 4,
            _ => rng.next_u64() % 16,
        };
        let alphabet = 2 + rng.next_u64() % 6;
        text.extend((0..len).map(|_| (rng.next_u64() % alphabet) as u8));
        // Spans may leave text between, and the last may end with the text.
        let end = text.len() - (text.len() - start).min(rng.next_u64() as usize % 2);
        spans.push(Span::new(start, end));
    }
    (text, spans)
}

#[test]
fn tables_of_every_size_equal_the_algorithm() {
    let mut rng = Rng::new(4);
    let backends = Backend::ALL.into_iter().filter(|backend| backend.is_available()).cycle();
    for (round, backend) in (0..60).zip(backends) {
        let (text, spans) = pieces(&mut rng, 1500, if round % 4 == 0 { 3000 } else { 80 });
        let words = words(&text, &spans);
        let mut sizes = vec![Size::default(), Size::TINY];
        let mut size = Size::TINY;
        (size.short, size.long, size.ring) = (64, 64, 1024);
        sizes.push(size);
        for archive in [1, 1 << 18] {
            size.archive = archive;
            sizes.push(size);
        }
        for size in sizes {
            for words in [None, Some(&words)] {
                let table = PieceTable::with_size(words, size);
                let mut table = table.with_backend(backend).expect("an available one");
                for _ in 0..2 {
                    check(&mut table, &text, &spans);
                }
                // Smaller, larger, and without a ring.
                let mut other = Size::TINY;
                (other.short, other.long, other.ring) = (16, 4, 0);
                for size in [other, Size::default(), size] {
                    table.set_size(size);
                    check(&mut table, &text, &spans);
                }
            }
        }
    }
}

#[test]
fn growth_keeps_what_was_met() {
    // More pieces than the first tables hold, twice: the second time hardly any is asked for.
    let pieces: Vec<String> = (0..9000).map(|i| format!(" {}", i * 7919)).collect();
    let text = pieces.concat();
    let mut spans = Vec::new();
    let mut at = 0;
    for piece in &pieces {
        spans.push(Span::new(at, at + piece.len()));
        at += piece.len();
    }
    let mut asked = 0;
    let mut miss = |piece: &[u8], tokens: &mut Vec<Token>| {
        asked += 1;
        algorithm(piece, tokens);
    };
    let mut table = PieceTable::new(None);
    let mut count = 0;
    table.encode(text.as_bytes(), &spans, &mut miss, &mut count);
    table.encode(text.as_bytes(), &spans, &mut miss, &mut count);
    assert!((9000..9600).contains(&asked), "{asked}");
}

#[test]
fn an_archive_keeps_what_lines_forget() {
    let pieces: Vec<String> = (0..9000).map(|i| format!(" {}", i * 7919 % 100_003)).collect();
    let text = pieces.concat();
    let mut at = 0;
    let spans: Vec<Span> = pieces
        .iter()
        .map(|piece| {
            at += piece.len();
            Span::new(at - piece.len(), at)
        })
        .collect();
    // Ids that an archive can hold.
    let small = |piece: &[u8], tokens: &mut Vec<Token>| {
        let first = tokens.len();
        algorithm(piece, tokens);
        tokens[first..].iter_mut().for_each(|token| token.id.0 &= (1 << 20) - 1);
    };
    let mut asked = 0;
    let mut miss = |piece: &[u8], tokens: &mut Vec<Token>| {
        asked += 1;
        small(piece, tokens);
    };
    let mut size = Size::TINY;
    (size.short, size.archive) = (64, 1 << 20);
    let mut table = PieceTable::with_size(None, size);
    for _ in 0..3 {
        let mut tokens: Vec<Token> = Vec::new();
        table.encode(text.as_bytes(), &spans, &mut miss, &mut tokens);
        let mut expected = Vec::new();
        spans.iter().for_each(|span| small(&text.as_bytes()[span.range()], &mut expected));
        assert_eq!(tokens, expected);
    }
    // A few that were asked for before there was an archive are asked for again.
    assert!((9000..9200).contains(&asked), "{asked}");
}

#[test]
fn words_are_found_before_the_algorithm_is_asked() {
    let vocab: Vec<String> = (0..20_000).map(|i| format!("w{i}")).collect();
    let mut words = Words::builder(vocab.len());
    for (word, id) in vocab.iter().zip(0..) {
        words.add(word.as_bytes(), &[Token::new(TokenId(id), word.len())]);
    }
    words.add(b"w0", &[Token::new(TokenId(9), 2)]); // The first one stays.
    words.add(b"sixteen bytes...", &[Token::new(TokenId(9), 16)]);
    words.add(b"", &[]);
    let words = words.build();
    assert_eq!(words.len(), vocab.len());
    assert!(words.is_complete());
    let mut asked = 0;
    let mut miss = |_: &[u8], _: &mut Vec<Token>| asked += 1;
    let mut table = PieceTable::new(Some(&words));
    let mut tokens: Vec<Token> = Vec::new();
    for word in &vocab {
        table.encode(word.as_bytes(), &[Span::new(0, word.len())], &mut miss, &mut tokens);
    }
    assert_eq!(asked, 0);
    let found = tokens.iter().map(|token| (&vocab[token.id.index()], token.len as usize));
    assert!(found.into_iter().all(|(word, len)| word.len() == len));
}

#[test]
fn words_that_do_not_fit_leave_them_incomplete() {
    let token = |id| Token::new(TokenId(id), 1);
    for tokens in [vec![token(1); 5], vec![token(1 << 24)]] {
        let mut words = Words::builder(1);
        words.add(b"word", &tokens);
        let words = words.build();
        assert!(words.is_empty() && !words.is_complete());
    }
}

#[test]
#[should_panic(expected = "range end index 5 out of range")]
fn spans_outside_of_the_text_panic() {
    let mut count = 0;
    PieceTable::new(None).encode(b"text", &[Span::new(2, 5)], &mut algorithm, &mut count);
}

proptest! {
    #[test]
    fn short_texts_equal_the_algorithm(
        text in proptest::collection::vec(0u8..6, 0..100),
        cuts in proptest::collection::vec(0usize..100, 0..20),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        let spans: Vec<Span> = cuts.windows(2).map(|pair| Span::new(pair[0], pair[1])).collect();
        check(&mut PieceTable::with_size(None, Size::TINY), &text, &spans);
        check(&mut PieceTable::new(Some(&words(&text, &spans))), &text, &spans);
    }
}
