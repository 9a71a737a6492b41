//! Half-precision floats (IEEE 754 binary16) as single ones: each of them is one, so nothing is rounded.
#![allow(unsafe_code)]

/// Bytes of a half-precision float.
const BYTES: usize = 2;

/// Writes half-precision floats to `out` as single ones. They are little-endian and may lie at any address. True if all
/// are finite.
///
/// # Panics
/// If there are not as many as `out` has.
#[inline]
pub fn widen_halves(halves: &[u8], out: &mut [f32]) -> bool {
    assert_eq!(halves.len(), BYTES * out.len(), "two bytes for each float");
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("f16c") {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { widen_f16c(halves, out) };
    }
    widen_portably(halves, out)
}

/// The same, eight at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "f16c")]
fn widen_f16c(halves: &[u8], out: &mut [f32]) -> bool {
    use std::arch::x86_64::*;
    let (eights, rest) = halves.as_chunks::<{ 8 * BYTES }>();
    let (to_eights, to_rest) = out.as_chunks_mut::<8>();
    let mut bits = _mm256_setzero_ps();
    for (eight, to) in eights.iter().zip(to_eights) {
        // SAFETY: both are as long as the instructions read and write, which need no alignment.
        unsafe {
            let floats = _mm256_cvtph_ps(_mm_loadu_si128(eight.as_ptr().cast()));
            _mm256_storeu_ps(to.as_mut_ptr(), floats);
            // a number less itself is 0, or NaN if it is not finite
            bits = _mm256_or_ps(bits, _mm256_sub_ps(floats, floats));
        }
    }
    let bits = _mm256_castps_si256(bits);
    let finite = _mm256_testz_si256(bits, bits) == 1;
    widen_portably(rest, to_rest) && finite
}

fn widen_portably(halves: &[u8], out: &mut [f32]) -> bool {
    let mut finite = true;
    for (half, to) in halves.as_chunks::<BYTES>().0.iter().zip(out) {
        *to = widen_half(u16::from_le_bytes(*half));
        finite &= to.is_finite();
    }
    finite
}

/// The half-precision float with these bits as a single one.
#[inline]
pub fn widen_half(bits: u16) -> f32 {
    const INFINITY: u32 = 0x7c00;
    // exponents count from 15, those of single floats from 127
    const SCALE: f32 = f32::from_bits((127 + 127 - 15) << 23);
    let (sign, rest) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff));
    let magnitude = if rest < INFINITY {
        // exact, also of numbers that have less than all bits of their mantissa
        (f32::from_bits(rest << 13) * SCALE).to_bits()
    } else {
        f32::INFINITY.to_bits() | rest << 13
    };
    f32::from_bits(sign | magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number that the standard says these bits are; None for an infinity or NaN.
    fn by_definition(bits: u16) -> Option<f64> {
        let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
        let magnitude = match exponent {
            0 => mantissa / 1024.0 * 2f64.powi(-14),
            31 => return None,
            _ => (1.0 + mantissa / 1024.0) * 2f64.powi(exponent - 15),
        };
        Some(if bits & 0x8000 == 0 { magnitude } else { -magnitude })
    }

    /// Compares a way to widen with the definition, all halves at once, beginning at several addresses.
    fn assert_exact(widen: impl Fn(&[u8], &mut [f32]) -> bool) {
        for offset in 0..17 {
            let mut bytes = vec![0xff; offset];
            bytes.extend((0..=u16::MAX).flat_map(u16::to_le_bytes));
            let mut floats = vec![f32::NAN; 1 << 16];
            assert!(!widen(&bytes[offset..], &mut floats), "there are infinities");
            for (bits, float) in (0..=u16::MAX).zip(&floats) {
                match by_definition(bits) {
                    Some(number) => assert_eq!(f64::from(*float).to_bits(), number.to_bits(), "{bits:#x}"),
                    None if bits & 0x3ff == 0 => {
                        assert_eq!(
                            (*float, float.is_sign_negative()),
                            (float.signum() * f32::INFINITY, bits >> 15 == 1)
                        )
                    }
                    None => assert!(float.is_nan(), "{bits:#x}: {float}"),
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "two million numbers")]
    fn every_half_is_the_number_that_the_standard_says() {
        assert_exact(widen_halves);
        assert_exact(widen_portably);
    }

    #[test]
    fn a_number_that_is_not_finite_is_found_in_each_place() {
        for len in 0..40 {
            let ones = 0x3c00u16.to_le_bytes().repeat(len);
            let mut floats = vec![0.0; len];
            assert!(widen_halves(&ones, &mut floats) && floats.iter().all(|one| *one == 1.0), "{len} ones");
            for place in 0..len {
                for strange in [0x7c00u16, 0xfc00, 0x7e00, 0x7c01] {
                    let mut halves = ones.clone();
                    halves[BYTES * place..][..BYTES].copy_from_slice(&strange.to_le_bytes());
                    assert!(!widen_halves(&halves, &mut floats), "{strange:#x} in place {place} of {len}");
                }
            }
        }
    }
}
