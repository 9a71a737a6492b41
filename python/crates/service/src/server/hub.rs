//! What a server's threads share: data sets, jobs, the memory, and what is to be read.
//!
//! It guarantees that reading and preparing happen outside of the lock, and that a panic in either is an error for
//! those who wait for the element.

use super::state::{AtATime, Created, JobInfo, Kind, Loading, State, ToLoad, handle_of, has_ended};
use crate::damaged::{Damaged, prepare};
use crate::dataset::{DataSet, Selection};
use crate::drawing::Drawing;
use crate::memory::Memory;
use crate::proto;
use crate::room::{GRAIN, Rooms};
use crate::sampling::{Drawn, JobId, SamplerKind, Wanted};
use crate::serving::{Action, Key, Serving};
use preparing::slot::Encoded;
use preparing::{Callables, Recipe};
use source::{Cancel, Source};
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// Elements that may be in the memory at a time.
const MAX_ROOMS: u32 = 1 << 20;

/// A job draws this many bytes ahead of what it has taken: what keeps the threads that read busy.
const AHEAD_BYTES: u64 = 8 << 20;

/// How long a job may hold all it may without giving any of it back before it is said to stall.
pub(super) const STALLED: Duration = Duration::from_secs(10);

/// What a job gets by, as long as it is there.
pub(super) type ToJob = UnboundedSender<Result<proto::ToJob, tonic::Status>>;

/// A job that comes.
pub(super) struct Joining {
    pub(super) name: String,
    pub(super) data_set: String,
    /// what that name meant when the job asked
    pub(super) rows: Arc<DataSet>,
    pub(super) columns: Vec<String>,
    pub(super) recipe: Recipe,
    pub(super) selection: Arc<Selection>,
    /// bytes of a prepared row, as far as they are known
    pub(super) row_bytes: u64,
    pub(super) wanted: Wanted,
    pub(super) window: Window,
    pub(super) to_job: ToJob,
    pub(super) process: u32,
    pub(super) rank: (u32, u32),
    /// tells a leader what was taken
    pub(super) taken: Option<UnboundedSender<u32>>,
}

/// How many elements a job wants to hold at a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Window {
    Elements(u32),
    Share(f64),
}

/// See the module's documentation.
pub(super) struct Hub {
    state: Mutex<State>,
    work: Condvar,
    pub(super) memory: Memory,
    callables: Option<Box<dyn Callables>>,
    at_a_time: AtATime,
    seed: i64,
    /// another server draws
    is_led: bool,
    began: Instant,
}

impl Hub {
    /// A server's parts, and the threads that read for it.
    pub(super) fn start(
        memory: Memory,
        callables: Option<Box<dyn Callables>>,
        seed: i64,
        threads: usize,
        is_led: bool,
    ) -> std::io::Result<(Arc<Hub>, Vec<JoinHandle<()>>)> {
        let rooms = u32::try_from(memory.len() / GRAIN).unwrap_or(MAX_ROOMS).clamp(16, MAX_ROOMS);
        let state = State::new(Serving::new(Rooms::new(memory.len(), rooms)));
        let (state, began) = (Mutex::new(state), Instant::now());
        let calling = callables.as_ref().map_or(1, |callables| callables.at_a_time());
        let (work, at_a_time) = (Condvar::new(), AtATime { plain: threads.max(1), calling });
        let hub = Arc::new(Hub { state, work, memory, callables, at_a_time, seed, is_led, began });
        let thread = |_| {
            let hub = hub.clone();
            std::thread::Builder::new().name("joader loader".to_owned()).spawn(move || hub.load_all())
        };
        let threads = (0..at_a_time.plain + at_a_time.calling).map(thread).collect::<std::io::Result<_>>()?;
        Ok((hub, threads))
    }

    /// Tells the threads to end.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.loading.iter().for_each(Loading::cancel);
        drop(state);
        self.work.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new data set, or another one of a name that exists, as `replaces` says.
    pub(super) fn create(
        &self,
        message: proto::DataSet,
        data_set: DataSet,
        replaces: bool,
    ) -> Result<proto::DataSetInfo, tonic::Status> {
        let kind = SamplerKind::named(&message.sampler).ok_or_else(|| {
            let known = SamplerKind::ALL.map(|(name, _)| name).join(", ");
            tonic::Status::invalid_argument(format!("sampler: {:?} is not one of {known}", message.sampler))
        })?;
        let sampling = Drawing::new(self.is_led, kind, self.seed, data_set.elements())
            .map_err(|error| tonic::Status::resource_exhausted(error.to_string()))?;
        let mut state = self.lock();
        match (state.data_sets.get(&message.name), replaces) {
            (Some(_), false) => return Err(already(&message.name)),
            (None, true) => return Err(unknown(&state, &message.name)),
            (Some(old), true) if old.is_busy() => return Err(busy(&message.name)),
            _ => {}
        }
        state.forget_kinds(&message.name);
        let number = state.number();
        let name = message.name.clone();
        let data_set = Arc::new(data_set);
        state.data_sets.insert(name.clone(), Created { message, data_set, number, sampling, elsewhere: 0 });
        Ok(state.info(&state.data_sets[&name]))
    }

