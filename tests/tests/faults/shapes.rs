//! Every way in which SQL can call a function, stop halfway, and go on.

use crate::probe::{complaints, leftovers, models_are_whole, report, tables};
use corgipile_tests::Cluster;

const TRAIN: &str = "corgipile_train('t', features => '{x}', max_epochs => 3, seed => 1";

#[test]
fn cursors_blocks_triggers_and_savepoints_leave_nothing() {
    let cluster = Cluster::new(&["work_mem = '64kB'", "max_prepared_transactions = 4"]);
    let mut db = cluster.session();
    tables(&mut db);
    let train = |more: &str| format!("{TRAIN}{more})");
    db.run(&format!(
        "CREATE ROLE reader;
         CREATE TABLE log (loss float8);
         CREATE TABLE queue (x real[], y float8);
         SELECT {};
         CREATE FUNCTION train_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO log SELECT min(loss) FROM {};
             RETURN NULL;
         END $$;
         CREATE FUNCTION predict_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             NEW.y := corgipile_predict('kept', NEW.x);
             RETURN NEW;
         END $$;
         CREATE TRIGGER predicts BEFORE INSERT ON queue FOR EACH ROW EXECUTE FUNCTION predict_it();
         CREATE TRIGGER trains AFTER INSERT ON queue FOR EACH STATEMENT EXECUTE FUNCTION train_it();
         CREATE FUNCTION definer(loader text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS
             'SELECT max(tuples) FROM corgipile_train(''t'', features => ''{{x}}'', max_epochs => 2, prefetch => loader)';
         CREATE FUNCTION guarded(source text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
             PERFORM * FROM corgipile_train(source, features => '{{x}}', max_epochs => 2, prefetch => 'on',
                                            options => '{{\"nulls\": \"error\"}}');
             RETURN 'trained';
         EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
         END $$",
        train(", name => 'kept'"),
        train(""),
    ));
    // statements, the rows that the last of them gives, and how many models they leave
    let shapes: Vec<(&str, String, &[&str], i64)> = vec![
        ("one row of a cursor", format!("BEGIN; DECLARE c CURSOR FOR SELECT * FROM {}; FETCH 1 FROM c; CLOSE c; COMMIT; SELECT 1", train("")), &["1"], 1),
        ("a cursor that nobody has fetched from", format!("BEGIN; DECLARE c CURSOR FOR SELECT * FROM {}; CLOSE c; COMMIT; SELECT 1", train("")), &["1"], 0),
        ("a cursor that is rolled back", format!("BEGIN; DECLARE c CURSOR FOR SELECT * FROM {}; FETCH 2 FROM c; ROLLBACK; SELECT 1", train(", prefetch => 'on'")), &["1"], 0),
        ("a cursor held over the end of its transaction", format!("BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT epoch FROM {}; FETCH 1 FROM c; COMMIT; FETCH ALL FROM c", train("")), &["2", "3"], 1),
        ("the end of it", "CLOSE c; SELECT 1".into(), &["1"], 0),
        ("a scrollable cursor", format!("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT epoch FROM {}; FETCH LAST FROM c; FETCH FIRST FROM c; COMMIT; SELECT 1", train("")), &["1"], 1),
        ("rows of a shuffle, some of them", "BEGIN; DECLARE c CURSOR FOR SELECT id FROM corgipile_shuffle(NULL::t); FETCH 10 FROM c; CLOSE c; COMMIT; SELECT 1".into(), &["1"], 0),
        ("a shuffle, spooled and held", "BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT id FROM corgipile_shuffle(NULL::parts, shuffle => 'epoch_shuffle'); FETCH 10 FROM h; COMMIT; CLOSE h; SELECT 1".into(), &["1"], 0),
        ("LIMIT", format!("SELECT epoch FROM {} LIMIT 1", train("")), &["1"], 1),
        ("LIMIT of a shuffle", "SELECT count(*) FROM (SELECT * FROM corgipile_shuffle(NULL::parts) LIMIT 7) s".into(), &["7"], 0),
        ("a savepoint", format!("BEGIN; SAVEPOINT s; SELECT count(*) FROM {}; ROLLBACK TO s; SELECT count(*) FROM {}; COMMIT", train(", workers => 2"), train("")), &["3"], 1),
        ("a released savepoint", format!("BEGIN; SAVEPOINT s; SELECT count(*) FROM {}; RELEASE s; COMMIT; SELECT 1", train(", prefetch => 'on'")), &["1"], 1),
        ("rows for a block", "SELECT guarded('t')".into(), &["trained"], 1),
        ("an error in a block", "SELECT guarded('nowhere')".into(), &["42P01"], 0),
        ("an error in a worker, in a block", "SELECT guarded('SELECT label, CASE WHEN id = 7000 THEN NULL ELSE x END AS x FROM t')".into(), &["22004"], 0),
        ("a trigger", "INSERT INTO queue SELECT x FROM t LIMIT 50; SELECT count(y) FROM queue".into(), &["50"], 1),
        ("a trigger that is undone", "BEGIN; INSERT INTO queue SELECT x FROM t LIMIT 50; ROLLBACK; SELECT count(y) FROM queue".into(), &["50"], 0),
        ("DO", format!("DO $$ BEGIN FOR i IN 1..3 LOOP PERFORM count(*) FROM {}; END LOOP; END $$; SELECT 1", train("")), &["1"], 3),
        ("the rights of a definer", "SET ROLE reader; SELECT definer('on'); RESET ROLE; SELECT 1".into(), &["1"], 1),
        ("a prepared statement", "PREPARE p(text) AS SELECT count(*) FROM corgipile_train($1, features => '{x}', max_epochs => 2);
           EXECUTE p('t'); EXECUTE p('t'); EXECUTE p('t'); EXECUTE p('t'); EXECUTE p('t'); EXECUTE p('t'); EXECUTE p('parts')".into(), &["2"], 7),
        ("the same one after a change of the table", "ALTER TABLE t ADD more int; EXECUTE p('t')".into(), &["2"], 1),
        ("two in one query", format!("SELECT count(*) FROM {} a JOIN {} b USING (epoch)", train(""), train(", prefetch => 'on'")), &["3"], 2),
        ("a common table expression", format!("WITH m AS MATERIALIZED (SELECT * FROM {}) SELECT count(*) FROM m a, m b", train("")), &["9"], 1),
        ("a lateral training per row", "SELECT count(*) FROM (VALUES (1), (2)) r(seed), LATERAL corgipile_train('t', features => '{x}', max_epochs => 2, seed => r.seed)".into(), &["4"], 2),
        ("a prepared transaction", format!("BEGIN; SELECT count(*) FROM {}; PREPARE TRANSACTION 'two'", train("")), &["3"], 0),
        ("its commit", "COMMIT PREPARED 'two'".into(), &[], 1),
        ("a read-only transaction", "BEGIN READ ONLY; SELECT count(*) FROM corgipile_shuffle(NULL::t); SELECT sum(corgipile_predict('kept', x)) > 0 FROM t; COMMIT; SELECT 1".into(), &["1"], 0),
        ("EXPLAIN", format!("EXPLAIN (ANALYZE, BUFFERS, VERBOSE, FORMAT JSON) SELECT * FROM {}; SELECT 1", train("")), &["1"], 1),
    ];
    let count = shapes.len();
    for (what, sql, expected, models) in shapes {
        let before = db.models();
        // psql would send one statement after the other, and so does this: COMMIT ends what BEGIN has begun
        let lines = db.attempt(&sql).unwrap_or_else(|failure| panic!("{what}: {sql}\n{failure:#?}"));
        assert_eq!(lines, expected, "{what}: {sql}");
        assert_eq!(db.models() - before, models, "{what}: {sql}");
        let left = leftovers(&cluster, &mut db);
        assert!(left.is_empty(), "{left:#?} after {what}");
    }
    models_are_whole(&mut db);
    let complaints = complaints(&cluster);
    assert!(complaints.is_empty(), "{complaints:#?}");
    report(&format!("Shapes of SQL: {count} tried, 0 servers lost, 0 leftovers"));
}

/// Each of two transactions reads what the other writes: PostgreSQL must see that a training has read the table.
#[test]
fn a_serializable_training_conflicts_with_who_writes_its_table() {
    let cluster = Cluster::new(&["default_transaction_isolation = 'serializable'"]);
    let (mut db, mut other) = (cluster.session(), cluster.session());
    tables(&mut db);
    for how in ["", ", prefetch => 'on'", ", workers => 2"] {
        db.run("BEGIN");
        other.run("BEGIN");
        other.run("SELECT count(*) FROM corgipile.models; INSERT INTO t SELECT * FROM t LIMIT 1");
        let trained = db.attempt(&format!("SELECT count(*) FROM {TRAIN}{how}); COMMIT"));
        let written = other.attempt("COMMIT");
        let codes: Vec<String> = [trained, written].into_iter().filter_map(|r| r.err().map(|f| f.code)).collect();
        assert_eq!(codes, ["40001"], "one of the two fails{how}");
        db.run("ROLLBACK");
        other.run("ROLLBACK");
        let left = leftovers(&cluster, &mut db);
        let left: Vec<_> = left.into_iter().filter(|line| !line.contains("SIReadLock")).collect();
        assert!(left.is_empty(), "{left:#?}");
    }
}
