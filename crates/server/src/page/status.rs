//! Status page of a session: context usage, tokens per turn, and compactions.

use axum::response::Response;
use maud::{Markup, html};
use throughline::context::Request;
use throughline::format::format_thousands;
use throughline::{Entry, ReadRange, Responder};

use super::chart::{gauge, legend, turn_chart, turn_costs};
use super::layout::{self, NavItem, fragment as part_of};
use super::page_format::{entry_path, format_timestamp, relative_time_phrase, session_title};
use super::session::{Tab, session_header};
use super::visitor::{PageError, VisitorSession};

/// Entries scanned for token usage.
const MAX_SCANNED_ENTRIES: usize = 1_000;
/// Maximum number of turns drawn.
const MAX_DRAWN_TURNS: usize = 120;

/// The current responder, and the request it would receive now.
pub(super) async fn current_request(
    opened: &VisitorSession,
) -> Result<(Responder, Request), PageError> {
    let responder = opened.visitor.app.responder(&opened.session).await?;
    let request = opened
        .session
        .request(&responder.request_options(None))
        .await?;
    Ok((responder, request))
}

/// The context gauge as a fragment, for the header of a session.
pub(super) async fn gauge_fragment(opened: VisitorSession) -> Result<Response, PageError> {
    let (responder, request) = current_request(&opened).await?;
    let percent = request.tokens * 100 / request.budget.max(1);
    Ok(part_of(&html! {
        a.small-gauge href={ (super::page_format::session_path(opened.session.id())) "/status" } title={ (format_thousands(request.tokens)) " of " (format_thousands(request.budget)) " tokens" } {
            (gauge(&request, responder.policy.compaction_threshold(responder.window)))
            span { (percent) " %" }
        }
    }))
}

pub(super) async fn page(opened: VisitorSession) -> Result<Response, PageError> {
    let (responder, request) = current_request(&opened).await?;
    let entries = opened
        .session
        .read(ReadRange::tail(MAX_SCANNED_ENTRIES))
        .await?;
    let mut costs = turn_costs(&entries);
    costs.drain(..costs.len().saturating_sub(MAX_DRAWN_TURNS));
    let info = &opened.record.info;
    let threshold = responder.policy.compaction_threshold(responder.window);
    let main = html! {
        (session_header(&opened, Tab::Status, None))
        div.columns {
            section.card {
                h2 { "Context" }
                p { b { (format_thousands(request.tokens)) } " of " (format_thousands(request.budget)) " tokens would be sent now with the policy " code { (request.policy) } "." }
                (gauge(&request, threshold))
                p.muted { @match threshold {
                    Some(at) => { "Compacts automatically at " (format_thousands(at)) " tokens, marked by the line." },
                    None => "Automatic compaction is off.",
                } }
                (legend(&request))
            }
            section.card {
                h2 { "Totals" }
                (totals(&opened, &responder))
            }
        }
        section.card {
            h2 { "Tokens per turn" }
            (turn_chart(&info.id, &costs))
        }
        section.card {
            h2 { "Compactions" }
            (compactions(&opened, &entries))
        }
    };
    Ok(layout::page(
        &opened.visitor,
        NavItem::Sessions,
        session_title(info),
        &["live.js", "status.js"],
        &main,
    ))
}

fn totals(opened: &VisitorSession, responder: &Responder) -> Markup {
    let info = &opened.record.info;
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.config.time_zone,
    );
    html! {
        dl {
            dt { "Answered by" } dd { (responder.model_name().unwrap_or("the offline agent")) }
            dt { "Messages" } dd { (format_thousands(info.messages)) ", " (format_thousands(info.queries)) " from users" }
            dt { "Input tokens" } dd { (format_thousands(info.tokens.input)) ", " (format_thousands(info.tokens.cache_read)) " cached" }
            dt { "Output tokens" } dd { (format_thousands(info.tokens.output)) }
            dt { "Created" } dd { (format_timestamp(info.created_at, zone)) }
            dt { "Last active" } dd { (relative_time_phrase(info.last_activity, now, zone)) }
            @if let Some(workspace) = &info.workspace { dt { "Folder" } dd { code { (workspace) } } }
            @if let Some(project) = &info.project { dt { "Project" } dd { code { (project) } } }
            @if let Some(key) = &info.key { dt { "Key" } dd { code { (key) } } }
            dt { "ID" } dd { code { (info.id) } }
            dt { "Digest" } dd { code { (info.digest.short()) } }
        }
    }
}

/// Renders the compactions as a timeline.
fn compactions(opened: &VisitorSession, entries: &[Entry]) -> Markup {
    let marks = &opened.record.state.checkpoints;
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.config.time_zone,
    );
    let id = opened.session.id();
    if opened.record.info.compactions == 0 {
        return html! { p.muted { "None yet." } };
    }
    let time = |seq| {
        entries
            .iter()
            .find(|entry| entry.seq == seq)
            .map(|entry| entry.at)
    };
    let last = marks.len().saturating_sub(1);
    html! {
        ol.timeline {
            @for (index, mark) in marks.iter().enumerate() {
                li {
                    a href=(entry_path(id, mark.seq)) { "#" (mark.seq) }
                    " covers everything up to " a href=(entry_path(id, mark.covers)) { "#" (mark.covers) }
                    @if index == last { span.badge { "current" } }
                    @if let Some(at) = time(mark.seq) { " " span.muted { (relative_time_phrase(at, now, zone)) } }
                }
            }
        }
        @let taken_back = opened.record.info.compactions - (marks.len() as u64).min(opened.record.info.compactions);
        @if taken_back > 0 { p.muted { (format_thousands(taken_back)) " more were undone or precede a cleared context." } }
    }
}
