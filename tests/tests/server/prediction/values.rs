//! Features one by one: the same answers as for an array or a row, and errors that name the model and its features.

use corgipile_tests::Database;
use corgipile_tests::stored::{DENSE, MIXED, SOFTMAX, SPARSE};

#[test]
fn features_one_by_one_give_what_an_array_gives() {
    let mut db = Database::with_small_table(200);
    db.run(
        "SELECT corgipile_train('t', max_epochs => 2, seed => 1, features => '{a,b,c}', name => 'm');
         CREATE TABLE arrays AS SELECT label, ARRAY[a, b] AS x, a, b FROM t;
         SELECT corgipile_train('arrays', features => '{x}', max_epochs => 2, seed => 1, name => 'of array');
         SELECT corgipile_train('t', 'linear', label => 'c', features => '{a}', max_epochs => 2, seed => 1, name => 'one')",
    );
    for model in ["'m'", "1", "corgipile_export('m')", "$$m$$::text", "1::bigint"] {
        for answer in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
            let different = format!(
                "SELECT count(*) FROM t WHERE {answer}({model}, a, b, c) IS DISTINCT FROM {answer}({model}, ARRAY[a,b,c])
                                           OR {answer}({model}, a, b, c) IS DISTINCT FROM {answer}({model}, t)"
            );
            assert_eq!(db.line(&different), "0", "{answer}({model})");
        }
    }
    let two = "SELECT count(*) FROM arrays
                WHERE corgipile_predict_proba('of array', a, b) IS DISTINCT FROM corgipile_predict_proba('of array', x)";
    assert_eq!(db.line(two), "0");
    for value in ["a", "a::float8", "a::numeric", "2", "2.5", "2::smallint"] {
        let array = format!("ARRAY[({value})::float8]");
        let same =
            format!("SELECT bool_and(corgipile_predict('one', {value}) = corgipile_predict('one', {array})) FROM t");
        assert_eq!(db.line(&same), "t", "{value}");
    }
}

#[test]
fn categories_one_by_one_are_text_enums_and_literals() {
    let mut db = Database::new();
    MIXED.store(&mut db, "mixed");
    db.run("CREATE TYPE level AS ENUM ('low', 'mid', 'high')");
    // 0.5 a + 20 + -3 b + 0.25, and 40 of mid
    for (values, expected) in [
        ("2, 'high', 1", 18.25),
        ("2, 'high'::text, 1", 18.25),
        ("2, 'high'::level, 1", 18.25),
        ("2, 'high'::char(10), 1", 18.25),
        ("2, 'mid', 1", 38.25),
        ("2.0, 'low'::varchar, true", 8.25),
    ] {
        let value: f64 = db.value(&format!("SELECT corgipile_predict('mixed', {values})"));
        assert!((value - expected).abs() < 1e-5, "{values}: {value}");
    }
    db.run("CREATE TABLE r (a real, level text, b numeric); INSERT INTO r VALUES (2, 'high', 1), (4, 'low', 0)");
    assert_eq!(
        db.line("SELECT bool_and(corgipile_predict('mixed', a, level, b) = corgipile_predict('mixed', r)) FROM r"),
        "t"
    );
    // one call with several models
    db.run("SELECT corgipile_import(corgipile_export('mixed'), 'other')");
    let each = "SELECT count(DISTINCT corgipile_predict(m.name, a, level, b)) FROM r, corgipile.models m WHERE a = 2";
    assert_eq!(db.line(each), "1");
}

