//! Custom scan nodes as a Rust trait.
//!
//! A node implements [`CustomScan`]; the C callbacks are written once, here. The node's Rust state hangs on the
//! memory context of its query (`leak_and_drop_on_delete`), because EndCustomScan is not called on ERROR.

use super::explain::Explain;
use crate::pg::tuples::heap::HeapRelation;
use crate::pg::tuples::row::Row;
use pgrx::prelude::*;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;

/// A plan node of ours: what PostgreSQL's executor calls between the start and the end of a query.
pub trait CustomScan: Sized + 'static {
    /// The callbacks, made by [`Methods::of`].
    fn methods() -> &'static Methods;
    /// BeginCustomScan: children are started with [`Node::begin_child`]; no row is read yet, and for plain EXPLAIN
    /// (`eflags.explain_only()`) nothing ever will be.
    fn begin(node: Node, eflags: Flags) -> Self;
    /// Stores the next row in the node's scan slot (through `node.store_*`), or returns false at the end.
    fn next(&mut self, node: Node) -> bool;
    /// Starts over; children have not been told yet.
    fn rescan(&mut self, node: Node);
    /// Releases what the node holds of PostgreSQL; not called on ERROR.
    fn end(&mut self, node: Node);
    /// Adds the node's properties to EXPLAIN.
    fn explain(&mut self, node: Node, explain: Explain);
}

/// The three tables of callbacks that PostgreSQL wants for a custom scan.
pub struct Methods {
    name: &'static CStr,
    path: pg_sys::CustomPathMethods,
    scan: pg_sys::CustomScanMethods,
    exec: pg_sys::CustomExecMethods,
}

// SAFETY: constant tables of function pointers and names.
unsafe impl Sync for Methods {}

impl Methods {
    /// The callbacks of `T` under a name, which is global to the server and shown by EXPLAIN.
    pub const fn of<T: CustomScan>(name: &'static CStr) -> Methods {
        Methods {
            name,
            path: pg_sys::CustomPathMethods {
                CustomName: name.as_ptr(),
                PlanCustomPath: Some(super::planner::plan_custom_path::<T>),
                ReparameterizeCustomPathByChild: None,
            },
            scan: pg_sys::CustomScanMethods {
                CustomName: name.as_ptr(),
                CreateCustomScanState: Some(create_state::<T>),
            },
            exec: pg_sys::CustomExecMethods {
                CustomName: name.as_ptr(),
                BeginCustomScan: Some(begin::<T>),
                ExecCustomScan: Some(exec::<T>),
                EndCustomScan: Some(end::<T>),
                ReScanCustomScan: Some(rescan::<T>),
                MarkPosCustomScan: None,
                RestrPosCustomScan: None,
                EstimateDSMCustomScan: None,
                InitializeDSMCustomScan: None,
                ReInitializeDSMCustomScan: None,
                InitializeWorkerCustomScan: None,
                ShutdownCustomScan: None,
                ExplainCustomScan: Some(explain::<T>),
            },
        }
    }

    pub(in crate::pg) fn path(&'static self) -> *const pg_sys::CustomPathMethods {
        &self.path
    }

    pub(in crate::pg) fn scan(&'static self) -> *const pg_sys::CustomScanMethods {
        &self.scan
    }

    /// Makes the node known to PostgreSQL under its name, and to [`is_ours`].
    pub fn register(&'static self) {
        OURS.with_borrow_mut(|ours| ours.push(&raw const self.scan));
        // SAFETY: `self` is a static with valid, NUL-terminated names.
        unsafe {
            if pg_sys::GetCustomScanMethods(self.name.as_ptr(), true).is_null() {
                pg_sys::RegisterCustomScanMethods(&self.scan);
            }
        }
    }
}

thread_local! {
    static OURS: RefCell<Vec<*const pg_sys::CustomScanMethods>> = const { RefCell::new(Vec::new()) };
}

