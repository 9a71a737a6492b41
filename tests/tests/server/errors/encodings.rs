//! Databases whose texts need not be UTF-8, which Rust's are.

use corgipile_tests::{Database, program};

/// Databases of their own, each dropped with its test.
struct Encoded {
    db: Database,
    name: String,
}

impl Encoded {
    /// A database with this encoding, the extension and a table `t(y, x, c)` of 100 rows.
    fn new(encoding: &str) -> Self {
        let mut db = Database::new();
        let name = format!("{}_{}", db.name(), encoding.to_lowercase());
        db.run(&format!("CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"));
        let encoded = Encoded { db, name };
        let table =
            "CREATE TABLE t AS SELECT i % 2 AS y, i::float8 AS x, 'a'::text AS c FROM generate_series(1, 100) i";
        assert_eq!(encoded.psql(&format!("CREATE EXTENSION corgipile; {table}")), "");
        encoded
    }

    /// What psql says of these statements, which Rust's client would not understand.
    fn psql(&self, sql: &str) -> String {
        let mut psql = program("psql");
        psql.args([
            "-Xq",
            "-v",
            "VERBOSITY=verbose",
            "-d",
            &self.name,
            "-c",
            "SET client_min_messages = warning",
            "-c",
            sql,
        ]);
        String::from_utf8_lossy(&psql.output().expect("psql runs").stderr).into_owned()
    }

    /// Calls every function of the extension, with this text, an expression, in place of each of its texts, and of all
    /// of them. Gives how often, and the calls that ended with an internal error.
    fn call_all(&self, text: &str) -> String {
        let calls = include_str!("call_all.sql").replace("{text}", text);
        self.psql(&calls)
    }
}

impl Drop for Encoded {
    fn drop(&mut self) {
        // a second panic while a test fails would hide its message
        if !std::thread::panicking() {
            self.db.run(&format!("DROP DATABASE {}", self.name));
        }
    }
}

#[test]
fn roles_are_known_by_names_that_are_not_utf8() {
    let ascii = Encoded::new("SQL_ASCII");
    let role = format!("'{}_' || convert_from('\\xfc', 'SQL_ASCII')", ascii.name);
    let said = ascii.psql(&format!(
        "DO $$
         DECLARE
             name text := quote_ident({role});
             is_same bool;
         BEGIN
             EXECUTE 'CREATE ROLE ' || name;
             EXECUTE format('SELECT format(''%%s'', r) = %1$L AND r::text = %1$L::regrole::oid::text
                                    AND corgipile.shown_role(r) = (SELECT rolname FROM pg_roles WHERE rolname::text = %2$L)
                               FROM (SELECT %1$L::corgipile.stored_role) AS s(r)', name, {role}) INTO is_same;
             EXECUTE 'DROP ROLE ' || name;
             ASSERT is_same;
         END $$"
    ));
    assert_eq!(said, "");
}

#[test]
fn a_database_with_another_encoding_is_refused() {
    let latin = Encoded::new("LATIN1");
    for call in ["corgipile_train('t')", "corgipile_train('tä')", "corgipile_shuffle(NULL::t)"] {
        let message = latin.psql(&format!("SELECT * FROM {call}"));
        let expected = "ERROR:  0A000: the database's encoding is not UTF8\n\
                        HINT:  Use corgipile in a database with the encoding UTF8.\n";
        assert!(message.starts_with(expected), "{call}: {message}");
    }
}

#[test]
fn a_text_that_is_not_utf8_is_refused() {
    let ascii = Encoded::new("SQL_ASCII");
    let bad = r"convert_from('\x67e9', 'SQL_ASCII')";
    let expected = "ERROR:  22021: the text \"g\u{fffd}\" is not UTF-8\n\
                    HINT:  Texts beyond ASCII need a database with the encoding UTF8.\n";
    for call in [
        format!("corgipile_train('t', 'svm', 'y', ARRAY['x', {bad}])"),
        format!("corgipile_train('t', {bad}, 'y')"),
        format!("corgipile_predict({bad}, 1.0)"),
        format!("corgipile_evaluate(1, {bad})"),
        format!("corgipile_compress('t', 'u', 'y', ARRAY[{bad}])"),
    ] {
        let message = ascii.psql(&format!("SELECT * FROM {call}"));
        assert!(message.starts_with(expected), "{call}: {message}");
    }
    let options = format!("options => jsonb_build_object('name', {bad})");
    let message = ascii.psql(&format!("SELECT * FROM corgipile_train('t', 'svm', 'y', {options})"));
    assert!(message.starts_with("ERROR:  22021: the text \"{\"name\": \"g\u{fffd}\"}\" is not UTF-8\n"), "{message}");
    ascii.psql(&format!("UPDATE t SET c = {bad} WHERE y = 1"));
    for columns in ["label => 'c', features => ARRAY['x']", "label => 'y', features => ARRAY['c']", "label => 'y'"] {
        let message = ascii.psql(&format!("SELECT * FROM corgipile_train('t', 'svm', {columns})"));
        assert!(message.starts_with(expected), "{columns}: {message}");
    }
}

#[test]
fn no_function_takes_bytes_for_a_text_that_are_none() {
    let ascii = Encoded::new("SQL_ASCII");
    let trained = ascii.psql("SELECT corgipile_train('t', 'svm', 'y', '{x}', name => 'm')");
    assert_eq!(trained, "");
    for (encoded, text) in [
        (ascii, r"pg_catalog.convert_from('\xe9', 'SQL_ASCII')"),
        (Encoded::new("LATIN1"), r"pg_catalog.convert_from('\xe9', 'LATIN1')"),
    ] {
        let said = encoded.call_all(text);
        let calls = said.lines().find_map(|line| line.split_once("calls: ")).map(|(_, calls)| calls.parse::<u32>());
        assert!(calls.is_some_and(|calls| calls.is_ok_and(|calls| calls > 400)), "{said}");
        assert!(!said.contains("XX000") && !said.contains("not called"), "{said}");
    }
}
