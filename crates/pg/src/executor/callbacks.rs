//! The C callbacks of our nodes, written once for all of them.

use super::custom_scan::CustomScan;
use super::explain::Explain;
use super::methods::Methods;
use super::node::{Flags, Node, beginning};
use super::plan::plan_custom_path;
use super::scan::{Owner, State};
use crate::memory;
use pgrx::prelude::*;
use std::ffi::{CStr, c_int};

impl Methods {
    /// The callbacks of `T` under a name, which is global to the server and shown by EXPLAIN.
    pub const fn new<T: CustomScan>(name: &'static CStr) -> Methods {
        let path = pg_sys::CustomPathMethods {
            CustomName: name.as_ptr(),
            PlanCustomPath: Some(plan_custom_path),
            ReparameterizeCustomPathByChild: None,
        };
        let scan =
            pg_sys::CustomScanMethods { CustomName: name.as_ptr(), CreateCustomScanState: Some(create_state::<T>) };
        let exec = pg_sys::CustomExecMethods {
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
        };
        Methods::from_tables(name, path, scan, exec)
    }
}

/// Runs `f` on the Rust state of a node.
///
/// # Safety
/// The node was made by [`create_state`] of the same `T`, has begun, and its query has not ended.
#[inline]
unsafe fn with_state<T: CustomScan, R>(node: *mut pg_sys::CustomScanState, f: impl FnOnce(&mut T, Node<'_>) -> R) -> R {
    // SAFETY: the caller's promise: begin() has left the state there, which its owner keeps until the query's end.
    unsafe {
        let state = &(*(*node.cast::<State<T>>()).rust).state;
        f(&mut state.borrow_mut(), Node::new(node))
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn create_state<T: CustomScan>(_plan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: zeroed memory is a valid CustomScanState; PostgreSQL fills in the rest.
    unsafe {
        let state = pg_sys::palloc0(size_of::<State<T>>()).cast::<State<T>>();
        (*state).css.ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*state).css.methods = T::methods().exec();
        state.cast()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin<T: CustomScan>(
    node: *mut pg_sys::CustomScanState,
    _estate: *mut pg_sys::EState,
    eflags: c_int,
) {
    // SAFETY: create_state made a State<T>; the current context is that of the query, whose end drops the owner.
    unsafe {
        let owner = Owner::new(beginning(|| T::begin(Node::new(node), Flags(eflags))), node);
        (*node.cast::<State<T>>()).rust = owner.as_ptr();
        pgrx::PgMemoryContexts::CurrentMemoryContext.leak_and_drop_on_delete(owner);
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
        let slot = (*ss).ss_ScanTupleSlot;
        let found = with_state::<T, _>(ss.cast(), |state, node| state.next(node));
        memory::check();
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
    // SAFETY: the executor ends a node that it has begun, before the query's memory goes.
    unsafe { with_state::<T, _>(node, |state, node| state.end(node)) }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan<T: CustomScan>(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the executor rescans a node that it has begun; ExecReScan does not clear the scan slot for us.
    unsafe {
        pg_sys::ExecScanReScan(&mut (*node).ss);
        with_state::<T, _>(node, |state, node| state.rescan(node));
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain<T: CustomScan>(
    node: *mut pg_sys::CustomScanState,
    _ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: EXPLAIN shows nodes that have begun; its own state lives during the call.
    unsafe { with_state::<T, _>(node, |state, node| state.explain(node, Explain::new(es))) }
}