/// Are these the methods of one of our nodes, and not of another extension's?
pub(in crate::pg) fn is_ours(methods: *const pg_sys::CustomScanMethods) -> bool {
    OURS.with_borrow(|ours| ours.contains(&methods))
}

/// Executor start flags.
#[derive(Clone, Copy)]
pub struct Flags(pub(in crate::pg) c_int);

impl Flags {
    /// Start to run.
    pub const NONE: Flags = Flags(0);
}

/// PostgreSQL's part of the node's state, then ours.
#[repr(C)]
struct State<T> {
    css: pg_sys::CustomScanState,
    rust: *mut T,
}

/// The executor's side of one of our nodes: valid during a callback, or while its query runs.
#[derive(Clone, Copy)]
pub struct Node(pub(in crate::pg) *mut pg_sys::CustomScanState);

impl Node {
    /// What the planner left for the node: the JSON in the only String of `custom_private`.
    pub fn private<S: DeserializeOwned>(self) -> S {
        // SAFETY: the plan was made by `planner`, which puts one String node there.
        let text = unsafe {
            let plan = (*self.0).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let string = pg_sys::list_nth((*plan).custom_private, 0).cast::<pg_sys::String>();
            CStr::from_ptr((*string).sval).to_bytes()
        };
        serde_json::from_slice(text).unwrap_or_else(|e| error!("custom scan has an unreadable plan: {e}"))
    }

    /// The relation that the node scans, if it scans one.
    pub fn relation(self) -> Option<HeapRelation> {
        // SAFETY: ss_currentRelation is NULL or open as long as the query runs.
        unsafe { HeapRelation::new((*self.0).ss.ss_currentRelation) }
    }

    /// The snapshot under which the whole statement runs.
    pub fn snapshot(self) -> pg_sys::Snapshot {
        // SAFETY: the node's executor state outlives it.
        unsafe { (*(*self.0).ss.ps.state).es_snapshot }
    }

    /// Whether EXPLAIN ANALYZE wants times.
    pub fn timing(self) -> bool {
        // SAFETY: es_instrument is a plain integer of the executor state.
        unsafe { (*(*self.0).ss.ps.state).es_instrument as u32 & pg_sys::InstrumentOption::INSTRUMENT_TIMER != 0 }
    }

    /// What EXPLAIN ANALYZE wants to be measured, for queries inside the node.
    pub fn instrument(self) -> c_int {
        // SAFETY: a plain integer of the executor state.
        unsafe { (*(*self.0).ss.ps.state).es_instrument }
    }

    /// True in the second copy of a plan that EvalPlanQual starts and never runs by itself.
    pub fn in_eval_plan_qual(self) -> bool {
        // SAFETY: as above.
        unsafe { !(*(*self.0).ss.ps.state).es_epq_active.is_null() }
    }

    /// Prepares the scan slot for heap tuples of the node's own relation. PostgreSQL 15 has made a virtual slot,
    /// and compiled projection and qual for it without the steps that fetch attributes: all three are redone.
    pub fn use_heap_slot(self) {
        // SAFETY: called from BeginCustomScan of a node with scanrelid > 0, whose relation is open.
        unsafe {
            let ss = &mut (*self.0).ss;
            let plan = ss.ps.plan.cast::<pg_sys::CustomScan>();
            let relation = ss.ss_currentRelation;
            pg_sys::ExecInitScanTupleSlot(ss.ps.state, ss, (*relation).rd_att, pg_sys::table_slot_callbacks(relation));
            pg_sys::ExecAssignScanProjectionInfoWithVarno(ss, (*plan).scan.scanrelid as c_int);
            ss.ps.qual = pg_sys::ExecInitQual((*plan).scan.plan.qual, self.0.cast());
        }
    }

