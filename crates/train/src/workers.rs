//! Training in several processes: the leader, which is the backend, and workers.
//!
//! Every process has the whole model in the end. The leader's is stored.

use super::data_parallel::Replica;
use super::learners::{GroupModel, Learners};
use super::opening::notice_steps;
use super::processes::{Asked, Part, Processes};
use super::resume::Resume;
use super::team::{Here, Team};
use super::validation::OwnParts;
use decode::OwnedSpec;
use errors::{OrRaise, Result};
use loss::{Hyperparameters, ModelKind};
use options::request::Request;
use options::shuffling::Shuffling;
use pg::process::all_gather::AllGather;
use pg::process::parallel::{Worker, WorkerKind};
use scan::Buffers;
use scan::scan_control::{Rank, ScanControl};
use scan::worker_rows::read;
use serde::{Deserialize, Serialize};
use sgd::Trainer;
use tuples::Batch;

/// Workers that train in step with their leader.
pub const KIND: WorkerKind = WorkerKind { name: c"corgipile training", main: |worker| work(worker).or_raise() };

/// What all processes do.
#[derive(Serialize, Deserialize)]
struct TrainingTask {
    kind: ModelKind,
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
}

/// The processes of a training, the leader's part in it, and its trainers.
pub type Launched = (Processes, Replica, Vec<Trainer>);

/// Starts workers, if they are to be had, and gives the leader's part and trainers before the first epoch, which is the
/// next. Reports if there are fewer than were asked for. `batch` is empty afterwards.
pub fn launch(
    (request, resume, groups): (&Request, Option<&Resume>, usize),
    spec: OwnedSpec,
    buffers: &mut Buffers,
    batch: &mut Batch,
) -> Result<Option<Launched>> {
    let asked = Asked {
        kind: KIND.name,
        processes: request.workers,
        spec,
        shuffling: &request.shuffling,
        divides: true,
        few: "the buffer has no more blocks",
    };
    let plan = |buffers: &Buffers, batch: &Batch| {
        // the buffer's blocks are known beforehand
        let most = buffers.report().planned_geometry.buffer_blocks;
        Ok((most, if most > 1 { Some(TrainingTask::new(request, groups, buffers, batch)?) } else { None }))
    };
    let tell = |processes: u32, why: String| {
        pg::notice(
            format!("the model is trained by {processes} of {} requested processes: {why}", request.workers),
            "The model depends on the number of workers, which corgipile.models shows.",
        );
    };
    let saved = resume.map(Resume::trainer_state).unwrap_or_default();
    let launched = Processes::launch(asked, (buffers, batch), plan, saved, tell)?;
    let Some((processes, task)) = launched else { return Ok(None) };
    let replica = task.replica(processes.all_gather(), processes.rank);
    let (outputs, sparse) = (buffers.decoder.labels().outputs(), task.sparse);
    let new = |hyper: Hyperparameters| -> Result<Trainer> {
        let trainer = match resume {
            Some(resume) => resume.replica(hyper, task.dim, outputs, sparse)?,
            None => Trainer::replica(hyper, task.dim, outputs, sparse)?,
        };
        Ok(trainer.exempt(&buffers.decoder.exempt(&hyper))?)
    };
    let models = (0..task.groups).flat_map(|_| task.points_of(buffers));
    let trainers = models.map(new).collect::<Result<Vec<Trainer>>>()?;
    notice_steps(&buffers.decoder, processes.rank.processes as usize);
    Ok(Some((processes, replica, trainers)))
}

