//! The chat: what people keep open all day.
//!
//! A loop of reading a line, keeping it, and having it answered. Whatever happens to the
//! model, the terminal or the process, what was said is in the store before anything
//! else is done with it.

mod answer_renderer;
mod calibration;
mod chat_turn;
mod dispatch;
mod draft;
mod exit;
mod input;
mod open_marker;
mod print;
mod responder;
mod resume;
mod served_responders;
mod slash_commands;
mod start;
mod status;

use std::process::ExitCode;

use anyhow::Result;
pub(crate) use served_responders::ServedResponders;
use throughline::context::Policy;
use throughline::llm::Summarizer;
use throughline::{Entry, NewSession, Seq, Session, SessionSpec, Throughline, Usage};

use crate::app::App;
use crate::commands::context::PolicyArgs;
use crate::echo_guard::EchoGuard;
use crate::error_report::{self, UserError};
use input::{Input, InputEvent};
use open_marker::OpenMarker;
use responder::Responder;
use slash_commands::InputLine;

/// Talk with an agent
///
/// Goes on with the last session of this project, or starts one. Everything said is
/// saved as it is said. `/help` tells what can be typed. Without a model, the offline
/// agent answers from what was said before.
#[derive(clap::Args, Clone, Debug, Default)]
#[allow(
    clippy::option_option,
    reason = "a flag that may have a value is one to clap"
)]
pub(crate) struct ChatArgs {
    /// Start a new session
    #[arg(long, visible_alias = "new-session", conflicts_with_all = ["go_on", "resume"])]
    new: bool,
    /// Go on with the last session of this project, which is what happens anyway
    #[arg(long = "continue", short = 'c', conflicts_with = "resume")]
    go_on: bool,
    /// Go on with this session; without one, choose from a list
    #[arg(long, short = 'r', value_name = "SESSION", num_args = 0..=1)]
    resume: Option<Option<SessionSpec>>,
    /// The agent: a name, or the file that describes it
    #[arg(long, value_name = "FILE")]
    agent: Option<String>,
    /// The model: anthropic/claude-sonnet-4-5, openai/gpt-5, ollama/llama3.2, offline
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Say one thing, print the answer and leave; what comes through a pipe is said too
    #[arg(long, short = 'p', value_name = "PROMPT", num_args = 0..=1)]
    print: Option<Option<String>>,
    /// Keep none of it
    #[arg(long)]
    pub(crate) no_save: bool,
    #[command(flatten)]
    policy_args: PolicyArgs,
}

impl ChatArgs {
    /// Whether anything was asked for.
    pub(crate) fn is_empty(&self) -> bool {
        !self.new
            && !self.go_on
            && self.resume.is_none()
            && self.agent.is_none()
            && self.model.is_none()
            && self.print.is_none()
            && !self.no_save
            && self.policy_args.is_empty()
    }

    /// To go on with a session.
    pub(crate) fn with_resume(session: Option<SessionSpec>) -> Self {
        Self {
            resume: Some(session),
            ..Self::default()
        }
    }
}

/// Where the conversation is.
enum ChatTarget {
    /// In a session.
    Existing(Session),
    /// In one that will be made when something is said.
    New(Box<NewSession>),
}

/// A chat under way.
pub(crate) struct Chat<'a> {
    app: &'a App,
    tl: &'a Throughline,
    target: ChatTarget,
    /// The last entry that this window has shown.
    last_seen: Seq,
    marker: Option<OpenMarker>,
    responder: Responder,
    policy_args: PolicyArgs,
    input: Input,
    /// Whether anything is kept.
    save: bool,
    /// What was asked since the start, and what that took.
    query_count: u64,
    usage: Usage,
    /// What that cost in dollars, as far as prices are known.
    cost: f64,
    /// The last request, in tokens, and what it might have been.
    context_usage: Option<(u64, u64)>,
    /// A summary whose facts are still to be proposed for memory.
    summary_to_propose: Option<(Session, Entry)>,
    /// Whether the last thing that happened was Ctrl-C.
    interrupted: bool,
}

/// What comes after a line.
enum LoopAction {
    Continue,
    Exit,
}

/// Who summarizes outside of a chat: the model that is asked for or configured, or none
/// for the extractive summarizer.
pub(crate) fn summarizer(app: &App, model: Option<&str>) -> Result<Option<Box<dyn Summarizer>>> {
    Ok(Responder::choose(app, None, model)?.summarizer())
}

/// Talks until the person leaves.
pub(crate) async fn run(app: &App, args: ChatArgs) -> Result<ExitCode> {
    if args.print.is_some() {
        return print::run(app, args).await;
    }
    if app.ui.json {
        return Err(UserError::invalid("a chat is not JSON")
            .with_hint("`tl -p PROMPT --json` says one thing and prints the answer as JSON")
            .into());
    }
    let Some(mut chat) = Chat::start(app, args).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let talked = chat.run_loop().await;
    let left = chat.exit().await;
    talked.and(left)?;
    Ok(ExitCode::SUCCESS)
}

