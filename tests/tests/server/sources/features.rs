//! Features of every type and storage, and the rules by which they are found.

use corgipile_tests::{Database, clustered};

const TRAINING: &str = "max_epochs => 3, seed => 11, learning_rate => 0.05";

/// The bits that training on a source gives. Without a shuffle: rows of other widths fill other pages, and the order of
/// the rows depends on the number of pages.
fn bits(db: &mut Database, source: &str) -> Vec<u32> {
    db.trained(&format!("'{}', shuffle => 'no_shuffle', {TRAINING}", source.replace('\'', "''"))).bits()
}

/// A table whose features are small whole numbers, which every type holds exactly.
fn whole_numbers(db: &mut Database) {
    db.run(
        "CREATE TABLE base AS SELECT i AS id, (uniform(i, 0) < 0.5)::int AS label, (9 * uniform(i, 1))::int AS a,
                (9 * uniform(i, 2))::int - 4 AS b, (uniform(i, 3))::int AS c FROM generate_series(1, 500) i",
    );
}

#[test]
fn every_array_type_gives_the_same_bits() {
    let mut db = Database::new();
    whole_numbers(&mut db);
    let mut all = Vec::new();
    for kind in ["real", "double precision", "smallint", "integer", "bigint", "numeric"] {
        db.run(&format!(
            "DROP TABLE IF EXISTS t;
             CREATE TABLE t AS SELECT label, ARRAY[a, b, c]::{kind}[] AS features_v FROM base ORDER BY id"
        ));
        all.push(bits(&mut db, "t"));
        assert_eq!(all[0], all[all.len() - 1], "{kind}[]");
    }
}

#[test]
fn columns_of_mixed_types_give_the_bits_of_one_array() {
    let mut db = Database::new();
    whole_numbers(&mut db);
    db.run("CREATE TABLE arrays AS SELECT label, ARRAY[a, b, c]::real[] AS features_v FROM base ORDER BY id");
    let expected = bits(&mut db, "arrays");
    for [a, b, c] in [
        ["smallint", "integer", "bigint"],
        ["real", "double precision", "numeric"],
        ["numeric(5,1)", "smallint", "boolean"],
    ] {
        let c_value = if c == "boolean" { "c = 1" } else { "c" };
        db.run(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t (label int, a {a}, b {b}, c {c});
             INSERT INTO t SELECT label, a, b, {c_value} FROM base ORDER BY id"
        ));
        assert_eq!(bits(&mut db, "t"), expected, "{a}, {b}, {c}");
    }
}

#[test]
fn the_features_can_be_named_in_any_order_and_number() {
    let mut db = Database::with_small_table(200);
    let train = |db: &mut Database, features: &str| {
        db.trained(&format!("'t', features => '{{{features}}}', shuffle => 'no_shuffle', {TRAINING}"))
    };
    let abc = train(&mut db, "a,b,c");
    let cab = train(&mut db, "c,a,b");
    assert_eq!(abc.weights.len(), 3);
    let close = |x: f32, y: f32| (x - y).abs() < 1e-5;
    assert!(close(abc.weights[0], cab.weights[1]) && close(abc.weights[2], cab.weights[0]), "{abc:?} {cab:?}");
    assert_eq!(train(&mut db, "b").weights.len(), 1);
    // The primary key is left out of the default, but may be named.
    assert_eq!(train(&mut db, "b,id").weights.len(), 2);
    assert_eq!(db.line("SELECT features FROM corgipile.models ORDER BY model_id DESC LIMIT 1"), "{b,id}");
}

#[test]
fn the_default_is_features_v_even_beside_other_numbers() {
    let mut db = Database::new();
    clustered(&mut db, "t", 200);
    db.run("ALTER TABLE t ADD other real DEFAULT 3, ADD numbers real[] DEFAULT '{1}'");
    db.train("'t'");
    assert_eq!(db.line("SELECT features, array_length(weights, 1) FROM corgipile.models"), "{features_v}|5");
}

#[test]
fn the_default_is_else_every_number_boolean_and_text_but_label_and_primary_key() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (note text, k1 int, label smallint, a smallint, b int, c bigint, d real, e float8,
         f numeric, g bool,
                         k2 bigint, at timestamptz, xs real[], PRIMARY KEY (k2, k1));
         INSERT INTO t SELECT 'x' || i % 4, i, i % 2, i % 3, i % 5, i % 7, i / 9.0, -i / 9.0, i / 3.0, i % 2 = 0, i, now(),
         '{1,2}'
         FROM generate_series(1, 100) i",
    );
    db.train("'t'");
    assert_eq!(db.line("SELECT features FROM corgipile.models"), "{note,a,b,c,d,e,f,g,xs}");
}

