//! Plans and readers.

use crate::batches::to_dict;
use crate::errors;
use crate::sources::Source;
use loading::{Config, Next, Ranks, Shuffle, Size, Worker};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::time::Duration;

/// How long somebody who waits does not look for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

fn refused(argument: &str, what: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{argument}: {what}"))
}

fn size(argument: &str, text: &str) -> PyResult<Size> {
    text.parse().map_err(|error| refused(argument, error))
}

/// Every batch of every epoch of a source.
#[pyclass(frozen, module = "corgipile._native")]
pub struct Plan(Arc<loading::Plan>);

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (source, *, block_size, buffer_size, shuffle, seed, batch_size, lanes, together, world_size, uneven_ranks, drop_last))]
    #[allow(clippy::too_many_arguments)] // all by name
    fn new(
        source: &Source,
        block_size: &str,
        buffer_size: &str,
        shuffle: &str,
        seed: i64,
        batch_size: u32,
        lanes: u32,
        together: u32,
        world_size: u32,
        uneven_ranks: &str,
        drop_last: bool,
    ) -> PyResult<Plan> {
        let known = Shuffle::ALL.into_iter().find(|(name, _)| *name == shuffle);
        let (_, shuffle) = known.ok_or_else(|| {
            let names = Shuffle::ALL.map(|(name, _)| name).join(", ");
            refused("shuffle", format!("{shuffle:?} is not one of {names}"))
        })?;
        let ranks = match uneven_ranks {
            "pad" => Ranks::Pad,
            "drop" => Ranks::Drop,
            "join" => Ranks::Join,
            _ => return Err(refused("uneven_ranks", format!("{uneven_ranks:?} is not one of pad, drop, join"))),
        };
        let (block_size, buffer_size) = (size("block_size", block_size)?, size("buffer_size", buffer_size)?);
        let config = Config {
            block_size,
            buffer_size,
            shuffle,
            seed,
            batch_size,
            lanes,
            together,
            world_size,
            ranks,
            drop_last,
        };
        loading::Plan::new(source.0.clone(), config).map(Arc::new).map(Plan).map_err(errors::of_plan)
    }

    /// Rows of the source.
    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows()
    }

    /// Blocks of the source.
    #[getter]
    fn blocks(&self) -> u32 {
        self.0.blocks()
    }

    /// How many buffers an epoch takes.
    #[getter]
    fn buffers(&self) -> u32 {
        self.0.buffers()
    }

    #[getter]
    fn lanes(&self) -> u32 {
        self.0.lanes()
    }

    /// What orders and batches depend on, but for the seed.
    #[getter]
    fn fingerprint(&self) -> u64 {
        self.0.fingerprint()
    }

    /// How many batches a rank has in an epoch.
    fn batches(&self, rank: u32) -> u64 {
        self.0.batches(rank)
    }

    /// How many of this many workers of a rank have batches.
    fn active_workers(&self, workers: u32) -> u32 {
        self.0.active_workers(workers)
    }

    /// The batches of a rank in an epoch, from one on; of every this many of them, if there are several workers.
    #[pyo3(signature = (epoch, rank, start=0, worker=0, workers=1, threads=0, memory=0))]
    #[allow(clippy::too_many_arguments)]
    fn reader(
        &self,
        epoch: u64,
        rank: u32,
        start: u64,
        worker: u32,
        workers: u32,
        threads: usize,
        memory: u64,
    ) -> PyResult<Reader> {
        if rank >= self.0.config().world_size {
            return Err(refused("rank", format!("{rank} of {}", self.0.config().world_size)));
        }
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        // more than one worker has the processors for itself
        let threads = if threads > 0 { threads } else { (available / workers.max(1) as usize).clamp(1, 8) };
        let reader = loading::Reader::new(
            self.0.clone(),
            epoch,
            rank,
            start,
            Worker { index: worker, workers },
            threads,
            memory,
        );
        Ok(Reader { reader, plan: self.0.clone() })
    }
}

/// Batches, one after the other.
#[pyclass(module = "corgipile._native")]
pub struct Reader {
    reader: loading::Reader,
    plan: Arc<loading::Plan>,
}

#[pymethods]
impl Reader {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        loop {
            match py.detach(|| self.reader.next(PATIENCE)).map_err(errors::of_source)? {
                Next::Batch(batch) => return to_dict(py, self.plan.layout(), batch).map(Some),
                Next::End => return Ok(None),
                Next::Pending => py.check_signals()?,
            }
        }
    }

    /// Ends the threads.
    fn close(&mut self, py: Python<'_>) {
        py.detach(|| self.reader.close());
    }
}
