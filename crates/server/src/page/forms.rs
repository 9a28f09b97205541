//! Forms about a session (rename, tags, fork, delete…), each on its own page.

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use throughline::{Lineage, Name, ReadRange, Seq, SessionFilter, SessionInfo};

use super::entry::plain_text;
use super::layout::{self, NavItem};
use super::page_format::{session_path, session_title, truncate_line};
use super::session::{Tab, session_header};
use super::visitor::{PageError, VisitorSession};
use crate::extract::Query;

/// Renders a form about a session.
fn form_page(opened: &VisitorSession, action: &str, name: &str, fields: &Markup) -> Response {
    let here = session_path(opened.session.id());
    let main = html! {
        (session_header(opened, Tab::Form, None))
        form.stack.card.narrow method="post" action={ (here) "/" (action) } {
            h2 { (name) }
            (fields)
            div.buttons {
                button.primary type="submit" { (name) }
                a href=(here) { "Cancel" }
            }
        }
    };
    let title = format!("{name}: {}", session_title(&opened.record.info));
    layout::page(&opened.visitor, NavItem::Sessions, &title, &[], &main)
}

pub(super) async fn rename(opened: VisitorSession) -> Response {
    let name = opened.record.info.name.as_ref().map_or("", Name::as_str);
    let about = opened
        .record
        .info
        .description
        .as_deref()
        .unwrap_or_default();
    form_page(
        &opened,
        "rename",
        "Rename",
        &html! {
            label for="name" { "Name" }
            input id="name" name="name" value=(name) maxlength="200" autofocus;
            p.muted { "Letters, digits and dashes; other characters become dashes. Leave empty for no name." }
            label for="description" { "Description" }
            textarea id="description" name="description" rows="2" { (about) }
        },
    )
}

pub(super) async fn tags(opened: VisitorSession) -> Response {
    let tags: Vec<_> = opened
        .record
        .info
        .tags
        .iter()
        .map(ToString::to_string)
        .collect();
    form_page(
        &opened,
        "tags",
        "Edit tags",
        &html! {
            label for="tags" { "Tags, separated by spaces" }
            input id="tags" name="tags" value=(tags.join(" ")) autofocus;
        },
    )
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PinQuery {
    from: Option<u64>,
}

pub(super) async fn pin(
    opened: VisitorSession,
    Query(query): Query<PinQuery>,
) -> Result<Response, PageError> {
    let mut text = String::new();
    if let Some(seq) = query.from.filter(|seq| *seq > 0).map(Seq) {
        let entry = opened
            .session
            .read(ReadRange::between(seq, seq, 1))
            .await?
            .pop();
        if let Some(message) = entry.as_ref().and_then(throughline::Entry::message) {
            text = truncate_line(&plain_text(&message.content), 500);
        }
    }
    Ok(form_page(
        &opened,
        "pin",
        "Pin",
        &html! {
            label for="text" { "Fact to include in every request" }
            textarea id="text" name="text" rows="4" required autofocus { (text) }
        },
    ))
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ForkQuery {
    at: Option<u64>,
}

pub(super) async fn fork(opened: VisitorSession, Query(query): Query<ForkQuery>) -> Response {
    let head = opened.record.info.head;
    let at = query.at.map_or(head, Seq).min(head);
    form_page(
        &opened,
        "fork",
        "Fork",
        &html! {
            p { "Creates a new session that shares everything up to an entry. After that, neither session changes the other." }
            label for="at" { "Up to entry" }
            input id="at" name="at" type="number" min="0" max=(head) value=(at) required;
            label for="name" { "Name (optional)" }
            input id="name" name="name" maxlength="200" autofocus;
        },
    )
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RewindQuery {
    to: Option<u64>,
}

pub(super) async fn rewind(opened: VisitorSession, Query(query): Query<RewindQuery>) -> Response {
    let head = opened.record.info.head;
    let to = query.to.map_or(head, Seq).min(head);
    form_page(
        &opened,
        "rewind",
        "Rewind",
        &html! {
            p { "Messages after this entry remain readable, but the model no longer sees them." }
            label for="to" { "Rewind to entry" }
            input id="to" name="to" type="number" min="0" max=(head) value=(to) required;
        },
    )
}

pub(super) async fn merge(opened: VisitorSession) -> Result<Response, PageError> {
    let info = &opened.record.info;
    let tl = &opened.visitor.caller.tl;
    let filter = SessionFilter {
        parent: Some(info.id.clone()),
        ..SessionFilter::default()
    };
    let is_fork = |info: &SessionInfo| matches!(info.lineage, Lineage::Forked { .. });
    let forks: Vec<SessionInfo> = tl
        .list(&filter, None, 200)
        .await?
        .items
        .into_iter()
        .filter(is_fork)
        .collect();
    let origin = match &info.lineage {
        Lineage::Forked { session, .. } => tl.session(session).await.ok(),
        Lineage::Root | Lineage::Continued { .. } => None,
    };
    if forks.is_empty() && origin.is_none() {
        let main = html! {
            (session_header(&opened, Tab::Form, None))
            div.empty { p.big { "Nothing to merge" } p { "This session is not a fork and has no forks. "
                a href={ (session_path(&info.id)) "/fork" } { "Fork it" } " first." } }
        };
        return Ok(layout::page(
            &opened.visitor,
            NavItem::Sessions,
            "Merge",
            &[],
            &main,
        ));
    }
    Ok(form_page(
        &opened,
        "merge",
        "Merge",
        &html! {
            label for="which" { "What to merge" }
            select id="which" name="which" {
                @if let Some(origin) = &origin { option value="" { "This fork into " (origin.id()) } }
                @for fork in &forks { option value=(fork.id) { (truncate_line(session_title(fork), 60)) " into this session" } }
            }
            fieldset {
                legend { "If both sessions have new messages" }
                label { input type="radio" name="style" value="append" checked; " Append the fork's messages" }
                label { input type="radio" name="style" value="fast_forward"; " Do not merge" }
                label { input type="radio" name="style" value="summary"; " Append only this summary:" }
                label.visually-hidden for="summary" { "Summary" }
                textarea id="summary" name="summary" rows="2" {}
            }
        },
    ))
}
