//! `tl`: the command line of Throughline, durable sessions for AI agents.
//!
//! Composition root: reads the environment and flags into a configuration, builds the
//! [`App`] and runs a command.

mod agent_import;
mod app;
mod chat;
mod commands;
mod config;
mod echo_guard;
mod entry_text;
mod error_report;
mod finder;
mod keys;
mod lease_wait;
mod logins;
mod markdown;
mod paths;
mod private_files;
mod project;
mod project_documents;
mod semantic;
mod session_export;
mod signals;
mod summary_text;
mod threads;
mod time;
mod ui;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use app::App;
use commands::Command;
use config::{Config, Flags};
use paths::Paths;
use ui::{Color, Ui};

/// Threads pass entries to each other by the million. An allocator with per-thread heaps that
/// retain memory freed by other threads would only ever grow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long an idle blocking thread is kept. At least one should stay: the runtime panics if
/// it needs a thread and the system cannot start one.
const THREAD_KEEP_ALIVE: std::time::Duration = std::time::Duration::from_secs(3600);

/// Durable sessions for AI agents
///
/// Every message is saved at once, and sessions can be searched, resumed, forked and merged.
/// Without a command, opens the chat where you left off.
#[derive(Parser, Debug)]
#[command(name = "tl", version, after_help = error_report::EXIT_CODES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    chat: chat::ChatArgs,

    #[command(flatten)]
    global: GlobalArgs,
}

/// Flags common to all commands.
#[derive(clap::Args, Debug)]
struct GlobalArgs {
    /// Where sessions are stored: sqlite:PATH, postgres://…, https://… or memory: [env: TL_STORE]
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Global options"
    )]
    store: Option<String>,

    /// The owner of the sessions [env: TL_OWNER]
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        help_heading = "Global options"
    )]
    owner: Option<String>,

    /// Print data as JSON
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,

    /// When to use color: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        help_heading = "Global options"
    )]
    color: Option<String>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    ignore_file_size_signal();
    // A command needs one thread; a server serves many callers.
    let mut runtime = match &cli.command {
        Some(Command::Serve(_)) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    runtime.enable_all().thread_keep_alive(THREAD_KEEP_ALIVE);
    match threads::build_runtime(&mut runtime) {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => {
            let ui = Ui::new(false, Color::Auto, false, None);
            error_report::report(&ui, &error)
        }
    }
}

/// Ignores SIGXFSZ, so that a file size limit is reported as an error instead of killing the
/// process.
fn ignore_file_size_signal() {
    #[cfg(unix)]
    {
        let noticed = std::sync::Arc::default();
        // If this fails, the system's default behavior remains.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noticed);
    }
}

async fn run(cli: Cli) -> ExitCode {
    let no_save =
        cli.chat.no_save || matches!(&cli.command, Some(Command::Chat(chat)) if chat.no_save);
    let app = match build_app(&cli.global, no_save) {
        Ok(app) => app,
        Err(error) => {
            let ui = Ui::new(false, Color::Auto, false, None);
            return error_report::report(&ui, &error);
        }
    };
    let command = match cli.command {
        Some(command) if cli.chat.is_empty() => command,
        Some(_) => {
            let why = "chat flags cannot be used with another command";
            app.ui.error(why, Some("use them with `tl chat`"));
            return ExitCode::from(2);
        }
        None => Command::default_command(
            cli.chat,
            std::io::stdin().is_terminal() && app.ui.is_terminal(),
        ),
    };
    let app = app.with_read_only(command.is_read_only());
    let done = Box::pin(commands::run(&app, command)).await;
    let closed = app.close().await;
    match done.and_then(|code| closed.map(|()| code)) {
        Ok(code) => code,
        Err(error) => error_report::report(&app.ui, &error),
    }
}

fn build_app(global: &GlobalArgs, no_save: bool) -> Result<App> {
    let paths = Paths::from_environment()?;
    paths.restrict_permissions();
    let flags = Flags {
        store: global.store.clone(),
        owner: global.owner.clone(),
        color: global.color.clone(),
        no_save,
    };
    let config = Config::load(&paths, &flags)?;
    let dumb = paths.variable("TERM").is_none_or(|term| term == "dumb");
    let plain = paths.variable("NO_COLOR").is_some() || paths.variable("TERM") == Some("dumb");
    let ui = Ui::new(global.json, config.color(), plain, config.pager());
    let ui = if dumb { ui } else { ui.with_redraw() };
    Ok(App::new(ui, config, paths))
}

/// Parses a command as it would be written after `tl`.
pub(crate) fn parse_command(words: &[&str]) -> Result<Command, clap::Error> {
    #[derive(Parser, Debug)]
    #[command(name = "tl")]
    struct CommandLine {
        #[command(subcommand)]
        command: Command,
    }
    Ok(CommandLine::try_parse_from(words)?.command)
}

/// Returns the clap definition, for completions and generated references.
pub(crate) fn command_line() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}
