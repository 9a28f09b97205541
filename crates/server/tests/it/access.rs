//! Access control: callers reach their own data and nothing else.

use std::net::SocketAddr;

use serde_json::{Value, json};
use throughline::{Owner, TokenRole};
use throughline_server::{AccessMode, IssuedTokens, ServeError, openapi};

use crate::harness::{Server, send};

/// Every route in the OpenAPI document, by method and path.
fn routes() -> Vec<(String, String, Value)> {
    let document = serde_json::to_value(openapi()).unwrap();
    let paths = document["paths"].as_object().unwrap().clone();
    let mut routes = Vec::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            if ["get", "put", "post", "patch", "delete"].contains(&method.as_str()) {
                routes.push((method.to_uppercase(), path.clone(), operation.clone()));
            }
        }
    }
    routes
}

/// A valid body for a route, so that it is refused for its owner and not for its content.
fn valid_body(method: &str, path: &str) -> Option<Value> {
    Some(
        match (method, path.rsplit('/').next().unwrap_or_default()) {
            ("POST", "entries") => json!({"entries": [{"role": "user", "content": "mine"}]}),
            ("POST", "turns") => json!({"message": "mine"}),
            ("POST", "pins" | "decisions") | ("PUT", _) => json!({"text": "mine"}),
            ("POST", "erase") => json!({"entries": [1]}),
            ("POST", "rewind") => json!({"to": 1}),
            ("POST", "merge") => json!({"from": "nothing"}),
            ("PATCH", _) => json!({"name": "mine", "text": "mine"}),
            _ => return None,
        },
    )
}

/// Fills in a path's parameters; the session exists, other values are made up.
fn fill_path(path: &str, session: &str, blob: &str) -> String {
    path.replace("{id}", session)
        .replace("{blob}", blob)
        .replace("{seq}", "1")
        .replace("{document}", "rules")
        .replace("{turn}", "01981f5e-0000-7000-8000-000000000000")
        .replace("{token}", "tk-0123456789abcdef")
}

/// Routes that need no token and reveal nothing.
const PUBLIC_ROUTES: [&str; 2] = ["/health", "/ready"];

