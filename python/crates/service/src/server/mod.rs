//! The server.

mod connections;
mod hub;

pub(crate) use connections::{ASKS_FOR_MEMORY, SESSION};

use crate::dataset::{DataSet, Opener};
use crate::memory::Memory;
use crate::proto;
use crate::sampling::Wanted;
use arrow::datatypes::DataType;
use connections::Sessions;
use hub::{Hub, Joining, Window};
use joader::ElementSet;
use preparing::{Callables, Recipe};
use proto::joader_server::{Joader, JoaderServer};
use source::{Cancel, SourceError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tonic::transport::server::UdsConnectInfo;
use tonic::{Request, Response, Status, Streaming};

/// What a server is started with.
pub struct ServerOptions {
    /// The socket, which only its user can open.
    pub path: PathBuf,
    /// Bytes of the memory.
    pub memory: u64,
    /// Threads that read and prepare.
    pub threads: usize,
    /// Names the orders of elements.
    pub seed: i64,
}

/// How often is looked for jobs that stall.
const TICK: Duration = Duration::from_secs(1);

/// How long a job may take to register.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of a message: elements that find no room are in one.
pub(crate) const MAX_MESSAGE: usize = usize::MAX;

/// Serves until `stop` changes or goes, then ends what it started. `ready` is called once jobs can connect.
///
/// # Errors
/// If the socket cannot be opened, or another server has it.
pub fn serve(
    options: ServerOptions,
    opener: Arc<dyn Opener>,
    callables: Option<Box<dyn Callables>>,
    mut stop: watch::Receiver<()>,
    ready: impl FnOnce(),
) -> io::Result<()> {
    let listener = listen(&options.path)?;
    let memory = Memory::new(options.memory)?;
    let (hub, threads) = Hub::start(memory, callables, options.seed, options.threads)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = UnixListener::from_std(listener)?;
        let sessions = Arc::new(Sessions::default());
        let memory: OwnedFd = hub.memory.file().try_clone_to_owned()?;
        let incoming = connections::accept(listener, sessions.clone(), memory);
        let ticking = hub.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                ticking.tick();
            }
        });
        let service = Service { hub: hub.clone(), opener, sessions };
        let service =
            JoaderServer::new(service).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE);
        ready();
        tracing::info!(path = %options.path.display(), memory = options.memory, "serving");
        let server = tonic::transport::Server::builder().add_service(service);
        tokio::select! {
            served = server.serve_with_incoming(ReceiverStream::new(incoming)) => served.map_err(io::Error::other),
            _ = stop.changed() => Ok(()),
        }
    });
    hub.close();
    // jobs are told by their connections
    runtime.shutdown_timeout(Duration::from_secs(1));
    for thread in threads {
        let _ = thread.join();
    }
    let _ = std::fs::remove_file(&options.path);
    served
}

/// Listens on a socket that only its user can open. One that a server left behind when it was killed is replaced.
fn listen(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    if let Ok(old) = std::fs::symlink_metadata(path) {
        if !old.file_type().is_socket() {
            let what = format!("{} is there and no socket", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            let what = format!("another server has {}", path.display());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
        }
        std::fs::remove_file(path)?;
    }
    // bound in secret, so that nobody connects before the rights are set
    let hidden = path.with_extension(format!("{}.new", std::process::id()));
    let _ = std::fs::remove_file(&hidden);
    let listener = std::os::unix::net::UnixListener::bind(&hidden)?;
    listener.set_nonblocking(true)?;
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&hidden, path)?;
    Ok(listener)
}

struct Service {
    hub: Arc<Hub>,
    opener: Arc<dyn Opener>,
    sessions: Arc<Sessions>,
}

fn status_of(error: SourceError) -> Status {
    match error {
        SourceError::Invalid(what) => Status::invalid_argument(what),
        SourceError::Cancelled => Status::cancelled("the server ends"),
        error => Status::failed_precondition(error.to_string()),
    }
}

/// Does what may take long outside of the threads that answer.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, Status> + Send + 'static) -> Result<T, Status> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Status::internal(format!("the server's thread ended: {error}"))),
    }
}

impl Service {
    async fn put(&self, message: proto::DataSet, replaces: bool) -> Result<Response<proto::DataSetInfo>, Status> {
        if message.name.is_empty() {
            return Err(Status::invalid_argument("name: a data set needs one"));
        }
        let (opener, hub) = (self.opener.clone(), self.hub.clone());
        apart(move || {
            let opened = opener.open(&message.source).map_err(status_of)?;
            let data_set = DataSet::new(opened, message.columns.clone(), &message.element_size).map_err(status_of)?;
            hub.create(message, data_set, replaces).map(Response::new)
        })
        .await
    }
}

/// Ends a job when the task that listens to it ends, however that is.
struct Leaving(Arc<Hub>, u64);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// Cancels what is done for somebody who has gone.
struct Cancelling(Arc<Cancel>);

impl Drop for Cancelling {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[tonic::async_trait]
impl Joader for Service {
    async fn create(&self, request: Request<proto::DataSet>) -> Result<Response<proto::DataSetInfo>, Status> {
        self.put(request.into_inner(), false).await
    }

    async fn alter(&self, request: Request<proto::DataSet>) -> Result<Response<proto::DataSetInfo>, Status> {
        self.put(request.into_inner(), true).await
    }

    async fn drop(&self, request: Request<proto::Name>) -> Result<Response<proto::Nothing>, Status> {
        self.hub.drop_data_set(&request.into_inner().name)?;
        Ok(Response::new(proto::Nothing {}))
    }

