//! Memory that is used again.
//!
//! Buffers of an epoch are read one after the other, and each would ask the system for new pages, which it has to
//! clear. What was used up is kept for the next one instead, up to a bound. It guarantees that no more is kept and in
//! use together than was in use at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, TryLockError};

use arrow::buffer::Buffer;
use bytes::Bytes;

/// Every number is aligned to this.
const ALIGNMENT: usize = 64;

/// How much longer than needed a piece of memory may be: an eighth.
const LONGER: usize = 8;

/// Bytes that are kept at most: what is not read any more should not take memory from others.
const KEPT: usize = 256 << 20;

/// Memory that no one uses.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Free>);

#[derive(Default)]
struct Free {
    by_length: BTreeMap<usize, Vec<Vec<u8>>>,
    bytes: usize,
}

impl Free {
    fn push(&mut self, memory: Vec<u8>) {
        if self.bytes + memory.len() <= KEPT {
            self.bytes += memory.len();
            self.by_length.entry(memory.len()).or_default().push(memory);
        }
    }

    fn pop(&mut self, length: usize) -> Option<Vec<u8>> {
        let of_length = self.by_length.get_mut(&length)?;
        let memory = of_length.pop()?;
        if of_length.is_empty() {
            self.by_length.remove(&length);
        }
        self.bytes -= length;
        Some(memory)
    }
}

/// Memory that goes back to where it came from.
struct Pooled {
    memory: Vec<u8>,
    pool: Arc<Pool>,
}

impl AsRef<[u8]> for Pooled {
    fn as_ref(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        self.pool.with(|free| free.push(memory));
    }
}

impl Pool {
    /// This many bytes that `fill` has written; none if it fails. It gets bytes of anything.
    pub(crate) fn filled(
        self: &Arc<Self>,
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Option<()>,
    ) -> Option<Buffer> {
        let needed = length.checked_add(ALIGNMENT)?;
        let mut memory = self.take(needed).unwrap_or_else(|| vec![0; needed]);
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let filled = fill(&mut memory[start..start + length]);
        let all = Buffer::from(Bytes::from_owner(Pooled { memory, pool: self.clone() }));
        filled.map(|()| all.slice_with_length(start, length))
    }

    fn take(&self, needed: usize) -> Option<Vec<u8>> {
        self.with(|free| {
            let mut fitting = free.by_length.range(needed..=needed + needed / LONGER);
            if let Some((&length, _)) = fitting.next() {
                return free.pop(length);
            }
            // what is asked of the system now is given back of what does not fit
            let mut given = 0;
            while given < needed
                && let Some((&length, _)) = free.by_length.last_key_value()
            {
                given += free.pop(length).map_or(0, |memory| memory.len());
            }
            None
        })
        .flatten()
    }

    /// Does something unless another thread is at it, or was when this process was forked off.
    fn with<T>(&self, what: impl FnOnce(&mut Free) -> T) -> Option<T> {
        match self.0.try_lock() {
            Ok(mut free) => Some(what(&mut free)),
            Err(TryLockError::Poisoned(free)) => Some(what(&mut free.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(pool: &Pool) -> Vec<usize> {
        pool.with(|free| free.by_length.iter().flat_map(|(length, of)| vec![*length; of.len()]).collect()).unwrap()
    }

    fn ones(to: &mut [u8]) -> Option<()> {
        to.fill(1);
        Some(())
    }

    #[test]
    fn memory_is_used_again_where_it_fits_and_given_back_where_not() {
        let pool = Arc::new(Pool::default());
        let (one, two) = (pool.filled(1000, ones).unwrap(), pool.filled(1000, ones).unwrap());
        assert_eq!((one.len(), one.as_ptr().align_offset(ALIGNMENT)), (1000, 0));
        assert!(free(&pool).is_empty());
        let place = one.as_ptr();
        drop(one);
        assert_eq!(free(&pool), [1000 + ALIGNMENT]);
        let again = pool.filled(990, |to| to.iter().all(|byte| *byte == 1).then_some(())).unwrap();
        assert_eq!((again.as_ptr(), again.len()), (place, 990));
        drop((again, two));
        // a longer one, for which both others go
        drop(pool.filled(1500, ones).unwrap());
        assert_eq!(free(&pool), [1500 + ALIGNMENT]);
        assert_eq!(pool.filled(1500, |_| None), None);
        assert_eq!(free(&pool), [1500 + ALIGNMENT]);
        drop(pool.filled(KEPT, |_| Some(())));
        assert!(free(&pool).is_empty(), "more than is kept");
    }
}
