//! Rate limits, proxies, cookies, hosts and deeply nested input.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::{create_session, create_token};
use crate::harness::Tl;
use crate::server_process::{HttpRequest, ServerProcess};

/// Sends a raw request; returns the whole response.
fn raw(served: &ServerProcess, request: &str) -> String {
    let mut stream = TcpStream::connect(&served.address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn login(served: &ServerProcess, token: &str, headers: &str) -> String {
    let body = format!("token={token}");
    raw(
        served,
        &format!(
            "POST /login HTTP/1.1\r\nhost: tl.example.org\r\nconnection: close\r\n{headers}\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ),
    )
}

#[test]
fn rates_are_limited_on_loopback_once_there_are_tokens() {
    let tl = Tl::new();
    let served = ServerProcess::start(&tl).discard_stderr();
    let asked = |token: Option<&str>, headers: &str| {
        let bearer = token.map(|token| format!("authorization: Bearer {token}\r\n"));
        let headers = format!("{}{headers}", bearer.unwrap_or_default());
        let ask = HttpRequest {
            method: "GET",
            path: "/api/whoami",
            headers: &headers,
            body: "",
        };
        ask.fetch(&served.address).unwrap().0
    };
    // Without tokens there is no limit.
    assert!((0..400).all(|_| asked(None, "") == 200));
    let (bot, _) = create_token(&tl, &[], "bot", &["--role", "service"]);
    let (alice, _) = create_token(&tl, &[], "alice", &[]);
    let many = |_| (0..100).any(|_| asked(Some(&alice), "") == 429);
    let limited = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| scope.spawn(move || many(number)))
            .collect();
        threads.into_iter().any(|thread| thread.join().unwrap())
    });
    assert!(limited, "800 requests at once");
    // A service cannot evade its limit by naming a different user each time.
    let served = ServerProcess::start_with(&tl, &["--rate", "2"]).discard_stderr();
    let varied = (0..200).map(|number| {
        let headers = format!("authorization: Bearer {bot}\r\non-behalf-of: user-{number}\r\n");
        let ask = HttpRequest {
            method: "GET",
            path: "/api/whoami",
            headers: &headers,
            body: "",
        };
        ask.fetch(&served.address).unwrap().0
    });
    let answers: Vec<u16> = varied.collect();
    assert!(
        answers.contains(&200) && answers.contains(&429),
        "{answers:?}"
    );
}

