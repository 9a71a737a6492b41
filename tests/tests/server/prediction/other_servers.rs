//! Rows of other servers: predictions are those of the model that the server has which was asked, or fail.

use corgipile_tests::stored::DENSE;
use corgipile_tests::{Database, Session, program, skip};

/// Every way to use a model that is stored.
fn uses(model: &str) -> Vec<String> {
    vec![
        format!("SELECT corgipile_predict({model}, ARRAY[1, 2, 3])"),
        format!("SELECT corgipile_predict({model}, '{{1}}'::int[], ARRAY[2])"),
        format!("SELECT corgipile_predict_label({model}, ARRAY[1, 2, 3])"),
        format!("SELECT corgipile_predict_proba({model}, ARRAY[1, 2, 3])"),
        format!("SELECT count(corgipile_predict({model}, r)) FROM t AS r"),
        format!("SELECT * FROM corgipile_evaluate({model}, 't')"),
        format!("SELECT corgipile_export({model})"),
        format!("SELECT corgipile_export({model}, 'sql')"),
    ]
}

/// A database with a table of arrays, and a model called `m`.
fn database() -> (Database, i64) {
    let mut db = Database::new();
    let id = DENSE.store(&mut db, "m");
    db.run("CREATE TABLE t (label int, x real[]); INSERT INTO t VALUES (1, '{1,2,3}'), (-1, '{-1,-2,-3}')");
    (db, id)
}

/// Asserts that the session uses the model, however it is called and asked.
fn uses_models(session: &mut Session, id: i64) {
    for model in ["'m'".to_owned(), id.to_string()] {
        for sql in uses(&model) {
            session.run(&sql);
        }
    }
}

#[test]
fn a_part_of_another_servers_query_uses_no_model_of_this_server() {
    let (mut db, id) = database();
    let value = db.line("SELECT corgipile_export('m')");
    uses_models(&mut db, id);
    db.run("SET application_name = 'citus_internal gpid=10000000001'");
    for (model, called) in [("'m'".to_owned(), "model \"m\"".to_owned()), (id.to_string(), format!("model {id}"))] {
        for sql in uses(&model) {
            let failure = db.fails_with(&sql, "0A000");
            assert!(failure.message.starts_with(&called), "{sql}: {failure:#?}");
            assert!(failure.hint.contains("corgipile_export()"), "{sql}: {failure:#?}");
        }
    }
    db.rejects("SELECT corgipile_train('t', features => '{x}', max_epochs => 1, warm_start => 'm')", "0A000");
    // nor does it store any
    db.run("CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$ BEGIN PERFORM corgipile_train('t', features => '{x}', max_epochs => 1); END $$");
    for (sql, what) in [
        ("SELECT corgipile_train('t', features => '{x}', max_epochs => 1, name => 'new')", "corgipile_train()"),
        ("SELECT corgipile_train_uda('t', features => '{x}', max_epochs => 1)", "corgipile_train_uda()"),
        ("SELECT corgipile_search('t', features => '{x}', max_epochs => 1)", "corgipile_search()"),
        ("CALL steps()", "corgipile_train()"),
        ("SELECT corgipile_compress('t', 'smaller', features => '{x}')", "corgipile_compress()"),
        ("SELECT corgipile_drop('m')", "changes of models"),
        ("SELECT corgipile_rename('m', 'other')", "changes of models"),
        ("SELECT corgipile_deploy('m', 1)", "changes of models"),
        ("SELECT corgipile_comment('m', 'good')", "changes of models"),
        ("SELECT corgipile_grant('m', 'public')", "changes of models"),
        ("SELECT corgipile_drop_owned(current_user::text)", "changes of models"),
        (&format!("SELECT corgipile_import('{value}'::jsonb, 'other')"), "corgipile_import()"),
    ] {
        let failure = db.rejects(sql, "0A000");
        assert_eq!(failure.message, format!("cannot execute {what} in a part of another server's query"), "{sql}");
    }
    // and no other session, whatever its name has in it
    let as_value = format!("SELECT corgipile_predict('{value}'::jsonb, ARRAY[1, 2, 3])");
    let answer = db.line(&as_value);
    for name in ["psql", "my citus_internal", "citus_run_command gpid=10000000001", ""] {
        db.run(&format!("SET application_name = '{name}'"));
        uses_models(&mut db, id);
    }
    assert_eq!(db.line("SELECT corgipile_predict('m', ARRAY[1, 2, 3])"), answer);
}

#[test]
fn a_session_of_another_server_stays_one_whatever_it_is_called_later() {
    let (db, _) = database();
    let ask = |name: &str, later: &str| {
        let mut psql = program("psql");
        psql.env("PGAPPNAME", name).args(["-XqAt", "-v", "VERBOSITY=sqlstate", "-d", db.name()]);
        psql.args(["-c", &format!("SET application_name = '{later}'")]);
        psql.args(["-c", "SELECT corgipile_predict('m', ARRAY[1, 2, 3]) IS NOT NULL"]);
        let output = psql.output().expect("psql runs");
        String::from_utf8([output.stdout, output.stderr].concat()).expect("psql writes UTF-8")
    };
    assert_eq!(ask("psql", "renamed").trim(), "t");
    assert_eq!(ask("citus_internal gpid=10000000001", "renamed").trim(), "ERROR:  0A000");
    assert_eq!(ask("psql", "citus_internal gpid=10000000001").trim(), "ERROR:  0A000");
}

#[test]
fn predictions_for_a_foreign_table_are_those_of_the_server_that_was_asked() {
    let (mut near, mut far) = (Database::new(), Database::new());
    if !near.offers_extension("postgres_fdw") {
        return skip(
            predictions_for_a_foreign_table_are_those_of_the_server_that_was_asked,
            "the server has no extension postgres_fdw",
        );
    }
    let model = |weight: i32| {
        format!(
            r#"SELECT corgipile_import('{{"corgipile_model": 1, "model": "linear", "label": "y", "label_type": "float8",
                 "features": ["x"], "feature_kind": "columns", "weights": [{weight}], "intercepts": [0]}}', 'm')"#
        )
    };
    near.run(&model(2));
    far.run(&model(3));
    far.run("CREATE TABLE t (id int, x real); INSERT INTO t SELECT i, i FROM generate_series(1, 100) i; ANALYZE t");
    let socket: String = near.value("SELECT current_setting('unix_socket_directories')");
    near.run(&format!(
        "CREATE EXTENSION postgres_fdw;
         CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw
             OPTIONS (host '{socket}', port '5432', dbname '{}', extensions 'corgipile');
         CREATE USER MAPPING FOR CURRENT_USER SERVER far OPTIONS (user 'postgres');
         CREATE FOREIGN TABLE t (id int, x real) SERVER far",
        far.name()
    ));
    let value = near.line("SELECT corgipile_export('m')");
    for model in ["'m'".to_owned(), "(SELECT corgipile_export('m'))".to_owned(), format!("'{value}'::jsonb")] {
        let sums = format!(
            "SELECT sum(corgipile_predict({model}, x)), sum(corgipile_predict({model}, r)),
                    count(*) FILTER (WHERE corgipile_predict({model}, x) > 100) FROM t AS r"
        );
        assert_eq!(near.line(&sums), "10100|10100|50", "{model}");
        assert_eq!(near.line(&format!("SELECT count(*) FROM t WHERE corgipile_predict({model}, x) > 100")), "50");
    }
    assert_eq!(far.line("SELECT sum(corgipile_predict('m', x)) FROM t"), "15150");
}
