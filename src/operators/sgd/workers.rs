//! The processes of a training with several: the backend that leads it, and PostgreSQL's parallel workers.
//!
//! The leader looks at the first rows, so that all processes mean the same by what they learn from, starts the workers, tells each
//! of them which it is, and takes part. Every process has the whole model in the end; the leader's is stored.

use super::Training;
use super::data_parallel::Replica;
use crate::errors::{Notice, Result};
use crate::operators::{Buffers, DecoderState, OwnedSpec};
use crate::pg;
use crate::pg::executor::custom_scan::Flags;
use crate::pg::executor::query::{Planned, Running};
use crate::pg::process::all_gather::AllGather;
use crate::pg::process::parallel::{Launch, Shared, Unavailable, Worker, WorkerKind, Workers, report_activity};
use crate::pg::process::progress;
use serde::{Deserialize, Serialize};
use sgd::{Hyperparameters, Trainer};
use shuffle::BlockPartition;
use std::ffi::c_int;
use tuples::{Batch, TupleSource};

/// Workers that train together with their leader.
pub const KIND: WorkerKind = WorkerKind { name: c"corgipile training", main: work };

/// Bytes of the queues between leader and worker: for a few short messages.
const QUEUE: usize = 1 << 14;

/// What all workers are told, beside the plan.
#[derive(Serialize, Deserialize)]
struct Task {
    spec: OwnedSpec,
    found: DecoderState,
    hyperparameters: Hyperparameters,
    max_epochs: u32,
    /// features, and whether tuples are sparse
    dim: usize,
    sparse: bool,
    /// pages of each table
    pages: Vec<u32>,
    instrument: c_int,
    /// of the training, for those who watch it
    progress: Option<u32>,
}

/// What each of them is told.
#[derive(Serialize, Deserialize)]
struct Rank {
    processes: u32,
    index: u32,
}

/// The processes of a training, as their leader sees them.
pub struct WorkerGroup {
    workers: Workers,
    processes: u32,
    /// why there are not as many as were asked for
    fewer: Option<Unavailable>,
    pub member: Replica,
    instrument: c_int,
}

impl Training {
    /// Starts workers, if some were asked for and are to be had, and gives the leader's trainer before the first epoch, which is the
    /// next. Says so if there are fewer than were asked for. `batch` is empty afterwards.
    ///
    /// # Errors
    /// What is wrong with the rows that are looked at.
    pub(super) fn assemble(&mut self, batch: &mut Batch) -> Result<Option<(WorkerGroup, Trainer)>> {
        let asked = self.request.workers;
        if asked == 1 {
            return Ok(None);
        }
        let assembled = self.try_assemble(asked, batch)?;
        let (processes, fewer) = match &assembled {
            Ok((team, _)) => (team.processes, team.fewer.clone()),
            Err(why) => (1, Some(why.clone())),
        };
        if let Some(why) = fewer {
            pg::tell(Notice::FewerProcesses { asked, processes, why: why.into_owned() });
        }
        self.processes = Some(processes);
        Ok(assembled.ok())
    }

