//! Finds out what files have: their columns, whether they agree, and their units.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::{Compression, Encoding, Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMask, ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetStatisticsPolicy, RowGroupMetaData,
};
use source::{Cancel, SourceError, Unit};

use super::Options;
use super::kept::Kept;
use super::pages::Pages;
use super::read::{Footer, Place, Reader};
use super::straight::Straight;
use crate::columns::{agree, choose, given_as, plain_of_reader, settled};
use crate::dataset::{Dataset, KEPT_BYTES, Opened, SkippedFiles};
use crate::files::{self, DataFile, Fingerprint};

/// How many rows are looked at to see whether lists have the same length, where the counts of values say that they may.
const LISTS_LOOKED_AT: u64 = 4096;

pub(super) fn open(
    paths: &[String],
    options: Options,
    part_bytes: u64,
    cancel: &Cancel,
) -> Result<Dataset, SourceError> {
    let found = files::find(paths, &["parquet", "pq"])?;
    let fingerprint = fingerprint(&found, &options);
    let (mut footers, fields, skipped) = footers(found, &options, part_bytes, cancel)?;
    let fields = if options.fixed_lists { with_fixed_lists(&footers, fields, cancel)? } else { fields };
    let schema: SchemaRef = Arc::new(Schema::new(settled(fields)));
    let (mut units, mut places) = (Vec::new(), Vec::new());
    for (file, footer) in footers.iter_mut().enumerate() {
        footer.straight = schema.fields().iter().map(|field| straight(footer, field)).collect();
        for group in 0..footer.metadata.metadata().num_row_groups() {
            for (first, unit) in parts(footer, group, part_bytes) {
                places.push(Place { file, group, first, rows: unit.rows });
                units.push(unit);
            }
        }
    }
    let bytes: u64 = units.iter().map(|unit| unit.bytes).sum();
    let kept = (bytes <= KEPT_BYTES).then(|| Kept::new(units.len()));
    let is_exact = kept.is_some() || footers.iter().all(is_straight);
    let whole_runs = (!is_exact).then(|| footers.iter().flat_map(pages).collect());
    let reader = Reader { files: footers, places, schema: schema.clone(), pool: Arc::default(), kept };
    Ok(Dataset::new(reader, Opened { schema, units, whole_runs, fingerprint, on_error: options.on_error, skipped }))
}

fn fingerprint(found: &[DataFile], options: &Options) -> u64 {
    let mut print = Fingerprint::new("parquet");
    print.files(found);
    print.number(options.columns.as_ref().map_or(u64::MAX, |columns| columns.len() as u64));
    options.columns.iter().flatten().for_each(|column| print.text(column));
    print.number(u64::from(options.fixed_lists));
    print.finish()
}

type Footers = (Vec<Footer>, Vec<Field>, SkippedFiles);

fn footers(found: Vec<DataFile>, options: &Options, part_bytes: u64, cancel: &Cancel) -> Result<Footers, SourceError> {
    let columns = options.columns.as_deref();
    let (mut footers, mut fields, mut skipped) = (Vec::<Footer>::new(), Vec::new(), SkippedFiles::default());
    for file in found {
        cancel.check()?;
        let metadata = match load(&file) {
            Ok(metadata) => metadata,
            Err(error) => {
                skipped.skip(options.on_error, error, 0)?;
                continue;
            }
        };
        let agreed = choose(metadata.schema(), columns, &file).and_then(|mine| match footers.first() {
            Some(first) => agree(&fields, &mine, columns.is_none(), &first.file, &file),
            None => Ok(mine),
        });
        match agreed {
            Ok(agreed) => {
                fields = agreed;
                footers.push(footer(file, metadata, &fields, part_bytes)?);
            }
            // The first file says what columns there are: if it has not what is asked for, nothing is right.
            Err(error) if footers.is_empty() && skipped.messages.is_empty() => return Err(error),
            Err(error) => {
                let rows = metadata.metadata().file_metadata().num_rows() as u64;
                skipped.skip(options.on_error, error, rows)?;
            }
        }
    }
    if footers.is_empty() {
        let why = skipped.messages.join("; ");
        return Err(SourceError::Invalid(format!("no file could be read: {why}")));
    }
    Ok((footers, fields, skipped))
}

