//! A job of a server.

pub mod admin;
mod direct;
mod inbox;
mod mixing;
mod stream;

pub use inbox::{Counts, Mode};
pub use mixing::Position;

use crate::dataset::Opener;
use crate::error::{JobError, ServiceError};
use direct::{Direct, Holding};
use inbox::{DataSetInfo, Inbox};
use loading::{Batch, Layout};
use mixing::{MixError, Mixer, Mixing, Plan, Rows};
use preparing::Callables;
use source::{Cancel, SourceError};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Elements whose rows are shuffled among each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BufferSize {
    /// This many.
    Elements(u32),
    /// This share of the job's, above 0 and up to 1.
    Share(f64),
}

/// What a job wants.
#[derive(Clone, Debug)]
pub struct JobOptions {
    /// The server's socket.
    pub path: PathBuf,
    /// How the job is called.
    pub name: String,
    /// Of a data-parallel job, all of whose processes have the same name and are there at a time: which one this is,
    /// from 0.
    pub rank: u32,
    /// How many processes the job has; 1 if it is alone.
    pub world_size: u32,
    /// How long it waits for the other processes to come, in seconds.
    pub timeout: u32,
    /// The data set.
    pub data_set: String,
    /// All of the data set's if none exist.
    pub columns: Vec<String>,
    /// An SQL condition; empty for all rows.
    pub filter: String,
    /// What is done to rows before they come, as JSON; empty for nothing.
    pub recipe: String,
    /// Names the orders of rows in buffers.
    pub seed: i64,
    /// The first epoch, from 0.
    pub epoch: u64,
    /// How many epochs there are; the first one that is not wanted.
    pub epochs: u64,
    /// Rows of a batch.
    pub batch_size: usize,
    /// Elements whose rows are shuffled among each other.
    pub buffer: BufferSize,
    /// Leaves out batches that are not full. Ranks of a job give the same number of batches: as many as the one with
    /// the fewest rows can fill. Without this it is as many as the one with the most rows needs, and each rank spreads
    /// its rows evenly over them.
    pub drop_last: bool,
    /// Where to go on.
    pub position: Option<Position>,
    /// Of the data set that the position belongs to.
    pub fingerprint: Option<u64>,
}

/// How a job opens a source if it has to read by itself.
#[derive(Clone)]
pub struct Opening {
    /// Opens sources.
    pub opener: Arc<dyn Opener>,
    /// Calls Python.
    pub callables: Option<Arc<dyn Callables>>,
}

/// What comes next.
#[derive(Debug)]
pub enum NextOfJob {
    /// A batch.
    Batch(Batch),
    /// An epoch has ended.
    EpochEnd(u64),
    /// Nothing yet: ask again.
    Pending,
    /// The end of the last epoch.
    End,
}

/// A job, which begins with its first batch.
pub struct Job {
    options: JobOptions,
    opening: Opening,
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
    /// ends what the job reads by itself
    cancel: Arc<Cancel>,
    holding: Holding,
    info: Option<Arc<DataSetInfo>>,
    /// rows of the position's buffer, as they are read again
    resuming: Option<(Direct, Vec<Rows>)>,
    mixer: Option<Mixer>,
    ended: bool,
    closed: bool,
    /// threads are not there in a process that was forked off
    process: u32,
}

impl Job {
    /// A job with these options.
    ///
    /// # Errors
    /// If they are invalid.
    pub fn new(options: JobOptions, opening: Opening) -> Result<Job, ServiceError> {
        let refuse = |what: &str| Err(ServiceError::Refused(what.to_owned()));
        if options.batch_size == 0 {
            return refuse("batch_size: a batch has at least 1 row");
        }
        match options.buffer {
            BufferSize::Elements(0) => return refuse("buffer_size: a buffer has at least 1 element"),
            BufferSize::Share(share) if !(share > 0.0 && share <= 1.0) => {
                return refuse("buffer_size: a share is above 0% and at most 100%");
            }
            _ => {}
        }
        let (inbox, process) = (Arc::new(Inbox::default()), std::process::id());
        if let Some(position) = &options.position {
            let twice = position.buffer.iter().any(|element| position.left.contains(element));
            if twice || position.buffer.iter().collect::<BTreeSet<_>>().len() < position.buffer.len() {
                return refuse("state: its buffer has elements twice, or some that are left as well");
            }
            inbox.lock().begin(position.epoch, position.left.clone());
        }
        let ended = options.epoch >= options.epochs;
        Ok(Job {
            options,
            opening,
            inbox,
            thread: None,
            cancel: Arc::default(),
            holding: Holding::default(),
            info: None,
            resuming: None,
            mixer: None,
            ended,
            closed: false,
            process,
        })
    }

