//! How much room a model takes in the table, and that what an earlier version has written there is read.

use corgipile_tests::{Database, Session};

/// What version 01 of the state has written after two epochs on [`table`]: of dense features, and of sparse ones whose
/// iterates are averaged; with the model that the same version has trained in four.
const OLD_DENSE: (&str, &str, [f64; 4]) = (
    "features => '{x}', learning_rate => 0.01, standardize => false, seed => 7",
    "dQEAAAAAAAB7ImRlY29kZXJfc3RhdGUiOnsiY2xhc3NlcyI6eyJ2YWx1ZXMiOlsiMCIsIjEiXSwiY29kZXMiOlstMS4wLDEuMF0sIndlaWdodHMi\
     Om51bGwsIm1ldCI6W10sInByZXBhcmVkIjp0cnVlfSwiZGltIjozLCJjYXRlZ29yaWVzIjpbXSwib2JzZXJ2ZWRfZGltIjozLCJsaW1pdCI6bnVs\
     bCwic3RhbmRhcmRpemVyIjpudWxsLCJ0YXJnZXQiOm51bGwsIm1lYW5fc3F1YXJlIjpudWxsLCJtZXQiOjIwMCwidHJhbnNmb3JtZWQiOiJOb3Ro\
     aW5nIiwiZmlsbCI6bnVsbCwibnVsbHMiOnsicm93cyI6MCwiZmVhdHVyZXMiOltdfSwiY29udGludWVkIjpmYWxzZX0sImxvc3NlcyI6eyJsb3dl\
     c3QiOjAuNjY5NjI0OTc4Njc2NDM4Mywic3RhbGUiOjB9LCJlcG9jaHMiOjJ9Y2dwdHJuMDEAAAAAAAAAAAMAAAAAAAAAAgAAAAAAAACF+Um9XGjR\
     vZOFxTwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAQAAAgEAAAIBAAACAPwAAAAAAAAAAAAAA\
     AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAwEAAAIA/AAAQQQAAgD8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
     AAAAAAAAAAAAAAAAAAAAAADfoCI/46UbPOOlGzw6JwU/46UbvOOlG7xNU8G9AAAAAAAA8D8=",
    [0.014547078, -0.07085051, -0.0046957694, -0.15228648],
);
const OLD_SPARSE: (&str, &str, [f64; 8]) = (
    "features => '{k,v}', seed => 7, learning_rate => 0.125,
     options => '{\"averaging\": true, \"bounded_steps\": true, \"decay\": 0.95}'",
    "fAEAAAAAAAB7ImRlY29kZXJfc3RhdGUiOnsiY2xhc3NlcyI6eyJ2YWx1ZXMiOlsiMCIsIjEiXSwiY29kZXMiOlstMS4wLDEuMF0sIndlaWdodHMi\
     Om51bGwsIm1ldCI6W10sInByZXBhcmVkIjp0cnVlfSwiZGltIjpudWxsLCJjYXRlZ29yaWVzIjpbXSwib2JzZXJ2ZWRfZGltIjo3LCJsaW1pdCI6\
     MTM0MjE3NzI3LCJzdGFuZGFyZGl6ZXIiOm51bGwsInRhcmdldCI6bnVsbCwibWVhbl9zcXVhcmUiOjcuMCwibWV0IjoyMDAsInRyYW5zZm9ybWVk\
     IjoiTm90aGluZyIsImZpbGwiOm51bGwsIm51bGxzIjp7InJvd3MiOjAsImZlYXR1cmVzIjpbXX0sImNvbnRpbnVlZCI6ZmFsc2V9LCJsb3NzZXMi\
     OnsibG93ZXN0IjowLjY5MDI1NTkwNTI0MDc3NDIsInN0YWxlIjowfSwiZXBvY2hzIjoyfWNncHRybjAxAQAAAQAAAAAHAAAAAAAAAAIAAAAAAAAA\
     BwAAAAAAAACQAQAAAAAAAAAAAAAAAAAAZmZmZmZmvj8AAAAAAADwPwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIAAAAAAAAA4QWnvdLQfL7A+/m6\
     BgjJvQAAAAAAAAAApHxqPO1l277LBK2+ywStvpABAAAAAAAAkAEAAAAAAAAHAAAAAAAAADXL4UrLssu/HLxtvsImw7/clLAUJta/v55gpIxWs7+/\
     AAAAAAAAAAAAAAAAAAAAACqS+6GhqJe/VUTR0ZOn478=",
    [-0.18406075, -0.27016035, -0.062268388, -0.042157207, 0.0, 0.0, -0.10467853, -0.558647],
);

fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t (label int, x real[], k int[], v real[]);
         INSERT INTO t SELECT (i % 3 = 0)::int, ARRAY[i % 7, i % 5, i * i % 11], ARRAY[1 + i % 4, 7], ARRAY[1, i % 5]
           FROM generate_series(1, 200) i",
    );
}

#[test]
fn a_training_whose_state_an_earlier_version_has_written_goes_on() {
    let mut db = Database::new();
    table(&mut db);
    let mut goes_on = |arguments: &str, state: &str, expected: &[f64]| {
        let whole = db.trained(&format!("'t', {arguments}, max_epochs => 4"));
        let first = db.train(&format!("'t', {arguments}, max_epochs => 2"))[0].model_id;
        let written = format!("decode('{state}', 'base64')");
        db.run(&format!("UPDATE corgipile.stored_models SET training_state = {written} WHERE model_id = {first}"));
        let second = db.trained(&format!("'t', warm_start => '{first}', max_epochs => 2"));
        assert_eq!(second.bits(), whole.bits(), "{arguments}");
        for (number, expected) in second.parameters().iter().zip(expected) {
            assert!((number - expected).abs() < 1e-5, "{arguments}: {:?}", second.parameters());
        }
    };
    goes_on(OLD_DENSE.0, OLD_DENSE.1, &OLD_DENSE.2);
    goes_on(OLD_SPARSE.0, OLD_SPARSE.1, &OLD_SPARSE.2);
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
