//! CSV files, with the oddities that they come with.

use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type};
use source::{Cancel, Source, SourceError};
use sources::csv::{Options, open};
use sources::index::{IndexOptions, build};
use sources::{Dataset, OnError};
use tempfile::TempDir;

fn at(path: &Path) -> [String; 1] {
    [path.to_string_lossy().into_owned()]
}

fn opened(path: &Path, options: &Options) -> Dataset {
    open(&at(path), options, &Cancel::default()).unwrap()
}

fn refused(path: &Path, options: &Options) -> SourceError {
    open(&at(path), options, &Cancel::default()).err().expect("an error")
}

fn rows(data: &Dataset) -> u64 {
    data.units().iter().map(|unit| unit.rows).sum()
}

fn read(data: &Dataset, rows: std::ops::Range<u64>) -> RecordBatch {
    data.read(rows, &Cancel::default()).unwrap()
}

fn file(dir: &TempDir, text: &str) -> std::path::PathBuf {
    let path = dir.path().join("a.csv");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_quote_that_is_not_closed_is_damage_where_its_row_begins() {
    for (text, offset) in [
        ("id,s\n1,\"abc\"\n2,\"de", 13),
        ("id,s\n1,\"abc\"\n2,\"de\n", 13),
        ("id,s\n1,\"abc\n2,def\n", 5),
        ("id,\"s\n1,abc\n", 0),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir, text);
        match open(&at(&path), &Options::default(), &Cancel::default())
            .err()
            .unwrap_or_else(|| panic!("{text:?} is read"))
        {
            SourceError::Damaged { offset: at, .. } => assert_eq!(at, offset, "{text:?}"),
            other => panic!("{text:?}: {other}"),
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "id,s\n1,\"abc\"\n2,\"de");
    let data = opened(&path, &Options { on_error: OnError::Skip, ..Options::default() });
    assert_eq!(rows(&data), 1);
    assert!(data.messages()[0].contains("quotes"), "{:?}", data.messages());
    for whole in ["id,s\n1,\"abc\"", "id,s\n1,\"ab\"\"\"", "id,s\n1,\"\"", "id,s\n1,5\"", "id,s\n1,", "id,s\n1,a\n\n"] {
        assert_eq!(rows(&opened(&file(&dir, whole), &Options::default())), 1, "{whole:?}");
    }
}

#[test]
fn a_quote_that_is_missing_in_the_middle_of_a_file_is_damage_and_joins_no_rows() {
    let dir = tempfile::tempdir().unwrap();
    for (text, damaged, offset) in [
        // not closed, so that the next quote seems to close it
        ("id,s\n0,x\n1,\"ab\n2,\"cd\"\n3,y\n", 1, 17),
        ("id,s\n0,x\n1,\"ab\n2,cd\n4,\"\"\n5,\"ef\"\n3,y\n", 1, 27),
        // not doubled
        ("id,s\n0,x\n1,\"a\"b\"\n3,y\n", 1, 13),
        ("id,s\n0,x\n1,\"a\" \n3,y\n", 1, 13),
        ("id,s\n1,\"\"\"a\n\"b\"\n0,x\n3,y\n", 0, 12),
    ] {
        let path = file(&dir, text);
        let types: std::collections::BTreeMap<_, _> = [("id".to_owned(), DataType::Int64)].into_iter().collect();
        let options = Options { types, ..Options::default() };
        match opened(&path, &options).read(0..3, &Cancel::default()) {
            Err(SourceError::Damaged { offset: at, what, .. }) => {
                assert_eq!(at, offset, "{text:?}");
                assert!(what.contains("a quote is missing before it"), "{what}");
            }
            other => panic!("{text:?}: {other:?}"),
        }
        // the rows next to it are read all the same
        let data = opened(&path, &options);
        let whole = if damaged == 0 { 1 } else { 0 };
        assert_eq!(read(&data, whole..whole + 1).column(0).as_primitive::<Int64Type>().values(), &[0], "{text:?}");
        let data = opened(&path, &Options { on_error: OnError::Skip, ..options });
        assert_eq!(read(&data, 0..3).column(0).as_primitive::<Int64Type>().values(), &[0, 3], "{text:?}");
        assert_eq!(data.skipped(), 1);
    }
    // the names of columns
    let path = file(&dir, "id,\"s\nx\"y\n1,2\n");
    match refused(&path, &Options::default()) {
        SourceError::Damaged { offset, .. } => assert_eq!(offset, 7),
        other => panic!("{other}"),
    }
    // quotes as they have to be, with a mark before the first one, too
    let path = file(&dir, "\u{feff}\"id\",\"s\"\r\n1,\"\"\"\"\r\n2,\"\"\n\n3,\"a\"\"b\n\"\n4,\"\"\"c\"\"\"");
    let texts = read(&opened(&path, &Options::default()), 0..4);
    let texts: Vec<_> = texts.column(1).as_string::<i32>().iter().collect();
    assert_eq!(texts, [Some("\""), None, Some("a\"b\n"), Some("\"c\"")]);
    let path = file(&dir, "\u{feff}\"a\"b,2\n");
    let data = opened(&path, &Options { header: false, on_error: OnError::Skip, ..Options::default() });
    assert_eq!((read(&data, 0..1).num_rows(), data.skipped()), (0, 1));
}

#[test]
fn quotes_blank_lines_and_ends_of_lines_are_those_of_csv() {
    let dir = TempDir::new().unwrap();
    let text = "\u{feff}id,text,x\r\n1,\"two\nlines\",0.5\r\n\r\n2,\"a \"\"quote\"\", a comma\",\n\n3,5\" pipe,-1e3";
    let path = file(&dir, text);
    let data = opened(&path, &Options::default());
    assert_eq!(rows(&data), 3);
    let batch = read(&data, 0..3);
    assert_eq!(batch.schema().field(0).name(), "id");
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[1, 2, 3]);
    let texts: Vec<_> = batch.column(1).as_string::<i32>().iter().flatten().collect();
    assert_eq!(texts, ["two\nlines", "a \"quote\", a comma", "5\" pipe"]);
    let x: Vec<_> = batch.column(2).as_primitive::<Float64Type>().iter().collect();
    assert_eq!(x, [Some(0.5), None, Some(-1000.0)]);
    assert_eq!(read(&data, 1..2).column(0).as_primitive::<Int64Type>().value(0), 2);
}

