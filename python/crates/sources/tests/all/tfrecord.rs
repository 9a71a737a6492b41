//! TFRecord files and their indexes, written here by the format's description.

use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Int64Type};
use source::{Cancel, Source, SourceError};
use sources::index::{IndexOptions, build};
use sources::tfrecord::{Options, TfRecord, open};
use sources::{Dataset, OnError};
use tempfile::TempDir;

/// CRC-32C, bit by bit, as in RFC 3720.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

fn masked(bytes: &[u8]) -> [u8; 4] {
    let crc = crc32c(bytes);
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn record(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), bytes, &masked(bytes)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field of a message that is itself a string of bytes.
fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn example(features: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let entries: Vec<u8> = features
        .iter()
        .flat_map(|(name, feature)| field(1, &[field(1, name.as_bytes()), field(2, feature)].concat()))
        .collect();
    field(1, &entries)
}

fn bytes(values: &[&[u8]]) -> Vec<u8> {
    field(1, &values.iter().flat_map(|value| field(1, value)).collect::<Vec<u8>>())
}

fn floats(values: &[f32]) -> Vec<u8> {
    field(2, &field(1, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()))
}

fn integers(values: &[i64]) -> Vec<u8> {
    field(3, &field(1, &values.iter().flat_map(|&value| varint(value as u64)).collect::<Vec<u8>>()))
}

/// Record `row`: a number, a name, two floats, and as many tokens as the row's number modulo 3.
fn row(row: i64) -> Vec<u8> {
    let tokens: Vec<i64> = (0..row % 3).map(|token| -token).collect();
    let name = format!("row {row}");
    example(&[
        ("x", floats(&[row as f32, 0.5])),
        ("id", integers(&[row])),
        ("name", bytes(&[name.as_bytes()])),
        ("tokens", integers(&tokens)),
    ])
}

fn file(dir: &TempDir, name: &str, rows: std::ops::Range<i64>) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, rows.flat_map(|number| record(&row(number))).collect::<Vec<u8>>()).unwrap();
    path
}

fn options() -> Options {
    Options { fixed_lists: true, ..Options::default() }
}

fn text(path: &Path) -> [String; 1] {
    [path.to_string_lossy().into_owned()]
}

fn opened(path: &Path, options: &Options) -> Dataset {
    open(&text(path), options, &Cancel::default()).unwrap()
}

fn rows(data: &Dataset) -> u64 {
    data.units().iter().map(|unit| unit.rows).sum()
}

fn read(data: &Dataset, rows: std::ops::Range<u64>) -> RecordBatch {
    data.read(rows, &Cancel::default()).unwrap()
}

fn ids(batch: &RecordBatch) -> Vec<i64> {
    batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn examples_become_columns() {
    let dir = TempDir::new().unwrap();
    file(&dir, "a.tfrecord", 0..5000);
    file(&dir, "b.tfrecord", 5000..5007);
    file(&dir, "c.tfrecord", 0..0);
    let data = opened(&dir.path().join("*.tfrecord"), &options());
    assert_eq!(rows(&data), 5007);
    assert!(data.units().len() > 3);
    let types: Vec<String> =
        data.schema().fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    assert_eq!(types[0], "id Int64");
    assert_eq!(types[1], "name Binary");
    assert!(types[2].starts_with("tokens List(") && types[3].starts_with("x FixedSizeList(2"), "{types:?}");
    for range in [0..5007, 4990..5003, 7..8, 3..3] {
        let batch = read(&data, range.clone());
        assert_eq!(ids(&batch), (range.start as i64..range.end as i64).collect::<Vec<_>>());
    }
    let batch = read(&data, 10..12);
    assert_eq!(batch.column(1).as_binary::<i32>().value(1), b"row 11");
    assert_eq!(batch.column(2).as_list::<i32>().value(1).as_primitive::<Int64Type>().values(), &[0, -1]);
    assert_eq!(
        batch.column(3).as_fixed_size_list().values().as_primitive::<Float32Type>().values(),
        &[10.0, 0.5, 11.0, 0.5]
    );
}

#[test]
fn a_missing_feature_is_null_and_unpacked_numbers_are_read_too() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.tfrecord");
    let unpacked = field(3, &[varint(1 << 3), varint(7)].concat());
    let float = field(2, &[varint(1 << 3 | 5), 2.5f32.to_le_bytes().to_vec()].concat());
    let examples = [example(&[("id", unpacked), ("x", float)]), example(&[("id", integers(&[8]))])];
    std::fs::write(&path, examples.iter().flat_map(|example| record(example)).collect::<Vec<u8>>()).unwrap();
    let batch = read(&opened(&path, &options()), 0..2);
    assert_eq!(ids(&batch), [7, 8]);
    let x = batch.column_by_name("x").unwrap();
    assert_eq!((x.as_primitive::<Float32Type>().value(0), x.is_null(1)), (2.5, true));
}

