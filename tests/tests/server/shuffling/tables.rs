//! What `corgipile_shuffle()` reads: tables of every kind, changed, locked, dropped, or not to be read.

use super::rows::{ALL, SHUFFLED};
use corgipile_tests::{Database, Session, clustered};

#[test]
fn dropped_added_and_generated_columns_are_as_in_the_table() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (a int, gone text, b text, twice int GENERATED ALWAYS AS (a * 2) STORED);
         INSERT INTO t SELECT i, repeat('x', i % 50), 'b' || i FROM generate_series(1, 500) i;
         ALTER TABLE t DROP gone, ADD fresh int DEFAULT 7, ADD empty text;
         INSERT INTO t SELECT i, 'c' || i FROM generate_series(501, 700) i;",
    );
    db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::t)", "TABLE t");
    db.assert_same_rows("SELECT fresh, b FROM corgipile_shuffle(NULL::t)", "SELECT fresh, b FROM t");
    db.assert_same_rows("SELECT empty, twice FROM corgipile_shuffle(NULL::t)", "SELECT empty, twice FROM t");
    db.assert_same_rows("SELECT s FROM corgipile_shuffle(NULL::t) s", "SELECT t FROM t");
    db.assert_same_rows("SELECT corgipile_shuffle(NULL::t)", "SELECT t FROM t");
    if db.major() >= 18 {
        // not in the rows, but computed when they are read
        db.run("ALTER TABLE t ADD thrice int GENERATED ALWAYS AS (a * 3) VIRTUAL");
        db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::t)", "TABLE t");
        db.assert_same_rows(
            "SELECT thrice FROM corgipile_shuffle(NULL::t) WHERE thrice > 99",
            "SELECT a * 3 FROM t WHERE a > 33",
        );
        db.assert_same_rows("SELECT s FROM corgipile_shuffle(NULL::t) s", "SELECT t FROM t");
    }
}

#[test]
fn an_empty_table_gives_no_rows() {
    let mut db = Database::new();
    db.run("CREATE TABLE t (id int, label int, features_v real[])");
    assert_eq!(db.lines(SHUFFLED).len(), 0);
    db.run("INSERT INTO t VALUES (1, 1, '{}'); DELETE FROM t");
    assert_eq!(db.lines(SHUFFLED).len(), 0);
    db.run("INSERT INTO t VALUES (2, NULL, NULL)");
    assert_eq!(db.lines(SHUFFLED), ["2|NULL|NULL"]);
}

#[test]
fn temporary_unlogged_and_just_created_tables_are_shuffled() {
    let mut db = Database::new();
    for kind in ["TEMP", "UNLOGGED"] {
        db.run(&format!("CREATE {kind} TABLE t AS SELECT i AS id FROM generate_series(1, 3000) i"));
        db.assert_same_rows("SELECT id FROM corgipile_shuffle(NULL::t)", "SELECT id FROM t");
        db.run("DROP TABLE t");
    }
    db.run("BEGIN; CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 3000) i");
    db.assert_same_rows("SELECT id FROM corgipile_shuffle(NULL::t)", "SELECT id FROM t");
    db.run("TRUNCATE t; INSERT INTO t VALUES (1)");
    db.assert_same_rows("SELECT id FROM corgipile_shuffle(NULL::t)", "SELECT id FROM t");
    db.run("COMMIT");
}

#[test]
fn what_has_no_rows_to_shuffle_gets_a_clear_error() {
    let mut db = Database::new();
    db.run("CREATE TYPE pair AS (a int, b int)");
    db.fails_with("SELECT * FROM corgipile_shuffle(NULL::pair)", "42804").hints(&["NULL::"]);
    db.fails_with("SELECT * FROM corgipile_shuffle(NULL::int)", "42804").hints(&["NULL::"]);
    db.fails_with("SELECT corgipile_shuffle(1)", "42804");
}

