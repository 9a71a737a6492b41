//! What leader and worker tell each other about a source, as JSON.

use crate::errors::Result;
use crate::operators::{Counts, Decoder, DecoderState, FullShuffle, OwnedSpec, tuple_shuffle};
use serde::{Deserialize, Serialize};
use shuffle::Geometry;

/// What the worker is to load.
#[derive(Serialize, Deserialize)]
pub struct LoadRequest {
    spec: OwnedSpec,
    /// what EXPLAIN ANALYZE wants to be measured
    pub instrument: i32,
    pub task: Task,
    /// how many epochs there are
    pub last_epoch: u64,
    /// of the training, for those who watch it
    pub progress: Option<u32>,
    /// begin no epoch before the leader has ended the one before
    pub waits: bool,
}

/// Where to begin.
#[derive(Serialize, Deserialize)]
pub enum Task {
    /// with an epoch that nobody has begun, and what is known of the rows from elsewhere
    FromStart { epoch: u64, found: Option<Box<DecoderState>> },
    /// with a pass that finds out what there is
    Prepare { standardize: bool },
    /// where the leader has stopped: with this epoch, of tables of so many pages, and what it has found in the rows
    Resume { epoch: u64, pages: Vec<u32>, found: Option<Box<DecoderState>> },
}

impl LoadRequest {
    /// To load all epochs of a source whose rows become tuples so, and to wait, or not, for the leader before each.
    pub fn new(spec: OwnedSpec, last_epoch: u64, waits: bool) -> LoadRequest {
        LoadRequest {
            spec,
            instrument: 0,
            task: Task::FromStart { epoch: 1, found: None },
            last_epoch,
            progress: None,
            waits,
        }
    }

    /// The decoder that the leader has.
    ///
    /// # Errors
    /// As [`OwnedSpec::decoder`].
    pub fn decoder(&self) -> Result<Decoder> {
        self.spec.decoder()
    }

    /// The epoch to begin with; 0 is the preparation pass.
    pub fn epoch(&self) -> u64 {
        match &self.task {
            Task::Prepare { .. } => 0,
            Task::FromStart { epoch, .. } | Task::Resume { epoch, .. } => *epoch,
        }
    }
}

/// What the worker tells beside buffers.
#[derive(Serialize, Deserialize)]
pub enum WorkerMessage {
    /// at the end of an epoch, or of the preparation pass
    Progress(Box<Progress>),
    /// there was no memory for the first buffer, in PostgreSQL's words
    Unable(String),
    /// at the end of all epochs
    Done(Box<Done>),
}

/// How far the worker has come.
#[derive(Default, Serialize, Deserialize)]
pub struct Progress {
    pub counts: Counts,
    /// in the rows, if the leader cannot know yet
    pub found: Option<DecoderState>,
    pub full_shuffle: Option<FullShuffle>,
    /// pages, pages per block, blocks, blocks in the buffer
    geometry: [u32; 4],
}

impl Progress {
    pub fn new(
        counts: Counts,
        found: Option<DecoderState>,
        full_shuffle: Option<FullShuffle>,
        geometry: Geometry,
    ) -> Progress {
        let Geometry { pages, pages_per_block, blocks, buffer_blocks } = geometry;
        Progress { counts, found, full_shuffle, geometry: [pages, pages_per_block, blocks, buffer_blocks] }
    }

    pub fn geometry(&self) -> Geometry {
        let [pages, pages_per_block, blocks, buffer_blocks] = self.geometry;
        Geometry { pages, pages_per_block, blocks, buffer_blocks }
    }
}

/// What was measured.
#[derive(Serialize, Deserialize)]
pub struct Done {
    pub nodes: tuple_shuffle::Report,
    pub instruments: Vec<u8>,
}
