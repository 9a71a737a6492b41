//! Copies of a data set in another order, as an Arrow file: what `shuffle_once` and Corgi2 read instead of it.
//!
//! `shuffle_once` is a full shuffle, done once and in as much memory as is given: rows are dealt to temporary files by
//! a random key, and each of these is sorted by it. Corgi2 (Livne et al., "Corgi2: A Hybrid Offline-Online Approach To
//! Storage-Aware Data Shuffling For SGD", 2023) copies what CorgiPile reads: its blocks then are mixed ones.
//!
//! It guarantees that a copy is there whole or not at all.

use crate::plan::PlanError;
use crate::size::Size;
use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::{cast, interleave_record_batch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use shuffle::{BlockSequence, Blocks, SortKeys, Strategy, shuffle_tuples};
use source::{Cancel, Source, SourceError};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The epoch that an offline pass counts as.
const OFFLINE: u64 = u64::MAX;

/// Bytes that are read or written at once.
const BYTES: u64 = 1 << 20;

/// What cannot be read in parts is read at once up to this size.
const LARGEST: u64 = 256 * BYTES;

/// A copy of a source's rows that is being made.
pub struct Offline<'a> {
    source: &'a dyn Source,
    schema: SchemaRef,
    seed: i64,
    to: &'a Path,
    partial: PathBuf,
    cancel: &'a Cancel,
    /// rows that were read or written, of twice as many as there are for a full shuffle
    done: &'a AtomicU64,
    /// rows of a batch in the file
    batch: u64,
}

