//! Events: none are missed, and a slow subscriber blocks nobody.

use serde_json::{Value, json};
use throughline::{Message, NewSession, Role, TokenRole};
use throughline_server::Limits;

use crate::harness::{EventReader, Server, ServerOptions, send};

async fn open_reader(server: &Server, path: &str) -> EventReader {
    let mut events = EventReader::open(server.get(path)).await;
    assert_eq!(events.next().await.unwrap().0, "ready");
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_reported_by_the_documented_names() {
    let server = Server::start().await;
    let mut events = open_reader(&server, "/api/events").await;
    let id = server.create_session(&["hello"]).await;
    let path = format!("/api/sessions/{id}");
    let rename = json!({"name": "greeting", "archived": true});
    send(server.request("PATCH", &path).json(&rename)).await;
    send(server.request("DELETE", &path)).await;
    send(server.request("POST", &format!("{path}/restore"))).await;
    let mut received = Vec::new();
    for _ in 0..6 {
        let (name, data) = events.next().await.unwrap();
        assert_eq!(name, "session:updated");
        assert_eq!(data["session"], json!(id));
        received.push(data["action"].as_str().unwrap().to_owned());
    }
    let actions = [
        "created",
        "message_added",
        "renamed",
        "archived",
        "deleted",
        "restored",
    ];
    assert_eq!(received, actions);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_contain_entries_and_include_other_processes() {
    let server = Server::start().await;
    let id = server.create_session(&[]).await;
    let mut events = open_reader(&server, &format!("/api/sessions/{id}/events")).await;
    // Written directly to the store, so the feed reader is not woken.
    let session = server.tl.session(&id.parse().unwrap()).await.unwrap();
    let entry = session
        .append(Message::text(Role::User, "from elsewhere"))
        .await
        .unwrap();
    let (_, data) = events.next().await.unwrap();
    assert_eq!(data["action"], "message_added");
    assert_eq!(data["entry"]["content"], "from elsewhere");
    assert_eq!(data["entry"]["seq"], entry.seq.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnecting_client_receives_all_missed_events_in_order() {
    let server = Server::start().await;
    let id = server.create_session(&["one"]).await;
    let path = format!("/api/sessions/{id}/events");
    let mut events = open_reader(&server, &path).await;
    server.post_message(&id, "two").await;
    events.next().await.unwrap();
    let last = events.last_id().unwrap();
    drop(events);
    let other = server.create_session(&[]).await;
    for n in 0..600 {
        // Interleaved with changes of another session.
        let to = if n % 2 == 0 { &id } else { &other };
        server.post_message(to, &format!("missed {n}")).await;
    }
    let back = server.get(&path).header("last-event-id", last.to_string());
    let mut events = EventReader::open(back).await;
    assert_eq!(events.next().await.unwrap().0, "ready");
    for n in (0..600).step_by(2) {
        let (_, data) = events.next().await.unwrap();
        assert_eq!(data["entry"]["content"], format!("missed {n}"));
    }
    server.post_message(&id, "live again").await;
    let (_, data) = events.next().await.unwrap();
    assert_eq!(data["entry"]["content"], "live again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_too_far_behind_gets_a_reset() {
    let limits = Limits {
        event_lag: 10,
        ..Limits::default()
    };
    let server = Server::start_with(ServerOptions {
        limits,
        ..ServerOptions::default()
    })
    .await;
    let id = server.create_session(&[]).await;
    for n in 0..40 {
        server.post_message(&id, &format!("{n}")).await;
    }
    let mut events =
        EventReader::open(server.get("/api/events").header("last-event-id", "2")).await;
    assert_eq!(events.next().await.unwrap().0, "ready");
    let (name, data) = events.next().await.unwrap();
    assert_eq!((name.as_str(), &data["from"]), ("reset", &json!(2)));
    assert_eq!(events.last_id(), data["position"].as_u64());
    server.post_message(&id, "after that").await;
    let (_, data) = events.next().await.unwrap();
    assert_eq!(data["entry"]["content"], "after that");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_id_from_another_store_is_reset() {
    let server = Server::start().await;
    let mut events = EventReader::open(
        server
            .get("/api/events")
            .header("last-event-id", "999999999"),
    )
    .await;
    assert_eq!(events.next().await.unwrap().0, "ready");
    assert_eq!(events.next().await.unwrap().0, "reset");
    let (status, problem) = send(
        server
            .get("/api/events")
            .header("last-event-id", "yesterday"),
    )
    .await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (400, &json!("bad_last_event_id"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_matching_events_are_sent() {
    let server = Server::start().await;
    let id = server.create_session(&[]).await;
    let mut events = open_reader(
        &server,
        "/api/events?kind=renamed,session:compaction-complete",
    )
    .await;
    server.post_message(&id, "hello").await;
    let rename = json!({"name": "named"});
    send(
        server
            .request("PATCH", &format!("/api/sessions/{id}"))
            .json(&rename),
    )
    .await;
    let (_, data) = events.next().await.unwrap();
    assert_eq!(data["action"], "renamed");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_other_owners_are_not_sent() {
    let server = Server::start_with_tokens().await;
    let alice = server.create_token("alice", TokenRole::User).await;
    let bob = server.create_token("bob", TokenRole::User).await;
    let mut live = EventReader::open(server.get("/api/events").bearer_auth(&bob)).await;
    assert_eq!(live.next().await.unwrap().0, "ready");
    for owner in [&alice, &alice, &bob] {
        send(server.post("/api/sessions", &json!({})).bearer_auth(owner)).await;
    }
    let (_, data) = live.next().await.unwrap();
    let mine = data["session"].as_str().unwrap().to_owned();
    let path = format!("/api/sessions/{mine}");
    assert_eq!(send(server.get(&path).bearer_auth(&bob)).await.0, 200);
    // Also when replayed from the store.
    let all = server.get("/api/events?after=0").bearer_auth(&bob);
    let mut past = EventReader::open(all).await;
    assert_eq!(past.next().await.unwrap().0, "ready");
    assert_eq!(past.next().await.unwrap().1["session"], json!(mine));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_reports_the_same_events() {
    let server = Server::start().await;
    let mut socket = server.websocket("/api/events/ws?kind=message_added").await;
    let first = socket.next().await;
    assert_eq!(first["event"], "ready");
    let id = server.create_session(&["over the socket"]).await;
    let event = socket.next().await;
    assert_eq!(event["event"], "session:updated");
    assert_eq!(event["data"]["session"], json!(id));
    assert_eq!(event["data"]["entry"]["content"], "over the socket");
    assert_eq!(event["id"], event["data"]["position"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_subscribers_receive_everything() {
    let mut options = ServerOptions::default();
    options.limits.streams.per_caller = 2_000;
    let server = Server::start_with(options).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/events");
    let mut readers = Vec::new();
    for _ in 0..1_000 {
        readers.push(open_reader(&server, &path).await);
    }
    // A client that never reads must not affect others.
    let _idle = server.get(&path).send().await.unwrap();
    for n in 0..20 {
        server.post_message(&id, &format!("said {n}")).await;
    }
    for events in &mut readers {
        for n in 0..20 {
            let (_, data) = events.next().await.unwrap();
            assert_eq!(data["entry"]["content"], format!("said {n}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_subscriber_delays_nobody_and_misses_nothing() {
    let server = Server::start().await;
    let session = server.tl.create(NewSession::default()).await.unwrap();
    let path = format!("/api/sessions/{}/events", session.id());
    let mut slow = open_reader(&server, &path).await;
    // More than any buffer in between holds.
    let words = "many words ".repeat(400);
    for n in 0..3_000_u64 {
        let text = format!("{n} {words}");
        session
            .append(Message::text(Role::User, text))
            .await
            .unwrap();
    }
    let (mut next, mut lagged) = (0, false);
    while next < 3_000 {
        let (name, data) = slow.next().await.unwrap();
        if name == "lagged" {
            lagged = true;
            continue;
        }
        let text = data["entry"]["content"].as_str().unwrap();
        assert!(text.starts_with(&format!("{next} ")), "{next} was skipped");
        next += 1;
    }
    assert!(
        lagged,
        "the reader was not slow enough for this to tell anything"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_ends_its_streams() {
    let mut server = Server::start().await;
    let mut events = open_reader(&server, "/api/events").await;
    server.stop().await;
    assert_eq!(
        events.next().await.map(|(name, _): (String, Value)| name),
        None
    );
}
