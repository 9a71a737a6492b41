//! AVX2 and FMA: a chunk is two registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::{Chunk, Doubles, Kernel, LANES, Simd};

/// Proof that the processor has AVX2 and FMA.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Avx2 {
        Avx2(())
    }
}

/// Runs instructions of this set; `self` is the proof that there are some.
macro_rules! avx2 {
    ($proof:expr => $($body:tt)*) => {{
        let Avx2(()) = $proof;
        // SAFETY: there is no Avx2 on a processor without AVX2 and FMA. Instructions that load and store are given
        // a Chunk or Doubles, which are exactly two of its registers long, and need no alignment.
        unsafe { $($body)* }
    }};
}

impl Simd for Avx2 {
    type Vector = [__m256; 2];
    type DoubleVector = [__m256d; 2];

    const REGISTERS: usize = 8;

    #[inline(always)]
    fn load(self, chunk: &Chunk) -> [__m256; 2] {
        avx2! { self => [_mm256_loadu_ps(chunk.as_ptr()), _mm256_loadu_ps(chunk[8..].as_ptr())] }
    }

    #[inline(always)]
    fn store(self, [low, high]: [__m256; 2], chunk: &mut Chunk) {
        avx2! { self =>
            _mm256_storeu_ps(chunk.as_mut_ptr(), low);
            _mm256_storeu_ps(chunk[8..].as_mut_ptr(), high);
        }
    }

    #[inline(always)]
    fn splat(self, number: f32) -> [__m256; 2] {
        avx2! { self => [_mm256_set1_ps(number); 2] }
    }

    #[inline(always)]
    fn load_doubles(self, doubles: &Doubles) -> [__m256d; 2] {
        avx2! { self => [_mm256_loadu_pd(doubles.as_ptr()), _mm256_loadu_pd(doubles[4..].as_ptr())] }
    }

    #[inline(always)]
    fn store_doubles(self, [low, high]: [__m256d; 2], doubles: &mut Doubles) {
        avx2! { self =>
            _mm256_storeu_pd(doubles.as_mut_ptr(), low);
            _mm256_storeu_pd(doubles[4..].as_mut_ptr(), high);
        }
    }

    #[inline(always)]
    fn splat_double(self, number: f64) -> [__m256d; 2] {
        avx2! { self => [_mm256_set1_pd(number); 2] }
    }

    #[inline(always)]
    fn fma_doubles(self, a: [__m256d; 2], b: [__m256d; 2], sum: [__m256d; 2]) -> [__m256d; 2] {
        avx2! { self => [_mm256_fmadd_pd(a[0], b[0], sum[0]), _mm256_fmadd_pd(a[1], b[1], sum[1])] }
    }

