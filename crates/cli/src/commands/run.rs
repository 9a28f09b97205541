//! `tl run`

use std::process::{Command, ExitCode};

use anyhow::Result;
use throughline_formats::Agent;

use super::watch;
use crate::app::App;
use crate::importing::Following;
use crate::report::Refusal;
use crate::threads::spawn_thread;

/// Start another agent and keep what it says
///
/// Starts the agent's own program with the arguments given and follows what it writes, so
/// that the session is here from its first message on. Ends as the program ends.
#[derive(clap::Args, Debug)]
pub(crate) struct RunArgs {
    /// claude-code, codex, gemini, opencode, goose, pi, aider or llm
    agent: Agent,
    /// What to give to it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// The program of an agent.
pub(crate) fn program(agent: Agent) -> Option<&'static str> {
    match agent {
        Agent::ClaudeCode => Some("claude"),
        Agent::Codex => Some("codex"),
        Agent::Gemini => Some("gemini"),
        Agent::OpenCode => Some("opencode"),
        Agent::Goose => Some("goose"),
        Agent::Pi => Some("pi"),
        Agent::Aider => Some("aider"),
        Agent::Llm => Some("llm"),
        Agent::ChatGpt
        | Agent::OpenAiAgents
        | Agent::Conversations
        | Agent::Plain
        | Agent::AiArmy
        | Agent::ChatLoop
        | Agent::Bot
        | Agent::AgentCli
        | Agent::Dagent => None,
    }
}

pub(crate) async fn run(app: &App, args: RunArgs) -> Result<ExitCode> {
    let Some(program) = program(args.agent) else {
        let what = format!("{} is not a program that could be started", args.agent);
        return Err(Refusal::invalid(what).into());
    };
    let mut following = Following::start(app, vec![args.agent], Vec::new()).await?;
    let started = Command::new(program)
        .args(&args.arguments)
        .current_dir(&app.places.folder)
        .spawn();
    let mut child = started.map_err(|error| Refusal {
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
            () = following.change() => {
                // Talk would spoil the other program's screen.
                following.round(app).await?;
            }
        }
    };
    ignored.abort();
    let last = following.round(app).await?;
    watch::tell(app, &last)?;
    let code = match status {
        Ok(Ok(status)) => status.code().and_then(|code| u8::try_from(code).ok()),
        Ok(Err(_)) | Err(_) => None,
    };
    Ok(ExitCode::from(code.unwrap_or(1)))
}
