//! Sources that read one distributed table of Citus: what each of its nodes is asked.
//!
//! The catalogs of Citus say which shards a table has, and where they are. What is asked of a node is the query as
//! PostgreSQL writes it, with the node's shards in the place of the table. How to connect to a node, and as whom, a
//! foreign server of postgres_fdw says that leads there. Nothing of Citus is called but `shard_name()`, and without
//! Citus nothing is looked up.

use super::remote_rows::{ForeignRows, NotForeign, is_of_postgres_fdw};
use super::walk::any_node;
use crate::call::spi::{Connection, Rows, Sees};
use crate::catalog::names::quote_identifier;
use crate::compat::read_as;
use crate::settings::Settings;
use pgrx::prelude::*;
use std::ffi::CStr;

/// What the table is called in the statements for the nodes.
const ROWS: &CStr = c"corgipile_rows";

/// As postgres_fdw writes statements: as every session reads them.
const AS_EVERYBODY_READS: [(&CStr, &CStr); 4] = [
    (c"search_path", c"pg_catalog"),
    (c"datestyle", c"ISO"),
    (c"intervalstyle", c"postgres"),
    (c"extra_float_digits", c"3"),
];

/// May the transaction have written to tables of Citus, or by functions that Citus runs on its nodes? Neither has to
/// leave a trace in the transaction of this server. Citus numbers its transactions when they first use several nodes:
/// so also those that have only read.
pub fn in_distributed_transaction() -> bool {
    const FUNCTION: &str = "SELECT 1 FROM pg_catalog.pg_proc
        WHERE proname OPERATOR(pg_catalog.=) 'get_current_transaction_id' AND pronargs OPERATOR(pg_catalog.=) 0
              AND pronamespace OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace";
    has_catalogs()
        && !ask(FUNCTION, |_, _| ()).is_empty()
        && ask("SELECT transaction_number FROM pg_catalog.get_current_transaction_id()", |rows, row| {
            rows.get::<i64>(row, 0).is_some_and(|number| number != 0)
        }) != [false]
}

/// Has this database the catalogs of Citus?
fn has_catalogs() -> bool {
    // SAFETY: a catalog lookup.
    let catalog =
        unsafe { pg_sys::get_relname_relid(c"pg_dist_partition".as_ptr(), pg_sys::PG_CATALOG_NAMESPACE.into()) };
    catalog != pg_sys::Oid::INVALID
}

/// An analysed query that may be one on a distributed table.
pub(super) struct MaybeDistributed {
    /// in the memory of the plan
    query: *mut pg_sys::Query,
}

/// A part of a table, and where it is.
struct Shard {
    id: i64,
    /// as SQL writes it, with its schema
    table: String,
    host: String,
    port: String,
}

/// A foreign server of postgres_fdw that leads into a database of this name.
struct Server {
    name: String,
    host: String,
    port: String,
    /// may the user connect to it, as far as is known here?
    is_usable: bool,
}

impl MaybeDistributed {
    /// Keeps a query, which planning will scribble on, if this database has distributed tables at all.
    ///
    /// # Safety
    /// It is an analysed query.
    pub(super) unsafe fn new(query: *mut pg_sys::Query) -> Option<MaybeDistributed> {
        // SAFETY: the caller's promise.
        has_catalogs().then(|| MaybeDistributed { query: unsafe { pg_sys::copyObjectImpl(query.cast()).cast() } })
    }

    /// The rows of each node, by the name of its foreign server, of `preferred` ones if several lead to it. None if the
    /// query does not only read, filter and compute on one distributed table.
    pub(super) fn rows(&self, preferred: &[String]) -> Option<Result<Vec<ForeignRows>, NotForeign>> {
        // SAFETY: an analysed query, of which a copy is made, as what is written changes it.
        let (query, found) = unsafe {
            let query: *mut pg_sys::Query = pg_sys::copyObjectImpl(self.query.cast()).cast();
            (query, only_table(query))
        };
        let scanned = match found {
            Ok(scanned) => scanned,
            // SAFETY: as above.
            Err(what) if unsafe { has_distributed(query) } => {
                return Some(Err(format!("it reads a distributed table, and {what}").into()));
            }
            Err(_) => return None,
        };
        // SAFETY: the entry of a table.
        let table = unsafe { (*scanned.entry).relid };
        if !is_distributed(table) {
            return None;
        }
        // SAFETY: the query has this entry, and no one else has the query.
        let rows = unsafe { check(query, &scanned) }.and_then(|()| {
            let shards = shards_of(table)?;
            // SAFETY: as above.
            let (columns, statement) = unsafe { (columns(&scanned), write_with_rows(query, scanned.entry)) };
            by_node(&shards, preferred, |shards| statement_of_node(&columns, shards, &statement))
        });
        Some(rows)
    }
}

