//! `tl decide`: records a decision in a session.

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Record a decision
#[derive(clap::Args, Debug)]
pub(crate) struct DecideArgs {
    /// The session
    session: SessionSpec,
    /// The decision
    #[arg(value_parser = super::parse_non_empty)]
    text: String,
}

pub(crate) async fn run(app: &App, args: DecideArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session.decide(&args.text).await?;
    super::report_entry(app, &session, &entry).await
}
