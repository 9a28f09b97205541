//! TLS for database connections, configured by `sslmode` and `sslrootcert` in the URL.
//!
//! The values mean what they mean to libpq: `prefer`, the default, encrypts if the server
//! supports it; `require` insists on encryption but accepts any certificate unless a root
//! is given; `verify-ca` verifies the certificate against the root, and `verify-full` the
//! host name as well. Unix sockets are never encrypted.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;

/// The TLS parameters of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    mode: TlsMode,
    /// A file of certificates, or `system`.
    root: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TlsMode {
    Disable,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl TlsOptions {
    /// Removes the TLS parameters from a URL; the driver parses the rest.
    pub(crate) fn extract_from_url(url: &str) -> Result<(String, Self), String> {
        let mut options = Self::default();
        let Some((base, query)) = url.split_once('?') else {
            return Ok((url.to_owned(), options));
        };
        let mut rest = Vec::new();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslmode", mode)) => options.mode = parse_mode(mode)?,
                Some(("sslrootcert", root)) => options.root = Some(percent_decode(root)?),
                _ => rest.push(pair),
            }
        }
        let url = if rest.is_empty() {
            base.to_owned()
        } else {
            format!("{base}?{}", rest.join("&"))
        };
        Ok((url, options))
    }

    /// The corresponding mode of the driver.
    pub(crate) fn ssl_mode(&self, hosts: &[Host]) -> SslMode {
        let local = hosts.iter().all(|host| !matches!(host, Host::Tcp(_)));
        match self.mode {
            TlsMode::Disable => SslMode::Disable,
            _ if local => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        }
    }

    /// Builds the TLS connector.
    pub(crate) fn build_tls(&self) -> Result<Tls, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verified = match (self.mode, &self.root) {
            (TlsMode::VerifyCa | TlsMode::VerifyFull, None) => {
                return Err(
                    "verifying the server requires trusted certificates: set sslrootcert=FILE or \
                            sslrootcert=system"
                        .to_owned(),
                );
            }
            (TlsMode::Disable | TlsMode::Prefer, _) | (TlsMode::Require, None) => None,
            (TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull, Some(root)) => {
                let roots = Arc::new(load_roots(root)?);
                let verifier =
                    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
                Some(verifier.build().map_err(|error| error.to_string())?)
            }
        };
        let judge = CertificateVerifier {
            provider: Arc::clone(&provider),
            verifier: verified,
            checks_hostname: self.mode == TlsMode::VerifyFull,
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(judge))
            .with_no_client_auth();
        Ok(Tls(TlsConnector::from(Arc::new(config))))
    }
}

fn parse_mode(text: &str) -> Result<TlsMode, String> {
    Ok(match text {
        "disable" => TlsMode::Disable,
        "prefer" => TlsMode::Prefer,
        "require" => TlsMode::Require,
        "verify-ca" => TlsMode::VerifyCa,
        "verify-full" => TlsMode::VerifyFull,
        other => {
            return Err(format!(
                "sslmode must be disable, prefer, require, verify-ca or verify-full, not {other:?}"
            ));
        }
    })
}

/// Decodes percent-encoded bytes of a URL value.
fn percent_decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first == b'%' {
            let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
            let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
            bytes.push(byte.ok_or_else(|| format!("{text:?} has an invalid percent-encoding"))?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("{text:?} is not UTF-8"))
}

/// Loads the trusted root certificates.
fn load_roots(root: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if root == "system" {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            return Err("no system certificates were found: set sslrootcert=FILE".to_owned());
        }
        return Ok(roots);
    }
    let wrong = |why: String| format!("sslrootcert {root:?} cannot be used: {why}");
    let certificates =
        CertificateDer::pem_file_iter(Path::new(root)).map_err(|error| wrong(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        let added = roots.add(certificate);
        added.map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("the file contains no certificate".to_owned()));
    }
    Ok(roots)
}

/// Verifies a server's certificate as `sslmode` requires.
#[derive(Debug)]
struct CertificateVerifier {
    provider: Arc<CryptoProvider>,
    verifier: Option<Arc<WebPkiServerVerifier>>,
    /// Whether the host name must match.
    checks_hostname: bool,
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(verified) = &self.verifier else {
            return Ok(ServerCertVerified::assertion());
        };
        match verified.verify_server_cert(certificate, others, name, ocsp, now) {
            // The name is checked last: everything else is valid.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_hostname => Ok(ServerCertVerified::assertion()),
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Makes TLS connections for the driver.
#[derive(Clone)]
pub(crate) struct Tls(TlsConnector);

/// A TLS handshake with a host of this name.
pub(crate) struct TlsHandshake {
    connector: TlsConnector,
    name: Result<ServerName<'static>, InvalidDnsNameError>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = EncryptedStream<S>;
    type TlsConnect = TlsHandshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<TlsHandshake, io::Error> {
        Ok(TlsHandshake {
            connector: self.0.clone(),
            // A Unix socket has no host name, and is not encrypted.
            name: ServerName::try_from(host.to_owned()),
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for TlsHandshake {
    type Stream = EncryptedStream<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<EncryptedStream<S>, io::Error>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = self.name.map_err(io::Error::other)?;
            Ok(EncryptedStream(Box::new(
                self.connector.connect(name, stream).await?,
            )))
        })
    }
}

/// An encrypted connection.
pub(crate) struct EncryptedStream<S>(Box<Encrypted<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for EncryptedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_encryption_is_taken_out() {
        let taken = |url| TlsOptions::extract_from_url(url).unwrap();
        let plain = "postgres://me@host/db";
        assert_eq!(taken(plain), (plain.to_owned(), TlsOptions::default()));
        let url = "postgres://me@host/db?sslmode=verify-full&a=b&sslrootcert=%2Fr%20t.pem";
        let (rest, options) = taken(url);
        assert_eq!(rest, "postgres://me@host/db?a=b");
        assert_eq!(options.mode, TlsMode::VerifyFull);
        assert_eq!(options.root.as_deref(), Some("/r t.pem"));
        let (rest, _) = taken("postgres://me@host/db?sslmode=disable");
        assert_eq!(rest, plain);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for url in [
            "postgres://host/db?sslmode=maybe",
            "postgres://host/db?sslrootcert=%2",
            "postgres://host/db?sslrootcert=%zz",
        ] {
            assert!(TlsOptions::extract_from_url(url).is_err(), "{url}");
        }
        for query in [
            "sslmode=verify-full",
            "sslmode=verify-ca&sslrootcert=/no/such",
        ] {
            let (_, options) =
                TlsOptions::extract_from_url(&format!("postgres://h/d?{query}")).unwrap();
            assert!(options.build_tls().is_err(), "{query}");
        }
    }
}
