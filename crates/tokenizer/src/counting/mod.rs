//! Counting the pieces of a corpus in parallel, for the trainers.

mod table;

use std::fmt;
use std::io;

use rayon::prelude::*;
use tokenizer_core::{
    Alignment, CountError, Encode, Normalize, PieceCount, PieceCounts, Span, Split, TokenId,
};

use self::table::{CountTable, Sorted};
use crate::pipeline::{Prepared, Sink, Source, Tokenizer};

/// Counts the pieces of documents that come in any portions.
///
/// The result does not depend on how the text is handed over or on the number of threads: positions
/// are those of the corpus taken as one text, the documents in the order given. Work is shared out
/// by bytes, not by documents: where a splitter knows its [`Split::unsettled`] pieces and nothing
/// is normalized, one enormous document is counted on all threads, and of a document that comes in
/// parts only the last part is kept.
///
/// Memory is a table for each thread, of 43 to 85 bytes a distinct piece, and a few megabytes of
/// text a thread. With [`with_limit`](Self::with_limit) full tables become sorted runs elsewhere.
///
/// ```
/// use tokenizer::CorpusCounter;
///
/// let splitter = pretok::from_spec("gpt2")?;
/// let mut counter = CorpusCounter::new(None, &splitter);
/// counter.add(&["hug pug", "pug"])?;
/// counter.push("hug pu")?;
/// counter.push("g")?;
/// counter.end_document()?;
/// let counts = counter.finish()?;
/// assert_eq!(counts.get(b" pug").map(|piece| (piece.count, piece.first_seen)), Some((2, 3)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CorpusCounter<'a> {
    cutter: Cutter<'a>,
    tables: Vec<CountTable>,
    waiting: Waiting,
    documents: u64,
    limit: Option<Limit<'a>>,
}

/// From documents to pieces.
#[derive(Clone, Copy)]
enum Cutter<'a> {
    /// Text is cut as it stands.
    Raw(&'a dyn Split),
    /// Documents are normalized first, each as a whole.
    Normalized(&'a dyn Normalize, &'a dyn Split),
    /// Documents go through a tokenizer, up to its model.
    Pipeline(&'a Tokenizer),
}

impl Cutter<'_> {
    /// How many pieces at the end of a part of a document may still change, if documents may be
    /// counted in parts.
    fn unsettled(self) -> Option<usize> {
        match self {
            Self::Raw(splitter) => splitter.unsettled(),
            Self::Normalized(..) | Self::Pipeline(_) => None,
        }
    }
}

/// Text that was not counted yet.
#[derive(Default)]
struct Waiting {
    text: String,
    /// Where documents end in it, but for the last if it goes on.
    ends: Vec<usize>,
    /// Where it is in the corpus.
    base: u64,
    /// How much text must come before it pays to count again.
    enough: usize,
}

/// A bound of memory.
struct Limit<'a> {
    /// Of each table, in bytes.
    bytes: usize,
    runs: &'a mut dyn Spill,
}

/// Takes runs of pieces that memory cannot hold: a file each, in a program.
pub trait Spill {
    /// Takes a run. Positions of all runs are of the same text.
    ///
    /// # Errors
    ///
    /// If the run could not be written.
    fn run(&mut self, run: &Run<'_>) -> io::Result<()>;
}

/// Distinct pieces in ascending order, with their counts in a share of the text.
pub struct Run<'r> {
    sorted: &'r Sorted,
    extent: u64,
}

impl Run<'_> {
    /// The length of the text so far in positions.
    #[must_use]
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// Calls `each` with every piece, in order, until it fails.
    ///
    /// # Errors
    ///
    /// As `each`.
    pub fn try_for_each(
        &self,
        mut each: impl FnMut(PieceCount<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        (0..self.sorted.len()).try_for_each(|i| each(self.sorted.get(i, &mut [0; 16])))
    }
}

/// Each thread counts about this many bytes at a time.
const PART: usize = 2 << 20;
/// A document that cannot be cut has at most this share of a limit.
const DOCUMENT_SHARE: usize = 16;
/// Below this many bytes a thread is not worth its while.
const LEAST_PART: usize = 1 << 15;

