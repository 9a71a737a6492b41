//! Tar files of samples: of the tar program in its formats, and made here byte by byte.

use std::path::{Path, PathBuf};
use std::process::Command;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use source::{Cancel, Source, SourceError};
use sources::index::{IndexOptions, build};
use sources::webdataset::{Options, WebDataset, open};
use sources::{Dataset, OnError};
use tempfile::TempDir;

/// A member as ustar has it.
fn member(name: &str, contents: &[u8]) -> Vec<u8> {
    let mut header = [0u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", contents.len()).as_bytes());
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut bytes = [&header[..], contents].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn sample(row: usize) -> Vec<u8> {
    let name = |ending: &str| format!("dir.v1/{row:05}.{ending}");
    let mut bytes = member(&name("cls"), format!("{row}\n").as_bytes());
    bytes.extend(member(&name("JPG"), &vec![row as u8; row % 700]));
    if row.is_multiple_of(2) {
        bytes.extend(member(&name("caption.txt"), format!("sample {row}").as_bytes()));
    }
    bytes
}

fn file(dir: &TempDir, name: &str, rows: std::ops::Range<usize>) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, rows.flat_map(sample).chain([0; 1024]).collect::<Vec<u8>>()).unwrap();
    path
}

fn opened(path: &Path, options: &Options) -> Dataset {
    open(&[path.to_string_lossy().into_owned()], options, &Cancel::default()).unwrap()
}

fn refused(path: &Path) -> SourceError {
    open(&[path.to_string_lossy().into_owned()], &Options::default(), &Cancel::default()).err().expect("an error")
}

fn rows(data: &Dataset) -> u64 {
    data.units().iter().map(|unit| unit.rows).sum()
}

fn read(data: &Dataset, rows: std::ops::Range<u64>) -> RecordBatch {
    data.read(rows, &Cancel::default()).unwrap()
}

fn classes(batch: &RecordBatch) -> Vec<i64> {
    batch.column_by_name("cls").unwrap().as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn samples_are_rows_and_endings_columns() {
    let dir = TempDir::new().unwrap();
    file(&dir, "a.tar", 0..1000);
    file(&dir, "b.tar", 1000..1003);
    let data = opened(&dir.path().join("*.tar"), &Options::default());
    assert!(data.units().len() > 4);
    assert_eq!(rows(&data), 1003);
    let names: Vec<_> = data.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["__key__", "caption.txt", "cls", "jpg"]);
    for range in [0..1003, 998..1002, 77..78] {
        let batch = read(&data, range.clone());
        assert_eq!(classes(&batch), (range.start as i64..range.end as i64).collect::<Vec<_>>());
        for (row, sample) in range.enumerate() {
            assert_eq!(batch.column(0).as_string::<i32>().value(row), format!("dir.v1/{sample:05}"));
            assert_eq!(batch.column(1).is_null(row), sample % 2 == 1);
            assert_eq!(batch.column(3).as_binary::<i32>().value(row), vec![sample as u8; sample as usize % 700]);
        }
    }
    let columns = Some(vec!["cls".to_owned(), "png;jpg".to_owned()]);
    let batch = read(&opened(&dir.path().join("a.tar"), &Options { columns, ..Options::default() }), 3..4);
    assert_eq!(batch.column(1).as_binary::<i32>().value(0), [3; 3]);
}

#[test]
fn an_index_says_the_same() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "a.tar", 0..1000);
    let before = opened(&path, &Options::default());
    let built = build(&path, &WebDataset, &IndexOptions::default(), OnError::Raise, &mut |_, _| {}, &Cancel::default())
        .unwrap();
    assert_eq!((built.rows, built.units), (1000, before.units().len() as u64));
    assert_eq!(opened(&path, &Options::default()).units(), before.units());
}

