//! What tests inside a backend share. Each runs in a transaction of its own, in a database that all may share: names of
//! tables and models are a test's own.

use crate::snapshot::Snapshot;
use crate::values::typed::TypedDatum;
use pgrx::prelude::*;
use std::ffi::CString;
use std::panic::AssertUnwindSafe;

/// Runs a statement.
pub fn run(sql: &str) {
    Spi::run(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
}

/// The one value that a query gives.
pub fn one<T: FromDatum + IntoDatum>(sql: &str) -> T {
    Spi::get_one(sql).unwrap_or_else(|e| panic!("{sql}: {e}")).unwrap_or_else(|| panic!("{sql}: NULL"))
}

/// Runs a statement that fails, and returns its message.
pub fn failure(sql: &str) -> String {
    let message = in_subtransaction(|| Spi::run(sql).map(|()| String::new()).unwrap_or_default());
    assert!(!message.is_empty(), "{sql} did not fail");
    message
}

/// Runs something in a subtransaction that is rolled back, and gives its result, or the message of an error.
pub fn in_subtransaction(f: impl FnOnce() -> String) -> String {
    // SAFETY: a subtransaction around the statement, as every procedural language has for its exception blocks.
    unsafe {
        let (context, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        let message = PgTryBuilder::new(AssertUnwindSafe(f))
            .catch_others(|cause| match cause {
                pg_sys::panic::CaughtError::PostgresError(report) | pg_sys::panic::CaughtError::ErrorReport(report) => {
                    report.message().to_owned()
                }
                pg_sys::panic::CaughtError::RustPanic { ereport, .. } => format!("panic: {}", ereport.message()),
            })
            .execute();
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::RollbackAndReleaseCurrentSubTransaction();
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        message
    }
}

/// Bytes of all memory contexts.
pub fn allocated() -> usize {
    // SAFETY: adds up the sizes of the contexts.
    unsafe { pg_sys::MemoryContextMemAllocated(pg_sys::TopMemoryContext, true) }
}

/// A value of a type, as the type reads it from a text. It stays as long as the transaction.
pub fn value(text: &str, type_name: &str) -> TypedDatum<'static> {
    let type_oid: pg_sys::Oid = one(&format!("SELECT '{type_name}'::regtype::oid"));
    let text = CString::new(text).expect("texts of tests have no NUL");
    // SAFETY: the type's input function gets a C string, and gives a value of the type, which is never freed.
    unsafe {
        let (mut input, mut parameter) = (pg_sys::Oid::INVALID, pg_sys::Oid::INVALID);
        pg_sys::getTypeInputInfo(type_oid, &mut input, &mut parameter);
        let context = pg_sys::MemoryContextSwitchTo(pg_sys::TopTransactionContext);
        let datum = pg_sys::OidInputFunctionCall(input, text.as_ptr().cast_mut(), parameter, -1);
        pg_sys::MemoryContextSwitchTo(context);
        let column = pg_sys::FormData_pg_attribute { atttypid: type_oid, ..Default::default() };
        TypedDatum::from_column(datum, &column)
    }
}

/// Shows `f` a snapshot that sees what the transaction has done so far. (The active one is older than the tables.)
pub fn with_snapshot(f: impl FnOnce(Snapshot<'_>)) {
    // SAFETY: registered as long as it is lent.
    unsafe {
        let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
        f(Snapshot::new(snapshot));
        pg_sys::UnregisterSnapshot(snapshot);
    }
}
