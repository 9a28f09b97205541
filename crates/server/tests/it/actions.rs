//! Actions on a session other than turns.

use serde_json::{Value, json};

use crate::harness::{Server, send};

/// Built at run time, so that secret scanners do not flag this file.
fn secret() -> String {
    format!("ghp_{}", "4f9aK2lmN8qRt7uVw3xYz1b2C3d4E5f6G7h8")
}

async fn post_ok(server: &Server, path: &str, body: &Value) -> Value {
    let (status, answered) = send(server.post(path, body)).await;
    assert!(status.is_success(), "{path}: {status} {answered}");
    answered
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_diverges_and_is_merged_back() {
    let server = Server::start().await;
    let id = server.create_session(&["one", "two"]).await;
    let path = format!("/api/sessions/{id}");
    let forked = post_ok(
        &server,
        &format!("{path}/fork"),
        &json!({"at": 1, "name": "try"}),
    )
    .await;
    assert_eq!(forked["at"], 1);
    let fork = forked["session"]["id"].as_str().unwrap().to_owned();
    server.post_message(&fork, "another two").await;
    let diverged = json!({"from": fork});
    let (status, problem) = send(server.post(&format!("{path}/merge"), &diverged)).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (409, &json!("diverged"))
    );
    let append = json!({"from": fork, "style": "append"});
    let merged = post_ok(&server, &format!("{path}/merge"), &append).await;
    assert_eq!(merged, json!({"how": "appended", "entries": 1}));
    let (_, lineage) = send(server.get(&format!("/api/sessions/{fork}/lineage"))).await;
    let family = lineage["sessions"].as_array().unwrap();
    assert_eq!(family.len(), 2);
    assert_eq!(family[0]["session"]["id"], json!(id));
    assert_eq!(family[1]["parent"], json!(id));
}

