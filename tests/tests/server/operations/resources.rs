//! What a session holds: memory and files do not grow with the number of calls, and calls can nest.

use corgipile_tests::{Cluster, Database, Session, clustered, small};

/// The resident memory of a session's process, in MB.
fn resident(session: &mut Session) -> f64 {
    let pages: i64 = session.value("SELECT split_part(pg_read_file('/proc/self/statm'), ' ', 2)::bigint");
    pages as f64 * 4096.0 / 1e6
}

/// Asserts that repeating statements does not make the session's process grow by more than `megabytes`.
fn does_not_grow(session: &mut Session, megabytes: f64, times: u32, mut repeat: impl FnMut(&mut Session, u32)) {
    for i in 0..times / 4 {
        repeat(session, i);
    }
    let before = resident(session);
    for i in 0..times {
        repeat(session, i);
    }
    let growth = resident(session) - before;
    assert!(growth < megabytes, "{times} times make the process grow by {growth} MB");
}

#[test]
fn training_again_and_again_does_not_leak() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    does_not_grow(&mut db, 8.0, 200, |session, i| {
        session.run(&format!("SELECT * FROM corgipile_train('t', max_epochs => 2, seed => {i})"));
        session.run("SELECT corgipile_train('SELECT label, features_v FROM t', 'svm', max_epochs => 1)");
        session.run("SELECT count(*) FROM corgipile_shuffle(NULL::t)");
    });
}

#[test]
fn errors_in_mid_training_do_not_leak() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    db.run("INSERT INTO t VALUES (4001, 1, '{1,2,NULL,4,5}')");
    does_not_grow(&mut db, 8.0, 200, |session, i| {
        let buffer = if i % 2 == 0 { "10%" } else { "100%" };
        let options = "options => '{\"nulls\": \"error\"}'";
        let train = format!("corgipile_train('t', buffer_size => '{buffer}', shuffle => 'no_shuffle', {options})");
        session.fails_with(&format!("SELECT * FROM {train}"), "22004");
        session.fails_with(&format!("SELECT {train}"), "22004");
        session.run(&format!(
            "DO $$ BEGIN PERFORM * FROM {train}; EXCEPTION WHEN null_value_not_allowed THEN NULL; END $$"
        ));
    });
}

#[test]
fn many_trainings_in_one_transaction_do_not_leak() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    db.run("BEGIN");
    does_not_grow(&mut db, 8.0, 100, |session, _| {
        session.run("SELECT * FROM corgipile_train('t', max_epochs => 2)");
        session.run("SELECT count(*) FROM corgipile_shuffle(NULL::t)");
    });
    db.run("COMMIT");
}

#[test]
fn a_statement_of_many_predictions_does_not_leak() {
    let mut db = Database::with_small_table(200);
    let id = db.train("'t', max_epochs => 1, name => 'm'")[0].model_id;
    for call in [
        format!("corgipile_predict({id}, ARRAY[g, 2, 3])"),
        "corgipile_predict('m', ARRAY[g, 2, 3]::numeric[])".to_owned(),
        format!("corgipile_predict_label({id}, ARRAY[g, 2, 3]::real[])"),
        format!("corgipile_predict_proba({id}, ARRAY[g, 2, 3]::real[])"),
    ] {
        does_not_grow(&mut db, 8.0, 4, |session, _| {
            session.run(&format!("SELECT count({call}) FROM generate_series(1, 30000) g"));
        });
    }
}

#[test]
fn a_training_of_many_epochs_or_a_shuffle_of_many_scans_does_not_leak() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    does_not_grow(&mut db, 8.0, 4, |session, _| {
        session.run("SELECT * FROM corgipile_train('t', max_epochs => 2000)");
        session.run("SELECT * FROM corgipile_train('SELECT t.* FROM t JOIN t u USING (id)', max_epochs => 500)");
        session.run(
            "SELECT count(*) FROM generate_series(1, 500) g,
             LATERAL (SELECT * FROM corgipile_shuffle(NULL::t, seed => g) OFFSET 0) s",
        );
    });
}

