//! The choice of the instruction set at run time.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use crate::avx2::{avx2, avx2_of_32};
#[cfg(target_arch = "x86_64")]
use crate::avx512::avx512;
use crate::{Kernel, Portable};

/// An instruction set that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The least, which every processor has.
    pub const PORTABLE: Level = Level(Set::Portable);

    /// The best that this processor has.
    pub fn detect() -> Level {
        *Self::available().last().expect("portable code runs everywhere")
    }

    /// The best with registers of 256 bits at most, found without a list of all: for single rows.
    #[inline]
    pub fn detect_narrow() -> Level {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            return Level(Set::Avx2);
        }
        Level::PORTABLE
    }

    /// All that this processor has, the best last.
    pub fn available() -> Vec<Level> {
        #[allow(unused_mut)]
        let mut levels = vec![Level::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            levels.push(Level(Set::Avx2));
            if has_avx512() {
                levels.push(Level(Set::Avx512));
            }
        }
        levels
    }

    /// Runs `kernel` as compiled for this instruction set.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Set::Portable => kernel.run(Portable),
            // SAFETY: only available() makes this Level, and it has detected what avx2() enables.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2(kernel) },
            // SAFETY: only available() makes this Level, and it has detected what avx512() enables.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512(kernel) },
        }
    }

    /// Runs `kernel` as compiled for AVX2 at most: for what gains nothing from wider registers.
    #[inline]
    pub fn run_narrow<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Set::Portable => kernel.run(Portable),
            // SAFETY: only available() makes this Level, and it has detected what avx2() enables, for both sets.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 | Set::Avx512 => unsafe { avx2(kernel) },
        }
    }

    /// Runs `kernel` as compiled for registers of 256 bits at most: for loops of many small steps, which do better with
    /// three units for 256 bits than with two for 512. Of a set with wider ones there are 32 such registers instead of
    /// 16, so that such a loop need not keep half of its numbers in memory.
    #[inline]
    pub fn run_short<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Set::Portable => kernel.run(Portable),
            // SAFETY: only available() makes this Level, and it has detected what avx2() enables.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2(kernel) },
            // SAFETY: only available() makes this Level, and it has detected what avx2_of_32() enables.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx2_of_32(kernel) },
        }
    }
}

/// Whether the processor has all that Avx2 stands for.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Whether the processor has all that Avx512 stands for, and its instructions for narrower registers, too.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vl")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Chunk, Simd};

    proptest! {
        #[test]
        fn standardizing_is_the_same_everywhere(vector: [f32; 16], mean: [f64; 16], factor: [f64; 16]) {
            struct Standardized([f32; 16], [f64; 16], [f64; 16]);
            impl Kernel for Standardized {
                type Output = [f32; 16];
                fn run<S: Simd>(self, simd: S) -> [f32; 16] {
                    let mut out = [0.0; 16];
                    simd.store(simd.standardize(simd.load(&self.0), &self.1, &self.2), &mut out);
                    out
                }
            }
            let bits = |number: f32| if number.is_nan() { 0 } else { number.to_bits() };
            let expected = std::array::from_fn(|i| ((f64::from(vector[i]) - mean[i]) * factor[i]) as f32).map(bits);
            for level in Level::available().into_iter().chain([Level::detect_narrow()]) {
                prop_assert_eq!(level.run(Standardized(vector, mean, factor)).map(bits), expected);
            }
        }

        #[test]
        fn several_sums_at_once_are_those_of_each(vectors: [[f32; 16]; 4]) {
            struct Sums([[f32; 16]; 4]);
            impl Kernel for Sums {
                type Output = ([f32; 7], [f32; 4], [Chunk; 2]);
                fn run<S: Simd>(self, simd: S) -> Self::Output {
                    let all = self.0.each_ref().map(|vector| simd.load(vector));
                    let ([a, b, c], [d, e, f, g]) = (simd.sums([all[0], all[1], all[2]]), simd.four_sums(all));
                    let mut sums = [[0.0; 16]; 2];
                    simd.store(simd.sums_of_quarters([simd.quarters(all); 4]), &mut sums[0]);
                    let [first, .., last] = all;
                    let quarters = [[first; 4], all, [last; 4], all].map(|four| simd.quarters(four));
                    simd.store(simd.sums_of_quarters(quarters), &mut sums[1]);
                    ([a, b, c, d, e, f, g], all.map(|vector| simd.sum(vector)), sums)
                }
            }
            prop_assume!(vectors.iter().flatten().all(|x| x.is_finite()));
            let bits = |sum: f32| if sum.is_nan() { 0 } else { sum.to_bits() };
            let portable = Level::PORTABLE.run(Sums(vectors)).1.map(bits);
            let [a, b, c, d] = portable;
            let quarters = [[portable; 4], [[a; 4], portable, [d; 4], portable]];
            for level in Level::available() {
                for (together, each, sums) in [level.run(Sums(vectors)), level.run_short(Sums(vectors))] {
                    prop_assert_eq!(together.map(bits).to_vec(), [&[a, b, c][..], &portable].concat());
                    prop_assert_eq!(each.map(bits), portable);
                    prop_assert_eq!(sums.map(|sums| sums.map(bits)), quarters.map(|four| std::array::from_fn(|i| four[i / 4][i % 4])));
                }
            }
        }
    }
}
