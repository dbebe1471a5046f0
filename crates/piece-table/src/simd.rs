//! What of the driver depends on the machine.
//!
//! A value of a type that implements [`Machine`] is the proof that the machine can do what the type
//! does: it is made by asking the machine, and nowhere else.

use crate::key::Key;
use crate::memory::Windows;

/// What a [`PieceTable`](crate::PieceTable) is looked up with. Which one never changes the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// Ordinary arithmetic: the twin that the others are tested against.
    Portable,
    /// AVX2 and BMI2.
    Avx2,
    /// AVX-512 (BW, VL).
    Avx512,
}

impl Backend {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// Whether this machine has it. Without the feature `std`, what counts is what the program
    /// was compiled for.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => x86::Avx2::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => x86::Avx512::new().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The fastest that this machine has.
    pub(crate) fn best() -> Self {
        let fastest_first = [Self::Avx512, Self::Avx2];
        fastest_first.into_iter().find(|b| b.is_available()).unwrap_or(Self::Portable)
    }

    /// Does `work` with this back end; with the portable one where the machine has it not.
    #[inline]
    pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
        #[cfg(target_arch = "x86_64")]
        if self == Self::Avx512
            && let Some(machine) = x86::Avx512::new()
        {
            return machine.run(work);
        } else if self == Self::Avx2
            && let Some(machine) = x86::Avx2::new()
        {
            return machine.run(work);
        }
        Portable.run(work)
    }
}

/// Work for any back end. `run` must be `#[inline(always)]`: it is compiled anew for each of them.
pub(crate) trait Work {
    type Output;

    fn run<M: Machine>(self, machine: M) -> Self::Output;
}

/// A machine that compares keys.
pub(crate) trait Machine: Copy {
    /// Does `work`, compiled for this machine, as a function of its own.
    fn run<W: Work>(self, work: W) -> W::Output;

    /// The key of a piece; as [`Key::of_fitting`].
    fn key(self, text: Windows<'_>, start: usize, len: usize) -> Key;

    /// Which of two keys, which differ, is the one that is looked for.
    fn find(self, keys: &[Key; 2], key: &Key) -> Option<usize>;
}

/// Ordinary arithmetic.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Machine for Portable {
    #[inline(never)]
    fn run<W: Work>(self, work: W) -> W::Output {
        work.run(self)
    }

    #[inline(always)]
    fn key(self, text: Windows<'_>, start: usize, len: usize) -> Key {
        Key::of_fitting(text, start, len)
    }

