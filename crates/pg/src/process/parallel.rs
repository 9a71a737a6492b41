//! Worker processes under PostgreSQL's parallel context.
//!
//! A worker sees what its leader sees: snapshot, user, settings, rows that the transaction has written and not
//! committed. What fails in it is raised in the leader, with its own text. When the leader's (sub)transaction ends by
//! an ERROR, PostgreSQL stops the workers and frees what they share; the destructors here do nothing.
//!
//! The leader [launches](Workers::launch) workers of a kind, known by its name, and tells all of them the same; leader
//! and worker then talk through a queue in each direction, and may share memory. Nothing can be written, no
//! subtransaction begun, until the workers have [finished](Workers::finish).

#[cfg(feature = "pg_test")]
mod failing_launches;

use super::all_gather::AllGather;
use super::dsm::no_room;
use super::library::{self, build};
use super::queue::Queue;
use crate::errors::{Error, raise};
use crate::executor::plan_bytes::PlanBytes;
use crate::snapshot::Snapshot;
use pgrx::prelude::*;
use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::ptr::null_mut;
use std::rc::Rc;

/// A kind of workers.
pub struct WorkerKind {
    /// by which a worker process finds it
    pub name: &'static CStr,
    /// what they do; an ERROR is raised in the leader, too
    pub main: fn(Worker),
}

thread_local! {
    static KINDS: Cell<&'static [WorkerKind]> = const { Cell::new(&[]) };
}

/// Makes kinds of workers known, once per backend.
pub fn install(kinds: &'static [WorkerKind]) {
    KINDS.set(kinds);
}

/// What workers are to do.
pub struct Launch<'a> {
    /// name of their kind
    pub kind: &'static CStr,
    /// how many there should be, at least 1
    pub workers: usize,
    /// what all of them get
    pub data: &'a [&'a [u8]],
    /// the query that they read
    pub plan: Option<&'a PlanBytes>,
    /// are they, with the leader, to [give each other numbers](AllGather)?
    pub gathers: bool,
    /// bytes of each queue; larger messages wait until they have been read in part
    pub queue: usize,
    /// under which they run
    pub snapshot: Snapshot<'a>,
}

/// Why there are no workers.
pub type Unavailable = Cow<'static, str>;

/// Why, if there is no room for what processes share; what is missing behind it, if that is known.
pub const NO_SHARED_MEMORY: &str = "no shared memory";

/// Keys of what is in the segment of a parallel context. PostgreSQL's own are from 0xFFFFFFFFFFFF0001 on.
mod key {
    pub const KIND: u64 = 1;
    pub const SHARED: u64 = 2;
    /// buffers read and written, by worker
    pub const BUFFERS: u64 = 3;
    pub const WAL: u64 = 4;
    pub const SIZES: u64 = 5;
    /// of the leader
    pub const BUILD: u64 = 8;
    /// a query: its plan, and its text
    pub const PLAN: u64 = 6;
    pub const TEXT: u64 = 7;
    pub const DATA: u64 = 1 << 32;
    /// from worker to leader, and back
    pub const UP: u64 = 2 << 32;
    pub const DOWN: u64 = 3 << 32;
}

/// The library as CREATE FUNCTION names it, and its function that calls [`run`].
const LIBRARY: &CStr = c"$libdir/corgipile";
const ENTRY: &CStr = c"corgipile_worker_main";

const CACHE_LINE: usize = 64;

/// Bytes that PostgreSQL may add for what a session has: settings, snapshots, queues of errors, and a segment that it
/// makes for its first workers.
const OF_POSTGRES: usize = 1 << 20;

/// Worker processes, as their leader sees them.
pub struct Workers {
    context: *mut pg_sys::ParallelContext,
    up: Vec<Queue>,
    down: Vec<Queue>,
    /// for an [`AllGather`]: where it begins, and its size
    shared: *mut u8,
    shared_bytes: usize,
    has_joined: Cell<bool>,
    /// is that memory still there?
    is_there: Rc<Cell<bool>>,
}

