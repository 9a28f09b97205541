//! `tl watch`

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;
use throughline_formats::SourceFormat;

use crate::agent_import::{AgentFollower, ImportTotals};
use crate::app::App;
use throughline::format::pluralize;

/// Keep up with other agents
///
/// Brings in what other agents have written, and then whatever they write, until it is
/// stopped. What happens while it is not running is caught up with the next time.
#[derive(clap::Args, Debug)]
pub(crate) struct WatchArgs {
    /// Only this agent (may be repeated); see `tl import --help` for their names
    #[arg(long, value_name = "NAME")]
    from: Vec<SourceFormat>,
    /// Look here instead of where the agent keeps its sessions (may be repeated)
    #[arg(long, requires = "from")]
    path: Vec<PathBuf>,
}

pub(crate) async fn run(app: &App, args: WatchArgs) -> Result<()> {
    let agents = match args.from.as_slice() {
        [] => SourceFormat::ALL.to_vec(),
        named => named.to_vec(),
    };
    let mut following = AgentFollower::start(app, agents, args.path).await?;
    // Listened for from the start: a round that has begun is finished and reported.
    let mut stop = tokio::spawn(wait_for_shutdown());
    tokio::task::yield_now().await;
    report_imports(app, &following.import_changes(app).await?)?;
    let watched = following.watched_folders().count() as u64;
    app.ui.status(format_args!(
        "Watching {}; Ctrl-C ends it",
        pluralize(watched, "folder")
    ));
    while !stop.is_finished() {
        tokio::select! {
            _ = &mut stop => {}
            () = following.wait_for_change() => {}
        }
        report_imports(app, &following.import_changes(app).await?)?;
    }
    Ok(())
}

/// Waits for somebody to end it.
pub(crate) async fn wait_for_shutdown() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut terminate), Ok(mut hang_up)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
        ) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
            return;
        }
    }
    // Without signals there is still the person's own.
    let _ = tokio::signal::ctrl_c().await;
}

/// Tells what came in, agent by agent.
pub(crate) fn report_imports(
    app: &App,
    all: &std::collections::BTreeMap<SourceFormat, ImportTotals>,
) -> Result<()> {
    for (agent, totals) in all {
        let report = &totals.report;
        if app.ui.json {
            app.ui.json_line(&json!({
                "agent": agent.name(),
                "appended": report.appended,
                "created": report.created,
                "forked": report.forked,
            }))?;
            continue;
        }
        let made = match report.created {
            0 => String::new(),
            made => format!(", {} made", pluralize(made, "session")),
        };
        let messages = pluralize(report.appended, "message");
        app.ui.status(format_args!("{agent}: {messages} in{made}"));
    }
    Ok(())
}
