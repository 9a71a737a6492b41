//! Other extensions' executor hooks see every query of ours from its start to its end: pgaudit logs that a table was
//! read, in whatever process and by whatever function.

use corgipile_tests::{Cluster, Database, Session, skip};

/// A plain table, one with rows out of line, which a worker reads by itself, a sparse one, and a model.
const SETUP: &str = "
    CREATE TABLE audited (id int PRIMARY KEY, label int, x real[], part text, test bool);
    INSERT INTO audited
      SELECT i, i % 2, ARRAY[normal(i, 1) + i % 2, normal(i, 2)], CASE WHEN i % 3 = 0 THEN 'a' ELSE 'b' END, i % 4 = 0
        FROM generate_series(1, 2000::bigint) i;
    CREATE TABLE toasted (label int, x real[]);
    ALTER TABLE toasted ALTER x SET STORAGE EXTERNAL;
    INSERT INTO toasted SELECT i % 2, ARRAY(SELECT normal(i, j) FROM generate_series(1, 800) j)
      FROM generate_series(1, 200::bigint) i;
    CREATE TABLE sparse (label int, indices int[], x real[]);
    INSERT INTO sparse SELECT i % 2, ARRAY[1, i % 50 + 2], ARRAY[normal(i, 1), 1] FROM generate_series(1, 1000) i;
    CREATE TABLE other AS SELECT id, label, x FROM audited WHERE id <= 500;
    CREATE ROLE auditor; GRANT SELECT ON audited, toasted, sparse, other TO auditor;
    ANALYZE;
    SELECT corgipile_train('audited', features => '{x}', max_epochs => 2, name => 'm');
    SELECT corgipile_train('audited', features => '{x}', model => 'linear', max_epochs => 2, name => 'numbers')";

/// Statements, the table that each reads, and how many of its rows if that does not depend on how it is done.
const STATEMENTS: &[(&str, &str, Option<u64>)] = &[
    (
        "SELECT * FROM corgipile_train('audited', features => '{x}', max_epochs => 2, prefetch => 'off', standardize => false)",
        "audited",
        Some(6000), // once before the first epoch
    ),
    (
        "SELECT corgipile_train('audited', features => '{x}', max_epochs => 2, prefetch => 'off', standardize => false)",
        "audited",
        Some(6000), // once before the first epoch
    ),
    ("SELECT * FROM corgipile_train('audited', features => '{x}', max_epochs => 2, workers => 2)", "audited", None),
    ("SELECT corgipile_train('audited', features => '{x}', max_epochs => 2, prefetch => 'on')", "audited", None),
    ("SELECT * FROM corgipile_train('toasted', features => '{x}', max_epochs => 5)", "toasted", None),
    (
        "SELECT * FROM corgipile_train('sparse', features => '{indices,x}', max_epochs => 2, workers => 2)",
        "sparse",
        None,
    ),
    (
        "SELECT * FROM corgipile_train('audited', features => '{x}', max_epochs => 2, group_by => 'part', workers => 2)",
        "audited",
        None,
    ),
    (
        "SELECT * FROM corgipile_train('audited', features => '{x}', max_epochs => 2, grid => '{\"l2\": [0, 0.1]}')",
        "audited",
        None,
    ),
    (
        "SELECT * FROM corgipile_train('audited', features => '{x}', max_epochs => 2, workers => 2,
        grid => '{\"l2\": [0, 0.1]}', options => '{\"validation_fraction\": 0.2}')",
        "audited",
        None,
    ),
    (
        "SELECT * FROM corgipile_train('audited', features => '{x}', max_epochs => 2, workers => 2, options => '{\"validation_column\": \"test\"}')",
        "audited",
        None,
    ),
    (
        "SELECT * FROM corgipile_train('audited', features => '{x}', max_epochs => 2, shuffle => 'epoch_shuffle', standardize => true)",
        "audited",
        None,
    ),
    (
        "SELECT * FROM corgipile_train('audited', features => '{x}', max_epochs => 3, warm_start => 'm', workers => 2)",
        "audited",
        None,
    ),
    (
        "SELECT * FROM corgipile_train('SELECT label, x FROM audited WHERE id > 10', features => '{x}', max_epochs => 2, prefetch => 'on')",
        "audited",
        None,
    ),
    (
        "CALL corgipile_train_in_steps('audited', features => '{x}', max_epochs => 2, name => 'steps', epochs_per_step => 1)",
        "audited",
        None,
    ),
    ("SELECT * FROM corgipile_train_uda('audited', features => '{x}', max_epochs => 2)", "audited", None),
    ("SELECT * FROM corgipile_evaluate('m', 'audited'::text)", "audited", Some(2000)),
    ("SELECT * FROM corgipile_calibrate('numbers', 'audited'::text)", "audited", None),
    ("SELECT * FROM corgipile_importance('m', 'audited'::text)", "audited", None),
    ("SELECT * FROM corgipile_coefficients('numbers', 'audited'::text)", "audited", None),
    ("SELECT * FROM corgipile_drift('m', 'audited'::text)", "audited", None),
    ("SELECT corgipile_cluster_factor('audited', 'label', '{x}')", "audited", Some(4000)),
    ("SELECT count(*) FROM corgipile_shuffle(NULL::audited)", "audited", Some(2000)),
    ("SELECT count(*) FROM (SELECT (corgipile_shuffle(NULL::audited)).*) s", "audited", Some(2000)),
    (
        "BEGIN; DECLARE c CURSOR FOR SELECT * FROM corgipile_shuffle(NULL::audited); FETCH 3 FROM c; CLOSE c; COMMIT",
        "audited",
        None,
    ),
    (
        "SELECT * FROM corgipile_compress('audited', 'packed', features => '{x}'); DROP TABLE packed",
        "audited",
        Some(2000),
    ),
    ("EXPLAIN SELECT * FROM corgipile_train('audited', features => '{x}')", "audited", None),
    (
        "EXPLAIN ANALYZE SELECT * FROM corgipile_train('audited', features => '{x}', max_epochs => 2, workers => 2)",
        "audited",
        None,
    ),
];

