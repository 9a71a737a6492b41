//! Where the time of a training goes, from the first look at the source to the stored model.

use std::time::{Duration, Instant};

/// A part of a training. One follows upon the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// looks at the source, plans and starts its query
    Opening,
    /// the pass over the rows before the first epoch, and the choices that depend on it
    Preparation,
    /// and what follows upon each: evaluating, stopping
    Epochs,
    /// writes the models to the table, and deletes those that they replace
    Storing,
}

/// Times of the pass before the first epoch.
pub struct PreparationTimes {
    pub time: Duration,
    /// of a full shuffle for it, which counts as the first epoch's
    pub shuffle: Duration,
}

/// How long each took.
#[derive(Debug)]
pub struct Phases {
    since: Instant,
    durations: [Duration; 4],
    /// learning, which includes waiting for other processes
    pub compute: Duration,
}

impl Phases {
    /// Before the first one.
    pub fn begin() -> Phases {
        Phases { since: Instant::now(), durations: [Duration::ZERO; 4], compute: Duration::ZERO }
    }

    /// What comes next begins now, and not where the one before has ended.
    pub fn resume(&mut self) {
        self.since = Instant::now();
    }

    pub fn end(&mut self, phase: Phase) {
        let now = Instant::now();
        self.durations[phase as usize] += now - std::mem::replace(&mut self.since, now);
    }

    /// How long one took.
    pub fn seconds(&self, phase: Phase) -> f64 {
        self.durations[phase as usize].as_secs_f64()
    }
}
