//! Units that were decoded, of a data set of which all of them fit into memory.
//!
//! A page is decompressed and decoded from its beginning, whichever of its rows are wanted, and so is a row group of
//! lists whose pages no one knows, or of one page. Where a unit becomes many blocks, each would decode it again: as
//! many times the work as there are blocks. A unit that is read in parts is decoded once instead, by one thread while
//! others that want it wait. Nothing is ever dropped, so that what is given out is a part of what is kept, and no copy.

use std::collections::HashMap;
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, TryLockError};
use std::thread;
use std::time::Duration;

use arrow::array::RecordBatch;
use source::{Cancel, SourceError};

/// A unit, and which of its columns are decoded.
type Key = (usize, Vec<bool>);

/// How often the lock is asked for, which is held for moments. In a process that was forked off meanwhile, no one might
/// ever give it back.
const ATTEMPTS: usize = 10_000;

/// How long a thread waits before it looks whether another one has decoded a unit.
const PAUSE: Duration = Duration::from_micros(500);

pub(super) struct Kept {
    units: Mutex<HashMap<Key, RecordBatch>>,
    /// For each unit, the process of which a thread decodes it, or 0: threads of a parent process are not waited for.
    decoding: Vec<AtomicU32>,
}

/// The right to decode a unit.
pub(super) struct Turn<'a>(&'a AtomicU32);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Kept {
    pub(super) fn new(units: usize) -> Self {
        Self { units: Mutex::default(), decoding: (0..units).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Some rows of a unit, counted from its first one, that `decode` decodes if they are not there. If it fails, so
    /// does this, without a trace.
    pub(super) fn rows(
        &self,
        key: Key,
        rows: &Range<u64>,
        cancel: &Cancel,
        decode: impl FnOnce() -> Result<RecordBatch, SourceError>,
    ) -> Result<RecordBatch, SourceError> {
        let there = || self.with(|units| units.get(&key).map(|unit| part(unit, rows))).flatten();
        let _turn = loop {
            if let Some(part) = there() {
                return Ok(part);
            }
            match self.turn(key.0) {
                Some(turn) => break turn,
                None => thread::sleep(PAUSE),
            }
            cancel.check()?;
        };
        // another thread may have been faster
        if let Some(part) = there() {
            return Ok(part);
        }
        let unit = decode()?;
        let part = part(&unit, rows);
        self.with(|units| units.insert(key, unit));
        Ok(part)
    }

    fn turn(&self, unit: usize) -> Option<Turn<'_>> {
        let (decoding, mine) = (&self.decoding[unit], process::id());
        let before = decoding.load(Ordering::Acquire);
        let is_free = before != mine;
        let taken = is_free && decoding.compare_exchange(before, mine, Ordering::AcqRel, Ordering::Acquire).is_ok();
        taken.then(|| Turn(decoding))
    }

    fn with<T>(&self, use_them: impl FnOnce(&mut HashMap<Key, RecordBatch>) -> T) -> Option<T> {
        for _ in 0..ATTEMPTS {
            match self.units.try_lock() {
                Ok(mut units) => return Some(use_them(&mut units)),
                Err(TryLockError::Poisoned(units)) => return Some(use_them(&mut units.into_inner())),
                Err(TryLockError::WouldBlock) => thread::yield_now(),
            }
        }
        None
    }
}

fn part(unit: &RecordBatch, rows: &Range<u64>) -> RecordBatch {
    unit.slice(rows.start as usize, (rows.end - rows.start) as usize)
}
