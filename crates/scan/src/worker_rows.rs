//! How worker processes begin to read the rows that their leader reads.

use super::progress;
use super::scan_control::ScanControl;
use decode::{Decoder, DecoderState, OwnedSpec};
use errors::Result;
use pg::executor::custom_scan::Flags;
use pg::executor::query::{Planned, Running};
use pg::process::parallel::{Launch, Unavailable, Worker, Workers, report_activity};
use pg::snapshot::Snapshot;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, c_int};

/// Bytes of the queues between leader and worker: messages are short.
const QUEUE: usize = 1 << 14;

/// What a worker needs to read the rows of its leader, besides the plan.
#[derive(Serialize, Deserialize)]
pub struct WorkerRows {
    pub spec: OwnedSpec,
    /// what the leader knows of the rows, if it has read them
    pub decoder_state: Option<Box<DecoderState>>,
    /// what the nodes get before they are read
    pub control: ScanControl,
    /// what EXPLAIN ANALYZE wants to be measured
    pub instrument: c_int,
    /// number of the training in the view of its progress
    pub progress: Option<u32>,
}

impl WorkerRows {
    /// Begins to read them in a worker. Its nodes are still to be told of the control.
    pub fn open(&self, worker: &Worker) -> Result<(Running, Decoder)> {
        let planned = Planned::from_bytes(&worker.plan_bytes());
        report_activity(planned.text());
        progress::read_for(self.progress);
        let mut decoder = self.spec.decoder()?;
        self.decoder_state.iter().for_each(|state| decoder.adopt(state));
        // permissions are checked here once more
        let query = Snapshot::with_active(|snapshot| Running::start(planned, snapshot, self.instrument, Flags::NONE));
        Ok((query, decoder))
    }
}

/// Starts workers on a query that is running here.
pub fn launch(
    kind: &'static CStr,
    workers: usize,
    data: &[&[u8]],
    gathers: bool,
    query: &Running,
) -> std::result::Result<Workers, Unavailable> {
    let plan = query.plan_bytes();
    Workers::launch(&Launch {
        kind,
        workers,
        data,
        plan: Some(&plan),
        gathers,
        queue: QUEUE,
        snapshot: query.snapshot(),
    })
}

/// A message.
pub fn json(value: &impl Serialize) -> Vec<u8> {
    let mut json = allocation::Bytes::default();
    serde_json::to_writer(&mut json, value).expect("structs of plain values are always JSON");
    json.0
}

/// What a message says.
pub fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> T {
    serde_json::from_slice(json).unwrap_or_else(|e| pgrx::error!("unexpected request to a training process: {e}"))
}
