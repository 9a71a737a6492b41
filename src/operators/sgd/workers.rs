//! The processes of a data-parallel training: the leader, which is the backend, and PostgreSQL's parallel workers.
//!
//! The leader looks at the first rows, so that classes have the same numbers in all processes. Then it starts the
//! workers, sends each of them its rank, and takes part. Every process has the whole model in the end.
//! The leader's is stored.

use super::data_parallel::Replica;
use super::learners::{Judged, Learners};
use super::opening::notice_steps;
use super::resume::Resume;
use super::team::{Here, Team};
use super::validation::{OwnParts, United};
use super::worker_messages::{NOT_FREE, QUEUE, Reports, SPOOLED, json, read};
use crate::errors::{OrRaise, Result};
use crate::operators::buffers::Buffers;
use crate::operators::decoder::{DecoderState, OwnedSpec};
use crate::operators::progress;
use crate::operators::scan_control::{Rank, ScanControl};
use crate::options::request::Request;
use crate::options::shuffling::Shuffling;
use pg::executor::custom_scan::Flags;
use pg::executor::query::{Planned, Running};
use pg::process::all_gather::AllGather;
use pg::process::parallel::{Launch, Unavailable, Worker, WorkerKind, Workers, report_activity};
use pg::snapshot::Snapshot;
use serde::{Deserialize, Serialize};
use sgd::{Hyperparameters, ModelKind, Trainer};
use std::ffi::c_int;
use tuples::Batch;

/// Workers that train in step with their leader.
pub const KIND: WorkerKind = WorkerKind { name: c"corgipile training", main: |worker| work(worker).or_raise() };

/// What the leader sends to all workers, beside the plan.
#[derive(Serialize, Deserialize)]
struct TrainingTask {
    spec: OwnedSpec,
    kind: ModelKind,
    decoder_state: DecoderState,
    /// of each point
    points: Vec<Hyperparameters>,
    first_epoch: u32,
    /// groups that models learn from
    groups: usize,
    /// how the source is shuffled, if its rows fall into groups or some are held out
    parts: Option<Shuffling>,
    holds_out: bool,
    /// features, and whether tuples are sparse
    dim: usize,
    sparse: bool,
    pages_of_tables: Vec<u32>,
    /// pages of a block, if they do not follow from those of the tables
    pages_per_block: Option<u32>,
    instrument: c_int,
    /// of the training, for those who watch it
    progress: Option<u32>,
}

/// The processes of a training, as their leader sees them.
pub struct WorkerGroup {
    workers: Workers,
    processes: u32,
    /// processes that there should be, as the buffer has so many blocks
    wanted: u32,
    /// the leader's
    pub replica: Replica,
    reports: Reports,
}

/// A buffer that more processes could not share.
const FEW_BLOCKS: Unavailable = Unavailable::Borrowed("the buffer has no more blocks");

impl WorkerGroup {
    /// Starts workers, if they are to be had, and gives the leader's trainers before the first epoch, which is the
    /// next. Reports if there are fewer than were asked for. `batch` is empty afterwards.
    ///
    /// # Errors
    /// What is wrong with the rows that are looked at.
    pub fn launch(
        (request, resume, groups): (&Request, Option<&Resume>, usize),
        spec: OwnedSpec,
        buffers: &mut Buffers,
        batch: &mut Batch,
    ) -> Result<Option<(WorkerGroup, Vec<Trainer>)>> {
        let asked = request.workers;
        let launched = match plan((request, groups), spec, buffers, batch)? {
            Ok((task, wanted)) => start(task, wanted, resume, buffers)?,
            Err(why) => Err(why),
        };
        let (processes, fewer) = match &launched {
            Ok((workers, _)) if workers.processes == asked => (asked, None),
            // the buffer's blocks are known beforehand
            Ok((workers, _)) if workers.wanted < asked => (workers.processes, Some(FEW_BLOCKS)),
            Ok((workers, _)) => (workers.processes, Some(NOT_FREE)),
            Err(why) => (1, Some(why.clone())),
        };
        if let Some(why) = fewer {
            pg::notice(
                format!("the model is trained by {processes} of {asked} processes: {why}"),
                "With another number of workers the model differs; corgipile.models says how many there were.",
            );
        }
        notice_steps(&buffers.decoder, processes as usize);
        Ok(launched.ok())
    }

    /// The processes that train, the leader among them.
    pub fn processes(&self) -> u32 {
        self.processes
    }

