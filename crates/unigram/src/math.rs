//! exp, ln and digamma from the four basic operations alone.
//!
//! The standard library's transcendental functions call the platform's libm, whose last bits
//! differ from machine to machine; `core` has none at all. A trainer that promises the same model
//! on any machine needs its own.

/// ln 2, its first 32 bits, so that its product with a small integer is exact.
const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
/// What is left of ln 2.
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// 1/2! to 1/13!.
const INVERSE_FACTORIALS: [f64; 12] = [
    1.0 / 2.0,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5040.0,
    1.0 / 40_320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
    1.0 / 479_001_600.0,
    1.0 / 6_227_020_800.0,
];

/// e to the power of `x`. Relative error below 4e-16 where the result is a normal number.
///
/// `x = k ln 2 + r` with `|r| <= ln 2 / 2`, where thirteen terms of the Taylor series leave
/// 4e-18.
pub(crate) fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x > 709.782_712_893_384 {
        return f64::INFINITY;
    }
    if x < -745.2 {
        return 0.0;
    }
    let k = (x * core::f64::consts::LOG2_E + if x < 0.0 { -0.5 } else { 0.5 }) as i64;
    let r = (x - k as f64 * LN2_HIGH) - k as f64 * LN2_LOW;
    let tail = INVERSE_FACTORIALS.iter().rev().fold(0.0, |sum, term| sum * r + term);
    let mantissa = 1.0 + (r + r * r * tail);
    // In two steps, because 2^k alone may be out of range where the product is not.
    let half = k / 2;
    mantissa * power_of_two(half) * power_of_two(k - half)
}

/// The natural logarithm of `x >= 0`; negative infinity for 0. Relative error below 4e-16.
///
/// `x = 2^k m` with m around 1, and `ln m = 2 artanh(s)`, `s = (m - 1) / (m + 1)`, whose odd
/// series needs eleven terms for `|s| <= 0.1716`.
pub(crate) fn ln(x: f64) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == f64::INFINITY {
        return x;
    }
    let (bits, shift) = if x < f64::MIN_POSITIVE {
        ((x * power_of_two(54)).to_bits(), 54)
    } else {
        (x.to_bits(), 0)
    };
    let mut k = (bits >> 52) as i64 - 1023 - shift;
    let mut m = f64::from_bits(bits & ((1 << 52) - 1) | (1023 << 52));
    if m > core::f64::consts::SQRT_2 {
        m *= 0.5;
        k += 1;
    }
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let series = (1..=11).rev().fold(0.0, |sum, n| (sum + 2.0 / f64::from(2 * n + 1)) * z);
    // ln(1 + f) = f - (f²/2 - s (f²/2 + series)): the large terms are exact and come last.
    let square = 0.5 * f * f;
    let small = s * (square + series) + k as f64 * LN2_LOW;
    k as f64 * LN2_HIGH + (f - (square - small))
}

/// The logarithmic derivative of the gamma function for `x > 0`. Absolute error below 1e-14 for
/// `x >= 0.01`, relative error below 1e-15 under that.
///
/// The recurrence ψ(x) = ψ(x + 1) - 1/x up to x >= 10, then the asymptotic series
/// (Abramowitz & Stegun 6.3.18), whose first term left out is 8e-16 there.
#[cfg(any(feature = "train", test))]
pub(crate) fn digamma(x: f64) -> f64 {
    let mut x = x;
    let mut shifted = 0.0;
    while x < 10.0 {
        shifted += 1.0 / x;
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let z = inverse * inverse;
    let series = z
        * (1.0 / 12.0
            - z * (1.0 / 120.0
                - z * (1.0 / 252.0
                    - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32_760.0))))));
    ln(x) - 0.5 * inverse - series - shifted
}

/// Adds probabilities given as logarithms, one after the other, without overflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSum {
    max: f64,
    /// The sum of `exp(x - max)`.
    sum: f64,
}

impl LogSum {
    pub(crate) const EMPTY: Self = Self { max: f64::NEG_INFINITY, sum: 0.0 };

    #[inline]
    pub(crate) fn add(&mut self, x: f64) {
        if x == f64::NEG_INFINITY {
            return; // Nothing, also where nothing was added before.
        }
        if x <= self.max {
            self.sum += exp(x - self.max);
        } else if x > f64::NEG_INFINITY {
            self.sum = self.sum * exp(self.max - x) + 1.0;
            self.max = x;
        }
    }