#[tokio::test(flavor = "multi_thread")]
async fn pins_decisions_and_documents_are_in_the_request() {
    let server = Server::start().await;
    let id = server.create_session(&["hello"]).await;
    let path = format!("/api/sessions/{id}");
    let pin = post_ok(
        &server,
        &format!("{path}/pins"),
        &json!({"text": "deploys go by tag"}),
    )
    .await;
    post_ok(
        &server,
        &format!("{path}/decisions"),
        &json!({"text": "we use Redis"}),
    )
    .await;
    let document = server.request("PUT", &format!("{path}/context/rules"));
    let document = document.json(&json!({"text": "no unwrap outside tests"}));
    assert_eq!(send(document).await.0, 200);
    let ask = json!({"message": "and now?"});
    let preview = post_ok(&server, &format!("{path}/request/preview"), &ask).await;
    let text = preview.to_string();
    for part in [
        "deploys go by tag",
        "we use Redis",
        "no unwrap outside tests",
        "and now?",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let built = post_ok(&server, &format!("{path}/request"), &ask).await;
    assert_eq!(built["tokens"], preview["tokens"]);
    assert!(built["messages"].as_array().unwrap().len() >= 2);
    let unpin = server.request("DELETE", &format!("{path}/pins/{}", pin["seq"]));
    assert_eq!(send(unpin).await.0, 204);
    let gone = server.request("DELETE", &format!("{path}/context/rules"));
    assert_eq!(send(gone).await.0, 204);
    let (status, problem) = send(server.get(&format!("{path}/context/rules"))).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (404, &json!("document_not_found"))
    );
    let preview = post_ok(&server, &format!("{path}/request/preview"), &ask).await;
    assert!(!preview.to_string().contains("deploys go by tag"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_policy_is_refused_when_set() {
    let server = Server::start().await;
    let id = server.create_session(&[]).await;
    let put = |text: &str| {
        let path = format!("/api/sessions/{id}/context/policy");
        server.request("PUT", &path).json(&json!({"text": text}))
    };
    let (status, problem) = send(put("nonsense")).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (422, &json!("bad_policy"))
    );
    assert_eq!(send(put("bot; window=5000")).await.0, 200);
    let path = format!("/api/sessions/{id}/request/preview");
    let preview = post_ok(&server, &path, &json!({})).await;
    assert_eq!(
        (&preview["policy"], &preview["budget"]),
        (&json!("sliding-window"), &json!(5000))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_is_done_undone_and_shown() {
    let server = Server::start().await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}");
    for n in 0..40 {
        let text = format!("We decided that service number {n} stores its sessions in Redis. ");
        server.post_message(&id, &text.repeat(8)).await;
    }
    let (status, done) = send(server.request("POST", &format!("{path}/compact"))).await;
    assert_eq!(
        (status.as_u16(), &done["how"]),
        (200, &json!("compacted")),
        "{done}"
    );
    let (_, session) = send(server.get(&path)).await;
    assert_eq!(session["checkpoint"], done["seq"]);
    assert_eq!(session["compactions"], 1);
    let (_, view) = send(server.get(&format!("{path}/checkpoint"))).await;
    assert!(view.get("summary").is_some(), "{view}");
    let (status, set) = send(server.get(&format!("{path}/working-set?recent=2"))).await;
    assert_eq!(status, 200, "{set}");
    let undo = server.request("DELETE", &format!("{path}/checkpoint"));
    assert_eq!(send(undo).await.1["retracted"], done["seq"]);
    let undo = server.request("DELETE", &format!("{path}/checkpoint"));
    let (status, problem) = send(undo).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (404, &json!("no_checkpoint"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn clearing_and_rewinding_hide_from_the_model_only() {
    let server = Server::start().await;
    let id = server
        .create_session(&["first words", "second words"])
        .await;
    let path = format!("/api/sessions/{id}");
    let preview = async || {
        let path = format!("{path}/request/preview");
        post_ok(&server, &path, &json!({})).await.to_string()
    };
    let rewound = post_ok(&server, &format!("{path}/rewind"), &json!({"to": 1})).await;
    assert_eq!(rewound["to"], 1);
    let sent = preview().await;
    assert!(sent.contains("first words") && !sent.contains("second words"));
    post_ok(&server, &format!("{path}/clear"), &json!({})).await;
    assert!(!preview().await.contains("first words"));
    let (_, page) = send(server.get(&format!("{path}/entries"))).await;
    assert!(page.to_string().contains("first words"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_continued_session_starts_from_the_summary() {
    let server = Server::start().await;
    let id = server
        .create_session(&["We decided to store sessions in Redis."])
        .await;
    let path = format!("/api/sessions/{id}/continue");
    let (status, next) = send(server.post(&path, &json!({"name": "next"}))).await;
    assert_eq!(status, 201, "{next}");
    assert_eq!(next["lineage"]["session"], json!(id));
    let path = format!(
        "/api/sessions/{}/request/preview",
        next["id"].as_str().unwrap()
    );
    let preview = post_ok(&server, &path, &json!({})).await;
    assert!(preview.to_string().contains("Redis"), "{preview}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_found_by_search() {
    let server = Server::start().await;
    let id = server
        .create_session(&["The heron stood in the marsh.", "Nothing else."])
        .await;
    let (status, found) = send(server.get("/api/search?q=heron")).await;
    assert_eq!(status, 200);
    assert_eq!(found["hits"][0]["session"], json!(id));
    assert_eq!(found["hits"][0]["seq"], 1);
    let snippet = found["hits"][0]["snippet"].as_str().unwrap();
    let mark = &found["hits"][0]["marks"][0];
    let bytes = |index: usize| usize::try_from(mark[index].as_u64().unwrap()).unwrap();
    assert_eq!(&snippet[bytes(0)..bytes(1)], "heron");
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_are_remembered_replaced_and_forgotten() {
    let server = Server::start().await;
    let fact = json!({"text": "Deploys go out on Tuesdays."});
    let (status, added) = send(server.post("/api/memory", &fact)).await;
    assert_eq!((status.as_u16(), &added["how"]), (201, &json!("new")));
    assert_eq!(send(server.post("/api/memory", &fact)).await.0, 200);
    let seq = added["fact"]["seq"].as_u64().unwrap();
    let change = json!({"text": "Deploys go out on Fridays."});
    let edit = server
        .request("PATCH", &format!("/api/memory/{seq}"))
        .json(&change);
    let (status, edited) = send(edit).await;
    assert_eq!(status, 200, "{edited}");
    let (_, listed) = send(server.get("/api/memory")).await;
    assert_eq!(listed["facts"].as_array().unwrap().len(), 1);
    let leak = json!({"text": format!("the key is {}", secret())});
    let (status, problem) = send(server.post("/api/memory", &leak)).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (422, &json!("looks_secret"))
    );
    let seq = edited["fact"]["seq"].as_u64().unwrap();
    let forget = server.request("DELETE", &format!("/api/memory/{seq}"));
    assert_eq!(send(forget).await.0, 204);
    let (_, listed) = send(server.get("/api/memory")).await;
    assert_eq!(listed["facts"], json!([]));
    let (_, all) = send(server.get("/api/memory?all=true")).await;
    assert_eq!(all["facts"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_come_back_inert() {
    let server = Server::start().await;
    let page = b"<script>alert(1)</script>".to_vec();
    let put = server.request("POST", "/api/blobs").body(page.clone());
    let (status, stored) = send(put).await;
    assert_eq!(status, 201);
    let path = format!("/api/blobs/{}", stored["blob"].as_str().unwrap());
    for query in ["", "?as=text/html", "?as=image/svg%2Bxml"] {
        let response = server.get(&format!("{path}{query}")).send().await.unwrap();
        let headers = response.headers().clone();
        assert_eq!(headers["content-type"], "application/octet-stream");
        assert_eq!(headers["content-disposition"], "attachment");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert!(
            headers["content-security-policy"]
                .to_str()
                .unwrap()
                .contains("sandbox")
        );
        assert_eq!(response.bytes().await.unwrap(), page);
    }
    let response = server
        .get(&format!("{path}?as=image/png"))
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "image/png");
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_hold_no_secrets_unless_they_are_revealed() {
    let server = Server::start().await;
    let secret = secret();
    let id = server
        .create_session(&[&format!("use {secret} for now"), "and then rotate it"])
        .await;
    for format in ["markdown", "json", "jsonl"] {
        let path = format!("/api/sessions/{id}/export?format={format}");
        let response = server.get(&path).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let text = response.text().await.unwrap();
        assert!(!text.contains(&secret), "{format} has the secret");
        assert!(
            text.contains("[redacted: a GitHub token]"),
            "{format}: {text}"
        );
        assert!(text.contains("and then rotate it"));
        let (_, whole) = send(server.get(&format!("{path}&reveal=true"))).await;
        assert!(whole.to_string().contains(&secret), "{format}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_content_is_gone() {
    let server = Server::start().await;
    let id = server
        .create_session(&["a regrettable sentence", "fine"])
        .await;
    let erase = json!({"entries": [1], "reason": "asked for"});
    let path = format!("/api/sessions/{id}/erase");
    assert_eq!(send(server.post(&path, &erase)).await.0, 204);
    let (_, page) = send(server.get(&format!("/api/sessions/{id}/entries"))).await;
    assert!(!page.to_string().contains("regrettable"));
    assert_eq!(page["entries"][0]["kind"], "erased");
}

#[tokio::test(flavor = "multi_thread")]
async fn stats_health_and_metrics_are_reported() {
    let server = Server::start().await;
    server.create_session(&["one", "two"]).await;
    let (_, stats) = send(server.get("/api/stats")).await;
    assert_eq!(
        (&stats["sessions"], &stats["messages"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(send(server.get("/health")).await.1["status"], "ok");
    assert_eq!(send(server.get("/ready")).await.0, 200);
    let (status, metrics) = send(server.get("/metrics")).await;
    assert_eq!(status, 200);
    let metrics = metrics.as_str().unwrap();
    let line =
        "throughline_requests_total{method=\"POST\",route=\"/api/sessions\",status=\"201\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}
