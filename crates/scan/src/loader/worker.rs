//! The worker's end of the double buffer: it reads, decodes and shuffles.

use super::load_request::{LoadRequest, LoadStart};
use super::messages::{Done, EpochEnd, WORKER_NAME, WorkerMessage};
use super::worker_buffers::WorkerBuffers;
use crate::buffers::Buffers;
use crate::preparation::{self, missing_in_sample};
use crate::worker_rows::read;
use errors::{Error, OrRaise, PgError, Result};
use options::rows::Prepare;
use pg::process::parallel::{Worker, WorkerKind};
use tuples::{Batch, TupleSource};

/// Loads the buffers of a training.
pub const KIND: WorkerKind = WorkerKind { name: WORKER_NAME, main: |worker| main(worker).or_raise() };

fn main(worker: Worker) -> Result<()> {
    let request: LoadRequest = read(worker.data(0));
    let (query, decoder) = request.rows.open(&worker)?;
    let mut buffers = Buffers::new(query, decoder);
    buffers.control(&request.rows.control);
    let mut shared = WorkerBuffers::new(&worker);
    load(&mut buffers, &request, &mut shared)?;
    buffers.finish();
    shared.end();
    Ok(())
}

/// Goes through all epochs. None if the leader wants no more.
fn load(buffers: &mut Buffers, request: &LoadRequest, shared: &mut WorkerBuffers) -> Result<Option<()>> {
    if let LoadStart::Prepare { wanted } = request.start {
        if let Err(error) = preparation::prepare(buffers, &mut Batch::dense(0), wanted) {
            return tell_missing(&error, request, shared).ok_or(error).map(|()| None);
        }
        if shared.tell(&epoch_end(buffers, true)).is_none() {
            return Ok(None);
        }
    }
    let first = request.first_epoch().max(1);
    for epoch in first..=request.last_epoch(buffers.decoder.extent()) {
        if epoch > request.first_epoch() {
            if request.waits && shared.wait_for_epoch().is_none() {
                return Ok(None);
            }
            buffers.next_epoch()?;
        }
        // classes are met in the first epoch
        let loaded = load_epoch(buffers, request, shared)?;
        buffers.decoder.end_sample();
        if loaded.is_none() || shared.tell(&epoch_end(buffers, epoch == first)).is_none() {
            return Ok(None);
        }
    }
    let done = Done { report: buffers.report(), instruments: buffers.query().measured() };
    Ok(shared.tell(&WorkerMessage::Done(Box::new(done))))
}

/// Fills and sends the buffers of an epoch. None if the leader wants no more, or there is no shared memory.
fn load_epoch(buffers: &mut Buffers, request: &LoadRequest, shared: &mut WorkerBuffers) -> Result<Option<()>> {
    loop {
        let Some(batch) = shared.next() else { return Ok(None) };
        let published = match buffers.next_batch(batch) {
            Ok(false) => return Ok(Some(())),
            Ok(true) if let Some(what) = buffers.decoder.outside_of_sample() => {
                shared.tell(&WorkerMessage::MissingInSample(what));
                return Ok(None);
            }
            Ok(true) => shared.publish(),
            Err(error) => Err(error),
        };
        match published {
            Ok(Some(())) => {}
            Ok(None) => return Ok(None),
            Err(error @ Error::Pg(PgError::OutOfMemory(_))) => match shared.refused() {
                Some(why) => {
                    shared.tell(&WorkerMessage::NoSharedMemory(why));
                    return Ok(None);
                }
                None => return Err(error),
            },
            Err(error) => return tell_missing(&error, request, shared).ok_or(error).map(|()| None),
        }
    }
}

/// Tells the leader what a sample of the rows did not contain, if that is what has gone wrong; None if it is not.
fn tell_missing(error: &Error, request: &LoadRequest, shared: &mut WorkerBuffers) -> Option<()> {
    let samples = request.rows.control.preparation == Some(Prepare::Sample);
    let what = missing_in_sample(error).filter(|_| samples)?;
    shared.tell(&WorkerMessage::MissingInSample(what));
    Some(())
}

fn epoch_end(buffers: &Buffers, with_state: bool) -> WorkerMessage {
    let decoder = &buffers.decoder;
    let decoder_state = with_state.then(|| decoder.state());
    WorkerMessage::EpochEnd(Box::new(EpochEnd { counts: decoder.counts(), decoder_state, report: buffers.report() }))
}