    /// Prepares the scan slot for minimal tuples shaped like the node's `custom_scan_tlist`.
    pub fn use_minimal_slot(self) {
        // SAFETY: called from BeginCustomScan of a node with scanrelid = 0.
        unsafe {
            let ss = &mut (*self.0).ss;
            let plan = ss.ps.plan.cast::<pg_sys::CustomScan>();
            let desc = pg_sys::ExecTypeFromTL((*plan).custom_scan_tlist);
            pg_sys::ExecInitScanTupleSlot(ss.ps.state, ss, desc, &raw const pg_sys::TTSOpsMinimalTuple);
            pg_sys::ExecAssignScanProjectionInfoWithVarno(ss, pg_sys::INDEX_VAR);
            ss.ps.qual = pg_sys::ExecInitQual((*plan).scan.plan.qual, self.0.cast());
        }
    }

    /// Starts the child plan (the plan's `lefttree`).
    pub fn begin_child(self, eflags: Flags) {
        // SAFETY: called from BeginCustomScan; PostgreSQL ends up with the child where EXPLAIN looks for it.
        unsafe {
            let ps = &mut (*self.0).ss.ps;
            ps.lefttree = pg_sys::ExecInitNode((*ps.plan).lefttree, ps.state, eflags.0);
        }
    }

    /// Ends the child, if there is one.
    pub fn end_child(self) {
        // SAFETY: ExecEndNode accepts NULL.
        unsafe { pg_sys::ExecEndNode((*self.0).ss.ps.lefttree) }
    }

    /// Passes a rescan on to the child: at once, or at its next call if its parameters changed.
    pub fn rescan_child(self) {
        // SAFETY: the child was started in begin.
        unsafe {
            let child = (*self.0).ss.ps.lefttree;
            if !child.is_null() && (*child).chgParam.is_null() {
                pg_sys::ExecReScan(child);
            }
        }
    }

    /// The child as one of our own nodes, if it is a `T`.
    pub fn child<T: CustomScan>(self) -> Option<Scan<T>> {
        // SAFETY: lefttree is NULL or a started plan.
        unsafe { Scan::recognise((*self.0).ss.ps.lefttree) }
    }

    /// The children of the child plan, if that is an Append of nodes of ours: those that the executor has not pruned.
    pub fn leaves<T: CustomScan>(self) -> Option<Vec<Scan<T>>> {
        // SAFETY: lefttree is a started plan; an AppendState has as_nplans of them below it.
        unsafe {
            let append = (*self.0).ss.ps.lefttree.cast::<pg_sys::AppendState>();
            if (*append).ps.type_ != pg_sys::NodeTag::T_AppendState {
                return None;
            }
            (0..(*append).as_nplans as usize).map(|i| Scan::recognise(*(*append).appendplans.add(i))).collect()
        }
    }

    /// Runs `f`, which does the child's work; the tuples that it counts are booked for EXPLAIN ANALYZE.
    pub fn run_child<R>(self, f: impl FnOnce() -> (R, usize)) -> R {
        // SAFETY: the child was started in begin; its instrumentation is NULL if nothing is measured.
        unsafe {
            let instrument = (*(*self.0).ss.ps.lefttree).instrument;
            if !instrument.is_null() {
                pg_sys::InstrStartNode(instrument);
            }
            let (result, tuples) = f();
            if !instrument.is_null() {
                pg_sys::InstrStopNode(instrument, tuples as f64);
            }
            result
        }
    }

    /// The next row of the child plan, whatever it is.
    pub fn child_row(self) -> Option<Slot> {
        // SAFETY: the child was started in begin.
        unsafe { Slot::filled(pg_sys::ExecProcNode((*self.0).ss.ps.lefttree)) }
    }

    /// Column types of the rows that the child plan gives.
    pub fn child_descriptor(self) -> pg_sys::TupleDesc {
        // SAFETY: the child was started in begin, which made its result slot.
        unsafe { pg_sys::ExecGetResultType((*self.0).ss.ps.lefttree) }
    }

    /// The planner's estimate of rows and bytes per row.
    pub fn planned_size(self) -> (f64, i32) {
        // SAFETY: every plan state has its plan.
        unsafe { ((*(*self.0).ss.ps.plan).plan_rows, (*(*self.0).ss.ps.plan).plan_width) }
    }

