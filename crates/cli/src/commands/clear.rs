//! `tl clear`: starts a session's context over without deleting entries.

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Start over in the same session
///
/// The model no longer sees earlier messages; `tl show --all` still shows them.
#[derive(clap::Args, Debug)]
pub(crate) struct ClearArgs {
    /// The session
    session: SessionSpec,
}

pub(crate) async fn run(app: &App, args: ClearArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session.clear().await?;
    super::report_entry(app, &session, &entry).await
}