#[test]
fn views_partitioned_and_inherited_tables_and_catalogs_are_shuffled_or_refused_clearly() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run(
        "CREATE VIEW v AS TABLE t; CREATE MATERIALIZED VIEW m AS SELECT id, label FROM t;
         CREATE TABLE p (id int, label int) PARTITION BY LIST (label);
         CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
         INSERT INTO p SELECT i, i % 2 FROM generate_series(1, 500) i;
         CREATE TABLE parent (id int); CREATE TABLE child (more int) INHERITS (parent);
         INSERT INTO parent SELECT generate_series(1, 100);
         INSERT INTO child SELECT i, i FROM generate_series(101, 200) i",
    );
    for relation in ["v", "m", "p", "parent", "pg_class"] {
        db.assert_shuffled_or_refused(relation);
    }
    db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::p1)", "TABLE p1");
    db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::child)", "TABLE child");
}

#[test]
fn row_security_and_privileges_hold() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    let reader = db.role("reader");
    db.run("ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id % 3 = 1)");
    let mut session = db.session_as(&reader);
    for call in ["SELECT * FROM corgipile_shuffle(NULL::t)", "SELECT corgipile_shuffle(NULL::t)"] {
        session.fails_with(call, "42501").says(&["t"]);
    }
    db.run(&format!("GRANT SELECT ON t TO {reader}"));
    session.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::t)", "SELECT * FROM t");
    session.assert_same_rows("SELECT corgipile_shuffle(NULL::t)", "SELECT t FROM t");
    assert_eq!(session.line("SELECT count(*) FROM corgipile_shuffle(NULL::t)"), "167");
    // A policy with a subquery is a SubPlan, which a custom scan has to run too.
    db.run(
        "CREATE TABLE allowed AS SELECT generate_series(1, 50) AS id;
            DROP POLICY p ON t; CREATE POLICY p ON t USING (EXISTS (SELECT FROM allowed a WHERE a.id = t.id));
            GRANT SELECT ON allowed TO PUBLIC",
    );
    assert_eq!(session.line("SELECT count(*) FROM corgipile_shuffle(NULL::t)"), "50");
    // A function that may leak what it is given is not called on rows that the policy hides.
    session.run(
        "CREATE FUNCTION pg_temp.leak(int) RETURNS bool COST 0.0001 LANGUAGE plpgsql
                 AS 'BEGIN IF $1 > 50 THEN RAISE EXCEPTION ''leaked %'', $1; END IF; RETURN true; END'",
    );
    let seen = session.line("SELECT count(*) FROM corgipile_shuffle(NULL::t) s WHERE pg_temp.leak(s.id)");
    assert_eq!(seen, "50");
}

#[test]
fn a_table_that_a_cursor_is_reading_cannot_be_altered_by_its_session() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    for change in ["ALTER TABLE t ADD more int", "TRUNCATE t", "DROP TABLE t", "CLUSTER t USING t_pkey"] {
        db.run("BEGIN; DECLARE c CURSOR FOR SELECT id FROM corgipile_shuffle(NULL::t); FETCH 1 FROM c; SAVEPOINT s");
        let failure = db.attempt(change).expect_err(change);
        assert!(["55006", "42704"].contains(&failure.code.as_str()), "{change}: {failure:#?}");
        db.run("ROLLBACK TO s");
        assert_eq!(db.lines("FETCH ALL FROM c").len(), 999, "{change}");
        db.run("COMMIT");
    }
}

#[test]
fn temporary_tables_of_other_sessions_cannot_be_read() {
    let mut db = Database::new();
    let mut other = db.session();
    other.run("CREATE TEMP TABLE secret AS SELECT i AS id, i % 2 AS label FROM generate_series(1, 10) i");
    let schema = other.line("SELECT pg_my_temp_schema()::regnamespace");
    db.fails_with(&format!("SELECT * FROM corgipile_shuffle(NULL::{schema}.secret)"), "0A000");
    db.rejects(&format!("SELECT * FROM corgipile_train('{schema}.secret', features => '{{id}}')"), "0A000");
}

#[test]
fn a_table_of_another_access_method_is_shuffled_or_refused() {
    let mut db = Database::new();
    db.run(
        "CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler;
         CREATE TABLE t (id int, label int) USING heap2;
         INSERT INTO t SELECT i, i % 2 FROM generate_series(1, 1000) i",
    );
    db.assert_shuffled_or_refused("t");
    assert_eq!(db.train("'t', features => '{id}', max_epochs => 2")[1].tuples, 1000);
}