    /// How many columns the node's scan row has.
    pub fn scan_columns(self) -> usize {
        // SAFETY: as above.
        unsafe { pg_sys::list_length((*(*self.0).ss.ps.plan.cast::<pg_sys::CustomScan>()).custom_scan_tlist) as usize }
    }

    /// The node's scan slot.
    pub fn scan_slot(self) -> Slot {
        // SAFETY: made by ExecInitCustomScan.
        unsafe { Slot((*self.0).ss.ss_ScanTupleSlot) }
    }

    /// Does the node filter or compute anything on the rows it scans?
    pub fn has_qual(self) -> bool {
        // SAFETY: plain field.
        unsafe { !(*self.0).ss.ps.qual.is_null() }
    }

    /// Attribute number of the scanned relation behind each column of the node's result, if all are plain columns.
    pub fn plain_columns(self) -> Option<Vec<usize>> {
        // SAFETY: the target list of a finished plan holds TargetEntry nodes.
        unsafe {
            let plan = (*self.0).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let scanned = match (*plan).scan.scanrelid {
                0 => pg_sys::INDEX_VAR,
                relation => relation as c_int,
            };
            let list = pgrx::PgList::<pg_sys::TargetEntry>::from_pg((*plan).scan.plan.targetlist);
            list.iter_ptr()
                .map(|entry| {
                    let var = (*entry).expr.cast::<pg_sys::Var>();
                    let plain =
                        (*var).xpr.type_ == pg_sys::NodeTag::T_Var && (*var).varno == scanned && (*var).varattno > 0;
                    plain.then(|| (*var).varattno as usize - 1)
                })
                .collect()
        }
    }

    /// Applies the qual to the row in the scan slot; false (and counted as filtered) if it fails.
    pub fn passes_qual(self) -> bool {
        // SAFETY: the scan slot holds a row; the per-tuple memory is reset as ExecScan does.
        unsafe {
            let ps = &mut (*self.0).ss.ps;
            let context = ps.ps_ExprContext;
            pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
            (*context).ecxt_scantuple = (*self.0).ss.ss_ScanTupleSlot;
            let passes = pg_sys::ExecQual(ps.qual, context);
            if !passes && !ps.instrument.is_null() {
                (*ps.instrument).nfiltered1 += 1.0;
            }
            passes
        }
    }

    /// Runs `f` in memory that goes away with it: what functions of PostgreSQL leave behind while values are read
    /// (a numeric that had to be detoasted, say) would else stay until the query ends.
    pub fn in_tuple_memory<R>(self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the node's expression context lives as long as the node. An ERROR in f resets the current context anyway.
        unsafe {
            let memory = (*(*self.0).ss.ps.ps_ExprContext).ecxt_per_tuple_memory;
            let caller = pg_sys::MemoryContextSwitchTo(memory);
            let result = f();
            pg_sys::MemoryContextSwitchTo(caller);
            pg_sys::MemoryContextReset(memory);
            result
        }
    }

    /// The row in the scan slot as the node's parent would see it.
    pub fn project(self) -> Slot {
        // SAFETY: as in passes_qual, which has set the expression context's scan tuple.
        unsafe {
            let ps = &mut (*self.0).ss.ps;
            (*ps.ps_ExprContext).ecxt_scantuple = (*self.0).ss.ss_ScanTupleSlot;
            if ps.ps_ProjInfo.is_null() {
                Slot((*self.0).ss.ss_ScanTupleSlot)
            } else {
                Slot(pg_sys::ExecProject(ps.ps_ProjInfo))
            }
        }
    }

    /// Takes from `inner` the values of `columns` (None: NULL, for dropped columns) as this node's scan row.
    pub fn store_columns(self, inner: Slot, columns: &[Option<usize>]) {
        // SAFETY: the scan slot is virtual, with at least `columns.len()` attributes; the values stay valid until
        // the inner plan's next row.
        unsafe {
            let slot = (*self.0).ss.ss_ScanTupleSlot;
            pg_sys::ExecClearTuple(slot);
            pg_sys::slot_getallattrs(inner.0);
            for (i, column) in columns.iter().enumerate() {
                *(*slot).tts_isnull.add(i) = column.is_none_or(|c| *(*inner.0).tts_isnull.add(c));
                *(*slot).tts_values.add(i) = column.map_or(pg_sys::Datum::null(), |c| *(*inner.0).tts_values.add(c));
            }
            pg_sys::ExecStoreVirtualTuple(slot);
        }
    }

