//! Log page: every entry of a session as it is stored.

use axum::response::Response;
use maud::html;
use serde::Deserialize;
use throughline::{ReadRange, Seq};

use super::layout;
use super::markdown::truncate_text;
use super::page_format::{entry_path, format_timestamp, session_path};
use super::session::{Tab, session_header};
use super::visitor::{PageError, VisitorSession};
use crate::extract::Query;

const PAGE_SIZE: usize = 100;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct LogQuery {
    before: Option<u64>,
}

pub(super) async fn page(
    opened: VisitorSession,
    Query(query): Query<LogQuery>,
) -> Result<Response, PageError> {
    let to = query.before.map(|before| Seq(before.saturating_sub(1)));
    let entries = match to {
        Some(Seq::ZERO) => Vec::new(),
        to => opened.session.read(ReadRange::up_to(to, PAGE_SIZE)).await?,
    };
    let here = session_path(opened.session.id());
    let zone = &opened.visitor.app.config.time_zone;
    let older = entries
        .first()
        .map(|entry| entry.seq)
        .filter(|seq| *seq > Seq(1));
    let main = html! {
        (session_header(&opened, Tab::Log, None))
        p.muted { "Newest first. See also the "
            a href={ "/events?session=" (super::page_format::percent_encode(opened.session.id().as_str())) } { "live events of this session" } }
        table.log {
            thead { tr { th.number { "#" } th { "Time" } th { "Entry" } th { "Digest" } } }
            tbody {
                @for entry in entries.iter().rev() {
                    tr {
                        td.number { a href=(entry_path(opened.session.id(), entry.seq)) { (entry.seq) } }
                        td { (format_timestamp(entry.at, zone)) }
                        td {
                            details {
                                summary { (entry.body.kind()) @if let Some(message) = entry.message() { " · " (message.role) } }
                                @let json = serde_json::to_string_pretty(entry).unwrap_or_default();
                                pre { code { (truncate_text(&json).0) } }
                            }
                        }
                        td { code { (entry.digest.short()) } }
                    }
                }
            }
        }
        @if let Some(seq) = older { p.more { a href={ (here) "/log?before=" (seq) } { "Earlier entries" } } }
    };
    Ok(layout::session_page(&opened, "Log", &main))
}
