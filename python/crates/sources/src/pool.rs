//! Memory that is used again.
//!
//! Buffers of an epoch are read one after the other, and each would ask the system for new pages, which it has to
//! clear.
//! What was used up is kept for the next one instead. It guarantees that no more is kept and in use together than was
//! in use at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, TryLockError};

use arrow::buffer::Buffer;
use bytes::Bytes;

/// Every number is aligned to this.
const ALIGNMENT: usize = 64;

/// How much longer than needed a piece of memory may be: an eighth.
const LONGER: usize = 8;

/// Memory that nobody uses, by its length.
#[derive(Default)]
pub(crate) struct Pool(Mutex<BTreeMap<usize, Vec<Vec<u8>>>>);

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
        self.pool.with(|free| free.entry(memory.len()).or_default().push(memory));
    }
}

impl Pool {
    /// So many bytes that `fill` has written; none if it fails. It gets bytes of anything.
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
            let fitting = free.range(needed..=needed + needed / LONGER).next().map(|(length, _)| *length);
            if let Some(length) = fitting {
                return pop(free, length);
            }
            // what is asked of the system now is given back of what does not fit
            let mut given = 0;
            while given < needed
                && let Some((&length, _)) = free.last_key_value()
            {
                given += pop(free, length).map_or(0, |memory| memory.len());
            }
            None
        })
        .flatten()
    }

    /// Does something unless another thread is at it, or was when this process was forked off.
    fn with<T>(&self, what: impl FnOnce(&mut BTreeMap<usize, Vec<Vec<u8>>>) -> T) -> Option<T> {
        match self.0.try_lock() {
            Ok(mut free) => Some(what(&mut free)),
            Err(TryLockError::Poisoned(free)) => Some(what(&mut free.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

fn pop(free: &mut BTreeMap<usize, Vec<Vec<u8>>>, length: usize) -> Option<Vec<u8>> {
    let of_length = free.get_mut(&length)?;
    let memory = of_length.pop();
    if of_length.is_empty() {
        free.remove(&length);
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(pool: &Pool) -> Vec<usize> {
        pool.with(|free| free.iter().flat_map(|(length, of)| vec![*length; of.len()]).collect()).unwrap()
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
    }
}