/// Does a query read a distributed table, and do nothing but filter and compute on it?
///
/// # Safety
/// It is an analysed query.
pub(super) unsafe fn reads_distributed(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the caller's promise.
    unsafe { has_catalogs() && only_table(query).is_ok_and(|scanned| is_distributed((*scanned.entry).relid)) }
}

/// The only table of a query, and the query that it is directly in.
struct Scanned {
    query: *mut pg_sys::Query,
    entry: *mut pg_sys::RangeTblEntry,
}

/// The table that a query reads, if that and to filter and compute row by row is all that it does; what else it does,
/// if not.
///
/// # Safety
/// It is an analysed query.
unsafe fn only_table(mut query: *mut pg_sys::Query) -> Result<Scanned, &'static str> {
    // SAFETY: what an analysed query consists of.
    unsafe {
        loop {
            let q = &*query;
            let unfit = [
                (
                    "aggregates",
                    q.hasAggs || !q.groupClause.is_null() || !q.groupingSets.is_null() || !q.havingQual.is_null(),
                ),
                ("computes window functions", q.hasWindowFuncs),
                ("has functions that return sets", q.hasTargetSRFs),
                ("has a subquery outside of FROM", q.hasSubLinks),
                ("modifies or locks rows", q.hasModifyingCTE || !q.rowMarks.is_null()),
                ("has DISTINCT", !q.distinctClause.is_null()),
                ("has UNION or another set operation", !q.setOperations.is_null()),
                ("is sorted", !q.sortClause.is_null()),
                ("has LIMIT or OFFSET", !q.limitOffset.is_null() || !q.limitCount.is_null()),
            ];
            if let Some((what, _)) = unfit.into_iter().find(|(_, applies)| *applies) {
                return Err(what);
            }
            let from = (*q.jointree).fromlist;
            let item = if pg_sys::list_length(from) == 1 { pg_sys::list_nth(from, 0) } else { std::ptr::null_mut() };
            let item = item.cast::<pg_sys::RangeTblRef>();
            if item.is_null() || (*item).type_ != pg_sys::NodeTag::T_RangeTblRef {
                return Err("joins tables");
            }
            let entry = pg_sys::list_nth(q.rtable, (*item).rtindex - 1).cast::<pg_sys::RangeTblEntry>();
            match (*entry).rtekind {
                pg_sys::RTEKind::RTE_RELATION if q.cteList.is_null() => return Ok(Scanned { query, entry }),
                pg_sys::RTEKind::RTE_SUBQUERY if q.cteList.is_null() => query = (*entry).subquery,
                pg_sys::RTEKind::RTE_CTE => query = only_expression(q, &*entry).ok_or("has several WITH queries")?,
                _ => return Err("reads something other than tables"),
            }
        }
    }
}

/// The query of a common table expression that is the only one of its query, and is read once.
///
/// # Safety
/// The entry is of this analysed query.
unsafe fn only_expression(query: &pg_sys::Query, entry: &pg_sys::RangeTblEntry) -> Option<*mut pg_sys::Query> {
    // SAFETY: the caller's promise; a list of common table expressions.
    unsafe {
        if pg_sys::list_length(query.cteList) != 1 || entry.ctelevelsup != 0 {
            return None;
        }
        let cte = &*pg_sys::list_nth(query.cteList, 0).cast::<pg_sys::CommonTableExpr>();
        (!cte.cterecursive && cte.cterefcount == 1).then(|| cte.ctequery.cast())
    }
}

/// Is there a distributed table anywhere in a query?
///
/// # Safety
/// It is an analysed query.
unsafe fn has_distributed(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        any_node(query.cast(), |node| {
            let entry = node.cast::<pg_sys::RangeTblEntry>();
            let is_entry = (*node).type_ == pg_sys::NodeTag::T_RangeTblEntry;
            is_entry.then(|| (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION && is_distributed((*entry).relid))
        })
    }
}

/// Is the table in the catalogues of Citus, which are there?
fn is_distributed(table: pg_sys::Oid) -> bool {
    ask(
        &format!(
            "SELECT 1 FROM pg_catalog.pg_dist_partition WHERE logicalrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid",
            table.to_u32()
        ),
        |_, _| (),
    )
    .len()
        == 1
}

