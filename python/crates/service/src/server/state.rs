//! What a server knows, behind the lock of its [`Hub`](super::hub::Hub): data sets, jobs, and what is to be read.
//!
//! Nothing here waits, reads or prepares.

use super::hub::{STALLED, ToJob};
use crate::damaged::Damaged;
use crate::dataset::{DataSet, Selection};
use crate::drawing::Drawing;
use crate::proto;
use crate::sampling::{Drawn, JobId};
use crate::serving::{Key, Rows, Serving};
use preparing::Recipe;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use source::{Cancel, Source};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

/// Data set, columns and preparation: jobs of one kind share elements.
pub(super) struct Kind {
    pub(super) data_set: u64,
    pub(super) columns: Vec<String>,
    pub(super) recipe: Recipe,
    pub(super) source: Arc<dyn Source>,
    /// elements that were prepared, and their bytes
    pub(super) prepared: (u64, u64),
}

/// A data set as it was created.
pub(super) struct Created {
    pub(super) message: proto::DataSet,
    pub(super) data_set: Arc<DataSet>,
    pub(super) number: u64,
    pub(super) sampling: Drawing,
    /// jobs of other machines, for which this server draws
    pub(super) elsewhere: u32,
}

pub(super) struct JobInfo {
    pub(super) name: String,
    pub(super) data_set: u64,
    pub(super) kind: u32,
    pub(super) selection: Arc<Selection>,
    pub(super) to_job: ToJob,
    pub(super) process: u32,
    /// None if the system does not let this look for it
    pub(super) alive: Option<OwnedFd>,
    pub(super) since: Instant,
    /// when it gave something back last
    pub(super) moved: Instant,
    pub(super) rows: u64,
    pub(super) rank: (u32, u32),
    /// it gets nothing more
    pub(super) has_ended: bool,
}

pub(super) struct State {
    pub(super) data_sets: BTreeMap<String, Created>,
    pub(super) kinds: HashMap<u32, Kind>,
    pub(super) jobs: BTreeMap<JobId, JobInfo>,
    pub(super) serving: Serving,
    pub(super) to_load: VecDeque<Key>,
    /// what is being read
    pub(super) loading: Vec<Loading>,
    /// of what was read last
    damaged: HashMap<Key, Damaged>,
    pub(super) next: u64,
    pub(super) next_kind: u32,
    pub(super) is_closed: bool,
}

/// An element that is being read.
pub(super) struct Loading {
    key: Key,
    calls: bool,
    cancel: Arc<Cancel>,
}

impl Loading {
    /// Ends the reading as soon as that can be.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }
}

/// How many elements may be read at a time: those by functions of Python, which may hang, keep no others waiting.
#[derive(Clone, Copy)]
pub(super) struct AtATime {
    pub(super) plain: usize,
    pub(super) calling: usize,
}

/// An element to read, and how.
pub(super) struct ToLoad {
    /// set when no one wants it any more
    pub(super) cancel: Arc<Cancel>,
    pub(super) key: Key,
    pub(super) source: Arc<dyn Source>,
    pub(super) recipe: Recipe,
    pub(super) rows: Range<u64>,
}

fn created(data_sets: &BTreeMap<String, Created>, number: u64) -> Option<&Created> {
    data_sets.values().find(|created| created.number == number)
}

fn created_mut(data_sets: &mut BTreeMap<String, Created>, number: u64) -> Option<&mut Created> {
    data_sets.values_mut().find(|created| created.number == number)
}

impl State {
    pub(super) fn new(serving: Serving) -> State {
        State {
            data_sets: BTreeMap::new(),
            kinds: HashMap::new(),
            jobs: BTreeMap::new(),
            serving,
            to_load: VecDeque::new(),
            loading: Vec::new(),
            damaged: HashMap::new(),
            next: 1,
            next_kind: 0,
            is_closed: false,
        }
    }

