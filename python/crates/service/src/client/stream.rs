//! The thread of a job: it hears from the server, and reads by itself without one.
//!
//! It guarantees that every element that is missing of an epoch comes, from whichever of the two, and none twice.

use super::direct::{Direct, Holding, hold};
use super::inbox::{Arrived, DataSetInfo, Inbox, Mode};
use super::mixing::Rows;
use super::{JobOptions, Opening};
use crate::error::ServiceError;
use crate::memory::SharedMemory;
use crate::peer;
use crate::proto::{self, element, from_job, to_job};
use crate::server::{ASKS_FOR_MEMORY, MAX_MESSAGE, SESSION};
use arrow::buffer::{BooleanBuffer, Buffer};
use proto::joader_client::JoaderClient;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use shuffle::{ALONE, below, stream};
use source::Cancel;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::{Channel, Endpoint};

/// How long a server may take to answer a client that connects.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a job that reads by itself looks for a server.
const AGAIN: Duration = Duration::from_secs(1);

/// A job that is refused asks half as often each time, this many times.
const MAX_DOUBLED: u32 = 5;

/// A job tries to register no longer than one part in this many of its time.
const PART_OF_TRYING: u32 = 10;

/// A server from which nothing has come for so long is asked whether it is there,
const QUIET: Duration = Duration::from_secs(2);

/// and is given up if it does not answer for so long.
const ANSWER: Duration = Duration::from_secs(5);