fn work(worker: Worker) -> Result<()> {
    let Some((mut part, all_gather)) = Part::join(&worker)? else { return Ok(()) };
    let task: TrainingTask = read(worker.data(1));
    let mut replica = task.replica(all_gather, part.rank);
    let buffers = &mut part.buffers;
    buffers.control(&ScanControl::epoch(task.first_epoch.into()));
    let mut trainers = trainers(&task, worker.data(2), buffers)?;
    let mut batch = Batch::dense(0);
    while !trainers.is_empty() {
        trainers.iter_mut().for_each(|(_, trainer)| trainer.begin_epoch());
        let (groups, mut learning): (Vec<usize>, Vec<&mut Trainer>) =
            trainers.iter_mut().map(|((group, _), trainer)| (*group, trainer)).unzip();
        replica.epoch((&mut learning, &groups), Here { buffers, batch: &mut batch }, &|_| Ok(()))?;
        // what the leader makes of models that have diverged is its affair
        trainers.retain_mut(|(_, trainer)| trainer.tuples() > 0 && trainer.finish_epoch().is_ok());
        if task.holds_out {
            let models = trainers.iter().map(|((group, _), trainer)| GroupModel::new(*group, trainer));
            let models = models.collect::<Result<Vec<_>>>()?;
            let epoch = trainers.first().map_or(0, |(_, trainer)| trainer.epoch());
            replica.evaluate(task.kind, models, epoch, Here { buffers, batch: &mut batch })?;
        }
        let learning = replica.hear_first(&Vec::<(usize, usize)>::new())?;
        trainers.retain(|(of, _)| learning.binary_search(of).is_ok());
    }
    part.end(&worker);
    Ok(())
}

/// A worker's trainers, with the numbers of their groups and points: new ones, or that of the training that is
/// continued.
fn trainers(task: &TrainingTask, saved: &[u8], buffers: &Buffers) -> Result<Vec<((usize, usize), Trainer)>> {
    let outputs = buffers.decoder.labels().outputs();
    let new = |hyper: Hyperparameters| -> Result<Trainer> {
        let trainer = match saved {
            [] => Trainer::replica(hyper, task.dim, outputs, task.sparse)?,
            saved => Trainer::resume_replica(hyper, outputs, task.sparse, saved)
                .unwrap_or_else(|unfit| pgrx::error!("unexpected request to a training process: {unfit}")),
        };
        Ok(trainer.exempt(&buffers.decoder.exempt(&hyper))?)
    };
    let points = |group| (0..).zip(task.points_of(buffers)).map(move |(point, hyper)| ((group, point), hyper));
    (0..task.groups).flat_map(points).map(|(of, hyper)| Ok((of, new(hyper)?))).collect()
}

impl TrainingTask {
    /// Of tuples like those of the batch.
    fn new(request: &Request, groups: usize, buffers: &Buffers, batch: &Batch) -> Result<TrainingTask> {
        let decoder = &buffers.decoder;
        decoder.labels().check()?;
        let mut dim = batch.dim();
        if request.points.iter().any(|point| point.hyperparameters.design.is_some()) {
            // the first weights of a network depend on the number of features
            dim = dim.max(decoder.observed_dim());
        }
        decoder.check_size(dim, decoder.standardizer().is_some())?;
        Learners::default().check_size(request, dim, decoder.labels().outputs(), groups)?;
        Ok(TrainingTask {
            kind: request.kind,
            points: request.points.iter().map(|point| point.hyperparameters).collect(),
            first_epoch: request.first_epoch(),
            groups,
            parts: (!request.row_groups.is_empty()).then(|| request.shuffling.clone()),
            holds_out: request.row_groups.hold_out.is_some(),
            dim,
            sparse: batch.is_sparse(),
        })
    }

    /// A process's replicas of the models.
    fn replica(&self, all_gather: AllGather, rank: Rank) -> Replica {
        let parts = self.parts.as_ref().map(|shuffling| OwnParts::new(shuffling, rank.partition(), self.groups));
        Replica::new(all_gather, rank.rank as usize, parts)
    }

    /// Of each point, in the units that targets are learned in.
    fn points_of<'a>(&'a self, buffers: &'a Buffers) -> impl Iterator<Item = Hyperparameters> {
        self.points.iter().map(|hyper| buffers.decoder.in_units(*hyper))
    }
}