#[test]
fn no_file_stays_open() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    db.run("SET work_mem = '64kB'");
    let files = "SELECT count(*) FROM pg_ls_dir('/proc/self/fd')";
    let query = "SELECT * FROM corgipile_train('SELECT t.* FROM t JOIN t u USING (id)', max_epochs => 2)";
    db.run(query);
    let before: i64 = db.value(files);
    for _ in 0..20 {
        db.run(query);
        db.fails_with(&query.replace("max_epochs => 2", "options => '{\"decay\": 2}'"), "22023");
        let failing = query.replace("t.* FROM", "t.label, 1 / (t.id - 3999) AS x FROM");
        db.fails_with(&failing, "22012");
    }
    let after: i64 = db.value(files);
    // a file of each of sixty statements would be more; PostgreSQL may open those of a few catalogs
    assert!(after <= before + 15, "{before} files open before, {after} after");
}

#[test]
fn a_source_may_train_and_predict_itself() {
    let mut db = Database::with_small_table(60);
    small(&mut db, "u", 60);
    db.run(
        "CREATE FUNCTION inner_loss(epochs int) RETURNS float8 LANGUAGE sql
           AS 'SELECT min(loss) FROM corgipile_train(''u'', max_epochs => epochs, seed => 1)';
         CREATE FUNCTION shuffled(s int) RETURNS bigint LANGUAGE sql
           AS 'SELECT sum(id) FROM corgipile_shuffle(NULL::u, seed => s)'",
    );
    let nested = db.train("'SELECT label, a, inner_loss(1 + id % 3) AS l FROM t', max_epochs => 2, seed => 1");
    assert_eq!(nested[0].tuples, 60);
    let inside = db.train("'SELECT label, a, shuffled(id) / 1000.0 AS s FROM t', max_epochs => 2, seed => 1");
    assert_eq!(inside[1].tuples, 60);
    let sum = db.line("SELECT count(*) FILTER (WHERE shuffled(s.id) = 1830) FROM corgipile_shuffle(NULL::t) s");
    assert_eq!(sum, "60");
}

#[test]
fn two_open_cursors_do_not_disturb_each_other() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    let query = |seed: u32| format!("SELECT id FROM corgipile_shuffle(NULL::t, seed => {seed}, buffer_size => '20%')");
    let expected = [db.lines(&query(1)), db.lines(&query(2))];
    db.run(&format!("BEGIN; DECLARE c1 CURSOR FOR {}; DECLARE c2 CURSOR FOR {}", query(1), query(2)));
    let mut given = [Vec::new(), Vec::new()];
    for step in 0..50 {
        for (i, rows) in given.iter_mut().enumerate() {
            rows.extend(db.lines(&format!("FETCH 20 FROM c{}", i + 1)));
        }
        if step % 10 == 0 {
            db.run("SELECT corgipile_train('t', max_epochs => 1)");
        }
    }
    assert!(given == expected);
}

#[test]
fn a_failed_statement_leaves_other_cursors_usable() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    let expected = db.lines("SELECT id FROM corgipile_shuffle(NULL::t, seed => 1)");
    db.run("BEGIN; DECLARE c CURSOR FOR SELECT id FROM corgipile_shuffle(NULL::t, seed => 1)");
    let mut given = db.lines("FETCH 300 FROM c");
    db.run("SAVEPOINT s");
    db.fails_with("SELECT * FROM corgipile_train('t', label => 'nope')", "42703");
    db.run("ROLLBACK TO s");
    db.fails_with("SELECT id / (id - 500) FROM corgipile_shuffle(NULL::t)", "22012");
    db.run("ROLLBACK TO s");
    given.extend(db.lines("FETCH ALL FROM c"));
    assert!(given == expected);
}

#[test]
fn memory_that_the_system_refuses_is_an_error_that_says_what_takes_less() {
    let mut db = Database::new();
    let pages: i64 = db.value("SELECT split_part(pg_read_file('/proc/self/statm'), ' ', 1)::bigint");
    // by a program of the session's own, which is allowed to
    let limit = pages * 4096 + (64 << 20);
    db.run(&format!("COPY (SELECT) TO PROGRAM 'cat > /dev/null; prlimit --pid $PPID --as={limit}'"));
    let order = "SELECT count(*) FROM corgipile_shuffle_order('shuffle_once', 100000000, 1000, 10000000, 1)";
    db.fails_with(order, "53200").is(
        "53200",
        "out of memory: could not allocate ... bytes",
        "To need less, use a smaller buffer_size or \
         corgipile.max_buffer_memory, or fewer features or classes.",
    );
    assert_eq!(db.line("SELECT 1"), "1");
}

