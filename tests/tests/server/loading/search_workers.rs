//! Searches by several processes: what they find is bit for bit what one process finds, and how they end.

use super::workers::stopped;
use corgipile_tests::{Database, Session, clustered, log};

/// 9000 rows, sorted by `positive`, with numbers that look random next to.
fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT i::int AS id, i > 6300 AS positive, i % 10 AS site, '2024-01-01'::date + i / 20 AS day,
                (ARRAY['ant', 'bee', 'cat'])[1 + i % 3] AS animal, normal(i, 4) AS target, (1 + i % 2)::real AS weight,
                nullif(i % 7, 0)::real AS gap, i % 5 = 0 AS test, '{1,3}'::int[] AS k,
                ARRAY[(i > 6300)::int + normal(i, 1), (i % 3) + normal(i, 2), 2 * normal(i, 3)]::real[] AS x,
                ARRAY[(i > 6300)::int + normal(i, 1), normal(i, 2)]::real[] AS v
           FROM generate_series(1, 9000) i;
         ANALYZE t",
    );
}

/// All that a search says, and the model that it stores.
fn found(db: &mut Session, arguments: &str) -> (Vec<String>, Vec<u8>) {
    let rows = db.column::<String>(&format!(
        "WITH found AS MATERIALIZED (SELECT * FROM corgipile_search({arguments}))
         SELECT (rank, grid_point, mean_test_score, std_test_score, mean_test_loss, fold_scores, epochs, model_id IS NULL)::text FROM found
          ORDER BY rank"
    ));
    let id = db.value("SELECT max(model_id) FROM corgipile.models");
    (rows, format!("{:?}", db.model(id).bits()).into_bytes())
}

/// How many processes have searched.
fn processes(db: &mut Session, arguments: &str) -> u32 {
    let plan = db.lines(&format!("EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM corgipile_search({arguments})"));
    let line = plan.iter().find_map(|line| line.trim().strip_prefix("Processes: ")).unwrap_or("1");
    line.parse().unwrap()
}

/// Asserts that two processes and three find what one does.
fn assert_same(db: &mut Session, arguments: &str) {
    let alone = found(db, &format!("{arguments}, workers => 1"));
    for workers in [2, 3] {
        let together = found(db, &format!("{arguments}, workers => {workers}"));
        assert_eq!(together.0, alone.0, "{workers} processes: {arguments}");
        assert!(together.1 == alone.1, "{workers} processes store another model: {arguments}");
    }
    assert_eq!(processes(db, &format!("{arguments}, workers => 3")), 3, "{arguments}");
}

#[test]
fn any_number_of_processes_finds_the_same_with_every_strategy() {
    let mut db = Database::new();
    table(&mut db);
    for strategy in ["corgipile", "block_only", "no_shuffle", "shuffle_once", "epoch_shuffle"] {
        let more = "trials => 8, max_epochs => 3, seed => 3, buffer_size => '30%', block_size => '16kB'";
        assert_same(
            &mut db,
            &format!("'t', label => 'positive', features => '{{x}}', {more}, shuffle => '{strategy}'"),
        );
    }
}

