//! Pieces as numbers.

use crate::memory::Windows;

/// A piece of 1 to 15 bytes as a number: its bytes, zeros, and its length in the last byte. Equal
/// keys are equal pieces.
///
/// ```
/// use piece_table::Key;
///
/// let key = Key::new(b"cat").unwrap();
/// assert_eq!(key.as_bytes(), b"cat");
/// assert_ne!(key, Key::new(b"cat\0").unwrap());
/// assert_eq!(Key::new(b"cat sat on a mat"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Key(pub(crate) [u8; 16]);

/// The bytes of a piece of that length.
const MASKS: [u128; 16] = {
    let mut masks = [0; 16];
    let mut len = 1;
    while len < 16 {
        masks[len] = u128::MAX >> (128 - 8 * len);
        len += 1;
    }
    masks
};

impl Key {
    /// The longest piece that has a key.
    pub const MAX_LEN: usize = 15;

    /// The key of a piece; `None` for the empty piece and for those of more than
    /// [`MAX_LEN`](Self::MAX_LEN) bytes.
    #[inline]
    #[must_use]
    pub fn new(piece: &[u8]) -> Option<Self> {
        Self::fits(piece.len()).then(|| Self::of(piece, 0, piece.len()))
    }

    /// Whether pieces of this length have keys.
    #[inline]
    #[must_use]
    pub const fn fits(len: usize) -> bool {
        len.wrapping_sub(1) < Self::MAX_LEN
    }

    /// The key of the piece of `len` bytes at `start`. Faster than [`new`](Self::new) where 16
    /// bytes of text are left: the piece is read with one load.
    ///
    /// # Panics
    ///
    /// If the piece does not lie in the text, or is empty or too long.
    #[inline]
    #[must_use]
    pub fn of(text: &[u8], start: usize, len: usize) -> Self {
        assert!(Self::fits(len), "a key holds 1 to 15 bytes");
        Self::of_fitting(Windows::new(text), start, len)
    }

    /// As [`of`](Self::of), of a length that is known to fit.
    #[inline(always)]
    pub(crate) fn of_fitting(text: Windows<'_>, start: usize, len: usize) -> Self {
        debug_assert!(Self::fits(len));
        Self::pack(sixteen(text, start, len), len as u8)
    }

    /// `loaded` with what lies behind the piece cut off.
    #[inline]
    fn pack(loaded: u128, len: u8) -> Self {
        let key = loaded & MASKS[usize::from(len & 15)] | u128::from(len) << 120;
        Self(key.to_le_bytes())
    }

    /// The key as it is kept outside of the program: see [`from_bytes`](Self::from_bytes).
    #[inline(always)]
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The key that [`to_bytes`](Self::to_bytes) gave these bytes. Other bytes give a key that equals no
    /// piece's, of which methods may panic.
    #[inline(always)]
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The key of the first `len` bytes of the piece, which has as many and one at least.
    ///
    /// ```
    /// use piece_table::Key;
    ///
    /// assert_eq!(Key::new(b"cats").map(|key| key.prefix(3)), Key::new(b"cat"));
    /// ```
    #[inline]
    #[must_use]
    pub fn prefix(self, len: usize) -> Self {
        debug_assert!(1 <= len && len <= self.len());
        Self::pack(self.number(), len as u8)
    }

    /// The first eight bytes as a little-endian number, with zeros behind a shorter piece.
    #[inline]
    #[must_use]
    pub fn first_eight(self) -> u64 {
        self.number() as u64
    }

    /// A well-mixed hash: every bit depends on the whole key. The same on all machines. Tables that are
    /// stored may rely on it for one version of this crate.
    #[inline]
    #[must_use]
    pub fn hash(self) -> u64 {
        mix(0, self.number())
    }

    #[inline]
    pub(crate) fn number(self) -> u128 {
        u128::from_le_bytes(self.0)
    }

    /// The number of bytes of the piece.
    #[inline]
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a piece with a key is not empty")]
    pub fn len(self) -> usize {
        usize::from(self.0[15])
    }

    /// The piece.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0[..self.len()]
    }
}

/// A piece of 16 to 31 bytes: as [`Key`], in two halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongKey(pub(crate) [u128; 2]);

impl LongKey {
    /// No piece: the last byte of a key is the length.
    pub(crate) const EMPTY: Self = Self([0; 2]);

