//! What l1 takes from the magnitudes of weights.
//!
//! Guarantees: what l1 takes from a weight over many steps is the sum over all of them, however little each of them
//! does, as long as the weight keeps its order of magnitude; numbers that have become too small for f32's full
//! precision are 0, lest a moment that decays for ever makes the processor slow; NaN stays NaN. Everything is plain
//! arithmetic, so that the compiler may make vectors of it without changing a bit.

use tuples::pause;

/// Moments smaller than this are 0.
const TINY: f32 = f32::MIN_POSITIVE;

/// 0 for what is too small to be worth the processor's time.
#[inline(always)]
pub(crate) fn flush(x: f32) -> f32 {
    if x.abs() < TINY { 0.0 } else { x }
}

/// `w` nearer to 0 by `by`, but not beyond.
#[inline(always)]
pub(crate) fn cut(w: f32, by: f32) -> f32 {
    let left = w.abs() - by;
    if left <= 0.0 { 0.0 } else { left.copysign(w) }
}

/// The part of `l1_applied`, the sum of all cuts so far, that a weight like `w` can have lost: to the nearest multiple
/// of the weight's last digit. The difference of two of them can be subtracted from the weight exactly, and many of
/// them add up to what the cuts do, although each cut alone may be too small for the weight to notice. No weight has to
/// remember what it has missed: that follows from the sum, which all weights share.
#[inline(always)]
fn applicable(w: f32, l1_applied: f32) -> f32 {
    let unit = f32::from_bits(w.to_bits() & EXPONENT);
    (l1_applied + unit) - unit
}

/// The bits of the power of 2 in a float.
const EXPONENT: u32 = 0x7F80_0000;

/// What l1 is to take from a weight, when the sum of all cuts goes from `before` to `now`.
#[inline(always)]
pub(crate) fn pending_l1(w: f32, before: f64, now: f64) -> f64 {
    // sums at a distance of 2^29, the digits by which f64 exceeds f32, round to the weight's last digit
    let unit = f64::from(f32::from_bits(w.to_bits() & EXPONENT)) * (1u32 << 29) as f64;
    (((now + unit) - unit) - ((before + unit) - unit)).max(0.0)
}

/// Cuts all weights by `by`, or by what their last digits allow of it and of `l1_applied`, the sum of all cuts,
/// which grows by as much.
#[inline(always)]
pub fn cut_all(weights: &mut [f32], l1_applied: &mut f64, by: f64) {
    if by > 0.0 {
        let (before, now) = (*l1_applied as f32, (*l1_applied + by) as f32);
        pause::parts_mut(weights).flatten().for_each(|w| *w = cut(*w, applicable(*w, now) - applicable(*w, before)));
        *l1_applied = wrap(*l1_applied + by, by, F32_CUTS);
    }
}

/// The sum of all cuts without what no weight asks for any more: a power of 2 that is a multiple of every weight's last
/// digit, unless the weight is larger than 2^23 times `cuts` cuts. So the sum stays small enough for its type to hold a
/// cut of `by`.
#[inline(always)]
pub fn wrap(l1_applied: f64, by: f64, cuts: f64) -> f64 {
    let power = f64::from_bits(by.to_bits() & (0x7FF << 52)); // not above `by`
    let rest = l1_applied % (power * cuts);
    if rest.is_finite() { rest } else { 0.0 }
}

/// Cuts of which f32 can hold the sum, each to an eighth.
const F32_CUTS: f64 = (1 << 20) as f64;

/// Cuts of which f64 can hold the sum, each to a 4096th.
pub const F64_CUTS: f64 = (1u64 << 40) as f64;

/// The share of the learning rate that l1 takes at least at once.
pub const MIN_L1_STEP: f64 = 1.0 / 1024.0 - 1e-12;
