//! Sixty-four bytes at a time: which of them are letters, digits, white space and so on, each
//! answer a word of 64 bits. All that depends on the machine is here.
//!
//! A value of a type that implements [`Simd`] is the proof that the machine can do what the type
//! does: it is made by asking the machine, and nowhere else.

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
}

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

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // Loads, and calls of what is compiled for more than the base machine.
mod x86 {
    use core::arch::x86_64::*;

    use super::{Block, Masks, Simd, Work};

    #[cfg(feature = "std")]
    macro_rules! has {
        ($($feature:tt),*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
    }
    #[cfg(not(feature = "std"))]
    macro_rules! has {
        ($($feature:tt),*) => { $(cfg!(target_feature = $feature))&&* };
    }

    /// The machine has AVX2, BMI1, BMI2, LZCNT and POPCNT.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2(());

    impl Avx2 {
        pub(super) fn new() -> Option<Self> {
            has!("avx2", "bmi1", "bmi2", "lzcnt", "popcnt").then_some(Self(()))
        }
    }

    impl Simd for Avx2 {
        #[inline(always)]
        fn run<W: Work>(self, work: W) {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn run<W: Work>(simd: Avx2, work: W) {
                work.run(simd);
            }
            // SAFETY: the machine has these features: `Avx2::new` asked, and nothing else makes
            // an `Avx2`.
            unsafe { run(self, work) }
        }

        #[inline(always)]
        fn high(self, block: &Block) -> u64 {
            // SAFETY: as in `run`.
            unsafe { avx2_high(block) }
        }

        #[inline(always)]
        fn leads(self, block: &Block) -> u64 {
            // SAFETY: as in `run`.
            unsafe { avx2_leads(block) }
        }

        #[inline(always)]
        fn equal(self, block: &Block, byte: u8) -> u64 {
            // SAFETY: as in `run`.
            unsafe { avx2_equal(block, byte) }
        }

        #[inline(always)]
        fn masks(self, block: &Block) -> Masks {
            // SAFETY: as in `run`.
            unsafe { avx2_masks(block) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn halves(block: &Block) -> [__m256i; 2] {
        let at = block.as_ptr();
        // SAFETY: both loads read 32 of the 64 bytes of the block, and need no alignment.
        unsafe { [_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(32).cast())] }
    }

    /// The high bits of the bytes of both halves.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn high_bits([low, high]: [__m256i; 2]) -> u64 {
        let bits = |half| u64::from(_mm256_movemask_epi8(half).cast_unsigned());
        bits(low) | bits(high) << 32
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn avx2_high(block: &Block) -> u64 {
        high_bits(halves(block))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn avx2_leads(block: &Block) -> u64 {
        // 0xC0 and more: negative, and greater than the greatest that is not.
        let continuation = _mm256_set1_epi8(0xBFu8.cast_signed());
        let [a, b] = halves(block);
        high_bits([
            _mm256_and_si256(a, _mm256_cmpgt_epi8(a, continuation)),
            _mm256_and_si256(b, _mm256_cmpgt_epi8(b, continuation)),
        ])
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn avx2_equal(block: &Block, byte: u8) -> u64 {
        let byte = _mm256_set1_epi8(byte.cast_signed());
        let [a, b] = halves(block);
        high_bits([_mm256_cmpeq_epi8(a, byte), _mm256_cmpeq_epi8(b, byte)])
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn avx2_masks(block: &Block) -> Masks {
        let [a, b] = halves(block);
        // Signed comparisons: bytes of 0x80 and more are less than any bound.
        let within = |x, first: u8, last: u8| {
            let above = _mm256_cmpgt_epi8(x, _mm256_set1_epi8(first.cast_signed() - 1));
            let below = _mm256_cmpgt_epi8(_mm256_set1_epi8(last.cast_signed() + 1), x);
            _mm256_and_si256(above, below)
        };
        let is = |x, byte: u8| _mm256_cmpeq_epi8(x, _mm256_set1_epi8(byte.cast_signed()));
        let case = _mm256_set1_epi8(0x20);
        let [lower_a, lower_b] = [_mm256_or_si256(a, case), _mm256_or_si256(b, case)];
        let space = high_bits([is(a, b' '), is(b, b' ')]);
        Masks {
            letter: high_bits([within(lower_a, b'a', b'z'), within(lower_b, b'a', b'z')]),
            upper: high_bits([within(a, b'A', b'Z'), within(b, b'A', b'Z')]),
            digit: high_bits([within(a, b'0', b'9'), within(b, b'0', b'9')]),
            white: high_bits([within(a, b'\t', b'\r'), within(b, b'\t', b'\r')]) | space,
            newline: high_bits([
                _mm256_or_si256(is(a, b'\n'), is(a, b'\r')),
                _mm256_or_si256(is(b, b'\n'), is(b, b'\r')),
            ]),
            space,
            apostrophe: high_bits([is(a, b'\''), is(b, b'\'')]),
            slash: high_bits([is(a, b'/'), is(b, b'/')]),
            high: high_bits([a, b]),
        }
    }

    /// The machine has AVX-512 F and BW, and what AVX2 machines have.
    #[derive(Clone, Copy)]
    pub(super) struct Avx512(());

    impl Avx512 {
        pub(super) fn new() -> Option<Self> {
            let has = has!("avx512f", "avx512bw", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt");
            has.then_some(Self(()))
        }
    }

    impl Simd for Avx512 {
        #[inline(always)]
        fn run<W: Work>(self, work: W) {
            #[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn run<W: Work>(simd: Avx512, work: W) {
                work.run(simd);
            }
            // SAFETY: the machine has these features: `Avx512::new` asked, and nothing else makes
            // an `Avx512`.
            unsafe { run(self, work) }
        }

        #[inline(always)]
        fn high(self, block: &Block) -> u64 {
            // SAFETY: as in `run`.
            unsafe { avx512_high(block) }
        }

        #[inline(always)]
        fn leads(self, block: &Block) -> u64 {
            // SAFETY: as in `run`.
            unsafe { avx512_leads(block) }
        }

        #[inline(always)]
        fn equal(self, block: &Block, byte: u8) -> u64 {
            // SAFETY: as in `run`.
            unsafe { avx512_equal(block, byte) }
        }

        #[inline(always)]
        fn masks(self, block: &Block) -> Masks {
            // SAFETY: as in `run`.
            unsafe { avx512_masks(block) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn load(block: &Block) -> __m512i {
        // SAFETY: the load reads the 64 bytes of the block, and needs no alignment.
        unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn splat(byte: u8) -> __m512i {
        _mm512_set1_epi8(byte.cast_signed())
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn avx512_high(block: &Block) -> u64 {
        _mm512_movepi8_mask(load(block))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn avx512_leads(block: &Block) -> u64 {
        _mm512_cmpge_epu8_mask(load(block), splat(0xC0))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn avx512_equal(block: &Block, byte: u8) -> u64 {
        _mm512_cmpeq_epi8_mask(load(block), splat(byte))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn avx512_masks(block: &Block) -> Masks {
        let x = load(block);
        let within = |x, first: u8, last: u8| {
            let above = _mm512_sub_epi8(x, splat(first));
            _mm512_cmple_epu8_mask(above, splat(last - first))
        };
        let is = |byte| _mm512_cmpeq_epi8_mask(x, splat(byte));
        let space = is(b' ');
        Masks {
            letter: within(_mm512_or_si512(x, splat(0x20)), b'a', b'z'),
            upper: within(x, b'A', b'Z'),
            digit: within(x, b'0', b'9'),
            white: within(x, b'\t', b'\r') | space,
            newline: is(b'\n') | is(b'\r'),
            space,
            apostrophe: is(b'\''),
            slash: is(b'/'),
            high: _mm512_movepi8_mask(x),
        }
    }
}

#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)] // Loads.
mod arm {
    use core::arch::aarch64::*;

    use super::{Block, Masks, Simd, Work};

    /// The machine has NEON, as every AArch64 with the standard target has.
    #[derive(Clone, Copy)]
    pub(super) struct Neon(());

    impl Neon {
        pub(super) fn new() -> Option<Self> {
            cfg!(target_feature = "neon").then_some(Self(()))
        }
    }

    impl Simd for Neon {
        #[inline(always)]
        fn run<W: Work>(self, work: W) {
            work.run(self);
        }

        #[inline(always)]
        fn high(self, block: &Block) -> u64 {
            // SAFETY: the program is compiled for machines with NEON: `Neon::new` looked, and
            // nothing else makes a `Neon`.
            unsafe { neon_each(block, |x| vcgeq_u8(x, vdupq_n_u8(0x80))) }
        }

        #[inline(always)]
        fn leads(self, block: &Block) -> u64 {
            // SAFETY: as in `high`.
            unsafe { neon_each(block, |x| vcgeq_u8(x, vdupq_n_u8(0xC0))) }
        }

        #[inline(always)]
        fn equal(self, block: &Block, byte: u8) -> u64 {
            // SAFETY: as in `high`.
            unsafe { neon_each(block, |x| vceqq_u8(x, vdupq_n_u8(byte))) }
        }

        #[inline(always)]
        fn masks(self, block: &Block) -> Masks {
            // SAFETY: as in `high`.
            unsafe { neon_masks(block) }
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn quarters(block: &Block) -> [uint8x16_t; 4] {
        let at = block.as_ptr();
        // SAFETY: each load reads 16 of the 64 bytes of the block.
        unsafe { [vld1q_u8(at), vld1q_u8(at.add(16)), vld1q_u8(at.add(32)), vld1q_u8(at.add(48))] }
    }

    /// One bit for each byte of four vectors, whose bytes are all ones or all zeros.
    #[inline]
    #[target_feature(enable = "neon")]
    fn bits([a, b, c, d]: [uint8x16_t; 4]) -> u64 {
        // The k-th byte of eight keeps its k-th bit; adding neighbours three times brings the
        // eight into one byte.
        let weights = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
        let weigh = |x| vandq_u8(x, weights);
        let ab = vpaddq_u8(weigh(a), weigh(b));
        let cd = vpaddq_u8(weigh(c), weigh(d));
        let abcd = vpaddq_u8(ab, cd);
        let all = vpaddq_u8(abcd, abcd);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(all))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn neon_each(block: &Block, f: impl Fn(uint8x16_t) -> uint8x16_t) -> u64 {
        bits(quarters(block).map(f))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn neon_masks(block: &Block) -> Masks {
        let x = quarters(block);
        let within = |x, first: u8, last: u8| {
            vcleq_u8(vsubq_u8(x, vdupq_n_u8(first)), vdupq_n_u8(last - first))
        };
        let is = |byte| bits(x.map(|x| vceqq_u8(x, vdupq_n_u8(byte))));
        let space = is(b' ');
        Masks {
            letter: bits(x.map(|x| within(vorrq_u8(x, vdupq_n_u8(0x20)), b'a', b'z'))),
            upper: bits(x.map(|x| within(x, b'A', b'Z'))),
            digit: bits(x.map(|x| within(x, b'0', b'9'))),
            white: bits(x.map(|x| within(x, b'\t', b'\r'))) | space,
            newline: is(b'\n') | is(b'\r'),
            space,
            apostrophe: is(b'\''),
            slash: is(b'/'),
            high: bits(x.map(|x| vcgeq_u8(x, vdupq_n_u8(0x80)))),
        }
    }
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
