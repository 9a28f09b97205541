//! What a command of the chat does.
//!
//! Most are the program's own commands, run on the session that is open; the rest move
//! the chat to another session, or change who answers.

use anyhow::Result;
use throughline::{NewSession, Summary};

use super::start::spec;
use super::words::{WORDS, arguments};
use super::{Chat, Place};
use crate::commands::new::locate;
use crate::markdown::{self, safe};
use crate::report::Refusal;

impl Chat<'_> {
    pub(super) async fn command(&mut self, name: &'static str, rest: &str) -> Result<()> {
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
            "history" => {
                let count = if rest.is_empty() { "20" } else { rest };
                self.on_session("show", &["--last", count]).await
            }
            // These take a text as it stands.
            "pin" | "unpin" | "decide" | "rename" => {
                if rest.is_empty() {
                    return Err(Refusal::invalid(format!("/{name} needs to know what")).into());
                }
                self.on_session(name, &["--", rest]).await
            }
            "rewind" => self.on_session(name, &["--to", rest]).await,
            "memory" => self.memory(rest).await,
            "search" | "doctor" => {
                let words = arguments(rest).map_err(Refusal::invalid)?;
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                self.run(name, &words).await
            }
            "show" | "context" | "tag" | "tree" | "workspace" | "archive" | "export" | "stats"
            | "clear" => {
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
            let typed = format!("/{} {}", word.name, word.takes);
            text.push_str(&format!("  {typed:<28} {}\n", ui.dim(word.about)));
        }
        text.push_str(
            "\nAlt-Enter, or a backslash at the end, begins another line; Ctrl-C stops an \
             answer, twice leaves.\nAlso without a slash: compact, resume N, exit, quit, help.\n",
        );
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
        let command = crate::parse_command(&line).map_err(|error| {
            let told = error.render().to_string();
            let told = told.strip_prefix("error: ").unwrap_or(&told).trim();
            Refusal::invalid(told.lines().next().unwrap_or(told))
                .hint(format!("`tl {name} --help` tells what it takes"))
        })?;
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

    async fn merge(&mut self, rest: &str) -> Result<()> {
        let session = self.session().await?;
        let parent = session.record().await?.card.lineage.parent().cloned();
        let words = arguments(rest).map_err(Refusal::invalid)?;
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        self.on_session("merge", &words).await?;
        if let Some(parent) = parent {
            let origin = self.tl.session(&parent).await?;
            self.app
                .ui
                .status(format_args!("This goes on in {parent}."));
            self.enter(origin).await?;
        }
        Ok(())
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
        let mut text = String::new();
        for (title, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
            text.push_str(&format!("{}\n", ui.bold(title)));
            for item in *items {
                let lines = markdown::plain(item, ui.width.saturating_sub(4));
                text.push_str(&format!(
                    "  • {}\n",
                    lines.trim_end().replace('\n', "\n    ")
                ));
            }
        }
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
