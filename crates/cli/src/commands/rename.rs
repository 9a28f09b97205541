//! `tl rename`

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Give a session a name
#[derive(clap::Args, Debug)]
pub(crate) struct RenameArgs {
    /// Which session
    session: SessionSpec,
    /// The new name, which is made lowercase with dashes; none to take the name away
    name: Option<String>,
}

pub(crate) async fn run(app: &App, args: RenameArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session.rename(args.name.as_deref()).await?;
    super::done(app, &session, &entry).await
}