    /// Waits until all workers have ended. What they have done is counted at the nodes of the leader's plan.
    pub fn finish(self, buffers: &mut Buffers) {
        self.reports.take(self.workers, buffers);
    }
}

/// Looks at the first rows, and says what the workers are to do, and how many processes there should be; or why there
/// can be no worker.
fn plan(
    (request, groups): (&Request, usize),
    spec: OwnedSpec,
    buffers: &mut Buffers,
    batch: &mut Batch,
) -> Result<std::result::Result<(TrainingTask, u32), Unavailable>> {
    if let Some(why) = buffers.query().hazard() {
        return Ok(Err(why));
    }
    if !buffers.report().reads_tables {
        return Ok(Err(SPOOLED));
    }
    buffers.peek(batch)?;
    let report = buffers.report();
    let Some(pages) = report.pages_of_tables else { return Ok(Err(SPOOLED)) };
    let (mut dim, sparse) = (batch.dim(), batch.is_sparse());
    *batch = Batch::dense(0);
    let wanted = report.planned_geometry.buffer_blocks.min(request.workers);
    if wanted == 1 {
        return Ok(Err(FEW_BLOCKS));
    }
    let decoder = &buffers.decoder;
    decoder.labels().check()?;
    if request.points.iter().any(|point| point.hyperparameters.design.is_some()) {
        // the first weights of a network depend on the number of features
        dim = dim.max(decoder.observed_dim());
    }
    decoder.check_size(dim, decoder.standardizer().is_some())?;
    Learners::default().check_size(request, dim, decoder.labels().outputs(), groups)?;
    let task = TrainingTask {
        spec,
        kind: request.kind,
        decoder_state: decoder.state_with_groups(),
        points: request.points.iter().map(|point| point.hyperparameters).collect(),
        first_epoch: request.first_epoch(),
        groups,
        parts: (!request.row_groups.is_empty()).then(|| request.shuffling.clone()),
        holds_out: request.row_groups.hold_out.is_some(),
        dim,
        sparse,
        pages_of_tables: pages,
        pages_per_block: request.shuffling.share.map(|_| report.planned_geometry.pages_per_block),
        instrument: buffers.query().instrument(),
        progress: progress::number(),
    };
    Ok(Ok((task, wanted)))
}

/// Starts the workers of so many processes, and makes the leader one of them; or says why there are none.
fn start(
    task: TrainingTask,
    wanted: u32,
    resume: Option<&Resume>,
    buffers: &mut Buffers,
) -> Result<std::result::Result<(WorkerGroup, Vec<Trainer>), Unavailable>> {
    let query = buffers.query();
    let plan = query.plan_bytes();
    let launch = Launch {
        kind: KIND.name,
        workers: wanted as usize - 1,
        data: &[&json(&task), resume.map(Resume::trainer_state).unwrap_or_default()],
        plan: Some(&plan),
        gathers: true,
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
        workers.send(worker, &json(&Rank { processes, rank: worker as u32 + 1 }));
    }
    let rank = Rank { processes, rank: 0 };
    let replica = replica(workers.all_gather(), rank, &task);
    buffers.control(&task.control(rank));
    let (outputs, sparse) = (buffers.decoder.labels().outputs(), task.sparse);
    let new = |hyper| match resume {
        Some(resume) => resume.replica(hyper, task.dim, outputs, sparse),
        None => Ok(Trainer::replica(hyper, task.dim, outputs, sparse)?),
    };
    let models = (0..task.groups).flat_map(|_| task.points_of(buffers));
    let trainers = models.map(new).collect::<Result<Vec<Trainer>>>()?;
    let reports = task.reports();
    Ok(Ok((WorkerGroup { workers, processes, wanted, replica, reports }, trainers)))
}

