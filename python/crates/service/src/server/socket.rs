//! The socket at which a server listens.
//!
//! It guarantees that only its user can open it, that no other server's is taken away, and that a server which ends
//! leaves none behind.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Listens on a socket that only its user can open. One that a server left behind when it was killed is replaced.
pub(super) fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let hidden = path.with_file_name(format!(".{}", std::process::id()));
    if let Some(long) = [path, &hidden].into_iter().find(|path| SocketAddr::from_pathname(path).is_err()) {
        let what = format!("{} is too long for the path of a socket, or is not one", long.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _locked = lock(directory).map_err(|error| at(directory, &error))?;
    if let Ok(old) = std::fs::symlink_metadata(path) {
        if !old.file_type().is_socket() {
            let what = format!("{} is there and no socket", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        // one that has no room for another connection does listen
        if !matches!(is_listening(path), Ok(false)) {
            let what = format!("another server has {}", path.display());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
        }
        let of_user = |error: io::Error| {
            let what = format!("{} is left of a server of user {}: {error}", path.display(), old.uid());
            io::Error::new(error.kind(), what + ": choose a path in a directory of your own")
        };
        std::fs::remove_file(path).map_err(of_user)?;
    }
    // bound in secret, so that no one connects before the rights are set
    let _ = std::fs::remove_file(&hidden);
    let listener = UnixListener::bind(&hidden).map_err(|error| at(&hidden, &error))?;
    listener.set_nonblocking(true)?;
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&hidden, path)?;
    let file = SocketFile { path: path.to_owned(), number: number_of(path)? };
    Ok((listener, file))
}

/// How long servers wait for others that begin in the same directory. In one that many users share, anybody may lock it
/// for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// Locks a directory, so that two servers that begin at a time do so one after the other.
fn lock(directory: &Path) -> io::Result<File> {
    let file = File::open(directory)?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => std::thread::sleep(PATIENCE / 100),
            Err(TryLockError::WouldBlock) => {
                let what = "somebody has locked the directory: choose a path in a directory of your own";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, what));
            }
            locked => return locked.map(|()| file).map_err(io::Error::from),
        }
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Whether somebody listens there, without waiting for him.
fn is_listening(path: &Path) -> io::Result<bool> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::CONNREFUSED) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn number_of(path: &Path) -> io::Result<(u64, u64)> {
    let file = std::fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// The file by which a socket is found. It goes with its server, and only if it is still that one's.
pub(super) struct SocketFile {
    path: PathBuf,
    number: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if number_of(&self.path).is_ok_and(|number| number == self.number) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Uid, geteuid};

    fn shared_directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
        directory
    }

    #[test]
    fn a_socket_that_another_user_has_left_in_a_shared_directory_is_an_error_that_names_him() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can be somebody else");
            return;
        }
        let directory = shared_directory();
        let path = directory.path().join("joader");
        drop(UnixListener::bind(&path).unwrap());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let (root, nobody) = (Uid::ROOT, Uid::from_raw(65534));
        rustix::thread::set_thread_res_uid(root, nobody, root).unwrap();
        let listening = listen(&path);
        rustix::thread::set_thread_res_uid(root, root, root).unwrap();
        let why = listening.err().unwrap().to_string();
        assert!(why.starts_with(&format!("{} is left of a server of user 0: ", path.display())), "{why}");
        assert!(why.ends_with("choose a path in a directory of your own"), "{why}");
        // its own is replaced
        assert!(listen(&path).is_ok());
    }

    #[test]
    fn a_directory_that_somebody_has_locked_for_ever_is_an_error() {
        let directory = shared_directory();
        let locked = File::open(directory.path()).unwrap();
        locked.lock().unwrap();
        let path = directory.path().join("joader");
        let why = listen(&path).err().unwrap().to_string();
        assert!(why.contains("somebody has locked the directory"), "{why}");
        drop(locked);
        assert!(listen(&path).is_ok());
    }
}
