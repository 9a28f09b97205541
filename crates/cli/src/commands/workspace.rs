//! `tl workspace`: shows or changes the folder of a session.

use std::path::PathBuf;

use anyhow::Result;
use throughline::{Body, SessionSpec};

use crate::app::App;
use crate::error_report::UserError;
use crate::project;

/// Show or change a session's folder
///
/// The session continues in that folder and then belongs to its project.
#[derive(clap::Args, Debug)]
pub(crate) struct WorkspaceArgs {
    /// The session
    #[arg(default_value = "last")]
    session: SessionSpec,
    /// The new folder
    folder: Option<PathBuf>,
}

pub(crate) async fn run(app: &App, args: WorkspaceArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let Some(folder) = &args.folder else {
        let info = session.record().await?.info;
        if app.ui.json {
            app.ui
                .json(&serde_json::json!({"id": info.id, "workspace": info.workspace, "project": info.project}))?;
        } else {
            app.ui.data(info.workspace.as_deref().unwrap_or("none"))?;
        }
        return Ok(());
    };
    let folder = app.resolve_path(folder);
    let folder = folder.canonicalize().map_err(|error| {
        UserError::invalid(format!("{} cannot be opened: {error}", folder.display()))
            .with_hint("use an existing folder")
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
