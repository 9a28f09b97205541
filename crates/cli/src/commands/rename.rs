//! `tl rename`: sets or removes a session's name.

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Rename a session
#[derive(clap::Args, Debug)]
pub(crate) struct RenameArgs {
    /// The session
    session: SessionSpec,
    /// The new name, converted to lowercase with dashes
    #[arg(required_unless_present = "remove")]
    name: Option<String>,
    /// Remove the name
    #[arg(long, conflicts_with = "name")]
    remove: bool,
}

pub(crate) async fn run(app: &App, args: RenameArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session.rename(args.name.as_deref()).await?;
    super::warn_duplicate_name(app, &session).await?;
    super::report_entry(app, &session, &entry).await
}
