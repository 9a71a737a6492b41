//! `corgipile_sgd_agg()` by hand: its states are values, which are stored, combined, and checked.

use super::agreement::{dense_and_sparse, train};
use corgipile_tests::{Database, clustered};

/// Epochs in SQL, as a user without corgipile_train_uda() would write them.
const BY_HAND: &str = "
    CREATE TABLE states (epoch int, state corgipile.sgd_state);
    INSERT INTO states VALUES (0, corgipile_sgd_init('logistic', 5, 0.05, '{\"l2\": 0.01}'));
    DO $$ BEGIN FOR e IN 1..3 LOOP
      INSERT INTO states SELECT e, corgipile_sgd_agg((SELECT state FROM states WHERE epoch = e - 1), label * 2 - 1, features_v)
        FROM t;
    END LOOP; END $$;";

#[test]
fn epochs_by_hand_are_those_of_corgipile_train_uda() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run("SET max_parallel_workers_per_gather = 0; SET synchronize_seqscans = off");
    db.run(BY_HAND);
    let id = train(
        &mut db,
        "corgipile_train_uda",
        "'t', learning_rate => 0.05, max_epochs => 3, options => '{\"l2\": 0.01}'",
    );
    let same: bool = db.value(&format!(
        "SELECT corgipile_sgd_weights(state) = weights AND corgipile_sgd_intercepts(state) = intercepts
           FROM states, corgipile.models WHERE epoch = 3 AND model_id = {id}"
    ));
    assert!(same);
    let reports = "SELECT r.epoch, r.loss, r.accuracy, r.learning_rate, r.tuples, r.r2
                     FROM states, corgipile_sgd_report(state) r WHERE r.epoch > 0 ORDER BY 1";
    let history = "SELECT epoch, loss, accuracy, learning_rate, tuples, r2 FROM corgipile.training_history ORDER BY 1";
    assert_eq!(db.lines(reports), db.lines(history));
    assert_eq!(
        db.line("SELECT r.* FROM states, corgipile_sgd_report(state) r WHERE states.epoch = 0"),
        "0|NULL|NULL|NULL|0|NULL|0"
    );
}

#[test]
fn text_and_binary_forms_are_exact() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run(BY_HAND);
    db.run(
        "CREATE TABLE again (LIKE states);
         INSERT INTO again SELECT epoch, state::text::corgipile.sgd_state FROM states;",
    );
    let same = "SELECT bool_and(corgipile.sgd_state_send(a.state) = corgipile.sgd_state_send(s.state)) AND count(*) = 4
                  FROM states s JOIN again a USING (epoch)";
    assert!(db.value::<bool>(same));
    db.run("TRUNCATE again");
    let directory: String = db.value("SHOW data_directory");
    db.run(&format!(
        "COPY states TO '{directory}/states' (FORMAT binary); COPY again FROM '{directory}/states' (FORMAT binary);"
    ));
    assert!(db.value::<bool>(same));
    // and it is compact: bytes in base64
    let ratio: f64 =
        db.value("SELECT max(length(state::text)::float8 / length(corgipile.sgd_state_send(state))) FROM states");
    assert!(ratio < 1.36, "{ratio}");
}

#[test]
fn a_state_survives_being_stored_out_of_line() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE wide AS SELECT i AS id, (i % 2) * 2 - 1 AS label,
                ARRAY(SELECT normal(i, j) + i % 2 FROM generate_series(1, 3000) j)::real[] AS x
           FROM generate_series(1, 20::bigint) i;
         CREATE TABLE states AS SELECT corgipile_sgd_init('svm', 3000) AS state;
         INSERT INTO states SELECT corgipile_sgd_agg((SELECT state FROM states), label, x ORDER BY id) FROM wide;",
    );
    let direct = "SELECT corgipile_sgd_agg(s.state, label, x ORDER BY id)
                    FROM wide, (SELECT corgipile_sgd_init('svm', 3000) AS state) s";
    assert!(db.value::<bool>(&format!(
        "SELECT max(state::text) = ({direct})::text FROM states WHERE (corgipile_sgd_report(state)).epoch = 1"
    )));
}

