//! Processes of Python that call functions with rows.
//!
//! Each is a socket, over which goes what is to be called and whether it worked, and two files in memory, in which the
//! rows go to it and come back: pictures do not go through pipes. It guarantees that a function that crashes, is killed
//! or hangs is an error of its own call only: its process is ended, and the next call starts another one. A call whose
//! process ended is made once more before that, as the function may be innocent. A process ends when its socket does,
//! whatever becomes of the one that started it.
//!
//! The result is copied out of the memory before anything looks at it, since the process may still write there.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::buffer::{Buffer, MutableBuffer};
use bytes::Bytes;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use source::Cancel;

use crate::slot::{self, Encoded};
use crate::{Callables, PrepareError};

/// How long a call may take if nothing else is said.
pub const BOUND: Duration = Duration::from_secs(60);

/// The module that is run.
const MODULE: &str = "corgipile.joader._preparer";

/// How often somebody who waits looks whether he is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// How long a process gets to end by itself.
const GRACE: Duration = Duration::from_millis(500);

/// How much of what a process wrote last is reported.
const TAIL: usize = 2 << 10;

/// How long what a process says about an exception may be.
const MAX_ERROR: u64 = 64 << 10;

/// Some processes, each of which calls one function at a time. They are started when they are first needed.
#[derive(Debug)]
pub struct Processes {
    python: PathBuf,
    variables: Vec<(String, String)>,
    number: usize,
    bound: Duration,
    pool: Mutex<Pool>,
    free: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Process>,
    /// how many there are, idle ones and others
    started: usize,
}

impl Processes {
    /// At most this many processes of this Python, in which the package can be imported.
    pub fn new(python: impl Into<PathBuf>, number: usize) -> Self {
        let (pool, free) = (Mutex::default(), Condvar::new());
        Self { python: python.into(), variables: Vec::new(), number: number.max(1), bound: BOUND, pool, free }
    }

    /// How long a call may take, the start of a process included.
    pub fn bound(mut self, bound: Duration) -> Self {
        self.bound = bound;
        self
    }

    /// Adds a variable to the environment of the processes, such as PYTHONPATH.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// A process that no one else uses.
    fn take(&self, cancel: &Cancel) -> Result<Process, PrepareError> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            cancel.check().map_err(|_| PrepareError::cancelled())?;
            if let Some(process) = pool.idle.pop() {
                return Ok(process);
            }
            if pool.started < self.number {
                pool.started += 1;
                break;
            }
            (pool, _) = self.free.wait_timeout(pool, LOOK).unwrap_or_else(PoisonError::into_inner);
        }
        drop(pool);
        Process::start(&self.python, &self.variables).map_err(|error| {
            self.give(None);
            PrepareError::new(format!("{} cannot be started: {error}", self.python.display()))
        })
    }

    /// Gives a process back, or its place if it has ended.
    fn give(&self, process: Option<Process>) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        match process {
            Some(process) => pool.idle.push(process),
            None => pool.started -= 1,
        }
        self.free.notify_one();
    }
}

impl Callables for Processes {
    fn at_a_time(&self) -> usize {
        self.number
    }

    fn call(&self, callable: &str, batch: &RecordBatch, cancel: &Cancel) -> Result<RecordBatch, PrepareError> {
        let told = |what: String| PrepareError::new(format!("{callable}: {what}"));
        let rows = Encoded::new(batch).map_err(|error| told(error.to_string()))?;
        let mut is_again = false;
        loop {
            let mut process = self.take(cancel)?;
            let failure = match process.call(callable, &rows, self.bound, cancel) {
                Ok(answer) => {
                    self.give(Some(process));
                    return slot::decode(answer.map_err(told)?).map_err(|error| told(error.to_string()));
                }
                Err(failure) => failure,
            };
            let ended = process.end(matches!(failure, Failure::Ended));
            self.give(None);
            return match failure {
                // somebody else may have ended it, such as a system that is short of memory
                Failure::Ended if !is_again => {
                    is_again = true;
                    continue;
                }
                Failure::Cancelled => Err(PrepareError::cancelled()),
                Failure::Ended => {
                    Err(told(format!("it was called twice, and the second time the process that called it {ended}")))
                }
                Failure::Hung => {
                    let seconds = self.bound.as_secs_f64();
                    Err(told(format!("it did not return within {seconds} s, and its process was ended")))
                }
                Failure::Broken(what) => Err(told(what)),
            };
        }
    }
}

