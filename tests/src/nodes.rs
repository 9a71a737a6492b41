//! Three servers, of which the first knows the others by postgres_fdw and dblink.

use crate::{Cluster, Database, Session, skip};

/// A database of the shared server, and two servers of the test's own, on which corgipile is, too. It knows them as the
/// foreign servers `north` and `south`, and anyone who asks has a mapping there to the superuser.
pub struct Nodes {
    /// the database that is asked
    pub near: Database,
    /// whose database is `postgres`
    pub north: Cluster,
    /// whose database is `postgres`
    pub south: Cluster,
}

impl Nodes {
    /// Starts them. None, which is reported, if the server has not the extensions that come with PostgreSQL.
    pub fn new<T>(test: T) -> Option<Self> {
        let mut near = Database::new();
        for extension in ["postgres_fdw", "dblink"] {
            if !near.offers_extension(extension) {
                skip(test, &format!("the server has no extension {extension}"));
                return None;
            }
            near.run(&format!("CREATE EXTENSION {extension}"));
        }
        let [north, south] = [(); 2].map(|()| Cluster::new(&[]));
        let mut nodes = Self { near, north, south };
        nodes.add_server("north", &nodes.north.address("postgres"));
        nodes.add_server("south", &nodes.south.address("postgres"));
        Some(nodes)
    }

    /// Makes a foreign server of this name, and a mapping for the superuser.
    pub fn add_server(&mut self, name: &str, options: &str) {
        self.near.run(&format!(
            "CREATE SERVER {name} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({options});
             CREATE USER MAPPING FOR CURRENT_USER SERVER {name} OPTIONS (user 'postgres')"
        ));
    }

    /// A superuser's sessions on the two servers.
    pub fn sessions(&self) -> [Session; 2] {
        [self.north.session(), self.south.session()]
    }
}

impl Cluster {
    /// Where a database of the server is, as options of a foreign server.
    pub fn address(&self, database: &str) -> String {
        format!("host '{}', port '5432', dbname '{database}'", self.directory().display())
    }

    /// Has a role log in by this password only.
    pub fn ask_for_password(&self, role: &str, password: &str) {
        self.session().run(&format!("ALTER ROLE {role} PASSWORD '{password}'"));
        self.add_rule(&format!("local all {role} scram-sha-256"));
    }
}
