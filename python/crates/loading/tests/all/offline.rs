//! Copies in another order: all rows, in an order of the right kind, whole or not at all.

use arrow::array::{ArrayRef, AsArray, DictionaryArray, Int64Array, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::ipc::reader::FileReader;
use loading::{Memory, Offline, Size};
use shuffle::SortKeys;
use source::{Cancel, Source};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const ROWS: i64 = 10_000;

fn source() -> Memory {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let words: DictionaryArray<Int32Type> = (0..ROWS).map(|row| if row % 2 == 0 { "even" } else { "odd" }).collect();
    Memory::new(RecordBatch::try_from_iter([("number", numbers), ("word", Arc::new(words) as _)]).unwrap(), 1)
}

/// The numbers of the rows in a copy; their words are checked.
fn numbers(path: &Path) -> Vec<i64> {
    let reader = FileReader::try_new(File::open(path).unwrap(), None).unwrap();
    let mut numbers = Vec::new();
    for batch in reader.map(Result::unwrap) {
        let of_batch = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        for (number, word) in of_batch.iter().zip(batch.column(1).as_string::<i32>()) {
            assert_eq!(word, Some(if number % 2 == 0 { "even" } else { "odd" }));
        }
        numbers.extend(of_batch);
    }
    numbers
}

fn is_alone(path: &Path) -> bool {
    std::fs::read_dir(path.parent().unwrap()).unwrap().count() == usize::from(path.exists())
}

#[test]
fn a_full_shuffle_is_the_order_of_the_keys_whatever_the_memory() {
    let keys = SortKeys::once(5);
    let mut expected: Vec<i64> = (0..ROWS).collect();
    expected.sort_by_key(|row| keys.key(*row as u64));
    for memory in [1 << 10, 64 << 10, 1 << 30] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("once.arrow");
        let (cancel, done) = Default::default();
        Offline::new(&source(), 5, &path, &cancel, &done).shuffle_once(memory).unwrap();
        assert_eq!(numbers(&path), expected, "{memory}");
        assert_eq!(done.load(Ordering::Relaxed), 2 * ROWS as u64);
        assert!(is_alone(&path));
    }
}

#[test]
fn a_copy_for_corgi2_has_mixed_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("corgi2.arrow");
    let (cancel, done) = Default::default();
    Offline::new(&source(), 5, &path, &cancel, &done).corgi2(Size::Rows(100), Size::Percent(10.0)).unwrap();
    let numbers = numbers(&path);
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..ROWS));
    // rows of a buffer are those of ten blocks, and of all of them in any run of a hundred
    for buffer in numbers.chunks(1000) {
        let blocks = |rows: &[i64]| {
            let mut blocks: Vec<i64> = rows.iter().map(|row| row / 100).collect();
            blocks.sort_unstable();
            blocks.dedup();
            blocks.len()
        };
        assert_eq!(blocks(buffer), 10);
        assert!(buffer.chunks(100).all(|rows| blocks(rows) >= 8));
    }
}

#[test]
fn a_copy_that_is_cancelled_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("once.arrow");
    let (cancel, done): (Cancel, AtomicU64) = Default::default();
    cancel.cancel();
    assert!(Offline::new(&source(), 5, &path, &cancel, &done).shuffle_once(1 << 10).is_err());
    assert!(!path.exists() && is_alone(&path));
    assert!(source().units().len() == 1);
}
