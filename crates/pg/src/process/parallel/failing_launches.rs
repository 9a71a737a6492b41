//! Launches workers where something is wrong.

#[pgrx::pg_schema]
mod tests {
    use crate::process::parallel::{Launch, Workers};
    use crate::snapshot::Snapshot;
    use crate::testing::in_subtransaction;
    use pgrx::prelude::*;

    /// A memory context one of whose allocations fails, as if malloc() had given nothing.
    #[cfg(feature = "pg15")]
    mod failing {
        use pgrx::pg_sys;
        use std::cell::Cell;

        thread_local! {
            static BEFORE: Cell<Option<u32>> = const { Cell::new(None) };
            static METHODS: Cell<*const pg_sys::MemoryContextMethods> = const { Cell::new(std::ptr::null()) };
        }

        #[expect(ffi_unwind_calls, reason = "the barrier of who allocates")]
        unsafe extern "C-unwind" fn alloc(context: pg_sys::MemoryContext, size: pg_sys::Size) -> *mut std::ffi::c_void {
            match BEFORE.get() {
                Some(0) => {
                    BEFORE.set(None);
                    std::ptr::null_mut()
                }
                before => {
                    BEFORE.set(before.map(|before| before - 1));
                    // SAFETY: the context's own function, with its own arguments.
                    unsafe { (*METHODS.get()).alloc.expect("every kind of context has it")(context, size) }
                }
            }
        }

        /// Gives the context its methods back.
        struct Restore(pg_sys::MemoryContext);

        impl Drop for Restore {
            fn drop(&mut self) {
                // SAFETY: the context outlives `run`.
                unsafe { (*self.0).methods = METHODS.get() };
            }
        }

        /// Runs `f`, while the allocation in the context after this many others fails.
        pub fn run<R>(context: pg_sys::MemoryContext, before: u32, f: impl FnOnce() -> R) -> R {
            // SAFETY: the context has other methods for a while, the same but for one.
            unsafe {
                METHODS.set((*context).methods);
                let mut methods = *(*context).methods;
                methods.alloc = Some(alloc);
                (*context).methods = &methods;
                let _restore = Restore(context);
                BEFORE.set(Some(before));
                f()
            }
        }

        /// Has an allocation failed in the last run?
        pub fn has_failed() -> bool {
            BEFORE.take().is_none()
        }
    }

    /// The session's segment is half made, locks are held, or the segment is there that the context points to: wherever
    /// an allocation fails, that is an ERROR, and the next attempt works.
    #[cfg(feature = "pg15")]
    #[pg_test]
    fn test_no_failing_allocation_keeps_workers_from_being_launched_later() {
        let rehearse = || {
            Snapshot::with_active(|snapshot| {
                let data: &[&[u8]] = &[b"data"];
                let launch =
                    Launch { kind: c"loader", workers: 2, data, plan: None, gathers: true, queue: 1 << 14, snapshot };
                Workers::rehearse(&launch).err().map(String::from).unwrap_or_default()
            })
        };
        // SAFETY: contexts that live as long as the transaction.
        let contexts =
            unsafe { [("session", pg_sys::TopMemoryContext), ("transaction", pg_sys::TopTransactionContext)] };
        for (name, context) in contexts {
            let mut failed = 0;
            let mut caught = 0;
            loop {
                let message = in_subtransaction(|| failing::run(context, failed, rehearse));
                // SAFETY: plain variables.
                assert_eq!(unsafe { pg_sys::InterruptHoldoffCount }, 0, "after allocation {failed} of the {name}");
                if !failing::has_failed() {
                    assert_eq!(message, "", "without a failure");
                    break;
                }
                caught += u32::from(message == "out of memory");
                failed += 1;
            }
            assert!(caught > 2, "{caught} of {failed} allocations of the {name} were made by the launch");
        }
        assert_eq!(in_subtransaction(rehearse), "");
    }

    #[pg_test]
    fn test_workers_of_another_build_are_not_listened_to() {
        let launched_by = |build| {
            Snapshot::with_active(|snapshot| {
                let data: &[&[u8]] = &[b"data"];
                let launch =
                    Launch { kind: c"loader", workers: 1, data, plan: None, gathers: false, queue: 1 << 14, snapshot };
                let workers = Workers::launch_by(build, &launch).expect("a process is free");
                assert!(workers.receive(0).is_none(), "it has ended");
                String::new()
            })
        };
        let message = "a worker process has loaded a different build of corgipile than this session";
        assert_eq!(in_subtransaction(|| launched_by(c"0123456789abcdef")), message);
        assert_ne!(
            in_subtransaction(|| launched_by(crate::process::library::build())),
            message,
            "it has read the data"
        );
    }
}
