//! What the thread that hears from the server, or reads without it, tells the one that iterates.

use super::mixing::Rows;
use crate::error::ServiceError;
use joader::ElementSet;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// An element that came.
pub(super) struct Arrived {
    pub(super) epoch: u64,
    pub(super) element: u32,
    pub(super) rows: Result<Rows, String>,
}

/// What a job knows of its data set.
#[derive(Clone, Debug)]
pub(super) struct DataSetInfo {
    pub(super) source: String,
    /// the same as long as the server is there that has said so; empty if the source has no such word
    pub(super) passing: String,
    pub(super) columns: Vec<String>,
    pub(super) fingerprint: u64,
    pub(super) rows: u64,
    pub(super) rows_of_job: u64,
    pub(super) elements: ElementSet,
    /// rows of the ranks that get the fewest and the most; 0 if the server has not said
    pub(super) rows_of_ranks: (u64, u64),
    /// elements that the job may hold at a time
    pub(super) window: u32,
    starts: Vec<u64>,
}

impl DataSetInfo {
    pub(super) fn of(registered: crate::proto::Registered) -> Result<DataSetInfo, ServiceError> {
        let data_set = registered.data_set.unwrap_or_default();
        let ranges = registered.elements.unwrap_or_default().ranges;
        let elements = ElementSet::from_ranges(ranges.iter().map(|range| range.start..range.end));
        Ok(DataSetInfo {
            source: data_set.source,
            passing: registered.passing,
            columns: data_set.columns,
            fingerprint: registered.fingerprint,
            rows: registered.rows,
            rows_of_job: registered.rows_of_job,
            elements: elements.map_err(|error| ServiceError::Refused(error.to_string()))?,
            rows_of_ranks: (registered.least_rows, registered.most_rows),
            window: registered.window,
            starts: registered.starts,
        })
    }

    /// How many elements there are, the job's and others.
    pub(super) fn all_elements(&self) -> u64 {
        if self.starts.is_empty() { self.rows } else { self.starts.len() as u64 }
    }

    pub(super) fn rows_of(&self, element: u32) -> std::ops::Range<u64> {
        if self.starts.is_empty() {
            return u64::from(element)..u64::from(element) + 1;
        }
        let start = |element: usize| self.starts.get(element).copied().unwrap_or(self.rows);
        start(element as usize)..start(element as usize + 1)
    }
}

/// How a job gets its elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It has not been told yet.
    #[default]
    Connecting,
    /// From the server.
    Connected,
    /// By reading by itself, because of this.
    Direct(String),
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct State {
    pub(super) mode: Mode,
    pub(super) info: Option<std::sync::Arc<DataSetInfo>>,
    /// elements that the job may hold at a time, as the last server has said
    pub(super) window: u32,
    /// the job cannot go on
    pub(super) failed: Option<ServiceError>,
    pub(super) closed: bool,
    arrived: VecDeque<Arrived>,
    /// the epoch in which elements arrive, and those that have not
    epoch: u64,
    missing: BTreeSet<u32>,
    pub(super) counts: Counts,
}

/// What a job was given, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Elements from the server's memory.
    pub shared: u64,
    /// Elements that came in messages, because there was no room.
    pub outside: u64,
    /// Elements that the job has read by itself.
    pub direct: u64,
    /// Elements that could not be read.
    pub errors: u64,
    /// How often the job has registered.
    pub registered: u64,
}

/// Both sides wait for each other.
#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
    ended: Notify,
}

impl Inbox {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something, and wakes who waits.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    /// No one wants anything any more.
    pub(super) fn close(&self) {
        self.change(|state| state.closed = true);
        self.ended.notify_one();
    }

    /// Waits until no one wants anything, for the one that hears from the server.
    pub(super) async fn closed(&self) {
        while !self.lock().closed {
            self.ended.notified().await;
        }
    }

    /// Waits until there is something, no longer than `patience`.
    pub(super) fn wait<T>(&self, patience: Duration, mut look: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let mut found = None;
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, patience, |state| {
            found = look(state);
            found.is_none()
        });
        drop(waited);
        found
    }
}

impl State {
    /// The elements that are missing of the epoch in which they arrive.
    pub(super) fn begin(&mut self, epoch: u64, missing: BTreeSet<u32>) {
        (self.epoch, self.missing) = (epoch, missing);
    }

    /// The epoch in which elements arrive, and those that have not.
    pub(super) fn missing(&self) -> (u64, &BTreeSet<u32>) {
        (self.epoch, &self.missing)
    }

    /// Whether there is an epoch of this number in which this element is missing; the next one begins if this one is
    /// through.
    pub(super) fn expects(&mut self, epoch: u64, element: u32) -> bool {
        self.advance(epoch);
        epoch == self.epoch && self.missing.contains(&element)
    }

    /// Begins the next epoch if nothing is missing of this one.
    pub(super) fn advance(&mut self, until: u64) {
        if self.missing.is_empty()
            && self.epoch < until
            && let Some(info) = &self.info
        {
            self.epoch += 1;
            self.missing = info.elements.iter().collect();
        }
    }

    /// An element has arrived that was expected.
    pub(super) fn arrive(&mut self, arrived: Arrived) {
        self.missing.remove(&arrived.element);
        self.arrived.push_back(arrived);
    }

    /// How many elements wait to be taken.
    pub(super) fn waiting(&self) -> usize {
        self.arrived.len()
    }

    /// The first element that arrived in an epoch.
    pub(super) fn take(&mut self, epoch: u64) -> Option<Arrived> {
        let place = self.arrived.iter().position(|arrived| arrived.epoch == epoch)?;
        self.arrived.remove(place)
    }
}