impl<'a> CorpusCounter<'a> {
    /// A counter of the pieces that `splitter` makes of normalized documents.
    #[must_use]
    pub fn new(normalizer: Option<&'a dyn Normalize>, splitter: &'a dyn Split) -> Self {
        Self::with_cutter(match normalizer {
            Some(normalizer) => Cutter::Normalized(normalizer, splitter),
            None => Cutter::Raw(splitter),
        })
    }

    /// A counter of the pieces that a tokenizer hands to its model. Special tokens are ordinary
    /// text, added tokens that are not special are left out, as in [`Tokenizer::ids`].
    ///
    /// ```
    /// use tokenizer::{CorpusCounter, TiktokenEncoding, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::from_encoding(TiktokenEncoding::R50kBase);
    /// let mut counter = CorpusCounter::of(&tokenizer);
    /// counter.add(&["hug pug", "hug"])?;
    /// assert_eq!(counter.finish()?.get(b"hug").map(|piece| piece.count), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of(tokenizer: &'a Tokenizer) -> Self {
        let splits = tokenizer.only_splits();
        Self::with_cutter(splits.map_or(Cutter::Pipeline(tokenizer), Cutter::Raw))
    }

    fn with_cutter(cutter: Cutter<'a>) -> Self {
        let threads = rayon::current_num_threads().max(1);
        Self {
            cutter,
            tables: (0..threads).map(|_| CountTable::new()).collect(),
            waiting: Waiting { enough: threads * PART, ..Waiting::default() },
            documents: 0,
            limit: None,
        }
    }

    /// Keeps the tables within `bytes` of memory: a table that would pass its share goes to `runs`
    /// and begins anew. End with [`finish_runs`](Self::finish_runs) then.
    ///
    /// The text that waits comes on top: 2 MB a thread, or the longest document where documents
    /// cannot be cut, which may then have a sixteenth of `bytes`: what it is normalized to and where it
    /// was changed come with it.
    #[must_use]
    pub fn with_limit(mut self, bytes: usize, runs: &'a mut dyn Spill) -> Self {
        let share = bytes / self.tables.len();
        // A round may add as many pieces as its text holds.
        let part = (share / 32).clamp(LEAST_PART, PART);
        self.waiting.enough = part * self.tables.len();
        self.limit = Some(Limit { bytes: share, runs });
        self
    }

    /// Counts documents that follow those counted so far.
    ///
    /// # Errors
    ///
    /// If a piece is 4 GiB or longer, or a run cannot be written.
    ///
    /// # Panics
    ///
    /// If a document was begun with [`push`](Self::push) and not ended.
    pub fn add<D: AsRef<str>>(&mut self, documents: &[D]) -> Result<(), CountingError> {
        let whole = self.waiting.ends.last().copied().unwrap_or(0) == self.waiting.text.len();
        assert!(whole, "the document before was not ended");
        for document in documents {
            self.push(document.as_ref())?;
            self.end_document()?;
        }
        Ok(())
    }

    /// Counts the next part of a document.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn push(&mut self, part: &str) -> Result<(), CountingError> {
        let mut rest = part;
        while !rest.is_empty() {
            let room = self.waiting.enough.saturating_sub(self.waiting.text.len()).max(4);
            let end = floor_char_boundary(rest, room);
            self.waiting.text.push_str(&rest[..end]);
            rest = &rest[end..];
            if self.waiting.text.len() + 4 > self.waiting.enough {
                self.round()?;
            }
        }
        Ok(())
    }

    /// Ends the document that was pushed.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn end_document(&mut self) -> Result<(), CountingError> {
        self.documents += 1;
        self.waiting.ends.push(self.waiting.text.len());
        // A flood of empty documents takes memory too.
        if self.waiting.ends.len() > self.waiting.enough { self.round() } else { Ok(()) }
    }

    /// The number of documents so far.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The bytes of the documents so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.waiting.base + self.waiting.text.len() as u64
    }

    /// The counts of all documents. A document that was not ended ends here.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Panics
    ///
    /// If there is a [limit](Self::with_limit): runs may lie elsewhere.
    pub fn finish(mut self) -> Result<PieceCounts, CountingError> {
        assert!(self.limit.is_none(), "runs are merged by who took them");
        let extent = self.end()?;
        let sorted: Vec<Sorted> = self.tables.par_iter_mut().map(CountTable::take_sorted).collect();
        drop(self.tables);
        merged(&sorted, extent)
    }

    /// Ends the documents of a counter with a limit: what is left in memory becomes runs too.
    /// Returns the extent of the text.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn finish_runs(mut self) -> Result<u64, CountingError> {
        let extent = self.end()?;
        let Some(limit) = &mut self.limit else { return Ok(extent) };
        for table in self.tables.iter_mut().filter(|table| !table.is_empty()) {
            spill(table, extent, limit.runs)?;
        }
        Ok(extent)
    }

    fn end(&mut self) -> Result<u64, CountingError> {
        if self.waiting.ends.last().copied().unwrap_or(0) < self.waiting.text.len() {
            self.end_document()?;
        }
        self.round()?;
        Ok(self.waiting.base)
    }

    /// Counts what waits, but for the pieces at the end that may change.
    fn round(&mut self) -> Result<(), CountingError> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let complete = waiting.ends.last().copied().unwrap_or(0);
        if complete < waiting.text.len() && self.cutter.unsettled().is_none() {
            // Only whole documents can be counted.
            self.count(&waiting, complete)?;
            waiting.forget(complete, self.least_round());
            if let Some(limit) = &self.limit {
                let most = limit.bytes * self.tables.len() / DOCUMENT_SHARE;
                if waiting.text.len() > most {
                    return Err(CountingError::TooLongDocument(most));
                }
            }
        } else {
            let end = waiting.text.len();
            let counted = self.count(&waiting, end)?;
            waiting.forget(counted, self.least_round());
        }
        self.waiting = waiting;
        self.spill_full()
    }

    fn least_round(&self) -> usize {
        let part = self.limit.as_ref().map_or(PART, |l| (l.bytes / 32).clamp(LEAST_PART, PART));
        part * self.tables.len()
    }

    /// Counts the text up to `end`; returns where it came to.
    fn count(&mut self, waiting: &Waiting, end: usize) -> Result<usize, CountingError> {
        let threads = self.tables.len().min(end / LEAST_PART).max(1);
        let parts = self.parts(waiting, end, threads);
        let cutter = self.cutter;
        let Cutter::Raw(splitter) = cutter else {
            let tables = self.tables.par_iter_mut().zip(&parts);
            tables.try_for_each(|(table, part)| documents(cutter, table, waiting, part))?;
            return Ok(end);
        };
        let worker = Worker { splitter };
        let counted: Vec<Counted> = self
            .tables
            .par_iter_mut()
            .zip(&parts)
            .map(|(table, part)| worker.count(table, waiting, part))
            .collect::<Result<_, _>>()?;
        let mut at = 0;
        for (k, (part, counted)) in parts.iter().zip(&counted).enumerate() {
            at = match counted.head {
                None => counted.end,
                Some(_) => worker.join(&mut self.tables[k], waiting, at, part, counted),
            };
        }
        Ok(at)
    }

    /// Cuts the text up to `end` into one part for each thread: between documents, or within one.
    fn parts(&self, waiting: &Waiting, end: usize, threads: usize) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::with_capacity(threads);
        let mut start = 0;
        let mut is_cut = false;
        for i in 1..=threads {
            let wish = (end as u64 * i as u64 / threads as u64) as usize;
            let (at, cuts) = if i == threads { (end, false) } else { self.cut(waiting, wish, end) };
            if at > start || (i == threads && parts.is_empty()) {
                parts.push(Part { start, end: at, is_cut });
                (start, is_cut) = (at, cuts);
            }
        }
        parts
    }

    /// A place to cut near `wish`, and whether it is within a document.
    fn cut(&self, waiting: &Waiting, wish: usize, end: usize) -> (usize, bool) {
        let next = waiting.ends.partition_point(|&document| document < wish);
        let document_end = waiting.ends.get(next).copied().unwrap_or(end);
        let document = if next == 0 { 0 } else { waiting.ends[next - 1] };
        if self.cutter.unsettled().is_none() || document_end - wish < LEAST_PART {
            return (document_end, false);
        }
        if wish - document < LEAST_PART {
            return (document, false);
        }
        // Behind a line end pieces begin most often.
        let from = document.max(wish - LEAST_PART);
        let line = memchr::memrchr(b'\n', &waiting.text.as_bytes()[from..wish]);
        let at = line.map_or_else(|| floor_char_boundary(&waiting.text, wish), |at| from + at + 1);
        (at, at > document)
    }

    fn spill_full(&mut self) -> Result<(), CountingError> {
        let Some(limit) = &mut self.limit else { return Ok(()) };
        let more = self.waiting.enough / self.tables.len();
        for table in &mut self.tables {
            if table.bytes_after(more) > limit.bytes && !table.is_empty() {
                spill(table, self.waiting.base + self.waiting.text.len() as u64, limit.runs)?;
            }
        }
        Ok(())
    }
}

