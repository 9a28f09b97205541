//! `tl run`: starts another agent's program and imports its session while it runs.

use std::process::{Command, ExitCode};

use anyhow::Result;
use throughline_formats::SourceFormat;

use super::watch;
use crate::agent_import::AgentFollower;
use crate::app::App;
use crate::error_report::UserError;
use crate::threads::spawn_thread;

/// Run another agent and record its session
///
/// Starts the agent's program with the given arguments and imports what it writes from the
/// first message on. Exits with the program's exit code.
#[derive(clap::Args, Debug)]
pub(crate) struct RunArgs {
    /// claude-code, codex, gemini, opencode, goose, pi, aider or llm
    agent: SourceFormat,
    /// Arguments for the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Returns the executable name of an agent.
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
        let what = format!("{} is not a program that can be started", args.agent);
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
            "install {program}, or check that it is on the PATH"
        )),
        kind: throughline::ErrorKind::NotFound,
    })?;
    let (sender, mut ended) = tokio::sync::oneshot::channel();
    spawn_thread("waiting for the program", move || {
        let _ = sender.send(child.wait());
    })?;
    // Ctrl-C is meant for the child program, which decides when to exit.
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
                // Status messages would corrupt the other program's screen.
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
