//! A query of ours that is being executed, stopped and rescanned at will.
//!
//! It goes through the hooks of ExecutorStart, ExecutorRun, ExecutorFinish and ExecutorEnd, in every process, as
//! queries of SPI and of PostgreSQL's parallel workers do. pgaudit, for one, has its hook on permission checks look at
//! what its hook on ExecutorStart has left there: an ExecutorStart without it is the end of the server.

use super::custom_scan::CustomScan;
use super::explain::Explain;
use super::node::Flags;
use super::plan_bytes::PlanBytes;
use super::planned::Planned;
use super::scan::Scan;
use crate::compat::run_plan;
use crate::context::OwnContext;
use crate::process::parallel::Unavailable;
use crate::snapshot::Snapshot;
use crate::tuples::slot::{Slot, require_unread};
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::rc::Rc;

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
    execution: Rc<Execution>,
    hazard: Option<Unavailable>,
    /// where the plan lies
    plan: OwnContext,
}

/// What is being executed, and what the hooks know of it.
struct Execution {
    query: Cell<*mut pg_sys::QueryDesc>,
    /// is it a part of the statement whose node runs it?
    is_part: bool,
    /// was ExecutorRun called?
    was_run: Cell<bool>,
    /// that the query has given
    rows: Cell<u64>,
    /// of these, the ones that ExecutorRun has been told of
    reported: Cell<u64>,
    has_ended: Cell<bool>,
}

thread_local! {
    /// Queries that are parts of statements, in the order in which they began.
    static PARTS: RefCell<Vec<Rc<Execution>>> = const { RefCell::new(Vec::new()) };
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
        pg_sys::ExecutorStart(query, flags);
        pg_sys::PopActiveSnapshot();
        query
    }
}

/// What ExecutorRun takes for a receiver of rows, and tells when it begins to run, in the midst of all hooks: our work
/// is done then.
#[repr(C)]
struct Work<'a> {
    receiver: pg_sys::DestReceiver,
    work: &'a mut dyn FnMut(),
}

#[pg_guard]
unsafe extern "C-unwind" fn do_work(receiver: *mut pg_sys::DestReceiver, _operation: c_int, _row: pg_sys::TupleDesc) {
    // SAFETY: the receiver is the start of a Work, which lives as long as ExecutorRun runs.
    unsafe { ((*receiver.cast::<Work>()).work)() }
}

#[pg_guard]
unsafe extern "C-unwind" fn shut_down(_receiver: *mut pg_sys::DestReceiver) {}

impl Execution {
    /// Calls ExecutorRun, which runs `f`, in the present memory context. The executor itself is asked for no row: it
    /// has no direction to move in. (A count of 0 would mean all rows.)
    fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        let query = self.query.get();
        let (mut f, mut result) = (Some(f), None);
        self.was_run.set(true);
        // SAFETY: the query was started to be run. PostgreSQL 17 wants its snapshot to be the active one, and
        // extensions read under it. An ERROR in f resets the current memory context anyway, and the query is not run
        // again.
        unsafe {
            let caller = pg_sys::CurrentMemoryContext;
            let mut work = || {
                let own = pg_sys::MemoryContextSwitchTo(caller);
                result = f.take().map(|f| f());
                pg_sys::MemoryContextSwitchTo(own);
                let rows = self.rows.get();
                (*(*query).estate).es_processed = rows - self.reported.replace(rows);
            };
            let receiver = pg_sys::DestReceiver {
                rStartup: Some(do_work),
                rShutdown: Some(shut_down),
                mydest: pg_sys::CommandDest::DestNone,
                ..pg_sys::DestReceiver::default()
            };
            let mut work = Work { receiver, work: &mut work };
            (*query).dest = (&raw mut work).cast();
            pg_sys::PushActiveSnapshot((*query).snapshot);
            run_plan(query, pg_sys::ScanDirection::NoMovementScanDirection);
            pg_sys::PopActiveSnapshot();
            (*query).dest = pg_sys::None_Receiver;
        }
        result.unwrap_or_else(|| error!("another extension has not run an inner query"))
    }

    /// Ends execution, unless it has ended, and releases everything.
    fn end(&self) {
        if self.has_ended.replace(true) {
            return;
        }
        let query = self.query.get();
        // SAFETY: the query was started, and is ended once.
        unsafe {
            if (*(*query).estate).es_top_eflags & EXPLAIN_ONLY == 0 {
                if self.reported.get() < self.rows.get() {
                    self.run(|| ());
                }
                pg_sys::PushActiveSnapshot((*query).snapshot);
                pg_sys::ExecutorFinish(query);
                pg_sys::PopActiveSnapshot();
                // of the last ExecutorRun; until PostgreSQL 15 it is what statistics take for all
                (*(*query).estate).es_processed = self.rows.get();
            }
            pg_sys::ExecutorEnd(query);
            pg_sys::FreeQueryDesc(query);
        }
    }

    /// The memory context of the statement that this is a part of.
    fn context(&self) -> pg_sys::MemoryContext {
        // SAFETY: the query has not ended, and is a chunk of that memory.
        unsafe { pg_sys::GetMemoryChunkContext(self.query.get().cast()) }
    }
}

