//! HTTP requests to a server that may be paused or die at any moment.
//!
//! Uses HTTP/1.0, so that a response is not chunked and ends with the connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum NoResponse {
    /// Nothing was sent: the server cannot have acted on it.
    NotSent,
    /// It was sent, at least in part.
    Lost,
}

/// Sends a request; the caller reads the response.
pub(crate) fn send(
    address: SocketAddr,
    timeout: Duration,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<TcpStream, NoResponse> {
    let stream = TcpStream::connect_timeout(&address, timeout).map_err(|_| NoResponse::NotSent)?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let sent = (|| -> io::Result<()> {
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        write!(
            &stream,
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    })();
    sent.map_err(|_| NoResponse::Lost)?;
    Ok(stream)
}

/// Sends a request; returns the status and the body. A truncated response counts as none.
pub(crate) fn call(
    address: SocketAddr,
    timeout: Duration,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<(u16, Value), NoResponse> {
    let mut stream = send(address, timeout, method, path, body)?;
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .map_err(|_| NoResponse::Lost)?;
    parse(&answer).ok_or(NoResponse::Lost)
}

fn parse(answer: &str) -> Option<(u16, Value)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, length)| length.parse::<usize>().ok());
    if length.is_some_and(|length| body.len() < length) {
        return None;
    }
    Some((status, serde_json::from_str(body).ok()?))
}

/// Encodes a text for a query string.
pub(crate) fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
