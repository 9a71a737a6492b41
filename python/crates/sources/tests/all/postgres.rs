//! Tables of a real server: `scripts/with-postgres` runs one. Without it these tests are skipped, each by its name.

use std::thread;

use ::postgres::{Client, NoTls};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use source::{Cancel, Source, SourceError};
use sources::postgres::{OpenedTable, Options, open};

use crate::told;

/// A database of its own for a test.
struct Database {
    name: String,
    client: Client,
}

/// None without a server, which is reported.
fn database(test: &str) -> Option<Database> {
    let Ok(host) = std::env::var("PGHOST") else {
        told::skipped(&format!("sources::postgres::{test}"), "PGHOST names no server");
        return None;
    };
    let port = std::env::var("PGPORT").unwrap_or_else(|_| "5432".into());
    let at =
        |name: &str| Client::connect(&format!("host={host} port={port} user=postgres dbname={name}"), NoTls).unwrap();
    let name = format!("sources_{test}");
    let mut admin = at("postgres");
    admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name}")).unwrap();
    admin.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
    Some(Database { client: at(&name), name })
}

impl Database {
    fn options(&self, table: &str) -> Options {
        let connection = format!("dbname={} user=postgres", self.name);
        Options { connection, table: table.into(), fixed_lists: true, ..Options::default() }
    }

    fn run(&mut self, sql: &str) {
        self.client.batch_execute(sql).unwrap();
    }
}

fn opened(options: &Options) -> OpenedTable {
    open(options, &Cancel::default()).unwrap()
}

fn refused(options: &Options) -> String {
    open(options, &Cancel::default()).err().expect("an error").to_string()
}

fn rows(table: &OpenedTable) -> u64 {
    table.data.units().iter().map(|unit| unit.rows).sum()
}

fn read(table: &OpenedTable, rows: std::ops::Range<u64>) -> RecordBatch {
    table.data.read(rows, &Cancel::default()).unwrap()
}

fn all(table: &OpenedTable) -> RecordBatch {
    read(table, 0..rows(table))
}

fn ids(batch: &RecordBatch) -> Vec<i32> {
    batch.column_by_name("id").unwrap().as_primitive::<Int32Type>().values().to_vec()
}

#[test]
fn every_range_is_what_the_table_has_in_the_order_of_its_pages() {
    let Some(mut database) = database("ranges") else { return };
    database.run(
        "CREATE TABLE t AS SELECT i AS id, repeat('x', i % 50) AS text FROM generate_series(0, 29999) i;
         DELETE FROM t WHERE id % 7 = 3; DELETE FROM t WHERE id BETWEEN 10000 AND 15000",
    );
    let expected: Vec<i32> =
        database.client.query("SELECT id FROM t ORDER BY ctid", &[]).unwrap().iter().map(|row| row.get(0)).collect();
    let table = opened(&database.options("t"));
    assert!(table.data.units().len() > 50);
    assert!(table.data.units().iter().any(|unit| unit.rows == 0)); // pages whose rows were all deleted
    assert_eq!(rows(&table), expected.len() as u64);
    for range in [0..expected.len(), 0..0, 5..6, 8000..9000, expected.len() - 3..expected.len()] {
        let batch = read(&table, range.start as u64..range.end as u64);
        assert_eq!(ids(&batch), expected[range]);
    }
    // By several threads at once.
    thread::scope(|scope| {
        for part in expected.chunks(3000).enumerate() {
            let table = &table;
            scope.spawn(move || {
                let (number, part) = part;
                let first = 3000 * number as u64;
                assert_eq!(ids(&read(table, first..first + part.len() as u64)), part);
            });
        }
    });
}

#[test]
fn all_see_the_snapshot_whatever_is_done_to_the_table() {
    let Some(mut database) = database("snapshot") else { return };
    database.run("CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 1000) i");
    let first = opened(&database.options("t"));
    database
        .run("UPDATE t SET id = -id; INSERT INTO t SELECT generate_series(5000, 9000); DELETE FROM t WHERE id < -500");
    let second = opened(&Options { snapshot: Some(first.snapshot.clone()), ..database.options("t") });
    assert_eq!(first.data.fingerprint(), second.data.fingerprint());
    for table in [&first, &second] {
        assert_eq!(ids(&all(table)), (1..=1000).collect::<Vec<_>>());
    }
    let third = opened(&database.options("t"));
    assert_eq!(rows(&third), 500 + 4001);
    assert_ne!(first.data.fingerprint(), third.data.fingerprint());
    assert_eq!(third.data.fingerprint(), opened(&database.options("t")).data.fingerprint());
    let snapshot = first.snapshot.clone();
    drop(first);
    drop(second);
    let error = refused(&Options { snapshot: Some(snapshot), ..database.options("t") });
    assert!(error.contains("anyone who has exported the snapshot must be connected still"), "{error}");
}

