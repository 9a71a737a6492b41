//! Chooses the instruction set at run time.
//!
//! Guarantees: code for an instruction set runs only where the processor has it, because a [`Level`] cannot be made
//! otherwise. This is the only file of the crate with unsafe code.
#![allow(unsafe_code)]

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

/// A loop to be compiled for every instruction set. `run` and all it calls must be `#[inline(always)]`, or they would be
/// compiled for the least of them only.
pub(crate) trait Kernel {
    /// What the loop computes.
    type Output;

    /// Runs it.
    fn run(self) -> Self::Output;
}

impl Level {
    /// The best that this processor has.
    pub(crate) fn detect() -> Level {
        *Self::available().last().expect("portable code runs everywhere")
    }

    /// All that this processor has, the best last.
    pub(crate) fn available() -> Vec<Level> {
        #[allow(unused_mut)]
        let mut levels = vec![Level(Set::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                levels.push(Level(Set::Avx2));
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    levels.push(Level(Set::Avx512));
                }
            }
        }
        levels
    }

    /// Runs `kernel` as compiled for this instruction set.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Set::Portable => kernel.run(),
            // SAFETY: only available() makes a Level, and it has detected the features that avx2() enables.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2(kernel) },
            // SAFETY: as above, for avx512().
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512(kernel) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512dq,avx512vl")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

/// Asks for the cache line of `place` ahead of its use.
#[inline(always)]
pub(super) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 has SSE, and a prefetch of any address has no effect but on the caches.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
