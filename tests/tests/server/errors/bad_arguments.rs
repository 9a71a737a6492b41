//! Bad arguments: each error names the argument and what is possible.

use super::rejects;
use corgipile_tests::Database;

#[test]
fn no_model_has_an_empty_name() {
    let mut db = Database::with_small_table(100);
    rejects(&mut db, "'t', ''", "22023").says(&["unknown model"]);
}

#[test]
fn options_of_the_wrong_kind_or_range_are_refused() {
    let mut db = Database::with_small_table(100);
    for options in [
        "[]",
        "1",
        "\"x\"",
        "null",
        "true",
        "{\"standardize\": 1}",
        "{\"standardize\": \"yes\"}",
        "{\"standardize\": null}",
        "{\"l2\": -1}",
        "{\"l2\": \"0.1\"}",
        "{\"l2\": true}",
        "{\"l2\": 1e400}",
        "{\"l2\": null}",
        "{\"decay\": 0}",
        "{\"decay\": 1.01}",
        "{\"decay\": -0.5}",
        "{\"decay\": []}",
        "{\"nulls\": \"ignore\"}",
        "{\"nulls\": true}",
        "{\"nulls\": null}",
    ] {
        rejects(&mut db, &format!("'t', options => '{options}'"), "22023");
    }
    rejects(&mut db, "'t', learning_rate => 1, options => '{\"l2\": 5}'", "22023").says(&["l2"]);
    assert_eq!(db.train("'t', max_epochs => 1, options => '{}'").len(), 1);
}

#[test]
fn sizes_that_are_nonsense_are_refused() {
    let mut db = Database::with_small_table(100);
    for size in
        ["", "big", "0", "0kB", "-8kB", "1kB", "8191", "64 KiB", "1e3kB", "NaN", "99999999999999999999TB", "10%"]
    {
        rejects(&mut db, &format!("'t', block_size => '{size}'"), "22023").says(&["block_size"]);
    }
    for size in ["", "auto%", "0", "0%", "-1%", "-64MB", "101%", "1000%", "NaN%", "%", "ten%", "0MB", "64 parsecs"] {
        rejects(&mut db, &format!("'t', buffer_size => '{size}'"), "22023").says(&["buffer_size"]);
    }
    for size in ["1MB", "64kB", "8192", "8kB", "1.5MB", " 64kB "] {
        db.train(&format!("'t', max_epochs => 1, block_size => '{size}'"));
    }
    for size in ["auto", "0.5%", "100%", "64kB", "1TB", " 10 % "] {
        db.train(&format!("'t', max_epochs => 1, buffer_size => '{size}'"));
    }
}

#[test]
fn learning_rates_and_epochs_out_of_range_are_refused() {
    let mut db = Database::with_small_table(100);
    for rate in ["0", "-0.1", "'NaN'", "'Infinity'", "'-Infinity'"] {
        rejects(&mut db, &format!("'t', learning_rate => {rate}"), "22023").says(&["learning_rate"]);
    }
    for epochs in ["0", "-1", "-2147483648"] {
        rejects(&mut db, &format!("'t', max_epochs => {epochs}"), "22023").says(&["max_epochs"]);
    }
}

#[test]
fn null_stands_for_the_default_of_every_argument_but_the_source() {
    let mut db = Database::with_small_table(100);
    let all =
        "model => NULL, label => NULL, features => NULL, learning_rate => NULL, max_epochs => NULL, shuffle => NULL,
               block_size => NULL, buffer_size => NULL, seed => NULL, name => NULL, options => NULL, prefetch => NULL,
               workers => NULL, warm_start => NULL, group_by => NULL, grid => NULL, sample => NULL";
    assert_eq!(db.train(&format!("'t', {all}")).len(), 100);
}

#[test]
fn a_name_is_compared_exactly() {
    let mut db = Database::with_small_table(100);
    db.train("'t', max_epochs => 1, name => 'fraud'");
    db.train("'t', max_epochs => 1, name => 'Fraud'");
    assert_eq!(db.lines("SELECT DISTINCT version FROM corgipile.models"), ["1"]);
    db.train("'t', max_epochs => 1, name => 'größer; DROP TABLE t; --'");
}

