//! A follower's connection to its leader.
//!
//! It guarantees that anyone who asks without one hears so at once, with the reason, and that the leader is looked
//! for as long as the server is there.

use super::{ALIVE, FollowerOptions, GONE, VERSION, VERSIONS, chain, pem, proof};
use crate::proto::leader_client::LeaderClient;
use crate::proto::{self, from_rank, to_rank};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

/// How long a leader may take to answer a client that connects.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a follower waits before it connects again: twice as long each time.
const AGAIN: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(5);

type Client = LeaderClient<Channel>;

/// See the module's documentation.
pub(crate) struct Uplink {
    options: FollowerOptions,
    endpoint: Endpoint,
    tls: TlsConnector,
    /// the name that its certificate has
    name: ServerName<'static>,
    /// the leader, or why it could not be made
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
    pub(crate) fn new(options: FollowerOptions) -> io::Result<Uplink> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
        let file = options.trusts.display();
        let mut trusted = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem("trusts", &options.trusts)?) {
            let certificate = certificate.map_err(|error| error.to_string());
            certificate
                .and_then(|certificate| trusted.add(certificate).map_err(|error| error.to_string()))
                .map_err(|error| invalid(format!("trusts: {file} has a certificate that cannot be read: {error}")))?;
        }
        if trusted.is_empty() {
            return Err(invalid(format!("trusts: {file} has no certificate: it has to be PEM")));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(VERSIONS)
            .map_err(io::Error::other)?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let refused = |what: &str| invalid(format!("leader: {:?} is not an address with a port{what}", options.leader));
        // the connection is encrypted by `proof`, below what knows addresses
        let endpoint = Endpoint::from_shared(format!("http://{}", options.leader))
            .map_err(|error| refused(&format!(": {}", chain(&error))))?
            .connect_timeout(PATIENCE)
            .http2_keep_alive_interval(ALIVE)
            .keep_alive_timeout(GONE)
            .keep_alive_while_idle(true);
        let host = endpoint.uri().host().filter(|_| endpoint.uri().port().is_some()).ok_or_else(|| refused(""))?;
        let name = options.name.as_deref().unwrap_or_else(|| host.trim_matches(['[', ']'])).to_owned();
        let name = ServerName::try_from(name.clone())
            .map_err(|_| invalid(format!("name: {name:?} is not a name or address that a certificate could have")))?;
        let tls = TlsConnector::from(Arc::new(config));
        let link = watch::channel(Err("it has not answered yet".to_owned())).0;
        Ok(Uplink { options, endpoint, tls, name, link })
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
            let FollowerOptions { leader, token, .. } = self.options.clone();
            let (tls, name) = (self.tls.clone(), self.name.clone());
            let connector = tower::service_fn(move |_| {
                let connected = proof::connect(tls.clone(), token.clone(), leader.clone(), name.clone());
                async { connected.await.map(hyper_util::rt::TokioIo::new) }
            });
            let channel = self.endpoint.connect_with_connector(connector).await;
            // what tonic says of it is nothing that its cause does not say better
            let channel = channel.map_err(|error| error.source().map_or_else(|| chain(&error), chain))?;
            let mut client =
                LeaderClient::new(channel).max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX);
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

    /// What a job gets of what the leader has answered: refusals as they are, and anything else as the loss of the
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
            _ => Err(self.no_leader("it has distributed nothing")),
        }
    }
}

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
