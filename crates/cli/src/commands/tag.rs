//! `tl tag` and `tl untag`: add and remove tags of a session.

use anyhow::Result;
use throughline::{SessionSpec, Tag};

use crate::app::App;

/// Tag a session
#[derive(clap::Args, Debug)]
pub(crate) struct TagArgs {
    /// The session
    session: SessionSpec,
    /// The tags, one word each
    #[arg(required = true)]
    tags: Vec<Tag>,
}

/// Remove tags from a session
#[derive(clap::Args, Debug)]
pub(crate) struct UntagArgs {
    /// The session
    session: SessionSpec,
    /// The tags, one word each
    #[arg(required = true)]
    tags: Vec<Tag>,
}

pub(crate) async fn run_tag(app: &App, args: TagArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session.tag(args.tags).await?;
    super::report_entry(app, &session, &entry).await
}

pub(crate) async fn run_untag(app: &App, args: UntagArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let entry = session.untag(args.tags).await?;
    super::report_entry(app, &session, &entry).await
}
