//! The thread of a job: it hears from the server, and reads by itself while there is none.
//!
//! It guarantees that every element that is missing of an epoch comes, from whichever of the two, and none twice.

use super::direct::Direct;
use super::inbox::{Arrived, DataSetInfo, Inbox, Mode};
use super::mixing::Rows;
use super::{JobOptions, Opening};
use crate::error::ServiceError;
use crate::memory::SharedMemory;
use crate::proto::{self, element, from_job, to_job};
use crate::server::{ASKS_FOR_MEMORY, MAX_MESSAGE, SESSION};
use arrow::buffer::{BooleanBuffer, Buffer};
use proto::joader_client::JoaderClient;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use shuffle::{ALONE, below, stream};
use source::Cancel;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::{Channel, Endpoint};

/// How long a server may take to answer whoever connects.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a job that reads by itself looks for a server.
const AGAIN: Duration = Duration::from_secs(1);

/// Connects to a server.
///
/// # Errors
/// [`ServiceError::NoServer`]
pub(super) async fn connect(path: &Path) -> Result<JoaderClient<Channel>, ServiceError> {
    let to = path.to_owned();
    let connector = tower::service_fn(move |_| {
        let to = to.clone();
        async move { tokio::net::UnixStream::connect(to).await.map(hyper_util::rt::TokioIo::new) }
    });
    let no_server = |what: String| ServiceError::NoServer { path: path.to_owned(), what };
    // the address is not used, but has to be one
    let endpoint = Endpoint::from_static("http://joader.invalid").connect_timeout(PATIENCE);
    let channel = endpoint.connect_with_connector(connector).await.map_err(|error| {
        let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        no_server(cause)
    })?;
    Ok(JoaderClient::new(channel).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE))
}

/// Asks for the memory.
fn memory_of(path: &Path, session: &[u8]) -> io::Result<SharedMemory> {
    if session.len() != SESSION {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut socket = std::os::unix::net::UnixStream::connect(path)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(&[&[ASKS_FOR_MEMORY], session].concat())?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let file = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let file: OwnedFd = file.ok_or_else(|| io::Error::other("the server gave no memory"))?;
    SharedMemory::map(file)
}

/// Tells the server that an element is not used any more, when it is dropped.
struct Held {
    ticket: u64,
    done: UnboundedSender<u64>,
    _counted: Arc<()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.done.send(self.ticket);
    }
}

/// A connection that is needed as long as elements are held that came by it: without it the server would give their
/// memory to others.
struct Connection {
    messages: tonic::Streaming<proto::ToJob>,
    /// each element that is held has one
    held: Arc<()>,
    done: UnboundedSender<u64>,
    give_back: tokio::task::JoinHandle<()>,
}

impl Connection {
    fn is_needed(&self) -> bool {
        Arc::strong_count(&self.held) > 1
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.give_back.abort();
    }
}

