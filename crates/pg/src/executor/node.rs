//! The executor's side of one of our nodes.
//!
//! A node is known by its pointer, and the executor is full of pointers that several own. So every method looks for
//! itself whether what it needs is there, and none changes a slot while a row is being read
//! ([`with_row`](crate::tuples::slot::Slot::with_row)).

use super::running::Running;
use crate::compat::attributes;
use crate::snapshot::Snapshot;
use crate::tuples::heap::HeapRelation;
use crate::tuples::slot::{Slot, require_unread};
use crate::tuples::spool::RowType;
use crate::values::output::OutputValue;
use crate::values::typed::is_same_in_memory;
use pgrx::prelude::*;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;

thread_local! {
    static BEGINS: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`, with which a node begins.
pub(super) fn beginning<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            BEGINS.set(self.0);
        }
    }
    let _restore = Restore(BEGINS.replace(true));
    f()
}

/// Does a node begin just now? What is planned then is a part of the node's statement.
pub(super) fn is_beginning() -> bool {
    BEGINS.get()
}

/// Executor start flags.
#[derive(Clone, Copy)]
pub struct Flags(pub(crate) c_int);

impl Flags {
    /// Start to run.
    pub const NONE: Flags = Flags(0);

    /// Start only to show the plan: nothing is read, and no other server is connected to.
    pub const TO_SHOW: Flags = Flags(pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int);

    /// Is the query to be explained only?
    pub fn explain_only(self) -> bool {
        self.0 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int != 0
    }
}

/// The executor's side of one of our nodes, for the time of a callback or while its state is looked at.
#[derive(Clone, Copy)]
pub struct Node<'a>(pub(crate) *mut pg_sys::CustomScanState, PhantomData<&'a ()>);

impl<'a> Node<'a> {
    /// The node with this state.
    ///
    /// # Safety
    /// The node was begun as one of ours, and its query does not end in `'a`.
    pub(super) unsafe fn new(state: *mut pg_sys::CustomScanState) -> Node<'a> {
        Node(state, PhantomData)
    }
}

