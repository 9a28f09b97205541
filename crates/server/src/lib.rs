//! Sessions over HTTP, for many users at once.
//!
//! [`Serving`] says what is served, to whom and within which limits; [`App`] is that at
//! work, [`router`] the paths it answers at, and [`serve`] puts it behind a listener.
//!
//! - `/api`: everything that can be done with sessions (`api`), described by OpenAPI.
//! - `/api/events`: what happens, as it happens (`events`).
//! - `/v1`: the OpenAI Conversations and Responses APIs (`openai`) on the same sessions.
//! - `/mcp`: sessions and memory as tools of the Model Context Protocol, for agents.
//! - `/store`: the store itself (`store`), for `tl` with a server's address.
//! - `/`: the page (`page`).
//!
//! Every request passes the guard once: hosts and origins, the caller, limits, a request
//! id, a log line and a measurement. What a handler then gets is a [`Caller`], whose
//! `Throughline` speaks on behalf of one owner and cannot see anybody else's sessions.

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

/// Every path that is answered, behind the guard.
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
