//! `tl erase`: permanently erases the content of entries.

use anyhow::Result;
use serde_json::json;
use throughline::{Seq, SessionSpec};

use crate::app::App;
use crate::error_report::UserError;

/// Permanently erase the content of entries
///
/// For a leaked secret or a deletion request. Number, time and digest stay, so that the
/// log still verifies. This cannot be undone, and also applies to forks.
#[derive(clap::Args, Debug)]
pub(crate) struct EraseArgs {
    /// The session
    session: SessionSpec,
    /// The numbers of the entries
    #[arg(required = true)]
    entries: Vec<Seq>,
    /// The reason, recorded in the log
    #[arg(long)]
    reason: Option<String>,
    /// Confirm the permanent erasure
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(app: &App, args: EraseArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    if !args.yes {
        return Err(UserError::invalid("erasing cannot be undone")
            .with_hint("add --yes to confirm")
            .into());
    }
    session.erase(&args.entries, args.reason.as_deref()).await?;
    if app.ui.json {
        app.ui
            .json(&json!({"id": session.id(), "erased": args.entries}))?;
    } else {
        let entries: Vec<_> = args.entries.iter().map(ToString::to_string).collect();
        app.ui.status(format_args!(
            "Erased {} of {}; earlier backups and exports still contain it",
            entries.join(", "),
            session.id()
        ));
    }
    Ok(())
}
