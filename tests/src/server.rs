//! The server that `scripts/with-postgres` has started, as the environment describes it.

use crate::Failure;
use postgres::config::Host;
use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};
use std::env;
use std::fs::OpenOptions;
use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

const HOW_TO_RUN: &str = "these tests need a server with corgipile installed: run `make test`, or \
                          `scripts/with-postgres -- cargo test -p corgipile-tests`";

/// Where to connect, without a database.
pub(crate) fn config() -> Config {
    let host = env::var("PGHOST").unwrap_or_else(|_| panic!("PGHOST is not set; {HOW_TO_RUN}"));
    let port = env::var("PGPORT").map_or(5432, |port| port.parse().expect("PGPORT is a number"));
    let mut config = Config::new();
    config.host(&host).port(port).user(&env::var("PGUSER").unwrap_or_else(|_| "postgres".to_owned()));
    config
}

/// The directory in which the server's is: anyone who runs the tests may write there, and the server may read.
///
/// # Panics
/// If the server does not listen on a socket.
pub(crate) fn directory() -> PathBuf {
    let Some(Host::Unix(socket)) = config().get_hosts().first().cloned() else {
        panic!("the shared server listens on a socket");
    };
    socket.parent().expect("a directory").to_owned()
}

/// A connection to the database that exists before any test has run.
pub(crate) fn admin() -> Client {
    try_admin().unwrap_or_else(|e| panic!("cannot connect ({:#?}); {HOW_TO_RUN}", Failure::from(e)))
}

/// As [`admin`], for where a panic would hide another.
pub(crate) fn try_admin() -> Result<Client, postgres::Error> {
    let mut config = config();
    connect(config.dbname(&env::var("PGDATABASE").unwrap_or_else(|_| "postgres".to_owned())))
}

/// Connects. A server that another test has crashed is given time to recover: that test alone is to fail.
pub(crate) fn connect(config: &Config) -> Result<Client, postgres::Error> {
    for _ in 0..100 {
        match config.connect(NoTls) {
            Err(e) if e.is_closed() || e.code() == Some(&SqlState::CANNOT_CONNECT_NOW) => {
                sleep(Duration::from_millis(100));
            }
            result => return result,
        }
    }
    config.connect(NoTls)
}

/// Makes something once for all tests of this server, whichever of their processes comes first, while the others wait;
/// gives what it gave, or why it could not be made. Only a panic lets the next one try.
pub(crate) fn once(what: &str, make: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
    let path = directory().join(format!("{what}.once"));
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let mut file = file.expect("the server's directory can be written");
    file.lock().expect("a file can be locked");
    let mut known = String::new();
    file.read_to_string(&mut known).expect("it is text");
    let result = match known.split_once(' ') {
        Some(("made", result)) => return Ok(result.to_owned()),
        Some((_, reason)) => return Err(reason.to_owned()),
        None => make(),
    };
    let (word, text) = match &result {
        Ok(text) => ("made", text),
        Err(text) => ("failed", text),
    };
    file.write_all(format!("{word} {text}").as_bytes()).expect("the result can be written");
    result
}

/// A number that no other test of this server has got, in whichever process.
pub(crate) fn number() -> u64 {
    let file = OpenOptions::new().create(true).append(true).open(directory().join("numbers"));
    let mut file = file.expect("the server's directory can be written");
    // what is appended has a place of its own
    file.write_all(b".").and_then(|()| file.stream_position()).expect("a byte can be appended")
}

/// The name of the database that the tests' databases are copies of: CREATE EXTENSION has run in it.
///
/// Made once, because CREATE EXTENSION takes longer than a copy; if that fails, every test says why.
pub(crate) fn template() -> String {
    let made = once("template", || make_template().map_err(|e| format!("{:#?}", Failure::from(e))));
    made.unwrap_or_else(|failure| panic!("the template database cannot be made: {failure}"))
}

fn make_template() -> Result<String, postgres::Error> {
    let name = "corgipile_template";
    let mut admin = admin();
    admin.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = connect(config().dbname(name))?;
    client.batch_execute("CREATE EXTENSION corgipile")?;
    client.batch_execute(crate::fixtures::FUNCTIONS)?;
    client.close()?;
    // CREATE DATABASE does not copy what somebody, such as an autovacuum worker, is connected to.
    admin.batch_execute(&format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false"))?;
    Ok(name.to_owned())
}

/// A command of the server's own version: `psql`, `pg_dump`, ..., with the environment that finds the server.
pub fn program(name: &str) -> Command {
    let directory =
        env::var("CORGIPILE_PG_BIN").unwrap_or_else(|_| panic!("CORGIPILE_PG_BIN is not set; {HOW_TO_RUN}"));
    let mut command = Command::new(PathBuf::from(directory).join(name));
    command.env("PGAPPNAME", "corgipile-tests").env_remove("PGOPTIONS");
    command
}

/// The lines of the server's log that belong to one database (`log_line_prefix` ends in `%d`).
///
/// Read through the server's own standard error, so that the tests need not know where the log is.
pub fn log(database: &str) -> Vec<String> {
    let row = admin().query_one("SELECT pg_read_binary_file('/proc/self/fd/2')", &[]).expect("the log can be read");
    let text = String::from_utf8_lossy(row.get(0)).into_owned();
    text.lines().filter(|line| line.contains(&format!("] {database} "))).map(str::to_owned).collect()
}
