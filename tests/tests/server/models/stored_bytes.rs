//! How much room a model takes in the table.

use corgipile_tests::{Database, Session};

fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t (label int, x real[], k int[], v real[]);
         INSERT INTO t SELECT (i % 3 = 0)::int, ARRAY[i % 7, i % 5, i * i % 11], ARRAY[1 + i % 4, 7], ARRAY[1, i % 5]
           FROM generate_series(1, 200) i",
    );
}

#[test]
fn features_that_no_row_has_take_no_room_in_the_state() {
    let mut db = Database::new();
    table(&mut db);
    for optimizer in ["sgd", "adam"] {
        let arguments = format!(
            "'t', features => '{{k,v}}', seed => 7, learning_rate => 0.01,
             options => '{{\"dimensions\": 1048576, \"optimizer\": \"{optimizer}\", \"averaging\": {}}}'",
            optimizer == "sgd"
        );
        let whole = db.trained(&format!("{arguments}, max_epochs => 5"));
        assert_eq!(whole.weights.len(), 1 << 20);
        let first = db.train(&format!("{arguments}, max_epochs => 2"))[0].model_id;
        let second = db.trained(&format!("'t', warm_start => '{first}', max_epochs => 3"));
        assert_eq!(second.bits(), whole.bits(), "{optimizer}");
        let of_first = format!("FROM corgipile.stored_models WHERE model_id = {first}");
        let state: i32 = db.value(&format!("SELECT octet_length(training_state) {of_first}"));
        assert!(state < 4096, "{optimizer}: {state} bytes, header included, for 7 features of a million");
        let weights: i32 = db.value(&format!("SELECT pg_column_size(weights) {of_first}"));
        assert!(weights < 1 << 17, "{weights} bytes");
    }
}

#[test]
fn models_are_compressed_by_the_fastest_method_that_the_server_has() {
    let mut db = Database::new();
    table(&mut db);
    let method = db.fastest_compression();
    for setting in ["pglz", "DEFAULT"] {
        db.run(&format!("SET default_toast_compression = {setting}"));
        let before = db.line("SHOW default_toast_compression");
        let id = db.train(
            r#"'t', features => '{k,v}', max_epochs => 1, options => '{"dimensions": 100000, "optimizer": "adam"}'"#,
        )[0]
        .model_id;
        let methods = format!("SELECT pg_column_compression(weights) FROM corgipile.models WHERE model_id = {id}");
        assert_eq!(db.line(&methods), method);
        assert_eq!(db.line("SHOW default_toast_compression"), before, "the session's own is as it was");
    }
    // a state of many categories has their names in it
    db.run(
        "CREATE TABLE words AS SELECT i % 2 AS label, 'a category that has a long name and the number ' || i AS word
           FROM generate_series(1, 2000) i",
    );
    let id = db.train("'words', features => '{word}', max_epochs => 1")[0].model_id;
    let sizes = format!(
        "SELECT pg_column_compression(training_state), pg_column_size(training_state) < octet_length(training_state) / 2
           FROM corgipile.stored_models WHERE model_id = {id}"
    );
    assert_eq!(db.line(&sizes), format!("{method}|t"));
}
