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

    /// The alignment of this normalization followed by another, whose source is our target.
    #[must_use]
    pub fn then(&self, next: &[Edit]) -> Self {
        Self::new(compose(&self.edits, next))
    }

    /// The bytes of the original text that `target` stands for: from where its first byte comes
    /// from to where its last byte comes from. `O(log n)` for n edits.
    ///
    /// A part of a character that no edit covers maps byte for byte, so the result may cut a
    /// character exactly when `target` does.
    #[must_use]
    pub fn to_source(&self, target: Span) -> Span {
        let start = self.source_of(target.start).start;
        if target.is_empty() {
            return Span::new(start, start);
        }
        let end = self.source_of(target.end - 1).end;
        Span::new(start, end.max(start))
    }

    /// The source bytes of the target byte at `at`.
    fn source_of(&self, at: usize) -> Span {
        source_of(&self.edits, at)
    }
}

/// The source bytes of the target byte at `at`: its edit's source, or that one byte.
fn source_of(edits: &[Edit], at: usize) -> Span {
    let after = edits.partition_point(|edit| edit.target.start <= at);
    // Several edits may begin at `at` when all but the last are deletions (empty target).
    if let Some(edit) = edits[..after].last() {
        if edit.target.end > at {
            return edit.source;
        }
        let start = edit.source.end + (at - edit.target.end);
        return Span::new(start, start + 1);
    }
    Span::new(at, at + 1)
}

/// The edits of `first` followed by `second`, whose source is the target of `first`.
///
/// Every byte of the last text stands for the union of what `first` says of the bytes that
/// `second` says it stands for. That is exact wherever the sources of different bytes are equal
/// or disjoint, which holds when every edit of `second` reads one character. Where sources would
/// overlap in part (an edit of `second` reads only a piece of what an edit of `first` wrote), the
/// bytes concerned all stand for the union, for edits are disjoint.
///
/// `O(n log n)` for n edits together.
///
/// ```
/// use tokenizer_core::{Edit, Span, compose};
///
/// // "é" -> "e◌́" -> "e"
/// let decompose = Edit { source: Span::new(0, 2), target: Span::new(0, 3) };
/// let strip = Edit { source: Span::new(1, 3), target: Span::new(1, 1) };
/// let both = Edit { source: Span::new(0, 2), target: Span::new(0, 1) };
/// assert_eq!(compose(&[decompose], &[strip]), [both]);
/// ```
#[must_use]
pub fn compose(first: &[Edit], second: &[Edit]) -> Vec<Edit> {
    if first.is_empty() {
        return second.to_vec();
    }
    let mut composed = Vec::with_capacity(first.len().max(second.len()));
    // What of `first` is not yet passed on, and how far the text between is dealt with.
    let (mut rest, mut middle) = (first, 0);
    // A position p of the middle text lies at p + target - source of the last text.
    let (mut source, mut target) = (0, 0);
    for edit in second {
        rest = unchanged_by_second(rest, middle, edit.source.start, source, target, &mut composed);
        let start = source_of(first, edit.source.start).start;
        let end = match edit.source.is_empty() {
            true => start,
            false => source_of(first, edit.source.end - 1).end,
        };
        push_merged(&mut composed, Span::new(start, end.max(start)), edit.target);
        let inside = |f: &Edit| f.target.end <= edit.source.end && f.target.start < edit.source.end;
        let passed = rest.iter().take_while(|f| inside(f)).count();
        rest = &rest[passed..];
        (middle, source, target) = (edit.source.end, edit.source.end, edit.target.end);
    }
    unchanged_by_second(rest, middle, usize::MAX, source, target, &mut composed);
    composed
}

/// Passes on the edits of `rest` as far as they wrote `middle..end`, which the second step leaves
/// unchanged, and returns those that reach further.
fn unchanged_by_second<'f>(
    mut rest: &'f [Edit],
    middle: usize,
    end: usize,
    source: usize,
    target: usize,
    composed: &mut Vec<Edit>,
) -> &'f [Edit] {
    while let [edit, others @ ..] = rest {
        let is_deletion_at_end = edit.target.start == end && edit.target.is_empty();
        if edit.target.start >= end && !is_deletion_at_end {
            break;
        }
        let part = Span::new(edit.target.start.max(middle), edit.target.end.min(end));
        let shifted = Span::new(part.start - source + target, part.end - source + target);
        push_merged(composed, edit.source, shifted);
        if edit.target.end > end {
            break;
        }
        rest = others;
    }
    rest
}

