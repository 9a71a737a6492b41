//! Rows whose columns the planner gives to a prediction in their place: the same answers as for rows as values.

use super::named_columns::levels;
use corgipile_tests::stored::MIXED;
use corgipile_tests::{Database, Session};

/// What [`MIXED`] predicts for rows of [`levels`].
const VALUE: &str = "0.5 * a + CASE level::text WHEN 'low' THEN 10 WHEN 'high' THEN 20 ELSE 40 END - 3 * b + 0.25";

/// Does the plan of a query have columns in place of a row?
fn is_spread(db: &mut Session, query: &str) -> bool {
    db.lines(&format!("EXPLAIN (VERBOSE, COSTS OFF) {query}")).iter().any(|line| line.contains("}'::text[]"))
}

#[test]
fn a_row_is_spread_wherever_that_means_the_same() {
    let mut db = Database::new();
    levels(&mut db);
    MIXED.store(&mut db, "m");
    db.run(
        "CREATE TABLE parted (id int, b numeric, level level, a smallint) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (30);
         CREATE TABLE high (a smallint, id int, level level, b numeric);
         ALTER TABLE parted ATTACH PARTITION high FOR VALUES FROM (30) TO (1000);
         INSERT INTO parted SELECT id, b, level, a FROM t;
         CREATE VIEW seen AS SELECT a, b, level FROM t;
         CREATE VIEW barrier WITH (security_barrier) AS SELECT a, b, level FROM t WHERE id > 2;
         CREATE TYPE triple AS (a real, level text, b real);
         CREATE TABLE wide AS SELECT * FROM t;
         DO $$ BEGIN FOR i IN 1..100 LOOP EXECUTE format('ALTER TABLE wide ADD COLUMN c%s int', i); END LOOP; END $$",
    );
    for (from, row, spread) in [
        ("t", "t", true),
        ("t", "t.*", true),
        ("t AS x (one, two, three)", "x", true),
        ("parted", "parted", true),
        ("seen", "seen", true),
        ("barrier", "barrier", true),
        ("(SELECT * FROM t WHERE id < 40) s", "s", true),
        ("(SELECT a, level, b FROM t ORDER BY id LIMIT 7) s", "s", true),
        ("(WITH x AS MATERIALIZED (SELECT * FROM t) SELECT * FROM x) s", "s", true),
        ("t JOIN (SELECT id AS other FROM t) o ON o.other = t.id", "t", true),
        ("t", "ROW(a, level, b)::triple", true),
        ("(SELECT * FROM t WHERE id IN (SELECT id FROM parted WHERE a > 0)) s", "s", true),
        ("(SELECT * FROM t WHERE NOT EXISTS (SELECT FROM parted p WHERE p.id = t.id + 1)) s", "s", true),
        ("t LEFT JOIN (SELECT id AS other FROM t) o ON o.other = t.id", "t", false),
        ("wide", "wide", false),
        ("t, LATERAL (SELECT t AS r OFFSET 0) s", "r", false),
    ] {
        let prediction = format!("corgipile_predict('m', {row})");
        let columns = if from.contains("(one") {
            VALUE.replace("* b", "* two").replace("level::", "three::")
        } else {
            VALUE.to_owned()
        };
        let source = format!("SELECT {prediction} AS z, {columns} AS y FROM {from}");
        assert_eq!(is_spread(&mut db, &source), spread, "{source}");
        let rows: i64 = db.value(&format!("SELECT count(*) FROM ({source}) s WHERE abs(z - y) < 1e-4"));
        let all: i64 = db.value(&format!("SELECT count(*) FROM {from}"));
        assert_eq!((rows, all > 0), (all, true), "{source}");
        let same = format!("SELECT count(*) FROM ({source} OFFSET 0) s WHERE z IS NOT NULL");
        assert_eq!(db.value::<i64>(&same), all, "{source}");
    }
}

