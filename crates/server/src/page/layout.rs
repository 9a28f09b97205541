//! The common layout of all pages: header, navigation, security headers, error pages.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use super::asset;
use super::page_format::session_title;
use super::visitor::{Visitor, VisitorSession};
use crate::Problem;

/// Content security policy: only resources of this server, and nothing inline.
const PAGE_CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// The active navigation item.
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

/// Renders a complete page.
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
                    span.muted title="Logged in as" { (visitor.caller.owner()) }
                    form method="post" action="/logout" { button.plain type="submit" { "Log out" } }
                }
                @if visitor.caller.token.is_none() {
                    span.muted title="Anyone who can reach this server has full access. Create a token with `tl token create` to require one." { "Open: no token required" }
                }
                button.plain type="button" data-theme-switch aria-label="Switch theme" hidden { "◐" }
            }
        }
    };
    render_document(StatusCode::OK, title, scripts, &top, main)
}

/// Renders a complete page about a session.
pub(super) fn session_page(opened: &VisitorSession, what: &str, main: &Markup) -> Response {
    let title = format!("{what} of {}", session_title(&opened.record.info));
    page(&opened.visitor, NavItem::Sessions, &title, &[], main)
}

/// Renders a page without navigation, for visitors who are not logged in and for errors.
pub(super) fn bare_page(status: StatusCode, title: &str, main: &Markup) -> Response {
    let top = html! {
        header.top { a.brand href="/" { (logo()) span { "Throughline" } } }
    };
    render_document(status, title, &[], &top, main)
}

/// Renders an error page.
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
                // Loaded before anything is drawn, so that the page does not flash in the wrong
                // theme.
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

/// Returns an HTML fragment, for a script to insert.
pub(super) fn fragment(markup: &Markup) -> Response {
    html_response(StatusCode::OK, markup)
}

fn html_response(status: StatusCode, markup: &Markup) -> Response {
    let mut response = (status, markup.0.clone()).into_response();
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, PAGE_CSP),
        // With `no-referrer`, a browser would send no origin with forms either.
        (header::REFERRER_POLICY, "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The logo: a thread through the eye of a needle.
fn logo() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" {
            path d="M3 17c4 0 4-10 9-10s5 10 9 10" fill="none" stroke="currentColor" stroke-width="2.4" stroke-linecap="round" {}
            circle cx="12" cy="7" r="2.6" fill="currentColor" {}
        }
    }
}

/// The message shown after an action.
pub(super) fn flash_message(code: Option<&str>) -> Markup {
    let text = match code {
        Some("compacted") => {
            "Compacted: earlier messages are summarized for the model and remain readable here."
        }
        Some("not_needed") => "There is nothing to compact yet.",
        Some("not_worth_it") => "Not compacted: a summary would not be shorter.",
        Some("overtaken") => "Not compacted: another compaction finished first.",
        Some("undone") => "Undid the last compaction.",
        Some("cleared") => "Context cleared: the model no longer sees earlier messages.",
        Some("archived") => "Archived.",
        Some("unarchived") => "Unarchived.",
        Some("trashed") => "Moved to the trash. It can be restored from there.",
        Some("restored") => "Restored.",
        Some("removed") => "Deleted permanently.",
        Some("renamed") => "Renamed.",
        Some("tagged") => "Tags updated.",
        Some("pinned") => "Pinned: part of every request.",
        Some("unpinned") => "Unpinned.",
        Some("forked") => "This is the new fork. It shares all earlier messages with its origin.",
        Some("merged") => "Merged.",
        Some("up_to_date") => "Nothing to merge.",
        Some("rewound") => "Rewound: the model no longer sees the later messages.",
        Some("remembered") => "Remembered.",
        Some("known") => "This fact was already remembered.",
        Some("forgotten") => "Forgotten.",
        Some("accepted") => "Accepted.",
        Some("revoked") => "Token revoked.",
        _ => return html! {},
    };
    html! { p.flash role="status" { (text) } }
}
