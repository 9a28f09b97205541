//! The models there are: the one that answers.

use axum::Json as Answer;
use axum::extract::State;
use serde_json::{Value, json};

use crate::{App, Caller};

/// What the model is called where none is connected.
pub(super) const OFFLINE: &str = "offline";

/// The models.
pub(super) async fn list(State(app): State<App>, _: Caller) -> Answer<Value> {
    let usual = app.serving.voices.usual();
    let id = usual.as_deref().unwrap_or(OFFLINE);
    let owner = id.split_once('/').map_or("throughline", |(owner, _)| owner);
    Answer(json!({
        "object": "list",
        "data": [{"id": id, "object": "model", "created": 0, "owned_by": owner}],
    }))
}
