//! Starts a chat: selects the session and responder and prints the opening lines.

use anyhow::Result;
use throughline::context::render_resume_banner;
use throughline::format::pluralize;
use throughline::{
    AgentRef, NewSession, PurgeOptions, Seq, Session, SessionFilter, SessionInfo, SessionSpec,
    Status, Throughline, Usage,
};

use super::input::{CompletionNames, Input};
use super::open_marker::{OpenMarker, PreviousExit};
use super::responder::Responder;
use super::{Chat, ChatArgs, ChatTarget};
use crate::app::App;
use crate::commands::new::assign_project;
use crate::entry_text;
use crate::error_report::UserError;

/// Number of messages shown when a session is resumed, and of entries searched for them.
const RECENT_MESSAGES: usize = 4;
const RECENT_ENTRIES: usize = 40;
/// Maximum number of completion candidates.
const MAX_COMPLETION_NAMES: usize = 200;

impl<'a> Chat<'a> {
    /// Starts the chat and prints where it is. Returns `None` if the user chose no session.
    pub(super) async fn start(app: &'a App, args: ChatArgs) -> Result<Option<Self>> {
        purge_excess_sessions(app, app.tl().await?).await?;
        let history = (!args.no_save).then(|| app.paths.state_file("history"));
        let input = Input::open(history)?;
        let Some(mut chat) = Self::open(app, args, input).await? else {
            return Ok(None);
        };
        match &chat.target {
            ChatTarget::New(_) => {
                app.ui.status("New session. /help lists the commands.");
                if !chat.save {
                    app.ui.status("Nothing will be saved.");
                }
            }
            ChatTarget::Existing(session) => {
                let session = session.clone();
                chat.enter_session(session.clone()).await?;
                chat.show_recent_messages(&session).await?;
                app.ui.status("");
            }
        }
        chat.report_responder();
        Ok(Some(chat))
    }

    /// Resolves the session and the responder without printing anything.
    pub(super) async fn open(app: &'a App, args: ChatArgs, input: Input) -> Result<Option<Self>> {
        let tl = app.tl().await?;
        let Some(target) = choose_target(app, tl, &args).await? else {
            return Ok(None);
        };
        let responder = Responder::choose(app, args.agent.as_deref(), args.model.as_deref())?;
        let mut chat = Self {
            app,
            tl,
            target,
            last_seen: Seq::ZERO,
            marker: None,
            responder,
            policy_args: args.policy_args,
            input,
            save: !args.no_save,
            query_count: 0,
            usage: Usage::default(),
            cost: 0.0,
            context_usage: None,
            summary_to_propose: None,
            interrupted: false,
        };
        chat.load_calibration();
        match &mut chat.target {
            ChatTarget::New(new) => new.agent = chat.responder.agent_ref(),
            ChatTarget::Existing(session) => {
                let session = session.clone();
                if !chat.confirm_agent(&session).await? {
                    app.ui
                        .status("The session is unchanged. --new starts another with this agent.");
                    return Ok(None);
                }
            }
        }
        Ok(Some(chat))
    }

    /// Enters a session and marks it as open.
    pub(super) async fn enter_session(&mut self, session: Session) -> Result<()> {
        self.marker = None;
        let folder = self.app.paths.state_file("open");
        match OpenMarker::acquire(&folder, session.id()) {
            Ok((mark, previous_exit)) => {
                self.marker = Some(mark);
                self.report_previous_exit(&session, previous_exit).await?;
            }
            Err(error) => self.app.ui.warn(format_args!(
                "the session cannot be marked as open: {error}"
            )),
        }
        self.last_seen = session.record().await?.info.head;
        self.context_usage = None;
        self.target = ChatTarget::Existing(session);
        Ok(())
    }

    async fn report_previous_exit(
        &self,
        session: &Session,
        previous_exit: PreviousExit,
    ) -> Result<()> {
        let ui = &self.app.ui;
        match previous_exit {
            PreviousExit::Clean => {}
            PreviousExit::StillOpen => ui.warn(
                "this session is open in another window; messages from there are shown here \
                before your next message is sent",
            ),
            PreviousExit::Crashed => {
                let info = session.record().await?.info;
                let saved = match info.messages {
                    0 => "It had no messages".to_owned(),
                    1 => "Its saved message is here".to_owned(),
                    some => format!("All {some} saved messages are here"),
                };
                ui.status(format_args!(
                    "Recovered: the last chat here did not exit properly. {saved}, up to entry {}.",
                    info.head
                ));
                let unfinished = session.tail(1).await?.pop();
                let cut_off = unfinished
                    .as_ref()
                    .and_then(|entry| entry.message())
                    .is_some_and(|message| message.incomplete);
                if session.unanswered_message().await?.is_some() {
                    ui.status("Your last message has no answer yet: use /retry.");
                } else if cut_off {
                    ui.status("The last answer was cut off.");
                }
            }
        }
        Ok(())
    }

    /// Shows the last messages of a resumed session. They are not sent to the model.
    pub(super) async fn show_recent_messages(&self, session: &Session) -> Result<()> {
        let ui = &self.app.ui;
        let record = session.record().await?;
        if record.info.head == Seq::ZERO {
            return Ok(());
        }
        for line in render_resume_banner(&record.info).lines() {
            ui.status(ui.dim_err(&crate::markdown::sanitize(line)));
        }
        let now = self.tl.now();
        let tail = session.tail(RECENT_ENTRIES).await?;
        let mut messages: Vec<_> = tail
            .iter()
            .filter(|entry| entry.message().is_some())
            .collect();
        for entry in messages.split_off(messages.len().saturating_sub(RECENT_MESSAGES)) {
            let shown = entry_text::render_entry(self.app, entry, &record.state, now);
            ui.status("");
            ui.status(shown.trim_end());
        }
        Ok(())
    }

