//! What was thrown away, and can still be had back.

use axum::response::Response;
use maud::html;
use serde::Deserialize;
use throughline::format::pluralize;

use super::layout::{self, NavItem, flash_message};
use super::page_format::{relative_time_phrase, session_path, session_title};
use super::visitor::{PageError, Visitor};
use crate::extract::Query;

/// Sessions shown, at most.
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
    // What was thrown away last is looked for most.
    trashed.reverse();
    let (now, zone) = (visitor.caller.tl.now(), &visitor.app.config.time_zone);
    let main = html! {
        (flash_message(query.said.as_deref()))
        div.head { h1 { "Trash" } span.muted { (pluralize(trashed.len() as u64, "session")) } }
        @if trashed.is_empty() {
            div.empty { p.big { "The trash is empty" } p { "What is deleted waits here until it is restored or purged." } }
        }
        ul.things {
            @for gone in trashed.iter().take(MAX_SHOWN) {
                li {
                    div { b { (session_title(&gone.info)) } div.muted { (pluralize(gone.info.messages, "message")) " · deleted " (relative_time_phrase(gone.at, now, zone)) } }
                    form method="post" action={ (session_path(&gone.info.id)) "/restore" } { button type="submit" { "Restore" } }
                    details.menu {
                        summary { "Remove…" }
                        form method="post" action={ (session_path(&gone.info.id)) "/remove" } {
                            p { "It cannot be had back after this." }
                            button.danger type="submit" { "Remove for good" }
                        }
                    }
                }
            }
        }
        @if trashed.len() > MAX_SHOWN { p.muted { "Only the latest " (MAX_SHOWN) " are shown." } }
    };
    Ok(layout::page(&visitor, NavItem::Trash, "Trash", &[], &main))
}
