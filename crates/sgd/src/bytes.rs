//! Bytes of a trainer: numbers, one after the other.
//!
//! Guarantees: numbers are as they lie in memory on a little-endian machine; reading past the end gives None. Floats
//! are written and read with pauses, since there may be many.

use bytemuck::AnyBitPattern;
use bytemuck::NoUninit;
use tuples::pause::{self, pausing};

use crate::packed::Packer;

#[cfg(target_endian = "big")]
compile_error!("the bytes of a trainer are those of a little-endian machine");

/// What numbers are written to: something that packs them, or nothing, to know how many bytes they are.
pub(crate) enum Writer {
    Packed(Packer),
    Counted(usize),
}

impl Writer {
    /// Appends bytes.
    pub(crate) fn put(&mut self, some: &[u8]) {
        match self {
            Writer::Packed(packer) => packer.put(some),
            Writer::Counted(len) => *len += some.len(),
        }
    }

    /// Appends numbers.
    pub(crate) fn numbers<T: NoUninit>(&mut self, numbers: &T) {
        self.put(bytemuck::bytes_of(numbers));
    }

    /// Appends floats.
    pub(crate) fn floats(&mut self, numbers: impl Iterator<Item = f32>) {
        match self {
            Writer::Packed(packer) => pausing(numbers).for_each(|number| packer.word(number.to_le_bytes())),
            Writer::Counted(len) => *len += numbers.count() * size_of::<f32>(),
        }
    }

    /// Appends many numbers that lie together.
    pub(crate) fn slice<T: NoUninit>(&mut self, numbers: &[T]) {
        match self {
            Writer::Packed(packer) => {
                pause::parts(numbers).for_each(|part| packer.put(bytemuck::cast_slice(part)));
            }
            Writer::Counted(len) => *len += size_of_val(numbers),
        }
    }
}

/// Bytes that numbers are read from; None where there are no more.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    /// Takes numbers.
    pub(crate) fn numbers<T: AnyBitPattern>(&mut self) -> Option<T> {
        let (numbers, rest) = self.0.split_at_checked(size_of::<T>())?;
        self.0 = rest;
        Some(bytemuck::pod_read_unaligned(numbers))
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    /// Takes floats.
    pub(crate) fn floats_into<'a>(&mut self, places: impl Iterator<Item = &'a mut f32>) -> Option<()> {
        for place in pausing(places) {
            let (number, rest) = self.0.split_first_chunk()?;
            self.0 = rest;
            *place = f32::from_le_bytes(*number);
        }
        Some(())
    }
}
