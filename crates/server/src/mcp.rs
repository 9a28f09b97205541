//! The Model Context Protocol at `/mcp`, on behalf of the caller.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use throughline_mcp::Mcp;

use crate::{App, Caller};

pub(crate) fn router() -> Router<App> {
    Router::new().route("/mcp", any(answer))
}

async fn answer(State(app): State<App>, caller: Caller, request: Request) -> Response {
    let server = Mcp::new(caller.tl, app.serving.zone.clone());
    let answered = server.answer(request, app.limits().body).await;
    answered.map(Body::new)
}
