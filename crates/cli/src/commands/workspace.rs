//! `tl workspace`

use std::path::PathBuf;

use anyhow::Result;
use throughline::{Body, SessionSpec};

use crate::app::App;
use crate::error_report::UserError;
use crate::project;

/// Show or change the folder a session is in
///
/// The session goes on in that folder, and belongs to its project from then on.
#[derive(clap::Args, Debug)]
pub(crate) struct WorkspaceArgs {
    /// Which session
    #[arg(default_value = "last")]
    session: SessionSpec,
    /// The folder to go on in
    folder: Option<PathBuf>,
}

pub(crate) async fn run(app: &App, args: WorkspaceArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let Some(folder) = &args.folder else {
        let card = session.record().await?.info;
        if app.ui.json {
            app.ui
                .json(&serde_json::json!({"id": card.id, "workspace": card.workspace, "project": card.project}))?;
        } else {
            app.ui.data(card.workspace.as_deref().unwrap_or("none"))?;
        }
        return Ok(());
    };
    let folder = app.resolve_path(folder);
    let folder = folder.canonicalize().map_err(|error| {
        UserError::invalid(format!("{} cannot be gone to: {error}", folder.display()))
            .with_hint("name a folder that is there")
    })?;
    if !folder.is_dir() {
        return Err(UserError::invalid(format!("{} is not a folder", folder.display())).into());
    }
    let project = project::resolve(app.tl().await?, &folder).await?;
    let entry = session
        .append(Body::Moved {
            workspace: folder.to_string_lossy().into_owned(),
            project: project.map(|project| project.id),
        })
        .await?;
    super::report_entry(app, &session, &entry).await
}
