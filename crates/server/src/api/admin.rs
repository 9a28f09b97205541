//! Tokens and users, for an admin.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use throughline::{ApiToken, NewToken, Owner, SessionFilter, Timestamp, TokenId, TokenRole};
use utoipa::ToSchema;

use crate::extract::{Json, path_param};
use crate::{App, Caller, Problem};

/// Whoever may do this.
pub(crate) struct Admin(Caller);

impl FromRequestParts<App> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        caller.require_admin()?;
        Ok(Self(caller))
    }
}

/// What is known of a token. Its text is not.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenView {
    /// What it is called by.
    #[schema(value_type = String)]
    id: TokenId,
    /// On whose behalf it calls.
    #[schema(value_type = String)]
    owner: Owner,
    /// `user`, `service` or `admin`.
    #[schema(value_type = String)]
    role: TokenRole,
    /// What it is for.
    label: Option<String>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it ends by itself.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// When it was taken back.
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Timestamp>,
    /// Whether it still counts.
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

/// Tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokensView {
    tokens: Vec<TokenView>,
}

/// Every token there ever was, oldest first
#[utoipa::path(get, path = "/api/admin/tokens", tag = "admin",
    responses((status = 200, body = TokensView)))]
pub(crate) async fn tokens(Admin(caller): Admin) -> Result<Answer<TokensView>, Problem> {
    let now = caller.tl.now();
    let tokens = caller.tl.tokens().await?.into_iter();
    Ok(Answer(TokensView {
        tokens: tokens.map(|token| TokenView::of(token, now)).collect(),
    }))
}

/// A token to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTokenBody {
    /// On whose behalf it will call.
    #[schema(value_type = String, example = "alice")]
    user: Owner,
    /// What it may do.
    #[serde(default)]
    #[schema(value_type = String, example = "user")]
    role: TokenRole,
    /// What it is for.
    label: Option<String>,
    /// When it ends by itself.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// A token that was just made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeTokenView {
    /// Its text, shown this once.
    token: String,
    /// What is known of it.
    #[serde(flatten)]
    about: TokenView,
}

/// Make a token; its text is shown this once
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
    tracing::info!(token = %made.token.id, owner = %made.token.owner, "a token was made");
    let view = MadeTokenView {
        token: made.text,
        about: TokenView::of(made.token, caller.tl.now()),
    };
    Ok((StatusCode::CREATED, Answer(view)).into_response())
}

/// The id of a token in the path.
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

/// Take a token back
#[utoipa::path(delete, path = "/api/admin/tokens/{token}", tag = "admin",
    params(("token" = String, Path, description = "Its id")),
    responses((status = 200, body = TokenView)))]
pub(crate) async fn revoke(
    State(app): State<App>,
    Admin(caller): Admin,
    PathTokenId(id): PathTokenId,
) -> Result<Answer<TokenView>, Problem> {
    let token = caller.tl.revoke_token(&id).await?;
    app.invalidate_tokens();
    tracing::info!(token = %token.id, owner = %token.owner, "a token was taken back");
    Ok(Answer(TokenView::of(token, caller.tl.now())))
}

/// Somebody who has sessions or a token here.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserView {
    /// Their name.
    #[schema(value_type = String)]
    owner: Owner,
    /// How many sessions they have in use.
    sessions: u64,
    /// How many tokens of theirs count.
    tokens: u64,
}

/// Users.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsersView {
    users: Vec<UserView>,
}

/// Everybody who has sessions or a token here, and how many; not what they say
#[utoipa::path(get, path = "/api/admin/users", tag = "admin",
    responses((status = 200, body = UsersView)))]
pub(crate) async fn users(Admin(caller): Admin) -> Result<Answer<UsersView>, Problem> {
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
    Ok(Answer(UsersView {
        users: users.into_values().collect(),
    }))
}
