//! `tl stats`

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;
use throughline::glance::{compact, thousands};
use throughline::{Card, Filter, Scope, SessionSpec, Status, StoreError};

use crate::app::App;
use crate::markdown::safe;
use crate::time::clock;
use crate::ui::fit;

/// Show figures: of everything, or of one session
#[derive(clap::Args, Debug)]
pub(crate) struct StatsArgs {
    /// Which session [default: all of them]
    session: Option<SessionSpec>,
}

pub(crate) async fn run(app: &App, args: StatsArgs) -> Result<()> {
    match &args.session {
        Some(spec) => one(app, spec).await,
        None => all(app).await,
    }
}

async fn one(app: &App, spec: &SessionSpec) -> Result<()> {
    let record = app.session(spec).await?.record().await?;
    if app.ui.json {
        app.ui.json(&record)?;
        return Ok(());
    }
    let card = &record.card;
    let now = app.tl().await?.now();
    let restoration = card.restoration.total();
    let tokens = card.tokens.total();
    let mut lines = vec![
        ("Session", card.id.to_string()),
        (
            "Name",
            card.name
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
        ),
        ("Made", clock(card.created_at, now, &app.zone)),
        ("Last activity", clock(card.last_activity, now, &app.zone)),
        ("Entries", thousands(card.head.0)),
        ("Messages", thousands(card.messages)),
        ("Total Queries", thousands(card.queries)),
    ];
    if restoration > 0 {
        let (input, output) = (card.restoration.input, card.restoration.output);
        let parts = format!("(in: {}, out: {})", thousands(input), thousands(output));
        lines.push((
            "Restoration",
            format!("{} tokens {parts}", thousands(restoration)),
        ));
    }
    lines.push(("Session Tokens", thousands(tokens)));
    if restoration > 0 {
        lines.push(("Combined Total", thousands(tokens + restoration)));
    }
    lines.push(("Compactions", thousands(card.compactions)));
    lines.push(("Pins", thousands(record.standing.pins.len() as u64)));
    lines.push((
        "Decisions",
        thousands(record.standing.decisions.len() as u64),
    ));
    lines.push(("Digest", card.digest.short()));
    for (label, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        app.ui.data(format_args!(
            "{}  {}",
            app.ui.dim(&format!("{label:<14}")),
            safe(value)
        ))?;
    }
    Ok(())
}

async fn all(app: &App) -> Result<()> {
    let tl = app.tl().await?;
    let cards = tl.list_all(&Filter::default()).await?;
    let trash = Filter {
        scope: Scope::Trash,
        ..Filter::default()
    };
    let trashed = tl.count(&trash).await?;
    let archived = cards
        .iter()
        .filter(|card| card.status == Status::Archived)
        .count() as u64;
    let sum = |of: &dyn Fn(&Card) -> u64| cards.iter().map(of).sum::<u64>();
    let messages = sum(&|card| card.messages);
    let tokens = sum(&|card| card.tokens.total());
    // A server does not tell: others may be in its store as well.
    let bytes = match tl.store().size().await {
        Err(StoreError::Unsupported(_)) => None,
        size => Some(size?),
    };
    let names: BTreeMap<_, _> = tl
        .projects()
        .await?
        .into_iter()
        .map(|project| (project.id.to_string(), project.name))
        .collect();
    let projects = by(&cards, |card| {
        let id = card.project.as_ref()?.to_string();
        Some(names.get(&id).cloned().unwrap_or(id))
    });
    let agents = by(&cards, |card| {
        card.agent.as_ref().map(|agent| agent.name.clone())
    });
    if app.ui.json {
        app.ui.json(&json!({
            "sessions": cards.len(),
            "archived": archived,
            "trashed": trashed,
            "messages": messages,
            "queries": sum(&|card| card.queries),
            "tokens": tokens,
            "compactions": sum(&|card| card.compactions),
            "bytes": bytes,
            "messages_by_project": projects.iter().cloned().collect::<BTreeMap<_, _>>(),
            "messages_by_agent": agents.iter().cloned().collect::<BTreeMap<_, _>>(),
        }))?;
        return Ok(());
    }
    let mut lines = vec![
        (
            "Sessions",
            format!(
                "{} ({archived} archived, {trashed} in the trash)",
                thousands(cards.len() as u64)
            ),
        ),
        ("Messages", thousands(messages)),
        ("Queries", thousands(sum(&|card| card.queries))),
        ("Tokens", thousands(tokens)),
    ];
    lines.extend(bytes.map(|bytes| ("On disk", format!("{}B", compact(bytes)))));
    for (label, value) in lines {
        app.ui.data(format_args!(
            "{}  {value}",
            app.ui.dim(&format!("{label:<9}"))
        ))?;
    }
    chart(app, "Messages by project", &projects)?;
    chart(app, "Messages by agent", &agents)
}

/// Messages by something, the most first.
fn by(cards: &[Card], what: impl Fn(&Card) -> Option<String>) -> Vec<(String, u64)> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for card in cards {
        if let Some(key) = what(card) {
            *sums.entry(key).or_default() += card.messages;
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    sums
}

fn chart(app: &App, title: &str, rows: &[(String, u64)]) -> Result<()> {
    let Some(most) = rows
        .iter()
        .map(|(_, count)| *count)
        .max()
        .filter(|most| *most > 0)
    else {
        return Ok(());
    };
    app.ui.data(format_args!("\n{}", app.ui.bold(title)))?;
    for (name, count) in rows.iter().take(10) {
        let name = fit(&safe(name), 24);
        let bar = app
            .ui
            .bar(*count, most, app.ui.width.saturating_sub(38).min(40));
        app.ui
            .data(format_args!("  {name:<24}  {bar} {}", compact(*count)))?;
    }
    Ok(())
}
