//! Several machines: one server leads, the others follow (section E.4 of JOADER's appendix).
//!
//! The leader has the data sets and draws for all jobs. Each machine reads, prepares and keeps by itself what is drawn
//! for its own jobs. A data-parallel job has a process on each of its machines or several, its ranks, which register
//! with the servers of their machines by the same name. They begin when all of them are there.
//!
//! It guarantees that the ranks of a job get each element once in an epoch, and numbers of elements that differ by one
//! at most (`dealing`); and that nobody hears or leads who does not know the token: servers talk by TLS only.
//!
//! Nobody is elected. Without its leader a follower ends its jobs' streams and takes no others. These jobs read by
//! themselves until there is a leader again, each rank what was dealt to it, so that also then each element comes once.
//! For that the leader needs not know the job any more: a rank that comes back says which elements it has.
//!
//! | | |
//! |---|---|
//! | `groups` | the ranks of jobs find each other |
//! | `uplink` | a follower's connection |
//! | `server::leading` | what followers ask of a leader |

pub(crate) mod groups;
pub(crate) mod uplink;

use crate::error::ServiceError;
use crate::proto::leader_server::{Leader, LeaderServer};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Status};

/// How often each side asks whether the other one is there, if nothing is said.
const ALIVE: Duration = Duration::from_secs(5);

/// How long it may take to answer that, before it is taken to be gone.
const GONE: Duration = Duration::from_secs(10);

/// What servers compare before they deal: the same version deals the same.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a server is in a cluster.
#[derive(Clone, Debug)]
pub enum Cluster {
    /// It draws for all.
    Leader(LeaderOptions),
    /// It asks a leader.
    Follower(FollowerOptions),
}

/// A leader. Its machine may have jobs, too.
#[derive(Clone, Debug)]
pub struct LeaderOptions {
    /// Where followers reach it.
    pub listen: SocketAddr,
    /// The number of its machine, below `nodes`.
    pub node: u32,
    /// How many machines there are, or will be. With another number elements are dealt out in another way.
    pub nodes: u32,
    /// A certificate chain, as PEM, for the name or address by which followers reach it. Its first certificate must not
    /// be one of a certificate authority, also if it has signed itself: `openssl req -x509 -newkey ec -pkeyopt
    /// ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=leader -addext subjectAltName=DNS:NAME -addext
    /// basicConstraints=critical,CA:FALSE -keyout leader.key -out leader.pem`.
    pub certificate: PathBuf,
    /// The certificate's key, as PEM.
    pub key: PathBuf,
    /// What followers have to know.
    pub token: Token,
}

/// A follower.
#[derive(Clone, Debug)]
pub struct FollowerOptions {
    /// Name or address of the leader, with a port.
    pub leader: String,
    /// The number of its machine, below `nodes`, and that of no other server.
    pub node: u32,
    /// As the leader's.
    pub nodes: u32,
    /// Certificates, as PEM, one of which has signed the leader's: a certificate authority's, or the leader's own.
    pub trusts: PathBuf,
    /// The name in the leader's certificate, if it is not that of `leader`.
    pub name: Option<String>,
    /// The leader's.
    pub token: Token,
}

impl Cluster {
    /// The number of this machine, and how many there are.
    pub(crate) fn node(&self) -> (u32, u32) {
        match self {
            Cluster::Leader(options) => (options.node, options.nodes),
            Cluster::Follower(options) => (options.node, options.nodes),
        }
    }

    /// Refuses numbers that make no sense.
    pub(crate) fn check(&self) -> io::Result<()> {
        let (node, nodes) = self.node();
        let refuse = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if nodes > MAX_NODES {
            return refuse(format!("nodes: there are {nodes}, and {MAX_NODES} at most"));
        }
        if node >= nodes {
            return refuse(format!("node: there is no node {node} of {nodes}: they are numbered from 0"));
        }
        Ok(())
    }
}

/// Nodes that a cluster may have.
const MAX_NODES: u32 = 1 << 16;

/// Bytes of a token at least: it is all that keeps others out.
const TOKEN_BYTES: usize = 16;

/// What servers of a cluster know and nobody else does.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl Token {
    /// This one, without white space around it.
    ///
    /// # Errors
    /// If it is short, or cannot be sent.
    pub fn new(token: &str) -> Result<Token, ServiceError> {
        let token = token.trim();
        if token.len() < TOKEN_BYTES {
            let what = format!(
                "token: it has {} bytes, and needs {TOKEN_BYTES}: make one by `openssl rand -hex 32`",
                token.len()
            );
            return Err(ServiceError::Refused(what));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ServiceError::Refused("token: it may have visible ASCII characters only".to_owned()));
        }
        Ok(Token(token.into()))
    }

    /// The one in a file.
    ///
    /// # Errors
    /// If the file cannot be read, or as [`Token::new`].
    pub fn read(path: &Path) -> Result<Token, ServiceError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ServiceError::Refused(format!("token: {} cannot be read: {error}", path.display())))?;
        Token::new(&text)
    }
}

