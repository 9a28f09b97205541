//! Sessions and their entries.

use serde_json::{Value, json};

use crate::harness::{Server, send};

fn message_texts(page: &Value) -> Vec<String> {
    let entries = page["entries"].as_array().unwrap();
    let text = |entry: &Value| entry["content"].as_str().unwrap_or("?").to_owned();
    entries.iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_appended_can_be_read() {
    let server = Server::start().await;
    let id = server.create_session(&["one", "two", "three"]).await;
    let (status, page) = send(server.get(&format!("/api/sessions/{id}/entries"))).await;
    assert_eq!(status, 200);
    assert_eq!(message_texts(&page), ["one", "two", "three"]);
    assert_eq!(page["head"], 3);
    assert_eq!(page["older"], Value::Null);
    let (status, entry) = send(server.get(&format!("/api/sessions/{id}/entries/2"))).await;
    assert_eq!((status.as_u16(), &entry["content"]), (200, &json!("two")));
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_paged_both_ways_without_gaps() {
    let server = Server::start().await;
    let words: Vec<String> = (1..=25).map(|n| format!("word {n}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = server.create_session(&words).await;
    let page = async |query: &str| {
        let path = format!("/api/sessions/{id}/entries?limit=10{query}");
        send(server.get(&path)).await.1
    };
    let (mut back, mut all) = (page("").await, Vec::new());
    loop {
        let mut words = message_texts(&back);
        words.append(&mut all);
        all = words;
        match back["older"].as_u64() {
            Some(older) => back = page(&format!("&before={older}")).await,
            None => break,
        }
    }
    assert_eq!(all, words);
    let (mut on, mut all) = (page("&after=0").await, Vec::new());
    loop {
        all.append(&mut message_texts(&on));
        match on["newer"].as_u64() {
            Some(newer) => on = page(&format!("&after={newer}")).await,
            None => break,
        }
    }
    assert_eq!(all, words);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_head_is_refused_and_reported() {
    let server = Server::start().await;
    let id = server.create_session(&["one", "two"]).await;
    let path = format!("/api/sessions/{id}/entries");
    let late = json!({"entries": [{"role": "user", "content": "late"}]});
    let (status, problem) = send(server.post(&path, &late).header("if-match", "\"1\"")).await;
    assert_eq!(status, 409);
    assert_eq!(problem["code"], "head_moved");
    assert_eq!(problem["head"], 2);
    let current = server.post(&path, &late).header("if-match", "\"2\"");
    let response = current.send().await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["etag"], "\"3\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflicting_append_becomes_a_fork_and_a_retry_finds_it() {
    let server = Server::start().await;
    let id = server.create_session(&["one", "two"]).await;
    let path = format!("/api/sessions/{id}/entries");
    let late = json!({"entries": [{"role": "user", "content": "late"}], "on_conflict": "fork"});
    let ask = || {
        server
            .post(&path, &late)
            .header("if-match", "\"1\"")
            .header("idempotency-key", "k-1")
    };
    let (status, first) = send(ask()).await;
    assert_eq!((status.as_u16(), &first["how"]), (201, &json!("forked")));
    assert_ne!(first["session"], json!(id));
    let (status, again) = send(ask()).await;
    assert_eq!(status, 200, "{again}");
    assert_eq!(again["how"], "repeated");
    assert_eq!(again["session"], first["session"]);
    assert_eq!(again["entries"], first["entries"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_appends_once_and_answers_as_the_first_did() {
    let server = Server::start().await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/entries");
    let pair = json!({"entries": [
        {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]});
    let ask = |body: &Value| server.post(&path, body).header("idempotency-key", "turn 7");
    let (first, stored) = send(ask(&pair)).await;
    server.post_message(&id, "meanwhile").await;
    let (second, again) = send(ask(&pair)).await;
    assert_eq!((first.as_u16(), second.as_u16()), (201, 200));
    assert_eq!(again["entries"], stored["entries"]);
    let other = json!({"entries": [
        {"role": "user", "content": "other"}, {"role": "assistant", "content": "words"}]});
    let (status, problem) = send(ask(&other)).await;
    assert_eq!(status, 409);
    assert_eq!(problem["code"], "idempotency_key_reused");
    let (_, session) = send(server.get(&format!("/api/sessions/{id}"))).await;
    assert_eq!(session["head"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_creates_a_session_once() {
    let server = Server::start().await;
    let body = json!({"key": "telegram:1/2", "name": "My Chat", "tags": ["bot"]});
    let (status, made) = send(server.post("/api/sessions", &body)).await;
    assert_eq!((status.as_u16(), &made["name"]), (201, &json!("my-chat")));
    assert_eq!(made["tags"], json!(["bot"]));
    let (status, found) = send(server.post("/api/sessions", &body)).await;
    assert_eq!((status.as_u16(), &found["id"]), (200, &made["id"]));
    let path = "/api/resolve?session=telegram%3A1%2F2";
    let (status, resolved) = send(server.get(path)).await;
    assert_eq!((status.as_u16(), &resolved["id"]), (200, &made["id"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged_filtered_and_counted() {
    let server = Server::start().await;
    for n in 0..7 {
        let tags = if n % 2 == 0 {
            json!(["even"])
        } else {
            json!([])
        };
        let body = json!({"name": format!("session {n}"), "tags": tags});
        send(server.post("/api/sessions", &body)).await;
    }
    let (mut path, mut seen) = ("/api/sessions?limit=3&count=true".to_owned(), Vec::new());
    loop {
        let (status, page) = send(server.get(&path)).await;
        assert_eq!((status.as_u16(), &page["total"]), (200, &json!(7)));
        let sessions = page["sessions"].as_array().unwrap();
        seen.extend(
            sessions
                .iter()
                .map(|s| s["id"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => path = format!("/api/sessions?limit=3&count=true&after={next}"),
            None => break,
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 7);
    let (_, even) = send(server.get("/api/sessions?tag=even")).await;
    assert_eq!(even["sessions"].as_array().unwrap().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_changes_what_it_names_and_nothing_else() {
    let server = Server::start().await;
    let id = server.create_session(&["hello"]).await;
    let path = format!("/api/sessions/{id}");
    let change = json!({"name": "New Name", "description": "about auth", "add_tags": ["a", "b"]});
    let (status, changed) = send(server.request("PATCH", &path).json(&change)).await;
    assert_eq!(status, 200);
    assert_eq!(changed["name"], "new-name");
    assert_eq!(changed["tags"], json!(["a", "b"]));
    let change = json!({"name": null, "remove_tags": ["a"], "archived": true});
    let (_, changed) = send(server.request("PATCH", &path).json(&change)).await;
    assert_eq!(changed["name"], Value::Null);
    assert_eq!(changed["description"], "about auth");
    assert_eq!(changed["tags"], json!(["b"]));
    assert_eq!(changed["status"], "archived");
    let stale = json!({"name": "late"});
    let stale = server.request("PATCH", &path).json(&stale);
    let (status, problem) = send(stale.header("if-match", "\"1\"")).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (409, &json!("head_moved"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_sessions_can_be_restored_until_removed() {
    let server = Server::start().await;
    let id = server.create_session(&["hello"]).await;
    let path = format!("/api/sessions/{id}");
    let delete = |query: &str| server.request("DELETE", &format!("{path}{query}"));
    assert_eq!(send(delete("")).await.0, 204);
    let (status, problem) = send(server.get(&path)).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (404, &json!("session_in_trash"))
    );
    let (_, trash) = send(server.get("/api/sessions?trash=true")).await;
    assert_eq!(trash["sessions"][0]["id"], json!(id));
    let restore = server.request("POST", &format!("{path}/restore"));
    assert_eq!(send(restore).await.0, 200);
    assert_eq!(send(server.get(&path)).await.0, 200);
    let (status, problem) = send(delete("?forever=true")).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (404, &json!("not_in_trash"))
    );
    assert_eq!(send(delete("")).await.0, 204);
    assert_eq!(send(delete("?forever=true")).await.0, 204);
    let (status, problem) = send(server.get(&path)).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (404, &json!("session_not_found"))
    );
}