#[test]
fn each_group_has_a_model_of_its_own() {
    let mut db = Database::new();
    dense_and_sparse(&mut db);
    let grouped = db.lines(
        "SELECT corgipile_sgd_weights(corgipile_sgd_agg(CASE id % 3 WHEN 0 THEN a ELSE b END, label * 2 - 1,
                features_k, features_v ORDER BY id))
           FROM sparse, corgipile_sgd_init('logistic', 8, sparse => true) a,
                corgipile_sgd_init('logistic', 9, 0.1, sparse => true) b
          GROUP BY id % 3 ORDER BY id % 3",
    );
    for (group, weights) in grouped.iter().enumerate() {
        let init = if group == 0 { "'logistic', 8, sparse => true" } else { "'logistic', 9, 0.1, sparse => true" };
        let alone = db.line(&format!(
            "SELECT corgipile_sgd_weights(corgipile_sgd_agg(s, label * 2 - 1, features_k, features_v ORDER BY id))
               FROM sparse, corgipile_sgd_init({init}) s WHERE id % 3 = {group}"
        ));
        assert_eq!(*weights, alone);
    }
}

#[test]
fn a_window_shows_the_model_after_every_row() {
    let mut db = Database::with_small_table(20);
    let after_each = db.lines(
        "SELECT corgipile_sgd_weights(corgipile_sgd_agg(s, label * 2 - 1, ARRAY[a, b, c]) OVER (ORDER BY id))
           FROM t, corgipile_sgd_init('logistic', 3) s ORDER BY id",
    );
    for (i, weights) in after_each.iter().enumerate() {
        let prefix = db.line(&format!(
            "SELECT corgipile_sgd_weights(corgipile_sgd_agg(s, label * 2 - 1, ARRAY[a, b, c] ORDER BY id))
               FROM t, corgipile_sgd_init('logistic', 3) s WHERE id <= {}",
            i + 1
        ));
        assert_eq!(*weights, prefix);
    }
}

#[test]
fn outside_an_aggregate_a_state_is_not_changed_where_it_lies() {
    let mut db = Database::new();
    let differs: bool = db.value(
        "WITH first AS MATERIALIZED (
                SELECT corgipile.sgd_transition(NULL, corgipile_sgd_init('svm', 2), 1, ARRAY[1, 2]) AS state),
              second AS MATERIALIZED (
                SELECT state AS before, corgipile.sgd_transition(state, NULL, -1, ARRAY[3, 4]) AS after FROM first)
         SELECT before::text <> after::text
                AND before::text = corgipile.sgd_transition(NULL, corgipile_sgd_init('svm', 2), 1, ARRAY[1, 2])::text
           FROM second",
    );
    assert!(differs);
}

/// A state after one epoch's steps on these (label, x) tuples, before the epoch has ended.
fn partial(tuples: &[(i32, f64)]) -> String {
    let mut state = "NULL".to_owned();
    for (label, x) in tuples {
        state = format!("corgipile.sgd_transition({state}, corgipile_sgd_init('linear', 1, 0.5), {label}, ARRAY[{x}])");
    }
    state
}

#[test]
fn combined_models_are_averaged_by_their_tuples() {
    let mut db = Database::new();
    // Linear, rate 0.5, from w = b = 0: (y 1, x 2) gives z 0, w 1, b 0.5. In the other part (y 2, x 1) gives w 1, b 1,
    // then (y 0, x 1) has z 2 and gives w 0, b 0. Averaged 1 : 2 this is w 1/3, b 1/6.
    let combined = format!("corgipile.sgd_combine({}, {})", partial(&[(1, 2.0)]), partial(&[(2, 1.0), (0, 1.0)]));
    let model = "corgipile_sgd_weights(s), corgipile_sgd_intercepts(s), (corgipile_sgd_report(s)).tuples,
                 (corgipile_sgd_report(s)).loss";
    let line = db.line(&format!(
        "SET extra_float_digits = -2; SELECT {model} FROM corgipile.sgd_final({combined}::text::corgipile.sgd_state) s"
    ));
    // losses 1/2, 4/2 and 4/2
    assert_eq!(line, "{0.3333}|{0.1667}|3|1.5");
}

