//! `tl handoff`: prepares a session for another agent to continue.
//!
//! Writes the agent's own session file where it can load one, otherwise a prompt.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::json;
use throughline::context::Encoding;
use throughline::{AgentRef, Candidate, Key, NewSession, Session, SessionSpec};
use throughline_formats::{
    ClaudeCodeWriter, CodexWriter, ExportMetadata, PiWriter, SessionWriter, SourceFormat,
    plain_summary,
};

use super::export::SecretRedactor;
use crate::agent_import;
use crate::app::App;
use crate::error_report::UserError;
use crate::paths::{create_private_folder, write_atomically};
use crate::session_export;

/// Default limit of a prompt, in tokens.
const DEFAULT_BUDGET: u64 = 8_000;
/// Maximum size of one command-line argument, on systems that limit it.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// Maximum number of entries read from the end of the conversation.
const MAX_TAIL_ENTRIES: usize = 400;

/// The agent that continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum HandoffTarget {
    /// A session file for Claude Code
    ClaudeCode,
    /// A rollout for Codex
    Codex,
    /// A prompt for Gemini CLI
    Gemini,
    /// A prompt for Goose
    Goose,
    /// A prompt for OpenCode
    Opencode,
    /// A session file for pi
    Pi,
    /// A prompt for any agent, on stdout
    Prompt,
}

/// Hand a session to another agent
///
/// Prepares a session file in the agent's own format where it can load one, otherwise a
/// prompt with the summary, pins, decisions, files and the latest messages, within a budget.
/// Prints the command to run. Writes into the other agent's folder only with --write;
/// redacts what looks like a secret unless --reveal is given.
#[derive(clap::Args, Debug)]
pub(crate) struct HandoffArgs {
    /// The session
    session: SessionSpec,
    /// The agent to hand it to
    #[arg(long, value_enum)]
    to: HandoffTarget,
    /// Write the session file to the agent's session folder
    #[arg(long)]
    write: bool,
    /// Replace an existing file
    #[arg(long, requires = "write")]
    force: bool,
    /// Maximum tokens of a prompt
    #[arg(long, default_value_t = DEFAULT_BUDGET, value_name = "TOKENS")]
    budget: u64,
    /// Do not redact what looks like a key or a password
    #[arg(long)]
    reveal: bool,
}

pub(crate) async fn run(app: &App, args: HandoffArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let mut secrets = SecretRedactor::new(args.reveal);
    match args.to {
        HandoffTarget::ClaudeCode | HandoffTarget::Codex | HandoffTarget::Pi => {
            write_session_file(app, &session, &args, &mut secrets).await?;
        }
        HandoffTarget::Gemini | HandoffTarget::Goose | HandoffTarget::Opencode => {
            let prompt = build_prompt(app, &session, args.budget, &mut secrets).await?;
            let folder = app.paths.state_file("handoff");
            create_private_folder(&folder)?;
            let path = folder.join(format!("{}.md", session.id()));
            write_atomically(&path, prompt.as_bytes())?;
            if prompt.len() > MAX_ARGUMENT_BYTES && args.to != HandoffTarget::Goose {
                app.ui
                    .warn("the prompt is too long for a command line; use a smaller --budget");
            }
            let workspace = session.record().await?.info.workspace;
            report_handoff(
                app,
                &path,
                true,
                &prompt_command(args.to, workspace.as_deref(), &path),
            )?;
        }
        HandoffTarget::Prompt => {
            let prompt = build_prompt(app, &session, args.budget, &mut secrets).await?;
            if app.ui.json {
                app.ui.json(&json!({"prompt": prompt}))?;
            } else {
                app.ui.data(prompt.trim_end())?;
            }
        }
    }
    secrets.report_redactions(app);
    Ok(())
}

