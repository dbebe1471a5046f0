//! Sixty-four bytes at a time: which of them are letters, digits, white space and so on, each
//! answer a word of 64 bits. All that depends on the machine is here.
//!
//! A value of a type that implements [`Simd`] is the proof that the machine can do what the type
//! does: it is made by asking the machine, and nowhere else.

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86;

/// What does the work of a [`Scanner`](crate::Scanner). Which one never changes the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// One character at a time: the twin that the others are tested against, and what remains for
    /// the few rules that the others do not cover.
    Scalar,
    /// 64 bytes at a time with ordinary arithmetic.
    Portable,
    /// 64 bytes at a time with AVX2.
    Avx2,
    /// 64 bytes at a time with AVX-512 (BW).
    Avx512,
    /// 64 bytes at a time with NEON.
    Neon,
}

impl Backend {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::Scalar, Self::Portable, Self::Avx2, Self::Avx512, Self::Neon];

    /// Whether this machine has it. Without the feature `std`, what counts is what the program
    /// was compiled for.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar | Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => x86::Avx2::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => x86::Avx512::new().is_some(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => arm::Neon::new().is_some(),
            #[allow(unreachable_patterns)] // On machines that have all of the above.
            _ => false,
        }
    }

    /// The fastest that this machine has.
    pub(crate) fn best() -> Self {
        let fastest_first = [Self::Avx512, Self::Avx2, Self::Neon];
        fastest_first.into_iter().find(|b| b.is_available()).unwrap_or(Self::Portable)
    }

    /// Does `work` with this back end; with the portable one where the machine has it not.
    pub(crate) fn run<W: Work>(self, work: W) {
        #[cfg(target_arch = "x86_64")]
        if self == Self::Avx512
            && let Some(simd) = x86::Avx512::new()
        {
            return simd.run(work);
        } else if self == Self::Avx2
            && let Some(simd) = x86::Avx2::new()
        {
            return simd.run(work);
        }
        #[cfg(target_arch = "aarch64")]
        if self == Self::Neon
            && let Some(simd) = arm::Neon::new()
        {
            return simd.run(work);
        }
        Portable.run(work);
    }
}

/// Work for any back end. `run` must be `#[inline(always)]`: it is compiled anew for each of them.
pub(crate) trait Work {
    fn run<S: Simd>(self, simd: S);
}

/// 64 bytes of text.
pub(crate) type Block = [u8; 64];

/// Which bytes of a block are what; the lowest bit is the first byte. Bytes of 0x80 and more are
/// in `high` and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Masks {
    /// `[A-Za-z]`.
    pub(crate) letter: u64,
    /// `[A-Z]`.
    pub(crate) upper: u64,
    /// `[0-9]`.
    pub(crate) digit: u64,
    /// ASCII white space: tab to carriage return, and the space.
    pub(crate) white: u64,
    /// `\r` and `\n`.
    pub(crate) newline: u64,
    /// The space.
    pub(crate) space: u64,
    /// `'`.
    pub(crate) apostrophe: u64,
    /// `/`.
    pub(crate) slash: u64,
    /// What is not ASCII.
    pub(crate) high: u64,
}

/// A machine that looks at 64 bytes at once.
pub(crate) trait Simd: Copy {
    /// Does `work`, compiled for this machine.
    fn run<W: Work>(self, work: W);

    /// What is not ASCII.
    fn high(self, block: &Block) -> u64;

    /// The bytes that begin a character of two or more bytes.
    fn leads(self, block: &Block) -> u64;

    /// The bytes that are `byte`.
    fn equal(self, block: &Block, byte: u8) -> u64;

    /// All that is needed of every block.
    fn masks(self, block: &Block) -> Masks;

    /// What the two tables say of every byte and the one before it; `before` is what the first of
    /// them says of the byte before the block.
    fn meet(self, block: &Block, before: u8, tables: &[Table; 2]) -> Meet;
}

/// A byte for each ASCII character, and one for all bytes beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) ascii: [u8; 128],
    pub(crate) high: u8,
}

impl Table {
    #[inline(always)]
    pub(crate) fn get(&self, byte: u8) -> u8 {
        self.ascii.get(usize::from(byte)).copied().unwrap_or(self.high)
    }
}