/// The page index of a file is read if it has no more bytes than this, or if there is a huge row group.
const INDEX_BYTES: u64 = 16 << 20;

/// Of row groups that take no more memory than this, pages are not looked for.
const READ_WHOLE: u64 = 1 << 20;

fn reading_options() -> ArrowReaderOptions {
    ArrowReaderOptions::new().with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
}

fn load(file: &DataFile) -> Result<ArrowReaderMetadata, SourceError> {
    load_with(file, reading_options())
}

fn load_with(file: &DataFile, options: ArrowReaderOptions) -> Result<ArrowReaderMetadata, SourceError> {
    let pages = Pages::open(file)?;
    let loaded = catch_unwind(AssertUnwindSafe(|| ArrowReaderMetadata::load(&pages, options)));
    loaded
        .unwrap_or_else(|_| Err(ParquetError::General("the footer cannot be decoded".into())))
        .map_err(|error| pages.error(file, error))
}

/// The file with the page index of its huge row groups, read in plain types as far as the library can.
fn footer(
    file: DataFile,
    mut metadata: ArrowReaderMetadata,
    fields: &[Field],
    part_bytes: u64,
) -> Result<Footer, SourceError> {
    let leaves = leaves(metadata.metadata(), fields);
    let of = metadata.metadata();
    let huge = of.row_groups().iter().any(|group| memory(group, &leaves) > 2 * part_bytes);
    if huge || (is_read_in_parts(of, &leaves) && (1..=INDEX_BYTES).contains(&index_bytes(of, &leaves))) {
        let wanted = ColumnChunkMask::columns(leaves.iter().copied());
        let options =
            reading_options().with_offset_index_policy(PageIndexPolicy::Optional).with_offset_index_mask(wanted);
        match load_with(&file, options) {
            // without it row groups are read from their beginnings
            Err(_) if !huge => {}
            loaded => metadata = loaded?,
        }
    }
    let plainer = Schema::new(metadata.schema().fields().iter().map(|field| plainer(field)).collect::<Fields>());
    if plainer.fields() != metadata.schema().fields() {
        let plainer = plainer.with_metadata(metadata.schema().metadata().clone());
        let options = reading_options().with_schema(Arc::new(plainer));
        // What the library cannot read so is cast afterwards.
        metadata = ArrowReaderMetadata::try_new(metadata.metadata().clone(), options).unwrap_or(metadata);
    }
    let columns = ProjectionMask::leaves(metadata.parquet_schema(), leaves);
    // which columns lie straight is known once all files agree on their types
    Ok(Footer { file, metadata, columns, straight: Vec::new() })
}

/// Whether a row group is large enough for a few rows of it to be read.
fn is_read_in_parts(metadata: &ParquetMetaData, leaves: &[usize]) -> bool {
    metadata.row_groups().iter().any(|group| group.num_rows() > 1 && memory(group, leaves) > READ_WHOLE)
}

/// Bytes that say where the pages of these columns are.
fn index_bytes(metadata: &ParquetMetaData, leaves: &[usize]) -> u64 {
    let groups = metadata.row_groups().iter();
    let lengths = groups.flat_map(|group| leaves.iter().map(|&leaf| group.column(leaf).offset_index_length()));
    lengths.map(|length| length.unwrap_or(0).max(0) as u64).sum()
}

fn plainer(field: &Field) -> Field {
    match field.data_type() {
        // The library reads decimals as such only.
        of if matches!(plain_of_reader(of), DataType::Float64) => field.clone(),
        of => field.clone().with_data_type(plain_of_reader(of)),
    }
}

