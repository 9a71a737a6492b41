//! Integers that point into arrays, as short as the arrays allow: what is scanned again and again takes less memory.

use std::fmt::Debug;

/// A place in an array.
pub(crate) trait Index: Copy + Debug + Send + Sync + 'static {
    /// Of a place that is known to fit.
    fn from_place(place: u32) -> Self;
    /// The place.
    fn at(self) -> usize;
}

macro_rules! index {
    ($($integer:ty)*) => {
        $(impl Index for $integer {
            #[inline(always)]
            fn from_place(place: u32) -> Self {
                debug_assert!(Self::try_from(place).is_ok());
                place as Self
            }

            #[inline(always)]
            fn at(self) -> usize {
                self as usize
            }
        })*
    };
}

index!(u8 u16 u32);
