//! Models outlive what happens to databases and servers.

use corgipile_tests::{Cluster, Database, Session, program};

const PRELOADED: &str = "shared_preload_libraries = 'corgipile'";
const TABLE: &str = "CREATE TABLE t AS SELECT i AS id, i % 2 AS label, (i % 2 + i % 7)::real AS a, (i % 5)::real AS b
                       FROM generate_series(1, 300) i;
                     ALTER TABLE t ADD PRIMARY KEY (id)";
const ASK: &str = "SELECT id, corgipile_predict_proba('m', ARRAY[a, b]) FROM t ORDER BY id";

fn version(session: &mut Session, seed: i32) -> i64 {
    session.train(&format!("'t', name => 'm', max_epochs => 2, seed => {seed}, learning_rate => 0.01 * {seed}"))[0]
        .model_id
}

/// Runs a client program in a cluster.
fn client(cluster: &Cluster, name: &str, arguments: &[&str]) {
    let mut program = corgipile_tests::program(name);
    program.env("PGHOST", cluster.directory()).args(arguments);
    let output = program.output().expect("the program starts");
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_model_is_there_after_a_crash_right_after_its_commit() {
    for settings in [&[PRELOADED][..], &[][..]] {
        let mut cluster = Cluster::new(settings);
        let mut session = cluster.session();
        session.run(TABLE);
        for seed in 1..=3 {
            let id = version(&mut session, seed);
            session.run("SELECT corgipile_deploy('m', 1)");
            let (bits, expected) = (session.model(id).bits(), session.lines(ASK));
            session.run("BEGIN");
            version(&mut session, 9);
            cluster.crash_and_restart();
            session = cluster.session();
            assert_eq!(session.model(id).bits(), bits);
            assert_eq!(session.lines(ASK), expected);
            assert_eq!(session.models(), i64::from(seed), "what had not been committed is not there");
        }
        // The next one gets an id and a version of its own.
        version(&mut session, 4);
        assert_eq!(session.column::<i32>("SELECT version FROM corgipile.models ORDER BY model_id"), [1, 2, 3, 4]);
    }
}

#[test]
fn models_are_there_after_a_restart() {
    let mut cluster = Cluster::new(&[PRELOADED]);
    let mut session = cluster.session();
    session.run(TABLE);
    version(&mut session, 1);
    let expected = session.lines(ASK);
    drop(session);
    cluster.restart();
    let mut session = cluster.session();
    assert_eq!(session.line("SELECT count(*) FROM corgipile.stat_models"), "0");
    assert_eq!(session.lines(ASK), expected);
    assert_eq!(session.line("SELECT count(*) FROM corgipile.stat_models"), "1");
}

#[test]
fn a_standby_predicts_also_after_the_model_has_changed() {
    let primary = Cluster::new(&[PRELOADED]);
    let mut session = primary.session();
    session.run(TABLE);
    version(&mut session, 1);
    let standby = primary.standby();
    let mut there = standby.session();
    // Waits until the standby has what the primary has written.
    let caught_up = |session: &mut Session, there: &mut Session| {
        let position = session.line("SELECT pg_current_wal_flush_lsn()");
        for _ in 0..6000 {
            if there.line(&format!("SELECT pg_last_wal_replay_lsn() >= '{position}'")) == "t" {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("the standby does not follow");
    };
    caught_up(&mut session, &mut there);
    let first = session.lines(ASK);
    assert_eq!(there.lines(ASK), first);
    assert_eq!(there.line("SELECT count(*) FROM corgipile.stat_models"), "1");
    version(&mut session, 2);
    caught_up(&mut session, &mut there);
    assert_ne!(there.lines(ASK), first);
    assert_eq!(there.lines(ASK), session.lines(ASK));
    session.run("SELECT corgipile_deploy('m', 1)");
    caught_up(&mut session, &mut there);
    assert_eq!(there.lines(ASK), first);
    session.run("UPDATE corgipile.models SET intercepts = '{7}' WHERE deployed");
    caught_up(&mut session, &mut there);
    assert_eq!(there.lines(ASK), session.lines(ASK));
    for write in ["SELECT corgipile_train('t')", "SELECT corgipile_drop('m')", "SELECT corgipile_deploy('m', 2)"] {
        there.fails_with(write, "25006");
    }
    session.run("SELECT corgipile_drop('m')");
    caught_up(&mut session, &mut there);
    there.fails_with(ASK, "42704");
}

#[test]
fn a_dump_keeps_versions_deployment_grants_comments_and_the_sequence() {
    let cluster = Cluster::new(&[]);
    let mut session = cluster.session();
    session.run(TABLE);
    session.run("CREATE ROLE friend LOGIN; CREATE ROLE alice LOGIN; GRANT SELECT ON t TO PUBLIC");
    for seed in 1..=3 {
        version(&mut session, seed);
    }
    version(&mut cluster.session_as("alice"), 4);
    session.run(
        "SELECT corgipile_deploy('m', 2); SELECT corgipile_grant('m', 'friend'); SELECT corgipile_grant('m', 'public');
         SELECT corgipile_comment('m', 'deployed')",
    );
    let dump = cluster.directory().join("dump");
    let dump = dump.to_str().expect("a plain path");
    client(&cluster, "pg_dump", &["-U", "postgres", "-Fc", "-f", dump, "postgres"]);
    session.run("CREATE DATABASE restored TEMPLATE template0");
    client(&cluster, "pg_restore", &["-U", "postgres", "--exit-on-error", "-d", "restored", dump]);
    let mut restored = cluster.session_in("restored");
    for query in [
        ASK,
        "SELECT * FROM corgipile.models ORDER BY model_id",
        "SELECT * FROM corgipile.coefficients ORDER BY model_id, feature",
        "SELECT * FROM corgipile.training_history ORDER BY model_id, epoch",
        "SELECT last_value, is_called FROM corgipile.models_model_id_seq",
    ] {
        assert_eq!(restored.lines(query), session.lines(query), "{query}");
    }
    let went_on = [&mut session, &mut restored].map(|db| {
        let id = db.train("'t', warm_start => 'm', max_epochs => 2, name => 'longer'")[0].model_id;
        db.model(id).bits()
    });
    assert_eq!(went_on[0], went_on[1]);
    version(&mut restored, 5);
    assert_eq!(
        restored.column::<i32>("SELECT version FROM corgipile.models WHERE name = 'm' ORDER BY model_id"),
        [1, 2, 3, 1, 4]
    );
}

#[test]
fn pg_dump_and_restore_keep_models_and_their_predictions() {
    let mut db = Database::with_small_table(300);
    db.run(
        "CREATE TYPE answer AS ENUM ('no', 'yes');
            CREATE TABLE e AS SELECT (CASE label WHEN 1 THEN 'yes' ELSE 'no' END)::answer AS label, a, b FROM t",
    );
    let model = db.trained("'t', name => 'kept', seed => 1, options => '{\"standardize\": true}'");
    db.train("'e', 'svm', name => 'of an enum', max_epochs => 2");
    let dump = std::env::temp_dir().join(format!("{}.dump", db.name()));
    let run = |program: &mut std::process::Command| {
        let output = program.output().expect("the program starts");
        assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(program("pg_dump").args(["-Fc", "-f"]).arg(&dump).arg(db.name()));
    let mut restored = Database::empty();
    run(program("pg_restore").args(["--exit-on-error", "-d", restored.name()]).arg(&dump));
    std::fs::remove_file(&dump).expect("the dump is there");

    for query in [
        "SELECT corgipile_predict_proba('kept', ARRAY[a, b, c]) FROM t ORDER BY id",
        "SELECT corgipile_predict_label('of an enum', ARRAY[a, b]) FROM t ORDER BY id",
        "SELECT * FROM corgipile.models ORDER BY model_id",
        "SELECT * FROM corgipile.coefficients ORDER BY model_id, feature",
        "SELECT * FROM corgipile.training_history ORDER BY model_id, epoch",
    ] {
        let expected = db.lines(query);
        assert!(!expected.is_empty(), "{query}");
        assert_eq!(restored.lines(query), expected, "{query}");
    }
    assert_eq!(restored.model(model.id).bits(), model.bits());
    // The next model gets an id of its own.
    let next = restored.train("'t', max_epochs => 1")[0].model_id;
    assert!(next > model.id + 1, "{next}");
    assert_eq!(restored.models(), 3);
}