impl Waiting {
    /// Forgets what was counted, and says how much is wanted before the next round: so much that
    /// text which stays is not looked at again and again.
    fn forget(&mut self, counted: usize, round: usize) {
        self.text.drain(..counted);
        self.ends.retain(|&end| end > counted);
        for end in &mut self.ends {
            *end -= counted;
        }
        self.base += counted as u64;
        self.enough = round.max(2 * self.text.len());
    }
}

/// What a thread counts in a round.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    /// Whether it begins within a document, where perhaps no piece begins.
    is_cut: bool,
}

/// What a thread counted of its part.
struct Counted {
    /// Behind the last piece that it counted, or can count.
    end: usize,
    /// Of a part that begins within a document: its first pieces, which it did not count.
    head: Option<Vec<Span>>,
}

/// Counts text as it stands.
struct Worker<'a> {
    splitter: &'a dyn Split,
}

impl Worker<'_> {
    fn count(
        &self,
        table: &mut CountTable,
        waiting: &Waiting,
        part: &Part,
    ) -> Result<Counted, CountingError> {
        let mut counted = Counted { end: part.start, head: part.is_cut.then(Vec::new) };
        let first = waiting.ends.partition_point(|&end| end <= part.start);
        let ends = waiting.ends[first..].iter().take_while(|&&end| end <= part.end);
        let stretches = ends.map(|&end| (end, true)).chain([(part.end, false)]);
        let mut start = part.start;
        for (end, is_whole) in stretches {
            if end == start {
                continue;
            }
            let mut head = if start == part.start { counted.head.take() } else { None };
            counted.end = self.pieces(waiting, start..end, is_whole, |spans| {
                if let Some(head) = &mut head
                    && head.is_empty()
                {
                    head.extend_from_slice(spans);
                } else {
                    table.add_spans(waiting.text.as_bytes(), spans, waiting.base);
                }
            })?;
            if start == part.start {
                counted.head = head;
            }
            if is_whole {
                counted.end = end;
            }
            start = end;
        }
        Ok(counted)
    }

    /// Calls `each` with the pieces of a stretch that begins where a piece does; of one that goes
    /// on without those that may change. Returns where the last of them ends.
    fn pieces(
        &self,
        waiting: &Waiting,
        stretch: std::ops::Range<usize>,
        is_whole: bool,
        mut each: impl FnMut(&[Span]),
    ) -> Result<usize, CountingError> {
        let hold_back = if is_whole { 0 } else { self.splitter.unsettled().unwrap_or(0) };
        let offset = stretch.start;
        let (mut end, mut longest) = (offset, 0);
        let mut held: Vec<Span> = Vec::new();
        let mut give = |spans: &[Span]| {
            if let Some(last) = spans.last() {
                end = last.end;
                longest = spans.iter().map(|span| span.len()).fold(longest, usize::max);
                each(spans);
            }
        };
        self.splitter.split_batches(&waiting.text[stretch], &mut |batch| {
            held.extend(batch.iter().map(|s| Span::new(s.start + offset, s.end + offset)));
            let settled = held.len().saturating_sub(hold_back);
            give(&held[..settled]);
            held.drain(..settled);
        });
        match u32::try_from(longest) {
            Ok(_) => Ok(end),
            Err(_) => Err(CountingError::TooLong(longest)),
        }
    }

    /// Joins a part to the one before, all of whose pieces up to `at` are counted: from there finds
    /// the true pieces, until one ends where a piece of the part ends. What lies behind a piece
    /// splits as it does alone, so from there on the part is right. Returns where the part ends.
    fn join(
        &self,
        table: &mut CountTable,
        waiting: &Waiting,
        at: usize,
        part: &Part,
        counted: &Counted,
    ) -> usize {
        let head = counted.head.as_deref().unwrap_or_default();
        let text = waiting.text.as_bytes();
        let document_end = self.document_end(waiting, part.start);
        let (mut at, mut window) = (at, 1 << 10);
        let mut next = head.partition_point(|span| span.end < at);
        let meets = |at: usize, next: usize| {
            at == part.start || head.get(next).is_some_and(|span| span.end == at)
        };
        let mut met = meets(at, next);
        while !met && at < document_end && (next < head.len() || at < part.start) {
            let end = floor_char_boundary(&waiting.text, (at + window).min(document_end));
            let is_whole = end == document_end && waiting.ends.binary_search(&end).is_ok();
            let from = at;
            let found = self.pieces(waiting, at..end, is_whole, |spans| {
                for span in spans {
                    if met {
                        return;
                    }
                    table.add_spans(text, &[*span], waiting.base);
                    at = span.end;
                    while next < head.len() && head[next].end < at {
                        next += 1;
                    }
                    met = meets(at, next);
                }
            });
            found.expect("the part's own pieces were no longer than allowed");
            if end == document_end {
                break;
            }
            if at == from {
                window *= 2; // Not even one piece was certain.
            }
        }
        if !met {
            return self.recount(table, waiting, at, part, counted);
        }
        let rest = head.partition_point(|span| span.end <= at);
        table.add_spans(text, &head[rest..], waiting.base);
        counted.end.max(at)
    }

    /// The part never met the true pieces, which are counted up to `at`: takes back what it counted
    /// and counts what is true.
    #[cold]
    fn recount(
        &self,
        table: &mut CountTable,
        waiting: &Waiting,
        at: usize,
        part: &Part,
        counted: &Counted,
    ) -> usize {
        let text = waiting.text.as_bytes();
        let end = self.document_end(waiting, part.start).min(part.end);
        let is_whole = waiting.ends.binary_search(&end).is_ok();
        let mut skip = counted.head.as_ref().map_or(0, Vec::len);
        let known = "it was found before";
        self.pieces(waiting, part.start..end, is_whole, |spans| {
            for span in spans {
                if skip > 0 {
                    skip -= 1;
                } else {
                    table.remove(&text[span.range()]);
                }
            }
        })
        .expect(known);
        let found = self
            .pieces(waiting, at..end.max(at), is_whole, |spans| {
                table.add_spans(text, spans, waiting.base);
            })
            .expect(known);
        // What follows the document in this part is right.
        if is_whole { counted.end.max(end) } else { found }
    }

    fn document_end(&self, waiting: &Waiting, at: usize) -> usize {
        let next = waiting.ends.partition_point(|&end| end <= at);
        waiting.ends.get(next).copied().unwrap_or(waiting.text.len())
    }
}

