//! Anyone who connects without having shown who it is: idle, slow, or somebody else than it should be.

use crate::cluster::{Nodes, TOKEN};
use crate::common::{Numbers, Opens, SECOND, Server, all, job_options, next, sorted, status, until};
use rustix::fs::{Mode, chmod};
use rustix::process::{Uid, geteuid};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use service::{Cluster, FollowerOptions, Job, Opening, admin, proto};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What begins a connection of HTTP/2, with the frame that comes next.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// When a connection that says nothing of use has been closed.
const CLOSED: Duration = Duration::from_secs(9);

/// A connection to a leader with TLS, of somebody who knows its certificate and no token.
fn tls(address: SocketAddr, certificate: &Path) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::from(address.ip());
    let mut stream = TcpStream::connect(address).unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).unwrap();
    }
    StreamOwned::new(connection, stream)
}

/// Whether the other end closes a connection, whatever it says before.
fn is_closed(mut stream: impl Read) -> bool {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }
}

/// Says something byte by byte, so that something comes all the time.
fn drips(mut stream: impl Write, said: &[u8]) -> bool {
    let began = Instant::now();
    for byte in said.iter().cycle() {
        if stream.write_all(&[*byte]).and_then(|()| stream.flush()).is_err() {
            return true;
        }
        if began.elapsed() > CLOSED {
            return false;
        }
        std::thread::sleep(SECOND / 4);
    }
    false
}

#[test]
fn a_leader_closes_connections_without_the_token_whatever_they_say_and_however_slowly() {
    let nodes = Nodes::start(1, &Numbers::new(100));
    let certificate = nodes.path("leader.pem");
    // a record of TLS that is announced and does not come
    const ANNOUNCED: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let plain = |said: &[u8]| {
        let mut stream = TcpStream::connect(nodes.address).unwrap();
        stream.write_all(said).unwrap();
        stream.set_read_timeout(Some(CLOSED)).unwrap();
        is_closed(stream)
    };
    let encrypted = |said: &[u8]| {
        let mut stream = tls(nodes.address, &certificate);
        stream.sock.set_read_timeout(Some(CLOSED)).unwrap();
        // who has closed it already does not hear it
        let _ = stream.write_all(said).and_then(|()| stream.flush());
        is_closed(stream)
    };
    std::thread::scope(|scope| {
        let closed = [
            ("nothing", scope.spawn(|| plain(b""))),
            ("half a handshake", scope.spawn(|| plain(ANNOUNCED))),
            ("no TLS", scope.spawn(|| plain(HTTP2))),
            ("nothing behind TLS", scope.spawn(|| encrypted(b""))),
            ("half a proof", scope.spawn(|| encrypted(&[7; 16]))),
            ("HTTP/2 without a call", scope.spawn(|| encrypted(HTTP2))),
            ("slow", scope.spawn(|| drips(TcpStream::connect(nodes.address).unwrap(), ANNOUNCED))),
            ("slow behind TLS", scope.spawn(|| drips(tls(nodes.address, &certificate), &HTTP2[..1]))),
        ];
        for (what, closed) in closed {
            assert!(closed.join().unwrap(), "it is open still: {what}");
        }
    });
}

#[test]
fn idle_connections_take_few_files_of_a_leader_and_keep_no_follower_out() {
    let nodes = Nodes::start(1, &Numbers::new(100));
    let idle: Vec<TcpStream> = (0..330).map(|_| TcpStream::connect(nodes.address).unwrap()).collect();
    let began = Instant::now();
    let follower = Cluster::Follower(FollowerOptions { node: 0, ..nodes.follower(0) });
    let server = Server::of(nodes.path("another"), 1 << 20, Numbers::new(100), Some(follower));
    // it is let in, and told that there is such a node
    until("the follower is not answered", || status(&server).cluster.unwrap().lost.starts_with("node: "));
    assert!(began.elapsed() < 4 * SECOND, "it has waited for others");
    for stream in &idle {
        stream.set_nonblocking(true).unwrap();
    }
    let is_open =
        |stream: &&TcpStream| matches!(stream.peek(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
    let open = idle.iter().filter(is_open).count();
    assert!(open <= 128, "{open} connections are open that have said nothing");
}

/// Somebody who has the leader's certificate, such as the host of before or another one of the same authority, and
/// does not know the token.
#[test]
fn a_follower_gives_its_token_and_its_questions_to_nobody_who_does_not_know_the_token() {
    let nodes = Nodes::start(1, &Numbers::new(100));
    let (chain, key) = (nodes.path("leader.pem"), nodes.path("leader.key"));
    let chain = vec![CertificateDer::from_pem_file(chain).unwrap()];
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let mut config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let leader = listener.local_addr().unwrap().to_string();
    let impostor = std::thread::spawn(move || {
        let (mut heard, mut bytes) = (Vec::<u8>::new(), [0; 4096]);
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(2 * SECOND)).unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), stream);
        // it says something like an answer, after it has heard something
        loop {
            match stream.read(&mut bytes) {
                Ok(0) | Err(_) => return heard,
                Ok(came) => heard.extend(&bytes[..came]),
            }
            let _ = stream.write_all(&[1; 32]).and_then(|()| stream.flush());
        }
    });
    let options = FollowerOptions { leader, nodes: 2, ..nodes.follower(1) };
    let server = Server::of(nodes.path("another"), 1 << 20, Numbers::new(100), Some(Cluster::Follower(options)));
    let lost = || status(&server).cluster.unwrap().lost;
    until("it does not notice", || lost().contains("token: who answers at 127.0.0.1:"));
    let heard = impostor.join().unwrap();
    assert_eq!(heard.len(), 32, "a proof, and nothing else: {heard:?}");
    assert!(!heard.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes()));
}