/// Appends an edit, or widens the last one when their sources overlap or are the same place. A
/// deletion, which no byte stands for, gives way instead.
fn push_merged(edits: &mut Vec<Edit>, mut source: Span, target: Span) {
    if let Some(last) = edits.last_mut() {
        if target.is_empty() && source.start < last.source.end {
            source.start = last.source.end;
            if source.start >= source.end {
                return;
            }
        } else if last.target.is_empty() && source.start < last.source.end {
            last.source.end = source.start.max(last.source.start);
            if last.source.is_empty() {
                edits.pop();
                return push_merged(edits, source, target);
            }
        }
    }
    if let Some(last) = edits.last_mut() {
        let same_place = last.source == source && last.target.end == target.start;
        if source.start < last.source.end || same_place {
            last.source.end = last.source.end.max(source.end);
            last.target.end = target.end;
            return;
        }
    }
    edits.push(Edit { source, target });
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::Rng;

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

    /// Random edits of a text of `len` bytes; with `unit`, each reads at most one byte.
    fn random_edits(rng: &mut Rng, len: usize, unit: bool) -> (Vec<Edit>, usize) {
        let (mut edits, mut source, mut target) = (Vec::new(), 0, 0);
        while source < len || (!unit && rng.below(4) == 0) {
            let keep = rng.below(3) as usize;
            let (start, at) = ((source + keep).min(len), target + keep.min(len - source));
            let most = if unit { 1 } else { 3 };
            let end = (start + rng.below(most + 1) as usize).min(len);
            let wrote = rng.below(4) as usize;
            (source, target) = (end, at);
            if start == end && (unit || wrote == 0) {
                source = (source + 1).min(len);
                target += source - end;
                continue;
            }
            target += wrote;
            edits.push(edit(start, end, at, target));
        }
        (edits, target + (len - source))
    }

    fn check_composition(first: &[Edit], second: &[Edit], len: usize, exact: bool) {
        let composed = compose(first, second);
        let both = Alignment::new(composed.clone());
        let expected: Vec<Span> = (0..len)
            .map(|at| {
                let middle = source_of(second, at);
                let start = source_of(first, middle.start).start;
                match middle.is_empty() {
                    true => Span::new(start, start),
                    false => Span::new(start, source_of(first, middle.end - 1).end.max(start)),
                }
            })
            .collect();
        let context = (first, second, &composed);
        for (at, want) in expected.iter().enumerate() {
            let got = both.source_of(at);
            if exact {
                assert_eq!(got, *want, "byte {at} of {context:?}");
            } else {
                assert!(got.start <= want.start && want.end <= got.end, "byte {at} of {context:?}");
            }
        }
        let disjoint = |w: &[Span]| {
            w[0] == w[1] || w[0].end <= w[1].start && !(w[0].is_empty() && w[1].is_empty())
        };
        if expected.windows(2).all(disjoint) {
            let got: Vec<Span> = (0..len).map(|at| both.source_of(at)).collect();
            assert_eq!(got, expected, "{context:?}");
        }
        for pair in composed.windows(2) {
            assert!(pair[0].source.end <= pair[1].source.start, "{context:?}");
            assert!(pair[0].target.end <= pair[1].target.start, "{context:?}");
            let gap = pair[1].source.start - pair[0].source.end;
            assert_eq!(gap, pair[1].target.start - pair[0].target.end, "{context:?}");
        }
    }

    #[test]
    fn composition_equals_mapping_each_byte_twice() {
        let mut rng = Rng::new(7);
        for round in 0..20_000 {
            let unit = round % 2 == 0;
            let (first, middle) = random_edits(&mut rng, round % 13, unit);
            let (second, len) = random_edits(&mut rng, middle, unit);
            check_composition(&first, &second, len, unit);
        }
    }

    #[test]
    fn composition_with_nothing_changes_nothing() {
        let edits = [edit(1, 3, 1, 4), edit(5, 5, 6, 7)];
        assert_eq!(compose(&edits, &[]), edits);
        assert_eq!(compose(&[], &edits), edits);
        assert_eq!(Alignment::new(edits.to_vec()).then(&[]).edits(), edits);
    }

    #[test]
    fn a_deletion_stays_beside_what_was_inserted() {
        // "ab" -> "b" -> "xb"
        let composed = compose(&[edit(0, 1, 0, 0)], &[edit(0, 0, 0, 1)]);
        assert_eq!(composed, [edit(0, 1, 0, 0), edit(1, 1, 0, 1)]);
    }
}
