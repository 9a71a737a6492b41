//! A client's connection, with the few ways to ask that the tests need.

use crate::{Failure, server};
use postgres::types::{FromSqlOwned, ToSql};
use postgres::{CancelToken, Client, Config, Row, SimpleQueryMessage};
use std::sync::{Arc, Mutex};

/// A connection to a test's database.
///
/// Statements that fail panic with the statement and the server's error, but for [`Session::attempt`] and those that
/// expect it. A warning of PostgreSQL that a statement has leaked a buffer, a relation or a file fails the test too.
pub struct Session {
    client: Client,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl Session {
    pub(crate) fn connect(database: &str, role: Option<&str>) -> Self {
        let mut config = server::config();
        config.dbname(database);
        if let Some(role) = role {
            config.user(role);
        }
        Self::open(&config)
    }

    /// A session of a server that need not be the shared one.
    pub(crate) fn open(config: &Config) -> Self {
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&warnings);
        let mut config = config.clone();
        // A test that hangs fails instead.
        config.options("-c statement_timeout=120s").notice_callback(move |notice| {
            if notice.severity() == "WARNING" {
                sink.lock().expect("nobody panics with the lock held").push(notice.message().to_owned());
            }
        });
        let client = server::connect(&config).unwrap_or_else(|e| panic!("cannot connect to {config:?}: {e:?}"));
        Self { client, warnings }
    }

    /// Runs one or more statements.
    pub fn run(&mut self, sql: &str) {
        self.attempt(sql).unwrap_or_else(|failure| panic!("{sql}\n{failure:#?}"));
    }

    /// Runs one or more statements that may fail; gives the last one's rows, as [`Session::lines`] does.
    pub fn attempt(&mut self, sql: &str) -> Result<Vec<String>, Failure> {
        let result = self.client.simple_query(sql);
        self.complain_of_leaks(sql);
        let mut lines = Vec::new();
        for message in result? {
            match message {
                SimpleQueryMessage::RowDescription(_) => lines.clear(),
                SimpleQueryMessage::Row(row) => {
                    let fields: Vec<&str> = (0..row.len()).map(|i| row.get(i).unwrap_or("NULL")).collect();
                    lines.push(fields.join("|"));
                }
                _ => {}
            }
        }
        Ok(lines)
    }

    /// The rows of the last statement as text, a line each, fields separated by `|`, NULL as `NULL`.
    pub fn lines(&mut self, sql: &str) -> Vec<String> {
        self.attempt(sql).unwrap_or_else(|failure| panic!("{sql}\n{failure:#?}"))
    }

    /// The only row of the last statement as text.
    pub fn line(&mut self, sql: &str) -> String {
        let mut lines = self.lines(sql);
        assert_eq!(lines.len(), 1, "{sql} gives one row");
        lines.remove(0)
    }

