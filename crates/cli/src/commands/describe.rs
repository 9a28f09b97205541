//! `tl describe`

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Say what a session is about
#[derive(clap::Args, Debug)]
pub(crate) struct DescribeArgs {
    /// Which session
    session: SessionSpec,
    /// The description; none to take it away
    description: Option<String>,
}

pub(crate) async fn run(app: &App, args: DescribeArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session.describe(args.description.as_deref()).await?;
    super::done(app, &session, &entry).await
}