fn report_handoff(app: &App, path: &Path, written: bool, command: &str) -> Result<()> {
    if app.ui.json {
        let path = path.to_string_lossy();
        app.ui
            .json(&json!({"path": path, "written": written, "command": command}))?;
        return Ok(());
    }
    if written {
        app.ui.status(format_args!("Wrote {}", path.display()));
    } else {
        app.ui.status(format_args!(
            "Nothing was written; --write writes {}",
            path.display()
        ));
    }
    app.ui.data(command)?;
    Ok(())
}

/// Writes a session file in the agent's format.
async fn write_session_file(
    app: &App,
    session: &Session,
    args: &HandoffArgs,
    secrets: &mut SecretRedactor,
) -> Result<()> {
    let head = session_export::export_head(app, session, secrets).await?;
    let (agent, relative_path) = match args.to {
        HandoffTarget::ClaudeCode => (
            SourceFormat::ClaudeCode,
            ClaudeCodeWriter::<Vec<u8>>::default_path(&head),
        ),
        HandoffTarget::Codex => (
            SourceFormat::Codex,
            CodexWriter::<Vec<u8>>::default_path(&head),
        ),
        _ => (SourceFormat::Pi, PiWriter::<Vec<u8>>::default_path(&head)),
    };
    let uuid = head.uuid(agent.name());
    let root = agent_import::session_folders(app, agent).into_iter().next();
    let root = root.ok_or_else(|| {
        UserError::invalid(format!("no home folder found for {agent}'s sessions"))
            .with_hint("set HOME, or hand off with --to prompt")
    })?;
    let path = root.join(relative_path);
    let command = resume_command(args.to, &head, &path);
    if !args.write {
        return report_handoff(app, &path, false, &command);
    }
    if path.exists() && !args.force {
        return Err(
            UserError::invalid(format!("{} already exists", path.display()))
                .with_hint("--force replaces it, including what the other agent added")
                .into(),
        );
    }
    let mut text = Vec::new();
    {
        let mut writer: Box<dyn SessionWriter + '_> = match args.to {
            HandoffTarget::ClaudeCode => Box::new(ClaudeCodeWriter::new(&mut text, head)),
            HandoffTarget::Codex => Box::new(CodexWriter::new(&mut text, head)),
            _ => Box::new(PiWriter::new(&mut text, head)),
        };
        session_export::write_session(app, session, secrets, &mut *writer).await?;
    }
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    create_private_folder(&folder)
        .with_context(|| format!("{} cannot be created", folder.display()))?;
    write_atomically(&path, &text)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    prepare_return_fork(app, session, agent, &uuid, &path).await?;
    report_handoff(app, &path, true, &command)
}

/// Creates the fork that will receive what the other agent adds, and records what was
/// written as known, so that `tl import` imports only the additions.
async fn prepare_return_fork(
    app: &App,
    session: &Session,
    agent: SourceFormat,
    uuid: &str,
    path: &Path,
) -> Result<()> {
    let tl = app.tl().await?;
    let key: Key = format!("{agent}:{uuid}").parse()?;
    let found = tl
        .store()
        .find_candidates(tl.owner(), key.as_str(), 10)
        .await?;
    let known = |found: &Candidate| found.info.key.as_ref() == Some(&key);
    if !found
        .iter()
        .any(|found| known(found) || found.info.id.as_str() == uuid)
    {
        let new = NewSession {
            id: Some(uuid.parse()?),
            key: Some(key),
            at: Some(tl.now()),
            agent: Some(AgentRef {
                name: agent.name().to_owned(),
                path: None,
            }),
            ..NewSession::default()
        };
        session.fork(None, new).await?;
    }
    agent_import::record_written_file(tl, agent, path).await
}

fn resume_command(to: HandoffTarget, head: &ExportMetadata, path: &Path) -> String {
    let folder = shell_words::quote(&head.folder).into_owned();
    match to {
        HandoffTarget::ClaudeCode => {
            let id = head.uuid("claude-code");
            format!("cd {folder} && claude --resume {id}")
        }
        HandoffTarget::Codex => format!("cd {folder} && codex resume {}", head.uuid("codex")),
        _ => {
            let file = path.to_string_lossy();
            format!("cd {folder} && pi --session {}", shell_words::quote(&file))
        }
    }
}

