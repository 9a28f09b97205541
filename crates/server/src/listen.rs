//! Connections: accepting them, TLS, and letting go of them in an orderly way.

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

/// How long connections may take to end once the server is told to stop.
const CONNECTION_DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long turns under way may go on then.
const TURN_DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Streams of one HTTP/2 connection.
const MAX_HTTP2_STREAMS: u32 = 256;
/// The most a connection buffers of what arrives; also the largest head of a request.
const READ_BUFFER: usize = 64 * 1024;
/// What an HTTP/2 peer may send of bodies before they are read, per connection.
const HTTP2_WINDOW: u32 = 256 * 1024;

/// Whom a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Everybody on the network would be the owner.
    #[error("{0} can be reached by others, and there is no token that would keep them out")]
    NoTokens(SocketAddr),
    /// A file of TLS cannot be used.
    #[error("{path} cannot be used for TLS: {why}")]
    Tls {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The listener failed.
    #[error("the server cannot listen")]
    Listen(#[from] io::Error),
}

impl AccessMode {
    /// Who may call at this address.
    ///
    /// Only a loopback address is open, only while no token was ever made, and only
    /// where neither a name nor a proxy was given for it (`named`): either means that
    /// requests may come from elsewhere. Revoked and expired tokens keep it closed.
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

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads a chain of certificates and a key, both as PEM.
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
            return Err(wrong(certificates, "there is no certificate in it".into()));
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

/// Serves until told to stop, then lets what is under way come to its end.
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
                // Out of file handles, say: what is served goes on being served.
                tracing::warn!(%error, "a connection cannot be accepted");
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
        tracing::warn!("some connections had to be cut");
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

/// The connections of a listener.
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

    /// Waits until all have ended; none takes another request.
    pub(crate) async fn drain(self) {
        self.graceful.shutdown().await;
    }

    /// Serves one connection to its end.
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
            // Small answers should not wait for more to come.
            let _ = stream.set_nodelay(true);
            match tls {
                None => serve_connection(stream, peer, router, &builder, watcher).await,
                Some(Tls(acceptor)) => {
                    let shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream));
                    match shaken.await {
                        Ok(Ok(stream)) => {
                            serve_connection(stream, peer, router, &builder, watcher).await;
                        }
                        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                        Err(_) => tracing::debug!("a TLS handshake took too long"),
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
        tracing::debug!(%error, "a connection broke");
    }
}
