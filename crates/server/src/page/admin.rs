//! Admin page: tokens and users.

use std::collections::BTreeMap;

use axum::response::{IntoResponse, Redirect, Response};
use jiff::SignedDuration;
use maud::{Markup, html};
use serde::Deserialize;
use throughline::format::{format_thousands, pluralize};
use throughline::{ApiToken, NewToken, Owner, SessionFilter, TokenId, TokenRole};

use super::layout::{self, NavItem, flash_message};
use super::page_format::relative_time_phrase;
use super::visitor::{Form, PageError, Visitor};
use crate::Problem;
use crate::extract::Query;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct AdminQuery {
    said: Option<String>,
}

pub(super) async fn page(
    visitor: Visitor,
    Query(query): Query<AdminQuery>,
) -> Result<Response, PageError> {
    render_page(&visitor, &html! { (flash_message(query.said.as_deref())) }).await
}

async fn render_page(visitor: &Visitor, first: &Markup) -> Result<Response, PageError> {
    visitor.caller.require_admin()?;
    let tokens = visitor.caller.tl.tokens().await?;
    let now = visitor.caller.tl.now();
    let mut users: BTreeMap<Owner, (usize, u64)> = BTreeMap::new();
    users.entry(visitor.caller.owner().clone()).or_default();
    for token in &tokens {
        let user = users.entry(token.owner.clone()).or_default();
        user.0 += usize::from(token.is_valid(now));
    }
    for (owner, user) in &mut users {
        let tl = visitor.caller.tl.on_behalf_of(owner.clone());
        user.1 = tl.count(&SessionFilter::default()).await?;
    }
    let main = html! {
        (first)
        div.head { h1 { "Tokens and users" } }
        form.card.stack method="post" action="/admin" {
            h2 { "New token" }
            div.inline {
                div { label for="user" { "User" } input id="user" name="user" required maxlength="120" placeholder="alice"; }
                div { label for="role" { "Role" } select id="role" name="role" {
                    option value="user" { "user" } option value="service" { "service" } option value="admin" { "admin" }
                } }
                div { label for="days" { "Expires after" } select id="days" name="days" {
                    option value="" { "never" } option value="7" { "7 days" } option value="30" { "30 days" } option value="365" { "1 year" }
                } }
                div { label for="label" { "Label" } input id="label" name="label" maxlength="120"; }
                button.primary name="act" value="make" type="submit" { "Create token" }
            }
            @if visitor.caller.token.is_none() {
                p.muted { "Once a token exists, everyone needs one, including you. Create an admin token for yourself first." }
            }
        }
        section.card {
            h2 { "Users" }
            table {
                thead { tr { th { "User" } th.number { "Valid tokens" } th.number { "Sessions" } } }
                tbody { @for (owner, (good, sessions)) in &users {
                    tr { td { (owner) } td.number { (good) } td.number { (format_thousands(*sessions)) } }
                } }
            }
        }
        section.card {
            h2 { "Tokens" }
            @if tokens.is_empty() { p.muted { "None. Anyone on this machine can access the server." } }
            @else { table {
                thead { tr { th { "ID" } th { "User" } th { "Role" } th { "Label" } th { "Created" } th { "Status" } th {} } }
                tbody { @for token in tokens.iter().rev() { (token_row(visitor, token)) } }
            } }
        }
    };
    Ok(layout::page(
        visitor,
        NavItem::Admin,
        "Tokens and users",
        &[],
        &main,
    ))
}

fn token_row(visitor: &Visitor, token: &ApiToken) -> Markup {
    let (now, zone) = (visitor.caller.tl.now(), &visitor.app.config.time_zone);
    html! {
        tr {
            td { code { (token.id) } }
            td { (token.owner) }
            td { (token.role) }
            td { (token.label.as_deref().unwrap_or_default()) }
            td { (relative_time_phrase(token.created_at, now, zone)) }
            td { @match (token.revoked_at, token.expires_at) {
                (Some(at), _) => { "revoked " (relative_time_phrase(at, now, zone)) },
                (None, Some(end)) if end <= now => "expired",
                (None, Some(end)) => { "expires in " (pluralize(u64::try_from(end.duration_since(now).as_hours() / 24).unwrap_or(0), "day")) },
                (None, None) => "valid",
            } }
            td { @if token.is_valid(now) {
                form method="post" action="/admin" {
                    input type="hidden" name="token" value=(token.id);
                    button.plain name="act" value="revoke" type="submit" aria-label={ "Revoke token " (token.id) } { "Revoke" }
                }
            } }
        }
    }
}

#[derive(Deserialize)]
pub(super) struct TokenForm {
    act: String,
    #[serde(default)]
    user: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    days: String,
    #[serde(default)]
    label: String,
    #[serde(default)]
    token: String,
}

pub(super) async fn change_tokens(
    visitor: Visitor,
    Form(change): Form<TokenForm>,
) -> Result<Response, PageError> {
    visitor.caller.require_admin()?;
    let tl = &visitor.caller.tl;
    match change.act.as_str() {
        "make" => {
            let made = tl.issue_token(change.to_new_token(tl.now())?).await?;
            visitor.app.invalidate_tokens();
            let first = html! {
                div.flash role="status" {
                    p { "Created a token for " b { (made.token.owner) } ". Copy it now; it is not shown again:" }
                    p { code id="made" { (made.text) } " " button type="button" data-copy="#made" hidden { "Copy" } }
                }
            };
            render_page(&visitor, &first).await
        }
        "revoke" => {
            let id: TokenId = change.token.parse().map_err(throughline::Error::from)?;
            tl.revoke_token(&id).await?;
            visitor.app.invalidate_tokens();
            Ok(Redirect::to("/admin?said=revoked").into_response())
        }
        other => {
            let why = format!("unknown action {other:?}; use make or revoke");
            Err(Problem::bad_request("bad_form", why).into())
        }
    }
}

impl TokenForm {
    fn to_new_token(&self, now: throughline::Timestamp) -> Result<NewToken, Problem> {
        let owner: Owner = self.user.trim().parse().map_err(throughline::Error::from)?;
        let role: TokenRole = self.role.parse().map_err(Problem::invalid)?;
        let expires_at = match self.days.as_str() {
            "" => None,
            days => {
                let wrong = |_| Problem::invalid(format!("{days:?} is not a number of days"));
                let days: i64 = days.parse::<u16>().map_err(wrong)?.into();
                let end = now.checked_add(SignedDuration::from_hours(24 * days));
                Some(end.map_err(|error| Problem::invalid(error.to_string()))?)
            }
        };
        let label = Some(self.label.trim().to_owned()).filter(|label| !label.is_empty());
        Ok(NewToken {
            owner,
            role,
            label,
            expires_at,
        })
    }
}
