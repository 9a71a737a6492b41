//! What followers ask of a leader.
//!
//! It guarantees that draws come in the order in which they were made, and that a follower which says nothing more
//! stops no one: its ranks are left out of rounds as jobs are that take nothing, and leave with their streams.
//!
//! Each node has samplers of its own: jobs of different nodes share no reads, and need not wait for each other.

use super::data_sets::{DataSets, short};
use crate::cluster::VERSION;
use crate::cluster::groups::{Coming, Groups, Seat};
use crate::proto::{self, from_rank, leader_server, to_rank};
use crate::sampling::{Drawn, Sampling, Wanted};
use joader::ElementSet;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tonic::{Request, Response, Status, Streaming};

/// How long a rank may take to register.
const PATIENCE: Duration = Duration::from_secs(10);

type ToRank = UnboundedSender<Result<proto::ToRank, Status>>;

/// See the module's documentation.
pub(super) struct Leading {
    node: u32,
    nodes: u32,
    seed: i64,
    data_sets: DataSets,
    groups: Arc<Groups>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// by node, with the number of its stream
    followers: BTreeMap<u32, u64>,
    /// as long as anybody draws
    samplings: BTreeMap<DataSetOfNode, Sampling>,
    members: BTreeMap<u64, Member>,
    next: u64,
}

/// A data set as one node sees it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct DataSetOfNode {
    data_set: String,
    fingerprint: u64,
    node: u32,
}

struct Member {
    place: DataSetOfNode,
    to_rank: ToRank,
}

