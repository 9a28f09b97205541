//! Store protocol: attachment bytes.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};

use super::{CallContext, max_body_bytes, store_response};
use crate::api::blobs::PathDigest;
use crate::request_body::read_body;

/// Stores bytes.
pub(super) async fn put(ctx: CallContext, request: Request) -> Response {
    let bytes = match read_body(request, &ctx.app, max_body_bytes(&ctx.app)).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.into_response(),
    };
    let stored = ctx.store().put_blob(ctx.owner(), bytes).await;
    store_response(stored.map(|digest| axum::Json(digest).into_response()))
}

/// Returns the bytes with the digest in the path.
pub(super) async fn get(ctx: CallContext, PathDigest(digest): PathDigest) -> Response {
    let _memory = match ctx
        .app
        .acquire_body_memory(ctx.app.limits().blob_bytes)
        .await
    {
        Ok(memory) => memory,
        Err(problem) => return problem.into_response(),
    };
    let found = ctx.store().blob(ctx.owner(), &digest).await;
    store_response(found.map(IntoResponse::into_response))
}