#[test]
fn a_row_that_is_another_version_is_another_fingerprint() {
    let Some(mut database) = database("versions") else { return };
    database.run("CREATE TABLE t AS SELECT i AS id, 0 AS x FROM generate_series(1, 100) i");
    let before = opened(&database.options("t")).data.fingerprint();
    database.run("UPDATE t SET x = 1 WHERE id = 5");
    assert_ne!(before, opened(&database.options("t")).data.fingerprint());
    let other = Options { filter: Some("true".into()), ..database.options("t") };
    assert_ne!(opened(&other).data.fingerprint(), opened(&database.options("t")).data.fingerprint());
}

#[test]
fn types_and_nulls_are_those_of_the_table() {
    let Some(mut database) = database("types") else { return };
    database.run(
        "CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE DOMAIN positive AS int CHECK (VALUE > 0);
         CREATE TABLE t (b bool, i2 int2, i4 int4, i8 int8, f4 real, f8 float8, n numeric, t text, v varchar(9),
             c char(3),
             bytes bytea, d date, time time, ts timestamp, tz timestamptz, u uuid, j jsonb, e mood, p positive, o oid);
         INSERT INTO t VALUES (true, -2, 3, 1::int8 << 40, 0.5, 1e300, 12345.678, 'ä', 'v ', 'c',
             '\\x00ff', '1999-12-31', '00:00:01',
             '1970-01-02', '2000-01-01 00:00+01', '00000000-0000-0000-0000-000000000001', '{\"a\": 1}', 'happy', 7, 9);
         INSERT INTO t DEFAULT VALUES;
         INSERT INTO t (n) VALUES ('NaN')",
    );
    let batch = all(&opened(&database.options("t")));
    let column = |name: &str| batch.column_by_name(name).unwrap().clone();
    assert!(column("b").as_boolean().value(0));
    assert_eq!(column("i2").as_primitive::<Int16Type>().value(0), -2);
    assert_eq!(column("i4").as_primitive::<Int32Type>().value(0), 3);
    assert_eq!(column("i8").as_primitive::<Int64Type>().value(0), 1 << 40);
    assert_eq!(column("f4").as_primitive::<Float32Type>().value(0), 0.5);
    assert_eq!(column("f8").as_primitive::<Float64Type>().value(0), 1e300);
    assert_eq!(column("n").as_primitive::<Float64Type>().value(0), 12345.678);
    assert!(column("n").as_primitive::<Float64Type>().value(2).is_nan());
    for (name, text) in [("t", "ä"), ("v", "v "), ("c", "c"), ("j", "{\"a\": 1}"), ("e", "happy")] {
        assert_eq!(column(name).as_string::<i32>().value(0), text, "{name}");
    }
    assert_eq!(column("u").as_string::<i32>().value(0), "00000000-0000-0000-0000-000000000001");
    assert_eq!(column("bytes").as_binary::<i32>().value(0), [0, 255]);
    assert_eq!(column("d").as_primitive::<Date32Type>().value(0), 10_956);
    assert_eq!(column("time").as_primitive::<Time64MicrosecondType>().value(0), 1_000_000);
    assert_eq!(column("ts").as_primitive::<TimestampMicrosecondType>().value(0), 86_400_000_000);
    assert_eq!(column("tz").as_primitive::<TimestampMicrosecondType>().value(0), (946_684_800 - 3600) * 1_000_000);
    assert_eq!(column("p").as_primitive::<Int32Type>().value(0), 7);
    assert_eq!(column("o").as_primitive::<Int64Type>().value(0), 9);
    for column in batch.columns() {
        assert!(column.is_valid(0) && column.is_null(1));
    }
    // Arrays have no place for what is infinitely far away, nor beyond their last year.
    for (name, value) in [("d", "infinity"), ("ts", "-infinity"), ("tz", "infinity"), ("ts", "294276-01-01")] {
        database.run(&format!("TRUNCATE t; INSERT INTO t ({name}) VALUES ('{value}')"));
        let error = refused(&database.options("t"));
        assert!(error.contains(&format!("column \"{name}\": a value is infinite, or too far away")), "{error}");
        let finite =
            Options { filter: Some(format!("isfinite({name}) AND {name} < '9999-01-01'")), ..database.options("t") };
        assert_eq!(rows(&opened(&finite)), 0);
    }
}

