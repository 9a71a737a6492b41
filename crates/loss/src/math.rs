//! The functions that losses and probabilities consist of.
//!
//! Guarantees: functions of f32 give the same bits on every machine, which the standard library does not promise; those
//! of f64 are within the rounding of f64.

use simd::Simd;

/// P(positive) at the decision `z` of a logistic model: the logistic function 1 / (1 + e^(-z)), to the rounding of f64.
pub fn probability(z: f32) -> f64 {
    probability_f64(f64::from(z))
}

/// [`probability`] of a decision in f64.
pub fn probability_f64(z: f64) -> f64 {
    // e^z of a negative z cannot overflow
    let e = (-z.abs()).exp();
    if z < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

/// ln(1 + e^z), to the rounding of f64.
pub fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

/// e^x of an x of at most 0, within 1e-7 of it relatively; 0 below -87. The same bits on every machine, which the
/// standard library does not promise.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    let tail = 1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0));
    let series = 1.0 + (r + (r * r) * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * tail))));
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(0x3F80_0000));
    if x < -87.0 { 0.0 } else { series * power }
}

/// e^x of sixteen x of at most 0, within 2e-7 of each relatively. Below -60 it is 0: next to 1 it would be nothing, and
/// its multiples would be numbers so small that a processor is slow with them.
#[inline(always)]
pub(crate) fn exp_lanes<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    let rounded = fma(simd, x, std::f32::consts::LOG2_E, ROUND);
    let n = simd.add(rounded, simd.splat(-ROUND));
    let r = simd.fma(n, simd.splat(-LN_2[0]), x);
    let r = simd.fma(n, simd.splat(-LN_2[1]), r);
    // pairs of the series side by side: the next row waits for this
    let square = simd.mul(r, r);
    let low = fma(simd, r, 1.0 / 6.0, 1.0 / 2.0);
    let middle = fma(simd, r, 1.0 / 120.0, 1.0 / 24.0);
    let high = fma(simd, r, 1.0 / 5040.0, 1.0 / 720.0);
    let series = simd.fma(square, simd.fma(square, high, middle), low);
    let power = simd.two_to(rounded);
    simd.zero_below(simd.fma(simd.fma(square, series, r), power, power), x, -60.0)
}

/// x * factor + sum, rounded once.
#[inline(always)]
fn fma<S: Simd>(simd: S, x: S::Vector, factor: f32, sum: f32) -> S::Vector {
    simd.fma(x, simd.splat(factor), simd.splat(sum))
}

/// Added to a float, this rounds it to an integer.
const ROUND: f32 = 12_582_912.0;

/// ln 2 in two pieces, of which the first times a small integer is exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// e^x, relatively within 4e-16 for x from -708 to 709; 0 below, infinite above. The same bits on every machine.
#[inline(always)]
pub(crate) fn exp_f64(x: f64) -> f64 {
    // adding this rounds to an integer, in the lowest bits of the sum
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two pieces, of which the first times a small integer is exact
    const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    let rounded = x * std::f64::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    // 1/13!, 1/12!, ..., 1/2!
    let mut series = 1.0 / 6_227_020_800.0;
    for factorial in
        [479_001_600.0, 39_916_800.0, 3_628_800.0, 362_880.0, 40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0]
    {
        series = series * r + 1.0 / factorial;
    }
    let series = 1.0 + (r + (r * r) * series);
    let power = f64::from_bits((rounded.to_bits() << 52).wrapping_add(0x3FF0_0000_0000_0000));
    let within = series * power;
    if x < -708.0 {
        0.0
    } else if x > 709.0 {
        f64::INFINITY
    } else {
        within
    }
}

/// ln x of a normal x above 0, within 2e-7 of it absolutely or relatively. The same bits on every machine.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    // the mantissa m from √½ to √2: ln m = 2 artanh s, s = (m - 1) / (m + 1)
    let shifted = x.to_bits().wrapping_sub(0x3F35_04F3);
    let exponent = (shifted as i32) >> 23;
    let m = f32::from_bits((shifted & 0x007F_FFFF).wrapping_add(0x3F35_04F3));
    let s = (m - 1.0) / (m + 1.0);
    let q = s * s;
    let series = 2.0 * s + (2.0 * s) * (q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + q * (1.0 / 9.0)))));
    let ln = exponent as f32 * std::f32::consts::LN_2 + series;
    if x < f32::INFINITY { ln } else { x }
}