    async fn list(&self, _: Request<proto::Nothing>) -> Result<Response<proto::DataSets>, Status> {
        Ok(Response::new(proto::DataSets { data_sets: self.hub.list() }))
    }

    async fn status(&self, _: Request<proto::Nothing>) -> Result<Response<proto::StatusReply>, Status> {
        Ok(Response::new(self.hub.status()))
    }

    type TrainStream = UnboundedReceiverStream<Result<proto::ToJob, Status>>;

    async fn train(&self, request: Request<Streaming<proto::FromJob>>) -> Result<Response<Self::TrainStream>, Status> {
        let process = request
            .extensions()
            .get::<UdsConnectInfo>()
            .and_then(|info| info.peer_cred.as_ref()?.pid())
            .and_then(|process| u32::try_from(process).ok())
            .unwrap_or_default();
        let mut messages = request.into_inner();
        let first = tokio::time::timeout(PATIENCE, messages.message()).await;
        let register = match first.map_err(|_| Status::deadline_exceeded("a job has to register first"))?? {
            Some(proto::FromJob { message: Some(proto::from_job::Message::Register(register)) }) => register,
            _ => return Err(Status::invalid_argument("a job has to register first")),
        };
        let (sender, receiver) = mpsc::unbounded_channel();
        let (hub, sessions) = (self.hub.clone(), self.sessions.clone());
        let cancel = Arc::new(Cancel::default());
        let cancelling = Cancelling(cancel.clone());
        let job = apart(move || register_job(&hub, &sessions, register, process, sender, &cancel)).await?;
        drop(cancelling);
        let leaving = Leaving(self.hub.clone(), job);
        tokio::spawn(async move {
            while let Ok(Some(message)) = messages.message().await {
                if let Some(proto::from_job::Message::Done(done)) = message.message {
                    leaving.0.done(leaving.1, &done.tickets);
                }
            }
        });
        Ok(Response::new(UnboundedReceiverStream::new(receiver)))
    }
}

/// Bytes of a value of this type, 0 if not all values are of one length. Pictures become much larger when they are decoded.
fn bytes_of(of: &DataType) -> u64 {
    match of {
        DataType::FixedSizeList(field, length) => {
            bytes_of(field.data_type()).saturating_mul(u64::try_from(*length).unwrap_or_default())
        }
        of => of.primitive_width().unwrap_or_default() as u64,
    }
}

/// Registers a job: finds the rows that it wants, and lets it join.
fn register_job(
    hub: &Hub,
    sessions: &Sessions,
    register: proto::Register,
    process: u32,
    to_job: hub::ToJob,
    cancel: &Cancel,
) -> Result<u64, Status> {
    let (data_set, message) = hub.data_set(&register.data_set)?;
    let fingerprint = data_set.fingerprint();
    if register.fingerprint.is_some_and(|known| known != fingerprint) {
        let what = format!("dataset: {:?} is another one than this job has begun with", register.data_set);
        return Err(Status::failed_precondition(what));
    }
    if register.epoch >= register.epochs {
        return Err(Status::invalid_argument("epochs: there is none left"));
    }
    let recipe = match register.recipe.as_str() {
        "" => Recipe::default(),
        text => Recipe::parse(text).map_err(|error| Status::invalid_argument(format!("prepare: {error}")))?,
    };
    let source = data_set.source(&register.columns).map_err(status_of)?;
    let prepared = recipe
        .output_schema(&source.schema())
        .map_err(|error| Status::invalid_argument(format!("prepare: {error}")))?;
    let row_bytes = prepared.iter().flat_map(|schema| schema.fields()).map(|field| bytes_of(field.data_type())).sum();
    let selection = data_set.selection(&register.filter, cancel).map_err(status_of)?;
    let left = match register.left {
        None => None,
        Some(left) => {
            let ranges = left.ranges.iter().map(|range| range.start..range.end);
            let left = ElementSet::from_ranges(ranges).map_err(|error| Status::invalid_argument(error.to_string()))?;
            let all: std::collections::BTreeSet<u32> = selection.elements.iter().collect();
            if left.span().end > data_set.elements() || left.iter().any(|element| !all.contains(&element)) {
                return Err(Status::invalid_argument("left: there are elements that the job does not want"));
            }
            Some(left)
        }
    };
    let window = match register.window.and_then(|window| window.size) {
        Some(proto::window::Size::Elements(elements)) => Window::Elements(elements),
        Some(proto::window::Size::Share(share)) if share > 0.0 && share <= 1.0 => Window::Share(share),
        _ => return Err(Status::invalid_argument("buffer_size: a number of elements or a share of them is needed")),
    };
    let session = sessions.begin().map_err(|error| Status::internal(error.to_string()))?;
    let elements = selection.elements.clone();
    let rows_of_job = selection.rows;
    let wanted = Wanted { elements: elements.clone(), left, epoch: register.epoch, end: register.epochs, ahead: 1 };
    let memory = hub.memory.len();
    let registered = |job, window| {
        let ranges = elements.ranges().iter().map(|range| proto::Range { start: range.start, end: range.end });
        proto::ToJob {
            message: Some(proto::to_job::Message::Registered(proto::Registered {
                job,
                session: session.to_vec().into(),
                memory,
                data_set: Some(message),
                fingerprint,
                starts: data_set.starts(),
                rows: data_set.rows(),
                elements: Some(proto::Elements { ranges: ranges.collect() }),
                rows_of_job,
                window,
            })),
        }
    };
    let joining = Joining {
        name: register.name,
        data_set: register.data_set,
        columns: register.columns,
        recipe,
        selection,
        row_bytes,
        wanted,
        window,
        to_job,
        process,
    };
    hub.join(joining, source, registered)
}
