//! Attachments, as they are.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};

use super::{CallContext, max_body_bytes, store_response};
use crate::api::blobs::PathDigest;
use crate::request_body::read_body;

/// Keeps some bytes.
pub(super) async fn put(asker: CallContext, request: Request) -> Response {
    let bytes = match read_body(request, &asker.app, max_body_bytes(&asker.app)).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.into_response(),
    };
    let kept = asker.store().put_blob(asker.owner(), bytes).await;
    store_response(kept.map(|digest| axum::Json(digest).into_response()))
}

/// The bytes with the digest in the path.
pub(super) async fn get(asker: CallContext, PathDigest(digest): PathDigest) -> Response {
    let _memory = match asker
        .app
        .acquire_body_memory(asker.app.limits().blob_bytes)
        .await
    {
        Ok(memory) => memory,
        Err(problem) => return problem.into_response(),
    };
    let found = asker.store().blob(asker.owner(), &digest).await;
    store_response(found.map(IntoResponse::into_response))
}
