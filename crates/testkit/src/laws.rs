//! What every model, splitter and normalizer must obey. Each function panics with words that name
//! the broken law and the input.

use tokenizer_core::{
    Alignment, Encode, MAX_BATCH, Model, Normalize, Offset, PieceCounts, Silent, Span, Split,
    Token, TokenId, Train,
};

/// A model on one piece: ids exist, lengths tile the piece, and a reused session equals a fresh
/// one. Returns the tokens.
pub fn encodes_piece(model: &dyn Model, session: &mut dyn Encode, piece: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    session.encode_piece(piece, &mut tokens);
    let covered: u64 = tokens.iter().map(|token| u64::from(token.len)).sum();
    assert_eq!(
        covered,
        piece.len() as u64,
        "lengths must add up to the piece {:?}: {tokens:?}",
        String::from_utf8_lossy(piece)
    );
    for token in &tokens {
        assert!(token.id.index() < model.vocab().len(), "{token:?} is not in the vocabulary");
    }
    let mut fresh = Vec::new();
    model.encoder().encode_piece(piece, &mut fresh);
    assert_eq!(tokens, fresh, "a reused session must equal a fresh one");
    tokens
}

/// A model on many pieces: each obeys [`encodes_piece`] and equals `naive`; the batch, the
/// ids-only path and the count equal the pieces one by one.
pub fn encodes_like(
    model: &dyn Model,
    mut naive: impl FnMut(&[u8]) -> Vec<Token>,
    pieces: &[&[u8]],
) {
    let mut session = model.encoder();
    let (mut text, mut spans, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        let tokens = encodes_piece(model, session.as_mut(), piece);
        let slow = naive(piece);
        assert_eq!(
            tokens,
            slow,
            "the fast encoder must equal the naive one on {:?}",
            String::from_utf8_lossy(piece)
        );
        spans.push(Span::new(text.len(), text.len() + piece.len()));
        text.extend_from_slice(piece);
        expected.extend(tokens);
    }
    let mut batch = Vec::new();
    session.encode_pieces(&text, &spans, &mut batch);
    assert_eq!(batch, expected, "a batch must equal its pieces one by one");
    let (mut apart, mut ends) = (Vec::new(), Vec::new());
    session.encode_pieces_apart(&text, &spans, &mut apart, &mut ends);
    assert_eq!(apart, expected, "pieces kept apart must have the same tokens");
    assert_eq!(ends.len(), spans.len(), "each piece must have an end");
    let mut start = 0;
    for (piece, end) in pieces.iter().zip(ends) {
        assert_eq!(apart[start..end], encodes_piece(model, session.as_mut(), piece), "{piece:?}");
        start = end;
    }
    let mut ids: Vec<TokenId> = Vec::new();
    session.encode_ids_into(&text, &spans, &mut ids);
    let expected: Vec<TokenId> = expected.iter().map(|token| token.id).collect();
    assert_eq!(ids, expected, "the ids alone must equal the ids of the tokens");
    let (mut located, mut offsets) = (Vec::new(), Vec::new());
    session.encode_offsets_into(&text, &spans, &mut located, &mut offsets);
    assert_eq!(located, expected, "ids with offsets must equal the ids of the tokens");
    let mut of_tokens = Vec::new();
    for span in &spans {
        let mut start = span.start as u32;
        for token in encodes_piece(model, session.as_mut(), &text[span.range()]) {
            of_tokens.push(Offset { start, end: start + token.len });
            start += token.len;
        }
    }
    assert_eq!(offsets, of_tokens, "offsets must be the running sums of the lengths");
    assert_eq!(session.count_pieces(&text, &spans), ids.len(), "the count must equal the ids");
    // What a session remembers must not show: the same pieces again, and backwards.
    spans.reverse();
    let mut backwards = Vec::new();
    session.encode_pieces(&text, &spans, &mut backwards);
    let mut one_by_one = Vec::new();
    for span in &spans {
        model.encoder().encode_piece(&text[span.range()], &mut one_by_one);
    }
    assert_eq!(backwards, one_by_one, "pieces met before must encode as they did");
}

