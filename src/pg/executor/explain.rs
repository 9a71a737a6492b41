//! EXPLAIN output. Only the ExplainProperty* functions are used, so that every format works.

use super::query::Running;
use pgrx::prelude::*;
use std::ffi::{CStr, CString};

/// EXPLAIN's state during one callback.
#[derive(Clone, Copy)]
pub struct Explain(*mut pg_sys::ExplainState);

impl Explain {
    pub(in crate::pg) fn new(es: *mut pg_sys::ExplainState) -> Explain {
        Explain(es)
    }

    /// EXPLAIN ANALYZE: the plan has been run.
    pub fn analyze(self) -> bool {
        // SAFETY: valid during the callback that made self.
        unsafe { (*self.0).analyze }
    }

    /// EXPLAIN (ANALYZE, TIMING).
    pub fn timing(self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.0).analyze && (*self.0).timing }
    }

    /// Is the plan written for people?
    pub fn is_text(self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.0).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT }
    }

    /// A text property.
    pub fn text(self, name: &CStr, value: &str) {
        let value = CString::new(value.replace('\0', "")).unwrap_or_default();
        // SAFETY: both strings are NUL-terminated and outlive the call.
        unsafe { pg_sys::ExplainPropertyText(name.as_ptr(), value.as_ptr(), self.0) }
    }

    /// An integer property.
    pub fn integer(self, name: &CStr, value: i64) {
        // SAFETY: as above; no unit.
        unsafe { pg_sys::ExplainPropertyInteger(name.as_ptr(), std::ptr::null(), value, self.0) }
    }

    /// A real property, with `digits` after the point.
    pub fn float(self, name: &CStr, value: f64, digits: i32) {
        // SAFETY: as above; no unit.
        unsafe { pg_sys::ExplainPropertyFloat(name.as_ptr(), std::ptr::null(), value, digits, self.0) }
    }

    /// A real property, with as many digits as it takes.
    pub fn real(self, name: &CStr, value: f64) {
        let digits = value.to_string().split_once('.').map_or(0, |(_, fraction)| fraction.len());
        self.float(name, value, digits as i32);
    }

    /// A duration, in milliseconds.
    pub fn milliseconds(self, name: &CStr, seconds: f64) {
        // SAFETY: as above.
        unsafe { pg_sys::ExplainPropertyFloat(name.as_ptr(), c"ms".as_ptr(), seconds * 1e3, 3, self.0) }
    }

    /// The plan of a query that a node runs inside: nested below the node in text, and in the other formats in a
    /// group "Inner Query". ExplainPrintPlan overwrites the state of the plan around, which is saved and put back.
    pub fn inner_query(self, inner: &Running) {
        // SAFETY: es and the inner query are alive; what is saved here are the fields that ExplainPrintPlan and
        // ExplainPreScanNode set.
        unsafe {
            let es = &mut *self.0;
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
            pg_sys::ExplainPrintPlan(es, inner.query_desc());
            if !text {
                pg_sys::ExplainCloseGroup(group, group, true, es);
            }
            (es.pstmt, es.rtable, es.rtable_names, es.deparse_cxt, es.printed_subplans) = saved;
            (es.hide_workers, es.settings, es.workers_state) = flags;
        }
    }
}