    /// The logarithm of the sum; negative infinity if nothing was added.
    #[inline]
    pub(crate) fn value(self) -> f64 {
        if self.max == f64::NEG_INFINITY { self.max } else { self.max + ln(self.sum) }
    }
}

/// 2^k for k from -1022 to 1023.
pub(crate) fn power_of_two(k: i64) -> f64 {
    debug_assert!((-1022..=1023).contains(&k));
    f64::from_bits(((k + 1023) as u64) << 52)
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use tokenizer_core::Rng;

    use super::*;

    fn relative(a: f64, b: f64) -> f64 {
        if a == b { 0.0 } else { ((a - b) / b).abs() }
    }

    #[test]
    fn exp_and_ln_stay_within_their_error() {
        let mut rng = Rng::new(1);
        for _ in 0..200_000 {
            let x = (rng.next_f64() - 0.5) * 1400.0;
            assert!(relative(exp(x), x.exp()) < 5e-16, "exp {x}: {} {}", exp(x), x.exp());
            let small = (rng.next_f64() - 0.5) * 2.0;
            assert!(relative(exp(small), small.exp()) < 5e-16, "exp {small}");
            let y = x.exp();
            assert!(relative(ln(y), y.ln()) < 5e-16, "ln {y}: {} {}", ln(y), y.ln());
            let near = 1.0 + small * 0.3;
            assert!(relative(ln(near), near.ln()) < 5e-16, "ln {near}");
        }
    }

    #[test]
    fn sums_begin_with_nothing_as_well() {
        let mut sum = LogSum::EMPTY;
        sum.add(f64::NEG_INFINITY);
        assert_eq!(sum.value(), f64::NEG_INFINITY);
        for x in [-3.0, f64::NEG_INFINITY, -3.0] {
            sum.add(x);
        }
        assert!(relative(sum.value(), ln(2.0) - 3.0) < 1e-15);
    }

    #[test]
    fn exp_and_ln_at_the_edges() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp(f64::INFINITY), f64::INFINITY);
        assert!(exp(-745.0) > 0.0);
        assert!(exp(709.78).is_finite());
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(ln(0.0), f64::NEG_INFINITY);
        assert!(ln(-1.0).is_nan());
        assert!(relative(ln(5e-324), (5e-324f64).ln()) < 4e-16);
        assert!(relative(ln(f64::MAX), f64::MAX.ln()) < 4e-16);
    }

    #[test]
    fn digamma_matches_published_values() {
        // Abramowitz & Stegun, table 6.1, and exact identities: ψ(1) = -γ,
        // ψ(1/2) = -γ - 2 ln 2, ψ(n + 1) = ψ(n) + 1/n.
        let gamma = 0.577_215_664_901_532_9;
        for (x, expected) in [
            (1.0, -gamma),
            (0.5, -gamma - 2.0 * core::f64::consts::LN_2),
            (2.0, 1.0 - gamma),
            (1.461_632_144_968_362_3, 0.0),
            (10.0, 2.251_752_589_066_721),
            (100.0, 4.600_161_852_738_087),
        ] {
            assert!((digamma(x) - expected).abs() < 1e-14, "{x}: {} {expected}", digamma(x));
        }
        let mut x = 0.01;
        while x < 1e6 {
            assert!((digamma(x + 1.0) - digamma(x) - 1.0 / x).abs() < 1e-13, "{x}");
            x *= 1.37;
        }
        assert!(relative(digamma(1e-9), -1e9) < 1e-8);
        assert!(digamma(1e300).is_finite());
    }

    #[test]
    fn log_sum_neither_overflows_nor_loses() {
        let mut sum = LogSum::EMPTY;
        assert_eq!(sum.value(), f64::NEG_INFINITY);
        for _ in 0..1000 {
            sum.add(-1e6);
        }
        assert!((sum.value() - (-1e6 + 1000f64.ln())).abs() < 1e-9);
        sum.add(1e6);
        assert_eq!(sum.value(), 1e6);
        sum.add(f64::NEG_INFINITY);
        assert_eq!(sum.value(), 1e6);
    }
}