#[test]
fn an_administrator_limits_the_memory_that_users_may_ask_for() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let (name, role) = (db.name().to_owned(), db.role("user"));
    db.run(&format!("GRANT SELECT ON t TO {role}"));
    // the pages of the buffer of a training that asks for all of the table
    let buffer = |session: &mut Session| {
        session.run("SELECT corgipile_train('t', max_epochs => 1, buffer_size => '100%', seed => 1)");
        session.value::<i64>(
            "SELECT (hyperparameters->>'buffer_blocks')::bigint * (hyperparameters->>'pages_per_block')::bigint
               FROM corgipile.models ORDER BY model_id DESC LIMIT 1",
        )
    };
    let free = buffer(&mut db.session_as(&role));
    db.run(&format!("ALTER DATABASE {name} SET corgipile.memory_limit = '64kB'"));
    // a user's settings are of no use, before the library is there and afterwards, for a session or for the role
    let mut session = db.session_as(&role);
    session.run("SET corgipile.memory_limit = '1GB'; SET corgipile.max_buffer_memory = '2GB'; SET corgipile.cache_memory = '2GB'");
    let limited = buffer(&mut session);
    assert!(limited < free / 4, "{limited} pages instead of {free}");
    assert_eq!(session.line("SHOW corgipile.memory_limit"), "64kB");
    session.fails_with("SET corgipile.memory_limit = '1GB'", "42501");
    session.fails_with(&format!("ALTER ROLE {role} SET corgipile.memory_limit = '1GB'"), "42501");
    session.run(&format!("ALTER ROLE {role} SET corgipile.max_buffer_memory = '2GB'"));
    assert_eq!(buffer(&mut db.session_as(&role)), limited);
    // what a client asks for as it connects displaces the administrator's value, and is refused: the least holds
    let mut client = corgipile_tests::program("psql");
    client.env("PGOPTIONS", "-c corgipile.memory_limit=1GB -c corgipile.max_buffer_memory=2GB").args(["-X", "-qAt"]);
    client.args([
        "-U",
        &role,
        "-d",
        &name,
        "-c",
        "SELECT count(*) FROM corgipile_train('t', max_epochs => 1, buffer_size => '100%', seed => 1)",
    ]);
    client.args(["-c", "SHOW corgipile.memory_limit"]);
    let output = client.output().expect("psql starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n64kB\n", "{}", String::from_utf8_lossy(&output.stderr));
    // an administrator may let one role have more
    db.run(&format!("ALTER ROLE {role} SET corgipile.memory_limit = '1GB'"));
    assert_eq!(buffer(&mut db.session_as(&role)), free);
    db.run(&format!("ALTER ROLE {role} RESET ALL"));
}

#[test]
fn rows_that_are_read_into_a_file_count_against_temp_file_limit() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    // read once, by one process and by a worker
    for loader in ["off", "on"] {
        let join = format!(
            "SELECT count(*) FROM corgipile_train('SELECT t.label, t.features_v FROM t JOIN t AS u USING (id)', max_epochs => 2,
                                                  prefetch => '{loader}')"
        );
        db.run("SET work_mem = '64MB'; SET temp_file_limit = '256kB'");
        db.rejects(&join, "53400");
        db.run("RESET temp_file_limit");
        assert_eq!(db.line(&join), "2");
    }
}

#[test]
fn backtraces_of_a_server_that_makes_them_are_not_shown_to_users() {
    let cluster = Cluster::with_environment(&[("RUST_BACKTRACE", "full")]);
    let mut session = cluster.session();
    for (sql, code) in [
        ("SELECT corgipile_train('nowhere')", "42P01"),
        ("SELECT corgipile_sgd_init('logistic', 0)", "22023"),
        ("SELECT corgipile_train('SELECT 1 / 0 AS label, 1 AS x', features => '{x}')", "22012"),
    ] {
        let failure = session.fails_with(sql, code);
        assert_eq!(failure.detail, "", "{sql}");
    }
}
