//! Asking the system for huge pages behind large memory.
//!
//! Guarantees: it is advice only; nothing depends on its being taken. It prevents what learning from rows in random order
//! pays with small pages: nearly every row is on a page whose address the processor no longer knows.
#![allow(unsafe_code)]

/// Bytes of a huge page, on x86-64 and usually on ARM.
#[cfg(target_os = "linux")]
const HUGE: usize = 1 << 21;

/// Advises the system to put huge pages behind what `memory` has allocated, as far as they fit within.
#[cfg(target_os = "linux")]
pub fn advise<T>(memory: &[std::mem::MaybeUninit<T>]) {
    let start = memory.as_ptr().addr();
    let first = start.next_multiple_of(HUGE);
    let bytes = (start + size_of_val(memory)).saturating_sub(first) / HUGE * HUGE;
    if bytes > 0 {
        let first = memory.as_ptr().wrapping_byte_add(first - start).cast_mut().cast();
        // SAFETY: the range is within memory that the slice borrows, and the advice changes no byte of it. If it is
        // refused, pages stay small.
        unsafe { libc::madvise(first, bytes, libc::MADV_HUGEPAGE) };
    }
}

/// Elsewhere there is nothing to ask.
#[cfg(not(target_os = "linux"))]
pub fn advise<T>(_: &[std::mem::MaybeUninit<T>]) {}
