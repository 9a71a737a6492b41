//! gzip and Snappy over the bytes of DEN, which have to be unpacked for every operation.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use tuples::pause;

use crate::bytes::Reader;
use crate::dense::{Dense, all_entries};
use crate::operations::Form;
use crate::stored;
use crate::values::{Summary, Values};
use crate::{Encoding, Error, Info, Number, Rows};

/// The bytes of gzip or Snappy.
pub(crate) fn encode(rows: &Rows, encoding: Encoding) -> Result<Vec<u8>, Error> {
    let kind = Summary::from_entries(rows).plain_kind();
    let mut plain = Vec::new();
    kind.put_plain(&mut plain, &all_entries(rows)?);
    let mut out = stored::begin(encoding, rows.len(), rows.columns(), kind);
    allocation::append(&mut out, &pack(encoding, &plain));
    Ok(stored::seal(out))
}

/// Compresses bytes.
fn pack(encoding: Encoding, plain: &[u8]) -> Vec<u8> {
    if encoding == Encoding::Snappy {
        let mut packed = allocation::zeros(snap::raw::max_compress_len(plain.len()));
        let len = snap::raw::Encoder::new().compress(plain, &mut packed);
        packed.truncate(len.expect("a mini-batch within the limits is below Snappy's 4 GiB"));
        return packed;
    }
    let mut encoder = GzEncoder::new(allocation::Bytes::default(), Compression::default());
    let written = pause::parts(plain).try_for_each(|part| encoder.write_all(part));
    written.and_then(|()| encoder.finish()).expect("memory can be written to").0
}

/// How many bytes gzip (level 6) or Snappy makes of all entries at eight bytes each.
pub(crate) fn packed_bytes(rows: &Rows, encoding: Encoding) -> usize {
    let mut sink = Sink::new(encoding);
    let mut row: Vec<f64> = allocation::zeros(rows.columns());
    for (indices, values) in rows.iter() {
        row.fill(0.0);
        indices.iter().zip(values).for_each(|(index, value)| row[*index as usize] = *value);
        pause::parts(&row).flatten().for_each(|value| sink.put(&value.to_le_bytes()));
    }
    sink.finish()
}

/// Counts compressed bytes without keeping them, so that a wide matrix needs no more memory than a row.
enum Sink {
    Gzip(GzEncoder<Count>),
    /// Snappy compresses blocks of 64 KiB by themselves, after the length of all.
    Snappy {
        block: Vec<u8>,
        plain: u64,
        packed: usize,
    },
}

/// Bytes written.
struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const SNAPPY_BLOCK: usize = 1 << 16;

/// Bytes of a length before what Snappy compressed.
fn varint_bytes(length: u64) -> usize {
    (u64::BITS - length.leading_zeros()).div_ceil(7).max(1) as usize
}

impl Sink {
    fn new(encoding: Encoding) -> Sink {
        match encoding {
            Encoding::Snappy => Sink::Snappy { block: Vec::new(), plain: 0, packed: 0 },
            _ => Sink::Gzip(GzEncoder::new(Count(0), Compression::default())),
        }
    }

    fn put(&mut self, bytes: &[u8; 8]) {
        match self {
            Sink::Gzip(encoder) => encoder.write_all(bytes).expect("counting does not fail"),
            Sink::Snappy { block, .. } => {
                block.extend_from_slice(bytes);
                if block.len() == SNAPPY_BLOCK {
                    self.end_block();
                }
            }
        }
    }

    fn end_block(&mut self) {
        if let Sink::Snappy { block, plain, packed } = self {
            *plain += block.len() as u64;
            *packed += pack(Encoding::Snappy, block).len() - varint_bytes(block.len() as u64);
            block.clear();
        }
    }

    fn finish(mut self) -> usize {
        self.end_block();
        match self {
            Sink::Gzip(encoder) => encoder.finish().expect("counting does not fail").0,
            Sink::Snappy { plain, packed, .. } => packed + varint_bytes(plain),
        }
    }
}

/// Bytes that are unpacked whenever they are needed.
#[derive(Debug)]
pub(crate) struct General {
    info: Info,
    packed: Box<[u8]>,
}

impl General {
    /// What follows the header of gzip or Snappy. Unpacked once, so that it is known to be whole.
    pub(crate) fn read(info: &Info, reader: Reader<'_>) -> Result<General, Error> {
        let general = General { info: *info, packed: allocation::copy(reader.0).into() };
        general.plain()?;
        Ok(general)
    }

    /// The bytes of all entries.
    fn plain(&self) -> Result<Vec<u8>, Error> {
        // within the limits, and the length that Snappy states or gzip goes on to is not believed
        let length = self.info.entries() as usize * usize::from(self.info.value_bytes);
        const WRONG: Error = Error::Malformed("what is compressed has another length than the matrix");
        const BROKEN: Error = Error::Malformed("what is compressed cannot be unpacked");
        if self.info.encoding == Encoding::Snappy {
            if snap::raw::decompress_len(&self.packed).map_err(|_| BROKEN)? != length {
                return Err(WRONG);
            }
            let mut plain = allocation::zeros(length);
            snap::raw::Decoder::new().decompress(&self.packed, &mut plain).map_err(|_| BROKEN)?;
            return Ok(plain);
        }
        let mut decoder = GzDecoder::new(&self.packed[..]);
        let mut plain: Vec<u8> = allocation::zeros(length);
        pause::parts_mut(&mut plain).try_for_each(|part| decoder.read_exact(part)).map_err(|_| BROKEN)?;
        // reads the checksum at the end, too
        match decoder.read(&mut [0]) {
            Ok(0) if decoder.into_inner().is_empty() => Ok(plain),
            Ok(_) => Err(WRONG),
            Err(_) => Err(BROKEN),
        }
    }

    /// All entries.
    pub(crate) fn unpack<T: Number>(&self) -> Result<Dense<T>, Error> {
        Dense::from_values(&self.info, Values::from_plain(&self.plain()?, self.info.value_bytes)?)
    }

    fn unpack_again<T: Number>(&self) -> Dense<T> {
        self.unpack().expect("it was unpacked when it was opened")
    }
}

impl<T: Number> Form<T> for General {
    fn rows(&self) -> usize {
        self.info.rows
    }

    fn columns(&self) -> usize {
        self.info.columns
    }

    fn heap_bytes(&self) -> usize {
        self.packed.len()
    }

    #[inline(always)]
    fn times_vector(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>) {
        self.unpack_again().times_vector(v, out, scratch);
    }

    #[inline(always)]
    fn vector_times(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>) {
        self.unpack_again().vector_times(v, out, scratch);
    }

    #[inline(always)]
    fn times_matrix(&self, m: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>) {
        self.unpack_again().times_matrix(m, width, out, scratch);
    }

    #[inline(always)]
    fn transposed_times_matrix(&self, m: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>) {
        self.unpack_again().transposed_times_matrix(m, width, out, scratch);
    }

    fn all_finite(&self) -> bool {
        Form::<T>::all_finite(&self.unpack_again::<T>())
    }

    fn get(&self, i: usize, j: usize) -> T {
        self.unpack_again::<T>().get(i, j)
    }

    fn each_entry_of_row(&self, i: usize, f: &mut dyn FnMut(u32, T)) {
        self.unpack_again::<T>().each_entry_of_row(i, f);
    }
}
