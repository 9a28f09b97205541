//! The sessions, latest first: filtered, searched as one types, page by page.

use std::collections::BTreeMap;

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use throughline::format::{abbreviate, pluralize};
use throughline::{Cursor, Lineage, Project, SessionFilter, SessionInfo, Status};

use super::layout::{self, NavItem, flash_message, fragment};
use super::page_format::{entry_path, percent_encode, relative_time, session_path, session_title};
use super::search::{SearchOutcome, render_snippet, run_search};
use super::visitor::{PageError, Visitor};
use crate::Problem;
use crate::extract::Query;

/// Sessions on a page.
const PAGE_SIZE: usize = 50;
/// Sessions looked at for the tags that can be chosen.
const SCAN_PAGE_SIZE: usize = 1_000;
/// Sessions looked through for a name, at most.
const MAX_SCANNED_SESSIONS: usize = 20_000;
/// Tags that can be chosen.
const MAX_TAGS: usize = 12;

/// Which sessions.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ListQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    tag: String,
    #[serde(default)]
    project: String,
    after: Option<String>,
    part: Option<String>,
    said: Option<String>,
}

impl ListQuery {
    fn filter(&self) -> Result<SessionFilter, Problem> {
        let wrong = |what: &str, why: String| {
            Problem::bad_request("bad_query_string", format!("{what}: {why}"))
        };
        let status = match self.status.as_str() {
            "" => Some(Status::Active),
            "all" => None,
            other => Some(other.parse().map_err(|why| wrong("status", why))?),
        };
        let tags = match self.tag.as_str() {
            "" => Vec::new(),
            tag => vec![
                tag.parse()
                    .map_err(|e: throughline::NameError| wrong("tag", e.to_string()))?,
            ],
        };
        let project = match self.project.as_str() {
            "" => None,
            id => Some(
                id.parse()
                    .map_err(|e: throughline::IdError| wrong("project", e.to_string()))?,
            ),
        };
        Ok(SessionFilter {
            status,
            tags,
            project,
            ..SessionFilter::default()
        })
    }

    /// The same listing with something else in it.
    fn link(&self, status: &str, tag: &str, after: Option<&str>) -> String {
        let mut parts = Vec::new();
        let members = [
            ("q", self.q.as_str()),
            ("status", status),
            ("tag", tag),
            ("project", &self.project),
            ("after", after.unwrap_or_default()),
        ];
        for (name, value) in members {
            if !value.is_empty() {
                parts.push(format!("{name}={}", percent_encode(value)));
            }
        }
        if parts.is_empty() {
            return "/".to_owned();
        }
        format!("/?{}", parts.join("&"))
    }

    fn is_filtered(&self) -> bool {
        let all = [self.q.trim(), &self.tag, &self.project, &self.status];
        all.iter().any(|part| !part.is_empty())
    }
}

pub(super) async fn page(
    visitor: Visitor,
    Query(query): Query<ListQuery>,
) -> Result<Response, PageError> {
    let filter = query.filter()?;
    let rows = render_rows(&visitor, &query, &filter).await?;
    if query.part.is_some() {
        return Ok(fragment(&rows));
    }
    let tl = &visitor.caller.tl;
    let projects = tl.projects().await?;
    let latest = tl
        .list(&SessionFilter::default(), None, SCAN_PAGE_SIZE)
        .await?;
    let total = tl.count(&filter).await?;
    let main = html! {
        (flash_message(query.said.as_deref()))
        div.head {
            h1 { "Sessions" }
            span.muted data-total { (pluralize(total, "session")) }
            form method="post" action="/new" { button.primary type="submit" { "New session" } }
        }
        (toolbar(&query, &projects, &top_tags(&latest.items)))
        div id="list" data-live { (rows) }
    };
    Ok(layout::page(
        &visitor,
        NavItem::Sessions,
        "Sessions",
        &["live.js", "list.js"],
        &main,
    ))
}