#[test]
fn every_answer_is_the_same_of_a_spread_row_and_of_a_value() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i AS id, i % 3 AS label, normal(i, 1)::real AS f, normal(i, 2) AS g, i % 5 AS h, i % 2 = 0 AS k,
                                  nullif(i % 7, 0) / 3.0 AS n, 'c' || i % 4 AS c FROM generate_series(1, 500) i",
    );
    let train = |db: &mut Session, name: &str, model: &str, features: &str, more: &str| {
        db.run(&format!(
            "SELECT FROM corgipile_train('t', '{model}', 'label', '{features}', max_epochs => 2, seed => 1, name => '{name}'{more})"
        ));
    };
    train(&mut db, "reals", "softmax", "{f}", "");
    train(&mut db, "numbers", "softmax", "{k,f,h,g}", "");
    train(&mut db, "nulls", "softmax", "{f,g,n}", ", nulls => 'impute'");
    train(&mut db, "skipped", "softmax", "{f,n}", ", nulls => 'skip'");
    train(&mut db, "mixed", "softmax", "{f,c,n}", ", nulls => 'impute'");
    train(&mut db, "groups", "linear", "{f,g}", ", group_by => 'c'");
    for name in ["reals", "numbers", "nulls", "skipped", "mixed", "groups"] {
        for answer in ["", "_label", "_proba"] {
            if name == "groups" && !answer.is_empty() {
                continue;
            }
            let function = format!("corgipile_predict{answer}");
            let query = format!("SELECT id, {function}('{name}', t)::text AS z FROM t");
            assert!(is_spread(&mut db, &query), "{query}");
            // a row of a subquery that is not pulled up, as one value
            let of_value =
                format!("SELECT id, {function}('{name}', r)::text AS z FROM t, LATERAL (SELECT t AS r OFFSET 0) s");
            assert!(!is_spread(&mut db, &of_value), "{of_value}");
            db.assert_same_rows(&query, &of_value);
            let policies =
                |row: &str| format!("{function}('{name}', {row}, nulls => 'skip', handle_unknown => 'ignore')::text");
            db.assert_same_rows(
                &format!("SELECT id, {} AS z FROM t", policies("t")),
                &format!("SELECT id, {} AS z FROM t, LATERAL (SELECT t AS r OFFSET 0) s", policies("r")),
            );
        }
    }
    assert_ne!(db.line("SELECT count(*) FROM t WHERE corgipile_predict('skipped', t) IS NULL"), "0");
    db.fails_with("SELECT corgipile_predict('nulls', t, 'error') FROM t", "22004").says(&["feature n"]);
    db.fails_with(
        "SELECT corgipile_predict('numbers', x) FROM (SELECT id, f, g, 'NaN'::real AS h, k FROM t) x",
        "22003",
    )
    .says(&["feature h"]);
}

#[test]
fn a_row_that_an_outer_join_has_not_found_has_no_answer() {
    let mut db = Database::new();
    levels(&mut db);
    MIXED.store(&mut db, "m");
    for from in [
        "generate_series(55, 70) i LEFT JOIN t ON t.id = i",
        "t RIGHT JOIN generate_series(55, 70) i ON t.id = i",
        "generate_series(55, 70) i LEFT JOIN (SELECT * FROM t) t ON t.id = i",
        "generate_series(55, 70) i LEFT JOIN (SELECT * FROM t ORDER BY id LIMIT 100) t ON t.id = i",
    ] {
        let counts = format!("SELECT count(*), count(corgipile_predict('m', t)) FROM {from}");
        assert_eq!(db.line(&counts), "16|6", "{from}");
    }
}