impl<'a> Offline<'a> {
    /// A copy in the file `to`. `done` counts the rows meanwhile: each is read once and written once.
    pub fn new(
        source: &'a dyn Source,
        seed: i64,
        to: &'a Path,
        cancel: &'a Cancel,
        done: &'a AtomicU64,
    ) -> Offline<'a> {
        let (rows, bytes) = totals(source);
        let partial = to.with_extension(format!("partial-{}", std::process::id()));
        let batch = (BYTES * rows / bytes.max(1)).max(1);
        Offline { source, schema: plain(&source.schema()), seed, to, partial, cancel, done, batch }
    }

    /// Shuffles all rows, in about `memory` bytes.
    ///
    /// # Errors
    /// What cannot be read or written.
    pub fn shuffle_once(self, memory: u64) -> Result<(), SourceError> {
        let bytes = totals(self.source).1;
        // a part is in memory as it was read and as it is written
        let parts = bytes.div_ceil((memory / 2).max(1)).clamp(1, 1000) as usize;
        let written = self.shuffle_parts(parts);
        for part in 0..parts {
            let _ = fs::remove_file(self.part(part));
        }
        self.finish(written)
    }

    /// Copies the rows in the order in which CorgiPile reads them.
    ///
    /// # Errors
    /// What cannot be read or written, and sizes that are invalid.
    pub fn corgi2(self, block_size: Size, buffer_size: Size) -> Result<(), PlanError> {
        let (rows, bytes) = totals(self.source);
        let buffers = crate::plan::buffers(buffer_size, rows, bytes);
        let blocks = crate::plan::blocks(self.source, block_size, buffers, [rows, bytes])?;
        let written = self.copy_buffers(&blocks, buffers as u32);
        Ok(self.finish(written)?)
    }

    fn copy_buffers(&self, blocks: &Blocks, buffers: u32) -> Result<(), SourceError> {
        let mut writer = self.writer()?;
        let sequence = BlockSequence::new(Strategy::CorgiPile, self.seed, OFFLINE, blocks, buffers);
        for buffer in 0..sequence.buffers() {
            let mut read = Vec::new();
            for block in sequence.blocks_of(buffer) {
                read.push(self.read(blocks.tuples_of(*block))?);
            }
            let places: Vec<(usize, usize)> =
                read.iter().enumerate().flat_map(|(i, batch)| (0..batch.num_rows()).map(move |row| (i, row))).collect();
            let mut order: Vec<u32> = (0..places.len() as u32).collect();
            shuffle_tuples(Strategy::CorgiPile, self.seed, OFFLINE, buffer.into(), &mut order);
            let places: Vec<_> = order.iter().map(|i| places[*i as usize]).collect();
            self.write(&mut writer, &read, &places)?;
        }
        self.close(writer)
    }

    fn shuffle_parts(&self, parts: usize) -> Result<(), SourceError> {
        self.deal(parts)?;
        let mut writer = self.writer()?;
        for part in 0..parts {
            let file = File::open(self.part(part)).map_err(|error| self.io(error))?;
            let reader = StreamReader::try_new(BufReader::new(file), None).map_err(|error| self.failed(error))?;
            let dealt: Vec<RecordBatch> = reader.collect::<Result<_, _>>().map_err(|error| self.failed(error))?;
            let mut places = Vec::new();
            for (i, batch) in dealt.iter().enumerate() {
                let keys = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
                places.extend(keys.values().iter().enumerate().map(|(row, key)| (*key, (i, row))));
            }
            places.sort_unstable();
            let rows: Vec<RecordBatch> = dealt.iter().map(without_key).collect::<Result<_, _>>()?;
            drop(dealt);
            let places: Vec<(usize, usize)> = places.into_iter().map(|(_, place)| place).collect();
            self.write(&mut writer, &rows, &places)?;
        }
        self.close(writer)
    }

    /// Deals the rows to temporary files by their keys, which become one more column.
    fn deal(&self, parts: usize) -> Result<(), SourceError> {
        let fields = self.schema.fields().iter().cloned();
        let key = Arc::new(Field::new("corgipile key", DataType::Int64, false));
        let schema = Arc::new(Schema::new(fields.chain([key]).collect::<Vec<_>>()));
        let create = |part| {
            let file = File::create(self.part(part)).map_err(|error| self.io(error))?;
            StreamWriter::try_new(BufWriter::new(file), &schema).map_err(|error| self.failed(error))
        };
        let mut writers = (0..parts).map(create).collect::<Result<Vec<_>, _>>()?;
        let keys = SortKeys::once(self.seed);
        let blocks = crate::plan::of_whole_runs(self.source, 8 * BYTES, LARGEST);
        let blocks = blocks.map_err(|error| SourceError::Invalid(error.to_string()))?;
        for block in 0..blocks.len() {
            let rows = blocks.tuples_of(block);
            let batch = self.read(rows.clone())?;
            let mut dealt = vec![Vec::new(); parts];
            let key_of: Vec<i64> = (rows.start..).take(batch.num_rows()).map(|row| keys.key(row)).collect();
            for (row, key) in key_of.iter().enumerate() {
                let place = key.cast_unsigned() ^ (1 << 63); // in the order of signed numbers
                dealt[((u128::from(place) * parts as u128) >> 64) as usize].push((0, row));
            }
            let key_of: ArrayRef = Arc::new(Int64Array::from(key_of));
            let columns = batch.columns().iter().cloned().chain([key_of]).collect();
            let batch = RecordBatch::try_new(schema.clone(), columns).map_err(|error| self.failed(error))?;
            for (writer, places) in writers.iter_mut().zip(&dealt).filter(|(_, places)| !places.is_empty()) {
                let part = interleave_record_batch(&[&batch], places).map_err(|error| self.failed(error))?;
                writer.write(&part).map_err(|error| self.failed(error))?;
            }
        }
        writers.iter_mut().try_for_each(StreamWriter::finish).map_err(|error| self.failed(error))
    }

    fn read(&self, rows: std::ops::Range<u64>) -> Result<RecordBatch, SourceError> {
        self.cancel.check()?;
        let batch = self.source.read(rows.clone(), self.cancel)?;
        self.done.fetch_add(rows.end - rows.start, Ordering::Relaxed);
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| cast(column, field.data_type())).collect::<Result<_, _>>();
        columns
            .and_then(|columns| RecordBatch::try_new(self.schema.clone(), columns))
            .map_err(|error| self.failed(error))
    }

    fn write(
        &self,
        writer: &mut FileWriter<BufWriter<File>>,
        rows: &[RecordBatch],
        places: &[(usize, usize)],
    ) -> Result<(), SourceError> {
        let rows: Vec<&RecordBatch> = rows.iter().collect();
        for places in places.chunks(self.batch as usize) {
            self.cancel.check()?;
            let batch = interleave_record_batch(&rows, places).map_err(|error| self.failed(error))?;
            writer.write(&batch).map_err(|error| self.failed(error))?;
            self.done.fetch_add(places.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    fn writer(&self) -> Result<FileWriter<BufWriter<File>>, SourceError> {
        let file = File::create(&self.partial).map_err(|error| self.io(error))?;
        FileWriter::try_new(BufWriter::new(file), &self.schema).map_err(|error| self.failed(error))
    }

    fn close(&self, writer: FileWriter<BufWriter<File>>) -> Result<(), SourceError> {
        let mut file = writer.into_inner().map_err(|error| self.failed(error))?;
        file.flush().and_then(|()| file.get_ref().sync_all()).map_err(|error| self.io(error))
    }

    /// The copy gets its name, or is removed.
    fn finish(self, written: Result<(), SourceError>) -> Result<(), SourceError> {
        let written = written.and_then(|()| fs::rename(&self.partial, self.to).map_err(|error| self.io(error)));
        if written.is_err() {
            let _ = fs::remove_file(&self.partial);
        }
        written
    }

    fn part(&self, part: usize) -> PathBuf {
        let mut name = self.partial.clone().into_os_string();
        name.push(format!(".{part}"));
        name.into()
    }

    fn io(&self, error: std::io::Error) -> SourceError {
        SourceError::Io { path: self.partial.clone(), error }
    }

    fn failed(&self, error: ArrowError) -> SourceError {
        match error {
            ArrowError::IoError(_, error) => self.io(error),
            error => SourceError::Invalid(format!("{}: {error}", self.partial.display())),
        }
    }
}

fn totals(source: &dyn Source) -> (u64, u64) {
    let rows = source.units().iter().map(|unit| unit.rows).sum();
    (rows, source.units().iter().map(|unit| unit.bytes).sum::<u64>().max(rows))
}

/// The schema without dictionaries, of which a file has one only.
fn plain(schema: &Schema) -> SchemaRef {
    let field = |field: &Arc<Field>| match field.data_type() {
        DataType::Dictionary(_, values) => Arc::new(field.as_ref().clone().with_data_type(values.as_ref().clone())),
        _ => field.clone(),
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

fn without_key(batch: &RecordBatch) -> Result<RecordBatch, SourceError> {
    let columns: Vec<usize> = (0..batch.num_columns() - 1).collect();
    batch.project(&columns).map_err(|error| SourceError::Invalid(error.to_string()))
}
