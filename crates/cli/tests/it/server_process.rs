//! Runs `tl serve` as a process, and sends requests to it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::harness::Tl;

/// How long a response may take.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A server process, killed on drop.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) address: String,
}

/// An HTTP request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Additional headers, each with its line ending.
    pub(crate) headers: &'a str,
    pub(crate) body: &'a str,
}

impl HttpRequest<'_> {
    /// Sends the request; the caller reads the response. Uses HTTP/1.0, so that the
    /// response is not chunked and ends with the connection.
    pub(crate) fn send(&self, address: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        let Self {
            method,
            path,
            headers,
            body,
        } = self;
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\n{headers}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        Ok(stream)
    }

    /// Sends the request; returns the status, and the body as JSON, or null if it is not
    /// JSON. A truncated response is an error.
    pub(crate) fn fetch(&self, address: &str) -> io::Result<(u16, Value)> {
        let mut answer = String::new();
        self.send(address)?.read_to_string(&mut answer)?;
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is cut off");
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let length = head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, length)| length.parse().ok());
        if length.is_some_and(|length: usize| body.len() < length) {
            return Err(cut());
        }
        let body = serde_json::from_str(body).unwrap_or(Value::Null);
        Ok((status.ok_or_else(cut)?, body))
    }
}

impl ServerProcess {
    pub(crate) fn start(tl: &Tl) -> Self {
        Self::start_command(tl.command(&[]))
    }

    /// Starts a server with additional arguments.
    pub(crate) fn start_with(tl: &Tl, more: &[&str]) -> Self {
        Self::spawn(tl.command(&[]), more)
    }

    /// Starts a server with this command, which lacks only `serve`.
    pub(crate) fn start_command(command: Command) -> Self {
        Self::spawn(command, &[])
    }

    fn spawn(mut command: Command, more: &[&str]) -> Self {
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .args(more)
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

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Discards its stderr: it would block once the pipe is full.
    pub(crate) fn discard_stderr(mut self) -> Self {
        let mut err = self.child.stderr.take().unwrap();
        std::thread::spawn(move || io::copy(&mut err, &mut io::sink()));
        self
    }

    /// Sends a request; returns the status, and the body as JSON.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: &str,
    ) -> (u16, Value) {
        let headers = token.map_or_else(String::new, |token| {
            format!("authorization: Bearer {token}\r\n")
        });
        let ask = HttpRequest {
            method,
            path,
            headers: &headers,
            body,
        };
        ask.fetch(&self.address).unwrap()
    }

    /// Stops it with a signal; returns its stderr, and whether it exited successfully.
    pub(crate) fn stop(mut self) -> (String, bool) {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").arg(id).status().unwrap();
        assert!(asked.success());
        let mut said = String::new();
        let mut err = self.child.stderr.take().unwrap();
        err.read_to_string(&mut said).unwrap();
        (said, self.child.wait().unwrap().success())
    }

    /// Kills it with `kill -9`.
    pub(crate) fn kill(&self) {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args(["-9", &id]).status().unwrap();
        assert!(killed.success());
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
