use alloc::vec::Vec;

use crate::Span;

/// One change that a normalizer made: `source` of the original text became `target` of the
/// normalized text. An empty source is an insertion, an empty target a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edit {
    /// The bytes of the original text.
    pub source: Span,
    /// The bytes of the normalized text.
    pub target: Span,
}

/// Maps spans of a normalized text back to the original text.
///
/// Inside an edit every byte of the target stands for the whole source; outside of edits bytes map
/// one to one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alignment {
    edits: Vec<Edit>,
}

impl Alignment {
    /// The alignment that these edits describe; sorted and disjoint, as
    /// [`Normalize::normalize_with_edits`](crate::Normalize::normalize_with_edits) gives them.
    #[must_use]
    pub fn new(edits: Vec<Edit>) -> Self {
        debug_assert!(
            edits.windows(2).all(|w| {
                w[0].source.end <= w[1].source.start && w[0].target.end <= w[1].target.start
            }),
            "edits must be sorted and disjoint"
        );
        Self { edits }
    }

    /// Whether nothing was changed.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.edits.is_empty()
    }

    /// The edits, in order.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// The bytes of the original text that `target` stands for. `O(log n)` for n edits.
    #[must_use]
    pub fn to_source(&self, target: Span) -> Span {
        let start = self.source_of(target.start).start;
        if target.is_empty() {
            return Span::new(start, start);
        }
        let end = self.source_of(target.end - 1).end;
        Span::new(start, end.max(start))
    }

    /// The source bytes of the target byte at `at`: its edit's source, or that one byte.
    fn source_of(&self, at: usize) -> Span {
        let after = self.edits.partition_point(|edit| edit.target.start <= at);
        // Several edits may begin at `at` when all but the last are deletions (empty target).
        if let Some(edit) = self.edits[..after].last() {
            if edit.target.end > at {
                return edit.source;
            }
            let start = edit.source.end + (at - edit.target.end);
            return Span::new(start, start + 1);
        }
        Span::new(at, at + 1)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn edit(s: usize, e: usize, t: usize, u: usize) -> Edit {
        Edit { source: Span::new(s, e), target: Span::new(t, u) }
    }

    #[test]
    fn maps_replacements_insertions_and_deletions() {
        // "aéb" -> "a" "e◌́" "b": é is 2 bytes, its decomposition 3.
        let alignment = Alignment::new(vec![edit(1, 3, 1, 4)]);
        assert_eq!(alignment.to_source(Span::new(0, 1)), Span::new(0, 1));
        assert_eq!(alignment.to_source(Span::new(1, 2)), Span::new(1, 3));
        assert_eq!(alignment.to_source(Span::new(2, 4)), Span::new(1, 3));
        assert_eq!(alignment.to_source(Span::new(4, 5)), Span::new(3, 4));
        assert_eq!(alignment.to_source(Span::new(0, 5)), Span::new(0, 4));
        // "abc" -> "ac"
        let alignment = Alignment::new(vec![edit(1, 2, 1, 1)]);
        assert_eq!(alignment.to_source(Span::new(1, 2)), Span::new(2, 3));
        assert_eq!(alignment.to_source(Span::new(0, 1)), Span::new(0, 1));
        // "a" -> "xa"
        let alignment = Alignment::new(vec![edit(0, 0, 0, 1)]);
        assert_eq!(alignment.to_source(Span::new(0, 1)), Span::new(0, 0));
        assert_eq!(alignment.to_source(Span::new(1, 2)), Span::new(0, 1));
    }
}
