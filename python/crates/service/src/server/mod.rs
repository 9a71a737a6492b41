//! The server.

mod connections;
mod data_sets;
mod hub;
mod leading;

pub(crate) use connections::{ASKS_FOR_MEMORY, SESSION};

use crate::cluster::groups::{Coming, Groups, Seat};
use crate::cluster::uplink::{Sampled, Uplink};
use crate::cluster::{Cluster, Listening};
use crate::dataset::{DataSet, Opener, Selection};
use crate::dealing::Deal;
use crate::memory::Memory;
use crate::proto;
use crate::sampling::Wanted;
use arrow::datatypes::DataType;
use connections::Sessions;
use data_sets::{DataSets, apart, short, status_of};
use hub::{Hub, Joining, Window};
use joader::ElementSet;
use leading::{Leader, Leading};
use preparing::{Callables, Recipe};
use proto::joader_server::{Joader, JoaderServer};
use proto::leader_server::LeaderServer;
use source::{Cancel, Source};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tonic::transport::server::UdsConnectInfo;
use tonic::{Code, Request, Response, Status, Streaming};

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
    /// What it is among several servers; None if it is the only one.
    pub cluster: Option<Cluster>,
}

/// How often is looked for jobs that stall.
const TICK: Duration = Duration::from_secs(1);

/// How long a leader may take to answer a job that has lost it before.
const LEADER_ANSWERS: Duration = Duration::from_secs(1);

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
    let cluster = options.cluster;
    if let Some(cluster) = &cluster {
        cluster.check()?;
    }
    let (node, nodes) = cluster.as_ref().map_or((0, 1), Cluster::node);
    let (listening, uplink) = match cluster {
        None => (None, None),
        Some(Cluster::Leader(leader)) => (Some(Listening::new(leader)?), None),
        Some(Cluster::Follower(follower)) => (None, Some(Arc::new(Uplink::new(follower)?))),
    };
    let (listener, file) = listen(&options.path)?;
    let memory = Memory::new(options.memory)?;
    let (hub, threads) = Hub::start(memory, callables, options.seed, options.threads, uplink.is_some())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        let data_sets = DataSets { hub: hub.clone(), opener };
        let groups = Groups::new(options.seed, nodes);
        let mut leading = None;
        let mut led: Pin<Box<dyn Future<Output = io::Result<()>> + Send>> = Box::pin(std::future::pending());
        let mut address = None;
        if let Some(listening) = listening {
            let of = Arc::new(Leading::new(node, options.seed, data_sets.clone(), groups.clone()));
            let service = LeaderServer::new(Leader(of.clone()))
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_MESSAGE);
            address = Some(listening.address()?.to_string());
            led = Box::pin(listening.serve(service)?);
            leading = Some(of);
        }
        if let Some(uplink) = &uplink {
            tokio::spawn(uplink.clone().run());
        }
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
        let service = Service {
            hub: hub.clone(),
            data_sets,
            sessions,
            node: (node, nodes),
            groups,
            leading,
            address,
            uplink,
            following: tokio::sync::Mutex::default(),
        };
        let service =
            JoaderServer::new(service).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE);
        ready();
        tracing::info!(path = %options.path.display(), memory = options.memory, "serving");
        let server = tonic::transport::Server::builder().add_service(service);
        tokio::select! {
            served = server.serve_with_incoming(ReceiverStream::new(incoming)) => served.map_err(io::Error::other),
            led = led => led,
            _ = stop.changed() => Ok(()),
        }
    });
    hub.close();
    // jobs are told by their connections
    runtime.shutdown_timeout(Duration::from_secs(1));
    for thread in threads {
        let _ = thread.join();
    }
    drop(file);
    served
}

