//! AVX2, FMA, AVX-512F and AVX-512DQ: a chunk is one register.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::avx2::Avx2;
use crate::{Chunk, Doubles, Kernel, Simd};

/// Proof that the processor has AVX2, FMA, AVX-512F and AVX-512DQ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// The proof.
    ///
    /// # Safety
    /// The processor has AVX2, FMA, AVX-512F and AVX-512DQ.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Avx512 {
        Avx512(())
    }

    #[inline(always)]
    fn avx2(self) -> Avx2 {
        // SAFETY: a processor that has what this value proves has AVX2 and FMA, too.
        unsafe { Avx2::new() }
    }
}

/// Runs instructions of this set; `self` is the proof that there are some.
macro_rules! avx512 {
    ($proof:expr => $($body:tt)*) => {{
        let Avx512(()) = $proof;
        // SAFETY: there is no Avx512 on a processor without AVX2, FMA, AVX-512F and AVX-512DQ. Instructions that load
        // and store are given a Chunk or Doubles, which are exactly one register long, and need no alignment.
        unsafe { $($body)* }
    }};
}

impl Simd for Avx512 {
    type Vector = __m512;
    type DoubleVector = __m512d;

    const REGISTERS: usize = 32;

    #[inline(always)]
    fn load(self, chunk: &Chunk) -> __m512 {
        avx512! { self => _mm512_loadu_ps(chunk.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, vector: __m512, chunk: &mut Chunk) {
        avx512! { self => _mm512_storeu_ps(chunk.as_mut_ptr(), vector) }
    }

    #[inline(always)]
    fn splat(self, number: f32) -> __m512 {
        avx512! { self => _mm512_set1_ps(number) }
    }

    #[inline(always)]
    fn load_doubles(self, doubles: &Doubles) -> __m512d {
        avx512! { self => _mm512_loadu_pd(doubles.as_ptr()) }
    }

    #[inline(always)]
    fn store_doubles(self, vector: __m512d, doubles: &mut Doubles) {
        avx512! { self => _mm512_storeu_pd(doubles.as_mut_ptr(), vector) }
    }

    #[inline(always)]
    fn splat_double(self, number: f64) -> __m512d {
        avx512! { self => _mm512_set1_pd(number) }
    }

    #[inline(always)]
    fn fma_doubles(self, a: __m512d, b: __m512d, sum: __m512d) -> __m512d {
        avx512! { self => _mm512_fmadd_pd(a, b, sum) }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        avx512! { self => _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        avx512! { self => _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, sum: __m512) -> __m512 {
        avx512! { self => _mm512_fmadd_ps(a, b, sum) }
    }

    #[inline(always)]
    fn fma_one(self, a: f32, b: f32, sum: f32) -> f32 {
        self.avx2().fma_one(a, b, sum)
    }

    #[inline(always)]
    fn one_if_less(self, a: f32, b: f32) -> f32 {
        self.avx2().one_if_less(a, b)
    }

    #[inline(always)]
    fn quarters(self, [a, b, c, d]: [__m512; 4]) -> __m512 {
        avx512! { self =>
            let ab = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xEE>(a, b));
            let cd = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(c, d), _mm512_shuffle_f32x4::<0xEE>(c, d));
            _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(ab, cd), _mm512_shuffle_f32x4::<0xDD>(ab, cd))
        }
    }

    #[inline(always)]
    fn sums_of_quarters(self, [a, b, c, d]: [__m512; 4]) -> __m512 {
        avx512! { self =>
            // in each quarter two of a, two of b; two of c, two of d
            let ab = _mm512_add_ps(_mm512_shuffle_ps::<0x44>(a, b), _mm512_shuffle_ps::<0xEE>(a, b));
            let cd = _mm512_add_ps(_mm512_shuffle_ps::<0x44>(c, d), _mm512_shuffle_ps::<0xEE>(c, d));
            // in each quarter one of a, of b, of c, of d
            let one = _mm512_add_ps(_mm512_shuffle_ps::<0x88>(ab, cd), _mm512_shuffle_ps::<0xDD>(ab, cd));
            _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), one)
        }
    }

    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        avx512! { self => _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn greatest(self, vector: __m512) -> f32 {
        avx512! { self => _mm512_reduce_max_ps(vector) }
    }

    #[inline(always)]
    fn count_from(self, vector: __m512, bound: f32) -> u32 {
        avx512! { self => _mm512_cmp_ps_mask::<_CMP_GE_OQ>(vector, _mm512_set1_ps(bound)).count_ones() }
    }

    #[inline(always)]
    fn zero_below(self, vector: __m512, x: __m512, bound: f32) -> __m512 {
        avx512! { self =>
            _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, _mm512_set1_ps(bound)), vector)
        }
    }

    #[inline(always)]
    fn two_to(self, shifted: __m512) -> __m512 {
        avx512! { self =>
            let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(shifted));
            _mm512_castsi512_ps(_mm512_add_epi32(exponent, _mm512_castps_si512(_mm512_set1_ps(1.0))))
        }
    }

    #[inline(always)]
    fn sums(self, [a, b, c]: [__m512; 3]) -> [f32; 3] {
        avx512! { self =>
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
    fn four_sums(self, [a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        avx512! { self =>
            // as three sums, with those of d where they have nothing
            let ab = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xEE>(a, b));
            let cd = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(c, d), _mm512_shuffle_f32x4::<0xEE>(c, d));
            let four = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(ab, cd), _mm512_shuffle_f32x4::<0xDD>(ab, cd));
            let two = _mm512_add_ps(four, _mm512_permute_ps::<0x4E>(four));
            let one = _mm512_add_ps(two, _mm512_movehdup_ps(two));
            let [b, c] = [_mm512_extractf32x4_ps::<1>(one), _mm512_extractf32x4_ps::<2>(one)];
            let d = _mm512_extractf32x4_ps::<3>(one);
            [_mm512_cvtss_f32(one), _mm_cvtss_f32(b), _mm_cvtss_f32(c), _mm_cvtss_f32(d)]
        }
    }

    #[inline(always)]
    fn sum(self, vector: __m512) -> f32 {
        avx512! { self => self.avx2().sum([_mm512_castps512_ps256(vector), _mm512_extractf32x8_ps::<1>(vector)]) }
    }

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        avx512! { self => avx512(kernel) }
    }
}

#[target_feature(enable = "avx2,fma,avx512f,avx512dq")]
#[inline(never)]
pub(crate) fn avx512<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: this function runs only where its features are enabled.
    kernel.run(unsafe { Avx512::new() })
}
