//! The bytes of a file: mapped, or read where they are wanted.

use std::fs::File;

use arrow::buffer::Buffer;
use memmap2::Mmap;
use source::SourceError;

use crate::files::DataFile;
use crate::indexed::bytes_of;

/// Where bytes of a file come from.
pub(super) enum Bytes {
    Mapped(Buffer),
    Read(File),
}

impl Bytes {
    pub(super) fn open(file: &DataFile, memory_map: bool) -> Result<Self, SourceError> {
        let opened = file.open()?;
        // Nothing cannot be mapped.
        if !memory_map || file.size == 0 {
            return Ok(Self::Read(opened));
        }
        let mapped = map(&opened).map_err(|error| file.io(error))?;
        Ok(Self::Mapped(Buffer::from(bytes::Bytes::from_owner(mapped))))
    }

    /// Bytes of the file, which are there: the caller has compared with its size.
    pub(super) fn get(&self, file: &DataFile, offset: u64, length: usize) -> Result<Buffer, SourceError> {
        match self {
            Self::Mapped(buffer) if offset as usize + length <= buffer.len() => {
                Ok(buffer.slice_with_length(offset as usize, length))
            }
            Self::Mapped(_) => Err(SourceError::Changed { path: file.path.clone() }),
            Self::Read(opened) => Ok(Buffer::from_vec(bytes_of(file, opened, offset, length)?)),
        }
    }
}

#[expect(unsafe_code)]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: Rust requires that no one changes the bytes while they are mapped. No program can see to that for a
    // file; what it means here is documented where mapping is offered (`Options::memory_map`), and each read first
    // compares size and time of change. Bytes that do change are numbers and texts that were checked once and may now
    // be others: offsets of lists and texts are copied out of the mapping together with what they lead to, with checks
    // of their bounds.
    unsafe { Mmap::map(file) }
}
