//! Seed pieces: the branching nodes of the suffix tree of all lines, byte by byte.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use hashbrown::HashMap;
use tokenizer_core::PieceRules;

use super::lattice::Scored;
use crate::math::ln;
use crate::train::error::{Kind, TrainError};

/// How many seeds there are at most, besides the characters.
const DEFAULT_SEEDS: usize = 1_000_000;

/// The characters by count, then the substrings that score best by count times length in
/// characters; among equals the longer one in bytes, then the lesser one.
///
/// The text is every line with a NUL behind it. What is followed by no two different bytes is no
/// candidate: two characters that share their first byte do not make one of what is in front of
/// them. A NUL that a candidate ends with is taken off, and its count added to the one without.
pub(super) fn seeds(
    lines: &[(Vec<u8>, u64)],
    rules: &PieceRules,
    seed_size: Option<usize>,
) -> Result<Scored, TrainError> {
    let mut seeds = Scored::default();
    for (c, count) in characters(lines) {
        seeds.push(String::from(c).into_bytes(), count as f32);
    }
    let text = text(lines)?;
    let mut found: Vec<(&[u8], f32)> = candidates(&text, rules)
        .into_iter()
        .map(|(piece, count)| (piece, count as f32 * chars(piece) as f32))
        .collect();
    found.sort_unstable_by(|a, b| {
        b.1.total_cmp(&a.1).then(b.0.len().cmp(&a.0.len())).then(a.0.cmp(b.0))
    });
    found.truncate(seed_size.unwrap_or(DEFAULT_SEEDS));
    for (piece, score) in found {
        seeds.push(piece.to_vec(), score);
    }
    let total = ln(seeds.scores.iter().map(|&score| f64::from(score)).sum());
    for score in &mut seeds.scores {
        *score = (ln(f64::from(*score)) - total) as f32;
    }
    Ok(seeds)
}

/// The characters that may be pieces, most frequent first, then by code point.
fn characters(lines: &[(Vec<u8>, u64)]) -> Vec<(char, u64)> {
    let mut counts: HashMap<char, u64> = HashMap::new();
    for (line, count) in lines {
        for c in String::from_utf8_lossy(line).chars() {
            if c != PieceRules::UNKNOWN && c != PieceRules::BOUNDARY {
                let sum = counts.entry(c).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }
    let mut counts: Vec<(char, u64)> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|&(c, count)| (core::cmp::Reverse(count), c));
    counts
}

/// Every line as often as it occurs, each with a NUL behind it.
fn text(lines: &[(Vec<u8>, u64)]) -> Result<Vec<u8>, TrainError> {
    let bytes = lines.iter().fold(0u64, |sum, (line, count)| {
        sum.saturating_add(count.saturating_mul(line.len() as u64 + 1))
    });
    if bytes > u64::from(u32::MAX) {
        return Err(TrainError::new(Kind::TooManyBytes { bytes }));
    }
    let mut text = Vec::with_capacity(bytes as usize);
    for (line, count) in lines {
        for _ in 0..*count {
            text.extend_from_slice(line);
            text.push(0);
        }
    }
    Ok(text)
}

/// What may be a piece, with its count. `O(n log n)` comparisons of as many bytes as a piece may
/// have.
fn candidates<'t>(text: &'t [u8], rules: &PieceRules) -> HashMap<&'t [u8], u64> {
    // Longer nodes are no pieces, so suffixes need no order beyond.
    let longest = 4 * rules.max_chars + 2;
    let suffix = |at: u32| {
        let at = at as usize;
        &text[at..text.len().min(at.saturating_add(longest))]
    };
    let mut suffixes: Vec<u32> = (0..text.len() as u32).collect();
    suffixes.sort_unstable_by(|&a, &b| suffix(a).cmp(suffix(b)));
    let mut found: HashMap<&[u8], u64> = HashMap::new();
    // Where the suffixes begin that share so many bytes.
    let mut open: Vec<(usize, usize)> = vec![(0, 0)];
    for i in 1..=suffixes.len() {
        let shared = match suffixes.get(i) {
            Some(&at) => {
                let (a, b) = (suffix(suffixes[i - 1]), suffix(at));
                a.iter().zip(b).take_while(|(a, b)| a == b).count()
            }
            None => 0,
        };
        let mut first = i - 1;
        while let Some((start, depth)) = open.pop_if(|&mut (_, depth)| depth > shared) {
            first = start;
            if let Some(piece) = piece(text, suffixes[start] as usize, depth, rules) {
                *found.entry(piece).or_default() += (i - start) as u64;
            }
        }
        if open.last().is_none_or(|&(_, depth)| depth < shared) {
            open.push((first, shared));
        }
    }
    found
}

