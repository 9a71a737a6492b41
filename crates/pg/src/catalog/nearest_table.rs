//! The table that was probably meant by a name that there is not.

use super::names::quote_literal;
use crate::call::spi::{Connection, Sees};
use crate::errors::{Result, nearest};

/// The tables, views and the like that the current user sees: their names alone and as SQL writes them.
const TABLES: &str = "
    SELECT c.relname::pg_catalog.text,
           CASE WHEN pg_catalog.pg_table_is_visible(c.oid) THEN pg_catalog.quote_ident(c.relname)
                ELSE pg_catalog.concat(pg_catalog.quote_ident(n.nspname), '.', pg_catalog.quote_ident(c.relname)) END
      FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
     WHERE c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'p', 'v', 'm', 'f']::pg_catalog.\"char\"[])
       AND n.nspname OPERATOR(pg_catalog.<>) ALL (ARRAY['pg_catalog', 'information_schema', 'pg_toast']::pg_catalog.name[])
       AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
     ORDER BY pg_catalog.pg_table_is_visible(c.oid) USING OPERATOR(pg_catalog.>) LIMIT 10000";

/// A sentence that offers the table whose name is nearest; None if none is near.
pub fn nearest_table(given: &str) -> Result<Option<String>> {
    let last = given.rsplit('.').next().unwrap_or(given).trim_matches('"');
    let connection = Connection::open();
    let rows = connection.run(TABLES, Sees::Statement)?;
    let text = |row: usize, column: usize| rows.get::<String>(row, column).unwrap_or_default();
    let names: Vec<(String, String)> = (0..rows.len()).map(|row| (text(row, 0), text(row, 1))).collect();
    drop(rows);
    connection.close();
    let found = nearest(last, names.iter().map(|(name, _)| name.as_str()));
    let written = found.and_then(|found| names.iter().find(|(name, _)| name == found));
    Ok(written.map(|(_, written)| format!("Did you mean {}?", quote_literal(written))))
}
