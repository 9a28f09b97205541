//! A `tl serve` of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::harness::Tl;

/// A server that is there as long as this is.
pub(crate) struct Served {
    child: Child,
    /// Where it listens.
    pub(crate) address: String,
}

impl Served {
    pub(crate) fn start(tl: &Tl) -> Self {
        Self::start_with(tl, &[])
    }

    /// One with more arguments than it must have.
    pub(crate) fn start_with(tl: &Tl, more: &[&str]) -> Self {
        let args = ["serve", "--listen", "127.0.0.1:0", "--json"];
        let args: Vec<_> = args.iter().chain(more).copied().collect();
        let mut child = tl
            .command(&args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let url = told["url"].as_str().unwrap();
        let address = url.split_once("://").unwrap().1.to_owned();
        Self { child, address }
    }

    /// Asks for something; the status, and the body as JSON.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: &str,
    ) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let token = token.map_or_else(String::new, |token| {
            format!("authorization: Bearer {token}\r\n")
        });
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{token}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// Asks it to end, as a system does; what it said on stderr, and whether it ended well.
    pub(crate) fn stop(mut self) -> (String, bool) {
        let id = self.child.id().to_string();
        let asked = std::process::Command::new("kill").arg(id).status().unwrap();
        assert!(asked.success());
        let mut said = String::new();
        let mut err = self.child.stderr.take().unwrap();
        err.read_to_string(&mut said).unwrap();
        (said, self.child.wait().unwrap().success())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
