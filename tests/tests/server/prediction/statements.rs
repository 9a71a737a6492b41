//! Predictions in statements of every shape, and models of every size.

use super::named_columns::levels;
use corgipile_tests::stored::{DENSE, MIXED, SOFTMAX, SPARSE};
use corgipile_tests::{Database, Stored};

#[test]
fn calls_are_told_apart_by_their_arguments() {
    let mut db = Database::new();
    let id = DENSE.store(&mut db, "m");
    db.run("CREATE TABLE t (x numeric[], k int[], v real[]); INSERT INTO t VALUES ('{1,2,3}', '{1}', '{-9}')");
    for (call, label) in [
        (format!("{id}, ARRAY[1.0,2,3]"), "1"),
        (format!("{id}::int, ARRAY[1,2,3]"), "1"),
        (format!("{id}::smallint, '{{1,2,3}}'::real[]"), "1"),
        (format!("model_id => {id}, features => ARRAY[1,2,3]"), "1"),
        ("'m', ARRAY[1,2,3]".into(), "1"),
        ("'m'::varchar, ARRAY[1,2,3]".into(), "1"),
        ("name => 'm', features => ARRAY[1,2,3]".into(), "1"),
        (format!("{id}, x"), "1"),
        (format!("{id}, t"), "1"),
        ("'m', t".into(), "1"),
        ("'m', t.*".into(), "1"),
        (format!("model_id => {id}, features => t"), "1"),
        (format!("{id}, t, handle_unknown => 'error'"), "1"),
        (format!("{id}, handle_unknown => 'error', nulls => 'error', features => t"), "1"),
        (format!("{id}, t, 'error'"), "1"),
        (format!("{id}, k, v"), "-1"),
        ("'m', k, v".into(), "-1"),
        ("name => 'm', indices => k, feature_values => v".into(), "-1"),
        (format!("{id}, '{{1}}'::int[], ARRAY[-9.5]"), "-1"),
        (format!("(SELECT {id}::bigint), (SELECT k FROM t), (SELECT v FROM t)"), "-1"),
    ] {
        for function in ["corgipile_predict", "corgipile_predict_label"] {
            assert_eq!(db.line(&format!("SELECT {function}({call}) FROM t")), label, "{function}({call})");
        }
    }
}

#[test]
fn a_null_argument_gives_null() {
    let mut db = Database::new();
    let id = DENSE.store(&mut db, "m");
    db.run("CREATE TABLE t (x real[]); INSERT INTO t VALUES ('{1,2,3}')");
    for call in [
        "NULL::bigint, ARRAY[1,2,3]".into(),
        "NULL::text, ARRAY[1,2,3]".into(),
        format!("{id}, NULL::real[]"),
        format!("{id}, NULL::t"),
        format!("{id}, NULL::int[], ARRAY[1]"),
        format!("{id}, ARRAY[1], NULL::real[]"),
        format!("{id}, (SELECT t FROM t WHERE false)"),
    ] {
        for function in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
            assert_eq!(db.line(&format!("SELECT {function}({call})")), "NULL", "{function}({call})");
        }
    }
    // The row of an outer join that has no match is NULL, too.
    let joined = format!("SELECT corgipile_predict({id}, t) FROM (VALUES (1)) v(i) LEFT JOIN t ON false");
    assert_eq!(db.line(&joined), "NULL");
}

#[test]
fn prepared_statements_predict_with_what_they_are_given() {
    let mut db = Database::new();
    DENSE.store(&mut db, "m");
    Stored { weights: "'{0,0,0}'", intercepts: "'{-1}'", ..DENSE }.store(&mut db, "never");
    levels(&mut db);
    db.run(
        "PREPARE dense (text, real[]) AS SELECT corgipile_predict($1, $2);
         PREPARE sparse (text, int[], real[]) AS SELECT corgipile_predict($1, $2, $3);
         CREATE TYPE holder AS (x real[]);
         PREPARE row (text, holder) AS SELECT corgipile_predict($1, $2)",
    );
    for _ in 0..8 {
        assert_eq!(db.line("EXECUTE dense('m', '{1,2,3}')"), "1");
        assert_eq!(db.line("EXECUTE dense('never', '{1,2,3}')"), "-1");
        assert_eq!(db.line("EXECUTE sparse('m', '{2}', '{1}')"), "-1");
        assert_eq!(db.line("EXECUTE row('m', ROW('{1,2,3}'))"), "1");
        assert_eq!(db.line("EXECUTE row('m', ROW('{1,2,-3}'))"), "-1");
    }
}