impl Chat<'_> {
    async fn run_loop(&mut self) -> Result<()> {
        loop {
            let line = match self.read_input().await? {
                InputEvent::Line(line) => {
                    self.interrupted = false;
                    line
                }
                InputEvent::End => return Ok(()),
                InputEvent::Interrupt if self.interrupted => return Ok(()),
                InputEvent::Interrupt => {
                    self.interrupted = true;
                    self.app
                        .ui
                        .status("Ctrl-C once more leaves, as Ctrl-D does.");
                    continue;
                }
            };
            match self.handle_line(&line).await {
                Ok(LoopAction::Continue) => {}
                Ok(LoopAction::Exit) => return Ok(()),
                // One thing that cannot be done is no reason to stop talking.
                Err(error) => {
                    let told = error_report::describe_error(&error);
                    let hint = told.hint.as_deref().map(slash_commands::to_chat_hint);
                    self.app.ui.error(&told.message, hint.as_deref());
                }
            }
        }
    }

    async fn handle_line(&mut self, line: &str) -> Result<LoopAction> {
        match InputLine::parse(line) {
            InputLine::Empty => Ok(LoopAction::Continue),
            InputLine::Message(text) => {
                self.send(&text).await?;
                Ok(LoopAction::Continue)
            }
            InputLine::Command("exit", _) => Ok(LoopAction::Exit),
            InputLine::Command(name, rest) => {
                self.run_slash_command(name, &rest).await?;
                Ok(LoopAction::Continue)
            }
            InputLine::Resume(spec) => {
                match self.app.session(&spec).await {
                    // "resume tomorrow" is just talk.
                    Err(_) if !self.looks_like_a_session(&spec) => self.send(line.trim()).await?,
                    _ => self.resume(&spec).await?,
                }
                Ok(LoopAction::Continue)
            }
            InputLine::Unknown(name, near) => {
                let refusal = UserError::invalid(format!("there is no command /{name}"));
                Err(match near {
                    Some(near) => refusal.with_hint(format!("/{near}? /help lists them all")),
                    None => refusal.with_hint("/help lists them all"),
                }
                .into())
            }
        }
    }

    /// Whether somebody who typed this must have meant a session.
    fn looks_like_a_session(&self, spec: &SessionSpec) -> bool {
        match spec {
            SessionSpec::Text { text, number } => {
                number.is_some() || text.contains(|c: char| c.is_ascii_digit() || c == '_')
            }
            SessionSpec::Last | SessionSpec::Path(_) => true,
        }
    }

    /// The session, which is made if it is not there yet.
    async fn ensure_session(&mut self) -> Result<Session> {
        match &self.target {
            ChatTarget::Existing(session) => Ok(session.clone()),
            ChatTarget::New(new) => {
                let session = self.tl.create((**new).clone()).await?;
                self.enter_session(session.clone()).await?;
                Ok(session)
            }
        }
    }

    /// The session, if there is one yet.
    fn current_session(&self) -> Option<&Session> {
        match &self.target {
            ChatTarget::Existing(session) => Some(session),
            ChatTarget::New(_) => None,
        }
    }

    /// The policy requests are made by.
    async fn policy(&self) -> Result<Policy> {
        self.policy_args
            .resolve_policy(self.app, self.current_session(), self.responder.policy())
            .await
    }

    /// Waits for a line without keeping others from their work.
    async fn read_input(&mut self) -> Result<InputEvent> {
        self.propose_pending_facts().await;
        let known = self.completion_names().await?;
        self.show_status().await?;
        let prompt = "You: ";
        let mut input = std::mem::replace(&mut self.input, Input::Pipe);
        let (input, typed) = tokio::task::spawn_blocking(move || {
            let typed = input.read(prompt, known);
            (input, typed)
        })
        .await?;
        self.input = input;
        Ok(typed?)
    }

    /// Waits for something, with a sign that it is under way; none if Ctrl-C came first.
    async fn run_interruptible<T>(
        &self,
        what: &'static str,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let _hush = EchoGuard::begin();
        let spinner = self.app.ui.spinner(what);
        let done = tokio::select! {
            done = work => Some(done),
            _ = tokio::signal::ctrl_c() => None,
        };
        spinner.finish_and_clear();
        done
    }

    /// Asks something; none where nobody can be asked.
    fn ask(&mut self, question: &str) -> Result<Option<String>> {
        let question = self.app.ui.wrap_status(question);
        let (above, last) = question.rsplit_once('\n').unwrap_or(("", &question));
        if !above.is_empty() {
            self.app.ui.status(above);
        }
        Ok(self.input.ask(&format!("{last} "))?)
    }
}
