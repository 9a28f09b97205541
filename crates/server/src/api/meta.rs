//! The server itself: whether it works, whom it takes the caller for, what it measured.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use throughline::TokenRole;
use utoipa::ToSchema;

use crate::{App, Caller, Problem};

/// Whether the server works.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    status: &'static str,
    /// Of which version it is.
    version: &'static str,
}

const HEALTHY: Health = Health {
    status: "ok",
    version: env!("CARGO_PKG_VERSION"),
};

/// Whether the server is alive
#[utoipa::path(get, path = "/health", tag = "server", responses((status = 200, body = Health)))]
pub(crate) async fn health() -> Json<Health> {
    Json(HEALTHY)
}

/// Whether the store answers
#[utoipa::path(get, path = "/ready", tag = "server", responses((status = 200, body = Health)))]
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Health>, Problem> {
    app.config.tl.store().last_position().await?;
    Ok(Json(HEALTHY))
}

/// What was measured, for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
pub(crate) async fn metrics(State(app): State<App>, caller: Caller) -> Result<Response, Problem> {
    caller.require_admin()?;
    let text = app.metrics.to_openmetrics().map_err(|_| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "no_metrics",
            "what was measured cannot be written",
        )
    })?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// Who may be chosen to answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VoicesView {
    /// The models, the usual one first; `offline` needs none.
    models: Vec<String>,
    /// The agents.
    agents: Vec<String>,
}

/// Who may be chosen to answer a turn
#[utoipa::path(get, path = "/api/voices", tag = "turns",
    responses((status = 200, body = VoicesView)))]
pub(crate) async fn voices(State(app): State<App>, _: Caller) -> Json<VoicesView> {
    Json(VoicesView {
        models: app.config.responders.models(),
        agents: app.config.responders.agents(),
    })
}

/// Whom the server takes the caller for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Whoami {
    /// On whose behalf the caller calls.
    owner: String,
    /// What the caller may do: `user`, `service` or `admin`.
    #[schema(value_type = String)]
    role: TokenRole,
    /// The id of the token; none where none is needed.
    token: Option<String>,
    /// Who answers where a session says nothing of it; none for the offline agent.
    model: Option<String>,
}

/// Whom the server takes the caller for
#[utoipa::path(get, path = "/api/whoami", tag = "server", responses((status = 200, body = Whoami)))]
pub(crate) async fn whoami(State(app): State<App>, caller: Caller) -> Json<Whoami> {
    Json(Whoami {
        owner: caller.owner().to_string(),
        role: caller.role,
        token: caller.token.as_ref().map(ToString::to_string),
        model: app.config.responders.default_model(),
    })
}
