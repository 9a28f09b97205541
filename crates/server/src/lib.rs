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

mod access;
mod api;
mod auth;
mod body;
mod client_address;
mod config;
mod documented;
mod events;
mod extract;
mod guard;
mod listen;
mod mcp;
mod metered;
mod metrics;
mod not_ready;
mod openai;
mod page;
mod problem;
mod quota;
mod rate;
mod state;
mod store;
mod turns;
mod voices;
mod wire;

pub use api::openapi;
pub use auth::Caller;
pub use config::{Cap, Gate, IssuedTokens, Limits, Rate, Serving};
pub use listen::{ServeError, Tls, serve};
pub use not_ready::serve_until_ready;
pub use problem::Problem;
pub use state::App;
pub use voices::{Choice, OfflineVoices, VoiceError, Voices};

use axum::Router;
use axum::middleware::from_fn_with_state;

/// Every path that is answered, behind the guard.
pub fn router(app: &App) -> Router {
    let (api, document) = api::router();
    api.merge(api::described(document))
        .merge(openai::router())
        .merge(mcp::router())
        .merge(store::router())
        .merge(page::router())
        .fallback(guard::not_found)
        .method_not_allowed_fallback(guard::wrong_method)
        .layer(from_fn_with_state(app.clone(), guard::guard))
        .with_state(app.clone())
}
