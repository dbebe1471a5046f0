//! The byte alphabet of GPT-2: every byte as one printable character.
//!
//! Vocabularies of byte-level models are written with it, because JSON and text files cannot hold
//! arbitrary bytes. Printable bytes of Latin-1 stand for themselves, the other 68 are U+0100 to
//! U+0143 in order: a space is `Ġ`, a line feed `Ċ` (Radford et al. 2019, `bytes_to_unicode`).
//!
//! ```
//! use formats::byte_level;
//!
//! assert_eq!(byte_level::encode(b" hug\n"), "ĠhugĊ");
//! assert_eq!(byte_level::decode("Ġhug")?, b" hug");
//! assert_eq!(byte_level::decode("a b").unwrap_err().offset(), 1);
//! # Ok::<(), byte_level::ByteLevelError>(())
//! ```

use core::fmt;

/// `TO_CHAR[byte]` is the code point of the byte's character.
const TO_CHAR: [u16; 256] = {
    let mut table = [0; 256];
    let (mut byte, mut next) = (0, 0x100);
    while byte < 256 {
        table[byte] = if is_itself(byte as u32) {
            byte as u16
        } else {
            next += 1;
            next - 1
        };
        byte += 1;
    }
    table
};

/// `TO_BYTE[c - 0x100]` is the byte of a character that does not stand for itself.
const TO_BYTE: [u8; 68] = {
    let mut table = [0; 68];
    let mut byte = 0;
    while byte < 256 {
        if TO_CHAR[byte] >= 0x100 {
            table[TO_CHAR[byte] as usize - 0x100] = byte as u8;
        }
        byte += 1;
    }
    table
};

const fn is_itself(c: u32) -> bool {
    matches!(c, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The character that stands for a byte.
#[must_use]
pub fn to_char(byte: u8) -> char {
    char::from_u32(u32::from(TO_CHAR[usize::from(byte)])).expect("all are below U+0144")
}

/// The byte that a character stands for, if it is one of the 256.
#[must_use]
pub fn from_char(c: char) -> Option<u8> {
    match u32::from(c) {
        c if is_itself(c) => Some(c as u8),
        c => TO_BYTE.get((c as usize).checked_sub(0x100)?).copied(),
    }
}

/// The bytes, each as its character.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| to_char(byte)).collect()
}

/// The bytes that the characters stand for.
///
/// # Errors
///
/// If a character stands for no byte. Hugging Face's decoder then takes the text as it is.
pub fn decode(text: &str) -> Result<Vec<u8>, ByteLevelError> {
    let mut bytes = Vec::with_capacity(text.len());
    for (offset, c) in text.char_indices() {
        bytes.push(from_char(c).ok_or(ByteLevelError { c, offset })?);
    }
    Ok(bytes)
}

/// A character outside of the byte alphabet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteLevelError {
    c: char,
    offset: usize,
}

impl ByteLevelError {
    /// The character.
    #[must_use]
    pub fn char(&self) -> char {
        self.c
    }

    /// Where it is, in bytes of the text.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for ByteLevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at byte {} stands for no byte", self.c, self.offset)
    }
}

impl std::error::Error for ByteLevelError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_bijection_of_bytes() {
        let mut seen = std::collections::BTreeSet::new();
        for byte in 0..=255 {
            let c = to_char(byte);
            assert_eq!(from_char(c), Some(byte));
            assert!(seen.insert(c));
            assert!(!c.is_whitespace() && !c.is_control(), "{c:?} must be printable");
        }
        let chars = ('\0'..=char::MAX).filter(|&c| from_char(c).is_some()).count();
        assert_eq!(chars, 256, "no other character stands for a byte");
    }

    #[test]
    fn matches_the_published_table() {
        let cases = [
            (0, 'Ā'),
            (b'\n', 'Ċ'),
            (b'\r', 'č'),
            (b' ', 'Ġ'),
            (b'!', '!'),
            (b'~', '~'),
            (0x7F, 'ġ'),
            (0xA0, 'ł'),
            (0xA1, '¡'),
            (0xAD, 'Ń'),
            (0xFF, 'ÿ'),
        ];
        for (byte, c) in cases {
            assert_eq!(to_char(byte), c, "{byte:#X}");
        }
    }

    #[test]
    fn awkward_bytes_survive() {
        for (name, bytes) in testkit::texts::all_bytes() {
            assert_eq!(decode(&encode(bytes)).as_deref(), Ok(bytes), "{name}");
        }
    }
}
