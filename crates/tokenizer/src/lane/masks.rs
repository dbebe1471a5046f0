//! Sixty-four bytes of text as bit masks, by arithmetic on words of eight bytes.

/// The bytes of a mask.
pub(super) const BLOCK: usize = 64;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The bytes up to 0x20: white space and control characters.
#[inline]
pub(super) fn up_to_space(block: &[u8; BLOCK]) -> u64 {
    each_word(block, |word| {
        // No carry leaves a byte: 0x7F + 0x5F is below 0x100.
        !(((word & !HIGH) + ONES * 0x5F) | word) & HIGH
    })
}

/// The spaces.
#[inline]
pub(super) fn spaces(block: &[u8; BLOCK]) -> u64 {
    each_word(block, |word| {
        let other = word ^ (ONES * 0x20);
        !(((other & !HIGH) + ONES * 0x7F) | other) & HIGH
    })
}

/// The bytes from 0x80 on.
#[inline]
pub(super) fn high_bytes(block: &[u8; BLOCK]) -> u64 {
    each_word(block, |word| word & HIGH)
}

/// The bytes 0x7F.
#[inline]
pub(super) fn deletes(block: &[u8; BLOCK]) -> u64 {
    each_word(block, |word| ((word & !HIGH) + ONES) & !word & HIGH)
}

/// The letters and digits of ASCII, and all bytes from 0x80 on.
#[inline]
pub(super) fn word_bytes(block: &[u8; BLOCK]) -> u64 {
    each_word(block, |word| {
        let low = word & !HIGH;
        let lower = low | (ONES * 0x20);
        // Sums stay below 0x100 in every byte: the high bit says "at least".
        let letter = (lower + ONES * (0x80 - 0x61)) & !(lower + ONES * (0x80 - 0x7B));
        let digit = (low + ONES * (0x80 - 0x30)) & !(low + ONES * (0x80 - 0x3A));
        (letter | digit | word) & HIGH
    })
}

/// Collects the high bits of all bytes that `flags` leaves, the first byte in the lowest bit.
#[inline(always)]
fn each_word(block: &[u8; BLOCK], flags: impl Fn(u64) -> u64) -> u64 {
    let (words, _) = block.as_chunks::<8>();
    words.iter().rev().fold(0, |mask, word| {
        let flags = flags(u64::from_le_bytes(*word)) >> 7;
        // Bit 8i moves to bit 56 + i; no two terms of the product meet.
        mask << 8 | flags.wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_say_what_every_byte_is() {
        let mut rng = tokenizer_core::Rng::new(5);
        for round in 0..2000u32 {
            let block: [u8; BLOCK] = std::array::from_fn(|_| match round % 3 {
                0 => rng.below(256) as u8,
                1 => [0x1F, 0x20, 0x21, 0x7F, 0x80, 0xA0, 0xFF, 0][rng.below(8) as usize],
                _ => (rng.below(3) * 0x20) as u8,
            });
            let (low, space, word) = (up_to_space(&block), spaces(&block), word_bytes(&block));
            for (i, &byte) in block.iter().enumerate() {
                assert_eq!(low >> i & 1 == 1, byte <= 0x20, "{block:?} {i}");
                assert_eq!(space >> i & 1 == 1, byte == 0x20, "{block:?} {i}");
                assert_eq!(high_bytes(&block) >> i & 1 == 1, byte >= 0x80, "{block:?} {i}");
                assert_eq!(deletes(&block) >> i & 1 == 1, byte == 0x7F, "{block:?} {i}");
                let is_word = byte.is_ascii_alphanumeric() || !byte.is_ascii();
                assert_eq!(word >> i & 1 == 1, is_word, "{block:?} {i}");
            }
        }
    }
}
