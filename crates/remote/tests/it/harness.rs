//! A server over an embedded store, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use throughline::{NewToken, Owner, Throughline, TokenRole};
use throughline_remote::{RemoteStore, ServerUrl, Timing, TokenText};
use throughline_server::{App, Gate, Limits, OfflineVoices, Serving, serve};
use throughline_store::StoreError;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server that is there as long as this is.
pub(crate) struct Served {
    /// The store it keeps.
    pub(crate) tl: Throughline,
    pub(crate) address: SocketAddr,
    pub(crate) limits: Limits,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
    folder: tempfile::TempDir,
}

impl Served {
    /// One that asks for tokens.
    pub(crate) async fn start() -> Self {
        Self::with(Limits::default()).await
    }

    pub(crate) async fn with(limits: Limits) -> Self {
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
        served.begin().await;
        served
    }

    /// Serves at its address, which is chosen the first time.
    pub(crate) async fn begin(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let app = App::new(Serving {
            tl: self.tl.clone(),
            voices: Arc::new(OfflineVoices),
            gate: Gate::Tokens,
            limits: self.limits,
            hosts: Vec::new(),
            origins: Vec::new(),
            zone: jiff::tz::TimeZone::UTC,
            secure: false,
            trusted_proxies: Vec::new(),
            spool: None,
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

    /// Stops it and waits for its end.
    pub(crate) async fn end(&mut self) {
        drop(self.stop.take());
        if let Some(task) = self.task.take() {
            task.await.unwrap();
        }
    }

    /// Changes the file of its store behind its back.
    pub(crate) fn damage(&self, sql: &str) {
        let file = self.folder.path().join("sessions.db");
        let connection = rusqlite::Connection::open(file).unwrap();
        assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
    }

    /// A new token.
    pub(crate) async fn token(&self, owner: &str, role: TokenRole) -> TokenText {
        let new = NewToken {
            owner: owner.parse().unwrap(),
            role,
            label: None,
            expires_at: None,
        };
        let made = self.tl.make_token(new).await.unwrap();
        TokenText::new(&made.text).unwrap()
    }

    /// Its store, on behalf of an owner.
    pub(crate) async fn store(&self, owner: &str) -> RemoteStore {
        let token = self.token(owner, TokenRole::User).await;
        open(self.address, &token).await.unwrap()
    }
}

/// The store of the server at an address.
pub(crate) async fn open(
    address: SocketAddr,
    token: &TokenText,
) -> Result<RemoteStore, StoreError> {
    RemoteStore::open(&url(address), Some(token), None, timing()).await
}

pub(crate) fn url(address: SocketAddr) -> ServerUrl {
    format!("http://{address}").parse().unwrap()
}

/// Enough for a machine that has a lot to do.
pub(crate) fn timing() -> Timing {
    Timing {
        reach: Duration::from_secs(20),
        ..Timing::default()
    }
}

pub(crate) fn owner(name: &str) -> Owner {
    name.parse().unwrap()
}
