//! Messages between a worker process and its leader.

use pgrx::prelude::*;
use std::ffi::c_void;
use std::ptr::null_mut;

/// One end of a queue of messages.
pub(super) struct Queue(*mut pg_sys::shm_mq_handle);

impl Queue {
    /// This process's end of a queue.
    ///
    /// # Safety
    /// The queue is in the segment, with this process as sender or receiver; `other` is NULL, or lives as long as the
    /// parallel context.
    pub(super) unsafe fn attach(
        queue: *mut pg_sys::shm_mq,
        segment: *mut pg_sys::dsm_segment,
        other: *mut pg_sys::BackgroundWorkerHandle,
    ) -> Queue {
        // SAFETY: the caller's promise; the end lives as long as the transaction.
        unsafe {
            let caller = pg_sys::MemoryContextSwitchTo(pg_sys::TopTransactionContext);
            let handle = pg_sys::shm_mq_attach(queue, segment, other);
            pg_sys::MemoryContextSwitchTo(caller);
            Queue(handle)
        }
    }

    /// The next message; None if the other end is closed. Takes interrupts.
    pub(super) fn receive(&self) -> Option<Vec<u8>> {
        let (mut size, mut data): (usize, *mut c_void) = (0, null_mut());
        // SAFETY: the data is valid until the next call.
        unsafe {
            match pg_sys::shm_mq_receive(self.0, &mut size, &mut data, false) {
                pg_sys::shm_mq_result::SHM_MQ_SUCCESS => {
                    Some(allocation::copy(std::slice::from_raw_parts(data.cast_const().cast::<u8>(), size)))
                }
                _ => None,
            }
        }
    }

    /// False if the other end is closed. Takes interrupts.
    pub(super) fn send(&self, message: &[u8]) -> bool {
        // SAFETY: the message is copied.
        let result = unsafe { pg_sys::shm_mq_send(self.0, message.len(), message.as_ptr().cast(), false, true) };
        result == pg_sys::shm_mq_result::SHM_MQ_SUCCESS
    }

    /// Closes this end.
    pub(super) fn detach(&self) {
        // SAFETY: attached in attach, detached once.
        unsafe { pg_sys::shm_mq_detach(self.0) }
    }
}
