//! What Rust can do on every machine.

use crate::{Chunk, Doubles, Kernel, Simd};

/// What Rust can do on every machine.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

impl Simd for Portable {
    type Vector = Chunk;
    type DoubleVector = Doubles;

    const REGISTERS: usize = 8;

    #[inline(always)]
    fn load(self, chunk: &Chunk) -> Chunk {
        *chunk
    }

    #[inline(always)]
    fn store(self, vector: Chunk, chunk: &mut Chunk) {
        *chunk = vector;
    }

    #[inline(always)]
    fn splat(self, number: f32) -> Chunk {
        [number; _]
    }

    #[inline(always)]
    fn load_doubles(self, doubles: &Doubles) -> Doubles {
        *doubles
    }

    #[inline(always)]
    fn store_doubles(self, vector: Doubles, doubles: &mut Doubles) {
        *doubles = vector;
    }

    #[inline(always)]
    fn splat_double(self, number: f64) -> Doubles {
        [number; _]
    }

    /// Without an instruction for it this is a call, which is slow and right.
    #[cfg_attr(target_arch = "aarch64", inline(always))]
    #[cfg_attr(not(target_arch = "aarch64"), inline(never))]
    fn fma_doubles(self, a: Doubles, b: Doubles, sum: Doubles) -> Doubles {
        std::array::from_fn(|lane| a[lane].mul_add(b[lane], sum[lane]))
    }

    #[inline(always)]
    fn add(self, a: Chunk, b: Chunk) -> Chunk {
        std::array::from_fn(|lane| a[lane] + b[lane])
    }

    #[inline(always)]
    fn mul(self, a: Chunk, b: Chunk) -> Chunk {
        std::array::from_fn(|lane| a[lane] * b[lane])
    }

    /// Without an instruction for it this is so long that it is a function: most of the library's code would be copies.
    #[cfg_attr(target_arch = "aarch64", inline(always))]
    #[cfg_attr(not(target_arch = "aarch64"), inline(never))]
    fn fma(self, a: Chunk, b: Chunk, sum: Chunk) -> Chunk {
        std::array::from_fn(|lane| fused(a[lane], b[lane], sum[lane]))
    }

    #[cfg_attr(target_arch = "aarch64", inline(always))]
    #[cfg_attr(not(target_arch = "aarch64"), inline(never))]
    fn fma_one(self, a: f32, b: f32, sum: f32) -> f32 {
        fused(a, b, sum)
    }

    #[inline(always)]
    fn one_if_less(self, a: f32, b: f32) -> f32 {
        if a >= b { 0.0 } else { 1.0 }
    }

    #[inline(always)]
    fn sum(self, v: Chunk) -> f32 {
        let eight: [f32; 8] = std::array::from_fn(|lane| v[lane] + v[lane + 8]);
        let four: [f32; 4] = std::array::from_fn(|lane| eight[lane] + eight[lane + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }

    #[inline(always)]
    fn quarters(self, vectors: [Chunk; 4]) -> Chunk {
        let mut quarters = [0.0; 16];
        for (v, quarter) in vectors.iter().zip(quarters.as_chunks_mut::<4>().0) {
            for lane in 0..4 {
                quarter[lane] = (v[lane] + v[lane + 8]) + (v[lane + 4] + v[lane + 12]);
            }
        }
        quarters
    }

    #[inline(always)]
    fn sums_of_quarters(self, vectors: [Chunk; 4]) -> Chunk {
        let mut sums = [0.0; 16];
        for (sum, quarter) in sums.iter_mut().zip(vectors.as_flattened().as_chunks::<4>().0) {
            *sum = (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
        }
        sums
    }

    #[inline(always)]
    fn max(self, a: Chunk, b: Chunk) -> Chunk {
        std::array::from_fn(|lane| if a[lane] > b[lane] { a[lane] } else { b[lane] })
    }

    #[inline(always)]
    fn greatest(self, vector: Chunk) -> f32 {
        vector.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }

    #[inline(always)]
    fn count_from(self, vector: Chunk, bound: f32) -> u32 {
        vector.into_iter().map(|x| u32::from(x >= bound)).sum()
    }

    #[inline(always)]
    fn zero_below(self, vector: Chunk, x: Chunk, bound: f32) -> Chunk {
        std::array::from_fn(|lane| if x[lane] < bound { 0.0 } else { vector[lane] })
    }

    #[inline(always)]
    fn two_to(self, shifted: Chunk) -> Chunk {
        shifted.map(|x| f32::from_bits((x.to_bits() << 23).wrapping_add(1f32.to_bits())))
    }

    #[inline(never)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
}

/// sum + a * b, rounded once, without an instruction for it. The product is exact in f64; the sum is rounded to odd
/// there, so that rounding to f32 goes the way that it would have gone from the exact sum.
#[cfg(not(target_arch = "aarch64"))]
#[inline(always)]
fn fused(a: f32, b: f32, sum: f32) -> f32 {
    let (product, sum) = (f64::from(a) * f64::from(b), f64::from(sum));
    let rounded = product + sum;
    let back = rounded - product;
    let lost = (product - (rounded - back)) + (sum - back);
    let away = (lost > 0.0) == (rounded > 0.0);
    let bits = rounded.to_bits();
    let neighbour = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    // false of what is lost from infinity, which is NaN
    let inexact = lost.abs() > 0.0;
    f64::from_bits(if inexact && bits & 1 == 0 { neighbour } else { bits }) as f32
}

/// The same where every processor has an instruction for it, on vectors, too: there the compiler makes NEON of this
/// file's arrays.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn fused(a: f32, b: f32, sum: f32) -> f32 {
    a.mul_add(b, sum)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_fused_without_the_instruction_is_rounded_once(a: u32, b: u32, sum: u32, near: bool) {
            let [a, b, sum] = [a, b, sum].map(f32::from_bits);
            // sums that cancel most of the product are where rounding twice goes wrong
            let sum = if near { -(a * b) * (1.0 + sum.abs().min(1e-6)) } else { sum };
            let (ours, truth) = (fused(a, b, sum), a.mul_add(b, sum));
            prop_assert!(ours.to_bits() == truth.to_bits() || (ours.is_nan() && truth.is_nan()), "{} {} {}", a, b, sum);
        }
    }
}
