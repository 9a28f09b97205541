//! Attachments, as they are.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};

use super::{Asker, largest, said};
use crate::api::blobs::Which;
use crate::body::body;

/// Keeps some bytes.
pub(super) async fn put(asker: Asker, request: Request) -> Response {
    let bytes = match body(request, &asker.app, largest(&asker.app)).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.into_response(),
    };
    let kept = asker.store().put_blob(asker.owner(), bytes).await;
    said(kept.map(|digest| axum::Json(digest).into_response()))
}

/// The bytes with the digest in the path.
pub(super) async fn get(asker: Asker, Which(digest): Which) -> Response {
    let _memory = match asker.app.memory(asker.app.limits().blob).await {
        Ok(memory) => memory,
        Err(problem) => return problem.into_response(),
    };
    let found = asker.store().blob(asker.owner(), &digest).await;
    said(found.map(IntoResponse::into_response))
}
