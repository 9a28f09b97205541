//! `tl archive` and `tl unarchive`: hide sessions from listings and show them again.

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Archive sessions
///
/// Archived sessions are not listed by default; nothing else changes.
#[derive(clap::Args, Debug)]
pub(crate) struct ArchiveArgs {
    /// The sessions
    #[arg(required = true)]
    sessions: Vec<SessionSpec>,
}

/// Unarchive sessions
#[derive(clap::Args, Debug)]
pub(crate) struct UnarchiveArgs {
    /// The sessions
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
