//! A recorded `tl serve`, and clients that append to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_crash_sim::Fault;

use crate::traced_home::{MessageLine, TracedHome, assert_no_panic};

/// A running server.
pub(crate) struct RecordedServer {
    child: Child,
    address: String,
    stderr: JoinHandle<Vec<u8>>,
}

impl RecordedServer {
    /// Starts it; returns `None` if a fault ended it before it was ready.
    pub(crate) fn start(traced: &TracedHome, faults: &[Fault]) -> Option<Self> {
        let args = ["serve", "--listen", "127.0.0.1:0", "--log", "warn"];
        let mut child = traced
            .command(faults, &args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut failed = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut all = Vec::new();
            let _ = failed.read_to_end(&mut all);
            all
        });
        let mut url = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let _ = stdout.read_line(&mut url);
        let address = url.trim().trim_start_matches("http://").to_owned();
        let served = Self {
            child,
            address,
            stderr,
        };
        if served.address.is_empty() {
            served.wait();
            return None;
        }
        Some(served)
    }

    /// Sends a request; returns the status and body, or `None` if the connection ended
    /// first.
    fn post(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let limit = Some(Duration::from_secs(90));
        stream.set_read_timeout(limit).unwrap();
        let (body, host) = (body.to_string(), &self.address);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, serde_json::from_str(body).ok()?))
    }

    pub(crate) fn create(&self, session: &str) -> Option<(u16, Value)> {
        self.post("/api/sessions", &json!({"id": session}))
    }

    pub(crate) fn append(&self, session: &str, lines: &[MessageLine]) -> Option<(u16, Value)> {
        let entries: Vec<Value> = lines
            .iter()
            .map(|line| json!({"role": "user", "content": line.text, "external_id": line.id}))
            .collect();
        let path = format!("/api/sessions/{session}/entries");
        self.post(&path, &json!({"entries": entries}))
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(self) {
        let recorder = self.child.id();
        let children = format!("/proc/{recorder}/task/{recorder}/children");
        let server = std::fs::read_to_string(children).unwrap_or_default();
        if !server.trim().is_empty() {
            // It may have ended by itself.
            let _ = Command::new("kill").arg(server.trim()).output();
        }
        self.wait();
    }

    fn wait(self) {
        let mut output = self.child.wait_with_output().unwrap();
        output.stderr = self.stderr.join().unwrap();
        assert_no_panic(output);
    }
}
