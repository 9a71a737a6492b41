//! Training by several processes: what each learns from, its outcome together, and how it ends.

use corgipile_tests::{Database, Model, Session, assert_close, clustered, in_several_buffers, log, sample};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than any stop may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

const ENDLESS: &str = "SELECT * FROM corgipile_train('t', max_epochs => 1000000, workers => 3)";

/// Trains, and asserts that this many processes have done it.
fn trained_by(db: &mut Session, processes: u32, arguments: &str) -> Model {
    let model = db.trained(&in_several_buffers(arguments));
    assert_eq!(db.processes_of(model.id), processes, "{arguments}");
    model
}

#[test]
fn a_seed_and_a_number_of_processes_fix_the_model() {
    let mut db = Database::new();
    clustered(&mut db, "t", 6000);
    let all = ["{}", r#"{"batch_size": 7, "optimizer": "adam"}"#, r#"{"batch_size": 64}"#, r#"{"l1": 0.001}"#];
    for options in &all[..sample(4, 2)] {
        let training = format!("'t', max_epochs => 3, seed => 5, options => '{options}'");
        let alone = db.trained(&in_several_buffers(&training)).bits();
        let mut different = vec![alone.clone()];
        assert_eq!(trained_by(&mut db, 1, &format!("{training}, workers => 1")).bits(), alone, "{options}");
        for processes in [2, 3, 4] {
            let together = format!("{training}, workers => {processes}");
            let first = trained_by(&mut db, processes, &together).bits();
            assert_eq!(trained_by(&mut db, processes, &together).bits(), first, "{options}, {processes} processes");
            different.push(first);
        }
        different.sort();
        different.dedup();
        assert_eq!(different.len(), 4, "{options}: each number of processes has an order of its own");
    }
}

#[test]
fn every_row_is_learned_from_once_per_epoch_however_it_is_dealt() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    // blocks of all sizes, some of them empty
    db.run("DELETE FROM t WHERE id % 7 = 0 OR id BETWEEN 1000 AND 1600; ALTER TABLE t ADD w real DEFAULT 1");
    let count: i64 = db.value("SELECT count(*) FROM t");
    let odd: i64 = db.value("SELECT count(*) FROM t WHERE id % 2 = 1");
    for (source, rows) in [("t", count), ("SELECT label, features_v FROM t WHERE id % 2 = 1", odd)] {
        for options in ["{}", r#"{"batch_size": 10}"#, r#"{"batch_size": 3, "standardize": true}"#] {
            let readings = ["block_size => '32kB', buffer_size => '40%',", "", "buffer_size => '100%',"];
            for reading in &readings[..sample(3, 1)] {
                for processes in &[5, 2][..sample(2, 1)] {
                    let arguments = format!(
                        "'{source}', features => '{{features_v}}', max_epochs => 3, {reading} options => '{options}',
                         workers => {processes}"
                    );
                    let epochs = db.train(&arguments);
                    assert!(epochs.iter().all(|e| e.tuples == rows), "{arguments}: {epochs:?}");
                    assert!(epochs.iter().all(|e| e.accuracy.unwrap() > 0.5 && e.loss.is_finite()), "{epochs:?}");
                }
            }
        }
    }
    // each process's part of the buffer's memory holds less than its blocks
    db.run("SET corgipile.max_buffer_memory = '64kB'");
    for options in ["{}", r#"{"batch_size": 10}"#] {
        let epochs = db.train(&format!(
            "'t', features => '{{features_v}}', buffer_size => '50%', block_size => '80kB', options => '{options}',
             max_epochs => 3, workers => 2"
        ));
        assert!(epochs.iter().all(|e| e.tuples == count), "{epochs:?}");
    }
}

#[test]
fn skipped_rows_are_those_of_all_processes() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    db.run("UPDATE t SET label = NULL WHERE id % 10 = 3");
    let epochs = db.train("'t', max_epochs => 2, options => '{\"nulls\": \"skip\"}', workers => 3");
    assert!(epochs.iter().all(|e| e.tuples == 3600), "{epochs:?}");
    assert_eq!(db.value::<i64>("SELECT skipped FROM corgipile.models"), 400);
}

