use alloc::boxed::Box;
use alloc::vec::Vec;

use tokenizer_core::TokenId;

/// Finds the longest of a set of strings that a text begins with.
///
/// A sorted list, narrowed byte by byte: `O(l log n)` for n strings of up to l bytes, and one
/// table look-up for texts whose first byte begins none.
#[derive(Clone, Default)]
pub(crate) struct Frozen {
    sorted: Vec<(Box<[u8]>, TokenId)>,
    /// The range of `sorted` for each first byte; empty when there are no strings.
    by_first: Vec<(u32, u32)>,
}

impl Frozen {
    pub(crate) fn new<'s>(strings: impl Iterator<Item = (&'s [u8], TokenId)>) -> Self {
        let mut sorted: Vec<(Box<[u8]>, TokenId)> =
            strings.filter(|(s, _)| !s.is_empty()).map(|(s, id)| (s.into(), id)).collect();
        sorted.sort();
        if sorted.is_empty() {
            return Self::default();
        }
        let start =
            |first: usize| sorted.partition_point(|(s, _)| usize::from(s[0]) < first) as u32;
        let by_first = (0..256).map(|first| (start(first), start(first + 1))).collect();
        Self { sorted, by_first }
    }

    #[inline]
    pub(crate) fn longest_prefix(&self, text: &[u8]) -> Option<(TokenId, usize)> {
        let &(start, end) = self.by_first.get(usize::from(*text.first()?))?;
        if start == end {
            return None;
        }
        let mut range = &self.sorted[start as usize..end as usize];
        let mut longest = None;
        // All of `range` agree with the text in the first `depth` bytes.
        for depth in 1.. {
            match range.first() {
                Some((string, id)) if string.len() == depth => {
                    longest = Some((*id, depth));
                    range = &range[1..];
                }
                _ => {}
            }
            let Some(&byte) = text.get(depth) else { break };
            let low = range.partition_point(|(s, _)| s[depth] < byte);
            let high = range.partition_point(|(s, _)| s[depth] <= byte);
            range = &range[low..high];
            if range.is_empty() {
                break;
            }
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_match_wins() {
        let strings = ["ab", "abcd", "b", "abc"];
        let frozen =
            Frozen::new(strings.iter().zip(0..).map(|(s, id)| (s.as_bytes(), TokenId(id))));
        let find = |text: &str| frozen.longest_prefix(text.as_bytes());
        assert_eq!(find("abcx"), Some((TokenId(3), 3)));
        assert_eq!(find("abcd"), Some((TokenId(1), 4)));
        assert_eq!(find("abx"), Some((TokenId(0), 2)));
        assert_eq!(find("ab"), Some((TokenId(0), 2)));
        assert_eq!(find("a"), None);
        assert_eq!(find("bab"), Some((TokenId(2), 1)));
        assert_eq!(find("c"), None);
        assert_eq!(find(""), None);
        assert_eq!(Frozen::default().longest_prefix(b"a"), None);
    }
}
