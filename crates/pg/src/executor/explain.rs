//! EXPLAIN output. Only the ExplainProperty* functions are used, so that every format works.

use pgrx::prelude::*;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;

/// EXPLAIN's state during one callback.
#[derive(Clone, Copy)]
pub struct Explain<'a>(*mut pg_sys::ExplainState, PhantomData<&'a ()>);

impl Explain<'_> {
    /// EXPLAIN's state.
    ///
    /// # Safety
    /// It is there as long as the result is used: during a callback.
    pub(super) unsafe fn new<'a>(es: *mut pg_sys::ExplainState) -> Explain<'a> {
        Explain(es, PhantomData)
    }

    /// EXPLAIN ANALYZE: the plan has been run.
    pub fn analyze(self) -> bool {
        // SAFETY: valid during the callback that made self.
        unsafe { (*self.0).analyze }
    }

    /// EXPLAIN (ANALYZE, TIMING).
    pub fn timing(self) -> bool {
        // SAFETY: valid during the callback that made self.
        unsafe { (*self.0).analyze && (*self.0).timing }
    }

    /// Is the plan written for people?
    pub fn is_text(self) -> bool {
        // SAFETY: valid during the callback that made self.
        unsafe { (*self.0).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT }
    }

    /// A text property.
    pub fn text(self, name: &CStr, value: &str) {
        let value = CString::new(value.replace('\0', "")).unwrap_or_default();
        // SAFETY: both strings are NUL-terminated and outlive the call, and so does EXPLAIN's state.
        unsafe { pg_sys::ExplainPropertyText(name.as_ptr(), value.as_ptr(), self.0) }
    }

    /// An integer property.
    pub fn integer(self, name: &CStr, value: i64) {
        // SAFETY: the name is NUL-terminated and outlives the call, and so does EXPLAIN's state; there is no unit.
        unsafe { pg_sys::ExplainPropertyInteger(name.as_ptr(), std::ptr::null(), value, self.0) }
    }

    /// A real property, with `digits` after the point.
    pub fn float(self, name: &CStr, value: f64, digits: i32) {
        // SAFETY: the name is NUL-terminated and outlives the call, and so does EXPLAIN's state; there is no unit.
        unsafe { pg_sys::ExplainPropertyFloat(name.as_ptr(), std::ptr::null(), value, digits, self.0) }
    }

    /// A real property, with as many digits as it takes.
    pub fn real(self, name: &CStr, value: f64) {
        let digits = value.to_string().split_once('.').map_or(0, |(_, fraction)| fraction.len());
        self.float(name, value, digits as i32);
    }

    /// A duration, in milliseconds.
    pub fn milliseconds(self, name: &CStr, seconds: f64) {
        // SAFETY: both strings are NUL-terminated and outlive the call, and so does EXPLAIN's state.
        unsafe { pg_sys::ExplainPropertyFloat(name.as_ptr(), c"ms".as_ptr(), seconds * 1e3, 3, self.0) }
    }

    /// EXPLAIN's own state, valid during the callback.
    pub(super) fn state(self) -> *mut pg_sys::ExplainState {
        self.0
    }
}
