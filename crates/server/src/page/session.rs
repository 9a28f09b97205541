//! A session: what was said in it, a page at a time, and where to say more.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;
use throughline::glance::{compact, counted};
use throughline::{Card, Entry, Lineage, Read, Seq, Session, Status};

use super::entry::{Showing, plain};
use super::layout::{self, Place, part as part_of, said};
use super::side;
use super::visitor::{Fault, Opened};
use super::words::{encoded, entry_place, place, since, title};
use crate::Problem;
use crate::extract::{Number, Query};

/// Entries on a page.
const PAGE: usize = 50;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct PageQuery {
    /// Those before this number, the nearest.
    before: Option<u64>,
    /// Those after this number, the nearest.
    after: Option<u64>,
    /// What was just done.
    said: Option<String>,
    #[allow(dead_code, reason = "tells who asks, see Visitor")]
    part: Option<String>,
}

/// A stretch of entries, and whether there are others around it.
struct Stretch {
    entries: Vec<Entry>,
    earlier: Option<Seq>,
    later: Option<Seq>,
}

impl Stretch {
    async fn read(session: &Session, head: Seq, query: &PageQuery) -> Result<Self, Fault> {
        let read = match (query.after, query.before) {
            (Some(after), _) => Read::from(Seq(after.saturating_add(1)), PAGE),
            (None, Some(before)) => Read::before(Some(Seq(before.saturating_sub(1))), PAGE),
            (None, None) => Read::tail(PAGE),
        };
        let nothing = read.to == Some(Seq::ZERO) || read.from > head;
        let entries = if nothing {
            Vec::new()
        } else {
            session.read(read).await?
        };
        Ok(Self::of(entries, head))
    }

    async fn around(session: &Session, head: Seq, seq: Seq) -> Result<Self, Fault> {
        let half = PAGE as u64 / 2;
        let from = Seq(seq.0.saturating_sub(half).max(1));
        let entries = session.read(Read::from(from, PAGE)).await?;
        Ok(Self::of(entries, head))
    }

    fn of(entries: Vec<Entry>, head: Seq) -> Self {
        let first = entries.first().map(|entry| entry.seq);
        let last = entries.last().map(|entry| entry.seq);
        Self {
            earlier: first.filter(|seq| *seq > Seq(1)),
            later: last.filter(|seq| *seq < head),
            entries,
        }
    }

    fn shown(&self, opened: &Opened, at: Option<Seq>) -> Markup {
        let here = place(opened.session.id());
        let showing = Showing::new(opened, &self.entries, at);
        html! {
            @if let Some(seq) = self.earlier {
                p.more { a href={ (here) "?before=" (seq) } data-earlier { "Earlier entries" } }
            }
            @for entry in &self.entries { (showing.entry(entry)) }
            @if let Some(seq) = self.later {
                p.more { a href={ (here) "?after=" (seq) } data-later { "Later entries" } }
            }
        }
    }
}

/// What is under way in a session.
fn under_way(opened: &Opened) -> Option<String> {
    let turns = &opened.visitor.app.turns;
    let live = turns.find(opened.session.reference(), None)?;
    live.outcome().is_none().then(|| live.id().to_string())
}

pub(super) async fn page(
    opened: Opened,
    Query(query): Query<PageQuery>,
) -> Result<Response, Fault> {
    let head = opened.record.card.head;
    let stretch = Stretch::read(&opened.session, head, &query).await?;
    shown(&opened, &stretch, None, query.said.as_deref()).await
}

/// The page that has an entry on it.
pub(super) async fn at(opened: Opened, Number(seq): Number) -> Result<Response, Fault> {
    let head = opened.record.card.head;
    if seq == Seq::ZERO || seq > head {
        return Err(no_entry(&opened, seq));
    }
    let stretch = Stretch::around(&opened.session, head, seq).await?;
    shown(&opened, &stretch, Some(seq), None).await
}

fn no_entry(opened: &Opened, seq: Seq) -> Fault {
    Fault::from(throughline::StoreError::NoSuchEntry {
        id: opened.session.id().clone(),
        seq,
        head: opened.record.card.head,
    })
}

/// Entries alone, for a script.
pub(super) async fn part(
    opened: Opened,
    Query(query): Query<PageQuery>,
) -> Result<Response, Fault> {
    let stretch = Stretch::read(&opened.session, opened.record.card.head, &query).await?;
    Ok(part_of(&stretch.shown(&opened, None)))
}

/// A message as the text it is, whole.
pub(super) async fn text(opened: Opened, Number(seq): Number) -> Result<Response, Fault> {
    let found = match seq {
        Seq::ZERO => None,
        seq => opened.session.read(Read::between(seq, seq, 1)).await?.pop(),
    };
    let entry = found.ok_or_else(|| no_entry(&opened, seq))?;
    let Some(message) = entry.message() else {
        let detail = format!("entry {seq} is no message");
        return Err(Problem::not_found("entry_not_found", detail).into());
    };
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((kind, plain(&message.content)).into_response())
}

