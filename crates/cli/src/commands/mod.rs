//! The subcommands of `tl`, one file each, and what they share.

pub(crate) mod append;
mod archive;
mod backup;
mod clear;
pub(crate) mod compact;
mod completions;
mod config;
pub(crate) mod context;
mod continue_session;
mod decide;
mod delete;
mod describe;
mod doctor;
mod erase;
pub(crate) mod export;
mod fork;
mod generate;
mod handoff;
mod import;
mod login;
mod mcp;
pub(crate) mod memory;
pub(crate) mod merge;
mod migrate_store;
mod models;
pub(crate) mod new;
mod open;
mod pin;
mod purge;
mod rename;
mod restore_backup;
mod rewind;
mod run;
mod salvage;
pub(crate) mod search;
mod serve;
mod sessions;
mod show;
mod stats;
mod tag;
mod token;
mod tree;
mod watch;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use throughline::{Body, Entry, Seq, Session, SessionId, SessionSpec, Tag};

use crate::app::App;
use crate::chat;
use crate::markdown::sanitize;

/// A subcommand.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    Chat(chat::ChatArgs),
    Resume(ResumeArgs),
    #[command(visible_aliases = ["ls", "list"])]
    Sessions(sessions::SessionsArgs),
    Search(search::SearchArgs),
    Show(show::ShowArgs),
    New(new::NewArgs),
    Open(open::OpenArgs),
    Append(append::AppendArgs),
    Rename(rename::RenameArgs),
    Describe(describe::DescribeArgs),
    Tag(tag::TagArgs),
    Untag(tag::UntagArgs),
    Pin(pin::PinArgs),
    Unpin(pin::UnpinArgs),
    Decide(decide::DecideArgs),
    Memory(memory::MemoryArgs),
    Archive(archive::ArchiveArgs),
    Unarchive(archive::UnarchiveArgs),
    Context(context::ContextArgs),
    Compact(compact::CompactArgs),
    #[command(name = "continue")]
    Continue(continue_session::ContinueArgs),
    Clear(clear::ClearArgs),
    Rewind(rewind::RewindArgs),
    Fork(fork::ForkArgs),
    Merge(merge::MergeArgs),
    Tree(tree::TreeArgs),
    Workspace(workspace::WorkspaceArgs),
    Delete(delete::DeleteArgs),
    Restore(delete::RestoreArgs),
    Purge(purge::PurgeArgs),
    Erase(erase::EraseArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Serve(serve::ServeArgs),
    Mcp(mcp::McpArgs),
    Token(token::TokenArgs),
    Login(login::LoginArgs),
    Logout(login::LogoutArgs),
    Watch(watch::WatchArgs),
    Run(run::RunArgs),
    Handoff(handoff::HandoffArgs),
    Stats(stats::StatsArgs),
    Doctor(doctor::DoctorArgs),
    Backup(backup::BackupArgs),
    RestoreBackup(restore_backup::RestoreBackupArgs),
    MigrateStore(migrate_store::MigrateStoreArgs),
    Models(models::ModelsArgs),
    Config(config::ConfigArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Generate(generate::GenerateArgs),
}

/// Resume a session
///
/// Shows where you left off and opens the chat there. Without a session, shows a list.
#[derive(clap::Args, Debug)]
pub(crate) struct ResumeArgs {
    /// The session
    session: Option<SessionSpec>,
}

impl Command {
    /// Returns whether the command only reads, so that it does not create a store.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Self::Memory(args) => return args.is_read_only(),
            Self::Token(args) => return args.is_read_only(),
            _ => {}
        }
        matches!(
            self,
            Self::Sessions(_)
                | Self::Search(_)
                | Self::Show(_)
                | Self::Tree(_)
                | Self::Export(_)
                | Self::Stats(_)
                | Self::Doctor(_)
                | Self::Backup(_)
        )
    }
}

impl Command {
    /// Returns the command to run when none is given: the chat on a terminal, a listing
    /// elsewhere.
    pub(crate) fn default_command(args: chat::ChatArgs, terminal: bool) -> Self {
        if terminal || !args.is_empty() {
            Self::Chat(args)
        } else {
            Self::Sessions(sessions::SessionsArgs::main_screen())
        }
    }
}

