//! What a server's threads share: data sets, jobs, the memory, and what is to be read.
//!
//! It guarantees that reading and preparing happen outside of the lock, and that a panic in either is an error for
//! those who wait for the element.

use crate::dataset::{DataSet, Selection};
use crate::drawing::Drawing;
use crate::memory::Memory;
use crate::proto;
use crate::room::{GRAIN, Rooms};
use crate::sampling::{Drawn, JobId, SamplerKind, Wanted};
use crate::serving::{Action, Key, Rows, Serving};
use preparing::{Callables, Recipe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use source::{Cancel, Source};
use std::any::Any;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// Elements that may be in the memory at a time.
const MAX_ROOMS: u32 = 1 << 20;

/// A job draws so many bytes ahead of what it has taken: what keeps the threads that read busy.
const AHEAD_BYTES: u64 = 8 << 20;

/// How long a job may hold all it may without giving any of it back before it is said to stall.
const STALLED: Duration = Duration::from_secs(10);

/// What a job is told by, as long as it is there.
pub(super) type ToJob = UnboundedSender<Result<proto::ToJob, tonic::Status>>;

/// Data set, columns and preparation: jobs of one kind share elements.
struct Kind {
    data_set: u64,
    columns: Vec<String>,
    recipe: Recipe,
    source: Arc<dyn Source>,
    /// elements that were prepared, and their bytes
    prepared: (u64, u64),
}

/// A data set as it was created.
pub(super) struct Created {
    pub(super) message: proto::DataSet,
    pub(super) data_set: Arc<DataSet>,
    number: u64,
    sampling: Drawing,
    /// jobs of other machines, for which this server draws
    elsewhere: u32,
}

struct JobInfo {
    name: String,
    data_set: u64,
    kind: u32,
    selection: Arc<Selection>,
    to_job: ToJob,
    process: u32,
    /// None if the system does not let this look for it
    alive: Option<OwnedFd>,
    since: Instant,
    /// when it gave something back last
    moved: Instant,
    rows: u64,
    /// which rank it is, and of how many
    rank: (u32, u32),
    /// it gets nothing more
    has_ended: bool,
}

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
    /// which rank it is, and of how many
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

struct State {
    data_sets: BTreeMap<String, Created>,
    kinds: HashMap<u32, Kind>,
    jobs: BTreeMap<JobId, JobInfo>,
    serving: Serving,
    to_load: VecDeque<Key>,
    next: u64,
    next_kind: u32,
    is_closed: bool,
}

/// See the module's documentation.
pub(super) struct Hub {
    state: Mutex<State>,
    work: Condvar,
    pub(super) memory: Memory,
    callables: Option<Box<dyn Callables>>,
    cancel: Cancel,
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
        let state = State {
            data_sets: BTreeMap::new(),
            kinds: HashMap::new(),
            jobs: BTreeMap::new(),
            serving: Serving::new(Rooms::new(memory.len(), rooms)),
            to_load: VecDeque::new(),
            next: 1,
            next_kind: 0,
            is_closed: false,
        };
        let (state, began) = (Mutex::new(state), Instant::now());
        let (work, cancel) = (Condvar::new(), Cancel::default());
        let hub = Arc::new(Hub { state, work, memory, callables, cancel, seed, is_led, began });
        let thread = |_| {
            let hub = hub.clone();
            std::thread::Builder::new().name("joader loader".to_owned()).spawn(move || hub.load_all())
        };
        let threads = (0..threads.max(1)).map(thread).collect::<std::io::Result<_>>()?;
        Ok((hub, threads))
    }

    /// Tells the threads to end.
    pub(super) fn close(&self) {
        self.cancel.cancel();
        self.lock().is_closed = true;
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
            tonic::Status::invalid_argument(format!("sampler: {:?} is none of {known}", message.sampler))
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

    /// A job gets nothing more, and is told why. What it holds stays until it goes, since it may still be looked at.
    pub(super) fn end(&self, job: JobId, why: &tonic::Status) {
        let mut state = self.lock();
        state.end(job, why);
        self.settle(&mut state);
    }

    /// A job comes; its number, and how many elements it may hold. `registered` makes what it is told first.
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

    /// How many of its elements a job may hold if they have so many bytes: a quarter of the memory at most, as it may
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
        loop {
            let Some((key, source, recipe, rows)) = self.next_to_load() else { return };
            let loaded = catch_unwind(AssertUnwindSafe(|| self.load(&*source, &recipe, rows)));
            let loaded = loaded.unwrap_or_else(|panic| Err(format!("a thread panicked: {}", message_of(&*panic))));
            let mut state = self.lock();
            if state.is_closed {
                // jobs are about to be told, and may look at all that is there until they have ended
                return;
            }
            match loaded {
                Err(error) => {
                    tracing::warn!(element = key.element, error, "an element cannot be read");
                    state.serving.failed(key, &error);
                }
                Ok(encoded) => {
                    let bytes = encoded.len() as u64;
                    if let Some(kind) = state.kinds.get_mut(&key.kind) {
                        kind.prepared = (kind.prepared.0 + 1, kind.prepared.1 + bytes);
                    }
                    match state.serving.place(key, bytes) {
                        Some(room) => {
                            drop(state);
                            let part = room.offset()..room.offset() + bytes;
                            #[allow(unsafe_code)]
                            // SAFETY: the room is this element's, and nobody gets it before it is written
                            let written = unsafe { self.memory.write(part, |to| encoded.write(to)) };
                            state = self.lock();
                            match written {
                                Ok(()) => state.serving.written(key),
                                Err(error) => state.serving.failed(key, &error.to_string()),
                            }
                        }
                        None => {
                            let mut rows = Vec::with_capacity(encoded.len());
                            match encoded.write(&mut rows) {
                                Ok(()) => state.serving.outside(key, rows.into()),
                                Err(error) => state.serving.failed(key, &error.to_string()),
                            }
                        }
                    }
                }
            }
            self.settle(&mut state);
        }
    }

    #[expect(clippy::type_complexity)]
    fn next_to_load(&self) -> Option<(Key, Arc<dyn Source>, Recipe, std::ops::Range<u64>)> {
        let mut guard = self.lock();
        loop {
            if guard.is_closed {
                return None;
            }
            let state = &mut *guard;
            while let Some(key) = state.to_load.pop_front() {
                if !state.serving.is_wanted(key) {
                    continue;
                }
                let Some(kind) = state.kinds.get(&key.kind) else { continue };
                let Some(created) = state.data_sets.values().find(|created| created.number == kind.data_set) else {
                    continue;
                };
                let rows = created.data_set.rows_of(key.element);
                return Some((key, kind.source.clone(), kind.recipe.clone(), rows));
            }
            guard = self.work.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn load(
        &self,
        source: &dyn Source,
        recipe: &Recipe,
        rows: std::ops::Range<u64>,
    ) -> Result<preparing::slot::Encoded, String> {
        let batch = source.read(rows, &self.cancel).map_err(|error| error.to_string())?;
        let batch = recipe.apply(batch, self.callables.as_deref(), &self.cancel).map_err(|error| error.to_string())?;
        preparing::slot::Encoded::new(&batch).map_err(|error| error.to_string())
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn info(&self, created: &Created) -> proto::DataSetInfo {
        let of = |job: &&JobInfo| job.data_set == created.number && !job.has_ended;
        proto::DataSetInfo {
            data_set: Some(created.message.clone()),
            rows: created.data_set.rows(),
            elements: created.data_set.elements(),
            bytes: created.data_set.bytes(),
            fingerprint: created.data_set.fingerprint(),
            jobs: self.jobs.values().filter(of).count() as u32 + created.elsewhere,
        }
    }

    /// The kind of jobs with these columns and this preparation, if there is one.
    fn kind(&self, data_set: u64, columns: &[String], recipe: &Recipe) -> Option<u32> {
        let same = |kind: &Kind| kind.data_set == data_set && kind.columns == columns && kind.recipe == *recipe;
        self.kinds.iter().find(|(_, kind)| same(kind)).map(|(kind, _)| *kind)
    }

    /// About how many bytes an element of a kind has, whose rows have so many at least once they are prepared.
    fn bytes(&self, created: &Created, kind: Option<u32>, row_bytes: u64) -> u64 {
        let prepared = kind.and_then(|kind| self.kinds.get(&kind)?.bytes());
        let guessed = || {
            let prepared = row_bytes.saturating_mul(created.data_set.rows());
            created.data_set.bytes().max(prepared) / u64::from(created.data_set.elements().max(1))
        };
        prepared.unwrap_or_else(guessed).max(1)
    }

    fn forget_kinds(&mut self, data_set: &str) {
        let number = self.data_sets.get(data_set).map(|created| created.number);
        // what is kept of them goes by and by: nobody will ask for it
        self.kinds.retain(|_, kind| Some(kind.data_set) != number);
    }

    fn sampling(&mut self, job: JobId) -> Option<&mut Drawing> {
        let data_set = self.jobs.get(&job)?.data_set;
        self.data_sets.values_mut().find(|created| created.number == data_set).map(|created| &mut created.sampling)
    }

    fn draw(&mut self) -> Vec<Drawn> {
        let mut drawn = Vec::new();
        let mut failed = Vec::new();
        for created in self.data_sets.values_mut() {
            while let Err((job, error)) = created.sampling.decide(&mut drawn) {
                failed.push((job, error));
            }
        }
        for (job, error) in failed {
            self.end(job, &tonic::Status::resource_exhausted(error.to_string()));
        }
        drawn
    }

    fn end(&mut self, job: JobId, why: &tonic::Status) {
        if let Some(sampling) = self.sampling(job) {
            sampling.leave(job);
        }
        self.serving.stop(job);
        let Some(info) = self.jobs.get_mut(&job) else { return };
        tracing::warn!(job, name = info.name, why = why.message(), "job ended");
        let ended = proto::Ended { code: why.code().into(), why: why.message().to_owned() };
        let _ = info.to_job.send(Ok(proto::ToJob { message: Some(proto::to_job::Message::Ended(ended)) }));
        info.has_ended = true;
        let kind = info.kind;
        self.expect(kind);
    }

    fn to_come(&self, job: JobId, element: u32) -> usize {
        let Some(info) = self.jobs.get(&job) else { return 0 };
        let (kind, data_set) = (info.kind, info.data_set);
        let Some(created) = self.data_sets.values().find(|created| created.number == data_set) else { return 0 };
        created.sampling.to_come(element, |id| self.jobs.get(&id).is_some_and(|info| info.kind == kind))
    }

    fn leave(&mut self, job: JobId) {
        if let Some(sampling) = self.sampling(job) {
            sampling.leave(job);
        }
        self.serving.leave(job);
        if let Some(info) = self.jobs.remove(&job) {
            tracing::info!(job, name = info.name, rows = info.rows, "job left");
            self.expect(info.kind);
        }
    }

    /// Jobs have joined or begun epochs: they will come for what is kept.
    fn expect_more(&mut self) {
        let more = |created: &mut Created| created.sampling.take_more_to_come().then_some(created.number);
        let data_sets: Vec<u64> = self.data_sets.values_mut().filter_map(more).collect();
        let of = |kind: &Kind| data_sets.contains(&kind.data_set);
        let kinds: Vec<u32> = self.kinds.iter().filter(|(_, kind)| of(kind)).map(|(number, _)| *number).collect();
        for kind in kinds {
            self.expect(kind);
        }
    }

    /// Another number of jobs will come for what is kept of a kind.
    fn expect(&mut self, kind: u32) {
        let Some(data_set) = self.kinds.get(&kind).map(|kind| kind.data_set) else { return };
        let Some(created) = self.data_sets.values().find(|created| created.number == data_set) else { return };
        let of = |id: JobId| self.jobs.get(&id).is_some_and(|info| info.kind == kind);
        self.serving.expect(|key| (key.kind == kind).then(|| created.sampling.to_come(key.element, of)));
    }

    fn deliver(&mut self, job: JobId, ticket: u64, epoch: u64, element: u32, rows: Rows) {
        let Some(info) = self.jobs.get_mut(&job) else { return };
        let Some(created) = self.data_sets.values().find(|created| created.number == info.data_set) else { return };
        let chosen = info.selection.of(created.data_set.rows_of(element));
        let all = created.data_set.rows_of(element);
        info.rows += chosen.as_ref().map_or(all.end - all.start, |bits| bits.count_set_bits() as u64);
        let rows = match rows {
            Rows::Room(room) => proto::element::Rows::Slot(proto::Slot { offset: room.offset(), length: room.bytes() }),
            Rows::Outside(bytes) => proto::element::Rows::Here(bytes),
            Rows::Error(error) => proto::element::Rows::Error(error.to_string()),
        };
        let chosen = chosen.map(|bits| bits.sliced().as_slice().to_vec().into()).unwrap_or_default();
        let element = proto::Element { ticket, epoch, element, chosen, rows: Some(rows) };
        let message = proto::ToJob { message: Some(proto::to_job::Message::Element(element)) };
        // who does not listen any more leaves soon
        let _ = info.to_job.send(Ok(message));
    }

    fn is_stalled(&self, (job, info): &(&JobId, &JobInfo)) -> bool {
        info.moved.elapsed() > STALLED && self.serving.held(**job).is_some_and(|(_, is_full)| is_full)
    }

    fn job_status(&self, (job, info): (&JobId, &JobInfo)) -> proto::JobStatus {
        let created = self.data_sets.values().find(|created| created.number == info.data_set);
        let (epoch, left) = created.and_then(|created| created.sampling.position(*job)).unwrap_or_default();
        let counts = self.serving.counts(*job).unwrap_or_default();
        let (held, _) = self.serving.held(*job).unwrap_or_default();
        proto::JobStatus {
            job: *job,
            name: info.name.clone(),
            data_set: created.map(|created| created.message.name.clone()).unwrap_or_default(),
            epoch,
            left: left as u64,
            elements: counts.elements,
            rows: info.rows,
            loads: counts.loads,
            merged: counts.merged,
            hits: counts.hits,
            again: counts.again,
            outside: counts.outside,
            errors: counts.errors,
            held: held as u32,
            stalled: self.is_stalled(&(job, info)),
            process: info.process,
            seconds: info.since.elapsed().as_secs_f64(),
            rank: info.rank.0,
            world_size: info.rank.1,
        }
    }
}

impl Created {
    fn is_busy(&self) -> bool {
        self.elsewhere > 0 || !self.sampling.is_empty()
    }
}

impl Kind {
    /// Bytes of an element as it was prepared, on average; None before there was one.
    fn bytes(&self) -> Option<u64> {
        self.prepared.1.checked_div(self.prepared.0)
    }
}

/// By which a process is known, also if another one gets its number.
fn handle_of(process: u32) -> Option<OwnedFd> {
    let process = Pid::from_raw(i32::try_from(process).ok()?)?;
    pidfd_open(process, PidfdFlags::empty()).ok()
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(process, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&at_once)).is_ok_and(|ended| ended > 0)
}

fn unknown(state: &State, name: &str) -> tonic::Status {
    let known: Vec<&str> = state.data_sets.keys().map(String::as_str).collect();
    let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
    tonic::Status::not_found(format!("dataset: there is no {name:?}; there is {known}"))
}

/// What a job or a server is told whose rows are not those of a data set.
pub(super) fn other_rows(name: &str) -> tonic::Status {
    let what = format!(
        "dataset: {name:?} has other rows on this machine than at the leader: let all machines read the same rows, and \
         alter the data set if they have changed"
    );
    tonic::Status::failed_precondition(what)
}

/// What is told who creates a data set of a name that there is.
pub(super) fn already(name: &str) -> tonic::Status {
    tonic::Status::already_exists(format!("there is a data set {name:?} already: alter or drop it"))
}

fn busy(name: &str) -> tonic::Status {
    tonic::Status::failed_precondition(format!("dataset: jobs train on {name:?}: end them first"))
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref().copied()).unwrap_or("?")
}
