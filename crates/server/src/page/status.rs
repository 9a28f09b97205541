//! How full the context is, what turns cost, and when it was compacted.

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

/// Entries looked at for what turns cost.
const MAX_SCANNED_ENTRIES: usize = 1_000;
/// Turns drawn, at most.
const MAX_DRAWN_TURNS: usize = 120;

/// Who would answer, and what they would be sent now.
pub(super) async fn current_request(
    opened: &VisitorSession,
) -> Result<(Responder, Request), PageError> {
    let voice = opened.visitor.app.responder(&opened.session).await?;
    let request = opened.session.request(&voice.request_options(None)).await?;
    Ok((voice, request))
}

/// The gauge alone, for the head of a session.
pub(super) async fn gauge_fragment(opened: VisitorSession) -> Result<Response, PageError> {
    let (voice, request) = current_request(&opened).await?;
    let percent = request.tokens * 100 / request.budget.max(1);
    Ok(part_of(&html! {
        a.small-gauge href={ (super::page_format::session_path(opened.session.id())) "/status" } title={ (format_thousands(request.tokens)) " of " (format_thousands(request.budget)) " tokens" } {
            (gauge(&request, voice.policy.compaction_threshold(voice.window)))
            span { (percent) " %" }
        }
    }))
}

pub(super) async fn page(opened: VisitorSession) -> Result<Response, PageError> {
    let (voice, request) = current_request(&opened).await?;
    let entries = opened
        .session
        .read(ReadRange::tail(MAX_SCANNED_ENTRIES))
        .await?;
    let mut costs = turn_costs(&entries);
    costs.drain(..costs.len().saturating_sub(MAX_DRAWN_TURNS));
    let card = &opened.record.info;
    let threshold = voice.policy.compaction_threshold(voice.window);
    let main = html! {
        (session_header(&opened, Tab::Status, None))
        div.columns {
            section.info {
                h2 { "Context" }
                p { b { (format_thousands(request.tokens)) } " of " (format_thousands(request.budget)) " tokens would be sent now, by the policy " code { (request.policy) } "." }
                (gauge(&request, threshold))
                p.muted { @match threshold {
                    Some(at) => { "Compacts by itself at " (format_thousands(at)) " tokens, the line in the gauge." },
                    None => "Does not compact by itself.",
                } }
                (legend(&request))
            }
            section.info {
                h2 { "Totals" }
                (totals(&opened, &voice))
            }
        }
        section.info {
            h2 { "Tokens a turn" }
            (turn_chart(&card.id, &costs))
        }
        section.info {
            h2 { "Compactions" }
            (compactions(&opened, &entries))
        }
    };
    Ok(layout::page(
        &opened.visitor,
        NavItem::Sessions,
        session_title(card),
        &["live.js", "status.js"],
        &main,
    ))
}

fn totals(opened: &VisitorSession, voice: &Responder) -> Markup {
    let card = &opened.record.info;
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.config.time_zone,
    );
    html! {
        dl {
            dt { "Answered by" } dd { (voice.model_name().unwrap_or("the offline agent")) }
            dt { "Messages" } dd { (format_thousands(card.messages)) ", " (format_thousands(card.queries)) " of them questions" }
            dt { "Tokens sent" } dd { (format_thousands(card.tokens.input)) ", " (format_thousands(card.tokens.cache_read)) " of them from a cache" }
            dt { "Tokens answered" } dd { (format_thousands(card.tokens.output)) }
            dt { "Made" } dd { (format_timestamp(card.created_at, zone)) }
            dt { "Last active" } dd { (relative_time_phrase(card.last_activity, now, zone)) }
            @if let Some(workspace) = &card.workspace { dt { "Folder" } dd { code { (workspace) } } }
            @if let Some(project) = &card.project { dt { "Project" } dd { code { (project) } } }
            @if let Some(key) = &card.key { dt { "Key" } dd { code { (key) } } }
            dt { "Id" } dd { code { (card.id) } }
            dt { "Digest" } dd { code { (card.digest.short()) } }
        }
    }
}

/// Compactions on a line of time.
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
                    " stands for everything up to " a href=(entry_path(id, mark.covers)) { "#" (mark.covers) }
                    @if index == last { span.badge { "in force" } }
                    @if let Some(at) = time(mark.seq) { " " span.muted { (relative_time_phrase(at, now, zone)) } }
                }
            }
        }
        @let taken_back = opened.record.info.compactions - (marks.len() as u64).min(opened.record.info.compactions);
        @if taken_back > 0 { p.muted { (format_thousands(taken_back)) " more were taken back or came before a new start." } }
    }
}
