//! The server.

mod connections;
mod data_sets;
mod hub;
mod leading;
mod registering;
mod remembering;
mod socket;
mod state;

pub(crate) use connections::{ASKS_FOR_MEMORY, SESSION};

use crate::cluster::groups::{Coming, Groups, Seat};
use crate::cluster::uplink::{Sampled, Uplink};
use crate::cluster::{Cluster, Listening};
use crate::dataset::Opener;
use crate::dealing::Deal;
use crate::memory::Memory;
use crate::proto;
use connections::Sessions;
use data_sets::{DataSets, apart};
use hub::Hub;
use leading::{Leader, Leading};
use preparing::Callables;
use proto::joader_server::{Joader, JoaderServer};
use proto::leader_server::LeaderServer;
use registering::{Leaving, Place, Wish, join};
use remembering::Remembered;
use socket::listen;
use source::Cancel;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
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
    /// The file that has the data sets, which are there again when the server is started again; None for a follower,
    /// which asks its leader, and if they need not be.
    pub data_sets: Option<PathBuf>,
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
/// If the socket or the file of data sets cannot be opened, or another server has it.
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
    if uplink.is_some() && options.data_sets.is_some() {
        let what = "datasets: a follower has those of its leader: give the file to that one";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let remembered = options.data_sets.map(Remembered::open).transpose()?.map(Arc::new);
    let (listener, file) = listen(&options.path)?;
    let memory = Memory::new(options.memory)?;
    let (hub, threads) = Hub::start(memory, callables, options.seed, options.threads, uplink.is_some())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        let data_sets = DataSets::new(hub.clone(), opener, remembered);
        let restoring = data_sets.clone();
        tokio::select! {
            restored = apart(move || {
                restoring.restore();
                Ok(())
            }) => restored.map_err(io::Error::other)?,
            _ = stop.changed() => return Ok(()),
        }
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
    // jobs are distinguished by their connections
    runtime.shutdown_timeout(Duration::from_secs(1));
    for thread in threads {
        let _ = thread.join();
    }
    drop(file);
    served
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
            None => self.data_sets.drop(request.into_inner().name).await.map(|()| Response::new(proto::Nothing {})),
            Some(uplink) => uplink.client()?.drop(request.into_inner()).await.map_err(|status| uplink.status(status)),
        }
    }

    async fn list(&self, _: Request<proto::Nothing>) -> Result<Response<proto::DataSets>, Status> {
        match &self.uplink {
            None => Ok(Response::new(self.data_sets.list())),
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
        match &self.uplink {
            Some(uplink) => self.follow_data_set(uplink, &register).await?,
            None => self.data_sets.find_again(&register.data_set).await?,
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
            // a leader that has come back and got nothing yet: the job asks again
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
            timeout: Duration::from_secs(register.timeout.into()),
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
            timeout: register.timeout,
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
