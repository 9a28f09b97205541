//! `tl delete` and `tl restore`: move sessions to the trash and back.

use anyhow::Result;
use throughline::SessionSpec;

use crate::app::App;

/// Move sessions to the trash
///
/// `tl restore` restores them completely. Forks are not affected.
#[derive(clap::Args, Debug)]
pub(crate) struct DeleteArgs {
    /// The sessions
    #[arg(required = true)]
    sessions: Vec<SessionSpec>,
}

/// Restore sessions from the trash
#[derive(clap::Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The sessions
    #[arg(required = true)]
    sessions: Vec<SessionSpec>,
}

pub(crate) async fn run_delete(app: &App, args: DeleteArgs) -> Result<()> {
    let tl = app.tl().await?;
    let mut ids = Vec::new();
    for session in super::resolve_sessions(app, &args.sessions).await? {
        tl.trash(session.id()).await?;
        ids.push(session.id().clone());
    }
    super::report_sessions(app, "Moved to the trash", &ids)
}

pub(crate) async fn run_restore(app: &App, args: RestoreArgs) -> Result<()> {
    let tl = app.tl().await?;
    let mut ids = Vec::new();
    for spec in &args.sessions {
        ids.push(app.resolve_trashed(spec).await?);
    }
    for id in &ids {
        tl.restore(id).await?;
    }
    super::report_sessions(app, "Restored", &ids)
}