    pub(super) fn drop_data_set(&self, name: &str) -> Result<(), tonic::Status> {
        let mut state = self.lock();
        let Some(created) = state.data_sets.get(name) else { return Err(unknown(&state, name)) };
        if created.is_busy() {
            return Err(busy(name));
        }
        state.forget_kinds(name);
        state.data_sets.remove(name);
        Ok(())
    }

    pub(super) fn list(&self) -> Vec<proto::DataSetInfo> {
        let state = self.lock();
        state.data_sets.values().map(|created| state.info(created)).collect()
    }

    pub(super) fn info(&self, name: &str) -> Result<proto::DataSetInfo, tonic::Status> {
        let state = self.lock();
        state.data_sets.get(name).map(|created| state.info(created)).ok_or_else(|| unknown(&state, name))
    }

    pub(super) fn data_set(&self, name: &str) -> Result<(Arc<DataSet>, proto::DataSet), tonic::Status> {
        let state = self.lock();
        let created = state.data_sets.get(name).ok_or_else(|| unknown(&state, name))?;
        Ok((created.data_set.clone(), created.message.clone()))
    }

    /// A data set for which this server will draw for a job of another machine, until [`Hub::end_elsewhere`].
    pub(super) fn begin_elsewhere(
        &self,
        name: &str,
        fingerprint: u64,
    ) -> Result<(Arc<DataSet>, SamplerKind), tonic::Status> {
        let mut state = self.lock();
        let Some(created) = state.data_sets.get_mut(name) else { return Err(unknown(&state, name)) };
        if created.data_set.fingerprint() != fingerprint {
            return Err(other_rows(name));
        }
        created.elsewhere += 1;
        Ok((created.data_set.clone(), SamplerKind::named(&created.message.sampler).unwrap_or_default()))
    }

    /// A job of another machine has gone.
    pub(super) fn end_elsewhere(&self, name: &str) {
        if let Some(created) = self.lock().data_sets.get_mut(name) {
            created.elsewhere = created.elsewhere.saturating_sub(1);
        }
    }

    /// How many elements a job will draw ahead.
    pub(super) fn ahead(&self, data_set: &str, columns: &[String], recipe: &Recipe, row_bytes: u64) -> u32 {
        let state = self.lock();
        let Some(created) = state.data_sets.get(data_set) else { return 1 };
        self.ahead_of(state.bytes(created, state.kind(created.number, columns, recipe), row_bytes))
    }

    fn ahead_of(&self, bytes: u64) -> u32 {
        let ahead = u32::try_from(AHEAD_BYTES / bytes).unwrap_or(u32::MAX);
        ahead.clamp(4, 1024).min(self.most(8, bytes))
    }

    /// Elements that take such a part of the memory.
    fn most(&self, part: u64, bytes: u64) -> u32 {
        u32::try_from(self.memory.len() / part / bytes).unwrap_or(u32::MAX).max(2)
    }

    /// The leader has drawn these for a job.
    pub(super) fn drawn(&self, job: JobId, epoch: u64, elements: &[u32]) -> Result<(), tonic::Status> {
        let mut state = self.lock();
        if state.sampling(job).is_some_and(|sampling| !sampling.arrive(job, epoch, elements)) {
            let what = format!("the leader has drawn what job {job} does not need: give all servers the same version");
            return Err(tonic::Status::unavailable(what));
        }
        self.settle(&mut state);
        Ok(())
    }

    /// A job gets nothing more, and gets the reason. What it holds stays until it goes, since it may still be looked
    /// at.
    pub(super) fn end(&self, job: JobId, why: &tonic::Status) {
        let mut state = self.lock();
        state.end(job, why);
        self.settle(&mut state);
    }

