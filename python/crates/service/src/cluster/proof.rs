//! Servers prove to each other that they know the token, before they say anything else.
//!
//! It guarantees that the token itself is sent to no one, and that a proof is worth nothing in another connection: it
//! is made of the token and of numbers that only the two ends of this connection of TLS have. An impostor between
//! them has two connections with different numbers, and cannot pass proofs on.
//!
//! The follower begins, once TLS has shown that the leader's certificate is trusted: so no one gets proofs, by which he
//! could try tokens out, who has not that certificate's key or the token.

use super::Token;
use ring::hmac;
use rustls::ConnectionCommon;
use rustls::pki_types::ServerName;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// Bytes of a proof.
const PROOF: usize = 32;

/// What a follower hears whose proof is wrong.
const REFUSED: [u8; PROOF] = [0; PROOF];

/// Who gives a proof: no one can send back the one that he got.
#[derive(Clone, Copy)]
enum Role {
    Leader,
    Follower,
}

/// What a proof is made of: a key, and numbers of this connection and role.
fn parts<D>(token: &Token, connection: &ConnectionCommon<D>, role: Role) -> io::Result<(hmac::Key, [u8; PROOF])> {
    let role: &[u8] = match role {
        Role::Leader => b"leader",
        Role::Follower => b"follower",
    };
    let numbers = connection.export_keying_material([0; PROOF], b"EXPORTER-corgipile-joader", Some(role));
    Ok((hmac::Key::new(hmac::HMAC_SHA256, token.0.as_bytes()), numbers.map_err(io::Error::other)?))
}

fn give<D>(token: &Token, connection: &ConnectionCommon<D>, role: Role) -> io::Result<hmac::Tag> {
    let (key, numbers) = parts(token, connection, role)?;
    Ok(hmac::sign(&key, &numbers))
}

/// Whether a proof is right, which takes as long if it is not.
fn is_right<D>(token: &Token, connection: &ConnectionCommon<D>, role: Role, proof: &[u8]) -> io::Result<bool> {
    let (key, numbers) = parts(token, connection, role)?;
    Ok(hmac::verify(&key, &numbers, proof).is_ok())
}

/// A follower, for its leader.
pub(super) async fn accept(
    tls: TlsAcceptor,
    token: Token,
    stream: TcpStream,
) -> io::Result<server::TlsStream<TcpStream>> {
    stream.set_nodelay(true)?;
    let mut stream = tls.accept(stream).await?;
    let mut proof = [0; PROOF];
    stream.read_exact(&mut proof).await?;
    if !is_right(&token, stream.get_ref().1, Role::Follower, &proof)? {
        stream.write_all(&REFUSED).await?;
        stream.shutdown().await?;
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it does not know the token"));
    }
    let proof = give(&token, stream.get_ref().1, Role::Leader)?;
    stream.write_all(proof.as_ref()).await?;
    stream.flush().await?;
    Ok(stream)
}

/// The leader, for a follower.
pub(super) async fn connect(
    tls: TlsConnector,
    token: Token,
    leader: String,
    name: ServerName<'static>,
) -> io::Result<client::TlsStream<TcpStream>> {
    let stream = TcpStream::connect(&leader).await?;
    stream.set_nodelay(true)?;
    let mut stream = tls.connect(name, stream).await?;
    let proof = give(&token, stream.get_ref().1, Role::Follower)?;
    stream.write_all(proof.as_ref()).await?;
    stream.flush().await?;
    let mut proof = [0; PROOF];
    stream.read_exact(&mut proof).await?;
    if is_right(&token, stream.get_ref().1, Role::Leader, &proof)? {
        return Ok(stream);
    }
    let what = if proof == REFUSED {
        "token: it is not the leader's: give all servers of the cluster the same one".to_owned()
    } else {
        format!("token: who answers at {leader} does not know it, or has another version of corgipile")
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}
