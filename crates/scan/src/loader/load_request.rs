//! What a worker is to load.

use crate::scan_control::{CacheControl, ScanControl};
use crate::worker_rows::WorkerRows;
use decode::OwnedSpec;
use decode::wanted::Wanted;
use loss::{Extent, Hyperparameters};
use serde::{Deserialize, Serialize};

/// What a worker is to load. It travels as JSON.
#[derive(Serialize, Deserialize)]
pub struct LoadRequest {
    pub rows: WorkerRows,
    pub start: LoadStart,
    /// the number of the last epoch, as far as it is known
    pub last_epoch: u64,
    /// is it to be chosen by the tuples?
    pub has_open_epochs: bool,
    /// begin no epoch before the leader has ended the one before
    pub waits: bool,
}

/// Where a worker begins.
#[derive(Serialize, Deserialize)]
pub enum LoadStart {
    /// with a pass that finds out what the rows are like
    Prepare { wanted: Wanted },
    /// with the first epoch, which no one has begun
    First,
    /// with this epoch, after the leader has run those before
    Resume { epoch: u64 },
}

impl LoadRequest {
    /// To load all epochs of a source whose rows become tuples so, and to wait, or not, for the leader before each.
    pub fn new(spec: OwnedSpec, last_epoch: u64, has_open_epochs: bool, waits: bool) -> LoadRequest {
        // tuples that stayed in the batch would be seen by the leader
        let control = ScanControl { cache: Some(CacheControl::FileOnly), ..ScanControl::default() };
        let rows = WorkerRows { spec, decoder_state: None, control, instrument: 0, progress: None };
        LoadRequest { rows, start: LoadStart::First, last_epoch, has_open_epochs, waits }
    }

    /// The number of the last epoch that a source of such data may have: the leader, which chooses, may end before.
    pub fn last_epoch(&self, data: Extent) -> u64 {
        let chosen = if self.has_open_epochs { Hyperparameters::most_automatic_epochs(data) } else { 0 };
        self.last_epoch.max(chosen.into())
    }

    /// The epoch to begin with; 0 is the preparation pass.
    pub fn first_epoch(&self) -> u64 {
        match &self.start {
            LoadStart::Prepare { .. } => 0,
            LoadStart::First => 1,
            LoadStart::Resume { epoch } => *epoch,
        }
    }
}