/// A splitter: spans are sorted, disjoint, not empty, on character boundaries; batches are those
/// spans, neither empty nor too long. Returns the pieces.
pub fn splits<'t>(splitter: &dyn Split, text: &'t str) -> Vec<&'t str> {
    let spans = splitter.split(text);
    let mut batched = Vec::new();
    splitter.split_batches(text, &mut |batch| {
        assert!((1..=MAX_BATCH).contains(&batch.len()), "a batch of {} spans", batch.len());
        batched.extend_from_slice(batch);
    });
    assert_eq!(batched, spans, "the batches must be the spans in {text:?}");
    let mut end = 0;
    let mut pieces = Vec::new();
    for span in spans {
        assert!(span.start >= end, "spans must be sorted and disjoint in {text:?}: {span:?}");
        assert!(!span.is_empty(), "spans must not be empty in {text:?}: {span:?}");
        let piece = text.get(span.range());
        pieces.push(piece.unwrap_or_else(|| panic!("{span:?} is not on boundaries of {text:?}")));
        end = span.end;
    }
    pieces
}

/// A splitter that keeps all text: as [`splits`], and the pieces concatenate to the text.
pub fn splits_losslessly<'t>(splitter: &dyn Split, text: &'t str) -> Vec<&'t str> {
    let pieces = splits(splitter, text);
    assert_eq!(pieces.concat(), text, "the pieces must concatenate to the text");
    pieces
}

/// A normalizer: with and without edits it gives the same text; the edits are sorted and disjoint;
/// outside of them the texts are equal. Returns the normalized text.
pub fn normalizes(normalizer: &dyn Normalize, text: &str) -> String {
    let plain = normalizer.normalize(text).into_owned();
    let mut edits = Vec::new();
    let edited = normalizer.normalize_with_edits(text, &mut edits).into_owned();
    assert_eq!(plain, edited, "edits must not change the result for {text:?}");
    let mut rebuilt = String::new();
    let mut at = 0;
    for edit in &edits {
        assert!(edit.source.start >= at, "edits must be sorted for {text:?}: {edits:?}");
        rebuilt.push_str(&text[at..edit.source.start]);
        assert_eq!(rebuilt.len(), edit.target.start, "texts must agree between edits: {edits:?}");
        rebuilt.push_str(&edited[edit.target.range()]);
        at = edit.source.end;
    }
    rebuilt.push_str(&text[at..]);
    assert_eq!(rebuilt, edited, "the edits must rebuild the normalized text from {text:?}");
    let alignment = Alignment::new(edits);
    for (start, c) in edited.char_indices() {
        let source = alignment.to_source(Span::new(start, start + c.len_utf8()));
        assert!(text.get(source.range()).is_some(), "{source:?} is not on boundaries of {text:?}");
    }
    edited
}

/// A trainer: the same counts in any order train the same vocabulary.
///
/// Not a law for tie rules that read the order of the text; those are given the same positions.
pub fn trains_from_any_order<T>(trainer: &T, pairs: &[(String, u64)])
where
    T: Train,
    T::Error: PartialEq,
{
    let train = |pairs: &mut dyn Iterator<Item = (usize, &(String, u64))>| {
        let mut counter = PieceCounts::counter();
        for (position, (piece, count)) in pairs {
            counter.add(piece.as_bytes(), *count, position as u64).expect("small counts");
        }
        trainer.train(&counter.finish(), &mut Silent)
    };
    let forward = train(&mut pairs.iter().enumerate());
    let backward = train(&mut pairs.iter().enumerate().rev());
    match (forward, backward) {
        (Ok(a), Ok(b)) => assert!(a.vocab() == b.vocab(), "order must not matter for {pairs:?}"),
        (Err(a), Err(b)) => assert!(a == b, "order must not matter for {pairs:?}: {a} / {b}"),
        _ => panic!("order decides whether training succeeds for {pairs:?}"),
    }
}
