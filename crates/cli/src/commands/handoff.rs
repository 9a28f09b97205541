//! `tl handoff`

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

/// How many tokens a prompt has at most, unless said otherwise.
const DEFAULT_BUDGET: u64 = 8_000;
/// The most bytes one argument of a command may have, on the systems that limit it.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// How many entries are looked at for the end of the conversation.
const MAX_TAIL_ENTRIES: usize = 400;

/// Who is to go on.
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
    /// A prompt for anybody, on stdout
    Prompt,
}

/// Let another agent go on with a session
///
/// Prepares what that agent needs: its own session file where it can load one, otherwise a
/// prompt with the summary, pins, decisions, files and the latest messages, within a
/// budget. Prints the command to run. A file goes into the other agent's folder only with
/// --write; what looks like a secret does not go along unless --reveal is given.
#[derive(clap::Args, Debug)]
pub(crate) struct HandoffArgs {
    /// Which session
    session: SessionSpec,
    /// Who goes on
    #[arg(long, value_enum)]
    to: HandoffTarget,
    /// Write the session file where that agent looks for it
    #[arg(long)]
    write: bool,
    /// Replace the file if it is there
    #[arg(long, requires = "write")]
    force: bool,
    /// At most so many tokens for a prompt
    #[arg(long, default_value_t = DEFAULT_BUDGET, value_name = "TOKENS")]
    budget: u64,
    /// Leave in what looks like a key or a password
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
                    .warn("the prompt is longer than a command may be; give a smaller --budget");
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
            "Nothing is written yet: --write puts it at {}",
            path.display()
        ));
    }
    app.ui.data(command)?;
    Ok(())
}

/// A session file of the agent's own.
async fn write_session_file(
    app: &App,
    session: &Session,
    args: &HandoffArgs,
    secrets: &mut SecretRedactor,
) -> Result<()> {
    let head = session_export::export_head(app, session, secrets).await?;
    let (agent, place) = match args.to {
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
        UserError::invalid(format!(
            "there is no home folder in which {agent} keeps sessions"
        ))
        .with_hint("set HOME, or hand off with --to prompt")
    })?;
    let path = root.join(place);
    let command = resume_command(args.to, &head, &path);
    if !args.write {
        return report_handoff(app, &path, false, &command);
    }
    if path.exists() && !args.force {
        return Err(
            UserError::invalid(format!("{} is there already", path.display()))
                .with_hint("--force replaces it, and what the other agent has added to it")
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
        .with_context(|| format!("{} cannot be made", folder.display()))?;
    write_atomically(&path, &text)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    prepare_return_fork(app, session, agent, &uuid, &path).await?;
    report_handoff(app, &path, true, &command)
}

/// Makes the fork that what the other agent adds will belong to, and notes that what was
/// written is known, so that `tl import` brings back nothing but what was added.
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

/// The command that starts an agent with a prompt, in the session's folder.
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

/// What another agent is told so that it can go on.
async fn build_prompt(
    app: &App,
    session: &Session,
    budget: u64,
    secrets: &mut SecretRedactor,
) -> Result<String> {
    let record = session.record().await?;
    let card = &record.info;
    let mut summary = match session.last_summary().await? {
        Some(known) => known.summary,
        None => session.summarize_now().await?,
    };
    if !secrets.reveal() {
        summary = summary.into_redacted();
    }
    let mut text = format!(
        "You go on with a conversation that another agent had. Here is what it came to.\n\n\
         Session: {}\n",
        card.title()
    );
    if let Some(folder) = &card.workspace {
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
    let standing = &record.state;
    let pinned: Vec<String> = standing.pins.iter().map(|pin| safe(&pin.text)).collect();
    summary.facts.retain(|said| !pinned.contains(said));
    text.push_str(&noted("Always in view", &mut pinned.into_iter()));
    let decided: Vec<String> = standing.decisions.iter().map(|d| safe(&d.text)).collect();
    summary.decisions.retain(|said| !decided.contains(said));
    text.push_str(&noted("Decided", &mut decided.into_iter()));
    let fits = |text: &str| Encoding::Rough.count(text) <= budget;
    let told = plain_summary(&summary);
    if !told.is_empty() {
        let mut whole = format!("\n## Summary\n{told}\n");
        // The summary may take half of it: what was said last matters more.
        while Encoding::Rough.count(&whole) > budget / 2 && whole.len() > 60 {
            let keep = whole.chars().count() * 3 / 4;
            whole = whole.chars().take(keep).collect::<String>() + " …\n";
        }
        text.push_str(&whole);
    }
    let end = "\nGo on from there; ask if something is missing.\n";
    let mut tail = Vec::new();
    let mut used = text.clone() + end + "\n## The latest messages\n";
    for stored in session
        .read_stored(throughline::ReadRange::tail(MAX_TAIL_ENTRIES))
        .await?
        .into_iter()
        .rev()
    {
        if !standing.is_visible(stored.seq) {
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
        app.ui
            .warn("what is pinned and decided alone is more than the budget");
    }
    Ok(text)
}
