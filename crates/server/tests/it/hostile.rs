//! Malformed, oversized, slow, half-closed and malicious requests.

use std::time::Duration;

use serde_json::{Value, json};
use throughline_server::{Limits, RateLimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Server, ServerOptions, send};

async fn start_limited(limits: Limits) -> Server {
    Server::start_with(ServerOptions {
        limits,
        ..ServerOptions::default()
    })
    .await
}

/// Sends raw bytes; returns everything received until the connection closes.
async fn send_raw(server: &Server, bytes: &[u8], half_close: bool) -> String {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    if half_close {
        stream.shutdown().await.unwrap();
    }
    let mut answered = Vec::new();
    let read = stream.read_to_end(&mut answered);
    tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .expect("the server closes the connection")
        .unwrap();
    String::from_utf8_lossy(&answered).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_json_is_a_bad_request() {
    let server = Server::start().await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/entries");
    let deep = "[".repeat(100_000);
    for (sent, status, code) in [
        ("{", 400, "bad_json"),
        ("", 400, "bad_json"),
        ("{\"entries\": [}", 400, "bad_json"),
        (deep.as_str(), 400, "json_too_deep"),
        ("{\"entries\": \"x\"}", 422, "invalid"),
        (
            "{\"entries\": [{\"role\": \"king\", \"content\": \"x\"}]}",
            422,
            "invalid",
        ),
        ("{\"entries\": [{\"role\": \"user\"}]}", 422, "invalid"),
        ("{\"entries\": [], \"typo\": 1}", 422, "invalid"),
        ("{\"entries\": []}", 422, "nothing_to_append"),
        ("null", 422, "invalid"),
    ] {
        let request = server.request("POST", &path).body(sent.to_owned());
        let (got, problem) = send(request.header("content-type", "application/json")).await;
        let start: String = sent.chars().take(40).collect();
        assert_eq!(
            (got.as_u16(), &problem["code"]),
            (status, &json!(code)),
            "{start:?}: {problem}"
        );
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|detail| !detail.is_empty())
        );
        assert!(problem["request_id"].is_string());
    }
    let unnamed = server.request("POST", &path).body("{\"entries\": []}");
    let (status, problem) = send(unnamed).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (415, &json!("not_json"))
    );
    let not_utf8 = server
        .request("POST", &path)
        .body(vec![b'"', 0xff, 0xfe, b'"']);
    let (status, _) = send(not_utf8.header("content-type", "application/json")).await;
    assert_eq!(status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_problem_json() {
    let server = Server::start().await;
    let response = server.get("/api/sessions/nothing").send().await.unwrap();
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    assert!(response.headers().contains_key("x-request-id"));
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["status"], 404);
    let (status, problem) = send(server.get("/api/nothing")).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (404, &json!("no_such_path"))
    );
    let (status, problem) = send(server.request("PUT", "/api/sessions")).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (405, &json!("wrong_method"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_is_refused() {
    let limits = Limits {
        body_bytes: 1_000,
        blob_bytes: 2_000,
        page_items: 10,
        ..Limits::default()
    };
    let server = start_limited(limits).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/entries");
    let long = json!({"entries": [{"role": "user", "content": "x".repeat(2_000)}]});
    let (status, problem) = send(server.post(&path, &long)).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (413, &json!("body_too_large"))
    );
    // Without a content length.
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n7d0\r\n"
    );
    let chunked = format!("{head}{}\r\n0\r\n\r\n", "x".repeat(2_000));
    assert!(
        send_raw(&server, chunked.as_bytes(), false)
            .await
            .starts_with("HTTP/1.1 413")
    );
    let blob = server.request("POST", "/api/blobs").body(vec![0; 2_001]);
    assert_eq!(send(blob).await.0, 413);
    for limit in ["0", "11", "-1", "many"] {
        let (status, _) = send(server.get(&format!("{path}?limit={limit}"))).await;
        assert_eq!(status, 400, "limit={limit}");
    }
    assert_eq!(send(server.get(&format!("{path}?limti=5"))).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_get_a_retry_after() {
    let rate = RateLimit {
        per_second: 1,
        burst: 5,
    };
    let server = start_limited(Limits {
        rate: Some(rate),
        ..Limits::default()
    })
    .await;
    let mut refused = None;
    for _ in 0..10 {
        let response = server.get("/api/stats").send().await.unwrap();
        if response.status() == 429 {
            refused = Some(response);
            break;
        }
    }
    let refused = refused.expect("ten at once are too many");
    assert!(
        refused.headers()["retry-after"]
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            >= 1
    );
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "too_many_requests");
    assert_eq!(send(server.get("/health")).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_times_out() {
    let limits = Limits {
        body_timeout: Duration::from_millis(300),
        header_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = start_limited(limits).await;
    let id = server.create_session(&[]).await;
    let head = format!(
        "POST /api/sessions/{id}/entries HTTP/1.1\r\nhost: localhost\r\n\
         connection: close\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{{"
    );
    let answered = send_raw(&server, head.as_bytes(), false).await;
    assert!(answered.starts_with("HTTP/1.1 408"), "{answered}");
    assert!(answered.contains("body_too_slow"));
    // Incomplete headers time out, too.
    let answered = send_raw(&server, b"GET /health HTTP/1.1\r\nhost: lo", false).await;
    assert!(!answered.contains("200 OK"), "{answered}");
    assert_eq!(send(server.get("/health")).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_connection_changes_nothing() {
    let server = Server::start().await;
    let id = server.create_session(&["one"]).await;
    let body = "{\"entries\": [{\"role\": \"user\", \"content\": \"half\"}]}";
    let head = format!(
        "POST /api/sessions/{id}/entries HTTP/1.1\r\nhost: localhost\r\n\
         connection: close\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{body}"
    );
    let answered = send_raw(&server, head.as_bytes(), true).await;
    assert!(!answered.contains("201"), "{answered}");
    let (_, session) = send(server.get(&format!("/api/sessions/{id}"))).await;
    assert_eq!(session["head"], 1);
    // A complete request on a half-closed connection is answered.
    let whole = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert!(
        send_raw(&server, whole.as_bytes(), true)
            .await
            .contains("200 OK")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_on_the_wire_is_harmless() {
    let server = Server::start().await;
    for sent in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"GET /api/sessions HTTP/1.1\r\nhost: a\r\nhost: b\r\ncontent-length: x\r\n\r\n",
    ] {
        send_raw(&server, sent, true).await;
    }
    assert_eq!(send(server.get("/health")).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_ids_and_names_are_harmless() {
    let server = Server::start().await;
    for id in [
        "..%2F..%2Fetc%2Fpasswd",
        "%2e%2e",
        "a%00b",
        "%ff",
        "con",
        "index",
        &"x".repeat(500),
    ] {
        let (status, problem) = send(server.get(&format!("/api/sessions/{id}"))).await;
        assert!(
            matches!(status.as_u16(), 400 | 404),
            "{id}: {status} {problem}"
        );
    }
    for body in [
        json!({"id": "../x"}),
        json!({"id": ""}),
        json!({"id": "nul"}),
        json!({"id": "x".repeat(200)}),
        json!({"name": "a/b"}),
        json!({"name": ".."}),
        json!({"name": "con"}),
        json!({"name": "42"}),
        json!({"key": "throughline:memory:owner"}),
        json!({"key": "a\nb"}),
        json!({"key": ""}),
        json!({"tags": ["two words"]}),
        json!({"agent": 7}),
    ] {
        let (status, problem) = send(server.post("/api/sessions", &body)).await;
        assert_eq!(status, 422, "{body}: {problem}");
    }
    let (_, all) = send(server.get("/api/sessions")).await;
    assert_eq!(all["sessions"], json!([]));
    let id = server
        .create_session(&["\u{202e}hidden\u{0007} <b>text</b> \u{10ffff}"])
        .await;
    let (_, entry) = send(server.get(&format!("/api/sessions/{id}/entries/1"))).await;
    assert_eq!(
        entry["content"],
        "\u{202e}hidden\u{0007} <b>text</b> \u{10ffff}"
    );
    for seq in ["0", "2", "-1", "x", "18446744073709551616", "1.0"] {
        let (status, _) = send(server.get(&format!("/api/sessions/{id}/entries/{seq}"))).await;
        assert_eq!(status, 404, "{seq}");
    }
    for after in ["18446744073709551615", "5"] {
        let path = format!("/api/sessions/{id}/entries?after={after}");
        assert_eq!(send(server.get(&path)).await.0, 200, "{after}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_origins_are_refused() {
    let server = Server::start_with(ServerOptions {
        origins: vec!["https://app.example.org".to_owned()],
        ..ServerOptions::default()
    })
    .await;
    let host = server.address();
    for (origin, status) in [
        (format!("http://{host}"), 201),
        ("https://app.example.org".to_owned(), 201),
        ("https://evil.example.org".to_owned(), 403),
        ("null".to_owned(), 403),
        (format!("http://{host}.evil.example.org"), 403),
    ] {
        let request = server
            .request("POST", "/api/sessions")
            .header("origin", &origin);
        let (got, problem) = send(request).await;
        assert_eq!(got, status, "{origin}: {problem}");
    }
    let forged = server
        .request("POST", "/api/sessions")
        .header("sec-fetch-site", "cross-site");
    assert_eq!(send(forged).await.0, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_host_names_are_refused() {
    let server = Server::start_with(ServerOptions {
        hosts: vec!["tl.example.org".to_owned()],
        ..ServerOptions::default()
    })
    .await;
    for (host, status) in [
        ("localhost:9", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("tl.example.org", 200),
        ("TL.example.org:443", 200),
        ("rebound.example.org", 421),
        ("localhost.example.org", 421),
    ] {
        let (got, problem) = send(server.get("/api/stats").header("host", host)).await;
        assert_eq!(got, status, "{host}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_has_security_headers_and_a_request_id() {
    let server = Server::start().await;
    for path in ["/api/sessions", "/health", "/api/nothing"] {
        let response = server
            .get(path)
            .header("x-request-id", "my-id-1")
            .send()
            .await
            .unwrap();
        let headers = response.headers();
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["x-frame-options"], "DENY", "{path}");
        assert_eq!(headers["cache-control"], "no-store", "{path}");
        assert!(
            headers["content-security-policy"]
                .to_str()
                .unwrap()
                .contains("default-src 'none'")
        );
        assert_eq!(headers["x-request-id"], "my-id-1");
    }
    let odd = server.get("/health").header("x-request-id", "no spaces!");
    let response = odd.send().await.unwrap();
    assert_ne!(response.headers()["x-request-id"], "no spaces!");
}
