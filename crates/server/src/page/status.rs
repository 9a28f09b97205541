//! How full the context is, what turns cost, and when it was compacted.

use axum::response::Response;
use maud::{Markup, html};
use throughline::context::Request;
use throughline::glance::thousands;
use throughline::{Entry, Read, Voice};

use super::chart::{costs, gauge, legend, turns};
use super::layout::{self, Place, part as part_of};
use super::session::{Tab, header};
use super::visitor::{Fault, Opened};
use super::words::{entry_place, moment, since, title};

/// Entries looked at for what turns cost.
const LOOKED_AT: usize = 1_000;
/// Turns drawn, at most.
const DRAWN: usize = 120;

/// Who would answer, and what they would be sent now.
pub(super) async fn now(opened: &Opened) -> Result<(Voice, Request), Fault> {
    let voice = opened.visitor.app.voice(&opened.session).await?;
    let request = opened.session.request(&voice.asking(None)).await?;
    Ok((voice, request))
}

/// The gauge alone, for the head of a session.
pub(super) async fn part(opened: Opened) -> Result<Response, Fault> {
    let (voice, request) = now(&opened).await?;
    let percent = request.tokens * 100 / request.budget.max(1);
    Ok(part_of(&html! {
        a.small-gauge href={ (super::words::place(opened.session.id())) "/status" } title={ (thousands(request.tokens)) " of " (thousands(request.budget)) " tokens" } {
            (gauge(&request, voice.policy.threshold(voice.window)))
            span { (percent) " %" }
        }
    }))
}

pub(super) async fn page(opened: Opened) -> Result<Response, Fault> {
    let (voice, request) = now(&opened).await?;
    let entries = opened.session.read(Read::tail(LOOKED_AT)).await?;
    let mut costs = costs(&entries);
    costs.drain(..costs.len().saturating_sub(DRAWN));
    let card = &opened.record.card;
    let threshold = voice.policy.threshold(voice.window);
    let main = html! {
        (header(&opened, Tab::Status, None))
        div.columns {
            section.card {
                h2 { "Context" }
                p { b { (thousands(request.tokens)) } " of " (thousands(request.budget)) " tokens would be sent now, by the policy " code { (request.policy) } "." }
                (gauge(&request, threshold))
                p.muted { @match threshold {
                    Some(at) => { "Compacts by itself at " (thousands(at)) " tokens, the line in the gauge." },
                    None => "Does not compact by itself.",
                } }
                (legend(&request))
            }
            section.card {
                h2 { "Totals" }
                (totals(&opened, &voice))
            }
        }
        section.card {
            h2 { "Tokens a turn" }
            (turns(&card.id, &costs))
        }
        section.card {
            h2 { "Compactions" }
            (compactions(&opened, &entries))
        }
    };
    Ok(layout::page(
        &opened.visitor,
        Place::Sessions,
        title(card),
        &["live.js", "status.js"],
        &main,
    ))
}

fn totals(opened: &Opened, voice: &Voice) -> Markup {
    let card = &opened.record.card;
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.serving.zone,
    );
    html! {
        dl {
            dt { "Answered by" } dd { (voice.model_name().unwrap_or("the offline agent")) }
            dt { "Messages" } dd { (thousands(card.messages)) ", " (thousands(card.queries)) " of them questions" }
            dt { "Tokens sent" } dd { (thousands(card.tokens.input)) ", " (thousands(card.tokens.cache_read)) " of them from a cache" }
            dt { "Tokens answered" } dd { (thousands(card.tokens.output)) }
            dt { "Made" } dd { (moment(card.created_at, zone)) }
            dt { "Last active" } dd { (since(card.last_activity, now, zone)) }
            @if let Some(workspace) = &card.workspace { dt { "Folder" } dd { code { (workspace) } } }
            @if let Some(project) = &card.project { dt { "Project" } dd { code { (project) } } }
            @if let Some(key) = &card.key { dt { "Key" } dd { code { (key) } } }
            dt { "Id" } dd { code { (card.id) } }
            dt { "Digest" } dd { code { (card.digest.short()) } }
        }
    }
}

/// Compactions on a line of time.
fn compactions(opened: &Opened, entries: &[Entry]) -> Markup {
    let marks = &opened.record.standing.checkpoints;
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.serving.zone,
    );
    let id = opened.session.id();
    if opened.record.card.compactions == 0 {
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
                    a href=(entry_place(id, mark.seq)) { "#" (mark.seq) }
                    " stands for everything up to " a href=(entry_place(id, mark.covers)) { "#" (mark.covers) }
                    @if index == last { span.badge { "in force" } }
                    @if let Some(at) = time(mark.seq) { " " span.muted { (since(at, now, zone)) } }
                }
            }
        }
        @let taken_back = opened.record.card.compactions - (marks.len() as u64).min(opened.record.card.compactions);
        @if taken_back > 0 { p.muted { (thousands(taken_back)) " more were taken back or came before a new start." } }
    }
}