#[test]
fn several_processes_learn_one_model() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT (i % 2) * 2 - 1 AS label, ARRAY[normal(i, 1) + i % 2, normal(i, 2)]::real[] AS x
           FROM generate_series(1, 20000::bigint) i;
         ANALYZE t;
         SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = 2; ALTER TABLE t SET (parallel_workers = 2);",
    );
    let epoch = "SELECT corgipile_sgd_agg(corgipile_sgd_init('logistic', 2), label, x) AS state FROM t";
    let plan = db.lines(&format!("EXPLAIN (COSTS off) {epoch}")).join("\n");
    for node in ["Finalize Aggregate", "Gather", "Partial Aggregate", "Parallel Seq Scan on t"] {
        assert!(plan.contains(node), "{plan}");
    }
    let report = "SELECT r.tuples, r.accuracy > 0.6, r.loss < 0.69 FROM e, corgipile_sgd_report(state) r";
    assert_eq!(db.line(&format!("WITH e AS ({epoch}) {report}")), "20000|t|t");
    let weights = format!("SELECT unnest(corgipile_sgd_weights(state))::float8 FROM ({epoch}) e");
    let together: Vec<f64> = db.column(&weights);
    db.run("SET max_parallel_workers_per_gather = 0");
    let alone: Vec<f64> = db.column(&weights);
    for (many, one) in together.iter().zip(&alone) {
        assert!((many - one).abs() < 0.25, "{together:?} is far from {alone:?}");
    }
}

#[test]
fn states_of_different_trainings_are_not_combined() {
    let mut db = Database::new();
    let state = |init: &str| format!("corgipile.sgd_transition(NULL, corgipile_sgd_init({init}), 1, ARRAY[1, 2])");
    for other in ["'logistic', 2", "'svm', 2, 0.02", "'svm', 2, options => '{\"nulls\": \"skip\"}'"] {
        let sql = format!("SELECT corgipile.sgd_combine({}, {})", state("'svm', 2"), state(other));
        db.fails_with(&sql, "22023").says(&["different"]);
    }
    let finished = format!("corgipile.sgd_final({})", state("'svm', 2"));
    db.fails_with(&format!("SELECT corgipile.sgd_combine({finished}, {finished})"), "22023");
    db.fails_with(&format!("SELECT corgipile.sgd_final({finished})"), "22023");
    db.fails_with(&format!("SELECT corgipile_sgd_agg({}, 1, ARRAY[1, 2])", state("'svm', 2")), "22023")
        .says(&["epoch"]);
}

#[test]
fn rows_that_cannot_be_learned_from_are_errors() {
    let mut db = Database::new();
    let mut fails = |init: &str, row: &str, code: &str, words: &[&str]| {
        let sql = format!(
            "SELECT corgipile_sgd_agg(s, {row}) FROM corgipile_sgd_init({init}) s, generate_series(1, 2) i WHERE i = 1"
        );
        db.fails_with(&sql, code).says(words);
    };
    let logistic = "'logistic', 2";
    fails(logistic, "NULL, ARRAY[1, 2]", "22004", &["label", "NULL", "1"]);
    fails(logistic, "1, NULL::real[]", "22004", &["features are NULL"]);
    fails(logistic, "1, ARRAY[1, NULL]", "22004", &["feature", "2"]);
    fails(logistic, "1, ARRAY[1]", "2202E", &["1 features instead of 2"]);
    fails(logistic, "1, ARRAY[]::int[]", "2202E", &["empty"]);
    fails(logistic, "1, ARRAY[[1, 2]]", "2202E", &["dimensions"]);
    fails(logistic, "1, ARRAY['NaN', 1]::float8[]", "22003", &["NaN"]);
    fails(logistic, "1, ARRAY[1e300, 1]", "22003", &["range"]);
    fails(logistic, "1, ARRAY['a', 'b']", "42804", &["text[]"]);
    fails(logistic, "0, ARRAY[1, 2]", "22023", &["label 0", "-1"]);
    fails("'svm', 2", "2, ARRAY[1, 2]", "22023", &["label 2"]);
    fails("'softmax', 2, classes => 3", "3, ARRAY[1, 2]", "22023", &["label 3", "2"]);
    fails("'softmax', 2, classes => 3", "0.5, ARRAY[1, 2]", "22023", &["label 0.5"]);
    fails("'softmax', 2, classes => 3", "-1, ARRAY[1, 2]", "22023", &["label -1"]);
    fails("'linear', 2", "'Infinity', ARRAY[1, 2]", "22003", &["label"]);
    fails("'linear', 2", "1e300, ARRAY[1, 2]", "22003", &["label"]);
    fails(logistic, "1, ARRAY[1], ARRAY[2]", "22023", &["dense"]);
    let sparse = "'svm', 3, sparse => true";
    fails(sparse, "1, ARRAY[1, 2, 3]", "22023", &["sparse"]);
    fails(sparse, "1, ARRAY[1, 4], ARRAY[2, 3]", "2202E", &["4"]);
    fails(sparse, "1, ARRAY[0, 1], ARRAY[2, 3]", "2202E", &["0"]);
    fails(sparse, "1, ARRAY[1, 1], ARRAY[2, 3]", "2202E", &["twice"]);
    fails(sparse, "1, ARRAY[1, 2], ARRAY[2]", "2202E", &["2", "1"]);
    fails(sparse, "1, ARRAY[1, NULL], ARRAY[2, 3]", "22004", &["NULL"]);
    fails(sparse, "1, ARRAY[1, 2], ARRAY[2, NULL]", "22004", &["NULL"]);
    fails(sparse, "1, ARRAY[1, 2], NULL::real[]", "22004", &["NULL"]);
    fails(sparse, "1, ARRAY[1, 2], ARRAY['NaN', '1']::real[]", "22003", &["NaN"]);
    fails(sparse, "1, ARRAY[1.5], ARRAY[1]", "42804", &["numeric[]"]);
    db.fails_with("SELECT corgipile_sgd_agg(NULL::corgipile.sgd_state, 1, ARRAY[1])", "22004");
}

