//! Every kind of stream ends when its token is revoked or expires, on every server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use throughline_mock_provider::{MockProvider, Request, Script, echo};
use throughline_postgres::test_database::TestDatabase;

use super::{create_session, create_token, eventually};
use crate::harness::Tl;
use crate::server_process::{HttpRequest, ServerProcess};

/// How event streams end.
const CLOSED_EVENT: &[u8] = b"event: closed";

/// An open stream, and how to tell that it was closed for lack of a valid token.
struct OpenStream {
    what: String,
    stream: TcpStream,
    closing: &'static [u8],
}

fn open_stream(address: &str, token: &str, method: &str, path: &str, body: &str) -> TcpStream {
    let headers = format!("authorization: Bearer {token}\r\n");
    let ask = HttpRequest {
        method,
        path,
        headers: &headers,
        body,
    };
    ask.send(address).unwrap()
}

/// Opens a WebSocket as a program does.
fn open_websocket(address: &str, token: &str) -> TcpStream {
    upgrade(address, &format!("authorization: Bearer {token}"))
}

/// Opens a WebSocket.
fn upgrade(address: &str, header: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    write!(
        stream,
        "GET /api/events/ws HTTP/1.1\r\nhost: localhost\r\n{header}\r\n\
         connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{head:?}");
    stream
}

/// Reads the head of a response that must be a success.
fn assert_success_head(stream: &TcpStream, what: &str) {
    let mut line = String::new();
    BufReader::with_capacity(1, stream)
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains(" 200 "), "{what}: {line}");
}

/// Opens one stream of every kind on one server. The turn of session `asked` lasts longer
/// than the test.
fn open_all(served: &ServerProcess, token: &str, idle: &str, asked: &str) -> Vec<OpenStream> {
    let address = &served.address;
    let mut all = Vec::new();
    let mut add = |what: &str, stream, closing: &'static [u8]| {
        let what = format!("{what} at {address}");
        all.push(OpenStream {
            what,
            stream,
            closing,
        });
    };
    let get = |path: &str| {
        let stream = open_stream(address, token, "GET", path, "");
        assert_success_head(&stream, path);
        stream
    };
    add("all events", get("/api/events"), CLOSED_EVENT);
    add(
        "events of a session",
        get(&format!("/api/sessions/{idle}/events")),
        CLOSED_EVENT,
    );
    add(
        "the turn under way",
        get(&format!("/api/sessions/{asked}/turns/current")),
        CLOSED_EVENT,
    );
    add(
        "a websocket",
        open_websocket(address, token),
        b"\x03\xf0unauthorized",
    );
    add(
        "the websocket of a page",
        upgrade(address, &format!("cookie: tl_token={token}")),
        b"\x03\xf0unauthorized",
    );
    // These answer when there is something to report, or with a problem.
    let turns = format!("/api/sessions/{idle}/turns");
    let turn = r#"{"message": "And now?", "stream": false}"#;
    add(
        "a turn that is waited for",
        open_stream(address, token, "POST", &turns, turn),
        b"401 Unauthorized",
    );
    let changed = r#"{"after": 9000000000000000}"#;
    add(
        "a store's watch",
        open_stream(address, token, "POST", "/store/v1/changed", changed),
        b"401 Unauthorized",
    );
    let response = r#"{"model": "any", "input": "Hm?", "stream": true}"#;
    let stream = open_stream(address, token, "POST", "/v1/responses", response);
    assert_success_head(&stream, "/v1/responses");
    add("a response of /v1", stream, b"invalid_api_key");
    all
}