    /// Asks whether to use this agent for a session that was with another.
    pub(super) async fn confirm_agent(&mut self, session: &Session) -> Result<bool> {
        let info = session.record().await?.info;
        let (Some(before), Some(now)) = (&info.agent, self.responder.agent_ref()) else {
            self.responder
                .adopt_session_agent(self.app, info.agent.as_ref())?;
            return Ok(true);
        };
        let yes = self.confirm_agent_change(before, &now)?;
        if yes && !same_agent(before, &now) {
            session.append(throughline::Body::AgentSet(now)).await?;
        }
        Ok(yes)
    }

    /// Asks whether one agent should continue another agent's session.
    pub(super) fn confirm_agent_change(
        &mut self,
        before: &AgentRef,
        now: &AgentRef,
    ) -> Result<bool> {
        if same_agent(before, now) {
            return Ok(true);
        }
        let question = format!(
            "⚠ Session created with {}, using {}. Continue? (y/n)",
            agent_label(before),
            agent_label(now)
        );
        let Some(answer) = self.ask(&question)? else {
            return Err(UserError::invalid(format!(
                "the session was created with {}, not with {}",
                agent_label(before),
                agent_label(now)
            ))
            .with_hint("there is no terminal to confirm this; use the same --agent, or --new")
            .into());
        };
        Ok(matches!(answer.as_str(), "y" | "yes"))
    }

    fn report_responder(&self) {
        let status = match self.responder.model() {
            Some(model) => format!("Using {}.", crate::markdown::sanitize(model.name())),
            None => "No model is connected: the offline agent answers. See /model.".to_owned(),
        };
        let ui = &self.app.ui;
        ui.status(ui.dim_err(&status));
    }

    /// Returns the names that can be completed.
    pub(super) async fn completion_names(&self) -> Result<CompletionNames> {
        if matches!(self.input, Input::Pipe) {
            return Ok(CompletionNames::default());
        }
        let infos = self
            .tl
            .list(&SessionFilter::default(), None, MAX_COMPLETION_NAMES)
            .await?
            .items;
        let mut tags: Vec<String> = infos
            .iter()
            .flat_map(|info| info.tags.iter().map(ToString::to_string))
            .collect();
        tags.sort_unstable();
        tags.dedup();
        Ok(CompletionNames {
            sessions: infos.iter().map(|info| info.title().to_owned()).collect(),
            tags,
        })
    }
}

fn agent_label(agent: &AgentRef) -> String {
    agent.path.clone().unwrap_or_else(|| agent.name.clone())
}

/// Compares agents by path if both have one, otherwise by name.
fn same_agent(one: &AgentRef, other: &AgentRef) -> bool {
    match (&one.path, &other.path) {
        (Some(one), Some(other)) => one == other,
        _ => one.name == other.name,
    }
}

/// Moves sessions beyond `max_sessions` to the trash and reports them.
async fn purge_excess_sessions(app: &App, tl: &Throughline) -> Result<()> {
    let Some(most) = app.config.max_sessions() else {
        return Ok(());
    };
    let purge = PurgeOptions {
        grace: None,
        max_sessions: Some(most),
        dry_run: false,
    };
    let trashed = tl.purge(purge).await?.trashed.len() as u64;
    if trashed > 0 {
        app.ui.status(format_args!(
            "Moved {} to the trash, as max_sessions is {most}; `tl sessions --trash` lists them.",
            pluralize(trashed, "session")
        ));
    }
    Ok(())
}

/// Resolves the requested session; returns `None` if the user chose none.
async fn choose_target(app: &App, tl: &Throughline, args: &ChatArgs) -> Result<Option<ChatTarget>> {
    let mut new = NewSession::default();
    assign_project(app, &mut new).await?;
    match &args.resume {
        Some(Some(spec)) => return Ok(Some(ChatTarget::Existing(app.session(spec).await?))),
        Some(None) => {
            return Ok(match crate::finder::choose_session(app, tl).await? {
                Some(info) => Some(ChatTarget::Existing(tl.session(&info.id).await?)),
                None => None,
            });
        }
        None => {}
    }
    if !args.new
        && let Some(info) = latest_session(tl, &new).await?
    {
        return Ok(Some(ChatTarget::Existing(tl.session(&info.id).await?)));
    }
    if args.go_on {
        app.ui.status("No session of this project to continue.");
    }
    Ok(Some(ChatTarget::New(Box::new(new))))
}

/// Returns the latest active session of this project.
pub(super) async fn latest_session(
    tl: &Throughline,
    here: &NewSession,
) -> Result<Option<SessionInfo>> {
    let filter = SessionFilter {
        project: here.project.clone(),
        status: Some(Status::Active),
        ..SessionFilter::default()
    };
    Ok(tl.list(&filter, None, 1).await?.items.pop())
}

/// Parses a session spec typed by the user.
pub(super) fn parse_spec(text: &str) -> Result<SessionSpec> {
    text.parse()
        .map_err(|error| UserError::invalid(format!("{error}")).into())
}
