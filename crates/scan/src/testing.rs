//! Reads a source as a training does, for tests inside a backend.

use crate::{Buffers, Source};
use decode::DecoderSpec;
use loss::ModelKind;
use options::rows::Nulls;
use options::shuffling::Shuffling;
use pg::executor::custom_scan::Flags;
use pg::executor::query::Running;
use pg::snapshot::Snapshot;
use shuffle::Strategy;
use tuples::{Batch, TupleSource};

/// Opens column label and these features of a source.
pub fn open(source: &str, features: &[&str], strategy: Strategy, snapshot: Snapshot<'_>) -> Buffers {
    let shuffling = Shuffling { strategy, seed: 1, first_epoch: 1, ..Shuffling::none() };
    let source = Source::resolve(source).unwrap();
    let features: Vec<String> = features.iter().map(|feature| (*feature).to_owned()).collect();
    let spec = DecoderSpec { nulls: Nulls::Skip, ..DecoderSpec::new(ModelKind::Logistic, "label", &features) };
    let decoder = source.decoder(&spec).unwrap();
    let planned = source.plan(&spec, &shuffling).unwrap();
    Buffers::new(Running::start(planned, snapshot, 0, Flags::NONE), decoder)
}

/// All tuples of an epoch, sorted: the bits of the features, and which class it is.
pub fn epoch(buffers: &mut Buffers) -> Vec<Vec<u32>> {
    let mut batch = Batch::new(0);
    let mut tuples = Vec::new();
    while buffers.next_batch(&mut batch).unwrap() {
        for i in 0..batch.len() {
            let features = batch.features(i).iter().map(|v| v.to_bits());
            tuples.push(features.chain([u32::from(batch.label(i) > 0.0)]).collect::<Vec<_>>());
        }
    }
    // which class is +1 depends on which row came first
    if buffers.decoder.labels().classes().unwrap().swapped {
        tuples.iter_mut().filter_map(|tuple| tuple.last_mut()).for_each(|class| *class = 1 - *class);
    }
    tuples.sort_unstable();
    tuples
}

#[pgrx::pg_schema]
mod tests {
    use crate::Buffers;
    use crate::testing::{epoch, open};
    use pg::testing::{run, value, with_snapshot};
    use pg::values::array::{ArrayFault, ArrayReader};
    use pgrx::prelude::*;
    use shuffle::Strategy;