/// Listens on a socket that only its user can open. One that a server left behind when it was killed is replaced.
fn listen(path: &Path) -> io::Result<(std::os::unix::net::UnixListener, SocketFile)> {
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
    let listener = std::os::unix::net::UnixListener::bind(&hidden).map_err(|error| at(&hidden, &error))?;
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
struct SocketFile {
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

struct Service {
    hub: Arc<Hub>,
    data_sets: DataSets,
    sessions: Arc<Sessions>,
    /// the number of this machine, and how many there are
    node: (u32, u32),
    /// of jobs for which this server draws
    groups: Arc<Groups>,
    leading: Option<Arc<Leading>>,
    address: Option<String>,
    uplink: Option<Arc<Uplink>>,
    /// one data set of the leader is opened at a time
    following: tokio::sync::Mutex<()>,
}

/// Ends a job when the task that listens to it ends, however that is, or when nobody has waited for it to register.
struct Leaving {
    hub: Arc<Hub>,
    sessions: Arc<Sessions>,
    job: u64,
    session: [u8; SESSION],
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.sessions.end(&self.session);
        self.hub.leave(self.job);
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
        match &self.uplink {
            None => self.data_sets.put(request.into_inner(), false).await.map(Response::new),
            Some(uplink) => uplink.client()?.create(request.into_inner()).await.map_err(|status| uplink.status(status)),
        }
    }

    async fn alter(&self, request: Request<proto::DataSet>) -> Result<Response<proto::DataSetInfo>, Status> {
        match &self.uplink {
            None => self.data_sets.put(request.into_inner(), true).await.map(Response::new),
            Some(uplink) => uplink.client()?.alter(request.into_inner()).await.map_err(|status| uplink.status(status)),
        }
    }

    async fn drop(&self, request: Request<proto::Name>) -> Result<Response<proto::Nothing>, Status> {
        match &self.uplink {
            None => self
                .hub
                .drop_data_set(&request.into_inner().name)
                .map(|()| Response::new(proto::Nothing {}))
                .map_err(short),
            Some(uplink) => uplink.client()?.drop(request.into_inner()).await.map_err(|status| uplink.status(status)),
        }
    }

    async fn list(&self, _: Request<proto::Nothing>) -> Result<Response<proto::DataSets>, Status> {
        match &self.uplink {
            None => Ok(Response::new(proto::DataSets { data_sets: self.hub.list() })),
            Some(uplink) => uplink.client()?.list(proto::Nothing {}).await.map_err(|status| uplink.status(status)),
        }
    }

    async fn status(&self, _: Request<proto::Nothing>) -> Result<Response<proto::StatusReply>, Status> {
        let (node, nodes) = self.node;
        let mut status = self.hub.status();
        status.groups = self.groups.status();
        status.cluster = match (&self.leading, &self.uplink) {
            (Some(leading), _) => Some(proto::ClusterStatus {
                node,
                nodes,
                leader: self.address.clone().unwrap_or_default(),
                leads: true,
                followers: leading.followers(),
                ..proto::ClusterStatus::default()
            }),
            (None, Some(uplink)) => {
                let (leader, lost) = (uplink.leader().to_owned(), uplink.lost());
                let (connected, lost) = (lost.is_none(), lost.unwrap_or_default());
                Some(proto::ClusterStatus { node, nodes, leader, connected, lost, ..proto::ClusterStatus::default() })
            }
            (None, None) => None,
        };
        Ok(Response::new(status))
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
        if let Some(uplink) = &self.uplink {
            self.follow_data_set(uplink, &register).await?;
        }
        let cancel = Arc::new(Cancel::default());
        let cancelling = Cancelling(cancel.clone());
        let hub = self.hub.clone();
        let wish = apart(move || Wish::new(&hub, register, &cancel)).await?;
        drop(cancelling);
        let wish = Arc::new(wish);
        let (place, from) = match &self.uplink {
            None => self.place(&wish).await?,
            Some(uplink) => self.place_by_leader(uplink, &wish).await?,
        };
        let (hub, sessions) = (self.hub.clone(), self.sessions.clone());
        let leaving = apart(move || join(&hub, &sessions, &wish, place, process, sender)).await?;
        if let DrawnBy::Leader(sampled, uplink) = from {
            tokio::spawn(hear_leader(self.hub.clone(), leaving.job, sampled, uplink));
            tokio::spawn(hear_job(leaving, messages, None));
        } else if let DrawnBy::Here(seat) = from {
            tokio::spawn(hear_job(leaving, messages, seat));
        }
        Ok(Response::new(UnboundedReceiverStream::new(receiver)))
    }
}

/// Who draws for a job.
enum DrawnBy {
    Here(Option<Seat>),
    Leader(Draws, Arc<Uplink>),
}

type Draws = Streaming<proto::ToRank>;

/// Hears from a job until it goes, or another process takes its place.
async fn hear_job(leaving: Leaving, mut messages: Streaming<proto::FromJob>, mut seat: Option<Seat>) {
    let Leaving { hub, job, .. } = &leaving;
    loop {
        let replaced = async {
            match &mut seat {
                Some(seat) => seat.replaced().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = messages.message() => match message {
                Ok(Some(proto::FromJob { message: Some(proto::from_job::Message::Done(done)) })) => {
                    hub.done(*job, &done.tickets);
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            },
            why = replaced => {
                hub.end(*job, &why);
                seat = None;
            }
        }
    }
}

/// Hears what the leader draws for a job. A leader that goes ends the job, which reads by itself then.
async fn hear_leader(hub: Arc<Hub>, job: u64, mut draws: Draws, uplink: Arc<Uplink>) {
    let why = loop {
        match draws.message().await {
            Ok(Some(proto::ToRank { message: Some(proto::to_rank::Message::Draws(draws)) })) => {
                if let Err(why) = hub.drawn(job, draws.epoch, &draws.elements) {
                    break why;
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => break uplink.status(Status::unavailable("it has ended")),
            Err(status) => break uplink.status(status),
        }
    };
    hub.end(job, &why);
}

/// Bytes of a value of this type, 0 if not all values are of one length. Pictures become much larger when they are
/// decoded.
fn bytes_of(of: &DataType) -> u64 {
    match of {
        DataType::FixedSizeList(field, length) => {
            bytes_of(field.data_type()).saturating_mul(u64::try_from(*length).unwrap_or_default())
        }
        of => of.primitive_width().unwrap_or_default() as u64,
    }
}

/// What a job wants, checked.
struct Wish {
    register: proto::Register,
    data_set: Arc<DataSet>,
    message: proto::DataSet,
    fingerprint: u64,
    recipe: Recipe,
    source: Arc<dyn Source>,
    selection: Arc<Selection>,
    /// bytes of a prepared row, as far as they are known
    row_bytes: u64,
    /// of this rank, if it knows them
    share: Option<ElementSet>,
    left: Option<ElementSet>,
    window: Window,
}

impl Wish {
    /// Finds the rows that a job wants.
    fn new(hub: &Hub, register: proto::Register, cancel: &Cancel) -> Result<Wish, Status> {
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
        let fields = prepared.iter().flat_map(|schema| schema.fields());
        let row_bytes = fields.map(|field| bytes_of(field.data_type())).sum();
        let selection = data_set.selection(&register.filter, cancel).map_err(status_of)?;
        let of_job = |elements: &Option<proto::Elements>, name: &str| {
            let Some(elements) = elements else { return Ok(None) };
            let set = elements.set().map_err(|error| Status::invalid_argument(error.to_string()))?;
            let all: std::collections::BTreeSet<u32> = selection.elements.iter().collect();
            if set.span().end > data_set.elements() || set.iter().any(|element| !all.contains(&element)) {
                return Err(Status::invalid_argument(format!("{name}: there are elements that the job does not want")));
            }
            Ok(Some(set))
        };
        let (share, left) = (of_job(&register.share, "share")?, of_job(&register.left, "left")?);
        let window = match register.window.and_then(|window| window.size) {
            Some(proto::window::Size::Elements(elements)) => Window::Elements(elements),
            Some(proto::window::Size::Share(share)) if share > 0.0 && share <= 1.0 => Window::Share(share),
            _ => {
                return Err(Status::invalid_argument("buffer_size: a number of elements or a share of them is needed"));
            }
        };
        Ok(Wish { register, data_set, message, fingerprint, recipe, source, selection, row_bytes, share, left, window })
    }

    /// Rows of some of the elements.
    fn rows(&self, elements: &ElementSet) -> u64 {
        self.data_set.rows_in(&self.selection, elements)
    }

    /// What a rank gets that was dealt this.
    fn of_deal(&self, deal: &Deal) -> Place {
        let rows = deal.shares.iter().map(|share| self.rows(share));
        let (least, most) = rows.fold((u64::MAX, 0), |(least, most), rows| (least.min(rows), most.max(rows)));
        let elements = deal.shares.get(self.register.rank as usize).cloned().unwrap_or_default();
        Place { elements, least, most, taken: None }
    }

    /// What a job gets that needs no deal: it is the only rank, or knows its elements.
    fn alone(&self) -> Place {
        match self.share.as_ref().filter(|_| self.register.world_size > 1) {
            Some(share) => Place { elements: share.clone(), least: 0, most: 0, taken: None },
            None => {
                let rows = self.selection.rows;
                Place { elements: self.selection.elements.clone(), least: rows, most: rows, taken: None }
            }
        }
    }
}

/// The elements of a job, or of a rank of it.
struct Place {
    elements: ElementSet,
    /// rows of the ranks that get the fewest and the most
    least: u64,
    most: u64,
    /// tells the leader what was taken
    taken: Option<mpsc::UnboundedSender<u32>>,
}

impl Service {
    /// Opens a data set as the leader has it.
    async fn follow_data_set(&self, uplink: &Uplink, register: &proto::Register) -> Result<(), Status> {
        let name = proto::Name { name: register.data_set.clone() };
        // a job that has begun can read by itself meanwhile
        let patience = if register.fingerprint.is_some() { LEADER_ANSWERS } else { PATIENCE };
        let mut leader = uplink.client()?;
        let found = match tokio::time::timeout(patience, leader.find(name)).await {
            Ok(found) => found.map_err(|status| uplink.status(status)),
            Err(_) => Err(uplink.status(Status::unavailable("it does not answer"))),
        };
        let found = match found {
            Ok(found) => found.into_inner(),
            // a leader that has come back and was told nothing yet: the job asks again
            Err(status) if status.code() == Code::NotFound && register.fingerprint.is_some() => {
                return Err(Status::unavailable(format!("at its leader, {}", status.message())));
            }
            Err(status) => return Err(status),
        };
        let _one = self.following.lock().await;
        self.data_sets.follow(found).await
    }

    /// The elements of a job for which this server draws.
    async fn place(&self, wish: &Arc<Wish>) -> Result<(Place, DrawnBy), Status> {
        let register = &wish.register;
        if register.world_size <= 1 {
            return Ok((wish.alone(), DrawnBy::Here(None)));
        }
        let coming = Coming {
            node: self.node.0,
            name: register.name.clone(),
            rank: register.rank,
            world_size: register.world_size,
            data_set: register.data_set.clone(),
            fingerprint: wish.fingerprint,
            elements: wish.selection.elements.clone(),
            share: wish.share.clone(),
        };
        let seat = self.groups.seat(coming).await?;
        let place = match seat.dealt.clone() {
            None => wish.alone(),
            Some(dealt) => {
                let wish = wish.clone();
                apart(move || Ok(wish.of_deal(&dealt.deal))).await?
            }
        };
        Ok((place, DrawnBy::Here(Some(seat))))
    }

    /// The elements of a job for which the leader draws.
    async fn place_by_leader(&self, uplink: &Arc<Uplink>, wish: &Arc<Wish>) -> Result<(Place, DrawnBy), Status> {
        let register = &wish.register;
        let rank = proto::Rank {
            node: self.node.0,
            name: register.name.clone(),
            rank: register.rank,
            world_size: register.world_size,
            data_set: register.data_set.clone(),
            fingerprint: wish.fingerprint,
            elements: Some(proto::Elements::of(&wish.selection.elements)),
            share: register.share.clone(),
            left: register.left.clone(),
            epoch: register.epoch,
            epochs: register.epochs,
            ahead: self.hub.ahead(&register.data_set, &register.columns, &wish.recipe, wish.row_bytes),
        };
        let Sampled { dealt, draws, taken } = uplink.sample(rank).await?;
        let mut place = if dealt.ranks.is_empty() {
            wish.alone()
        } else {
            let wish = wish.clone();
            apart(move || {
                let deal = Deal::new(dealt.seed, dealt.nodes, &dealt.ranks, &wish.selection.elements)
                    .map_err(|error| Status::resource_exhausted(error.to_string()))?;
                Ok(wish.of_deal(&deal))
            })
            .await?
        };
        place.taken = Some(taken);
        Ok((place, DrawnBy::Leader(draws, uplink.clone())))
    }
}

/// Lets a job join.
fn join(
    hub: &Arc<Hub>,
    sessions: &Arc<Sessions>,
    wish: &Wish,
    place: Place,
    process: u32,
    to_job: hub::ToJob,
) -> Result<Leaving, Status> {
    let session = sessions.begin().map_err(|error| Status::internal(error.to_string()))?;
    let register = &wish.register;
    let Place { elements, least, most, taken } = place;
    let (memory, rows_of_job) = (hub.memory.len(), wish.rows(&elements));
    let of_job = proto::Elements::of(&elements);
    let left = wish.left.clone();
    let wanted = Wanted { elements, left, epoch: register.epoch, end: register.epochs, ahead: 1 };
    let registered = |job, window| proto::ToJob {
        message: Some(proto::to_job::Message::Registered(proto::Registered {
            job,
            session: session.to_vec().into(),
            memory,
            data_set: Some(wish.message.clone()),
            fingerprint: wish.fingerprint,
            starts: wish.data_set.starts(),
            rows: wish.data_set.rows(),
            elements: Some(of_job),
            rows_of_job,
            window,
            least_rows: least,
            most_rows: most,
        })),
    };
    let joining = Joining {
        name: register.name.clone(),
        data_set: register.data_set.clone(),
        rows: wish.data_set.clone(),
        columns: register.columns.clone(),
        recipe: wish.recipe.clone(),
        selection: wish.selection.clone(),
        row_bytes: wish.row_bytes,
        wanted,
        window: wish.window,
        to_job,
        process,
        rank: (register.rank, register.world_size.max(1)),
        taken,
    };
    let joined = hub.join(joining, wish.source.clone(), registered);
    if joined.is_err() {
        sessions.end(&session);
    }
    Ok(Leaving { hub: hub.clone(), sessions: sessions.clone(), job: joined?, session })
}
