//! The numbers that products are computed in, and the way of f64 into four bytes and back that keeps every bit.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Mul};

/// f32 or f64.
pub trait Number:
    Copy + Debug + Default + PartialEq + Add<Output = Self> + AddAssign + Mul<Output = Self> + Send + Sync + 'static
{
    /// 0.
    const ZERO: Self;
    /// The nearest.
    fn from_f64(x: f64) -> Self;
    /// The same number.
    fn to_f64(self) -> f64;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

impl Number for f32 {
    const ZERO: f32 = 0.0;

    #[inline(always)]
    fn from_f64(x: f64) -> f32 {
        x as f32
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }
}

impl Number for f64 {
    const ZERO: f64 = 0.0;

    #[inline(always)]
    fn from_f64(x: f64) -> f64 {
        x
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
}

/// Bits of a fraction that f64 has and f32 has not.
const LOST: u32 = 52 - 23;

/// The bits of the f32 that is exactly this number: of a NaN, the one with the same payload.
#[inline]
pub(crate) fn narrow(x: f64) -> Option<u32> {
    if x.is_nan() {
        // not by a conversion, which may make a NaN a quiet one
        let bits = x.to_bits();
        let payload = (bits >> LOST) as u32 & 0x7F_FFFF;
        let kept = bits & ((1 << LOST) - 1) == 0 && payload != 0;
        return kept.then_some((bits >> 32) as u32 & 0x8000_0000 | 0x7F80_0000 | payload);
    }
    let narrow = x as f32;
    (f64::from(narrow).to_bits() == x.to_bits()).then_some(narrow.to_bits())
}

/// The number that [`narrow`] made these bits of.
#[inline]
pub(crate) fn widen(bits: u32) -> f64 {
    let x = f32::from_bits(bits);
    if x.is_nan() {
        let (sign, payload) = (u64::from(bits >> 31), u64::from(bits & 0x7F_FFFF));
        return f64::from_bits(sign << 63 | 0x7FF << 52 | payload << LOST);
    }
    f64::from(x)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_pattern_of_an_f32_comes_back(bits: u32) {
            prop_assert_eq!(narrow(widen(bits)), Some(bits));
        }

        #[test]
        fn what_is_narrowed_is_exact(bits: u64) {
            // most patterns are no f32's; those with a short fraction may be
            for bits in [bits, bits & !((1 << LOST) - 1)] {
                if let Some(narrow) = narrow(f64::from_bits(bits)) {
                    prop_assert_eq!(widen(narrow).to_bits(), bits);
                }
            }
        }
    }

    #[test]
    fn a_signalling_nan_stays_one() {
        for bits in [0x7FF0_0000_2000_0000u64, 0xFFF0_0000_2000_0000, 0x7FF8_0000_0000_0000] {
            assert_eq!(widen(narrow(f64::from_bits(bits)).unwrap()).to_bits(), bits);
        }
        assert_eq!(narrow(f64::from_bits(0x7FF0_0000_0000_0001)), None);
    }
}
