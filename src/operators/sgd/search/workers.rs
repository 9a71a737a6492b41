//! The worker processes of a search.
//!
//! The leader makes all choices that depend on the rows, and tells the workers what it knows of them. Then every
//! process reads all rows, as the leader would alone, for the models that it was dealt. The leader trains and stores
//! the best point once the workers have ended.

use super::super::worker_messages::{NOT_FREE, QUEUE, Reports, SPOOLED, json, read};
use super::course::Course;
use super::epochs::Runner;
use super::team::Team;
use crate::errors::{OrRaise, Result};
use crate::operators::buffers::Buffers;
use crate::operators::decoder::{DecoderState, OwnedSpec};
use crate::operators::scan_control::{Rank, ScanControl};
use crate::options::shuffling::Shuffling;
use pg::executor::custom_scan::Flags;
use pg::executor::query::{Planned, Running};
use pg::process::parallel::{Launch, Unavailable, Worker, WorkerKind, Workers, report_activity};
use pg::snapshot::Snapshot;
use serde::{Deserialize, Serialize};
use sgd::most_processes;
use std::ffi::c_int;
use std::time::Duration;
use tuples::Batch;

/// Workers that train some of the models of a search.
pub const KIND: WorkerKind = WorkerKind { name: c"corgipile search", main: |worker| work(worker).or_raise() };

/// Models that more processes could not share.
const FEW_MODELS: Unavailable = Unavailable::Borrowed("further ones would have nothing to do");

/// What the leader tells all workers beside the plan and the course.
#[derive(Serialize, Deserialize)]
struct SearchTask {
    spec: OwnedSpec,
    decoder_state: DecoderState,
    /// of the tables; None of a copy, which each process makes for itself
    pages_of_tables: Option<Vec<u32>>,
    /// pages of a block, if they do not follow from those of the tables
    pages_per_block: Option<u32>,
    instrument: c_int,
}

/// The workers of a search, as their leader sees them.
pub struct SearchWorkers {
    workers: Workers,
    reports: Reports,
}

/// How the rows of a search are read, which its workers are to do, too.
pub type Reading<'a> = (OwnedSpec, &'a Shuffling);

impl SearchWorkers {
    /// Starts the workers of so many processes, if they are to be had, before the first epoch, which is the next. Gives
    /// the leader's place among them. Reports if there are fewer than were asked for. `batch` is empty afterwards.
    ///
    /// # Errors
    /// What is wrong with the rows that are looked at.
    pub fn launch(
        asked: u32,
        course: &Course,
        reading: Reading<'_>,
        buffers: &mut Buffers,
        batch: &mut Batch,
    ) -> Result<(Option<SearchWorkers>, Team)> {
        let planned = plan(asked, course, reading, buffers, batch)?;
        let launched = planned.and_then(|(task, wanted)| Ok((start(&task, course, wanted, buffers)?, wanted)));
        let (processes, why) = match &launched {
            Ok(((_, team), wanted)) => (team.rank().processes, if *wanted < asked { FEW_MODELS } else { NOT_FREE }),
            Err(why) => (1, why.clone()),
        };
        if processes < asked {
            pg::notice(
                format!("the search runs in {processes} of {asked} processes: {why}"),
                "What it finds is the same with any number of workers.",
            );
        }
        Ok(launched.map_or_else(|_| (None, Team::alone()), |((workers, team), _)| (Some(workers), team)))
    }

    /// Waits until all workers have ended. What they have done is counted at the nodes of the leader's plan.
    pub fn finish(self, buffers: &mut Buffers) {
        self.reports.take(self.workers, buffers);
    }
}

