//! Everything that happened to a session, entry by entry, as it is kept.

use axum::response::Response;
use maud::html;
use serde::Deserialize;
use throughline::{Read, Seq};

use super::layout;
use super::markdown::start;
use super::session::{Tab, header};
use super::visitor::{Fault, Opened};
use super::words::{entry_place, moment, place};
use crate::extract::Query;

const PAGE: usize = 100;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct LogQuery {
    before: Option<u64>,
}

pub(super) async fn page(opened: Opened, Query(query): Query<LogQuery>) -> Result<Response, Fault> {
    let to = query.before.map(|before| Seq(before.saturating_sub(1)));
    let entries = match to {
        Some(Seq::ZERO) => Vec::new(),
        to => opened.session.read(Read::before(to, PAGE)).await?,
    };
    let here = place(opened.session.id());
    let zone = &opened.visitor.app.serving.zone;
    let older = entries
        .first()
        .map(|entry| entry.seq)
        .filter(|seq| *seq > Seq(1));
    let main = html! {
        (header(&opened, Tab::Log, None))
        p.muted { "Newest first, as it happens: "
            a href={ "/events?session=" (super::words::encoded(opened.session.id().as_str())) } { "live events of this session" } }
        table.log {
            thead { tr { th.number { "#" } th { "When" } th { "What" } th { "Digest" } } }
            tbody {
                @for entry in entries.iter().rev() {
                    tr {
                        td.number { a href=(entry_place(opened.session.id(), entry.seq)) { (entry.seq) } }
                        td { (moment(entry.at, zone)) }
                        td {
                            details {
                                summary { (entry.body.kind()) @if let Some(message) = entry.message() { " · " (message.role) } }
                                @let json = serde_json::to_string_pretty(entry).unwrap_or_default();
                                pre { code { (start(&json).0) } }
                            }
                        }
                        td { code { (entry.digest.short()) } }
                    }
                }
            }
        }
        @if let Some(seq) = older { p.more { a href={ (here) "/log?before=" (seq) } { "Earlier entries" } } }
    };
    Ok(layout::about(&opened, "Log", &main))
}
