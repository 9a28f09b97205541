//! `tl clear`

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Start anew in the same session
///
/// The model no longer sees what came before; `tl show --all` still does.
#[derive(clap::Args, Debug)]
pub(crate) struct ClearArgs {
    /// Which session
    session: SessionSpec,
}

pub(crate) async fn run(app: &App, args: ClearArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session.clear().await?;
    super::report_entry(app, &session, &entry).await
}
