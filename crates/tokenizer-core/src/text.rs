use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use crate::{Edit, Span};

/// Rewrites text before it is split: Unicode normalization, lower case, replaced characters.
pub trait Normalize: Send + Sync {
    /// The normalized text. Borrowed means unchanged.
    fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str>;

    /// The same text as [`normalize`](Self::normalize), and what was changed.
    ///
    /// Appends to `edits`, sorted and disjoint in source and target; between two edits the texts
    /// are equal byte for byte. Appends nothing when the text is unchanged.
    fn normalize_with_edits<'t>(&self, text: &'t str, edits: &mut Vec<Edit>) -> Cow<'t, str>;

    /// The normalizer itself, for callers that prove something of a type that they know; `None`
    /// for all others.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

impl<N: Normalize + ?Sized> Normalize for Box<N> {
    fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        (**self).normalize(text)
    }

    fn normalize_with_edits<'t>(&self, text: &'t str, edits: &mut Vec<Edit>) -> Cow<'t, str> {
        (**self).normalize_with_edits(text, edits)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        (**self).as_any()
    }
}

/// The most spans that [`Split::split_batches`] hands over at once: 4 KB of them stay in a
/// first-level cache with what their reader needs.
pub const MAX_BATCH: usize = 256;

/// Cuts text into pieces that are encoded independently.
pub trait Split: Send + Sync {
    /// Appends the spans of the pieces of `text`: sorted, disjoint, not empty, on character
    /// boundaries. What lies between spans is dropped (a splitter that removes white space);
    /// most splitters leave nothing between.
    ///
    /// `text` is a whole segment: anchors and look-around see its ends as the ends of the text.
    fn split_into(&self, text: &str, spans: &mut Vec<Span>);

    /// Calls `batch` with the spans that [`split_into`](Self::split_into) appends, in order: from
    /// 1 to [`MAX_BATCH`] of them at a time, as offsets into `text`; never for an empty text.
    ///
    /// A reader that takes each batch while it is warm needs no memory for the spans of a whole
    /// text, and neither do splitters that find pieces on the way. This one, which any splitter
    /// has, finds all of them first.
    fn split_batches(&self, text: &str, batch: &mut dyn FnMut(&[Span])) {
        self.split(text).chunks(MAX_BATCH).for_each(batch);
    }

    /// How many of the last pieces of a text can change when more text follows: with `Some(n)`, for
    /// all texts p and q, the pieces of p without its last n are the first pieces of pq, and the
    /// text behind any piece splits alone as it does behind it. `None` where no such number is
    /// known; a stream must then wait for the end of the text.
    fn unsettled(&self) -> Option<usize> {
        None
    }

    /// The splitter itself, for callers that prove something of a type that they know; `None` for
    /// all others.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// The spans of the pieces of `text`.
    fn split(&self, text: &str) -> Vec<Span> {
        let mut spans = Vec::new();
        self.split_into(text, &mut spans);
        spans
    }
}
