//! Many texts at a time, or one long one, by all threads.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use pretok::Chunks;
use rayon::prelude::*;
use tokenizer_core::{Span, TokenId};

use crate::encoding::Encoding;
use crate::lane::Part;
use crate::pipeline::{EncodeOptions, PieceStep, Session, Tokenizer};
use crate::policy::{Policy, SpecialTokenError};
use crate::session::SessionOptions;

/// The bytes of a text that a thread takes at a time: enough that guessing where pieces begin costs
/// nothing beside them, few enough that threads end at about the same time.
const CHUNK: NonZeroUsize = NonZeroUsize::new(128 << 10).expect("not zero");

/// A session for each thread, kept from one call to the next: what one batch met, the next one
/// knows.
///
/// As many sessions as rayon has threads where the work is done; each takes about 4 MB at most, or
/// what [`SessionOptions`] say.
///
/// ```
/// use tokenizer::{TiktokenEncoding, Tokenizer};
///
/// let tokenizer = Tokenizer::from_encoding(TiktokenEncoding::R50kBase);
/// let mut batch = tokenizer.batch();
/// for texts in [["hello world", "hello"], ["world", ""]] {
///     let ids = batch.ids(&texts);
///     assert_eq!(ids, texts.map(|text| tokenizer.ids(text)));
///     assert_eq!(batch.counts(&texts), [ids[0].len(), ids[1].len()]);
/// }
/// ```
pub struct Batch<'t> {
    tokenizer: &'t Tokenizer,
    options: SessionOptions,
    sessions: Vec<Session<'t>>,
}

impl Tokenizer {
    /// As [`Batch::encode`], with sessions that are made for this call: for callers that have all
    /// their texts at once.
    ///
    /// # Errors
    ///
    /// The first error in the order of the texts.
    pub fn encode_batch<T: AsRef<str> + Sync>(
        &self,
        texts: &[T],
        options: &EncodeOptions,
    ) -> Result<Vec<Encoding>, SpecialTokenError> {
        self.batch().encode(texts, options)
    }

    /// As [`Batch::ids`], with sessions that are made for this call.
    #[must_use]
    pub fn ids_batch<T: AsRef<str> + Sync>(&self, texts: &[T]) -> Vec<Vec<TokenId>> {
        self.batch().ids(texts)
    }

    /// As [`Batch::ids_of_one`], with sessions that are made for this call.
    #[must_use]
    pub fn ids_parallel(&self, text: &str) -> Vec<TokenId> {
        self.batch().ids_of_one(text)
    }
}

impl<'t> Batch<'t> {
    pub(crate) fn new(tokenizer: &'t Tokenizer, options: SessionOptions) -> Self {
        Self { tokenizer, options, sessions: Vec::new() }
    }

    /// Encodes many texts in parallel, and pads them where the tokenizer says so. Equal to one by
    /// one.
    ///
    /// # Errors
    ///
    /// The first error in the order of the texts.
    pub fn encode<T: AsRef<str> + Sync>(
        &mut self,
        texts: &[T],
        options: &EncodeOptions,
    ) -> Result<Vec<Encoding>, SpecialTokenError> {
        let encodings =
            self.in_parallel(texts, |session, text| session.encode(text.as_ref(), options));
        let mut encodings = encodings.into_iter().collect::<Result<Vec<_>, _>>()?;
        if let Some(padding) = &self.tokenizer.parts.padding {
            padding.apply(&mut encodings);
        }
        Ok(encodings)
    }

    /// The ids of many texts in parallel; equal to [`Tokenizer::ids`] one by one.
    pub fn ids<T: AsRef<str> + Sync>(&mut self, texts: &[T]) -> Vec<Vec<TokenId>> {
        self.in_parallel(texts, |session, text| {
            let mut ids = Vec::new();
            session.ids_into(text.as_ref(), &mut ids);
            ids
        })
    }

    /// The numbers of tokens of many texts in parallel; equal to [`Tokenizer::count`] one by one.
    pub fn counts<T: AsRef<str> + Sync>(&mut self, texts: &[T]) -> Vec<usize> {
        self.in_parallel(texts, |session, text| session.count(text.as_ref()))
    }