#[test]
fn raw_records_are_bytes() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.tfrecord");
    std::fs::write(&path, [record(b"one"), record(b""), record(b"three")].concat()).unwrap();
    let data = opened(&path, &Options { raw: true, ..options() });
    let batch = read(&data, 1..3);
    assert_eq!(batch.schema().field(0).data_type(), &DataType::Binary);
    assert_eq!(batch.column(0).as_binary::<i32>().iter().flatten().collect::<Vec<_>>(), [&b""[..], b"three"]);
    let error = open(&text(&path), &options(), &Cancel::default()).err().unwrap();
    assert!(matches!(error, SourceError::Damaged { offset: 0, .. }), "{error:?}");
}

#[test]
fn a_damaged_record_is_an_error_with_its_offset_or_is_skipped_and_counted() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "a.tfrecord", 0..3);
    let offset = record(&row(0)).len();
    let mut damaged = std::fs::read(&path).unwrap();
    damaged[offset + 20] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let only = Options { features: Some(opened_features(&dir)), ..options() };
    match opened(&path, &only).read(0..3, &Cancel::default()) {
        Err(SourceError::Damaged { path: named, offset: at, what }) => {
            assert_eq!((named, at), (path.clone(), offset as u64));
            assert_eq!(what, "the record's checksum is wrong");
        }
        other => panic!("{other:?}"),
    }
    let only_ids = Options { columns: Some(vec!["id".into()]), on_error: OnError::Skip, ..options() };
    let data = opened(&path, &only_ids);
    assert_eq!((ids(&read(&data, 0..3)), data.skipped()), (vec![0, 2], 1));
    assert!(data.messages()[0].contains("1 rows skipped"), "{:?}", data.messages());
}

fn opened_features(dir: &TempDir) -> Vec<sources::tfrecord::Feature> {
    use sources::tfrecord::{Feature, Kind, Length};
    let _ = dir;
    vec![Feature { name: "id".into(), kind: Kind::Integer, length: Length::One }]
}

#[test]
fn a_file_that_is_cut_off_is_refused_or_read_as_far_as_it_goes() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "a.tfrecord", 0..3);
    let bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - record(&row(2)).len();
    for length in [last + 1, last + 11, last + 12, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        match open(&text(&path), &options(), &Cancel::default()) {
            Err(SourceError::Damaged { offset, .. }) => assert_eq!(offset, last as u64),
            other => panic!("{length}: {:?}", other.err()),
        }
        let only_ids = Options { columns: Some(vec!["id".into()]), on_error: OnError::Skip, ..options() };
        let data = opened(&path, &only_ids);
        assert_eq!(ids(&read(&data, 0..2)), [0, 1]);
        assert!(data.messages()[0].contains("the rest left out"), "{:?}", data.messages());
    }
}

#[test]
fn a_feature_of_another_length_or_kind_is_an_error_that_says_what_to_do() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.tfrecord");
    let mut bytes: Vec<u8> = (0..5000).flat_map(|number| record(&row(number))).collect();
    // In the middle of a unit that is not looked at there would be other values; here the features are given.
    bytes.extend(record(&example(&[("id", integers(&[1, 2]))])));
    bytes.extend(record(&example(&[("id", floats(&[1.0]))])));
    std::fs::write(&path, bytes).unwrap();
    let data = opened(&path, &Options { features: Some(opened_features(&dir)), ..options() });
    let error = data.read(5000..5001, &Cancel::default()).unwrap_err().to_string();
    assert!(error.contains("feature \"id\" has 2 values, where the others have 1; say in features"), "{error}");
    let error = data.read(5001..5002, &Cancel::default()).unwrap_err().to_string();
    assert!(error.contains("feature \"id\" has values of another kind"), "{error}");
}

#[test]
fn the_index_of_other_programs_is_read_and_a_wrong_one_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "a.tfrecord", 0..3000);
    let mut offset = 0;
    let lines: Vec<String> = (0..3000)
        .map(|number| {
            let length = record(&row(number)).len();
            offset += length;
            format!("{} {length}\n", offset - length)
        })
        .collect();
    for name in ["a.tfrecord.tfindex", "a.tfindex", "a.idx", "a.tfrecord.index"] {
        let index = dir.path().join(name);
        std::fs::write(&index, lines.concat()).unwrap();
        let data = opened(&path, &options());
        assert_eq!((rows(&data), ids(&read(&data, 2998..3000))), (3000, vec![2998, 2999]));
        let named = IndexOptions { file: Some(dir.path().join("other")), ..IndexOptions::default() };
        std::fs::rename(&index, dir.path().join("other")).unwrap();
        assert_eq!(rows(&opened(&path, &Options { index: named, ..options() })), 3000);
        std::fs::write(&index, lines[..2999].concat()).unwrap();
        let error = open(&text(&path), &options(), &Cancel::default()).err().unwrap().to_string();
        assert!(
            error.contains(name)
                && error.contains("ends before the file")
                && error.contains("python -m corgipile index"),
            "{error}"
        );
        std::fs::write(&index, "0 5000000000\n").unwrap();
        assert!(open(&text(&path), &options(), &Cancel::default()).is_err());
        std::fs::remove_file(&index).unwrap();
    }
}