impl<'a> Node<'a> {
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
    pub fn relation(self) -> Option<HeapRelation<'a>> {
        // SAFETY: ss_currentRelation is NULL or open as long as the query runs.
        unsafe { HeapRelation::new((*self.0).ss.ss_currentRelation) }
    }

    /// The snapshot under which the whole statement runs.
    pub fn snapshot(self) -> Snapshot<'a> {
        // SAFETY: the node's executor state outlives it, and has its snapshot registered.
        unsafe { Snapshot::new((*(*self.0).ss.ps.state).es_snapshot) }
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
        // SAFETY: a field of the executor state.
        unsafe { !(*(*self.0).ss.ps.state).es_epq_active.is_null() }
    }

    /// Prepares the scan slot for heap tuples of the node's own relation. PostgreSQL 15 has made a virtual slot,
    /// and compiled projection and qual for it without the steps that fetch attributes: all three are redone.
    ///
    /// An ERROR if the node has no relation of its own.
    pub fn use_heap_slot(self) {
        require_unread();
        // SAFETY: the node scans a relation, which is open, and plan and state belong together.
        unsafe {
            let ss = &mut (*self.0).ss;
            let plan = ss.ps.plan.cast::<pg_sys::CustomScan>();
            let relation = ss.ss_currentRelation;
            if relation.is_null() {
                error!("the node scans no relation");
            }
            pg_sys::ExecInitScanTupleSlot(ss.ps.state, ss, (*relation).rd_att, pg_sys::table_slot_callbacks(relation));
            pg_sys::ExecAssignScanProjectionInfoWithVarno(ss, (*plan).scan.scanrelid as c_int);
            ss.ps.qual = pg_sys::ExecInitQual((*plan).scan.plan.qual, self.0.cast());
        }
    }

    /// Prepares the scan slot for minimal tuples shaped like the node's `custom_scan_tlist`.
    ///
    /// An ERROR if the node has a relation of its own.
    pub fn use_minimal_slot(self) {
        require_unread();
        // SAFETY: the node scans no relation: its expressions are of the columns of `custom_scan_tlist`.
        unsafe {
            let ss = &mut (*self.0).ss;
            let plan = ss.ps.plan.cast::<pg_sys::CustomScan>();
            if (*plan).scan.scanrelid != 0 {
                error!("the node scans a relation");
            }
            let desc = pg_sys::ExecTypeFromTL((*plan).custom_scan_tlist);
            pg_sys::ExecInitScanTupleSlot(ss.ps.state, ss, desc, &raw const pg_sys::TTSOpsMinimalTuple);
            pg_sys::ExecAssignScanProjectionInfoWithVarno(ss, pg_sys::INDEX_VAR);
            ss.ps.qual = pg_sys::ExecInitQual((*plan).scan.plan.qual, self.0.cast());
        }
    }

    /// Starts the child plan (the plan's `lefttree`), unless that has been done.
    pub fn begin_child(self, eflags: Flags) {
        // SAFETY: the plan's child is a finished plan, or NULL;
        // PostgreSQL ends up with its state where EXPLAIN looks for it.
        unsafe {
            let ps = &mut (*self.0).ss.ps;
            if !ps.lefttree.is_null() {
                return;
            }
            ps.lefttree = pg_sys::ExecInitNode((*ps.plan).lefttree, ps.state, eflags.0);
        }
    }

    /// Ends the child, if there is one.
    pub fn end_child(self) {
        require_unread();
        // SAFETY: ExecEndNode accepts NULL, and no one finds the child any more once it has ended.
        unsafe { pg_sys::ExecEndNode(std::mem::replace(&mut (*self.0).ss.ps.lefttree, std::ptr::null_mut())) }
    }

    /// The state of the child plan. An ERROR if it was not started, or has ended.
    #[inline]
    fn child_state(self) -> *mut pg_sys::PlanState {
        // SAFETY: a field, NULL or a started plan.
        let child = unsafe { (*self.0).ss.ps.lefttree };
        if child.is_null() {
            error!("the node has no child that runs");
        }
        child
    }

    /// Passes a rescan on to the child: at once, or at its next call if its parameters changed.
    pub fn rescan_child(self) {
        require_unread();
        // SAFETY: the child is NULL, or a started plan.
        unsafe {
            let child = (*self.0).ss.ps.lefttree;
            if !child.is_null() && (*child).chgParam.is_null() {
                pg_sys::ExecReScan(child);
            }
        }
    }

    /// Runs `f`, which does the child's work; the tuples that it counts are booked for EXPLAIN ANALYZE.
    pub fn run_child<R>(self, f: impl FnOnce() -> (R, usize)) -> R {
        // SAFETY: the child is a started plan; its instrumentation is NULL if nothing is measured.
        unsafe {
            let instrument = (*self.child_state()).instrument;
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
    #[inline]
    pub fn child_row(self) -> Option<Slot<'a>> {
        require_unread();
        // SAFETY: the child is a started plan, and no one reads a row.
        unsafe { Slot::filled(pg_sys::ExecProcNode(self.child_state())) }
    }

    /// The type of the rows that the child plan gives.
    pub fn child_row_type(self) -> RowType<'a> {
        // SAFETY: the child is a started plan, which has a result slot.
        unsafe { RowType::new(pg_sys::ExecGetResultType(self.child_state())) }
    }

    /// The planner's estimate of rows and bytes per row.
    pub fn planned_size(self) -> (f64, i32) {
        // SAFETY: every plan state has its plan.
        unsafe { ((*(*self.0).ss.ps.plan).plan_rows, (*(*self.0).ss.ps.plan).plan_width) }
    }

    /// How many columns the node's scan row has.
    pub fn scan_columns(self) -> usize {
        // SAFETY: every plan state has its plan, and that of a custom scan is one.
        unsafe { pg_sys::list_length((*(*self.0).ss.ps.plan.cast::<pg_sys::CustomScan>()).custom_scan_tlist) as usize }
    }

    /// The node's scan slot.
    #[inline]
    pub fn scan_slot(self) -> Slot<'a> {
        // SAFETY: made by ExecInitCustomScan, and there as long as the query.
        unsafe { Slot::new((*self.0).ss.ss_ScanTupleSlot) }
    }

    /// Does the node filter or compute anything on the rows it scans?
    #[inline]
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
    #[inline]
    pub fn passes_qual(self) -> bool {
        require_unread();
        // SAFETY: no one reads a row, and the per-tuple memory is reset as ExecScan does.
        unsafe {
            self.reset_tuple_memory();
            let ps = &mut (*self.0).ss.ps;
            let context = ps.ps_ExprContext;
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
        require_unread();
        // SAFETY: the node's expression context lives as long as the node. An ERROR in f resets the current context
        // anyway. What f gives lives on its own: values that are read borrow from the row, and those that are made are
        // in a Context of their own.
        unsafe {
            let memory = (*(*self.0).ss.ps.ps_ExprContext).ecxt_per_tuple_memory;
            let caller = pg_sys::MemoryContextSwitchTo(memory);
            let result = f();
            pg_sys::MemoryContextSwitchTo(caller);
            self.reset_tuple_memory();
            result
        }
    }

    /// Empties the memory of a row, and the slot whose row [`Node::project`] has made there.
    ///
    /// # Safety
    /// No one reads a row, or anything else in that memory.
    #[inline]
    unsafe fn reset_tuple_memory(self) {
        // SAFETY: the expression context and the slot are the node's, and there as long as it is.
        unsafe {
            let ps = &(*self.0).ss.ps;
            if !ps.ps_ProjInfo.is_null() && Slot::filled(ps.ps_ResultTupleSlot).is_some() {
                pg_sys::ExecClearTuple(ps.ps_ResultTupleSlot);
            }
            pg_sys::MemoryContextReset((*ps.ps_ExprContext).ecxt_per_tuple_memory);
        }
    }

    /// The row in the scan slot as the node's parent would see it.
    #[inline]
    pub fn project(self) -> Slot<'a> {
        require_unread();
        // SAFETY: no one reads a row; the expression context is the node's, and has its scan slot as the tuple.
        unsafe {
            let ps = &mut (*self.0).ss.ps;
            (*ps.ps_ExprContext).ecxt_scantuple = (*self.0).ss.ss_ScanTupleSlot;
            if ps.ps_ProjInfo.is_null() {
                Slot::new((*self.0).ss.ss_ScanTupleSlot)
            } else {
                Slot::new(pg_sys::ExecProject(ps.ps_ProjInfo))
            }
        }
    }

    /// Takes from `inner` the values of `columns` (None: NULL, for dropped columns) as this node's scan row. They stay
    /// where they are: the row is good until the inner plan's next one.
    ///
    /// An ERROR if there is no such column, or it cannot stand where the scan row has it.
    pub fn store_columns(self, inner: Slot<'_>, columns: &[Option<usize>]) {
        require_unread();
        // SAFETY: columns are written only as far as the scan slot has some, and taken only if the inner row has them,
        // of types that are the same in memory.
        unsafe {
            let slot = self.empty_virtual_slot();
            pg_sys::slot_getallattrs(inner.0);
            let own = attributes((*slot).tts_tupleDescriptor);
            let other = &attributes((*inner.0).tts_tupleDescriptor)[..(*inner.0).tts_nvalid as usize];
            for (i, (column, own)) in columns.iter().zip(own).enumerate() {
                let Some(column) = *column else {
                    *(*slot).tts_isnull.add(i) = true;
                    continue;
                };
                let other = &other[column];
                if other.atttypid != own.atttypid && !is_same_in_memory(other.atttypid, own.atttypid) {
                    error!("a column has another type than the node's own");
                }
                *(*slot).tts_isnull.add(i) = *(*inner.0).tts_isnull.add(column);
                *(*slot).tts_values.add(i) = *(*inner.0).tts_values.add(column);
            }
            if columns.len() < own.len() {
                error!("the row has too few columns");
            }
            pg_sys::ExecStoreVirtualTuple(slot);
        }
    }

    /// Are the rows of a query as this node's scan rows, column by column?
    pub fn scans_rows_of(self, query: &Running) -> bool {
        // SAFETY: both slots are there as long as their queries.
        let [own, other] = unsafe {
            let other = pg_sys::ExecGetResultType(query.plan_state());
            [(*(*self.0).ss.ss_ScanTupleSlot).tts_tupleDescriptor, other].map(|of| attributes(of))
        };
        own.len() == other.len() && own.iter().zip(other).all(|(own, other)| own.atttypid == other.atttypid)
    }

    /// Makes another row, with as many columns, this node's scan row; its values stay where they are: the row is good
    /// until the next one of the plan that gives it.
    #[inline]
    pub fn store_row(self, row: Slot<'_>) {
        require_unread();
        // SAFETY: both slots have as many columns; the planner has made them of the same types,
        // as the children of an Append.
        unsafe {
            let slot = self.empty_virtual_slot();
            pg_sys::slot_getallattrs(row.0);
            let columns = (*(*slot).tts_tupleDescriptor).natts as usize;
            if (*row.0).tts_nvalid as usize != columns {
                error!("a row has another number of columns than the node's own");
            }
            std::ptr::copy_nonoverlapping((*row.0).tts_values, (*slot).tts_values, columns);
            std::ptr::copy_nonoverlapping((*row.0).tts_isnull, (*slot).tts_isnull, columns);
            pg_sys::ExecStoreVirtualTuple(slot);
        }
    }

    /// Stores the given values as the node's scan row. An older declaration of the function in SQL may have fewer
    /// columns: it gets the first ones. One with more gets NULLs. An ERROR if a value is not of its column's type.
    #[inline]
    pub fn store_values(self, values: &[OutputValue]) {
        require_unread();
        // SAFETY: the scan slot is virtual and has natts attributes; each value is made one of its attribute's type, in
        // the current memory, which is that of the row.
        unsafe {
            let slot = self.empty_virtual_slot();
            let columns = attributes((*slot).tts_tupleDescriptor);
            let values = values.iter().chain(std::iter::repeat(&OutputValue::Null));
            for (i, (column, value)) in columns.iter().zip(values).enumerate() {
                let datum = value.datum_for(column.atttypid);
                *(*slot).tts_isnull.add(i) = datum.is_none();
                *(*slot).tts_values.add(i) = datum.unwrap_or(pg_sys::Datum::null());
            }
            pg_sys::ExecStoreVirtualTuple(slot);
        }
    }

    /// The scan slot, emptied. An ERROR if it is not one for values that lie elsewhere.
    ///
    /// # Safety
    /// No one reads a row.
    unsafe fn empty_virtual_slot(self) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: the scan slot is there as long as the query; any slot can be cleared.
        unsafe {
            let slot = (*self.0).ss.ss_ScanTupleSlot;
            if !std::ptr::eq((*slot).tts_ops, &raw const pg_sys::TTSOpsVirtual) {
                error!("the node's scan slot has tuples of its own");
            }
            pg_sys::ExecClearTuple(slot);
            slot
        }
    }
}
