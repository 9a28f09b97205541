//! `tl describe`

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Say what a session is about
#[derive(clap::Args, Debug)]
pub(crate) struct DescribeArgs {
    /// Which session
    session: SessionSpec,
    /// The description
    #[arg(required_unless_present = "remove")]
    description: Option<String>,
    /// Take the description away
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
