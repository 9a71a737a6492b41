//! Parquet files as people have them: every range of rows is what was written, and what is wrong is said.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Float32Array, Int32Array,
    Int64Array, LargeStringArray, ListArray, ListBuilder, RecordBatch, StringArray, StringBuilder,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Float32Type, Int32Type, Int64Type};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use source::{Cancel, Source, SourceError};
use sources::parquet::{Options, open};
use sources::{Dataset, OnError};
use tempfile::TempDir;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

fn numbers(rows: std::ops::Range<i64>) -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone()));
    let name: ArrayRef = Arc::new(StringArray::from_iter_values(rows.map(|row| format!("row {row}"))));
    batch(vec![("id", id), ("name", name)])
}

fn properties(group: usize) -> WriterPropertiesBuilder {
    WriterProperties::builder().set_max_row_group_row_count(Some(group)).set_compression(Compression::SNAPPY)
}

fn write(path: &Path, batch: &RecordBatch, properties: WriterPropertiesBuilder) {
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn at(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_string_lossy().into_owned()
}

fn opened(paths: &[String], options: Options) -> Dataset {
    open(paths, options, &Cancel::default()).unwrap()
}

fn refused(paths: &[String], options: Options) -> SourceError {
    open(paths, options, &Cancel::default()).err().expect("an error")
}

fn read(data: &Dataset, rows: std::ops::Range<u64>) -> RecordBatch {
    data.read(rows, &Cancel::default()).unwrap()
}

fn rows(data: &Dataset) -> u64 {
    data.units().iter().map(|unit| unit.rows).sum()
}

fn skipping() -> Options {
    Options { on_error: OnError::Skip, ..Options::default() }
}

#[test]
fn every_range_of_several_files_is_what_was_written() {
    let dir = TempDir::new().unwrap();
    let codecs = [
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::GZIP(Default::default()),
    ];
    let mut written = Vec::new();
    for (file, codec) in codecs.into_iter().enumerate() {
        // The third file is empty.
        let part = numbers(if file == 2 { 0..0 } else { 10 * file as i64..10 * file as i64 + 10 });
        write(&dir.path().join(format!("{file}.parquet")), &part, properties(4).set_compression(codec));
        written.push(part);
    }
    let all = concat_batches(&written[0].schema(), &written).unwrap();
    let data = opened(&[at(&dir, "*.parquet")], Options::default());
    assert_eq!(rows(&data), 30);
    for start in 0..=30 {
        for end in start..=30 {
            let got = read(&data, start..end);
            let expected = all.slice(start as usize, (end - start) as usize);
            assert_eq!(got.columns(), expected.columns(), "{start}..{end}");
        }
    }
    assert!(data.read(5..31, &Cancel::default()).is_err());
}

#[test]
fn columns_come_in_the_order_asked_for_and_an_unknown_one_is_named() {
    let dir = TempDir::new().unwrap();
    write(&dir.path().join("a.parquet"), &numbers(0..5), properties(5));
    let asked = |columns: &[&str]| Options {
        columns: Some(columns.iter().map(|name| (*name).to_owned()).collect()),
        ..Options::default()
    };
    let data = opened(&[at(&dir, "a.parquet")], asked(&["name", "id"]));
    let got = read(&data, 1..3);
    assert_eq!(got.schema().field(0).name(), "name");
    assert_eq!(got.column(1).as_primitive::<Int64Type>().values(), &[1, 2]);
    let error = refused(&[at(&dir, "a.parquet")], asked(&["id", "weight"])).to_string();
    assert!(error.contains("a.parquet: there is no column \"weight\"; there are id, name"), "{error}");
    assert!(matches!(refused(&[at(&dir, "a.parquet")], asked(&["id", "id"])), SourceError::Schema { .. }));
}

#[test]
fn dictionaries_and_long_strings_are_given_as_plain_strings() {
    let dir = TempDir::new().unwrap();
    let words = ["red", "green", "red", "blue"];
    let dictionary: DictionaryArray<Int32Type> = words.into_iter().collect();
    let long = LargeStringArray::from(words.to_vec());
    let lists =
        ListArray::from_iter_primitive::<Int32Type, _, _>((0..4).map(|row| Some(vec![Some(row); row as usize])));
    let decimal = arrow::array::Decimal128Array::from(vec![150, 225, -5, 0]).with_precision_and_scale(9, 2).unwrap();
    let columns = vec![
        ("d", Arc::new(dictionary) as ArrayRef),
        ("l", Arc::new(long)),
        ("lists", Arc::new(lists)),
        ("money", Arc::new(decimal)),
    ];
    write(&dir.path().join("a.parquet"), &batch(columns), properties(9));
    let got = read(&opened(&[at(&dir, "a.parquet")], Options::default()), 0..4);
    for column in [0, 1] {
        assert_eq!(got.column(column).as_string::<i32>(), &StringArray::from(words.to_vec()));
    }
    assert_eq!(got.column(2).as_list::<i32>().value(3).as_primitive::<Int32Type>().values(), &[3, 3, 3]);
    assert_eq!(got.column(3).as_primitive::<arrow::datatypes::Float64Type>().values(), &[1.5, 2.25, -0.05, 0.0]);
}

fn vectors(lengths: impl IntoIterator<Item = usize>) -> RecordBatch {
    let mut next = 0.0;
    let lists = ListArray::from_iter_primitive::<Float32Type, _, _>(lengths.into_iter().map(|length| {
        Some(
            (0..length)
                .map(|_| {
                    next += 1.0;
                    Some(next)
                })
                .collect::<Vec<_>>(),
        )
    }));
    batch(vec![("x", Arc::new(lists))])
}

#[test]
fn lists_of_one_length_become_fixed_size_lists_and_others_stay() {
    let dir = TempDir::new().unwrap();
    let cases: [(&str, Vec<usize>, Option<i32>); 4] = [
        ("same", vec![3; 10], Some(3)),
        ("mean", vec![2, 4, 2, 4], None),
        ("none", vec![0; 4], None),
        ("ones", vec![1; 7], Some(1)),
    ];
    for (name, lengths, length) in cases {
        let written = vectors(lengths.clone());
        write(&dir.path().join(name), &written, properties(5));
        let data = opened(&[at(&dir, name)], Options::default());
        let of = data.schema().field(0).data_type().clone();
        match length {
            Some(length) => {
                assert!(matches!(of, DataType::FixedSizeList(_, is) if is == length), "{name}: {of}");
                let got = read(&data, 1..lengths.len() as u64);
                let values = got.column(0).as_fixed_size_list().values().as_primitive::<Float32Type>().clone();
                assert_eq!(values.value(0), length as f32 + 1.0);
                assert_eq!(values.len(), (lengths.len() - 1) * length as usize);
            }
            None => assert!(matches!(of, DataType::List(_)), "{name}: {of}"),
        }
        let ragged = opened(&[at(&dir, name)], Options { fixed_lists: false, ..Options::default() });
        assert!(matches!(ragged.schema().field(0).data_type(), DataType::List(_)));
        let got = read(&ragged, 0..lengths.len() as u64);
        assert_eq!(got.column(0).as_list::<i32>().values(), written.column(0).as_list::<i32>().values());
    }
}

#[test]
fn a_list_of_another_length_far_behind_is_an_error_that_says_what_to_do() {
    let dir = TempDir::new().unwrap();
    // 3 on average, and so in all rows that are looked at: the first ones of the first and the last row group.
    let lengths = (0..20_000).map(|row| match row {
        9_999 => 2,
        10_000 => 4,
        _ => 3,
    });
    write(&dir.path().join("a.parquet"), &vectors(lengths), properties(15_000));
    let data = opened(&[at(&dir, "a.parquet")], Options::default());
    assert_eq!(read(&data, 0..9_999).num_rows(), 9_999);
    let error = data.read(9_000..12_000, &Cancel::default()).unwrap_err().to_string();
    assert!(
        error.contains("column \"x\" has 2 values in row 9999, where the others have 3; with lists=\"ragged\""),
        "{error}"
    );
}

#[test]
fn fixed_size_lists_stay_what_they_are_whatever_their_items_are_called() {
    let dir = TempDir::new().unwrap();
    let fixed = |name: &str, values: Vec<f32>| {
        let item = Arc::new(Field::new(name, DataType::Float32, false));
        let lists = FixedSizeListArray::new(item, 2, Arc::new(Float32Array::from(values)), None);
        batch(vec![("x", Arc::new(lists) as ArrayRef)])
    };
    write(&dir.path().join("a.parquet"), &fixed("item", vec![1.0, 2.0, 3.0, 4.0]), properties(9));
    write(&dir.path().join("b.parquet"), &fixed("element", vec![5.0, 6.0]), properties(9));
    let got = read(&opened(&[at(&dir, "*.parquet")], Options::default()), 1..3);
    let values = got.column(0).as_fixed_size_list().values().as_primitive::<Float32Type>().values().to_vec();
    assert_eq!(values, [3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn a_huge_row_group_is_split_at_pages_and_a_part_reads_its_pages_only() {
    const ROWS: usize = 400_000;
    let dir = TempDir::new().unwrap();
    // 32 floats a row: 51 MB, in pages of 1 MB or less.
    let values = Float32Array::from_iter_values((0..ROWS * 32).map(|value| value as f32));
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let lists = FixedSizeListArray::new(item, 32, Arc::new(values), None);
    let id = Int32Array::from_iter_values(0..ROWS as i32);
    let written = batch(vec![("x", Arc::new(lists) as ArrayRef), ("id", Arc::new(id))]);
    let paged =
        properties(ROWS).set_data_page_row_count_limit(5000).set_write_batch_size(1000).set_dictionary_enabled(false);
    let path = dir.path().join("a.parquet");
    write(&path, &written, paged.set_compression(Compression::UNCOMPRESSED));
    let data = opened(&[at(&dir, "a.parquet")], Options::default());
    assert!(data.units().len() >= 5, "{:?}", data.units());
    assert!(data.units().iter().all(|unit| unit.rows > 0 && unit.bytes < 20 << 20), "{:?}", data.units());
    assert_eq!(rows(&data), ROWS as u64);
    let first = data.units()[0].rows;
    let got = read(&data, first - 2..first + 3);
    assert_eq!(got.columns(), written.slice(first as usize - 2, 5).columns());
    // The first page is damaged: all units but the first can be read.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100..4000].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let data = opened(&[at(&dir, "a.parquet")], Options::default());
    let rest = read(&data, first..ROWS as u64);
    assert_eq!(rest.columns(), written.slice(first as usize, ROWS - first as usize).columns());
}

/// Vectors of three numbers, a number and six bytes, in many pages.
fn straight(rows: std::ops::Range<i64>, missing: Option<i64>) -> RecordBatch {
    let list = |row| (Some(row) != missing).then(|| (0..3).map(move |i| Some((10 * row + i) as f32)));
    let x = ListArray::from_iter_primitive::<Float32Type, _, _>(rows.clone().map(list));
    let fixed = FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(
        rows.clone().map(|row| Some([Some(row), Some(-row)])),
        2,
    );
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone()));
    let bytes = FixedSizeBinaryArray::try_from_iter(rows.map(|row| format!("{row:06}").into_bytes())).unwrap();
    batch(vec![("x", Arc::new(x)), ("fixed", Arc::new(fixed)), ("id", id), ("bytes", Arc::new(bytes))])
}

#[test]
fn numbers_that_lie_in_the_file_as_in_memory_are_what_the_library_reads() {
    let dir = TempDir::new().unwrap();
    let written = straight(0..500, None);
    let plain = || {
        let paged = properties(200).set_data_page_row_count_limit(30).set_write_batch_size(10);
        paged.set_dictionary_enabled(false).set_compression(Compression::UNCOMPRESSED)
    };
    let second = |properties: WriterPropertiesBuilder| properties.set_writer_version(WriterVersion::PARQUET_2_0);
    let encoded = |column: &str, properties: WriterPropertiesBuilder| {
        properties.set_column_encoding(column.into(), Encoding::BYTE_STREAM_SPLIT)
    };
    // others are compressed, or encoded, at first or as a whole
    let ways = [
        ("1", plain()),
        ("2", second(plain()).set_column_encoding("id".into(), Encoding::PLAIN)),
        ("compressed", plain().set_compression(Compression::SNAPPY)),
        ("statistics", plain().set_write_page_header_statistics(true).set_statistics_enabled(EnabledStatistics::Page)),
        ("dictionary", plain().set_dictionary_enabled(true).set_dictionary_page_size_limit(100)),
        ("split", encoded("id", plain())),
    ];
    for (name, properties) in ways {
        write(&dir.path().join(format!("{name}.parquet")), &written, properties);
        let data = opened(&[at(&dir, &format!("{name}.parquet"))], Options::default());
        for range in [0..500, 0..1, 29..31, 150..350, 199..200, 499..500, 7..7] {
            let (first, count) = (range.start as usize, (range.end - range.start) as usize);
            let (got, expected) = (read(&data, range.clone()), written.slice(first, count));
            assert_eq!(got.num_rows(), count);
            let numbers = |batch: &RecordBatch| {
                let x = batch.column(0);
                let x = x.as_list_opt::<i32>().map_or_else(
                    || x.as_fixed_size_list().values().clone(),
                    |x| {
                        let offsets = x.value_offsets();
                        x.values().slice(offsets[0] as usize, (offsets[x.len()] - offsets[0]) as usize)
                    },
                );
                x.as_primitive::<Float32Type>().values().to_vec()
            };
            assert_eq!(numbers(&got), numbers(&expected), "{name} {range:?}");
            for column in 1..4 {
                let plain = |batch: &RecordBatch| batch.column(column).to_data();
                assert_eq!(plain(&got), plain(&expected), "{name} {range:?} {column}");
            }
        }
    }
    // one row without numbers, among those of which all have them
    let lacking = straight(0..500, Some(320));
    write(&dir.path().join("lacking.parquet"), &lacking, plain());
    let options = Options { fixed_lists: false, ..Options::default() };
    let got = read(&opened(&[at(&dir, "lacking.parquet")], options), 310..330);
    assert_eq!(got.column(0).as_list::<i32>().null_count(), 1);
    assert_eq!(got.column(2).to_data(), lacking.slice(310, 20).column(2).to_data());
}

#[test]
fn damage_is_an_error_with_file_and_offset_or_is_skipped_and_counted() {
    let dir = TempDir::new().unwrap();
    let checked = || properties(100).set_compression(Compression::UNCOMPRESSED).set_dictionary_enabled(false);
    write(&dir.path().join("a.parquet"), &numbers(0..300), checked());
    write(&dir.path().join("b.parquet"), &numbers(300..400), checked());
    // In the second row group one header says nonsense.
    let mut bytes = std::fs::read(dir.path().join("a.parquet")).unwrap();
    let wanted = "row 150".as_bytes();
    let place = bytes.windows(wanted.len()).position(|window| window == wanted).unwrap();
    bytes[place - 4..place].copy_from_slice(&u32::MAX.to_le_bytes()); // the length of a string
    std::fs::write(dir.path().join("a.parquet"), bytes).unwrap();

    let all = [at(&dir, "*.parquet")];
    let data = opened(&all, Options::default());
    assert_eq!(read(&data, 0..100).num_rows(), 100);
    match data.read(0..400, &Cancel::default()) {
        Err(SourceError::Damaged { path, offset, .. }) => {
            assert!(path.ends_with("a.parquet"));
            assert!(offset > 100 && offset < place as u64, "{offset}");
        }
        other => panic!("{other:?}"),
    }
    let data = opened(&all, skipping());
    let got = read(&data, 0..400);
    assert_eq!((got.num_rows(), data.skipped()), (300, 100));
    let ids = got.column(0).as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(ids, (0..100).chain(200..400).collect::<Vec<i64>>());
    assert!(data.messages()[0].starts_with("100 rows skipped: ") && data.messages()[0].contains("a.parquet"));
}

#[test]
fn truncated_files_are_refused_or_left_out() {
    let dir = TempDir::new().unwrap();
    write(&dir.path().join("a.parquet"), &numbers(0..10), properties(5));
    write(&dir.path().join("b.parquet"), &numbers(10..20), properties(5));
    let bytes = std::fs::read(dir.path().join("b.parquet")).unwrap();
    let all = [at(&dir, "*.parquet")];
    for length in [0, 3, 11, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(dir.path().join("b.parquet"), &bytes[..length]).unwrap();
        let error = refused(&all, Options::default());
        assert!(
            matches!(&error, SourceError::Damaged { path, .. } if path.ends_with("b.parquet")),
            "{length}: {error:?}"
        );
        let data = opened(&all, skipping());
        assert_eq!(read(&data, 0..10).num_rows(), 10);
        assert!(data.messages()[0].contains("left out") && data.messages()[0].contains("b.parquet"));
    }
}

#[test]
fn files_that_differ_are_named() {
    let dir = TempDir::new().unwrap();
    write(&dir.path().join("a.parquet"), &numbers(0..10), properties(5));
    let id32: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let id64: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let name: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let nothing: ArrayRef = Arc::new(arrow::array::NullArray::new(1));
    let path = dir.path().join("b.parquet");
    let all = [at(&dir, "*.parquet")];
    let cases = [
        (batch(vec![("id", id32), ("name", name.clone())]), "column \"id\" is of type Int32, in "),
        (batch(vec![("id", id64.clone())]), "there is no column \"name\", which "),
        (
            batch(vec![("id", id64.clone()), ("name", name.clone()), ("more", name.clone())]),
            "has the column \"more\", which ",
        ),
    ];
    for (other, expected) in cases {
        write(&path, &other, properties(5));
        let error = refused(&all, Options::default()).to_string();
        assert!(error.contains("b.parquet: ") && error.contains(expected) && error.contains("a.parquet"), "{error}");
        let data = opened(&all, skipping());
        assert_eq!((rows(&data), data.skipped()), (10, 1));
    }
    // Another order of columns is no difference, and neither is a column without a value.
    write(&path, &batch(vec![("name", nothing), ("id", id64)]), properties(5));
    let got = read(&opened(&all, Options::default()), 9..11);
    assert_eq!(got.column(0).as_primitive::<Int64Type>().values(), &[9, 1]);
    assert!(got.column(1).is_null(1));
}

#[test]
fn a_file_that_changes_is_noticed_and_so_is_its_fingerprint() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.parquet");
    write(&path, &numbers(0..10), properties(5));
    let all = [at(&dir, "a.parquet")];
    let data = opened(&all, Options::default());
    let before = data.fingerprint();
    assert_eq!(before, opened(&all, Options::default()).fingerprint());
    let id = Options { columns: Some(vec!["id".into()]), ..Options::default() };
    assert_ne!(before, opened(&all, id).fingerprint());
    write(&path, &numbers(0..11), properties(5));
    assert!(matches!(data.read(0..1, &Cancel::default()), Err(SourceError::Changed { .. })));
    assert_ne!(before, opened(&all, Options::default()).fingerprint());
}

#[test]
fn a_cancelled_read_says_so() {
    let dir = TempDir::new().unwrap();
    write(&dir.path().join("a.parquet"), &numbers(0..10), properties(5));
    let data = opened(&[at(&dir, "a.parquet")], Options::default());
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(matches!(data.read(0..10, &cancel), Err(SourceError::Cancelled)));
}

/// Bytes that this thread has read of files so far.
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn a_row_group_that_is_read_in_many_blocks_is_decoded_once() {
    const ROWS: usize = 20_000;
    let text = |row: usize| format!("{:060}", (row * 7919) % 1_000_003);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(text)));
    let mut lists = ListBuilder::new(StringBuilder::new());
    (0..ROWS).for_each(|row| lists.append_value((0..row % 3).map(|_| Some(text(row)))));
    let lists: ArrayRef = Arc::new(lists.finish());
    for (column, rows_of_page, has_index) in
        [(&texts, ROWS, false), (&texts, 5000, true), (&texts, 5000, false), (&lists, 5000, false), (&lists, 500, true)]
    {
        let dir = TempDir::new().unwrap();
        let id = Int64Array::from_iter_values(0..ROWS as i64);
        let written = batch(vec![("text", column.clone()), ("id", Arc::new(id))]);
        let zstd = properties(ROWS).set_compression(Compression::ZSTD(ZstdLevel::default()));
        let paged = zstd.set_data_page_row_count_limit(rows_of_page).set_write_batch_size(500);
        let path = dir.path().join("a.parquet");
        write(&path, &written, paged.set_offset_index_disabled(!has_index).set_dictionary_enabled(false));
        let data = opened(&[at(&dir, "a.parquet")], Options::default());
        let before = bytes_read();
        read(&data, 0..ROWS as u64);
        let at_once = bytes_read() - before;
        // from the last block to the first: none goes on where one before it has ended
        for first in (0..ROWS).step_by(200).rev() {
            let got = read(&data, first as u64..first as u64 + 200);
            assert_eq!(got.columns(), written.slice(first, 200).columns());
        }
        let in_parts = bytes_read() - before - at_once;
        assert!(in_parts < at_once + at_once / 10, "{in_parts} and {at_once} bytes, in pages of {rows_of_page} rows");
    }
}

