//! Memory that a server's processes are refused when a test says so (`tests/extension/failing.c`).

use crate::{extension, server};
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;

const SITES: usize = 65536;

/// Words of the file that is shared with the server's processes, in their order.
enum Word {
    Pid,
    Mode,
    Generation,
    Target,
    Calls,
    Failed,
    Sites,
    FirstSite,
}

/// Which processes are refused memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// This backend.
    Backend(i32),
    /// Those that start from now on: a statement's workers.
    Workers,
}

/// Which calls of malloc, calloc, realloc, mmap and posix_fallocate fail, from one call site on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fails {
    /// The first from the site.
    One,
    /// That one and all that come later, from wherever.
    All,
}

/// The control of a server's memory.
pub struct FailingMemory {
    library: PathBuf,
    path: PathBuf,
    file: File,
    generation: u64,
}

impl FailingMemory {
    /// # Errors
    /// Why it is not available here.
    pub(crate) fn new() -> Result<Self, String> {
        let library = extension::failing()?;
        let path = server::directory().join(format!("memory_{}", server::number()));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.expect("the server's directory can be written");
        file.set_permissions(Permissions::from_mode(0o666)).expect("it is ours");
        file.set_len(((Word::FirstSite as usize + SITES) * size_of::<u64>()) as u64).expect("there is room");
        Ok(Self { library, path, file, generation: 0 })
    }

    pub(crate) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("LD_PRELOAD", self.library.clone()), ("FAILING_CONTROL", self.path.clone())]
    }

    fn set(&self, word: Word, value: u64) {
        self.file.write_all_at(&value.to_ne_bytes(), at(word as usize)).expect("the file can be written");
    }

    fn get(&self, word: usize) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at(word)).expect("the file can be read");
        u64::from_ne_bytes(bytes)
    }

    fn begin(&mut self, whose: Whose, mode: u64, target: u64) {
        self.stop();
        self.generation += 1;
        self.set(Word::Generation, self.generation);
        self.set(Word::Mode, mode);
        self.set(Word::Target, target);
        self.set(Word::Calls, 0);
        self.set(Word::Failed, 0);
        self.set(Word::Sites, 0);
        let pid = match whose {
            Whose::Backend(pid) => i64::from(pid),
            Whose::Workers => -1,
        };
        self.set(Word::Pid, pid as u64);
    }

    /// From now on writes down from where memory is asked for.
    pub fn record(&mut self, whose: Whose) {
        self.begin(whose, 1, 0);
    }

    /// From now on refuses memory, from this call site on.
    pub fn fail(&mut self, whose: Whose, site: u64, fails: Fails) {
        self.begin(whose, if fails == Fails::One { 2 } else { 3 }, site);
    }

    /// From now on refuses memory of this many bytes or more, from wherever.
    pub fn fail_large(&mut self, whose: Whose, bytes: u64) {
        self.begin(whose, 4, bytes);
    }

    /// From now on gives memory again. Returns how many calls have failed.
    pub fn stop(&mut self) -> u64 {
        self.set(Word::Pid, 0);
        self.get(Word::Failed as usize)
    }

    /// The call sites that were written down, in the order in which they came.
    pub fn sites(&self) -> Vec<u64> {
        let count = self.get(Word::Sites as usize) as usize;
        (0..count).map(|i| self.get(Word::FirstSite as usize + i)).collect()
    }
}

impl Drop for FailingMemory {
    fn drop(&mut self) {
        self.stop();
    }
}

fn at(word: usize) -> u64 {
    (word * size_of::<u64>()) as u64
}