#[test]
fn a_filter_is_one_condition() {
    let Some(mut database) = database("filters") else { return };
    database.run("CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 3000) i");
    for (filter, count) in
        [("id < 11 OR id > 2990", 20), ("id = 7 -- only", 1), ("(id = 1) /* ) OR (true */ OR (id = 2)", 2)]
    {
        let table = opened(&Options { filter: Some(filter.into()), ..database.options("t") });
        assert_eq!((rows(&table), all(&table).num_rows()), (count, count as usize), "{filter}");
    }
    for filter in [
        "true) OR (true",
        "id > 5) OR (id < 5",
        "true) OR (id = 1 -- ",
        "true; DROP TABLE t",
        "true THEN true END OR CASE WHEN true",
        "SELECT true",
        "true /*",
        "",
        "id",
        "true GROUP BY id",
    ] {
        let error = open(&Options { filter: Some(filter.into()), ..database.options("t") }, &Cancel::default());
        let error = error.err().unwrap_or_else(|| panic!("{filter} was taken"));
        assert!(matches!(error, SourceError::Invalid(_) | SourceError::Database(_)), "{error}");
    }
    let twice = refused(&Options { filter: Some("true) OR (true".into()), ..database.options("t") });
    assert!(twice.contains("where: \"true) OR (true\" is not one condition of SQL"), "{twice}");
}

#[test]
fn arrays_are_lists_and_of_one_length_fixed_size_lists() {
    let Some(mut database) = database("arrays") else { return };
    database.run(
        "CREATE TABLE t AS SELECT i AS id, ARRAY[i, i + 0.5, NULL]::real[] AS x, array_fill(i, ARRAY[i % 3]) AS r,
             ARRAY[1.5, i]::numeric[] AS n, ARRAY['a', 'b'] AS w, ARRAY[[i, 1], [2, 3]] AS m
         FROM generate_series(1, 5000) i",
    );
    let table = opened(&database.options("t"));
    let batch = read(&table, 3..5);
    let of = |name: &str| batch.schema().field_with_name(name).unwrap().data_type().clone();
    assert!(matches!(of("x"), DataType::FixedSizeList(item, 3) if *item.data_type() == DataType::Float32));
    assert!(matches!(of("r"), DataType::List(item) if *item.data_type() == DataType::Int32));
    assert!(matches!(of("n"), DataType::FixedSizeList(item, 2) if *item.data_type() == DataType::Float64));
    assert!(matches!(of("m"), DataType::FixedSizeList(_, 4)));
    let x = batch.column_by_name("x").unwrap().as_fixed_size_list().value(1);
    assert_eq!(x.as_primitive::<Float32Type>().iter().collect::<Vec<_>>(), [Some(5.0), Some(5.5), None]);
    let r = batch.column_by_name("r").unwrap().as_list::<i32>().value(1);
    assert_eq!(r.as_primitive::<Int32Type>().values(), &[5, 5]);
    let w = batch.column_by_name("w").unwrap().as_fixed_size_list().value(0);
    assert_eq!(w.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["a", "b"]);
    let m = batch.column_by_name("m").unwrap().as_fixed_size_list().value(0);
    assert_eq!(m.as_primitive::<Int32Type>().values(), &[4, 1, 2, 3]);
    let ragged = opened(&Options { fixed_lists: false, ..database.options("t") });
    assert!(matches!(ragged.data.schema().field_with_name("x").unwrap().data_type(), DataType::List(_)));
    // One row differs where no one has looked.
    database.run(
        "CREATE TABLE u AS SELECT i AS id, array_fill(0, ARRAY[CASE i WHEN 12345 THEN 2 ELSE 3 END]) AS x
         FROM generate_series(1, 30000) i",
    );
    let table = opened(&database.options("u"));
    let error = table.data.read(12_000..13_000, &Cancel::default()).unwrap_err().to_string();
    assert!(error.contains("table u: column \"x\" has 2 values") && error.contains("lists=\"ragged\""), "{error}");
}

#[test]
fn names_that_need_quotes_filters_and_chosen_columns_work() {
    let Some(mut database) = database("names") else { return };
    database.run(
        "CREATE SCHEMA \"My Schema\";
         CREATE TABLE \"My Schema\".\"The \"\"Table\" (id int, \"a b\" int, \"select\" int, \"q\"\"\" int);
         INSERT INTO \"My Schema\".\"The \"\"Table\" SELECT i, -i, 2 * i, 3 * i FROM generate_series(1, 100) i",
    );
    let options = Options {
        columns: Some(vec!["q\"".into(), "select".into(), "a b".into()]),
        filter: Some("id % 10 = 0 OR \"a b\" = -5 -- and no more".into()),
        ..database.options("\"My Schema\".\"The \"\"Table\"")
    };
    let batch = all(&opened(&options));
    assert_eq!(batch.num_rows(), 11);
    let values: Vec<i32> = batch.columns().iter().map(|column| column.as_primitive::<Int32Type>().value(0)).collect();
    assert_eq!(values, [15, 10, -5]);
    let unknown = Options { columns: Some(vec!["id".into(), "x".into()]), ..options.clone() };
    assert!(refused(&unknown).contains("has no column \"x\"; it has id, a b, select, q\""));
    assert!(
        refused(&Options { filter: Some("nosuch = 1".into()), ..options })
            .contains("column \"nosuch\" does not exist (42703)")
    );
}