/// Counts the documents of a part, each as a whole.
fn documents(
    cutter: Cutter<'_>,
    table: &mut CountTable,
    waiting: &Waiting,
    part: &Part,
) -> Result<(), CountingError> {
    let mut pipeline = match cutter {
        Cutter::Pipeline(tokenizer) => Some(tokenizer.session_for_pieces()),
        Cutter::Raw(_) | Cutter::Normalized(..) => None,
    };
    let first = waiting.ends.partition_point(|&end| end <= part.start);
    let mut start = part.start;
    for &end in waiting.ends[first..].iter().take_while(|&&end| end <= part.end) {
        let (text, base) = (&waiting.text[start..end], waiting.base + start as u64);
        let mut sink = CountingSink { table, base, too_long: None };
        match (cutter, &mut pipeline) {
            (Cutter::Normalized(normalizer, splitter), None) => {
                let mut edits = Vec::new();
                let text = normalizer.normalize_with_edits(text, &mut edits);
                let alignment = Alignment::new(edits);
                let source = Source { base: 0, alignment: &alignment, start: 0 };
                splitter.split_batches(&text, &mut |pieces| {
                    sink.add(&Prepared { text: &text, pieces, source });
                });
            }
            (_, Some(session)) => session.pieces_into(text, &mut sink),
            (Cutter::Pipeline(_) | Cutter::Raw(_), None) => {}
        }
        if let Some(len) = sink.too_long {
            return Err(CountingError::TooLong(len));
        }
        start = end;
    }
    Ok(())
}