    /// A job comes; its number, and how many elements it may hold. `registered` makes what it is given first.
    pub(super) fn join(
        &self,
        joining: Joining,
        source: Arc<dyn Source>,
        registered: impl FnOnce(JobId, u32) -> proto::ToJob,
    ) -> Result<JobId, tonic::Status> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let job = state.number();
        let Some(created) = state.data_sets.get(&joining.data_set) else {
            return Err(unknown(state, &joining.data_set));
        };
        let number = created.number;
        let elements = joining.wanted.elements.len();
        let kind = state.kind(number, &joining.columns, &joining.recipe);
        let bytes = state.bytes(&state.data_sets[&joining.data_set], kind, joining.row_bytes);
        let (window, ahead) = (self.window(joining.window, elements, bytes), self.ahead_of(bytes));
        let wanted = Wanted { ahead, ..joining.wanted };
        let Some(created) = state.data_sets.get_mut(&joining.data_set) else {
            return Err(unknown(state, &joining.data_set));
        };
        if !Arc::ptr_eq(&created.data_set, &joining.rows) {
            let what = format!("dataset: {:?} was altered while the job registered: try again", joining.data_set);
            return Err(tonic::Status::failed_precondition(what));
        }
        created
            .sampling
            .join(job, wanted, joining.taken)
            .map_err(|error| tonic::Status::resource_exhausted(error.to_string()))?;
        let kind = kind.unwrap_or_else(|| {
            // a number that was never used: elements of a kind that is forgotten may still be kept
            state.next_kind += 1;
            let kind =
                Kind { data_set: number, columns: joining.columns, recipe: joining.recipe, source, prepared: (0, 0) };
            state.kinds.insert(state.next_kind, kind);
            state.next_kind
        });
        state.serving.join(job, kind, window);
        let _ = joining.to_job.send(Ok(registered(job, window)));
        let now = Instant::now();
        let info = JobInfo {
            name: joining.name,
            data_set: number,
            kind,
            selection: joining.selection,
            to_job: joining.to_job,
            process: joining.process,
            alive: handle_of(joining.process),
            since: now,
            moved: now,
            rows: 0,
            rank: joining.rank,
            has_ended: false,
        };
        state.jobs.insert(job, info);
        tracing::info!(job, name = state.jobs[&job].name, data_set = joining.data_set, window, ahead, "job joined");
        self.settle(state);
        Ok(job)
    }

    /// How many of its elements a job may hold if they have this many bytes: a quarter of the memory at most, as it may
    /// draw an eighth ahead.
    fn window(&self, window: Window, elements: usize, bytes: u64) -> u32 {
        let wanted = match window {
            Window::Elements(elements) => elements,
            // a buffer that is learned from and one that is filled
            Window::Share(share) => 2 * (elements as f64 * share).ceil() as u32,
        };
        wanted.clamp(2, self.most(4, bytes))
    }

    /// A job gives elements back.
    pub(super) fn done(&self, job: JobId, tickets: &[u64]) {
        let mut state = self.lock();
        if let Some(info) = state.jobs.get_mut(&job) {
            info.moved = Instant::now();
        }
        for ticket in tickets {
            state.serving.done(job, *ticket);
        }
        self.settle(&mut state);
    }

    /// A job goes.
    pub(super) fn leave(&self, job: JobId) {
        let mut state = self.lock();
        state.leave(job);
        self.settle(&mut state);
    }

    /// Looks which jobs stall, and which have ended though a process that they forked off keeps their connection open.
    /// To be called now and then.
    pub(super) fn tick(&self) {
        let mut state = self.lock();
        let has_ended = |job: &JobInfo| job.alive.as_ref().is_some_and(has_ended);
        let ended: Vec<JobId> = state.jobs.iter().filter(|(_, job)| has_ended(job)).map(|(job, _)| *job).collect();
        for job in &ended {
            state.leave(*job);
        }
        if !ended.is_empty() {
            self.settle(&mut state);
        }
        state.cancel_unwanted();
        let stalled: Vec<JobId> = state.jobs.iter().filter(|job| state.is_stalled(job)).map(|(job, _)| *job).collect();
        for job in stalled {
            state.serving.stalled(job);
        }
    }

    pub(super) fn status(&self) -> proto::StatusReply {
        let state = self.lock();
        let (kept, used) = state.serving.kept();
        let totals = state.serving.totals();
        let here = state.jobs.iter().filter(|(_, info)| !info.has_ended);
        let jobs: Vec<proto::JobStatus> = here.map(|job| state.job_status(job)).collect();
        let server = proto::ServerStatus {
            memory: self.memory.len(),
            used,
            elements: kept as u64,
            loads: totals.loads,
            bytes_loaded: totals.bytes_loaded,
            bytes_saved: totals.bytes_delivered.saturating_sub(totals.bytes_loaded),
            evictions: totals.evictions,
            seconds: self.began.elapsed().as_secs_f64(),
            errors: totals.errors,
            outside: totals.outside,
        };
        proto::StatusReply { jobs, server: Some(server), cluster: None, groups: Vec::new() }
    }

    /// Does what follows from what has happened, until nothing does.
    fn settle(&self, state: &mut State) {
        loop {
            for job in state.serving.take_taken() {
                if let Some(sampling) = state.sampling(job) {
                    sampling.taken(job);
                }
            }
            let drawn = state.draw();
            state.expect_more();
            for Drawn { job, epoch, element } in drawn {
                let to_come = state.to_come(job, element);
                state.serving.draw(job, epoch, element, to_come);
            }
            let actions = state.serving.take_actions();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                match action {
                    Action::Load(key) => {
                        state.to_load.push_back(key);
                        self.work.notify_one();
                    }
                    Action::Deliver { job, ticket, epoch, element, rows } => {
                        state.deliver(job, ticket, epoch, element, rows);
                    }
                }
            }
        }
    }

    /// What each thread does that reads.
    fn load_all(&self) {
        while let Some(ToLoad { key, source, recipe, rows, cancel }) = self.next_to_load() {
            let loaded = catch_unwind(AssertUnwindSafe(|| self.load(&*source, &recipe, rows, &cancel)));
            let loaded = loaded.unwrap_or_else(|panic| Err(format!("a thread panicked: {}", message_of(&*panic))));
            let stored = loaded.and_then(|(encoded, damaged)| {
                self.lock().damaged(key, damaged);
                self.store(key, &encoded)
            });
            let mut state = self.lock();
            if state.is_closed {
                return;
            }
            state.loaded(&cancel);
            // what was cancelled no one wants, or somebody has asked for it again
            if let (Err(error), Ok(())) = (stored, cancel.check()) {
                tracing::warn!(element = key.element, error, "an element cannot be read");
                state.serving.failed(key, &error);
            }
            self.settle(&mut state);
            // there is a place free, which may be another kind's than this thread takes up
            self.work.notify_one();
        }
    }

    /// Puts an element where jobs find it: into the memory, or next to it if there is no room.
    fn store(&self, key: Key, encoded: &Encoded) -> Result<(), String> {
        let bytes = encoded.len() as u64;
        let mut state = self.lock();
        if state.is_closed {
            // jobs are about to be told, and may look at all that is there until they have ended
            return Ok(());
        }
        state.prepared(key.kind, bytes);
        let room = state.serving.place(key, bytes);
        drop(state);
        let Some(room) = room else {
            let mut rows = Vec::with_capacity(encoded.len());
            encoded.write(&mut rows).map_err(|error| error.to_string())?;
            self.lock().serving.outside(key, rows.into());
            return Ok(());
        };
        let part = room.offset()..room.offset() + bytes;
        #[allow(unsafe_code)]
        // SAFETY: the room is this element's, and no one gets it before it is written
        let written = unsafe { self.memory.write(part, |to| encoded.write(to)) };
        written.map_err(|error| error.to_string())?;
        self.lock().serving.written(key);
        Ok(())
    }

    /// Waits for what is to be read; None when the server ends.
    fn next_to_load(&self) -> Option<ToLoad> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(next) = state.next_to_load(self.at_a_time) {
                return Some(next);
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// An element, and which of its rows no one can have.
    fn load(
        &self,
        source: &dyn Source,
        recipe: &Recipe,
        rows: Range<u64>,
        cancel: &Cancel,
    ) -> Result<(Encoded, Damaged), String> {
        let batch = source.read(rows.clone(), cancel).map_err(|error| error.to_string())?;
        let (batch, damaged) = prepare(recipe, batch, &rows, self.callables.as_deref(), cancel)?;
        Ok((Encoded::new(&batch).map_err(|error| error.to_string())?, damaged))
    }
}

fn unknown(state: &State, name: &str) -> tonic::Status {
    let known: Vec<&str> = state.data_sets.keys().map(String::as_str).collect();
    let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
    tonic::Status::not_found(format!("dataset: there is no {name:?}; there is {known}"))
}

/// What a job or a server gets whose rows are not those of a data set.
pub(super) fn other_rows(name: &str) -> tonic::Status {
    let what = format!(
        "dataset: {name:?} has other rows on this machine than at the leader: let all machines read the same rows, and \
         alter the data set if they have changed"
    );
    tonic::Status::failed_precondition(what)
}

/// The error for creating a data set of a name that there is.
pub(super) fn already(name: &str) -> tonic::Status {
    tonic::Status::already_exists(format!("there is a data set {name:?} already: alter or drop it"))
}

fn busy(name: &str) -> tonic::Status {
    tonic::Status::failed_precondition(format!("dataset: jobs train on {name:?}: end them first"))
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref().copied()).unwrap_or("?")
}