    #[inline(always)]
    fn find(self, keys: &[Key; 2], key: &Key) -> Option<usize> {
        // Both keys are in the line at hand, so looking at both is cheaper than a guess which.
        let second = usize::from(keys[1] == *key);
        (keys[second] == *key).then_some(second)
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // Loads, and calls of what is compiled for more than the base machine.
mod x86 {
    use core::arch::x86_64::*;

    use super::{Key, Machine, Work};
    use crate::memory::Windows;

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
        #[inline]
        pub(super) fn new() -> Option<Self> {
            has!("avx2", "bmi1", "bmi2", "lzcnt", "popcnt").then_some(Self(()))
        }
    }

    impl Machine for Avx2 {
        #[inline(always)]
        fn run<W: Work>(self, work: W) -> W::Output {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            #[inline(never)]
            fn run<W: Work>(machine: Avx2, work: W) -> W::Output {
                work.run(machine)
            }
            // SAFETY: the machine has these features: `Avx2::new` asked, and nothing else makes
            // an `Avx2`.
            unsafe { run(self, work) }
        }

        #[inline(always)]
        fn key(self, text: Windows<'_>, start: usize, len: usize) -> Key {
            Key::of_fitting(text, start, len)
        }

        #[inline(always)]
        fn find(self, keys: &[Key; 2], key: &Key) -> Option<usize> {
            // SAFETY: as in `run`.
            unsafe { avx2_find(keys, key) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn avx2_find(keys: &[Key; 2], key: &Key) -> Option<usize> {
        // SAFETY: the loads read the 32 bytes of two keys and the 16 of one, and need no alignment.
        let (keys, key) = unsafe {
            let key = _mm_loadu_si128(key.0.as_ptr().cast());
            (_mm256_loadu_si256(keys.as_ptr().cast()), _mm256_broadcastsi128_si256(key))
        };
        let halves = _mm256_castsi256_pd(_mm256_cmpeq_epi64(keys, key));
        let equal = _mm256_movemask_pd(halves).cast_unsigned();
        // Both halves of the first, and of the second.
        let found = equal & equal >> 1 & 0b101;
        (found != 0).then_some((found >> 2) as usize)
    }

    /// The machine has AVX-512 (F, BW, VL) and what [`Avx2`] has.
    #[derive(Clone, Copy)]
    pub(super) struct Avx512(());

    impl Avx512 {
        #[inline]
        pub(super) fn new() -> Option<Self> {
            let has =
                has!("avx512f", "avx512bw", "avx512vl", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt");
            has.then_some(Self(()))
        }
    }

    impl Machine for Avx512 {
        #[inline(always)]
        fn run<W: Work>(self, work: W) -> W::Output {
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
            #[inline(never)]
            fn run<W: Work>(machine: Avx512, work: W) -> W::Output {
                work.run(machine)
            }
            // SAFETY: the machine has these features: `Avx512::new` asked, and nothing else makes
            // an `Avx512`.
            unsafe { run(self, work) }
        }

        #[inline(always)]
        fn key(self, text: Windows<'_>, start: usize, len: usize) -> Key {
            match text.at(start) {
                // SAFETY: as in `run`.
                Some(bytes) => unsafe { avx512_key(bytes, len) },
                None => Key::of_fitting(text, start, len),
            }
        }

        #[inline(always)]
        fn find(self, keys: &[Key; 2], key: &Key) -> Option<usize> {
            // SAFETY: as in `run`.
            unsafe { avx2_find(keys, key) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
    fn avx512_key(bytes: &[u8; 16], len: usize) -> Key {
        let mask = _bzhi_u32(0x7FFF, len as u32) as __mmask16;
        // SAFETY: the load reads the 16 bytes at most, and needs no alignment.
        let piece = unsafe { _mm_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) };
        let key = _mm_insert_epi8::<15>(piece, len as i32);
        let mut out = [0; 16];
        // SAFETY: the store writes the 16 bytes of `out`, and needs no alignment.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), key) };
        Key(out)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use tokenizer_core::Rng;

    use super::*;

    struct Check<'a>(&'a [u8]);

    impl Work for Check<'_> {
        type Output = ();

        #[inline(always)]
        fn run<M: Machine>(self, machine: M) {
            let Self(text) = self;
            let mut keys = Vec::new();
            for start in 0..text.len() {
                for len in 1..=(text.len() - start).min(Key::MAX_LEN) {
                    let key = machine.key(Windows::new(text), start, len);
                    assert_eq!(Some(key), Key::new(&text[start..start + len]));
                    keys.push(key);
                }
            }
            for pair in keys.windows(3) {
                let [a, b, c] = [pair[0], pair[1], pair[2]];
                if a == b {
                    continue;
                }
                assert_eq!(machine.find(&[a, b], &a), Some(0));
                assert_eq!(machine.find(&[a, b], &b), Some(1));
                let expected = [a, b].iter().position(|&key| key == c);
                assert_eq!(machine.find(&[a, b], &c), expected);
            }
            // Keys that differ in one bit.
            for key in keys.iter().take(20) {
                for bit in 0..128 {
                    let other = Key((key.number() ^ 1 << bit).to_le_bytes());
                    assert_eq!(machine.find(&[other, other], key), None);
                    assert_eq!(machine.find(&[other, *key], key), Some(1));
                    assert_eq!(machine.find(&[*key, other], key), Some(0));
                }
            }
        }
    }

    #[test]
    fn every_back_end_makes_and_finds_the_keys() {
        let mut rng = Rng::new(5);
        for backend in Backend::ALL.into_iter().filter(|b| b.is_available()) {
            for len in 0..50 {
                let text: Vec<u8> = (0..len).map(|_| rng.below(3) as u8 * 127).collect();
                backend.run(Check(&text));
            }
        }
    }
}
