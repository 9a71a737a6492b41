//! Numbers that lie back to back, as arrays and rows hold them, copied into floats.
//!
//! They are read from any address, many at a time where the processor can, and what is not finite is noticed without a
//! look at each.

use super::number::decimal;
use super::varlena::header;

/// Copies and converts as many elements as `out` has. False if one of the results is not finite.
///
/// # Safety
/// There are as many elements at `data`.
#[inline(always)]
pub(super) unsafe fn copy<T: Copy>(data: *const u8, out: &mut [f32], convert: impl Fn(T) -> f32) -> bool {
    // SAFETY: the array has as many elements as `out`; the processor has what the first function is compiled for.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            return copy_avx2(data, out, convert);
        }
        copy_each(data, out, convert)
    }
}

/// The same, compiled for processors with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn copy_avx2<T: Copy>(data: *const u8, out: &mut [f32], convert: impl Fn(T) -> f32) -> bool {
    // SAFETY: the caller's promise.
    unsafe { copy_each(data, out, convert) }
}

/// This many elements are converted at a time.
const CHUNK: usize = 8;

/// As [`copy`], for whatever the caller is compiled for. What is left behind the chunks is converted together with
/// elements before it, if there are that many.
///
/// # Safety
/// As in the item above.
#[inline(always)]
pub(crate) unsafe fn copy_each<T: Copy>(data: *const u8, out: &mut [f32], convert: impl Fn(T) -> f32) -> bool {
    let from = data.cast::<T>();
    let Some(last) = out.len().checked_sub(CHUNK) else {
        let mut bits = 0;
        for (i, place) in out.iter_mut().enumerate() {
            // SAFETY: the array has as many elements as `out`.
            *place = convert(unsafe { from.add(i).read_unaligned() });
            bits |= bits_unless_finite(*place);
        }
        return bits == 0;
    };
    let (mut bits, mut at) = ([0; CHUNK], 0);
    loop {
        // SAFETY: `at` is at most `last`, behind which there is a chunk of both.
        unsafe {
            let floats = from.add(at).cast::<[T; CHUNK]>().read_unaligned().map(&convert);
            out.as_mut_ptr().add(at).cast::<[f32; CHUNK]>().write_unaligned(floats);
            (0..CHUNK).for_each(|i| bits[i] |= bits_unless_finite(floats[i]));
        }
        if at == last {
            return bits == [0; CHUNK];
        }
        at = (at + CHUNK).min(last);
    }
}

/// 0, or something else if the number is not finite: less itself it is 0, or NaN, whose sign and mantissa do not matter
/// here.
#[inline(always)]
#[expect(clippy::eq_op, reason = "not zero if the number is not finite")]
fn bits_unless_finite(number: f32) -> u32 {
    (number - number).to_bits()
}

/// Copies as many numerics as `out` has. False if one of them takes longer to be made a number, or is not finite.
///
/// # Safety
/// There are as many at `data`, as an array without NULLs holds them.
pub(super) unsafe fn copy_numerics(data: *const u8, out: &mut [f32]) -> bool {
    let mut offset = 0usize;
    for place in out {
        // SAFETY: an array's elements are one behind the other; one whose header is not of one byte begins at a
        // multiple of four, and padding before it is zero.
        let number = unsafe {
            if *data.add(offset) == 0 {
                offset = offset.next_multiple_of(NUMERIC_ALIGN);
            }
            let at = data.add(offset);
            offset += header::len_at(at);
            header::content_at(at).and_then(decimal)
        };
        match number.map(|number| number as f32) {
            Some(number) if number.is_finite() => *place = number,
            _ => return false,
        }
    }
    true
}

/// The alignment of a numeric in an array.
const NUMERIC_ALIGN: usize = 4;
