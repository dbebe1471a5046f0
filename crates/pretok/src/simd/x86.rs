//! Machines with AVX2 and AVX-512.
#![allow(unsafe_code)] // Loads, and calls of what is compiled for more than the base machine.

use core::arch::x86_64::*;

use super::{Block, FLAG, Masks, Meet, Simd, Table, Work};

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

    #[inline(always)]
    fn meet(self, block: &Block, before: u8, tables: &[Table; 2]) -> Meet {
        // SAFETY: as in `run`.
        unsafe { avx2_meet(block, before, tables) }
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

/// A row of sixteen bytes of a table.
#[inline]
#[target_feature(enable = "avx2")]
fn row(table: &Table, k: usize) -> __m128i {
    let (rows, _) = table.ascii.as_chunks::<16>();
    // SAFETY: the load reads the sixteen bytes of a row, and needs no alignment.
    unsafe { _mm_loadu_si128(rows[k].as_ptr().cast()) }
}

/// What two tables say of each byte. An index into a row whose highest bit is set gives zero; that is
/// so for all bytes that are not of the row.
#[inline]
#[target_feature(enable = "avx2")]
fn avx2_look_up(x: __m256i, tables: &[Table; 2]) -> [__m256i; 2] {
    let high = _mm256_cmpgt_epi8(_mm256_setzero_si256(), x);
    let of_high =
        |table: &Table| _mm256_and_si256(high, _mm256_set1_epi8(table.high.cast_signed()));
    let mut found = [of_high(&tables[0]), of_high(&tables[1])];
    for k in 0..8 {
        let in_row = _mm256_xor_si256(x, _mm256_set1_epi8(k << 4));
        let index = _mm256_adds_epu8(in_row, _mm256_set1_epi8(0x70));
        for (found, table) in found.iter_mut().zip(tables) {
            let row = _mm256_broadcastsi128_si256(row(table, k as usize));
            *found = _mm256_or_si256(*found, _mm256_shuffle_epi8(row, index));
        }
    }
    found
}

#[inline]
#[target_feature(enable = "avx2")]
fn avx2_meet(block: &Block, before: u8, tables: &[Table; 2]) -> Meet {
    let [a, b] = halves(block);
    let [first_a, second_a] = avx2_look_up(a, tables);
    let [first_b, second_b] = avx2_look_up(b, tables);
    // Everything one byte on.
    let next =
        |x, before| _mm256_alignr_epi8::<15>(x, _mm256_permute2x128_si256::<0x21>(before, x));
    let before_a = next(first_a, _mm256_set1_epi8(before.cast_signed()));
    let before_b = next(first_b, first_a);
    let compared = _mm256_set1_epi8((!FLAG).cast_signed());
    let common = |x, y| {
        // The lower seven bits are positive as a signed byte.
        let both = _mm256_and_si256(_mm256_and_si256(x, y), compared);
        _mm256_cmpgt_epi8(both, _mm256_setzero_si256())
    };
    Meet {
        common: high_bits([common(before_a, second_a), common(before_b, second_b)]),
        flagged: high_bits([second_a, second_b]),
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

    #[inline(always)]
    fn meet(self, block: &Block, before: u8, tables: &[Table; 2]) -> Meet {
        // SAFETY: as in `run`.
        unsafe { avx512_meet(block, before, tables) }
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

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx2")]
fn avx512_meet(block: &Block, before: u8, tables: &[Table; 2]) -> Meet {
    let x = load(block);
    let high = _mm512_movepi8_mask(x);
    let of_high = |table: &Table| _mm512_maskz_mov_epi8(high, splat(table.high));
    let [mut first, mut second] = [of_high(&tables[0]), of_high(&tables[1])];
    for k in 0..8 {
        // As in `avx2_look_up`.
        let index = _mm512_adds_epu8(_mm512_xor_si512(x, splat((k as u8) << 4)), splat(0x70));
        for (found, table) in [&mut first, &mut second].into_iter().zip(tables) {
            let row = _mm512_broadcast_i32x4(row(table, k));
            *found = _mm512_or_si512(*found, _mm512_shuffle_epi8(row, index));
        }
    }
    // Everything one byte on: first whole lanes of sixteen bytes, then within them.
    let lanes = _mm512_alignr_epi32::<12>(first, splat(before));
    let before = _mm512_alignr_epi8::<15>(first, lanes);
    let both = _mm512_and_si512(before, second);
    Meet { common: _mm512_test_epi8_mask(both, splat(!FLAG)), flagged: _mm512_movepi8_mask(second) }
}
