//! The bytes of attachments. They come back inert: nothing in them is run by a browser.

use axum::Json as Answer;
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

/// What may be shown in a page, and not only downloaded: pictures without script.
const INLINE_IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Bytes that are kept.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BlobView {
    /// What they are called by: the `blob` of an attachment.
    #[schema(value_type = String)]
    blob: Digest,
    /// How many.
    bytes: usize,
}

/// Keep the bytes of an attachment, to be named in a message
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
    Ok((StatusCode::CREATED, Answer(view)).into_response())
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
                format!("{text:?} is no attachment's digest"),
            )
        })
    }
}

/// How the bytes are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlobQuery {
    /// As what: a picture (`image/png`, `image/jpeg`, `image/gif`, `image/webp`) may be shown
    /// in a page, anything else is downloaded.
    r#as: Option<String>,
}

/// The bytes of an attachment
#[utoipa::path(get, path = "/api/blobs/{blob}", tag = "entries",
    params(BlobQuery, ("blob" = String, Path, description = "Its digest")),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    PathDigest(blob): PathDigest,
    Query(query): Query<BlobQuery>,
) -> Result<Response, Problem> {
    // How large it is is known once it is there; the guard counts it from then on.
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
        // The digest says what it is, for ever.
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