#[test]
fn every_part_of_many_units_is_what_was_written() {
    let dir = TempDir::new().unwrap();
    let line = |row: u64| format!("{row};\"{}\n{}\";{}.25\n", "x".repeat((row % 90) as usize), row * 7, row);
    let path = file(&dir, &(0..20_000).map(line).collect::<String>());
    let options = Options { header: false, delimiter: b';', ..Options::default() };
    let data = opened(&path, &options);
    assert!(data.units().len() > 5);
    assert_eq!(rows(&data), 20_000);
    let mut first = 0u64;
    for unit in data.units() {
        for range in [first..first + 2, first.saturating_sub(3)..first + 1] {
            let batch = read(&data, range.clone());
            let numbers: Vec<u64> =
                batch.column(0).as_primitive::<Int64Type>().values().iter().map(|&row| row as u64).collect();
            assert_eq!(numbers, range.clone().collect::<Vec<_>>());
            let text = batch.column_by_name("column_2").unwrap().as_string::<i32>().value(0).to_owned();
            assert!(text.ends_with(&format!("\n{}", range.start * 7)));
        }
        first += unit.rows;
    }
    // An index says the same.
    let built =
        build(&path, &options.lines(), &IndexOptions::default(), OnError::Raise, &mut |_, _| {}, &Cancel::default());
    assert_eq!(built.unwrap().rows, 20_000);
    assert_eq!(opened(&path, &options).units(), data.units());
    // But not for a file that is taken for one with a header.
    let error = refused(&path, &Options { delimiter: b';', ..Options::default() }).to_string();
    assert!(error.contains("was built with no header, delimiter ';'") && error.contains("not a header"), "{error}");
}