#[tokio::test(flavor = "multi_thread")]
async fn every_route_requires_a_token() {
    let server = Server::start_with_tokens().await;
    let mut count = 0;
    for (method, path, _) in routes() {
        let call = |token: Option<&str>| {
            let request = server.request(&method, &fill_path(&path, "any", &"0".repeat(64)));
            let request = match valid_body(&method, &path) {
                Some(body) => request.json(&body),
                None => request,
            };
            match token {
                Some(token) => request.bearer_auth(token),
                None => request,
            }
        };
        if PUBLIC_ROUTES.contains(&path.as_str()) {
            assert_eq!(call(None).send().await.unwrap().status(), 200, "{path}");
            continue;
        }
        for token in [None, Some("tl_made-up"), Some("")] {
            let (status, problem) = send(call(token)).await;
            assert_eq!(status, 401, "{method} {path} with {token:?}: {problem}");
            assert_eq!(problem["code"], "unauthorized");
        }
        count += 1;
    }
    assert!(count > 40, "only {count} routes are described");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_session_route_is_404_for_other_owners() {
    let server = Server::start_with_tokens().await;
    let alice = server.create_token("alice", TokenRole::User).await;
    let others = [
        server.create_token("bob", TokenRole::User).await,
        server.create_token("boss", TokenRole::Admin).await,
        server.create_token("bot", TokenRole::Service).await,
    ];
    let made = server.post("/api/sessions", &json!({"id": "alices-own"}));
    assert_eq!(send(made.bearer_auth(&alice)).await.0, 201);
    let say = json!({"entries": [{"role": "user", "content": "hers"}]});
    let append = server.post("/api/sessions/alices-own/entries", &say);
    assert_eq!(send(append.bearer_auth(&alice)).await.0, 201);
    let put = server.request("POST", "/api/blobs").body("hers");
    let blob = send(put.bearer_auth(&alice)).await.1;
    let blob = blob["blob"].as_str().unwrap();

    let mut count = 0;
    for (method, path, _) in routes() {
        if !path.contains("{id}") && !path.contains("{blob}") {
            continue;
        }
        for token in &others {
            let request = server.request(&method, &fill_path(&path, "alices-own", blob));
            let request = match valid_body(&method, &path) {
                Some(body) => request.json(&body),
                None => request,
            };
            let (status, problem) = send(request.bearer_auth(token)).await;
            assert_eq!(status, 404, "{method} {path}: {problem}");
            count += 1;
        }
    }
    assert!(count > 60, "only {count} routes were tried");
    // None of the requests changed anything.
    let (_, session) = send(server.get("/api/sessions/alices-own").bearer_auth(&alice)).await;
    assert_eq!(
        (&session["head"], &session["name"]),
        (&json!(1), &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_searches_and_memories_are_per_owner() {
    let server = Server::start_with_tokens().await;
    let alice = server.create_token("alice", TokenRole::User).await;
    let bob = server.create_token("bob", TokenRole::User).await;
    let made = server.post(
        "/api/sessions",
        &json!({"key": "shared-key", "name": "hers"}),
    );
    let (_, hers) = send(made.bearer_auth(&alice)).await;
    let path = format!("/api/sessions/{}/entries", hers["id"].as_str().unwrap());
    let say = json!({"entries": [{"role": "user", "content": "the heron in the marsh"}]});
    send(server.post(&path, &say).bearer_auth(&alice)).await;
    let fact = json!({"text": "Herons are grey."});
    send(server.post("/api/memory", &fact).bearer_auth(&alice)).await;

    let get = async |path: &str, token: &str| send(server.get(path).bearer_auth(token)).await.1;
    assert_eq!(get("/api/sessions", &bob).await["sessions"], json!([]));
    assert_eq!(get("/api/search?q=heron", &bob).await["hits"], json!([]));
    assert_eq!(get("/api/memory", &bob).await["facts"], json!([]));
    assert_eq!(get("/api/stats", &bob).await["sessions"], 0);
    let resolved = server.get("/api/resolve?session=shared-key");
    assert_eq!(send(resolved.bearer_auth(&bob)).await.0, 404);
    let made = server.post("/api/sessions", &json!({"key": "shared-key"}));
    let (status, his) = send(made.bearer_auth(&bob)).await;
    assert_eq!(status, 201);
    assert_ne!(his["id"], hers["id"]);
    assert_eq!(
        get("/api/search?q=heron", &alice).await["hits"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_token_reaches_only_its_users() {
    let server = Server::start_with_tokens().await;
    let bot_document = server.create_token("bot", TokenRole::Service).await;
    let rival = server.create_token("rival", TokenRole::Service).await;
    let ann = server.create_token("ann", TokenRole::User).await;
    let make = |token: &str, user: Option<&str>| {
        let request = server
            .post("/api/sessions", &json!({"key": "k"}))
            .bearer_auth(token);
        match user {
            Some(user) => request.header("on-behalf-of", user),
            None => request,
        }
    };
    let (_, for_ann) = send(make(&bot_document, Some("ann"))).await;
    let (_, for_ben) = send(make(&bot_document, Some("ben"))).await;
    let (_, own) = send(make(&bot_document, None)).await;
    let (_, other) = send(make(&rival, Some("ann"))).await;
    let (_, herself) = send(make(&ann, None)).await;
    let ids = [&for_ann, &for_ben, &own, &other, &herself].map(|made| made["id"].to_string());
    let apart: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(apart.len(), 5);
    let path = format!("/api/sessions/{}", for_ann["id"].as_str().unwrap());
    let get = |token: &str, user: &str| {
        let request = server.get(&path).bearer_auth(token);
        request.header("on-behalf-of", user)
    };
    assert_eq!(send(get(&bot_document, "ann")).await.0, 200);
    for (token, user) in [
        (&bot_document, "ben"),
        (&rival, "ann"),
        (&rival, "../bot/ann"),
        (&rival, "bot/ann"),
    ] {
        assert_eq!(send(get(token, user)).await.0, 404, "{user}");
    }
    let (status, problem) = send(get(&ann, "bot/ann")).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (403, &json!("not_a_service"))
    );
    let (status, problem) = send(get(&bot_document, " ")).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (400, &json!("bad_owner"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_create_and_revoke_tokens() {
    let server = Server::start_with_tokens().await;
    let admin = server.create_token("boss", TokenRole::Admin).await;
    let new = json!({"user": "carol", "label": "laptop"});
    let make = |token: &str| server.post("/api/admin/tokens", &new).bearer_auth(token);
    let (status, made) = send(make(&admin)).await;
    assert_eq!(status, 201, "{made}");
    let carol = made["token"].as_str().unwrap();
    assert!(carol.starts_with("tl_") && carol.len() > 40);
    let (_, who) = send(server.get("/api/whoami").bearer_auth(carol)).await;
    assert_eq!(
        (&who["owner"], &who["role"]),
        (&json!("carol"), &json!("user"))
    );
    let (status, problem) = send(make(carol)).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (403, &json!("not_an_admin"))
    );
    assert_eq!(send(server.get("/metrics").bearer_auth(carol)).await.0, 403);
    let (_, listed) = send(server.get("/api/admin/tokens").bearer_auth(&admin)).await;
    let text = listed.to_string();
    assert!(text.contains("laptop") && !text.contains(carol), "{text}");
    let (_, users) = send(server.get("/api/admin/users").bearer_auth(&admin)).await;
    assert!(users.to_string().contains("carol"), "{users}");
    let path = format!("/api/admin/tokens/{}", made["id"].as_str().unwrap());
    let revoke = server.request("DELETE", &path).bearer_auth(&admin);
    assert_eq!(send(revoke).await.1["good"], false);
    assert_eq!(
        send(server.get("/api/whoami").bearer_auth(carol)).await.0,
        401
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_is_refused() {
    let server = Server::start_with_tokens().await;
    let new = throughline::NewToken {
        owner: "dave".parse().unwrap(),
        role: TokenRole::User,
        label: None,
        expires_at: Some(server.tl.now() - jiff::SignedDuration::from_secs(1)),
    };
    let ended = server.tl.issue_token(new).await.unwrap().text;
    assert_eq!(
        send(server.get("/api/whoami").bearer_auth(ended)).await.0,
        401
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_token_closes_an_open_server() {
    let server = Server::start().await;
    let (_, who) = send(server.get("/api/whoami")).await;
    assert_eq!(
        (&who["owner"], &who["role"]),
        (&json!("local"), &json!("admin"))
    );
    let (status, problem) = send(server.get("/api/whoami").header("on-behalf-of", "ann")).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (403, &json!("not_a_service"))
    );
    let new = json!({"user": "local", "role": "admin"});
    let (_, made) = send(server.post("/api/admin/tokens", &new)).await;
    assert_eq!(send(server.get("/api/whoami")).await.0, 401);
    let token = made["token"].as_str().unwrap();
    assert_eq!(
        send(server.get("/api/whoami").bearer_auth(token)).await.0,
        200
    );
}

#[test]
fn a_server_is_open_only_on_loopback_without_a_name_before_the_first_token() {
    let at = |text: &str, tokens, named| {
        let address: SocketAddr = text.parse().unwrap();
        AccessMode::for_address(address, Owner::local(), tokens, named)
    };
    let open = AccessMode::Open(Owner::local());
    for here in ["127.0.0.1:0", "[::1]:0"] {
        assert_eq!(at(here, IssuedTokens::Never, false).unwrap(), open);
        assert_eq!(
            at(here, IssuedTokens::Never, true).unwrap(),
            AccessMode::Tokens
        );
        for tokens in [IssuedTokens::NoneValid, IssuedTokens::Valid] {
            assert_eq!(at(here, tokens, false).unwrap(), AccessMode::Tokens);
        }
    }
    assert_eq!(
        at("0.0.0.0:80", IssuedTokens::Valid, false).unwrap(),
        AccessMode::Tokens
    );
    for away in ["0.0.0.0:80", "192.168.1.4:80", "[::]:80"] {
        for tokens in [IssuedTokens::Never, IssuedTokens::NoneValid] {
            let refused = at(away, tokens, true).unwrap_err();
            assert!(matches!(refused, ServeError::NoTokens(_)), "{away}");
        }
    }
}
