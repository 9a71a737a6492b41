//! A database for one test.

use crate::{Session, server};
use std::ops::{Deref, DerefMut};

/// A database of its own with corgipile installed, and a superuser's session in it (to which it dereferences).
///
/// Dropped at the end of the test, together with the roles that [`Database::role`] made.
pub struct Database {
    name: String,
    roles: Vec<String>,
    session: Option<Session>,
}

impl Database {
    /// A copy of the template, where `CREATE EXTENSION corgipile` has run.
    pub fn new() -> Self {
        Self::copy_of(&server::template())
    }

    /// As [`Database::new`], with a table `t` as [`small`](crate::small) makes it.
    pub fn with_small_table(rows: u32) -> Self {
        let mut db = Self::new();
        crate::small(&mut db, "t", rows);
        db
    }

    /// A copy of the database that [`Document::flights`](crate::Document::flights) has made.
    pub fn with_flights(template: &str) -> Self {
        Self::copy_of(template)
    }

    /// A database without corgipile.
    pub fn empty() -> Self {
        Self::copy_of("template0")
    }

    fn copy_of(template: &str) -> Self {
        let name = format!("test_{}_{}", std::process::id(), server::number());
        let create =
            format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy ENCODING 'UTF8' LOCALE 'C.UTF-8'");
        server::admin().batch_execute(&create).unwrap_or_else(|e| panic!("{create}: {e:?}"));
        let session = Session::connect(&name, None);
        Self { name, roles: Vec::new(), session: Some(session) }
    }

    /// The name that `psql -d` takes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Another session of the superuser.
    pub fn session(&self) -> Session {
        Session::connect(&self.name, None)
    }

    /// Another session, as a role that [`Database::role`] made.
    pub fn session_as(&self, role: &str) -> Session {
        Session::connect(&self.name, Some(role))
    }

    /// What psql tells its user while it runs statements in a session of its own: notices and warnings,
    /// with their hints.
    pub fn notices(&self, statements: &[&str]) -> String {
        let mut psql = server::program("psql");
        psql.args(["-XqAt", "-d", &self.name]);
        for statement in statements {
            psql.args(["-c", statement]);
        }
        String::from_utf8(psql.output().expect("psql runs").stderr).expect("psql writes UTF-8")
    }

    /// Makes a role that may log in and nothing else; its name is unique in the server and begins with `who`.
    pub fn role(&mut self, who: &str) -> String {
        let role = format!("{who}_{}", self.name);
        self.run(&format!("CREATE ROLE {role} LOGIN"));
        self.roles.push(role.clone());
        role
    }
}

impl Default for Database {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Database {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session.as_ref().expect("the session lives as long as the database")
    }
}

impl DerefMut for Database {
    fn deref_mut(&mut self) -> &mut Session {
        self.session.as_mut().expect("the session lives as long as the database")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.session = None;
        let mut admin = match server::try_admin() {
            Ok(admin) => admin,
            // A second panic while a test fails would hide its message.
            Err(e) => return eprintln!("cannot drop {}: {e:?}", self.name),
        };
        let mut drop = |what: &str| {
            if let Err(e) = admin.batch_execute(what) {
                eprintln!("{what}: {e:?}");
            }
        };
        drop(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
        for role in &self.roles {
            drop(&format!("DROP ROLE IF EXISTS {role}"));
        }
    }
}
