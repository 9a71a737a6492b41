//! What is read for whom, what is kept, and who gets what: the loader's and the cache's books (sections E.2 and E.3 of
//! JOADER's appendix).
//!
//! It guarantees that each job gets what it has drawn, in the order in which it has; that requests for the same element
//! with the same preparation are merged while it is read and while it is kept; that what a job holds stays where it is
//! until the job gives it back; and that a job which holds or claims much stops no one: if there is no room, those that
//! wait longest lose what is kept for them and get it later, and what still finds no room goes outside of the memory.
//!
//! Nothing in it knows of time, threads or bytes: it gives [`Action`]s to anyone who does.

use crate::room::{Room, Rooms};
use crate::sampling::JobId;
use joader::{Policy, RefCnt, Use, Victim};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// An element as it was read and prepared. Jobs whose keys are equal share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Data set, columns and preparation, by a number.
    pub kind: u32,
    /// Which element.
    pub element: u32,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Read and prepare an element, then ask for [`Serving::place`].
    Load(Key),
    /// A job gets an element.
    Deliver {
        /// Which job.
        job: JobId,
        /// What it will give back; 0 if that is nothing.
        ticket: u64,
        /// Its epoch.
        epoch: u64,
        /// The element.
        element: u32,
        /// Where it is.
        rows: Rows,
    },
}

/// Where the rows of an element are.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// In the memory.
    Room(Room),
    /// There was no room.
    Outside(Outside),
    /// They cannot be read.
    Error(Arc<str>),
}

/// Rows outside of the memory.
pub type Outside = bytes::Bytes;

/// What was counted, of one job or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Elements that were delivered.
    pub elements: u64,
    /// Of them: read for this job,
    pub loads: u64,
    /// being read for another one when they were drawn,
    pub merged: u64,
    /// and there when they were drawn.
    pub hits: u64,
    /// Read again for this job: what was kept for it had to go.
    pub again: u64,
    /// Delivered outside of the memory.
    pub outside: u64,
    /// Delivered as an error.
    pub errors: u64,
}

/// Counts of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Elements that were read and prepared, and their bytes.
    pub loads: u64,
    /// See `loads`.
    pub bytes_loaded: u64,
    /// Bytes that jobs got.
    pub bytes_delivered: u64,
    /// Elements that went to make room.
    pub evictions: u64,
    /// Reads that failed.
    pub errors: u64,
    /// Elements that found no room.
    pub outside: u64,
}

enum State {
    /// Being read; the number of jobs that wait does not matter.
    Loading,
    /// Being written to its room.
    Writing(Room),
    Kept(Room),
    /// Kept outside of the memory for those who claim it.
    Outside(Outside),
}

struct Entry {
    number: u32,
    state: State,
    /// who has drawn it and not got it
    claims: BTreeSet<JobId>,
    /// who has got it and not given it back
    pins: usize,
    usage: Use,
}

struct Claim {
    epoch: u64,
    element: u32,
    /// it cannot be read
    error: Option<Arc<str>>,
}

struct ServedJob {
    kind: u32,
    queue: VecDeque<Claim>,
    /// how many elements more it may hold
    credits: u32,
    /// by ticket; None for what is outside of the memory
    held: BTreeMap<u64, Option<Key>>,
    next_ticket: u64,
    counts: Counts,
    /// it could have more, but holds all it may
    is_full: bool,
    /// and has given nothing back for long
    is_stalled: bool,
}

/// The books.
pub struct Serving {
    rooms: Rooms,
    entries: HashMap<Key, Entry>,
    keys: HashMap<u32, Key>,
    next_number: u32,
    policy: RefCnt,
    jobs: BTreeMap<JobId, ServedJob>,
    actions: Vec<Action>,
    taken: Vec<JobId>,
    time: u64,
    totals: Totals,
    /// bytes that are kept outside of the memory
    outside: u64,
}

impl Serving {
    /// Books for this memory.
    pub fn new(rooms: Rooms) -> Serving {
        Serving {
            rooms,
            entries: HashMap::new(),
            keys: HashMap::new(),
            next_number: 0,
            policy: RefCnt::default(),
            jobs: BTreeMap::new(),
            actions: Vec::new(),
            taken: Vec::new(),
            time: 0,
            totals: Totals::default(),
            outside: 0,
        }
    }

