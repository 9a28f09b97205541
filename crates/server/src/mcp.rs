//! The Model Context Protocol at `/mcp`, on behalf of the caller.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use throughline_mcp::Mcp;

use crate::body::body;
use crate::extract::check_nesting;
use crate::{App, Caller, Problem};

pub(crate) fn router() -> Router<App> {
    Router::new().route("/mcp", any(answer))
}

async fn answer(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, sent) = request.into_parts();
    let most = app.limits().body;
    // Read here, where half-sent bodies cost no memory.
    let bytes = body(Request::from_parts(parts.clone(), sent), &app, most).await?;
    check_nesting(&bytes)?;
    let request = Request::from_parts(parts, Body::from(bytes));
    let server = Mcp::new(caller.tl, app.serving.zone.clone());
    Ok(server.answer(request, most).await.map(Body::new))
}