#[test]
fn indices_may_come_in_any_order_and_count_from_0() {
    let mut db = Database::new();
    let mut weights = |options: &str, indices: &str, values: &str| {
        db.line(&format!(
            "SELECT corgipile_sgd_weights(corgipile_sgd_agg(s, 1, {indices}, {values}))
               FROM corgipile_sgd_init('linear', 3, 0.5, '{options}', sparse => true) s"
        ))
    };
    assert_eq!(weights("{}", "ARRAY[3, 1]", "ARRAY[2.0, 4.0]::real[]"), "{2,0,1}");
    assert_eq!(weights("{\"index_base\": 0}", "ARRAY[2, 0]::smallint[]", "ARRAY[2, 4]"), "{2,0,1}");
    assert_eq!(weights("{}", "ARRAY[]::int[]", "ARRAY[]::real[]"), "{0,0,0}");
}

#[test]
fn wrong_arguments_of_corgipile_sgd_init_are_errors() {
    let mut db = Database::new();
    for (arguments, code) in [
        ("'tree', 2", "22023"),
        ("NULL, 2", "22004"),
        ("'svm', NULL", "22004"),
        ("'svm', 0", "22023"),
        ("'svm', 2, -1", "22023"),
        ("'svm', 2, options => '[]'", "22023"),
        ("'svm', 2, options => '{\"l3\": 1}'", "22023"),
        ("'svm', 2, options => '{\"standardize\": true}'", "22023"),
        ("'svm', 2, options => '{\"index_base\": 0}'", "22023"),
        ("'svm', 2, options => '{\"schedule\": \"theorem1\", \"mu\": 1}'", "0A000"),
        ("'svm', 2, classes => 3", "22023"),
        ("'softmax', 2", "22004"),
        ("'softmax', 2, classes => 1", "22023"),
        ("'softmax', 2, classes => 10001", "22023"),
        ("'softmax', 2000000000, classes => 10000", "54000"),
        ("'svm', 2147483647", "54000"),
    ] {
        db.fails_with(&format!("SELECT corgipile_sgd_init({arguments})"), code);
    }
}

#[test]
fn text_that_is_no_state_is_an_error() {
    let mut db = Database::new();
    for text in ["", "sgd1:", "sgd1:AAAA", "sgd2:AAAA", "sgd1:A", "sgd1:AA==", "{1,2}", "sgd1:\u{e4}\u{f6}"] {
        db.fails_with(&format!("SELECT '{text}'::corgipile.sgd_state"), "22P02").says(&["sgd_state"]);
    }
}

