//! Several machines: one server leads, the others follow (section E.4 of JOADER's appendix).
//!
//! The leader has the data sets and draws for all jobs. Each machine reads, prepares and keeps by itself what is drawn
//! for its own jobs. A data-parallel job has a process on each of its machines or several, its ranks, which register
//! with the servers of their machines by the same name. They begin when all of them are there.
//!
//! It guarantees that the ranks of a job get each element once in an epoch, and numbers of elements that differ by one
//! at most (`dealing`); and that no one hears or leads who does not know the token: servers talk by TLS only, and prove
//! to each other that they know it before they say anything else (`proof`).
//!
//! No one is elected. Without its leader a follower ends its jobs' streams and takes no others. These jobs read by
//! themselves until there is a leader again, each rank what was dealt to it, so that also then each element comes once.
//! For that the leader needs not know the job any more: a rank that comes back says which elements it has.
//!
//! | | |
//! |---|---|
//! | `groups` | the ranks of jobs find each other |
//! | `proof` | both ends of a connection prove that they know the token |
//! | `uplink` | a follower's connection |
//! | `server::leading` | what followers ask of a leader |

pub(crate) mod groups;
mod proof;
pub(crate) mod uplink;

use crate::error::ServiceError;
use crate::proto::leader_server::{Leader, LeaderServer};
use crate::strangers::{WAITING, welcome};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, SupportedProtocolVersion};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::Server;

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
    /// How many machines there are, or will be. With another number elements are distributed in another way.
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

    /// Refuses numbers that are invalid.
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

/// What servers of a cluster know and no one else does.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl Token {
    /// This one, without white space around it.
    ///
    /// # Errors
    /// If it is short, or has other characters than a line of text.
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
    /// If the file cannot be read, or others than its owner can, or as [`Token::new`].
    pub fn read(path: &Path) -> Result<Token, ServiceError> {
        let bytes = secret("token", path).map_err(|error| ServiceError::Refused(error.to_string()))?;
        Token::new(&String::from_utf8_lossy(&bytes))
    }
}

/// It is not shown.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// A leader's address, before anybody comes.
pub(crate) struct Listening {
    listener: std::net::TcpListener,
    tls: TlsAcceptor,
    token: Token,
}

impl Listening {
    pub(crate) fn new(options: LeaderOptions) -> io::Result<Listening> {
        let (certificate, key) = (&options.certificate, &options.key);
        let (chain, secret) = (pem("certificate", certificate)?, secret("key", key)?);
        let refused = |why: &dyn fmt::Display| {
            let what =
                format!("certificate: {} and the key {} cannot be used: {why}", certificate.display(), key.display());
            io::Error::new(io::ErrorKind::InvalidInput, what)
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
        let chain = chain.map_err(|error| refused(&error))?;
        let secret = PrivateKeyDer::from_pem_slice(&secret).map_err(|error| refused(&error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(VERSIONS)
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret))
            .map_err(|error| refused(&error))?;
        let listener = std::net::TcpListener::bind(options.listen)
            .map_err(|error| io::Error::new(error.kind(), format!("listen: {}: {error}", options.listen)))?;
        listener.set_nonblocking(true)?;
        Ok(Listening { listener, tls: TlsAcceptor::from(Arc::new(config)), token: options.token })
    }

    /// Where it is.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves those who know the token, for ever. Others do not come as far as a question.
    pub(crate) fn serve<L: Leader>(
        self,
        service: LeaderServer<L>,
    ) -> io::Result<impl Future<Output = io::Result<()>> + Send> {
        let Listening { listener, tls, token } = self;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (sender, incoming) = mpsc::channel(WAITING);
        tokio::spawn(welcome(TcpListenerStream::new(listener), move |stream| {
            let (sender, tls, token) = (sender.clone(), tls.clone(), token.clone());
            async move {
                let from = stream.peer_addr()?;
                let refused = |error: io::Error| io::Error::new(error.kind(), format!("{from}: {error}"));
                let follower = proof::accept(tls, token, stream).await.map_err(refused)?;
                sender.send(Ok::<_, io::Error>(follower)).await.map_err(io::Error::other)
            }
        }));
        let server = Server::builder().http2_keepalive_interval(Some(ALIVE));
        let router = server.http2_keepalive_timeout(Some(GONE)).add_service(service);
        let incoming = ReceiverStream::new(incoming);
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

/// Of TLS. In earlier ones than 1.3 proofs could be passed on.
const VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// A file with a secret. As ssh and libpq do, one that others may read is refused: a warning would be in a log, which
/// is off by default, while the secret is known to others.
fn secret(what: &str, path: &Path) -> io::Result<Vec<u8>> {
    let refused =
        |error: io::Error| io::Error::new(error.kind(), format!("{what}: {} cannot be read: {error}", path.display()));
    let mut file = File::open(path).map_err(refused)?;
    let metadata = file.metadata().map_err(refused)?;
    // root's may be read by a group
    let open_to = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & open_to != 0 {
        let path = path.display();
        let what = format!("{what}: others than its owner may read {path}: chmod 600 {path}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(refused)?;
    Ok(bytes)
}

/// A file that TLS needs.
fn pem(what: &str, path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{what}: {} cannot be read: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_not_shown_and_neither_short_nor_of_other_characters_than_visible_ones() {
        let token = Token::new(" 0123456789abcdef\n").unwrap();
        assert_eq!(&*token.0, "0123456789abcdef");
        assert!(!format!("{token:?}").contains("0123"));
        let refused = |token: &str| Token::new(token).unwrap_err().to_string();
        assert!(refused("0123456789").starts_with("token: it has 10 bytes, and needs 16"));
        assert!(refused("0123456789 abcdef").contains("visible"));
    }

    #[test]
    fn a_file_with_a_secret_that_others_may_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path();
        std::fs::write(path, "0123456789abcdef\n").unwrap();
        let with = |mode: u32| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            Token::read(path).map(drop).map_err(|error| error.to_string())
        };
        let shown = path.display();
        for mode in [0o644, 0o604, 0o622, 0o660] {
            let told = format!("token: others than its owner may read {shown}: chmod 600 {shown}");
            assert_eq!(with(mode), Err(told), "{mode:o}");
        }
        for mode in [0o600, 0o400] {
            assert_eq!(with(mode), Ok(()), "{mode:o}");
        }
        assert_eq!(with(0o640).is_ok(), rustix::process::geteuid().is_root(), "root's may be read by a group");
        let missing = Token::read(Path::new("/nowhere/token")).unwrap_err().to_string();
        assert!(missing.starts_with("token: /nowhere/token cannot be read: "), "{missing}");
    }
}
