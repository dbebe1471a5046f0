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
    let len = match bytes[0] {
        byte @ 0..0x80 => return (Some(char::from(byte)), 1),
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return (None, 1),
    };
    match bytes.get(..len).and_then(|s| core::str::from_utf8(s).ok()) {
        Some(s) => (s.chars().next(), len),
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
    fn agrees_with_str_on_every_character() {
        for c in '\0'..=char::MAX {
            let mut buffer = [0; 4];
            let s = c.encode_utf8(&mut buffer);
            assert_eq!(decode(s.as_bytes()), (Some(c), c.len_utf8()));
        }
    }
}