#[test]
fn the_default_is_else_the_only_numeric_array() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (id int PRIMARY KEY, label text, tags text[], pixels int[]);
         INSERT INTO t SELECT i, CASE WHEN i % 2 = 0 THEN 'even' ELSE 'odd' END, '{a}', ARRAY[i % 2, i]
         FROM generate_series(1, 50) i",
    );
    db.train("'t'");
    assert_eq!(db.line("SELECT features, array_length(weights, 1) FROM corgipile.models"), "{pixels}|2");
}

#[test]
fn no_features_or_too_many_arrays_are_an_error_that_says_what_to_do() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE none (id int PRIMARY KEY, label int, note json);
         INSERT INTO none VALUES (1, 0, '1'), (2, 1, '1');
         CREATE TABLE two (label int, x real[], y real[]);
         INSERT INTO two VALUES (0, '{1}', '{1}'), (1, '{2}', '{2}')",
    );
    let failure = db.rejects("SELECT * FROM corgipile_train('none')", "42703");
    failure.hints(&["id (primary key), note (json)"]);
    let failure = db.rejects("SELECT * FROM corgipile_train('two')", "42703");
    failure.hints(&["features"]);
}

/// Feature arrays of each length and storage, against the same values as columns' bits would be.
#[test]
fn arrays_with_short_and_long_headers_toasted_and_compressed_give_the_same_bits() {
    let mut db = Database::new();
    for dimensions in [1, 25, 26, 27, 28, 40, 600, 2000] {
        let mut all = Vec::new();
        for storage in ["plain", "main", "extended", "external"] {
            if storage == "plain" && dimensions > 1900 {
                continue; // does not fit a page
            }
            db.run(&format!(
                "DROP TABLE IF EXISTS t; CREATE TABLE t (label int, features_v real[]);
                 ALTER TABLE t ALTER features_v SET STORAGE {storage};
                 INSERT INTO t SELECT i % 2, (SELECT array_agg(((i * j) % 17 / 16.0)::real ORDER BY j)
                                              FROM generate_series(1, {dimensions}) j) FROM generate_series(1, 60) i"
            ));
            let arguments = "'t', shuffle => 'no_shuffle', max_epochs => 3, options => '{\"standardize\": true}'";
            all.push(db.trained(arguments).bits());
            assert_eq!(all[0], all[all.len() - 1], "{dimensions} features, {storage}");
            assert_eq!(all[0].len(), dimensions + 1);
        }
    }
}

#[test]
fn toasted_rows_can_be_shuffled_and_predicted() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (id int, label int, features_v real[]); ALTER TABLE t ALTER features_v SET STORAGE external;
         INSERT INTO t SELECT i, i % 2, (SELECT array_agg((normal(i, j) + i % 2)::real ORDER BY j)
                                         FROM generate_series(1, 1000) j) FROM generate_series(1, 200) i",
    );
    let large: bool = db.value("SELECT pg_table_size('t') > 3 * pg_relation_size('t') FROM t LIMIT 1");
    assert!(large, "the arrays are out of line");
    let epochs = db.train("'t', max_epochs => 3, learning_rate => 0.001");
    assert!(epochs.iter().all(|e| e.tuples == 200));
    let id = epochs[0].model_id;
    let wrong: i64 = db.value(&format!("SELECT count(*) FROM t WHERE corgipile_predict({id}, features_v) <> label"));
    assert_eq!(wrong as f64 / 200.0, 1.0 - db.evaluate(id, "t").accuracy);
    assert!(wrong < 10, "{wrong} of 200 wrong");
    db.assert_same_rows("SELECT id, features_v FROM corgipile_shuffle(NULL::t)", "SELECT id, features_v FROM t");
}

#[test]
fn expressions_of_a_query_are_features() {
    let mut db = Database::with_small_table(300);
    let columns = bits(&mut db, "SELECT label, a, b, c FROM t");
    let array = bits(&mut db, "SELECT label, ARRAY[a, b, c] AS features_v FROM t");
    assert_eq!(columns, array);
    let shifted = bits(&mut db, "SELECT label, a + 1 AS a1, b * 2 AS b2, (c > 0) AS positive FROM t");
    assert_ne!(shifted, columns);
    let stored = db.line("SELECT features FROM corgipile.models ORDER BY model_id DESC LIMIT 1");
    assert_eq!(stored, "{a1,b2,positive}");
}

#[test]
fn a_table_and_a_query_over_it_agree() {
    let mut db = Database::with_small_table(300);
    let table = db.trained(&format!("'t', shuffle => 'no_shuffle', {TRAINING}")).bits();
    for query in ["SELECT label, a, b, c FROM t", "TABLE t", "WITH x AS (SELECT * FROM t) SELECT * FROM x"] {
        // A query has no primary key that the default could leave out.
        let arguments = format!("'{query}', shuffle => 'no_shuffle', features => '{{a,b,c}}', {TRAINING}");
        assert_eq!(db.trained(&arguments).bits(), table, "{query}");
    }
}