    /// What is to be read next, and is still wanted, if this many may be under way.
    pub(super) fn next_to_load(&mut self, at_a_time: AtATime) -> Option<ToLoad> {
        let mut at = 0;
        while let Some(&key) = self.to_load.get(at) {
            // asked in any case: what no one wants is forgotten by that
            let is_wanted = self.serving.is_wanted(key);
            let kind = self.kinds.get(&key.kind).filter(|_| is_wanted);
            let Some((kind, created)) = kind.and_then(|kind| Some((kind, created(&self.data_sets, kind.data_set)?)))
            else {
                self.to_load.remove(at);
                continue;
            };
            let calls = kind.recipe.calls();
            let under_way = self.loading.iter().filter(|loading| loading.calls == calls).count();
            if under_way >= if calls { at_a_time.calling } else { at_a_time.plain } {
                at += 1;
                continue;
            }
            let (rows, cancel) = (created.data_set.rows_of(key.element), Arc::new(Cancel::default()));
            let to_load =
                ToLoad { key, source: kind.source.clone(), recipe: kind.recipe.clone(), rows, cancel: cancel.clone() };
            self.to_load.remove(at);
            self.loading.push(Loading { key, calls, cancel });
            return Some(to_load);
        }
        None
    }

    /// An element is not being read any more.
    pub(super) fn loaded(&mut self, cancel: &Arc<Cancel>) {
        self.loading.retain(|loading| !Arc::ptr_eq(&loading.cancel, cancel));
    }

    /// Which rows of an element could not be prepared when it was read.
    pub(super) fn damaged(&mut self, key: Key, damaged: Damaged) {
        match damaged.why_not(None) {
            None => drop(self.damaged.remove(&key)),
            Some(why) => {
                tracing::warn!(element = key.element, error = why, "a row cannot be prepared");
                self.damaged.insert(key, damaged);
            }
        }
    }

    /// Cancels the reading of what no one wants any more. It is read again, should somebody come.
    pub(super) fn cancel_unwanted(&mut self) {
        for Loading { key, cancel, .. } in &self.loading {
            if !self.serving.is_wanted(*key) {
                cancel.cancel();
            }
        }
    }