/// Why this backend can have no workers at all, if so.
pub fn unavailable() -> Option<Unavailable> {
    // SAFETY: reads settings and the transaction's state.
    unsafe {
        if !pg_sys::IsUnderPostmaster {
            Some(Cow::Borrowed("single-user mode"))
        } else if pg_sys::IsInParallelMode() {
            Some(Cow::Borrowed("inside a parallel operation"))
        } else if pg_sys::max_parallel_workers == 0 {
            Some(Cow::Borrowed("max_parallel_workers is 0"))
        } else if pg_sys::max_worker_processes == 0 {
            Some(Cow::Borrowed("max_worker_processes is 0"))
        } else if library::is_replaced() {
            Some(Cow::Borrowed("the library was replaced in this session"))
        } else {
            None
        }
    }
}

impl Workers {
    /// Starts workers: as many as are to be had, one at least.
    ///
    /// # Errors
    /// Why it could not be made; then everything is as before.
    pub fn launch(launch: &Launch) -> std::result::Result<Workers, Unavailable> {
        Self::launch_by(build(), launch)
    }

    /// The same for a leader of this build.
    pub fn launch_by(build: &CStr, launch: &Launch) -> std::result::Result<Workers, Unavailable> {
        if let Some(why) = unavailable() {
            return Err(why);
        }
        let mut workers = Workers::prepare(launch)?;
        let context = workers.context;
        // SAFETY: the documented sequence of calls; every way out of it that is no ERROR destroys what was made.
        unsafe {
            let queues = workers.fill(build, launch);
            pg_sys::LaunchParallelWorkers(context);
            let launched = (*context).nworkers_launched as usize;
            if launched == 0 {
                workers.destroy();
                return Err(Cow::Borrowed("no worker process was free"));
            }
            for (worker, (up, down)) in queues.into_iter().take(launched).enumerate() {
                let handle = (*(*context).worker.add(worker)).bgwhandle;
                workers.up.push(Queue::attach(up, (*context).seg, handle));
                workers.down.push(Queue::attach(down, (*context).seg, handle));
            }
            Ok(workers)
        }
    }

    /// Makes the context and its segment.
    fn prepare(launch: &Launch) -> std::result::Result<Workers, Unavailable> {
        // SAFETY: the documented sequence of calls; every way out of it that is no ERROR destroys what was made.
        unsafe {
            pg_sys::EnterParallelMode();
            let context =
                pg_sys::CreateParallelContext(LIBRARY.as_ptr(), ENTRY.as_ptr(), launch.workers.max(1) as c_int);
            let mut workers = Workers {
                context,
                up: Vec::new(),
                down: Vec::new(),
                shared: null_mut(),
                shared_bytes: if launch.gathers { AllGather::bytes(launch.workers.max(1) + 1) } else { 0 },
                has_joined: Cell::new(false),
                is_there: Rc::new(Cell::new(true)),
            };
            workers.estimate(launch);
            if let Some(why) = no_room(pg_sys::shm_toc_estimate(&mut (*context).estimator) + OF_POSTGRES) {
                workers.destroy();
                return Err(Cow::Owned(format!("{NO_SHARED_MEMORY}: {why}")));
            }
            pg_sys::PushActiveSnapshot(launch.snapshot.as_ptr());
            pg_sys::InitializeParallelDSM(context);
            pg_sys::PopActiveSnapshot();
            // without a word if there are too many segments
            if (*context).nworkers == 0 || (*context).seg.is_null() {
                workers.destroy();
                return Err(Cow::Borrowed(NO_SHARED_MEMORY));
            }
            Ok(workers)
        }
    }

    /// Makes what workers share, and destroys it: for tests of what goes wrong meanwhile.
    #[cfg(all(feature = "pg_test", feature = "pg15"))]
    pub fn rehearse(launch: &Launch) -> std::result::Result<(), Unavailable> {
        // SAFETY: no one else has them.
        Workers::prepare(launch).map(|workers| unsafe { workers.destroy() })
    }

