//! `tl stats`: prints statistics of all sessions or of one.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;
use throughline::format::{abbreviate, format_thousands};
use throughline::{SessionFilter, SessionInfo, SessionScope, SessionSpec, Status, StoreError};

use crate::app::App;
use crate::markdown::sanitize;
use crate::time::format_time;
use crate::ui::truncate;

/// Show statistics for all sessions or one
#[derive(clap::Args, Debug)]
pub(crate) struct StatsArgs {
    /// The session [default: all]
    session: Option<SessionSpec>,
}

pub(crate) async fn run(app: &App, args: StatsArgs) -> Result<()> {
    match &args.session {
        Some(spec) => show_session(app, spec).await,
        None => show_totals(app).await,
    }
}

async fn show_session(app: &App, spec: &SessionSpec) -> Result<()> {
    let record = app.session(spec).await?.record().await?;
    if app.ui.json {
        app.ui.json(&record)?;
        return Ok(());
    }
    let info = &record.info;
    let now = app.tl().await?.now();
    let restoration = info.restoration.total();
    let tokens = info.tokens.total();
    let mut lines = vec![
        ("Session", info.id.to_string()),
        (
            "Name",
            info.name
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
        ),
        ("Created", format_time(info.created_at, now, &app.zone)),
        (
            "Last activity",
            format_time(info.last_activity, now, &app.zone),
        ),
        ("Entries", format_thousands(info.head.0)),
        ("Messages", format_thousands(info.messages)),
        ("Total Queries", format_thousands(info.queries)),
    ];
    if restoration > 0 {
        let (input, output) = (info.restoration.input, info.restoration.output);
        let parts = format!(
            "(in: {}, out: {})",
            format_thousands(input),
            format_thousands(output)
        );
        lines.push((
            "Restoration",
            format!("{} tokens {parts}", format_thousands(restoration)),
        ));
    }
    lines.push(("Session Tokens", format_thousands(tokens)));
    if restoration > 0 {
        lines.push(("Combined Total", format_thousands(tokens + restoration)));
    }
    lines.push(("Compactions", format_thousands(info.compactions)));
    lines.push(("Pins", format_thousands(record.state.pins.len() as u64)));
    lines.push((
        "Decisions",
        format_thousands(record.state.decisions.len() as u64),
    ));
    lines.push(("Digest", info.digest.short()));
    for (label, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        app.ui.data(format_args!(
            "{}  {}",
            app.ui.dim(&format!("{label:<14}")),
            sanitize(value)
        ))?;
    }
    Ok(())
}

async fn show_totals(app: &App) -> Result<()> {
    let tl = app.tl().await?;
    let infos = tl.list_all(&SessionFilter::default()).await?;
    let trash = SessionFilter {
        scope: SessionScope::Trash,
        ..SessionFilter::default()
    };
    let trashed = tl.count(&trash).await?;
    let archived = infos
        .iter()
        .filter(|info| info.status == Status::Archived)
        .count() as u64;
    let sum = |of: &dyn Fn(&SessionInfo) -> u64| infos.iter().map(of).sum::<u64>();
    let messages = sum(&|info| info.messages);
    let tokens = sum(&|info| info.tokens.total());
    // A server does not report its size, because its store is shared.
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
    let projects = messages_by(&infos, |info| {
        let id = info.project.as_ref()?.to_string();
        Some(names.get(&id).cloned().unwrap_or(id))
    });
    let agents = messages_by(&infos, |info| {
        info.agent.as_ref().map(|agent| agent.name.clone())
    });
    if app.ui.json {
        app.ui.json(&json!({
            "sessions": infos.len(),
            "archived": archived,
            "trashed": trashed,
            "messages": messages,
            "queries": sum(&|info| info.queries),
            "tokens": tokens,
            "compactions": sum(&|info| info.compactions),
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
                format_thousands(infos.len() as u64)
            ),
        ),
        ("Messages", format_thousands(messages)),
        ("Queries", format_thousands(sum(&|info| info.queries))),
        ("Tokens", format_thousands(tokens)),
    ];
    lines.extend(bytes.map(|bytes| ("On disk", format!("{}B", abbreviate(bytes)))));
    for (label, value) in lines {
        app.ui.data(format_args!(
            "{}  {value}",
            app.ui.dim(&format!("{label:<9}"))
        ))?;
    }
    print_chart(app, "Messages by project", &projects)?;
    print_chart(app, "Messages by agent", &agents)
}

/// Counts messages grouped by a property, largest first.
fn messages_by(
    infos: &[SessionInfo],
    what: impl Fn(&SessionInfo) -> Option<String>,
) -> Vec<(String, u64)> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for info in infos {
        if let Some(key) = what(info) {
            *sums.entry(key).or_default() += info.messages;
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    sums
}

fn print_chart(app: &App, title: &str, rows: &[(String, u64)]) -> Result<()> {
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
        let name = truncate(&sanitize(name), 24);
        let bar = app
            .ui
            .bar(*count, most, app.ui.width.saturating_sub(38).min(40));
        app.ui
            .data(format_args!("  {name:<24}  {bar} {}", abbreviate(*count)))?;
    }
    Ok(())
}