    /// A job comes that gets elements of a kind, and holds this many at most.
    pub fn join(&mut self, job: JobId, kind: u32, window: u32) {
        let served = ServedJob {
            kind,
            queue: VecDeque::new(),
            credits: window,
            held: BTreeMap::new(),
            next_ticket: 1,
            counts: Counts::default(),
            is_full: false,
            is_stalled: false,
        };
        self.jobs.insert(job, served);
    }

    /// A job goes: what it claims and holds is free at once.
    pub fn leave(&mut self, job: JobId) {
        self.stop(job);
        let Some(served) = self.jobs.remove(&job) else { return };
        for key in served.held.into_values().flatten() {
            self.change(key, |entry| entry.pins -= 1);
        }
    }

    /// A job gets nothing more: what it claims is free at once, and what it holds when it gives it back.
    pub fn stop(&mut self, job: JobId) {
        let Some(served) = self.jobs.get_mut(&job) else { return };
        served.is_full = false;
        let kind = served.kind;
        for claim in std::mem::take(&mut served.queue) {
            let key = Key { kind, element: claim.element };
            self.change(key, |entry| {
                entry.claims.remove(&job);
            });
        }
    }

    /// A job has drawn an element, which `to_come` others have still to draw.
    pub fn draw(&mut self, job: JobId, epoch: u64, element: u32, to_come: usize) {
        let Some(served) = self.jobs.get_mut(&job) else { return };
        served.queue.push_back(Claim { epoch, element, error: None });
        let key = Key { kind: served.kind, element };
        match self.entries.get(&key).map(|entry| &entry.state) {
            None => served.counts.loads += 1,
            Some(State::Loading | State::Writing(_)) => served.counts.merged += 1,
            Some(State::Kept(_) | State::Outside(_)) => served.counts.hits += 1,
        }
        self.claim(key, job, to_come);
        self.deliver(job);
    }

    /// A job gives back what it got by this ticket. Nothing happens if it has none such.
    pub fn done(&mut self, job: JobId, ticket: u64) {
        let Some(served) = self.jobs.get_mut(&job) else { return };
        let Some(key) = served.held.remove(&ticket) else { return };
        served.credits += 1;
        served.is_stalled = false;
        if let Some(key) = key {
            self.change(key, |entry| entry.pins -= 1);
        }
        self.deliver(job);
    }

    /// A job that holds all it may has given nothing back for long: what is kept for it goes first from now on.
    pub fn stalled(&mut self, job: JobId) {
        if let Some(served) = self.jobs.get_mut(&job) {
            served.is_stalled = true;
        }
    }

    /// Whether anybody waits for an element that is to be read. If not, it is forgotten.
    pub fn is_wanted(&mut self, key: Key) -> bool {
        let wanted = self.entries.get(&key).is_some_and(|entry| !entry.claims.is_empty());
        if !wanted && self.entries.get(&key).is_some_and(|entry| matches!(entry.state, State::Loading)) {
            self.remove(key);
        }
        wanted
    }

    /// An element was read: room for this many bytes of it, to be written before [`Serving::written`]; None if it does
    /// not exist, so that it goes [`Serving::outside`].
    pub fn place(&mut self, key: Key, bytes: u64) -> Option<Room> {
        self.totals.loads += 1;
        self.totals.bytes_loaded += bytes;
        let room = self.make_room(bytes)?;
        match self.entries.get_mut(&key) {
            Some(entry) if matches!(entry.state, State::Loading) => {
                entry.state = State::Writing(room);
                Some(room)
            }
            _ => {
                self.rooms.free(room);
                None
            }
        }
    }

    /// An element was written to its room.
    pub fn written(&mut self, key: Key) {
        if let Some(entry) = self.entries.get_mut(&key)
            && let State::Writing(room) = entry.state
        {
            entry.state = State::Kept(room);
            self.arrived(key);
        }
    }

    /// An element that found no room is there.
    pub fn outside(&mut self, key: Key, rows: Outside) {
        if let Some(entry) = self.entries.get_mut(&key)
            && matches!(entry.state, State::Loading)
        {
            self.outside += rows.len() as u64;
            self.totals.outside += 1;
            entry.state = State::Outside(rows);
            self.arrived(key);
        }
    }

