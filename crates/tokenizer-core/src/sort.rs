use alloc::vec::Vec;

/// Sorts by bytes, as strings in a dictionary without regard to language; of equal ones the first
/// stays first.
///
/// Up to 16 bytes are compared as one number, so that most comparisons read no string.
/// `O(n log n)`, with 32 bytes for each item beside them.
///
/// ```
/// use tokenizer_core::sort_by_bytes;
///
/// let mut items = [(&b"b"[..], 1), (b"ab", 2), (b"a", 3), (b"ab", 4), (b"a\0", 5)];
/// sort_by_bytes(&mut items);
/// assert_eq!(items.map(|(_, value)| value), [3, 5, 2, 4, 1]);
/// ```
///
/// # Panics
///
/// If there are more than 4294967295 items.
pub fn sort_by_bytes<T: Copy>(items: &mut [(&[u8], T)]) {
    let count = u32::try_from(items.len()).expect("at most 4294967295 items");
    // Zeros behind a short string put it before those that it begins, or beside a string that ends in
    // zeros itself, where the strings decide.
    let mut order: Vec<(u128, u32)> =
        items.iter().zip(0..count).map(|(item, at)| (first_sixteen(item.0), at)).collect();
    let rest = |at: u32| items[at as usize].0;
    order.sort_unstable_by(|a, b| {
        let equal = || rest(a.1).cmp(rest(b.1)).then(a.1.cmp(&b.1));
        a.0.cmp(&b.0).then_with(equal)
    });
    let sorted: Vec<(&[u8], T)> = order.iter().map(|&(_, at)| items[at as usize]).collect();
    items.copy_from_slice(&sorted);
}

/// The first bytes as a number, the first one highest, with zeros behind a shorter string.
fn first_sixteen(bytes: &[u8]) -> u128 {
    if let Some(first) = bytes.first_chunk() {
        return u128::from_be_bytes(*first);
    }
    let mut first = [0; 16];
    first[..bytes.len()].copy_from_slice(bytes);
    u128::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn equals_a_stable_sort() {
        let mut rng = Rng::new(3);
        for letters in [1, 2, 256] {
            let strings: Vec<Vec<u8>> = (0..500)
                .map(|_| (0..rng.below(24)).map(|_| rng.below(letters) as u8).collect())
                .collect();
            let mut items: Vec<(&[u8], usize)> =
                strings.iter().enumerate().map(|(at, string)| (&string[..], at)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sort_by_bytes(&mut items);
            assert_eq!(items, expected);
        }
    }
}
