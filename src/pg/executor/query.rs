//! A query of ours, run inside a node or a function: planned as the invoking user's own, so that privileges, row
//! security, views and expressions work as everywhere, and stopped and rescanned at will.

use super::custom_scan::{CustomScan, Flags, Scan, Slot};
use super::extension_nodes::{call_run_hooks, has_extension_nodes};
use super::planner;
use crate::errors::{Result, SourceError};
use crate::pg::catalog::relation;
use crate::pg::process::parallel::Unavailable;
use pgrx::prelude::*;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// One column of a query's result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    /// the declared type; perhaps a domain
    pub type_oid: pg_sys::Oid,
    pub collation: pg_sys::Oid,
    /// is it a primary key's column, handed through as it is?
    pub is_key: bool,
}

/// An analysed query.
pub struct Query {
    query: *mut pg_sys::Query,
    /// its text, in the current memory context
    text: *const c_char,
}

/// The one statement of a text written by a user, without what follows it (a semicolon, a comment).
///
/// # Errors
/// [`SourceError::NotOneSelect`]; PostgreSQL's own if it cannot be parsed.
pub fn only_select(text: &str) -> Result<&str> {
    let Ok(c_text) = CString::new(text) else { return Err(SourceError::NotOneSelect.into()) };
    // SAFETY: the parser gets a C string and gives a list of RawStmts with positions in it.
    unsafe {
        let statements = pgrx::PgList::<pg_sys::RawStmt>::from_pg(pg_sys::pg_parse_query(c_text.as_ptr()));
        match statements.get_ptr(0) {
            Some(raw) if statements.len() == 1 && (*(*raw).stmt).type_ == pg_sys::NodeTag::T_SelectStmt => {
                let start = (*raw).stmt_location as usize;
                // a length of 0 means the rest of the text
                let len = if (*raw).stmt_len == 0 { text.len() - start } else { (*raw).stmt_len as usize };
                Ok(&text[start..start + len])
            }
            _ => Err(SourceError::NotOneSelect.into()),
        }
    }
}

impl Query {
    /// Parses and analyses one SELECT. The relations in it are locked until the transaction ends; views are expanded and
    /// row security applied for the current user.
    ///
    /// # Errors
    /// [`SourceError::NotReadOnly`] if it would modify data or lock rows; PostgreSQL's own.
    pub fn analyze(sql: &str) -> Result<Query> {
        let Ok(sql) = CString::new(sql) else { return Err(SourceError::NotOneSelect.into()) };
        // SAFETY: text and query live in the current memory context.
        unsafe {
            let text: *const c_char = pg_sys::pstrdup(sql.as_ptr());
            let raw = pg_sys::list_nth(pg_sys::pg_parse_query(text), 0).cast();
            let queries =
                pg_sys::pg_analyze_and_rewrite_fixedparams(raw, text, std::ptr::null(), 0, std::ptr::null_mut());
            let query = pg_sys::list_nth(queries, 0).cast::<pg_sys::Query>();
            if pg_sys::list_length(queries) != 1 || (*query).commandType != pg_sys::CmdType::CMD_SELECT {
                return Err(SourceError::NotOneSelect.into());
            }
            if writes(query.cast(), std::ptr::null_mut()) {
                return Err(SourceError::NotReadOnly.into());
            }
            Ok(Query { query, text })
        }
    }

    /// The columns of the result.
    pub fn columns(&self) -> Vec<Column> {
        // SAFETY: the target list of an analysed query holds TargetEntry nodes with names.
        unsafe {
            let targets = pgrx::PgList::<pg_sys::TargetEntry>::from_pg((*self.query).targetList);
            targets
                .iter_ptr()
                .filter(|target| !(**target).resjunk)
                .map(|target| Column {
                    name: CStr::from_ptr((*target).resname).to_string_lossy().into_owned(),
                    type_oid: pg_sys::exprType((*target).expr.cast()),
                    collation: pg_sys::exprCollation((*target).expr.cast()),
                    is_key: relation::is_primary_key((*target).resorigtbl, (*target).resorigcol),
                })
                .collect()
        }
    }

    /// Does the query's first FROM item, as it was written, mean this relation?
    pub fn reads(&self, relation: pg_sys::Oid) -> bool {
        // SAFETY: a range table holds RangeTblEntry nodes; a view's keeps no relid once expanded on PostgreSQL 15, but its
        // OLD and NEW entries, which come first, are not there in a query's own range table.
        unsafe {
            let table = pgrx::PgList::<pg_sys::RangeTblEntry>::from_pg((*self.query).rtable);
            table
                .get_ptr(0)
                .is_some_and(|first| (*first).relid == relation || (*first).rtekind == pg_sys::RTEKind::RTE_SUBQUERY)
        }
    }

