//! Every function that reads a source, as roles that must and must not see its rows.
//! docs/internals/privileges.md is the table of it.

use corgipile_tests::{Database, Session, small};

/// Calls that read the label and these features of a source, each with how many rows it says it has read.
fn readers(source: &str, model: i64, features: &str) -> [String; 9] {
    let source = format!("$s${source}$s$");
    [
        format!("SELECT tuples FROM corgipile_train({source}, features => '{{{features}}}', max_epochs => 1)"),
        format!("SELECT value::int FROM corgipile_evaluate({model}, {source}) WHERE metric = 'tuples'"),
        format!("SELECT sum(tuples)::int FROM corgipile_confusion({model}, {source})"),
        format!("SELECT max(tuples) FROM corgipile_curves({model}, {source}) WHERE curve = 'roc'"),
        format!("SELECT tuples FROM corgipile_train_uda({source}, features => '{{{features}}}', max_epochs => 1)"),
        format!("SELECT (corgipile_cluster_factor({source}, 'label', '{{{features}}}') > 0)::text"),
        format!("SELECT tuples FROM corgipile_calibrate({model}, {source})"),
        format!("SELECT tuples FROM corgipile_profile({model}, {source})"),
        format!("SELECT (count(*) > 0)::text FROM corgipile_drift({model}, {source})"),
    ]
}

/// A model of the session's user, trained on what everybody may read.
fn own_model(session: &mut Session, features: &str) -> i64 {
    session.train(&format!("'open', features => '{{{features}}}', max_epochs => 1"))[0].model_id
}

/// Asserts that every reader sees this many rows of a source.
fn see(session: &mut Session, source: &str, rows: i64, features: &str) {
    let model = own_model(session, features);
    for call in readers(source, model, features) {
        let expected = if call.ends_with("::text") || call.contains("corgipile_drift") {
            "true".to_owned()
        } else {
            rows.to_string()
        };
        assert_eq!(session.line(&call), expected, "{call}");
    }
}

/// Asserts that no reader sees anything of a source.
fn see_nothing(session: &mut Session, source: &str, features: &str) {
    let model = own_model(session, features);
    for call in readers(source, model, features) {
        session.fails_with(&call, "42501").says(&["permission denied", "t"]);
    }
}

fn tables(db: &mut Database) {
    small(db, "t", 5000);
    small(db, "open", 100);
    db.run("GRANT SELECT ON open TO PUBLIC");
}

#[test]
fn every_function_needs_select_on_what_it_reads() {
    let mut db = Database::new();
    tables(&mut db);
    let (all, part, none) = (db.role("all"), db.role("part"), db.role("none"));
    db.run(&format!("GRANT SELECT ON t TO {all}; GRANT SELECT (label, a) ON t TO {part}"));
    let shuffle = "SELECT count(*) FROM corgipile_shuffle(NULL::t)";
    let profile = "SELECT count(*) > 0 FROM corgipile_io_profile('t', max_seconds => 0.1)";

    let mut session = db.session_as(&all);
    see(&mut session, "t", 5000, "a,b");
    see(&mut session, "SELECT label, a, b FROM t WHERE id > 1000", 4000, "a,b");
    assert_eq!((session.line(shuffle), session.line(profile)), ("5000".into(), "t".into()));

    let mut session = db.session_as(&part);
    see(&mut session, "SELECT label, a FROM t", 5000, "a");
    see_nothing(&mut session, "SELECT label, a, b FROM t", "a,b");
    see_nothing(&mut session, "SELECT label, a FROM t WHERE c > 0", "a");
    session.fails_with(shuffle, "42501");
    session.fails_with(profile, "42501");

    let mut session = db.session_as(&none);
    see_nothing(&mut session, "t", "a,b");
    see_nothing(&mut session, "SELECT o.label, t.a, t.b FROM open o JOIN t USING (id)", "a,b");
    session.fails_with(shuffle, "42501");
    session.fails_with(profile, "42501");
}

