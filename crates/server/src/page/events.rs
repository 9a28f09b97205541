//! Events page: live events of all sessions.

use axum::response::Response;
use maud::html;
use serde::Deserialize;

use super::layout::{self, NavItem};
use super::visitor::{PageError, Visitor};
use crate::extract::Query;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct EventsQuery {
    #[serde(default)]
    session: String,
}

pub(super) async fn page(
    visitor: Visitor,
    Query(query): Query<EventsQuery>,
) -> Result<Response, PageError> {
    let main = html! {
        div.head {
            h1 { "Events" }
            @if !query.session.is_empty() {
                span.muted { "of " (query.session) } a href="/events" { "All" }
            }
            span id="state" role="status" {}
            button type="button" id="pause" { "Pause" }
        }
        noscript { p.muted { "Live events require JavaScript. Programs can read them at " code { "/api/events" } "." } }
        div.toolbar {
            label.visually-hidden for="filter" { "Filter events" }
            input id="filter" type="search" placeholder="Filter events   /" data-search;
        }
        table.log id="events" data-session=(query.session) {
            thead { tr { th { "Time" } th { "Event" } th { "Session" } th { "Details" } } }
            tbody aria-live="off" {}
        }
        p.muted id="waiting" { "Waiting for events." }
    };
    Ok(layout::page(
        &visitor,
        NavItem::Events,
        "Events",
        &["live.js", "events.js"],
        &main,
    ))
}
