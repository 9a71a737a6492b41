//! Updates of the extension: there is no second version yet, so that a test writes one, as a release to come would.

use corgipile_tests::{Database, program, sample, skip};
use std::path::{Path, PathBuf};

/// The version that `CREATE EXTENSION` makes.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// From it to one that is made up.
const FILE: &str = concat!("corgipile--", env!("CARGO_PKG_VERSION"), "--", env!("CARGO_PKG_VERSION"), "test.sql");

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
CREATE OR REPLACE FUNCTION corgipile_evaluate(model_id bigint, source text, nulls text DEFAULT NULL, handle_unknown text DEFAULT NULL, servers text DEFAULT NULL)
RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 200000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_wrapper';
CREATE FUNCTION corgipile_named(id bigint) RETURNS text
LANGUAGE sql STABLE AS 'SELECT m.name FROM corgipile.models AS m WHERE m.model_id OPERATOR(pg_catalog.=) id';
"#;

const PREDICT: &str = "SELECT id, corgipile_predict('old', ARRAY[a, b]), corgipile_predict_proba('old', ARRAY[a, b]),
                              corgipile_predict_label('old', t)
                         FROM t ORDER BY id";

/// Where the server looks for scripts; None where its files are not the tests' own.
fn scripts(db: &mut Database) -> Option<PathBuf> {
    let share: String = db.value("SELECT setting FROM pg_config WHERE name = 'SHAREDIR'");
    // scripts/with-postgres makes a copy of the server in its own directory
    let socket: String = db.value("SELECT current_setting('unix_socket_directories')");
    let is_ours = Path::new(&share).starts_with(Path::new(&socket).parent()?);
    is_ours.then(|| Path::new(&share).join("extension"))
}

/// A database with a table, where the made-up update can be had; None where the server's files are not the tests' own.
fn updatable() -> Option<Database> {
    let mut db = Database::new();
    // another test may be reading it
    let (file, new) = (scripts(&mut db)?.join(FILE), scripts(&mut db)?.join(db.name()));
    std::fs::write(&new, SCRIPT).and_then(|()| std::fs::rename(new, file)).expect("the copy is ours");
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
        "REVOKE EXECUTE ON FUNCTION corgipile_evaluate(bigint, text, text, text, text, text) FROM PUBLIC;
         GRANT EXECUTE ON FUNCTION corgipile_evaluate(bigint, text, text, text, text, text) TO {judge}"
    ));
    let model = db.trained("'t', max_epochs => 3, seed => 1, name => 'old', options => '{\"standardize\": true}'");
    let before = db.lines(PREDICT);
    let history = db.lines("SELECT epoch, loss FROM corgipile.training_history ORDER BY model_id, epoch");
    let mut other = db.session();
    assert_eq!(other.lines(PREDICT), before);
    other.run("PREPARE train AS SELECT count(*) FROM corgipile_train('t', max_epochs => 2); EXECUTE train");

    db.run(&format!("ALTER EXTENSION corgipile UPDATE TO '{VERSION}test'"));
    assert_eq!(db.line("SELECT extversion FROM pg_extension WHERE extname = 'corgipile'"), format!("{VERSION}test"));
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
        format!(
            "SELECT has_function_privilege('{role}', 'corgipile_evaluate(bigint, text, text, text, text, text)', 'EXECUTE')"
        )
    };
    assert_eq!((db.line(&may(&judge)), db.line(&may(&stranger))), ("t".to_owned(), "f".to_owned()));
}

