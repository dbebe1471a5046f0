//! One text split in chunks at the same time.

use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

use tokenizer_core::{MAX_BATCH, Span, Split};

/// Chunks of one text that can be split at the same time, by threads of the caller's; together they
/// give the pieces of the whole text, exactly.
///
/// Splitting can begin at any piece's beginning ([`Split::unsettled`] promises that), but where
/// pieces begin is known only from the left. So beginnings are guessed: splitting on from any
/// character finds true beginnings after a piece or two, in real text. A guess that was wrong shows,
/// because the chunk in front does not end there; then the chunk is split again, from where
/// the one in front did end. Every result is right; wrong guesses only cost time, up to that of
/// splitting one chunk after the other (a million digits, taken in threes).
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::thread;
/// use pretok::{Chunks, Rules, Scanner};
/// use tokenizer_core::{Span, Split};
///
/// let scanner = Scanner::new(Rules::CL100K);
/// let text = "It's one text, and 12345 threads. ".repeat(1000);
/// let size = NonZeroUsize::new(10_000).ok_or("no size")?;
/// let chunks = Chunks::new(&scanner, &text, size).ok_or("this splitter must see the text whole")?;
///
/// let split = |i: usize, from: usize| {
///     let mut spans: Vec<Span> = Vec::new();
///     let end = chunks.split_batches(i, from, &mut |batch| spans.extend_from_slice(batch));
///     (spans, end)
/// };
/// let found: Vec<_> = thread::scope(|scope| {
///     let split = &split;
///     let threads: Vec<_> = (0..chunks.len())
///         .map(|i| (i, chunks.start(i)))
///         .map(|(i, start)| scope.spawn(move || split(i, start)))
///         .collect();
///     threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
/// });
/// let mut spans = Vec::new();
/// chunks.settle(found, split, |chunk| spans.extend(chunk));
/// assert_eq!(spans, scanner.split(&text));
/// # Ok::<(), &str>(())
/// ```
pub struct Chunks<'a> {
    split: &'a dyn Split,
    text: &'a str,
    unsettled: usize,
    /// Where chunks begin; the first at 0, the others at guesses.
    starts: Vec<usize>,
}

/// A guess is the end of this many pieces: splitting mostly falls in step after two.
const PIECES: usize = 16;
/// A guess looks at this many bytes, so that guesses cost little in any text.
const WINDOW: usize = 1024;
/// How many bytes behind a chunk are split along with it, for a start.
const MARGIN: usize = 256;

impl<'a> Chunks<'a> {
    /// Chunks of `text` of about `size` bytes, for `split`; `None` if it does not say how many pieces
    /// are unsettled. The first begins at 0; an empty text is one chunk. A long text without a place to
    /// guess is one chunk.
    #[must_use]
    pub fn new(split: &'a dyn Split, text: &'a str, size: NonZeroUsize) -> Option<Self> {
        Self::guess(split, text, size, PIECES)
    }

    fn guess(
        split: &'a dyn Split,
        text: &'a str,
        size: NonZeroUsize,
        pieces: usize,
    ) -> Option<Self> {
        let unsettled = split.unsettled()?;
        let mut starts = vec![0];
        for near in (size.get()..text.len()).step_by(size.get()) {
            let near = boundary_in_front(text, near);
            let end = boundary_in_front(text, near.saturating_add(WINDOW));
            let mut spans = split.split(&text[near..end]);
            if end < text.len() {
                spans.truncate(spans.len().saturating_sub(unsettled));
            }
            spans.truncate(pieces);
            let Some(last) = spans.last() else { continue };
            let start = near + last.end;
            if start > starts[starts.len() - 1] && start < text.len() {
                starts.push(start);
            }
        }
        Some(Self { split, text, unsettled, starts })
    }

    /// The number of chunks, at least one.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // It never is.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Where chunk `i` begins, unless that was guessed wrong: a character boundary.
    ///
    /// # Panics
    ///
    /// If there is no chunk `i`.
    #[must_use]
    pub fn start(&self, i: usize) -> usize {
        self.starts[i]
    }

    /// Calls `batch`, as [`Split::split_batches`] does, with the spans of the pieces from `from` on
    /// up to the first that ends at or behind the beginning of chunk `i + 1`. Gives where that one
    /// ends.
    ///
    /// The spans are those of the whole text if a piece begins at `from`.
    ///
    /// # Panics
    ///
    /// If there is no chunk `i`, or `from` is no character boundary of the text.
    pub fn split_batches(&self, i: usize, from: usize, batch: &mut dyn FnMut(&[Span])) -> usize {
        let _ = self.starts[i];
        let to = self.starts.get(i + 1).map_or(self.text.len(), |&start| start);
        let (mut at, mut margin) = (from, MARGIN);
        while at < to {
            let end = boundary_in_front(self.text, to.saturating_add(margin));
            at = self.split_settled(at, end, to, batch);
            margin *= 4;
        }
        at
    }