/// Does something as another user, in this thread only; None if this user cannot.
fn as_nobody<T>(what: impl FnOnce() -> T) -> Option<T> {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can be somebody else");
        return None;
    }
    let (root, nobody) = (Uid::ROOT, Uid::from_raw(65534));
    rustix::thread::set_thread_res_uid(root, nobody, root).unwrap();
    let done = what();
    rustix::thread::set_thread_res_uid(root, root, root).unwrap();
    Some(done)
}

/// A directory that all users share, as /tmp.
fn shared_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    chmod(directory.path(), Mode::RWXU | Mode::RWXG | Mode::RWXO).unwrap();
    directory
}

#[test]
fn nothing_is_said_to_a_server_of_another_user() {
    let directory = shared_directory();
    let path = directory.path().join("joader");
    let Some(listener) = as_nobody(|| UnixListener::bind(&path).unwrap()) else { return };
    let impostor = std::thread::spawn(move || {
        let heard = (0..3).map(|_| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(SECOND)).unwrap();
            let mut heard = Vec::new();
            let _ = stream.read_to_end(&mut heard);
            heard.len()
        });
        heard.collect::<Vec<_>>()
    });
    let data_set = proto::DataSet { source: "host=h password=secret".to_owned(), ..proto::DataSet::default() };
    let told = format!("no JOADER serves at {}: user 65534 is at the other end", path.display());
    let error = admin::put_data_set(&path, data_set, false).unwrap_err().to_string();
    assert!(error.starts_with(&told), "{error}");
    let error = admin::status(&path).unwrap_err().to_string();
    assert!(error.starts_with(&told), "{error}");
    let opening = Opening { opener: Arc::new(Opens(Numbers::new(10))), callables: None };
    let error = next(&mut Job::new(job_options(&path), opening).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with(&told), "{error}");
    assert_eq!(impostor.join().unwrap(), [0, 0, 0]);
}

#[test]
fn a_job_whose_server_was_replaced_by_another_users_reads_by_itself() {
    let directory = shared_directory();
    let path = directory.path().join("joader");
    let slow = Numbers { slow: SECOND / 100, ..Numbers::new(2000) };
    let mut server = Server::at(path.clone(), 1 << 20, slow);
    server.create(2000, "10", "");
    let mut job = server.job(|options| options.epochs = 1);
    assert!(matches!(next(&mut job).unwrap(), service::NextOfJob::Batch(_)));
    server.stop();
    let Some(listener) = as_nobody(|| UnixListener::bind(&path).unwrap()) else { return };
    assert_eq!(all(&mut job)[0].len(), 2000 - 16);
    assert_eq!(job.counts().registered, 1);
    drop(job);
    listener.set_nonblocking(true).unwrap();
    let heard: Vec<usize> = std::iter::from_fn(|| listener.accept().ok())
        .map(|(mut stream, _)| {
            let mut heard = Vec::new();
            let _ = stream.read_to_end(&mut heard);
            heard.len()
        })
        .collect();
    assert!(!heard.is_empty(), "it has not looked whether there is a server again");
    assert!(heard.iter().all(|bytes| *bytes == 0), "it was told {heard:?} bytes");
}

#[test]
fn a_server_answers_no_other_user_whatever_the_rights_of_its_socket_are() {
    let directory = shared_directory();
    let path = directory.path().join("joader");
    let server = Server::at(path.clone(), 1 << 20, Numbers::new(100));
    server.create(100, "10", "");
    chmod(&path, Mode::RWXU | Mode::RWXG | Mode::RWXO).unwrap();
    let Some(mut stream) = as_nobody(|| UnixStream::connect(&path).unwrap()) else { return };
    stream.set_read_timeout(Some(2 * SECOND)).unwrap();
    let _ = stream.write_all(HTTP2);
    let mut heard = Vec::new();
    let closed = stream.read_to_end(&mut heard);
    assert!(heard.is_empty(), "{heard:?}");
    assert!(!closed.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock), "it is open still");
    assert_eq!(sorted(&all(&mut server.job(|_| ()))[0]), (0..100).collect::<Vec<_>>());
}

#[test]
fn idle_connections_take_few_files_of_a_server_and_keep_no_job_out() {
    let server = Server::start(1 << 20, Numbers::new(100));
    server.create(100, "10", "");
    let idle: Vec<UnixStream> = (0..300).map(|_| UnixStream::connect(&server.path).unwrap()).collect();
    let began = Instant::now();
    assert_eq!(sorted(&all(&mut server.job(|_| ()))[0]), (0..100).collect::<Vec<_>>());
    assert!(began.elapsed() < 4 * SECOND, "it has waited for others");
    let is_open = |stream: &&UnixStream| {
        stream.set_nonblocking(true).unwrap();
        matches!((&**stream).read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    };
    let open = idle.iter().filter(is_open).count();
    assert!(open <= 128, "{open} connections are open that have said nothing");
}

#[test]
fn who_asks_a_server_that_hangs_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("joader");
    // connections wait to be accepted for ever
    let _listener = UnixListener::bind(&path).unwrap();
    let error = admin::put_data_set(&path, proto::DataSet::default(), false).unwrap_err();
    assert_eq!(error.to_string(), "the JOADER server went: it has not answered for 7 seconds");
}
