//! Accepts connections, handles TLS, and shuts down gracefully.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use throughline::Owner;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::{AccessMode, App, IssuedTokens, Limits, router};

/// How long connections may take to finish after a shutdown request.
const CONNECTION_DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long running turns may continue after a shutdown request.
const TURN_DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum concurrent streams per HTTP/2 connection.
const MAX_HTTP2_STREAMS: u32 = 256;
/// Read buffer per connection; also the maximum size of a request's headers.
const READ_BUFFER: usize = 64 * 1024;
/// HTTP/2 flow-control window per connection.
const HTTP2_WINDOW: u32 = 256 * 1024;

/// The address of the connected peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Why the server cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A public address without tokens would give everyone on the network the owner's access.
    #[error("{0} is reachable from the network, and there is no token to protect it")]
    NoTokens(SocketAddr),
    /// A TLS certificate or key file cannot be used.
    #[error("{path} cannot be used for TLS: {why}")]
    Tls {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The listener failed.
    #[error("the server cannot listen")]
    Listen(#[from] io::Error),
}

impl AccessMode {
    /// Determines the access mode for a listening address.
    ///
    /// Access without a token is allowed only on a loopback address, only while no token was ever
    /// created, and only if neither a host name nor a proxy is configured (`named`), since either
    /// means that requests may come from elsewhere. Revoked and expired tokens still count as
    /// created.
    pub fn for_address(
        address: SocketAddr,
        owner: Owner,
        tokens: IssuedTokens,
        named: bool,
    ) -> Result<Self, ServeError> {
        match (address.ip().is_loopback(), tokens) {
            (true, IssuedTokens::Never) if !named => Ok(Self::Open(owner)),
            (true, _) | (false, IssuedTokens::Valid) => Ok(Self::Tokens),
            (false, _) => Err(ServeError::NoTokens(address)),
        }
    }
}

/// A TLS certificate and its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads a certificate chain and a private key from PEM files.
    pub fn from_pem_files(
        certificates: &std::path::Path,
        key: &std::path::Path,
    ) -> Result<Self, ServeError> {
        let wrong = |path: &std::path::Path, why: String| ServeError::Tls {
            path: path.to_owned(),
            why,
        };
        let chain = CertificateDer::pem_file_iter(certificates)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong(certificates, error.to_string()))?;
        if chain.is_empty() {
            return Err(wrong(
                certificates,
                "the file contains no certificate".into(),
            ));
        }
        let secret =
            PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(certificates, error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|error| wrong(certificates, error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

/// Serves until `stop` resolves, then shuts down gracefully.
pub async fn serve(
    listener: TcpListener,
    app: App,
    tls: Option<Tls>,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let address = listener.local_addr()?;
    if matches!(app.config.gate, AccessMode::Open(_)) && !address.ip().is_loopback() {
        return Err(ServeError::NoTokens(address));
    }
    let router = router(&app);
    let connections = Connections::new(app.limits());
    let room = Arc::new(Semaphore::new(app.limits().connections));
    tokio::pin!(stop);
    loop {
        let permit = tokio::select! {
            () = &mut stop => break,
            permit = Arc::clone(&room).acquire_owned() => permit,
        };
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file handles, for example. Existing connections continue.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let watched = connections.serve_stream(stream, peer, tls.clone(), router.clone());
        tokio::spawn(async move {
            watched.await;
            drop(permit);
        });
    }
    drop(listener);
    app.hub.close();
    let left = tokio::time::timeout(CONNECTION_DRAIN_TIMEOUT, connections.drain());
    let (left, ()) = tokio::join!(left, app.finish_turns(TURN_DRAIN_TIMEOUT));
    if left.is_err() {
        tracing::warn!("some connections had to be closed");
    }
    Ok(())
}

fn connection_builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(READ_BUFFER)
        .half_close(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_HTTP2_STREAMS)
        .initial_connection_window_size(HTTP2_WINDOW)
        .initial_stream_window_size(HTTP2_WINDOW)
        .keep_alive_interval(Duration::from_secs(30));
    builder
}

/// The open connections of a listener.
pub(crate) struct Connections {
    builder: Arc<Builder<TokioExecutor>>,
    graceful: GracefulShutdown,
}

impl Connections {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            builder: Arc::new(connection_builder(limits)),
            graceful: GracefulShutdown::new(),
        }
    }

    /// Stops accepting requests on all connections and waits until they have closed.
    pub(crate) async fn drain(self) {
        self.graceful.shutdown().await;
    }

    /// Serves one connection until it closes.
    pub(crate) fn serve_stream(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        tls: Option<Tls>,
        router: Router,
    ) -> impl Future<Output = ()> + Send + 'static {
        let builder = Arc::clone(&self.builder);
        let watcher = self.graceful.watcher();
        async move {
            // Small responses should not be delayed by Nagle's algorithm.
            let _ = stream.set_nodelay(true);
            match tls {
                None => serve_connection(stream, peer, router, &builder, watcher).await,
                Some(Tls(acceptor)) => {
                    let shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream));
                    match shaken.await {
                        Ok(Ok(stream)) => {
                            serve_connection(stream, peer, router, &builder, watcher).await;
                        }
                        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                        Err(_) => tracing::debug!("TLS handshake timed out"),
                    }
                }
            }
        }
    }
}

async fn serve_connection<S>(
    stream: S,
    peer: SocketAddr,
    router: Router,
    builder: &Builder<TokioExecutor>,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |request: hyper::Request<_>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer));
        router.clone().oneshot(request)
    });
    let connection = builder
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "connection failed");
    }
}
