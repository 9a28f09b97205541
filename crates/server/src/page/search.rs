//! Search page: full-text and semantic search over all messages.

use std::time::Duration;

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use throughline::format::pluralize;
use throughline::recall::{Mode, Snippet};
use throughline::{IndexWait, SearchOptions, SearchResults};

use super::layout::{self, NavItem, fragment};
use super::page_format::{entry_path, relative_time, session_title};
use super::visitor::{PageError, Visitor};
use crate::extract::Query;

/// Hits per page.
const PAGE_SIZE: usize = 40;
/// How long a search while typing waits for recent entries to be indexed.
const INDEX_WAIT: Duration = Duration::from_millis(400);

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct SearchQuery {
    #[serde(default)]
    q: String,
    part: Option<String>,
}

/// Result of a search.
pub(super) enum SearchOutcome {
    Results(SearchResults),
    /// The query is invalid, with the reason.
    Invalid(String),
}

/// Runs a search.
pub(super) async fn run_search(
    visitor: &Visitor,
    typed: &str,
    limit: usize,
    typing: bool,
) -> SearchOutcome {
    let searching = SearchOptions {
        query: typed,
        mode: Mode::Hybrid,
        limit,
        typing,
        project: None,
        listing: &[],
        zone: &visitor.app.config.time_zone,
        index_wait: IndexWait::For(INDEX_WAIT),
    };
    let searched = visitor.caller.tl.search(&searching).await;
    crate::api::log_index_rebuild(&visitor.caller.tl);
    match searched {
        Ok(searched) => SearchOutcome::Results(searched),
        Err(error) => SearchOutcome::Invalid(error.to_string()),
    }
}

/// Renders an excerpt with its matches highlighted.
pub(super) fn render_snippet(snippet: &Snippet) -> Markup {
    let text = snippet.text.as_str();
    let mut pieces: Vec<(bool, &str)> = Vec::new();
    let mut done = 0;
    for mark in &snippet.marks {
        // Skip ranges that do not fit the text.
        let (Some(before), Some(marked)) = (text.get(done..mark.start), text.get(mark.clone()))
        else {
            continue;
        };
        pieces.push((false, before));
        pieces.push((true, marked));
        done = mark.end;
    }
    pieces.push((false, text.get(done..).unwrap_or_default()));
    html! {
        @if snippet.cut_before { "… " }
        @for (marked, piece) in pieces {
            @if marked { mark { (piece) } } @else { (piece) }
        }
        @if snippet.cut_after { " …" }
    }
}

pub(super) async fn page(
    visitor: Visitor,
    Query(query): Query<SearchQuery>,
) -> Result<Response, PageError> {
    let typing = query.part.is_some();
    let results = render_results(&visitor, &query.q, typing).await;
    if typing {
        return Ok(fragment(&results));
    }
    let main = html! {
        div.head { h1 { "Search" } }
        form.toolbar role="search" method="get" action="/search" {
            label.visually-hidden for="q" { "Search all messages" }
            input id="q" name="q" type="search" value=(query.q) autocomplete="off" data-search
                autofocus[query.q.is_empty()] placeholder="Words, \"a phrase\", from:user, after:yesterday, tag:auth   /";
            button type="submit" { "Search" }
        }
        div id="results" aria-live="polite" { (results) }
    };
    Ok(layout::page(
        &visitor,
        NavItem::Search,
        "Search",
        &["search.js"],
        &main,
    ))
}

async fn render_results(visitor: &Visitor, typed: &str, typing: bool) -> Markup {
    if typed.trim().is_empty() {
        return html! {
            div.empty {
                p.big { "Search all sessions" }
                p { "Search messages by words and by meaning. Narrow results with "
                    code { "from:assistant" } ", " code { "tag:auth" } ", " code { "after:2026-01-01" }
                    " or " code { "file:src/lib.rs" } "." }
            }
        };
    }
    let searched = match run_search(visitor, typed, PAGE_SIZE, typing).await {
        SearchOutcome::Results(searched) => searched,
        SearchOutcome::Invalid(why) => {
            return html! { div.empty { p.big { "Invalid search" } p { (why) } } };
        }
    };
    let (now, zone) = (visitor.caller.tl.now(), &visitor.app.config.time_zone);
    let known = |hit: &&throughline::recall::Hit| searched.session(&hit.session).is_some();
    let hits: Vec<_> = searched.found.hits.iter().filter(known).collect();
    html! {
        @if searched.lag > 0 {
            p.muted { (pluralize(searched.lag, "change")) " not indexed yet; search again in a moment." }
        }
        @if let Some(corrected) = &searched.found.corrected {
            p.muted { "No exact matches. Showing results for " b { (corrected) } "." }
        }
        @if hits.is_empty() {
            div.empty { p.big { "No results" } p { "Try fewer or different words." } }
        } @else {
            ol.rows.hits aria-label="Search results" {
                @for hit in hits {
                    li {
                        a.row href=(entry_path(&hit.session, hit.seq)) {
                            span.name {
                                (searched.session(&hit.session).map_or("", session_title))
                                span.muted { " #" (hit.seq) " · " (hit.author.as_deref().unwrap_or(hit.role.as_str())) }
                            }
                            span.preview { (render_snippet(&hit.snippet)) }
                            span.age { (relative_time(hit.at, now, zone)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_highlighted_and_markup_is_escaped() {
        let found = Snippet {
            text: "a <b> needle".into(),
            marks: std::iter::once(6..12).collect(),
            cut_before: true,
            cut_after: false,
        };
        let html = render_snippet(&found).into_string();
        assert_eq!(html, "… a &lt;b&gt; <mark>needle</mark>");
    }
}
