//! A minimal HTTP client for the benchmarks.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A persistent connection.
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

/// Returns the bytes of a request.
pub(crate) fn http_request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

impl Connection {
    pub(crate) async fn open(to: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            read: Vec::with_capacity(16 * 1024),
        })
    }

    /// Sends a request and waits for the whole response, which must be a success.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<String> {
        self.stream.write_all(request).await?;
        let head = loop {
            if let Some(end) = find_bytes(&self.read, b"\r\n\r\n") {
                break end + 4;
            }
            self.read_more().await?;
        };
        let text = std::str::from_utf8(&self.read[..head])?.to_ascii_lowercase();
        ensure!(text.starts_with("http/1.1 2"), "the response was {text}");
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .context("the response has no content-length")?;
        let length: usize = length.trim().parse()?;
        while self.read.len() < head + length {
            self.read_more().await?;
        }
        let body = String::from_utf8(self.read[head..head + length].to_vec())?;
        self.read.drain(..head + length);
        Ok(body)
    }

    /// Starts an endless stream, and reads until `until` has arrived.
    pub(crate) async fn listen(&mut self, request: &[u8], until: &[u8]) -> Result<()> {
        self.stream.write_all(request).await?;
        self.wait_for(until).await
    }

    /// Reads until `wanted` has arrived, and discards everything up to it.
    pub(crate) async fn wait_for(&mut self, wanted: &[u8]) -> Result<()> {
        loop {
            if let Some(at) = find_bytes(&self.read, wanted) {
                self.read.drain(..at + wanted.len());
                return Ok(());
            }
            self.read_more().await?;
        }
    }

    async fn read_more(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.read).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

fn find_bytes(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}