/// Why a process is of no use any more.
enum Failure {
    Cancelled,
    /// It closed its socket.
    Ended,
    Hung,
    /// It is not what it should be, or the system refuses.
    Broken(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Self::Ended,
            _ => Self::Broken(format!("its process cannot be talked to: {error}")),
        }
    }
}

/// A process of Python.
#[derive(Debug)]
struct Process {
    child: Child,
    socket: UnixStream,
    /// the rows that go to it, and those that come back
    to: File,
    from: File,
    /// what it wrote last, once it has closed that
    written: Receiver<String>,
    ended: bool,
}

impl Process {
    fn start(python: &PathBuf, variables: &[(String, String)]) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let memory = |name: &str| memfd_create(name, MemfdFlags::CLOEXEC).map(File::from);
        let (to, from) = (memory("corgipile-to")?, memory("corgipile-from")?);
        let mut child = Command::new(python)
            .args(["-m", MODULE])
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(OwnedFd::from(theirs))
            // The process makes one of both: what a function prints is no answer.
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C in a terminal is for the one that started it.
            .process_group(0)
            .spawn()?;
        let (sender, written) = channel();
        if let Some(stderr) = child.stderr.take() {
            thread::spawn(move || sender.send(pass_on(stderr)));
        }
        let process = Self { child, socket, to, from, written, ended: false };
        process.socket.set_read_timeout(Some(LOOK))?;
        process.socket.set_write_timeout(Some(GRACE))?;
        // A process that has ended is found out by the first call.
        match process.send_files() {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            _ => Ok(process),
        }
    }

    /// Lets the process have the memory. Inherited, others that are started at this time would have it, too.
    fn send_files(&self) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut files = SendAncillaryBuffer::new(&mut space);
        let both = [self.to.as_fd(), self.from.as_fd()];
        files.push(SendAncillaryMessage::ScmRights(&both));
        sendmsg(&self.socket, &[IoSlice::new(b"f")], &mut files, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Calls a function. What it raised is an answer, too.
    fn call(
        &mut self,
        callable: &str,
        rows: &Encoded,
        bound: Duration,
        cancel: &Cancel,
    ) -> Result<Result<Bytes, String>, Failure> {
        let until = Instant::now() + bound;
        let length = rows.len() as u64;
        if self.to.metadata()?.len() < length {
            self.to.set_len(length)?;
        }
        rows.write(&mut At { file: &self.to, place: 0 })?;
        let mut request = Vec::with_capacity(12 + callable.len());
        request.extend_from_slice(&(callable.len() as u32).to_le_bytes());
        request.extend_from_slice(&length.to_le_bytes());
        request.extend_from_slice(callable.as_bytes());
        self.socket.write_all(&request)?;
        let [worked] = self.read(until, cancel)?;
        let length = u64::from_le_bytes(self.read(until, cancel)?);
        if worked == 1 {
            return Ok(Ok(self.rows(length)?));
        }
        if length > MAX_ERROR {
            return Err(Failure::Broken("its process gave no answer that can be read".into()));
        }
        let mut said = vec![0; length as usize];
        self.fill(&mut said, until, cancel)?;
        Ok(Err(String::from_utf8_lossy(&said).into_owned()))
    }

    /// A copy of the rows that came back.
    fn rows(&self, length: u64) -> Result<Bytes, Failure> {
        let there = self.from.metadata()?.len();
        if length > there {
            return Err(Failure::Broken(format!("its process speaks of {length} bytes where there are {there}")));
        }
        let mut copied = MutableBuffer::from_len_zeroed(length as usize);
        self.from.read_exact_at(copied.as_slice_mut(), 0)?;
        Ok(Bytes::from_owner(Buffer::from(copied)))
    }

    fn read<const N: usize>(&mut self, until: Instant, cancel: &Cancel) -> Result<[u8; N], Failure> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, until, cancel).map(|()| bytes)
    }

    /// Reads from the socket, and meanwhile looks whether there is still a reason to.
    fn fill(&mut self, mut bytes: &mut [u8], until: Instant, cancel: &Cancel) -> Result<(), Failure> {
        while !bytes.is_empty() {
            cancel.check().map_err(|_| Failure::Cancelled)?;
            match self.socket.read(bytes) {
                Ok(0) => return Err(Failure::Ended),
                Ok(read) => bytes = &mut bytes[read..],
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if Instant::now() > until {
                        return Err(Failure::Hung);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Ends it, and tells how it ended. One that has `closed` its socket gets the time to say why.
    fn end(mut self, closed: bool) -> String {
        self.ended = true;
        let status = self.stop(if closed { GRACE } else { Duration::ZERO });
        let written = self.written.recv_timeout(GRACE).unwrap_or_default();
        let how = match status {
            Some(status) => describe(status),
            None => "closed its socket, and was ended".into(),
        };
        match written.trim() {
            "" => how,
            written => format!("{how}; it wrote last:\n{written}"),
        }
    }

    /// How it ended by itself; None if it had to be killed.
    fn stop(&mut self, grace: Duration) -> Option<ExitStatus> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)?;
        // Until somebody has waited for it, no other process gets its number, by which its group is known.
        let seen = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let until = Instant::now() + grace;
        let ended = loop {
            match waitid(WaitId::Pid(id), seen) {
                Ok(None) if Instant::now() < until => thread::sleep(GRACE / 100),
                Ok(ended) => break ended.is_some(),
                Err(_) => break false,
            }
        };
        // The group is the process and what it has started itself.
        let _ = kill_process_group(id, Signal::KILL);
        let status = self.child.wait().ok();
        status.filter(|_| ended)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.socket.shutdown(std::net::Shutdown::Both);
            self.stop(GRACE);
        }
    }
}

