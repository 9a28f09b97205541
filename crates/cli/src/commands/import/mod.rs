//! `tl import`: imports sessions of other agents, or from a file.

mod native_file;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use throughline::IndexWait;
use throughline_formats::SourceFormat;

use super::search;
use crate::agent_import::{self, AgentImporter, ImportTotals};
use crate::app::App;
use crate::error_report::UserError;
use crate::time::parse_instant;
use native_file::Format;

/// Import sessions
///
/// Without a file, finds other agents' sessions on this machine and imports what is new.
/// Can be run repeatedly without duplicates: unchanged files are not read, and a session
/// that was rewritten elsewhere becomes a fork.
///
/// With a file, accepts any of their formats, output of `tl export`, or one JSON object per
/// line: {"session": "id or name", "role": "user", "content": "text or blocks", "at":
/// "RFC 3339", "id": "outside id", "author": "…", "name": "title", "project": "…"}.
/// Invalid lines are reported by number; all others are imported.
#[derive(clap::Args, Debug)]
pub(crate) struct ImportArgs {
    /// The file; `-` for stdin [default: sessions on this machine]
    #[arg(conflicts_with = "path")]
    file: Option<PathBuf>,
    /// The file's format [default: detected]
    #[arg(long, short, value_enum, requires = "file", conflicts_with = "from")]
    format: Option<Format>,
    /// Only this agent: claude-code, codex, gemini, opencode, goose, pi, aider, llm,
    /// chatgpt, openai-agents, conversations, messages, aiarmy, chat-loop, bot, agent-cli,
    /// dagent (may be repeated)
    #[arg(long, value_name = "NAME")]
    from: Vec<SourceFormat>,
    /// Look here instead of the agent's default location: a folder or a file (may be repeated)
    #[arg(long, requires = "from")]
    path: Vec<PathBuf>,
    /// Only changes since: 2026-11-15, 7d, RFC 3339
    #[arg(long, value_name = "WHEN", conflicts_with = "file")]
    since: Option<String>,
    /// Read everything without storing anything
    #[arg(long)]
    dry_run: bool,
    /// Leave indexing to the next search
    #[arg(long)]
    no_wait: bool,
}

pub(crate) async fn run(app: &App, args: ImportArgs) -> Result<ExitCode> {
    let sources = match &args.file {
        Some(file) => {
            let path = app.resolve_path(file);
            let agents = match args.from.as_slice() {
                [] => SourceFormat::detect(&path).into_iter().collect(),
                named => named.to_vec(),
            };
            if args.format.is_some() || agents.is_empty() || file.as_os_str() == "-" {
                return native_file::run(app, file, &args).await;
            }
            let paths = [file.clone()];
            let sources = agent_import::find_sources(app, &agents, &paths);
            if sources.is_empty() {
                let what = format!("{} contains no sessions of {}", file.display(), agents[0]);
                return Err(UserError::invalid(what).into());
            }
            sources
        }
        None => {
            let agents = match args.from.as_slice() {
                [] => SourceFormat::ALL.to_vec(),
                named => named.to_vec(),
            };
            if let Some(missing) = args
                .path
                .iter()
                .find(|path| !app.resolve_path(path).exists())
            {
                return Err(UserError {
                    what: format!("{} does not exist", missing.display()),
                    hint: None,
                    kind: throughline::ErrorKind::NotFound,
                }
                .into());
            }
            agent_import::find_sources(app, &agents, &args.path)
        }
    };
    let since = match &args.since {
        Some(text) => {
            let now = app.tl().await?.now();
            Some(parse_instant(text, now, &app.zone).map_err(UserError::invalid)?)
        }
        None => None,
    };
    let mut sources = sources;
    sources.retain(|source| since.is_none_or(|since| source.modified >= Some(since)));
    let bar = app.ui.progress("Importing", "bytes");
    let brought = AgentImporter::new(app, args.dry_run)
        .await?
        .import(sources, &bar)
        .await;
    bar.finish_and_clear();
    let totals = ImportTotals::by_agent(brought?);
    let ok = agent_import::print_table(app, &totals, args.dry_run)?;
    if !args.dry_run {
        update_index(app, &args).await?;
    }
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(5)
    })
}

/// Indexes the imported entries. The import is already stored and reported, so this may be
/// interrupted.
async fn update_index(app: &App, args: &ImportArgs) -> Result<()> {
    if !args.no_wait {
        // The user is waiting already; afterwards searches need not wait.
        search::catch_up_index(app, IndexWait::Unlimited).await?;
    }
    Ok(())
}
