//! Session list page: latest first, with filters, live search and paging.

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

/// Sessions per page.
const PAGE_SIZE: usize = 50;
/// Sessions scanned to collect tags.
const SCAN_PAGE_SIZE: usize = 1_000;
/// Maximum number of sessions scanned for a name.
const MAX_SCANNED_SESSIONS: usize = 20_000;
/// Maximum number of tags offered as filters.
const MAX_TAGS: usize = 12;

/// Which sessions to list.
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

    /// URL of the same listing with other filters.
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

/// The most used tags, most used first.
fn top_tags(sessions: &[SessionInfo]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in sessions.iter().flat_map(|info| &info.tags) {
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
                placeholder="Search names, tags and messages   /";
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

/// Renders the sessions, and a link to the next page.
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
        ol.rows aria-label="Sessions" { @for info in &page.items { (session_row(visitor, info, None)) } }
        @if let Some(next) = page.next {
            p.more { a href=(query.link(&query.status, &query.tag, Some(&next.to_string()))) data-more { "More sessions" } }
        }
    })
}

fn render_empty(query: &ListQuery) -> Markup {
    html! {
        div.empty {
            @if query.is_filtered() {
                p.big { "No matches" }
                p { "No session matches the filters. " a href="/" { "Show all active sessions" } }
            } @else {
                p.big { "No sessions yet" }
                p { "Start one here, in a terminal with " code { "tl" } ", or from a program with "
                    code { "POST /api/sessions" } "." }
                p { "To import history from other tools, use " code { "tl import" } "." }
            }
        }
    }
}

/// Renders sessions that match by name, then those that match by content.
async fn render_search(
    visitor: &Visitor,
    query: &ListQuery,
    filter: &SessionFilter,
) -> Result<Markup, PageError> {
    let words: Vec<String> = query.q.split_whitespace().map(str::to_lowercase).collect();
    let mut by_name = Vec::new();
    let mut after = None;
    let mut scanned = 0;
    while by_name.len() < PAGE_SIZE && scanned < MAX_SCANNED_SESSIONS {
        let page = visitor
            .caller
            .tl
            .list(filter, after.as_ref(), SCAN_PAGE_SIZE)
            .await?;
        scanned += page.items.len();
        by_name.extend(
            page.items
                .into_iter()
                .filter(|info| matches_words(info, &words)),
        );
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    by_name.truncate(PAGE_SIZE);
    let outcome = run_search(visitor, &query.q, PAGE_SIZE, true).await;
    let (hits, why) = match &outcome {
        SearchOutcome::Results(searched) => (searched.found.hits.as_slice(), None),
        SearchOutcome::Invalid(why) => (&[][..], Some(why)),
    };
    let mut by_content = Vec::new();
    if let SearchOutcome::Results(searched) = &outcome {
        for hit in hits {
            let known = by_name.iter().any(|info| info.id == hit.session)
                || by_content
                    .iter()
                    .any(|(info, _): &(&SessionInfo, _)| info.id == hit.session);
            if !known
                && let Some(info) = searched.session(&hit.session)
                && matches_filter(info, filter)
            {
                by_content.push((info, hit));
            }
        }
    }
    if by_name.is_empty() && by_content.is_empty() {
        return Ok(html! {
            (render_empty(query))
            @if let Some(why) = why { p.empty.muted { (why) } }
        });
    }
    Ok(html! {
        @if !by_name.is_empty() {
            ol.rows aria-label="Sessions" { @for info in &by_name { (session_row(visitor, info, None)) } }
        }
        @if !by_content.is_empty() {
            h2.divider { "In messages" }
            ol.rows aria-label="Sessions with matching messages" {
                @for (info, hit) in by_content { (session_row(visitor, info, Some(hit))) }
            }
        }
        p.more { a href={ "/search?q=" (percent_encode(&query.q)) } { "Show all matching messages" } }
    })
}

fn matches_words(info: &SessionInfo, words: &[String]) -> bool {
    let tags: Vec<&str> = info.tags.iter().map(throughline::Tag::as_str).collect();
    let parts = [
        info.name.as_ref().map_or("", |name| name.as_str()),
        info.id.as_str(),
        info.key.as_ref().map_or("", |key| key.as_str()),
        info.description.as_deref().unwrap_or_default(),
        &info.preview,
        &tags.join(" "),
    ];
    let text = parts.join("\n").to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}

fn matches_filter(info: &SessionInfo, filter: &SessionFilter) -> bool {
    filter.status.is_none_or(|status| info.status == status)
        && filter.tags.iter().all(|tag| info.tags.contains(tag))
        && filter
            .project
            .as_ref()
            .is_none_or(|project| info.project.as_ref() == Some(project))
}

/// Renders one session.
fn session_row(
    visitor: &Visitor,
    info: &SessionInfo,
    hit: Option<&throughline::recall::Hit>,
) -> Markup {
    let (now, zone) = (visitor.caller.tl.now(), &visitor.app.config.time_zone);
    let href = match hit {
        Some(hit) => entry_path(&info.id, hit.seq),
        None => session_path(&info.id),
    };
    html! {
        li data-id=(info.id) {
            a.row href=(href) {
                span.name {
                    (session_title(info))
                    @match &info.lineage {
                        Lineage::Forked { .. } => span.badge title="A fork of another session" { "fork" },
                        Lineage::Continued { .. } => span.badge title="Continued from another session's summary" { "continued" },
                        Lineage::Root => {},
                    }
                    @if info.compactions > 0 {
                        span.badge title=(pluralize(info.compactions, "compaction")) { "compacted" }
                    }
                    @if info.status == Status::Archived { span.badge { "archived" } }
                }
                span.preview {
                    @match (hit, &info.description) {
                        (Some(hit), _) => (render_snippet(&hit.snippet)),
                        (None, Some(text)) => (text),
                        (None, None) if info.name.is_some() => (info.preview),
                        (None, None) => {},
                    }
                }
                span.tags { @for tag in &info.tags { span.tag { (tag) } } }
                span.figures {
                    span.model { (info.model.as_deref().unwrap_or_default()) }
                    span title="Messages" { (abbreviate(info.messages)) span.unit { " msg" } }
                    span title="Tokens reported" {
                        @if info.tokens.total() > 0 { (abbreviate(info.tokens.total())) span.unit { " tok" } }
                    }
                }
                span.age { (relative_time(info.last_activity, now, zone)) }
            }
        }
    }
}
