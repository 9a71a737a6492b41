//! What the worker does.

use super::job::{Done, LoadRequest, Progress, Task, WorkerMessage};
use super::report;
use crate::errors::{Error, ResourceError, Result, TrainingError};
use crate::operators::loader::double_buffer::Slots;
use crate::operators::tuple_shuffle::TupleShuffle;
use crate::operators::{Buffers, preparation};
use crate::pg::executor::custom_scan::Flags;
use crate::pg::executor::query::{Planned, Running};
use crate::pg::process::parallel::{Worker, WorkerKind, report_activity};
use crate::pg::process::progress;
use tuples::{Batch, TupleSource};

/// Loads the buffers of a training.
pub const KIND: WorkerKind = WorkerKind { name: c"loader", main };

fn main(worker: Worker) -> Result<()> {
    let mut job: LoadRequest = serde_json::from_slice(worker.data(0)).map_err(|_| TrainingError::WorkerLost)?;
    let planned = Planned::of_bytes(worker.data(1), worker.data(2));
    report_activity(planned.text());
    progress::read_for(job.progress);
    let decoder = job.decoder()?;
    // permissions are checked here once more
    let query = Running::start(planned, Running::active_snapshot(), job.instrument, Flags::NONE);
    let mut buffers = Buffers::new(query, decoder);
    if let Task::FromStart { found: Some(found), .. } = &job.task {
        buffers.decoder.adopt_model(found);
    }
    if let Task::Resume { epoch, pages, found } = &mut job.task {
        found.take().into_iter().for_each(|found| buffers.decoder.adopt(&found));
        buffers.query().top::<TupleShuffle>().with(|scan, node| scan.resume(node, *epoch, std::mem::take(pages)));
    }
    buffers.query().top::<TupleShuffle>().with(|scan, node| scan.keep_in_file_only(node));
    let mut slots = Slots::new(&worker);
    load(&mut buffers, &job, &mut slots)?;
    buffers.finish();
    slots.end();
    Ok(())
}

/// Goes through all epochs; None if the leader wants no more.
fn load(buffers: &mut Buffers, job: &LoadRequest, slots: &mut Slots) -> Result<Option<()>> {
    if let Task::Prepare { standardize } = job.task {
        preparation::prepare(buffers, &mut Batch::dense(0), standardize)?;
        if slots.tell(WorkerMessage::Progress(progress(buffers, true).into())).is_none() {
            return Ok(None);
        }
    }
    for epoch in job.epoch().max(1)..=job.last_epoch {
        if epoch > job.epoch() {
            if job.waits && slots.wait_to_go_on().is_none() {
                return Ok(None);
            }
            buffers.next_epoch()?;
        }
        loop {
            let Some(batch) = slots.next() else { return Ok(None) };
            let filled = match buffers.next_batch(batch) {
                Ok(false) => break,
                Ok(true) => slots.publish(),
                Err(error) => Err(error),
            };
            match filled {
                Ok(Some(())) => {}
                Ok(None) => return Ok(None),
                Err(error @ Error::Resource(ResourceError::OutOfMemory(_))) => match slots.refused() {
                    Some(why) => return Ok(slots.tell(WorkerMessage::Unable(why))),
                    None => return Err(error),
                },
                Err(error) => return Err(error),
            }
        }
        // in the first epoch classes were met
        if slots.tell(WorkerMessage::Progress(progress(buffers, epoch == job.epoch().max(1)).into())).is_none() {
            return Ok(None);
        }
    }
    let done = Done { nodes: report(buffers.query()), instruments: buffers.query().measured() };
    Ok(slots.tell(WorkerMessage::Done(Box::new(done))))
}

fn progress(buffers: &Buffers, found: bool) -> Progress {
    let decoder = &buffers.decoder;
    let found = found.then(|| decoder.found());
    Progress::new(decoder.counts(), found, buffers.full_shuffle(), buffers.geometry())
}
