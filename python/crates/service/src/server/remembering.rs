//! The file by which a server that starts again knows its data sets.
//!
//! It guarantees that the file is whole at any time, that two servers do not write one file, and that no one else has
//! written it. It has no passwords: who opens sources refuses those that have any.

use crate::proto;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A data set, as the file has it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    source: String,
    columns: Vec<String>,
    element_size: String,
    sampler: String,
}

/// What the file has.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    data_sets: Vec<Line>,
}

const VERSION: u32 = 1;

/// See the module's documentation.
pub(super) struct Remembered {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    data_sets: BTreeMap<String, proto::DataSet>,
    /// the file as it is now, locked
    _file: File,
}

impl Remembered {
    /// Reads a file, which need not be there.
    pub(super) fn open(path: PathBuf) -> io::Result<Remembered> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("datasets: {}: {error}", path.display()));
        let (mut file, is_new) = match OpenOptions::new().read(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (fresh().open(&path).map_err(named)?, true),
            file => (file.map_err(named)?, false),
        };
        check(&file, &path).map_err(named)?;
        lock(&file, &path).map_err(named)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(named)?;
        let mut data_sets = BTreeMap::new();
        if !is_new {
            let invalid = |what: String| named(io::Error::new(io::ErrorKind::InvalidData, what));
            let content: Content = serde_json::from_str(&text)
                .map_err(|error| invalid(format!("it is not what a server has written: {error}")))?;
            if content.version != VERSION {
                return Err(invalid(format!("version {} is not known to this corgipile", content.version)));
            }
            for Line { name, source, columns, element_size, sampler } in content.data_sets {
                data_sets.insert(name.clone(), proto::DataSet { name, source, columns, element_size, sampler });
            }
        }
        let mut state = State { data_sets, _file: file };
        if is_new {
            // so that one that was emptied is distinguished from a new one
            write(&path, &mut state, BTreeMap::new()).map_err(named)?;
        }
        Ok(Remembered { path: path.clone(), state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn all(&self) -> Vec<proto::DataSet> {
        self.lock().data_sets.values().cloned().collect()
    }

    pub(super) fn get(&self, name: &str) -> Option<proto::DataSet> {
        self.lock().data_sets.get(name).cloned()
    }

    pub(super) fn put(&self, data_set: &proto::DataSet) -> io::Result<()> {
        let mut state = self.lock();
        let mut data_sets = state.data_sets.clone();
        data_sets.insert(data_set.name.clone(), data_set.clone());
        write(&self.path, &mut state, data_sets)
    }

    /// Forgets a data set; whether there was one.
    pub(super) fn forget(&self, name: &str) -> io::Result<bool> {
        let mut state = self.lock();
        let mut data_sets = state.data_sets.clone();
        if data_sets.remove(name).is_none() {
            return Ok(false);
        }
        write(&self.path, &mut state, data_sets).map(|()| true)
    }
}

/// Puts a new file into the place of the old one.
fn write(path: &Path, state: &mut State, data_sets: BTreeMap<String, proto::DataSet>) -> io::Result<()> {
    let line = |of: &proto::DataSet| {
        let proto::DataSet { name, source, columns, element_size, sampler } = of.clone();
        Line { name, source, columns, element_size, sampler }
    };
    let content = Content { version: VERSION, data_sets: data_sets.values().map(line).collect() };
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(".new");
    let hidden = PathBuf::from(hidden);
    match std::fs::remove_file(&hidden) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fresh().open(&hidden)?;
    file.try_lock()?;
    serde_json::to_writer_pretty(&mut file, &content)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(&hidden, path)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()?;
    *state = State { data_sets, _file: file };
    Ok(())
}

/// Refuses a file that others may have written: a server opens what it names, as its own user.
fn check(file: &File, path: &Path) -> io::Result<()> {
    let (metadata, path) = (file.metadata()?, path.display());
    let refused = |what: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    let owner = metadata.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return refused(format!(
            "user {owner} owns it, and might have other data opened: own it, or choose another file"
        ));
    }
    if metadata.mode() & 0o022 != 0 {
        return refused(format!("others than its owner may write it, and have other data opened: chmod 600 {path}"));
    }
    Ok(())
}