/// Counts the pieces of one document.
struct CountingSink<'c> {
    table: &'c mut CountTable,
    /// Where the document is in the corpus.
    base: u64,
    /// The length of a piece that is too long to be counted.
    too_long: Option<usize>,
}

impl CountingSink<'_> {
    fn add(&mut self, prepared: &Prepared<'_>) {
        let &Prepared { text, pieces, source } = prepared;
        if let Some(long) = pieces.iter().find(|piece| u32::try_from(piece.len()).is_err()) {
            self.too_long = Some(long.len());
            return;
        }
        if source.alignment.is_identity() {
            let base = self.base + (source.base + source.start) as u64;
            return self.table.add_spans(text.as_bytes(), pieces, base);
        }
        for piece in pieces {
            let start = source.original(Span::new(piece.start, piece.start + 1)).start;
            self.table.add(text[piece.range()].as_bytes(), self.base + start as u64);
        }
    }
}

impl Sink for CountingSink<'_> {
    const WANTS_ALIGNMENT: bool = true;

    fn token(&mut self, _id: TokenId, _span: Span) {}

    fn text(&mut self, prepared: &Prepared<'_>, _encoder: &mut dyn Encode) {
        self.add(prepared);
    }
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn spill(table: &mut CountTable, extent: u64, runs: &mut dyn Spill) -> Result<(), CountingError> {
    let sorted = table.take_sorted();
    runs.run(&Run { sorted: &sorted, extent }).map_err(CountingError::Spill)
}

