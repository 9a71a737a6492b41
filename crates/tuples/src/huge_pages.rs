//! Advice to the system about large memory: huge pages for what is used, and that it may take back what is not.
//!
//! Guarantees: it is advice only; nothing depends on its being taken. Huge pages prevent what learning from rows in
//! random order pays with small ones: nearly every row is on a page whose address the processor no longer knows.
#![allow(unsafe_code)]

/// Bytes of a huge page, on x86-64 and usually on ARM.
#[cfg(target_os = "linux")]
const HUGE: usize = 1 << 21;

/// Advises the system to put huge pages behind `memory`, as far as they fit within.
#[cfg(target_os = "linux")]
pub fn advise<T>(memory: &[T]) {
    // If it is refused, pages stay small.
    give_advice(memory, libc::MADV_HUGEPAGE);
}

/// Tells the system that no one needs what is in `memory`: when it is short of memory it takes pages back, until
/// somebody writes to them. False if it cannot do that.
#[cfg(target_os = "linux")]
pub fn disown<T>(memory: &mut [std::mem::MaybeUninit<T>]) -> bool {
    give_advice(memory, libc::MADV_FREE)
}

/// For the huge pages that fit within. False without any, or the advice is refused.
#[cfg(target_os = "linux")]
fn give_advice<T>(memory: &[T], advice: libc::c_int) -> bool {
    let start = memory.as_ptr().addr();
    let first = start.next_multiple_of(HUGE);
    let bytes = (start + size_of_val(memory)).saturating_sub(first) / HUGE * HUGE;
    let first = memory.as_ptr().wrapping_byte_add(first - start).cast_mut().cast();
    // SAFETY: the range is within memory that the slice borrows. One advice changes no byte of it; the other, which is
    // only given with a mutable borrow, may make them zero, and they hold nothing.
    bytes > 0 && unsafe { libc::madvise(first, bytes, advice) } == 0
}

/// Elsewhere there is nothing to ask.
#[cfg(not(target_os = "linux"))]
pub fn advise<T>(_: &[T]) {}

/// Not available elsewhere.
#[cfg(not(target_os = "linux"))]
pub fn disown<T>(_: &mut [std::mem::MaybeUninit<T>]) -> bool {
    false
}
