//! Who is at the other end of a socket of this machine.
//!
//! It guarantees that jobs and servers say nothing to other users than their own and root, no matter who has put the
//! socket there and what its file's rights are: in a directory that many users share, such as /tmp, it may be anybody.

use std::io;
use std::path::Path;
use tokio::net::UnixStream;

/// Connects to a server of the own user or root.
pub(crate) async fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path).await?;
    check(&stream)?;
    Ok(stream)
}

/// Refuses other users than the own one and root.
pub(crate) fn check(stream: &UnixStream) -> io::Result<()> {
    let (peer, own) = (stream.peer_cred()?.uid(), rustix::process::geteuid().as_raw());
    if peer == own || peer == 0 {
        return Ok(());
    }
    let what = format!("user {peer} is at the other end, who is neither user {own}, as this process is, nor root");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}