/// A server with pgaudit and these settings, with the tables; None, and the test is skipped, where pgaudit is not
/// installed.
fn audited<T>(test: T, settings: &[&str]) -> Option<(Cluster, Session)> {
    if !Database::new().offers_extension("pgaudit") {
        skip(test, "the server has no extension pgaudit");
        return None;
    }
    let cluster =
        Cluster::new(&[settings, &["shared_preload_libraries = 'pgaudit'", "pgaudit.log_relation = on"]].concat());
    let mut session = cluster.session();
    session.run(SETUP);
    Some((cluster, session))
}

/// The entries of a log that say that a table was read.
fn reads(log: &str, kind: &str, table: &str) -> Vec<String> {
    let of_kind = format!("AUDIT: {kind},");
    let of_table = format!("READ,SELECT,TABLE,public.{table},");
    log.lines().filter(|line| line.contains(&of_kind) && line.contains(&of_table)).map(str::to_owned).collect()
}

/// Runs each statement, and shows `f` what the server has logged meanwhile.
fn each_statement(cluster: &Cluster, session: &mut Session, mut f: impl FnMut(&str, &str, Option<u64>, &str)) {
    for (statement, table, rows) in STATEMENTS {
        let before = cluster.log_after(0).1;
        session.run(statement);
        f(statement, table, *rows, &cluster.log_after(before).0);
    }
}

#[test]
fn every_read_of_a_table_is_audited() {
    let Some((cluster, mut session)) = audited(every_read_of_a_table_is_audited, &["pgaudit.log = 'all'"]) else {
        return;
    };
    each_statement(&cluster, &mut session, |statement, table, _, log| {
        assert!(!reads(log, "SESSION", table).is_empty(), "{statement}\n{log}");
    });
    let before = cluster.log_after(0).1;
    session.run("SELECT * FROM corgipile_train('audited', features => '{x}', max_epochs => 1)");
    let called = "FUNCTION,EXECUTE,FUNCTION,public.corgipile_train,";
    assert!(cluster.log_after(before).0.contains(called), "a node stands for a call, which is logged as one");
}

#[test]
fn reads_that_a_role_audits_are_logged_in_every_process() {
    let test = reads_that_a_role_audits_are_logged_in_every_process;
    let Some((cluster, mut session)) = audited(test, &["pgaudit.log = 'none'", "pgaudit.role = 'auditor'"]) else {
        return;
    };
    each_statement(&cluster, &mut session, |statement, table, _, log| {
        assert!(!reads(log, "OBJECT", table).is_empty(), "{statement}\n{log}");
    });
}

