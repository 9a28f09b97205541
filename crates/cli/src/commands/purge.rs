//! `tl purge`

use anyhow::Result;
use serde_json::json;
use throughline::format::pluralize;
use throughline::{PurgeOptions, SessionInfo};

use crate::app::App;
use crate::error_report::UserError;
use crate::time::parse_duration;

/// Empty the trash of what is old, and put into it what is too many
///
/// Removes for good what has been in the trash for longer than the grace period, then
/// moves to the trash what is beyond the number of sessions to keep. Tells what it did.
#[derive(clap::Args, Debug)]
pub(crate) struct PurgeArgs {
    /// The grace period: 30d, 12h, 0d for all [default: trash_grace of the configuration]
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Sessions to keep in use [default: max_sessions of the configuration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_sessions: Option<u32>,
    /// Only tell what would be done
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
        let ids = |cards: &[SessionInfo]| -> Vec<_> {
            cards.iter().map(|card| card.id.clone()).collect()
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
    for card in &purged.removed {
        app.ui.data(format_args!(
            "{would}{removed} for good: {} {}",
            card.id,
            name(card)
        ))?;
    }
    for card in &purged.trashed {
        app.ui.data(format_args!(
            "{would}{trashed} to the trash: {} {}",
            card.id,
            name(card)
        ))?;
    }
    if purged.removed.is_empty() && purged.trashed.is_empty() {
        app.ui.status("Nothing to purge.");
    } else {
        let removed = pluralize(purged.removed.len() as u64, "session");
        let trashed = pluralize(purged.trashed.len() as u64, "session");
        app.ui
            .status(format_args!("{removed} for good, {trashed} to the trash"));
    }
    Ok(())
}

fn name(card: &SessionInfo) -> &str {
    card.name.as_ref().map_or("", |name| name.as_str())
}
