//! The processes of a training or a search, which read the same source: the leader, which is the backend, and
//! PostgreSQL's parallel workers.
//!
//! The leader looks at the first rows, so that classes have the same numbers in all processes. Then it starts the
//! workers, sends each of them its rank, and takes part. Workers begin with the epoch that is the leader's next.

use decode::OwnedSpec;
use errors::Result;
use options::shuffling::Shuffling;
use pg::process::all_gather::AllGather;
use pg::process::parallel::{Unavailable, Worker, Workers};
use scan::Buffers;
use scan::progress;
use scan::scan_control::{BlockCounters, Rank, ScanControl};
use scan::worker_rows::{WorkerRows, json, launch, read};
use serde::Serialize;
use std::ffi::{CStr, c_int};
use tuples::Batch;

/// A server without processes to spare.
const NOT_FREE: Unavailable = Unavailable::Borrowed("no more worker processes were free");

/// A source that no other process can read.
const SPOOLED: Unavailable = Unavailable::Borrowed("the source is not a plain table");

/// Processes that are asked for, the leader among them.
pub struct Asked<'a> {
    /// of the workers
    pub kind: &'static CStr,
    pub processes: u32,
    pub spec: OwnedSpec,
    pub shuffling: &'a Shuffling,
    /// does each process read its own part of the blocks, and not all of them?
    pub divides: bool,
    /// why more processes than there is work for would be of no use
    pub few: &'static str,
}

/// The processes, as their leader sees them.
pub struct Processes {
    workers: Workers,
    reports: Reports,
    /// the leader's
    pub rank: Rank,
}

/// What workers say at their end, for the nodes of the leader's plan.
#[derive(Clone, Copy)]
struct Reports {
    /// is the source read together with other sessions?
    shares: bool,
    instrument: c_int,
}

impl Processes {
    /// Looks at the first rows, and starts workers, if they are to be had. `plan` says for how many processes there is
    /// work, and what is to be done, if it is for several; it gets a batch with the rows, which is empty afterwards.
    /// `saved` goes along. `tell` is called if there are fewer processes than were asked for, with the reason.
    pub fn launch<T: Serialize>(
        asked: Asked<'_>,
        (buffers, batch): (&mut Buffers, &mut Batch),
        plan: impl FnOnce(&Buffers, &Batch) -> Result<(u32, Option<T>)>,
        saved: &[u8],
        tell: impl FnOnce(u32, String),
    ) -> Result<Option<(Processes, T)>> {
        let (processes, few) = (asked.processes, asked.few);
        let (launched, wanted) = match obstacle(&asked, buffers) {
            Some(why) => (Err(why), processes),
            None => {
                buffers.peek(batch)?;
                let (most, task) = plan(buffers, batch)?;
                *batch = Batch::dense(0);
                let wanted = most.min(processes);
                match task.filter(|_| wanted > 1) {
                    Some(task) => (start(asked, wanted, &task, saved, buffers).map(|started| (started, task)), wanted),
                    None => (Err(Unavailable::Borrowed(few)), wanted),
                }
            }
        };
        let (count, why) = match &launched {
            Ok((started, _)) if wanted < processes => (started.rank.processes, Unavailable::Borrowed(few)),
            Ok((started, _)) => (started.rank.processes, NOT_FREE),
            Err(why) => (1, why.clone()),
        };
        if count < processes {
            tell(count, why.into_owned());
        }
        Ok(launched.ok())
    }

    /// The leader's way to the others.
    pub fn all_gather(&self) -> AllGather {
        self.workers.all_gather()
    }

    /// Waits until all workers have ended. What they have done is counted at the nodes of the leader's plan.
    pub fn finish(self, buffers: &mut Buffers) {
        let Processes { workers, reports, .. } = self;
        for worker in (0..workers.count()).filter(|_| reports.shares) {
            if let Some(counters) = workers.receive(worker) {
                buffers.count(&read::<BlockCounters>(&counters));
            }
        }
        for worker in (0..workers.count()).filter(|_| reports.instrument != 0) {
            if let Some(measured) = workers.receive(worker) {
                buffers.query().add_measured(&measured);
            }
        }
        workers.finish();
    }
}

/// Why no other process can read the source, if so. A full shuffle reads a copy: every process sorts its own, by the
/// same keys, unless each is to read a part of it.
fn obstacle(asked: &Asked<'_>, buffers: &mut Buffers) -> Option<Unavailable> {
    let copies = asked.shuffling.strategy.sorts() && !asked.divides;
    buffers.query().hazard().or_else(|| (!buffers.report().reads_tables && !copies).then_some(SPOOLED))
}

/// Starts the workers of this many processes, and makes the leader one of them.
fn start(
    asked: Asked<'_>,
    wanted: u32,
    task: &impl Serialize,
    saved: &[u8],
    buffers: &mut Buffers,
) -> std::result::Result<Processes, Unavailable> {
    let report = buffers.report();
    let (leader, divides) = (Rank { processes: wanted, rank: 0 }, asked.divides);
    let control = ScanControl {
        rank: divides.then_some(leader),
        replica: (!divides).then_some(leader),
        pages_of_tables: report.pages_of_tables,
        pages_per_block: asked.shuffling.share.map(|_| report.planned_geometry.pages_per_block),
        ..ScanControl::default()
    };
    let rows = WorkerRows {
        spec: asked.spec,
        decoder_state: Some(Box::new(buffers.decoder.state_with_groups())),
        control,
        instrument: buffers.query().instrument(),
        progress: if divides { progress::number() } else { None },
    };
    let data: [&[u8]; 3] = [&json(&rows), &json(task), saved];
    let workers = launch(asked.kind, wanted as usize - 1, &data, true, buffers.query())?;
    workers.wait_to_attach();
    let processes = workers.count() as u32 + 1;
    for worker in 0..workers.count() {
        workers.send(worker, &json(&Rank { processes, rank: worker as u32 + 1 }));
    }
    let rank = Rank { processes, rank: 0 };
    buffers.control(&rows.control.of(rank));
    Ok(Processes { workers, reports: Reports::of(&rows), rank })
}

/// A worker's part.
pub struct Part {
    pub rank: Rank,
    pub buffers: Buffers,
    reports: Reports,
}

impl Part {
    /// Takes part, and gives the way to the others. None if the leader wants no more. What is to be done is chunk 1 of
    /// the worker's data, what goes along chunk 2.
    pub fn join(worker: &Worker) -> Result<Option<(Part, AllGather)>> {
        let Some(rank) = worker.receive() else { return Ok(None) };
        let (rank, rows): (Rank, WorkerRows) = (read(&rank), read(worker.data(0)));
        let all_gather = worker.all_gather(rank.processes as usize);
        let (query, decoder) = rows.open(worker)?;
        let mut buffers = Buffers::new(query, decoder);
        buffers.control(&rows.control.of(rank));
        Ok(Some((Part { rank, buffers, reports: Reports::of(&rows) }, all_gather)))
    }

    /// Ends the read, and says to the leader what was read.
    pub fn end(self, worker: &Worker) {
        let Part { buffers, reports, .. } = self;
        if reports.shares {
            worker.send(&json(&buffers.report().blocks));
        }
        if reports.instrument != 0 {
            worker.send(&buffers.query().measured());
        }
        buffers.finish();
    }
}

impl Reports {
    fn of(rows: &WorkerRows) -> Reports {
        Reports { shares: rows.control.pages_per_block.is_some(), instrument: rows.instrument }
    }
}