    /// An element cannot be read: each job that waits for it gets the error, in the order in which it has drawn
    /// (elements of the next epoch do not come before the last of this one), and it is read again for others.
    pub fn failed(&mut self, key: Key, error: &str) {
        self.totals.errors += 1;
        let error: Arc<str> = error.into();
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let waiting = std::mem::take(&mut entry.claims);
        self.remove(key);
        for job in waiting {
            let Some(served) = self.jobs.get_mut(&job) else { continue };
            let claim = served.queue.iter_mut().find(|claim| claim.element == key.element && claim.error.is_none());
            let Some(claim) = claim else { continue };
            claim.error = Some(error.clone());
            self.deliver(job);
        }
    }

    /// What was delivered last to a job is an error for it, though others may have it.
    pub fn refused(&mut self, job: JobId) {
        if let Some(served) = self.jobs.get_mut(&job) {
            served.counts.elements -= 1;
            served.counts.errors += 1;
        }
    }

    /// What is kept for a job may go from now on.
    fn drop_claims(&mut self, job: JobId) {
        let Some(served) = self.jobs.get(&job) else { return };
        let kind = served.kind;
        let claimed: Vec<Key> = served.queue.iter().map(|claim| Key { kind, element: claim.element }).collect();
        for key in claimed {
            self.change(key, |entry| {
                if !matches!(entry.state, State::Loading | State::Writing(_)) {
                    entry.claims.remove(&job);
                    entry.usage.to_come += 1;
                }
            });
        }
    }

    /// Another number of jobs have still to draw each element, because some have left or begun an epoch.
    /// None leaves the number as it is.
    pub fn expect(&mut self, to_come: impl Fn(Key) -> Option<usize>) {
        let keys: Vec<Key> = self.entries.keys().copied().collect();
        for key in keys {
            if let Some(to_come) = to_come(key) {
                self.change(key, |entry| entry.usage.to_come = to_come);
            }
        }
    }

