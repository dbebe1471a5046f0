//! Machines with NEON.
#![allow(unsafe_code)] // Loads.

use core::arch::aarch64::*;

use super::{Block, FLAG, Masks, Meet, Simd, Table, Work};

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

    #[inline(always)]
    fn meet(self, block: &Block, before: u8, tables: &[Table; 2]) -> Meet {
        // SAFETY: as in `high`.
        unsafe { neon_meet(block, before, tables) }
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
    let within =
        |x, first: u8, last: u8| vcleq_u8(vsubq_u8(x, vdupq_n_u8(first)), vdupq_n_u8(last - first));
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

/// What a table says of each byte.
#[inline]
#[target_feature(enable = "neon")]
fn look_up(x: uint8x16_t, table: &Table) -> uint8x16_t {
    let (halves, _) = table.ascii.as_chunks::<64>();
    let half = |i: usize| {
        let at = halves[i].as_ptr();
        // SAFETY: the loads read the 64 bytes of a half.
        unsafe {
            let [a, b] = [vld1q_u8(at), vld1q_u8(at.add(16))];
            uint8x16x4_t(a, b, vld1q_u8(at.add(32)), vld1q_u8(at.add(48)))
        }
    };
    // An index beyond a half gives what was there before.
    let high = vandq_u8(vcgeq_u8(x, vdupq_n_u8(0x80)), vdupq_n_u8(table.high));
    let low = vqtbx4q_u8(high, half(0), x);
    vqtbx4q_u8(low, half(1), vsubq_u8(x, vdupq_n_u8(64)))
}

#[inline]
#[target_feature(enable = "neon")]
fn neon_meet(block: &Block, before: u8, [first, second]: &[Table; 2]) -> Meet {
    let x = quarters(block);
    let [a, b, c, d] = x.map(|x| look_up(x, first));
    let second = x.map(|x| look_up(x, second));
    // Everything one byte on.
    let before = [
        vextq_u8::<15>(vdupq_n_u8(before), a),
        vextq_u8::<15>(a, b),
        vextq_u8::<15>(b, c),
        vextq_u8::<15>(c, d),
    ];
    let common = |i: usize| {
        let both = vandq_u8(before[i], second[i]);
        vtstq_u8(both, vdupq_n_u8(!FLAG))
    };
    Meet {
        common: bits([common(0), common(1), common(2), common(3)]),
        flagged: bits(second.map(|x| vtstq_u8(x, vdupq_n_u8(FLAG)))),
    }
}
