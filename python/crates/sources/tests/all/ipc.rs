//! Arrow files and streams, as Arrow's own writers make them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, DictionaryArray, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use source::{Cancel, Source, SourceError};
use sources::ipc::{Options, open};
use sources::{Dataset, OnError};
use tempfile::TempDir;

fn batch(rows: std::ops::Range<i64>) -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone()));
    let name: ArrayRef = Arc::new(StringArray::from_iter_values(rows.clone().map(|row| format!("row {row}"))));
    let colours = ["red", "green", "blue"];
    let colour: DictionaryArray<Int32Type> = rows.clone().map(|row| colours[row.rem_euclid(3) as usize]).collect();
    let pair = ListArray::from_iter_primitive::<Int64Type, _, _>(rows.map(|row| Some(vec![Some(row), Some(-row)])));
    let columns = [("id", id), ("name", name), ("colour", Arc::new(colour) as ArrayRef), ("pair", Arc::new(pair))];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

/// Batches of 6 rows: the colours' dictionary is the same in each.
fn batches(rows: std::ops::Range<i64>) -> Vec<RecordBatch> {
    rows.step_by(6).map(|first| batch(first..first + 6)).collect()
}

fn write(path: &Path, batches: &[RecordBatch], compression: Option<CompressionType>, stream: bool) {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let schema = batches[0].schema();
    let file = File::create(path).unwrap();
    if stream {
        let mut writer = StreamWriter::try_new_with_options(file, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = FileWriter::try_new_with_options(file, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
}

fn at(dir: &TempDir, name: &str) -> [String; 1] {
    [dir.path().join(name).to_string_lossy().into_owned()]
}

fn opened(paths: &[String], options: &Options) -> Dataset {
    open(paths, options, &Cancel::default()).unwrap()
}

fn refused(paths: &[String]) -> SourceError {
    open(paths, &Options::default(), &Cancel::default()).err().expect("an error")
}

fn ids(batch: &RecordBatch) -> Vec<i64> {
    batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn files_and_streams_mapped_or_not_compressed_or_not_are_read_alike() {
    let dir = TempDir::new().unwrap();
    let kinds = [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];
    for (number, (compression, stream)) in kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]).enumerate()
    {
        let first = 12 * number as i64;
        write(&dir.path().join(format!("{number}.arrow")), &batches(first..first + 12), compression, stream);
    }
    for memory_map in [true, false] {
        let data = opened(&at(&dir, "*.arrow"), &Options { memory_map, ..Options::default() });
        assert_eq!(data.units().iter().map(|unit| unit.rows).collect::<Vec<_>>(), [6; 12]);
        for range in [0..72, 5..7, 11..13, 20..50, 71..72, 3..3] {
            let got = data.read(range.clone(), &Cancel::default()).unwrap();
            let expected: Vec<i64> = (range.start as i64..range.end as i64).collect();
            assert_eq!(ids(&got), expected);
            let names: Vec<_> = got.column(1).as_string::<i32>().iter().flatten().map(str::to_owned).collect();
            assert_eq!(names, expected.iter().map(|row| format!("row {row}")).collect::<Vec<_>>());
            let colours: Vec<_> = got.column(2).as_string::<i32>().iter().flatten().collect();
            assert_eq!(
                colours,
                expected.iter().map(|row| ["red", "green", "blue"][*row as usize % 3]).collect::<Vec<_>>()
            );
            assert!(matches!(got.column(3).data_type(), DataType::FixedSizeList(_, 2)));
            let pairs = got.column(3).as_fixed_size_list().values().as_primitive::<Int64Type>().values().to_vec();
            assert_eq!(pairs, expected.iter().flat_map(|&row| [row, -row]).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_huge_batch_is_read_in_parts() {
    let dir = TempDir::new().unwrap();
    write(&dir.path().join("a.arrow"), &[batch(0..100_000)], None, false);
    let columns = Some(vec!["name".to_owned(), "id".to_owned()]);
    let data = opened(&at(&dir, "a.arrow"), &Options { columns, ..Options::default() });
    for first in [0, 99_990, 50_000] {
        let got = data.read(first..first + 10, &Cancel::default()).unwrap();
        assert_eq!(ids(&got), (first as i64..first as i64 + 10).collect::<Vec<_>>());
        assert_eq!(got.column(0).as_string::<i32>().value(0), format!("row {first}"));
    }
}

#[test]
fn what_was_read_stays_when_the_file_is_gone() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.arrow");
    write(&path, &batches(0..12), None, false);
    let data = opened(&at(&dir, "a.arrow"), &Options::default());
    let got = data.read(0..6, &Cancel::default()).unwrap();
    drop(data);
    File::create(&path).unwrap(); // cut off
    assert_eq!(ids(&got), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn files_that_are_cut_off_or_of_something_else_are_refused_with_the_place() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.arrow");
    for stream in [false, true] {
        write(&path, &batches(0..60), None, stream);
        let bytes = std::fs::read(&path).unwrap();
        for length in [0, 1, 7, 8, 20, bytes.len() / 2, bytes.len() - if stream { 9 } else { 1 }] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let error = refused(&at(&dir, "a.arrow"));
            assert!(
                matches!(&error, SourceError::Damaged { path: named, .. } if *named == path),
                "{length}: {error:?}"
            );
        }
    }
    std::fs::write(&path, b"FEA1 and more").unwrap();
    assert!(refused(&at(&dir, "a.arrow")).to_string().contains("Feather file of version 1"));
    std::fs::write(&path, b"id,name\n1,a\n").unwrap();
    assert!(refused(&at(&dir, "a.arrow")).to_string().contains("neither a file of Arrow's format nor a stream"));
}

#[test]
fn flipped_bytes_are_errors_and_never_more() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.arrow");
    std::panic::set_hook(Box::new(|_| {}));
    let mut errors = 0;
    for compression in [None, Some(CompressionType::ZSTD)] {
        write(&path, &batches(0..12), compression, false);
        let whole = std::fs::read(&path).unwrap();
        for place in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x81;
            std::fs::write(&path, bytes).unwrap();
            for memory_map in [true, false] {
                let data =
                    open(&at(&dir, "a.arrow"), &Options { memory_map, ..Options::default() }, &Cancel::default());
                let read = data
                    .and_then(|data| data.read(0..data.units().iter().map(|unit| unit.rows).sum(), &Cancel::default()));
                errors += usize::from(read.is_err());
            }
        }
    }
    drop(std::panic::take_hook());
    assert!(errors > 20, "{errors}");
}

#[test]
fn a_file_with_other_columns_is_left_out_on_request() {
    let dir = TempDir::new().unwrap();
    write(&dir.path().join("a.arrow"), &batches(0..6), None, false);
    let other = batch(0..6).project(&[0, 1]).unwrap();
    write(&dir.path().join("b.arrow"), &[other], None, false);
    let error = refused(&at(&dir, "*.arrow")).to_string();
    assert!(error.contains("b.arrow: there is no column \"colour\", which "), "{error}");
    let data = opened(&at(&dir, "*.arrow"), &Options { on_error: OnError::Skip, ..Options::default() });
    assert_eq!((data.units().len(), data.skipped()), (1, 6));
}
