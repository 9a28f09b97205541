//! Everything that was ever said, found again.

use std::time::Duration;

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use throughline::glance::counted;
use throughline::recalling::{Mode, Snippet};
use throughline::{Patience, Searched, Searching};

use super::layout::{self, Place, part};
use super::visitor::{Fault, Visitor};
use super::words::{ago, entry_place, title};
use crate::extract::Query;

/// Hits at a time.
const PAGE: usize = 40;
/// How long somebody who types waits for what was just said.
const WAIT: Duration = Duration::from_millis(400);

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct SearchQuery {
    #[serde(default)]
    q: String,
    part: Option<String>,
}

/// What came of a search.
pub(super) enum Sought {
    Found(Searched),
    /// It cannot be searched for, and why.
    Wrong(String),
}

/// Looks for something.
pub(super) async fn seek(visitor: &Visitor, typed: &str, limit: usize, typing: bool) -> Sought {
    let searching = Searching {
        typed,
        mode: Mode::Hybrid,
        limit,
        typing,
        project: None,
        listing: &[],
        zone: &visitor.app.serving.zone,
        patience: Patience::For(WAIT),
    };
    let searched = visitor.caller.tl.search(&searching).await;
    crate::api::log_index_rebuild(&visitor.caller.tl);
    match searched {
        Ok(searched) => Sought::Found(searched),
        Err(error) => Sought::Wrong(error.to_string()),
    }
}

/// A piece of what was said, with what was looked for marked.
pub(super) fn snippet(snippet: &Snippet) -> Markup {
    let text = snippet.text.as_str();
    let mut pieces: Vec<(bool, &str)> = Vec::new();
    let mut done = 0;
    for mark in &snippet.marks {
        // What does not fit is not marked.
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
) -> Result<Response, Fault> {
    let typing = query.part.is_some();
    let results = results(&visitor, &query.q, typing).await;
    if typing {
        return Ok(part(&results));
    }
    let main = html! {
        div.head { h1 { "Search" } }
        form.toolbar role="search" method="get" action="/search" {
            label.visually-hidden for="q" { "Search everything said" }
            input id="q" name="q" type="search" value=(query.q) autocomplete="off" data-search
                autofocus[query.q.is_empty()] placeholder="Words, \"a phrase\", from:user, after:yesterday, tag:auth   /";
            button type="submit" { "Search" }
        }
        div id="results" aria-live="polite" { (results) }
    };
    Ok(layout::page(
        &visitor,
        Place::Search,
        "Search",
        &["search.js"],
        &main,
    ))
}

async fn results(visitor: &Visitor, typed: &str, typing: bool) -> Markup {
    if typed.trim().is_empty() {
        return html! {
            div.empty {
                p.big { "Find anything ever said" }
                p { "By words and by meaning, in every session. Narrow it down with "
                    code { "from:assistant" } ", " code { "tag:auth" } ", " code { "after:2026-01-01" }
                    " or " code { "file:src/lib.rs" } "." }
            }
        };
    }
    let searched = match seek(visitor, typed, PAGE, typing).await {
        Sought::Found(searched) => searched,
        Sought::Wrong(why) => return html! { div.empty { p.big { "Not quite" } p { (why) } } },
    };
    let (now, zone) = (visitor.caller.tl.now(), &visitor.app.serving.zone);
    let known = |hit: &&throughline::recalling::Hit| searched.card(&hit.session).is_some();
    let hits: Vec<_> = searched.found.hits.iter().filter(known).collect();
    html! {
        @if searched.behind > 0 {
            p.muted { (counted(searched.behind, "change")) " cannot be searched yet; search again in a moment." }
        }
        @if let Some(corrected) = &searched.found.corrected {
            p.muted { "Nothing has it as it was typed. Searched for " b { (corrected) } " instead." }
        }
        @if hits.is_empty() {
            div.empty { p.big { "Nothing found" } p { "Try fewer words, or others." } }
        } @else {
            ol.rows.hits aria-label="What was found" {
                @for hit in hits {
                    li {
                        a.row href=(entry_place(&hit.session, hit.seq)) {
                            span.name {
                                (searched.card(&hit.session).map_or("", title))
                                span.muted { " #" (hit.seq) " · " (hit.author.as_deref().unwrap_or(hit.role.as_str())) }
                            }
                            span.preview { (snippet(&hit.snippet)) }
                            span.age { (ago(hit.at, now, zone)) }
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
    fn what_was_looked_for_is_marked_and_nothing_of_it_is_markup() {
        let found = Snippet {
            text: "a <b> needle".into(),
            marks: std::iter::once(6..12).collect(),
            cut_before: true,
            cut_after: false,
        };
        let html = snippet(&found).into_string();
        assert_eq!(html, "… a &lt;b&gt; <mark>needle</mark>");
    }
}