#[test]
fn audited_reads_have_the_number_of_rows() {
    let test = audited_reads_have_the_number_of_rows;
    let Some((cluster, mut session)) = audited(test, &["pgaudit.log = 'read'", "pgaudit.log_rows = on"]) else {
        return;
    };
    let rows_of = |entry: &String| entry.rsplit(',').next().and_then(|rows| rows.parse::<u64>().ok());
    each_statement(&cluster, &mut session, |statement, table, rows, log| {
        let entries = reads(log, "SESSION", table);
        if statement.starts_with("BEGIN") {
            return; // of a cursor, pgaudit has forgotten the query when it is closed
        }
        assert!(!entries.is_empty(), "{statement}\n{log}");
        if rows.is_some() {
            assert_eq!(entries.iter().filter_map(rows_of).max(), rows, "{statement}\n{entries:#?}");
        }
    });
    // two queries of ours in one statement, of which the one that began first ends first
    let before = cluster.log_after(0).1;
    session.run(
        "SELECT count(*) FROM corgipile_shuffle(NULL::audited) a FULL JOIN corgipile_shuffle(NULL::other) o ON a.id = o.id",
    );
    let log = cluster.log_after(before).0;
    for (table, rows) in [("audited", 2000), ("other", 500)] {
        let entries = reads(&log, "SESSION", table);
        assert_eq!(entries.iter().map(rows_of).collect::<Vec<_>>(), [Some(rows)], "{table}\n{log}");
    }
}

#[test]
fn a_function_that_is_called_without_a_statement_is_audited() {
    let test = a_function_that_is_called_without_a_statement_is_audited;
    let Some((cluster, _)) = audited(test, &["pgaudit.log = 'read'"]) else { return };
    let call = |source: &str, nodes: Option<&str>| {
        let arguments = [Some(source), Some("label"), Some("{x}"), None, Some("logistic"), nodes];
        let signature = "corgipile_cluster_factor(text,text,text[],text,text,text)";
        cluster.call_by_fastpath(signature, &arguments).expect("the session goes on")
    };
    // foreign tables are looked for before the query starts
    for nodes in [None, Some("auto")] {
        let before = cluster.log_after(0).1;
        let factor = call("audited", nodes);
        assert!(factor.parse::<f64>().is_ok(), "{factor}");
        let log = cluster.log_after(before).0;
        assert!(!reads(&log, "SESSION", "audited").is_empty(), "{log}");
    }
    assert!(call("gone", None).contains("42P01"), "an error is one of the statement");
    assert!(!cluster.log().contains("terminated by signal"));
}

#[test]
fn an_error_leaves_other_extensions_hooks_in_order() {
    let test = an_error_leaves_other_extensions_hooks_in_order;
    let Some((cluster, mut session)) = audited(test, &["pgaudit.log = 'all'", "pgaudit.log_rows = on"]) else { return };
    session.run("CREATE FUNCTION fails(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / ($1 - 1500); END $$");
    let source = "SELECT fails(id) AS label, x FROM audited";
    for call in [
        format!("SELECT * FROM corgipile_train('{source}', features => '{{x}}')"),
        format!("SELECT corgipile_train('{source}', features => '{{x}}', prefetch => 'off')"),
        format!("SELECT corgipile_cluster_factor('{source}', 'label', '{{x}}')"),
        format!("SELECT * FROM corgipile_compress('{source}', 'packed', features => '{{x}}')"),
        "SELECT * FROM corgipile_shuffle(NULL::audited) a, LATERAL fails(a.id)".to_owned(),
    ] {
        session.fails_with(&call, "22012");
        session.fails_with(&format!("BEGIN; SAVEPOINT s; {call}"), "22012");
        session.run("ROLLBACK TO s; CREATE TABLE between (a int); COMMIT; DROP TABLE between");
        session.run(&format!(
            "DO $do$ BEGIN PERFORM * FROM ({call}) s;
             EXCEPTION WHEN division_by_zero THEN CREATE TABLE between (a int); END $do$"
        ));
        session.run("DROP TABLE between");
        let before = cluster.log_after(0).1;
        session.run("SELECT count(*) FROM audited");
        assert_eq!(reads(&cluster.log_after(before).0, "SESSION", "audited").len(), 1, "after {call}");
    }
}