#[test]
fn rows_and_arrays_predict_the_same_in_parallel_workers() {
    let mut db = Database::new();
    MIXED.store(&mut db, "mixed");
    SPARSE.store(&mut db, "sparse");
    db.run(
        "CREATE TABLE t AS SELECT i % 100 AS a, (ARRAY['low', 'mid', 'high'])[1 + i % 3] AS level, i % 7 AS b,
                ARRAY[1, 3] AS k, ARRAY[i % 5, -i % 3]::real[] AS v FROM generate_series(1, 20000) i; ANALYZE t",
    );
    let queries = [
        "SELECT sum(corgipile_predict('mixed', t)), sum(corgipile_predict('sparse', k, v)) FROM t",
        "SELECT sum(corgipile_predict('mixed', s)) FROM (SELECT level, b + 1 AS b, a FROM t OFFSET 0) s",
        "SELECT sum(corgipile_predict('sparse', v || 1::real)), sum(corgipile_predict('sparse', (v || 2::real)::numeric[])) FROM t",
        "SELECT corgipile_predict('mixed', (array_agg(s))[7]) FROM (SELECT 'mid' AS level, b, 1 AS a FROM t WHERE b = 2) s",
    ];
    let serial: Vec<String> = queries.iter().map(|query| db.line(query)).collect();
    db.run(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = 2",
    );
    for query in [queries[0], queries[2]] {
        let plan = db.lines(&format!("EXPLAIN {query}"));
        assert!(plan.iter().any(|line| line.contains("Gather")), "{plan:#?}");
    }
    for (query, serial) in queries.iter().zip(serial) {
        assert_eq!(db.line(query), serial, "{query}");
    }
    let record = "SELECT sum(corgipile_predict('mixed', s)) FROM (SELECT level, b, a FROM t) s WHERE corgipile_predict('mixed', s) > 30";
    let plan = db.lines(&format!("EXPLAIN {record}"));
    assert!(plan.iter().any(|line| line.contains("Gather")), "{plan:#?}");
    let parallel = db.line(record);
    db.run("SET max_parallel_workers_per_gather = 0");
    assert_eq!(db.line(record), parallel);
}

#[test]
fn models_of_a_million_dimensions_predict_and_list_their_weights() {
    let mut db = Database::new();
    let dim = 1 << 20;
    let weights = format!("(SELECT array_agg((i % 97)::real ORDER BY i) FROM generate_series(1, {dim}) i)");
    let scale = format!("(SELECT array_agg(2::float8) FROM generate_series(1, {dim}) i)");
    let mean = format!("(SELECT array_agg(0::float8) FROM generate_series(1, {dim}) i)");
    let model = Stored { model: "linear", classes: "NULL", weights: &weights, intercepts: "'{0.5}'", ..SPARSE };
    model.store(&mut db, "large");
    Stored { mean: &mean, scale: &scale, ..model }.store(&mut db, "scaled");
    for (index, weight) in [(1, 1.0), (96, 96.0), (97, 0.0), (dim, f64::from(dim % 97))] {
        let ask = |model: &str| format!("SELECT corgipile_predict('{model}', ARRAY[{index}], ARRAY[3])");
        assert_eq!(db.value::<f64>(&ask("large")), 3.0 * weight + 0.5, "{index}");
        assert_eq!(db.value::<f64>(&ask("scaled")), 1.5 * weight + 0.5, "{index}");
    }
    db.fails_with(&format!("SELECT corgipile_predict('large', ARRAY[{}], ARRAY[3])", dim + 1), "2202E");
    // Both in one statement, row by row, without reading them again for each.
    db.run("SET statement_timeout = '20s'");
    let sum: f64 = db.value(
        "SELECT sum(corgipile_predict('large', ARRAY[i], ARRAY[1]) - 2 * corgipile_predict('scaled', ARRAY[i], ARRAY[1]))
         FROM generate_series(1, 50000) i",
    );
    assert_eq!(sum, -0.5 * 50000.0);
    let listed = db.line(
        "SELECT count(*), count(DISTINCT feature), sum(standardized_coefficient::float8), sum(scale) FROM corgipile.coefficients
         WHERE name = 'scaled'",
    );
    let sum: i64 = (1..=i64::from(dim)).map(|i| i % 97).sum();
    assert_eq!(listed, format!("{}|{}|{}|{}", dim + 1, dim + 1, sum as f64 + 0.5, 2 * dim));
}

#[test]
fn models_in_use_do_not_pile_up_in_memory() {
    let mut db = Database::new();
    let weights = "(SELECT array_agg(1::real) FROM generate_series(1, 1000000))";
    let model = Stored { model: "linear", classes: "NULL", weights, ..SPARSE };
    for i in 0..40 {
        model.store(&mut db, &format!("m{i}"));
    }
    let pid = db.pid();
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the backend runs on this machine");
        let line = status.lines().find(|line| line.starts_with("RssAnon")).expect("Linux says so").to_owned();
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number of kB") / 1024
    };
    let before = memory();
    db.run("SELECT sum(corgipile_predict('m' || i % 40, ARRAY[1], ARRAY[2])) FROM generate_series(1, 100) i");
    let after = memory();
    // 64 MB of models that are kept, and one or two on their way
    assert!(after.saturating_sub(before) < 110, "{before} MB before, {after} MB after");
}