/// The columns of Parquet that the fields consist of.
pub(super) fn leaves(metadata: &ParquetMetaData, fields: &[Field]) -> Vec<usize> {
    let schema = metadata.file_metadata().schema_descr();
    let is_read = |leaf: &usize| {
        let root = schema.get_column_root(*leaf).name();
        fields.iter().any(|field| field.name() == root)
    };
    (0..schema.num_columns()).filter(is_read).collect()
}

/// The column of this field, if it lies in the file as it does in memory.
fn straight(footer: &Footer, field: &Field) -> Option<Straight> {
    let metadata = footer.metadata.metadata();
    let leaves = leaves(metadata, std::slice::from_ref(field));
    let of = footer.metadata.schema().field_with_name(field.name()).ok()?;
    match leaves[..] {
        [leaf] => Straight::new(metadata, leaf, of.data_type(), field.data_type()),
        _ => None,
    }
}

/// Whether all columns lie in the file as they do in memory, as far as the footer says, so that any rows can be read.
fn is_straight(footer: &Footer) -> bool {
    let plain = |column: &ColumnChunkMetaData| {
        let is_encoded = |encoding| matches!(encoding, Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY);
        column.compression() == Compression::UNCOMPRESSED && !column.encodings().any(is_encoded)
    };
    let metadata = footer.metadata.metadata();
    let read = |group: &RowGroupMetaData| read_leaves(footer, group).into_iter().all(|leaf| plain(group.column(leaf)));
    footer.straight.iter().all(Option::is_some) && metadata.row_groups().iter().all(read)
}

/// The columns of a row group that are read.
fn read_leaves(footer: &Footer, group: &RowGroupMetaData) -> Vec<usize> {
    (0..group.num_columns()).filter(|&leaf| footer.columns.leaf_included(leaf)).collect()
}

/// The rows of a file between two places where pages of all columns begin: whole row groups, if it does not say where
/// these are.
fn pages(footer: &Footer) -> Vec<Unit> {
    let metadata = footer.metadata.metadata();
    let mut runs = Vec::new();
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let rows = group.num_rows().max(0) as u64;
        let leaves = read_leaves(footer, group);
        let starts_of = |&leaf: &usize| {
            let pages = metadata.page_index().and_then(|index| index.page_locations(number, leaf));
            let starts = pages.into_iter().flatten().map(|page| page.first_row_index.max(0) as u64);
            starts.filter(|start| (1..rows).contains(start)).collect::<BTreeSet<_>>()
        };
        let of_all = leaves.iter().map(starts_of).reduce(|all, mine| &all & &mine).unwrap_or_default();
        let bytes = memory(group, &leaves);
        let mut start = 0;
        for end in of_all.into_iter().chain([rows]) {
            runs.push(share(bytes, end - start, rows));
            start = end;
        }
    }
    runs
}

/// This many of the rows that take these bytes.
fn share(bytes: u64, part: u64, rows: u64) -> Unit {
    Unit { rows: part, bytes: (u128::from(bytes) * u128::from(part) / u128::from(rows.max(1))) as u64 }
}

/// About how many bytes these columns of a row group take in memory.
fn memory(group: &RowGroupMetaData, leaves: &[usize]) -> u64 {
    let column = |&leaf: &usize| {
        let column = group.column(leaf);
        let values = column.num_values().max(0) as u64;
        match column.column_type() {
            Type::BOOLEAN => values / 8,
            Type::INT32 | Type::FLOAT => 4 * values,
            Type::INT64 | Type::DOUBLE | Type::INT96 => 8 * values,
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => {
                let bytes = column.unencoded_byte_array_data_bytes().unwrap_or(column.uncompressed_size());
                4 * values + bytes.max(0) as u64
            }
        }
    };
    leaves.iter().map(column).sum()
}