    /// Waits for what comes next, no longer than `patience`.
    ///
    /// # Errors
    /// If the server refuses the job, or an element cannot be read: the next call goes on behind that.
    pub fn next(&mut self, patience: Duration) -> Result<NextOfJob, JobError> {
        if self.process != std::process::id() {
            return Err(JobError::Misused("a job cannot be used in a process that was forked off"));
        }
        if self.closed {
            return Err(JobError::Misused("the job was closed"));
        }
        if self.ended {
            return Ok(NextOfJob::End);
        }
        self.start()?;
        let until = Instant::now() + patience;
        let Some(info) = self.registered(until)? else { return Ok(NextOfJob::Pending) };
        if self.mixer.is_none() {
            self.mixer = self.first_epoch(&info, until)?;
        }
        loop {
            // another server may let the job hold less than the one before: a buffer for more would never be full
            let buffer = self.buffer(&info);
            let Some(mixer) = &mut self.mixer else { return Ok(NextOfJob::Pending) };
            mixer.set_buffer(buffer);
            if let Some(batch) = mixer.next().map_err(|error| of_mixing(&info, error))? {
                return Ok(NextOfJob::Batch(batch));
            }
            let epoch = mixer.epoch();
            if mixer.has_ended() {
                if epoch + 1 >= self.options.epochs {
                    self.ended = true;
                } else {
                    *mixer = mixer.next_epoch(&info.elements);
                }
                return Ok(NextOfJob::EpochEnd(epoch));
            }
            let patience = until.saturating_duration_since(Instant::now());
            let arrived = self.inbox.wait(patience, |state| match state.take(epoch) {
                Some(arrived) => Some(Ok(arrived)),
                None => state.failed.clone().map(Err),
            });
            let Some(arrived) = arrived else { return Ok(NextOfJob::Pending) };
            let arrived = arrived?;
            match arrived.rows {
                Ok(rows) => mixer.push(arrived.element, Some(rows)),
                Err(what) => {
                    mixer.push(arrived.element, None);
                    return Err(JobError::Element { rows: info.rows_of(arrived.element), what });
                }
            }
            // who reads by itself may read on
            self.inbox.change(|_| ());
        }
    }

    /// The epoch of the next batch.
    pub fn epoch(&self) -> u64 {
        self.mixer.as_ref().map_or(self.options.epoch, Mixer::epoch)
    }

    /// How the rows look, once some have come.
    pub fn layout(&self) -> Option<&Layout> {
        self.mixer.as_ref()?.layout()
    }

    /// Rows of an epoch, once the job has registered.
    pub fn rows(&self) -> Option<u64> {
        self.info.as_ref().map(|info| info.rows_of_job)
    }

    /// Where the job is, and the fingerprint of its data set; None before it has registered.
    pub fn position(&self) -> Option<(Position, u64)> {
        Some((self.mixer.as_ref()?.position(), self.info.as_ref()?.fingerprint))
    }

    /// How it gets its elements.
    pub fn mode(&self) -> Mode {
        self.inbox.lock().mode.clone()
    }

    /// What it was given, and how.
    pub fn counts(&self) -> Counts {
        self.inbox.lock().counts
    }

    /// Leaves. There are no more batches then, and no position.
    pub fn close(&mut self) {
        self.closed = true;
        // gives back what it holds
        (self.mixer, self.resuming) = (None, None);
        self.cancel.cancel();
        if self.process == std::process::id() {
            self.inbox.close();
            if let Some(thread) = self.thread.take() {
                let _ = thread.join();
            }
        }
    }

