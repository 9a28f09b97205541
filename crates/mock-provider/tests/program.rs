//! Tests of the standalone mock provider over plain TCP.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A running program, killed at the end of the test.
struct RunningProgram {
    child: Child,
    address: String,
}

impl RunningProgram {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mock-provider"))
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.as_mut().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().to_owned();
        Self { child, address }
    }

    /// Sends a request; returns the status and the body.
    fn post(&self, path: &str, body: &Value) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.lines().next().unwrap().to_owned();
        (status, body.to_owned())
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn chat_request(stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Hi"}]})
}

#[test]
fn it_prints_its_address_and_echoes() {
    let running = RunningProgram::start(&["--listen", "127.0.0.1:0"]);
    for path in ["/v1/messages", "/v1/chat/completions"] {
        for stream in [false, true] {
            let (status, body) = running.post(path, &chat_request(stream));
            assert_eq!(status, "HTTP/1.1 200 OK");
            assert_eq!(body.contains("data: "), stream, "{body}");
            assert!(
                body.contains("Hi”, ") || body.contains("Hi”, and"),
                "{body}"
            );
        }
    }
    let (status, _) = running.post("/v1/nowhere", &chat_request(false));
    assert_eq!(status, "HTTP/1.1 404 Not Found");
}

#[test]
fn it_follows_its_script_and_then_echoes() {
    let folder = std::env::temp_dir().join(format!("stand-in-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("script.json");
    std::fs::write(
        &script,
        r#"[{"fault": {"status": 500}}, {"said": [{"text": "By script."}]}]"#,
    )
    .unwrap();
    let running = RunningProgram::start(&["--script", script.to_str().unwrap()]);
    let ask = || running.post("/v1/messages", &chat_request(false));
    assert_eq!(ask().0, "HTTP/1.1 500 Internal Server Error");
    assert!(ask().1.contains("By script."));
    assert!(ask().1.contains("only a stand-in"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn it_knows_its_key() {
    let running = RunningProgram::start(&["--key", "right"]);
    let (status, _) = running.post("/v1/messages", &chat_request(false));
    assert_eq!(status, "HTTP/1.1 401 Unauthorized");
}
