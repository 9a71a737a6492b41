//! The double buffer: a worker process fills one buffer while the leader learns from the other.
//!
//! Rows of dense tuples lie in dynamic shared memory, where the worker decodes them and the leader learns from them; what
//! else belongs to a tuple is copied. The worker may fill two buffers that the leader has not let go of, then it waits.
//! It says nothing about what is in a buffer that an in-process loader would not say, so that the model is the same, bit
//! for bit. Both ends take interrupts while they wait, and notice when the other one is gone.

mod leader;
mod message;
mod worker;

pub use leader::{Event, Leader};
pub use worker::Slots;

/// Buffers that worker and leader pass to each other.
const SLOTS: usize = 2;

/// Bytes of the queues of messages: those about a buffer are short.
const QUEUE: usize = 16 * 1024;
