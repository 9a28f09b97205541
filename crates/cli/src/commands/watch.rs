//! `tl watch`: imports other agents' sessions continuously.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;
use throughline_formats::SourceFormat;

use crate::agent_import::{AgentFollower, ImportTotals};
use crate::app::App;
use throughline::format::pluralize;

/// Import other agents' sessions continuously
///
/// Imports what other agents have written, then watches for changes until stopped. Changes
/// made while it is not running are imported the next time.
#[derive(clap::Args, Debug)]
pub(crate) struct WatchArgs {
    /// Only this agent (may be repeated); see `tl import --help` for their names
    #[arg(long, value_name = "NAME")]
    from: Vec<SourceFormat>,
    /// Look here instead of the agent's default location (may be repeated)
    #[arg(long, requires = "from")]
    path: Vec<PathBuf>,
}

pub(crate) async fn run(app: &App, args: WatchArgs) -> Result<()> {
    let agents = match args.from.as_slice() {
        [] => SourceFormat::ALL.to_vec(),
        named => named.to_vec(),
    };
    let mut following = AgentFollower::start(app, agents, args.path).await?;
    // Listen from the start, so that an import in progress is finished and reported.
    let mut stop = tokio::spawn(wait_for_shutdown());
    tokio::task::yield_now().await;
    report_imports(app, &following.import_changes(app).await?)?;
    let watched = following.watched_folders().count() as u64;
    app.ui.status(format_args!(
        "Watching {}; press Ctrl-C to stop",
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

/// Waits for a stop signal.
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
    // If other signals are not available, wait for Ctrl-C only.
    let _ = tokio::signal::ctrl_c().await;
}

/// Reports imports per agent.
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
            made => format!(", {} created", pluralize(made, "session")),
        };
        let messages = pluralize(report.appended, "message");
        app.ui
            .status(format_args!("{agent}: {messages} imported{made}"));
    }
    Ok(())
}