/// The tags that are used most, in their order.
fn top_tags(cards: &[SessionInfo]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in cards.iter().flat_map(|card| &card.tags) {
        *counts.entry(tag.as_str()).or_default() += 1;
    }
    let mut tags: Vec<_> = counts.into_iter().collect();
    tags.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    tags.truncate(MAX_TAGS);
    tags.into_iter().map(|(tag, _)| tag.to_owned()).collect()
}

fn toolbar(query: &ListQuery, projects: &[Project], tags: &[String]) -> Markup {
    let statuses = [("", "Active"), ("archived", "Archived"), ("all", "All")];
    html! {
        form.toolbar role="search" method="get" action="/" data-filter {
            label.visually-hidden for="q" { "Search sessions" }
            input id="q" name="q" type="search" value=(query.q) autocomplete="off" data-search
                placeholder="Search names, tags and everything said   /";
            @if !query.status.is_empty() { input type="hidden" name="status" value=(query.status); }
            @if !query.tag.is_empty() { input type="hidden" name="tag" value=(query.tag); }
            @if !projects.is_empty() {
                label.visually-hidden for="project" { "Project" }
                select id="project" name="project" data-submit {
                    option value="" { "All projects" }
                    @for project in projects {
                        option value=(project.id) selected[project.id.as_str() == query.project] {
                            (project.name)
                        }
                    }
                }
            }
            button type="submit" { "Search" }
        }
        div.filters {
            nav.segments aria-label="Status" {
                @for (status, name) in statuses {
                    a href=(query.link(status, &query.tag, None))
                        aria-current=[(status == query.status).then_some("true")] { (name) }
                }
            }
            @if !tags.is_empty() {
                nav.chips aria-label="Tags" {
                    @for tag in tags {
                        @let chosen = *tag == query.tag;
                        a.tag href=(query.link(&query.status, if chosen { "" } else { tag }, None))
                            aria-current=[chosen.then_some("true")] { (tag) }
                    }
                }
            }
        }
    }
}

/// The sessions themselves, and where there are more.
async fn render_rows(
    visitor: &Visitor,
    query: &ListQuery,
    filter: &SessionFilter,
) -> Result<Markup, PageError> {
    if !query.q.trim().is_empty() {
        return render_search(visitor, query, filter).await;
    }
    let after: Option<Cursor> = query.after.as_deref().map(str::parse).transpose().map_err(
        |error: throughline::CursorError| {
            Problem::bad_request("bad_query_string", error.to_string())
        },
    )?;
    let page = visitor
        .caller
        .tl
        .list(filter, after.as_ref(), PAGE_SIZE)
        .await?;
    if page.items.is_empty() {
        return Ok(render_empty(query));
    }
    Ok(html! {
        ol.rows aria-label="Sessions" { @for card in &page.items { (session_row(visitor, card, None)) } }
        @if let Some(next) = page.next {
            p.more { a href=(query.link(&query.status, &query.tag, Some(&next.to_string()))) data-more { "More sessions" } }
        }
    })
}

fn render_empty(query: &ListQuery) -> Markup {
    html! {
        div.empty {
            @if query.is_filtered() {
                p.big { "Nothing here" }
                p { "No session matches. " a href="/" { "Show all that are active" } }
            } @else {
                p.big { "No sessions yet" }
                p { "Start one here, in a terminal with " code { "tl" } ", or from a program with "
                    code { "POST /api/sessions" } "." }
                p { "Years of history elsewhere? " code { "tl import" } " brings it in." }
            }
        }
    }
}

