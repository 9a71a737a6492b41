//! The shuffled copy of a source: a temporary table, as users of training by aggregate make it.

use super::sql::Reading;
use errors::Result;
use pg::call::spi::{Connection, Sees};
use pg::random_seed;
use std::time::{Duration, Instant};

/// A shuffled copy. It is gone after an ERROR, with all that the (sub)transaction did.
pub struct ShuffledCopy {
    /// qualified, to be put into a query
    pub name: String,
    /// the time that it took to make
    pub time: Duration,
    /// with what was stored out of line
    pub bytes: u64,
}

impl ShuffledCopy {
    /// Makes a copy of what is read, and `sees` own writes.
    pub fn make(connection: &Connection, reading: &Reading, seed: i64, sees: Sees) -> Result<ShuffledCopy> {
        let start = Instant::now();
        let name = format!("pg_temp.corgipile_uda_{:08x}", random_seed());
        connection.run(&reading.shuffled_copy(&name, seed), sees)?;
        let time = start.elapsed();
        let size = format!("SELECT pg_catalog.pg_table_size('{name}'::pg_catalog.regclass)");
        let bytes: Option<i64> = connection.run(&size, sees)?.get(0, 0);
        Ok(ShuffledCopy { name, time, bytes: bytes.unwrap_or_default() as u64 })
    }

    pub fn drop(self, connection: &Connection, sees: Sees) -> Result<()> {
        connection.run(&format!("DROP TABLE {}", self.name), sees)?;
        Ok(())
    }
}