#[test]
fn partitions_and_children_are_read_and_empty_tables_too() {
    let Some(mut database) = database("partitions") else { return };
    database.run(
        "CREATE TABLE p (id int, x int) PARTITION BY RANGE (id);
         CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
         CREATE TABLE p2 (x int, extra int, id int); ALTER TABLE p2 DROP extra;
         ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (1000) TO (2000);
         CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (2000) TO (3000) PARTITION BY LIST (x);
         CREATE TABLE p3a PARTITION OF p3 DEFAULT;
         INSERT INTO p SELECT i, i FROM generate_series(0, 2999) i;
         CREATE TABLE parent (id int); CREATE TABLE child (y int) INHERITS (parent);
         INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2, 2);
         CREATE TABLE empty (id int); CREATE MATERIALIZED VIEW m AS SELECT 5 AS id; CREATE VIEW v AS SELECT 1 AS id;
         CREATE ROLE sources_reader LOGIN; GRANT SELECT ON p TO sources_reader",
    );
    let mut got = ids(&all(&opened(&database.options("p"))));
    got.sort_unstable();
    assert_eq!(got, (0..3000).collect::<Vec<_>>());
    assert_eq!(ids(&all(&opened(&database.options("parent")))), [1, 2]);
    assert_eq!(ids(&all(&opened(&database.options("m")))), [5]);
    let empty = opened(&database.options("empty"));
    assert_eq!((rows(&empty), all(&empty).num_rows()), (0, 0));
    assert_eq!(empty.data.schema().field(0).name(), "id");
    assert!(refused(&database.options("v")).contains("v is not a table, partitioned table or materialized view"));
    // Anyone who may read the table, but not its partitions, reads it all the same.
    let connection = format!("dbname={} user=sources_reader", database.name);
    let mut got = ids(&all(&opened(&Options { connection: connection.clone(), ..database.options("p") })));
    got.sort_unstable();
    assert_eq!(got, (0..3000).collect::<Vec<_>>());
    let denied = refused(&Options { connection, ..database.options("empty") });
    assert!(denied.contains("permission denied for table empty (42501)"), "{denied}");
    database.run("REVOKE ALL ON p FROM sources_reader; DROP ROLE sources_reader");
}

#[test]
fn row_security_holds() {
    let Some(mut database) = database("security") else { return };
    database.run(
        "CREATE TABLE t (id int, owner name);
         INSERT INTO t SELECT i, CASE i % 2 WHEN 0 THEN 'sources_owner' ELSE 'other' END FROM generate_series(1, 100) i;
         ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON t USING (owner = current_user);
         CREATE ROLE sources_owner LOGIN; GRANT SELECT ON t TO sources_owner",
    );
    let connection = format!("dbname={} user=sources_owner", database.name);
    let table = opened(&Options { connection, ..database.options("t") });
    assert_eq!(ids(&all(&table)), (1..=50).map(|half| 2 * half).collect::<Vec<_>>());
    drop(table);
    database.run("REVOKE ALL ON t FROM sources_owner; DROP ROLE sources_owner");
}

#[test]
fn what_the_database_refuses_is_told_in_its_words() {
    let Some(database) = database("refused") else { return };
    assert!(refused(&database.options("nosuch")).contains("relation \"nosuch\" does not exist (42P01)"));
    let nowhere = Options { connection: "dbname=nosuch user=postgres".into(), ..database.options("t") };
    assert!(refused(&nowhere).contains("database \"nosuch\" does not exist (3D000)"));
    let wrong = Options { connection: "nosuch=1".into(), ..database.options("t") };
    assert!(refused(&wrong).contains("the connection string is wrong"));
    let silent = Options { connection: "host=/nosuch".into(), ..database.options("t") };
    assert!(matches!(open(&silent, &Cancel::default()), Err(SourceError::Database(_))));
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(matches!(open(&database.options("t"), &cancel), Err(SourceError::Cancelled)));
}