    fn start(&mut self) -> Result<(), ServiceError> {
        if self.thread.is_none() {
            let (options, opening, inbox) = (self.options.clone(), self.opening.clone(), self.inbox.clone());
            let (holding, cancel) = (self.holding.clone(), self.cancel.clone());
            let thread = std::thread::Builder::new()
                .name("joader job".to_owned())
                .spawn(move || stream::run(&options, &opening, &inbox, &holding, &cancel));
            self.thread =
                Some(thread.map_err(|error| {
                    ServiceError::Lost(format!("the system gives no thread to hear from it: {error}"))
                })?);
        }
        Ok(())
    }

    /// What the job knows of its data set; None if it has not registered yet.
    fn registered(&mut self, until: Instant) -> Result<Option<Arc<DataSetInfo>>, ServiceError> {
        if self.info.is_some() {
            return Ok(self.info.clone());
        }
        let patience = until.saturating_duration_since(Instant::now());
        let registered = self.inbox.wait(patience, |state| match &state.info {
            Some(info) => Some(Ok(info.clone())),
            None => state.failed.clone().map(Err),
        });
        self.info = registered.transpose()?;
        Ok(self.info.clone())
    }

    /// Elements whose rows are shuffled among each other: half of what the job may hold, so that the others may come
    /// meanwhile.
    fn buffer(&self, info: &DataSetInfo) -> usize {
        let wanted = match self.options.buffer {
            BufferSize::Elements(elements) => elements,
            BufferSize::Share(share) => (info.elements.len() as f64 * share).ceil() as u32,
        };
        wanted.min(self.inbox.lock().window / 2).max(1) as usize
    }

    /// The first epoch; None if there was no time to read again what its buffer has.
    fn first_epoch(&mut self, info: &Arc<DataSetInfo>, until: Instant) -> Result<Option<Mixer>, JobError> {
        let (batch_size, drop_last) = (self.options.batch_size, self.options.drop_last);
        let (least, most) = info.rows_of_ranks;
        let plan = || Plan::new(info.rows_of_job, least, most, batch_size, drop_last);
        let mixing = Mixing {
            seed: self.options.seed,
            batch_size,
            drop_last,
            plan: (self.options.world_size > 1).then(plan),
            buffer: self.buffer(info),
        };
        let Some(position) = &self.options.position else {
            return Ok(Some(Mixer::new(mixing, self.options.epoch, &info.elements)));
        };
        let mut rows = Vec::new();
        if !position.buffer.is_empty() {
            let all: BTreeSet<u32> = info.elements.iter().collect();
            if let Some(element) = position.buffer.iter().find(|element| !all.contains(element)) {
                let what = format!("state: its buffer has element {element}, which the job does not want");
                return Err(ServiceError::Refused(what).into());
            }
            let (direct, mut read) = match self.resuming.take() {
                Some(resuming) => resuming,
                None => (Direct::open(&self.options, &self.opening, info, &self.holding, &self.cancel)?, Vec::new()),
            };
            while let Some(element) = position.buffer.get(read.len()) {
                let of_element = direct.read(*element);
                // without it no one knows which of the buffer's rows were given: the next call tries again
                let failed = |what| {
                    let rows = info.rows_of(*element);
                    let which =
                        format!("state: rows {} to {} of its buffer cannot be read again", rows.start, rows.end);
                    SourceError::Invalid(format!("{which}: {what}"))
                };
                read.push(of_element.map_err(failed)?);
                if Instant::now() > until && read.len() < position.buffer.len() {
                    self.resuming = Some((direct, read));
                    return Ok(None);
                }
            }
            rows = read;
        }
        let mixer = Mixer::resumed(mixing, position, rows);
        Ok(Some(mixer.map_err(|error| of_mixing(info, error))?))
    }
}

fn of_mixing(info: &DataSetInfo, error: MixError) -> JobError {
    match error {
        MixError::Element(element, error) => JobError::Element { rows: info.rows_of(element), what: error.to_string() },
        MixError::Source(error) => error.into(),
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.cancel.cancel();
            self.inbox.close();
        } else {
            // after a fork, the handle may point to a thread of this process, which dropping it would detach
            std::mem::forget(self.thread.take());
        }
    }
}