    /// Asks for room in the segment.
    ///
    /// # Safety
    /// The context has no segment so far.
    unsafe fn estimate(&mut self, launch: &Launch) {
        let queues = 2 * launch.workers;
        let usage = launch.workers * (size_of::<pg_sys::BufferUsage>() + size_of::<pg_sys::WalUsage>());
        let data = launch.data.iter().map(|data| data.len());
        let plan = launch.plan.map_or([0, 0], |plan| [plan.plan(), plan.text()].map(|text| text.count_bytes() + 1));
        let chunks = [usage, self.shared_bytes + CACHE_LINE, size_of::<u64>() * (launch.data.len() + 2), 256, 256];
        let sizes = data.chain(plan).chain(chunks).chain(std::iter::repeat_n(launch.queue, queues));
        // SAFETY: the estimator is the context's; each chunk takes its size rounded up, and one key.
        unsafe {
            let estimator = &mut (*self.context).estimator;
            for size in sizes {
                let size = size.next_multiple_of(pg_sys::ALIGNOF_BUFFER as usize);
                estimator.space_for_chunks = pg_sys::add_size(estimator.space_for_chunks, size);
                estimator.number_of_keys += 1;
            }
            estimator.number_of_keys += 1; // usage is two chunks
            estimator.space_for_chunks += pg_sys::ALIGNOF_BUFFER as usize;
        }
    }

