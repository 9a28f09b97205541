//! The interactive chat of `tl`.
//!
//! A loop that reads a line, saves it and requests an answer. Invariant: a message is in the
//! store before anything else is done with it, whatever happens to the model, the terminal
//! or the process.

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

/// Chat with an agent
///
/// Continues the last session of this project, or starts one. Every message is saved at
/// once. `/help` lists the commands. Without a model, the offline agent answers from earlier
/// messages.
#[derive(clap::Args, Clone, Debug, Default)]
#[allow(
    clippy::option_option,
    reason = "a flag that may have a value is one to clap"
)]
pub(crate) struct ChatArgs {
    /// Start a new session
    #[arg(long, visible_alias = "new-session", conflicts_with_all = ["go_on", "resume"])]
    new: bool,
    /// Continue the last session of this project (the default)
    #[arg(long = "continue", short = 'c', conflicts_with = "resume")]
    go_on: bool,
    /// Resume this session; without a value, choose from a list
    #[arg(long, short = 'r', value_name = "SESSION", num_args = 0..=1)]
    resume: Option<Option<SessionSpec>>,
    /// The agent: a name, or the file that describes it
    #[arg(long, value_name = "FILE")]
    agent: Option<String>,
    /// The model: anthropic/claude-sonnet-4-5, openai/gpt-5, ollama/llama3.2, offline
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Send one message, print the answer and exit; piped input is added to the message
    #[arg(long, short = 'p', value_name = "PROMPT", num_args = 0..=1)]
    print: Option<Option<String>>,
    /// Do not save anything
    #[arg(long)]
    pub(crate) no_save: bool,
    #[command(flatten)]
    policy_args: PolicyArgs,
}

impl ChatArgs {
    /// Returns whether no flag was given.
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

    /// Returns the arguments that resume a session.
    pub(crate) fn with_resume(session: Option<SessionSpec>) -> Self {
        Self {
            resume: Some(session),
            ..Self::default()
        }
    }
}

/// The session that messages go to.
enum ChatTarget {
    /// An existing session.
    Existing(Session),
    /// A session that is created with the first message.
    New(Box<NewSession>),
}

/// The state of a running chat.
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
    /// Whether messages are saved.
    save: bool,
    /// Number of queries since the start, and their usage.
    query_count: u64,
    usage: Usage,
    /// Their cost in dollars, as far as prices are known.
    cost: f64,
    /// Tokens of the last request, and its budget.
    context_usage: Option<(u64, u64)>,
    /// A summary whose facts have not been proposed for memory yet.
    summary_to_propose: Option<(Session, Entry)>,
    /// Whether the last input was Ctrl-C.
    interrupted: bool,
}

/// What the loop does after a line.
enum LoopAction {
    Continue,
    Exit,
}

/// Returns the summarizer outside of a chat: the requested or configured model, or `None`
/// for the extractive summarizer.
pub(crate) fn summarizer(app: &App, model: Option<&str>) -> Result<Option<Box<dyn Summarizer>>> {
    Ok(Responder::choose(app, None, model)?.summarizer())
}

/// Runs the chat until the user leaves.
pub(crate) async fn run(app: &App, args: ChatArgs) -> Result<ExitCode> {
    if args.print.is_some() {
        return print::run(app, args).await;
    }
    if app.ui.json {
        return Err(UserError::invalid("the chat does not support --json")
            .with_hint("`tl -p PROMPT --json` sends one message and prints the answer as JSON")
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
                    self.app.ui.status("Press Ctrl-C again to exit, or Ctrl-D.");
                    continue;
                }
            };
            match self.handle_line(&line).await {
                Ok(LoopAction::Continue) => {}
                Ok(LoopAction::Exit) => return Ok(()),
                // A failed command does not end the chat.
                Err(error) => {
                    let report = error_report::describe_error(&error);
                    let hint = report.hint.as_deref().map(slash_commands::to_chat_hint);
                    self.app.ui.error(&report.message, hint.as_deref());
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
                    // "resume tomorrow" is an ordinary message.
                    Err(_) if !self.looks_like_a_session(&spec) => self.send(line.trim()).await?,
                    _ => self.resume(&spec).await?,
                }
                Ok(LoopAction::Continue)
            }
            InputLine::Unknown(name, near) => {
                let refusal = UserError::invalid(format!("unknown command /{name}"));
                Err(match near {
                    Some(near) => {
                        refusal.with_hint(format!("did you mean /{near}? /help lists all commands"))
                    }
                    None => refusal.with_hint("/help lists all commands"),
                }
                .into())
            }
        }
    }

    /// Returns whether the text can only refer to a session.
    fn looks_like_a_session(&self, spec: &SessionSpec) -> bool {
        match spec {
            SessionSpec::Text { text, number } => {
                number.is_some() || text.contains(|c: char| c.is_ascii_digit() || c == '_')
            }
            SessionSpec::Last | SessionSpec::Path(_) => true,
        }
    }

    /// Returns the session, creating it if necessary.
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

    /// Returns the session, if it exists yet.
    fn current_session(&self) -> Option<&Session> {
        match &self.target {
            ChatTarget::Existing(session) => Some(session),
            ChatTarget::New(_) => None,
        }
    }

    /// Returns the context policy of requests.
    async fn policy(&self) -> Result<Policy> {
        self.policy_args
            .resolve_policy(self.app, self.current_session(), self.responder.policy())
            .await
    }

    /// Waits for a line without blocking the runtime.
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

    /// Waits for a future with a spinner; returns `None` if Ctrl-C came first.
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

    /// Asks a question; returns `None` without a terminal.
    fn ask(&mut self, question: &str) -> Result<Option<String>> {
        let question = self.app.ui.wrap_status(question);
        let (above, last) = question.rsplit_once('\n').unwrap_or(("", &question));
        if !above.is_empty() {
            self.app.ui.status(above);
        }
        Ok(self.input.ask(&format!("{last} "))?)
    }
}