    /// The ids of one text, found by several threads; equal to [`Tokenizer::ids`].
    ///
    /// The text is cut where pieces begin. That can be known without a normalizer, with one splitter
    /// that says how many of its last pieces may still change
    /// ([`Split::unsettled`](tokenizer_core::Split::unsettled)), or, as for BERT, where white space
    /// separates pieces whatever the normalizer does; and without added tokens that are always
    /// recognised. Other tokenizers, and short texts, use one thread, which writes the ids where they stay;
    /// several copy theirs together in the end.
    pub fn ids_of_one(&mut self, text: &str) -> Vec<TokenId> {
        self.ids_of_one_in(text, CHUNK)
    }

    /// As [`ids_of_one`](Self::ids_of_one), with chunks of about so many bytes for a thread at a time
    /// instead of 128 KiB.
    pub fn ids_of_one_in(&mut self, text: &str, chunk: NonZeroUsize) -> Vec<TokenId> {
        if let Some(ids) = self.ids_in_chunks(text, chunk) {
            return ids;
        }
        let mut ids = Vec::new();
        self.sessions(1)[0].ids_into(text, &mut ids);
        ids
    }

    pub(crate) fn ids_in_chunks(&mut self, text: &str, size: NonZeroUsize) -> Option<Vec<TokenId>> {
        if rayon::current_num_threads() == 1 {
            return None;
        }
        let added = &self.tokenizer.added;
        if added.needs_raw(&Policy::Ordinary) || added.has_normalized() || text.len() <= size.get()
        {
            return None;
        }
        let parts = self.ids_of_pieces(text, size).or_else(|| self.ids_of_units(text, size))?;
        Some(concat(&parts))
    }

    /// The ids of chunks that begin where pieces do.
    fn ids_of_pieces(&mut self, text: &str, size: NonZeroUsize) -> Option<Vec<Vec<TokenId>>> {
        let parts = &self.tokenizer.parts;
        let [PieceStep::Split(split)] = &parts.steps[..] else { return None };
        if parts.normalizer.is_some() {
            return None;
        }
        let chunks = Chunks::new(split.as_ref(), text, size)?;
        let encode = |session: &mut Session<'_>, i: usize, from: usize| {
            let mut ids = Vec::with_capacity(size.get() / 4);
            let end = chunks.split_batches(i, from, &mut |pieces| {
                session.encode_pieces(text, pieces, &mut ids);
            });
            (ids, end)
        };
        let numbers: Vec<usize> = (0..chunks.len()).collect();
        let found = self.in_parallel(&numbers, |session, &i| encode(session, i, chunks.start(i)));
        let mut settled = Vec::with_capacity(found.len());
        let session = &mut self.sessions(1)[0];
        chunks.settle(found, |i, from| encode(session, i, from), |some| settled.push(some));
        Some(settled)
    }

    /// The ids of parts that the lane takes a text apart into.
    fn ids_of_units(&mut self, text: &str, size: NonZeroUsize) -> Option<Vec<Vec<TokenId>>> {
        let mut ends = self.tokenizer.lane.as_ref()?.places(text, size)?;
        ends.push(text.len());
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let spans: Vec<Span> =
            starts.zip(&ends).map(|(start, &end)| Span::new(start, end)).collect();
        Some(self.in_parallel(&spans, |session, span| {
            let mut ids = Vec::with_capacity(size.get() / 4);
            let part = Part { begins: span.start == 0 };
            session.lane_ids_into(&text[span.range()], part, &mut ids);
            ids
        }))
    }

    /// The first `n` sessions, new ones where there were fewer.
    fn sessions(&mut self, n: usize) -> &mut [Session<'t>] {
        if self.sessions.len() < n {
            self.sessions.resize_with(n, || self.tokenizer.session_with(&self.options));
        }
        &mut self.sessions[..n]
    }

    /// What `work` makes of each item, in order. Threads take a few items at a time from the front,
    /// each with one session, which knows more pieces the longer it is kept.
    fn in_parallel<I: Sync, T: Send>(
        &mut self,
        items: &[I],
        work: impl Fn(&mut Session<'_>, &I) -> T + Sync,
    ) -> Vec<T> {
        let threads = rayon::current_num_threads().min(items.len()).max(1);
        let sessions = self.sessions(threads);
        if let [session] = sessions {
            return items.iter().map(|item| work(session, item)).collect();
        }
        let block = (items.len() / (threads * 16)).clamp(1, 64);
        let next = AtomicUsize::new(0);
        let take_turns = |session: &mut Session<'_>| {
            let mut made = Vec::new();
            loop {
                let start = next.fetch_add(block, Ordering::Relaxed);
                let Some(rest) = items.get(start..).filter(|rest| !rest.is_empty()) else {
                    return made;
                };
                let some = &rest[..rest.len().min(block)];
                let results: Vec<T> = some.iter().map(|item| work(session, item)).collect();
                made.push((start, results));
            }
        };
        let made: Vec<_> = sessions.par_iter_mut().with_max_len(1).map(take_turns).collect();
        let mut made: Vec<(usize, Vec<T>)> = made.into_iter().flatten().collect();
        made.sort_unstable_by_key(|&(start, _)| start);
        made.into_iter().flat_map(|(_, results)| results).collect()
    }
}