#[test]
fn a_table_full_of_holes_gives_its_few_rows() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    for statement in ["DELETE FROM t WHERE id % 500 <> 0", "VACUUM t", "INSERT INTO t VALUES (-1, 1, '{1,2,3,4,5}')"] {
        db.run(statement);
    }
    db.assert_same_rows(SHUFFLED, ALL);
    assert_eq!(db.train("'t', max_epochs => 3")[2].tuples, 11);
    db.run("DELETE FROM t WHERE id < 2000");
    db.run("VACUUM t");
    db.assert_same_rows(SHUFFLED, ALL);
}

/// A fresh session's first statement is not among them: there PostgreSQL itself fails while it looks for the columns of
/// the row type, as it does for jsonb_populate_recordset(NULL::t, ...).
#[test]
fn a_table_that_was_dropped_meanwhile_does_not_exist() {
    const CALLS: [&str; 5] = [
        "SELECT count(*) FROM corgipile_shuffle(NULL::t)",
        "EXECUTE generic",
        "EXECUTE custom(1)",
        "SELECT count(*) FROM (SELECT corgipile_shuffle(NULL::t)) s",
        "SELECT count(*) FROM (VALUES (1)) v(i), LATERAL corgipile_shuffle(NULL::t, seed => v.i)",
    ];
    let mut db = Database::new();
    for ending in ["ROLLBACK", "COMMIT"] {
        if ending == "ROLLBACK" {
            corgipile_tests::small(&mut db, "t", 100);
        }
        let mut sessions: Vec<Session> = CALLS.iter().map(|_| db.session()).collect();
        for (session, call) in sessions.iter_mut().zip(CALLS) {
            session.run(
                "PREPARE custom(int) AS SELECT count(*) FROM corgipile_shuffle(NULL::t, seed => $1);
                 SET plan_cache_mode = force_generic_plan;
                 PREPARE generic AS SELECT count(*) FROM corgipile_shuffle(NULL::t); EXECUTE generic;
                 SET plan_cache_mode = force_custom_plan; EXECUTE custom(1); RESET plan_cache_mode",
            );
            assert_eq!(session.line(call), "100", "{call}");
        }
        db.run("BEGIN; DROP TABLE t");
        let threads: Vec<_> = sessions
            .into_iter()
            .zip(CALLS)
            .map(|(mut session, call)| std::thread::spawn(move || (session.attempt(call), session)))
            .collect();
        db.wait_for_waiters(CALLS.len() as i64);
        db.run(ending);
        for (thread, call) in threads.into_iter().zip(CALLS) {
            let (result, mut session) = thread.join().expect("the session's thread does not panic");
            if ending == "ROLLBACK" {
                assert_eq!(result, Ok(vec!["100".to_owned()]), "{call}");
                continue;
            }
            let failure = result.expect_err(call);
            assert_eq!(failure.code, "42P01", "{call}: {failure:#?}");
            failure.says(&["relation \"t\" does not exist"]).hints(&["dropped"]);
            // and later: what was prepared does not know the name any more
            if call.starts_with("EXECUTE") {
                session.fails_with(call, "42P01").says(&["does not exist"]).hints(&["prepare"]);
            }
        }
    }
}

#[test]
fn a_table_that_is_being_shuffled_is_not_dropped() {
    let mut db = Database::new();
    corgipile_tests::small(&mut db, "t", 100);
    let mut other = db.session();
    for fetched in ["", "FETCH 1 FROM c"] {
        db.run(&format!("BEGIN; DECLARE c CURSOR FOR SELECT * FROM corgipile_shuffle(NULL::t); {fetched}"));
        other.fails_with("SET lock_timeout = '50ms'; DROP TABLE t", "55P03");
        assert_eq!(db.lines("FETCH ALL FROM c").len(), if fetched.is_empty() { 100 } else { 99 });
        db.run("COMMIT");
    }
    other.run("DROP TABLE t");
}