#[test]
fn a_read_only_transaction_trains_nothing() {
    let mut db = Database::with_small_table(100);
    db.run("SET default_transaction_read_only = on");
    rejects(&mut db, "'t'", "25006");
    // It is said before hours of training.
    rejects(&mut db, "'t', max_epochs => 1000000", "25006");
    db.run("SET default_transaction_read_only = off");
    db.train("'t', max_epochs => 1");
    db.run("SET default_transaction_read_only = on");
    assert_eq!(db.line("SELECT corgipile_predict(max(model_id), ARRAY[1,2,3]) IS NOT NULL FROM corgipile.models"), "t");
    assert_eq!(
        db.lines("SELECT e.* FROM corgipile.models, corgipile_evaluate(model_id, 't') e WHERE metric = 'loss'").len(),
        1
    );
    assert_eq!(db.line("SELECT count(*) FROM corgipile_shuffle(NULL::t)"), "100");
}

#[test]
fn a_model_that_does_not_exist_is_an_error() {
    let mut db = Database::new();
    for function in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
        db.fails_with(&format!("SELECT {function}('nobody', ARRAY[1.0])"), "42704").says(&["nobody"]);
        db.fails_with(&format!("SELECT {function}(-1, ARRAY[1.0])"), "42704");
    }
    db.fails_with("SELECT * FROM corgipile_evaluate('nobody', 'SELECT 1')", "42704");
    db.fails_with("SELECT * FROM corgipile_evaluate(9, 'SELECT 1')", "42704");
}

#[test]
fn predict_refuses_what_the_model_cannot_take() {
    let mut db = Database::with_small_table(100);
    let id = db.train("'t', max_epochs => 2, options => '{\"nulls\": \"error\"}'")[0].model_id;
    for function in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
        let mut fails =
            |features: &str, code: &str| db.fails_with(&format!("SELECT {function}({id}, {features})"), code);
        fails("ARRAY[1.0, 2]", "2202E").says(&["3", "2"]);
        fails("ARRAY[1.0, 2, 3, 4]", "2202E").says(&["3", "4"]);
        fails("'{}'::real[]", "2202E");
        fails("'{{1,2,3}}'::real[]", "2202E");
        fails("ARRAY[1.0, NULL, 3]", "22004").says(&["feature b"]);
        fails("ARRAY[1, 'NaN', 3]::real[]", "22003").says(&["feature b"]);
        fails("ARRAY[1, 'Infinity', 3]::float8[]", "22003");
        fails("ARRAY[1, 1e39, 3]::float8[]", "22003");
        fails("ARRAY['a', 'b', 'c']", "42804");
        assert_eq!(db.line(&format!("SELECT {function}({id}, NULL::real[])")), "NULL");
        assert_eq!(db.line(&format!("SELECT {function}(NULL::bigint, ARRAY[1,2,3])")), "NULL");
    }
}

#[test]
fn too_many_epochs_and_too_long_names_are_refused_before_training() {
    let mut db = Database::with_small_table(100);
    rejects(&mut db, "'t', max_epochs => 1000001", "22023").says(&["max_epochs", "1000000"]);
    rejects(&mut db, "'t', max_epochs => 2147483647", "22023").says(&["max_epochs"]);
    rejects(&mut db, "'t', name => repeat('x', 1025)", "22023").says(&["name", "1024"]);
    db.train("'t', max_epochs => 1, name => repeat('x', 1024)");
}

#[test]
fn a_name_that_another_session_takes_meanwhile_gets_another_version() {
    let mut db = Database::with_small_table(100);
    let mut other = db.session();
    other.run("BEGIN; SELECT FROM corgipile_train('t', max_epochs => 1, name => 'm')");
    let mut late = db.session();
    let thread = std::thread::spawn(move || {
        late.run("SELECT FROM corgipile_train('t', max_epochs => 1, name => 'm')");
    });
    // The late one has trained when it waits for the first to end.
    while db.line("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'object'") == "0" {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    other.run("COMMIT");
    thread.join().expect("the late session trains");
    assert_eq!(db.lines("SELECT version FROM corgipile.models ORDER BY 1"), ["1", "2"]);
}
