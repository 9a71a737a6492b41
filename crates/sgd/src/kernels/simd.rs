//! Sixteen lanes of f32 in the registers of this processor, and the choice of the instruction set at run time.
//!
//! Guarantees: instructions run only where the processor has them, because a value of an instruction set cannot be made
//! before they were detected; the same operations in the same order give the same bits in all sets. This is the only
//! file of the crate with unsafe code. It exists because the compiler, left alone with arrays, takes them apart into
//! scalars.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::Chunk;

/// The arithmetic of an instruction set. Lane by lane but for the sums; no operation reorders others.
pub(crate) trait Simd: Copy {
    /// A chunk in registers.
    type Vector: Copy;

    /// The chunk, in registers.
    fn load(self, chunk: &Chunk) -> Self::Vector;
    /// The chunk, in memory.
    fn store(self, vector: Self::Vector, chunk: &mut Chunk);
    /// The same number in all lanes.
    fn splat(self, number: f32) -> Self::Vector;
    /// a + b.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// a * b.
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// sum + a * b, rounded once.
    fn fma(self, a: Self::Vector, b: Self::Vector, sum: Self::Vector) -> Self::Vector;
    /// The same for single numbers.
    fn fma_one(self, a: f32, b: f32, sum: f32) -> f32;
    /// 1 if a < b or one of them is NaN, else 0; without a branch, which would be guessed wrongly too often.
    fn one_if_less(self, a: f32, b: f32) -> f32;
    /// The sum of the lanes, folded in halves: first lane i with lane i + 8, in the end the first two.
    fn sum(self, vector: Self::Vector) -> f32;

    /// The sums of three vectors at once, each the same as [`sum`](Simd::sum).
    #[inline(always)]
    fn sums(self, vectors: [Self::Vector; 3]) -> [f32; 3] {
        [self.sum(vectors[0]), self.sum(vectors[1]), self.sum(vectors[2])]
    }

    /// sum + a * b, rounded twice.
    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, sum: Self::Vector) -> Self::Vector {
        self.add(sum, self.mul(a, b))
    }
}

/// A loop to be compiled for every instruction set. `run` and all it calls must be `#[inline(always)]`, or they would
/// be compiled for the least of them only.
pub(crate) trait Kernel {
    /// What the loop computes.
    type Output;

    /// Runs it.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// An instruction set that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level(Set);

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
    pub(crate) const PORTABLE: Level = Level(Set::Portable);

    /// The best that this processor has.
    pub(crate) fn detect() -> Level {
        *Self::available().last().expect("portable code runs everywhere")
    }

    /// All that this processor has, the best last.
    pub(crate) fn available() -> Vec<Level> {
        #[allow(unused_mut)]
        let mut levels = vec![Level::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            levels.push(Level(Set::Avx2));
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                levels.push(Level(Set::Avx512));
            }
        }
        levels
    }

    /// This, or AVX2 if this is AVX-512: for loops of many small steps, which do better with three units for 256 bits than
    /// with two for 512.
    pub(crate) fn at_most_avx2(self) -> Level {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => Level(Set::Avx2),
            set => Level(set),
        }
    }

    /// Runs `kernel` as compiled for this instruction set.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Set::Portable => kernel.run(Portable),
            // SAFETY: only available() makes this Level, and it has detected what avx2() enables.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2(kernel) },
            // SAFETY: as above, for avx512().
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512(kernel) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512dq")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512(()))
}