    fn try_assemble(
        &mut self,
        asked: u32,
        batch: &mut Batch,
    ) -> Result<std::result::Result<(WorkerGroup, Trainer), Unavailable>> {
        if let Some(why) = self.buffers.query().hazard() {
            return Ok(Err(why));
        }
        const SPOOLED: Unavailable = Unavailable::Borrowed("the source is not a plain table");
        if !self.buffers.reads_tables() {
            return Ok(Err(SPOOLED));
        }
        self.buffers.peek(batch)?;
        let Some(pages) = self.buffers.pages_of_tables() else { return Ok(Err(SPOOLED)) };
        let (dim, sparse) = (batch.dim(), batch.is_sparse());
        *batch = Batch::dense(0);
        let geometry = self.buffers.planned_geometry();
        let wanted = geometry.buffer_blocks.min(asked);
        if wanted == 1 {
            return Ok(Err(FEW_BLOCKS));
        }
        let decoder = &self.buffers.decoder;
        decoder.labels().check()?;
        decoder.check_size(dim, decoder.standardizer().is_some())?;
        let query = self.buffers.query();
        let instrument = query.instrument();
        let task = Task {
            spec: OwnedSpec::new(&self.request.decoder_spec(&self.features), &self.columns),
            found: decoder.found(),
            hyperparameters: self.request.first_point().hyperparameters,
            max_epochs: self.request.max_epochs,
            dim,
            sparse,
            pages,
            instrument,
            progress: progress::number(),
        };
        let plan = query.plan_bytes();
        let launch = Launch {
            kind: KIND.name,
            workers: wanted as usize - 1,
            data: &[&plan.plan, &plan.text, &json(&task)],
            shared: AllGather::bytes(wanted as usize),
            queue: QUEUE,
            snapshot: query.snapshot(),
        };
        let workers = match Workers::launch(&launch) {
            Ok(workers) => workers,
            Err(why) => return Ok(Err(why)),
        };
        workers.wait_to_attach();
        let processes = workers.count() as u32 + 1;
        for worker in 0..workers.count() {
            workers.send(worker, &json(&Rank { processes, index: worker as u32 + 1 }));
        }
        let deal = BlockPartition::new(processes, 0);
        let member = member(workers.shared(), deal, &task);
        self.buffers.set_deal(deal, task.pages.clone());
        let trainer = replica(&task, &self.buffers)?;
        let fewer = match processes {
            _ if wanted < asked => Some(FEW_BLOCKS),
            _ if processes < wanted => Some(Unavailable::Borrowed("no more worker processes were free")),
            _ => None,
        };
        Ok(Ok((WorkerGroup { workers, processes, fewer, member, instrument }, trainer)))
    }
}

const FEW_BLOCKS: Unavailable = Unavailable::Borrowed("the buffer has no more blocks");

impl WorkerGroup {
    /// Waits until all workers have ended. What they have done is counted at the nodes of the leader's plan.
    pub fn finish(self, query: &Running) {
        for worker in (0..self.workers.count()).filter(|_| self.instrument != 0) {
            if let Some(measured) = self.workers.receive(worker) {
                query.add_measured(&measured);
            }
        }
        self.workers.finish();
    }
}

/// What a worker process does.
fn work(worker: Worker) -> Result<()> {
    const CHUNKS: usize = 3;
    let Some(seat) = worker.receive() else { return Ok(()) };
    let (seat, task): (Rank, Task) = (read(&seat), read(worker.data(2)));
    let deal = BlockPartition::new(seat.processes, seat.index);
    let planned = Planned::of_bytes(worker.data(0), worker.data(1));
    report_activity(planned.text());
    progress::read_for(task.progress);
    let mut member = member(worker.shared(CHUNKS), deal, &task);
    let mut decoder = task.spec.decoder()?;
    decoder.adopt(&task.found);
    let query = Running::start(planned, Running::active_snapshot(), task.instrument, Flags::NONE);
    let mut buffers = Buffers::new(query, decoder);
    buffers.set_epoch(1);
    buffers.set_deal(deal, task.pages.clone());
    let mut trainer = replica(&task, &buffers)?;
    let mut batch = Batch::dense(0);
    for epoch in 1..=task.max_epochs {
        if epoch > 1 {
            buffers.next_epoch()?;
        }
        trainer.begin_epoch();
        // whether the model has diverged is for the leader to say, whose model it is, too
        member.epoch(&mut buffers, &mut trainer, &mut batch, |_| Ok(()))?;
        let _ = trainer.end_epoch();
    }
    if task.instrument != 0 {
        worker.send(&buffers.query().measured());
    }
    buffers.finish();
    Ok(())
}

/// A process's way to the others.
fn member(shared: Shared, deal: BlockPartition, task: &Task) -> Replica {
    let index = deal.index() as usize;
    Replica::new(AllGather::join(shared, deal.processes() as usize, index), index, task.hyperparameters.batch_size)
}

/// A process's trainer.
fn replica(task: &Task, buffers: &Buffers) -> Result<Trainer> {
    let outputs = buffers.decoder.labels().outputs();
    Ok(Trainer::replica(task.hyperparameters, task.dim, outputs, task.sparse)?)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("structs of plain values are always JSON")
}

fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> T {
    serde_json::from_slice(json).unwrap_or_else(|e| pgrx::error!("a training process was told nonsense: {e}"))
}