/// All tables as one. There are as many as threads: each step looks at the first piece of each.
fn merged(tables: &[Sorted], extent: u64) -> Result<PieceCounts, CountingError> {
    let mut next = vec![0; tables.len()];
    let mut counts = PieceCounts::default();
    loop {
        let mut least: Option<usize> = None;
        let mut equal: u64 = 0; // Later tables with the same piece; 64 of them at a time.
        for k in (0..tables.len()).filter(|&k| next[k] < tables[k].len()) {
            let order = least.map(|l| tables[k].compare(next[k], &tables[l], next[l]));
            match order {
                None | Some(std::cmp::Ordering::Less) => (least, equal) = (Some(k), 0),
                Some(std::cmp::Ordering::Equal) if k < 64 => equal |= 1 << k,
                _ => {}
            }
        }
        let Some(least) = least else { break };
        let (mut bytes, mut others) = ([0; 16], [0; 16]);
        let mut piece = tables[least].get(next[least], &mut bytes);
        for k in least + 1..tables.len() {
            let is_equal = match k {
                0..64 => equal & 1 << k != 0,
                _ => {
                    next[k] < tables[k].len()
                        && tables[k].compare(next[k], &tables[least], next[least]).is_eq()
                }
            };
            if is_equal {
                let other = tables[k].get(next[k], &mut others);
                piece.count += other.count;
                piece.first_seen = piece.first_seen.min(other.first_seen);
                next[k] += 1;
            }
        }
        counts.push_sorted(piece).map_err(CountingError::Count)?;
        next[least] += 1;
    }
    counts.extend_to(extent);
    Ok(counts)
}

/// Why text could not be counted.
#[derive(Debug)]
#[non_exhaustive]
pub enum CountingError {
    /// A piece has so many bytes: 4 GiB or more.
    TooLong(usize),
    /// A document has more than so many bytes, the most that a [limit](CorpusCounter::with_limit) leaves
    /// for one that cannot be cut.
    TooLongDocument(usize),
    /// Counts or positions pass 64 bits.
    Count(CountError),
    /// A run could not be written.
    Spill(io::Error),
}

