//! `tl mcp`: serves sessions and memory over the Model Context Protocol on stdio.

use anyhow::{Context, Result};
use throughline_mcp::McpServer;

use crate::app::App;
use crate::project;

/// Serve sessions and memory to an agent over the Model Context Protocol
///
/// Uses standard input and output, so the agent starts it: register it there as `tl mcp`.
/// What the agent remembers belongs to the project of the folder it is started in.
/// `tl serve` offers the same at /mcp.
#[derive(clap::Args, Debug)]
pub(crate) struct McpArgs {
    /// Do not redact what looks like a key or a password
    #[arg(long)]
    reveal: bool,
}

pub(crate) async fn run(app: &App, args: McpArgs) -> Result<()> {
    let tl = app.tl().await?;
    let project = project::resolve(tl, &app.paths.working_folder).await?;
    McpServer::new(tl.clone(), app.zone.clone())
        .with_project(project.map(|project| project.id))
        .with_secrets_revealed(args.reveal)
        .serve_stdio()
        .await
        .context("the connection to the agent failed")
}
