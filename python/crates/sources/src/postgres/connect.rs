//! Connections that all see the same snapshot, one for each thread that reads.
//!
//! A process that was forked has the connections of its parent, which only the parent may use or end: it makes its own.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::postgres::config::Host;
use ::postgres::{Client, Config, NoTls};
use source::{Cancel, SourceError};

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
    config: Config,
    snapshot: String,
    idle: Mutex<Vec<Mine>>,
    /// Holds the snapshot that was exported.
    _holder: Option<Mutex<Mine>>,
}

impl Connections {
    pub(super) fn open(connection: &str, snapshot: Option<&str>, cancel: &Cancel) -> Result<Self, SourceError> {
        let config = config(connection)?;
        cancel.check()?;
        if let Some(snapshot) = snapshot {
            let snapshot = snapshot.to_owned();
            return Ok(Self { config, snapshot, idle: Mutex::default(), _holder: None });
        }
        let mut client = connect(&config)?;
        let row = client.query_one("SELECT pg_export_snapshot()", &[]).map_err(refused)?;
        let holder = Some(Mutex::new(Mine::new(Some(client))));
        Ok(Self { config, snapshot: row.get(0), idle: Mutex::default(), _holder: holder })
    }

    pub(super) fn snapshot(&self) -> &str {
        &self.snapshot
    }

    /// Does something with a connection that nobody else uses. After an error the connection is ended.
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
            none => none.insert(self.join()?),
        };
        let result = use_it(client)?;
        self.idle().push(mine);
        Ok(result)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Mine>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection that sees the snapshot.
    fn join(&self) -> Result<Client, SourceError> {
        let mut client = connect(&self.config)?;
        let quoted = self.snapshot.replace('\'', "''");
        client.batch_execute(&format!("SET TRANSACTION SNAPSHOT '{quoted}'")).map_err(|error| {
            let SourceError::Database(what) = refused(error) else { return SourceError::Cancelled };
            SourceError::Database(format!("{what}; whoever has exported the snapshot must be connected still"))
        })?;
        Ok(client)
    }
}

/// Connects, and begins the transaction that everything is read in.
fn connect(config: &Config) -> Result<Client, SourceError> {
    let mut client = config.connect(NoTls).map_err(refused)?;
    // Rows come in the order of their pages; the snapshot is held as long as it takes.
    let settings = "SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0; \
                    SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0; \
                    SET datestyle = 'ISO'; SET extra_float_digits = 1; \
                    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    client.batch_execute(settings).map_err(refused)?;
    Ok(client)
}

fn config(connection: &str) -> Result<Config, SourceError> {
    let invalid = |error: ::postgres::Error| {
        let what = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        SourceError::Invalid(format!("the connection string is wrong: {what}"))
    };
    let mut config: Config = connection.parse().map_err(invalid)?;
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        match env("PGHOST") {
            Some(host) => config.host(&host),
            None if std::path::Path::new("/var/run/postgresql").is_dir() => config.host("/var/run/postgresql"),
            None => config.host("localhost"),
        };
    }
    if config.get_ports().is_empty()
        && let Some(port) = env("PGPORT")
    {
        config.port(port.parse().map_err(|_| SourceError::Invalid(format!("PGPORT is {port:?}, which is no port")))?);
    }
    if config.get_user().is_none()
        && let Some(user) = env("PGUSER").or_else(|| env("USER"))
    {
        config.user(&user);
    }
    if config.get_password().is_none()
        && let Some(password) = env("PGPASSWORD")
    {
        config.password(password);
    }
    if config.get_dbname().is_none()
        && let Some(name) = env("PGDATABASE")
    {
        config.dbname(&name);
    }
    if config.get_application_name().is_none() {
        config.application_name("corgipile");
    }
    if config.get_connect_timeout().is_none() && config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_))) {
        config.connect_timeout(Duration::from_secs(30));
    }
    Ok(config)
}

/// What the database has said: message, detail, hint and SQLSTATE.
pub(super) fn refused(error: ::postgres::Error) -> SourceError {
    let Some(told) = error.as_db_error() else {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        return SourceError::Database(format!("{error}{cause}"));
    };
    let mut what = told.message().to_owned();
    for more in [told.detail(), told.hint()].into_iter().flatten() {
        what = format!("{what}; {more}");
    }
    SourceError::Database(format!("{what} ({})", told.code().code()))
}