    /// An element of a kind was prepared, and has this many bytes.
    pub(super) fn prepared(&mut self, kind: u32, bytes: u64) {
        if let Some(kind) = self.kinds.get_mut(&kind) {
            kind.prepared = (kind.prepared.0 + 1, kind.prepared.1 + bytes);
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn info(&self, created: &Created) -> proto::DataSetInfo {
        let of = |job: &&JobInfo| job.data_set == created.number && !job.has_ended;
        proto::DataSetInfo {
            data_set: Some(created.message.clone()),
            rows: created.data_set.rows(),
            elements: created.data_set.elements(),
            bytes: created.data_set.bytes(),
            fingerprint: created.data_set.fingerprint(),
            jobs: self.jobs.values().filter(of).count() as u32 + created.elsewhere,
            error: String::new(),
        }
    }

    /// The kind of jobs with these columns and this preparation, if there is one.
    pub(super) fn kind(&self, data_set: u64, columns: &[String], recipe: &Recipe) -> Option<u32> {
        let same = |kind: &Kind| kind.data_set == data_set && kind.columns == columns && kind.recipe == *recipe;
        self.kinds.iter().find(|(_, kind)| same(kind)).map(|(kind, _)| *kind)
    }

    /// About how many bytes an element of a kind has, whose rows have this many at least once they are prepared.
    pub(super) fn bytes(&self, created: &Created, kind: Option<u32>, row_bytes: u64) -> u64 {
        let prepared = kind.and_then(|kind| self.kinds.get(&kind)?.bytes());
        let guessed = || {
            let prepared = row_bytes.saturating_mul(created.data_set.rows());
            created.data_set.bytes().max(prepared) / u64::from(created.data_set.elements().max(1))
        };
        prepared.unwrap_or_else(guessed).max(1)
    }

    pub(super) fn forget_kinds(&mut self, data_set: &str) {
        let number = self.data_sets.get(data_set).map(|created| created.number);
        // what is kept of them goes by and by: no one will ask for it
        self.kinds.retain(|_, kind| Some(kind.data_set) != number);
        self.damaged.retain(|key, _| self.kinds.contains_key(&key.kind));
    }

    pub(super) fn sampling(&mut self, job: JobId) -> Option<&mut Drawing> {
        let data_set = self.jobs.get(&job)?.data_set;
        Some(&mut created_mut(&mut self.data_sets, data_set)?.sampling)
    }

    pub(super) fn draw(&mut self) -> Vec<Drawn> {
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

    pub(super) fn end(&mut self, job: JobId, why: &tonic::Status) {
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

    pub(super) fn to_come(&self, job: JobId, element: u32) -> usize {
        let Some(info) = self.jobs.get(&job) else { return 0 };
        let (kind, data_set) = (info.kind, info.data_set);
        let Some(created) = created(&self.data_sets, data_set) else { return 0 };
        created.sampling.to_come(element, |id| self.jobs.get(&id).is_some_and(|info| info.kind == kind))
    }

    /// A job goes.
    pub(super) fn leave(&mut self, job: JobId) {
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
    pub(super) fn expect_more(&mut self) {
        let more = |created: &mut Created| created.sampling.take_more_to_come().then_some(created.number);
        let data_sets: Vec<u64> = self.data_sets.values_mut().filter_map(more).collect();
        let of = |kind: &Kind| data_sets.contains(&kind.data_set);
        let kinds: Vec<u32> = self.kinds.iter().filter(|(_, kind)| of(kind)).map(|(number, _)| *number).collect();
        for kind in kinds {
            self.expect(kind);
        }
    }

    /// Another number of jobs will come for what is kept of a kind.
    pub(super) fn expect(&mut self, kind: u32) {
        let Some(data_set) = self.kinds.get(&kind).map(|kind| kind.data_set) else { return };
        let Some(created) = created(&self.data_sets, data_set) else { return };
        let of = |id: JobId| self.jobs.get(&id).is_some_and(|info| info.kind == kind);
        self.serving.expect(|key| (key.kind == kind).then(|| created.sampling.to_come(key.element, of)));
    }

    pub(super) fn deliver(&mut self, job: JobId, ticket: u64, epoch: u64, element: u32, rows: Rows) {
        let Some(info) = self.jobs.get_mut(&job) else { return };
        let Some(created) = created(&self.data_sets, info.data_set) else { return };
        let chosen = info.selection.of(created.data_set.rows_of(element));
        let all = created.data_set.rows_of(element);
        let damaged = self.damaged.get(&Key { kind: info.kind, element });
        let rows = match damaged.and_then(|damaged| damaged.why_not(chosen.as_ref())) {
            Some(why) if !matches!(rows, Rows::Error(_)) => {
                self.serving.refused(job);
                // the job gives the ticket back at once
                Rows::Error(why.into())
            }
            _ => rows,
        };
        if !matches!(rows, Rows::Error(_)) {
            info.rows += chosen.as_ref().map_or(all.end - all.start, |bits| bits.count_set_bits() as u64);
        }
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

    pub(super) fn is_stalled(&self, (job, info): &(&JobId, &JobInfo)) -> bool {
        info.moved.elapsed() > STALLED && self.serving.held(**job).is_some_and(|(_, is_full)| is_full)
    }

    pub(super) fn job_status(&self, (job, info): (&JobId, &JobInfo)) -> proto::JobStatus {
        let created = created(&self.data_sets, info.data_set);
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
    pub(super) fn is_busy(&self) -> bool {
        self.elsewhere > 0 || !self.sampling.is_empty()
    }
}

impl Kind {
    /// Bytes of an element as it was prepared, on average; None before there was one.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.prepared.1.checked_div(self.prepared.0)
    }
}

/// By which a process is known, also if another one gets its number.
pub(super) fn handle_of(process: u32) -> Option<OwnedFd> {
    let process = Pid::from_raw(i32::try_from(process).ok()?)?;
    pidfd_open(process, PidfdFlags::empty()).ok()
}

pub(super) fn has_ended(process: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(process, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&at_once)).is_ok_and(|ended| ended > 0)
}
