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
    session.run("UPDATE corgipile.stored_models SET intercepts = '{7}' WHERE deployed");
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

/// Dumps the database of one cluster into another's, as psql does without stopping at errors, and gives what it says.
fn copied(from: &Cluster, to: &Cluster, options: &[&str]) -> String {
    let dump = from.directory().join("dump.sql");
    let dump = dump.to_str().expect("a plain path");
    client(from, "pg_dump", &["-U", "postgres", "-f", dump, "postgres"]);
    let mut psql = program("psql");
    psql.env("PGHOST", to.directory()).args(["-X", "-q", "-U", "postgres", "-d", "postgres", "-f", dump]).args(options);
    let output = psql.output().expect("psql starts");
    // the functions of these tests are in every database here
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().filter(|line| !line.contains("already exists")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_restored_model_is_nobodys_whose_number_or_name_only_looks_like_its_owners() {
    let (there, here) = (Cluster::new(&[]), Cluster::new(&[]));
    let mut session = there.session();
    session.run(TABLE);
    session
        .run("GRANT SELECT ON t TO PUBLIC; CREATE ROLE alice LOGIN; CREATE ROLE renamed LOGIN; CREATE ROLE gone LOGIN");
    session.run("CREATE ROLE \"Lost One\" LOGIN; CREATE ROLE dropped LOGIN");
    for owner in ["alice", "renamed", "gone", "Lost One"] {
        version(&mut there.session_as(owner), 1);
    }
    session.run(
        "SELECT corgipile_grant('alice.m', 'gone'), corgipile_grant('alice.m', 'dropped', 'predict'),
                corgipile_grant('renamed.m', 'public'), corgipile_grant('renamed.m', 'Lost One', 'predict')",
    );
    let numbers: Vec<u32> =
        ["gone", "dropped"].map(|role| session.value(&format!("SELECT '{role}'::regrole::oid"))).to_vec();
    session.run("ALTER ROLE renamed RENAME TO bob; DROP ROLE gone; DROP ROLE dropped");
    // In the other cluster strangers have the numbers of all roles, and the old names of some.
    let mut restored = here.session();
    restored.run("CREATE ROLE renamed LOGIN");
    let mut strangers = vec!["renamed".to_owned()];
    while restored.value::<u32>("SELECT max(oid) FROM pg_roles") < *numbers.iter().max().unwrap() {
        strangers.push(format!("stranger{}", strangers.len()));
        restored.run(&format!("CREATE ROLE {} LOGIN", strangers[strangers.len() - 1]));
    }
    for number in &numbers {
        assert_eq!(restored.value::<i64>(&format!("SELECT count(*) FROM pg_roles WHERE oid = {number}")), 1);
    }
    restored.run("CREATE ROLE gone LOGIN; CREATE ROLE alice LOGIN; CREATE ROLE bob LOGIN");
    strangers.push("gone".to_owned());
    // one missing owner loses nothing
    let said = copied(&there, &here, &[]);
    assert!(!said.contains("ERROR"), "{said}");
    assert_eq!(restored.models(), 4);
    for stranger in strangers {
        let mut session = here.session_as(&stranger);
        assert_eq!(
            session.lines("SELECT name FROM corgipile.models WHERE owner <> 'bob'"),
            [] as [&str; 0],
            "{stranger}"
        );
        session.fails_with("SELECT corgipile_predict('alice.m', ARRAY[1, 2])", "42501");
    }
    // Who has a name here has it in the dump, as the role was called then.
    for owner in ["alice", "bob"] {
        let mut session = here.session_as(owner);
        assert_eq!(session.lines(ASK), there.session_as(owner).lines(ASK));
        assert_eq!(
            session.line("SELECT granted_to FROM corgipile.models WHERE owner = current_user"),
            match owner {
                "alice" => format!("{{?{}}}", numbers[0]),
                _ => "{public}".to_owned(),
            }
        );
    }
    let missing = restored.lines("SELECT owner FROM corgipile.models WHERE owner LIKE '?%' ORDER BY owner");
    assert_eq!(missing, ["?\"Lost One\"".to_owned(), format!("?{}", numbers[0])]);
    assert_eq!(
        restored.line("SELECT predict_granted_to FROM corgipile.models WHERE owner = 'bob'"),
        "{\"?\\\"Lost One\\\"\"}"
    );
    // They are named, dumped once more, and given to somebody.
    let ask = |owner: &str| format!("SELECT corgipile_predict('\"{}\".m', ARRAY[1, 2])", owner.replace('"', "\"\""));
    for owner in &missing {
        restored.run(&ask(owner));
    }
    let third = Cluster::new(&[]);
    assert!(!copied(&here, &third, &[]).contains("ERROR"));
    assert_eq!(
        third.session().lines("SELECT owner, granted_to FROM corgipile.models ORDER BY owner")[..2],
        restored.lines("SELECT owner, granted_to FROM corgipile.models ORDER BY owner")[..2]
    );
    restored.run("CREATE ROLE \"Lost One\" LOGIN");
    assert_eq!(here.session_as("Lost One").lines("SELECT name FROM corgipile.models WHERE owner LIKE '?%'").len(), 0);
    assert_eq!(restored.value::<i64>("SELECT corgipile_reassign_owned('?\"Lost One\"', 'Lost One')"), 1);
    assert_eq!(here.session_as("Lost One").lines(ASK), there.session_as("Lost One").lines(ASK));
    assert_eq!(restored.value::<i64>(&format!("SELECT corgipile_drop_owned('?{}')", numbers[0])), 1);
    restored.run(&format!("SELECT corgipile_revoke('alice.m', '?{}')", numbers[0]));
    assert_eq!(restored.line("SELECT granted_to FROM corgipile.models WHERE owner = 'alice'"), "{}");
}

#[test]
fn a_subscriber_of_all_tables_goes_on_with_models_of_its_own() {
    let publisher = Cluster::new(&["wal_level = logical", PRELOADED]);
    let subscriber = Cluster::new(&[PRELOADED]);
    let (mut from, mut to) = (publisher.session(), subscriber.session());
    from.run(TABLE);
    to.run(TABLE);
    to.run("TRUNCATE t; CREATE EXTENSION IF NOT EXISTS corgipile");
    from.run("CREATE ROLE only_here LOGIN; GRANT SELECT ON t TO PUBLIC; CREATE PUBLICATION everything FOR ALL TABLES");
    version(&mut publisher.session_as("only_here"), 1);
    to.run(&format!(
        "CREATE SUBSCRIPTION mine CONNECTION 'host={} user=postgres dbname=postgres' PUBLICATION everything",
        publisher.directory().display()
    ));
    to.wait_for("SELECT count(*) FROM t", "300");
    // both give the same ids, and the same names and versions
    version(&mut from, 2);
    let own = version(&mut to, 3);
    let expected = to.lines(ASK);
    from.run("SELECT corgipile_comment('m', 'there'); SELECT corgipile_deploy('m', 1)");
    version(&mut from, 4);
    from.run("SELECT corgipile_drop('m', 1); INSERT INTO t VALUES (301, 0, 1, 1)");
    to.wait_for("SELECT count(*) FROM t", "301");
    assert_eq!(to.models(), 1);
    assert_eq!(to.line("SELECT model_id, comment FROM corgipile.models"), format!("{own}|NULL"));
    assert_eq!(to.lines(ASK)[..300], expected[..]);
    let log = subscriber.log();
    assert!(log.contains("models of corgipile are not replicated"), "{log}");
    assert!(!log.contains("ERROR"), "{log}");
    // A restore that skips triggers is no subscription: it loses nothing.
    let third = Cluster::new(&[]);
    assert!(!copied(&publisher, &third, &[]).contains("ERROR"));
    let mut restored = third.session();
    restored.run("CREATE TABLE kept AS SELECT * FROM corgipile.stored_models; SET session_replication_role = replica");
    restored.run("DELETE FROM corgipile.stored_models; INSERT INTO corgipile.stored_models OVERRIDING SYSTEM VALUE SELECT * FROM kept");
    restored.run("UPDATE corgipile.stored_models SET comment = 'restored'; RESET session_replication_role");
    assert_eq!(restored.models(), 2);
    assert_eq!(restored.lines("SELECT DISTINCT comment FROM corgipile.models"), ["restored"]);
    to.run("DROP SUBSCRIPTION mine");
}

#[test]
fn a_table_that_predicts_in_a_constraint_is_restored_after_the_models() {
    let (there, here) = (Cluster::new(&[]), Cluster::new(&[]));
    let mut session = there.session();
    session.run(TABLE);
    version(&mut session, 1);
    session.run(
        "CREATE SCHEMA app; CREATE FUNCTION app.p(a real, b real) RETURNS float8 IMMUTABLE RETURN public.corgipile_predict(1, ARRAY[a, b]);
         CREATE TABLE app.checked (a real, b real, CHECK (public.corgipile_predict('m', ARRAY[a, b]) >= 0));
         CREATE TABLE app.generated (a real, b real, p float8 GENERATED ALWAYS AS (app.p(a, b)) STORED);
         INSERT INTO app.checked SELECT a, b FROM t; INSERT INTO app.generated SELECT a, b FROM t",
    );
    // Schemas are restored in the order of their names: the error says what to do.
    let said = copied(&there, &here, &[]);
    assert_eq!(said.matches("There are no models in this database yet").count(), 2, "{said}");
    assert!(said.contains("docs/deploy/models.md"), "{said}");
    // Which is what the page says.
    here.session().run("CREATE DATABASE restored TEMPLATE template0");
    let dump = there.directory().join("dump");
    let dump = dump.to_str().expect("a plain path");
    client(&there, "pg_dump", &["-U", "postgres", "-Fc", "-f", dump, "postgres"]);
    for part in [
        &["--section=pre-data"][..],
        &["--data-only", "--schema=corgipile"],
        &["--section=data", "--exclude-schema=corgipile"],
        &["--section=post-data"],
    ] {
        client(
            &here,
            "pg_restore",
            &[&["-U", "postgres", "--exit-on-error", "-d", "restored"], part, &[dump]].concat(),
        );
    }
    for table in ["app.checked", "app.generated"] {
        let count = format!("SELECT count(*) FROM {table}");
        assert_eq!(here.session_in("restored").line(&count), session.line(&count));
    }
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
