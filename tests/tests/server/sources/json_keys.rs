//! Keys of JSON objects as features. The oracle is the same rows with a column for each key: the models have the same
//! bits.

use corgipile_tests::Database;

/// Table `t` with objects that lack keys in some rows, and view `flat` with what is at these keys, as columns.
fn tables(db: &mut Database) {
    db.run(
        "CREATE TABLE t (id int PRIMARY KEY, data jsonb, label int);
         INSERT INTO t
         SELECT i, jsonb_strip_nulls(jsonb_build_object('price', CASE WHEN i % 10 > 0 THEN 1000 * uniform(i, 1) + 300 * (i % 2) END,
                    'colour', (ARRAY['red', 'green'])[1 + (uniform(i, 2) < 0.3 + 0.4 * (i % 2))::int], 'new', uniform(i, 3) < 0.5,
                    'size', jsonb_build_object('w', i % 7, 'unit', (ARRAY['cm', 'mm', NULL])[1 + i % 3]),
                    'sku', 'x' || i, 'tags', jsonb_build_array('a'), 'a->b', 1)), i % 2
           FROM generate_series(1, 600::bigint) i ORDER BY i;
         CREATE VIEW flat AS
         SELECT id, label, data ->> 'colour' AS colour, (data ->> 'new')::boolean AS new, (data -> 'size') ->> 'unit' AS unit,
                (data -> 'size' ->> 'w')::float8 AS w, (data ->> 'price')::float8 AS price FROM t",
    );
}

const KEYS: &str = "data->>colour,data->new,data->price,data->size->>unit,data->size->w";

#[test]
fn keys_are_columns_of_numbers_and_categories() {
    let mut db = Database::new();
    tables(&mut db);
    let train = |source: &str, features: &str, more: &str| {
        format!(
            "'SELECT * FROM {source}', features => '{{{features}}}', max_epochs => 3, seed => 11, shuffle => 'no_shuffle', learning_rate => 0.05{more}"
        )
    };
    for more in ["", ", model => 'softmax'", ", model => 'mlp', hidden_layer_sizes => '{3}'", ", nulls => 'skip'"] {
        let keys = db.trained(&train("t", KEYS, more)).bits();
        assert_eq!(keys, db.trained(&train("flat", "colour,new,price,unit,w", more)).bits(), "{more}");
        assert_eq!(keys, db.trained(&train("t", "data", more)).bits(), "{more}");
        let json = train("(SELECT id, label, data::json AS data FROM t) AS s", "data", more);
        assert_eq!(keys, db.trained(&json).bits(), "{more}");
    }
    assert_eq!(db.line("SELECT features FROM corgipile.models WHERE model_id = 3"), format!("{{{KEYS}}}"));
}

#[test]
fn the_keys_that_are_taken_are_reported() {
    let mut db = Database::new();
    tables(&mut db);
    let told = |db: &Database, arguments: &str| {
        db.notices(&[&format!("SELECT FROM corgipile_train({arguments}, max_epochs => 1)")])
    };
    let keys = "keys of data in the first rows: 3 numbers, 2 categories; left out: a->b (cannot be named), sku (nearly unique), tags (array)";
    assert!(told(&db, "'t', features => '{data}'").contains(keys), "{}", told(&db, "'t', features => '{data}'"));
    // they are the features if nothing else is
    assert!(told(&db, "'t'").contains(keys));
    let besides = told(&db, "'SELECT id, label, id % 5 AS n, data FROM t'");
    assert!(
        besides.contains("column n; left out: id (primary key), data (jsonb: name it in features to use its keys)"),
        "{besides}"
    );
    db.train("'SELECT id, label, id % 5 AS n, data FROM t', features => '{*,-id}', max_epochs => 1");
    assert_eq!(
        db.line("SELECT features FROM corgipile.models ORDER BY model_id DESC LIMIT 1"),
        format!("{{n,{KEYS}}}")
    );
}