/// Looks whether the nodes may do what the query does.
///
/// # Safety
/// The table is the query's.
unsafe fn check(query: *mut pg_sys::Query, scanned: &Scanned) -> Result<(), NotForeign> {
    // SAFETY: the caller's promise; the walkers are called with nodes of an analysed query.
    unsafe {
        let entry = &*scanned.entry;
        let reads_as = read_as(scanned.query, scanned.entry);
        if reads_as != pg_sys::Oid::INVALID && reads_as != pg_sys::GetUserId() {
            return Err("a view reads the distributed table as its owner".into());
        }
        if !entry.securityQuals.is_null() || (*scanned.query).hasRowSecurity {
            return Err("the distributed table has row security".into());
        }
        if !entry.inh || !entry.tablesample.is_null() {
            return Err("only a part of the distributed table is read".into());
        }
        if pg_sys::contain_mutable_functions(query.cast()) {
            return Err("the source computes what depends on the session or on the time".into());
        }
        if has_special_columns(query) {
            return Err("the source has whole rows, or columns of the system".into());
        }
        Ok(())
    }
}

/// Does a query use a row as a whole, or a column such as ctid?
///
/// # Safety
/// It is an analysed query.
unsafe fn has_special_columns(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        any_node(query.cast(), |node| {
            let is_var = (*node).type_ == pg_sys::NodeTag::T_Var;
            is_var.then(|| (*node.cast::<pg_sys::Var>()).varattno <= 0)
        })
    }
}

/// The names of the table's columns, quoted, without those that were dropped.
///
/// # Safety
/// The entry is of a table.
unsafe fn columns(scanned: &Scanned) -> Vec<String> {
    // SAFETY: names of columns are nodes of type String; those of dropped ones are empty.
    unsafe {
        let names = (*(*scanned.entry).eref).colnames;
        let name = |i| CStr::from_ptr((*pg_sys::list_nth(names, i).cast::<pg_sys::String>()).sval).to_string_lossy();
        let names = (0..pg_sys::list_length(names)).map(name);
        names.filter(|name| !name.is_empty()).map(|name| quote_identifier(&name)).collect()
    }
}

/// The query's text, with [`ROWS`] in the place of the table.
///
/// # Safety
/// The query, which no one else has, has this entry of a table.
unsafe fn write_with_rows(query: *mut pg_sys::Query, entry: *mut pg_sys::RangeTblEntry) -> String {
    let settings = Settings::set(&AS_EVERYBODY_READS);
    // SAFETY: the caller's promise. To write it, PostgreSQL wants of a common table expression no more than its name
    // and those of its columns, which the entry has.
    let text = unsafe {
        (*entry).rtekind = pg_sys::RTEKind::RTE_CTE;
        (*entry).ctename = pg_sys::pstrdup(ROWS.as_ptr());
        CStr::from_ptr(pg_sys::pg_get_querydef(query, false)).to_string_lossy().into_owned()
    };
    settings.restore();
    text
}

/// What a node is asked.
fn statement_of_node(columns: &[String], shards: &[&Shard], statement: &str) -> String {
    let columns = columns.join(", ");
    let selects = shards.iter().map(|shard| format!("SELECT {columns} FROM {}", shard.table));
    let (rows, selects) = (ROWS.to_string_lossy(), selects.collect::<Vec<_>>().join(" UNION ALL "));
    let statement = statement.trim_end_matches(';');
    // it may begin with WITH itself
    format!("WITH {rows} AS ({selects}) SELECT * FROM ({statement}) AS source")
}

/// The shards of each node, by its foreign server.
fn by_node(
    shards: &[Shard],
    preferred: &[String],
    statement: impl Fn(&[&Shard]) -> String,
) -> Result<Vec<ForeignRows>, NotForeign> {
    let servers = servers();
    let mut of_servers: Vec<(&str, Vec<&Shard>)> = Vec::new();
    for shard in shards {
        let leads = |server: &&Server| (&server.host, &server.port) == (&shard.host, &shard.port);
        let mut leading = servers.iter().filter(leads);
        let is_preferred = |server: &&str| preferred.iter().any(|name| name == server);
        let server = leading.clone().find(|server| is_preferred(&server.name.as_str()));
        let server = server.or_else(|| leading.clone().find(|server| server.is_usable)).or_else(|| leading.next());
        let server = server.map(|server| server.name.as_str()).ok_or_else(|| {
            format!(
                "no foreign server of postgres_fdw leads to the node of Citus with host \"{}\" and port {}, into a database of this name",
                shard.host, shard.port
            )
        })?;
        match of_servers.iter_mut().find(|(name, _)| *name == server) {
            Some((_, own)) => own.push(shard),
            None => of_servers.push((server, vec![shard])),
        }
    }
    of_servers.sort_by_key(|(server, _)| *server);
    let rows =
        |(server, shards): (&str, Vec<&Shard>)| ForeignRows { server: server.to_owned(), sql: statement(&shards) };
    Ok(of_servers.into_iter().map(rows).collect())
}