    /// Puts into the segment the workers' instructions, and gives the queues.
    ///
    /// # Safety
    /// The segment was made, with the room that [`Workers::estimate`] has asked for.
    unsafe fn fill(&mut self, build: &CStr, launch: &Launch) -> Vec<(*mut pg_sys::shm_mq, *mut pg_sys::shm_mq)> {
        // SAFETY: the caller's promise.
        unsafe {
            let toc = (*self.context).toc;
            let insert = |key, bytes: &[u8]| {
                let chunk = pg_sys::shm_toc_allocate(toc, bytes.len()).cast::<u8>();
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), chunk, bytes.len());
                pg_sys::shm_toc_insert(toc, key, chunk.cast());
            };
            insert(key::BUILD, build.to_bytes_with_nul());
            insert(key::KIND, launch.kind.to_bytes_with_nul());
            for (i, data) in launch.data.iter().enumerate() {
                insert(key::DATA + i as u64, data);
            }
            // how many chunks there are, then the size of each, and of what is shared
            let sizes = std::iter::once(launch.data.len()).chain(launch.data.iter().map(|data| data.len()));
            let sizes: Vec<u8> =
                sizes.chain([self.shared_bytes]).flat_map(|size| (size as u64).to_ne_bytes()).collect();
            insert(key::SIZES, &sizes);
            if let Some(plan) = launch.plan {
                insert(key::PLAN, plan.plan().to_bytes_with_nul());
                insert(key::TEXT, plan.text().to_bytes_with_nul());
            }
            insert(key::BUFFERS, &vec![0; launch.workers * size_of::<pg_sys::BufferUsage>()]);
            insert(key::WAL, &vec![0; launch.workers * size_of::<pg_sys::WalUsage>()]);
            let shared = pg_sys::shm_toc_allocate(toc, self.shared_bytes + CACHE_LINE).cast::<u8>();
            let shared = shared.add(shared.align_offset(CACHE_LINE));
            std::ptr::write_bytes(shared, 0, self.shared_bytes);
            pg_sys::shm_toc_insert(toc, key::SHARED, shared.cast());
            self.shared = shared;
            let queue = |key| {
                let queue = pg_sys::shm_mq_create(pg_sys::shm_toc_allocate(toc, launch.queue), launch.queue);
                pg_sys::shm_toc_insert(toc, key, queue.cast());
                queue
            };
            (0..launch.workers as u64)
                .map(|worker| {
                    let (up, down) = (queue(key::UP + worker), queue(key::DOWN + worker));
                    pg_sys::shm_mq_set_receiver(up, pg_sys::MyProc);
                    pg_sys::shm_mq_set_sender(down, pg_sys::MyProc);
                    (up, down)
                })
                .collect()
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.up.len()
    }

    /// The leader's way to the workers, and theirs to it: number 0 of them all.
    /// It is good until the workers are finished.
    ///
    /// # Panics
    /// If it was given before, or the workers were launched without.
    pub fn all_gather(&self) -> AllGather {
        assert!(!self.has_joined.replace(true), "the leader has joined before");
        // SAFETY: prepare() has made the memory for the leader and as many workers as were to be launched, or more than
        // there are; it is zeroed and aligned. Each worker's number is its own.
        unsafe { AllGather::join(self.shared, self.shared_bytes, self.count() + 1, 0, self.is_there.clone()) }
    }

    /// Waits until all of them run. PostgreSQL's own error if one cannot be started any more.
    pub fn wait_to_attach(&self) {
        // SAFETY: the context is there until the workers have finished.
        unsafe { pg_sys::WaitForParallelWorkersToAttach(self.context) }
    }

    /// The next message of a worker, waited for. None if it has ended; if by an error, that is raised.
    pub fn receive(&self, worker: usize) -> Option<Vec<u8>> {
        let message = self.up[worker].receive();
        if message.is_none() {
            // SAFETY: the context is there until the workers have finished; raises what they have reported.
            unsafe { pg_sys::WaitForParallelWorkersToFinish(self.context) }
        }
        message
    }

    /// Sends a worker a message. False if it has ended; if by an error, that is raised.
    pub fn send(&self, worker: usize, message: &[u8]) -> bool {
        let sent = self.down[worker].send(message);
        if !sent {
            // SAFETY: the context is there until the workers have finished; raises what they have reported.
            unsafe { pg_sys::WaitForParallelWorkersToFinish(self.context) }
        }
        sent
    }

    /// Waits until all workers have ended, for which their queues are closed, and books what they have read on this
    /// process. An error of theirs is raised.
    pub fn finish(self) {
        // SAFETY: the documented sequence; the usage was written by workers that have ended.
        unsafe {
            for queue in self.up.iter().chain(&self.down) {
                queue.detach();
            }
            pg_sys::WaitForParallelWorkersToFinish(self.context);
            let toc = (*self.context).toc;
            let buffers = pg_sys::shm_toc_lookup(toc, key::BUFFERS, false).cast::<pg_sys::BufferUsage>();
            let wal = pg_sys::shm_toc_lookup(toc, key::WAL, false).cast::<pg_sys::WalUsage>();
            for worker in 0..self.count() {
                pg_sys::InstrAccumParallelQuery(buffers.add(worker), wal.add(worker));
            }
            self.destroy();
        }
    }

    /// Frees everything; workers that still run are stopped.
    ///
    /// # Safety
    /// No one uses what was shared.
    unsafe fn destroy(self) {
        // SAFETY: the context was created in launch.
        unsafe {
            self.is_there.set(false);
            pg_sys::DestroyParallelContext(self.context);
            pg_sys::ExitParallelMode();
        }
    }
}

/// What a worker process sees.
pub struct Worker {
    toc: *mut pg_sys::shm_toc,
    up: Queue,
    down: Queue,
    has_joined: Cell<bool>,
}