#[test]
fn predictions_and_all_else_read_the_same_keys() {
    let mut db = Database::new();
    tables(&mut db);
    let id = db.train("'t', name => 'm', max_epochs => 5, seed => 1")[0].model_id;
    let right: f64 = db.value("SELECT avg((corgipile_predict('m', t) = label)::int)::float8 FROM t");
    assert!(right > 0.7, "{right}");
    assert_eq!(db.evaluate(id, "t").accuracy, right);
    let sql: String = db.value("SELECT corgipile_export('m', 'sql')");
    let of_source: String = db.value("SELECT corgipile_export('m', 'sql', source => 't')");
    for call in [
        "corgipile_predict('m', data)",
        "corgipile_predict('m', data::json)",
        "corgipile_predict('m', data->>'colour', (data->'new')::boolean, (data->'price')::float8, data->'size'->>'unit', (data->'size'->'w')::int)",
        "corgipile_predict(corgipile_export('m'), t)",
        &sql,
        &of_source,
    ] {
        assert!(db.value::<bool>(&format!("SELECT bool_and({call} = corgipile_predict('m', t)) FROM t")), "{call}");
    }
    let explained: Vec<String> =
        db.column("SELECT feature FROM (SELECT t FROM t LIMIT 1) s, corgipile_explain('m', t)");
    assert_eq!(explained[1..].join(","), KEYS);
    let important: Vec<String> = db.column("SELECT feature FROM corgipile_importance('m', 't')");
    assert_eq!(important.join(","), KEYS);
    let drift = "SELECT feature FROM corgipile_drift('m', 'SELECT id, label, data - ''new'' AS data FROM t') WHERE verdict IS NOT NULL";
    assert_eq!(db.lines(drift), ["data->new"]);
    let coefficients = "SELECT count(*) FROM corgipile_coefficients('m', 't')";
    assert_eq!(db.value::<i64>(coefficients), 9);
    db.train(&format!("'t', warm_start => '{id}', max_epochs => 1"));
    db.train("'t', features => '{data}', max_epochs => 1, workers => 2");
}

#[test]
fn what_is_no_number_is_an_error() {
    let mut db = Database::new();
    tables(&mut db);
    db.train("'t', name => 'm', max_epochs => 1");
    db.fails_with("SELECT corgipile_predict('m', '{\"price\": \"much\"}'::jsonb)", "22P02").says(&["much"]);
    db.fails_with("SELECT corgipile_predict('m', '{\"price\": {}}'::jsonb)", "22P02");
    db.rejects("SELECT corgipile_train('t', features => '{data->colour}')", "22P02");
    db.rejects("SELECT corgipile_train('t', features => '{label->a}')", "42703");
    assert!(db.value::<bool>("SELECT corgipile_predict('m', '{}'::jsonb) IS NOT NULL"));
    assert!(db.value::<bool>("SELECT corgipile_predict('m', '[1, {\"price\": 2}]'::jsonb) IS NOT NULL"));
    db.fails_with("SELECT corgipile_predict('m', now())", "42804").hints(&["trained on keys of JSON"]);
    db.run("CREATE TABLE bare AS SELECT i AS id, i % 2 AS label, '{}'::jsonb AS data FROM generate_series(1, 9) i");
    db.rejects("SELECT corgipile_train('bare', features => '{data}')", "42703")
        .hints(&["The first rows have no keys of numbers or texts in column \"data\"."]);
    // a key may be called as no one would call it
    db.run("CREATE TABLE odd AS SELECT i % 2 AS label, jsonb_build_object('it''s', i % 5, 'a\"b\\', i % 3, '{x,y}', 'z') AS \"my data\" FROM generate_series(1, 90) i");
    db.train("'odd', max_epochs => 1, name => 'odd'");
    let same = "SELECT bool_and(corgipile_predict('odd', odd) = corgipile_predict('odd', \"my data\")) FROM odd";
    assert!(db.value::<bool>(same));
}

#[test]
fn columns_that_are_called_so_come_first() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT i % 2 AS label, i % 5 AS \"data->a\", '{\"a\": 7}'::jsonb AS data FROM generate_series(1, 90) i");
    db.train("'t', features => '{data->a}', max_epochs => 1");
    assert_eq!(db.line("SELECT feature_mean FROM corgipile.models"), "{2}");
}