async fn shown(
    opened: &Opened,
    stretch: &Stretch,
    at: Option<Seq>,
    done: Option<&str>,
) -> Result<Response, Fault> {
    let card = &opened.record.card;
    let side = side::shown(opened).await?;
    let last = stretch.entries.last().map_or(Seq::ZERO, |entry| entry.seq);
    let main = html! {
        (header(opened, Tab::Chat, done))
        div.chat {
            div.talk {
                div id="entries" data-session=(card.id) data-last=(last) data-whole[stretch.later.is_none()]
                    data-turn=[under_way(opened)] role="log" aria-label="What was said" {
                    @if card.head == Seq::ZERO {
                        div.empty { p.big { "Nothing said yet" } p { "Say something below; it is kept the moment it is sent." } }
                    }
                    (stretch.shown(opened, at))
                }
                @if stretch.later.is_none() { (composer(opened)) }
                @else { p.more { a href={ (place(&card.id)) "#end" } { "To the end" } } }
                div id="end" {}
            }
            aside id="side" aria-label="What the model keeps in mind" { (side) }
        }
    };
    let scripts = ["live.js", "session.js"];
    Ok(layout::page(
        &opened.visitor,
        Place::Sessions,
        title(card),
        &scripts,
        &main,
    ))
}

fn composer(opened: &Opened) -> Markup {
    let voices = &opened.visitor.app.serving.voices;
    let (models, agents) = (voices.models(), voices.agents());
    let own = opened.record.card.agent.as_ref();
    html! {
        form.composer id="composer" method="post" action={ (place(opened.session.id())) "/turns" } {
            label.visually-hidden for="message" { "Your message" }
            textarea id="message" name="message" rows="2" required placeholder="Say something" {}
            div.below {
                span.muted.hint {
                    @if let [usual, others @ ..] = models.as_slice() && !others.is_empty() {
                        (choice("model", "Who answers: the model", usual, others))
                    } @else {
                        (voices.usual().as_deref().unwrap_or("no model: the offline agent answers"))
                    }
                    @if !agents.is_empty() {
                        (choice("agent", "Who answers: the agent", own.map_or("no agent", |agent| &agent.name), &agents))
                    }
                }
                span id="turn-state" role="status" {}
                button type="button" id="stop" hidden { "Stop" }
                button.primary type="submit" { "Send" }
            }
        }
    }
}

/// Who is to answer: as usual, or one of these.
fn choice(name: &str, label: &str, usual: &str, others: &[String]) -> Markup {
    html! {
        select name=(name) aria-label=(label) title=(label) {
            option value="" { (usual) }
            @for other in others { option value=(other) { (other) } }
        }
    }
}

/// Which view of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tab {
    Chat,
    Status,
    Request,
    Lineage,
    Log,
    /// A form about it.
    Form,
}

const TABS: [(Tab, &str, &str); 5] = [
    (Tab::Chat, "", "Chat"),
    (Tab::Status, "/status", "Status"),
    (Tab::Request, "/request", "Request"),
    (Tab::Lineage, "/lineage", "Lineage"),
    (Tab::Log, "/log", "Log"),
];

/// What every view of a session begins with.
pub(super) fn header(opened: &Opened, tab: Tab, done: Option<&str>) -> Markup {
    let card = &opened.record.card;
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.serving.zone,
    );
    let here = place(&card.id);
    html! {
        (said(done))
        div.session-head {
            div.head {
                h1 title=(card.id) { (super::words::beginning(title(card), 80)) }
                @if card.status == Status::Archived { span.badge { "archived" } }
                @for tag in &card.tags { a.tag href={ "/?tag=" (encoded(tag.as_str())) } { (tag) } }
                (actions(card))
            }
            p.facts {
                @match &card.lineage {
                    Lineage::Forked { session, at } => span { "fork of " a href=(entry_place(session, *at)) { (session) " at #" (at) } },
                    Lineage::Continued { session } => span { "goes on from " a href=(place(session)) { (session) } },
                    Lineage::Root => {},
                }
                @if let Some(agent) = &card.agent { span { (agent.name) } }
                @if let Some(model) = &card.model { span { (model) } }
                span { (counted(card.messages, "message")) }
                @if card.tokens.total() > 0 { span { (compact(card.tokens.total())) " tokens" } }
                span { "active " (since(card.last_activity, now, zone)) }
            }
            nav.tabs aria-label="Views of this session" {
                @for (known, path, name) in TABS {
                    a href={ (here) (path) } aria-current=[(known == tab).then_some("page")] { (name) }
                }
                span.gauge-slot data-gauge={ (here) "/gauge?part=1" } {}
            }
        }
    }
}

fn actions(card: &Card) -> Markup {
    let here = place(&card.id);
    let button = |path: &str, name: &str| {
        html! { li { form method="post" action={ (here) "/" (path) } { button type="submit" { (name) } } } }
    };
    let link =
        |path: &str, name: &str| html! { li { a href={ (here) "/" (path) } { (name) "…" } } };
    let export = |format: &str, name: &str| {
        let api = encoded(card.id.as_str());
        html! { li { a href={ "/api/sessions/" (api) "/export?format=" (format) } download { "Export as " (name) } } }
    };
    html! {
        details.menu.actions {
            summary { "Actions" }
            ul {
                (link("rename", "Rename"))
                (link("tags", "Tags"))
                (link("pin", "Pin a fact"))
                li.line role="separator" {}
                (button("compact", "Compact"))
                @if card.compactions > 0 { (button("undo", "Undo compaction")) }
                (button("clear", "Clear"))
                li.line role="separator" {}
                (link("fork", "Fork"))
                (link("merge", "Merge"))
                li.line role="separator" {}
                (export("markdown", "Markdown"))
                (export("json", "JSON"))
                (export("jsonl", "JSON Lines"))
                li.line role="separator" {}
                @if card.status == Status::Archived { (button("unarchive", "Unarchive")) }
                @else { (button("archive", "Archive")) }
                (button("trash", "Move to trash"))
            }
        }
    }
}
