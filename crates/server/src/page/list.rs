//! The sessions, latest first: filtered, searched as one types, page by page.

use std::collections::BTreeMap;

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use throughline::glance::{compact, counted};
use throughline::{Card, Cursor, Filter, Lineage, Project, Status};

use super::layout::{self, Place, part, said};
use super::search::{Sought, seek, snippet};
use super::visitor::{Fault, Visitor};
use super::words::{ago, encoded, entry_place, place, title};
use crate::Problem;
use crate::extract::Query;

/// Sessions on a page.
const PAGE: usize = 50;
/// Sessions looked at for the tags that can be chosen.
const LATEST: usize = 1_000;
/// Sessions looked through for a name, at most.
const LOOKED_THROUGH: usize = 20_000;
/// Tags that can be chosen.
const TAGS: usize = 12;

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
    fn filter(&self) -> Result<Filter, Problem> {
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
        Ok(Filter {
            status,
            tags,
            project,
            ..Filter::default()
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
                parts.push(format!("{name}={}", encoded(value)));
            }
        }
        if parts.is_empty() {
            return "/".to_owned();
        }
        format!("/?{}", parts.join("&"))
    }

    fn is_narrowed(&self) -> bool {
        let all = [self.q.trim(), &self.tag, &self.project, &self.status];
        all.iter().any(|part| !part.is_empty())
    }
}

pub(super) async fn page(
    visitor: Visitor,
    Query(query): Query<ListQuery>,
) -> Result<Response, Fault> {
    let filter = query.filter()?;
    let rows = rows(&visitor, &query, &filter).await?;
    if query.part.is_some() {
        return Ok(part(&rows));
    }
    let tl = &visitor.caller.tl;
    let projects = tl.projects().await?;
    let latest = tl.list(&Filter::default(), None, LATEST).await?;
    let total = tl.count(&filter).await?;
    let main = html! {
        (said(query.said.as_deref()))
        div.head {
            h1 { "Sessions" }
            span.muted data-total { (counted(total, "session")) }
            form method="post" action="/new" { button.primary type="submit" { "New session" } }
        }
        (toolbar(&query, &projects, &tags(&latest.items)))
        div id="list" data-live { (rows) }
    };
    Ok(layout::page(
        &visitor,
        Place::Sessions,
        "Sessions",
        &["live.js", "list.js"],
        &main,
    ))
}

