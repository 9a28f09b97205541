//! The Throughline HTTP server: sessions over HTTP for many users at once.
//!
//! [`ServerConfig`] holds the settings, [`App`] is the shared state of a running server, [`router`]
//! builds the routes, and [`serve`] runs them on a listener.
//!
//! - `/api`: the native REST API (`api`), described by OpenAPI.
//! - `/api/events`: change events as server-sent events or over a WebSocket (`events`).
//! - `/v1`: the OpenAI Conversations and Responses APIs (`openai`) on the same sessions.
//! - `/mcp`: sessions and memory as Model Context Protocol tools, for agents.
//! - `/store`: the store protocol (`store`), for `tl` running against a remote server.
//! - `/`: the web page (`page`).
//!
//! Every request passes through the guard middleware once. It checks host and origin, authenticates
//! the caller, applies rate limits and quotas, assigns a request id, writes a log line and records
//! metrics. Handlers receive a [`Caller`] whose `Throughline` acts on behalf of one owner and
//! cannot see any other owner's sessions.

mod access_monitor;
mod api;
mod app;
mod auth;
mod client_address;
mod config;
mod events;
mod extract;
mod guard;
mod listen;
mod mcp;
mod metered_body;
mod metrics;
mod openai;
mod openapi_params;
mod page;
mod problem;
mod quota;
mod rate_limit;
mod request_body;
mod responders;
mod startup;
mod store;
mod turns;
mod wire;

pub use api::openapi;
pub use app::App;
pub use auth::Caller;
pub use config::{AccessMode, Cap, IssuedTokens, Limits, RateLimit, ServerConfig};
pub use listen::{ServeError, Tls, serve};
pub use problem::Problem;
pub use responders::{OfflineRegistry, ResponderChoice, ResponderError, ResponderRegistry};
pub use startup::serve_until_ready;

use axum::Router;
use axum::middleware::from_fn_with_state;

/// Builds the router with all routes, wrapped in the guard middleware.
pub fn router(app: &App) -> Router {
    let (api, document) = api::router();
    api.merge(api::openapi_router(document))
        .merge(openai::router())
        .merge(mcp::router())
        .merge(store::router())
        .merge(page::router())
        .fallback(guard::not_found)
        .method_not_allowed_fallback(guard::method_not_allowed)
        .layer(from_fn_with_state(app.clone(), guard::guard))
        .with_state(app.clone())
}