#[test]
fn a_null_among_features_is_an_error_and_no_model_gives_null() {
    let mut db = Database::new();
    MIXED.store(&mut db, "mixed");
    for (values, feature) in
        [("NULL::int, 'low', 1", "a"), ("1, NULL::text, 1", "level"), ("1, 'low', NULL::real", "b")]
    {
        db.rejects(&format!("SELECT corgipile_predict('mixed', {values})"), "22004")
            .says(&[&format!("feature {feature} of model 1 \"mixed\" is NULL")]);
    }
    assert_eq!(db.line("SELECT corgipile_predict(NULL::bigint, 1, 'low', 1)"), "NULL");
    assert_eq!(db.line("SELECT corgipile_predict(NULL::text, 1, 'low', 1)"), "NULL");
    assert_eq!(db.line("SELECT corgipile_predict(NULL::jsonb, 1, 'low', 1)"), "NULL");
}

#[test]
fn wrong_features_are_told_with_the_model_and_its_features_in_order() {
    let mut db = Database::new();
    for (name, model) in [("dense", DENSE), ("sparse", SPARSE), ("mixed", MIXED), ("it''s", SOFTMAX)] {
        model.store(&mut db, name);
    }
    for (call, code, message, hint) in [
        ("corgipile_predict('dense', 1, 2)", "2202E", "model 1 \"dense\" has 3 features, 2 given", "x[1], x[2], x[3]"),
        ("corgipile_predict('mixed', 1, 'low')", "2202E", "model 3 \"mixed\" has 3 features, 2 given", "a, level, b"),
        ("corgipile_predict('mixed', 1, 'low', 2, 4)", "2202E", "3 features, 4 given", "a, level, b"),
        ("corgipile_predict('mixed', 1, 2, 3)", "42804", "\"level\" has type integer", "text or an enum"),
        ("corgipile_predict('mixed', ARRAY[1], 'low', 2)", "42804", "\"a\" has type integer[]", "numbers"),
        ("corgipile_predict('dense', 5)", "2202E", "3 features, 1 given", "x[1]"),
        ("corgipile_predict('dense', 'five')", "42804", "several features, but one string", "x[1]"),
        ("corgipile_predict('mixed', 'low', 2)", "2202E", "3 features, 2 given", "a, level, b"),
        ("corgipile_predict('sparse', 1, 2)", "0A000", "indices and values", "corgipile_predict('sparse', k, v)"),
        (
            "corgipile_predict('mixed', ARRAY[1, 2])",
            "0A000",
            "model 3 \"mixed\"",
            "corgipile_predict('mixed', a, level, b)",
        ),
        ("corgipile_predict_label('it''s', 1)", "2202E", "model 4 \"it's\"", "x[1], x[2], x[3]"),
        ("corgipile_predict('mixed', ROW(1, 'low', 2))", "42703", "no column \"a\"", "corgipile_predict('mixed', t)"),
        ("corgipile_predict(3, ROW(1, 'low', 2))", "42703", "model 3 \"mixed\"", "corgipile_predict('mixed', t)"),
        ("corgipile_predict('mixed', 1, 'tall', 2)", "22023", "\"tall\" of column \"level\"", "handle_unknown"),
        (
            "corgipile_predict('mixed', 'NaN'::real, 'low', 2)",
            "22003",
            "feature a of model 3 \"mixed\" is NaN",
            "Correct",
        ),
    ] {
        db.fails_with(&format!("SELECT {call}"), code).says(&[message]).hints(&[hint]);
    }
}

#[test]
fn literals_without_a_type_are_numbers_where_the_model_has_numbers() {
    let mut db = Database::new();
    MIXED.store(&mut db, "mixed");
    DENSE.store(&mut db, "dense");
    for (literals, values) in
        [("'mixed', '2e0', 'low', -1.5", "'mixed', 2, 'low'::text, -1.5"), ("'dense', '1', 2, '3'", "'dense', 1, 2, 3")]
    {
        let line = db.line(&format!("SELECT corgipile_predict({literals}), corgipile_predict({values})"));
        let (left, right) = line.split_once('|').expect("two columns");
        assert_eq!(left, right, "{literals}");
    }
    db.rejects("SELECT corgipile_predict('mixed', NULL, 'low', 1)", "22004")
        .says(&["feature a of model 1 \"mixed\" is NULL"]);
    db.rejects("SELECT corgipile_predict('mixed', 'x', 'low', 1)", "22P02").says(&["\"x\" is given for feature \"a\""]);
    db.run(
        "CREATE TABLE t AS SELECT i % 2 AS label, nullif(i, 5) AS a, i % 7 AS b FROM generate_series(1, 100) i;
            SELECT corgipile_train('t', name => 'imputed', max_epochs => 2, nulls => 'impute')",
    );
    assert_eq!(
        db.line("SELECT corgipile_predict('imputed', NULL, 3) = corgipile_predict('imputed', NULL::int, 3)"),
        "t"
    );
}