    /// The rows of one statement, in binary.
    pub fn rows(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Vec<Row> {
        let result = self.client.query(sql, parameters);
        self.complain_of_leaks(sql);
        result.unwrap_or_else(|e| panic!("{sql}\n{:#?}", Failure::from(e)))
    }

    /// The first column of every row.
    pub fn column<T: FromSqlOwned>(&mut self, sql: &str) -> Vec<T> {
        self.rows(sql, &[]).iter().map(|row| row.get(0)).collect()
    }

    /// The first column of the only row.
    pub fn value<T: FromSqlOwned>(&mut self, sql: &str) -> T {
        let mut column = self.column(sql);
        assert_eq!(column.len(), 1, "{sql} gives one row");
        column.remove(0)
    }

    /// Asserts that the statement fails with this SQLSTATE; gives the error for a closer look.
    pub fn fails_with(&mut self, sql: &str, code: &str) -> Failure {
        match self.attempt(sql) {
            Ok(lines) => {
                let first = &lines[..lines.len().min(5)];
                panic!("{sql}\nwas expected to fail with {code}, but gave {} rows, first {first:#?}", lines.len());
            }
            Err(failure) => {
                assert_eq!(failure.code, code, "{sql}\n{failure:#?}");
                failure
            }
        }
    }

    /// As [`Session::fails_with`], and asserts that no model has been stored.
    pub fn rejects(&mut self, sql: &str, code: &str) -> Failure {
        let before = self.models();
        let failure = self.fails_with(sql, code);
        assert_eq!(self.models(), before, "{sql} failed, but stored a model");
        failure
    }

    /// How many models this session's user sees.
    pub fn models(&mut self) -> i64 {
        self.value("SELECT count(*) FROM corgipile.models")
    }

    /// Asserts that a query gives exactly the rows of another, each as often.
    pub fn assert_same_rows(&mut self, left: &str, right: &str) {
        let difference = self.lines(&format!(
            "WITH a AS MATERIALIZED ({left}), b AS MATERIALIZED ({right})
             SELECT 'too many', d::text FROM (TABLE a EXCEPT ALL TABLE b) d
             UNION ALL SELECT 'missing', d::text FROM (TABLE b EXCEPT ALL TABLE a) d"
        ));
        assert!(difference.is_empty(), "{left}\ndiffers from\n{right}\nby {difference:#?}");
    }

    /// Asserts that `corgipile_shuffle()` gives the rows of something that is not simply a heap table once each,
    /// or refuses it.
    pub fn assert_shuffled_or_refused(&mut self, relation: &str) {
        match self.attempt(&format!("SELECT count(*) FROM corgipile_shuffle(NULL::{relation})")) {
            Ok(_) => self.assert_same_rows(
                &format!("SELECT s::text FROM corgipile_shuffle(NULL::{relation}) s"),
                &format!("SELECT s::text FROM {relation} s"),
            ),
            Err(failure) => assert_eq!(failure.code, "42809", "{failure:#?}"),
        }
    }

    /// Everything that `COPY ... TO STDOUT` writes.
    pub fn copy_out(&mut self, sql: &str) -> String {
        let mut text = String::new();
        let mut reader = self.client.copy_out(sql).unwrap_or_else(|e| panic!("{sql}\n{:#?}", Failure::from(e)));
        std::io::Read::read_to_string(&mut reader, &mut text).unwrap_or_else(|e| panic!("{sql}\n{e:?}"));
        text
    }

    /// Feeds text to `COPY ... FROM STDIN`.
    pub fn copy_in(&mut self, sql: &str, text: &str) {
        self.attempt_copy_in(sql, text.as_bytes()).unwrap_or_else(|failure| panic!("{sql}\n{failure:#?}"));
    }

    /// Feeds bytes to a `COPY ... FROM STDIN` that may fail.
    ///
    /// # Errors
    /// What the server says of them.
    pub fn attempt_copy_in(&mut self, sql: &str, bytes: &[u8]) -> Result<(), Failure> {
        let mut writer = self.client.copy_in(sql)?;
        std::io::Write::write_all(&mut writer, bytes).expect("the server takes the rows");
        writer.finish()?;
        Ok(())
    }

    /// Feeds a `COPY ... FROM STDIN WITH (FORMAT binary)` one row of one column, whose bytes these are.
    ///
    /// # Errors
    /// What the server says of them.
    pub fn attempt_copy_in_binary(&mut self, sql: &str, value: &[u8]) -> Result<(), Failure> {
        let mut file = b"PGCOPY\n\xff\r\n\0".to_vec();
        file.extend([0; 8]);
        file.extend(1_i16.to_be_bytes());
        file.extend((value.len() as i32).to_be_bytes());
        file.extend(value);
        file.extend((-1_i16).to_be_bytes());
        self.attempt_copy_in(sql, &file)
    }

    /// The server's major version.
    pub fn major(&mut self) -> i32 {
        self.value("SELECT current_setting('server_version_num')::int / 10000")
    }

    /// The fastest method of compression that the server has.
    pub fn fastest_compression(&mut self) -> &'static str {
        let has_lz4 = "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'";
        if self.value(has_lz4) { "lz4" } else { "pglz" }
    }

    /// Was the server built with a library, such as `libxml` or `icu`?
    pub fn is_built_with(&mut self, library: &str) -> bool {
        let how: String = self.value("SELECT setting FROM pg_config WHERE name = 'CONFIGURE'");
        // since PostgreSQL 16 with ICU unless it is left out
        let by_default = library == "icu" && self.major() > 15 && !how.contains("--without-icu");
        by_default || how.contains(&format!("--with-{library}"))
    }

    /// The process that serves this session.
    pub fn pid(&mut self) -> i32 {
        self.value("SELECT pg_backend_pid()")
    }

    /// What cancels the statement that this session is running, from another thread.
    pub fn cancel_token(&self) -> CancelToken {
        self.client.cancel_token()
    }

    fn complain_of_leaks(&self, sql: &str) {
        let warnings = std::mem::take(&mut *self.warnings.lock().expect("nobody panics with the lock held"));
        let leaks: Vec<_> = warnings.iter().filter(|w| w.contains("leak") || w.contains("still active")).collect();
        assert!(leaks.is_empty(), "{sql}\nhas left something behind: {leaks:#?}");
    }
}
