//! `tl purge`: applies the retention settings for trash and session count.

use anyhow::Result;
use serde_json::json;
use throughline::format::pluralize;
use throughline::{PurgeOptions, SessionInfo};

use crate::app::App;
use crate::error_report::UserError;
use crate::time::parse_duration;

/// Delete old trash and trash excess sessions
///
/// Permanently deletes sessions that have been in the trash for longer than the grace
/// period, then moves sessions beyond the maximum number to the trash. Lists both.
#[derive(clap::Args, Debug)]
pub(crate) struct PurgeArgs {
    /// The grace period: 30d, 12h, 0d for all [default: the setting trash_grace]
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Maximum number of sessions [default: the setting max_sessions]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_sessions: Option<u32>,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(app: &App, args: PurgeArgs) -> Result<()> {
    let grace = match &args.older_than {
        Some(text) => parse_duration(text).map_err(UserError::invalid)?,
        None => app.config.trash_grace()?,
    };
    let most = args
        .max_sessions
        .map(|most| most as usize)
        .or(app.config.max_sessions());
    let purge = PurgeOptions {
        grace: Some(grace),
        max_sessions: most,
        dry_run: args.dry_run,
    };
    let purged = app.tl().await?.purge(purge).await?;
    if app.ui.json {
        let ids = |infos: &[SessionInfo]| -> Vec<_> {
            infos.iter().map(|info| info.id.clone()).collect()
        };
        app.ui.json(&json!({
            "removed": ids(&purged.removed),
            "trashed": ids(&purged.trashed),
            "dry_run": args.dry_run,
        }))?;
        return Ok(());
    }
    let would = if args.dry_run { "Would have " } else { "" };
    let (removed, trashed) = if args.dry_run {
        ("removed", "moved")
    } else {
        ("Removed", "Moved")
    };
    for info in &purged.removed {
        app.ui.data(format_args!(
            "{would}{removed} permanently: {} {}",
            info.id,
            name(info)
        ))?;
    }
    for info in &purged.trashed {
        app.ui.data(format_args!(
            "{would}{trashed} to the trash: {} {}",
            info.id,
            name(info)
        ))?;
    }
    if purged.removed.is_empty() && purged.trashed.is_empty() {
        app.ui.status("Nothing to purge.");
    } else {
        let removed = pluralize(purged.removed.len() as u64, "session");
        let trashed = pluralize(purged.trashed.len() as u64, "session");
        app.ui.status(format_args!(
            "{removed} removed permanently, {trashed} moved to the trash"
        ));
    }
    Ok(())
}

fn name(info: &SessionInfo) -> &str {
    info.name.as_ref().map_or("", |name| name.as_str())
}