/// The shards of a distributed table, each once, in ascending order.
fn shards_of(table: pg_sys::Oid) -> Result<Vec<Shard>, NotForeign> {
    let sql = format!(
        "SELECT s.shardid, c.relnamespace::pg_catalog.oid, pg_catalog.shard_name(s.logicalrelid, s.shardid)::pg_catalog.text,
                n.nodename::pg_catalog.text, n.nodeport::pg_catalog.text
         FROM pg_catalog.pg_dist_shard s
         JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) s.logicalrelid
         LEFT JOIN (pg_catalog.pg_dist_placement p
                    JOIN pg_catalog.pg_dist_node n
                    ON n.groupid OPERATOR(pg_catalog.=) p.groupid
                       AND n.noderole::pg_catalog.text OPERATOR(pg_catalog.=) 'primary' AND n.isactive)
         ON p.shardid OPERATOR(pg_catalog.=) s.shardid AND p.shardstate OPERATOR(pg_catalog.=) 1
         WHERE s.logicalrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid
         ORDER BY s.shardid, p.placementid",
        table.to_u32()
    );
    let found = ask(&sql, |rows, row| {
        let text = |column| rows.get::<String>(row, column);
        let id = rows.get::<i64>(row, 0).unwrap_or_default();
        let schema = rows.get::<pg_sys::Oid>(row, 1).unwrap_or(pg_sys::Oid::INVALID);
        let node = text(3).zip(text(4));
        (id, text(2).map(|name| with_schema(schema, name)), node)
    });
    let mut shards: Vec<Shard> = Vec::new();
    for (id, table, node) in found {
        if shards.last().is_some_and(|last| last.id == id) {
            continue; // another copy of the same rows
        }
        let Some((table, (host, port))) = table.zip(node) else {
            return Err(format!("shard {id} of Citus is on no node that is active").into());
        };
        shards.push(Shard { id, table, host, port });
    }
    if shards.is_empty() { Err("the distributed table has no shards".into()) } else { Ok(shards) }
}

/// The name of a shard, as `shard_name()` gives it: without its schema if that is public.
fn with_schema(schema: pg_sys::Oid, name: String) -> String {
    // SAFETY: a catalog lookup, which gives a C string or NULL.
    let schema = unsafe {
        let schema = pg_sys::get_namespace_name(schema);
        if schema.is_null() { return name } else { CStr::from_ptr(schema).to_string_lossy() }
    };
    let quoted = quote_identifier(&schema);
    if schema == "public" && !name.starts_with(&format!("{quoted}.")) { format!("{quoted}.{name}") } else { name }
}

/// The foreign servers of postgres_fdw that lead into a database of this one's name.
fn servers() -> Vec<Server> {
    let option = |name| {
        format!(
            "(SELECT option_value FROM pg_catalog.pg_options_to_table(s.srvoptions)
              WHERE option_name OPERATOR(pg_catalog.=) '{name}')"
        )
    };
    let sql = format!(
        "SELECT s.oid, s.srvname::pg_catalog.text, {}, coalesce({}, '5432'),
                pg_catalog.has_server_privilege(s.oid, 'USAGE') AND EXISTS (
                    SELECT 1 FROM pg_catalog.pg_user_mappings m
                    WHERE m.srvid OPERATOR(pg_catalog.=) s.oid
                          AND (m.umuser OPERATOR(pg_catalog.=) 0::pg_catalog.oid
                               OR m.usename OPERATOR(pg_catalog.=) current_user))
         FROM pg_catalog.pg_foreign_server s
         WHERE {} OPERATOR(pg_catalog.=) pg_catalog.current_database()::pg_catalog.text
         ORDER BY s.srvname",
        option("host"),
        option("port"),
        option("dbname")
    );
    let found = ask(&sql, |rows, row| {
        // SAFETY: a foreign server's OID, out of its catalog.
        let leads = rows.get::<pg_sys::Oid>(row, 0).is_some_and(|server| unsafe { is_of_postgres_fdw(server) });
        let text = |column| rows.get::<String>(row, column);
        let (name, host, port) = (text(1)?, text(2)?, text(3)?);
        let is_usable = rows.get::<bool>(row, 4).unwrap_or(false);
        leads.then_some(Server { name, host, port, is_usable })
    });
    found.into_iter().flatten().collect()
}

/// What a query of the catalogs gives: `f` of each row.
fn ask<T>(sql: &str, f: impl Fn(&Rows<'_>, usize) -> T) -> Vec<T> {
    let connection = Connection::open();
    let rows = connection.run(sql, Sees::Statement).unwrap_or_else(|e| error!("{e}"));
    let values = (0..rows.len()).map(|row| f(&rows, row)).collect();
    drop(rows);
    connection.close();
    values
}
