//! The mock server, on a thread of its own so that any test can start one.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;

use crate::{Request, Script, http_handler};

/// A running mock provider. It stops when it is dropped.
#[derive(Debug)]
pub struct MockProvider {
    address: SocketAddr,
    shared: Arc<ServerState>,
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) script: Script,
    key: Option<String>,
    requests: Mutex<Vec<Request>>,
}

impl ServerState {
    pub(crate) fn record_request(&self, request: Request) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.push(request);
    }

    /// Returns whether this header contains the expected API key.
    pub(crate) fn accepts_key(&self, header: Option<&str>) -> bool {
        self.key.as_deref().is_none_or(|key| {
            header.is_some_and(|header| header.strip_prefix("Bearer ").unwrap_or(header) == key)
        })
    }
}

impl MockProvider {
    /// Starts on a free local port, without requiring a key.
    pub fn start(script: Script) -> io::Result<Self> {
        Self::listen((Ipv4Addr::LOCALHOST, 0).into(), script, None)
    }

    /// Starts on a free local port, requiring a key.
    pub fn start_with_key(script: Script, key: &str) -> io::Result<Self> {
        Self::listen(
            (Ipv4Addr::LOCALHOST, 0).into(),
            script,
            Some(key.to_owned()),
        )
    }

    /// Starts at an address, requiring a key if one is given.
    pub fn listen(at: SocketAddr, script: Script, key: Option<String>) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared = Arc::new(ServerState {
            script,
            key,
            requests: Mutex::default(),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("stand-in".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        _ = stopped => {}
                        _ = serve(listener, serving) => {}
                    }
                });
            })?;
        Ok(Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the base URL: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests received so far.
    pub fn requests(&self) -> Vec<Request> {
        let requests = &self.shared.requests;
        requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Blocks for as long as the server runs, which is forever.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for MockProvider {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, shared: Arc<ServerState>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(|request| http_handler::handle_request(request, &shared));
            // A failed connection is for the client to notice.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