/// A place in a file to which is written.
struct At<'a> {
    file: &'a File,
    place: u64,
}

impl Write for At<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_at(bytes, self.place)?;
        self.place += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Passes on what a process writes until it has ended, and returns the last of it.
fn pass_on(mut from: ChildStderr) -> String {
    let (mut tail, mut bytes) = (Vec::new(), [0; 4 << 10]);
    loop {
        match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => {
                // If no one listens any more, that is no reason for a function not to be called.
                let _ = io::stderr().write_all(&bytes[..read]);
                tail.extend_from_slice(&bytes[..read]);
                tail.drain(..tail.len().saturating_sub(TAIL));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&tail).into_owned()
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(signal)) => match Signal::from_named_raw(signal) {
            Some(name) => {
                let name = format!("{name:?}").replace('"', "");
                format!("was ended by SIG{}", name.trim_start_matches("Signal::"))
            }
            None => format!("was ended by signal {signal}"),
        },
        (None, None) => "ended".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array};
    use std::sync::Arc;

    fn rows() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        RecordBatch::try_from_iter([("x", numbers)]).unwrap()
    }

    fn error(python: &str) -> String {
        let processes = Processes::new(python, 1).bound(Duration::from_secs(5));
        let call = || processes.call("module:function", &rows(), &Cancel::default()).unwrap_err().to_string();
        // The place of what has failed is free again.
        assert_eq!(call(), call());
        call()
    }

    #[test]
    fn what_is_no_python_is_told() {
        assert!(error("/no/such/python").starts_with("/no/such/python cannot be started: No such file"));
        let twice = "module:function: it was called twice, and the second time the process that called it";
        assert_eq!(error("/bin/false"), format!("{twice} ended with exit status 1"));
        let what = error("/bin/cat");
        assert!(what.contains("it wrote last:\n/bin/cat: invalid option"), "{what}");
    }

    #[test]
    fn who_waits_for_a_process_can_be_told_to_stop() {
        let processes = Processes::new("/bin/false", 1);
        processes.pool.lock().unwrap().started = 1;
        let cancel = Cancel::default();
        thread::scope(|scope| {
            let waits = scope.spawn(|| processes.call("module:function", &rows(), &cancel));
            thread::sleep(LOOK * 2);
            assert!(!waits.is_finished());
            cancel.cancel();
            assert_eq!(waits.join().unwrap(), Err(PrepareError::cancelled()));
        });
    }
}