#[test]
fn an_update_that_fails_changes_nothing() {
    let Some(mut db) = updatable() else { return skip(an_update_that_fails_changes_nothing, INSTALLED) };
    let model = db.trained("'t', max_epochs => 2, seed => 1, name => 'old'");
    // the update would make a function of this name
    db.run("CREATE FUNCTION corgipile_named(id bigint) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'");
    db.fails_with(&format!("ALTER EXTENSION corgipile UPDATE TO '{VERSION}test'"), "42723");
    assert_eq!(db.line("SELECT extversion FROM pg_extension WHERE extname = 'corgipile'"), VERSION);
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

/// All that is in the catalogs of a database: objects of extensions, too, with their privileges, comments and owners,
/// as pg_upgrade would make them again. Numbers of objects and of transactions are left out.
fn catalog(db: &Database) -> Vec<String> {
    let mut dump = program("pg_dump");
    dump.args(["--binary-upgrade", "--schema-only", "-d", db.name()]);
    let output = dump.output().expect("pg_dump runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("pg_dump writes UTF-8");
    let has_numbers = |line: &str| {
        ["binary_upgrade", "relfrozenxid", " oid = "].iter().any(|word| line.contains(word))
            || line.starts_with("-- Dump")
    };
    let without_numbers = |line: &str| line.chars().filter(|c| !c.is_ascii_digit()).collect();
    // numbers alone, and a random word that newer versions write at both ends
    let is_random = |line: &&str| {
        ["\\restrict", "\\unrestrict", "SELECT pg_catalog.binary_upgrade_set_"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let lines = text.lines().filter(|line| !is_random(line));
    lines.map(|line| if has_numbers(line) { without_numbers(line) } else { line.to_owned() }).collect()
}

/// A database in which the extension was created in one version, and then updated to another.
fn updated(from: &str, to: &str) -> Database {
    let mut db = Database::empty();
    db.run(&format!("CREATE EXTENSION corgipile VERSION '{from}'; ALTER EXTENSION corgipile UPDATE TO '{to}'"));
    db
}

/// A database in which the extension was created in this version.
fn created(version: &str) -> Database {
    let mut db = Database::empty();
    db.run(&format!("CREATE EXTENSION corgipile VERSION '{version}'"));
    db
}

/// The first line in which they differ.
fn difference<'a>(a: &'a [String], b: &'a [String]) -> Option<(&'a str, &'a str)> {
    let line = |lines: &'a [String], i: usize| lines.get(i).map_or("", String::as_str);
    (0..a.len().max(b.len())).map(|i| (line(a, i), line(b, i))).find(|(a, b)| a != b)
}

#[test]
fn whoever_updates_from_a_released_version_has_what_is_created_anew() {
    let mut db = Database::new();
    let default: String = db.value("SELECT default_version FROM pg_available_extensions WHERE name = 'corgipile'");
    let versions: Vec<String> = db.column(
        "SELECT version FROM pg_available_extension_versions WHERE name = 'corgipile' AND version !~ 'test$' ORDER BY 1",
    );
    assert!(versions.contains(&default), "{versions:?}");
    let fresh = catalog(&created(&default));
    assert!(fresh.iter().any(|line| line.starts_with("CREATE FUNCTION public.corgipile_train(")), "{fresh:#?}");
    for version in versions {
        assert_eq!(difference(&catalog(&updated(&version, &default)), &fresh), None, "from {version}");
    }
}

/// What an update may do, and the same in the script of the version before: a text there, and what stands for it.
const CHANGES: [(&str, &str, &str); 6] = [
    ("ALTER TABLE corgipile.stored_models ADD COLUMN tag text;", "    sigmoid_offsets     float8[],",
     "    sigmoid_offsets     float8[],\n    tag text,"),
    (
        "CREATE OR REPLACE FUNCTION corgipile_deploy(name text, version int) RETURNS bigint LANGUAGE c STABLE PARALLEL UNSAFE
         AS 'MODULE_PATHNAME', 'corgipile_deploy_wrapper';",
        "CREATE FUNCTION corgipile_deploy(name text, version int) RETURNS bigint\nLANGUAGE c VOLATILE",
        "CREATE FUNCTION corgipile_deploy(name text, version int) RETURNS bigint\nLANGUAGE c STABLE",
    ),
    (
        "COMMENT ON TABLE corgipile.stored_models IS 'models';",
        "COMMENT ON TABLE corgipile.stored_models IS 'trained models; see corgipile.models';",
        "COMMENT ON TABLE corgipile.stored_models IS 'models';",
    ),
    (
        "GRANT TRIGGER ON corgipile.models TO PUBLIC;",
        "GRANT SELECT ON corgipile.models TO PUBLIC;",
        "GRANT SELECT, TRIGGER ON corgipile.models TO PUBLIC;",
    ),
    (
        "DROP POLICY models_seen ON corgipile.stored_models;
         CREATE POLICY models_seen ON corgipile.stored_models FOR SELECT USING (deployed);",
        "CREATE POLICY models_seen ON corgipile.stored_models FOR SELECT USING (corgipile.may_see(owner, granted_to));",
        "CREATE POLICY models_seen ON corgipile.stored_models FOR SELECT USING (deployed);",
    ),
    (
        "CREATE FUNCTION corgipile_named(id bigint) RETURNS text LANGUAGE sql STABLE
             AS 'SELECT m.name FROM corgipile.models AS m WHERE m.model_id OPERATOR(pg_catalog.=) id';",
        "-- Looking after models.",
        "CREATE FUNCTION corgipile_named(id bigint) RETURNS text LANGUAGE sql STABLE
             AS 'SELECT m.name FROM corgipile.models AS m WHERE m.model_id OPERATOR(pg_catalog.=) id';",
    ),
];

#[test]
fn an_update_that_leaves_something_out_is_told_from_one_that_is_complete() {
    let mut db = Database::new();
    let Some(scripts) = scripts(&mut db) else {
        return skip(an_update_that_leaves_something_out_is_told_from_one_that_is_complete, INSTALLED);
    };
    let released: String =
        db.value("SELECT min(version) FROM pg_available_extension_versions WHERE name = 'corgipile'");
    let mut whole = std::fs::read_to_string(scripts.join(format!("corgipile--{released}.sql"))).expect("it is there");
    for (_, before, after) in CHANGES {
        assert_eq!(whole.matches(before).count(), 1, "{before}");
        whole = whole.replace(before, after);
    }
    // all of it, and all but one
    for left_out in [None].into_iter().chain((0..CHANGES.len()).step_by(sample(1, 3)).map(Some)) {
        let version = format!("9.{}test", left_out.map_or(0, |i| i + 1));
        let changes = CHANGES.iter().enumerate().filter(|(i, _)| Some(*i) != left_out);
        let update: Vec<&str> = changes.map(|(_, (statement, ..))| *statement).collect();
        std::fs::write(scripts.join(format!("corgipile--{released}--{version}.sql")), update.join("\n")).expect("ours");
        std::fs::write(scripts.join(format!("corgipile--{version}.sql")), &whole).expect("ours");
        let (updated, created) = (catalog(&updated(&released, &version)), catalog(&created(&version)));
        let difference = difference(&updated, &created);
        assert_eq!(difference.is_none(), left_out.is_none(), "without {left_out:?}: {difference:?}");
    }
}
