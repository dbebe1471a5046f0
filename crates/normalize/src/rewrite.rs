//! The text that a normalizer writes, next to what it reads.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use tokenizer_core::{Edit, Span};

/// Reads a text from its start to its end and writes what becomes of it. Nothing is copied before
/// the first change; edits are recorded only where they are asked for.
///
/// Every character that is written stands for one character that was read, as in Hugging Face's
/// `NormalizedString`; this is what makes the edits of several normalizers composable.
pub(crate) struct Rewriter<'t, 'e> {
    text: &'t str,
    /// How far the text is read.
    at: usize,
    /// What was written, unless it equals what was read.
    out: Option<String>,
    edits: Option<&'e mut Vec<Edit>>,
    /// How many edits were there before ours.
    foreign: usize,
}

impl<'t, 'e> Rewriter<'t, 'e> {
    pub(crate) fn new(text: &'t str, edits: Option<&'e mut Vec<Edit>>) -> Self {
        let foreign = edits.as_ref().map_or(0, |edits| edits.len());
        Self { text, at: 0, out: None, edits, foreign }
    }

    /// How far the text is read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The next `len` bytes stay as they are.
    #[inline]
    pub(crate) fn keep(&mut self, len: usize) {
        if let Some(out) = &mut self.out {
            out.push_str(&self.text[self.at..self.at + len]);
        }
        self.at += len;
    }

    /// The next `len` bytes, which are one character, become `target`.
    #[inline]
    pub(crate) fn replace(&mut self, len: usize, target: &str) {
        let source = Span::new(self.at, self.at + len);
        if &self.text[source.range()] == target {
            return self.keep(len);
        }
        let written = self.write(target);
        self.record(source, written);
        self.at = source.end;
    }

    /// The next `len` bytes are left out.
    #[inline]
    pub(crate) fn delete(&mut self, len: usize) {
        if len > 0 {
            self.replace(len, "");
        }
    }

    /// Writes `target`, which stands for the character read last; at the start of the text, for
    /// the empty span there.
    pub(crate) fn insert(&mut self, target: &str) {
        if target.is_empty() {
            return;
        }
        let last = self.text[..self.at].chars().next_back().map_or(0, char::len_utf8);
        let source = Span::new(self.at - last, self.at);
        let written = self.write(target);
        let Some(edits) = self.edits.as_deref_mut() else { return };
        let edit = match edits[self.foreign..].last().copied() {
            Some(edit) if edit.source.end == self.at && edit.target.end == written.start => {
                edits.pop();
                if edit.target.is_empty() && edit.source.start < source.start {
                    // Several characters were deleted; only the last of them comes back.
                    let deleted = Span::new(edit.source.start, source.start);
                    edits.push(Edit { source: deleted, ..edit });
                }
                let start = edit.target.start;
                Edit { source, target: Span::new(start, written.end) }
            }
            _ => Edit { source, target: Span::new(written.start - last, written.end) },
        };
        edits.push(edit);
    }

    /// Writes `c` as a change of Hugging Face's `transform`: 1 inserts it, 0 puts it in the place
    /// of the next character, -n puts it there and leaves out n more.
    pub(crate) fn push(&mut self, c: char, change: isize) {
        let mut buffer = [0; 4];
        let target: &str = c.encode_utf8(&mut buffer);
        let next = self.text[self.at..].chars().next();
        match next {
            Some(next) if change <= 0 => {
                self.replace(next.len_utf8(), target);
                let more = self.text[self.at..].chars().take(change.unsigned_abs());
                let more = more.map(char::len_utf8).sum();
                self.delete(more);
            }
            // Changes never read past the end; if they did, the character would still be written.
            _ => self.insert(target),
        }
    }

    /// The result; what is not read yet stays as it is.
    pub(crate) fn finish(mut self) -> Cow<'t, str> {
        self.keep(self.text.len() - self.at);
        match self.out {
            Some(out) => Cow::Owned(out),
            None => Cow::Borrowed(self.text),
        }
    }

    fn write(&mut self, target: &str) -> Span {
        let out = self.out.get_or_insert_with(|| {
            let mut out = String::with_capacity(self.text.len() + target.len());
            out.push_str(&self.text[..self.at]);
            out
        });
        let start = out.len();
        out.push_str(target);
        Span::new(start, out.len())
    }

    #[inline]
    fn record(&mut self, source: Span, target: Span) {
        let Some(edits) = self.edits.as_deref_mut() else { return };
        if let Some(last) = edits[self.foreign..].last_mut() {
            let deletions = last.target.is_empty() && target.is_empty();
            if deletions && last.source.end == source.start && last.target == target {
                last.source.end = source.end;
                return;
            }
        }
        edits.push(Edit { source, target });
    }
}

/// Implements [`Normalize`](tokenizer_core::Normalize) by a method
/// `rewrite(&self, text: &str, out: &mut Rewriter)`.
macro_rules! normalize_by_rewriting {
    ($($name:ty),* $(,)?) => {$(
        impl tokenizer_core::Normalize for $name {
            fn normalize<'t>(&self, text: &'t str) -> alloc::borrow::Cow<'t, str> {
                let mut out = $crate::rewrite::Rewriter::new(text, None);
                self.rewrite(text, &mut out);
                out.finish()
            }

            fn normalize_with_edits<'t>(
                &self,
                text: &'t str,
                edits: &mut alloc::vec::Vec<tokenizer_core::Edit>,
            ) -> alloc::borrow::Cow<'t, str> {
                let mut out = $crate::rewrite::Rewriter::new(text, Some(edits));
                self.rewrite(text, &mut out);
                out.finish()
            }

            fn as_any(&self) -> Option<&dyn core::any::Any> {
                Some(self)
            }
        }
    )*};
}
pub(crate) use normalize_by_rewriting;
