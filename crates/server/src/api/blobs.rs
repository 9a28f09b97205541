//! Attachment bytes. They are served so that a browser executes nothing in them.

use axum::Json as JsonResponse;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use throughline::Digest;
use utoipa::{IntoParams, ToSchema};

use crate::extract::{Query, path_param};
use crate::request_body::read_body;
use crate::{App, Caller, Problem};

/// Image types that may be shown inline; they cannot contain scripts.
const INLINE_IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A stored attachment.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BlobView {
    /// Digest of the bytes: the `blob` of an attachment block.
    #[schema(value_type = String)]
    blob: Digest,
    /// Size in bytes.
    bytes: usize,
}

/// Store the bytes of an attachment, to be referenced in a message
#[utoipa::path(post, path = "/api/blobs", tag = "entries",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 201, body = BlobView)))]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let bytes = read_body(request, &app, app.limits().blob_bytes).await?;
    let count = bytes.len();
    let blob = caller.tl.put_blob(bytes).await?;
    let view = BlobView { blob, bytes: count };
    Ok((StatusCode::CREATED, JsonResponse(view)).into_response())
}

/// The digest in the path.
pub(crate) struct PathDigest(pub(crate) Digest);

impl FromRequestParts<App> for PathDigest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let text = path_param(parts, app, "blob").await?;
        text.parse().map(Self).map_err(|_| {
            Problem::not_found(
                "attachment_not_found",
                format!("{text:?} is not an attachment digest"),
            )
        })
    }
}

/// How to return the bytes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlobQuery {
    /// Content type to return. Images (`image/png`, `image/jpeg`, `image/gif`, `image/webp`) may be
    /// shown inline; anything else is downloaded.
    r#as: Option<String>,
}

/// Get the bytes of an attachment
#[utoipa::path(get, path = "/api/blobs/{blob}", tag = "entries",
    params(BlobQuery, ("blob" = String, Path, description = "Digest of the bytes")),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    PathDigest(blob): PathDigest,
    Query(query): Query<BlobQuery>,
) -> Result<Response, Problem> {
    // The size is known only once the blob is loaded; from then on the guard counts it.
    let _memory = app.acquire_body_memory(app.limits().blob_bytes).await?;
    let bytes = caller.tl.blob(&blob).await?;
    let picture = query
        .r#as
        .and_then(|asked| INLINE_IMAGE_TYPES.into_iter().find(|known| *known == asked));
    let (kind, how) = match picture {
        Some(kind) => (kind, "inline"),
        None => ("application/octet-stream", "attachment"),
    };
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, how),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; sandbox; frame-ancestors 'none'",
        ),
        // The digest identifies the content, so it can be cached forever.
        (
            header::CACHE_CONTROL,
            "private, max-age=31536000, immutable",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}
