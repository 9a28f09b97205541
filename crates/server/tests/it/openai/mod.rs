//! Conversations and responses, as they go over the wire. The clients themselves are in
//! `clients`.

mod conversations;
mod items;
mod refusals;
mod responses;
mod terms;

use std::sync::Arc;

use reqwest::StatusCode;
use serde_json::{Value, json};
use throughline_stand_in::{Script, StandIn};

use crate::harness::{Server, Wish, answer};
use crate::stand_in::StandInVoices;

async fn conversation(server: &Server, items: Value) -> String {
    let (status, made) = answer(server.post("/v1/conversations", &json!({"items": items}))).await;
    assert_eq!(status, 200, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

async fn items(server: &Server, conversation: &str, query: &str) -> Value {
    let path = format!("/v1/conversations/{conversation}/items?{query}");
    let (status, page) = answer(server.get(&path)).await;
    assert_eq!(status, 200, "{page}");
    page
}

async fn add(server: &Server, conversation: &str, items: Value) -> (StatusCode, Value) {
    let path = format!("/v1/conversations/{conversation}/items");
    answer(server.post(&path, &json!({"items": items}))).await
}

async fn with_model(script: Script) -> (Server, StandIn) {
    with_voices(script, StandInVoices::new).await
}

/// The same with several models, of which callers choose by name.
async fn with_models(script: Script) -> (Server, StandIn) {
    with_voices(script, StandInVoices::named).await
}

async fn with_voices(
    script: Script,
    voices: fn(&StandIn) -> Arc<StandInVoices>,
) -> (Server, StandIn) {
    let stand_in = StandIn::start(script).unwrap();
    let server = Server::with(Wish {
        voices: voices(&stand_in),
        ..Wish::default()
    })
    .await;
    (server, stand_in)
}
