//! Floods of requests, and the memory they cost.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{create_session, create_token, eventually};
use crate::harness::Tl;
use crate::server_process::ServerProcess;

/// The peak memory allowed for a server under attack. An idle debug build uses about a
/// tenth of it, and each attack alone used to cost at least 1.4 GB.
const MAX_MEMORY: u64 = 500 * 1024 * 1024;

/// The server's peak memory.
fn peak_memory(served: &ServerProcess) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().split_whitespace().next().unwrap();
    kib.parse::<u64>().unwrap() * 1024
}

/// Sends a request whose body does not end; returns the connection.
fn send_partial_request(address: &str, path: &str, headers: &str, length: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_write_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let part = vec![b'x'; 1024 * 1024];
    let mut left = length - 1;
    while left > 0 {
        let some = left.min(part.len());
        // A server that refuses it may have closed the connection.
        if stream.write_all(&part[..some]).is_err() {
            break;
        }
        left -= some;
    }
    stream
}

fn read_status(mut stream: TcpStream) -> String {
    let mut head = [0; 64];
    let read = stream.read(&mut head).unwrap_or(0);
    String::from_utf8_lossy(&head[..read])
        .chars()
        .skip(9)
        .take(3)
        .collect()
}

#[test]
fn floods_cost_bounded_memory_and_others_are_served_meanwhile() {
    let tl = Tl::new();
    let (mallory, _) = create_token(&tl, &[], "mallory", &[]);
    let (alice, _) = create_token(&tl, &[], "alice", &[]);
    let served = ServerProcess::start_with(&tl, &["--rate", "0"]).discard_stderr();
    let address = &served.address;
    let hers = create_session(&served, &alice);
    let bearer = format!("authorization: Bearer {mallory}\r\n");
    let serve_alice = || {
        let path = format!("/api/sessions/{hers}/entries");
        let body = r#"{"entries": [{"role": "user", "content": "still here"}]}"#;
        let (status, answer) = served.request("POST", &path, Some(&alice), body);
        assert_eq!(status, 201, "{answer}");
    };

    // Without a token: large logins.
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    let mut logins: Vec<_> = (0..150)
        .map(|_| send_partial_request(address, "/login", form, 8 * 1024 * 1024))
        .collect();
    serve_alice();
    assert!(
        peak_memory(&served) < MAX_MEMORY,
        "logins: {}",
        peak_memory(&served)
    );
    assert_eq!(read_status(logins.pop().unwrap()), "413");

    // With a token: large attachments that never end.
    let attachments: Vec<_> = (0..24)
        .map(|_| send_partial_request(address, "/api/blobs", &bearer, 64 * 1024 * 1024))
        .collect();
    serve_alice();
    assert!(
        peak_memory(&served) < MAX_MEMORY,
        "attachments: {}",
        peak_memory(&served)
    );
    // The newest first. On a slow machine the oldest have timed out by now, and others took
    // their share of the limit.
    let mut statuses = attachments.into_iter().rev().map(read_status);
    assert!(
        statuses.any(|status| status == "429"),
        "a caller was allowed more than its share"
    );

    // Messages and MCP calls far larger than expected.
    let json = format!("{bearer}content-type: application/json\r\n");
    let calls: Vec<_> = ["/mcp", "/store/v1/append", "/api/sessions", "/v1/responses"]
        .iter()
        .flat_map(|path| {
            (0..8).map(|_| send_partial_request(address, path, &json, 8 * 1024 * 1024 - 1))
        })
        .collect();
    serve_alice();
    assert!(
        peak_memory(&served) < MAX_MEMORY,
        "calls: {}",
        peak_memory(&served)
    );
    drop(calls);
    drop(logins);

    // Streams: one caller gets its share and no more.
    let listen = |token: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let head = format!(
            "GET /api/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        (stream, String::from_utf8_lossy(&answer[9..]).into_owned())
    };
    let mut streams = Vec::new();
    let mut refused = 0;
    for _ in 0..2_000 {
        match listen(&mallory) {
            (stream, status) if status == "200" => streams.push(stream),
            (_, status) => {
                assert_eq!(status, "429");
                refused += 1;
            }
        }
    }
    assert_eq!((streams.len(), refused), (256, 1_744));
    assert_eq!(listen(&alice).1, "200");
    serve_alice();
    assert!(
        peak_memory(&served) < MAX_MEMORY,
        "streams: {}",
        peak_memory(&served)
    );
    // Closed streams free their share.
    drop(streams);
    eventually("the streams are free again", || listen(&mallory).1 == "200");
    // No partial bodies are left.
    let spool = std::fs::read_dir(tl.home().join("cache/spool")).unwrap();
    assert_eq!(spool.count(), 0);
}

#[test]
fn a_large_attachment_arrives_whole() {
    let tl = Tl::new();
    let (alice, _) = create_token(&tl, &[], "alice", &[]);
    let served = ServerProcess::start(&tl).discard_stderr();
    let text = "0123456789abcdef".repeat(1024 * 1024);
    let (status, kept) = served.request("POST", "/api/blobs", Some(&alice), &text);
    assert_eq!(
        (status, kept["bytes"].as_u64()),
        (201, Some(16 * 1024 * 1024)),
        "{kept}"
    );
}
