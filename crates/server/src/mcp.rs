//! The Model Context Protocol endpoint at `/mcp`, acting on behalf of the caller.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use throughline_mcp::McpServer;

use crate::extract::check_nesting;
use crate::request_body::read_body;
use crate::{App, Caller, Problem};

pub(crate) fn router() -> Router<App> {
    Router::new().route("/mcp", any(handle_mcp))
}

async fn handle_mcp(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, sent) = request.into_parts();
    let most = app.limits().body_bytes;
    // Read the body here, where incomplete bodies do not use memory.
    let bytes = read_body(Request::from_parts(parts.clone(), sent), &app, most).await?;
    check_nesting(&bytes)?;
    let request = Request::from_parts(parts, Body::from(bytes));
    let server = McpServer::new(caller.tl, app.config.time_zone.clone());
    Ok(server.handle_http(request, most).await.map(Body::new))
}
