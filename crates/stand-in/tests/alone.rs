//! The stand-in as a program of its own, asked by hand.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A running program, ended with the test.
struct Running {
    child: Child,
    address: String,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_stand-in"))
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

    /// The status and the body.
    fn ask(&self, path: &str, body: &Value) -> (String, String) {
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

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn asked(stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Hi"}]})
}

#[test]
fn it_prints_its_address_and_echoes() {
    let running = Running::start(&["--listen", "127.0.0.1:0"]);
    for path in ["/v1/messages", "/v1/chat/completions"] {
        for stream in [false, true] {
            let (status, body) = running.ask(path, &asked(stream));
            assert_eq!(status, "HTTP/1.1 200 OK");
            assert_eq!(body.contains("data: "), stream, "{body}");
            assert!(
                body.contains("Hi”, ") || body.contains("Hi”, and"),
                "{body}"
            );
        }
    }
    let (status, _) = running.ask("/v1/nowhere", &asked(false));
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
    let running = Running::start(&["--script", script.to_str().unwrap()]);
    let ask = || running.ask("/v1/messages", &asked(false));
    assert_eq!(ask().0, "HTTP/1.1 500 Internal Server Error");
    assert!(ask().1.contains("By script."));
    assert!(ask().1.contains("only a stand-in"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn it_knows_its_key() {
    let running = Running::start(&["--key", "right"]);
    let (status, _) = running.ask("/v1/messages", &asked(false));
    assert_eq!(status, "HTTP/1.1 401 Unauthorized");
}
