//! A planned query.

use super::plan_bytes::PlanBytes;
use super::shards::MaybeDistributed;
use crate::context::OwnContext;
use crate::process::parallel::Unavailable;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};

/// A planned query with our two nodes on top.
pub struct Planned {
    /// where it lies
    pub(super) memory: OwnContext,
    pub(super) statement: *mut pg_sys::PlannedStmt,
    pub(super) text: *const c_char,
    /// why worker processes cannot run it, if so
    pub(super) hazard: Option<Unavailable>,
    /// may another extension give the rows in another order each time?
    pub(super) order_varies: bool,
    /// is it a part of the statement whose node runs it?
    pub(super) is_part: bool,
    /// the query as it was before it was planned, where it may be one on a distributed table
    pub(super) maybe_distributed: Option<MaybeDistributed>,
}

/// The name of the memory context of a query and its plan.
pub(super) const PLAN: &CStr = c"corgipile plan";

impl Planned {
    /// The query that another process has planned.
    pub fn from_bytes(bytes: &PlanBytes) -> Planned {
        let memory = OwnContext::new(PLAN);
        // SAFETY: both are C strings, the first made by nodeToString in the same server; copied where they are kept.
        let (statement, text) = memory.context().enter(|| unsafe {
            let statement = pg_sys::stringToNode(bytes.plan().as_ptr().cast_mut()).cast();
            (statement, pg_sys::pstrdup(bytes.text().as_ptr()))
        });
        // a plan with a hazard is not sent to anybody
        Planned::new(memory, statement, text, false)
    }

    /// A plan of which nothing more is known. It lies in this memory, as does its text.
    pub(super) fn new(
        memory: OwnContext,
        statement: *mut pg_sys::PlannedStmt,
        text: *const c_char,
        is_part: bool,
    ) -> Planned {
        Planned { memory, statement, text, hazard: None, order_varies: false, is_part, maybe_distributed: None }
    }

    /// What PostgreSQL expects the first `rows` rows to cost, in units of seq_page_cost.
    pub fn cost_of_rows(&self, rows: usize) -> f64 {
        // SAFETY: a planned query has a plan.
        unsafe {
            let plan = &*(*self.statement).planTree;
            let share = (rows as f64 / plan.plan_rows.max(1.0)).min(1.0);
            plan.startup_cost + share * (plan.total_cost - plan.startup_cost)
        }
    }

    /// May another extension give the rows in another order each time? Not if the query sorts them.
    pub fn order_varies(&self) -> bool {
        self.order_varies
    }

    /// The query's text.
    pub fn text(&self) -> &CStr {
        // SAFETY: a C string that lives as long as the plan.
        unsafe { CStr::from_ptr(self.text) }
    }
}
