//! Encrypted connections: what `sslmode` asks for, and which certificates are believed.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::postgres::Config;
use ::postgres::config::{Host, SslMode};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use source::SourceError;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::settings::{Values, at_home, env};

/// What makes connections encrypted.
pub(super) type Tls = MakeRustlsConnect;

/// Sets whether a connection is encrypted, and returns what does it.
pub(super) fn tls(config: &mut Config, values: &Values) -> Result<Tls, SourceError> {
    let system = values.get("sslrootcert") == Some("system");
    let required = if env("PGREQUIRESSL").as_deref() == Some("1") { "require" } else { "prefer" };
    let mode = values.get("sslmode").unwrap_or(if system { "verify-full" } else { required });
    let (ssl_mode, verified) = match mode {
        "disable" => (SslMode::Disable, Verified::Nothing),
        "prefer" => (SslMode::Prefer, Verified::Nothing),
        "require" => (SslMode::Require, Verified::Nothing),
        "verify-ca" => (SslMode::Require, Verified::Issuer),
        "verify-full" => (SslMode::Require, Verified::Name),
        _ => {
            let name = values.told("sslmode");
            let what = "is not supported: choose disable, prefer, require, verify-ca or verify-full";
            return Err(SourceError::Invalid(format!("{name}={mode} {what}")));
        }
    };
    if system && verified != Verified::Name {
        return Err(SourceError::Invalid(format!(
            "sslmode={mode} is too weak for sslrootcert=system: use verify-full"
        )));
    }
    // A socket of this machine is not encrypted, whatever is asked for.
    let sockets =
        config.get_hostaddrs().is_empty() && config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
    config.ssl_mode(if sockets { SslMode::Disable } else { ssl_mode });
    let provider = Arc::new(ring::default_provider());
    let verifier = if sockets || ssl_mode == SslMode::Disable {
        Arc::new(Verifier { inner: None, roots: Vec::new(), verified, provider: provider.clone() })
    } else {
        verifier(values, verified, provider.clone())?
    };
    let versions = match values.get("ssl_min_protocol_version") {
        None | Some("TLSv1" | "TLSv1.1" | "TLSv1.2") => rustls::ALL_VERSIONS,
        Some("TLSv1.3") => &[&rustls::version::TLS13],
        Some(other) => {
            let what = format!("{}={other} is not a version of TLS", values.told("ssl_min_protocol_version"));
            return Err(SourceError::Invalid(what));
        }
    };
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions);
    let builder = builder.map_err(refused)?.dangerous().with_custom_certificate_verifier(verifier);
    let client = match own_certificate(values)? {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(refused)?,
        None => builder.with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(client))
}

fn refused(error: Error) -> SourceError {
    SourceError::Invalid(format!("TLS: {error}"))
}

/// What is verified of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verified {
    Nothing,
    /// That it was issued by somebody who is trusted.
    Issuer,
    /// And that it is the server's.
    Name,
}

/// Verifies the server's certificate as libpq does. Anyone who asks for encryption only gets that.
#[derive(Debug)]
struct Verifier {
    /// None if nothing is verified.
    inner: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates that are trusted themselves.
    roots: Vec<CertificateDer<'static>>,
    verified: Verified,
    provider: Arc<CryptoProvider>,
}

fn verifier(values: &Values, verified: Verified, provider: Arc<CryptoProvider>) -> Result<Arc<Verifier>, SourceError> {
    let named = values.get("sslrootcert").map(PathBuf::from);
    let file = named.clone().or_else(|| at_home(".postgresql/root.crt").filter(|path| path.exists()));
    let roots = match &file {
        _ if values.get("sslrootcert") == Some("system") => rustls_native_certs::load_native_certs().certs,
        Some(file) => certificates(file)?,
        None if verified == Verified::Nothing => {
            return Ok(Arc::new(Verifier { inner: None, roots: Vec::new(), verified, provider }));
        }
        None => {
            let what = "which certificates to trust is not known: name a file in sslrootcert, or sslrootcert=system";
            return Err(SourceError::Invalid(what.into()));
        }
    };
    let mut store = RootCertStore::empty();
    let (_, wrong) = store.add_parsable_certificates(roots.iter().cloned());
    if store.is_empty() || (wrong > 0 && named.is_some_and(|named| named.exists())) {
        let place = file.map_or_else(|| "the system".into(), |file| file.display().to_string());
        return Err(SourceError::Invalid(format!(
            "sslrootcert: {place} has a certificate that cannot be read, or none"
        )));
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone()).build();
    let inner = inner.map_err(|error| SourceError::Invalid(format!("sslrootcert: {error}")))?;
    // With a file of certificates, it is looked at even where only encryption is asked for.
    let verified = if verified == Verified::Nothing { Verified::Issuer } else { verified };
    Ok(Arc::new(Verifier { inner: Some(inner), roots, verified, provider }))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, SourceError> {
    let bytes = std::fs::read(file).map_err(|error| SourceError::Io { path: file.to_owned(), error })?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(SourceError::Invalid(format!(
            "{}: there is no certificate, or one that cannot be read",
            file.display()
        ))),
    }
}

type Own = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The client's own certificate, with its key.
fn own_certificate(values: &Values) -> Result<Option<Own>, SourceError> {
    let usual = |name: &str| at_home(name).filter(|path| path.exists());
    let Some(file) = values.get("sslcert").map(PathBuf::from).or_else(|| usual(".postgresql/postgresql.crt")) else {
        return Ok(None);
    };
    let Some(key) = values.get("sslkey").map(PathBuf::from).or_else(|| usual(".postgresql/postgresql.key")) else {
        return Err(SourceError::Invalid("sslkey: the certificate of sslcert has no key".into()));
    };
    let io = |error| SourceError::Io { path: key.clone(), error };
    let metadata = std::fs::metadata(&key).map_err(io)?;
    // root's may be read by a group
    let open_to = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.permissions().mode() & open_to != 0 {
        let key = key.display();
        return Err(SourceError::Invalid(format!("sslkey: others may read {key}: chmod 600 {key}")));
    }
    let read = PrivateKeyDer::from_pem_slice(&std::fs::read(&key).map_err(io)?);
    let what = || SourceError::Invalid(format!("sslkey: {} has no key without a password of its own", key.display()));
    Ok(Some((certificates(&file)?, read.map_err(|_| what())?)))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(certificate, others, name, ocsp, now) {
            // The issuer is looked at before the name.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.verified == Verified::Issuer => Ok(ServerCertVerified::assertion()),
            // A server's own certificate that is trusted itself, such as the one that PostgreSQL's manual makes. When
            // it ends is looked at before that.
            Err(Error::InvalidCertificate(CertificateError::Other(why)))
                if format!("{why:?}").contains("CaUsedAsEndEntity") && self.roots.contains(certificate) =>
            {
                if self.verified == Verified::Name {
                    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
