//! LIBSVM files, sparse and dense.

use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type, Int64Type};
use source::{Cancel, Source, SourceError};
use sources::index::{IndexOptions, build};
use sources::libsvm::{LibSvm, Options, open};
use sources::{Dataset, OnError};
use tempfile::TempDir;

fn at(path: &Path) -> [String; 1] {
    [path.to_string_lossy().into_owned()]
}

fn opened(path: &Path, options: &Options) -> Dataset {
    open(&at(path), options, &Cancel::default()).unwrap()
}

fn rows(data: &Dataset) -> u64 {
    data.units().iter().map(|unit| unit.rows).sum()
}

fn read(data: &Dataset, rows: std::ops::Range<u64>) -> RecordBatch {
    data.read(rows, &Cancel::default()).unwrap()
}

fn file(dir: &TempDir, text: &str) -> PathBuf {
    let path = dir.path().join("a.libsvm");
    std::fs::write(&path, text).unwrap();
    path
}

fn labels(batch: &RecordBatch) -> Vec<f64> {
    batch.column(0).as_primitive::<Float64Type>().values().to_vec()
}

fn indices(batch: &RecordBatch, row: usize) -> Vec<i32> {
    batch.column_by_name("indices").unwrap().as_list::<i32>().value(row).as_primitive::<Int32Type>().values().to_vec()
}

fn x(batch: &RecordBatch) -> Vec<f32> {
    batch.column_by_name("x").unwrap().as_fixed_size_list().values().as_primitive::<Float32Type>().values().to_vec()
}

#[test]
fn rows_are_sparse_or_dense_and_begin_at_one_or_zero() {
    let dir = TempDir::new().unwrap();
    let text = "# a comment\n+1 1:0.5 3:-2 # and another\n\n-1\r\n1 2:1e-3\n";
    let path = file(&dir, text);
    let data = opened(&path, &Options::default());
    assert_eq!(rows(&data), 3);
    let batch = read(&data, 0..3);
    assert_eq!(labels(&batch), [1.0, -1.0, 1.0]);
    assert_eq!((indices(&batch, 0), indices(&batch, 1), indices(&batch, 2)), (vec![0, 2], vec![], vec![1]));
    let dense = read(&opened(&path, &Options { dense: Some(0), ..Options::default() }), 0..3);
    assert_eq!(x(&dense), [0.5, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.001, 0.0]);
    let wider = opened(&path, &Options { dense: Some(4), ..Options::default() });
    assert!(matches!(wider.schema().field(1).data_type(), DataType::FixedSizeList(_, 4)));
    assert_eq!(x(&read(&wider, 2..3)), [0.0, 0.001, 0.0, 0.0]);
    let as_said = opened(&path, &Options { zero_based: Some(true), ..Options::default() });
    assert_eq!(indices(&read(&as_said, 0..1), 0), [1, 3]);
    // A zero anywhere reports that indices begin there.
    let path = file(&dir, &format!("{text}0 0:1\n"));
    assert_eq!(indices(&read(&opened(&path, &Options::default()), 0..1), 0), [1, 3]);
}

#[test]
fn queries_have_a_column() {
    let dir = TempDir::new().unwrap();
    let data = opened(&file(&dir, "3 qid:7 1:1\n2 qid:8 2:1\n"), &Options::default());
    let batch = read(&data, 0..2);
    assert_eq!(batch.column_by_name("qid").unwrap().as_primitive::<Int64Type>().values(), &[7, 8]);
    assert_eq!(indices(&batch, 1), [1]);
}

#[test]
fn a_wrong_line_is_an_error_at_its_byte_or_is_skipped_and_counted() {
    let dir = TempDir::new().unwrap();
    let wrong =
        ["x 1:1", "1 1:1 2", "1 a:1", "1 1:b", "1 0:1", "1 9:1", "1 99999999999:1", "1 3:1 3:1", "1 3:1 2:1 3:4"];
    let text: String = wrong.iter().map(|line| format!("1 1:1\n{line}\n")).collect();
    let options = Options { dense: Some(8), zero_based: Some(false), ..Options::default() };
    let path = file(&dir, &text);
    let data = opened(&path, &options);
    let mut offset = 0;
    for (row, line) in text.lines().enumerate() {
        let got = data.read(row as u64..row as u64 + 1, &Cancel::default());
        match got {
            Ok(batch) => assert_eq!((row % 2, batch.num_rows()), (0, 1)),
            Err(SourceError::Damaged { offset: at, .. }) => assert_eq!((row % 2, at), (1, offset), "{line}"),
            other => panic!("{other:?}"),
        }
        offset += line.len() as u64 + 1;
    }
    let data = opened(&path, &Options { on_error: OnError::Skip, ..options });
    let batch = read(&data, 0..18);
    assert_eq!((labels(&batch), data.skipped()), (vec![1.0; 9], 9));
    assert_eq!(x(&batch).iter().sum::<f32>(), 9.0);
}

#[test]
fn a_real_file_is_read_as_a_plain_split_reads_it() {
    let Some(text) = crate::real::text("sources::libsvm::a_real_file", "a9a_train.libsvm.gz") else { return };
    let dir = TempDir::new().unwrap();
    let path = file(&dir, &text);
    let built =
        build(&path, &LibSvm, &IndexOptions::default(), OnError::Raise, &mut |_, _| {}, &Cancel::default()).unwrap();
    let data = opened(&path, &Options { dense: Some(0), ..Options::default() });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((rows(&data), built.rows), (lines.len() as u64, lines.len() as u64));
    let batch = read(&data, 0..rows(&data));
    let expected: Vec<f64> = lines.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(labels(&batch), expected);
    let greatest = lines
        .iter()
        .flat_map(|line| line.split(' ').skip(1))
        .filter_map(|word| word.split_once(':')?.0.parse::<usize>().ok())
        .max();
    let dense = batch.column(1).as_fixed_size_list();
    assert_eq!(dense.value_length() as usize, greatest.unwrap());
    for row in [0, 17, lines.len() - 1] {
        let values = dense.value(row);
        let mut expected = vec![0.0; values.len()];
        for word in lines[row].split_whitespace().skip(1) {
            let (index, value) = word.split_once(':').unwrap();
            expected[index.parse::<usize>().unwrap() - 1] = value.parse().unwrap();
        }
        assert_eq!(values.as_primitive::<Float32Type>().values(), &expected[..]);
    }
}
