//! Integers in bytes: little endian, or arrays of them that are packed into as many bits as the largest needs.

use tuples::pause::pausing;

use crate::Error;

/// Whether integers of arrays take as many bits as the largest needs, or whole bytes as in the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// As few bits as will do.
    Bits,
    /// As few whole bytes as will do.
    Bytes,
}

impl Layout {
    /// Bits for each integer of an array whose largest is `max`.
    pub(crate) fn width(self, max: u32) -> u32 {
        let bits = u32::BITS - max.leading_zeros();
        match self {
            Layout::Bits => bits,
            Layout::Bytes => bits.next_multiple_of(8),
        }
    }
}

/// Bytes that an array of `n` integers takes: one for the width, then the integers.
pub(crate) fn packed_bytes(n: usize, width: u32) -> usize {
    1 + (n * width as usize).div_ceil(8)
}

/// Appends an array of integers of `width` bits each, the first in the lowest bits of the first byte.
pub(crate) fn put_packed(out: &mut Vec<u8>, width: u32, numbers: impl Iterator<Item = u32>) {
    allocation::reserve(out, packed_bytes(numbers.size_hint().0, width));
    out.push(width as u8);
    let (mut waiting, mut bits) = (0u64, 0);
    for number in pausing(numbers) {
        debug_assert!(width == 32 || number >> width == 0);
        waiting |= u64::from(number) << bits;
        bits += width;
        if bits >= 32 {
            out.extend_from_slice(&(waiting as u32).to_le_bytes());
            waiting >>= 32;
            bits -= 32;
        }
    }
    out.extend_from_slice(&waiting.to_le_bytes()[..bits.div_ceil(8) as usize]);
}

/// What is left of bytes that no one vouches for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

const TRUNCATED: Error = Error::Malformed("it ends too early");

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        let (number, rest) = self.0.split_first_chunk().ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*number))
    }

    /// An array of `n` integers.
    pub(crate) fn packed(&mut self, n: usize) -> Result<Packed<'a>, Error> {
        let width = u32::from(self.byte()?);
        if width > u32::BITS {
            return Err(Error::Malformed("an integer of more than 32 bits"));
        }
        let bits = n.checked_mul(width as usize).ok_or(TRUNCATED)?;
        Ok(Packed { bytes: self.take(bits.div_ceil(8))?, width, len: n })
    }

    /// That nothing is left.
    pub(crate) fn end(self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::Malformed("it has bytes after its end")) }
    }
}

/// An array of integers as [`put_packed`] wrote it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packed<'a> {
    bytes: &'a [u8],
    width: u32,
    len: usize,
}

impl Packed<'_> {
    /// An array of no integers.
    pub(crate) const NONE: Packed<'static> = Packed { bytes: &[], width: 0, len: 0 };

    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Integer `i`.
    #[inline(always)]
    pub(crate) fn get(&self, i: usize) -> u32 {
        let width = self.width as usize;
        let bit = i * width;
        let eight = match self.bytes.get(bit / 8..bit / 8 + 8) {
            Some(bytes) => u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes")),
            None => self.last_bytes(bit / 8),
        };
        (eight >> (bit % 8)) as u32 & ((1u64 << width) - 1) as u32
    }

    /// The bytes from here on, fewer than eight.
    #[cold]
    fn last_bytes(&self, from: usize) -> u64 {
        let mut eight = [0; 8];
        let rest = &self.bytes[from.min(self.bytes.len())..];
        eight[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(eight)
    }

    /// Hands over each integer in order.
    #[inline(always)]
    pub(crate) fn each(&self, mut f: impl FnMut(u32)) {
        let width = self.width as usize;
        let mask = ((1u64 << width) - 1) as u32;
        // as long as eight bytes can be read at once, which hold an integer wherever in its first byte it begins
        let fast = match self.bytes.len().checked_sub(8) {
            Some(last) if width > 0 => (last * 8 / width + 1).min(self.len),
            _ => 0,
        };
        for i in 0..fast {
            let bit = i * width;
            let bytes = self.bytes[bit / 8..].first_chunk().expect("eight bytes");
            f((u64::from_le_bytes(*bytes) >> (bit % 8)) as u32 & mask);
        }
        (fast..self.len).for_each(|i| f(self.get(i)));
    }

    /// All integers, converted.
    #[inline(always)]
    pub(crate) fn map<U>(&self, mut f: impl FnMut(u32) -> U) -> Vec<U> {
        let mut all = allocation::with_capacity(self.len);
        self.each(|number| all.push(f(number)));
        all
    }

    /// All integers if each is below `bound`.
    pub(crate) fn below(&self, bound: u64, what: &'static str) -> Result<Vec<u32>, Error> {
        let mut max = 0;
        let all = self.map(|number| {
            max = max.max(number);
            number
        });
        if !all.is_empty() && u64::from(max) >= bound { Err(Error::Malformed(what)) } else { Ok(all) }
    }

    /// Lengths as places: where each begins, and where the last ends.
    pub(crate) fn starts(&self) -> Result<Vec<u32>, Error> {
        let mut starts = allocation::with_capacity(self.len + 1);
        starts.push(0);
        let mut end = 0u64;
        self.each(|length| {
            end += u64::from(length);
            starts.push(end as u32);
        });
        if end > crate::limits::MAX_ENTRIES { Err(Error::Malformed("rows are too long")) } else { Ok(starts) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn integers_come_back_from_any_width(numbers: Vec<u32>, width in 0u32..=32) {
            let mask = ((1u64 << width) - 1) as u32;
            let numbers: Vec<u32> = numbers.iter().map(|number| number & mask).collect();
            let mut bytes = Vec::new();
            put_packed(&mut bytes, width, numbers.iter().copied());
            prop_assert_eq!(bytes.len(), packed_bytes(numbers.len(), width));
            let mut reader = Reader(&bytes);
            let packed = reader.packed(numbers.len()).unwrap();
            prop_assert!((0..numbers.len()).all(|i| packed.get(i) == numbers[i]));
            prop_assert_eq!(packed.map(|number| number), numbers);
            prop_assert_eq!(reader.end(), Ok(()));
        }
    }

    #[test]
    fn whole_bytes_are_as_in_the_paper() {
        for (max, bits, bytes) in [(0, 0, 0), (1, 1, 8), (255, 8, 8), (256, 9, 16), (65536, 17, 24), (u32::MAX, 32, 32)]
        {
            assert_eq!((Layout::Bits.width(max), Layout::Bytes.width(max)), (bits, bytes));
        }
    }
}