impl Drop for Running {
    /// After an ERROR, too, when the query is gone. The plan stays until the transaction ends if the query has not
    /// ended.
    fn drop(&mut self) {
        PARTS.with_borrow_mut(|parts| parts.retain(|part| !Rc::ptr_eq(part, &self.execution)));
        if !self.execution.has_ended.get() {
            // SAFETY: self is being dropped.
            unsafe { self.plan.leave() }
        }
    }
}

impl Running {
    /// Starts execution under a snapshot: privileges are checked here. It lives in the current memory context.
    ///
    /// What a node runs is part of the statement around it, and shown with it: it is not reported once more as a
    /// statement that no user has issued. Statistics and logs of plans take a query without an id, or without a total
    /// time, for one that is not to be reported.
    pub fn start(planned: Planned, snapshot: Snapshot<'_>, instrument: c_int, flags: Flags) -> Running {
        let Planned { statement, text, hazard, is_part, memory: plan, .. } = planned;
        // SAFETY: the plan is complete; the query was just started.
        let query = unsafe {
            let query = start(statement, text, snapshot, instrument, flags.0 & EXPLAIN_ONLY);
            if is_part {
                (*query).totaltime = std::ptr::null_mut();
            }
            query
        };
        let execution = Rc::new(Execution {
            query: Cell::new(query),
            is_part,
            was_run: Cell::new(false),
            rows: Cell::new(0),
            reported: Cell::new(0),
            has_ended: Cell::new(false),
        });
        if is_part {
            PARTS.with_borrow_mut(|parts| parts.push(Rc::clone(&execution)));
        }
        Running { execution, hazard, plan }
    }

    /// Starts the query again, to be run, if it was started only to be shown.
    pub fn start_to_run(&mut self) {
        require_unread();
        // SAFETY: the plan outlives the query, which is ended once; the new one is where the old one was, whatever
        // memory context is the current one. The snapshot is registered meanwhile.
        unsafe {
            let old = self.query();
            if (*(*old).estate).es_top_eflags & EXPLAIN_ONLY == 0 {
                return;
            }
            let (statement, text, instrument) = ((*old).plannedstmt, (*old).sourceText, (*old).instrument_options);
            let snapshot = pg_sys::RegisterSnapshot((*old).snapshot);
            let caller = pg_sys::MemoryContextSwitchTo(self.execution.context());
            pg_sys::ExecutorEnd(old);
            pg_sys::FreeQueryDesc(old);
            let query = start(statement, text, Snapshot::new(snapshot), instrument, 0);
            if self.execution.is_part {
                (*query).totaltime = std::ptr::null_mut();
            }
            self.execution.query.set(query);
            pg_sys::MemoryContextSwitchTo(caller);
            pg_sys::UnregisterSnapshot(snapshot);
        }
    }

    fn query(&self) -> *mut pg_sys::QueryDesc {
        self.execution.query.get()
    }

    /// Why worker processes cannot run this query, if so.
    pub fn hazard(&self) -> Option<Unavailable> {
        self.hazard.clone()
    }