    /// Plans the query so that the rows come from a node `B` under a node `T`. `B` reads the table itself if that is wanted
    /// and the query only filters and computes on one; of a table with partitions or children, each gets a `B` of its own, below
    /// an Append, on which the first one stands. Else it gets the whole plan as its child.
    pub fn plan<T: CustomScan, B: CustomScan>(self, private: &str, reads_table: bool) -> Planned {
        // SAFETY: the query was made by analyze and is planned only here.
        unsafe {
            // before planning, which scribbles on it
            let calls_unsafe = is_unsafe(self.query.cast(), std::ptr::null_mut());
            let copy = pg_sys::copyObjectImpl(self.query.cast()).cast();
            let scan = reads_table.then(B::methods);
            let (mut statement, used) = planner::plan_query(self.query, self.text, scan, private);
            let made = used && planner::is_made_of::<B>((*statement).planTree);
            if used && !made {
                // a B that is read row by row, beside a foreign table for instance, is slower than PostgreSQL's own nodes
                (statement, _) = planner::plan_query(copy, self.text, None, private);
            }
            let mut plan = (*statement).planTree;
            if !planner::is_node::<B>(plan) {
                let put = if made { planner::put_on_parts::<B> } else { planner::put_on_top::<B> };
                plan = put(plan, private);
            }
            (*statement).planTree = planner::put_on_top::<T>(plan, private);
            let has_extension_nodes = has_extension_nodes(statement);
            let hazard = if has_extension_nodes {
                Some(EXTENSION_NODE)
            } else if calls_unsafe {
                Some(CALLS_UNSAFE)
            } else {
                hazard_of_relations((*statement).rtable)
            };
            Planned { statement, text: self.text, hazard, has_extension_nodes }
        }
    }
}

/// Does the query, or one inside it, modify data or lock rows?
#[pg_guard]
unsafe extern "C-unwind" fn writes(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: called with an analysed query, and by the walkers with its nodes.
    unsafe {
        if node.is_null() {
            return false;
        }
        if (*node).type_ != pg_sys::NodeTag::T_Query {
            return pg_sys::expression_tree_walker(node, Some(writes), context);
        }
        let query = node.cast::<pg_sys::Query>();
        (*query).hasModifyingCTE
            || !(*query).rowMarks.is_null()
            || pg_sys::query_tree_walker(query, Some(writes), context, 0)
    }
}

/// Why a query cannot run in a worker process.
const CALLS_UNSAFE: Unavailable = Unavailable::Borrowed("the source is not parallel safe");
const EXTENSION_NODE: Unavailable = Unavailable::Borrowed("custom scan of another extension");

