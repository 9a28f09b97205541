//! Executes the chat's slash commands.
//!
//! Most run a `tl` subcommand on the open session; the others switch to another session or
//! change the agent or model.

use anyhow::Result;
use throughline::llm::Model;
use throughline::{NewSession, Session, Summary};

use super::slash_commands::{SLASH_COMMANDS, split_arguments};
use super::start::parse_spec;
use super::{Chat, ChatTarget};
use crate::commands::context::RequestProfile;
use crate::commands::new::assign_project;
use crate::commands::{Command, merge};
use crate::error_report::UserError;
use crate::markdown::{self, sanitize};
use crate::summary_text;

/// Width of the usage column in `/help`.
const USAGE_WIDTH: usize = 28;
const KEY_HELP: &str = "\
Alt-Enter, or a trailing backslash, starts a new line; Ctrl-C stops an answer, twice exits. \
Without a slash: compact, resume N, exit, quit, help.";
/// Commands that need messages; they do not create a session.
const REQUIRES_MESSAGES: &[&str] = &[
    "archive", "clear", "compact", "context", "continue", "export", "facts", "fork", "history",
    "merge", "retry", "rewind", "show", "stats", "tasks", "tree",
];

impl Chat<'_> {
    pub(super) async fn run_slash_command(&mut self, name: &'static str, rest: &str) -> Result<()> {
        if self.current_session().is_none() && REQUIRES_MESSAGES.contains(&name) {
            self.app.ui.status("There are no messages here yet.");
            return Ok(());
        }
        match name {
            "help" => self.show_help(),
            "new" => self.start_new_session(rest).await,
            "retry" => self.retry().await,
            "resume" if rest.is_empty() => self.choose_session().await,
            "resume" => self.resume(&parse_spec(rest)?).await,
            "continue" => self.continue_from_summary().await,
            "compact" => self.compact(rest).await,
            "fork" => self.fork(rest).await,
            "merge" => self.merge(rest).await,
            "agent" => self.change_agent(rest).await,
            "model" => self.change_model(rest),
            "facts" => self.show_facts().await,
            "tasks" => self.show_tasks().await,
            "sessions" => self.list_sessions(rest).await,
            "history" => self.show_history(rest).await,
            "context" => self.show_context(rest).await,
            // These take the rest of the line verbatim.
            "pin" | "unpin" | "decide" | "rename" => {
                if rest.is_empty() {
                    let takes = SLASH_COMMANDS.iter().find(|word| word.name == name);
                    let takes = takes.map_or("", |word| word.usage);
                    return Err(UserError::invalid(format!("/{name} needs an argument"))
                        .with_hint(format!("usage: /{name} {takes}"))
                        .into());
                }
                self.run_on_session(name, &["--", rest]).await
            }
            "rewind" => {
                if rest.is_empty() {
                    return Err(UserError::invalid("/rewind needs the number of an entry")
                        .with_hint("/history shows the numbers")
                        .into());
                }
                self.run_on_session(name, &["--to", rest]).await
            }
            "memory" => self.run_memory(rest).await,
            "search" | "doctor" => {
                let words = split_arguments(rest).map_err(UserError::invalid)?;
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                self.run_cli_command(name, &words).await
            }
            "show" | "tag" | "tree" | "workspace" | "archive" | "export" | "stats" | "clear" => {
                let words = split_arguments(rest).map_err(UserError::invalid)?;
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                self.run_on_session(name, &words).await
            }
            other => Err(UserError::invalid(format!("unknown command /{other}")).into()),
        }
    }

    fn show_help(&self) -> Result<()> {
        let ui = &self.app.ui;
        let mut text = String::new();
        for word in SLASH_COMMANDS {
            let mut typed = format!("/{} {}", word.name, word.usage);
            if typed.len() > USAGE_WIDTH {
                typed.push_str(&format!("\n  {:<USAGE_WIDTH$}", ""));
            }
            let about = markdown::wrap_plain(word.help, ui.width.saturating_sub(USAGE_WIDTH + 3));
            let about = about
                .trim_end()
                .replace('\n', &format!("\n{:<1$}", "", USAGE_WIDTH + 3));
            text.push_str(&format!("  {typed:<USAGE_WIDTH$} {}\n", ui.dim(&about)));
        }
        text.push_str(&format!("\n{}", markdown::wrap_plain(KEY_HELP, ui.width)));
        ui.page(&text)?;
        Ok(())
    }

    /// Runs a `tl` subcommand on the open session.
    async fn run_on_session(&mut self, name: &str, words: &[&str]) -> Result<()> {
        let session = self.ensure_session().await?;
        let all: Vec<&str> = [session.id().as_str()]
            .into_iter()
            .chain(words.iter().copied())
            .collect();
        self.run_cli_command(name, &all).await
    }

    /// Runs a `tl` subcommand.
    async fn run_cli_command(&mut self, name: &str, words: &[&str]) -> Result<()> {
        let before = self.head().await?;
        let line = [&["tl", name][..], words].concat();
        let command = match crate::parse_command(&line) {
            Ok(command) => command,
            Err(help) if help.kind() == clap::error::ErrorKind::DisplayHelp => {
                return Ok(self.app.ui.page(&help.render().to_string())?);
            }
            Err(error) => return Err(usage_error(name, &error)),
        };
        tokio::select! {
            done = Box::pin(crate::commands::run(self.app, command)) => { done?; }
            _ = tokio::signal::ctrl_c() => self.app.ui.status("Stopped."),
        }
        // Mark the command's own entries as seen, but not those of other windows.
        if before == self.last_seen {
            self.last_seen = self.head().await?;
        }
        Ok(())
    }

    async fn head(&self) -> Result<throughline::Seq> {
        Ok(match self.current_session() {
            Some(session) => session.record().await?.info.head,
            None => throughline::Seq::ZERO,
        })
    }

    /// Shows the last messages and the entries between them.
    async fn show_history(&mut self, rest: &str) -> Result<()> {
        let count: usize = match rest {
            "" => 20,
            number => number
                .parse()
                .ok()
                .filter(|count| *count > 0)
                .ok_or_else(|| {
                    UserError::invalid(format!("{number:?} is not a number of messages"))
                })?,
        };
        let session = self.ensure_session().await?;
        let tail = session.tail(count.saturating_mul(4).min(2_000)).await?;
        let messages = tail.iter().enumerate().rev();
        let mut messages = messages.filter(|(_, entry)| entry.message().is_some());
        let entries = match messages.nth(count - 1) {
            Some((first, _)) => tail.len() - first,
            None => tail.len(),
        };
        self.run_on_session("show", &["--last", &entries.to_string()])
            .await
    }

    async fn list_sessions(&mut self, rest: &str) -> Result<()> {
        let words = split_arguments(rest).map_err(UserError::invalid)?;
        let mut words: Vec<_> = words.iter().map(String::as_str).collect();
        if !words.contains(&"--project") && !words.contains(&"--all") {
            words.extend(["--project", "."]);
        }
        self.run_cli_command("sessions", &words).await
    }

    /// Runs `tl memory` for the session's project, with the session as the source of new facts.
    async fn run_memory(&mut self, rest: &str) -> Result<()> {
        let (project, source) = match self.current_session() {
            Some(session) => {
                let info = session.record().await?.info;
                let source = format!("{}:{}", info.id, info.head);
                (info.project, (info.head.0 > 0).then_some(source))
            }
            None => (None, None),
        };
        // The text of a fact is taken verbatim, including quotes.
        let text = rest.strip_prefix("add ").map(str::trim);
        let mut words = match text.filter(|text| !text.contains("--")) {
            Some(text) => vec!["add".to_owned(), text.to_owned()],
            None => split_arguments(rest).map_err(UserError::invalid)?,
        };
        let has = |words: &[String], flag: &str| words.iter().any(|word| word.starts_with(flag));
        if words.first().is_some_and(|word| word == "add") && !has(&words, "--source") {
            words.extend(
                source
                    .into_iter()
                    .flat_map(|source| ["--source".to_owned(), source]),
            );
        }
        if !has(&words, "--project") {
            let project = project.map(|id| ["--project".to_owned(), id.to_string()]);
            words.extend(project.into_iter().flatten());
        }
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        self.run_cli_command("memory", &words).await
    }

    /// Leaves this session; a new one is created with the next message.
    pub(super) async fn start_new_session(&mut self, name: &str) -> Result<()> {
        let mut new = NewSession {
            agent: self.responder.agent_ref(),
            name: match name {
                "" => None,
                name => Some(name.parse().map_err(throughline::Error::from)?),
            },
            ..NewSession::default()
        };
        assign_project(self.app, &mut new).await?;
        self.leave_session().await?;
        self.marker = None;
        self.context_usage = None;
        self.last_seen = throughline::Seq::ZERO;
        self.target = ChatTarget::New(Box::new(new));
        self.app.ui.status("New session.");
        Ok(())
    }

    async fn fork(&mut self, rest: &str) -> Result<()> {
        let session = self.ensure_session().await?;
        let at = match rest.strip_prefix("--at").unwrap_or(rest).trim() {
            "" => None,
            number => Some(number.parse().map_err(|_| {
                UserError::invalid(format!("{number:?} is not the number of an entry"))
                    .with_hint("/history shows the numbers")
            })?),
        };
        let fork = session.fork(at, NewSession::default()).await?;
        self.app.ui.status(format_args!(
            "Forked at entry {}: now in {}. /merge merges back.",
            fork.at,
            fork.session.id()
        ));
        self.enter_session(fork.session).await
    }

    /// Shows the request that this chat would send now.
    async fn show_context(&mut self, rest: &str) -> Result<()> {
        let session = self.ensure_session().await?;
        let Command::Context(args) = parse_session_command("context", &session, rest)? else {
            return Ok(());
        };
        let asker = RequestProfile {
            policy: match args.policy_args() {
                Some(how) => how.policy(self.app, &session).await?,
                None => self.policy().await?,
            },
            window: self.responder.window(self.app),
            encoding: self.responder.encoding(self.app),
            agent: self.responder.description(),
            model: self.responder.model().map(Model::name),
        };
        args.show_request(self.app, &session, &asker).await
    }

    async fn merge(&mut self, rest: &str) -> Result<()> {
        let session = self.ensure_session().await?;
        let Command::Merge(args) = parse_session_command("merge", &session, rest)? else {
            return Ok(());
        };
        let outcome = merge::merge(self.app, args).await?;
        let into = outcome.into.record().await?.info;
        self.app.ui.status(format_args!(
            "{}; now in {}.",
            outcome.describe(),
            sanitize(into.title())
        ));
        self.enter_session(outcome.into).await
    }

    async fn summary(&mut self) -> Result<Summary> {
        let session = self.ensure_session().await?;
        Ok(session.summarize_now().await?)
    }

    async fn show_facts(&mut self) -> Result<()> {
        let summary = self.summary().await?;
        self.show_lists(&[
            ("Facts", &summary.facts),
            ("Decisions", &summary.decisions),
            ("Files touched", &summary.files_touched),
        ])
    }

    async fn show_tasks(&mut self) -> Result<()> {
        let summary = self.summary().await?;
        self.show_lists(&[
            ("In progress", &summary.in_progress),
            ("Open", &summary.open_tasks),
            ("Pending", &summary.pending),
            ("Blocked", &summary.blockers),
        ])
    }

    fn show_lists(&self, lists: &[(&str, &Vec<String>)]) -> Result<()> {
        let ui = &self.app.ui;
        let text = summary_text::render_lists(ui, lists);
        if text.is_empty() {
            ui.status("None so far.");
            return Ok(());
        }
        ui.page(&text)?;
        Ok(())
    }

    /// Shows a list of sessions to choose from.
    async fn choose_session(&mut self) -> Result<()> {
        match crate::finder::choose_session(self.app, self.tl).await? {
            Some(info) => self.resume(&parse_spec(info.id.as_str())?).await,
            None => Ok(()),
        }
    }

    async fn change_agent(&mut self, rest: &str) -> Result<()> {
        if rest.is_empty() {
            let description = self.responder.agent_ref().map_or_else(
                || "No agent: the model answers without instructions.".to_owned(),
                |agent| match agent.path {
                    Some(path) => format!("{} ({path})", agent.name),
                    None => agent.name,
                },
            );
            self.app.ui.data(sanitize(&description))?;
            return Ok(());
        }
        self.responder.set_agent(self.app, rest)?;
        if let (Some(session), Some(agent)) =
            (self.current_session().cloned(), self.responder.agent_ref())
        {
            session.append(throughline::Body::AgentSet(agent)).await?;
            self.last_seen = self.head().await?;
        }
        if let ChatTarget::New(new) = &mut self.target {
            new.agent = self.responder.agent_ref();
        }
        self.app.ui.status(format_args!(
            "Now using {}.",
            sanitize(self.responder.name())
        ));
        Ok(())
    }

    fn change_model(&mut self, rest: &str) -> Result<()> {
        if rest.is_empty() {
            self.app.ui.data(self.responder.connection_help())?;
            return Ok(());
        }
        self.responder.set_model(self.app, rest)?;
        self.context_usage = None;
        self.app.ui.status(format_args!(
            "Now using {}.",
            sanitize(self.responder.name())
        ));
        Ok(())
    }
}

