//! Small forms about a session, each a page of its own.

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use throughline::{Card, Filter, Lineage, Name, Read, Seq};

use super::entry::plain;
use super::layout::{self, Place};
use super::session::{Tab, header};
use super::visitor::{Fault, Opened};
use super::words::{beginning, place, title};
use crate::extract::Query;

/// A form about a session.
fn form(opened: &Opened, action: &str, name: &str, fields: &Markup) -> Response {
    let here = place(opened.session.id());
    let main = html! {
        (header(opened, Tab::Form, None))
        form.stack.card.narrow method="post" action={ (here) "/" (action) } {
            h2 { (name) }
            (fields)
            div.buttons {
                button.primary type="submit" { (name) }
                a href=(here) { "Cancel" }
            }
        }
    };
    let title = format!("{name}: {}", title(&opened.record.card));
    layout::page(&opened.visitor, Place::Sessions, &title, &[], &main)
}

pub(super) async fn rename(opened: Opened) -> Response {
    let name = opened.record.card.name.as_ref().map_or("", Name::as_str);
    let about = opened
        .record
        .card
        .description
        .as_deref()
        .unwrap_or_default();
    form(
        &opened,
        "rename",
        "Rename",
        &html! {
            label for="name" { "Name" }
            input id="name" name="name" value=(name) maxlength="200" autofocus;
            p.muted { "Letters, digits and dashes; everything else becomes a dash. Left empty, it has no name." }
            label for="description" { "What it is about" }
            textarea id="description" name="description" rows="2" { (about) }
        },
    )
}

pub(super) async fn tags(opened: Opened) -> Response {
    let tags: Vec<_> = opened
        .record
        .card
        .tags
        .iter()
        .map(ToString::to_string)
        .collect();
    form(
        &opened,
        "tags",
        "Change tags",
        &html! {
            label for="tags" { "Tags, with spaces between" }
            input id="tags" name="tags" value=(tags.join(" ")) autofocus;
        },
    )
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PinQuery {
    from: Option<u64>,
}

pub(super) async fn pin(opened: Opened, Query(query): Query<PinQuery>) -> Result<Response, Fault> {
    let mut text = String::new();
    if let Some(seq) = query.from.filter(|seq| *seq > 0).map(Seq) {
        let entry = opened.session.read(Read::between(seq, seq, 1)).await?.pop();
        if let Some(message) = entry.as_ref().and_then(throughline::Entry::message) {
            text = beginning(&plain(&message.content), 500);
        }
    }
    Ok(form(
        &opened,
        "pin",
        "Pin",
        &html! {
            label for="text" { "A fact to keep always in view" }
            textarea id="text" name="text" rows="4" required autofocus { (text) }
        },
    ))
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ForkQuery {
    at: Option<u64>,
}

pub(super) async fn fork(opened: Opened, Query(query): Query<ForkQuery>) -> Response {
    let head = opened.record.card.head;
    let at = query.at.map_or(head, Seq).min(head);
    form(
        &opened,
        "fork",
        "Fork",
        &html! {
            p { "A new session that shares everything up to an entry and goes its own way from there. Neither changes the other." }
            label for="at" { "Up to entry" }
            input id="at" name="at" type="number" min="0" max=(head) value=(at) required;
            label for="name" { "Name, if you like" }
            input id="name" name="name" maxlength="200" autofocus;
        },
    )
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RewindQuery {
    to: Option<u64>,
}

pub(super) async fn rewind(opened: Opened, Query(query): Query<RewindQuery>) -> Response {
    let head = opened.record.card.head;
    let to = query.to.map_or(head, Seq).min(head);
    form(
        &opened,
        "rewind",
        "Go back",
        &html! {
            p { "What was said after this entry stays here to read, and the model no longer sees it." }
            label for="to" { "Back to entry" }
            input id="to" name="to" type="number" min="0" max=(head) value=(to) required;
        },
    )
}

pub(super) async fn merge(opened: Opened) -> Result<Response, Fault> {
    let card = &opened.record.card;
    let tl = &opened.visitor.caller.tl;
    let filter = Filter {
        parent: Some(card.id.clone()),
        ..Filter::default()
    };
    let is_fork = |card: &Card| matches!(card.lineage, Lineage::Forked { .. });
    let forks: Vec<Card> = tl
        .list(&filter, None, 200)
        .await?
        .items
        .into_iter()
        .filter(is_fork)
        .collect();
    let origin = match &card.lineage {
        Lineage::Forked { session, .. } => tl.session(session).await.ok(),
        Lineage::Root | Lineage::Continued { .. } => None,
    };
    if forks.is_empty() && origin.is_none() {
        let main = html! {
            (header(&opened, Tab::Form, None))
            div.empty { p.big { "Nothing to merge" } p { "This session is no fork, and has none. "
                a href={ (place(&card.id)) "/fork" } { "Fork it" } " first." } }
        };
        return Ok(layout::page(
            &opened.visitor,
            Place::Sessions,
            "Merge",
            &[],
            &main,
        ));
    }
    Ok(form(
        &opened,
        "merge",
        "Merge",
        &html! {
            label for="which" { "What to merge" }
            select id="which" name="which" {
                @if let Some(origin) = &origin { option value="" { "This fork into " (origin.id()) } }
                @for fork in &forks { option value=(fork.id) { (beginning(title(fork), 60)) " into this session" } }
            }
            fieldset {
                legend { "If both have gone on since" }
                label { input type="radio" name="style" value="append" checked; " Append what was said in the fork" }
                label { input type="radio" name="style" value="fast_forward"; " Do not merge" }
                label { input type="radio" name="style" value="summary"; " Only what it came to, in these words:" }
                label.visually-hidden for="summary" { "What it came to" }
                textarea id="summary" name="summary" rows="2" {}
            }
        },
    ))
}