impl fmt::Display for CountingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(len) => {
                write!(f, "a piece has {len} bytes, but at most 4294967295 can be counted")
            }
            Self::TooLongDocument(most) => write!(
                f,
                "a document has more than {most} bytes, the most that the memory allows for one that \
                 must be normalized and split as a whole"
            ),
            Self::Count(_) => write!(f, "the text cannot be counted"),
            Self::Spill(_) => write!(f, "a run of sorted pieces cannot be written"),
        }
    }
}

impl std::error::Error for CountingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooLong(_) | Self::TooLongDocument(_) => None,
            Self::Count(error) => Some(error),
            Self::Spill(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::added::AddedToken;
    use crate::pipeline::PieceStep;

    /// The twin: one document after the other, on one thread.
    fn naive(splitter: &dyn Split, documents: &[String]) -> PieceCounts {
        let mut counter = PieceCounts::counter();
        let mut base = 0;
        for document in documents {
            for span in splitter.split(document) {
                let piece = document[span.range()].as_bytes();
                counter.add(piece, 1, base + span.start as u64).unwrap();
            }
            base += document.len() as u64;
            counter.extend_to(base);
        }
        counter.finish()
    }

    /// A counter that cuts text as small as it can, on so many threads.
    fn counted(
        splitter: &dyn Split,
        documents: &[String],
        threads: usize,
        portion: usize,
    ) -> PieceCounts {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut counter = CorpusCounter::new(None, splitter);
            counter.waiting.enough = threads * LEAST_PART;
            for document in documents {
                let mut rest = &document[..];
                while !rest.is_empty() {
                    let end = floor_char_boundary(rest, portion.max(4));
                    counter.push(&rest[..end]).unwrap();
                    counter.waiting.enough =
                        (threads * LEAST_PART).max(counter.waiting.text.len() + 4);
                    rest = &rest[end..];
                }
                counter.end_document().unwrap();
            }
            counter.finish().unwrap()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_portions_on_any_threads_count_the_same(
            kinds in prop::collection::vec((0usize..7, 1usize..150_000), 1..6),
            name in prop::sample::select(vec!["gpt2", "cl100k", "o200k", "whitespace", "bert", "none"]),
            threads in 1usize..6,
            portion in 1usize..200_000,
        ) {
            let splitter = pretok::from_spec(name).unwrap();
            // Words; digits and spaces, of which pieces meet late or never; lines; characters.
            let units = [
                "the cat's ", "0123456789", "      \t", "\r\n\n a", "日本語", "aaaaaaaaaa", "x=1;\n",
            ];
            let documents: Vec<String> = kinds
                .chunks(2)
                .map(|kinds| {
                    let text = kinds.iter().map(|&(kind, len)| {
                        units[kind].repeat(len / units[kind].len() + 1)
                    });
                    text.collect()
                })
                .collect();
            let expected = naive(&splitter, &documents);
            prop_assert_eq!(counted(&splitter, &documents, threads, portion), expected);
        }
    }

    #[test]
    fn a_run_of_digits_that_is_cut_within_a_group_is_counted_again() {
        let splitter = pretok::from_spec("cl100k").unwrap();
        // Groups of three from the first digit: the second part begins within one and its groups
        // never meet the true ones.
        for ahead in 0..3 {
            let text = format!("{}{}", "x".repeat(ahead), "1234567".repeat(40_000));
            let documents = [text];
            let expected = naive(&splitter, &documents);
            for threads in [2, 3, 4] {
                assert_eq!(counted(&splitter, &documents, threads, usize::MAX), expected);
            }
        }
    }

    #[test]
    fn documents_are_counted_alone_where_text_is_normalized() {
        let splitter = pretok::from_spec("whitespace").unwrap();
        let mut counter = CorpusCounter::new(Some(&normalize::Lowercase), &splitter);
        counter.add(&["İstanbul İs", "IS is"]).unwrap();
        let counts = counter.finish().unwrap();
        let is = counts.get(b"is").unwrap();
        assert_eq!((is.count, is.first_seen), (2, 13));
        assert_eq!(counts.extent(), 18);
    }

    #[test]
    fn a_tokenizer_counts_what_its_parts_do() {
        let whitespace = || pretok::from_spec("whitespace").unwrap();
        let documents = ["Hug  PUG", "", "hug <x>\u{130}pug", "<x>"];
        let mut parts = Tokenizer::bytes().into_parts();
        parts.normalizer = Some(Box::new(normalize::Lowercase));
        parts.steps = vec![PieceStep::Split(Box::new(whitespace()))];
        let tokenizer = parts.build().unwrap();
        let (splitter, normalizer) = (whitespace(), normalize::Lowercase);
        let count = |mut counter: CorpusCounter<'_>| {
            counter.add(&documents).unwrap();
            counter.finish().unwrap()
        };
        let expected = count(CorpusCounter::new(Some(&normalizer), &splitter));
        assert_eq!(count(CorpusCounter::of(&tokenizer)), expected);
        // A token that is matched in the text is no piece, and nothing reaches over it.
        let mut parts = tokenizer.into_parts();
        parts.added_tokens = vec![AddedToken {
            content: "<x>".to_owned(),
            id: TokenId(256),
            special: false,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
        }];
        let counts = count(CorpusCounter::of(&parts.build().unwrap()));
        let pieces: Vec<_> = counts.iter().map(|p| (p.piece, p.count, p.first_seen)).collect();
        let pug: &[u8] = "i\u{307}pug".as_bytes();
        assert_eq!(pieces, [(&b"hug"[..], 2, 0), (pug, 1, 15), (b"pug", 1, 5)]);
    }

    #[test]
    fn a_document_that_cannot_be_cut_must_fit_the_limit() {
        struct Nowhere;
        impl Spill for Nowhere {
            fn run(&mut self, _: &Run<'_>) -> io::Result<()> {
                Ok(())
            }
        }
        let splitter = pretok::from_spec("whitespace").unwrap();
        let text = "Some words. ".repeat(1 << 18);
        let mut nowhere = Nowhere;
        let counter = CorpusCounter::new(Some(&normalize::Lowercase), &splitter);
        let mut counter = counter.with_limit(16 << 20, &mut nowhere);
        let error = counter.push(&text).unwrap_err();
        assert!(
            matches!(error, CountingError::TooLongDocument(most) if most <= 1 << 20),
            "{error}"
        );
        // As many documents, or without what must see all of it, it fits.
        let counter = CorpusCounter::new(Some(&normalize::Lowercase), &splitter);
        let mut counter = counter.with_limit(16 << 20, &mut nowhere);
        text.as_bytes().chunks(12 << 10).for_each(|part| {
            counter.add(&[std::str::from_utf8(part).unwrap()]).unwrap();
        });
        let mut counter = CorpusCounter::new(None, &splitter).with_limit(16 << 20, &mut nowhere);
        counter.push(&text).unwrap();
    }

    #[test]
    fn runs_hold_what_a_table_would() {
        struct Runs(Vec<PieceCounts>);
        impl Spill for Runs {
            fn run(&mut self, run: &Run<'_>) -> io::Result<()> {
                let mut counts = PieceCounts::default();
                run.try_for_each(|piece| counts.push_sorted(piece).map_err(io::Error::other))?;
                counts.extend_to(run.extent());
                self.0.push(counts);
                Ok(())
            }
        }
        let splitter = pretok::from_spec("gpt2").unwrap();
        let documents: Vec<String> =
            (0..40_000).map(|i| format!("word{} {}\n", i * 7919 % 30_011, i % 100)).collect();
        let mut runs = Runs(Vec::new());
        let mut counter = CorpusCounter::new(None, &splitter).with_limit(1 << 20, &mut runs);
        counter.add(&documents).unwrap();
        let extent = counter.finish_runs().unwrap();
        assert!(runs.0.len() > 2, "{} runs", runs.0.len());
        let mut merged = PieceCounts::default();
        for run in &runs.0 {
            merged.merge(run).unwrap();
        }
        merged.extend_to(extent);
        assert_eq!(merged, naive(&splitter, &documents));
    }
}
