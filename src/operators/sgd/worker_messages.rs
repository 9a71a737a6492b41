//! What a leader and its workers tell each other, in a training or in a search, and why there may be no workers.

use crate::operators::buffers::Buffers;
use crate::operators::scan_control::BlockCounters;
use pg::process::parallel::{Unavailable, Worker, Workers};
use serde::{Deserialize, Serialize};
use std::ffi::c_int;

/// Bytes of the queues between leader and worker: for a few short messages.
pub const QUEUE: usize = 1 << 14;

/// A server without processes to spare.
pub const NOT_FREE: Unavailable = Unavailable::Borrowed("no more worker processes were free");

/// A source that no other process can read.
pub const SPOOLED: Unavailable = Unavailable::Borrowed("the source is not a plain table");

/// A message.
pub fn json(value: &impl Serialize) -> Vec<u8> {
    let mut json = allocation::Bytes::default();
    serde_json::to_writer(&mut json, value).expect("structs of plain values are always JSON");
    json.0
}

/// What a message says.
pub fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> T {
    serde_json::from_slice(json).unwrap_or_else(|e| pgrx::error!("a training process was told nonsense: {e}"))
}

/// What workers tell at their end, for the nodes of the leader's plan.
#[derive(Clone, Copy)]
pub struct Reports {
    /// is the source read together with other sessions?
    pub shares: bool,
    pub instrument: c_int,
}

impl Reports {
    /// Ends a worker's read, and tells the leader what was read.
    pub fn send(self, worker: &Worker, buffers: Buffers) {
        if self.shares {
            worker.send(&json(&buffers.report().blocks));
        }
        if self.instrument != 0 {
            worker.send(&buffers.query().measured());
        }
        buffers.finish();
    }

    /// Waits until all workers have ended. What they have done is counted at the nodes of the leader's plan.
    pub fn take(self, workers: Workers, buffers: &mut Buffers) {
        for worker in (0..workers.count()).filter(|_| self.shares) {
            if let Some(counters) = workers.receive(worker) {
                buffers.count(&read::<BlockCounters>(&counters));
            }
        }
        for worker in (0..workers.count()).filter(|_| self.instrument != 0) {
            if let Some(measured) = workers.receive(worker) {
                buffers.query().add_measured(&measured);
            }
        }
        workers.finish();
    }
}