#[test]
fn rows_are_grouped_by_as_values_and_aggregated() {
    let mut db = Database::new();
    levels(&mut db);
    MIXED.store(&mut db, "m");
    let expected = db.lines(&format!("SELECT round(sum(({VALUE})::numeric), 2) FROM t GROUP BY level ORDER BY 1"));
    let query = "SELECT round(sum(corgipile_predict('m', t))::numeric, 2) FROM t GROUP BY level ORDER BY 1";
    assert_eq!(db.lines(query), expected);
    assert!(is_spread(&mut db, query));
    let query = "SELECT sum(z)::numeric(9, 2) FROM (SELECT corgipile_predict('m', t) AS z FROM t GROUP BY t) s";
    let sum = db.line(&format!("SELECT sum({VALUE})::numeric(9, 2) FROM t"));
    assert_eq!(db.line(query), sum);
    let query = "SELECT sum(z)::numeric(9, 2) FROM (SELECT corgipile_predict('m', t) AS z FROM t GROUP BY GROUPING SETS ((t), (t, id))) s";
    assert_eq!(db.line(query), db.line(&format!("SELECT (2 * sum({VALUE}))::numeric(9, 2) FROM t")));
    let query = "SELECT sum(z)::numeric(9, 2) FROM (SELECT corgipile_predict('m', t) AS z FROM t GROUP BY id) s";
    assert_eq!(db.line(query), sum);
}

#[test]
fn rows_that_are_written_are_predicted() {
    let mut db = Database::new();
    levels(&mut db);
    MIXED.store(&mut db, "m");
    db.run("ALTER TABLE t ADD z float8");
    let close = |z: &str| format!("abs({z} - ({VALUE})) < 1e-4");
    let wrong = |db: &mut Session, z: &str| db.value::<i64>(&format!("SELECT count(*) FROM t WHERE NOT {}", close(z)));
    db.run("UPDATE t SET z = corgipile_predict('m', t)");
    assert_eq!(wrong(&mut db, "z"), 0);
    let query = format!("UPDATE t SET a = a + 1, z = 0 RETURNING {}", close("corgipile_predict('m', t)"));
    assert_eq!(db.lines(&query), vec!["t"; 60]);
    db.run(
        "INSERT INTO t SELECT * FROM t ON CONFLICT (id) DO UPDATE SET z = corgipile_predict('m', excluded)
         WHERE corgipile_predict('m', t) = corgipile_predict('m', excluded)",
    );
    assert_eq!(wrong(&mut db, "z"), 0);
    db.run("DELETE FROM t WHERE corgipile_predict('m', t) IS NOT NULL");
    assert_eq!(db.line("SELECT count(*) FROM t"), "0");
}

#[test]
fn a_plan_follows_the_names_of_columns() {
    let mut db = Database::new();
    levels(&mut db);
    MIXED.store(&mut db, "m");
    db.run("SET plan_cache_mode = force_generic_plan; CREATE TYPE triple AS (a real, level text, b real)");
    db.run("PREPARE of_table AS SELECT corgipile_predict('m', t) FROM t WHERE id = 5");
    db.run("PREPARE of_type AS SELECT corgipile_predict('m', ROW(a, level, b)::triple) FROM t WHERE id = 5");
    let before = (db.line("EXECUTE of_table"), db.line("EXECUTE of_type"));
    db.run("ALTER TABLE t RENAME b TO c; ALTER TYPE triple RENAME ATTRIBUTE b TO c");
    db.fails_with("EXECUTE of_table", "42703").says(&["\"b\""]);
    db.run("ALTER TABLE t RENAME c TO b; ALTER TABLE t ADD extra int");
    db.fails_with("EXECUTE of_type", "42703").says(&["\"b\""]);
    db.run("ALTER TYPE triple RENAME ATTRIBUTE c TO b");
    assert_eq!((db.line("EXECUTE of_table"), db.line("EXECUTE of_type")), before);
    // a newer version of the model with other features
    db.run("PREPARE trained AS SELECT count(corgipile_predict('newer', t)) FROM t");
    for features in ["{a}", "{a,level}", "{b,a}"] {
        db.run(&format!(
            "SELECT FROM corgipile_train('t', 'linear', 'id', '{features}', max_epochs => 1, name => 'newer')"
        ));
        assert_eq!(db.line("EXECUTE trained"), "60", "{features}");
    }
}

