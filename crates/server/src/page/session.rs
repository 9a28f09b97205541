//! Session page: its messages, one page at a time, and the form to send another.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;
use throughline::format::{abbreviate, pluralize};
use throughline::{Entry, Lineage, ReadRange, Seq, Session, SessionInfo, Status};

use super::entry::{EntryRenderer, plain_text};
use super::layout::{self, NavItem, flash_message, fragment as part_of};
use super::page_format::{
    entry_path, percent_encode, relative_time_phrase, session_path, session_title,
};
use super::sidebar;
use super::visitor::{PageError, VisitorSession};
use crate::Problem;
use crate::extract::{PathSeq, Query};

/// Entries per page.
const PAGE_SIZE: usize = 50;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct PageQuery {
    /// The entries just before this number.
    before: Option<u64>,
    /// The entries just after this number.
    after: Option<u64>,
    /// Code of the message about the last action.
    said: Option<String>,
    #[allow(
        dead_code,
        reason = "read by `Visitor`, which handles errors of fragments"
    )]
    part: Option<String>,
}

/// A range of entries, and whether there are more around it.
struct EntryWindow {
    entries: Vec<Entry>,
    earlier: Option<Seq>,
    later: Option<Seq>,
}

impl EntryWindow {
    async fn read(session: &Session, head: Seq, query: &PageQuery) -> Result<Self, PageError> {
        let read = match (query.after, query.before) {
            (Some(after), _) => ReadRange::starting_at(Seq(after.saturating_add(1)), PAGE_SIZE),
            (None, Some(before)) => {
                ReadRange::up_to(Some(Seq(before.saturating_sub(1))), PAGE_SIZE)
            }
            (None, None) => ReadRange::tail(PAGE_SIZE),
        };
        let nothing = read.to == Some(Seq::ZERO) || read.from > head;
        let entries = if nothing {
            Vec::new()
        } else {
            session.read(read).await?
        };
        Ok(Self::from_entries(entries, head))
    }

    async fn around(session: &Session, head: Seq, seq: Seq) -> Result<Self, PageError> {
        let half = PAGE_SIZE as u64 / 2;
        let from = Seq(seq.0.saturating_sub(half).max(1));
        let entries = session
            .read(ReadRange::starting_at(from, PAGE_SIZE))
            .await?;
        Ok(Self::from_entries(entries, head))
    }

    fn from_entries(entries: Vec<Entry>, head: Seq) -> Self {
        let first = entries.first().map(|entry| entry.seq);
        let last = entries.last().map(|entry| entry.seq);
        Self {
            earlier: first.filter(|seq| *seq > Seq(1)),
            later: last.filter(|seq| *seq < head),
            entries,
        }
    }

    fn render(&self, opened: &VisitorSession, at: Option<Seq>) -> Markup {
        let here = session_path(opened.session.id());
        let showing = EntryRenderer::new(opened, &self.entries, at);
        html! {
            @if let Some(seq) = self.earlier {
                p.more { a href={ (here) "?before=" (seq) } data-earlier { "Earlier entries" } }
            }
            @for entry in &self.entries { (showing.render_entry(entry)) }
            @if let Some(seq) = self.later {
                p.more { a href={ (here) "?after=" (seq) } data-later { "Later entries" } }
            }
        }
    }
}

/// The id of the turn running in a session.
fn running_turn_id(opened: &VisitorSession) -> Option<String> {
    let turns = &opened.visitor.app.turns;
    let live = turns.find(opened.session.reference(), None)?;
    live.outcome().is_none().then(|| live.id().to_string())
}

pub(super) async fn page(
    opened: VisitorSession,
    Query(query): Query<PageQuery>,
) -> Result<Response, PageError> {
    let head = opened.record.info.head;
    let window = EntryWindow::read(&opened.session, head, &query).await?;
    render_page(&opened, &window, None, query.said.as_deref()).await
}

/// The page that contains an entry.
pub(super) async fn page_at_entry(
    opened: VisitorSession,
    PathSeq(seq): PathSeq,
) -> Result<Response, PageError> {
    let head = opened.record.info.head;
    if seq == Seq::ZERO || seq > head {
        return Err(entry_not_found(&opened, seq));
    }
    let window = EntryWindow::around(&opened.session, head, seq).await?;
    render_page(&opened, &window, Some(seq), None).await
}

fn entry_not_found(opened: &VisitorSession, seq: Seq) -> PageError {
    PageError::from(throughline::StoreError::NoSuchEntry {
        id: opened.session.id().clone(),
        seq,
        head: opened.record.info.head,
    })
}

/// The entries as a fragment, for a script.
pub(super) async fn entries_fragment(
    opened: VisitorSession,
    Query(query): Query<PageQuery>,
) -> Result<Response, PageError> {
    let window = EntryWindow::read(&opened.session, opened.record.info.head, &query).await?;
    Ok(part_of(&window.render(&opened, None)))
}

/// A message as plain text, in full.
pub(super) async fn message_text(
    opened: VisitorSession,
    PathSeq(seq): PathSeq,
) -> Result<Response, PageError> {
    let found = match seq {
        Seq::ZERO => None,
        seq => opened
            .session
            .read(ReadRange::between(seq, seq, 1))
            .await?
            .pop(),
    };
    let entry = found.ok_or_else(|| entry_not_found(&opened, seq))?;
    let Some(message) = entry.message() else {
        let detail = format!("entry {seq} is not a message");
        return Err(Problem::not_found("entry_not_found", detail).into());
    };
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((kind, plain_text(&message.content)).into_response())
}