/// Which data there are is the user's own affair.
fn fresh() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options
}

/// Locks the file that is at a path. Another server may have put a new one there meanwhile.
fn lock(file: &File, path: &Path) -> io::Result<()> {
    let taken = || io::Error::new(io::ErrorKind::AddrInUse, "another server has it: give each a file of its own");
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(taken()),
        locked => locked?,
    }
    let (ours, there) = (file.metadata()?, std::fs::metadata(path)?);
    if (ours.dev(), ours.ino()) != (there.dev(), there.ino()) {
        return Err(taken());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn data_set(name: &str) -> proto::DataSet {
        let source = format!("the source of {name}");
        let (columns, sampler) = (vec!["x".to_owned()], "dependent".to_owned());
        proto::DataSet { name: name.to_owned(), source, columns, element_size: "1%".to_owned(), sampler }
    }

    #[test]
    fn what_was_put_and_not_forgotten_is_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data_sets");
        let remembered = Remembered::open(path.clone()).unwrap();
        assert!(remembered.all().is_empty());
        for name in ["b", "a", "c"] {
            remembered.put(&data_set(name)).unwrap();
        }
        let other = proto::DataSet { source: "another".to_owned(), ..data_set("b") };
        remembered.put(&other).unwrap();
        assert!(remembered.forget("c").unwrap() && !remembered.forget("c").unwrap());
        drop(remembered);
        let remembered = Remembered::open(path.clone()).unwrap();
        assert_eq!(remembered.all(), [data_set("a"), other]);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_another_server_or_kind_is_refused_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data_sets");
        let remembered = Remembered::open(path.clone()).unwrap();
        let refused = |path: &Path| Remembered::open(path.to_owned()).err().unwrap().to_string();
        assert!(refused(&path).contains("another server has it"));
        remembered.put(&data_set("a")).unwrap();
        assert!(refused(&path).contains("another server has it"), "also after it was replaced");
        drop(remembered);
        for (text, what) in [
            ("", "it is not what a server has written"),
            ("names", "it is not what a server has written"),
            ("{\"version\": 2, \"data_sets\": []}", "version 2 is not known"),
            ("{\"version\": 1, \"data_sets\": [{\"name\": \"a\"}]}", "missing field"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(refused(&path).contains(what), "{}", refused(&path));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert!(refused(Path::new("/nowhere/at/all")).starts_with("datasets: /nowhere/at/all: "));
    }

    #[test]
    fn a_file_that_others_may_have_written_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data_sets");
        Remembered::open(path.clone()).unwrap().put(&data_set("a")).unwrap();
        let told = |mode: u32| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Remembered::open(path.clone()).map(drop).map_err(|error| error.to_string())
        };
        for mode in [0o666, 0o620, 0o602] {
            let why = told(mode).unwrap_err();
            assert!(why.contains("others than its owner may write it"), "{why}");
            assert!(why.ends_with(&format!("chmod 600 {}", path.display())), "{why}");
        }
        assert_eq!(told(0o644), Ok(()), "others may know which data there are");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            let why = told(0o600).unwrap_err();
            assert!(why.contains("user 65534 owns it"), "{why}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data_sets");
        let remembered = Remembered::open(path.clone()).unwrap();
        remembered.put(&data_set("a")).unwrap();
        // also root cannot write where a directory is in the way
        std::fs::create_dir_all(directory.path().join("data_sets.new/full")).unwrap();
        assert!(remembered.put(&data_set("b")).is_err() && remembered.forget("a").is_err());
        assert_eq!(remembered.all(), [data_set("a")]);
        drop(remembered);
        assert_eq!(Remembered::open(path).unwrap().all(), [data_set("a")]);
    }
}
