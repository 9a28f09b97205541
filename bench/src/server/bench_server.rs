//! Servers that run on their own threads and runtimes.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use axum::Router;
use axum::routing::post;
use jiff::tz::TimeZone;
use throughline::{Owner, Throughline};
use throughline_server::{AccessMode, App, Cap, Limits, OfflineRegistry, ServerConfig, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A server that runs until this is dropped.
pub(super) struct BenchServer {
    pub(super) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl BenchServer {
    /// Starts the Throughline server on a store in this file.
    pub(super) fn start_throughline(store: &Path) -> Result<Self> {
        let url = format!("sqlite:{}", store.display());
        Self::start(move |listener, stop| async move {
            let app = App::new(ServerConfig {
                tl: Throughline::open(&url).await?,
                responders: Arc::new(OfflineRegistry),
                gate: AccessMode::Open(Owner::local()),
                limits: Limits {
                    // All streams come from one client here.
                    streams: Cap {
                        total: 4_096,
                        per_caller: 4_096,
                    },
                    ..Limits::default()
                },
                hosts: Vec::new(),
                origins: Vec::new(),
                time_zone: TimeZone::UTC,
                secure: false,
                trusted_proxies: Vec::new(),
                spool_dir: None,
            });
            serve(listener, app, None, stop).await?;
            Ok(())
        })
    }

    /// Starts a server whose handler reads a body and stores nothing.
    pub(super) fn start_noop() -> Result<Self> {
        Self::start(|listener, stop| async move {
            let handler = async |body: axum::body::Bytes| format!("{{\"bytes\":{}}}", body.len());
            let router = Router::new().route("/limit", post(handler));
            let served = axum::serve(listener, router).with_graceful_shutdown(stop);
            Ok(served.await?)
        })
    }

    fn start<F>(
        run: impl FnOnce(TcpListener, std::pin::Pin<Box<dyn Future<Output = ()> + Send>>) -> F
        + Send
        + 'static,
    ) -> Result<Self>
    where
        F: Future<Output = Result<()>>,
    {
        let (sender, address) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                sender.send(listener.local_addr()?)?;
                let stopped = Box::pin(async move {
                    let _ = stopped.await;
                });
                run(listener, stopped).await
            })
        });
        let address = address.recv().context("the server did not start")?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Errors have already reached the connected clients.
            let _ = thread.join();
        }
    }
}