/// Asks for the cache line of `places[i]` shortly before its use, if there is such a place: for the cache of the first level.
#[inline(always)]
pub(crate) fn prefetch<T>(places: &[T], i: usize) {
    let place: *const T = places.as_ptr().wrapping_add(i);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 has SSE, and a prefetch of any address has no effect but on the caches.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; the instruction reads nothing that a program could see.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// The same long before its use: for the cache of the second level, to which far more lines can be under way than to the
/// first.
#[inline(always)]
pub(crate) fn prefetch_far<T>(places: &[T], i: usize) {
    let place: *const T = places.as_ptr().wrapping_add(i);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in prefetch().
    unsafe {
        _mm_prefetch::<_MM_HINT_T1>(place.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as in prefetch().
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{0}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// What every machine can do, for tests of single functions.
#[cfg(test)]
pub(crate) fn portable() -> impl Simd {
    Portable
}

/// What Rust can do on every machine.
#[derive(Clone, Copy)]
struct Portable;

impl Simd for Portable {
    type Vector = Chunk;

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
    fn add(self, a: Chunk, b: Chunk) -> Chunk {
        std::array::from_fn(|lane| a[lane] + b[lane])
    }

    #[inline(always)]
    fn mul(self, a: Chunk, b: Chunk) -> Chunk {
        std::array::from_fn(|lane| a[lane] * b[lane])
    }

    #[inline(always)]
    fn fma(self, a: Chunk, b: Chunk, sum: Chunk) -> Chunk {
        std::array::from_fn(|lane| fused(a[lane], b[lane], sum[lane]))
    }

    #[inline(always)]
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
}

/// sum + a * b, rounded once, without an instruction for it. The product is exact in f64; the sum is rounded to odd there,
/// so that rounding to f32 goes the way that it would have gone from the exact sum.
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

/// The same where every processor has an instruction for it, on vectors, too: there the compiler makes NEON of this file's
/// arrays.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn fused(a: f32, b: f32, sum: f32) -> f32 {
    a.mul_add(b, sum)
}

/// Proof that the processor has AVX2 and FMA: made by [`avx2`] only.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx2(());

// SAFETY of all blocks: there is no Avx2 on a processor without AVX2 and FMA. A Chunk is exactly two of its registers long;
// loads and stores need no alignment.
#[cfg(target_arch = "x86_64")]
impl Simd for Avx2 {
    type Vector = [__m256; 2];

    #[inline(always)]
    fn load(self, chunk: &Chunk) -> [__m256; 2] {
        // SAFETY: as above
        unsafe { [_mm256_loadu_ps(chunk.as_ptr()), _mm256_loadu_ps(chunk[8..].as_ptr())] }
    }

    #[inline(always)]
    fn store(self, [low, high]: [__m256; 2], chunk: &mut Chunk) {
        // SAFETY: as above
        unsafe {
            _mm256_storeu_ps(chunk.as_mut_ptr(), low);
            _mm256_storeu_ps(chunk[8..].as_mut_ptr(), high);
        }
    }

    #[inline(always)]
    fn splat(self, number: f32) -> [__m256; 2] {
        // SAFETY: as above
        unsafe { [_mm256_set1_ps(number); 2] }
    }

    #[inline(always)]
    fn add(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        // SAFETY: as above
        unsafe { [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn mul(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        // SAFETY: as above
        unsafe { [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn fma(self, a: [__m256; 2], b: [__m256; 2], sum: [__m256; 2]) -> [__m256; 2] {
        // SAFETY: as above
        unsafe { [_mm256_fmadd_ps(a[0], b[0], sum[0]), _mm256_fmadd_ps(a[1], b[1], sum[1])] }
    }

    #[inline(always)]
    fn fma_one(self, a: f32, b: f32, sum: f32) -> f32 {
        // SAFETY: as above
        unsafe { _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(sum))) }
    }

    #[inline(always)]
    fn one_if_less(self, a: f32, b: f32) -> f32 {
        // SAFETY: as above
        unsafe {
            let less = _mm_cmp_ss::<_CMP_NGE_UQ>(_mm_set_ss(a), _mm_set1_ps(b));
            _mm_cvtss_f32(_mm_and_ps(less, _mm_set1_ps(1.0)))
        }
    }

    #[inline(always)]
    fn sums(self, [a, b, c]: [[__m256; 2]; 3]) -> [f32; 3] {
        // SAFETY: as above
        unsafe {
            let (a, b) = (_mm256_add_ps(a[0], a[1]), _mm256_add_ps(b[0], b[1]));
            // a's four sums, then b's
            let four = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
            let two = _mm256_add_ps(four, _mm256_permute_ps::<0x4E>(four));
            let one = _mm256_add_ps(two, _mm256_movehdup_ps(two));
            let [a, b] = [_mm256_castps256_ps128(one), _mm256_extractf128_ps::<1>(one)];
            [_mm_cvtss_f32(a), _mm_cvtss_f32(b), self.sum(c)]
        }
    }

    #[inline(always)]
    fn sum(self, [low, high]: [__m256; 2]) -> f32 {
        // SAFETY: as above
        unsafe {
            let eight = _mm256_add_ps(low, high);
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

/// Proof that the processor has AVX2, FMA, AVX-512F and AVX-512DQ: made by [`avx512`] only.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx512(());

// SAFETY of all blocks: there is no Avx512 on a processor without these features. A Chunk is exactly one register long;
// loads and stores need no alignment.
#[cfg(target_arch = "x86_64")]
impl Simd for Avx512 {
    type Vector = __m512;

    #[inline(always)]
    fn load(self, chunk: &Chunk) -> __m512 {
        // SAFETY: as above
        unsafe { _mm512_loadu_ps(chunk.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, vector: __m512, chunk: &mut Chunk) {
        // SAFETY: as above
        unsafe { _mm512_storeu_ps(chunk.as_mut_ptr(), vector) }
    }

    #[inline(always)]
    fn splat(self, number: f32) -> __m512 {
        // SAFETY: as above
        unsafe { _mm512_set1_ps(number) }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: as above
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: as above
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, sum: __m512) -> __m512 {
        // SAFETY: as above
        unsafe { _mm512_fmadd_ps(a, b, sum) }
    }

    #[inline(always)]
    fn fma_one(self, a: f32, b: f32, sum: f32) -> f32 {
        Avx2(()).fma_one(a, b, sum)
    }

    #[inline(always)]
    fn one_if_less(self, a: f32, b: f32) -> f32 {
        Avx2(()).one_if_less(a, b)
    }

    #[inline(always)]
    fn sums(self, [a, b, c]: [__m512; 3]) -> [f32; 3] {
        // SAFETY: as above
        unsafe {
            // quarters of four lanes: eight sums of a, eight of b; eight of c
            let ab = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xEE>(a, b));
            let c = _mm512_add_ps(c, _mm512_shuffle_f32x4::<0xEE>(c, c));
            // four of a, four of b, four of c
            let four = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(ab, c), _mm512_shuffle_f32x4::<0xDD>(ab, c));
            let two = _mm512_add_ps(four, _mm512_permute_ps::<0x4E>(four));
            let one = _mm512_add_ps(two, _mm512_movehdup_ps(two));
            let [b, c] = [_mm512_extractf32x4_ps::<1>(one), _mm512_extractf32x4_ps::<2>(one)];
            [_mm512_cvtss_f32(one), _mm_cvtss_f32(b), _mm_cvtss_f32(c)]
        }
    }

    #[inline(always)]
    fn sum(self, vector: __m512) -> f32 {
        // SAFETY: as above; Avx512 proves AVX2 too
        unsafe { Avx2(()).sum([_mm512_castps512_ps256(vector), _mm512_extractf32x8_ps::<1>(vector)]) }
    }
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

        #[test]
        fn three_sums_at_once_are_those_of_each(vectors: [[f32; 16]; 3]) {
            struct Sums([[f32; 16]; 3]);
            impl Kernel for Sums {
                type Output = ([f32; 3], [f32; 3]);
                fn run<S: Simd>(self, simd: S) -> Self::Output {
                    let [a, b, c] = [simd.load(&self.0[0]), simd.load(&self.0[1]), simd.load(&self.0[2])];
                    (simd.sums([a, b, c]), [simd.sum(a), simd.sum(b), simd.sum(c)])
                }
            }
            prop_assume!(vectors.iter().flatten().all(|x| x.is_finite()));
            let bits = |sums: [f32; 3]| sums.map(|sum| if sum.is_nan() { 0 } else { sum.to_bits() });
            let portable = bits(Level::PORTABLE.run(Sums(vectors)).1);
            for level in Level::available() {
                let (together, each) = level.run(Sums(vectors));
                prop_assert_eq!([bits(together), bits(each)], [portable; 2]);
            }
        }
    }
}
