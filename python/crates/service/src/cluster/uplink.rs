//! A follower's connection to its leader.
//!
//! It guarantees that whoever asks while there is none hears so at once, with the reason, and that the leader is looked
//! for as long as the server is there.

use super::{ALIVE, Bearer, FollowerOptions, GONE, VERSION, chain, pem};
use crate::proto::leader_client::LeaderClient;
use crate::proto::{self, from_rank, to_rank};
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Status, Streaming};

/// How long a leader may take to answer whoever connects.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a follower waits before it connects again: twice as long each time.
const AGAIN: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(5);

type Client = LeaderClient<InterceptedService<Channel, Bearer>>;

/// See the module's documentation.
pub(crate) struct Uplink {
    options: FollowerOptions,
    endpoint: Endpoint,
    bearer: Bearer,
    /// the leader, or why there is none
    link: watch::Sender<Result<Client, String>>,
}

/// A rank of this machine, for which the leader draws.
pub(crate) struct Sampled {
    pub(crate) dealt: proto::Dealt,
    pub(crate) draws: Streaming<proto::ToRank>,
    pub(crate) taken: UnboundedSender<u32>,
}

impl Uplink {
    /// It does not connect before [`Uplink::run`].
    ///
    /// # Errors
    /// If the address or the certificates make no sense.
    pub(crate) fn new(options: FollowerOptions) -> io::Result<Uplink> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
        let pem = pem("trusts", &options.trusts)?;
        if !pem.windows(BEGIN.len()).any(|part| part == BEGIN) {
            return Err(invalid(format!("trusts: {} has no certificate: it has to be PEM", options.trusts.display())));
        }
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem));
        if let Some(name) = &options.name {
            tls = tls.domain_name(name);
        }
        let refused = |error: tonic::transport::Error| {
            invalid(format!("leader: {:?} is no address with a port: {}", options.leader, chain(&error)))
        };
        let endpoint = Endpoint::from_shared(format!("https://{}", options.leader))
            .and_then(|endpoint| endpoint.tls_config(tls))
            .map_err(refused)?
            .connect_timeout(PATIENCE)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(ALIVE)
            .keep_alive_timeout(GONE)
            .keep_alive_while_idle(true);
        let bearer = Bearer::new(&options.token)?;
        let link = watch::channel(Err("it has not answered yet".to_owned())).0;
        Ok(Uplink { options, endpoint, bearer, link })
    }

    /// Connects, and connects again, for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut again = *AGAIN.start();
        let mut before = String::new();
        loop {
            let why = match self.attach().await {
                Err(why) => why,
                Ok((client, mut attached)) => {
                    tracing::info!(leader = self.options.leader, node = self.options.node, "following");
                    let _ = self.link.send_replace(Ok(client));
                    again = *AGAIN.start();
                    match attached.message().await {
                        Ok(_) => "it has ended".to_owned(),
                        Err(status) => self.explain(&status),
                    }
                }
            };
            if why != before {
                tracing::warn!(leader = self.options.leader, why, "there is no leader: jobs read by themselves");
                before.clone_from(&why);
            }
            let _ = self.link.send_replace(Err(why));
            tokio::time::sleep(again).await;
            again = (again * 2).min(*AGAIN.end());
        }
    }

    async fn attach(&self) -> Result<(Client, Streaming<proto::Attached>), String> {
        let attach = async {
            let channel = self.endpoint.connect().await.map_err(|error| chain(&error))?;
            let mut client = LeaderClient::with_interceptor(channel, self.bearer.clone())
                .max_decoding_message_size(usize::MAX)
                .max_encoding_message_size(usize::MAX);
            let FollowerOptions { node, nodes, .. } = self.options;
            let node = proto::Node { node, nodes, version: VERSION.to_owned() };
            let mut attached = client.attach(node).await.map_err(|status| self.explain(&status))?.into_inner();
            match attached.message().await {
                Ok(Some(_)) => Ok((client, attached)),
                Ok(None) => Err("it has ended".to_owned()),
                Err(status) => Err(self.explain(&status)),
            }
        };
        let late = |_| format!("it has not answered for {} seconds", PATIENCE.as_secs());
        tokio::time::timeout(2 * PATIENCE, attach).await.map_err(late)?
    }

    fn explain(&self, status: &Status) -> String {
        let cause = status.source().map(chain).unwrap_or_default();
        let code = || status.code().to_string();
        let parts = [status.message(), &cause];
        let what: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if what.is_empty() { code() } else { what.join(": ") }
    }

    /// The leader.
    ///
    /// # Errors
    /// If there is none now.
    pub(crate) fn client(&self) -> Result<Client, Status> {
        self.link.borrow().clone().map_err(|why| self.no_leader(&why))
    }

    /// Where the leader is.
    pub(crate) fn leader(&self) -> &str {
        &self.options.leader
    }

    /// Why there is no leader; None if there is one.
    pub(crate) fn lost(&self) -> Option<String> {
        self.link.borrow().as_ref().err().cloned()
    }

    fn no_leader(&self, why: &str) -> Status {
        Status::unavailable(format!("its leader {} is not there: {why}", self.options.leader))
    }

    /// What a job is told of what the leader has answered: refusals as they are, and anything else as the loss of the
    /// leader.
    pub(crate) fn status(&self, status: Status) -> Status {
        match status.code() {
            Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::InvalidArgument
            | Code::ResourceExhausted => Status::new(status.code(), status.message()),
            _ => self.no_leader(&self.explain(&status)),
        }
    }

    /// Lets the leader draw for a rank of this machine, once all ranks are there.
    ///
    /// # Errors
    /// If the leader refuses it, or is not there.
    pub(crate) async fn sample(&self, rank: proto::Rank) -> Result<Sampled, Status> {
        let mut client = self.client()?;
        let (to_leader, from_rank) = unbounded_channel();
        let _ = to_leader.send(proto::FromRank { message: Some(from_rank::Message::Rank(rank)) });
        let (taken, heard) = unbounded_channel();
        tokio::spawn(tell(heard, to_leader));
        let sampled =
            client.sample(UnboundedReceiverStream::new(from_rank)).await.map_err(|status| self.status(status))?;
        let mut draws = sampled.into_inner();
        match draws.message().await.map_err(|status| self.status(status))?.and_then(|first| first.message) {
            Some(to_rank::Message::Dealt(dealt)) => Ok(Sampled { dealt, draws, taken }),
            _ => Err(self.no_leader("it has dealt out nothing")),
        }
    }
}

const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// Tells the leader what was taken, several elements at once.
async fn tell(mut heard: UnboundedReceiver<u32>, to_leader: UnboundedSender<proto::FromRank>) {
    let mut taken = Vec::new();
    while heard.recv_many(&mut taken, 1024).await > 0 {
        let elements = taken.drain(..).sum();
        if to_leader.send(proto::FromRank { message: Some(from_rank::Message::Taken(elements)) }).is_err() {
            return;
        }
    }
}