#[test]
fn a_flood_without_a_token_locks_nobody_else_out() {
    let tl = Tl::new();
    let (alice, _) = create_token(&tl, &[], "alice", &[]);
    let served = ServerProcess::start_with(
        &tl,
        &["--host", "tl.example.org", "--trusted-proxy", "127.0.0.1"],
    );
    let from = |ip: &str| format!("x-forwarded-for: 6.6.6.6, {ip}\r\n");
    // Wrong tokens from one address that pretends to be several.
    let refused = (0..12)
        .map(|count| format!("x-forwarded-for: 7.7.7.{count}, 192.0.2.1\r\n"))
        .map(|headers| login(&served, "tl_wrong", &headers))
        .find(|answer| answer.starts_with("HTTP/1.1 429"))
        .expect("twelve failures are too many");
    assert!(refused.to_lowercase().contains("retry-after:"), "{refused}");
    let entered = login(&served, &alice, &from("192.0.2.2"));
    assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
    // Other requests do not count against the login limit.
    for _ in 0..300 {
        raw(
            &served,
            "GET /api/whoami HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        );
    }
    let entered = login(&served, &alice, "");
    assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
}

#[test]
fn behind_a_tls_proxy_cookies_are_secure_and_browsers_stay_with_https() {
    let tl = Tl::new();
    let (alice, _) = create_token(&tl, &[], "alice", &[]);
    let named = ["--host", "tl.example.org"];
    let https = "x-forwarded-for: 192.0.2.2\r\nx-forwarded-proto: https\r\n";
    let forwarded = "forwarded: for=192.0.2.2;proto=https\r\n";
    let trusting = [&named[..], &["--trusted-proxy", "127.0.0.0/8"]].concat();
    let configured = [&named[..], &["--behind-tls"]].concat();
    let page = "origin: https://tl.example.org\r\n";
    // Whether the cookie is limited to https, and whether the browser is told to stay on
    // https. A caller may restrict its own cookie, whether or not its headers are trusted.
    for (args, headers, secure, stays) in [
        (&named[..], "", false, false),
        (&named[..], https, true, false),
        (&named[..], page, true, false),
        (&trusting[..], https, true, true),
        (&trusting[..], forwarded, true, true),
        (&trusting[..], "", false, false),
        (&configured[..], "", true, true),
    ] {
        let served = ServerProcess::start_with(&tl, args).discard_stderr();
        let answer = login(&served, &alice, headers).to_lowercase();
        assert!(answer.contains("set-cookie: tl_token="), "{answer}");
        assert_eq!(
            answer.contains("; secure"),
            secure,
            "{args:?} {headers}: {answer}"
        );
        let kept = answer.contains("strict-transport-security: max-age=");
        assert_eq!(kept, stays, "{args:?} {headers}: {answer}");
    }
}

#[test]
fn a_request_names_one_host() {
    let tl = Tl::new();
    let served = ServerProcess::start(&tl).discard_stderr();
    for hosts in [
        "host: localhost\r\nhost: evil.example.org\r\n",
        "host: localhost\r\nhost: localhost\r\n",
        "",
    ] {
        let request = format!("GET /api/sessions HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
        let answer = raw(&served, &request);
        assert!(answer.starts_with("HTTP/1.1 400"), "{hosts}: {answer}");
        assert!(answer.contains("bad_host"), "{answer}");
    }
    let request = "GET http://localhost/api/sessions HTTP/1.1\r\nhost: evil.example.org\r\n\
                   connection: close\r\n\r\n";
    assert!(raw(&served, request).starts_with("HTTP/1.1 400"));
}

#[test]
fn json_that_is_nested_too_deeply_is_refused_everywhere() {
    let tl = Tl::new();
    let (alice, _) = create_token(&tl, &[], "alice", &[]);
    let served = ServerProcess::start_with(&tl, &["--rate", "0"]).discard_stderr();
    let id = create_session(&served, &alice);
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let call = |deep: &str| {
        let arguments = format!(r#"{{"type":"tool_call","id":"c","name":"n","input":{deep}}}"#);
        format!(r#"{{"entries":[{{"role":"assistant","content":[{arguments}]}}]}}"#)
    };
    let entries = format!("/api/sessions/{id}/entries");
    let ask = |path: &str, body: &str| served.request("POST", path, Some(&alice), body);
    // Stored as it is, and readable by everything that reads it later.
    let (status, kept) = ask(&entries, &call(&nested(200)));
    assert_eq!(status, 201, "{kept}");
    let shown = served.request("GET", &entries, Some(&alice), "").0;
    let request = ask(&format!("/api/sessions/{id}/request"), "{}").0;
    assert_eq!((shown, request), (200, 200));
    for deep in [nested(300), nested(100_000), "[".repeat(100_000)] {
        let bodies = [
            (entries.as_str(), call(&deep)),
            ("/api/sessions", deep.clone()),
            ("/v1/conversations", format!(r#"{{"metadata":{deep}}}"#)),
            (
                "/v1/responses",
                format!(r#"{{"model":"m","input":{deep}}}"#),
            ),
            (
                "/mcp",
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{deep}}}"#),
            ),
            ("/store/v1/append", format!(r#"{{"entries":{deep}}}"#)),
        ];
        for (path, body) in bodies {
            let (status, problem) = ask(path, &body);
            let code = problem["code"]
                .as_str()
                .or(problem["error"]["code"].as_str());
            assert_eq!(
                (status, code),
                (400, Some("json_too_deep")),
                "{path}: {problem}"
            );
        }
    }
    // Also where JSON is sent as text, to be stored unchanged.
    let payload = format!(
        r#"{{"v":1,"kind":"message","role":"assistant","content":[{{"type":"x","y":{}}}]}}"#,
        nested(300)
    );
    let append = json!({
        "session": id, "expect": "any", "on_conflict": "reject", "fence": null,
        "entries": [{"id": "01981f5e-0000-7000-8000-000000000000",
            "at": "2026-01-01T00:00:00Z", "payload": payload}],
    });
    let (status, problem) = ask("/store/v1/append", &append.to_string());
    assert_eq!(
        (status, &problem["code"]),
        (400, &json!("json_too_deep")),
        "{problem}"
    );
}

#[test]
fn json_that_is_nested_too_deeply_is_refused_by_every_command() {
    let tl = Tl::new();
    let id = tl.session("deep", &["hello"]);
    let why = "nested deeper than 256 levels";
    for levels in [257, 100_000] {
        let nested = "[".repeat(levels) + &"]".repeat(levels);
        for content in [
            nested.clone(),
            format!(r#"[{{"type":"tool_call","id":"c","name":"n","input":{nested}}}]"#),
            format!(r#"[{{"type":"x","y":{nested}}}]"#),
        ] {
            let line = format!(r#"{{"role":"user","content":{content}}}"#);
            for args in [&["append", &id, "--json"][..], &["import", "-"]] {
                let outcome = tl.run_with(args, line.as_bytes());
                assert_eq!(outcome.code(), Some(5), "{args:?}: {outcome}");
                assert!(outcome.stderr().contains(why), "{args:?}: {outcome}");
            }
        }
        // Another agent's session file.
        let user = r#"{"type":"user","uuid":"u1","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"heron"}}"#;
        let call = format!(
            r#"{{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","timestamp":"2026-01-01T00:00:01Z","message":{{"role":"assistant","content":[{{"type":"tool_use","id":"c","name":"n","input":{nested}}}]}}}}"#
        );
        let file = tl.home().join(format!("claude-{levels}.jsonl"));
        std::fs::write(&file, format!("{user}\n{call}\n")).unwrap();
        let path = file.to_str().unwrap();
        let outcome = tl.run(&["import", "--from", "claude-code", path]);
        assert!(outcome.stderr().contains(why), "{outcome}");
        assert!(outcome.stderr().contains("1 message imported"), "{outcome}");
        // MCP over stdin.
        let call =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{nested}}}\n");
        let outcome = tl.run_with(&["mcp"], call.as_bytes());
        assert!(outcome.code().is_some(), "tl mcp was killed");
    }
    assert_eq!(tl.ok(&["show", &id]).matches("hello").count(), 1);
    assert!(tl.ok(&["search", "heron"]).contains("heron"));
}