/// Runs a command.
pub(crate) async fn run(app: &App, command: Command) -> Result<ExitCode> {
    match command {
        Command::Chat(args) => return chat::run(app, args).await,
        Command::Resume(args) => {
            return chat::run(app, chat::ChatArgs::with_resume(args.session)).await;
        }
        Command::Append(args) => return append::run(app, args).await,
        Command::Import(args) => return import::run(app, args).await,
        Command::Doctor(args) => return doctor::run(app, args).await,
        Command::MigrateStore(args) => return migrate_store::run(app, args).await,
        Command::Run(args) => return run::run(app, args).await,
        Command::Sessions(args) => sessions::run(app, args).await,
        Command::Search(args) => search::run(app, args).await,
        Command::Show(args) => show::run(app, args).await,
        Command::New(args) => new::run(app, args).await,
        Command::Open(args) => open::run(app, args).await,
        Command::Rename(args) => rename::run(app, args).await,
        Command::Describe(args) => describe::run(app, args).await,
        Command::Tag(args) => tag::run_tag(app, args).await,
        Command::Untag(args) => tag::run_untag(app, args).await,
        Command::Pin(args) => pin::run_pin(app, args).await,
        Command::Unpin(args) => pin::run_unpin(app, args).await,
        Command::Decide(args) => decide::run(app, args).await,
        Command::Memory(args) => memory::run(app, args).await,
        Command::Archive(args) => archive::run_archive(app, args).await,
        Command::Unarchive(args) => archive::run_unarchive(app, args).await,
        Command::Context(args) => context::run(app, args).await,
        Command::Compact(args) => compact::run(app, args).await,
        Command::Continue(args) => continue_session::run(app, args).await,
        Command::Clear(args) => clear::run(app, args).await,
        Command::Rewind(args) => rewind::run(app, args).await,
        Command::Fork(args) => fork::run(app, args).await,
        Command::Merge(args) => merge::run(app, args).await,
        Command::Workspace(args) => workspace::run(app, args).await,
        Command::Tree(args) => tree::run(app, args).await,
        Command::Delete(args) => delete::run_delete(app, args).await,
        Command::Restore(args) => delete::run_restore(app, args).await,
        Command::Purge(args) => purge::run(app, args).await,
        Command::Erase(args) => erase::run(app, args).await,
        Command::Export(args) => export::run(app, args).await,
        Command::Serve(args) => serve::run(app, args).await,
        Command::Mcp(args) => mcp::run(app, args).await,
        Command::Token(args) => token::run(app, args).await,
        Command::Login(args) => login::run_login(app, args).await,
        Command::Logout(args) => login::run_logout(app, args),
        Command::Handoff(args) => handoff::run(app, args).await,
        Command::Watch(args) => watch::run(app, args).await,
        Command::Stats(args) => stats::run(app, args).await,
        Command::Backup(args) => backup::run(app, args).await,
        Command::RestoreBackup(args) => restore_backup::run(app, &args),
        Command::Models(args) => models::run(app, args),
        Command::Config(args) => config::run(app, &args),
        Command::Completions(args) => completions::run(&args),
        Command::Generate(args) => generate::run(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Reports a change to a session: as JSON, its id and the new entry.
async fn report_entry(app: &App, session: &Session, entry: &Entry) -> Result<()> {
    if app.ui.json {
        let info = session.record().await?.info;
        app.ui.json(&json!({
            "id": info.id,
            "name": info.name,
            "tags": info.tags,
            "seq": entry.seq,
        }))?;
    } else {
        let info = session.record().await?.info;
        app.ui.status(format_args!(
            "{}: {}",
            sanitize(info.title()),
            describe_entry(entry)
        ));
    }
    Ok(())
}

/// Parses text that must not be blank.
fn parse_non_empty(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// Warns if other sessions have the same name, because it is then ambiguous.
async fn warn_duplicate_name(app: &App, session: &Session) -> Result<()> {
    let info = session.record().await?.info;
    let Some(name) = &info.name else {
        return Ok(());
    };
    let tl = app.tl().await?;
    let found = tl
        .store()
        .find_candidates(tl.owner(), name.as_str(), 10)
        .await?;
    let others = found.iter().filter(|other| {
        !other.trashed && other.info.id != info.id && other.info.name.as_ref() == Some(name)
    });
    if others.count() > 0 {
        app.ui.warn(format_args!(
            "another session is also named {name}; use the id to refer to it"
        ));
    }
    Ok(())
}

/// Describes in a few words what an entry changed.
fn describe_entry(entry: &Entry) -> String {
    let tags = |tags: &[Tag]| tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(", ");
    match &entry.body {
        Body::Renamed {
            name: Some(name), ..
        } => format!("Named {name}"),
        Body::Renamed { name: None, .. } => "Removed the name".to_owned(),
        Body::Described {
            description: Some(_),
        } => "Described".to_owned(),
        Body::Described { description: None } => "Removed the description".to_owned(),
        Body::Tagged { tags: added } => format!("Tagged {}", tags(added)),
        Body::Untagged { tags: removed } => format!("Untagged {}", tags(removed)),
        Body::Pinned { .. } => format!("Pinned as entry {}", entry.seq),
        Body::Unpinned { .. } => "Unpinned".to_owned(),
        Body::Decided { .. } => format!("Recorded the decision as entry {}", entry.seq),
        Body::ContextSet {
            document, content, ..
        } => match content {
            Some(_) => format!("Document {document} set"),
            None => format!("Document {document} removed"),
        },
        Body::Cleared => "Cleared; `show --all` still shows everything".to_owned(),
        body => format!("Entry {}: {}", entry.seq, body.kind()),
    }
}

/// Reports a change to several sessions.
fn report_sessions(app: &App, what: &str, ids: &[SessionId]) -> Result<()> {
    if app.ui.json {
        app.ui.json(&json!({"sessions": ids}))?;
    } else {
        for id in ids {
            app.ui.status(format_args!("{what}: {id}"));
        }
    }
    Ok(())
}

/// Resolves all sessions, or fails if one does not exist.
async fn resolve_sessions(app: &App, specs: &[SessionSpec]) -> Result<Vec<Session>> {
    let mut sessions = Vec::new();
    for spec in specs {
        sessions.push(app.session(spec).await?);
    }
    Ok(sessions)
}

/// Warns that a cut was moved so as not to separate a tool call from its result.
fn warn_moved_boundary(app: &App, requested: Seq, actual: Seq) {
    if requested != actual {
        app.ui.warn(format_args!(
            "entry {requested} is inside a tool call whose result comes at {actual}; cut there instead"
        ));
    }
}