/// The tags that are used most, in their order.
fn tags(cards: &[Card]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in cards.iter().flat_map(|card| &card.tags) {
        *counts.entry(tag.as_str()).or_default() += 1;
    }
    let mut tags: Vec<_> = counts.into_iter().collect();
    tags.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    tags.truncate(TAGS);
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
async fn rows(visitor: &Visitor, query: &ListQuery, filter: &Filter) -> Result<Markup, Fault> {
    if !query.q.trim().is_empty() {
        return found(visitor, query, filter).await;
    }
    let after: Option<Cursor> = query.after.as_deref().map(str::parse).transpose().map_err(
        |error: throughline::CursorError| {
            Problem::bad_request("bad_query_string", error.to_string())
        },
    )?;
    let page = visitor.caller.tl.list(filter, after.as_ref(), PAGE).await?;
    if page.items.is_empty() {
        return Ok(nothing(query));
    }
    Ok(html! {
        ol.rows aria-label="Sessions" { @for card in &page.items { (row(visitor, card, None)) } }
        @if let Some(next) = page.next {
            p.more { a href=(query.link(&query.status, &query.tag, Some(&next.to_string()))) data-more { "More sessions" } }
        }
    })
}

fn nothing(query: &ListQuery) -> Markup {
    html! {
        div.empty {
            @if query.is_narrowed() {
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
async fn found(visitor: &Visitor, query: &ListQuery, filter: &Filter) -> Result<Markup, Fault> {
    let words: Vec<String> = query.q.split_whitespace().map(str::to_lowercase).collect();
    let mut named = Vec::new();
    let mut after = None;
    let mut looked_through = 0;
    while named.len() < PAGE && looked_through < LOOKED_THROUGH {
        let page = visitor
            .caller
            .tl
            .list(filter, after.as_ref(), LATEST)
            .await?;
        looked_through += page.items.len();
        named.extend(
            page.items
                .into_iter()
                .filter(|card| is_called(card, &words)),
        );
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    named.truncate(PAGE);
    let sought = seek(visitor, &query.q, PAGE, true).await;
    let (hits, why) = match &sought {
        Sought::Found(searched) => (searched.found.hits.as_slice(), None),
        Sought::Wrong(why) => (&[][..], Some(why)),
    };
    let mut said = Vec::new();
    if let Sought::Found(searched) = &sought {
        for hit in hits {
            let known = named.iter().any(|card| card.id == hit.session)
                || said
                    .iter()
                    .any(|(card, _): &(&Card, _)| card.id == hit.session);
            if !known
                && let Some(card) = searched.card(&hit.session)
                && fits(card, filter)
            {
                said.push((card, hit));
            }
        }
    }
    if named.is_empty() && said.is_empty() {
        return Ok(html! {
            (nothing(query))
            @if let Some(why) = why { p.empty.muted { (why) } }
        });
    }
    Ok(html! {
        @if !named.is_empty() {
            ol.rows aria-label="Sessions" { @for card in &named { (row(visitor, card, None)) } }
        }
        @if !said.is_empty() {
            h2.divider { "In what was said" }
            ol.rows aria-label="Sessions in which it was said" {
                @for (card, hit) in said { (row(visitor, card, Some(hit))) }
            }
        }
        p.more { a href={ "/search?q=" (encoded(&query.q)) } { "Every place where it was said" } }
    })
}

fn is_called(card: &Card, words: &[String]) -> bool {
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

fn fits(card: &Card, filter: &Filter) -> bool {
    filter.status.is_none_or(|status| card.status == status)
        && filter.tags.iter().all(|tag| card.tags.contains(tag))
        && filter
            .project
            .as_ref()
            .is_none_or(|project| card.project.as_ref() == Some(project))
}

/// One session.
fn row(visitor: &Visitor, card: &Card, hit: Option<&throughline::recalling::Hit>) -> Markup {
    let (now, zone) = (visitor.caller.tl.now(), &visitor.app.serving.zone);
    let href = match hit {
        Some(hit) => entry_place(&card.id, hit.seq),
        None => place(&card.id),
    };
    html! {
        li data-id=(card.id) {
            a.row href=(href) {
                span.name {
                    (title(card))
                    @match &card.lineage {
                        Lineage::Forked { .. } => span.badge title="A fork of another session" { "fork" },
                        Lineage::Continued { .. } => span.badge title="Goes on from another's summary" { "continued" },
                        Lineage::Root => {},
                    }
                    @if card.compactions > 0 {
                        span.badge title=(counted(card.compactions, "compaction")) { "compacted" }
                    }
                    @if card.status == Status::Archived { span.badge { "archived" } }
                }
                span.preview {
                    @match (hit, &card.description) {
                        (Some(hit), _) => (snippet(&hit.snippet)),
                        (None, Some(text)) => (text),
                        (None, None) if card.name.is_some() => (card.preview),
                        (None, None) => {},
                    }
                }
                span.tags { @for tag in &card.tags { span.tag { (tag) } } }
                span.figures {
                    span.model { (card.model.as_deref().unwrap_or_default()) }
                    span title="Messages" { (compact(card.messages)) span.unit { " msg" } }
                    span title="Tokens reported" {
                        @if card.tokens.total() > 0 { (compact(card.tokens.total())) span.unit { " tok" } }
                    }
                }
                span.age { (ago(card.last_activity, now, zone)) }
            }
        }
    }
}