/// Looks at the first rows, and says what the workers are to do, and how many processes there should be; or why there
/// can be no worker.
fn plan(
    asked: u32,
    course: &Course,
    (spec, shuffling): Reading<'_>,
    buffers: &mut Buffers,
    batch: &mut Batch,
) -> Result<std::result::Result<(SearchTask, u32), Unavailable>> {
    if let Some(why) = buffers.query().hazard() {
        return Ok(Err(why));
    }
    // a full shuffle reads a copy; every process sorts its own, by the same keys
    let copies = shuffling.strategy.sorts();
    if !buffers.report().reads_tables && !copies {
        return Ok(Err(SPOOLED));
    }
    buffers.peek(batch)?;
    let folds = course.turns().next().unwrap_or_default();
    let most = most_processes(&course.loads(folds, batch, buffers.decoder.labels().outputs()));
    *batch = Batch::dense(0);
    let wanted = asked.min(u32::try_from(most).unwrap_or(asked));
    if wanted <= 1 {
        return Ok(Err(FEW_MODELS));
    }
    let report = buffers.report();
    if report.pages_of_tables.is_none() && !copies {
        return Ok(Err(SPOOLED));
    }
    let task = SearchTask {
        spec,
        decoder_state: buffers.decoder.state(),
        pages_of_tables: report.pages_of_tables,
        pages_per_block: shuffling.share.map(|_| report.planned_geometry.pages_per_block),
        instrument: buffers.query().instrument(),
    };
    Ok(Ok((task, wanted)))
}

/// Starts the workers of so many processes, and makes the leader one of them; or says why there are none.
fn start(
    task: &SearchTask,
    course: &Course,
    wanted: u32,
    buffers: &mut Buffers,
) -> std::result::Result<(SearchWorkers, Team), Unavailable> {
    let query = buffers.query();
    let plan = query.plan_bytes();
    let workers = Workers::launch(&Launch {
        kind: KIND.name,
        workers: wanted as usize - 1,
        data: &[&json(task), &json(course)],
        plan: Some(&plan),
        gathers: true,
        queue: QUEUE,
        snapshot: query.snapshot(),
    })?;
    workers.wait_to_attach();
    let processes = workers.count() as u32 + 1;
    for worker in 0..workers.count() {
        workers.send(worker, &json(&Rank { processes, rank: worker as u32 + 1 }));
    }
    let rank = Rank { processes, rank: 0 };
    let team = Team::new(workers.all_gather(), rank);
    buffers.control(&task.control(rank));
    let reports = task.reports();
    Ok((SearchWorkers { workers, reports }, team))
}

/// What a worker process does.
fn work(worker: Worker) -> Result<()> {
    let Some(rank) = worker.receive() else { return Ok(()) };
    let (rank, task, course): (Rank, SearchTask, Course) = (read(&rank), read(worker.data(0)), read(worker.data(1)));
    let planned = Planned::from_bytes(&worker.plan_bytes());
    report_activity(planned.text());
    let mut team = Team::new(worker.all_gather(rank.processes as usize), rank);
    let mut decoder = task.spec.decoder()?;
    decoder.adopt(&task.decoder_state);
    // permissions are checked here once more
    let query = Snapshot::with_active(|snapshot| Running::start(planned, snapshot, task.instrument, Flags::NONE));
    let mut buffers = Buffers::new(query, decoder);
    buffers.control(&task.control(rank));
    let (team, batch) = (&mut team, &mut Batch::dense(0));
    let mut runner = Runner { course: &course, team, buffers: &mut buffers, batch, compute: Duration::ZERO };
    for folds in course.turns() {
        runner.run(folds)?;
    }
    task.reports().send(&worker, buffers);
    Ok(())
}

impl SearchTask {
    /// What workers tell at their end.
    fn reports(&self) -> Reports {
        Reports { shares: self.pages_per_block.is_some(), instrument: self.instrument }
    }

    /// What the nodes of a process are told.
    fn control(&self, rank: Rank) -> ScanControl {
        ScanControl {
            replica: Some(rank),
            pages_of_tables: self.pages_of_tables.clone(),
            pages_per_block: self.pages_per_block,
            ..ScanControl::default()
        }
    }
}