impl Leading {
    pub(super) fn new(node: u32, seed: i64, data_sets: DataSets, groups: Arc<Groups>) -> Leading {
        let (_, nodes) = groups.seed();
        Leading { node, nodes, seed, data_sets, groups, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes that follow.
    pub(super) fn followers(&self) -> Vec<u32> {
        self.lock().followers.keys().copied().collect()
    }

    fn attach(self: &Arc<Self>, node: &proto::Node) -> Result<Attached, Status> {
        if node.version != VERSION {
            let what = format!("the leader has version {VERSION}, and this server {}: use the same one", node.version);
            return Err(Status::failed_precondition(what));
        }
        if node.nodes != self.nodes || node.node >= self.nodes {
            let what = format!(
                "nodes: the leader has {}, and this server is node {} of {}",
                self.nodes, node.node, node.nodes
            );
            return Err(Status::invalid_argument(what));
        }
        let mut state = self.lock();
        if node.node == self.node || state.followers.contains_key(&node.node) {
            let what = format!("node: there is a node {} already: give each server another number", node.node);
            return Err(Status::already_exists(what));
        }
        state.next += 1;
        let number = state.next;
        state.followers.insert(node.node, number);
        tracing::info!(node = node.node, "a follower came");
        Ok(Attached { leading: self.clone(), node: node.node })
    }

    /// A rank draws from now on, and first gets what was dealt.
    fn join(self: &Arc<Self>, place: DataSetOfNode, seated: &Seated, to_rank: ToRank) -> Result<Drawing, Status> {
        let refuse = |error: joader::SamplerError| Status::resource_exhausted(error.to_string());
        let (data_set, kind) = self.data_sets.hub.begin_elsewhere(&place.data_set, place.fingerprint)?;
        let mut state = self.lock();
        state.next += 1;
        let member = state.next;
        // it ends what has begun, whatever comes
        let drawing = Drawing { leading: self.clone(), member, data_set: place.data_set.clone() };
        let joined = (|| {
            let all = data_set.elements();
            let sets = [Some(&seated.wanted.elements), seated.wanted.left.as_ref()];
            if sets.into_iter().flatten().any(|set| set.span().end > all) {
                return Err(Status::invalid_argument(format!("elements: the data set has {all}")));
            }
            let seed = self.seed.wrapping_add(i64::from(place.node));
            let mut sampling = match state.samplings.remove(&place) {
                Some(sampling) => sampling,
                None => Sampling::new(kind, seed, all).map_err(refuse)?,
            };
            let joined = sampling.join(member, seated.wanted.clone()).map_err(refuse);
            if !sampling.is_empty() {
                state.samplings.insert(place.clone(), sampling);
            }
            joined
        })();
        if joined.is_ok() {
            let dealt = to_rank::Message::Dealt(seated.dealt.clone());
            let _ = to_rank.send(Ok(proto::ToRank { message: Some(dealt) }));
            state.members.insert(member, Member { place: place.clone(), to_rank });
            state.draw(&place);
        }
        drop(state);
        joined.map(|()| drawing)
    }

    fn taken(&self, member: u64, elements: u32) {
        let mut state = self.lock();
        let Some(place) = state.members.get(&member).map(|member| member.place.clone()) else { return };
        if let Some(sampling) = state.samplings.get_mut(&place) {
            for _ in 0..elements.min(1 << 20) {
                sampling.taken(member);
            }
        }
        state.draw(&place);
    }
}

impl State {
    /// Draws for those of a place who need it, and tells them.
    fn draw(&mut self, place: &DataSetOfNode) {
        let Some(sampling) = self.samplings.get_mut(place) else { return };
        let (mut drawn, mut failed) = (Vec::new(), Vec::new());
        while let Err(error) = sampling.decide(&mut drawn) {
            failed.push(error);
        }
        let mut draws: BTreeMap<(u64, u64), Vec<u32>> = BTreeMap::new();
        for Drawn { job, epoch, element } in drawn {
            draws.entry((job, epoch)).or_default().push(element);
        }
        for ((member, epoch), elements) in draws {
            let Some(Member { to_rank, .. }) = self.members.get(&member) else { continue };
            let draws = to_rank::Message::Draws(proto::Draws { epoch, elements });
            // who does not listen any more leaves soon
            let _ = to_rank.send(Ok(proto::ToRank { message: Some(draws) }));
        }
        for (member, error) in failed {
            if let Some(member) = self.members.get(&member) {
                let _ = member.to_rank.send(Err(Status::resource_exhausted(error.to_string())));
            }
        }
    }
}

/// A follower, as long as it is there.
struct Attached {
    leading: Arc<Leading>,
    node: u32,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.leading.lock().followers.remove(&self.node);
        tracing::warn!(node = self.node, "a follower went");
    }
}

/// A rank that draws, as long as it is there.
struct Drawing {
    leading: Arc<Leading>,
    member: u64,
    data_set: String,
}

impl Drop for Drawing {
    fn drop(&mut self) {
        let mut state = self.leading.lock();
        if let Some(Member { place, .. }) = state.members.remove(&self.member)
            && let Some(sampling) = state.samplings.get_mut(&place)
        {
            sampling.leave(self.member);
            if sampling.is_empty() {
                state.samplings.remove(&place);
            } else {
                state.draw(&place);
            }
        }
        drop(state);
        self.leading.data_sets.hub.end_elsewhere(&self.data_set);
    }
}

/// What a rank gets.
struct Seated {
    wanted: Wanted,
    dealt: proto::Dealt,
    seat: Option<Seat>,
}

impl Leading {
    async fn seat(&self, rank: &proto::Rank) -> Result<Seated, Status> {
        let refuse = |error: joader::SamplerError| Status::invalid_argument(error.to_string());
        let set = |elements: &Option<proto::Elements>| elements.as_ref().map(proto::Elements::set).transpose();
        let elements = set(&rank.elements).map_err(refuse)?.unwrap_or_default();
        let share = set(&rank.share).map_err(refuse)?;
        let left = set(&rank.left).map_err(refuse)?;
        let (seed, nodes) = self.groups.seed();
        let mut dealt = proto::Dealt { seed, nodes, ranks: Vec::new() };
        let mut seat = None;
        let share: ElementSet = if rank.world_size <= 1 {
            elements
        } else {
            let coming = Coming {
                node: rank.node,
                name: rank.name.clone(),
                rank: rank.rank,
                world_size: rank.world_size,
                data_set: rank.data_set.clone(),
                fingerprint: rank.fingerprint,
                elements,
                share: share.clone(),
                timeout: Duration::from_secs(rank.timeout.into()),
            };
            let found = self.groups.seat(coming).await?;
            let of_rank = found.dealt.as_ref().map(|all| {
                dealt.ranks.clone_from(&all.ranks);
                all.deal.shares[rank.rank as usize].clone()
            });
            seat = Some(found);
            share.or(of_rank).unwrap_or_default()
        };
        let wanted =
            Wanted { elements: share, left, epoch: rank.epoch, end: rank.epochs, ahead: rank.ahead.clamp(1, 1 << 16) };
        Ok(Seated { wanted, dealt, seat })
    }
}

/// The service of a [`Leading`].
pub(super) struct Leader(pub(super) Arc<Leading>);

#[tonic::async_trait]
impl leader_server::Leader for Leader {
    type AttachStream = ReceiverStream<Result<proto::Attached, Status>>;