/// Sessions by what they are called, then by what was said in them.
async fn render_search(
    visitor: &Visitor,
    query: &ListQuery,
    filter: &SessionFilter,
) -> Result<Markup, PageError> {
    let words: Vec<String> = query.q.split_whitespace().map(str::to_lowercase).collect();
    let mut named = Vec::new();
    let mut after = None;
    let mut looked_through = 0;
    while named.len() < PAGE_SIZE && looked_through < MAX_SCANNED_SESSIONS {
        let page = visitor
            .caller
            .tl
            .list(filter, after.as_ref(), SCAN_PAGE_SIZE)
            .await?;
        looked_through += page.items.len();
        named.extend(
            page.items
                .into_iter()
                .filter(|card| matches_words(card, &words)),
        );
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    named.truncate(PAGE_SIZE);
    let sought = run_search(visitor, &query.q, PAGE_SIZE, true).await;
    let (hits, why) = match &sought {
        SearchOutcome::Results(searched) => (searched.found.hits.as_slice(), None),
        SearchOutcome::Invalid(why) => (&[][..], Some(why)),
    };
    let mut said = Vec::new();
    if let SearchOutcome::Results(searched) = &sought {
        for hit in hits {
            let known = named.iter().any(|card| card.id == hit.session)
                || said
                    .iter()
                    .any(|(card, _): &(&SessionInfo, _)| card.id == hit.session);
            if !known
                && let Some(card) = searched.session(&hit.session)
                && matches_filter(card, filter)
            {
                said.push((card, hit));
            }
        }
    }
    if named.is_empty() && said.is_empty() {
        return Ok(html! {
            (render_empty(query))
            @if let Some(why) = why { p.empty.muted { (why) } }
        });
    }
    Ok(html! {
        @if !named.is_empty() {
            ol.rows aria-label="Sessions" { @for card in &named { (session_row(visitor, card, None)) } }
        }
        @if !said.is_empty() {
            h2.divider { "In what was said" }
            ol.rows aria-label="Sessions in which it was said" {
                @for (card, hit) in said { (session_row(visitor, card, Some(hit))) }
            }
        }
        p.more { a href={ "/search?q=" (percent_encode(&query.q)) } { "Every place where it was said" } }
    })
}

fn matches_words(card: &SessionInfo, words: &[String]) -> bool {
    let tags: Vec<&str> = card.tags.iter().map(throughline::Tag::as_str).collect();
    let parts = [
        card.name.as_ref().map_or("", |name| name.as_str()),
        card.id.as_str(),
        card.key.as_ref().map_or("", |key| key.as_str()),
        card.description.as_deref().unwrap_or_default(),
        &card.preview,
        &tags.join(" "),
    ];
    let text = parts.join("\n").to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}

fn matches_filter(card: &SessionInfo, filter: &SessionFilter) -> bool {
    filter.status.is_none_or(|status| card.status == status)
        && filter.tags.iter().all(|tag| card.tags.contains(tag))
        && filter
            .project
            .as_ref()
            .is_none_or(|project| card.project.as_ref() == Some(project))
}

/// One session.
fn session_row(
    visitor: &Visitor,
    card: &SessionInfo,
    hit: Option<&throughline::recall::Hit>,
) -> Markup {
    let (now, zone) = (visitor.caller.tl.now(), &visitor.app.config.time_zone);
    let href = match hit {
        Some(hit) => entry_path(&card.id, hit.seq),
        None => session_path(&card.id),
    };
    html! {
        li data-id=(card.id) {
            a.row href=(href) {
                span.name {
                    (session_title(card))
                    @match &card.lineage {
                        Lineage::Forked { .. } => span.badge title="A fork of another session" { "fork" },
                        Lineage::Continued { .. } => span.badge title="Goes on from another's summary" { "continued" },
                        Lineage::Root => {},
                    }
                    @if card.compactions > 0 {
                        span.badge title=(pluralize(card.compactions, "compaction")) { "compacted" }
                    }
                    @if card.status == Status::Archived { span.badge { "archived" } }
                }
                span.preview {
                    @match (hit, &card.description) {
                        (Some(hit), _) => (render_snippet(&hit.snippet)),
                        (None, Some(text)) => (text),
                        (None, None) if card.name.is_some() => (card.preview),
                        (None, None) => {},
                    }
                }
                span.tags { @for tag in &card.tags { span.tag { (tag) } } }
                span.figures {
                    span.model { (card.model.as_deref().unwrap_or_default()) }
                    span title="Messages" { (abbreviate(card.messages)) span.unit { " msg" } }
                    span title="Tokens reported" {
                        @if card.tokens.total() > 0 { (abbreviate(card.tokens.total())) span.unit { " tok" } }
                    }
                }
                span.age { (relative_time(card.last_activity, now, zone)) }
            }
        }
    }
}
