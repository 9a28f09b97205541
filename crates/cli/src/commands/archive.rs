//! `tl archive` and `tl unarchive`

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Put sessions away
///
/// They are no longer listed by default, and otherwise as before.
#[derive(clap::Args, Debug)]
pub(crate) struct ArchiveArgs {
    /// Which sessions
    #[arg(required = true)]
    sessions: Vec<SessionSpec>,
}

/// Take archived sessions up again
#[derive(clap::Args, Debug)]
pub(crate) struct UnarchiveArgs {
    /// Which sessions
    #[arg(required = true)]
    sessions: Vec<SessionSpec>,
}

pub(crate) async fn run_archive(app: &App, args: ArchiveArgs) -> Result<()> {
    let mut ids = Vec::new();
    for session in super::resolve_sessions(app, &args.sessions).await? {
        session.archive().await?;
        ids.push(session.id().clone());
    }
    super::report_sessions(app, "Archived", &ids)
}

pub(crate) async fn run_unarchive(app: &App, args: UnarchiveArgs) -> Result<()> {
    let mut ids = Vec::new();
    for session in super::resolve_sessions(app, &args.sessions).await? {
        session.unarchive().await?;
        ids.push(session.id().clone());
    }
    super::report_sessions(app, "Unarchived", &ids)
}