#[test]
fn any_number_of_processes_finds_the_same_with_every_kind_of_model() {
    let mut db = Database::new();
    table(&mut db);
    for (model, label, features, more) in [
        ("mlp", "animal", "{x}", r#"grid => '{"hidden_layer_sizes": [[3], [8, 4]], "l2": [0, 0.001]}'"#),
        ("mlp", "target", "{x}", r#"trials => 3, options => '{"objective": "regression"}'"#),
        ("softmax", "animal", "{x}", "trials => 4"),
        ("svm", "animal", "{x}", "trials => 4"),
        ("svm", "positive", "{x}", r#"grid => '{"batch_size": [1, 16], "l2": [0, 0.001]}'"#),
        ("linear", "target", "{x}", r#"trials => 9, scoring => 'loss', options => '{"optimizer": "momentum"}'"#),
        ("logistic", "positive", "{k,v}", "trials => 4"),
        ("logistic", "positive", "{x}", r#"grid => '{"l2": [0, 0.1, 1]}', options => '{"solver": "newton"}'"#),
        ("logistic", "positive", "{animal,gap}", r#"trials => 4, options => '{"nulls": "impute"}'"#),
        (
            "logistic",
            "positive",
            "{x}",
            r#"trials => 9, options => '{"weight": "weight", "class_weight": "balanced"}'"#,
        ),
        ("logistic", "positive", "{x}", r#"trials => 9, standardize => false, learning_rate => 0.01"#),
    ] {
        assert_same(&mut db, &format!("'t', '{model}', '{label}', '{features}', max_epochs => 2, seed => 7, {more}"));
    }
    db.run("SELECT * FROM corgipile_compress('t', 'c', label => 'positive', features => '{x}', batch_rows => 50, seed => 1)");
    assert_same(&mut db, "'c', label => 'positive', seed => 3, trials => 3, max_epochs => 3, learning_rate => 0.1");
}

#[test]
fn any_number_of_processes_finds_the_same_whatever_the_folds() {
    let mut db = Database::new();
    table(&mut db);
    for more in [
        "folds => 7",
        "folds => 3, stratify => false",
        "folds_by => 'site'",
        "folds_by => 'id'",
        "folds_by_time => 'day'",
        "validation_fraction => 0.25",
        r#"options => '{"validation_column": "test"}'"#,
        r#"standardize => false, learning_rate => 0.01, options => '{"nulls": "error", "validation_column": "test"}'"#,
        r#"validation_fraction => 0.25, options => '{"validation_by": "block"}'"#,
        r#"patience => 1, options => '{"tolerance": 0.01}'"#,
        r#"options => '{"keep": "best"}'"#,
        "sample => 0.5",
    ] {
        let call = "'t', label => 'positive', features => '{x}', seed => 5, max_epochs => 6, block_size => '16kB'";
        assert_same(&mut db, &format!("{call}, trials => 40, {more}"));
    }
}

#[test]
fn a_point_that_diverges_in_one_process_is_given_up_in_all() {
    let mut db = Database::new();
    table(&mut db);
    db.run("UPDATE t SET target = 1e18 WHERE id = 4000");
    let rates = r#"grid => '{"learning_rate": [1e-6, 1e-5, 1e30, 1e29]}', options => '{"bounded_steps": false}'"#;
    for batch_size in [1, 4] {
        let more = format!("batch_size => {batch_size}, standardize => false, max_epochs => 3, seed => 2");
        let call = format!("'t', 'linear', 'target', '{{x}}', {rates}, folds => 10, {more}");
        assert_same(&mut db, &call);
        let diverged: i64 = db.value(&format!(
            "SELECT count(*) FROM corgipile_search({call}, workers => 3) WHERE mean_test_score IS NULL AND fold_scores = array_fill(NULL::float8, '{{10}}')"
        ));
        assert_eq!(diverged, 2, "{batch_size}");
    }
}

#[test]
fn the_best_point_is_trained_as_without_workers() {
    let mut db = Database::new();
    table(&mut db);
    let call = "'t', label => 'positive', features => '{x}', seed => 5, max_epochs => 3, buffer_size => '30%'";
    let (rows, model) = found(&mut db, &format!("{call}, trials => 8, workers => 3"));
    assert!(rows.len() == 8);
    let point: String = db.value(
        "SELECT jsonb_object_agg(key, value)::text
           FROM (SELECT * FROM corgipile.models ORDER BY model_id DESC LIMIT 1) AS last, jsonb_each(hyperparameters::jsonb)
          WHERE key IN ('l2', 'learning_rate', 'decay', 'averaging', 'bounded_steps')",
    );
    let alone = db.trained(&format!("{call}, options => '{point}'")).bits();
    assert!(format!("{alone:?}").into_bytes() == model);
    let recorded: String =
        db.value("SELECT string_agg(DISTINCT hyperparameters->>'workers', ' ') FROM corgipile.models");
    assert_eq!(recorded, "1");
}

#[test]
fn fewer_processes_than_asked_for_are_told_and_find_the_same() {
    let mut db = Database::new();
    table(&mut db);
    let call = "'t', label => 'positive', features => '{x}', seed => 5, max_epochs => 2";
    let told = |db: &Database, setting: &str, more: &str| {
        db.notices(&[&format!(
            "{setting}; SELECT FROM corgipile_search({call}, learning_rate => 0.01, standardize => false{more})"
        )])
    };
    // 100 models are seven panels
    assert_eq!(told(&db, "SET jit = off", ", workers => 3"), "");
    let notice = told(&db, "SET jit = off", ", workers => 8");
    assert!(
        notice.contains("the search runs in 7 of 8 processes: more processes would have nothing to do"),
        "{notice}"
    );
    let notice = told(&db, "SET jit = off", ", workers => 2, trials => 3");
    assert!(
        notice.contains("the search runs in 1 of 2 processes: more processes would have nothing to do"),
        "{notice}"
    );
    let notice = told(&db, "SET max_parallel_workers = 0", ", workers => 3");
    assert!(
        notice.contains("NOTICE:  the search runs in 1 of 3 processes: max_parallel_workers is 0")
            && notice.contains("HINT:  The result is the same with any number of workers."),
        "{notice}"
    );
    let alone = found(&mut db, call);
    // one worker for the whole server: another test may have it
    for setting in ["max_parallel_workers = 0", "max_parallel_workers = 1"] {
        db.run(&format!("SET {setting}"));
        assert!(found(&mut db, &format!("{call}, workers => 4")) == alone, "{setting}");
    }
}

#[test]
fn what_workers_cannot_read_is_searched_by_one_process() {
    let mut db = Database::new();
    table(&mut db);
    db.run(
        "CREATE TABLE parts (LIKE t) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF parts FOR VALUES FROM (1) TO (4000);
         CREATE TABLE high PARTITION OF parts FOR VALUES FROM (4000) TO (19999);
         INSERT INTO parts SELECT * FROM t;
         CREATE VIEW two_thirds AS SELECT id, positive, x FROM t WHERE id % 3 > 0;
         CREATE FUNCTION unsafe(int) RETURNS boolean IMMUTABLE PARALLEL UNSAFE LANGUAGE plpgsql AS 'BEGIN RETURN $1 > 0; END'",
    );
    let more = "label => 'positive', features => '{x}', seed => 5, max_epochs => 1, trials => 8";
    for (before, source, why) in [
        ("CREATE TEMPORARY TABLE mine AS SELECT * FROM t", "mine", "temporary table"),
        ("", "SELECT * FROM t WHERE unsafe(id)", "the source is not parallel safe"),
        ("", "SELECT t.* FROM t JOIN parts u USING (id)", "the source is not a plain table"),
        ("", "SELECT * FROM t ORDER BY id", "the source is not a plain table"),
    ] {
        let sql = format!("{before}; SELECT FROM corgipile_search('{source}', {more}, workers => 2)");
        let notice = db.notices(&[&sql]);
        assert!(notice.contains(&format!("in 1 of 2 processes: {why}")), "{source}: {notice}");
    }
    for source in ["parts", "two_thirds", "SELECT id, positive, x FROM t WHERE id < 8000", "TABLE t"] {
        assert_same(&mut db, &format!("'{source}', {more}"));
        assert_same(&mut db, &format!("'{source}', {more}, shuffle => 'shuffle_once'"));
    }
    assert_same(&mut db, &format!("'SELECT t.* FROM t JOIN parts u USING (id)', {more}, shuffle => 'shuffle_once'"));
    // read together with other sessions, the order is that of the group
    assert_eq!(processes(&mut db, &format!("'t', {more}, workers => 3, shared_scan => true")), 3);
}

#[test]
fn an_error_in_any_process_of_a_search_is_that_of_the_statement() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    let search = "SELECT * FROM corgipile_search('t', max_epochs => 2, seed => 1, trials => 8, workers => 3";
    db.run("UPDATE t SET label = NULL WHERE id = 2500");
    let ctid = db.line("SELECT ctid FROM t WHERE id = 2500");
    let plain = "standardize => false, learning_rate => 0.01, validation_fraction => 0.2";
    for more in ["", plain] {
        let sql = format!(
            "{search}, options => '{{\"nulls\": \"error\"}}'{}{more})",
            if more.is_empty() { "" } else { ", " }
        );
        db.rejects(&sql, "22004").says(&[&ctid]).hints(&["nulls"]);
        assert!(db.parallel_workers().is_empty());
    }
    db.run("UPDATE t SET label = 0 WHERE id = 2500; UPDATE t SET label = 2 WHERE id IN (5, 3995)");
    db.rejects(&format!("{search}, model => 'logistic', {plain})"), "22000").says(&["more than two values"]);
    db.run("UPDATE t SET label = 0 WHERE label = 2");
    let diverging = search.replace(
        "trials => 8",
        r#"model => 'linear', standardize => false, grid => '{"learning_rate": [1e30, 1e29, 1e28, 1e27]}'"#,
    );
    db.rejects(&format!("{diverging})"), "22003").says(&["diverged in epoch"]);
    db.run("CREATE TABLE empty (LIKE t)");
    db.rejects(&format!("{})", search.replace("'t'", "'empty'")), "22000");
    // in a subtransaction of PL/pgSQL, and on in the same transaction
    db.run(&format!(
        "DO $$ BEGIN
             BEGIN PERFORM * FROM {};
             EXCEPTION WHEN numeric_value_out_of_range THEN NULL; END;
             PERFORM * FROM corgipile_search('t', max_epochs => 1, trials => 8, workers => 3, name => 'after');
         END $$",
        format!("{diverging})").trim_start_matches("SELECT * FROM ")
    ));
    assert!(db.parallel_workers().is_empty());
    assert_eq!(db.line("SELECT count(*) FROM corgipile.models WHERE name = 'after'"), "1");
}

#[test]
fn cancel_and_termination_of_any_process_end_a_search() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let panels = "SELECT * FROM corgipile_search('t', max_epochs => 1000000, workers => 3)";
    let networks = panels.replace("'t'", "'t', 'mlp', features => '{features_v}', trials => 3");
    // the leader's model ends in no time, and its waits for the workers are ended, too
    let waiting = panels.replace(
        "max_epochs",
        r#"features => '{features_v}', folds => 2, grid => '[{"batch_size": 2, "max_epochs": 1}, {"batch_size": 2}]', max_epochs"#,
    );
    for sql in [panels, &networks, &waiting] {
        let code = stopped(&mut db, sql, |db, pid| db.run(&format!("SELECT pg_cancel_backend({pid})")));
        assert_eq!(code, "57014", "{sql}");
        let code = stopped(&mut db, sql, |db, pid| db.run(&format!("SELECT pg_terminate_backend({pid})")));
        assert!(code == "57P01" || code == "closed", "{sql}: {code}");
        for which in ["min", "max"] {
            let code = stopped(&mut db, sql, |db, pid| {
                db.run(&format!(
                    "SELECT pg_terminate_backend({which}(pid)) FROM pg_stat_activity WHERE leader_pid = {pid} AND pid <> {pid}"
                ));
            });
            assert!(["57P01", "08006", "55000"].contains(&code.as_str()), "{sql}: {code}");
        }
    }
    db.run("SET statement_timeout = '300ms'");
    db.fails_with(panels, "57014");
    db.run("RESET statement_timeout");
    db.wait_for_parallel_workers(0);
    assert_eq!(processes(&mut db, "'t', max_epochs => 1, workers => 2"), 2);
    let complaints: Vec<_> = log(db.name()).into_iter().filter(|line| line.contains("WARNING")).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn all_processes_of_a_search_see_what_the_statement_sees() {
    let mut db = Database::new();
    table(&mut db);
    let user = db.role("user");
    db.run(&format!(
        "GRANT SELECT ON t TO {user}; ALTER TABLE t ENABLE ROW LEVEL SECURITY;
         CREATE POLICY odd ON t USING (id % 2 = 1 AND current_user = '{user}' AND current_setting('my.setting') = 'on')"
    ));
    let mut session = db.session_as(&user);
    session.run("SET my.setting = 'on'");
    let call = "'t', label => 'positive', features => '{x}', max_epochs => 2, trials => 8, seed => 1";
    assert_same(&mut session, call);
    let tuples: i64 = session.value("SELECT min(tuples) FROM corgipile.training_history");
    assert_eq!(tuples, 4500);
    db.run(&format!("REVOKE SELECT ON t FROM {user}"));
    session.rejects(&format!("SELECT * FROM corgipile_search({call}, workers => 3)"), "42501");

    // what this transaction has done, and others have not committed or have committed since
    let mut other = db.session();
    other.run("BEGIN; INSERT INTO t SELECT * FROM t WHERE id < 1000; DELETE FROM t WHERE id > 8000");
    db.run("BEGIN; DELETE FROM t WHERE id BETWEEN 2000 AND 2500; CREATE TABLE fresh AS SELECT * FROM t");
    assert_same(&mut db, call);
    assert_same(&mut db, &call.replace("'t'", "'fresh'"));
    db.run("COMMIT");
    other.run("ROLLBACK");
}

#[test]
fn explain_shows_the_processes_of_a_search() {
    let mut db = Database::new();
    table(&mut db);
    let sql = "SELECT * FROM corgipile_search('t', label => 'positive', features => '{x}', max_epochs => 2, seed => 1,
                                              trials => 8, workers => 3)";
    let has = |plan: &[String], wanted: &str| plan.iter().any(|line| line.trim() == wanted);
    let plan = db.lines(&format!("EXPLAIN {sql}"));
    assert!(has(&plan, "Processes: 3") && has(&plan, "Workers Planned: 2"), "{plan:#?}");
    assert!(!plan.iter().any(|line| line.contains("Launched")), "{plan:#?}");
    let plan = db.lines(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}"));
    assert!(has(&plan, "Processes: 3") && has(&plan, "Workers Launched: 2"), "{plan:#?}");
    // 108,000 rows: two epochs and the judgement of all three processes; the pass before them, and two epochs of the
    // best, of one
    // PostgreSQL 18 writes rows with a fraction
    let nodes: Vec<_> = plan.iter().filter(|line| line.contains("Shuffle)")).collect();
    let is_that = |line: &&String| line.replace(".00 ", " ").contains("rows=21600 loops=5");
    assert!(nodes.len() == 2 && nodes.iter().all(is_that), "{plan:#?}");
    db.run("SET max_parallel_workers = 0");
    let plan = db.lines(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}"));
    assert!(has(&plan, "Processes: 1") && has(&plan, "Workers Launched: 0"), "{plan:#?}");
    let plan = db.lines(&format!("EXPLAIN {}", sql.replace(", workers => 3", "")));
    assert!(!plan.iter().any(|line| line.contains("Workers") || line.contains("Processes")), "{plan:#?}");
}

#[test]
fn a_search_waits_for_processes_that_are_slower() {
    let mut db = Database::new();
    table(&mut db);
    // points of very different length, with networks next to panels, in turns
    let grid =
        r#"grid => '[{"max_epochs": 1}, {"max_epochs": 12, "batch_size": 4}, {"max_epochs": 5, "batch_size": 9}]'"#;
    assert_same(&mut db, &format!("'t', label => 'positive', features => '{{x}}', seed => 3, {grid}"));
}