/// It is not shown.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

const HEADER: &str = "authorization";

/// Adds the token to what a follower asks.
#[derive(Clone)]
pub(crate) struct Bearer(MetadataValue<tonic::metadata::Ascii>);

impl Bearer {
    fn new(token: &Token) -> io::Result<Bearer> {
        format!("Bearer {}", token.0).parse().map(Bearer).map_err(io::Error::other)
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert(HEADER, self.0.clone());
        Ok(request)
    }
}

/// Lets those in who know the token.
#[derive(Clone)]
pub(crate) struct Guard(Bearer);

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let given = request.metadata().get(HEADER).map(|given| given.as_bytes()).unwrap_or_default();
        // as long whatever is wrong, so that nobody can find it out byte by byte
        if bool::from(given.ct_eq(self.0.0.as_bytes())) {
            return Ok(request);
        }
        tracing::warn!(from = ?request.remote_addr(), "somebody who does not know the token was refused");
        Err(Status::unauthenticated("token: it is not the leader's: give all servers of the cluster the same one"))
    }
}

/// A leader's address, before anybody comes.
pub(crate) struct Listening {
    listener: std::net::TcpListener,
    server: Server,
    guard: Guard,
}

impl Listening {
    /// # Errors
    /// If the address cannot be had, or the certificate and its key make no sense.
    pub(crate) fn new(options: LeaderOptions) -> io::Result<Listening> {
        let certificate = pem("certificate", &options.certificate)?;
        let identity = Identity::from_pem(certificate, pem("key", &options.key)?);
        let server = Server::builder().tls_config(ServerTlsConfig::new().identity(identity)).map_err(|error| {
            let files = format!("certificate: {} and the key {}", options.certificate.display(), options.key.display());
            let what = format!("{files} cannot be used: {}", chain(&error));
            io::Error::new(io::ErrorKind::InvalidInput, what)
        })?;
        let listener = std::net::TcpListener::bind(options.listen)
            .map_err(|error| io::Error::new(error.kind(), format!("listen: {}: {error}", options.listen)))?;
        listener.set_nonblocking(true)?;
        let server = server.http2_keepalive_interval(Some(ALIVE)).http2_keepalive_timeout(Some(GONE));
        Ok(Listening { listener, server, guard: Guard(Bearer::new(&options.token)?) })
    }

    /// Where it is.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves those who know the token, for ever.
    ///
    /// # Errors
    /// If the runtime does not take the listener.
    pub(crate) fn serve<L: Leader>(
        mut self,
        service: LeaderServer<L>,
    ) -> io::Result<impl Future<Output = io::Result<()>> + Send> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let router = self.server.add_service(InterceptedService::new(service, self.guard));
        Ok(async move { router.serve_with_incoming(incoming).await.map_err(io::Error::other) })
    }
}

/// An error and what caused it: that of a connection says nothing by itself.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let causes = std::iter::successors(Some(error), |error| error.source());
    for part in causes.map(ToString::to_string) {
        if !parts.iter().any(|known| known.contains(&part)) {
            parts.push(part);
        }
    }
    parts.join(": ")
}

/// A file that TLS needs.
fn pem(what: &str, path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{what}: {} cannot be read: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_do_not_know_the_token_are_refused_and_it_is_not_shown() {
        let token = Token::new(" 0123456789abcdef\n").unwrap();
        let mut guard = Guard(Bearer::new(&token).unwrap());
        let mut come =
            |token: &str| guard.call(Bearer::new(&Token::new(token).unwrap()).unwrap().call(Request::new(())).unwrap());
        assert!(come("0123456789abcdef").is_ok());
        for wrong in ["0123456789abcdeF", "0123456789abcdef0", "0123456789abcde_"] {
            assert_eq!(come(wrong).unwrap_err().code(), tonic::Code::Unauthenticated);
        }
        assert!(guard.call(Request::new(())).is_err());
        assert!(!format!("{token:?}").contains("0123"));
        let refused = |token: &str| Token::new(token).unwrap_err().to_string();
        assert!(refused("0123456789").starts_with("token: it has 10 bytes, and needs 16"));
        assert!(refused("0123456789 abcdef").contains("visible"));
    }
}
