//! How nodes talk past the executor's protocol of one slot at a time: one node looks at the state of another.

use super::custom_scan::CustomScan;
use super::node::Node;
use crate::memory::Owned;
use crate::tuples::heap::HeapRelation;
use crate::tuples::slot::require_unread;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The Rust state of a node, which the executor and other nodes share.
pub(super) struct NodeState<T> {
    pub(super) state: RefCell<T>,
    node: *mut pg_sys::CustomScanState,
    /// has the query not ended?
    is_alive: Cell<bool>,
}

/// PostgreSQL's part of the node's state, then ours.
#[repr(C)]
pub(super) struct State<T> {
    pub(super) css: pg_sys::CustomScanState,
    /// null until the node has begun; owned by [`Owner`]
    pub(super) rust: *const NodeState<T>,
}

/// What hangs on the memory context of the query, and is dropped with it: EndCustomScan is not called on ERROR.
pub(super) struct Owner<T>(Owned<Rc<NodeState<T>>>);

impl<T> Owner<T> {
    /// The owner of a node's Rust state.
    ///
    /// # Safety
    /// The node's own state stays where it is until the owner is dropped.
    pub unsafe fn new(state: T, node: *mut pg_sys::CustomScanState) -> Owner<T> {
        Owner(Owned::new(Rc::new(NodeState { state: RefCell::new(state), node, is_alive: Cell::new(true) })))
    }

    /// Where the Rust state is, as long as the owner is there.
    pub fn as_ptr(&self) -> *const NodeState<T> {
        Rc::as_ptr(&self.0)
    }
}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        self.0.is_alive.set(false);
    }
}

/// A started node of ours, with its Rust state. It may be kept: once the node's query has ended, it only gives ERRORs.
pub struct Scan<T>(Rc<NodeState<T>>);

impl<T> Clone for Scan<T> {
    fn clone(&self) -> Self {
        Scan(self.0.clone())
    }
}

impl<T: CustomScan> Scan<T> {
    /// `ps` as a `T`, if it is one of ours, and has begun.
    ///
    /// # Safety
    /// `ps` is NULL or a plan state.
    pub(super) unsafe fn recognise(ps: *mut pg_sys::PlanState) -> Option<Scan<T>> {
        // SAFETY: the caller's promise; the methods tell which of our types hangs on it. The owner keeps the Rust state
        // as long as the plan state is there, so that another owner of it can be made.
        unsafe {
            let ours = !ps.is_null()
                && (*ps).type_ == pg_sys::NodeTag::T_CustomScanState
                && std::ptr::eq((*ps.cast::<pg_sys::CustomScanState>()).methods, T::methods().exec());
            let state = ours.then(|| (*ps.cast::<State<T>>()).rust).filter(|state| !state.is_null())?;
            Rc::increment_strong_count(state);
            Some(Scan(Rc::from_raw(state)))
        }
    }

    /// Runs `f` on the node's state as ExecProcNode would run the node: pending rescans first, and the tuples that
    /// `f` counts are booked for EXPLAIN ANALYZE.
    pub fn run<R>(&self, f: impl FnOnce(&mut T, Node<'_>) -> (R, usize)) -> R {
        self.require_alive();
        require_unread();
        // SAFETY: the query goes on, and so the plan state is there;
        // its instrumentation is NULL if nothing is measured.
        unsafe {
            let ps = &raw mut (*self.0.node).ss.ps;
            if !(*ps).chgParam.is_null() {
                pg_sys::ExecReScan(ps);
            }
            if !(*ps).instrument.is_null() {
                pg_sys::InstrStartNode((*ps).instrument);
            }
            let (result, tuples) = self.with(f);
            if !(*ps).instrument.is_null() {
                pg_sys::InstrStopNode((*ps).instrument, tuples as f64);
            }
            result
        }
    }

    /// Looks at the node's state.
    pub fn with<R>(&self, f: impl FnOnce(&mut T, Node<'_>) -> R) -> R {
        self.require_alive();
        // SAFETY: the node has begun, and its query does not end while one of its nodes is looked at.
        let node = unsafe { Node::new(self.0.node) };
        f(&mut self.0.state.borrow_mut(), node)
    }

    /// The relation that the node scans, if it scans one.
    pub fn relation(&self) -> Option<HeapRelation<'_>> {
        self.require_alive();
        // SAFETY: the node has begun, and its query goes on.
        unsafe { Node::new(self.0.node) }.relation()
    }

    #[inline]
    fn require_alive(&self) {
        if !self.0.is_alive.get() {
            error!("the query of the node has ended");
        }
    }
}

impl Node<'_> {
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
}
