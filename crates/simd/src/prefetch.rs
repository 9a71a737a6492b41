//! Hints to the caches.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};

/// Asks for the cache line of `places[i]` shortly before its use, if there is such a place:
/// for the cache of the first level.
#[inline(always)]
pub fn prefetch<T>(places: &[T], i: usize) {
    let place: *const T = places.as_ptr().wrapping_add(i);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 has SSE, and a prefetch of any address has no effect but on the caches.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch of any address has no effect but on the caches.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// The same long before its use: for the cache of the second level, to which far more lines can be under way than to
/// the first.
#[inline(always)]
pub fn prefetch_far<T>(places: &[T], i: usize) {
    let place: *const T = places.as_ptr().wrapping_add(i);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 has SSE, and a prefetch of any address has no effect but on the caches.
    unsafe {
        _mm_prefetch::<_MM_HINT_T1>(place.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch of any address has no effect but on the caches.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{0}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}
