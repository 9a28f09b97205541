//! `tl new`: creates a session.

use anyhow::Result;
use throughline::{AgentRef, Key, Name, NewSession, SessionId, Tag};

use crate::app::App;
use crate::project;

/// Create a session
///
/// Prints its id. The session belongs to the project of the working folder.
#[derive(clap::Args, Debug)]
pub(crate) struct NewArgs {
    /// Name of the session
    #[arg(long)]
    name: Option<Name>,
    /// Its id [default: generated]
    #[arg(long)]
    id: Option<SessionId>,
    /// A stable key: if a session with it exists, that one is printed
    #[arg(long)]
    key: Option<Key>,
    /// The agent
    #[arg(long)]
    agent: Option<String>,
    /// The file that describes the agent
    #[arg(long, requires = "agent", value_name = "FILE")]
    agent_path: Option<String>,
    /// Tag it (may be repeated)
    #[arg(long)]
    tag: Vec<Tag>,
    /// Do not record the project and working folder
    #[arg(long)]
    no_project: bool,
}

pub(crate) async fn run(app: &App, args: NewArgs) -> Result<()> {
    let mut new = NewSession {
        id: args.id,
        key: args.key,
        name: args.name,
        agent: args.agent.map(|name| AgentRef {
            name,
            path: args.agent_path,
        }),
        ..NewSession::default()
    };
    if !args.no_project {
        assign_project(app, &mut new).await?;
    }
    let tl = app.tl().await?;
    let (session, existed) = tl.get_or_create(new).await?;
    if !args.tag.is_empty() {
        session.tag(args.tag).await?;
    }
    super::warn_duplicate_name(app, &session).await?;
    print_session(app, &session, existed).await
}

/// Sets the project and working folder of a new session.
pub(crate) async fn assign_project(app: &App, new: &mut NewSession) -> Result<()> {
    let folder = &app.paths.working_folder;
    let tl = app.tl().await?;
    new.project = project::resolve(tl, folder)
        .await?
        .map(|project| project.id);
    new.workspace = Some(folder.to_string_lossy().into_owned());
    Ok(())
}

/// Prints a session that was created or found.
pub(crate) async fn print_session(
    app: &App,
    session: &throughline::Session,
    existed: bool,
) -> Result<()> {
    if app.ui.json {
        let info = session.record().await?.info;
        let mut value = serde_json::to_value(info)?;
        value["existed"] = existed.into();
        app.ui.json(&value)?;
    } else {
        app.ui.data(session.id())?;
    }
    Ok(())
}