    #[pg_test]
    fn test_raw_tuples_are_decoded_as_the_executor_deforms_them() {
        // Every kind of row that the fast path must recognise: NULLs before and behind the wanted columns, short and
        // long varlena headers, compressed and external arrays, dropped columns, rows older than a column.
        run("CREATE TABLE mixed (a text, gone int, n numeric, label smallint, c \"char\", x real[], behind text)");
        run("INSERT INTO mixed SELECT CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE repeat('a', i) END, i,
                 CASE WHEN i % 3 > 0 THEN i / 7.0 END, CASE WHEN i % 50 > 0 THEN i % 2 END, 'c',
                 CASE WHEN i % 40 > 0 THEN ARRAY[i, i % 5, 1.5] END, CASE WHEN i % 2 = 0 THEN 'b' END
               FROM generate_series(1, 300) i");
        run("ALTER TABLE mixed DROP gone");
        run("ALTER TABLE mixed ADD late int DEFAULT 7");
        run("INSERT INTO mixed SELECT 'x', 1, i % 2, 'd', ARRAY[i, 2, 3], NULL, i FROM generate_series(1, 300) i");
        // the commonest shapes, with a row now and then that is not of its table's shape
        run("CREATE TABLE plain AS SELECT i AS id, i % 2 AS label,
                 ARRAY(SELECT i * j % 17 FROM generate_series(1, 28) j)::real[] AS x FROM generate_series(1, 500) i");
        run("UPDATE plain SET id = NULL WHERE id % 41 = 0");
        run("ALTER TABLE plain ADD behind text");
        run("UPDATE plain SET behind = 'b' WHERE id % 3 = 0");
        run("CREATE TABLE short AS SELECT ARRAY[i, i % 3]::real[] AS x, (i % 2)::smallint AS label
               FROM generate_series(1, 500) i");
        run("UPDATE short SET x = array_fill(x[1], ARRAY[2], ARRAY[5]) WHERE label = 0");
        run("CREATE TABLE wide (label bool, x real[])");
        run("INSERT INTO wide SELECT i % 2 = 0, (SELECT array_agg(i * j % 100) FROM generate_series(1, 4000) j)
               FROM generate_series(1, 40) i");
        run("ALTER TABLE wide ALTER x SET STORAGE external");
        run("INSERT INTO wide SELECT i % 2 = 0, (SELECT array_agg(i * j % 10) FROM generate_series(1, 4000) j)
               FROM generate_series(1, 40) i");
        with_snapshot(|snapshot| {
            for (table, rows) in [("mixed", 600 - 6 - 7 + 1), ("plain", 500), ("short", 500), ("wide", 80)] {
                // A qual keeps BlockShuffle from reading raw, and volatile functions keep it from reading the table
                // itself.
                let mut raw = open(table, &["x"], Strategy::CorgiPile, snapshot);
                let mut slots = open(
                    &format!("SELECT * FROM {table} WHERE length(x::text) >= 0"),
                    &["x"],
                    Strategy::CorgiPile,
                    snapshot,
                );
                let mut spool =
                    open(&format!("SELECT * FROM {table} WHERE random() < 2"), &["x"], Strategy::CorgiPile, snapshot);
                let expected = epoch(&mut slots);
                assert_eq!(expected.len(), rows, "{table}");
                assert!(epoch(&mut raw) == expected, "{table}: raw tuples differ");
                assert!(epoch(&mut spool) == expected, "{table}: spooled tuples differ");
                [raw, slots, spool].into_iter().for_each(Buffers::finish);
            }
        });
    }

    /// Tables of numbers of every type, in columns and arrays.
    fn make_tables_of_numbers() {
        // columns back to back and with others in between, at the table's beginning and behind a text, NULLs here and
        // there
        run(
            "CREATE TABLE fixed (a real, b real, label smallint, c float8, d float8, skipped int, e int, f int, g smallint,
                 h bigint, i bool, j real)",
        );
        run(
            "INSERT INTO fixed SELECT sin(n), cos(n) * 1e30, n % 2, sin(n) / 3, exp(n / 10.0), n, n * 1000003, -n, n - 200,
                 n * 9007199254740993, n % 3 = 0, CASE WHEN n % 9 > 0 THEN n / 7.0 END FROM generate_series(1, 400) n",
        );
        run("UPDATE fixed SET d = NULL WHERE e % 17 = 0");
        run("UPDATE fixed SET skipped = NULL WHERE e % 13 = 0");
        run("CREATE TABLE behind AS SELECT repeat('x', e % 200) AS before, fixed.* FROM fixed");
        run("ALTER TABLE fixed ADD later real DEFAULT 3");
        run("CREATE TABLE numbers AS SELECT n % 2 AS label, k, ARRAY[k, -k, trunc(k), n] AS x
               FROM (SELECT n, round((sin(n) * 10 ^ (n % 40 - 19))::numeric, n % 50 - 20) AS k
                       FROM generate_series(1, 600) n) AS numbers");
        run("INSERT INTO numbers SELECT n % 2, k, ARRAY[k, 0, 1, 2] FROM
                 unnest('{0, 0.00, 1, 10000, 100000000, 0.0001, 0.00010001, 9007199254740991, 9007199254740993, -1.5,
                          12345678901234567890, 0.1234567890123456789, 1e30, 1e-30, 99999999999999999999,
                          340282346638528859811704183484516925440}'::numeric[])
                 WITH ORDINALITY AS k(k, n)");
        run("CREATE TABLE arrays AS SELECT label, ARRAY[c, d, c * d, e, f]::float8[] AS doubles,
                 ARRAY[e, f, g, 7] AS integers, ARRAY[h, e, f] AS longs,
                 ARRAY[g, 1, 2, 3, 4, 5, 6, 7, 8]::smallint[] AS shorts, ARRAY[i, true, false] AS bools
               FROM fixed WHERE d IS NOT NULL");
    }

    #[pg_test]
    fn test_numbers_of_every_type_are_those_that_postgresql_casts_to_double_precision() {
        make_tables_of_numbers();
        let columns = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let cast = |column: &str| match column {
            "i" => format!("{column}::int::float8 AS {column}"),
            _ => format!("{column}::float8 AS {column}"),
        };
        let casts = columns.map(cast).join(", ");
        with_snapshot(|snapshot| {
            let decoded = |source: &str, features: &[&str]| {
                let mut buffers = open(source, features, Strategy::CorgiPile, snapshot);
                let tuples = epoch(&mut buffers);
                buffers.finish();
                tuples
            };
            for table in ["fixed", "behind"] {
                let expected = decoded(&format!("SELECT label, {casts} FROM {table}"), &columns);
                assert!((300..400).contains(&expected.len()));
                assert!(decoded(table, &columns) == expected, "{table}");
                assert!(
                    decoded(&format!("SELECT * FROM {table} WHERE random() < 2"), &columns) == expected,
                    "{table}, spooled"
                );
            }
            let arrays = ["doubles", "integers", "longs", "shorts"].map(|x| (x, format!("{x}::float8[]")));
            for (x, cast) in arrays.into_iter().chain([("bools", "bools::int[]::float8[]".to_owned())]) {
                let expected = decoded(&format!("SELECT label, {cast} AS {x} FROM arrays"), &[x]);
                assert!(!expected.is_empty() && decoded("arrays", &[x]) == expected, "{x}");
            }
            for (x, cast) in [("k", "k::float8"), ("x", "x::float8[]")] {
                let expected = decoded(&format!("SELECT label, {cast} AS {x} FROM numbers"), &[x]);
                assert_eq!(expected.len(), 616);
                assert!(decoded("numbers", &[x]) == expected, "numeric {x}");
            }
        });
    }

    #[pg_test]
    fn test_arrays_fill_vectors_or_it_is_told_which_element_cannot() {
        fn read(text: &str, array: &str) -> Result<[f32; 3], ArrayFault> {
            let array = value(text, array);
            let reader = ArrayReader::new(array.type_oid()).expect("an array of numbers");
            let mut out = [0.0; 3];
            reader.read(array, &mut out).map(|()| out)
        }
        for array in ["real[]", "float8[]", "smallint[]", "int[]", "bigint[]", "numeric[]"] {
            assert_eq!(read("{1,-2,3}", array), Ok([1.0, -2.0, 3.0]), "{array}");
            assert_eq!(read("[5:7]={1,-2,3}", array), Ok([1.0, -2.0, 3.0]), "{array} from 5 on");
            assert_eq!(read("{1,2}", array), Err(ArrayFault::Length(2)), "{array}");
            assert_eq!(read("{1,NULL,3}", array), Err(ArrayFault::Null(2)), "{array}");
            assert_eq!(read("{{1,2,3}}", array), Err(ArrayFault::Dimensions(2)), "{array}");
        }
        assert_eq!(read("{true,false,true}", "bool[]"), Ok([1.0, 0.0, 1.0]));
        assert!(matches!(read("{1,2,NaN}", "real[]"), Err(ArrayFault::Number(3, _))));
        assert!(matches!(read("{1,1e300,2}", "float8[]"), Err(ArrayFault::Number(2, _))));
        let with_nulls = value("{1,NULL,3}", "numeric[]");
        let mut out = [0.0; 3];
        ArrayReader::new(with_nulls.type_oid()).unwrap().read_with_nulls(with_nulls, &mut out, 9.0).unwrap();
        assert_eq!(out, [1.0, 9.0, 3.0]);
        assert!(ArrayReader::new(pg_sys::TEXTARRAYOID).is_none());
    }
}