/// A state that is still in its epoch, or not, of every kind.
const STATES: &str = "
    CREATE TABLE states AS
    SELECT s.state FROM corgipile_sgd_init('softmax', 3, 0.1, '{\"optimizer\": \"adam\", \"batch_size\": 4}', 3) s(state)
    UNION ALL
    SELECT corgipile_sgd_agg(s, i % 2 * 2 - 1, ARRAY[i, 1]) FROM corgipile_sgd_init('logistic', 2) s, generate_series(1, 5) i
    UNION ALL
    SELECT corgipile.sgd_transition(NULL, corgipile_sgd_init('linear', 2, 0.1, '{\"l2\": 0.1}', sparse => true),
                                    1, ARRAY[1, 2], ARRAY[3, 4]);";

#[test]
fn damaged_states_never_crash_the_server() {
    let mut db = Database::new();
    db.run(STATES);
    // Every byte of every state replaced, and every length cut: refused, or a state that can be used or fails in order.
    db.run(
        "CREATE FUNCTION use(state corgipile.sgd_state) RETURNS text LANGUAGE plpgsql AS $$
         DECLARE s corgipile.sgd_state; BEGIN
           PERFORM state::text, corgipile_sgd_weights(state), corgipile_sgd_intercepts(state), corgipile_sgd_report(state);
           BEGIN s := corgipile.sgd_transition(state, state, 1, ARRAY[1, 2]); EXCEPTION WHEN OTHERS THEN NULL; END;
           BEGIN s := corgipile.sgd_transition(NULL, state, 1, ARRAY[1, 2, 3]); EXCEPTION WHEN OTHERS THEN NULL; END;
           BEGIN s := corgipile.sgd_transition(state, state, 1, ARRAY[1, 2], ARRAY[1, 2]); EXCEPTION WHEN OTHERS THEN NULL; END;
           BEGIN s := corgipile.sgd_combine(state, state); EXCEPTION WHEN OTHERS THEN NULL; END;
           BEGIN s := corgipile.sgd_final(state); EXCEPTION WHEN OTHERS THEN NULL; END;
           RETURN 'used';
         EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;
         CREATE FUNCTION damaged(bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN RETURN use(('sgd1:' || rtrim(replace(encode(bytes, 'base64'), E'\\n', ''), '='))::corgipile.sgd_state);
         EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;",
    );
    let outcomes = db.lines(
        "SELECT DISTINCT damaged(set_byte(b, i, (get_byte(b, i) + d) & 255))
           FROM (SELECT corgipile.sgd_state_send(state) AS b FROM states) s, generate_series(0, length(b) - 1) i,
                unnest(ARRAY[1, 127, 128, 255]) d
         UNION
         SELECT damaged(substr(b, 1, i)) FROM (SELECT corgipile.sgd_state_send(state) AS b FROM states) s,
                generate_series(0, length(b) - 1) i
         UNION
         SELECT damaged(b || '\\x00') FROM (SELECT corgipile.sgd_state_send(state) AS b FROM states) s
         ORDER BY 1",
    );
    for outcome in &outcomes {
        assert!(["used", "22P02", "22003", "53200"].contains(&outcome.as_str()), "{outcomes:?}");
    }
    assert_eq!(db.lines("SELECT DISTINCT damaged(corgipile.sgd_state_send(state)) FROM states"), ["used"]);
}

/// The state of a model of many weights takes seconds to be made and written: it can be stopped at any moment.
#[test]
fn a_large_state_is_stopped_by_a_timeout_and_one_without_a_text_is_refused() {
    let mut db = Database::new();
    db.run("SET statement_timeout = '300ms'");
    let large = "corgipile_sgd_init('softmax', 134000, classes => 1000)";
    for sql in [format!("SELECT {large}"), format!("SELECT length({large}::text)")] {
        db.fails_with(&sql, "57014");
    }
    db.run("SET statement_timeout = '60s'");
    // a state whose text PostgreSQL has no memory for could be neither read nor dumped
    let adam = "SELECT corgipile_sgd_init('softmax', 60000, options => '{\"optimizer\": \"adam\"}', classes => 1000)";
    db.fails_with(adam, "54000").says(&["exceeds PostgreSQL's limit for a value"]);
    // as many weights as fit an array of PostgreSQL's, which was built element by element once
    let weights = "SELECT cardinality(corgipile_sgd_weights(corgipile_sgd_init('softmax', 70000, classes => 1000)))";
    assert_eq!(db.line(weights), "70000000");
}