    /// The snapshot under which the query runs.
    pub fn snapshot(&self) -> Snapshot<'_> {
        // SAFETY: the query has registered it until it ends.
        unsafe { Snapshot::new((*self.query()).snapshot) }
    }

    /// What EXPLAIN ANALYZE wants to be measured.
    pub fn instrument(&self) -> c_int {
        // SAFETY: a plain field.
        unsafe { (*self.query()).instrument_options }
    }

    /// The planned query for [`Planned::from_bytes`] in a worker process.
    pub fn plan_bytes(&self) -> PlanBytes {
        // SAFETY: the query runs a finished plan, whose text is a C string. A parallel query's workers, too, have the
        // id of the statement that the user has issued.
        unsafe {
            let plan = (*self.query()).plannedstmt;
            let own = std::mem::replace(&mut (*plan).queryId, pg_sys::pgstat_get_my_query_id());
            let bytes = PlanBytes::of_plan(plan, CStr::from_ptr((*self.query()).sourceText));
            (*plan).queryId = own;
            bytes
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
            walk_instruments((*self.query()).planstate, (&raw mut f).cast());
        }
    }

    /// The state of the node on top.
    pub(super) fn plan_state(&self) -> *mut pg_sys::PlanState {
        // SAFETY: the query was started.
        unsafe { (*self.query()).planstate }
    }

    /// The node on top.
    pub fn top<T: CustomScan>(&self) -> Scan<T> {
        // SAFETY: the query is running, and plan() has put a T on top.
        unsafe { Scan::recognise((*self.query()).planstate) }
            .unwrap_or_else(|| error!("inner query has another top node"))
    }

    /// Runs `f`, which asks the nodes for rows and says how many they were, within ExecutorRun and in the query's own
    /// memory context; nodes expect that. Hooks take their time: not for each row.
    pub fn run<R>(&self, f: impl FnOnce() -> (R, usize)) -> R {
        self.execution.run(|| {
            let (result, rows) = self.in_own_memory(f);
            self.execution.rows.set(self.execution.rows.get() + rows as u64);
            result
        })
    }

    /// Runs `f`, which asks for rows one by one, within ExecutorRun, and in the present memory context.
    pub fn run_rows<R>(&self, f: impl FnOnce() -> R) -> R {
        self.execution.run(f)
    }

    fn in_own_memory<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the executor state lives as long as the query. An ERROR in f resets the current context anyway.
        unsafe {
            let caller = pg_sys::MemoryContextSwitchTo((*(*self.query()).estate).es_query_cxt);
            let result = f();
            pg_sys::MemoryContextSwitchTo(caller);
            result
        }
    }

    /// The next row. The first one is read within ExecutorRun, whose hooks may have something to do before it; the
    /// others follow when the query ends.
    #[inline]
    pub fn row(&self) -> Option<Slot<'_>> {
        require_unread();
        // SAFETY: the query is running, and no one reads a row; ExecProcNode is what ExecutePlan calls.
        let next = || unsafe {
            let estate = (*self.query()).estate;
            if !(*estate).es_per_tuple_exprcontext.is_null() {
                pg_sys::MemoryContextReset((*(*estate).es_per_tuple_exprcontext).ecxt_per_tuple_memory);
            }
            Slot::filled(pg_sys::ExecProcNode((*self.query()).planstate))
        };
        let row = if self.execution.was_run.get() { self.in_own_memory(next) } else { self.run(|| (next(), 0)) };
        self.execution.rows.set(self.execution.rows.get() + u64::from(row.is_some()));
        row
    }

    /// Starts over.
    pub fn rescan(&self) {
        require_unread();
        // SAFETY: the query is running, and no one reads a row.
        self.in_own_memory(|| unsafe { pg_sys::ExecReScan((*self.query()).planstate) });
    }

    /// Ends execution and releases everything.
    ///
    /// Parts of a statement end in the reverse order of their beginning, whatever the order of their nodes in its plan:
    /// pgaudit keeps a stack of queries, and forgets with one all that are above it.
    pub fn finish(self) {
        require_unread();
        if self.execution.has_ended.get() {
            return;
        }
        let context = self.execution.context();
        let later = PARTS.with_borrow_mut(|parts| {
            let first = parts.iter().position(|part| Rc::ptr_eq(part, &self.execution)).unwrap_or(parts.len());
            let (others, later) = parts.drain(first..).partition(|part| part.context() != context);
            parts.extend::<Vec<_>>(others);
            later
        });
        later.iter().rev().for_each(|part: &Rc<Execution>| part.end());
        self.execution.end();
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
            pg_sys::ExplainPrintPlan(es, inner.query());
            if !text {
                pg_sys::ExplainCloseGroup(group, group, true, es);
            }
            (es.pstmt, es.rtable, es.rtable_names, es.deparse_cxt, es.printed_subplans) = saved;
            (es.hide_workers, es.settings, es.workers_state) = flags;
        }
    }
}