/// The probabilities of the classes of a softmax model: e^(z_k) / Σ e^(z_j), to the rounding of f64.
///
/// # Panics
/// If `out` is not as long as `decisions`.
pub fn softmax(decisions: &[f32], out: &mut [f64]) {
    assert_eq!(decisions.len(), out.len(), "a place for every class");
    let greatest = greatest(decisions);
    for (p, &z) in out.iter_mut().zip(decisions) {
        *p = (f64::from(z) - greatest).exp();
    }
    let sum: f64 = out.iter().sum();
    out.iter_mut().for_each(|p| *p /= sum);
}

/// -ln of the probability of `class`, to the rounding of f64.
pub(crate) fn cross_entropy(decisions: &[f32], class: usize) -> f64 {
    let greatest = greatest(decisions);
    let sum: f64 = decisions.iter().map(|&z| (f64::from(z) - greatest).exp()).sum();
    sum.ln() - (f64::from(decisions[class]) - greatest)
}

fn greatest(decisions: &[f32]) -> f64 {
    decisions.iter().copied().fold(f32::NEG_INFINITY, f32::max).into()
}

/// -Σ p ln p.
pub(crate) fn entropy(shares: &[f64]) -> f64 {
    -shares.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simd::{Kernel, Level};

    use super::*;

    proptest! {
        #[test]
        fn the_probabilities_of_both_classes_sum_to_1(z: f32) {
            prop_assume!(!z.is_nan());
            prop_assert!((probability(z) + probability(-z) - 1.0).abs() <= 3e-16);
        }
    }

    #[test]
    fn the_exponential_is_that_of_the_standard_library() {
        let mut x = -708.0;
        while x <= 709.0 {
            assert!((exp_f64(x) / x.exp() - 1.0).abs() <= 5e-16, "{x}: {} {}", exp_f64(x), x.exp());
            x += 0.009_73;
        }
        assert_eq!([-1e300, -709.0, 710.0, f64::INFINITY].map(exp_f64), [0.0, 0.0, f64::INFINITY, f64::INFINITY]);
        assert_eq!((exp_f64(0.0), exp_f64(f64::NAN).is_nan()), (1.0, true));
    }

    #[test]
    fn sixteen_exponentials_are_those_of_the_standard_library() {
        struct Exp([f32; 16]);
        impl Kernel for Exp {
            type Output = [f32; 16];

            #[inline(always)]
            fn run<S: Simd>(self, simd: S) -> [f32; 16] {
                let mut powers = [0.0; 16];
                simd.store(exp_lanes(simd, simd.load(&self.0)), &mut powers);
                powers
            }
        }
        for level in Level::available() {
            for i in 0..4_000 {
                let x = std::array::from_fn(|lane| (i * 16 + lane) as f32 * -0.000_937);
                for (x, power) in x.iter().zip(level.run(Exp(x))) {
                    assert!((f64::from(power) / f64::from(*x).exp() - 1.0).abs() <= 2e-7, "{x}: {power}");
                }
            }
            let mut extremes = [-60.1; 16];
            (extremes[0], extremes[1], extremes[2]) = (0.0, f32::NEG_INFINITY, f32::NAN);
            let [one, zero, nan, rest @ ..] = level.run(Exp(extremes));
            assert!((one, zero, rest) == (1.0, 0.0, [0.0; 13]) && nan.is_nan(), "{level:?}");
        }
    }

    #[test]
    fn probability_keeps_its_precision_in_the_tails() {
        assert_eq!(probability(0.0), 0.5);
        assert_eq!([probability(f32::INFINITY), probability(f32::NEG_INFINITY)], [1.0, 0.0]);
        assert!((probability(-700.0) / (-700f64).exp() - 1.0).abs() < 1e-15);
        assert!((probability(1.0) - 0.731_058_578_630_004_9).abs() < 2e-16);
    }
}