    /// The pieces of `from..end` that are settled, up to the first that ends at or behind `to`.
    fn split_settled(
        &self,
        from: usize,
        end: usize,
        to: usize,
        batch: &mut dyn FnMut(&[Span]),
    ) -> usize {
        let unsettled = if end < self.text.len() { self.unsettled } else { 0 };
        let mut held: Vec<Span> = Vec::with_capacity(MAX_BATCH + unsettled);
        let mut at = from;
        self.split.split_batches(&self.text[from..end], &mut |found| {
            if at >= to {
                return;
            }
            held.extend(found.iter().map(|span| span.shifted(from)));
            let settled = held.len().saturating_sub(unsettled);
            let pieces = held[..settled].iter().position(|span| span.end >= to);
            let pieces = pieces.map_or(settled, |last| last + 1);
            if let Some(last) = held[..pieces].last() {
                at = last.end;
                held[..pieces].chunks(MAX_BATCH).for_each(&mut *batch);
                held.drain(..pieces);
            }
        });
        // A splitter that drops the end of the text gives no piece for it.
        if end == self.text.len() && at < to { end } else { at }
    }

    /// Takes what was made of the chunks, in order, with where each ended, and gives `keep` what
    /// stands: where a chunk did not begin at the end of the one in front, `again` must make it
    /// again from there, as [`split_batches`](Self::split_batches) does.
    pub fn settle<T>(
        &self,
        found: impl IntoIterator<Item = (T, usize)>,
        mut again: impl FnMut(usize, usize) -> (T, usize),
        mut keep: impl FnMut(T),
    ) {
        let mut at = 0;
        for (i, (made, end)) in found.into_iter().enumerate() {
            let (made, end) = if at == self.starts[i] { (made, end) } else { again(i, at) };
            keep(made);
            at = end;
        }
    }
}

/// The last character boundary at or in front of `at`.
fn boundary_in_front(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tokenizer_core::Rng;

    use super::*;
    use crate::{DeepSeekV3, Pattern, Rules, Scanner, Whole};

    /// The chunks, put together; also how many had to be made again.
    fn in_chunks(chunks: &Chunks<'_>) -> (Vec<Span>, usize) {
        let split = |i, from| {
            let mut spans = Vec::new();
            let end = chunks.split_batches(i, from, &mut |batch| {
                assert!((1..=MAX_BATCH).contains(&batch.len()));
                spans.extend_from_slice(batch);
            });
            (spans, end)
        };
        let found: Vec<_> = (0..chunks.len()).map(|i| split(i, chunks.start(i))).collect();
        let (mut spans, mut wrong) = (Vec::new(), 0);
        let again = |i, from| {
            wrong += 1;
            split(i, from)
        };
        chunks.settle(found, again, |chunk| spans.extend(chunk));
        (spans, wrong)
    }

    #[track_caller]
    fn check(split: &dyn Split, text: &str, size: usize, pieces: usize) -> usize {
        let size = NonZeroUsize::new(size).unwrap();
        let chunks = Chunks::guess(split, text, size, pieces).unwrap();
        let (spans, wrong) = in_chunks(&chunks);
        assert_eq!(spans, split.split(text), "{text:?} in chunks of {size} after {pieces}");
        wrong
    }

    #[test]
    fn parallel_is_serial_at_every_cut_of_short_texts() {
        const FEW: [char; 12] =
            ['s', 'l', 'L', 'ʰ', '\u{301}', '1', ' ', '\n', '\'', '/', '!', '中'];
        let mut rng = Rng::new(1);
        let mut wrong = 0;
        for &pattern in Pattern::ALL {
            let splitter = pattern.splitter();
            for _ in 0..600 {
                let few = 1 + rng.below(FEW.len() as u64);
                let text: String =
                    (0..rng.below(16)).map(|_| FEW[rng.below(few) as usize]).collect();
                for size in 1..text.len() {
                    for pieces in [1, 2, 16] {
                        wrong += check(splitter.as_ref(), &text, size, pieces);
                    }
                }
            }
        }
        assert!(wrong > 50, "{wrong}: guesses that are never wrong prove nothing");
    }

    #[test]
    fn guesses_are_right_in_real_text() {
        let text = "It's one text; don't look: 12345 and 3.14, HTTPServer.\n\n  Ünïcödé 中文，字。"
            .repeat(2000);
        for split in [&Scanner::new(Rules::CL100K) as &dyn Split, &DeepSeekV3] {
            assert_eq!(check(split, &text, 4096, PIECES), 0);
            check(split, &text, 1, 1);
        }
    }

    #[test]
    fn wrong_guesses_and_long_pieces_cost_time_alone() {
        let scanner = Scanner::new(Rules::CL100K);
        for text in ["1".repeat(20_000), " ".repeat(20_000), "a".repeat(20_000) + "'s"] {
            check(&scanner, &text, 4000, PIECES);
            check(&scanner, &(text + " b c d e"), 4000, PIECES);
        }
        let size = NonZeroUsize::MIN;
        assert_eq!(Chunks::new(&scanner, "", size).map(|c| c.len()), Some(1));
        assert!(Chunks::new(&Whole, "abc", size).is_none());
    }
}
