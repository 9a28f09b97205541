//! A test server and clients for it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;
use throughline::{NewToken, Owner, Throughline, TokenRole};
use throughline_server::{
    AccessMode, App, Limits, OfflineRegistry, ResponderRegistry, ServerConfig, Tls, serve,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running server, stopped on drop.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) tl: Throughline,

    client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
    folder: Arc<tempfile::TempDir>,
}

/// Options of a test server.
pub(crate) struct ServerOptions {
    pub(crate) gate: AccessMode,
    pub(crate) limits: Limits,
    pub(crate) responders: Arc<dyn ResponderRegistry>,
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) tls: Option<Tls>,
    /// Lease timeout after which another server takes over.
    pub(crate) replaced_after: Option<Duration>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            gate: AccessMode::Open(Owner::local()),
            limits: Limits::default(),
            responders: Arc::new(OfflineRegistry),
            hosts: Vec::new(),
            origins: Vec::new(),
            tls: None,
            replaced_after: None,
        }
    }
}

impl Server {
    /// Starts a server for the local owner, without tokens.
    pub(crate) async fn start() -> Self {
        Self::start_with(ServerOptions::default()).await
    }

    /// Starts a server that requires tokens.
    pub(crate) async fn start_with_tokens() -> Self {
        let gate = AccessMode::Tokens;
        Self::start_with(ServerOptions {
            gate,
            ..ServerOptions::default()
        })
        .await
    }

    pub(crate) async fn start_with(options: ServerOptions) -> Self {
        Self::start_in(Arc::new(tempfile::tempdir().unwrap()), options).await
    }

    /// Starts another server on the same store, like another process.
    pub(crate) async fn start_peer(&self, options: ServerOptions) -> Self {
        Self::start_in(Arc::clone(&self.folder), options).await
    }

    async fn start_in(folder: Arc<tempfile::TempDir>, options: ServerOptions) -> Self {
        let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
        let mut tl = Throughline::open(&store).await.unwrap();
        if let Some(term) = options.replaced_after {
            tl = tl.with_lease_term(term);
        }
        let app = App::new(ServerConfig {
            tl: tl.clone(),
            responders: options.responders,
            gate: options.gate,
            limits: options.limits,
            hosts: options.hosts,
            origins: options.origins,
            time_zone: jiff::tz::TimeZone::UTC,
            secure: false,
            trusted_proxies: Vec::new(),
            spool_dir: None,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let serving = app.clone();
        let task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            serve(listener, serving, options.tls, stopped)
                .await
                .unwrap();
        });
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            url,
            tl,

            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            stop: Some(stop),
            task: Some(task),
            folder,
        }
    }

    /// Stops the server and waits until it has ended.
    pub(crate) async fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(task) = self.task.take() {
            task.await.unwrap();
        }
    }

    /// Creates a token and returns its text.
    pub(crate) async fn create_token(&self, owner: &str, role: TokenRole) -> String {
        let new = NewToken {
            owner: owner.parse().unwrap(),
            role,
            label: None,
            expires_at: None,
        };
        self.tl.issue_token(new).await.unwrap().text
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method: Method = method.parse().unwrap();
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.request("GET", path)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.request("POST", path).json(body)
    }

    /// Creates a session with these user messages; returns its id.
    pub(crate) async fn create_session(&self, texts: &[&str]) -> String {
        let (status, made) = send(self.request("POST", "/api/sessions")).await;
        assert_eq!(status, 201, "{made}");
        let id = made["id"].as_str().unwrap().to_owned();
        for text in texts {
            self.post_message(&id, text).await;
        }
        id
    }

    /// Appends a message to a session; returns its entry.
    pub(crate) async fn post_message(&self, session: &str, text: &str) -> Value {
        let body = serde_json::json!({"entries": [{"role": "user", "content": text}]});
        let path = format!("/api/sessions/{session}/entries");
        let (status, appended) = send(self.post(&path, &body)).await;
        assert_eq!(status, 201, "{appended}");
        appended["entries"][0].clone()
    }
}

/// Sends a request; returns the status and the JSON body, null if empty.
pub(crate) async fn send(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    let json = match text.as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    };
    (status, json)
}

/// Reads server-sent events as a browser would.
pub(crate) struct EventReader {
    response: reqwest::Response,
    read: Vec<u8>,
    last_id: Option<u64>,
}

impl EventReader {
    pub(crate) async fn open(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let status = response.status();
        let kind = response.headers().get("content-type").cloned();
        assert!(status == StatusCode::OK, "{status}: {kind:?}");
        let kind = kind.unwrap();
        assert!(kind.to_str().unwrap().starts_with("text/event-stream"));
        Self {
            response,
            read: Vec::new(),
            last_id: None,
        }
    }

    /// The id of the last event that had one.
    pub(crate) fn last_id(&self) -> Option<u64> {
        self.last_id
    }

    /// The next event and its name; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            while let Some(end) = self.read.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.read.drain(..end + 2).collect();
                if let Some(event) = self.parse_event(&String::from_utf8(block).unwrap()) {
                    return Some(event);
                }
            }
            let waited = tokio::time::timeout(TIMEOUT, self.response.chunk());
            match waited.await.expect("an event in time") {
                Ok(Some(chunk)) => self.read.extend_from_slice(&chunk),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    fn parse_event(&mut self, block: &str) -> Option<(String, Value)> {
        let (mut name, mut data) = (None, None);
        for line in block.lines() {
            match line.split_once(": ") {
                Some(("id", id)) => self.last_id = Some(id.parse().unwrap()),
                Some(("event", event)) => name = Some(event.to_owned()),
                Some(("data", json)) => data = Some(serde_json::from_str(json).unwrap()),
                _ => {}
            }
        }
        Some((name?, data?))
    }

    /// Reads all events until the stream ends.
    pub(crate) async fn read_to_end(&mut self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

/// How long a test waits for an expected event.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// A minimal WebSocket client.
pub(crate) struct Socket {
    stream: TcpStream,
}

impl Server {
    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    pub(crate) async fn websocket(&self, path: &str) -> Socket {
        let mut stream = TcpStream::connect(self.address()).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.address()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answered = Vec::new();
        while !answered.ends_with(b"\r\n\r\n") {
            answered.push(stream.read_u8().await.unwrap());
        }
        let answered = String::from_utf8(answered).unwrap();
        assert!(answered.starts_with("HTTP/1.1 101"), "{answered}");
        Socket { stream }
    }
}

impl Socket {
    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        let read = async {
            loop {
                let first = self.stream.read_u8().await.unwrap();
                let length = match self.stream.read_u8().await.unwrap() {
                    126 => u64::from(self.stream.read_u16().await.unwrap()),
                    127 => self.stream.read_u64().await.unwrap(),
                    short => u64::from(short),
                };
                let mut payload = vec![0; usize::try_from(length).unwrap()];
                self.stream.read_exact(&mut payload).await.unwrap();
                // An unfragmented text frame.
                if first == 0x81 {
                    return serde_json::from_slice(&payload).unwrap();
                }
            }
        };
        tokio::time::timeout(TIMEOUT, read)
            .await
            .expect("a message in time")
    }
}
