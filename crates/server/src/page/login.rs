//! Login with a token, and logout.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::bare_page;
use super::page_format::local_path;
use super::visitor::{PageError, read_form};
use crate::auth::TOKEN_COOKIE;
use crate::client_address::Client;
use crate::extract::Query;
use crate::{App, Problem};

/// Lifetime of the cookie: thirty days.
const COOKIE_MAX_AGE: u64 = 30 * 24 * 60 * 60;
/// Maximum size of the login form, which anyone may send.
const MAX_LOGIN_BYTES: usize = 4_096;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct LoginQuery {
    next: Option<String>,
}

fn login_form(next: &str, why: Option<&str>) -> Markup {
    html! {
        div.narrow {
            h1 { "Log in" }
            p { "Enter your access token. The administrator of this server can create one with "
                code { "tl token create --user NAME" } "." }
            @if let Some(why) = why { p.flash.bad role="alert" { (why) } }
            form.stack method="post" action="/login" {
                input type="hidden" name="next" value=(next);
                label for="token" { "Token" }
                input id="token" name="token" type="password" required autofocus autocomplete="current-password" placeholder="tl_…";
                button.primary type="submit" { "Log in" }
            }
        }
    }
}

pub(super) async fn page(
    State(app): State<App>,
    Query(query): Query<LoginQuery>,
) -> Result<Response, PageError> {
    let next = local_path(query.next.as_deref());
    if app.is_open().await? {
        return Ok(Redirect::to(next).into_response());
    }
    Ok(bare_page(StatusCode::OK, "Log in", &login_form(next, None)))
}

#[derive(Deserialize)]
pub(super) struct LoginForm {
    token: String,
    next: Option<String>,
}

/// Logs the visitor in, or makes their address wait after several failures.
pub(super) async fn log_in(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    request: Request,
) -> Result<Response, Response> {
    let address = client.rate_limit_address();
    app.login_backoff.check(address).map_err(|seconds| {
        let problem = Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_logins",
            format!("too many failed logins; try again in {seconds} s"),
        );
        let mut response = PageError(problem).into_response();
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        response
    })?;
    let form: LoginForm = read_form(request, &app, MAX_LOGIN_BYTES).await?;
    let outcome = check_login(&app, &client, &form).await;
    outcome.map_err(IntoResponse::into_response)
}

async fn check_login(app: &App, client: &Client, form: &LoginForm) -> Result<Response, PageError> {
    let next = local_path(form.next.as_deref());
    let text = form.token.trim();
    let now = app.config.tl.now();
    let good = match app.config.tl.token(text).await? {
        Some(token) => token.is_valid(now),
        None => false,
    };
    // Only a well-formed token may go into a header.
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if !good || !plain {
        app.login_backoff
            .record_failure(client.rate_limit_address());
        let why = "The token is unknown, expired or revoked.";
        return Ok(bare_page(
            StatusCode::UNAUTHORIZED,
            "Log in",
            &login_form(next, Some(why)),
        ));
    }
    app.login_backoff
        .record_success(client.rate_limit_address());
    redirect_with_cookie(app, client, text, COOKIE_MAX_AGE, next)
}

pub(super) async fn log_out(
    State(app): State<App>,
    Extension(client): Extension<Client>,
) -> Result<Response, PageError> {
    redirect_with_cookie(&app, &client, "", 0, "/login")
}

fn redirect_with_cookie(
    app: &App,
    client: &Client,
    value: &str,
    seconds: u64,
    next: &str,
) -> Result<Response, PageError> {
    let secure = if app.config.secure || client.claims_https {
        "; Secure"
    } else {
        ""
    };
    let cookie = format!(
        "{TOKEN_COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    );
    let cookie = HeaderValue::from_str(&cookie)
        .map_err(|_| Problem::bad_request("bad_token", "not a token: tokens begin with tl_"))?;
    let mut response = Redirect::to(next).into_response();
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}
