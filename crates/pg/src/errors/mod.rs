//! What can be wrong with what PostgreSQL is asked for, and how an error is raised.
//!
//! Code returns `Result<_, Error>`. Anyone who uses it has an error type around this one, which is a [`Report`], too.
//! Errors that PostgreSQL itself raises pass through, as far as pgrx lets them: it raises them again with SQLSTATE,
//! message, detail and hint, and drops the position in the query.

mod nearest;
mod panics;
mod report;
mod words;

pub use nearest::{did_you_mean, nearest};
pub use panics::{hide_backtraces, unless_it_panics};
pub use report::{Code, Report, raise};
pub use report_derive::Report;
pub use words::excerpt;

use crate::catalog::names::quote_identifier;
use std::io::ErrorKind;

/// `Result` with our error.
pub type Result<T> = std::result::Result<T, Error>;

/// What is wrong with relations, queries, texts and other servers, and what the server's system did not give.
#[derive(Debug, thiserror::Error, Report)]
#[expect(missing_docs, reason = "each has its message")]
pub enum Error {
    #[error("source must be a table or exactly one SELECT")]
    #[report(ERRCODE_SYNTAX_ERROR => "Give the name of a table or view, or one SELECT, VALUES or WITH query.")]
    NotOneSelect,
    #[error("source must not modify data or lock rows")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Change rows in a separate statement before, and leave out FOR UPDATE and similar clauses.")]
    NotReadOnly,
    #[error("source \"{}\" is neither the name of a table nor a query", excerpt(text))]
    #[report(ERRCODE_INVALID_NAME =>
        after(nearest, "A query begins with SELECT, WITH, VALUES, TABLE or (; a name with blanks or capitals is quoted: '\"My Table\"'."))]
    /// `nearest` is a sentence
    NotAName { text: String, nearest: Option<String> },
    #[error("relation \"{name}\" does not exist")]
    #[report(ERRCODE_UNDEFINED_TABLE =>
        after(nearest, "A table that is not in the search path needs its schema; a name with blanks or capitals is quoted: '\"My Table\"'."))]
    UnknownTable { name: String, nearest: Option<String> },
    #[error("there is no relation with OID {0}")]
    #[report(ERRCODE_UNDEFINED_TABLE => "It may have been dropped in the meantime.")]
    NoRelation(u32),
    #[error("\"{name}\" has no pages of its own")]
    #[report(ERRCODE_WRONG_OBJECT_TYPE => "{}", match partitioned {
        true => "Measure one of its partitions.",
        false => "Use a table, a materialized view or a TOAST table.",
    })]
    NoFiles { name: String, partitioned: bool },
    #[error("\"{0}\" is a temporary table of another session")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Only the session that created it can read it.")]
    OtherTemporary(String),
    #[error("could not read file \"{0}\": {1}")]
    #[report(ERRCODE_IO_ERROR)]
    File(String, String),
    #[error("relation \"{0}\" does not exist")]
    #[report(ERRCODE_UNDEFINED_TABLE => "It was dropped while the statement waited for it.")]
    /// although it did when it was looked up
    Dropped(String),
    #[error("the table that corgipile_shuffle() reads does not exist")]
    #[report(ERRCODE_UNDEFINED_TABLE => "It was dropped: prepare the statement again, or run DISCARD PLANS.")]
    /// any more; its name is not known
    DroppedRowType,
    #[error("name of the training source changed while it was being looked up")]
    #[report(ERRCODE_T_R_SERIALIZATION_FAILURE => "Run the statement again.")]
    SourceChanged,
    #[error("table {0} was replaced, or got a rule, while it was created")]
    #[report(ERRCODE_T_R_SERIALIZATION_FAILURE =>
        "Call it again. If the error persists, look for an event trigger on CREATE TABLE.")]
    TableReplaced(String),
    #[error("page {page} of relation \"{table}\" is damaged: a line pointer points outside of it")]
    #[report(ERRCODE_DATA_CORRUPTED =>
        "Restore the table from a backup; verify_heapam() of the extension amcheck finds other damage.")]
    DamagedPage { table: String, page: u32 },
    #[error("corgipile_shuffle() needs a table's row type")]
    #[report(ERRCODE_DATATYPE_MISMATCH => "Call it as SELECT * FROM corgipile_shuffle(NULL::my_table).")]
    NotARowType,
    #[error("the database's encoding is not UTF8")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use corgipile in a database with the encoding UTF8.")]
    Encoding,
    #[error("the text \"{0}\" is not UTF-8")]
    #[report(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE => "Texts beyond ASCII need a database with the encoding UTF8.")]
    /// with what stands for the bytes that are not
    NotUtf8(String),
    #[error("a state of {0} bytes exceeds PostgreSQL's limit for a value")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "Use fewer features, or corgipile_train().")]
    StateTooLarge(usize),
    #[error("extension dblink is not installed in this database")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "Run CREATE EXTENSION dblink; it comes with PostgreSQL.")]
    NoDblink,
    #[error("server \"{0}\": you have no user mapping for it")]
    #[report(ERRCODE_UNDEFINED_OBJECT => "Run: CREATE USER MAPPING FOR CURRENT_USER SERVER {} OPTIONS (user '...', password '...')",
        quote_identifier(_0))]
    NoMapping(String),
    #[error("server \"{server}\": role {role} lacks the privilege USAGE on it")]
    #[report(ERRCODE_INSUFFICIENT_PRIVILEGE => "Its owner runs: GRANT USAGE ON FOREIGN SERVER {} TO {role}",
        quote_identifier(server))]
    /// the role is quoted
    NoUsage { server: String, role: String },
    #[error("server \"{0}\": the user mapping has no password")]
    #[report(ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED =>
        "dblink requires a password of all roles but superusers; password_required applies to postgres_fdw \
         only. Give the mapping a password, or leave option servers out.")]
    NoPassword(String),
    #[error("out of memory: could not allocate {0} bytes")]
    #[report(ERRCODE_OUT_OF_MEMORY =>
        "To need less, use a smaller buffer_size or \
         corgipile.max_buffer_memory, or fewer features or classes.")]
    OutOfMemory(usize),
    #[error("could not {verb} temporary file: {reason}")]
    #[report(if reason.kind() == ErrorKind::StorageFull { ERRCODE_DISK_FULL } else { ERRCODE_IO_ERROR } =>
        "Temporary files are stored in the tablespaces of temp_tablespaces: check that they have free space.")]
    TemporaryFile { verb: &'static str, reason: std::io::Error },
    #[error("a worker process has loaded a different build of corgipile than this session")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "The library was replaced after the session began, for example by an upgrade. Reconnect.")]
    OtherBuild,
}

/// The hint, after the sentence that offers the nearest name.
fn after(nearest: &Option<String>, hint: &str) -> String {
    nearest.iter().map(String::as_str).chain([hint]).collect::<Vec<_>>().join(" ")
}

/// Turns a `Result` into a value or a PostgreSQL error.
pub trait OrRaise<T> {
    /// The value, or the error raised.
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self) -> T {
        self.unwrap_or_else(|e| raise(&e))
    }
}
