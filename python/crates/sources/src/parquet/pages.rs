//! How Parquet's reader gets its bytes: from any place of a file, by several threads at once.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use source::SourceError;

use crate::files::DataFile;

/// Bytes that nearly all headers of pages fit into.
const HEADER_BYTES: usize = 512;

/// A file that is read by place. (The library's own way moves the file's one position, which threads would share.)
#[derive(Clone)]
pub(crate) struct Pages {
    file: Arc<File>,
    size: u64,
    /// Where the last bytes came from: where damage is, if there is some.
    last: Arc<AtomicU64>,
}

impl Pages {
    pub(crate) fn open(file: &DataFile) -> Result<Self, SourceError> {
        Ok(Self { file: Arc::new(file.open()?), size: file.size, last: Arc::default() })
    }

    /// Fills memory from a place on.
    pub(crate) fn read_exact_at(&self, to: &mut [u8], start: u64) -> io::Result<()> {
        self.last.store(start, Ordering::Relaxed);
        self.file.read_exact_at(to, start)
    }

    /// What an error of the library means for this file.
    pub(crate) fn error(&self, file: &DataFile, error: ParquetError) -> SourceError {
        let error = match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(error) if error.kind() != io::ErrorKind::UnexpectedEof => return file.io(*error),
                Ok(error) => ParquetError::External(error),
                Err(inner) => ParquetError::External(inner),
            },
            error => error,
        };
        file.damaged(self.last.load(Ordering::Relaxed), error.to_string())
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Pages {
    type T = BufReader<At>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.last.store(start, Ordering::Relaxed);
        // the header of a page is read so, and what is behind it by `get_bytes`
        Ok(BufReader::with_capacity(HEADER_BYTES, At { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.last.store(start, Ordering::Relaxed);
        // A damaged length must not ask for memory that no file could fill.
        if start.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(ParquetError::EOF(format!(
                "{length} bytes are wanted where the file ends at byte {}",
                self.size
            )));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// Reads on from a place.
pub(crate) struct At {
    file: Arc<File>,
    at: u64,
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
