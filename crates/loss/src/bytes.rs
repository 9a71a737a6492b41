//! Bytes of a trainer: numbers, one after the other, which the same code writes and reads.
//!
//! Guarantees: numbers are as they lie in memory on a little-endian machine; reading past the end gives None. Many are
//! gone through with pauses.

use bytemuck::Pod;
use tuples::pause;

use crate::packed::Packer;

#[cfg(target_endian = "big")]
compile_error!("the bytes of a trainer are those of a little-endian machine");

/// Numbers on their way into bytes, or out of them.
pub enum Coder<'a> {
    /// behind what is there
    Write(&'a mut Packer),
    /// the bytes that are left
    Read(&'a [u8]),
}

impl Coder<'_> {
    /// A value.
    pub fn value<T: Pod>(&mut self, value: &mut T) -> Option<()> {
        self.slice(std::slice::from_mut(value))
    }

    /// Many values that lie together.
    pub fn slice<T: Pod>(&mut self, values: &mut [T]) -> Option<()> {
        pause::parts_mut(values).try_for_each(|part| {
            let own: &mut [u8] = bytemuck::cast_slice_mut(part);
            match self {
                Coder::Write(packer) => packer.put(own),
                Coder::Read(bytes) => {
                    let (read, rest) = bytes.split_at_checked(own.len())?;
                    own.copy_from_slice(read);
                    *bytes = rest;
                }
            }
            Some(())
        })
    }

    /// Many numbers; None if one that is read is infinite or NaN.
    pub fn finite(&mut self, numbers: &mut [f64]) -> Option<()> {
        self.slice(numbers)?;
        let are_sound = !self.is_reading() || pause::parts(numbers).flatten().all(|number| number.is_finite());
        are_sound.then_some(())
    }

    /// Are numbers read?
    pub fn is_reading(&self) -> bool {
        matches!(self, Coder::Read(_))
    }

    /// Bytes that are left to be read.
    pub fn left(&self) -> usize {
        match self {
            Coder::Write(_) => 0,
            Coder::Read(bytes) => bytes.len(),
        }
    }
}