/// The units of a row group: the first row of each, and what it has.
fn parts(footer: &Footer, group: usize, part_bytes: u64) -> Vec<(u64, Unit)> {
    let metadata = footer.metadata.metadata();
    let row_group = metadata.row_group(group);
    let rows = row_group.num_rows().max(0) as u64;
    let leaves = read_leaves(footer, row_group);
    let bytes = memory(row_group, &leaves);
    let mut starts = vec![0];
    if bytes > 2 * part_bytes {
        // The largest column's pages: a page of it is read and decompressed by one part only.
        let largest = leaves.iter().copied().max_by_key(|&leaf| memory(row_group, &[leaf]));
        let pages = metadata.page_index().and_then(|index| index.page_locations(group, largest?));
        let part_rows = (part_bytes * rows).div_ceil(bytes).max(1);
        for page in pages.into_iter().flatten() {
            let first = page.first_row_index.max(0) as u64;
            if first >= starts.last().unwrap_or(&0) + part_rows && first < rows {
                starts.push(first);
            }
        }
    }
    let ends = starts.iter().skip(1).copied().chain([rows]);
    starts.iter().zip(ends).map(|(&start, end)| (start, share(bytes, end - start, rows))).collect()
}

/// The fields, those lists as fixed-size ones whose rows all have the same length.
///
/// Parquet does not keep lengths. But it keeps how many values a row group has, which is this many times its rows for
/// them to be equal; and then rows are looked at. Should a later row differ all the same, reading it is an error that
/// says so.
fn with_fixed_lists(footers: &[Footer], fields: Vec<Field>, cancel: &Cancel) -> Result<Vec<Field>, SourceError> {
    let mut chosen = Vec::with_capacity(fields.len());
    for field in fields {
        cancel.check()?;
        chosen.push(match fixed_length(footers, &field) {
            Some((item, length)) => Field::new(field.name(), DataType::FixedSizeList(item, length), true),
            None => field,
        });
    }
    Ok(chosen)
}

fn fixed_length(footers: &[Footer], field: &Field) -> Option<(Arc<Field>, i32)> {
    let DataType::List(item) = field.data_type() else { return None };
    if item.data_type().is_nested() {
        return None;
    }
    let mut length = None;
    for footer in footers {
        let leaf = *leaves(footer.metadata.metadata(), std::slice::from_ref(field)).first()?;
        for group in footer.metadata.metadata().row_groups() {
            let (rows, values) = (group.num_rows(), group.column(leaf).num_values());
            if rows == 0 {
                continue;
            }
            if values % rows != 0 || *length.get_or_insert(values / rows) != values / rows {
                return None;
            }
        }
    }
    let length = i32::try_from(length?).ok()?;
    let fixed = DataType::FixedSizeList(item.clone(), length);
    let mut ends = [false, true].into_iter();
    ends.all(|last| is_fixed(footers, last, field, &fixed)).then(|| (item.clone(), length))
}

/// Whether the first rows of the first row group, or of the last one, fit the type: of those that can be read.
fn is_fixed(footers: &[Footer], last: bool, field: &Field, fixed: &DataType) -> bool {
    let groups = footers.iter().flat_map(|footer| {
        let groups = footer.metadata.metadata().row_groups().iter().enumerate();
        groups.map(move |(number, group)| (footer, number, group.num_rows()))
    });
    let fits = |(footer, group, rows): (&Footer, usize, i64)| {
        let column = leaves(footer.metadata.metadata(), std::slice::from_ref(field));
        let column = ProjectionMask::leaves(footer.metadata.parquet_schema(), column);
        let batch = footer.read(group, 0..(rows as u64).min(LISTS_LOOKED_AT), &column).ok()?;
        Some(batch.column_by_name(field.name()).is_some_and(|column| given_as(column, fixed).is_ok()))
    };
    let filled: Vec<_> = groups.filter(|(.., rows)| *rows > 0).collect();
    let found = if last { filled.into_iter().rev().find_map(fits) } else { filled.into_iter().find_map(fits) };
    found.unwrap_or(false)
}