    /// Makes another row, with as many columns, this node's scan row; its values stay where they are.
    pub fn store_row(self, row: Slot) {
        // SAFETY: the scan slot is virtual, with the columns of the plan that gives the row; the values stay valid until that
        // plan's next row.
        unsafe {
            let slot = (*self.0).ss.ss_ScanTupleSlot;
            pg_sys::ExecClearTuple(slot);
            pg_sys::slot_getallattrs(row.0);
            let columns = (*(*slot).tts_tupleDescriptor).natts as usize;
            std::ptr::copy_nonoverlapping((*row.0).tts_values, (*slot).tts_values, columns);
            std::ptr::copy_nonoverlapping((*row.0).tts_isnull, (*slot).tts_isnull, columns);
            pg_sys::ExecStoreVirtualTuple(slot);
        }
    }

    /// Stores the given values as the node's scan row. An older declaration of the function in SQL may have fewer columns: it
    /// gets the first ones. One with more gets NULLs.
    pub fn store_values(self, values: &[Option<pg_sys::Datum>]) {
        // SAFETY: the scan slot is virtual and has natts attributes.
        unsafe {
            let slot = (*self.0).ss.ss_ScanTupleSlot;
            pg_sys::ExecClearTuple(slot);
            let columns = (*(*slot).tts_tupleDescriptor).natts as usize;
            for (i, value) in values.iter().chain(std::iter::repeat(&None)).take(columns).enumerate() {
                *(*slot).tts_isnull.add(i) = value.is_none();
                *(*slot).tts_values.add(i) = value.unwrap_or(pg_sys::Datum::null());
            }
            pg_sys::ExecStoreVirtualTuple(slot);
        }
    }
}

/// A slot that holds, or may hold, a row.
#[derive(Clone, Copy)]
pub struct Slot(pub(in crate::pg) *mut pg_sys::TupleTableSlot);

impl Slot {
    /// The slot if it holds a row (the executor's end of data is NULL or an empty slot).
    pub(in crate::pg) unsafe fn filled(slot: *mut pg_sys::TupleTableSlot) -> Option<Slot> {
        // SAFETY: the caller passes what ExecProcNode returned.
        unsafe {
            let empty = slot.is_null() || (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0;
            (!empty).then_some(Slot(slot))
        }
    }

    /// Empties the slot.
    pub fn clear(self) {
        // SAFETY: any slot can be cleared.
        unsafe { pg_sys::ExecClearTuple(self.0) };
    }

    /// The row's values, deformed.
    pub fn row(self) -> Row<'static> {
        // SAFETY: the slot holds a row; the arrays live as long as the slot, and the caller decodes at once.
        unsafe {
            pg_sys::slot_getallattrs(self.0);
            let n = (*self.0).tts_nvalid as usize;
            Row::new(
                std::slice::from_raw_parts((*self.0).tts_values, n),
                std::slice::from_raw_parts((*self.0).tts_isnull, n),
            )
        }
    }
}

/// A started node of ours, with its Rust state: how nodes talk past the executor's one-slot-at-a-time protocol.
pub struct Scan<T> {
    state: *mut State<T>,
    _type: PhantomData<T>,
}

impl<T> Clone for Scan<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Scan<T> {}

