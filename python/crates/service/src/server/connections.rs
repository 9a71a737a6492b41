//! Who connects to a server: jobs and operators, whose streams are gRPC's, and jobs that ask for the memory.
//!
//! Both come to one Unix socket. The first byte tells them apart: gRPC's is that of HTTP/2.

use crate::peer;
use crate::strangers::{WAITING, welcome};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::collections::HashSet;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnixListenerStream;

/// The first byte of a connection that asks for the memory; its session follows.
pub(crate) const ASKS_FOR_MEMORY: u8 = b'M';

/// What comes first over a connection of HTTP/2.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a session.
pub(crate) const SESSION: usize = 16;

/// How often is looked whether the rest of a beginning has come.
const LOOK: Duration = Duration::from_millis(20);

/// Who may have the memory: jobs that have registered and have not asked yet.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashSet<[u8; SESSION]>>);

impl Sessions {
    pub(super) fn begin(&self) -> io::Result<[u8; SESSION]> {
        let mut session = [0; SESSION];
        rustix::rand::getrandom(&mut session, rustix::rand::GetRandomFlags::empty())?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(session);
        Ok(session)
    }

    /// Ends it: whether there was one.
    pub(super) fn end(&self, session: &[u8; SESSION]) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(session)
    }
}

/// Takes up connections for ever: those of gRPC come out of what is returned, and `memory` is sent to those that ask
/// for it in one of the sessions.
pub(super) fn accept(
    listener: UnixListener,
    sessions: Arc<Sessions>,
    memory: impl AsFd + Send + Sync + 'static,
) -> mpsc::Receiver<io::Result<UnixStream>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let memory = Arc::new(memory);
    tokio::spawn(welcome(UnixListenerStream::new(listener), move |stream| {
        let (sender, sessions, memory) = (sender.clone(), sessions.clone(), memory.clone());
        async move {
            // also if its rights let others open the socket
            peer::check(&stream)?;
            match who(&stream).await? {
                Who::AsksForMemory => give_memory(stream, &sessions, memory.as_fd()).await,
                Who::SpeaksGrpc => sender.send(Ok(stream)).await.map_err(io::Error::other),
            }
        }
    }));
    receiver
}

/// Who connects.
enum Who {
    AsksForMemory,
    SpeaksGrpc,
}

/// Finds out who connects by what comes first, which stays where it is.
async fn who(stream: &UnixStream) -> io::Result<Who> {
    loop {
        stream.readable().await?;
        let mut bytes = [0; PREFACE.len()];
        let peeked = stream.try_io(Interest::READABLE, || {
            rustix::net::recv(stream, &mut bytes, RecvFlags::PEEK).map_err(io::Error::from)
        });
        match peeked {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if bytes[0] == ASKS_FOR_MEMORY => return Ok(Who::AsksForMemory),
            Ok((_, came)) if bytes[..came] != PREFACE[..came] => return Err(io::ErrorKind::InvalidData.into()),
            Ok((_, came)) if came == PREFACE.len() => return Ok(Who::SpeaksGrpc),
            // what stays where it is counts as present already
            Ok(_) => tokio::time::sleep(LOOK).await,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn give_memory(mut stream: UnixStream, sessions: &Sessions, memory: BorrowedFd<'_>) -> io::Result<()> {
    let mut asked = [0; 1 + SESSION];
    stream.read_exact(&mut asked).await?;
    let session: [u8; SESSION] = std::array::from_fn(|i| asked[i + 1]);
    if !sessions.end(&session) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.writable().await?;
    stream.try_io(Interest::WRITABLE, || {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let files = [memory];
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
        rustix::net::sendmsg(&stream, &[IoSlice::new(b"M")], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    })
}