/// Lists end to end. Several threads copy, since most of the time is the system's, which gives out memory
/// that is touched for the first time.
fn concat(lists: &[Vec<TokenId>]) -> Vec<TokenId> {
    // The system has zeros as they are; zeros that are wrapped in a type would be written here.
    let zeros = vec![0; lists.iter().map(Vec::len).sum()];
    let mut all: Vec<TokenId> = zeros.into_iter().map(TokenId).collect();
    let mut rest = &mut all[..];
    let mut copies = Vec::with_capacity(lists.len());
    for list in lists {
        let (place, behind) = rest.split_at_mut(list.len());
        copies.push((place, list));
        rest = behind;
    }
    copies.into_par_iter().for_each(|(place, list)| place.copy_from_slice(list));
    all
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("tokenizer", self.tokenizer)
            .field("sessions", &self.sessions.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::TiktokenEncoding;

    /// Texts in which what stands before a cut decides how the text behind it is split.
    const ADVERSARIAL: &[&str] = &[
        "it's  \n\n  a   test",
        "      \n\r\n \t\n  x \u{3000}\u{A0} y",
        "12345678901234567 1 22 333 4444",
        "DON'T we'LL i'Ve x'\u{17F}\u{17F}'s 'S 's",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "HTTPServerErrorXMLÀÉ\u{301}\u{301}b\u{345}",
        "\u{4E2D}\u{6587}abc\u{30AB}\u{30BF}1\u{0E01}\u{0E33} \u{AC00}",
        "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{FE0F}\u{1F1E6}\u{1F1E6}\u{1F1E6}",
        "!!!...///--- //\n\n//\r\n)))\n",
        "\u{2581}\u{2581} <|endoftext|>\u{FFFD}\0\u{85}\u{2028} ",
    ];

    #[test]
    fn chunks_of_any_size_have_the_ids_of_the_text() {
        use TiktokenEncoding::{Cl100kBase, O200kBase, P50kBase, R50kBase};
        let awkward: String = testkit::texts::AWKWARD.iter().map(|(_, text)| *text).collect();
        for encoding in [R50kBase, P50kBase, Cl100kBase, O200kBase] {
            let tokenizer = Tokenizer::from_encoding(encoding);
            // A cut at every place: the first one at each, and others at all its multiples.
            let adversarial = ADVERSARIAL.iter().map(|text| (*text, text.len()));
            for (text, most) in adversarial.chain([(&awkward[..], 40)]) {
                let expected = tokenizer.ids(text);
                let mut batch = tokenizer.batch();
                for size in 1..=most {
                    let size = NonZeroUsize::new(size).unwrap();
                    if let Some(ids) = batch.ids_in_chunks(text, size) {
                        assert_eq!(ids, expected, "{encoding:?} {size} {text:?}");
                    } else {
                        assert!(text.len() <= size.get());
                    }
                }
            }
        }
        let tokenizer = Tokenizer::from_encoding(R50kBase);
        let long = awkward.repeat(300_000 / awkward.len() + 1);
        assert_eq!(tokenizer.ids_parallel(&long), tokenizer.ids(&long));
        assert_eq!(tokenizer.ids_parallel(""), []);
    }

    #[test]
    fn tokenizers_that_cannot_be_cut_use_one_thread() {
        let tokenizer = Tokenizer::bytes();
        let size = NonZeroUsize::new(2).unwrap();
        assert_eq!(tokenizer.batch().ids_in_chunks("some text", size), None);
        assert_eq!(tokenizer.ids_parallel("some text"), tokenizer.ids("some text"));
    }

    #[test]
    fn many_short_texts_keep_their_order() {
        let tokenizer = Tokenizer::bytes();
        let texts: Vec<String> = (0..5000).map(|i| "x".repeat(i % 7)).collect();
        let ids = tokenizer.ids_batch(&texts);
        assert!(ids.iter().map(Vec::len).eq(texts.iter().map(String::len)));
    }
}
