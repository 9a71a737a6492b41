//! One attribute of a tuple, read where it lies.

use pgrx::pg_sys;

/// fetch_att() for pass-by-value types.
///
/// # Safety
/// An attribute of `len` bytes is at `at`, aligned.
#[inline(always)]
pub(crate) unsafe fn fetch(at: *const u8, len: i16) -> pg_sys::Datum {
    // SAFETY: the caller's promise.
    unsafe {
        match len {
            1 => pg_sys::Datum::from(*at.cast::<i8>()),
            2 => pg_sys::Datum::from(*at.cast::<i16>()),
            4 => pg_sys::Datum::from(*at.cast::<i32>()),
            _ => pg_sys::Datum::from(*at.cast::<i64>()),
        }
    }
}