/// Returns the command that starts an agent with a prompt in the session's folder.
fn prompt_command(to: HandoffTarget, folder: Option<&str>, prompt: &Path) -> String {
    let prompt = prompt.to_string_lossy();
    let prompt = shell_words::quote(&prompt);
    let start = match to {
        HandoffTarget::Gemini => format!("gemini --prompt-interactive \"$(cat {prompt})\""),
        HandoffTarget::Goose => format!("goose run --interactive --instructions {prompt}"),
        _ => format!("opencode --prompt \"$(cat {prompt})\""),
    };
    match folder {
        Some(folder) => format!("cd {} && {start}", shell_words::quote(folder)),
        None => start,
    }
}

/// Builds the prompt with which another agent continues the session.
async fn build_prompt(
    app: &App,
    session: &Session,
    budget: u64,
    secrets: &mut SecretRedactor,
) -> Result<String> {
    let record = session.record().await?;
    let info = &record.info;
    let mut summary = match session.last_summary().await? {
        Some(known) => known.summary,
        None => session.summarize_now().await?,
    };
    if !secrets.reveal() {
        summary = summary.into_redacted();
    }
    let mut text = format!(
        "You continue another agent's conversation. Here is its current state.\n\n\
         Session: {}\n",
        info.title()
    );
    if let Some(folder) = &info.workspace {
        text.push_str(&format!("Folder: {folder}\n"));
    }
    let noted = |title: &str, items: &mut dyn Iterator<Item = String>| {
        let items: Vec<String> = items.map(|item| format!("- {item}\n")).collect();
        if items.is_empty() {
            return String::new();
        }
        format!("\n## {title}\n{}", items.concat())
    };
    let safe = |text: &str| {
        if secrets.reveal() {
            text.to_owned()
        } else {
            throughline::redact(text).into_owned()
        }
    };
    let state = &record.state;
    let pinned: Vec<String> = state.pins.iter().map(|pin| safe(&pin.text)).collect();
    summary.facts.retain(|item| !pinned.contains(item));
    text.push_str(&noted("Pinned facts", &mut pinned.into_iter()));
    let decided: Vec<String> = state.decisions.iter().map(|d| safe(&d.text)).collect();
    summary.decisions.retain(|item| !decided.contains(item));
    text.push_str(&noted("Decisions", &mut decided.into_iter()));
    let fits = |text: &str| Encoding::Rough.count(text) <= budget;
    let summary_text = plain_summary(&summary);
    if !summary_text.is_empty() {
        let mut whole = format!("\n## Summary\n{summary_text}\n");
        // The summary may use half of the budget: the latest messages matter more.
        while Encoding::Rough.count(&whole) > budget / 2 && whole.len() > 60 {
            let keep = whole.chars().count() * 3 / 4;
            whole = whole.chars().take(keep).collect::<String>() + " …\n";
        }
        text.push_str(&whole);
    }
    let end = "\nContinue from there; ask if something is missing.\n";
    let mut tail = Vec::new();
    let mut used = text.clone() + end + "\n## The latest messages\n";
    for stored in session
        .read_stored(throughline::ReadRange::tail(MAX_TAIL_ENTRIES))
        .await?
        .into_iter()
        .rev()
    {
        if !state.is_visible(stored.seq) {
            continue;
        }
        let Some((who, what)) = secrets
            .redact(stored)
            .decode()
            .ok()
            .as_ref()
            .and_then(session_export::prompt_line)
        else {
            continue;
        };
        let line = format!("\n{who}: {what}\n");
        used.push_str(&line);
        if !fits(&used) {
            break;
        }
        tail.push(line);
    }
    if !tail.is_empty() {
        text.push_str("\n## The latest messages\n");
        text.extend(tail.into_iter().rev());
    }
    text.push_str(end);
    if !fits(&text) {
        app.ui.warn("pins and decisions alone exceed the budget");
    }
    Ok(text)
}
