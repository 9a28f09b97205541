//! What every page has around what it shows.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use super::asset;
use super::page_format::session_title;
use super::visitor::{Visitor, VisitorSession};
use crate::Problem;

/// Only what this server serves is run, shown or talked to, and nothing within a page.
const PAGE_CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// Which part of the page one is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NavItem {
    Sessions,
    Search,
    Memory,
    Events,
    Trash,
    Admin,
}

const NAV_ITEMS: [(NavItem, &str, &str); 6] = [
    (NavItem::Sessions, "/", "Sessions"),
    (NavItem::Search, "/search", "Search"),
    (NavItem::Memory, "/memory", "Memory"),
    (NavItem::Events, "/events", "Events"),
    (NavItem::Trash, "/trash", "Trash"),
    (NavItem::Admin, "/admin", "Admin"),
];

/// A whole page.
pub(super) fn page(
    visitor: &Visitor,
    place: NavItem,
    title: &str,
    scripts: &[&str],
    main: &Markup,
) -> Response {
    let shown = |known: &(NavItem, &str, &str)| known.0 != NavItem::Admin || visitor.is_admin();
    let top = html! {
        header.top {
            a.brand href="/" { (logo()) span { "Throughline" } }
            nav aria-label="Main" {
                @for (known, path, name) in NAV_ITEMS.iter().filter(|known| shown(known)) {
                    a href=(path) aria-current=[(*known == place).then_some("page")] { (name) }
                }
            }
            div.who-am-i {
                @if visitor.is_logged_in() {
                    span.muted title="Whose sessions these are" { (visitor.caller.owner()) }
                    form method="post" action="/logout" { button.plain type="submit" { "Log out" } }
                }
                @if visitor.caller.token.is_none() {
                    span.muted title="Whoever reaches this server has full access. `tl token create` makes a token, which is required from then on." { "Open: no token required" }
                }
                button.plain type="button" data-theme-switch aria-label="Light or dark" hidden { "◐" }
            }
        }
    };
    render_document(StatusCode::OK, title, scripts, &top, main)
}

/// A whole page about a session.
pub(super) fn session_page(opened: &VisitorSession, what: &str, main: &Markup) -> Response {
    let title = format!("{what} of {}", session_title(&opened.record.info));
    page(&opened.visitor, NavItem::Sessions, &title, &[], main)
}

/// A page for somebody who is nobody yet, or where something went wrong.
pub(super) fn bare_page(status: StatusCode, title: &str, main: &Markup) -> Response {
    let top = html! {
        header.top { a.brand href="/" { (logo()) span { "Throughline" } } }
    };
    render_document(status, title, &[], &top, main)
}

/// What went wrong, as a page.
pub(crate) fn error_page(problem: &Problem) -> Response {
    let main = html! {
        div.narrow.empty {
            h1 { (problem.title) }
            p { (problem.detail) }
            p.muted { (problem.status.as_u16()) " · " code { (problem.code) } }
            p { a href="/" { "All sessions" } }
        }
    };
    bare_page(problem.status, problem.title, &main)
}

fn render_document(
    status: StatusCode,
    title: &str,
    scripts: &[&str],
    top: &Markup,
    main: &Markup,
) -> Response {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Throughline" }
                link rel="icon" href=(asset::url("icon.svg"));
                link rel="stylesheet" href=(asset::url("style.css"));
                // Before anything is drawn, so that nothing flashes in the wrong light.
                script src=(asset::url("theme.js")) {}
                script defer src=(asset::url("base.js")) {}
                @for script in scripts {
                    script defer src=(asset::url(script)) {}
                }
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (top)
                main id="main" tabindex="-1" { (main) }
                div id="notice" role="status" aria-live="polite" {}
            }
        }
    };
    html_response(status, &markup)
}

/// A part of a page, for a script to put in place.
pub(super) fn fragment(markup: &Markup) -> Response {
    html_response(StatusCode::OK, markup)
}

fn html_response(status: StatusCode, markup: &Markup) -> Response {
    let mut response = (status, markup.0.clone()).into_response();
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, PAGE_CSP),
        // Without a referrer a browser would not say where a form comes from, either.
        (header::REFERRER_POLICY, "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A thread through a needle's eye, more or less.
fn logo() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" {
            path d="M3 17c4 0 4-10 9-10s5 10 9 10" fill="none" stroke="currentColor" stroke-width="2.4" stroke-linecap="round" {}
            circle cx="12" cy="7" r="2.6" fill="currentColor" {}
        }
    }
}

/// What is said after something was done.
pub(super) fn flash_message(code: Option<&str>) -> Markup {
    let text = match code {
        Some("compacted") => "Compacted: what came before is summarized, and still here to read.",
        Some("not_needed") => "There is nothing to summarize yet.",
        Some("not_worth_it") => "Too little was said: a summary would be no shorter.",
        Some("overtaken") => "Somebody else was first; theirs stands.",
        Some("undone") => "The last summary was taken back.",
        Some("cleared") => "A new start: the model no longer sees what came before.",
        Some("archived") => "Archived.",
        Some("unarchived") => "Taken up again.",
        Some("trashed") => "Moved to the trash. It can be restored from there.",
        Some("restored") => "Restored.",
        Some("removed") => "Removed for good.",
        Some("renamed") => "Renamed.",
        Some("tagged") => "Tags changed.",
        Some("pinned") => "Pinned: always in view.",
        Some("unpinned") => "The pin was taken back.",
        Some("forked") => "This is the fork. Both share what came before it.",
        Some("merged") => "Merged.",
        Some("up_to_date") => "There was nothing to merge.",
        Some("rewound") => "Went back: the model no longer sees what came after.",
        Some("remembered") => "Remembered.",
        Some("known") => "That was known already.",
        Some("forgotten") => "Forgotten.",
        Some("accepted") => "Accepted.",
        Some("revoked") => "The token was taken back.",
        _ => return html! {},
    };
    html! { p.said role="status" { (text) } }
}
