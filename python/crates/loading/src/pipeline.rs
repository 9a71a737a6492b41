//! Threads that read buffers ahead.
//!
//! It guarantees that what is read ahead stays within a budget, unless a single buffer is more than that; that an
//! error, even a panic, in a thread reaches the one that waits for rows; and that threads end soon after no one wants
//! them.

use crate::batch::{MISSING, Pieces, Place, by_columns};
use crate::pieces::Piece;
use crate::plan::Plan;
use shuffle::BlockSequence;
use source::{Cancel, SourceError};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A lane's buffer, by lane and number.
pub(crate) type Name = (u32, u32);

/// A lane's buffer that was read, and the order of its rows.
pub(crate) struct Buffer {
    pub(crate) pieces: Vec<Pieces>,
    pub(crate) places: Vec<Place>,
    /// rows of the lane before these
    pub(crate) first: u64,
    /// memory it takes, about
    pub(crate) bytes: u64,
}

/// What is read, in which order, and how much of it at once.
pub(crate) struct Job {
    pub(crate) plan: Arc<Plan>,
    pub(crate) sequence: BlockSequence,
    pub(crate) epoch: u64,
    /// the lanes, in the order of their turns, and the first buffer of each that is wanted
    pub(crate) lanes: Vec<Name>,
    /// bytes that may be held, by the buffers in use and by those that are read ahead
    pub(crate) budget: u64,
}

/// A run of rows to be read: the buffer, the number of the run in it, the rows.
type Task = (Name, usize, Range<u64>);

/// A buffer that is being read.
#[derive(Default)]
struct Filling {
    parts: Vec<Option<Piece>>,
    runs: Vec<u64>,
    missing: usize,
    first: u64,
    bytes: u64,
}

#[derive(Default)]
struct State {
    /// the next buffer to begin: its number, and the place of its lane
    next: (u32, usize),
    tasks: VecDeque<Task>,
    filling: HashMap<Name, Filling>,
    full: HashMap<Name, Buffer>,
    held: u64,
    wanted: Option<Name>,
    failed: Option<SourceError>,
    closed: bool,
}

struct Shared {
    job: Job,
    cancel: Cancel,
    state: Mutex<State>,
    /// there is something to do
    work: Condvar,
    /// there is something to take
    done: Condvar,
}

/// Threads that read the buffers of a job.
pub(crate) struct Pipeline {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// threads are not there in a process that was forked off
    process: u32,
}

impl Pipeline {
    pub(crate) fn start(job: Job, threads: usize) -> std::io::Result<Pipeline> {
        let first = job.lanes.iter().map(|(_, buffer)| *buffer).min().unwrap_or(0);
        let state = Mutex::new(State { next: (first, 0), ..State::default() });
        let shared =
            Arc::new(Shared { job, cancel: Cancel::default(), state, work: Condvar::new(), done: Condvar::new() });
        let mut pipeline = Pipeline { shared, threads: Vec::new(), process: std::process::id() };
        for _ in 0..threads.max(1) {
            let shared = pipeline.shared.clone();
            let thread = std::thread::Builder::new().name("corgipile".to_owned()).spawn(move || shared.run())?;
            pipeline.threads.push(thread);
        }
        Ok(pipeline)
    }

    /// What is read.
    pub(crate) fn job(&self) -> &Job {
        &self.shared.job
    }

    /// The buffer of that name, which is asked for once; None if it is not read within `patience`.
    pub(crate) fn take(&self, name: Name, patience: Duration) -> Result<Option<Buffer>, SourceError> {
        if self.process != std::process::id() {
            return Err(SourceError::Invalid("an iterator cannot be used in a process that was forked off".to_owned()));
        }
        let mut state = self.shared.lock();
        if state.wanted != Some(name) {
            state.wanted = Some(name);
            self.shared.work.notify_all();
        }
        let wait = |state: &mut State| !state.full.contains_key(&name) && state.failed.is_none() && !state.closed;
        (state, _) = self.shared.done.wait_timeout_while(state, patience, wait).unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.failed.take() {
            // for the one that asks again
            state.closed = true;
            return Err(error);
        }
        if state.closed {
            return Err(SourceError::Cancelled);
        }
        let buffer = state.full.remove(&name);
        if buffer.is_some() {
            state.wanted = None;
        }
        Ok(buffer)
    }

    /// A buffer was used up, and its memory given back.
    pub(crate) fn release(&self, bytes: u64) {
        let mut state = self.shared.lock();
        state.held = state.held.saturating_sub(bytes);
        drop(state);
        self.shared.work.notify_all();
    }

    /// Reads a row at once, without the threads.
    pub(crate) fn read_now(&self, row: u64) -> Result<Buffer, SourceError> {
        let piece = self.shared.read(&(row..row + 1))?;
        let places = (0..piece.rows as u32).map(|row| (0, row)).collect();
        Ok(Buffer { pieces: by_columns(vec![piece]), places, first: 0, bytes: 0 })
    }

    /// Tells the threads to end.
    fn close(&self) {
        self.shared.cancel.cancel();
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
        self.shared.done.notify_all();
    }