#[test]
fn types_are_those_of_a_sample_or_as_asked_for() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "a,b,c,d,e\n1,true,x,,NA\n2.5,false,3,,7\n");
    let options = Options { nulls: vec!["NA".into()], ..Options::default() };
    let data = opened(&path, &options);
    let types: Vec<_> = data.schema().fields().iter().map(|field| field.data_type().clone()).collect();
    assert_eq!(types, [DataType::Float64, DataType::Boolean, DataType::Utf8, DataType::Float64, DataType::Int64]);
    assert!(read(&data, 0..1).column(4).is_null(0));
    let types = [("e".to_owned(), DataType::Float32), ("d".to_owned(), DataType::Utf8)].into_iter().collect();
    let columns = Some(vec!["e".to_owned(), "a".to_owned()]);
    let batch = read(&opened(&path, &Options { types, columns, ..options.clone() }), 0..2);
    assert_eq!(batch.column(0).as_primitive::<Float32Type>().value(1), 7.0);
    assert_eq!(batch.column(1).as_primitive::<Float64Type>().value(1), 2.5);
    let types = [("f".to_owned(), DataType::Int64)].into_iter().collect();
    assert!(
        refused(&path, &Options { types, ..options.clone() })
            .to_string()
            .contains("there is no column \"f\"; there are a, b")
    );
    let columns = Some(vec!["f".to_owned()]);
    assert!(refused(&path, &Options { columns, ..options }).to_string().contains("there is no column \"f\""));
}

#[test]
fn a_wrong_row_is_an_error_at_its_byte_or_is_skipped_and_counted() {
    let dir = TempDir::new().unwrap();
    let good: String = (0..100).map(|row| format!("{row},{row}\n")).collect();
    let path = file(&dir, &format!("a,b\n{good}oops,1\n7\n8,8,8\n9,9\n"));
    let types: std::collections::BTreeMap<_, _> = [("a".to_owned(), DataType::Int64)].into_iter().collect();
    let options = Options { types, ..Options::default() };
    let data = opened(&path, &options);
    for (row, length, expected) in [
        (100, 0, "oops"),
        (101, 7, "number of fields, expected 2 got 1"),
        (102, 9, "number of fields, expected 2 got more than 2"),
    ] {
        match data.read(row..row + 1, &Cancel::default()) {
            Err(SourceError::Damaged { offset, what, .. }) => {
                assert_eq!(offset as usize, 4 + good.len() + length, "{what}");
                assert!(what.contains(expected), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
    let data = opened(&path, &Options { on_error: OnError::Skip, ..options });
    let batch = read(&data, 98..104);
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[98, 99, 9]);
    assert_eq!(data.skipped(), 3);
}

#[test]
fn compressed_files_are_refused_with_what_to_do() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.csv.gz");
    std::fs::write(&path, b"\x1f\x8b\x08\0\0\0\0\0").unwrap();
    let error = refused(&path, &Options::default()).to_string();
    assert!(
        error.contains("is compressed with gzip") && error.contains("gunzip --keep") && error.contains("Parquet"),
        "{error}"
    );
}

#[test]
fn files_with_other_headers_are_named_or_left_out() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("a.csv"), "a,b\n1,2\n").unwrap();
    std::fs::write(dir.path().join("b.csv"), "b,a\n1,2\n3,4\n").unwrap();
    std::fs::write(dir.path().join("c.csv"), "a,b\n5,6\n").unwrap();
    let all = dir.path().join("*.csv");
    let error = refused(&all, &Options::default()).to_string();
    assert!(error.contains("b.csv: column \"b\" is where ") && error.contains("a.csv has \"a\""), "{error}");
    let data = opened(&all, &Options { on_error: OnError::Skip, ..Options::default() });
    assert_eq!((rows(&data), data.skipped()), (2, 2));
    assert_eq!(read(&data, 0..2).column(0).as_primitive::<Int64Type>().values(), &[1, 5]);
}

#[test]
fn a_real_file_is_read_as_a_plain_split_reads_it() {
    let Some(text) = crate::real::text("sources::csv::a_real_file", "higgs_train.csv.gz") else { return };
    let dir = TempDir::new().unwrap();
    let path = file(&dir, &text);
    let data = opened(&path, &Options::default());
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let expected: Vec<f64> = lines.map(|line| line.split(',').next_back().unwrap().parse().unwrap()).collect();
    assert_eq!(rows(&data), expected.len() as u64);
    let batch = read(&data, 0..rows(&data));
    let last = batch.column_by_name(names.last().unwrap()).unwrap();
    let last = arrow::compute::cast(last, &DataType::Float64).unwrap();
    assert_eq!(last.as_primitive::<Float64Type>().values(), &expected[..]);
}
