//! What can be wrong with what PostgreSQL is asked for, and how an error is raised.
//!
//! Code returns `Result<_, Error>`. Whoever uses it has an error type around this one, which is a [`Report`], too.
//! Errors that PostgreSQL itself raises pass through, as far as pgrx lets them: it raises them anew with SQLSTATE,
//! message, detail and hint, and drops the position in the query.

mod nearest;
mod panics;
mod report;
mod words;

pub use nearest::{did_you_mean, nearest};
pub use panics::{hide_backtraces, unless_it_panics};
pub use report::{Code, Report, raise};
pub use words::excerpt;

/// `Result` with our error.
pub type Result<T> = std::result::Result<T, Error>;

/// What is wrong with relations, queries, texts and other servers, and what the server's system did not give.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each has its message")]
pub enum Error {
    #[error("source must be a table or exactly one SELECT")]
    NotOneSelect,
    #[error("source must not modify data or lock rows")]
    NotReadOnly,
    #[error("source \"{}\" is neither the name of a table nor a query", excerpt(text))]
    /// `nearest` is a sentence
    NotAName { text: String, nearest: Option<String> },
    #[error("relation \"{name}\" does not exist")]
    UnknownTable { name: String, nearest: Option<String> },
    #[error("there is no relation with OID {0}")]
    NoRelation(u32),
    #[error("\"{name}\" has no pages of its own to be read")]
    NoFiles { name: String, partitioned: bool },
    #[error("\"{0}\" is a temporary table of another session")]
    OtherTemporary(String),
    #[error("could not read file \"{0}\": {1}")]
    File(String, String),
    #[error("relation \"{0}\" does not exist")]
    /// although it did when it was looked up
    Dropped(String),
    #[error("the table whose rows corgipile_shuffle() gives does not exist")]
    /// any more; its name is not known
    DroppedRowType,
    #[error("name of the training source changed while it was being looked up")]
    SourceChanged,
    #[error("table {0} was replaced, or given a rule, when it was made")]
    TableReplaced(String),
    #[error("page {page} of relation \"{table}\" is damaged: a line pointer points out of it")]
    DamagedPage { table: String, page: u32 },
    #[error("corgipile_shuffle() needs a table's row type")]
    NotARowType,
    #[error("the database's encoding is not UTF8")]
    Encoding,
    #[error("the text \"{0}\" is not UTF-8")]
    /// with what stands for the bytes that are not
    NotUtf8(String),
    #[error("a state of {0} bytes is larger than PostgreSQL's values may be")]
    StateTooLarge(usize),
    #[error("extension dblink is not installed in this database")]
    NoDblink,
    #[error("server \"{0}\": the user mapping has no password")]
    NoPassword(String),
    #[error("out of memory: {0} bytes cannot be had")]
    OutOfMemory(usize),
    #[error("could not {verb} temporary file: {reason}")]
    TemporaryFile { verb: &'static str, reason: std::io::Error },
    #[error("a worker process has loaded another build of corgipile than this session")]
    OtherBuild,
}

impl Error {
    /// Raises the error in PostgreSQL; does not return.
    pub fn raise(self) -> ! {
        raise(&self)
    }
}

/// Turns our `Result` into a value or a PostgreSQL error.
pub trait OrRaise<T> {
    /// The value, or the error raised.
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self) -> T {
        self.unwrap_or_else(|e| e.raise())
    }
}

impl Report for Error {
    fn sqlstate(&self) -> Code {
        match self {
            Error::NotOneSelect => Code::ERRCODE_SYNTAX_ERROR,
            Error::NotReadOnly | Error::OtherTemporary(_) | Error::Encoding => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            Error::NotAName { .. } => Code::ERRCODE_INVALID_NAME,
            Error::UnknownTable { .. } | Error::NoRelation(_) | Error::Dropped(_) | Error::DroppedRowType => {
                Code::ERRCODE_UNDEFINED_TABLE
            }
            Error::NoFiles { .. } => Code::ERRCODE_WRONG_OBJECT_TYPE,
            Error::SourceChanged | Error::TableReplaced(_) => Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
            Error::DamagedPage { .. } => Code::ERRCODE_DATA_CORRUPTED,
            Error::NotARowType => Code::ERRCODE_DATATYPE_MISMATCH,
            Error::NotUtf8(_) => Code::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE,
            Error::StateTooLarge(_) => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            Error::NoDblink | Error::OtherBuild => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            Error::NoPassword(_) => Code::ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED,
            Error::OutOfMemory(_) => Code::ERRCODE_OUT_OF_MEMORY,
            Error::TemporaryFile { reason, .. } if reason.kind() == std::io::ErrorKind::StorageFull => {
                Code::ERRCODE_DISK_FULL
            }
            Error::TemporaryFile { .. } | Error::File(..) => Code::ERRCODE_IO_ERROR,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::NotOneSelect => "Give the name of a table or view, or one SELECT, VALUES or WITH query.",
            Error::NotReadOnly => {
                "Change rows by a statement of its own before, and leave FOR UPDATE and the like out."
            }
            Error::NotAName { .. } => {
                "A query begins with SELECT, WITH, VALUES, TABLE or (; a name with blanks or capitals is quoted: '\"My Table\"'."
            }
            Error::UnknownTable { .. } => {
                "A table that is not in the search path needs its schema; a name with blanks or capitals is quoted: '\"My Table\"'."
            }
            Error::NoRelation(_) => "It may have been dropped meanwhile.",
            Error::NoFiles { partitioned: true, .. } => "Measure one of its partitions.",
            Error::NoFiles { .. } => "Tables, materialized views and TOAST tables have some.",
            Error::OtherTemporary(_) => "Only the session that made it can read it.",
            Error::File(..) => return None,
            Error::Dropped(_) => "It was dropped while the statement waited for it.",
            Error::DroppedRowType => "It was dropped; prepare the statement anew, or run DISCARD PLANS.",
            Error::SourceChanged => "Run the statement again.",
            Error::TableReplaced(_) => "Call it again. If it stays so, look for an event trigger on CREATE TABLE.",
            Error::DamagedPage { .. } => {
                "Restore the table from a backup; verify_heapam() of the extension amcheck finds what else is damaged."
            }
            Error::NotARowType => "Call it as SELECT * FROM corgipile_shuffle(NULL::my_table).",
            Error::Encoding => "Use corgipile in a database with the encoding UTF8.",
            Error::NotUtf8(_) => "Texts beyond ASCII need a database with the encoding UTF8.",
            Error::StateTooLarge(_) => "Use fewer features, or corgipile_train().",
            Error::NoDblink => "CREATE EXTENSION dblink; it is one of the modules that come with PostgreSQL.",
            Error::NoPassword(_) => {
                "Sessions are those of dblink, which asks all but superusers for one: password_required is for postgres_fdw \
                 alone. Give the mapping the password, or leave option nodes out."
            }
            Error::OutOfMemory(_) => {
                "The server's system gives no more. A training takes less with a smaller buffer_size or a lower \
                 corgipile.max_buffer_memory, a model with fewer features or classes."
            }
            Error::TemporaryFile { .. } => {
                "Temporary files lie in the tablespaces of temp_tablespaces; look whether there is room."
            }
            Error::OtherBuild => {
                "The library was replaced after the session began, by an upgrade for instance. Connect anew."
            }
        };
        Some(match self {
            Error::NotAName { nearest: Some(nearest), .. } | Error::UnknownTable { nearest: Some(nearest), .. } => {
                format!("{nearest} {hint}")
            }
            _ => hint.to_owned(),
        })
    }
}