    async fn attach(&self, request: Request<proto::Node>) -> Result<Response<Self::AttachStream>, Status> {
        let attached = self.0.attach(&request.into_inner())?;
        let (sender, receiver) = mpsc::channel(1);
        let _ = sender.try_send(Ok(proto::Attached {}));
        tokio::spawn(async move {
            sender.closed().await;
            drop(attached);
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn create(&self, request: Request<proto::DataSet>) -> Result<Response<proto::DataSetInfo>, Status> {
        self.0.data_sets.put(request.into_inner(), false).await.map(Response::new)
    }

    async fn alter(&self, request: Request<proto::DataSet>) -> Result<Response<proto::DataSetInfo>, Status> {
        self.0.data_sets.put(request.into_inner(), true).await.map(Response::new)
    }

    async fn drop(&self, request: Request<proto::Name>) -> Result<Response<proto::Nothing>, Status> {
        self.0.data_sets.drop(request.into_inner().name).await.map(|()| Response::new(proto::Nothing {}))
    }

    async fn list(&self, _: Request<proto::Nothing>) -> Result<Response<proto::DataSets>, Status> {
        Ok(Response::new(self.0.data_sets.list()))
    }

    async fn find(&self, request: Request<proto::Name>) -> Result<Response<proto::DataSetInfo>, Status> {
        let name = request.into_inner().name;
        self.0.data_sets.find_again(&name).await?;
        self.0.data_sets.hub.info(&name).map(Response::new).map_err(short)
    }

    type SampleStream = UnboundedReceiverStream<Result<proto::ToRank, Status>>;

    async fn sample(
        &self,
        request: Request<Streaming<proto::FromRank>>,
    ) -> Result<Response<Self::SampleStream>, Status> {
        let mut messages = request.into_inner();
        let first = tokio::time::timeout(PATIENCE, messages.message()).await;
        let rank = match first.map_err(|_| Status::deadline_exceeded("a rank has to register first"))?? {
            Some(proto::FromRank { message: Some(from_rank::Message::Rank(rank)) }) => rank,
            _ => return Err(Status::invalid_argument("a rank has to register first")),
        };
        if rank.node == self.0.node || rank.node >= self.0.nodes {
            return Err(Status::invalid_argument(format!("node: there is no follower {}", rank.node)));
        }
        let mut seated = self.0.seat(&rank).await?;
        let (to_rank, receiver) = mpsc::unbounded_channel();
        let place = DataSetOfNode { data_set: rank.data_set, fingerprint: rank.fingerprint, node: rank.node };
        let drawing = self.0.join(place, &seated, to_rank.clone())?;
        tokio::spawn(async move {
            loop {
                let replaced = async {
                    match &mut seated.seat {
                        Some(seat) => seat.replaced().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    message = messages.message() => match message {
                        Ok(Some(proto::FromRank { message: Some(from_rank::Message::Taken(elements)) })) => {
                            drawing.leading.taken(drawing.member, elements);
                        }
                        Ok(Some(_)) => {}
                        Ok(None) | Err(_) => return,
                    },
                    why = replaced => {
                        let _ = to_rank.send(Err(why));
                        return;
                    }
                }
            }
        });
        Ok(Response::new(UnboundedReceiverStream::new(receiver)))
    }
}
