//! `tl describe`: sets or removes a session's description.

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Set a session's description
#[derive(clap::Args, Debug)]
pub(crate) struct DescribeArgs {
    /// The session
    session: SessionSpec,
    /// The description
    #[arg(required_unless_present = "remove")]
    description: Option<String>,
    /// Remove the description
    #[arg(long, conflicts_with = "description")]
    remove: bool,
}

pub(crate) async fn run(app: &App, args: DescribeArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session
        .describe(
            args.description
                .as_deref()
                .filter(|text| !text.trim().is_empty()),
        )
        .await?;
    super::report_entry(app, &session, &entry).await
}