#[test]
fn privileges_are_those_for_the_row() {
    let mut db = Database::new();
    levels(&mut db);
    MIXED.store(&mut db, "m");
    let who = db.role("who");
    db.run(&format!("SELECT corgipile_grant('m', '{who}', 'predict'); GRANT SELECT (a, b, level) ON t TO {who}"));
    let mut other = db.session_as(&who);
    let query = "SELECT count(corgipile_predict('m', t)) FROM t";
    other.fails_with(query, "42501").says(&["permission denied for table t"]);
    db.run(&format!("GRANT SELECT ON t TO {who}"));
    assert_eq!(other.line(query), "60");
    db.run("REVOKE EXECUTE ON FUNCTION corgipile_predict(text, \"any\", text, text) FROM public");
    other.fails_with(query, "42501").says(&["corgipile_predict"]);
    db.run("GRANT EXECUTE ON FUNCTION corgipile_predict(text, \"any\", text, text) TO public");
    db.run("ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON t USING (id <= 10)");
    assert_eq!(other.line(query), "10");
}

#[test]
fn functions_and_cursors_predict_rows_of_changing_types() {
    let mut db = Database::new();
    levels(&mut db);
    MIXED.store(&mut db, "m");
    db.run(
        "CREATE FUNCTION of_record(t) RETURNS float8 LANGUAGE plpgsql AS $$ DECLARE r record := $1; BEGIN RETURN corgipile_predict('m', r); END $$;
         CREATE FUNCTION of_row(t) RETURNS float8 LANGUAGE sql AS $$ SELECT corgipile_predict('m', $1) $$;
         CREATE FUNCTION of_many(OUT z float8) RETURNS SETOF float8 LANGUAGE plpgsql AS $$
         DECLARE r record; BEGIN
             FOR r IN SELECT a, b, level FROM t LOOP z := corgipile_predict('m', r); RETURN NEXT; END LOOP;
             FOR r IN SELECT level::text, id, b, a::float8 FROM t LOOP z := corgipile_predict('m', r); RETURN NEXT; END LOOP;
         END $$",
    );
    let sum = db.line(&format!("SELECT sum({VALUE})::numeric(9, 2) FROM t"));
    for function in ["of_record", "of_row"] {
        assert_eq!(db.line(&format!("SELECT sum({function}(t))::numeric(9, 2) FROM t")), sum, "{function}");
    }
    assert_eq!(db.line("SELECT (sum(z) / 2)::numeric(9, 2) FROM of_many() z"), sum);
    db.run("ALTER TABLE t ADD later int, DROP note");
    assert_eq!(db.line("SELECT sum(of_record(t))::numeric(9, 2) FROM t"), sum);
}

/// What is looked up for a row's plan may find that another session has changed the type of the row.
#[test]
fn a_type_may_get_attributes_while_a_row_of_it_is_predicted() {
    let mut db = Database::new();
    MIXED.store(&mut db, "m");
    db.run(
        "CREATE DOMAIN small AS real; CREATE TYPE row_type AS (a float8, level text, b small);
         CREATE TABLE stored (x row_type); INSERT INTO stored VALUES (ROW(1, 'low', 2))",
    );
    let (mut reader, mut changer) = (db.session(), db.session());
    // knows the type, and has a plan, but nothing of the domain
    reader.run("SELECT (x).a FROM stored; PREPARE p AS SELECT corgipile_predict('m', x) FROM stored");
    reader.run("SELECT corgipile_predict('m', r) FROM (SELECT 1::real AS a, 'low' AS level, 2::real AS b OFFSET 0) r");
    reader.run("EXPLAIN EXECUTE p");
    changer.run(
        "BEGIN;
         DO $$ BEGIN FOR i IN 1..1500 LOOP EXECUTE format('ALTER TYPE row_type ADD ATTRIBUTE c%s int', i); END LOOP; END $$;
         LOCK TABLE pg_catalog.pg_type IN ACCESS EXCLUSIVE MODE",
    );
    let reading = reader.in_background("EXECUTE p");
    changer.wait_for("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'pg_type'::regclass", "1");
    changer.run("COMMIT");
    let (mut reader, predicted) = reading.join();
    predicted.expect("the row has the attributes of before");
    assert_eq!(reader.line("EXECUTE p"), "4.75");
}