#[test]
fn row_security_holds_for_every_function_and_process() {
    let mut db = Database::new();
    tables(&mut db);
    let (user, owner) = (db.role("user"), db.role("owner"));
    db.run(&format!(
        "UPDATE t SET label = NULL, a = 'NaN' WHERE id = 4321; ALTER TABLE t OWNER TO {owner}; GRANT SELECT ON t TO {user};
         CREATE POLICY few ON t TO {user} USING (id <= 2000); ALTER TABLE t ENABLE ROW LEVEL SECURITY"
    ));
    let train = "SELECT tuples FROM corgipile_train('t', features => '{a,b}', max_epochs => 1, buffer_size => '50%'";
    let mut session = db.session_as(&user);
    // what is wrong with hidden rows is not said either
    see(&mut session, "t", 2000, "a,b");
    see(&mut session, "SELECT o.label, t.a, t.b FROM t JOIN t o USING (id)", 2000, "a,b");
    assert_eq!(session.line("SELECT max(id) FROM corgipile_shuffle(NULL::t)"), "2000");
    for more in ["prefetch => 'on'", "workers => 2", "shuffle => 'shuffle_once'", "sample => 1"] {
        assert_eq!(session.line(&format!("{train}, {more})")), "2000", "{more}");
    }
    let factor = |source: &str| format!("SELECT corgipile_cluster_factor('{source}', 'label', '{{a,b}}')");
    let expected = db.line(&factor("SELECT label, a, b FROM t WHERE id <= 2000"));
    assert_eq!(session.line(&factor("t")), expected);
    // refused instead of filtered, if the user asks for that
    session.run("SET row_security = off");
    session.fails_with(&format!("{train})"), "42501").says(&["row-level security"]);
    session.fails_with("SELECT * FROM corgipile_shuffle(NULL::t)", "42501").says(&["row-level security"]);

    // owners see all, unless they are forced
    let mut session = db.session_as(&owner);
    assert_eq!(session.line("SELECT count(*) FROM corgipile_shuffle(NULL::t)"), "5000");
    session.fails_with(&format!("{train}, options => '{{\"nulls\": \"error\"}}')"), "22004").says(&["label is NULL"]);
    session.run("ALTER TABLE t FORCE ROW LEVEL SECURITY");
    assert_eq!(session.line("SELECT count(*) FROM corgipile_shuffle(NULL::t)"), "0");
    session.fails_with(&format!("{train})"), "22000").says(&["no rows"]);
    // a policy that is gone is gone at the next call of a prepared statement
    let mut session = db.session_as(&user);
    session.run(&format!("PREPARE p AS {train})"));
    assert_eq!(session.line("EXECUTE p"), "2000");
    db.run(&format!("ALTER POLICY few ON t USING (id <= 500); REVOKE SELECT ON open FROM {user}"));
    assert_eq!(session.line("EXECUTE p"), "500");
    db.run(&format!("REVOKE SELECT ON t FROM {user}"));
    session.fails_with("EXECUTE p", "42501");
}

#[test]
fn a_security_barrier_keeps_hidden_rows_from_leaky_functions() {
    let mut db = Database::new();
    tables(&mut db);
    let user = db.role("user");
    db.run(&format!(
        "CREATE VIEW v WITH (security_barrier) AS SELECT * FROM t WHERE id <= 1000; GRANT SELECT ON v TO {user};
         CREATE VIEW parts WITH (security_barrier) AS
           SELECT * FROM (SELECT * FROM t UNION ALL SELECT * FROM open) u WHERE id <= 1000; GRANT SELECT ON parts TO {user}"
    ));
    let mut session = db.session_as(&user);
    session.run(
        "CREATE FUNCTION pg_temp.leak(int) RETURNS bool COST 0.0001 LANGUAGE plpgsql AS
           'BEGIN IF $1 > 1000 THEN RAISE EXCEPTION ''leaked %'', $1; END IF; RETURN true; END'",
    );
    see(&mut session, "SELECT label, a, b FROM v WHERE pg_temp.leak(id)", 1000, "a,b");
    see(&mut session, "SELECT label, a, b FROM parts WHERE pg_temp.leak(id)", 1100, "a,b");
    see_nothing(&mut session, "t", "a,b");
}

#[test]
fn a_security_definer_function_reads_as_its_owner_with_every_function() {
    let mut db = Database::new();
    tables(&mut db);
    let (owner, caller) = (db.role("owner"), db.role("caller"));
    let model = {
        let mut session = db.session_as(&owner);
        own_model(&mut session, "a,b")
    };
    db.run(&format!("GRANT SELECT ON t TO {owner}; GRANT CREATE ON SCHEMA public TO {owner}; SET ROLE {owner}"));
    for (i, call) in readers("t", model, "a,b").iter().enumerate() {
        db.run(&format!(
            "CREATE FUNCTION definer_{i}() RETURNS text SECURITY DEFINER LANGUAGE plpgsql AS
               $f$BEGIN RETURN ({call}); END$f$"
        ));
    }
    db.run(
        "CREATE FUNCTION definer_9() RETURNS text SECURITY DEFINER LANGUAGE sql AS
           'SELECT count(*) FROM corgipile_shuffle(NULL::t)'; RESET ROLE",
    );
    let mut session = db.session_as(&caller);
    for (i, expected) in
        ["5000", "5000", "5000", "5000", "5000", "true", "5000", "5000", "true", "5000"].iter().enumerate()
    {
        assert_eq!(session.line(&format!("SELECT definer_{i}()")), *expected, "{i}");
        see_nothing(&mut session, "t", "a,b");
    }
}