async fn render_page(
    opened: &VisitorSession,
    window: &EntryWindow,
    at: Option<Seq>,
    done: Option<&str>,
) -> Result<Response, PageError> {
    let info = &opened.record.info;
    let side = sidebar::render_sidebar(opened).await?;
    let last = window.entries.last().map_or(Seq::ZERO, |entry| entry.seq);
    let main = html! {
        (session_header(opened, Tab::Chat, done))
        div.chat {
            div.talk {
                div id="entries" data-session=(info.id) data-last=(last) data-whole[window.later.is_none()]
                    data-turn=[running_turn_id(opened)] role="log" aria-label="Messages" {
                    @if info.head == Seq::ZERO {
                        div.empty { p.big { "No messages yet" } p { "Send a message below to start." } }
                    }
                    (window.render(opened, at))
                }
                @if window.later.is_none() { (composer(opened)) }
                @else { p.more { a href={ (session_path(&info.id)) "#end" } { "Jump to the end" } } }
                div id="end" {}
            }
            aside id="side" aria-label="Session context" { (side) }
        }
    };
    let scripts = ["live.js", "session.js"];
    Ok(layout::page(
        &opened.visitor,
        NavItem::Sessions,
        session_title(info),
        &scripts,
        &main,
    ))
}

fn composer(opened: &VisitorSession) -> Markup {
    let responders = &opened.visitor.app.config.responders;
    let (models, agents) = (responders.models(), responders.agents());
    let own = opened.record.info.agent.as_ref();
    html! {
        form.composer id="composer" method="post" action={ (session_path(opened.session.id())) "/turns" } {
            label.visually-hidden for="message" { "Your message" }
            textarea id="message" name="message" rows="2" required placeholder="Send a message" {}
            div.below {
                span.muted.hint {
                    @if let [usual, others @ ..] = models.as_slice() && !others.is_empty() {
                        (responder_select("model", "Model", usual, others))
                    } @else {
                        (responders.default_model().as_deref().unwrap_or("Offline agent (no model)"))
                    }
                    @if !agents.is_empty() {
                        (responder_select("agent", "Agent", own.map_or("no agent", |agent| &agent.name), &agents))
                    }
                }
                span id="turn-state" role="status" {}
                button type="button" id="stop" hidden { "Stop" }
                button.primary type="submit" { "Send" }
            }
        }
    }
}

/// Renders a select box for the model or agent: the default or one of these.
fn responder_select(name: &str, label: &str, usual: &str, others: &[String]) -> Markup {
    html! {
        select name=(name) aria-label=(label) title=(label) {
            option value="" { (usual) }
            @for other in others { option value=(other) { (other) } }
        }
    }
}

/// The active view of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tab {
    Chat,
    Status,
    Request,
    Lineage,
    Log,
    /// A form about the session.
    Form,
}

const TABS: [(Tab, &str, &str); 5] = [
    (Tab::Chat, "", "Chat"),
    (Tab::Status, "/status", "Status"),
    (Tab::Request, "/request", "Request"),
    (Tab::Lineage, "/lineage", "Lineage"),
    (Tab::Log, "/log", "Log"),
];

/// Renders the header of every view of a session.
pub(super) fn session_header(opened: &VisitorSession, tab: Tab, done: Option<&str>) -> Markup {
    let info = &opened.record.info;
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.config.time_zone,
    );
    let here = session_path(&info.id);
    html! {
        (flash_message(done))
        div.session-head {
            div.head {
                h1 title=(info.id) { (super::page_format::truncate_line(session_title(info), 80)) }
                @if info.status == Status::Archived { span.badge { "archived" } }
                @for tag in &info.tags { a.tag href={ "/?tag=" (percent_encode(tag.as_str())) } { (tag) } }
                (action_menu(info))
            }
            p.facts {
                @match &info.lineage {
                    Lineage::Forked { session, at } => span { "fork of " a href=(entry_path(session, *at)) { (session) " at #" (at) } },
                    Lineage::Continued { session } => span { "continued from " a href=(session_path(session)) { (session) } },
                    Lineage::Root => {},
                }
                @if let Some(agent) = &info.agent { span { (agent.name) } }
                @if let Some(model) = &info.model { span { (model) } }
                span { (pluralize(info.messages, "message")) }
                @if info.tokens.total() > 0 { span { (abbreviate(info.tokens.total())) " tokens" } }
                span { "active " (relative_time_phrase(info.last_activity, now, zone)) }
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

fn action_menu(info: &SessionInfo) -> Markup {
    let here = session_path(&info.id);
    let button = |path: &str, name: &str| {
        html! { li { form method="post" action={ (here) "/" (path) } { button type="submit" { (name) } } } }
    };
    let link =
        |path: &str, name: &str| html! { li { a href={ (here) "/" (path) } { (name) "…" } } };
    let export = |format: &str, name: &str| {
        let api = percent_encode(info.id.as_str());
        html! { li { a href={ "/api/sessions/" (api) "/export?format=" (format) } download { "Export as " (name) } } }
    };
    html! {
        details.menu.actions {
            summary { "Actions" }
            ul {
                (link("rename", "Rename"))
                (link("tags", "Edit tags"))
                (link("pin", "Pin a fact"))
                li.line role="separator" {}
                (button("compact", "Compact"))
                @if info.compactions > 0 { (button("undo", "Undo compaction")) }
                (button("clear", "Clear context"))
                li.line role="separator" {}
                (link("fork", "Fork"))
                (link("merge", "Merge"))
                li.line role="separator" {}
                (export("markdown", "Markdown"))
                (export("json", "JSON"))
                (export("jsonl", "JSON Lines"))
                li.line role="separator" {}
                @if info.status == Status::Archived { (button("unarchive", "Unarchive")) }
                @else { (button("archive", "Archive")) }
                (button("trash", "Move to trash"))
            }
        }
    }
}
