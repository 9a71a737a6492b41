//! Which lookups of a model give the same.

use pg::compat::transaction_of_backend;
use pgrx::pg_sys;

/// What has to stay the same for a model that was found once to be still the one that is seen: transaction, snapshot,
/// command, subtransaction and user. The command alone would not do: a subtransaction that is rolled back takes what it
/// has stored with it, but no command.
#[derive(Debug, Clone, Copy)]
pub struct LookupScope([u32; 8]);

impl PartialEq for LookupScope {
    /// Number by number: a comparison of all bytes at once has to wait until the numbers are written.
    #[inline]
    fn eq(&self, other: &LookupScope) -> bool {
        self.0.iter().zip(&other.0).all(|(one, other)| one == other)
    }
}

impl LookupScope {
    #[inline]
    #[expect(ffi_unwind_calls, reason = "these raise no errors")]
    pub fn now() -> LookupScope {
        // SAFETY: a function is called with an active snapshot, in a transaction;
        // none of these functions raises errors.
        unsafe {
            let snapshot = &*GetActiveSnapshot();
            LookupScope([
                transaction_of_backend(),
                snapshot.xmin.into_inner(),
                snapshot.xmax.into_inner(),
                snapshot.xcnt,
                snapshot.subxcnt as u32,
                GetCurrentCommandId(false),
                GetCurrentSubTransactionId(),
                GetUserId().to_u32(),
            ])
        }
    }
}

// As in pg_sys, but without its barrier for errors, which costs more than they do: they are called for every row.
unsafe extern "C-unwind" {
    pub(super) fn GetActiveSnapshot() -> pg_sys::Snapshot;
    pub(super) fn GetCurrentCommandId(used: bool) -> pg_sys::CommandId;
    fn GetCurrentSubTransactionId() -> pg_sys::SubTransactionId;
    fn GetUserId() -> pg_sys::Oid;
}
