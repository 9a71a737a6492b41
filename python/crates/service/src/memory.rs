//! The memory that a server shares with its jobs: the server writes it, jobs map it and read.
//!
//! It guarantees that no one but the server can ever map it to write, and that no one can cut it off (it is sealed);
//! and that nothing of it is left when the server and its jobs are gone, however they ended, since it has no name.
//!
//! What it cannot guarantee by itself is that a job looks at an element only while that stays: an element is written
//! once, to room that no one holds, and that room is taken again only after all who got it gave it back (`serving`).
//! A job gives it back when the last array that looks at it is gone (`slot`), or by ending.

#![allow(unsafe_code)]

use bytes::Bytes;
use memmap2::{Mmap, MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The server's side.
pub struct Memory {
    file: File,
    map: MmapRaw,
}

impl Memory {
    /// This many bytes, which take memory once they are written.
    ///
    /// # Errors
    /// What the system says, or that the machine has fewer: the system would end anyone who writes them.
    pub fn new(bytes: u64) -> io::Result<Memory> {
        let (all, free) = memory_of_machine();
        let mib = |bytes: u64| bytes / (1 << 20);
        if bytes > all {
            let what = format!("memory: {} MiB are more than there are here, {} MiB", mib(bytes), mib(all));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        if bytes > free {
            tracing::warn!(memory = bytes, free, "other programs have taken some of the memory that this may need");
        }
        let file = File::from(rustix::fs::memfd_create("joader", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.set_len(bytes)?;
        let map = MmapOptions::new().map_raw(&file)?;
        rustix::fs::fcntl_add_seals(
            &file,
            SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL,
        )?;
        Ok(Memory { file, map })
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        self.map.len() as u64
    }

    /// What jobs get.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Writes to this part by `write`, which is given no more than that.
    ///
    /// # Errors
    /// What `write` says, or that there is no such part.
    ///
    /// # Safety
    /// No one else writes to this part or reads from it before this returns.
    pub unsafe fn write(
        &self,
        part: Range<u64>,
        write: impl FnOnce(&mut &mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if part.start > part.end || part.end > self.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (start, len) = (part.start as usize, (part.end - part.start) as usize);
        // SAFETY: the part is inside of the map, and the caller promises that it is no one else's meanwhile
        let mut to = unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().add(start), len) };
        write(&mut to)
    }
}

/// Bytes that the machine has, or the container, and those that are free.
fn memory_of_machine() -> (u64, u64) {
    let mut system = sysinfo::System::new();
    system.refresh_memory_specifics(sysinfo::MemoryRefreshKind::nothing().with_ram());
    let (all, free) = (system.total_memory(), system.available_memory());
    match system.cgroup_limits() {
        Some(limits) => (all.min(limits.total_memory), free.min(limits.free_memory)),
        None => (all, free),
    }
}

/// A job's side.
#[derive(Clone)]
pub struct SharedMemory(Arc<Mmap>);

impl SharedMemory {
    /// Maps what a server gave.
    ///
    /// # Errors
    /// What the system says, or that it is not sealed: it could be cut off, which would end this process.
    pub fn map(memory: OwnedFd) -> io::Result<SharedMemory> {
        let wanted = SealFlags::SHRINK | SealFlags::FUTURE_WRITE;
        if !rustix::fs::fcntl_get_seals(&memory)?.contains(wanted) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the server's memory is not sealed"));
        }
        // SAFETY: it cannot be cut off. The server writes to it, but not where an element is that this job holds
        let map = unsafe { Mmap::map(&File::from(memory)) }?;
        Ok(SharedMemory(Arc::new(map)))
    }

    /// A part of it, which tells `held` when no one looks at it any more; None if there is no such part.
    pub fn part(&self, part: Range<u64>, held: impl Send + 'static) -> Option<Bytes> {
        let part = usize::try_from(part.start).ok()?..usize::try_from(part.end).ok()?;
        self.0.get(part.clone())?;
        Some(Bytes::from_owner(Part { map: self.0.clone(), part, _held: held }))
    }
}

struct Part<T> {
    map: Arc<Mmap>,
    part: Range<usize>,
    _held: T,
}

impl<T> AsRef<[u8]> for Part<T> {
    fn as_ref(&self) -> &[u8] {
        &self.map[self.part.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn duplicate(memory: &Memory) -> OwnedFd {
        memory.file().try_clone_to_owned().unwrap()
    }

    fn write(memory: &Memory, at: u64, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: no one reads meanwhile
        unsafe { memory.write(at..at + bytes.len() as u64, |to| to.write_all(bytes)) }
    }

    #[test]
    fn more_memory_than_the_machine_has_is_refused() {
        let refused = Memory::new(1 << 60).err().unwrap();
        assert!(refused.to_string().starts_with("memory: 1099511627776 MiB are more than there are here"), "{refused}");
    }

    #[test]
    fn jobs_see_what_the_server_writes_and_tell_when_they_are_done() {
        struct Tell(Arc<AtomicBool>);
        impl Drop for Tell {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let memory = Memory::new(1 << 20).unwrap();
        let shared = SharedMemory::map(duplicate(&memory)).unwrap();
        write(&memory, 4096, b"element").unwrap();
        let told = Arc::new(AtomicBool::new(false));
        let part = shared.part(4096..4103, Tell(told.clone())).unwrap();
        let slice = part.slice(1..3);
        assert_eq!(&part[..], b"element");
        drop((part, shared));
        assert!(!told.load(Ordering::Relaxed), "a part of it is looked at");
        assert_eq!(&slice[..], b"le");
        drop(slice);
        assert!(told.load(Ordering::Relaxed));
    }

    #[test]
    fn nobody_else_can_write_it_or_cut_it_off() {
        let memory = Memory::new(8192).unwrap();
        let file = File::from(duplicate(&memory));
        assert!(MmapOptions::new().map_raw(&file).is_err(), "mapped to write");
        assert!(file.set_len(0).is_err() && file.set_len(1 << 20).is_err());
        assert!((&file).write_all(b"x").is_err());
        // what is not sealed is not trusted
        let other = rustix::fs::memfd_create("other", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(SharedMemory::map(other).is_err());
    }

    #[test]
    fn there_is_nothing_beyond_the_end() {
        let memory = Memory::new(8192).unwrap();
        assert!(write(&memory, 8190, b"abc").is_err());
        let shared = SharedMemory::map(duplicate(&memory)).unwrap();
        assert!(shared.part(8190..8193, ()).is_none());
        #[expect(clippy::reversed_empty_ranges)]
        let reversed = shared.part(5..3, ());
        assert!(reversed.is_none());
    }
}