#[test]
fn a_call_resolves_to_one_function_whatever_the_types_of_model_and_features() {
    let mut db = Database::with_small_table(50);
    db.run("SELECT corgipile_train('t', max_epochs => 1, features => '{a,b,c}', name => 'm')");
    db.run("CREATE DOMAIN numbers AS real[]; CREATE DOMAIN id AS bigint; CREATE DOMAIN named AS text");
    let expected = db.line("SELECT corgipile_predict('m', ARRAY[1,2,3])");
    for call in [
        "1, ARRAY[1,2,3]",
        "1::id, ARRAY[1,2,3]::numbers",
        "1::smallint, '{1,2,3}'::float8[]",
        "'m', '{1,2,3}'::numeric[]",
        "'m'::name, 1, 2, 3",
        "'m'::named, 1, 2, 3",
        "'m'::varchar, (SELECT r FROM (SELECT 1 AS a, 2 AS b, 3 AS c) r)",
        "'m', (SELECT r FROM (SELECT 1 AS a, 2 AS b, 3 AS c) r)",
        "'m', '{1,2,3}'::int[], '{1,2,3}'::real[]",
        "'m', VARIADIC ARRAY[1,2,3]",
        "'m', '{1,2,3}'::int[], VARIADIC ARRAY[1,2,3]",
        "'m', '1', '2', '3'",
        "'m', 1, '2'::text, '3'::varchar",
        "corgipile_export('m'), 1.0, 2.0, 3.0",
        "corgipile_export(1), ARRAY[1,2,3]",
    ] {
        assert_eq!(db.line(&format!("SELECT corgipile_predict({call})")), expected, "{call}");
    }
    let compressed = "SELECT corgipile_predict('m', corgipile_toc(ARRAY[[1,2,3],[1,2,3]]))";
    assert_eq!(db.line(compressed), format!("{{{expected},{expected}}}"));
    db.run("PREPARE p AS SELECT corgipile_predict($1, $2::real, $3::real, $4::real)");
    assert_eq!(db.line("EXECUTE p('m', 1, 2, 3)"), expected);
}