/// Connects to a server of the own user or root: another one gets nothing.
pub(super) async fn connect(path: &Path) -> Result<JoaderClient<Channel>, ServiceError> {
    let to = path.to_owned();
    let connector = tower::service_fn(move |_| {
        let to = to.clone();
        async move { peer::connect(&to).await.map(hyper_util::rt::TokioIo::new) }
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
async fn memory_of(path: &Path, session: &[u8]) -> io::Result<SharedMemory> {
    if session.len() != SESSION {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut socket = peer::connect(path).await?;
    socket.write_all(&[&[ASKS_FOR_MEMORY], session].concat()).await?;
    let file = loop {
        socket.readable().await?;
        match socket.try_io(Interest::READABLE, || receive_file(&socket)) {
            Ok(file) => break file,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    };
    SharedMemory::map(file.ok_or_else(|| io::Error::other("the server gave no memory"))?)
}

/// A file that comes over a socket.
fn receive_file(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    Ok(ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    }))
}

/// Tells the server that an element is not used any more, when it is dropped.
struct Held {
    ticket: u64,
    done: UnboundedSender<u64>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.done.send(self.ticket);
    }
}

/// Does all that the thread has to do.
pub(super) fn run(
    options: &JobOptions,
    opening: &Opening,
    inbox: &Arc<Inbox>,
    holding: &Holding,
    cancel: &Arc<Cancel>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let failed = match runtime {
        Err(error) => Some(ServiceError::Lost(format!("the system gives no thread to hear from it: {error}"))),
        Ok(runtime) => {
            let ended = keep_going(options, opening, inbox, holding, cancel, &runtime);
            // a database that does not answer may keep the one that holds the rows waiting for long
            runtime.shutdown_background();
            ended.err()
        }
    };
    if let Some(error) = failed {
        inbox.change(|state| state.failed = Some(error));
    }
}

fn keep_going(
    options: &JobOptions,
    opening: &Opening,
    inbox: &Arc<Inbox>,
    holding: &Holding,
    cancel: &Arc<Cancel>,
    runtime: &tokio::runtime::Runtime,
) -> Result<(), ServiceError> {
    let mut direct: Option<Direct> = None;
    let mut leaving = Vec::new();
    let mut refused = 0;
    loop {
        let (began, registered) = (Instant::now(), inbox.lock().counts.registered);
        let ended = runtime.block_on(async {
            tokio::select! {
                ended = hear(options, opening, inbox, holding, &mut leaving) => Some(ended),
                () = inbox.closed() => None,
            }
        });
        let Some(ended) = ended else { return Ok(()) };
        let Err(why) = ended else { return Ok(()) };
        let Some(info) = inbox.lock().info.clone() else { return Err(why) };
        inbox.change(|state| state.mode = Mode::Direct(why.to_string()));
        // A server that has just begun may not have the data set yet, and one that does not answer costs time.
        let gone = matches!(why, ServiceError::Lost(_) | ServiceError::NoServer { .. });
        let has_registered = inbox.lock().counts.registered > registered;
        refused = if gone { 0 } else { refused + 1 };
        let tried = if has_registered { Duration::ZERO } else { began.elapsed() };
        let again = (AGAIN * (1 << refused.min(MAX_DOUBLED))).max(tried * PART_OF_TRYING);
        if direct.is_none() {
            direct =
                Some(Direct::open(options, opening, &info, holding, cancel).map_err(|error| {
                    ServiceError::Lost(format!("{why}; and the job cannot read by itself: {error}"))
                })?);
        }
        let Some(direct) = &direct else { return Ok(()) };
        if !read_directly(options, inbox, direct, &info, again, runtime) {
            // a server that has only lost its leader is there, and others may come to it
            let left = async {
                for leaving in leaving {
                    let _ = leaving.await;
                }
            };
            runtime.block_on(async {
                tokio::select! {
                    () = left => {}
                    () = inbox.closed() => {}
                }
            });
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
    again: Duration,
    runtime: &tokio::runtime::Runtime,
) -> bool {
    let mut until = Instant::now() + again;
    let mut rng = stream(ALONE, options.seed, 3, inbox.lock().missing().1.len() as u64);
    // what is missing of the epoch: while a job reads by itself, no one else gives it anything
    let mut to_read: Vec<u32> = Vec::new();
    loop {
        if Instant::now() > until {
            // a look at the socket is cheap, an attempt to register is not
            if runtime.block_on(peer::connect(&options.path)).is_ok() {
                return true;
            }
            until = Instant::now() + again;
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
        if to_read.is_empty() {
            to_read = missing.iter().copied().collect();
        }
        drop(state);
        let element = to_read.swap_remove(below(&mut rng, to_read.len()));
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

/// Registers and hears from the server until it or the job ends.
async fn hear(
    options: &JobOptions,
    opening: &Opening,
    inbox: &Arc<Inbox>,
    holding: &Holding,
    left: &mut Vec<tokio::task::JoinHandle<()>>,
) -> Result<(), ServiceError> {
    let mut client = connect(&options.path).await?;
    let (to_server, from_job) = unbounded_channel();
    let register = register(options, inbox);
    let first = proto::FromJob { message: Some(from_job::Message::Register(register)) };
    let _ = to_server.send(first);
    let asks = client.clone();
    let response = watched(&asks, client.train(UnboundedReceiverStream::new(from_job))).await?;
    let mut messages = response?.into_inner();
    let first = watched(&asks, messages.message()).await??.and_then(|to_job| to_job.message);
    let Some(to_job::Message::Registered(registered)) = first else {
        return Err(ServiceError::Lost("the job was not registered".to_owned()));
    };
    let no_memory = |error| ServiceError::Lost(format!("its memory cannot be allocated: {error}"));
    let memory = match tokio::time::timeout(PATIENCE, memory_of(&options.path, &registered.session)).await {
        Ok(memory) => memory.map_err(no_memory)?,
        Err(_) => return Err(no_memory(io::ErrorKind::TimedOut.into())),
    };
    let info = Arc::new(DataSetInfo::of(registered)?);
    if !info.passing.is_empty() {
        // elements come meanwhile
        let (holding, opening, info) = (holding.clone(), opening.clone(), info.clone());
        tokio::task::spawn_blocking(move || hold(&holding, &opening, &info.passing));
    }
    inbox.change(|state| {
        if state.info.is_none() && options.position.is_none() {
            state.begin(options.epoch, info.elements.iter().collect());
        }
        state.window = info.window;
        state.info.get_or_insert_with(|| info.clone());
        state.mode = Mode::Connected;
        state.counts.registered += 1;
    });
    let (held, done) = unbounded_channel();
    let given_back = tokio::spawn(give_back(done, to_server));
    let heard = hear_elements(options, inbox, &info, &asks, &mut messages, &memory, &held).await;
    drop(held);
    // Who leaves gives up what he holds, and others may get that memory. So this waits until no row of it is needed:
    // if all came, here, and if the server does not answer, while the job reads by itself.
    let leaving = async move {
        let until_it_ends = async { while let Ok(Some(_)) = messages.message().await {} };
        tokio::select! {
            _ = given_back => {}
            () = until_it_ends => {}
        }
        drop(asks);
    };
    match heard {
        Ok(()) => leaving.await,
        Err(_) => left.push(tokio::spawn(leaving)),
    }
    heard
}

/// Waits for what may take long, as long as the server answers.
pub(super) async fn watched<T>(
    asks: &JoaderClient<Channel>,
    awaited: impl Future<Output = T>,
) -> Result<T, ServiceError> {
    let mut awaited = std::pin::pin!(awaited);
    loop {
        if let Ok(came) = tokio::time::timeout(QUIET, &mut awaited).await {
            return Ok(came);
        }
        let mut asks = asks.clone();
        let answered = async {
            // which it answers by itself, without a leader
            let _ = asks.status(proto::Nothing {}).await;
        };
        tokio::select! {
            came = &mut awaited => return Ok(came),
            answered = tokio::time::timeout(ANSWER, answered) => answered.map_err(|_| {
                ServiceError::Lost(format!("it has not answered for {} seconds", (QUIET + ANSWER).as_secs()))
            })?,
        }
    }
}

async fn hear_elements(
    options: &JobOptions,
    inbox: &Inbox,
    info: &DataSetInfo,
    asks: &JoaderClient<Channel>,
    messages: &mut tonic::Streaming<proto::ToJob>,
    memory: &SharedMemory,
    held: &UnboundedSender<u64>,
) -> Result<(), ServiceError> {
    loop {
        {
            let mut state = inbox.lock();
            state.advance(options.epochs - 1);
            if state.missing().1.is_empty() {
                return Ok(());
            }
        }
        let Some(message) = watched(asks, messages.message()).await?? else {
            return Err(ServiceError::Lost("it has ended".to_owned()));
        };
        let element = match message.message {
            Some(to_job::Message::Element(element)) => element,
            Some(to_job::Message::Ended(proto::Ended { code, why })) => {
                return Err(tonic::Status::new(code.into(), why).into());
            }
            _ => continue,
        };
        let proto::Element { ticket, epoch, element, chosen, rows } = element;
        let held = Held { ticket, done: held.clone() };
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
            // of all rows of the element, of which there are fewer if damaged ones were skipped
            let rows = info.rows_of(element);
            let rows = (rows.end - rows.start) as usize;
            if !chosen.is_empty() && chosen.len() < rows.div_ceil(8) {
                return Err(format!(
                    "the server has told of {} bytes of bits which of {rows} rows are chosen",
                    chosen.len()
                ));
            }
            let chosen = (!chosen.is_empty()).then(|| BooleanBuffer::new(Buffer::from(chosen), 0, rows));
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
    let (epoch, left) = match (&state.info, &options.position) {
        (None, None) => (options.epoch, None),
        _ => {
            let (epoch, missing) = state.missing();
            let ranges = missing.iter().map(|element| *element..*element + 1);
            (epoch, Some(proto::Elements::of(&joader::ElementSet::from_ranges(ranges).unwrap_or_default())))
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
        timeout: options.timeout,
        // so that it stays what it was, also if all servers have forgotten the job
        share: state.info.as_ref().filter(|_| options.world_size > 1).map(|info| proto::Elements::of(&info.elements)),
    }
}