#[test]
fn a_statement_can_compare_two_models_that_are_larger_than_the_cache() {
    let mut db = Database::new();
    let weights = "array_fill(1::real, ARRAY[10000000])";
    for name in ["one", "two"] {
        Stored { model: "linear", classes: "NULL", weights, ..SPARSE }.store(&mut db, name);
    }
    db.run("SET statement_timeout = '20s'");
    let difference: f64 = db.value(
        "SELECT max(abs(corgipile_predict('one', ARRAY[i], ARRAY[1]) - corgipile_predict('two', ARRAY[i], ARRAY[1])))
         FROM generate_series(1, 5000) i",
    );
    assert_eq!(difference, 0.0);
}

#[test]
fn coefficients_are_named_after_what_they_weigh() {
    let mut db = Database::new();
    DENSE.store(&mut db, "array");
    SPARSE.store(&mut db, "from one");
    Stored { index_base: "0", mean: "'{0,0,0}'", scale: "'{1,2,4}'", ..SPARSE }.store(&mut db, "from zero");
    MIXED.store(&mut db, "mixed");
    SOFTMAX.store(&mut db, "softmax");
    let mut listed = |name: &str| {
        db.lines(&format!(
            "SELECT class, feature, standardized_coefficient, mean, scale FROM corgipile.coefficients WHERE name = '{name}'"
        ))
    };
    let none = |rows: &[(&str, &str)]| -> Vec<String> {
        rows.iter().map(|(feature, weight)| format!("NULL|{feature}|{weight}|NULL|NULL")).collect()
    };
    let weights = ["0.125", "0.5", "-1.25", "2"];
    let named = |names: [&'static str; 4]| none(&names.into_iter().zip(weights).collect::<Vec<_>>());
    assert_eq!(listed("array"), named(["(intercept)", "x[1]", "x[2]", "x[3]"]));
    assert_eq!(listed("from one"), named(["(intercept)", "v[1]", "v[2]", "v[3]"]));
    assert_eq!(
        listed("from zero"),
        ["NULL|(intercept)|0.125|NULL|NULL", "NULL|v[0]|0.5|0|1", "NULL|v[1]|-1.25|0|2", "NULL|v[2]|2|0|4"]
    );
    let mixed = [
        ("(intercept)", "0.25"),
        ("a", "0.5"),
        ("level=low", "10"),
        ("level=high", "20"),
        ("level=mid", "40"),
        ("b", "-3"),
    ];
    assert_eq!(listed("mixed"), none(&mixed));
    let mut softmax = Vec::new();
    for (class, weights) in
        [("ant", [0.1, 1.0, 2.0, 3.0]), ("bee", [0.2, -1.0, 0.5, 2.0]), ("cat", [-0.3, 0.0, -2.0, 1.5])]
    {
        for (feature, weight) in ["(intercept)", "x[1]", "x[2]", "x[3]"].into_iter().zip(weights) {
            softmax.push(format!("{class}|{feature}|{weight}|NULL|NULL"));
        }
    }
    assert_eq!(listed("softmax"), softmax);
}

#[test]
fn models_of_every_kind_survive_a_dump() {
    let mut db = Database::new();
    levels(&mut db);
    MIXED.store(&mut db, "mixed");
    SPARSE.store(&mut db, "sparse");
    SOFTMAX.store(&mut db, "softmax");
    let dump = std::env::temp_dir().join(format!("{}.sql", db.name()));
    let run = |program: &mut std::process::Command| {
        let output = program.output().expect("the program starts");
        assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(corgipile_tests::program("pg_dump").arg("-f").arg(&dump).arg(db.name()));
    let mut restored = Database::empty();
    run(corgipile_tests::program("psql").args(["-X", "-v", "ON_ERROR_STOP=1", "-d", restored.name(), "-f"]).arg(&dump));
    std::fs::remove_file(&dump).expect("the dump is there");
    for query in [
        "SELECT * FROM corgipile.models ORDER BY model_id",
        "SELECT * FROM corgipile.coefficients",
        "SELECT corgipile_predict('mixed', t) FROM t ORDER BY id",
        "SELECT corgipile_predict_proba('sparse', '{1,3}'::int[], '{2,0.25}'::real[])",
        "SELECT corgipile_predict_proba('softmax', '{1,2,3}'::real[])",
    ] {
        let expected = db.lines(query);
        assert!(!expected.is_empty(), "{query}");
        assert_eq!(restored.lines(query), expected, "{query}");
    }
}
