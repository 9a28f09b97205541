//! Trash page: deleted sessions that can still be restored.

use axum::response::Response;
use maud::html;
use serde::Deserialize;
use throughline::format::pluralize;

use super::layout::{self, NavItem, flash_message};
use super::page_format::{relative_time_phrase, session_path, session_title};
use super::visitor::{PageError, Visitor};
use crate::extract::Query;

/// Maximum number of sessions shown.
const MAX_SHOWN: usize = 200;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct TrashQuery {
    said: Option<String>,
}

pub(super) async fn page(
    visitor: Visitor,
    Query(query): Query<TrashQuery>,
) -> Result<Response, PageError> {
    let mut trashed = visitor.caller.tl.list_trashed().await?;
    // Latest deleted first.
    trashed.reverse();
    let (now, zone) = (visitor.caller.tl.now(), &visitor.app.config.time_zone);
    let main = html! {
        (flash_message(query.said.as_deref()))
        div.head { h1 { "Trash" } span.muted { (pluralize(trashed.len() as u64, "session")) } }
        @if trashed.is_empty() {
            div.empty { p.big { "The trash is empty" } p { "Deleted sessions stay here until you restore or permanently delete them." } }
        }
        ul.things {
            @for trashed_session in trashed.iter().take(MAX_SHOWN) {
                li {
                    div { b { (session_title(&trashed_session.info)) } div.muted { (pluralize(trashed_session.info.messages, "message")) " · deleted " (relative_time_phrase(trashed_session.at, now, zone)) } }
                    form method="post" action={ (session_path(&trashed_session.info.id)) "/restore" } { button type="submit" { "Restore" } }
                    details.menu {
                        summary { "Delete…" }
                        form method="post" action={ (session_path(&trashed_session.info.id)) "/remove" } {
                            p { "This cannot be undone." }
                            button.danger type="submit" { "Delete permanently" }
                        }
                    }
                }
            }
        }
        @if trashed.len() > MAX_SHOWN { p.muted { "Only the latest " (MAX_SHOWN) " are shown." } }
    };
    Ok(layout::page(&visitor, NavItem::Trash, "Trash", &[], &main))
}