/// Reads a stream to its end, which must come within a minute: long enough for a busy
/// machine, and far earlier than the stream would end otherwise.
fn read_to_end(stream: &mut TcpStream, what: &str) -> Vec<u8> {
    let began = Instant::now();
    let mut rest = Vec::new();
    let mut part = vec![0; 1 << 16];
    loop {
        match stream.read(&mut part) {
            Ok(0) => return rest,
            Ok(read) => rest.extend_from_slice(&part[..read]),
            Err(error) => panic!("{what} goes on: {error}"),
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{what} goes on");
    }
}

/// Reads each stream to its end, and expects the reason.
fn assert_closed(all: Vec<OpenStream>) {
    for OpenStream {
        what,
        mut stream,
        closing,
    } in all
    {
        let rest = read_to_end(&mut stream, &what);
        let told = rest.windows(closing.len()).any(|part| part == closing);
        assert!(told, "{what}: {}", String::from_utf8_lossy(&rest));
    }
}

/// Creates a session whose export exceeds the buffers between a server and a client that
/// does not read; returns its id, and its minimum size in bytes.
fn large_session(served: &ServerProcess, token: &str) -> (String, usize) {
    let id = create_session(served, token);
    let path = format!("/api/sessions/{id}/entries");
    let content = "0123456789abcdef".repeat(7 << 16);
    let body = format!(r#"{{"entries": [{{"role": "user", "content": "{content}"}}]}}"#);
    for _ in 0..4 {
        assert_eq!(served.request("POST", &path, Some(token), &body).0, 201);
    }
    (id, 4 * content.len())
}

/// Opens all streams on two servers over a store, ends the token, and asserts that all end.
fn streams_end_with_their_token(store: &[&str], tl: &Tl, revoke: bool) {
    // A model that takes longer than the test.
    let script =
        Script::from_fn(|request: &Request| echo(request).with_delay(Duration::from_secs(120)));
    let stand_in = MockProvider::start(script).unwrap();
    let start = || {
        let mut command = tl.command(store);
        command.env("ANTHROPIC_API_KEY", "sk-test");
        command.env("ANTHROPIC_BASE_URL", stand_in.url());
        ServerProcess::start_command(command).discard_stderr()
    };
    let (other, _) = create_token(tl, store, "other", &[]);
    let servers = [start(), start()];
    // Everything is prepared with another of her tokens, so that the expiring one lasts
    // long enough to open the streams.
    let (first, _) = create_token(tl, store, "alice", &[]);
    let sessions = servers.each_ref().map(|served| {
        (
            create_session(served, &first),
            create_session(served, &first),
        )
    });
    let (large, length) = large_session(&servers[0], &first);
    let more: &[&str] = if revoke { &[] } else { &["--expires", "20s"] };
    let (text, id) = create_token(tl, store, "alice", more);
    let mut all = Vec::new();
    for (served, (idle, asked)) in servers.iter().zip(&sessions) {
        let path = format!("/api/sessions/{asked}/turns");
        let turn = open_stream(
            &served.address,
            &text,
            "POST",
            &path,
            r#"{"message": "Well?"}"#,
        );
        assert_success_head(&turn, "a turn");
        all.push(OpenStream {
            what: format!("a turn at {}", served.address),
            stream: turn,
            closing: CLOSED_EVENT,
        });
        all.extend(open_all(served, &text, idle, asked));
    }
    let path = format!("/api/sessions/{large}/export");
    let mut export = open_stream(&servers[0].address, &text, "GET", &path, "");
    assert_success_head(&export, "an export");
    let kept = open_websocket(&servers[0].address, &other);
    if revoke {
        tl.ok(&[store, &["token", "revoke", &id]].concat());
    }
    assert_closed(all);
    let exported = read_to_end(&mut export, "an export").len();
    assert!(exported < length, "all was exported: {exported}");
    for served in &servers {
        // Servers cache tokens for half a second.
        let refused = || served.request("GET", "/api/whoami", Some(&text), "").0 == 401;
        eventually("the token is refused", refused);
        // MCP has no stream: each request is answered separately.
        assert_eq!(served.request("GET", "/mcp", Some(&other), "").0, 405);
        assert_eq!(served.request("GET", "/api/events", Some(&text), "").0, 401);
        assert_eq!(
            served.request("GET", "/api/whoami", Some(&other), "").0,
            200
        );
    }
    // Other users' streams continue.
    kept.set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let mut rest = Vec::new();
    let waited = (&kept).read_to_end(&mut rest);
    assert!(
        waited.is_err(),
        "another token's stream was closed: {rest:?}"
    );
}

#[test]
fn every_stream_ends_when_its_token_is_revoked() {
    streams_end_with_their_token(&[], &Tl::new(), true);
}

#[test]
fn every_stream_ends_when_its_token_expires() {
    streams_end_with_their_token(&[], &Tl::new(), false);
}

#[test]
fn every_stream_over_postgres_ends_when_its_token_is_revoked() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    streams_end_with_their_token(&["--store", &trial.url()], &Tl::new(), true);
}

#[test]
fn every_stream_over_postgres_ends_when_its_token_expires() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    streams_end_with_their_token(&["--store", &trial.url()], &Tl::new(), false);
}

#[test]
fn a_stream_opened_without_a_token_ends_when_the_first_is_made() {
    let tl = Tl::new();
    let served = ServerProcess::start(&tl).discard_stderr();
    let ask = HttpRequest {
        method: "GET",
        path: "/api/events",
        headers: "",
        body: "",
    };
    let mut stream = ask.send(&served.address).unwrap();
    assert_success_head(&stream, "/api/events");
    create_token(&tl, &[], "alice", &[]);
    let rest = read_to_end(&mut stream, "/api/events");
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.contains("event: closed"), "{rest}");
}
