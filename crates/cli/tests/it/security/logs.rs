//! Logs contain neither message texts nor tokens, at any level.

use std::fmt::Write as _;

use serde_json::json;

use super::{create_session, create_token};
use crate::harness::Tl;
use crate::server_process::ServerProcess;

const MARKER: &str = "heronmarker7f3a";

#[test]
fn what_is_said_is_in_no_log() {
    for level in ["debug", "trace"] {
        let tl = Tl::new();
        let (alice, _) = create_token(&tl, &[], "alice", &["--role", "admin"]);
        let served = ServerProcess::start_with(&tl, &["--log", level, "--rate", "0"]);
        let id = create_session(&served, &alice);
        let conversation = format!("conv_{id}");
        let said = json!({"role": "user", "content": MARKER});
        let tool = |name: &str, arguments: serde_json::Value| {
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": name, "arguments": arguments}})
        };
        let mut bodies = vec![
            (
                "POST",
                format!("/api/sessions/{id}/entries"),
                json!({"entries": [said]}),
            ),
            (
                "POST",
                format!("/api/sessions/{id}/turns"),
                json!({"message": MARKER, "stream": false}),
            ),
            (
                "POST",
                format!("/api/sessions/{id}/pins"),
                json!({"text": MARKER}),
            ),
            (
                "POST",
                format!("/api/sessions/{id}/decisions"),
                json!({"text": MARKER}),
            ),
            (
                "PUT",
                format!("/api/sessions/{id}/context/rules"),
                json!({"text": MARKER}),
            ),
            (
                "PATCH",
                format!("/api/sessions/{id}"),
                json!({"name": MARKER, "description": MARKER}),
            ),
            (
                "POST",
                "/api/sessions".to_owned(),
                json!({"key": MARKER, "name": MARKER}),
            ),
            (
                "POST",
                "/api/memory".to_owned(),
                json!({"text": format!("It is {MARKER}.")}),
            ),
            (
                "POST",
                "/v1/conversations".to_owned(),
                json!({"metadata": {"topic": MARKER}, "items": [said]}),
            ),
            (
                "POST",
                format!("/v1/conversations/{conversation}/items"),
                json!({"items": [said]}),
            ),
            (
                "POST",
                "/v1/responses".to_owned(),
                json!({"model": "any", "input": MARKER}),
            ),
            (
                "POST",
                "/mcp".to_owned(),
                tool("search_sessions", json!({"query": MARKER})),
            ),
            (
                "POST",
                "/mcp".to_owned(),
                tool(
                    "append_messages",
                    json!({"session": id, "messages": [said]}),
                ),
            ),
            (
                "POST",
                "/mcp".to_owned(),
                tool("remember", json!({"text": format!("{MARKER} is a bird")})),
            ),
            (
                "POST",
                "/mcp".to_owned(),
                tool(MARKER, json!({"x": MARKER})),
            ),
            (
                "POST",
                "/mcp".to_owned(),
                json!({"jsonrpc": "2.0", "id": 1, "method": MARKER, "params": MARKER}),
            ),
            (
                "POST",
                "/store/v1/candidates".to_owned(),
                json!({"text": MARKER, "limit": 5}),
            ),
            (
                "POST",
                "/store/v1/append".to_owned(),
                json!({"session": MARKER}),
            ),
            // Invalid input is not quoted either.
            (
                "POST",
                format!("/api/sessions/{id}/entries"),
                json!({"entries": MARKER}),
            ),
            (
                "POST",
                "/v1/responses".to_owned(),
                json!({"input": {"x": MARKER}}),
            ),
        ];
        for path in [
            format!("/api/search?q={MARKER}"),
            format!("/search?q={MARKER}"),
            format!("/{MARKER}"),
            format!("/api/sessions/{MARKER}"),
            format!("/api/sessions/{id}/export"),
            format!("/api/sessions/{id}/export?format={MARKER}"),
            format!("/s/{id}"),
            format!("/api/resolve?session={MARKER}"),
        ] {
            bodies.push(("GET", path, serde_json::Value::Null));
        }
        let mut asked = String::new();
        for (method, path, body) in &bodies {
            let body = body.to_string();
            let body = if *method == "GET" { "" } else { &body };
            let accept = "accept: application/json, text/event-stream\r\n";
            let headers = format!("authorization: Bearer {alice}\r\n{accept}");
            let ask = crate::server_process::HttpRequest {
                method,
                path,
                headers: &headers,
                body,
            };
            let (status, _) = ask.fetch(&served.address).unwrap();
            let _ = writeln!(asked, "{status} {method} {path}");
        }
        let (log, well) = served.stop();
        assert!(well, "{log}");
        assert!(log.lines().count() >= bodies.len(), "{log}");
        let leaks = log
            .lines()
            .filter(|line| line.contains(MARKER) || line.contains(&alice));
        assert_eq!(leaks.collect::<Vec<_>>(), Vec::<&str>::new(), "{asked}");
    }
}
