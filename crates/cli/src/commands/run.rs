//! `tl run`

use std::process::{Command, ExitCode};

use anyhow::Result;
use throughline_formats::SourceFormat;

use super::watch;
use crate::agent_import::AgentFollower;
use crate::app::App;
use crate::error_report::UserError;
use crate::threads::spawn_thread;

/// Start another agent and keep what it says
///
/// Starts the agent's own program with the arguments given and follows what it writes, so
/// that the session is here from its first message on. Ends as the program ends.
#[derive(clap::Args, Debug)]
pub(crate) struct RunArgs {
    /// claude-code, codex, gemini, opencode, goose, pi, aider or llm
    agent: SourceFormat,
    /// What to give to it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// The program of an agent.
pub(crate) fn program(agent: SourceFormat) -> Option<&'static str> {
    match agent {
        SourceFormat::ClaudeCode => Some("claude"),
        SourceFormat::Codex => Some("codex"),
        SourceFormat::Gemini => Some("gemini"),
        SourceFormat::OpenCode => Some("opencode"),
        SourceFormat::Goose => Some("goose"),
        SourceFormat::Pi => Some("pi"),
        SourceFormat::Aider => Some("aider"),
        SourceFormat::Llm => Some("llm"),
        SourceFormat::ChatGpt
        | SourceFormat::OpenAiAgents
        | SourceFormat::Conversations
        | SourceFormat::Plain
        | SourceFormat::AiArmy
        | SourceFormat::ChatLoop
        | SourceFormat::Bot
        | SourceFormat::AgentCli
        | SourceFormat::Dagent => None,
    }
}

pub(crate) async fn run(app: &App, args: RunArgs) -> Result<ExitCode> {
    let Some(program) = program(args.agent) else {
        let what = format!("{} is not a program that could be started", args.agent);
        return Err(UserError::invalid(what).into());
    };
    let mut following = AgentFollower::start(app, vec![args.agent], Vec::new()).await?;
    let started = Command::new(program)
        .args(&args.arguments)
        .current_dir(&app.paths.working_folder)
        .spawn();
    let mut child = started.map_err(|error| UserError {
        what: format!("{program} cannot be started: {error}"),
        hint: Some(format!(
            "install {program}, or see whether it is on the PATH"
        )),
        kind: throughline::ErrorKind::NotFound,
    })?;
    let (sender, mut ended) = tokio::sync::oneshot::channel();
    spawn_thread("waiting for the program", move || {
        let _ = sender.send(child.wait());
    })?;
    // A key that interrupts is meant for the program in front; it says when it ends.
    let ignored = tokio::spawn(async {
        loop {
            if tokio::signal::ctrl_c().await.is_err() {
                break;
            }
        }
    });
    let status = loop {
        tokio::select! {
            status = &mut ended => break status,
            () = following.wait_for_change() => {
                // Talk would spoil the other program's screen.
                following.import_changes(app).await?;
            }
        }
    };
    ignored.abort();
    let last = following.import_changes(app).await?;
    watch::report_imports(app, &last)?;
    let code = match status {
        Ok(Ok(status)) => status.code().and_then(|code| u8::try_from(code).ok()),
        Ok(Err(_)) | Err(_) => None,
    };
    Ok(ExitCode::from(code.unwrap_or(1)))
}