#[test]
fn the_tar_program_s_formats_are_read_with_long_names() {
    let dir = TempDir::new().unwrap();
    let deep = format!("{}/{}", "d".repeat(90), "e".repeat(120));
    std::fs::create_dir_all(dir.path().join("in").join(&deep)).unwrap();
    for row in 0..3 {
        for (ending, contents) in [("cls", row.to_string()), ("txt", format!("text {row}"))] {
            std::fs::write(dir.path().join("in").join(&deep).join(format!("{row}.{ending}")), contents).unwrap();
        }
    }
    for format in ["gnu", "pax", "oldgnu"] {
        let tar = dir.path().join(format!("{format}.tar"));
        let arguments = ["--sort=name", "-C", "in", "-cf"];
        let made = Command::new("tar")
            .current_dir(&dir)
            .arg(format!("--format={format}"))
            .args(arguments)
            .arg(&tar)
            .arg(".")
            .status();
        assert!(made.unwrap().success());
        let batch = read(&opened(&tar, &Options::default()), 0..3);
        assert_eq!(classes(&batch), [0, 1, 2], "{format}");
        assert_eq!(batch.column(0).as_string::<i32>().value(2), format!("./{deep}/2"));
        assert_eq!(batch.column_by_name("txt").unwrap().as_string::<i32>().value(1), "text 1");
    }
}

#[test]
fn damage_is_an_error_with_its_place_or_the_rest_is_left_out() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "a.tar", 0..3);
    let bytes = std::fs::read(&path).unwrap();
    let second = sample(0).len();
    let third = second + sample(1).len();
    for length in [second + 100, second + 512 + 1, third - 512] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let at = match refused(&path) {
            SourceError::Damaged { offset, .. } => offset as usize,
            other => panic!("{other:?}"),
        };
        assert!(at >= second && at < third && at.is_multiple_of(512), "{at}");
    }
    let skip = Options { on_error: OnError::Skip, ..Options::default() };
    // Within the second sample, between its files, and between samples: what is missing is not known. The last sample
    // that is there may be whole or not.
    for (length, whole) in [(third - 200, 1), (second + 1024, 1), (third, 1), (second, 0), (0, 0)] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let error = refused(&path).to_string();
        assert!(error.contains(&format!("a.tar, byte {length}:")), "{error}");
        assert!(error.contains("the file ends without the end of an archive"), "{error}");
        let options = Options { columns: Some(vec!["cls".into()]), ..skip.clone() };
        let data = opened(&path, &options);
        assert_eq!(classes(&read(&data, 0..rows(&data))), (0..whole).collect::<Vec<_>>(), "{length}");
        assert!(data.messages()[0].contains("the rest left out"));
    }
    // One block of zeros is an end.
    std::fs::write(&path, &bytes[..bytes.len() - 512]).unwrap();
    assert_eq!(rows(&opened(&path, &Options::default())), 3);
    let mut damaged = bytes.clone();
    damaged[third + 3] ^= 1;
    std::fs::write(&path, damaged).unwrap();
    assert!(refused(&path).to_string().contains("its checksum is wrong"));
    // Whether the second sample was whole is not known: only what is sure is given.
    let data = opened(&path, &skip);
    assert_eq!(classes(&read(&data, 0..rows(&data))), [0]);
    assert!(data.messages()[0].contains("the rest left out"));
}

#[test]
fn a_value_that_is_no_number_is_an_error_or_its_sample_is_skipped() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.tar");
    let bytes =
        [member("0.cls", b"7"), member("1.cls", b"cat"), member("2.cls", b"9"), member("2.CLS", b"9"), vec![0; 1024]]
            .concat();
    std::fs::write(&path, bytes).unwrap();
    let data = opened(&path, &Options::default());
    for (row, place, expected) in [(1, 1024, "1.cls: \"cat\" is not an integer"), (2, 3072, "has two files .cls")] {
        match data.read(row..row + 1, &Cancel::default()) {
            Err(SourceError::Damaged { offset, what, .. }) => {
                assert!(offset == place && what.contains(expected), "{offset} {what}")
            }
            other => panic!("{other:?}"),
        }
    }
    let data = opened(&path, &Options { on_error: OnError::Skip, ..Options::default() });
    assert_eq!((classes(&read(&data, 0..3)), data.skipped()), (vec![7], 2));
}

#[test]
fn what_is_no_tar_file_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.tar");
    std::fs::write(&path, "text, and more of it\n".repeat(100)).unwrap();
    assert!(refused(&path).to_string().contains("there is no header of a tar file"));
    std::fs::write(&path, b"\x1f\x8b\x08 more").unwrap();
    assert!(refused(&path).to_string().contains("compressed with gzip"));
}