impl Worker {
    /// Chunk `i` of what the leader has told.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn data(&self, i: usize) -> &[u8] {
        // SAFETY: the leader has put the chunk there, with its size behind how many there are.
        unsafe {
            let sizes = pg_sys::shm_toc_lookup(self.toc, key::SIZES, false).cast::<u64>().cast_const();
            assert!((i as u64) < sizes.read_unaligned(), "a chunk that the leader has told");
            let size = sizes.add(1 + i).read_unaligned() as usize;
            let data = pg_sys::shm_toc_lookup(self.toc, key::DATA + i as u64, false);
            std::slice::from_raw_parts(data.cast_const().cast(), size)
        }
    }

    /// The query that the leader has planned. An ERROR if it has told of none.
    pub fn plan_bytes(&self) -> PlanBytes {
        // SAFETY: the leader, a process of the same server, has put both there, as C strings.
        unsafe {
            let text = |key| CStr::from_ptr(pg_sys::shm_toc_lookup(self.toc, key, false).cast_const().cast());
            PlanBytes::from_parts(text(key::PLAN), text(key::TEXT))
        }
    }

    /// This worker's number, from 1: the leader's is 0.
    pub fn number(&self) -> usize {
        // SAFETY: set when the process began.
        unsafe { pg_sys::ParallelWorkerNumber as usize + 1 }
    }

    /// This worker's way to the leader and the other workers, `processes` in all: as many as the leader says.
    ///
    /// # Panics
    /// If it was given before, or the workers were launched without.
    pub fn all_gather(&self, processes: usize) -> AllGather {
        assert!(!self.has_joined.replace(true), "this worker has joined before");
        // SAFETY: the leader has made the memory for itself and as many workers as were to be launched, zeroed and
        // aligned, and no process has the number of another.
        unsafe {
            let start = pg_sys::shm_toc_lookup(self.toc, key::SHARED, false).cast();
            let sizes = pg_sys::shm_toc_lookup(self.toc, key::SIZES, false).cast::<u64>().cast_const();
            let chunks = sizes.read_unaligned() as usize;
            let bytes = sizes.add(1 + chunks).read_unaligned() as usize;
            AllGather::join(start, bytes, processes, self.number(), Rc::new(Cell::new(true)))
        }
    }

    /// The next message of the leader, waited for. None if it wants no more.
    pub fn receive(&self) -> Option<Vec<u8>> {
        self.down.receive()
    }

    /// Sends the leader a message. False if it wants no more.
    pub fn send(&self, message: &[u8]) -> bool {
        self.up.send(message)
    }
}

/// What every worker process does.
///
/// # Safety
/// PostgreSQL has begun a parallel worker with these two.
pub unsafe fn run(segment: *mut pg_sys::dsm_segment, toc: *mut pg_sys::shm_toc) {
    // SAFETY: the leader has filled the segment; a process has one end of each of its queues.
    unsafe {
        let number = pg_sys::ParallelWorkerNumber as usize;
        let up = pg_sys::shm_toc_lookup(toc, key::UP + number as u64, false).cast();
        let down = pg_sys::shm_toc_lookup(toc, key::DOWN + number as u64, false).cast();
        pg_sys::shm_mq_set_sender(up, pg_sys::MyProc);
        pg_sys::shm_mq_set_receiver(down, pg_sys::MyProc);
        let (up, down) = (Queue::attach(up, segment, null_mut()), Queue::attach(down, segment, null_mut()));
        let worker = Worker { toc, up, down, has_joined: Cell::new(false) };
        let text = |key| CStr::from_ptr(pg_sys::shm_toc_lookup(toc, key, false).cast());
        let kind = KINDS.get().iter().find(|kind| kind.name == text(key::KIND));
        let kind = kind.filter(|_| text(key::BUILD) == build());
        let kind = kind.unwrap_or_else(|| raise(&Error::OtherBuild));
        pg_sys::InstrStartParallelQuery();
        (kind.main)(worker);
        let buffers = pg_sys::shm_toc_lookup(toc, key::BUFFERS, false).cast::<pg_sys::BufferUsage>();
        let wal = pg_sys::shm_toc_lookup(toc, key::WAL, false).cast::<pg_sys::WalUsage>();
        pg_sys::InstrEndParallelQuery(buffers.add(number), wal.add(number));
    }
}

/// Shows in pg_stat_activity, and in the log if something fails, what a worker process is doing.
pub fn report_activity(query: &CStr) {
    // SAFETY: the text is kept as long as the process lives, which is but one query long.
    unsafe {
        pg_sys::debug_query_string = pg_sys::MemoryContextStrdup(pg_sys::TopMemoryContext, query.as_ptr());
        pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, pg_sys::debug_query_string);
    }
}
