//! Memory page: the facts of a project, or owner-wide.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;
use throughline::format::pluralize;
use throughline::{AddFactStatus, Fact, Memory, MemoryScope, NewFact, Seq};

use super::layout::{self, NavItem, flash_message};
use super::page_format::{author_name, entry_path, percent_encode, relative_time_phrase};
use super::visitor::{Form, PageError, Visitor};
use crate::Problem;
use crate::extract::Query;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct MemoryQuery {
    #[serde(default)]
    project: String,
    #[serde(default)]
    q: String,
    said: Option<String>,
}

fn scoped_memory(visitor: &Visitor, project: &str) -> Result<Memory, Problem> {
    let scope = match project {
        "" => MemoryScope::Owner,
        id => MemoryScope::Project(id.parse().map_err(throughline::Error::from)?),
    };
    Ok(visitor.caller.tl.memory(scope))
}

pub(super) async fn page(
    visitor: Visitor,
    Query(query): Query<MemoryQuery>,
) -> Result<Response, PageError> {
    let projects = visitor.caller.tl.projects().await?;
    let memory = scoped_memory(&visitor, &query.project)?;
    let facts = memory.facts().await?;
    let current: Vec<Fact> = match query.q.trim() {
        "" => memory.top_facts(&[], usize::MAX).await?,
        words => memory
            .search(words)
            .await?
            .into_iter()
            .map(|found| found.fact)
            .collect(),
    };
    let proposed: Vec<&Fact> = facts
        .iter()
        .filter(|fact| fact.proposed && fact.is_current())
        .collect();
    let past: Vec<&Fact> = facts.iter().filter(|fact| !fact.is_current()).collect();
    let main = html! {
        (flash_message(query.said.as_deref()))
        div.head { h1 { "Memory" } span.muted { (pluralize(current.len() as u64, "fact")) } }
        form.toolbar method="get" action="/memory" role="search" {
            label.visually-hidden for="project" { "Project" }
            select id="project" name="project" data-submit {
                option value="" { "All projects" }
                @for project in &projects {
                    option value=(project.id) selected[project.id.as_str() == query.project] { (project.name) }
                }
            }
            label.visually-hidden for="q" { "Search facts" }
            input id="q" name="q" type="search" value=(query.q) placeholder="Search facts   /" data-search;
            button type="submit" { "Show" }
        }
        form.toolbar method="post" action="/memory" {
            input type="hidden" name="project" value=(query.project);
            label.visually-hidden for="text" { "New fact" }
            input id="text" name="text" required maxlength="2000" placeholder="A fact to remember in every session";
            button.primary name="act" value="add" type="submit" { "Remember" }
        }
        @if !proposed.is_empty() {
            section.card {
                h2 { "Proposed" }
                p.muted { "Found in summaries. They are used only after you accept them." }
                ul.things { @for fact in proposed { (render_fact(&visitor, &query, fact, true)) } }
            }
        }
        @if current.is_empty() {
            div.empty { p.big { "No facts yet" } p { "Add facts that the model should know in every session." } }
        }
        ul.things { @for fact in &current { (render_fact(&visitor, &query, fact, false)) } }
        @if !past.is_empty() {
            details {
                summary { (pluralize(past.len() as u64, "fact")) " no longer in effect" }
                ul.things { @for fact in past { (render_past_fact(fact)) } }
            }
        }
    };
    Ok(layout::page(
        &visitor,
        NavItem::Memory,
        "Memory",
        &[],
        &main,
    ))
}

fn render_past_fact(fact: &Fact) -> Markup {
    html! {
        li { div { s { (fact.text) } div.muted {
            "#" (fact.seq) " "
            @match fact.superseded_by {
                Some(seq) => { "replaced by #" (seq) },
                None => "forgotten",
            }
        } } }
    }
}

fn render_fact(visitor: &Visitor, query: &MemoryQuery, fact: &Fact, proposed: bool) -> Markup {
    let (now, zone) = (visitor.caller.tl.now(), &visitor.app.config.time_zone);
    html! {
        li {
            div {
                (fact.text)
                div.muted {
                    "#" (fact.seq) " · by " (fact.author.as_deref().unwrap_or_else(|| author_name(&fact.by))) " · " (relative_time_phrase(fact.at, now, zone))
                    @if fact.uses > 0 { " · used in " (pluralize(fact.uses, "session")) }
                    @if let Some(source) = &fact.source { " · " a href=(entry_path(&source.session, source.seq)) { "source" } }
                    @for file in &fact.files { " " code { (file) } }
                }
            }
            form method="post" action="/memory" {
                input type="hidden" name="project" value=(query.project);
                input type="hidden" name="fact" value=(fact.seq);
                @if proposed {
                    button name="act" value="accept" type="submit" { "Accept" }
                    button.plain name="act" value="forget" type="submit" { "Reject" }
                } @else {
                    button.plain name="act" value="forget" type="submit" aria-label={ "Forget fact " (fact.seq) } { "Forget" }
                }
            }
        }
    }
}

#[derive(Deserialize)]
pub(super) struct MemoryForm {
    act: String,
    #[serde(default)]
    project: String,
    #[serde(default)]
    text: String,
    fact: Option<u64>,
}

pub(super) async fn change_memory(
    visitor: Visitor,
    Form(change): Form<MemoryForm>,
) -> Result<Response, PageError> {
    let memory = scoped_memory(&visitor, &change.project)?;
    let code = match (change.act.as_str(), change.fact.map(Seq)) {
        ("add", _) => match memory
            .add(NewFact::from_person(change.text.trim()))
            .await?
            .status
        {
            AddFactStatus::New => "remembered",
            AddFactStatus::Known => "known",
            AddFactStatus::Accepted => "accepted",
        },
        ("forget", Some(fact)) => {
            memory.forget(fact, None).await?;
            "forgotten"
        }
        ("accept", Some(fact)) => {
            memory.accept(&[fact]).await?;
            "accepted"
        }
        (other, _) => {
            let why = format!("unknown action {other:?}; use add, accept or forget");
            return Err(Problem::bad_request("bad_form", why).into());
        }
    };
    let project = percent_encode(&change.project);
    Ok(Redirect::to(&format!("/memory?project={project}&said={code}")).into_response())
}