/// Is there anything in a query that a worker process must not do? PostgreSQL's own answer, max_parallel_hazard(), is about
/// parts of plans, where a subquery's result may come from the leader; here the whole query runs in one process.
#[pg_guard]
unsafe extern "C-unwind" fn is_unsafe(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: called with an analysed query, and by the walkers with its nodes.
    unsafe {
        if node.is_null() {
            return false;
        }
        match (*node).type_ {
            pg_sys::NodeTag::T_Query => {
                pg_sys::query_tree_walker(node.cast::<pg_sys::Query>(), Some(is_unsafe), context, 0)
            }
            // the functions of a domain's constraints are found when it is used
            pg_sys::NodeTag::T_NextValueExpr | pg_sys::NodeTag::T_CoerceToDomain => true,
            _ => {
                pg_sys::check_functions_in_node(node, Some(is_unsafe_function), context)
                    || pg_sys::expression_tree_walker(node, Some(is_unsafe), context)
            }
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_unsafe_function(function: pg_sys::Oid, _context: *mut c_void) -> bool {
    // SAFETY: a catalog lookup.
    unsafe { pg_sys::func_parallel(function) as u8 != pg_sys::PROPARALLEL_SAFE }
}

/// What in the range table of a plan worker processes cannot read.
unsafe fn hazard_of_relations(range_table: *mut pg_sys::List) -> Option<Unavailable> {
    // SAFETY: a range table holds RangeTblEntry nodes, those of a finished plan with all its relations.
    unsafe {
        let table = pgrx::PgList::<pg_sys::RangeTblEntry>::from_pg(range_table);
        table.iter_ptr().filter(|entry| (**entry).rtekind == pg_sys::RTEKind::RTE_RELATION).find_map(|entry| {
            let entry = &*entry;
            if pg_sys::get_rel_persistence(entry.relid) as u8 == pg_sys::RELPERSISTENCE_TEMP {
                Some(Unavailable::Borrowed("temporary table"))
            } else if entry.relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE {
                Some(Unavailable::Borrowed("foreign table"))
            } else if !entry.tablesample.is_null()
                && pg_sys::func_parallel((*entry.tablesample).tsmhandler) as u8 != pg_sys::PROPARALLEL_SAFE
            {
                Some(CALLS_UNSAFE)
            } else {
                None
            }
        })
    }
}

/// A planned query with our two nodes on top.
pub struct Planned {
    statement: *mut pg_sys::PlannedStmt,
    text: *const c_char,
    hazard: Option<Unavailable>,
    /// has it custom scans of other extensions?
    has_extension_nodes: bool,
}

/// A planned query as bytes, to be run in another process of the same server.
pub struct PlanBytes {
    pub plan: Vec<u8>,
    pub text: Vec<u8>,
}

impl Planned {
    /// The query that [`Running::plan_bytes`] gave. It lives in the current memory context.
    pub fn of_bytes(plan: &[u8], text: &[u8]) -> Planned {
        // SAFETY: both are C strings, the first made by nodeToString in the same server; copied where they are kept.
        unsafe {
            let statement = pg_sys::stringToNode(plan.as_ptr().cast_mut().cast()).cast();
            let text = pg_sys::pstrdup(text.as_ptr().cast());
            // a plan with a hazard is not sent to anybody
            Planned { statement, text, hazard: None, has_extension_nodes: false }
        }
    }

    /// The query's text.
    pub fn text(&self) -> &CStr {
        // SAFETY: a C string that lives as long as the plan.
        unsafe { CStr::from_ptr(self.text) }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn walk_instruments(state: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
    // SAFETY: called with a started plan, and by the walker with its nodes; context is that of each_instrument.
    unsafe {
        if !(*state).instrument.is_null() {
            let f = context.cast::<&mut dyn FnMut(c_int, *mut pg_sys::Instrumentation)>();
            (*f)((*(*state).plan).plan_node_id, (*state).instrument);
        }
        pg_sys::planstate_tree_walker(state, Some(walk_instruments), context)
    }
}

/// A query of ours that is being executed.
pub struct Running {
    query: *mut pg_sys::QueryDesc,
    hazard: Option<Unavailable>,
    /// the ExecutorRun hooks are still to be called
    lacks_hooks: Cell<bool>,
}

/// The query is planned and shown, and never run.
const EXPLAIN_ONLY: c_int = pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int;

impl Running {
    /// Starts execution under a snapshot: privileges are checked here. Everything lives in the current memory context.
    ///
    /// The executor's hooks are left out: other extensions would report a statement that nobody has issued. That of
    /// ExecutorRun alone is called before the first row, if the plan has nodes of another extension, which may need it.
    pub fn start(planned: Planned, snapshot: pg_sys::Snapshot, instrument: c_int, flags: Flags) -> Running {
        // SAFETY: the plan is complete, the snapshot that of the calling statement.
        unsafe {
            let query = pg_sys::CreateQueryDesc(
                planned.statement,
                planned.text,
                snapshot,
                std::ptr::null_mut(),
                pg_sys::None_Receiver,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                instrument,
            );
            // PostgreSQL 17 wants the query's snapshot, which may be a copy, to be the active one
            pg_sys::PushActiveSnapshot((*query).snapshot);
            pg_sys::standard_ExecutorStart(query, flags.0 & EXPLAIN_ONLY);
            pg_sys::PopActiveSnapshot();
            let runs = flags.0 & EXPLAIN_ONLY == 0;
            let lacks_hooks = Cell::new(runs && planned.has_extension_nodes);
            Running { query, hazard: planned.hazard, lacks_hooks }
        }
    }

    /// The snapshot of the statement that is running, for [`Running::start`] in a function.
    pub fn active_snapshot() -> pg_sys::Snapshot {
        // SAFETY: a function is called with an active snapshot.
        unsafe { pg_sys::GetActiveSnapshot() }
    }

    /// Why worker processes cannot run this query, if so.
    pub fn hazard(&self) -> Option<Unavailable> {
        self.hazard.clone()
    }

    /// The snapshot under which the query runs.
    pub fn snapshot(&self) -> pg_sys::Snapshot {
        // SAFETY: a plain field.
        unsafe { (*self.query).snapshot }
    }

    /// What EXPLAIN ANALYZE wants to be measured.
    pub fn instrument(&self) -> c_int {
        // SAFETY: a plain field.
        unsafe { (*self.query).instrument_options }
    }

    /// The planned query for [`Planned::of_bytes`] in a worker process.
    pub fn plan_bytes(&self) -> PlanBytes {
        // SAFETY: a finished plan has an external form, with our nodes by their names.
        unsafe {
            let plan = pg_sys::nodeToString((*self.query).plannedstmt.cast());
            let bytes = |string| CStr::from_ptr(string).to_bytes_with_nul().to_vec();
            let result = PlanBytes { plan: bytes(plan), text: bytes((*self.query).sourceText) };
            pg_sys::pfree(plan.cast());
            result
        }
    }

    /// What was measured at each node, for [`Running::add_measured`] in the process that shows it.
    pub fn measured(&self) -> Vec<u8> {
        let mut measured: Vec<u8> = Vec::new();
        let mut take = |id: c_int, instrument: *mut pg_sys::Instrumentation| {
            measured.extend(id.to_ne_bytes());
            // SAFETY: a node's instrumentation, which is plain numbers; the loop under way counts, too.
            unsafe {
                pg_sys::InstrEndLoop(instrument);
                let bytes = std::slice::from_raw_parts(instrument.cast::<u8>(), size_of::<pg_sys::Instrumentation>());
                measured.extend_from_slice(bytes);
            }
        };
        self.each_instrument(&mut take);
        measured
    }

    /// Adds what was measured at the nodes of the same plan in another process.
    pub fn add_measured(&self, measured: &[u8]) {
        const ENTRY: usize = size_of::<c_int>() + size_of::<pg_sys::Instrumentation>();
        self.each_instrument(&mut |id, instrument| {
            let of_node = measured.chunks_exact(ENTRY).find(|entry| entry.starts_with(&id.to_ne_bytes()));
            if let Some(entry) = of_node {
                // SAFETY: the bytes of an Instrumentation, which is plain numbers.
                unsafe {
                    let bytes = entry[size_of::<c_int>()..].as_ptr().cast::<pg_sys::Instrumentation>();
                    pg_sys::InstrAggNode(instrument, &mut bytes.read_unaligned());
                }
            }
        });
    }

    /// Calls `f` with the number and the instrumentation of each node that has some.
    fn each_instrument(&self, f: &mut dyn FnMut(c_int, *mut pg_sys::Instrumentation)) {
        let mut f = f;
        // SAFETY: the query is running; the walker gets the address of `f`, which outlives the walk.
        unsafe {
            walk_instruments((*self.query).planstate, (&raw mut f).cast());
        }
    }

    pub(in crate::pg) fn query_desc(&self) -> *mut pg_sys::QueryDesc {
        self.query
    }

    /// The node on top.
    pub fn top<T: CustomScan>(&self) -> Scan<T> {
        // SAFETY: the query is running, and plan() has put a T on top.
        unsafe { Scan::recognise((*self.query).planstate) }
            .unwrap_or_else(|| error!("inner query has another top node"))
    }

    /// Runs `f`, which asks the nodes for rows, in the query's own memory context, as ExecutorRun does; nodes expect that.
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the executor state lives as long as the query. An ERROR in f resets the current context anyway. The query
        // was started to be run, if it lacks hooks, with a receiver that does nothing.
        unsafe {
            if self.lacks_hooks.replace(false) {
                call_run_hooks(self.query);
            }
            let caller = pg_sys::MemoryContextSwitchTo((*(*self.query).estate).es_query_cxt);
            let result = f();
            pg_sys::MemoryContextSwitchTo(caller);
            result
        }
    }

    /// The next row.
    pub fn row(&self) -> Option<Slot> {
        // SAFETY: the query is running; ExecProcNode is what ExecutePlan calls.
        self.run(|| unsafe {
            let estate = (*self.query).estate;
            if !(*estate).es_per_tuple_exprcontext.is_null() {
                pg_sys::MemoryContextReset((*(*estate).es_per_tuple_exprcontext).ecxt_per_tuple_memory);
            }
            Slot::filled(pg_sys::ExecProcNode((*self.query).planstate))
        })
    }

    /// Starts over.
    pub fn rescan(&self) {
        // SAFETY: as above.
        self.run(|| unsafe { pg_sys::ExecReScan((*self.query).planstate) });
    }

    /// Ends execution and lets go of everything.
    pub fn finish(self) {
        // SAFETY: started in start, finished once.
        unsafe {
            if (*(*self.query).estate).es_top_eflags & EXPLAIN_ONLY == 0 {
                pg_sys::standard_ExecutorFinish(self.query);
            }
            pg_sys::standard_ExecutorEnd(self.query);
            pg_sys::FreeQueryDesc(self.query);
        }
    }
}