impl<T: CustomScan> Scan<T> {
    /// `ps` as a `T`, if it is one of ours.
    pub(in crate::pg) unsafe fn recognise(ps: *mut pg_sys::PlanState) -> Option<Scan<T>> {
        // SAFETY: ps is NULL or a plan state; methods tells which of our types hangs on it.
        unsafe {
            let ours = !ps.is_null()
                && (*ps).type_ == pg_sys::NodeTag::T_CustomScanState
                && std::ptr::eq((*ps.cast::<pg_sys::CustomScanState>()).methods, &T::methods().exec);
            ours.then_some(Scan { state: ps.cast(), _type: PhantomData })
        }
    }

    /// Runs `f` on the node's state as ExecProcNode would run the node: pending rescans first, and the tuples that
    /// `f` counts are booked for EXPLAIN ANALYZE.
    pub fn run<R>(self, f: impl FnOnce(&mut T, Node) -> (R, usize)) -> R {
        // SAFETY: the node is started and not running (our nodes never call their parents), so the reference to its
        // state is the only one.
        unsafe {
            let ps = &raw mut (*self.state).css.ss.ps;
            if !(*ps).chgParam.is_null() {
                pg_sys::ExecReScan(ps);
            }
            if !(*ps).instrument.is_null() {
                pg_sys::InstrStartNode((*ps).instrument);
            }
            let (result, tuples) = f(&mut *(*self.state).rust, Node(self.state.cast()));
            if !(*ps).instrument.is_null() {
                pg_sys::InstrStopNode((*ps).instrument, tuples as f64);
            }
            result
        }
    }

    /// Looks at the node's state.
    pub fn with<R>(self, f: impl FnOnce(&mut T, Node) -> R) -> R {
        // SAFETY: as in run.
        unsafe { f(&mut *(*self.state).rust, Node(self.state.cast())) }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn create_state<T: CustomScan>(_plan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: zeroed memory is a valid CustomScanState; PostgreSQL fills in the rest.
    unsafe {
        let state = pg_sys::palloc0(size_of::<State<T>>()).cast::<State<T>>();
        (*state).css.ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*state).css.methods = &T::methods().exec;
        state.cast()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin<T: CustomScan>(
    node: *mut pg_sys::CustomScanState,
    _estate: *mut pg_sys::EState,
    eflags: c_int,
) {
    let state = T::begin(Node(node), Flags(eflags));
    // SAFETY: create_state made a State<T>; the current context is that of the query.
    unsafe {
        (*node.cast::<State<T>>()).rust = pgrx::PgMemoryContexts::CurrentMemoryContext.leak_and_drop_on_delete(state);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn exec<T: CustomScan>(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: ExecScan applies qual and projection around our access method.
    unsafe { pg_sys::ExecScan(&mut (*node).ss, Some(access::<T>), Some(recheck)) }
}

#[pg_guard]
unsafe extern "C-unwind" fn access<T: CustomScan>(ss: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the scan state is the start of our State<T>, begun before.
    unsafe {
        let node = ss.cast::<State<T>>();
        let slot = (*ss).ss_ScanTupleSlot;
        let found = (*(*node).rust).next(Node(ss.cast()));
        crate::pg::memory::check();
        if found { slot } else { pg_sys::ExecClearTuple(slot) }
    }
}

/// Rows of ours are never rechecked: EvalPlanQual gets them from row marks.
#[pg_guard]
unsafe extern "C-unwind" fn recheck(_ss: *mut pg_sys::ScanState, _slot: *mut pg_sys::TupleTableSlot) -> bool {
    true
}

#[pg_guard]
unsafe extern "C-unwind" fn end<T: CustomScan>(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the state was made in begin.
    unsafe { (*(*node.cast::<State<T>>()).rust).end(Node(node)) }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan<T: CustomScan>(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the state was made in begin; ExecReScan does not clear the scan slot for us.
    unsafe {
        pg_sys::ExecScanReScan(&mut (*node).ss);
        (*(*node.cast::<State<T>>()).rust).rescan(Node(node));
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain<T: CustomScan>(
    node: *mut pg_sys::CustomScanState,
    _ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: the state was made in begin; EXPLAIN's own state lives during the call.
    unsafe { (*(*node.cast::<State<T>>()).rust).explain(Node(node), Explain::new(es)) }
}
