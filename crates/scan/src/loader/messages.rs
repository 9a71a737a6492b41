//! What leader and worker tell each other.

use super::filled_buffer::FilledBuffer;
use crate::scan_control::ScanReport;
use decode::{DecoderState, RowCounts};
use serde::{Deserialize, Serialize};
use std::ffi::CStr;

pub const WORKER_NAME: &CStr = c"loader";

/// Buffers that worker and leader pass to each other.
pub const SLOTS: usize = 2;

/// A message of the leader, a byte: it has released the oldest buffer.
pub const RELEASE: u8 = b'r';

/// A message of the leader, a byte: the next epoch may begin.
pub const START_EPOCH: u8 = b's';

/// A message of the worker, as JSON.
#[derive(Serialize, Deserialize)]
pub enum WorkerMessage {
    Filled(FilledBuffer),
    /// An epoch, or the preparation pass, is over.
    EpochEnd(Box<EpochEnd>),
    /// The rows have something that a sample of them did not contain.
    MissingInSample(String),
    /// There is no shared memory for the first buffer, for this reason, in PostgreSQL's words.
    NoSharedMemory(String),
    /// All epochs are over.
    Done(Box<Done>),
}

/// State of the worker at the end of an epoch.
#[derive(Serialize, Deserialize)]
pub struct EpochEnd {
    pub counts: RowCounts,
    /// None if the leader knows it already
    pub decoder_state: Option<DecoderState>,
    pub report: ScanReport,
}

/// Measurements of the worker, at the end of all epochs.
#[derive(Serialize, Deserialize)]
pub struct Done {
    pub report: ScanReport,
    /// of the plan's nodes, as EXPLAIN ANALYZE wants them
    pub instruments: Vec<u8>,
}

const _: () = assert!(SLOTS > 1, "one is filled while the other is learned from");
