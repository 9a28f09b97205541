//! Coming in with a token, and leaving.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::bare;
use super::visitor::{Fault, Form};
use super::words::local;
use crate::App;
use crate::auth::COOKIE;
use crate::extract::Query;

/// How long a browser keeps the token: thirty days.
const KEPT: u64 = 30 * 24 * 60 * 60;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct LoginQuery {
    next: Option<String>,
}

fn form(next: &str, why: Option<&str>) -> Markup {
    html! {
        div.narrow {
            h1 { "Log in" }
            p { "Your token says whose sessions you see. Whoever runs this server makes one with "
                code { "tl token create --user NAME" } "." }
            @if let Some(why) = why { p.said.bad role="alert" { (why) } }
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
) -> Result<Response, Fault> {
    let next = local(query.next.as_deref());
    if app.is_open().await? {
        return Ok(Redirect::to(next).into_response());
    }
    Ok(bare(StatusCode::OK, "Log in", &form(next, None)))
}

#[derive(Deserialize)]
pub(super) struct Entering {
    token: String,
    next: Option<String>,
}

pub(super) async fn enter(
    State(app): State<App>,
    Form(entering): Form<Entering>,
) -> Result<Response, Fault> {
    let next = local(entering.next.as_deref());
    let text = entering.token.trim();
    let now = app.serving.tl.now();
    let good = match app.serving.tl.token(text).await? {
        Some(token) => token.is_good(now),
        None => false,
    };
    // Nothing but a token goes into a header.
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if !good || !plain {
        let why = "That token is not known here, has ended or was taken back.";
        return Ok(bare(
            StatusCode::UNAUTHORIZED,
            "Log in",
            &form(next, Some(why)),
        ));
    }
    with_cookie(&app, text, KEPT, next)
}

pub(super) async fn leave(State(app): State<App>) -> Result<Response, Fault> {
    with_cookie(&app, "", 0, "/login")
}

fn with_cookie(app: &App, value: &str, seconds: u64, next: &str) -> Result<Response, Fault> {
    let secure = if app.serving.secure { "; Secure" } else { "" };
    let cookie =
        format!("{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| {
        crate::Problem::bad_request("bad_token", "that is no token: it begins with tl_")
    })?;
    let mut response = Redirect::to(next).into_response();
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}