/// Parses a `tl` subcommand for a session.
fn parse_session_command(name: &str, session: &Session, rest: &str) -> Result<Command> {
    let words = split_arguments(rest).map_err(UserError::invalid)?;
    let words = words.iter().map(String::as_str);
    let about = ["tl", name, session.id().as_str()];
    let line: Vec<_> = about.into_iter().chain(words).collect();
    crate::parse_command(&line).map_err(|error| usage_error(name, &error))
}

/// Converts a parse error of a slash command.
fn usage_error(name: &str, error: &clap::Error) -> anyhow::Error {
    use clap::error::ErrorKind;
    let message = error.render().to_string();
    let message = message.strip_prefix("error: ").unwrap_or(&message).trim();
    let what = match error.kind() {
        ErrorKind::MissingRequiredArgument => format!("/{name} needs an argument"),
        ErrorKind::InvalidSubcommand => format!("/{name} is not supported here"),
        _ => message.lines().next().unwrap_or(message).to_owned(),
    };
    let word = SLASH_COMMANDS.iter().find(|word| word.name == name);
    match word.filter(|word| !word.usage.is_empty()) {
        Some(word) => UserError::invalid(what).with_hint(format!("usage: /{name} {}", word.usage)),
        None => UserError::invalid(what),
    }
    .into()
}
