//! Numbers that span decades, by sign and logarithm: sign(x) ln(1 + |x|).
//!
//! Guarantees: the same bits on every machine, because nothing but additions, multiplications and divisions of doubles
//! goes into it; 0 stays 0, so that sparse tuples stay sparse. It prevents a model from deciding in another way where
//! another libm rounds in another way, and a few huge values from leaving all others within a hair of each other.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use simd::{Kernel, Level, Simd};
use tuples::Batch;

/// Which features are taken by their logarithms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogTransform {
    /// all of them
    All,
    /// these, ascending
    Features(Vec<u32>),
}

impl LogTransform {
    /// Transforms the tuples at `places` of `batch`. Of sparse tuples, what is stored is transformed.
    ///
    /// # Panics
    /// If there are no such places, or no such features of dense tuples.
    pub fn apply(&self, batch: &mut Batch, places: Range<usize>) {
        for i in places {
            if batch.is_sparse() {
                let (indices, values) = batch.sparse_row_mut(i);
                self.apply_sparse(indices, values);
            } else {
                self.apply_dense(batch.features_mut(i));
            }
        }
    }

    /// Transforms the features of a dense tuple.
    ///
    /// # Panics
    /// If there are no such features.
    pub fn apply_dense(&self, values: &mut [f32]) {
        match self {
            LogTransform::All => transform_all(values),
            LogTransform::Features(features) => {
                features.iter().for_each(|i| values[*i as usize] = signed_log(values[*i as usize]));
            }
        }
    }

    /// Transforms the entries of a sparse tuple, which are in ascending order.
    pub fn apply_sparse(&self, indices: &[u32], values: &mut [f32]) {
        let LogTransform::Features(features) = self else { return transform_all(values) };
        let mut features = features.iter().peekable();
        for (index, value) in indices.iter().zip(values) {
            while features.next_if(|feature| *feature < index).is_some() {}
            match features.peek() {
                Some(feature) if *feature == index => *value = signed_log(*value),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Is this feature one of them?
    pub fn contains(&self, feature: usize) -> bool {
        match self {
            LogTransform::All => true,
            LogTransform::Features(features) => features.binary_search(&(feature as u32)).is_ok(),
        }
    }
}

fn transform_all(values: &mut [f32]) {
    struct All<'a>(&'a mut [f32]);
    impl Kernel for All<'_> {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, _: S) {
            self.0.iter_mut().for_each(|value| *value = signed_log(*value));
        }
    }
    Level::detect().run(All(values));
}

/// sign(x) ln(1 + |x|); NaN stays what it is.
#[inline(always)]
fn signed_log(x: f32) -> f32 {
    signed_log_f64(x.into()) as f32
}

/// The number whose transform is this, as far as it is in the range of f32.
pub fn inverse_signed_log(y: f64) -> f32 {
    (y.abs().exp_m1() as f32).min(f32::MAX).copysign(y as f32)
}

/// The same in doubles, for the range of f32.
#[inline(always)]
pub fn signed_log_f64(x: f64) -> f64 {
    // the bits of √½: m is to be at least that, and less than √2
    const LEAST: u64 = 0x3FE6_A09E_667F_3BCD;
    const ONE: u64 = 0x3FF0_0000_0000_0000;
    let x_abs = x.abs();
    let y = 1.0 + x_abs;
    // what rounding took from y
    let rest = x_abs - (y - 1.0);
    let shifted = y.to_bits().wrapping_add(ONE - LEAST);
    let exponent = f64::from((shifted >> 52) as i32 - 1023);
    let m = f64::from_bits((shifted & ((1 << 52) - 1)) + LEAST);
    // ln m = 2 (s + s³/3 + s⁵/5 + ...), of which |s| < 0.172
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut series = 1.0 / 19.0;
    for n in [17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * z + 1.0 / n;
    }
    (exponent * std::f64::consts::LN_2 + 2.0 * s * series + rest / y).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_numpys() {
        // numpy 2.4: log1p of float64
        for (x, expected) in [
            (0.0, 0.0),
            (1e-10, 9.999_999_999_500_001e-11),
            (0.001, 0.000_999_500_333_083_533_2),
            (0.414_213_562, 0.346_573_590_016_154_6),
            (0.5, 0.405_465_108_108_164_4),
            (1.0, std::f64::consts::LN_2),
            (9.0, std::f64::consts::LN_10),
            (12_345.678, 9.421_142_318_018_15),
            (16_777_216.0, 16.635_532_393_043_33),
            (3.4e38, 88.722_008_965_395_86),
        ] {
            for x in [x, -x] {
                let found = signed_log_f64(x);
                assert!(
                    (found - expected.copysign(x)).abs() <= 5e-16 * expected.max(1e-300),
                    "{x}: {found} {expected}"
                );
            }
        }
        assert!(signed_log_f64(f64::NAN).is_nan());
    }

    #[test]
    fn the_logarithm_is_that_of_the_standard_library_everywhere() {
        let mut x = f32::MIN_POSITIVE;
        while x.is_finite() {
            let expected = f64::from(x).ln_1p();
            assert!((signed_log_f64(x.into()) - expected).abs() <= 1e-15 * expected, "{x}");
            let back = inverse_signed_log(-signed_log_f64(x.into()));
            assert!((f64::from(back) + f64::from(x)).abs() <= 1e-6 * f64::from(x), "{x} {back}");
            x *= 1.003_7;
        }
        assert_eq!(inverse_signed_log(signed_log_f64(f32::MAX.into())), f32::MAX);
    }

    #[test]
    fn dense_and_sparse_tuples_have_the_same_bits() {
        let values = [3.0, -700.25, 0.0, 1e-9, 1e30];
        let mut dense = values;
        LogTransform::Features(vec![1, 3, 4]).apply_dense(&mut dense);
        assert_eq!((dense[0], dense[2]), (3.0, 0.0));
        let mut sparse = [values[0], values[1], values[4]];
        LogTransform::Features(vec![1, 3, 4]).apply_sparse(&[0, 1, 4], &mut sparse);
        assert_eq!(sparse, [3.0, dense[1], dense[4]]);
        let mut all = values;
        LogTransform::All.apply_dense(&mut all);
        assert_eq!(all[1..], [dense[1], 0.0, dense[3], dense[4]]);
        assert_eq!(f64::from(all[1]), f64::from(-(701.25_f64.ln() as f32)));
        let mut batch = Batch::dense(5);
        (0..2).for_each(|_| batch.push(1.0).unwrap().copy_from_slice(&values));
        LogTransform::All.apply(&mut batch, 1..2);
        assert_eq!([batch.features(0), batch.features(1)], [&values[..], &all[..]]);
    }
}
