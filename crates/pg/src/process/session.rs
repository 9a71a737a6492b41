//! When a session lets go of what it keeps between statements.

use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

/// What lets go of something. Neither raises an error: a transaction that has committed cannot fail.
#[derive(Clone, Copy)]
pub struct Releases {
    /// of what is kept for the statements of one transaction: called when it ends
    pub of_transaction: fn(),
    /// of what is kept for the session: called after DISCARD ALL
    pub of_session: fn(),
}

thread_local! {
    static RELEASES: Cell<Releases> = const { Cell::new(Releases { of_transaction: || (), of_session: || () }) };
    static PREVIOUS_HOOK: Cell<pg_sys::ProcessUtility_hook_type> = const { Cell::new(None) };
}

/// Has these called. Called once, by _PG_init.
pub fn install(releases: Releases) {
    RELEASES.set(releases);
    // SAFETY: _PG_init runs on the only thread.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_ends), null_mut());
        PREVIOUS_HOOK.set(pg_sys::ProcessUtility_hook);
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_ends(event: pg_sys::XactEvent::Type, _data: *mut c_void) {
    use pg_sys::XactEvent::*;
    if [XACT_EVENT_COMMIT, XACT_EVENT_ABORT, XACT_EVENT_PREPARE].contains(&event) {
        (RELEASES.get().of_transaction)();
    }
}

unsafe extern "C-unwind" {
    fn standard_ProcessUtility(
        statement: *mut pg_sys::PlannedStmt,
        text: *const c_char,
        read_only_tree: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        parameters: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        to: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

/// Runs the statement as without us, and lets go if it was DISCARD ALL.
///
/// Without pgrx's guards, which would take the places in the text out of the errors of all utility statements: an ERROR
/// jumps over this frame, which owns nothing.
#[allow(clippy::too_many_arguments, reason = "the signature is PostgreSQL's")]
#[expect(ffi_unwind_calls, reason = "on purpose without a barrier")]
unsafe extern "C-unwind" fn process_utility(
    statement: *mut pg_sys::PlannedStmt,
    text: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    parameters: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    to: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: PostgreSQL's own arguments, which are passed on as they came.
    unsafe {
        let utility = (*statement).utilityStmt;
        let discards_all = (*utility).type_ == pg_sys::NodeTag::T_DiscardStmt
            && (*utility.cast::<pg_sys::DiscardStmt>()).target == pg_sys::DiscardMode::DISCARD_ALL;
        let run = PREVIOUS_HOOK.get().unwrap_or(standard_ProcessUtility);
        run(statement, text, read_only_tree, context, parameters, environment, to, completion);
        if discards_all {
            (RELEASES.get().of_session)();
        }
    }
}
