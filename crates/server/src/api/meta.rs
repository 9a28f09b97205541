//! Endpoints about the server itself: health, readiness, metrics, models and the caller's identity.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use throughline::TokenRole;
use utoipa::ToSchema;

use crate::{App, Caller, Problem};

/// Server status.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The server's version.
    version: &'static str,
}

const HEALTHY: Health = Health {
    status: "ok",
    version: env!("CARGO_PKG_VERSION"),
};

/// Check whether the server is running
#[utoipa::path(get, path = "/health", tag = "server", responses((status = 200, body = Health)))]
pub(crate) async fn health() -> Json<Health> {
    Json(HEALTHY)
}

/// Check whether the store is available
#[utoipa::path(get, path = "/ready", tag = "server", responses((status = 200, body = Health)))]
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Health>, Problem> {
    app.config.tl.store().last_position().await?;
    Ok(Json(HEALTHY))
}

/// Get metrics in the OpenMetrics format, for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
pub(crate) async fn metrics(State(app): State<App>, caller: Caller) -> Result<Response, Problem> {
    caller.require_admin()?;
    let text = app.metrics.to_openmetrics().map_err(|_| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "no_metrics",
            "cannot encode the metrics",
        )
    })?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// Models and agents that may be chosen for a turn.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VoicesView {
    /// The models, the default first; `offline` needs no provider.
    models: Vec<String>,
    /// The agents.
    agents: Vec<String>,
}

/// List the models and agents that may be chosen for a turn
#[utoipa::path(get, path = "/api/voices", tag = "turns",
    responses((status = 200, body = VoicesView)))]
pub(crate) async fn voices(State(app): State<App>, _: Caller) -> Json<VoicesView> {
    Json(VoicesView {
        models: app.config.responders.models(),
        agents: app.config.responders.agents(),
    })
}

/// The caller's identity.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Whoami {
    /// The owner the caller acts for.
    owner: String,
    /// The caller's role: `user`, `service` or `admin`.
    #[schema(value_type = String)]
    role: TokenRole,
    /// The token's id; absent if no token is required.
    token: Option<String>,
    /// The default model; absent for the offline agent.
    model: Option<String>,
}

/// Get the caller's identity
#[utoipa::path(get, path = "/api/whoami", tag = "server", responses((status = 200, body = Whoami)))]
pub(crate) async fn whoami(State(app): State<App>, caller: Caller) -> Json<Whoami> {
    Json(Whoami {
        owner: caller.owner().to_string(),
        role: caller.role,
        token: caller.token.as_ref().map(ToString::to_string),
        model: app.config.responders.default_model(),
    })
}
