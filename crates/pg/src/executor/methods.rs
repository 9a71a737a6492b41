//! The tables of callbacks by which PostgreSQL knows a custom scan.

use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::CStr;

/// The three tables of callbacks that PostgreSQL wants for a custom scan.
#[repr(C)]
pub struct Methods {
    // the first field: PostgreSQL hands it back when it makes a plan of a path
    path: pg_sys::CustomPathMethods,
    scan: pg_sys::CustomScanMethods,
    exec: pg_sys::CustomExecMethods,
    name: &'static CStr,
}

// SAFETY: constant tables of function pointers and names.
unsafe impl Sync for Methods {}

impl Methods {
    /// Tables with this name, which is global to the server and shown by EXPLAIN.
    pub(super) const fn from_tables(
        name: &'static CStr,
        path: pg_sys::CustomPathMethods,
        scan: pg_sys::CustomScanMethods,
        exec: pg_sys::CustomExecMethods,
    ) -> Methods {
        Methods { path, scan, exec, name }
    }

    /// The table for paths.
    pub(super) fn path(&'static self) -> *const pg_sys::CustomPathMethods {
        &self.path
    }

    /// The table for plans.
    pub(super) fn scan(&'static self) -> *const pg_sys::CustomScanMethods {
        &self.scan
    }

    /// The table for execution.
    pub(super) fn exec(&'static self) -> *const pg_sys::CustomExecMethods {
        &self.exec
    }

    /// The tables of which this is the one for paths.
    ///
    /// # Safety
    /// It is the one that [`Methods::path`] gave.
    pub(super) unsafe fn of_path(path: *const pg_sys::CustomPathMethods) -> &'static Methods {
        // SAFETY: the caller's promise; the table is the first field of Methods, which are static.
        unsafe { &*path.cast::<Methods>() }
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
pub(crate) fn is_ours(methods: *const pg_sys::CustomScanMethods) -> bool {
    OURS.with_borrow(|ours| ours.contains(&methods))
}
