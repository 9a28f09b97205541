//! Several servers over one database, and clients that use them during failures.
//!
//! Invariants after any failure: every acknowledged message is stored under its
//! acknowledged number; none is duplicated; no number is missing; and the store is sound.

mod database;
mod events;
mod kills;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Tl;
use crate::server_process::{HttpRequest, ServerProcess};

/// How long a client waits before it retries, and how often it does.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
const MAX_TRIES: usize = 600;

/// Servers over one database.
#[derive(Debug)]
struct Fleet {
    tl: Tl,
    url: String,
    servers: Vec<ServerProcess>,
}

impl Fleet {
    /// Starts three servers, each with its own URL of the same database.
    fn start(urls: [&str; 3], variables: &[(&str, &str)]) -> Self {
        let tl = Tl::new();
        let start = |url: &&str| {
            let mut command = tl.command(&["--store", url]);
            command.envs(variables.iter().copied());
            ServerProcess::start_command(command).discard_stderr()
        };
        let servers = urls.iter().map(start).collect();
        let url = urls[0].to_owned();
        Self { tl, url, servers }
    }

    fn addresses(&self) -> Vec<String> {
        let addresses = self.servers.iter().map(|server| server.address.clone());
        addresses.collect()
    }

    /// Runs `tl` on the store directly and parses its JSON output.
    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        let args: Vec<_> = ["--store", &self.url].iter().chain(args).copied().collect();
        self.tl.json(&args)
    }

    /// Creates a session with a key; returns its id.
    fn session(&self, key: &str) -> String {
        let body = json!({ "key": key }).to_string();
        let (status, made) = self.servers[2].request("POST", "/api/sessions", None, &body);
        assert!([200, 201].contains(&status), "{made}");
        made["id"].as_str().unwrap().to_owned()
    }

    /// The numbers and texts of a session's messages, in order.
    fn log(&self, session: &str) -> Vec<(u64, String)> {
        let shown = self.json(&["show", session, "--all"]);
        let entries = shown["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| {
                let text = entry["content"].as_str().unwrap_or_default();
                (entry["seq"].as_u64().unwrap(), text.to_owned())
            })
            .collect()
    }

    /// Compares the store with what was acknowledged.
    #[track_caller]
    fn verify(&self, acknowledged: &[AcknowledgedMessage]) {
        let mut by_session = BTreeMap::<&str, BTreeMap<&str, u64>>::new();
        for one in acknowledged {
            let texts = by_session.entry(&one.session).or_default();
            assert_eq!(texts.insert(&one.text, one.seq), None, "{one:?}");
        }
        for (session, texts) in by_session {
            let log = self.log(session);
            let numbers: Vec<u64> = log.iter().map(|(seq, _)| *seq).collect();
            let dense: Vec<u64> = (1..=numbers.len() as u64).collect();
            assert_eq!(numbers, dense, "a gap in {session}");
            let mut there = BTreeMap::<&str, u64>::new();
            let messages = log.iter().filter(|(_, text)| !text.is_empty());
            for (seq, text) in messages {
                assert_eq!(there.insert(text, *seq), None, "{text:?} is there twice");
            }
            for (text, seq) in texts {
                assert_eq!(there.get(text), Some(&seq), "{text:?} in {session}");
            }
        }
        let report = self.json(&["doctor"]);
        assert_eq!(report["ok"], true, "{report}");
        assert_eq!(report["findings"], json!([]));
    }
}

/// A message that a server acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AcknowledgedMessage {
    session: String,
    text: String,
    seq: u64,
}

/// The results of the clients.
#[derive(Debug, Default)]
struct ClientReport {
    acknowledged: Vec<AcknowledgedMessage>,
    /// Error codes that servers returned.
    refused: Vec<String>,
}

/// A client that uses one server until that fails.
#[derive(Debug)]
struct Client {
    addresses: Vec<String>,
    server: usize,
    work: ClientReport,
}

impl Client {
    /// Appends a message under one key, with retries on other servers.
    fn append(&mut self, session: &str, text: &str) {
        let path = format!("/api/sessions/{session}/entries");
        let headers = format!("idempotency-key: {text}\r\n");
        let body = json!({"entries": [{"role": "user", "content": text}]}).to_string();
        let ask = HttpRequest {
            method: "POST",
            path: &path,
            headers: &headers,
            body: &body,
        };
        for _ in 0..MAX_TRIES {
            match ask.fetch(&self.addresses[self.server]) {
                Ok((200 | 201, appended)) => {
                    let entry = &appended["entries"][0];
                    assert_eq!(entry["content"], text);
                    return self.work.acknowledged.push(AcknowledgedMessage {
                        session: session.to_owned(),
                        text: text.to_owned(),
                        seq: entry["seq"].as_u64().unwrap(),
                    });
                }
                Ok((503, problem)) => {
                    // A clear error: it names the problem, and that it is temporary.
                    let code = problem["code"].as_str().expect("a problem has a code");
                    self.work.refused.push(code.to_owned());
                }
                Ok((status, problem)) => panic!("{status} {problem}"),
                // The server is gone, or failed in the middle of its response.
                Err(_) => self.server = (self.server + 1) % self.addresses.len(),
            }
            std::thread::sleep(RETRY_PAUSE);
        }
        panic!("{text} could not be appended: {:?}", self.work.refused);
    }
}

/// Runs clients that append concurrently to one shared session and to one of their own;
/// once about this many messages are acknowledged, runs `happens`.
fn append_while(
    fleet: &Fleet,
    clients: usize,
    each: usize,
    after: usize,
    happens: impl FnOnce(),
) -> ClientReport {
    let shared = fleet.session("shared");
    let done = Arc::new(AtomicUsize::new(0));
    let start = Arc::new(Barrier::new(clients + 1));
    let running: Vec<_> = (0..clients)
        .map(|number| {
            let (shared, own) = (shared.clone(), fleet.session(&format!("own-{number}")));
            let (done, start) = (Arc::clone(&done), Arc::clone(&start));
            let mut client = Client {
                addresses: fleet.addresses(),
                server: number % 3,
                work: ClientReport::default(),
            };
            std::thread::spawn(move || {
                start.wait();
                for count in 0..each {
                    client.append(&shared, &format!("shared {number} {count}"));
                    client.append(&own, &format!("own {number} {count}"));
                    done.fetch_add(2, Ordering::Relaxed);
                }
                client.work
            })
        })
        .collect();
    start.wait();
    while done.load(Ordering::Relaxed) < after {
        assert!(!running.iter().all(std::thread::JoinHandle::is_finished));
        std::thread::sleep(Duration::from_millis(5));
    }
    happens();
    let mut all = ClientReport::default();
    for client in running {
        let work = client.join().expect("a client");
        all.acknowledged.extend(work.acknowledged);
        all.refused.extend(work.refused);
    }
    assert_eq!(all.acknowledged.len(), clients * each * 2);
    all
}