/// Bytes of a block by what stands before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meet {
    /// What the first table says of the byte before and the second of this byte have a bit in
    /// common, of the lower seven.
    pub(crate) common: u64,
    /// What the second table says of this byte has the highest bit.
    pub(crate) flagged: u64,
}

/// The highest bit of what the second table says, which nothing is compared with.
pub(crate) const FLAG: u8 = 0x80;

/// Ordinary arithmetic, eight bytes to a word.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Simd for Portable {
    fn run<W: Work>(self, work: W) {
        work.run(self);
    }

    #[inline(always)]
    fn high(self, block: &Block) -> u64 {
        each_word(block, |word| word & HIGH)
    }

    #[inline(always)]
    fn leads(self, block: &Block) -> u64 {
        each_word(block, |word| word & (word << 1) & HIGH)
    }

    #[inline(always)]
    fn equal(self, block: &Block, byte: u8) -> u64 {
        each_word(block, |word| {
            let differs = word ^ (LOW * u64::from(byte));
            // Zero in the high bit where neither the high bit nor the other seven differ.
            !(((differs & !HIGH) + !HIGH) | differs) & HIGH
        })
    }

    /// A table says for each byte all that it is, a bit each; eight bytes are a matrix of bits,
    /// turned so that each row is the answer for one kind.
    #[inline(always)]
    fn masks(self, block: &Block) -> Masks {
        let mut rows = [0u64; 8];
        for (i, chunk) in block.chunks_exact(8).enumerate() {
            let kinds = chunk
                .iter()
                .rev()
                .fold(0, |word, &byte| word << 8 | u64::from(KINDS[usize::from(byte)]));
            let turned = transpose(kinds);
            for (k, row) in rows.iter_mut().enumerate() {
                *row |= (turned >> (8 * k) & 0xFF) << (8 * i);
            }
        }
        let [letter, upper, digit, white, newline, space, apostrophe, slash] = rows;
        let high = self.high(block);
        Masks { letter, upper, digit, white, newline, space, apostrophe, slash, high }
    }

    #[inline(always)]
    fn meet(self, block: &Block, mut before: u8, [first, second]: &[Table; 2]) -> Meet {
        let mut meet = Meet { common: 0, flagged: 0 };
        for (i, &byte) in block.iter().enumerate() {
            let here = second.get(byte);
            meet.common |= u64::from(before & here & !FLAG != 0) << i;
            meet.flagged |= u64::from(here >> 7) << i;
            before = first.get(byte);
        }
        meet
    }
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The high bits of the bytes of `f` of each word of the block.
#[inline(always)]
fn each_word(block: &Block, f: impl Fn(u64) -> u64) -> u64 {
    let mut mask = 0;
    for (i, chunk) in block.as_chunks::<8>().0.iter().enumerate() {
        let bits = f(u64::from_le_bytes(*chunk)) >> 7;
        // The product brings bit 8k to bit 56 + k; no two of its terms meet.
        mask |= (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    mask
}

/// For each byte what it is: bit k for the k-th field of [`Masks`].
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut i = 0u8;
    while i < 0x80 {
        kinds[i as usize] = i.is_ascii_alphabetic() as u8
            | (i.is_ascii_uppercase() as u8) << 1
            | (i.is_ascii_digit() as u8) << 2
            | (matches!(i, b'\t'..=b'\r' | b' ') as u8) << 3
            | (matches!(i, b'\r' | b'\n') as u8) << 4
            | ((i == b' ') as u8) << 5
            | ((i == b'\'') as u8) << 6
            | ((i == b'/') as u8) << 7;
        i += 1;
    }
    kinds
};

/// The transpose of a matrix of 8 by 8 bits, a row a byte (Warren, Hacker's Delight, 7-3).
#[inline(always)]
const fn transpose(mut x: u64) -> u64 {
    let mut swap = (x ^ (x >> 7)) & 0x00AA_00AA_00AA_00AA;
    x ^= swap ^ (swap << 7);
    swap = (x ^ (x >> 14)) & 0x0000_CCCC_0000_CCCC;
    x ^= swap ^ (swap << 14);
    swap = (x ^ (x >> 28)) & 0x0000_0000_F0F0_F0F0;
    x ^ swap ^ (swap << 28)
}

#[cfg(test)]
mod tests {
    use tokenizer_core::Rng;

    use super::*;

    /// What [`Masks`] says, byte by byte.
    fn naive(block: &Block) -> Masks {
        let mask = |is: fn(u8) -> bool| {
            block.iter().rev().fold(0, |mask, &byte| mask << 1 | u64::from(is(byte)))
        };
        Masks {
            letter: mask(|b| b.is_ascii_alphabetic()),
            upper: mask(|b| b.is_ascii_uppercase()),
            digit: mask(|b| b.is_ascii_digit()),
            white: mask(|b| (9..=13).contains(&b) || b == b' '),
            newline: mask(|b| b == 10 || b == 13),
            space: mask(|b| b == b' '),
            apostrophe: mask(|b| b == b'\''),
            slash: mask(|b| b == b'/'),
            high: mask(|b| b >= 0x80),
        }
    }

    /// What [`Simd::meet`] says, byte by byte.
    fn naive_meet(block: &Block, before: u8, [first, second]: &[Table; 2]) -> Meet {
        let before_of = |i: usize| if i == 0 { before } else { first.get(block[i - 1]) };
        let mask = |is: &dyn Fn(usize) -> bool| (0..64).fold(0, |m, i| m | u64::from(is(i)) << i);
        Meet {
            common: mask(&|i| before_of(i) & second.get(block[i]) & 0x7F != 0),
            flagged: mask(&|i| second.get(block[i]) >= 0x80),
        }
    }

    struct CheckMeet(Block, u8, [Table; 2]);

    impl Work for CheckMeet {
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let Self(block, before, tables) = self;
            let expected = naive_meet(&block, before, &tables);
            assert_eq!(simd.meet(&block, before, &tables), expected, "{block:?} {tables:?}");
        }
    }

    #[test]
    fn every_back_end_compares_neighbours() {
        let mut rng = Rng::new(2);
        let table = |rng: &mut Rng| {
            let sparse = rng.below(2) == 0;
            let mut byte =
                || rng.below(256) as u8 & if sparse { rng.below(256) as u8 } else { 255 };
            Table { ascii: core::array::from_fn(|_| byte()), high: byte() }
        };
        for round in 0..400u32 {
            let tables = [table(&mut rng), table(&mut rng)];
            let block = core::array::from_fn(|i| match round % 3 {
                0 => rng.below(256) as u8,
                1 => rng.below(128) as u8,
                _ => (i as u8).wrapping_mul(3).wrapping_add(round as u8),
            });
            let before = rng.below(256) as u8;
            for backend in Backend::ALL.into_iter().filter(|b| b.is_available()) {
                backend.run(CheckMeet(block, before, tables));
            }
        }
    }

    struct Check(Block);

    impl Work for Check {
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let Self(block) = self;
            let mask = |is: &dyn Fn(u8) -> bool| {
                block.iter().rev().fold(0, |mask, &byte| mask << 1 | u64::from(is(byte)))
            };
            assert_eq!(simd.masks(&block), naive(&block), "{block:?}");
            assert_eq!(simd.high(&block), mask(&|b| b >= 0x80), "{block:?}");
            assert_eq!(simd.leads(&block), mask(&|b| b >= 0xC0), "{block:?}");
            for byte in [0, 1, b'a', 0x7F, 0x80, 0x81, 0xC0, 0xFF, block[0]] {
                assert_eq!(simd.equal(&block, byte), mask(&|b| b == byte), "{byte} {block:?}");
            }
        }
    }

    #[test]
    fn every_back_end_sees_every_byte_in_every_place() {
        let mut rng = Rng::new(1);
        for backend in Backend::ALL.into_iter().filter(|b| b.is_available()) {
            for byte in 0..=255 {
                backend.run(Check([byte; 64]));
            }
            for place in 0..64 {
                for byte in 0..=255 {
                    let mut block = [b'a'; 64];
                    block[place] = byte;
                    backend.run(Check(block));
                }
            }
            for _ in 0..2000 {
                backend.run(Check(core::array::from_fn(|_| rng.below(256) as u8)));
            }
        }
    }
}
