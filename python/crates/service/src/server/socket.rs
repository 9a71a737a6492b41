//! The socket at which a server listens.
//!
//! It guarantees that only its user can open it, that no other server's is taken away, and that a server which ends
//! leaves none behind.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// Listens on a socket that only its user can open. One that a server left behind when it was killed is replaced.
pub(super) fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let hidden = path.with_file_name(format!(".{}", std::process::id()));
    if let Some(long) = [path, &hidden].into_iter().find(|path| SocketAddr::from_pathname(path).is_err()) {
        let what = format!("{} is too long for the path of a socket, or is none", long.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    // two servers that begin at a time do so one after the other
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = std::fs::File::open(directory).map_err(|error| at(directory, &error))?;
    directory.lock()?;
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
        std::fs::remove_file(path)?;
    }
    // bound in secret, so that nobody connects before the rights are set
    let _ = std::fs::remove_file(&hidden);
    let listener = UnixListener::bind(&hidden).map_err(|error| at(&hidden, &error))?;
    listener.set_nonblocking(true)?;
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&hidden, path)?;
    let file = SocketFile { path: path.to_owned(), number: number_of(path)? };
    Ok((listener, file))
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
