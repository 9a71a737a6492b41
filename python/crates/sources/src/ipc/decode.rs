//! The record batches of one file.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::FileDecoder;
use arrow::ipc::{Block, CompressionType};
use source::{Cancel, SourceError, Unit};

use super::bytes::Bytes;
use super::messages::{Contents, contents, header, message};
use crate::files::DataFile;

pub(super) struct Batches {
    pub(super) file: DataFile,
    pub(super) schema: SchemaRef,
    pub(super) units: Vec<Unit>,
    bytes: Bytes,
    blocks: Vec<Block>,
    compressed: Vec<bool>,
    decoder: FileDecoder,
}

impl Batches {
    pub(super) fn open(file: DataFile, memory_map: bool, cancel: &Cancel) -> Result<Self, SourceError> {
        let bytes = Bytes::open(&file, memory_map)?;
        let decoded = catch_unwind(AssertUnwindSafe(|| contents(&file, &bytes, cancel)));
        let contents = decoded.unwrap_or_else(|_| Err(file.damaged(0, "what the file has cannot be decoded")))?;
        let Contents { schema, version, dictionaries, batches } = contents;
        let mut decoder = FileDecoder::new(schema.clone(), version);
        for block in &dictionaries {
            let body = whole(&file, &bytes, block)?;
            guarded(&file, block, || decoder.read_dictionary(block, &body))?;
        }
        let (mut units, mut compressed) = (Vec::new(), Vec::new());
        for block in &batches {
            let header = header(&file, &bytes, block)?;
            let message = message(&file, block, &header)?;
            let batch = message.header_as_record_batch();
            let batch = batch.ok_or_else(|| file.damaged(block.offset() as u64, "there is no record batch"))?;
            let rows = u64::try_from(batch.length());
            let rows =
                rows.map_err(|_| file.damaged(block.offset() as u64, "a batch has a negative number of rows"))?;
            compressed.push(batch.compression().is_some());
            // What is compressed takes about three times its size.
            let factor = if batch.compression().is_some() { 3 } else { 1 };
            units.push(Unit { rows, bytes: block.bodyLength() as u64 * factor });
        }
        Ok(Self { file, schema, units, bytes, blocks: batches, compressed, decoder })
    }

    /// Reads these columns only.
    pub(super) fn project(&mut self, fields: &[Field]) {
        let all = self.schema.fields().iter().enumerate();
        let wanted = all.filter(|(_, field)| fields.iter().any(|wanted| wanted.name() == field.name()));
        let wanted = wanted.map(|(at, _)| at).collect();
        let version = arrow::ipc::MetadataVersion::V5;
        let decoder = std::mem::replace(&mut self.decoder, FileDecoder::new(self.schema.clone(), version));
        self.decoder = decoder.with_projection(wanted);
    }

    pub(super) fn is_mapped(&self) -> bool {
        matches!(self.bytes, Bytes::Mapped(_))
    }

    /// Whether any rows can be read without others.
    pub(super) fn is_exact(&self) -> bool {
        self.is_mapped() && !self.compressed.contains(&true)
    }

    pub(super) fn is_uncompressed(&self, batch: usize) -> bool {
        !self.compressed[batch]
    }

    pub(super) fn read(&self, batch: usize) -> Result<RecordBatch, SourceError> {
        let block = &self.blocks[batch];
        let body = whole(&self.file, &self.bytes, block)?;
        if self.compressed[batch] {
            self.check_lengths(block, &body)?;
        }
        let read = guarded(&self.file, block, || self.decoder.read_record_batch(block, &body))?;
        read.ok_or_else(|| self.file.damaged(block.offset() as u64, "there is no record batch"))
    }

    /// Checks how long the parts of a compressed batch say that they are: the library asks for so much memory, and a
    /// process that does not get it ends.
    fn check_lengths(&self, block: &Block, body: &[u8]) -> Result<(), SourceError> {
        let header = header(&self.file, &self.bytes, block)?;
        let message = message(&self.file, block, &header)?;
        let batch = message.header_as_record_batch();
        let is_lz4 = |batch: &arrow::ipc::RecordBatch<'_>| {
            batch.compression().is_some_and(|compression| compression.codec() == CompressionType::LZ4_FRAME)
        };
        let Some(buffers) = batch.filter(is_lz4).and_then(|batch| batch.buffers()) else { return Ok(()) };
        for buffer in buffers {
            let start = i64::from(block.metaDataLength()).checked_add(buffer.offset()).map(usize::try_from);
            let said = start.and_then(Result::ok).and_then(|start| body.get(start..)).and_then(<[u8]>::first_chunk);
            let Some(said) = said.filter(|_| buffer.length() > 0) else { continue };
            if i64::from_le_bytes(*said) > buffer.length().saturating_mul(LZ4_RATIO) {
                return Err(self.file.damaged(block.offset() as u64, "a batch says that it is longer than it can be"));
            }
        }
        Ok(())
    }
}

/// No bytes of LZ4 become more than this many each.
const LZ4_RATIO: i64 = 255;

fn whole(file: &DataFile, bytes: &Bytes, block: &Block) -> Result<arrow::buffer::Buffer, SourceError> {
    bytes.get(file, block.offset() as u64, block.metaDataLength() as usize + block.bodyLength() as usize)
}

/// Damage may come as an error or as a panic: the library does not check every length.
fn guarded<T>(file: &DataFile, block: &Block, read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, SourceError> {
    let damaged = |what: String| file.damaged(block.offset() as u64, what);
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|error| damaged(error.to_string())),
        Err(_) => Err(damaged("a record batch cannot be decoded".into())),
    }
}
