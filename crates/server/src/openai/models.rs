//! Models API: the models that may be chosen.

use axum::Json as JsonResponse;
use axum::extract::State;
use axum::http::request::Parts;
use serde_json::{Value, json};

use super::OpenAiError;
use crate::extract::path_param;
use crate::{App, Caller};

fn model_view(id: &str) -> Value {
    let owner = id.split_once('/').map_or("throughline", |(owner, _)| owner);
    json!({"id": id, "object": "model", "created": 0, "owned_by": owner})
}

/// Lists the models, the default first.
pub(super) async fn list(State(app): State<App>, _: Caller) -> JsonResponse<Value> {
    let models = app.config.responders.models();
    let data: Vec<Value> = models.iter().map(|id| model_view(id)).collect();
    JsonResponse(json!({"object": "list", "data": data}))
}

/// Returns one model.
pub(super) async fn retrieve(
    State(app): State<App>,
    _: Caller,
    mut parts: Parts,
) -> Result<JsonResponse<Value>, OpenAiError> {
    let id = path_param(&mut parts, &app, "model").await?;
    let models = app.config.responders.models();
    if models.contains(&id) {
        return Ok(JsonResponse(model_view(&id)));
    }
    Err(OpenAiError::model_not_found(&id))
}