    /// What is to be done since this was last asked for.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Jobs that have taken what they had drawn, once for each element, since this was last asked for.
    pub fn take_taken(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.taken)
    }

    /// What a job got.
    pub fn counts(&self, job: JobId) -> Option<Counts> {
        self.jobs.get(&job).map(|served| served.counts)
    }

    /// How many elements a job holds, and whether it could have more if it gave some back.
    pub fn held(&self, job: JobId) -> Option<(usize, bool)> {
        self.jobs.get(&job).map(|served| (served.held.len(), served.is_full))
    }

    /// What was done for all jobs.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Elements that are kept, and bytes of the memory in use.
    pub fn kept(&self) -> (usize, u64) {
        (self.entries.len(), self.rooms.used())
    }

    fn claim(&mut self, key: Key, job: JobId, to_come: usize) {
        self.time += 1;
        let now = self.time;
        if !self.entries.contains_key(&key) {
            let number = self.next_number();
            self.keys.insert(number, key);
            let usage = Use { to_come, read_at: now, used_at: now };
            let entry = Entry { number, state: State::Loading, claims: BTreeSet::from([job]), pins: 0, usage };
            self.entries.insert(key, entry);
            self.actions.push(Action::Load(key));
            return;
        }
        self.change(key, |entry| {
            entry.claims.insert(job);
            entry.usage = Use { to_come, used_at: now, ..entry.usage };
        });
    }

    fn next_number(&mut self) -> u32 {
        loop {
            self.next_number = self.next_number.wrapping_add(1);
            if !self.keys.contains_key(&self.next_number) {
                return self.next_number;
            }
        }
    }

    /// Gives a job what it has drawn, as far as that is there and it may hold it.
    fn deliver(&mut self, job: JobId) {
        loop {
            let Some(served) = self.jobs.get_mut(&job) else { return };
            let Some(claim) = served.queue.front() else {
                served.is_full = false;
                return;
            };
            if let Some(error) = claim.error.clone() {
                let (epoch, element, rows) = (claim.epoch, claim.element, Rows::Error(error));
                served.queue.pop_front();
                served.counts.errors += 1;
                self.taken.push(job);
                self.actions.push(Action::Deliver { job, ticket: 0, epoch, element, rows });
                continue;
            }
            let key = Key { kind: served.kind, element: claim.element };
            served.is_full = served.credits == 0;
            if served.is_full {
                return;
            }
            let claimed = self.entries.get(&key).is_some_and(|entry| entry.claims.contains(&job));
            if !claimed {
                // it had to go while the job waited for others
                if !self.entries.contains_key(&key) {
                    served.counts.again += 1;
                }
                let to_come = self.entries.get(&key).map_or(0, |entry| entry.usage.to_come.saturating_sub(1));
                self.claim(key, job, to_come);
            }
            let Some(entry) = self.entries.get(&key) else { return };
            let (rows, bytes) = match &entry.state {
                State::Loading | State::Writing(_) => return,
                State::Kept(room) => (Rows::Room(*room), room.bytes()),
                State::Outside(rows) => (Rows::Outside(rows.clone()), rows.len() as u64),
            };
            let Some(served) = self.jobs.get_mut(&job) else { return };
            let Some(claim) = served.queue.pop_front() else { return };
            served.credits -= 1;
            served.counts.elements += 1;
            self.totals.bytes_delivered += bytes;
            let is_outside = matches!(rows, Rows::Outside(_));
            let ticket = served.next_ticket;
            served.next_ticket += 1;
            served.counts.outside += u64::from(is_outside);
            served.held.insert(ticket, (!is_outside).then_some(key));
            self.taken.push(job);
            let (epoch, element) = (claim.epoch, claim.element);
            self.actions.push(Action::Deliver { job, ticket, epoch, element, rows });
            self.change(key, |entry| {
                entry.claims.remove(&job);
                entry.pins += usize::from(!is_outside);
            });
        }
    }

    fn arrived(&mut self, key: Key) {
        let waiting: Vec<JobId> = self.entries.get(&key).into_iter().flat_map(|entry| &entry.claims).copied().collect();
        // may go from now on, if no one waits
        self.change(key, |_| ());
        for job in waiting {
            self.deliver(job);
        }
    }

    /// Changes an entry, and tells the policy whether it may go.
    fn change(&mut self, key: Key, change: impl FnOnce(&mut Entry)) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        self.policy.remove(entry.number);
        change(entry);
        let is_free = entry.claims.is_empty() && entry.pins == 0;
        match entry.state {
            State::Kept(_) if is_free => self.policy.insert(entry.number, entry.usage),
            State::Outside(_) if is_free => self.remove(key),
            _ => {}
        }
    }

    /// Forgets an element that no one holds.
    fn remove(&mut self, key: Key) {
        if let Some(entry) = self.entries.remove(&key) {
            self.policy.remove(entry.number);
            self.keys.remove(&entry.number);
            match entry.state {
                State::Kept(room) | State::Writing(room) => self.rooms.free(room),
                State::Outside(rows) => self.outside -= rows.len() as u64,
                State::Loading => {}
            }
        }
    }

    fn make_room(&mut self, bytes: u64) -> Option<Room> {
        if bytes > self.rooms.largest() {
            return None;
        }
        self.time += 1;
        let new = Use { to_come: 1, read_at: self.time, used_at: self.time };
        loop {
            if let Some(room) = self.rooms.take(bytes) {
                return Some(room);
            }
            match self.policy.victim(new) {
                Victim::Cached(number) => {
                    if let Some(key) = self.keys.get(&number).copied() {
                        self.totals.evictions += 1;
                        self.remove(key);
                    }
                }
                Victim::New => return None,
                Victim::None => {
                    let is_much_outside = self.outside > self.rooms.bytes() / 4;
                    let job = self.most_claiming(|served| served.is_stalled || is_much_outside)?;
                    self.drop_claims(job);
                }
            }
        }
    }

    /// Of the jobs that can get nothing now because they hold all they may, the one for which the most is kept.
    fn most_claiming(&self, of: impl Fn(&ServedJob) -> bool) -> Option<JobId> {
        let kept = |job: &JobId, served: &ServedJob| {
            let is_kept = |claim: &&Claim| {
                let entry = self.entries.get(&Key { kind: served.kind, element: claim.element });
                entry.is_some_and(|entry| {
                    entry.claims.contains(job) && matches!(entry.state, State::Kept(_) | State::Outside(_))
                })
            };
            served.queue.iter().filter(is_kept).count()
        };
        let full = self.jobs.iter().filter(|(_, served)| served.is_full && of(served));
        full.map(|(job, served)| (kept(job, served), *job)).filter(|(kept, _)| *kept > 0).max().map(|(_, job)| job)
    }
}

#[cfg(test)]
mod tests;
