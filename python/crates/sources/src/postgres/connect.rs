//! Connections that all see the same snapshot, one for each thread that reads.
//!
//! A process that was forked has the connections of its parent, which only the parent may use or end: it makes its own.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ::postgres::Client;
use ::postgres::error::SqlState;
use source::{Cancel, SourceError};

use super::settings::{Settings, settings};
use super::tls::Tls;

/// A connection that a forked process leaves alone.
struct Mine {
    client: Option<Client>,
    process: u32,
}

impl Mine {
    fn new(client: Option<Client>) -> Self {
        Self { client, process: std::process::id() }
    }

    fn is_mine(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        // To end it would tell the server that the parent's session is over.
        if !self.is_mine() {
            std::mem::forget(self.client.take());
        }
    }
}

/// The connections to one database.
pub(super) struct Connections {
    settings: Settings,
    snapshot: String,
    idle: Mutex<Vec<Mine>>,
    /// Holds the snapshot that was exported.
    _holder: Option<Mutex<Mine>>,
}

impl Connections {
    pub(super) fn open(connection: &str, snapshot: Option<&str>, cancel: &Cancel) -> Result<Self, SourceError> {
        let settings = settings(connection)?;
        cancel.check()?;
        if let Some(snapshot) = snapshot {
            let snapshot = snapshot.to_owned();
            return Ok(Self { settings, snapshot, idle: Mutex::default(), _holder: None });
        }
        let mut client = connect(&settings, READ)?;
        let row = client.query_one("SELECT pg_export_snapshot()", &[]).map_err(refused)?;
        let holder = Some(Mutex::new(Mine::new(Some(client))));
        Ok(Self { settings, snapshot: row.get(0), idle: Mutex::default(), _holder: holder })
    }

    /// What makes connections encrypted.
    pub(super) fn tls(&self) -> Tls {
        self.settings.tls.clone()
    }

    pub(super) fn snapshot(&self) -> &str {
        &self.snapshot
    }

    /// Does something with a connection that no one else uses. After an error the connection is ended.
    pub(super) fn with<T>(
        &self,
        cancel: &Cancel,
        use_it: impl FnOnce(&mut Client) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        cancel.check()?;
        let idle = {
            let mut idle = self.idle();
            // What a parent process has left here is its own.
            while idle.last().is_some_and(|last| !last.is_mine()) {
                drop(idle.pop());
            }
            idle.pop()
        };
        let mut mine = idle.unwrap_or_else(|| Mine::new(None));
        let client = match &mut mine.client {
            Some(client) => client,
            none => none.insert(self.join(READ)?),
        };
        let result = use_it(client)?;
        self.idle().push(mine);
        Ok(result)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Mine>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection that sees the snapshot.
    pub(super) fn join(&self, mode: &str) -> Result<Client, SourceError> {
        let mut client = connect(&self.settings, mode)?;
        let quoted = self.snapshot.replace('\'', "''");
        client.batch_execute(&format!("SET TRANSACTION SNAPSHOT '{quoted}'")).map_err(|error| {
            let SourceError::Database(what) = refused(error) else { return SourceError::Cancelled };
            SourceError::Database(format!("{what}; anyone who has exported the snapshot must be connected still"))
        })?;
        Ok(client)
    }
}

/// A snapshot that somebody else has exported, and that lasts on when that one has gone.
pub struct HeldSnapshot {
    name: String,
    _holder: Mutex<Mine>,
}

impl HeldSnapshot {
    /// Holds on a snapshot, by a connection that does nothing else.
    ///
    /// # Errors
    /// If the database refuses, or no one has the snapshot any more.
    pub fn hold(connection: &str, snapshot: &str, cancel: &Cancel) -> Result<HeldSnapshot, SourceError> {
        let mut client = Connections::open(connection, Some(snapshot), cancel)?.join(READ)?;
        let row = client.query_one("SELECT pg_export_snapshot()", &[]).map_err(refused)?;
        Ok(HeldSnapshot { name: row.get(0), _holder: Mutex::new(Mine::new(Some(client))) })
    }

    /// What it is called now.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Modes of a transaction: which reads only, and which makes temporary views, too.
const READ: &str = "READ ONLY";
pub(super) const WITH_VIEWS: &str = "READ WRITE";

/// Connects, and begins the transaction that everything is read in.
fn connect(settings: &Settings, mode: &str) -> Result<Client, SourceError> {
    let mut client = settings.config.connect(settings.tls.clone()).map_err(|error| {
        let wants_password = error.code().is_none_or(|code| *code == SqlState::INVALID_PASSWORD);
        match (&settings.note, refused(error)) {
            (Some(note), SourceError::Database(what)) if wants_password => {
                SourceError::Database(format!("{what}; {note}"))
            }
            (_, error) => error,
        }
    })?;
    // Rows come in the order of their pages; the snapshot is held as long as it takes.
    let settings = format!(
        "SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0; \
         SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0; \
         SET datestyle = 'ISO'; SET extra_float_digits = 1; BEGIN ISOLATION LEVEL REPEATABLE READ {mode}"
    );
    client.batch_execute(&settings).map_err(refused)?;
    Ok(client)
}

/// What the database has said: message, detail, hint and SQLSTATE.
pub(super) fn refused(error: ::postgres::Error) -> SourceError {
    let Some(told) = error.as_db_error() else {
        let mut what = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            let why = error.to_string();
            // some errors have their cause in their own words
            if !what.ends_with(&why) {
                what = format!("{what}: {why}");
            }
            cause = error.source();
        }
        return SourceError::Database(what);
    };
    let mut what = told.message().to_owned();
    for more in [told.detail(), told.hint()].into_iter().flatten() {
        what = format!("{what}; {more}");
    }
    SourceError::Database(format!("{what} ({})", told.code().code()))
}