#[test]
fn rows_beside_a_damaged_page_of_a_row_group_are_read_in_parts() {
    let dir = TempDir::new().unwrap();
    let paged = properties(1000).set_data_page_row_count_limit(100).set_write_batch_size(50);
    let written = numbers(0..1000);
    let path = dir.path().join("a.parquet");
    write(&path, &written, paged.set_dictionary_enabled(false));
    let mut bytes = std::fs::read(&path).unwrap();
    let footer = parquet::file::metadata::ParquetMetaDataReader::new();
    let metadata = footer.parse_and_finish(&File::open(&path).unwrap()).unwrap();
    let end = metadata.row_group(0).column(1).byte_range();
    bytes[(end.0 + end.1 - 100) as usize..(end.0 + end.1) as usize].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let data = opened(&[at(&dir, "a.parquet")], Options::default());
    assert_eq!(read(&data, 100..300).columns(), written.slice(100, 200).columns());
    assert!(matches!(data.read(900..1000, &Cancel::default()), Err(SourceError::Damaged { .. })));
}

#[test]
fn a_row_of_a_large_data_set_costs_little_more_than_its_page() {
    const ROWS: usize = 7000;
    const ROW_BYTES: u64 = 20_000;
    let dir = TempDir::new().unwrap();
    let row = |row: usize| [(row / 256) as u8, row as u8].repeat(ROW_BYTES as usize / 2);
    let picture: ArrayRef = Arc::new(arrow::array::BinaryArray::from_iter_values((0..ROWS).map(row)));
    let id = Int64Array::from_iter_values(0..ROWS as i64);
    let written = batch(vec![("picture", picture), ("id", Arc::new(id))]);
    let paged = || {
        let plain = properties(500).set_compression(Compression::UNCOMPRESSED).set_dictionary_enabled(false);
        plain.set_data_page_row_count_limit(1).set_write_batch_size(1)
    };
    // the header of each page before it is read where nothing says where pages are
    for (has_index, allowed) in [(true, ROW_BYTES + 8192), (false, ROW_BYTES + 500 * 1200)] {
        write(&dir.path().join("a.parquet"), &written, paged().set_offset_index_disabled(!has_index));
        let columns = Some(vec!["picture".to_owned()]);
        let data = opened(&[at(&dir, "a.parquet")], Options { columns, ..Options::default() });
        for at in [4499, 3000, 6999] {
            let before = bytes_read();
            let got = read(&data, at as u64..at as u64 + 1);
            let bytes = bytes_read() - before;
            assert_eq!(got.columns(), [written.column(0).slice(at, 1)]);
            assert!(bytes < allowed, "{bytes} bytes for row {at}, with an index: {has_index}");
        }
    }
}
