//! Every back end of the scanners against the scalar twin and, on short texts, against the regular
//! expression that the rules stand for; and what streams and threads rely on.

use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroUsize;

use pretok::naive::Backtracking;
use pretok::{Backend, Chunks, Rules, Scanner};
use tokenizer_core::{Span, Split};

thread_local! {
    /// Compiling takes longer than all the rest, and the compiled take half a megabyte each.
    static REGEXES: RefCell<HashMap<String, Backtracking>> = RefCell::default();
}

/// One input: the rules, then the text.
pub fn run(data: &[u8]) {
    let Some((head, rest)) = data.split_first_chunk::<4>() else { return };
    let rules = Rules::numbered(u32::from_le_bytes(*head) as usize);
    let text = String::from_utf8_lossy(rest);
    let scalar = Scanner::with_backend(rules, Backend::Scalar).expect("every machine has it");
    let spans = scalar.split(&text);
    for backend in Backend::ALL {
        let Some(scanner) = Scanner::with_backend(rules, backend) else { continue };
        assert_eq!(scanner.split(&text), spans, "{backend:?} {rules:?} {text:?}");
    }
    if text.len() < 200 {
        REGEXES.with_borrow_mut(|regexes| {
            if regexes.len() > 256 {
                regexes.clear();
            }
            let pattern = rules.pattern();
            let regex = regexes.entry(pattern.clone()).or_insert_with(|| {
                Backtracking::new(&pattern).expect("the patterns of rules are well formed")
            });
            assert_eq!(regex.split(&text), spans, "{rules:?} {text:?}");
        });
    }
    in_chunks(&Scanner::new(rules), &text, &spans, usize::from(head[0]) + 1);
    settled(&scalar, &text, &spans, usize::from(head[1]));
}

/// Chunks, put together, are the whole.
fn in_chunks(scanner: &Scanner, text: &str, spans: &[Span], size: usize) {
    let size = NonZeroUsize::new(size).expect("one was added");
    let chunks = Chunks::new(scanner, text, size).expect("scanners know what is settled");
    let split = |i, from| {
        let mut spans = Vec::new();
        let end = chunks.split_batches(i, from, &mut |batch| spans.extend_from_slice(batch));
        (spans, end)
    };
    let found: Vec<_> = (0..chunks.len()).map(|i| split(i, chunks.start(i))).collect();
    let mut joined: Vec<Span> = Vec::new();
    chunks.settle(found, split, |chunk| joined.extend(chunk));
    assert_eq!(joined, spans, "in chunks of {size}: {text:?}");
}

/// The pieces of the front that are settled are pieces of the whole.
fn settled(scanner: &Scanner, text: &str, spans: &[Span], percent: usize) {
    let at = (0..=text.len() * percent.min(100) / 100).rev().find(|&at| text.is_char_boundary(at));
    let front = scanner.split(&text[..at.unwrap_or(0)]);
    let unsettled = scanner.unsettled().expect("scanners know what is settled");
    let settled = front.len().saturating_sub(unsettled);
    assert_eq!(front[..settled], spans[..settled], "{:?}", scanner.rules());
}
