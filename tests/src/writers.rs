//! Sessions that write while others read.

use crate::{Database, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Sessions that insert, update, delete and abort in a table as [`clustered`](crate::clustered) makes it,
/// until they are stopped.
pub struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Writers {
    /// Starts two of them.
    pub fn start(db: &Database, table: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..2).map(|writer| {
            let (mut session, stop, table) = (db.session(), Arc::clone(&stop), table.to_owned());
            std::thread::spawn(move || {
                let mut rounds = 0;
                while !stop.load(Ordering::Relaxed) {
                    write(&mut session, &table, writer, rounds);
                    rounds += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                rounds
            })
        });
        Self { threads: threads.collect(), stop }
    }

    /// Ends them.
    ///
    /// # Panics
    /// If one of them has failed, or none has written.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        let rounds: u64 = self.threads.into_iter().map(|t| t.join().expect("a writer does not fail")).sum();
        assert!(rounds > 0, "the writers have written");
    }
}

/// A round of a writer: its rows are those whose id has its parity.
fn write(session: &mut Session, table: &str, writer: u64, round: u64) {
    let mine = format!("id % 2 = {writer} AND id % 37 = {}", round % 37);
    session.run(&format!(
        "UPDATE {table} SET label = 1 - label WHERE {mine};
         BEGIN; DELETE FROM {table} WHERE id % 2 = {writer} AND id % 41 = {1}; ROLLBACK;
         DELETE FROM {table} WHERE id % 2 = {writer} AND id % 997 = {0} % 997;
         INSERT INTO {table} SELECT 100000 + 2 * {0} + {writer}, i % 2, '{{1,2,3,4,5}}' FROM generate_series(1, 7) i;",
        round,
        round % 41
    ));
    if round % 8 == writer {
        session.run(&format!("VACUUM (FREEZE {}) {table}", round % 16 == writer));
    }
}
