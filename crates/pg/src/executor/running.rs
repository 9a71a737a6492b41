//! A query of ours that is being executed, stopped and rescanned at will.

use super::custom_scan::CustomScan;
use super::explain::Explain;
use super::extension_nodes::call_run_hooks;
use super::node::Flags;
use super::plan_bytes::PlanBytes;
use super::planned::Planned;
use super::scan::Scan;
use crate::process::parallel::Unavailable;
use crate::snapshot::Snapshot;
use crate::tuples::slot::{Slot, require_unread};
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};

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
    has_extension_nodes: bool,
    /// the ExecutorRun hooks are still to be called
    lacks_hooks: Cell<bool>,
}

/// The query is planned and shown, and never run.
const EXPLAIN_ONLY: c_int = pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int;

/// Starts execution in the current memory context.
///
/// # Safety
/// The plan is complete, and outlives the query, as does its text.
unsafe fn start(
    statement: *mut pg_sys::PlannedStmt,
    text: *const c_char,
    snapshot: Snapshot<'_>,
    instrument: c_int,
    flags: c_int,
) -> *mut pg_sys::QueryDesc {
    // SAFETY: the caller's promise; the snapshot is there, and registered by the query.
    unsafe {
        let query = pg_sys::CreateQueryDesc(
            statement,
            text,
            snapshot.as_ptr(),
            std::ptr::null_mut(),
            pg_sys::None_Receiver,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            instrument,
        );
        // PostgreSQL 17 wants the query's snapshot, which may be a copy, to be the active one
        pg_sys::PushActiveSnapshot((*query).snapshot);
        pg_sys::standard_ExecutorStart(query, flags);
        pg_sys::PopActiveSnapshot();
        query
    }
}

impl Running {
    /// Starts execution under a snapshot: privileges are checked here. Everything lives in the current memory context.
    ///
    /// The executor's hooks are left out: other extensions would report a statement that nobody has issued. That of
    /// ExecutorRun alone is called before the first row, if the plan has nodes of another extension, which may need it.
    pub fn start(planned: Planned, snapshot: Snapshot<'_>, instrument: c_int, flags: Flags) -> Running {
        let Planned { statement, text, hazard, has_extension_nodes, .. } = planned;
        // SAFETY: the plan is complete.
        let query = unsafe { start(statement, text, snapshot, instrument, flags.0 & EXPLAIN_ONLY) };
        let lacks_hooks = Cell::new(!flags.explain_only() && has_extension_nodes);
        Running { query, hazard, has_extension_nodes, lacks_hooks }
    }

    /// Starts the query anew, to be run, if it was started only to be shown.
    pub fn start_to_run(&mut self) {
        require_unread();
        // SAFETY: the plan outlives the query, which is ended once; the new one is where the old one was, whatever
        // memory context is the current one.
        unsafe {
            let old = self.query;
            if (*(*old).estate).es_top_eflags & EXPLAIN_ONLY == 0 {
                return;
            }
            let caller = pg_sys::MemoryContextSwitchTo(pg_sys::GetMemoryChunkContext(old.cast()));
            let instrument = (*old).instrument_options;
            self.query = start((*old).plannedstmt, (*old).sourceText, self.snapshot(), instrument, 0);
            pg_sys::MemoryContextSwitchTo(caller);
            pg_sys::standard_ExecutorEnd(old);
            pg_sys::FreeQueryDesc(old);
        }
        self.lacks_hooks.set(self.has_extension_nodes);
    }

    /// Why worker processes cannot run this query, if so.
    pub fn hazard(&self) -> Option<Unavailable> {
        self.hazard.clone()
    }

    /// The snapshot under which the query runs.
    pub fn snapshot(&self) -> Snapshot<'_> {
        // SAFETY: the query has registered it until it ends.
        unsafe { Snapshot::new((*self.query).snapshot) }
    }

    /// What EXPLAIN ANALYZE wants to be measured.
    pub fn instrument(&self) -> c_int {
        // SAFETY: a plain field.
        unsafe { (*self.query).instrument_options }
    }

    /// The planned query for [`Planned::from_bytes`] in a worker process.
    pub fn plan_bytes(&self) -> PlanBytes {
        // SAFETY: the query runs a finished plan, whose text is a C string.
        unsafe { PlanBytes::of_plan((*self.query).plannedstmt, CStr::from_ptr((*self.query).sourceText)) }
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
                // In words, to be aligned; never as an Instrumentation of Rust's, whose booleans must be 0 or 1.
                let mut words = vec![0_u64; size_of::<pg_sys::Instrumentation>().div_ceil(size_of::<u64>())];
                bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..size_of::<pg_sys::Instrumentation>()]
                    .copy_from_slice(&entry[size_of::<c_int>()..]);
                // SAFETY: there are as many bytes as an Instrumentation has, which to C is plain numbers,
                // whatever they are.
                unsafe { pg_sys::InstrAggNode(instrument, words.as_mut_ptr().cast()) }
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

    /// The node on top.
    pub fn top<T: CustomScan>(&self) -> Scan<T> {
        // SAFETY: the query is running, and plan() has put a T on top.
        unsafe { Scan::recognise((*self.query).planstate) }
            .unwrap_or_else(|| error!("inner query has another top node"))
    }

    /// Runs `f`, which asks the nodes for rows, in the query's own memory context, as ExecutorRun does;
    /// nodes expect that.
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the executor state lives as long as the query. An ERROR in f resets the current context anyway. The
        // query was started to be run, if it lacks hooks, with a receiver that does nothing.
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
    #[inline]
    pub fn row(&self) -> Option<Slot<'_>> {
        require_unread();
        // SAFETY: the query is running, and nobody reads a row; ExecProcNode is what ExecutePlan calls.
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
        require_unread();
        // SAFETY: the query is running, and nobody reads a row.
        self.run(|| unsafe { pg_sys::ExecReScan((*self.query).planstate) });
    }

    /// Ends execution and releases everything.
    pub fn finish(self) {
        require_unread();
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

impl Explain<'_> {
    /// The plan of a query that a node runs inside: nested below the node in text, and in the other formats in a
    /// group "Inner Query". ExplainPrintPlan overwrites the state of the plan around, which is saved and put back.
    pub fn inner_query(self, inner: &Running) {
        // SAFETY: es and the inner query are alive; what is saved here are the fields that ExplainPrintPlan and
        // ExplainPreScanNode set.
        unsafe {
            let es = &mut *self.state();
            let saved = (es.pstmt, es.rtable, es.rtable_names, es.deparse_cxt, es.printed_subplans);
            let flags = (es.hide_workers, es.settings, es.workers_state);
            es.settings = false; // would print the settings once more
            es.workers_state = std::ptr::null_mut();
            es.hide_workers = false;
            let text = es.format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT;
            let group = c"Inner Query".as_ptr();
            if !text {
                pg_sys::ExplainOpenGroup(group, group, true, es);
            }
            pg_sys::ExplainPrintPlan(es, inner.query);
            if !text {
                pg_sys::ExplainCloseGroup(group, group, true, es);
            }
            (es.pstmt, es.rtable, es.rtable_names, es.deparse_cxt, es.printed_subplans) = saved;
            (es.hide_workers, es.settings, es.workers_state) = flags;
        }
    }
}