/// The piece that a node spells, if it may be one.
fn piece<'t>(text: &'t [u8], at: usize, depth: usize, rules: &PieceRules) -> Option<&'t [u8]> {
    let is_inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    if depth < 2 || is_inside(at) || is_inside(at + depth) {
        return None;
    }
    let mut piece = &text[at..at + depth];
    while let [rest @ .., 0] = piece {
        piece = rest;
    }
    let is_allowed = |piece| rules.allow(piece);
    (chars(piece) > 1 && core::str::from_utf8(piece).is_ok_and(is_allowed)).then_some(piece)
}

fn chars(piece: &[u8]) -> usize {
    piece.iter().filter(|&byte| byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use alloc::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Every candidate with its count, by looking at every substring.
    fn naive(text: &[u8], rules: &PieceRules) -> BTreeMap<Vec<u8>, u64> {
        let mut followed: BTreeMap<&[u8], (u64, BTreeSet<Option<u8>>)> = BTreeMap::new();
        for start in 0..text.len() {
            for end in start + 1..=text.len() {
                let entry = followed.entry(&text[start..end]).or_default();
                entry.0 += 1;
                entry.1.insert(text.get(end).copied());
            }
        }
        let mut found = BTreeMap::new();
        for (node, (count, next)) in followed {
            let Ok(node) = core::str::from_utf8(node) else { continue };
            let piece = node.trim_end_matches('\0');
            if next.len() > 1 && piece.chars().count() > 1 && rules.allow(piece) {
                *found.entry(piece.as_bytes().to_vec()).or_default() += count;
            }
        }
        found
    }

    proptest! {
        #[test]
        fn seeds_are_the_branching_strings_of_bytes(
            words in prop::collection::vec(("(▁[abéè]{1,5}){1,3}", 1u64..4), 1..8),
            max_chars in 2usize..6,
        ) {
            let lines: Vec<(Vec<u8>, u64)> =
                words.into_iter().map(|(word, count)| (word.into_bytes(), count)).collect();
            let mut rules = PieceRules::default();
            rules.max_chars = max_chars;
            let text = text(&lines).unwrap();
            let found: BTreeMap<Vec<u8>, u64> = candidates(&text, &rules)
                .into_iter()
                .map(|(piece, count)| (piece.to_vec(), count))
                .collect();
            prop_assert_eq!(found, naive(&text, &rules));
        }
    }

    #[test]
    fn what_the_last_line_ends_with_counts_twice() {
        let count = |lines: &[&str]| {
            let lines: Vec<(Vec<u8>, u64)> =
                lines.iter().map(|line| (line.as_bytes().to_vec(), 1)).collect();
            candidates(&text(&lines).unwrap(), &PieceRules::default())[b"ab".as_slice()]
        };
        assert_eq!(count(&["▁xab", "▁yab", "▁zabc"]), 3);
        assert_eq!(count(&["▁xab", "▁zabc", "▁yab"]), 3 + 2);
    }

    #[test]
    fn more_text_than_has_places_is_refused() {
        let lines = [(b"a".to_vec(), 1u64 << 31)];
        let error = seeds(&lines, &PieceRules::default(), None).unwrap_err();
        assert!(alloc::format!("{error}").contains("4294967296 bytes"), "{error}");
    }
}
