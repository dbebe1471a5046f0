//! How sessions work, as opposed to what they find.

use crate::batch::Batch;
use crate::lane::LaneSession;
use crate::pipeline::{Session, Tokenizer};

/// How a [`Session`] works. Whatever it says, the ids are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionOptions {
    /// In about how many bytes a session remembers pieces of text and their tokens, at most; it begins
    /// with a few KB and grows with what it meets. 4 MB by default.
    ///
    /// More makes text faster that comes again, or has more different pieces than are remembered. With
    /// 4, 16 and 64 MB a session of `cl100k_base` that met 10 MB of text encodes it again, into a
    /// vector that is reused, at 505, 632 and 634 MB/s if it is English, 267, 474 and 505 if it is
    /// code, and 115, 196 and 216 if it is of 30 languages. Text that is new becomes up to a quarter
    /// slower, since the greater tables are first filled. (2026-11-30, one core of a busy machine.)
    pub memory: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { memory: 4 << 20 }
    }
}

impl SessionOptions {
    /// As little or as much memory as is usual: see the fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Remembering pieces in about so many bytes.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }
}

impl Tokenizer {
    /// The scratch memory for encoding; keep one per thread.
    #[must_use]
    pub fn session(&self) -> Session<'_> {
        self.session_with(&SessionOptions::default())
    }

    /// As [`session`](Self::session), with options.
    ///
    /// ```
    /// use tokenizer::{SessionOptions, TiktokenEncoding, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::from_encoding(TiktokenEncoding::R50kBase);
    /// let mut session = tokenizer.session_with(&SessionOptions::new().memory(64 << 20));
    /// let mut ids = Vec::new();
    /// session.ids_into("hello world", &mut ids);
    /// assert_eq!(ids, tokenizer.ids("hello world"));
    /// ```
    #[must_use]
    pub fn session_with(&self, options: &SessionOptions) -> Session<'_> {
        let lane = self.lane().map(|lane| LaneSession::new(lane, &self.parts, options.memory));
        Session::new(self, self.parts.model.encoder_within(options.memory), lane)
    }

    /// Sessions for many calls that encode in parallel.
    #[must_use]
    pub fn batch(&self) -> Batch<'_> {
        self.batch_with(&SessionOptions::default())
    }

    /// As [`batch`](Self::batch), with options for each of the sessions.
    #[must_use]
    pub fn batch_with(&self, options: &SessionOptions) -> Batch<'_> {
        Batch::new(self, *options)
    }

    /// Builds the tables that all sessions share and that the first session to meet some thousand new
    /// pieces would build. Changes no ids; once is enough, and a second call does nothing.
    ///
    /// For servers, which would rather wait before the first request than in it, and for programs that
    /// are going to encode much; a program that encodes a short text is done earlier without. It takes
    /// about 10 ms for `cl100k_base`, in proportion to the vocabulary; what is neither byte-level BPE nor has
    /// a [lane](Self::has_lane) has nothing to prepare.
    ///
    /// ```
    /// use tokenizer::{TiktokenEncoding, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::from_encoding(TiktokenEncoding::R50kBase);
    /// let ids = tokenizer.ids("an unprepared sentence");
    /// tokenizer.prepare();
    /// assert_eq!(tokenizer.ids("an unprepared sentence"), ids);
    /// ```
    pub fn prepare(&self) {
        self.parts.model.prepare();
        if let Some(lane) = self.lane() {
            lane.known(&self.parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::TiktokenEncoding;

    #[test]
    fn neither_memory_nor_preparation_changes_ids() {
        let text: String =
            (0..6000).map(|i| format!(" w{} \u{4E2D}{i} longer_names_{i}", i * i)).collect();
        let expected = Tokenizer::from_encoding(TiktokenEncoding::Cl100kBase).ids(&text);
        let prepared = Tokenizer::from_encoding(TiktokenEncoding::Cl100kBase);
        prepared.prepare();
        for memory in [0, 1 << 10, 1 << 16, 4 << 20, 16 << 20, usize::MAX] {
            let options = SessionOptions::new().memory(memory);
            let mut session = prepared.session_with(&options);
            for _ in 0..2 {
                let mut ids = Vec::new();
                session.ids_into(&text, &mut ids);
                assert_eq!(ids, expected, "{memory}");
            }
            assert_eq!(prepared.batch_with(&options).ids_of_one(&text), expected, "{memory}");
        }
    }
}
