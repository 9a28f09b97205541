//! `tl rename`

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Give a session a name
#[derive(clap::Args, Debug)]
pub(crate) struct RenameArgs {
    /// Which session
    session: SessionSpec,
    /// The new name, which is made lowercase with dashes
    #[arg(required_unless_present = "remove")]
    name: Option<String>,
    /// Take the name away
    #[arg(long, conflicts_with = "name")]
    remove: bool,
}

pub(crate) async fn run(app: &App, args: RenameArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session.rename(args.name.as_deref()).await?;
    super::warn_duplicate_name(app, &session).await?;
    super::report_entry(app, &session, &entry).await
}