    #[inline]
    pub(crate) const fn fits(len: usize) -> bool {
        len.wrapping_sub(16) < 16
    }

    /// The key of the piece of `len` bytes at `start`; the length must fit.
    #[inline]
    pub(crate) fn of(text: &[u8], start: usize, len: usize) -> Self {
        let text = Windows::new(text);
        let rest = len - 16;
        let tail = sixteen(text, start + 16, rest) & MASKS[rest & 15];
        Self([sixteen(text, start, 16), tail | (len as u128) << 120])
    }

    #[inline]
    pub(crate) fn hash(self) -> u64 {
        mix(mix(0, self.0[0]), self.0[1])
    }
}

/// Sixteen bytes from `start` on, of which `len` lie in the text for sure; others may be anything.
#[inline(always)]
fn sixteen(text: Windows<'_>, start: usize, len: usize) -> u128 {
    match text.at(start) {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => at_the_end(text.text(), start, len),
    }
}

#[cold]
#[inline(never)]
fn at_the_end(text: &[u8], start: usize, len: usize) -> u128 {
    let mut bytes = [0; 16];
    bytes[..len].copy_from_slice(&text[start..start + len]);
    u128::from_le_bytes(bytes)
}

/// One step of a hash over numbers of 16 bytes: a product of both halves, folded. A short piece
/// leaves the upper half nearly empty, but the product with it is still a multiplicative hash.
#[inline(always)]
pub(crate) fn mix(hash: u64, number: u128) -> u64 {
    let low = number as u64 ^ 0x9E37_79B9_7F4A_7C15 ^ hash;
    let high = (number >> 64) as u64 ^ 0xD6E8_FEB8_6659_FD93 ^ hash.rotate_left(32);
    let product = u128::from(low) * u128::from(high);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of a piece of any length; not that of its [`Key`], if it has one.
#[must_use]
pub fn hash_bytes(piece: &[u8]) -> u64 {
    let (chunks, rest) = piece.as_chunks::<16>();
    let hash = chunks.iter().fold(piece.len() as u64, |h, &c| mix(h, u128::from_le_bytes(c)));
    mix(hash, at_the_end(rest, 0, rest.len()))
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_key_is_the_piece_wherever_it_stands() {
        let text: Vec<u8> = (1..=40).collect();
        for start in 0..text.len() {
            for len in 1..=(text.len() - start).min(15) {
                let piece = &text[start..start + len];
                let key = Key::of(&text, start, len);
                assert_eq!(Some(key), Key::new(piece));
                assert_eq!(key.as_bytes(), piece);
            }
            for len in 16..=(text.len() - start).min(31) {
                let piece = &text[start..start + len];
                assert_eq!(LongKey::of(&text, start, len), LongKey::of(piece, 0, len));
            }
        }
    }

    #[test]
    fn zeros_are_told_from_the_end() {
        let zeros = [0; 31];
        let keys: BTreeSet<_> = (1..=15).map(|len| Key::of(&zeros, 0, len)).collect();
        assert_eq!(keys.len(), 15);
        assert!(!keys.contains(&Key([0; 16])));
        for len in 17..=31 {
            assert_ne!(LongKey::of(&zeros, 0, len), LongKey::of(&zeros, 0, len - 1));
        }
        assert_eq!(Key::new(b""), None);
        assert_eq!(Key::new(&zeros[..16]), None);
    }

    #[test]
    fn hashes_spread_over_the_low_and_the_high_bits() {
        let mut low = vec![0u32; 256];
        let mut high = vec![0u32; 256];
        for i in 0..65536u32 {
            let piece = [b' ', b'a' + (i % 16) as u8, (i / 16 % 64) as u8 + 32, (i / 1024) as u8];
            let hash = Key::new(&piece).unwrap().hash();
            low[(hash & 255) as usize] += 1;
            high[(hash >> 56) as usize] += 1;
        }
        // 256 each on average; a binomial strays by less than 6 standard deviations of 16.
        assert!(low.iter().chain(&high).all(|&n| (160..352).contains(&n)));
    }

    #[test]
    #[should_panic(expected = "1 to 15 bytes")]
    fn too_long_a_key_panics() {
        let _ = Key::of(&[0; 20], 0, 16);
    }
}
