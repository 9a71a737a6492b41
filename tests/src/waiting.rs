//! Statements that run in the background, and waiting for what they bring about.

use crate::{Failure, Session};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// How long what is waited for may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A statement that runs in a thread.
pub struct Background(JoinHandle<(Session, Result<Vec<String>, Failure>)>);

impl Background {
    /// Waits for its end; gives its session back with its rows or its error.
    ///
    /// # Panics
    /// If the statement does not end within the time that a session gives it.
    pub fn join(self) -> (Session, Result<Vec<String>, Failure>) {
        self.0.join().expect("the session's thread does not panic")
    }

    /// Has the statement ended?
    pub fn has_ended(&self) -> bool {
        self.0.is_finished()
    }

    /// As [`Background::join`], of a statement that was stopped and may take so long to notice; gives its SQLSTATE.
    ///
    /// # Panics
    /// If the statement runs on.
    pub fn stopped_within(self, patience: Duration) -> (Session, String) {
        let deadline = Instant::now() + patience;
        while !self.has_ended() {
            assert!(Instant::now() < deadline, "the statement does not stop");
            sleep(Duration::from_millis(5));
        }
        let (session, result) = self.join();
        (session, result.map_or_else(|failure| failure.code, |_| "00000".to_owned()))
    }
}

impl Session {
    /// Runs a statement in a thread.
    pub fn in_background(mut self, sql: &str) -> Background {
        let sql = sql.to_owned();
        Background(std::thread::spawn(move || {
            let result = self.attempt(&sql);
            (self, result)
        }))
    }

    /// Waits until a query gives these lines; none are "".
    ///
    /// # Panics
    /// If it does not for 30 seconds.
    pub fn wait_for(&mut self, sql: &str, expected: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lines = self.lines(sql).join("\n");
            if lines == expected {
                return;
            }
            assert!(Instant::now() < deadline, "{sql} gives {lines:?}, not {expected:?}");
            sleep(Duration::from_millis(5));
        }
    }

    /// Waits until exactly this many statements of this database wait for a lock.
    pub fn wait_for_waiters(&mut self, count: i64) {
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        self.wait_for(waiting, &count.to_string());
    }

    /// The parallel workers of this database.
    pub fn parallel_workers(&mut self) -> Vec<i32> {
        self.column(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND datname = current_database()",
        )
    }

    /// Waits until there are this many parallel workers.
    ///
    /// # Panics
    /// If there are not for 30 seconds.
    pub fn wait_for_parallel_workers(&mut self, count: usize) -> Vec<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let workers = self.parallel_workers();
            if workers.len() == count {
                return workers;
            }
            assert!(Instant::now() < deadline, "there are {} workers, not {count}", workers.len());
            sleep(Duration::from_millis(10));
        }
    }
}
