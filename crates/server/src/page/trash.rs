//! What was thrown away, and can still be had back.

use axum::response::Response;
use maud::html;
use serde::Deserialize;
use throughline::glance::counted;

use super::layout::{self, Place, said};
use super::visitor::{Fault, Visitor};
use super::words::{place, since, title};
use crate::extract::Query;

/// Sessions shown, at most.
const SHOWN: usize = 200;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct TrashQuery {
    said: Option<String>,
}

pub(super) async fn page(
    visitor: Visitor,
    Query(query): Query<TrashQuery>,
) -> Result<Response, Fault> {
    let mut trashed = visitor.caller.tl.trashed().await?;
    // What was thrown away last is looked for most.
    trashed.reverse();
    let (now, zone) = (visitor.caller.tl.now(), &visitor.app.serving.zone);
    let main = html! {
        (said(query.said.as_deref()))
        div.head { h1 { "Trash" } span.muted { (counted(trashed.len() as u64, "session")) } }
        @if trashed.is_empty() {
            div.empty { p.big { "The trash is empty" } p { "What is deleted waits here until it is restored or purged." } }
        }
        ul.things {
            @for gone in trashed.iter().take(SHOWN) {
                li {
                    div { b { (title(&gone.card)) } div.muted { (counted(gone.card.messages, "message")) " · deleted " (since(gone.at, now, zone)) } }
                    form method="post" action={ (place(&gone.card.id)) "/restore" } { button type="submit" { "Restore" } }
                    details.menu {
                        summary { "Remove…" }
                        form method="post" action={ (place(&gone.card.id)) "/remove" } {
                            p { "It cannot be had back after this." }
                            button.danger type="submit" { "Remove for good" }
                        }
                    }
                }
            }
        }
        @if trashed.len() > SHOWN { p.muted { "Only the latest " (SHOWN) " are shown." } }
    };
    Ok(layout::page(&visitor, Place::Trash, "Trash", &[], &main))
}
