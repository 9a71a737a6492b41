//! Units that were decoded, of a data set of which all of them fit into memory.
//!
//! A page is decompressed and decoded from its beginning, whichever of its rows are wanted, and so is a row group of
//! lists whose pages nobody knows, or of one page. Where a unit becomes many blocks, each would decode it anew: as many
//! times the work as there are blocks. A unit that is read in parts is decoded once instead. Nothing is ever dropped,
//! so that what is given out is a part of what is kept, and no copy.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, TryLockError};

use arrow::array::RecordBatch;

/// A unit, and which of its columns are decoded.
type Key = (usize, Vec<bool>);

/// Nobody waits for the lock: in a process that was forked off meanwhile, nobody might ever give it back.
#[derive(Default)]
pub(super) struct Kept(Mutex<HashMap<Key, RecordBatch>>);

impl Kept {
    /// Some rows of a unit, counted from its first one, if it is there.
    pub(super) fn rows(&self, key: &Key, rows: &Range<u64>) -> Option<RecordBatch> {
        self.with(|units| units.get(key).map(|unit| part(unit, rows)))?
    }

    /// Keeps a unit, and gives some rows of it.
    pub(super) fn keep(&self, key: Key, unit: RecordBatch, rows: &Range<u64>) -> RecordBatch {
        let part = part(&unit, rows);
        self.with(|units| units.insert(key, unit));
        part
    }

    fn with<T>(&self, use_them: impl FnOnce(&mut HashMap<Key, RecordBatch>) -> T) -> Option<T> {
        match self.0.try_lock() {
            Ok(mut units) => Some(use_them(&mut units)),
            Err(TryLockError::Poisoned(units)) => Some(use_them(&mut units.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

fn part(unit: &RecordBatch, rows: &Range<u64>) -> RecordBatch {
    unit.slice(rows.start as usize, (rows.end - rows.start) as usize)
}
