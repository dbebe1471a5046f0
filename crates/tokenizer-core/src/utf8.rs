//! Walking bytes that are meant to be UTF-8 but need not be.

/// The length in bytes of the first character of `bytes`: 1 to 4 where it begins with a
/// well-formed character, else 1 (an ill-formed byte counts as a character of its own).
///
/// # Panics
///
/// If `bytes` is empty.
#[inline]
#[must_use]
pub fn char_len(bytes: &[u8]) -> usize {
    match bytes[0] {
        0..0x80 => 1,
        _ => decode(bytes).1,
    }
}

/// The first character of `bytes` and its length; `None` and 1 where the bytes are ill-formed.
///
/// # Panics
///
/// If `bytes` is empty.
#[inline]
#[must_use]
pub fn decode(bytes: &[u8]) -> (Option<char>, usize) {
    let continuation = |at: usize| {
        let byte = bytes.get(at).copied().unwrap_or(0);
        (byte & 0xC0 == 0x80).then_some(u32::from(byte & 0x3F))
    };
    let first = u32::from(bytes[0]);
    let (c, least, len) = match first {
        0..0x80 => return (Some(char::from(bytes[0])), 1),
        0xC2..=0xDF => (continuation(1).map(|b| (first & 0x1F) << 6 | b), 0x80, 2),
        0xE0..=0xEF => {
            let rest = continuation(1).zip(continuation(2));
            (rest.map(|(b, c)| (first & 0xF) << 12 | b << 6 | c), 0x800, 3)
        }
        0xF0..=0xF4 => {
            let rest = continuation(1).zip(continuation(2)).zip(continuation(3));
            (rest.map(|((b, c), d)| (first & 7) << 18 | b << 12 | c << 6 | d), 0x1_0000, 4)
        }
        _ => return (None, 1),
    };
    // Neither an overlong form nor a surrogate nor beyond the last character.
    match c.filter(|&c| c >= least).and_then(char::from_u32) {
        Some(c) => (Some(c), len),
        None => (None, 1),
    }
}

/// The characters of `bytes` as slices; an ill-formed byte is a slice of its own.
pub fn chars(bytes: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (head, tail) = rest.split_at(char_len(rest));
        rest = tail;
        Some(head)
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn ill_formed_bytes_stand_alone() {
        // A surrogate (ED A0 80), an overlong form (C0 80), a cut character (E2 82), F5.
        let bytes = b"a\xED\xA0\x80\xC0\x80\xE2\x82\xF5\xF0\x9F\x98\x80";
        let lens: Vec<usize> = chars(bytes).map(<[u8]>::len).collect();
        assert_eq!(lens, [1, 1, 1, 1, 1, 1, 1, 1, 1, 4]);
    }

    #[test]
    fn agrees_with_str_on_any_bytes() {
        let mut rng = crate::Rng::new(1);
        for _ in 0..300_000 {
            // Bytes that begin and continue characters, those at the ends of their ranges too.
            let edges = [0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xED, 0xEF];
            let bytes: Vec<u8> = (0..1 + rng.below(5))
                .map(|_| match rng.below(3) {
                    0 => edges[rng.below(edges.len() as u64) as usize],
                    1 => 0xF0 + rng.below(6) as u8,
                    _ => rng.below(256) as u8,
                })
                .collect();
            let whole = (1..=bytes.len().min(4)).find_map(|len| {
                let text = core::str::from_utf8(&bytes[..len]).ok()?;
                Some((text.chars().next(), len))
            });
            assert_eq!(decode(&bytes), whole.unwrap_or((None, 1)), "{bytes:x?}");
        }
    }

    #[test]
    fn agrees_with_str_on_every_character() {
        for c in '\0'..=char::MAX {
            let mut buffer = [0; 4];
            let s = c.encode_utf8(&mut buffer);
            assert_eq!(decode(s.as_bytes()), (Some(c), c.len_utf8()));
        }
    }
}