/// If a mini-batch is the whole table, an order is no matter: what several processes learn is what one learns, but for
/// the sequence in which numbers are added up.
#[test]
fn a_mini_batch_is_that_of_a_single_process() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, y AS label, (ARRAY['one', 'two', 'three'])[1 + (2 * uniform(i, 5))::int] AS class,
                (ARRAY['red', 'green', 'blue'])[1 + (2 * uniform(i, 6) * (1 + y) / 2)::int] AS colour,
                3 + y + normal(i, 1) AS a, 2 * normal(i, 2) - y AS b, uniform(i, 7)::real AS w,
                ARRAY[normal(i, 1) + y, normal(i, 2), 5 + normal(i, 3)]::real[] AS x,
                ARRAY[1 + i % 50, 60 + i % 3]::int[] AS k, ARRAY[normal(i, 1) + y, 1]::real[] AS v
         FROM (SELECT i, (uniform(i, 0) < 0.4)::int AS y FROM generate_series(1, 3000::bigint) i) r",
    );
    let whole = r#""batch_size": 5000"#;
    for (model, label, features, options) in [
        ("logistic", "label", "{x}", "".to_owned()),
        ("svm", "label", "{x}", r#", "optimizer": "momentum""#.to_owned()),
        ("linear", "a", "{x}", r#", "weight": "w""#.to_owned()),
        ("softmax", "class", "{x}", r#", "optimizer": "adam", "l2": 0.01"#.to_owned()),
        ("logistic", "label", "{x}", r#", "standardize": true, "class_weight": "balanced""#.to_owned()),
        ("svm", "class", "{x}", r#", "class_weight": {"one": 3}"#.to_owned()),
        ("logistic", "label", "{a,b}", r#", "l1": 0.01"#.to_owned()),
        ("softmax", "class", "{colour,a,b}", r#", "standardize": true"#.to_owned()),
        ("logistic", "label", "{k,v}", "".to_owned()),
        ("linear", "a", "{k,v}", r#", "optimizer": "adam", "l1": 0.001"#.to_owned()),
        // steps that are shorter than the loss allows, of which each process measures its own tuples
        ("logistic", "label", "{k,v}", r#", "schedule": "theorem1", "mu": 0.1, "a": 600"#.to_owned()),
    ] {
        let source = if model == "svm" && label == "class" { "SELECT * FROM t WHERE class <> 'three'" } else { "t" };
        let as_it_is = if options.contains("standardize") { "" } else { r#", "standardize": false"# };
        let training = format!(
            "$q${source}$q$, '{model}', label => '{label}', features => '{features}', max_epochs => 5, seed => 3,
             learning_rate => 0.1, options => '{{{whole}{options}{as_it_is}}}'"
        );
        // whose rates depend on how large buffers are
        let training = match options.contains("theorem1") {
            true => training.replace("learning_rate => 0.1", "buffer_size => '100%'"),
            false => training,
        };
        let alone = db.trained(&in_several_buffers(&training));
        for processes in [2, 3] {
            let together = trained_by(&mut db, processes, &format!("{training}, workers => {processes}"));
            // adam divides by the root of squares: what is lost of a gradient near 0 by rounding comes to much more
            let tolerance = if options.contains("adam") { 5e-3 } else { 1e-4 };
            assert_close(&together.parameters(), &alone.parameters(), tolerance);
            let same = db.line(&format!(
                "SELECT count(DISTINCT (classes, categories, features, feature_kind, index_base, feature_mean)) FROM corgipile.models
                 WHERE model_id IN ({}, {})", alone.id, together.id
            ));
            assert_eq!(same, "1", "{training}");
        }
    }
}

#[test]
fn several_processes_reach_the_accuracy_of_one() {
    let mut db = Database::new();
    clustered(&mut db, "t", 30_000);
    let all = [r#"{"batch_size": 64}"#, "{}", r#"{"batch_size": 256}"#];
    for options in &all[..sample(3, 1)] {
        let rate = if *options == "{}" { "0.005" } else { "0.1" };
        // over several seeds, because the last steps of an epoch move the accuracy by as much
        let mut accuracy = |processes: u32| {
            let mut of_seed = |seed| {
                let training = format!(
                    "'t', max_epochs => 6, seed => {seed}, learning_rate => {rate}, options => '{options}',
                     workers => {processes}"
                );
                let id = trained_by(&mut db, processes, &training).id;
                db.evaluate(id, "t").accuracy
            };
            (1..=4).map(&mut of_seed).sum::<f64>() / 4.0
        };
        let alone = accuracy(1);
        for processes in [2, 4] {
            let together = accuracy(processes);
            assert!((together - alone).abs() < 0.003, "{options}, {processes} processes: {together} for {alone}");
        }
    }
}

#[test]
fn classes_are_told_apart_whoever_meets_them_first() {
    let mut db = Database::new();
    clustered(&mut db, "t", 6000);
    db.run("ALTER TABLE t ADD word text; UPDATE t SET word = CASE label WHEN 1 THEN 'a' ELSE 'b' END");
    db.run("VACUUM FULL t");
    for seed in 1..6 {
        let model = trained_by(
            &mut db,
            3,
            &format!(
                "'t', label => 'word', features => '{{features_v}}', seed => {seed}, max_epochs => 3, workers => 3"
            ),
        );
        let right = db.value::<f64>(&format!(
            "SELECT avg((corgipile_predict_label({}, features_v) = word)::int)::float8 FROM t",
            model.id
        ));
        assert!(right > 0.7, "seed {seed}: {right}");
    }
}

#[test]
fn fewer_processes_than_asked_for_are_noticed_and_recorded() {
    let mut db = Database::new();
    clustered(&mut db, "t", 6000);
    let training = "'t', 'logistic', max_epochs => 2, seed => 1, buffer_size => '50%', learning_rate => 0.01, standardize => false";
    let alone = db.trained(training).bits();
    let two = trained_by(&mut db, 2, &format!("{training}, workers => 2")).bits();
    let told = |db: &Database, setting: &str, more: &str| {
        db.notices(&[&format!("{setting}; SELECT FROM corgipile_train({training}{more})")])
    };
    assert_eq!(told(&db, "SET jit = off", ", workers => 3"), "");
    let notice = told(&db, "SET max_parallel_workers = 0", ", workers => 3");
    assert!(
        notice.contains("NOTICE:  the model is trained by 1 of 3 requested processes: max_parallel_workers is 0")
            && notice.contains("HINT:  The model depends on the number of workers"),
        "{notice}"
    );
    let notice = told(&db, "SET jit = off", ", workers => 64, block_size => '80kB'");
    assert!(notice.contains("of 64 requested processes: the buffer has no more blocks"), "{notice}");

    db.run("SET max_parallel_workers = 0");
    assert_eq!(trained_by(&mut db, 1, &format!("{training}, workers => 3")).bits(), alone);
    // one worker for the whole server: another test may have it
    db.run("SET max_parallel_workers = 1");
    let model = db.trained(&format!("{training}, workers => 3"));
    let by = db.processes_of(model.id);
    assert_eq!(model.bits(), if by == 2 { two } else { alone }, "{by} processes");
}

#[test]
fn what_workers_cannot_read_is_trained_on_by_one_process() {
    let mut db = Database::with_small_table(3000);
    db.run(
        "CREATE TABLE parts (LIKE t) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF parts FOR VALUES FROM (1) TO (1000);
         CREATE TABLE high PARTITION OF parts FOR VALUES FROM (1000) TO (9999);
         INSERT INTO parts SELECT * FROM t;
         CREATE FUNCTION unsafe(int) RETURNS boolean IMMUTABLE PARALLEL UNSAFE LANGUAGE plpgsql AS 'BEGIN RETURN $1 > 0; END'",
    );
    let features = "features => '{a,b,c}', max_epochs => 1, learning_rate => 0.001, buffer_size => '50%', workers => 2";
    for (before, source, why) in [
        ("CREATE TEMPORARY TABLE mine AS SELECT * FROM t", "mine", "temporary table"),
        ("", "SELECT * FROM t WHERE unsafe(id)", "the source is not parallel safe"),
        ("", "SELECT t.* FROM t JOIN parts u USING (id)", "the source is not a plain table"),
        ("", "SELECT * FROM t ORDER BY id", "the source is not a plain table"),
    ] {
        let notice = db.notices(&[&format!("{before}; SELECT FROM corgipile_train('{source}', {features})")]);
        assert!(notice.contains(&format!("by 1 of 2 requested processes: {why}")), "{source}: {notice}");
    }
    db.run("CREATE VIEW v AS SELECT id, label, a, b, c FROM t WHERE a > -100");
    for source in ["v", "parts", "SELECT label, a, b + 1 AS b, c FROM t WHERE id < 2900", "TABLE t"] {
        trained_by(&mut db, 2, &format!("'{source}', {features}"));
    }
}

#[test]
fn what_does_not_go_with_workers_is_refused() {
    let mut db = Database::with_small_table(1000);
    for strategy in ["no_shuffle", "block_only", "sliding_window", "mrs", "shuffle_once", "epoch_shuffle"] {
        db.rejects(&format!("SELECT corgipile_train('t', shuffle => '{strategy}', workers => 2)"), "0A000")
            .says(&["several processes cannot train", strategy])
            .hints(&["shuffle => 'corgipile'", "workers => 1"]);
        db.train(&format!("'t', shuffle => '{strategy}', max_epochs => 1, workers => 1"));
    }
    for workers in ["0", "-1", "65", "2147483647"] {
        db.rejects(&format!("SELECT corgipile_train('t', workers => {workers})"), "22023")
            .says(&[workers, "between 1 and 64"]);
    }
    db.run("CREATE TABLE empty (LIKE t)");
    db.rejects("SELECT * FROM corgipile_train('empty', workers => 2)", "22000");
    db.run("CREATE TABLE same AS SELECT 1 AS label, id, a, b FROM t");
    db.rejects("SELECT * FROM corgipile_train('same', workers => 2)", "22000");
}

#[test]
fn an_error_in_any_process_is_that_of_the_statement_and_nobody_stays() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    // wherever the row lies, one process or the other meets it
    for id in [1, 700, 1400, 2100, 2800, 4000] {
        let ctid = db.line(&format!("SELECT ctid FROM t WHERE id = {id}"));
        db.run("BEGIN");
        db.run(&format!("UPDATE t SET label = NULL WHERE id = {id}"));
        let moved = db.line(&format!("SELECT ctid FROM t WHERE id = {id}"));
        db.run("SAVEPOINT s");
        let failure = db.fails_with(
            "SELECT * FROM corgipile_train('t', workers => 3, options => '{\"nulls\": \"error\"}')",
            "22004",
        );
        failure.says(&[&moved]).hints(&["nulls"]);
        db.run("ROLLBACK TO s");
        assert!(db.parallel_workers().is_empty());
        trained_by(&mut db, 3, "'t', max_epochs => 1, options => '{\"nulls\": \"skip\"}', workers => 3");
        db.run("ROLLBACK");
        assert_eq!(db.line(&format!("SELECT ctid FROM t WHERE id = {id}")), ctid);
    }
    db.run("UPDATE t SET label = 2 WHERE id IN (5, 3995)");
    db.rejects("SELECT * FROM corgipile_train('t', 'logistic', workers => 3)", "22000")
        .says(&["more than two values"])
        .hints(&["softmax"]);
    db.run("UPDATE t SET label = 0 WHERE label = 2; UPDATE t SET features_v = '{1,2}' WHERE id = 3000");
    db.rejects("SELECT * FROM corgipile_train('t', workers => 3)", "2202E");
    db.run("UPDATE t SET features_v = '{1e30,1e30,1,1,1}' WHERE id = 3000");
    for options in ["{}", r#"{"batch_size": 32}"#] {
        let training = format!("'t', 'linear', learning_rate => 1e6, options => '{options}', workers => 3");
        let failure = db.rejects(&format!("SELECT * FROM corgipile_train({training})"), "22003");
        failure.says(&["diverged in epoch"]);
    }
    // in a subtransaction of PL/pgSQL
    db.run(
        "DO $$ BEGIN
             BEGIN PERFORM corgipile_train('t', 'linear', learning_rate => 1e6, workers => 2);
             EXCEPTION WHEN numeric_value_out_of_range THEN NULL; END;
             PERFORM corgipile_train('t', max_epochs => 1, learning_rate => 1e-9, workers => 2, name => 'after');
         END $$",
    );
    assert!(db.parallel_workers().is_empty());
    assert_eq!(db.line("SELECT name, hyperparameters->>'workers' FROM corgipile.models"), "after|2");
}

/// Runs a statement in another session until `stop` has ended it; gives its SQLSTATE.
pub(super) fn stopped(db: &mut Database, sql: &str, stop: impl FnOnce(&mut Database, i32)) -> String {
    let mut session = db.session();
    let pid = session.pid();
    let sql = sql.to_owned();
    let thread =
        std::thread::spawn(move || session.attempt(&sql).map_or_else(|failure| failure.code, |_| "00000".into()));
    db.wait_for_parallel_workers(2);
    sleep(Duration::from_millis(100));
    stop(db, pid);
    let deadline = Instant::now() + PATIENCE;
    while !thread.is_finished() {
        assert!(Instant::now() < deadline, "the statement does not stop");
        sleep(Duration::from_millis(5));
    }
    db.wait_for_parallel_workers(0);
    assert_eq!(db.models(), 0);
    let complaints: Vec<_> = log(db.name())
        .into_iter()
        .filter(|line| line.contains("WARNING") || line.contains("PANIC") || line.contains("panicked"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    thread.join().expect("the session's thread does not panic")
}

#[test]
fn cancel_and_termination_of_any_process_end_all() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let batches = ENDLESS.replace("workers", "options => '{\"batch_size\": 50}', workers");
    let wide = ENDLESS.replace("workers", "buffer_size => '100%', workers");
    for sql in [ENDLESS, &batches, &wide] {
        let code = stopped(&mut db, sql, |db, pid| db.run(&format!("SELECT pg_cancel_backend({pid})")));
        assert_eq!(code, "57014", "{sql}");
        let code = stopped(&mut db, sql, |db, pid| db.run(&format!("SELECT pg_terminate_backend({pid})")));
        assert!(code == "57P01" || code == "closed", "{sql}: {code}");
        let code = stopped(&mut db, sql, |db, pid| {
            db.run(&format!(
                "SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity WHERE leader_pid = {pid} AND pid <> {pid}"
            ));
        });
        assert!(["57P01", "08006", "55000"].contains(&code.as_str()), "{sql}: {code}");
    }
    db.run("SET statement_timeout = '300ms'");
    db.fails_with(ENDLESS, "57014");
    db.run("RESET statement_timeout");
    db.wait_for_parallel_workers(0);
    trained_by(&mut db, 2, "'t', max_epochs => 1, workers => 2");
}

#[test]
fn all_processes_see_what_the_statement_sees_and_nothing_else() {
    let mut db = Database::with_small_table(3000);
    let user = db.role("user");
    db.run(&format!(
        "GRANT SELECT ON t TO {user}; ALTER TABLE t ENABLE ROW LEVEL SECURITY;
         CREATE POLICY odd ON t USING (id % 2 = 1 AND current_user = '{user}' AND current_setting('my.setting') = 'on')"
    ));
    let mut session = db.session_as(&user);
    let training = "'t', features => '{a,b,c}', max_epochs => 2, buffer_size => '50%', workers => 3";
    session.run("SET my.setting = 'on'");
    let id = trained_by(&mut session, 3, training).id;
    let tuples = |db: &mut Session, id: i64| -> i64 {
        db.value(&format!("SELECT min((e->>'tuples')::bigint) FROM corgipile.models, jsonb_array_elements(history::jsonb) e WHERE model_id = {id}"))
    };
    assert_eq!(tuples(&mut session, id), 1500);
    db.run(&format!("REVOKE SELECT ON t FROM {user}"));
    session.rejects(&format!("SELECT * FROM corgipile_train({training})"), "42501");

    // what this transaction has done, and others have not committed
    let mut other = db.session();
    other.run("BEGIN; INSERT INTO t SELECT i + 100000, 1, 1, 1, 1 FROM generate_series(1, 500) i; DELETE FROM t WHERE id < 300");
    db.run(
        "BEGIN; INSERT INTO t SELECT i + 200000, i % 2, 1, 1, 1 FROM generate_series(1, 700) i;
            SAVEPOINT s; DELETE FROM t WHERE id BETWEEN 1001 AND 1100",
    );
    let id = trained_by(&mut db, 3, training).id;
    assert_eq!(tuples(&mut db, id), 3600);
    db.run("CREATE TABLE fresh AS SELECT * FROM t");
    let id = trained_by(&mut db, 3, &training.replace("'t'", "'fresh'")).id;
    assert_eq!(tuples(&mut db, id), 3600);
    db.run("COMMIT");
    other.run("ROLLBACK");
}

#[test]
fn explain_shows_the_processes() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    // without a pass for means, which the leader would make alone
    let options = "nulls => 'error', learning_rate => 0.01, standardize => false";
    let sql = format!("SELECT * FROM corgipile_train('t', max_epochs => 2, seed => 1, workers => 3, {options})");
    let has = |plan: &[String], wanted: &str| plan.iter().any(|line| line.trim() == wanted);
    let plan = db.lines(&format!("EXPLAIN {sql}"));
    assert!(has(&plan, "Processes: 3") && has(&plan, "Workers Planned: 2"), "{plan:#?}");
    assert!(!plan.iter().any(|line| line.contains("Launched")), "{plan:#?}");
    let plan = db.lines(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}"));
    assert!(
        has(&plan, "Processes: 3") && has(&plan, "Workers Planned: 2") && has(&plan, "Workers Launched: 2"),
        "{plan:#?}"
    );
    assert!(has(&plan, "Tuples: 10000"), "{plan:#?}");
    // both epochs of all processes
    let nodes: Vec<_> = plan.iter().filter(|line| line.contains("Shuffle)")).collect();
    assert!(nodes.len() == 2 && nodes.iter().all(|line| line.contains("loops=6")), "{plan:#?}");
    db.run("SET max_parallel_workers = 0");
    let plan = db.lines(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}"));
    assert!(
        has(&plan, "Processes: 1") && has(&plan, "Workers Planned: 2") && has(&plan, "Workers Launched: 0"),
        "{plan:#?}"
    );
    let plan = db.lines("EXPLAIN SELECT * FROM corgipile_train('t')");
    assert!(!plan.iter().any(|line| line.contains("Workers") || line.contains("Processes")), "{plan:#?}");
}

#[test]
fn training_together_works_wherever_training_works() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    let expected =
        trained_by(&mut db, 2, "'t', max_epochs => 2, seed => 9, workers => 2, buffer_size => 'auto'").bits();
    let same = |db: &mut Database, sql: &str| {
        db.run(sql);
        let id = db.value("SELECT max(model_id) FROM corgipile.models");
        assert_eq!(db.model(id).bits(), expected, "{sql}");
    };
    same(&mut db, "SELECT corgipile_train('t', max_epochs => 2, seed => 9, workers => 2)");
    same(
        &mut db,
        "PREPARE p(int) AS SELECT * FROM corgipile_train('t', max_epochs => 2, seed => 9, workers => $1); EXECUTE p(2)",
    );
    same(
        &mut db,
        "BEGIN; DECLARE c CURSOR FOR SELECT * FROM corgipile_train('t', max_epochs => 2, seed => 9, workers => 2);
                   FETCH 1 FROM c; FETCH ALL FROM c; COMMIT",
    );
    same(&mut db, "DO 'BEGIN PERFORM * FROM corgipile_train(''t'', max_epochs => 2, seed => 9, workers => 2); END'");
    same(
        &mut db,
        "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM corgipile_train('t', max_epochs => 2, seed => 9, workers => 2); COMMIT",
    );
    same(
        &mut db,
        "SET enable_seqscan = off; SET max_parallel_workers_per_gather = 4; SET parallel_setup_cost = 0;
                   CREATE TABLE rows AS SELECT * FROM corgipile_train('t', max_epochs => 2, seed => 9, workers => 2)",
    );
}
