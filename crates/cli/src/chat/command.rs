//! What a command of the chat does.
//!
//! Most are the program's own commands, run on the session that is open; the rest move
//! the chat to another session, or change who answers.

use anyhow::Result;
use throughline::llm::Model;
use throughline::{NewSession, Session, Summary};

use super::start::spec;
use super::words::{WORDS, arguments};
use super::{Chat, Place};
use crate::commands::context::Asker;
use crate::commands::new::locate;
use crate::commands::{Command, merge};
use crate::markdown::{self, safe};
use crate::report::Refusal;
use crate::summary;

/// Columns for what can be typed, in `/help`.
const TYPED: usize = 28;
const KEYS: &str = "\
Alt-Enter, or a backslash at the end, begins another line; Ctrl-C stops an answer, twice \
leaves. Also without a slash: compact, resume N, exit, quit, help.";
/// Commands that are about what was said: no reason to make a session.
const ABOUT_WHAT_WAS_SAID: &[&str] = &[
    "archive", "clear", "compact", "context", "continue", "export", "facts", "fork", "history",
    "merge", "retry", "rewind", "show", "stats", "tasks", "tree",
];

impl Chat<'_> {
    pub(super) async fn command(&mut self, name: &'static str, rest: &str) -> Result<()> {
        if self.current().is_none() && ABOUT_WHAT_WAS_SAID.contains(&name) {
            self.app.ui.status("Nothing was said here yet.");
            return Ok(());
        }
        match name {
            "help" => self.help(),
            "new" => self.start_another(rest).await,
            "retry" => self.retry().await,
            "resume" if rest.is_empty() => self.choose().await,
            "resume" => self.resume(&spec(rest)?).await,
            "continue" => self.carry_on().await,
            "compact" => self.compact(rest).await,
            "fork" => self.fork(rest).await,
            "merge" => self.merge(rest).await,
            "agent" => self.change_agent(rest).await,
            "model" => self.change_model(rest),
            "facts" => self.facts().await,
            "tasks" => self.tasks().await,
            "sessions" => self.listing(rest).await,
            "history" => self.history(rest).await,
            "context" => self.context(rest).await,
            // These take a text as it stands.
            "pin" | "unpin" | "decide" | "rename" => {
                if rest.is_empty() {
                    let takes = WORDS.iter().find(|word| word.name == name);
                    let takes = takes.map_or("", |word| word.takes);
                    return Err(Refusal::invalid(format!("/{name} needs to know what"))
                        .hint(format!("write /{name} {takes}"))
                        .into());
                }
                self.on_session(name, &["--", rest]).await
            }
            "rewind" => {
                if rest.is_empty() {
                    return Err(Refusal::invalid("/rewind needs the number of an entry")
                        .hint("/history shows the numbers")
                        .into());
                }
                self.on_session(name, &["--to", rest]).await
            }
            "memory" => self.memory(rest).await,
            "search" | "doctor" => {
                let words = arguments(rest).map_err(Refusal::invalid)?;
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                self.run(name, &words).await
            }
            "show" | "tag" | "tree" | "workspace" | "archive" | "export" | "stats" | "clear" => {
                let words = arguments(rest).map_err(Refusal::invalid)?;
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                self.on_session(name, &words).await
            }
            other => Err(Refusal::invalid(format!("/{other} is not known here")).into()),
        }
    }

    fn help(&self) -> Result<()> {
        let ui = &self.app.ui;
        let mut text = String::new();
        for word in WORDS {
            let mut typed = format!("/{} {}", word.name, word.takes);
            if typed.len() > TYPED {
                typed.push_str(&format!("\n  {:<TYPED$}", ""));
            }
            let about = markdown::plain(word.about, ui.width.saturating_sub(TYPED + 3));
            let about = about
                .trim_end()
                .replace('\n', &format!("\n{:<1$}", "", TYPED + 3));
            text.push_str(&format!("  {typed:<TYPED$} {}\n", ui.dim(&about)));
        }
        text.push_str(&format!("\n{}", markdown::plain(KEYS, ui.width)));
        ui.page(&text)?;
        Ok(())
    }

    /// Runs one of the program's own commands on the session that is open.
    async fn on_session(&mut self, name: &str, words: &[&str]) -> Result<()> {
        let session = self.session().await?;
        let all: Vec<&str> = [session.id().as_str()]
            .into_iter()
            .chain(words.iter().copied())
            .collect();
        self.run(name, &all).await
    }

    /// Runs one of the program's own commands.
    async fn run(&mut self, name: &str, words: &[&str]) -> Result<()> {
        let before = self.head().await?;
        let line = [&["tl", name][..], words].concat();
        let command = match crate::parse_command(&line) {
            Ok(command) => command,
            Err(help) if help.kind() == clap::error::ErrorKind::DisplayHelp => {
                return Ok(self.app.ui.page(&help.render().to_string())?);
            }
            Err(error) => return Err(misused(name, &error)),
        };
        tokio::select! {
            done = Box::pin(crate::commands::run(self.app, command)) => { done?; }
            _ = tokio::signal::ctrl_c() => self.app.ui.status("Stopped."),
        }
        // What the command itself appended is no news; what others did still is.
        if before == self.seen {
            self.seen = self.head().await?;
        }
        Ok(())
    }

    async fn head(&self) -> Result<throughline::Seq> {
        Ok(match self.current() {
            Some(session) => session.record().await?.card.head,
            None => throughline::Seq::ZERO,
        })
    }

    /// The last messages, and what else happened between them.
    async fn history(&mut self, rest: &str) -> Result<()> {
        let count: usize = match rest {
            "" => 20,
            number => number
                .parse()
                .ok()
                .filter(|count| *count > 0)
                .ok_or_else(|| {
                    Refusal::invalid(format!("{number:?} is not a number of messages"))
                })?,
        };
        let session = self.session().await?;
        let tail = session.tail(count.saturating_mul(4).min(2_000)).await?;
        let messages = tail.iter().enumerate().rev();
        let mut messages = messages.filter(|(_, entry)| entry.message().is_some());
        let entries = match messages.nth(count - 1) {
            Some((first, _)) => tail.len() - first,
            None => tail.len(),
        };
        self.on_session("show", &["--last", &entries.to_string()])
            .await
    }

    async fn listing(&mut self, rest: &str) -> Result<()> {
        let words = arguments(rest).map_err(Refusal::invalid)?;
        let mut words: Vec<_> = words.iter().map(String::as_str).collect();
        if !words.contains(&"--project") && !words.contains(&"--all") {
            words.extend(["--project", "."]);
        }
        self.run("sessions", &words).await
    }

    /// `tl memory`, of the project this session is in. What is added comes from here.
    async fn memory(&mut self, rest: &str) -> Result<()> {
        let (project, source) = match self.current() {
            Some(session) => {
                let card = session.record().await?.card;
                let place = format!("{}:{}", card.id, card.head);
                (card.project, (card.head.0 > 0).then_some(place))
            }
            None => (None, None),
        };
        // A text to remember is taken as it stands, quotes and all.
        let text = rest.strip_prefix("add ").map(str::trim);
        let mut words = match text.filter(|text| !text.contains("--")) {
            Some(text) => vec!["add".to_owned(), text.to_owned()],
            None => arguments(rest).map_err(Refusal::invalid)?,
        };
        let has = |words: &[String], flag: &str| words.iter().any(|word| word.starts_with(flag));
        if words.first().is_some_and(|word| word == "add") && !has(&words, "--source") {
            words.extend(
                source
                    .into_iter()
                    .flat_map(|place| ["--source".to_owned(), place]),
            );
        }
        if !has(&words, "--project") {
            let project = project.map(|id| ["--project".to_owned(), id.to_string()]);
            words.extend(project.into_iter().flatten());
        }
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        self.run("memory", &words).await
    }

    /// Leaves this session for one that is made when something is said.
    pub(super) async fn start_another(&mut self, name: &str) -> Result<()> {
        let mut new = NewSession {
            agent: self.voice.agent_ref(),
            name: match name {
                "" => None,
                name => Some(name.parse().map_err(throughline::Error::from)?),
            },
            ..NewSession::default()
        };
        locate(self.app, &mut new).await?;
        self.leave_session().await?;
        self.mark = None;
        self.context = None;
        self.seen = throughline::Seq::ZERO;
        self.place = Place::New(Box::new(new));
        self.app.ui.status("A new session.");
        Ok(())
    }

    async fn fork(&mut self, rest: &str) -> Result<()> {
        let session = self.session().await?;
        let at = match rest.strip_prefix("--at").unwrap_or(rest).trim() {
            "" => None,
            number => Some(number.parse().map_err(|_| {
                Refusal::invalid(format!("{number:?} is not the number of an entry"))
                    .hint("/history shows the numbers")
            })?),
        };
        let fork = session.fork(at, NewSession::default()).await?;
        self.app.ui.status(format_args!(
            "Forked at entry {}; this goes on in {}, and /merge brings it back.",
            fork.at,
            fork.session.id()
        ));
        self.enter(fork.session).await
    }

    /// What the model would be sent now: by this chat, as it would send it.
    async fn context(&mut self, rest: &str) -> Result<()> {
        let session = self.session().await?;
        let Command::Context(args) = parsed("context", &session, rest)? else {
            return Ok(());
        };
        let asker = Asker {
            policy: match args.how() {
                Some(how) => how.policy(self.app, &session).await?,
                None => self.policy().await?,
            },
            window: self.voice.window(self.app),
            encoding: self.voice.encoding(self.app),
            agent: self.voice.description(),
            model: self.voice.model().map(Model::name),
        };
        args.tell(self.app, &session, &asker).await
    }

    async fn merge(&mut self, rest: &str) -> Result<()> {
        let session = self.session().await?;
        let Command::Merge(args) = parsed("merge", &session, rest)? else {
            return Ok(());
        };
        let outcome = merge::merge(self.app, args).await?;
        let into = outcome.into.record().await?.card;
        self.app.ui.status(format_args!(
            "{}; this goes on in {}.",
            outcome.told(),
            safe(into.title())
        ));
        self.enter(outcome.into).await
    }

    async fn summary(&mut self) -> Result<Summary> {
        let session = self.session().await?;
        Ok(session.summary_now().await?)
    }

    async fn facts(&mut self) -> Result<()> {
        let summary = self.summary().await?;
        self.lists(&[
            ("Facts", &summary.facts),
            ("Decisions", &summary.decisions),
            ("Files touched", &summary.files_touched),
        ])
    }

    async fn tasks(&mut self) -> Result<()> {
        let summary = self.summary().await?;
        self.lists(&[
            ("In progress", &summary.in_progress),
            ("Open", &summary.open_tasks),
            ("Pending", &summary.pending),
            ("Blocked", &summary.blockers),
        ])
    }

    fn lists(&self, lists: &[(&str, &Vec<String>)]) -> Result<()> {
        let ui = &self.app.ui;
        let text = summary::lists(ui, lists);
        if text.is_empty() {
            ui.status("None so far.");
            return Ok(());
        }
        ui.page(&text)?;
        Ok(())
    }

    /// Lets the person choose a session from a list.
    async fn choose(&mut self) -> Result<()> {
        match crate::finder::sessions(self.app, self.tl).await? {
            Some(card) => self.resume(&spec(card.id.as_str())?).await,
            None => Ok(()),
        }
    }

    async fn change_agent(&mut self, rest: &str) -> Result<()> {
        if rest.is_empty() {
            let told = self.voice.agent_ref().map_or_else(
                || "No agent: the model answers as it is.".to_owned(),
                |agent| match agent.path {
                    Some(path) => format!("{} ({path})", agent.name),
                    None => agent.name,
                },
            );
            self.app.ui.data(safe(&told))?;
            return Ok(());
        }
        self.voice.set_agent(self.app, rest)?;
        if let (Some(session), Some(agent)) = (self.current().cloned(), self.voice.agent_ref()) {
            session.append(throughline::Body::AgentSet(agent)).await?;
            self.seen = self.head().await?;
        }
        if let Place::New(new) = &mut self.place {
            new.agent = self.voice.agent_ref();
        }
        self.app.ui.status(format_args!(
            "{} answers from now on.",
            safe(self.voice.name())
        ));
        Ok(())
    }

    fn change_model(&mut self, rest: &str) -> Result<()> {
        if rest.is_empty() {
            self.app.ui.data(self.voice.how_to_connect())?;
            return Ok(());
        }
        self.voice.set_model(self.app, rest)?;
        self.context = None;
        self.app.ui.status(format_args!(
            "{} answers from now on.",
            safe(self.voice.name())
        ));
        Ok(())
    }
}

/// One of the program's own commands, about a session.
fn parsed(name: &str, session: &Session, rest: &str) -> Result<Command> {
    let words = arguments(rest).map_err(Refusal::invalid)?;
    let words = words.iter().map(String::as_str);
    let about = ["tl", name, session.id().as_str()];
    let line: Vec<_> = about.into_iter().chain(words).collect();
    crate::parse_command(&line).map_err(|error| misused(name, &error))
}

/// What is wrong with how a command was typed.
fn misused(name: &str, error: &clap::Error) -> anyhow::Error {
    use clap::error::ErrorKind;
    let told = error.render().to_string();
    let told = told.strip_prefix("error: ").unwrap_or(&told).trim();
    let what = match error.kind() {
        ErrorKind::MissingRequiredArgument => format!("/{name} needs to know what"),
        ErrorKind::InvalidSubcommand => format!("/{name} is not there yet"),
        _ => told.lines().next().unwrap_or(told).to_owned(),
    };
    let word = WORDS.iter().find(|word| word.name == name);
    match word.filter(|word| !word.takes.is_empty()) {
        Some(word) => Refusal::invalid(what).hint(format!("write /{name} {}", word.takes)),
        None => Refusal::invalid(what),
    }
    .into()
}
