//! `tl pin` and `tl unpin`: add and remove pinned facts of a session.

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Pin a fact
///
/// Pinned facts are part of every request and survive every compaction.
#[derive(clap::Args, Debug)]
pub(crate) struct PinArgs {
    /// The session
    session: SessionSpec,
    /// The fact
    #[arg(value_parser = super::parse_non_empty)]
    text: String,
}

/// Remove a pin
#[derive(clap::Args, Debug)]
pub(crate) struct UnpinArgs {
    /// The session
    session: SessionSpec,
    /// The pin: the number of its entry, or its text
    pin: String,
}

pub(crate) async fn run_pin(app: &App, args: PinArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session.pin(&args.text).await?;
    super::report_entry(app, &session, &entry).await
}

pub(crate) async fn run_unpin(app: &App, args: UnpinArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session.unpin(&args.pin).await?;
    super::report_entry(app, &session, &entry).await
}
