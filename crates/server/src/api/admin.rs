//! Admin API: tokens and users.

use std::collections::BTreeMap;

use axum::Json as JsonResponse;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use throughline::{ApiToken, NewToken, Owner, SessionFilter, Timestamp, TokenId, TokenRole};
use utoipa::ToSchema;

use crate::extract::{Json, path_param};
use crate::{App, Caller, Problem};

/// Extractor for a caller with the admin role.
pub(crate) struct Admin(Caller);

impl FromRequestParts<App> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        caller.require_admin()?;
        Ok(Self(caller))
    }
}

/// A token, without its secret text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenView {
    /// Token id.
    #[schema(value_type = String)]
    id: TokenId,
    /// The owner the token acts for.
    #[schema(value_type = String)]
    owner: Owner,
    /// `user`, `service` or `admin`.
    #[schema(value_type = String)]
    role: TokenRole,
    /// What the token is for.
    label: Option<String>,
    /// When the token was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When the token expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// When the token was revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Timestamp>,
    /// Whether the token is valid.
    good: bool,
}

impl TokenView {
    fn of(token: ApiToken, now: Timestamp) -> Self {
        Self {
            good: token.is_valid(now),
            id: token.id,
            owner: token.owner,
            role: token.role,
            label: token.label,
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
        }
    }
}

/// A list of tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokensView {
    tokens: Vec<TokenView>,
}

/// List all tokens ever created, oldest first
#[utoipa::path(get, path = "/api/admin/tokens", tag = "admin",
    responses((status = 200, body = TokensView)))]
pub(crate) async fn tokens(Admin(caller): Admin) -> Result<JsonResponse<TokensView>, Problem> {
    let now = caller.tl.now();
    let tokens = caller.tl.tokens().await?.into_iter();
    Ok(JsonResponse(TokensView {
        tokens: tokens.map(|token| TokenView::of(token, now)).collect(),
    }))
}

/// A token to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTokenBody {
    /// The owner the token acts for.
    #[schema(value_type = String, example = "alice")]
    user: Owner,
    /// The token's role.
    #[serde(default)]
    #[schema(value_type = String, example = "user")]
    role: TokenRole,
    /// What the token is for.
    label: Option<String>,
    /// When the token expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// A newly created token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeTokenView {
    /// The token's secret text, shown only once.
    token: String,
    /// The token.
    #[serde(flatten)]
    about: TokenView,
}

/// Create a token; its secret text is shown only once
#[utoipa::path(post, path = "/api/admin/tokens", tag = "admin", request_body = NewTokenBody,
    responses((status = 201, body = MadeTokenView)))]
pub(crate) async fn make(
    State(app): State<App>,
    Admin(caller): Admin,
    Json(body): Json<NewTokenBody>,
) -> Result<Response, Problem> {
    let made = caller
        .tl
        .issue_token(NewToken {
            owner: body.user,
            role: body.role,
            label: body.label,
            expires_at: body.expires_at,
        })
        .await?;
    app.invalidate_tokens();
    tracing::info!(token = %made.token.id, owner = %made.token.owner, "token created");
    let view = MadeTokenView {
        token: made.text,
        about: TokenView::of(made.token, caller.tl.now()),
    };
    Ok((StatusCode::CREATED, JsonResponse(view)).into_response())
}

/// The token id in the path.
pub(crate) struct PathTokenId(TokenId);

impl FromRequestParts<App> for PathTokenId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let text = path_param(parts, app, "token").await?;
        text.parse()
            .map(Self)
            .map_err(|error: throughline::IdError| {
                Problem::not_found("token_not_found", error.to_string())
            })
    }
}

/// Revoke a token
#[utoipa::path(delete, path = "/api/admin/tokens/{token}", tag = "admin",
    params(("token" = String, Path, description = "Token id")),
    responses((status = 200, body = TokenView)))]
pub(crate) async fn revoke(
    State(app): State<App>,
    Admin(caller): Admin,
    PathTokenId(id): PathTokenId,
) -> Result<JsonResponse<TokenView>, Problem> {
    let token = caller.tl.revoke_token(&id).await?;
    app.invalidate_tokens();
    tracing::info!(token = %token.id, owner = %token.owner, "token revoked");
    Ok(JsonResponse(TokenView::of(token, caller.tl.now())))
}

/// A user who has sessions or a token on this server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserView {
    /// The user's name.
    #[schema(value_type = String)]
    owner: Owner,
    /// Number of sessions, not counting the trash.
    sessions: u64,
    /// Number of valid tokens.
    tokens: u64,
}

/// A list of users.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsersView {
    users: Vec<UserView>,
}

/// List users who have sessions or tokens, with counts but no content
#[utoipa::path(get, path = "/api/admin/users", tag = "admin",
    responses((status = 200, body = UsersView)))]
pub(crate) async fn users(Admin(caller): Admin) -> Result<JsonResponse<UsersView>, Problem> {
    let now = caller.tl.now();
    let mut users: BTreeMap<Owner, UserView> = BTreeMap::new();
    let new = |owner: &Owner| UserView {
        owner: owner.clone(),
        sessions: 0,
        tokens: 0,
    };
    for owner in caller.tl.store().owners().await? {
        let sessions = caller
            .tl
            .store()
            .count(&owner, &SessionFilter::default())
            .await?;
        let view = UserView {
            sessions,
            ..new(&owner)
        };
        users.insert(owner, view);
    }
    for token in caller.tl.tokens().await? {
        let user = users
            .entry(token.owner.clone())
            .or_insert_with(|| new(&token.owner));
        user.tokens += u64::from(token.is_valid(now));
    }
    Ok(JsonResponse(UsersView {
        users: users.into_values().collect(),
    }))
}