    /// Ends the threads, and waits until they have ended.
    pub(crate) fn join(mut self) {
        if self.process == std::process::id() {
            self.close();
            self.threads.drain(..).for_each(|thread| drop(thread.join()));
        }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.close();
        } else {
            // After a fork, a thread that is not there may hold the lock for ever. And dropping a handle detaches the
            // thread whose memory it points to, which may be that of a thread of this process by now.
            std::mem::forget(std::mem::take(&mut self.threads));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each thread does.
    fn run(&self) {
        while let Some((name, number, rows)) = self.next_task() {
            let read = catch_unwind(AssertUnwindSafe(|| self.read(&rows)));
            let read = read.unwrap_or_else(|panic| {
                Err(SourceError::Invalid(format!(
                    "a thread that read rows {rows:?} panicked: {}",
                    panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref().copied()).unwrap_or("?")
                )))
            });
            match read {
                Ok(piece) => self.arrived(name, number, piece),
                Err(error) => return self.fail(error),
            }
        }
    }

    fn fail(&self, error: SourceError) {
        let mut state = self.lock();
        if !state.closed && state.failed.is_none() {
            state.failed = Some(error);
        }
        state.tasks.clear();
        drop(state);
        self.cancel.cancel();
        self.done.notify_all();
        self.work.notify_all();
    }

    fn read(&self, rows: &Range<u64>) -> Result<Piece, SourceError> {
        let plan = &self.job.plan;
        let batch = plan.source.read(rows.clone(), &self.cancel)?;
        if batch.num_rows() as u64 > rows.end - rows.start {
            return Err(SourceError::Invalid(format!("{} rows were read instead of {rows:?}", batch.num_rows())));
        }
        let place = |row: usize| format!("{}: ", plan.source.place(rows.start + row as u64));
        Piece::new(&plan.layout, &batch, &place)
    }

    /// Waits for something to do; None if nothing is left, or no one wants it.
    fn next_task(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if state.closed || self.cancel.check().is_err() {
                return None;
            }
            if let Some(task) = state.tasks.pop_front() {
                return Some(task);
            }
            if !self.begin_next(&mut state) {
                if state.next.0 >= self.job.sequence.buffers() {
                    return None;
                }
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Begins the next buffer, if there is one and there is room for it or it is waited for.
    fn begin_next(&self, state: &mut State) -> bool {
        let job = &self.job;
        let (number, place) = state.next;
        if number >= job.sequence.buffers() {
            return false;
        }
        let (lane, first) = job.lanes[place];
        let name = (lane, number);
        let share = job.sequence.share(&job.plan.blocks, &job.plan.lanes, lane, number);
        let skipped = number < first || share.runs.is_empty();
        let runs: Vec<u64> = share.runs.iter().map(|run| run.end - run.start).collect();
        let bytes = job.plan.bytes_of(runs.iter().sum());
        let waited_for = |name| !state.full.contains_key(&name) && !state.filling.contains_key(&name);
        let room = state.held == 0 || state.held + bytes <= job.budget || state.wanted.is_some_and(waited_for);
        if !skipped && !room {
            return false;
        }
        state.next = if place + 1 < job.lanes.len() { (number, place + 1) } else { (number + 1, 0) };
        if !skipped {
            state.held += bytes;
            state.tasks.extend(share.runs.into_iter().enumerate().map(|(i, rows)| (name, i, rows)));
            let parts = runs.iter().map(|_| None).collect();
            let filling = Filling { parts, missing: runs.len(), runs, first: share.first, bytes };
            state.filling.insert(name, filling);
            // for the other threads
            self.work.notify_all();
        }
        true
    }

    /// A run was read: if it was the last one of its buffer, that is shuffled.
    fn arrived(&self, name: Name, number: usize, piece: Piece) {
        let mut state = self.lock();
        let Some(filling) = state.filling.get_mut(&name) else { return };
        filling.parts[number] = Some(piece);
        filling.missing -= 1;
        if filling.missing > 0 {
            return;
        }
        let Some(filling) = state.filling.get_mut(&name).map(std::mem::take) else { return };
        drop(state);
        let buffer = self.shuffled(name, filling);
        let mut state = self.lock();
        state.filling.remove(&name);
        state.full.insert(name, buffer);
        drop(state);
        self.done.notify_all();
    }

    fn shuffled(&self, (lane, number): Name, filling: Filling) -> Buffer {
        let pieces: Vec<Piece> = filling.parts.into_iter().flatten().collect();
        // what was skipped counts as the last rows of its run
        let mut places: Vec<Place> = Vec::with_capacity(filling.runs.iter().sum::<u64>() as usize);
        for (i, (rows, piece)) in (0..).zip(filling.runs.iter().zip(&pieces)) {
            let there = piece.rows as u32;
            places.extend((0..*rows as u32).map(|row| if row < there { (i, row) } else { (MISSING, 0) }));
        }
        self.job.plan.shuffle(self.job.epoch, lane, number, &mut places);
        Buffer { pieces: by_columns(pieces), places, first: filling.first, bytes: filling.bytes }
    }
}
