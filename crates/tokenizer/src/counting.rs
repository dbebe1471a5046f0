//! Counting the pieces of a corpus in parallel, for the trainers.

use std::borrow::Cow;

use rayon::prelude::*;
use tokenizer_core::{Alignment, CountError, Normalize, PieceCounts, Span, Split};

/// Counts the pieces of documents that come in batches.
///
/// The result does not depend on how the documents are batched or on the number of threads:
/// positions are those of the corpus taken as one text, the documents in the order given.
pub struct CorpusCounter<'a> {
    normalizer: Option<&'a dyn Normalize>,
    splitter: &'a dyn Split,
    counts: PieceCounts,
    documents: u64,
    bytes: u64,
}

/// Documents are handed to threads in runs of about this many bytes.
const RUN: usize = 1 << 20;

impl<'a> CorpusCounter<'a> {
    /// A counter of the pieces that `splitter` makes of normalized documents.
    #[must_use]
    pub fn new(normalizer: Option<&'a dyn Normalize>, splitter: &'a dyn Split) -> Self {
        Self { normalizer, splitter, counts: PieceCounts::default(), documents: 0, bytes: 0 }
    }

    /// Counts a batch of documents that follow those counted so far.
    ///
    /// # Errors
    ///
    /// If a count passes 64 bits, or a piece is 4 GiB or longer.
    pub fn add<D: AsRef<str> + Sync>(&mut self, documents: &[D]) -> Result<(), CountError> {
        let mut runs: Vec<(u64, &[D])> = Vec::new();
        let (mut run_start, mut run_base, mut position) = (0, self.bytes, self.bytes);
        for (i, document) in documents.iter().enumerate() {
            position += document.as_ref().len() as u64;
            if position - run_base >= RUN as u64 || i + 1 == documents.len() {
                runs.push((run_base, &documents[run_start..=i]));
                (run_start, run_base) = (i + 1, position);
            }
        }
        let (normalizer, splitter) = (self.normalizer, self.splitter);
        let counts = runs
            .into_par_iter()
            .map(|(base, documents)| count_run(normalizer, splitter, base, documents))
            .try_reduce(PieceCounts::default, |mut a, b| a.merge(&b).map(|()| a))?;
        self.counts.merge(&counts)?;
        self.documents += documents.len() as u64;
        self.bytes = position;
        Ok(())
    }

    /// The number of documents so far.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The bytes of the documents so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The counts of all documents.
    #[must_use]
    pub fn finish(self) -> PieceCounts {
        self.counts
    }
}

fn count_run<D: AsRef<str>>(
    normalizer: Option<&dyn Normalize>,
    splitter: &dyn Split,
    base: u64,
    documents: &[D],
) -> Result<PieceCounts, CountError> {
    let mut counter = PieceCounts::counter();
    let (mut spans, mut edits) = (Vec::new(), Vec::new());
    let mut base = base;
    for document in documents {
        let document = document.as_ref();
        edits.clear();
        let text = match normalizer {
            None => Cow::Borrowed(document),
            Some(normalizer) => normalizer.normalize_with_edits(document, &mut edits),
        };
        let alignment = Alignment::new(std::mem::take(&mut edits));
        spans.clear();
        splitter.split_into(&text, &mut spans);
        for span in &spans {
            let start = alignment.to_source(Span::new(span.start, span.start + 1)).start;
            counter.add(text[span.range()].as_bytes(), 1, base + start as u64)?;
        }
        base += document.len() as u64;
        counter.extend_to(base);
    }
    Ok(counter.finish())
}