    #[inline(always)]
    fn add(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        avx2! { self => [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn mul(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        avx2! { self => [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn fma(self, a: [__m256; 2], b: [__m256; 2], sum: [__m256; 2]) -> [__m256; 2] {
        avx2! { self => [_mm256_fmadd_ps(a[0], b[0], sum[0]), _mm256_fmadd_ps(a[1], b[1], sum[1])] }
    }

    #[inline(always)]
    fn fma_one(self, a: f32, b: f32, sum: f32) -> f32 {
        avx2! { self => _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(sum))) }
    }

    #[inline(always)]
    fn one_if_less(self, a: f32, b: f32) -> f32 {
        avx2! { self =>
            let less = _mm_cmp_ss::<_CMP_NGE_UQ>(_mm_set_ss(a), _mm_set1_ps(b));
            _mm_cvtss_f32(_mm_and_ps(less, _mm_set1_ps(1.0)))
        }
    }

    #[inline(always)]
    fn quarters(self, [a, b, c, d]: [[__m256; 2]; 4]) -> [__m256; 2] {
        avx2! { self =>
            let [a, b, c, d] = [a, b, c, d].map(|[low, high]| _mm256_add_ps(low, high));
            let ab = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
            let cd = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(c, d), _mm256_permute2f128_ps::<0x31>(c, d));
            [ab, cd]
        }
    }

    #[inline(always)]
    fn sums_of_quarters(self, [a, b, c, d]: [[__m256; 2]; 4]) -> [__m256; 2] {
        avx2! { self =>
            let mut one = [_mm256_setzero_ps(); 2];
            for half in 0..2 {
                let [a, b, c, d] = [a[half], b[half], c[half], d[half]];
                let ab = _mm256_add_ps(_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xEE>(a, b));
                let cd = _mm256_add_ps(_mm256_shuffle_ps::<0x44>(c, d), _mm256_shuffle_ps::<0xEE>(c, d));
                // in each quarter one of a, of b, of c, of d
                one[half] = _mm256_add_ps(_mm256_shuffle_ps::<0x88>(ab, cd), _mm256_shuffle_ps::<0xDD>(ab, cd));
            }
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let [low, high] = [_mm256_unpacklo_ps(one[0], one[1]), _mm256_unpackhi_ps(one[0], one[1])];
            [_mm256_permutevar8x32_ps(low, order), _mm256_permutevar8x32_ps(high, order)]
        }
    }

    #[inline(always)]
    fn max(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        avx2! { self => [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn greatest(self, [low, high]: [__m256; 2]) -> f32 {
        avx2! { self =>
            let eight = _mm256_max_ps(low, high);
            let four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    fn count_from(self, vector: [__m256; 2], bound: f32) -> u32 {
        avx2! { self =>
            let reaches = vector.map(|half| _mm256_cmp_ps::<_CMP_GE_OQ>(half, _mm256_set1_ps(bound)));
            reaches.into_iter().map(|half| _mm256_movemask_ps(half).count_ones()).sum()
        }
    }

    #[inline(always)]
    fn zero_below(self, vector: [__m256; 2], x: [__m256; 2], bound: f32) -> [__m256; 2] {
        avx2! { self =>
            let keep = x.map(|half| _mm256_cmp_ps::<_CMP_NLT_UQ>(half, _mm256_set1_ps(bound)));
            [_mm256_and_ps(vector[0], keep[0]), _mm256_and_ps(vector[1], keep[1])]
        }
    }

    #[inline(always)]
    fn two_to(self, shifted: [__m256; 2]) -> [__m256; 2] {
        avx2! { self =>
            let one = _mm256_castps_si256(_mm256_set1_ps(1.0));
            shifted.map(|half| {
                let exponent = _mm256_slli_epi32::<23>(_mm256_castps_si256(half));
                _mm256_castsi256_ps(_mm256_add_epi32(exponent, one))
            })
        }
    }

    #[inline(always)]
    fn standardize(self, vector: [__m256; 2], mean: &[f64; LANES], factor: &[f64; LANES]) -> [__m256; 2] {
        let (means, factors) = (mean.as_chunks::<4>().0, factor.as_chunks::<4>().0);
        // four of the sixteen
        macro_rules! quarter {
            ($floats:expr, $i:expr) => {{
                let from_mean = _mm256_sub_pd(_mm256_cvtps_pd($floats), _mm256_loadu_pd(means[$i].as_ptr()));
                _mm256_cvtpd_ps(_mm256_mul_pd(from_mean, _mm256_loadu_pd(factors[$i].as_ptr())))
            }};
        }
        avx2! { self =>
            let [low, high] = vector;
            let (a, b) = (quarter!(_mm256_castps256_ps128(low), 0), quarter!(_mm256_extractf128_ps::<1>(low), 1));
            let (c, d) = (quarter!(_mm256_castps256_ps128(high), 2), quarter!(_mm256_extractf128_ps::<1>(high), 3));
            [_mm256_set_m128(b, a), _mm256_set_m128(d, c)]
        }
    }

    #[inline(always)]
    fn sums(self, [a, b, c]: [[__m256; 2]; 3]) -> [f32; 3] {
        avx2! { self =>
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
    fn four_sums(self, [a, b, c, d]: [[__m256; 2]; 4]) -> [f32; 4] {
        avx2! { self =>
            let [a, b, c, d] = [a, b, c, d].map(|[low, high]| _mm256_add_ps(low, high));
            // a's four sums, then b's; c's, then d's
            let ab = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
            let cd = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(c, d), _mm256_permute2f128_ps::<0x31>(c, d));
            // two of a, two of c; two of b, two of d
            let two = _mm256_add_ps(_mm256_shuffle_ps::<0x44>(ab, cd), _mm256_shuffle_ps::<0xEE>(ab, cd));
            let one = _mm256_add_ps(two, _mm256_movehdup_ps(two));
            let [ac, bd] = [_mm256_castps256_ps128(one), _mm256_extractf128_ps::<1>(one)];
            let [c, d] = [_mm_movehl_ps(ac, ac), _mm_movehl_ps(bd, bd)];
            [_mm_cvtss_f32(ac), _mm_cvtss_f32(bd), _mm_cvtss_f32(c), _mm_cvtss_f32(d)]
        }
    }

    #[inline(always)]
    fn sum(self, [low, high]: [__m256; 2]) -> f32 {
        avx2! { self =>
            let eight = _mm256_add_ps(low, high);
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        avx2! { self => avx2(kernel) }
    }
}

#[target_feature(enable = "avx2,fma")]
#[inline(never)]
pub(crate) fn avx2<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: this function runs only where its features are enabled.
    kernel.run(unsafe { Avx2::new() })
}

/// The same with 32 registers.
#[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512vl")]
pub(crate) fn avx2_of_32<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: this function runs only where its features are enabled.
    kernel.run(unsafe { Avx2::new() })
}