/// Keeps connections until they are not needed or the job is closed.
async fn linger(inbox: &Inbox, connections: &[Connection]) {
    while connections.iter().any(Connection::is_needed) && !inbox.lock().closed {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Does all that the thread has to do.
pub(super) fn run(options: &JobOptions, opening: &Opening, inbox: &Arc<Inbox>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let failed = match runtime {
        Err(error) => Some(ServiceError::Refused(format!("the system gives no thread: {error}"))),
        Ok(runtime) => keep_going(options, opening, inbox, &runtime).err(),
    };
    if let Some(error) = failed {
        inbox.change(|state| state.failed = Some(error));
    }
}

fn keep_going(
    options: &JobOptions,
    opening: &Opening,
    inbox: &Arc<Inbox>,
    runtime: &tokio::runtime::Runtime,
) -> Result<(), ServiceError> {
    let mut direct: Option<Direct> = None;
    let mut old: Vec<Connection> = Vec::new();
    loop {
        old.retain(Connection::is_needed);
        let ended = runtime.block_on(hear(options, inbox, &mut old));
        if inbox.lock().closed {
            return Ok(());
        }
        let why = match ended {
            Ok(()) => {
                runtime.block_on(linger(inbox, &old));
                return Ok(());
            }
            Err(error) => error,
        };
        let Some(info) = inbox.lock().info.clone() else { return Err(why) };
        // a job that the server has refused to take again reads by itself to its end
        let is_final = !matches!(why, ServiceError::Lost(_) | ServiceError::NoServer { .. });
        inbox.change(|state| state.mode = Mode::Direct(why.to_string()));
        if direct.is_none() {
            let cancel = Arc::new(Cancel::default());
            direct =
                Some(Direct::open(options, opening, &info, cancel).map_err(|error| {
                    ServiceError::Lost(format!("{why}; and the job cannot read by itself: {error}"))
                })?);
        }
        let Some(direct) = &direct else { return Ok(()) };
        if !read_directly(options, inbox, direct, &info, (!is_final).then_some(AGAIN)) {
            runtime.block_on(linger(inbox, &old));
            return Ok(());
        }
    }
}

/// Reads what is missing in random order until there may be a server again; false once nothing is missing.
fn read_directly(
    options: &JobOptions,
    inbox: &Inbox,
    direct: &Direct,
    info: &DataSetInfo,
    again: Option<Duration>,
) -> bool {
    let mut until = again.map(|again| Instant::now() + again);
    let mut rng = stream(ALONE, options.seed, 3, inbox.lock().missing().1.len() as u64);
    loop {
        if until.is_some_and(|until| Instant::now() > until) {
            // a look at the socket is cheap, an attempt to connect is not
            if std::os::unix::net::UnixStream::connect(&options.path).is_ok() {
                return true;
            }
            until = again.map(|again| Instant::now() + again);
        }
        let room = inbox.wait(Duration::from_millis(100), |state| {
            (state.closed || state.waiting() < info.window as usize).then_some(())
        });
        if room.is_none() {
            continue;
        }
        let mut state = inbox.lock();
        if state.closed {
            return false;
        }
        state.advance(options.epochs - 1);
        let (epoch, missing) = state.missing();
        if missing.is_empty() {
            return false;
        }
        let Some(element) = missing.iter().nth(below(&mut rng, missing.len())).copied() else { return false };
        drop(state);
        let rows = direct.read(element);
        inbox.change(|state| {
            match rows {
                Ok(_) => state.counts.direct += 1,
                Err(_) => state.counts.errors += 1,
            }
            state.arrive(Arrived { epoch, element, rows });
        });
    }
}

/// Registers and hears from the server until it or the job ends. The connection is among the `old` ones then.
async fn hear(options: &JobOptions, inbox: &Arc<Inbox>, old: &mut Vec<Connection>) -> Result<(), ServiceError> {
    let mut client = connect(&options.path).await?;
    let (to_server, from_job) = unbounded_channel();
    let register = register(options, inbox);
    let first = proto::FromJob { message: Some(from_job::Message::Register(register)) };
    let _ = to_server.send(first);
    let response = tokio::select! {
        response = client.train(UnboundedReceiverStream::new(from_job)) => response?,
        // a rank may wait long for the others
        () = closed(inbox) => return Ok(()),
    };
    let mut messages = response.into_inner();
    let Some(to_job::Message::Registered(registered)) = messages.message().await?.and_then(|to_job| to_job.message)
    else {
        return Err(ServiceError::Lost("the job was not registered".to_owned()));
    };
    let memory = memory_of(&options.path, &registered.session);
    let memory = memory.map_err(|error| ServiceError::Lost(format!("its memory cannot be had: {error}")))?;
    let info = Arc::new(DataSetInfo::of(registered)?);
    inbox.change(|state| {
        if state.info.is_none() && options.position.is_none() {
            state.begin(options.epoch, info.elements.iter().collect());
        }
        state.info.get_or_insert(info);
        state.mode = Mode::Connected;
        state.counts.registered += 1;
    });
    let (done, given_back) = unbounded_channel();
    let give_back = tokio::spawn(give_back(given_back, to_server));
    let mut connection = Connection { messages, held: Arc::default(), done, give_back };
    let heard = hear_elements(options, inbox, &mut connection, &memory).await;
    old.push(connection);
    heard
}

/// Waits until the job is closed.
async fn closed(inbox: &Inbox) {
    while !inbox.lock().closed {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn hear_elements(
    options: &JobOptions,
    inbox: &Inbox,
    connection: &mut Connection,
    memory: &SharedMemory,
) -> Result<(), ServiceError> {
    loop {
        {
            let mut state = inbox.lock();
            state.advance(options.epochs - 1);
            if state.closed || state.missing().1.is_empty() {
                return Ok(());
            }
        }
        // the job may be closed while nothing comes
        let message = match tokio::time::timeout(Duration::from_millis(200), connection.messages.message()).await {
            Err(_) => continue,
            Ok(message) => message?,
        };
        let Some(message) = message else { return Err(ServiceError::Lost("it has ended".to_owned())) };
        let element = match message.message {
            Some(to_job::Message::Element(element)) => element,
            Some(to_job::Message::Ended(proto::Ended { code, why })) => {
                return Err(tonic::Status::new(code.into(), why).into());
            }
            _ => continue,
        };
        let proto::Element { ticket, epoch, element, chosen, rows } = element;
        let held = Held { ticket, done: connection.done.clone(), _counted: connection.held.clone() };
        let (bytes, is_outside) = match rows {
            Some(element::Rows::Slot(slot)) => {
                let end = slot.offset.saturating_add(slot.length);
                (memory.part(slot.offset..end, held).ok_or_else(|| "there is no such memory".to_owned()), false)
            }
            Some(element::Rows::Here(bytes)) => (Ok(bytes::Bytes::from_owner(Kept { bytes, _held: held })), true),
            Some(element::Rows::Error(error)) => (Err(error), false),
            None => (Err("the server has sent no rows".to_owned()), false),
        };
        let rows = bytes.and_then(|bytes| {
            let batch = preparing::slot::decode(bytes).map_err(|error| error.to_string())?;
            let chosen = (!chosen.is_empty()).then(|| BooleanBuffer::new(Buffer::from(chosen), 0, batch.num_rows()));
            Ok(Rows { batch, chosen })
        });
        inbox.change(|state| {
            if !state.expects(epoch, element) {
                return;
            }
            match &rows {
                Err(_) => state.counts.errors += 1,
                Ok(_) if is_outside => state.counts.outside += 1,
                Ok(_) => state.counts.shared += 1,
            }
            state.arrive(Arrived { epoch, element, rows });
        });
    }
}

/// Rows that came in a message.
struct Kept {
    bytes: bytes::Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Tells the server what is not used any more, several elements at once.
async fn give_back(mut done: UnboundedReceiver<u64>, to_server: UnboundedSender<proto::FromJob>) {
    let mut tickets = Vec::new();
    while done.recv_many(&mut tickets, 1024).await > 0 {
        tickets.retain(|ticket| *ticket != 0);
        let message = proto::Done { tickets: std::mem::take(&mut tickets) };
        if to_server.send(proto::FromJob { message: Some(from_job::Message::Done(message)) }).is_err() {
            return;
        }
    }
}

fn register(options: &JobOptions, inbox: &Inbox) -> proto::Register {
    let state = inbox.lock();
    let ranges = |elements: &std::collections::BTreeSet<u32>| {
        let ranges = elements.iter().map(|element| *element..*element + 1);
        let set = joader::ElementSet::from_ranges(ranges).unwrap_or_default();
        set.ranges().iter().map(|range| proto::Range { start: range.start, end: range.end }).collect()
    };
    let (epoch, left) = match (&state.info, &options.position) {
        (None, None) => (options.epoch, None),
        _ => {
            let (epoch, missing) = state.missing();
            (epoch, Some(proto::Elements { ranges: ranges(missing) }))
        }
    };
    let size = match options.buffer {
        super::BufferSize::Elements(elements) => proto::window::Size::Elements(elements.saturating_mul(2)),
        super::BufferSize::Share(share) => proto::window::Size::Share(share),
    };
    proto::Register {
        name: options.name.clone(),
        data_set: options.data_set.clone(),
        columns: options.columns.clone(),
        filter: options.filter.clone(),
        recipe: options.recipe.clone(),
        epoch,
        epochs: options.epochs,
        window: Some(proto::Window { size: Some(size) }),
        left,
        fingerprint: state.info.as_ref().map(|info| info.fingerprint).or(options.fingerprint),
        rank: options.rank,
        world_size: options.world_size,
        // so that it stays what it was, also if all servers have forgotten the job
        share: state.info.as_ref().filter(|_| options.world_size > 1).map(|info| proto::Elements::of(&info.elements)),
    }
}
