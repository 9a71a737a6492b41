//! Updates of the extension: there is no second version yet, so that a test writes one, as a release to come would.

use corgipile_tests::{Database, skip};
use std::path::Path;

/// From the first release to one that is made up.
const FILE: &str = "corgipile--0.2.0--0.2.1test.sql";

/// What a release may do: a column of the table, a view with one more, a function that gets one more argument, a new
/// one. Privileges stay where an object is replaced.
const SCRIPT: &str = r#"
\echo Use "ALTER EXTENSION corgipile UPDATE" to load this file. \quit
ALTER TABLE corgipile.stored_models ADD COLUMN tag text;
CREATE OR REPLACE VIEW corgipile.all_training_history WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, h.epoch, h.loss, h.accuracy, h.learning_rate, h.tuples, h.seconds, h.r2, h.shuffle_seconds, m.version,
           h.validation_loss, h.validation_score, m.hyperparameters OPERATOR(pg_catalog.->) 'grid_point' AS grid_point,
           m.hyperparameters OPERATOR(pg_catalog.->>) 'group' AS group_value, m.source, m.tag
      FROM corgipile.stored_models AS m
     CROSS JOIN LATERAL pg_catalog.json_to_recordset(m.history)
        AS h(epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8, r2 float8,
             shuffle_seconds float8, validation_loss float8, validation_score float8);
CREATE OR REPLACE FUNCTION corgipile_evaluate(model_id bigint, source text, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 200000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_wrapper';
CREATE FUNCTION corgipile_named(id bigint) RETURNS text
LANGUAGE sql STABLE AS 'SELECT m.name FROM corgipile.models AS m WHERE m.model_id OPERATOR(pg_catalog.=) id';
"#;

const PREDICT: &str = "SELECT id, corgipile_predict('old', ARRAY[a, b]), corgipile_predict_proba('old', ARRAY[a, b]),
                              corgipile_predict_label('old', t)
                         FROM t ORDER BY id";

/// A database with a table, where the made-up update can be had; None where the server's files are not the tests' own.
fn updatable() -> Option<Database> {
    let mut db = Database::new();
    let share: String = db.value("SELECT setting FROM pg_config WHERE name = 'SHAREDIR'");
    // scripts/with-postgres makes a copy of the server in its own directory
    let socket: String = db.value("SELECT current_setting('unix_socket_directories')");
    let directory = Path::new(&socket).parent()?;
    if !Path::new(&share).starts_with(directory) {
        return None;
    }
    std::fs::write(Path::new(&share).join("extension").join(FILE), SCRIPT).expect("the copy is ours");
    db.run(
        "CREATE TABLE t AS SELECT i AS id, i % 2 AS label, (i % 2 + i % 7)::real AS a, (i % 5)::real AS b
           FROM generate_series(1, 500) i;
         ALTER TABLE t ADD PRIMARY KEY (id)",
    );
    Some(db)
}

const INSTALLED: &str = "the server is one that is installed, whose files are not to be changed";

#[test]
fn an_update_keeps_models_privileges_and_the_sessions_that_are_there() {
    let Some(mut db) = updatable() else {
        return skip(an_update_keeps_models_privileges_and_the_sessions_that_are_there, INSTALLED);
    };
    let (judge, stranger) = (db.role("judge"), db.role("stranger"));
    db.run(&format!(
        "REVOKE EXECUTE ON FUNCTION corgipile_evaluate(bigint, text, text, text) FROM PUBLIC;
         GRANT EXECUTE ON FUNCTION corgipile_evaluate(bigint, text, text, text) TO {judge}"
    ));
    let model = db.trained("'t', max_epochs => 3, seed => 1, name => 'old', options => '{\"standardize\": true}'");
    let before = db.lines(PREDICT);
    let history = db.lines("SELECT epoch, loss FROM corgipile.training_history ORDER BY model_id, epoch");
    let mut other = db.session();
    assert_eq!(other.lines(PREDICT), before);
    other.run("PREPARE train AS SELECT count(*) FROM corgipile_train('t', max_epochs => 2); EXECUTE train");

    db.run("ALTER EXTENSION corgipile UPDATE TO '0.2.1test'");
    assert_eq!(db.line("SELECT extversion FROM pg_extension WHERE extname = 'corgipile'"), "0.2.1test");
    for session in [&mut *db, &mut other] {
        assert_eq!(session.lines(PREDICT), before);
        assert_eq!(session.model(model.id).bits(), model.bits());
    }
    assert_eq!(
        db.lines("SELECT epoch, loss FROM corgipile.training_history ORDER BY model_id, epoch LIMIT 3"),
        history
    );
    assert_eq!(db.line(&format!("SELECT corgipile_named({})", model.id)), "old");
    other.run("EXECUTE train");
    // a training goes on, and what is new is stored
    assert_eq!(other.train("'t', warm_start => 'old', name => 'old', max_epochs => 2").len(), 2);
    assert_eq!(other.line("SELECT version, tag FROM corgipile.models JOIN corgipile.stored_models AS s USING (model_id, version) WHERE s.name = 'old' ORDER BY 1 DESC LIMIT 1"), "2|NULL");
    let may = |role: &str| {
        format!("SELECT has_function_privilege('{role}', 'corgipile_evaluate(bigint, text, text, text)', 'EXECUTE')")
    };
    assert_eq!((db.line(&may(&judge)), db.line(&may(&stranger))), ("t".to_owned(), "f".to_owned()));
}

#[test]
fn an_update_that_fails_changes_nothing() {
    let Some(mut db) = updatable() else { return skip(an_update_that_fails_changes_nothing, INSTALLED) };
    let model = db.trained("'t', max_epochs => 2, seed => 1, name => 'old'");
    // the update would make a function of this name
    db.run("CREATE FUNCTION corgipile_named(id bigint) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'");
    db.fails_with("ALTER EXTENSION corgipile UPDATE TO '0.2.1test'", "42723");
    assert_eq!(db.line("SELECT extversion FROM pg_extension WHERE extname = 'corgipile'"), "0.2.0");
    db.fails_with("SELECT tag FROM corgipile.stored_models", "42703");
    assert_eq!(db.model(model.id).bits(), model.bits());
    assert_eq!(db.lines(PREDICT).len(), 500);
}

#[test]
fn there_is_a_way_from_every_version_to_the_one_that_is_installed() {
    let mut db = Database::new();
    let (installed, default): (String, String) = (
        db.value("SELECT extversion FROM pg_extension WHERE extname = 'corgipile'"),
        db.value("SELECT default_version FROM pg_available_extensions WHERE name = 'corgipile'"),
    );
    assert_eq!(installed, default);
    let stuck = format!(
        "SELECT source FROM pg_extension_update_paths('corgipile')
          WHERE target = '{default}' AND path IS NULL AND source !~ 'test$'"
    );
    assert_eq!(db.lines(&stuck), Vec::<String>::new());
}