fn index(
    path: &Path,
    cancel: &Cancel,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<sources::index::Built, SourceError> {
    build(path, &TfRecord, &IndexOptions::default(), OnError::Raise, progress, cancel)
}

#[test]
fn an_index_goes_on_where_it_was_interrupted() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.tfrecord");
    let big: Vec<u8> = (0..200u8).flat_map(|number| record(&vec![number; 50_000])).collect();
    std::fs::write(&path, &big).unwrap();
    let cancel = Cancel::default();
    let mut seen = Vec::new();
    let cancelled = index(&path, &cancel, &mut |done, of| {
        seen.push((done, of));
        if done > 5_000_000 {
            cancel.cancel();
        }
    });
    assert!(matches!(cancelled, Err(SourceError::Cancelled)));
    assert!(seen.len() >= 4 && seen.iter().all(|&(done, of)| done <= of && of == big.len() as u64), "{seen:?}");
    assert!(!dir.path().join("a.tfrecord.cpindex").exists());
    // The last bytes of the checkpoint are cut off, as a crash may do.
    let part = dir.path().join("a.tfrecord.cpindex.part");
    let bytes = std::fs::read(&part).unwrap();
    std::fs::write(&part, &bytes[..bytes.len() - 5]).unwrap();
    let built = index(&path, &Cancel::default(), &mut |_, _| {}).unwrap();
    assert!(built.resumed_at > 4_000_000, "{built:?}");
    assert_eq!(built.rows, 200);
    let resumed = std::fs::read(&built.path).unwrap();
    let fresh = index(&path, &Cancel::default(), &mut |_, _| {}).unwrap();
    assert_eq!((fresh.resumed_at, fresh.rows, fresh.units), (0, 200, built.units));
    assert_eq!(std::fs::read(&fresh.path).unwrap(), resumed);
    assert!(!part.exists());
    let data = opened(&path, &Options { raw: true, ..options() });
    assert_eq!(read(&data, 150..151).column(0).as_binary::<i32>().value(0), vec![150; 50_000]);
    // What an interrupted search has found of another file is not used.
    std::fs::write(&part, &bytes).unwrap();
    std::fs::write(&path, &big[50_016..]).unwrap();
    assert_eq!(index(&path, &Cancel::default(), &mut |_, _| {}).unwrap().resumed_at, 0);
}

#[test]
fn an_index_of_another_file_or_a_damaged_one_is_refused_and_built_anew_on_request() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "a.tfrecord", 0..3000);
    let built = index(&path, &Cancel::default(), &mut |_, _| {}).unwrap();
    assert_eq!((rows(&opened(&path, &options())), built.rows), (3000, 3000));
    let whole = std::fs::read(&built.path).unwrap();
    let refused = |expected: &str| {
        let error = open(&text(&path), &options(), &Cancel::default()).err().expect(expected).to_string();
        assert!(error.contains(expected) && error.contains("a.tfrecord.cpindex"), "{error}");
        assert!(error.contains("python -m corgipile index --force"), "{error}");
        let rebuild = Options { index: IndexOptions { build: true, ..IndexOptions::default() }, ..options() };
        assert_eq!(ids(&read(&opened(&path, &rebuild), 0..1)), [0]);
    };
    for damaged in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[damaged] ^= 0x10;
        std::fs::write(&built.path, &bytes).unwrap();
        assert!(open(&text(&path), &options(), &Cancel::default()).is_err(), "byte {damaged}");
    }
    std::fs::write(&built.path, &whole[..whole.len() - 1]).unwrap();
    refused("is damaged or cut off");
    std::fs::write(&built.path, b"PK").unwrap();
    refused("is not an index of corgipile");
    std::fs::write(&built.path, &whole).unwrap();
    file(&dir, "a.tfrecord", 0..2999);
    refused("is not of ");
}

#[test]
fn an_index_may_be_kept_elsewhere_and_processes_that_build_it_wait_for_each_other() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "a.tfrecord", 0..3000);
    let elsewhere = TempDir::new().unwrap();
    let options = Options {
        index: IndexOptions { build: true, directory: Some(elsewhere.path().into()), ..IndexOptions::default() },
        ..options()
    };
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..8).map(|_| scope.spawn(|| rows(&opened(&path, &options)))).collect();
        assert!(opened.into_iter().all(|rows| rows.join().unwrap() == 3000));
    });
    let names: Vec<_> = std::fs::read_dir(elsewhere.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a.tfrecord.cpindex"]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
