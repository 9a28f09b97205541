//! A test server over an embedded store, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use throughline::{NewToken, Owner, Throughline, TokenRole};
use throughline_remote::{BearerToken, RemoteStore, ServerUrl, Timeouts};
use throughline_server::{AccessMode, App, Limits, OfflineRegistry, ServerConfig, serve};
use throughline_store::StoreError;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server that runs until this is dropped.
pub(crate) struct TestServer {
    /// The engine over the server's store.
    pub(crate) tl: Throughline,
    pub(crate) address: SocketAddr,
    pub(crate) limits: Limits,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
    folder: tempfile::TempDir,
}

impl TestServer {
    /// Starts a server that requires tokens.
    pub(crate) async fn start() -> Self {
        Self::with_limits(Limits::default()).await
    }

    pub(crate) async fn with_limits(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
        let mut served = Self {
            tl: Throughline::open(&store).await.unwrap(),
            address: "127.0.0.1:0".parse().unwrap(),
            limits,
            stop: None,
            task: None,
            folder,
        };
        served.start_serving().await;
        served
    }

    /// Starts serving; the address is chosen the first time and reused.
    pub(crate) async fn start_serving(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let app = App::new(ServerConfig {
            tl: self.tl.clone(),
            responders: Arc::new(OfflineRegistry),
            gate: AccessMode::Tokens,
            limits: self.limits,
            hosts: Vec::new(),
            origins: Vec::new(),
            time_zone: jiff::tz::TimeZone::UTC,
            secure: false,
            trusted_proxies: Vec::new(),
            spool_dir: None,
        });
        let (stop, stopped) = oneshot::channel();
        self.stop = Some(stop);
        self.task = Some(tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            serve(listener, app, None, stopped).await.unwrap();
        }));
    }

    /// Stops serving and waits for the server to end.
    pub(crate) async fn stop_serving(&mut self) {
        drop(self.stop.take());
        if let Some(task) = self.task.take() {
            task.await.unwrap();
        }
    }

    /// Changes the store's file directly, bypassing the server.
    pub(crate) fn execute_sql(&self, sql: &str) {
        let file = self.folder.path().join("sessions.db");
        let connection = rusqlite::Connection::open(file).unwrap();
        assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
    }

    /// Creates a token.
    pub(crate) async fn create_token(&self, owner: &str, role: TokenRole) -> BearerToken {
        let new = NewToken {
            owner: owner.parse().unwrap(),
            role,
            label: None,
            expires_at: None,
        };
        let made = self.tl.issue_token(new).await.unwrap();
        BearerToken::new(&made.text).unwrap()
    }

    /// Opens the store as an owner.
    pub(crate) async fn store(&self, owner: &str) -> RemoteStore {
        let token = self.create_token(owner, TokenRole::User).await;
        open(self.address, &token).await.unwrap()
    }
}

/// Opens the store of the server at an address.
pub(crate) async fn open(
    address: SocketAddr,
    token: &BearerToken,
) -> Result<RemoteStore, StoreError> {
    RemoteStore::open(&url(address), Some(token), None, timeouts()).await
}

pub(crate) fn url(address: SocketAddr) -> ServerUrl {
    format!("http://{address}").parse().unwrap()
}

/// Generous enough for a busy machine.
pub(crate) fn timeouts() -> Timeouts {
    Timeouts {
        connect_deadline: Duration::from_secs(20),
        ..Timeouts::default()
    }
}

pub(crate) fn owner(name: &str) -> Owner {
    name.parse().unwrap()
}