#[test]
fn texts_are_features_behind_a_feature_and_policies_behind_an_array_or_a_row() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT (i % 7)::real AS label, (ARRAY['skip', 'as trained', NULL])[1 + i % 3] AS a,
                                  (ARRAY['x', 'y'])[1 + i % 2] AS b, i % 5 AS n FROM generate_series(1, 200) i;
         SELECT corgipile_train('t', 'linear', features => '{a}', max_epochs => 1, seed => 1, name => 'one');
         SELECT corgipile_train('t', 'linear', features => '{a,b}', max_epochs => 1, seed => 1, name => 'two');
         SELECT corgipile_train('t', 'linear', features => '{n,b,a}', max_epochs => 1, seed => 1, name => 'three')",
    );
    for (values, row) in [
        ("'one', 'skip'", "'skip'::text AS a"),
        ("'one', NULL", "NULL::text AS a"),
        ("'two', 'skip', 'x'", "'skip'::text AS a, 'x'::text AS b"),
        ("'two', 'skip'::char(8), 'x'::char(3)", "'skip'::text AS a, 'x'::text AS b"),
        ("'two', NULL, 'x'", "NULL::text AS a, 'x'::text AS b"),
        ("'three', 3, 'y', 'skip'", "3 AS n, 'y'::text AS b, 'skip'::text AS a"),
        ("'three', 3, 'y', NULL", "3 AS n, 'y'::text AS b, NULL::text AS a"),
    ] {
        let model = values.split(',').next().expect("a model");
        let same = format!("SELECT corgipile_predict({values}) = corgipile_predict({model}, r) FROM (SELECT {row}) r");
        assert_eq!(db.line(&same), "t", "{values}");
    }
    // an argument that is not given is no feature that is NULL
    for call in ["'three', 3, 'y'", "'two', 'skip', 'x', NULL", "'two', 'skip', 'x', 'y'"] {
        db.fails_with(&format!("SELECT corgipile_predict({call})"), "2202E").says(&["features,"]);
    }
    db.fails_with("SELECT corgipile_predict('two', 'skip', handle_unknown => 'ignore')", "42804")
        .says(&["not of type unknown"]);
    DENSE.store(&mut db, "dense");
    for (policies, code) in [
        ("", "22004"),
        (", NULL", "22004"),
        (", 'as trained', NULL", "22004"),
        (", 'skip'", "00000"),
        (", nulls => 'skip', handle_unknown => 'as trained'", "00000"),
        (", 'skip', 'ignore'", "00000"),
        (", 'skipp'", "22023"),
    ] {
        for features in ["ARRAY[1, NULL, 3]", "ARRAY[1, 3], ARRAY[1, NULL]"] {
            let sql = format!("SELECT corgipile_predict('dense', {features}{policies})");
            match code {
                "00000" => assert_eq!(db.line(&sql), "NULL", "{sql}"),
                code => drop(db.fails_with(&sql, code)),
            }
        }
    }
    db.run("PREPARE p AS SELECT corgipile_predict('dense', ARRAY[1, 3], ARRAY[1, NULL], $1, $2)");
    assert_eq!(db.line("EXECUTE p('skip', NULL)"), "NULL");
    assert_eq!(db.line("EXECUTE p('skip', 'as trained')"), "NULL");
}

#[test]
fn each_value_is_compared_by_the_collation_of_its_column() {
    let mut db = Database::new();
    db.run(
        "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
         CREATE TABLE shops AS SELECT (i % 2)::real AS sales, (ARRAY['Oslo', 'Rome'])[1 + i % 2] AS town,
                (ARRAY['red', 'blue', 'tan'])[1 + i % 3] AS paint, i::real AS size FROM generate_series(1, 300) i;
         ALTER TABLE shops ALTER town TYPE text COLLATE any_case, ALTER paint TYPE text COLLATE \"C\";
         SELECT corgipile_train('shops', 'linear', 'sales', '{town,paint,size}', max_epochs => 2, seed => 1, name => 'm');
         SELECT corgipile_train('shops', 'linear', 'sales', '{town}', max_epochs => 2, seed => 1, name => 'one');
         CREATE TABLE asked AS SELECT 'OSLO' COLLATE any_case AS town, 'red'::text COLLATE \"C\" AS paint, 1::real AS size",
    );
    for call in ["corgipile_predict('m', town, paint, size)", "corgipile_predict('m', town, 'red', 1)"] {
        assert_eq!(db.line(&format!("SELECT {call} = corgipile_predict('m', asked) FROM asked")), "t", "{call}");
    }
    assert_eq!(db.line("SELECT corgipile_predict('one', town) = corgipile_predict('one', asked) FROM asked"), "t");
    // and a value by another collation is not
    for (call, unknown) in
        [("town, upper(paint), size", "town, 'no', size"), ("town COLLATE \"C\", paint, size", "'no', paint, size")]
    {
        let same = format!("SELECT corgipile_predict('m', {call}) = corgipile_predict('m', {unknown}) FROM asked");
        assert_eq!(db.line(&same), "t", "{call}");
    }
}
