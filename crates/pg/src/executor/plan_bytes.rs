//! Plans on their way to another process of the same server.

use pgrx::pg_sys;
use std::ffi::CStr;

/// A planned query as bytes. There is no other way to make one than of a plan: who executes a plan trusts it.
pub struct PlanBytes {
    plan: Box<CStr>,
    text: Box<CStr>,
}

impl PlanBytes {
    /// A finished plan, and the text of its query.
    ///
    /// # Safety
    /// They are these.
    pub(super) unsafe fn of_plan(plan: *mut pg_sys::PlannedStmt, text: &CStr) -> PlanBytes {
        // SAFETY: the caller's promise: a finished plan has an external form, with our nodes by their names.
        unsafe {
            let bytes = pg_sys::nodeToString(plan.cast());
            let result = PlanBytes { plan: CStr::from_ptr(bytes).into(), text: text.into() };
            pg_sys::pfree(bytes.cast());
            result
        }
    }

    /// What [`PlanBytes::plan`] and [`PlanBytes::text`] gave in another process.
    ///
    /// # Safety
    /// They are these, of a process of the same server.
    pub(crate) unsafe fn from_parts(plan: &CStr, text: &CStr) -> PlanBytes {
        PlanBytes { plan: plan.into(), text: text.into() }
    }

    pub(crate) fn plan(&self) -> &CStr {
        &self.plan
    }

    /// The query's text.
    pub fn text(&self) -> &CStr {
        &self.text
    }
}