#[test]
fn booleans_are_0_and_1() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE flags AS SELECT i % 2 AS label, uniform(i, 1) < 0.3 AS a, uniform(i, 2) < 0.6 AS b
            FROM generate_series(1, 200) i;
            CREATE TABLE numbers AS SELECT label, a::int AS a, b::int AS b FROM flags",
    );
    assert_eq!(bits(&mut db, "flags"), bits(&mut db, "numbers"));
}

#[test]
fn predict_takes_every_array_type() {
    let mut db = Database::with_small_table(300);
    let id = db.train(&format!("'t', {TRAINING}"))[0].model_id;
    let rows = db.lines(&format!(
        "SELECT corgipile_predict_proba({id}, '{{1,0,1}}'::int2[]) UNION ALL
         SELECT corgipile_predict_proba({id}, '{{1,0,1}}'::int4[]) UNION ALL
         SELECT corgipile_predict_proba({id}, '{{1,0,1}}'::int8[]) UNION ALL
         SELECT corgipile_predict_proba({id}, '{{1,0,1}}'::real[]) UNION ALL
         SELECT corgipile_predict_proba({id}, '{{1,0,1}}'::float8[]) UNION ALL
         SELECT corgipile_predict_proba({id}, '{{1,0,1}}'::numeric[]) UNION ALL
         SELECT corgipile_predict_proba({id}, '{{t,f,t}}'::boolean[])"
    ));
    assert_eq!(rows.len(), 7);
    assert!(rows.iter().all(|row| row == &rows[0]), "{rows:?}");
}

#[test]
fn domains_over_feature_types_are_features() {
    let mut db = Database::new();
    db.run(
        "CREATE DOMAIN unit AS real CHECK (VALUE BETWEEN 0 AND 1);
            CREATE TABLE t AS SELECT i % 2 AS label, (uniform(i, 1))::real::unit AS a FROM generate_series(1, 50) i",
    );
    assert_eq!(db.trained("'t'").weights.len(), 1);
}

#[test]
fn many_columns_are_features() {
    let mut db = Database::new();
    let columns: Vec<String> = (0..800).map(|i| format!("c{i}")).collect();
    let values: Vec<String> = (0..800).map(|i| format!("((i * {i}) % 13)::real")).collect();
    db.run(&format!("CREATE TABLE t (label int, {} real)", columns.join(" real, ")));
    db.run(&format!("INSERT INTO t SELECT i % 2, {} FROM generate_series(1, 40) i", values.join(", ")));
    assert_eq!(db.trained("'t', max_epochs => 2, learning_rate => 0.0001").weights.len(), 800);
}

#[test]
fn rows_with_nulls_elsewhere_are_read_right() {
    let mut db = Database::new();
    // A NULL bitmap moves the columns behind it; so does a column of variable length.
    db.run(
        "CREATE TABLE t (n1 int, note text, label int, n2 text, a real, b float8, n3 numeric);
         INSERT INTO t SELECT CASE i % 2 WHEN 0 THEN i END, CASE i % 3 WHEN 0 THEN repeat('x', i) END, i % 2,
                CASE i % 5 WHEN 0 THEN 'y' END, i % 7, i % 11, CASE i % 4 WHEN 0 THEN i END
         FROM generate_series(1, 200) i;
         CREATE TABLE clean AS SELECT label, a, b FROM t",
    );
    let train = |db: &mut Database, table: &str| {
        db.trained(&format!("'{table}', features => '{{a,b}}', shuffle => 'no_shuffle', {TRAINING}")).bits()
    };
    assert_eq!(train(&mut db, "t"), train(&mut db, "clean"));
}

#[test]
fn columns_of_variable_length_are_found_behind_columns_of_odd_length_that_nobody_wants() {
    let mut db = Database::new();
    for before in ["true AS flag", "true AS flag, 1::smallint AS s, false AS other", "1::\"char\" AS c"] {
        db.run(&format!(
            "DROP TABLE IF EXISTS plain, odd;
             CREATE TABLE plain AS SELECT (i % 2)::text AS word, (i % 2) AS label, ARRAY[i % 7, i % 2, i % 3]::real[] AS short,
                    array_fill((i % 5)::real, ARRAY[40]) AS long FROM generate_series(1, 500) i;
             CREATE TABLE odd AS SELECT label, {before}, word, short, long FROM plain;
             CREATE TABLE odder AS SELECT label, {before}, long FROM plain;"
        ));
        for (label, features) in [("label", "short"), ("word", "short"), ("label", "long"), ("word", "long")] {
            let mut bits = |table: &str| {
                db.trained(&format!(
                    "'{table}', label => '{label}', features => '{{{features}}}', max_epochs => 2, shuffle => 'no_shuffle'"
                ))
                .bits()
            };
            assert_eq!(bits("odd"), bits("plain"), "{before}, {label}, {features}");
            if (label, features) == ("label", "long") {
                assert_eq!(bits("odder"), bits("plain"), "{before}");
            }
        }
        db.run("DROP TABLE odder");
    }
}
