//! `tl erase`

use anyhow::Result;
use serde_json::json;
use throughline::{Seq, SessionSpec};

use crate::app::App;
use crate::error_report::UserError;

/// Erase the content of entries for good
///
/// For a leaked secret or a person's request. Number, time and digest stay, so that the
/// log still verifies; the content cannot be brought back, here or in forks.
#[derive(clap::Args, Debug)]
pub(crate) struct EraseArgs {
    /// Which session
    session: SessionSpec,
    /// Which entries, by number
    #[arg(required = true)]
    entries: Vec<Seq>,
    /// Why, for whoever reads the log later
    #[arg(long)]
    reason: Option<String>,
    /// Yes, for good
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(app: &App, args: EraseArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    if !args.yes {
        return Err(UserError::invalid("what is erased cannot be brought back")
            .with_hint("add --yes to erase it")
            .into());
    }
    session.erase(&args.entries, args.reason.as_deref()).await?;
    if app.ui.json {
        app.ui
            .json(&json!({"id": session.id(), "erased": args.entries}))?;
    } else {
        let entries: Vec<_> = args.entries.iter().map(ToString::to_string).collect();
        app.ui.status(format_args!(
            "Erased {} of {}; earlier backups and exports still have it",
            entries.join(", "),
            session.id()
        ));
    }
    Ok(())
}
