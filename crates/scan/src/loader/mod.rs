//! The double buffer: a worker process runs BlockShuffle, decoder and TupleShuffle, and fills one buffer while SGD
//! learns from the other.
//!
//! The leader sends the plan of the source and a [`LoadRequest`]. The worker sends buffers and the state of
//! its decoder. The leader's own nodes stay idle, or have run the epochs before.
//!
//! Rows of dense tuples lie in dynamic shared memory, where the worker decodes them and the leader learns from them.
//! What else belongs to a tuple is copied. The worker may fill two buffers that the leader has not released; then it
//! waits. A buffer from a worker has the same tuples in the same order as one that is filled in process, so that the
//! model is the same, bit for bit. Both ends take interrupts while they wait, and notice when the other one is gone.

mod choice;
mod filled_buffer;
mod leader;
mod load_request;
mod messages;
mod worker;
mod worker_buffers;

pub use choice::{EpochTiming, LoaderChoice};
pub use leader::{Leader, Received};
pub use load_request::LoadRequest;
pub use worker::KIND;