/// What a worker process does.
fn work(worker: Worker) -> Result<()> {
    let Some(rank) = worker.receive() else { return Ok(()) };
    let (rank, task): (Rank, TrainingTask) = (read(&rank), read(worker.data(0)));
    let planned = Planned::from_bytes(&worker.plan_bytes());
    report_activity(planned.text());
    progress::read_for(task.progress);
    let mut replica = replica(worker.all_gather(rank.processes as usize), rank, &task);
    let mut decoder = task.spec.decoder()?;
    decoder.adopt(&task.decoder_state);
    let query = Snapshot::with_active(|snapshot| Running::start(planned, snapshot, task.instrument, Flags::NONE));
    let mut buffers = Buffers::new(query, decoder);
    buffers.control(&ScanControl { epoch: Some(task.first_epoch.into()), ..task.control(rank) });
    let mut trainers = trainers(&task, worker.data(1), &buffers)?;
    let mut batch = Batch::dense(0);
    while !trainers.is_empty() {
        trainers.iter_mut().for_each(|(_, trainer)| trainer.begin_epoch());
        let (groups, mut learning): (Vec<usize>, Vec<&mut Trainer>) =
            trainers.iter_mut().map(|((group, _), trainer)| (*group, trainer)).unzip();
        replica.epoch(Here { buffers: &mut buffers, batch: &mut batch }, (&mut learning, &groups), |_| Ok(()))?;
        // what the leader makes of models that have diverged is its affair
        trainers.retain_mut(|(_, trainer)| trainer.tuples() > 0 && trainer.finish_epoch().is_ok());
        if task.holds_out {
            let models = trainers.iter().map(|((group, _), trainer)| Judged::new(*group, trainer));
            let models = models.collect::<Result<Vec<_>>>()?;
            let epoch = trainers.first().map_or(0, |(_, trainer)| trainer.epoch());
            replica.evaluate(task.kind, models, epoch, Here { buffers: &mut buffers, batch: &mut batch })?;
        }
        let learning = replica.hear_first(&Vec::<(usize, usize)>::new())?;
        trainers.retain(|(of, _)| learning.binary_search(of).is_ok());
    }
    task.reports().send(&worker, buffers);
    Ok(())
}

/// A process's replicas of the models.
fn replica(all_gather: AllGather, rank: Rank, task: &TrainingTask) -> Replica {
    let parts = task.parts.as_ref().map(|shuffling| OwnParts::new(shuffling, rank.partition(), task.groups));
    Replica::new(all_gather, rank.rank as usize, parts)
}

/// A worker's trainers, with the numbers of their groups and points: new ones, or that of the training that is
/// continued.
fn trainers(task: &TrainingTask, saved: &[u8], buffers: &Buffers) -> Result<Vec<((usize, usize), Trainer)>> {
    let outputs = buffers.decoder.labels().outputs();
    let new = |hyper| -> Result<Trainer> {
        if saved.is_empty() {
            return Ok(Trainer::replica(hyper, task.dim, outputs, task.sparse)?);
        }
        let resumed = Trainer::resume_replica(hyper, outputs, task.sparse, saved);
        Ok(resumed.unwrap_or_else(|unfit| pgrx::error!("a training process was told nonsense: {unfit}")))
    };
    let points = |group| (0..).zip(task.points_of(buffers)).map(move |(point, hyper)| ((group, point), hyper));
    (0..task.groups).flat_map(points).map(|(of, hyper)| Ok((of, new(hyper)?))).collect()
}

impl Team for WorkerGroup {
    fn epoch(
        &mut self,
        trainers: (&mut [&mut Trainer], &[usize]),
        here: Here<'_>,
        check: &dyn Fn(&[&mut Trainer]) -> Result<()>,
    ) -> Result<()> {
        self.replica.epoch(here, trainers, check)
    }

    fn evaluate(&mut self, kind: ModelKind, models: Vec<Judged>, epoch: u32, here: Here<'_>) -> Result<United> {
        self.replica.evaluate(kind, models, epoch, here)
    }

    fn go_on(&mut self, learning: Vec<(usize, usize)>) -> Result<()> {
        self.replica.hear_first(&learning).map(drop)
    }
}

impl TrainingTask {
    /// Of each point, in the units that targets are learned in.
    fn points_of<'a>(&'a self, buffers: &'a Buffers) -> impl Iterator<Item = Hyperparameters> {
        self.points.iter().map(|hyper| buffers.decoder.in_units(*hyper))
    }

    /// What workers tell at their end.
    fn reports(&self) -> Reports {
        Reports { shares: self.pages_per_block.is_some(), instrument: self.instrument }
    }

    /// What the nodes of a process are told.
    fn control(&self, rank: Rank) -> ScanControl {
        let pages_of_tables = Some(self.pages_of_tables.clone());
        let pages_per_block = self.pages_per_block;
        ScanControl { rank: Some(rank), pages_of_tables, pages_per_block, ..ScanControl::default() }
    }
}
