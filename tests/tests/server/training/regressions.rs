//! What the authors' prototype gets wrong (`prototype-faults.md` of the project), a test per line that applies here.
//!
//! Lines on its double-buffering thread have no counterpart: there is no thread. What they broke is tested elsewhere:
//! rows lost in `shuffle`, cancels in `cancel`.

use corgipile_tests::{Database, clustered, shuffled_copy};

#[test]
fn ten_percent_buffer_and_large_blocks_are_not_the_default() {
    // There, two or three blocks in the buffer left the accuracy anywhere between chance and a full shuffle's.
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    shuffled_copy(&mut db, "t", "shuffled");
    let mut accuracy = |table: &str, rest: &str| {
        let id = db.train(&format!("'{table}', features => '{{features_v}}', max_epochs => 10, {rest}"))[0].model_id;
        db.evaluate(id, "t").accuracy
    };
    let full = accuracy("shuffled", "shuffle => 'no_shuffle'");
    for seed in 1..=5 {
        let corgipile = accuracy("t", &format!("seed => {seed}, buffer_size => '10%'"));
        assert!((full - corgipile).abs() < 0.015, "seed {seed}: corgipile {corgipile}, full shuffle {full}");
    }
}

#[test]
fn every_buffer_and_epoch_is_permuted_anew() {
    // There, one permutation was drawn per query and used for every buffer and epoch.
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT i AS id, i % 2 AS label, i::real AS a FROM generate_series(0, 9999) i");
    let per_block: i64 = db.value("SELECT count(*) FROM t WHERE ctid < '(1,0)'");
    let mut places = Vec::new();
    for epoch in 1..=2 {
        let ids: Vec<i32> = db.column(&format!(
            "SELECT id FROM corgipile_shuffle(NULL::t, seed => 1, epoch => {epoch}, block_size => '8kB',
             buffer_size => '8kB')"
        ));
        // A buffer holds one block: its permutation is the ids' places within the block.
        for buffer in ids.chunks(per_block as usize).filter(|b| b.len() == per_block as usize) {
            let first = *buffer.iter().min().expect("a buffer has rows");
            if buffer.iter().max() == Some(&(first + per_block as i32 - 1)) {
                places.push(buffer.iter().map(|id| id - first).collect::<Vec<_>>());
            }
        }
    }
    assert!(places.len() > 20, "{} whole buffers", places.len());
    let buffers = places.len();
    places.sort();
    places.dedup();
    assert_eq!(places.len(), buffers, "no permutation comes twice");
}

#[test]
fn an_epoch_reads_the_table_once() {
    // There, each epoch scanned twice: to train, then for the loss.
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    let plan: serde_json::Value =
        db.value("EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM corgipile_train('t', max_epochs => 4, nulls => 'error', learning_rate => 0.01, standardize => false)");
    let text = plan.to_string();
    let number = |property: &str| -> f64 {
        let rest = text.split(&format!("\"{property}\":")).nth(1).unwrap_or_else(|| panic!("no {property} in {text}"));
        rest.split([',', '}']).next().and_then(|n| n.trim().parse().ok()).expect("a number")
    };
    assert_eq!(number("Blocks Read"), 4.0 * number("Blocks"));
}

#[test]
fn accuracies_are_never_above_one() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    for buffer in ["1%", "10%", "100%"] {
        for epoch in db.train(&format!("'t', buffer_size => '{buffer}', max_epochs => 5")) {
            assert!((0.0..=1.0).contains(&epoch.accuracy.unwrap()) && epoch.tuples == 3000, "{epoch:?}");
        }
    }
}

#[test]
fn odd_rows_get_an_error_or_the_right_answer() {
    let mut db = Database::new();
    for (what, row, code) in [
        ("NULL array", "(1, NULL)", "22004"),
        ("short array", "(1, '{1,2}')", "2202E"),
        ("empty array", "(1, '{}')", "2202E"),
        ("NULL element", "(1, '{1,NULL,3,4,5}')", "22004"),
        ("longer array", "(1, '{1,2,3,4,5,6}')", "2202E"),
        ("NULL label", "(NULL, '{1,2,3,4,5}')", "22004"),
        ("fractional label", "(0.5, '{1,2,3,4,5}')", "22000"),
        ("label 7", "(7, '{1,2,3,4,5}')", "22000"),
        ("NaN", "(1, '{1,2,3,4,NaN}')", "22003"),
        ("infinity", "(1, '{1,2,-Infinity,4,5}')", "22003"),
    ] {
        clustered(&mut db, "base", 200);
        db.run(&format!(
            "CREATE TABLE t AS SELECT label::numeric AS label, features_v FROM base; INSERT INTO t VALUES {row};
             DROP TABLE base"
        ));
        let train = "SELECT * FROM corgipile_train('t', 'logistic', shuffle => 'no_shuffle', options => '{\"nulls\": \"error\"}')";
        let failure = db.rejects(train, code);
        assert!(!failure.message.is_empty(), "{what}");
        db.run("DROP TABLE t");
    }
}

#[test]
fn columns_in_any_order_are_found_by_name() {
    // There, a wrong order of columns or a missing label crashed the server.
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (features_v float8[], note text, label int, id int);
            INSERT INTO t SELECT ARRAY[i % 2, 1], 'x', i % 2, i FROM generate_series(1, 100) i",
    );
    let id = db.train("'t', learning_rate => 0.5")[0].model_id;
    assert_eq!(db.evaluate(id, "t").accuracy, 1.0);
    db.run("ALTER TABLE t DROP label");
    db.rejects("SELECT * FROM corgipile_train('t')", "42703").says(&["label"]);
}

#[test]
fn a_label_of_0_has_a_gradient() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT i % 2 AS label, (i % 2 * 2 - 1)::real AS a FROM generate_series(1, 100) i");
    let model = db.trained("'t', learning_rate => 0.5");
    assert!(model.weights[0] > 1.0, "{model:?}");
    assert_eq!(db.line(&format!("SELECT corgipile_predict({}, ARRAY[-1])", model.id)), "0");
}

#[test]
fn unknown_models_and_tables_are_errors_every_time() {
    // There, an unknown model crashed or was the previous one again.
    let mut db = Database::new();
    clustered(&mut db, "t", 100);
    db.train("'t', max_epochs => 1");
    for _ in 0..2 {
        db.rejects("SELECT * FROM corgipile_train('t', 'forest')", "22023").hints(&["logistic", "svm"]);
        db.rejects("SELECT * FROM corgipile_train('unknown')", "42P01");
        db.rejects("SELECT * FROM corgipile_train(' ')", "42602");
    }
}

#[test]
fn a_huge_buffer_is_a_buffer_for_the_whole_table() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    for size in ["100%", "16GB", "8000TB"] {
        assert_eq!(db.train(&format!("'t', max_epochs => 2, buffer_size => '{size}'"))[1].tuples, 1000, "{size}");
    }
}

#[test]
fn one_row_and_an_empty_table_are_errors_and_a_table_in_one_block_is_not() {
    let mut db = Database::new();
    clustered(&mut db, "t", 100);
    db.train("'t', max_epochs => 2, block_size => '10MB'");
    db.rejects("SELECT * FROM corgipile_train('SELECT * FROM t LIMIT 1')", "22000").says(&["only one value"]);
    db.run("DELETE FROM t WHERE id > 1");
    db.rejects("SELECT * FROM corgipile_train('t')", "22000").says(&["only one value"]);
    db.run("DELETE FROM t");
    db.rejects("SELECT * FROM corgipile_train('t')", "22000").says(&["no rows"]);
}
