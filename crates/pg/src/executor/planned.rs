//! A planned query.

use super::plan_bytes::PlanBytes;
use super::shards::MaybeDistributed;
use crate::process::parallel::Unavailable;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};

/// A planned query with our two nodes on top. It belongs to the memory context in which it was planned.
pub struct Planned {
    pub(super) statement: *mut pg_sys::PlannedStmt,
    pub(super) text: *const c_char,
    /// why worker processes cannot run it, if so
    pub(super) hazard: Option<Unavailable>,
    /// has it custom scans of other extensions?
    pub(super) has_extension_nodes: bool,
    /// is it a part of the statement whose node runs it?
    pub(super) is_part: bool,
    /// the query as it was before it was planned, where it may be one on a distributed table
    pub(super) maybe_distributed: Option<MaybeDistributed>,
}

impl Planned {
    /// The query that another process has planned. It belongs to the current memory context.
    pub fn from_bytes(bytes: &PlanBytes) -> Planned {
        // SAFETY: both are C strings, the first made by nodeToString in the same server; copied where they are kept.
        unsafe {
            let statement = pg_sys::stringToNode(bytes.plan().as_ptr().cast_mut()).cast();
            let text = pg_sys::pstrdup(bytes.text().as_ptr());
            // a plan with a hazard is not sent to anybody
            Planned {
                statement,
                text,
                hazard: None,
                has_extension_nodes: false,
                is_part: false,
                maybe_distributed: None,
            }
        }
    }

    /// Does another extension decide in which order rows come?
    pub fn has_extension_nodes(&self) -> bool {
        self.has_extension_nodes
    }

    /// The query's text.
    pub fn text(&self) -> &CStr {
        // SAFETY: a C string that lives as long as the plan.
        unsafe { CStr::from_ptr(self.text) }
    }
}
