//! Where a chat starts, and what is said about it.

use anyhow::Result;
use throughline::context::banner;
use throughline::glance::counted;
use throughline::{
    AgentRef, Card, Filter, NewSession, Purge, Seq, Session, SessionSpec, Status, Throughline,
    Usage,
};

use super::input::{Input, Known};
use super::mark::{Left, OpenMark};
use super::voice::Voice;
use super::{Chat, ChatArgs, Place};
use crate::app::App;
use crate::commands::new::locate;
use crate::entries;
use crate::report::Refusal;

/// Messages shown of a session that is resumed, and among how many entries they are
/// looked for.
const SHOWN: usize = 4;
const AMONG: usize = 40;
/// How many names can be completed.
const NAMES: usize = 200;

impl<'a> Chat<'a> {
    /// Starts where the person was, or wants to be, and says so; none if they chose
    /// nothing.
    pub(super) async fn start(app: &'a App, args: ChatArgs) -> Result<Option<Self>> {
        tidy(app, app.tl().await?).await?;
        let history = (!args.no_save).then(|| app.places.state("history"));
        let input = Input::open(history)?;
        let Some(mut chat) = Self::open(app, args, input).await? else {
            return Ok(None);
        };
        match &chat.place {
            Place::New(_) => {
                app.ui
                    .status("A new session. /help tells what can be typed.");
                if !chat.keeps {
                    app.ui.status("None of it will be kept.");
                }
            }
            Place::In(session) => {
                let session = session.clone();
                chat.enter(session.clone()).await?;
                chat.welcome_back(&session).await?;
                app.ui.status("");
            }
        }
        chat.say_who_answers();
        Ok(Some(chat))
    }

    /// Finds the session and the voice that are asked for, without a word.
    pub(super) async fn open(app: &'a App, args: ChatArgs, input: Input) -> Result<Option<Self>> {
        let tl = app.tl().await?;
        let Some(place) = chosen(app, tl, &args).await? else {
            return Ok(None);
        };
        let voice = Voice::choose(app, args.agent.as_deref(), args.model.as_deref())?;
        let mut chat = Self {
            app,
            tl,
            place,
            seen: Seq::ZERO,
            mark: None,
            voice,
            how: args.how,
            input,
            keeps: !args.no_save,
            asked: 0,
            spent: Usage::default(),
            cost: 0.0,
            context: None,
            news: None,
            interrupted: false,
        };
        chat.learn_counts();
        match &mut chat.place {
            Place::New(new) => new.agent = chat.voice.agent_ref(),
            Place::In(session) => {
                let session = session.clone();
                if !chat.accepts_agent(&session).await? {
                    app.ui
                        .status("The session is as it was. --new starts another with this agent.");
                    return Ok(None);
                }
            }
        }
        Ok(Some(chat))
    }

    /// Goes into a session and marks it as open.
    pub(super) async fn enter(&mut self, session: Session) -> Result<()> {
        self.mark = None;
        let folder = self.app.places.state("open");
        match OpenMark::take(&folder, session.id()) {
            Ok((mark, left)) => {
                self.mark = Some(mark);
                self.tell_how_it_was_left(&session, left).await?;
            }
            Err(error) => self.app.ui.warn(format_args!(
                "the session cannot be marked as open: {error}"
            )),
        }
        self.seen = session.record().await?.card.head;
        self.context = None;
        self.place = Place::In(session);
        Ok(())
    }

    async fn tell_how_it_was_left(&self, session: &Session, left: Left) -> Result<()> {
        let ui = &self.app.ui;
        match left {
            Left::Well => {}
            Left::Open => ui.warn(
                "this session is open in another window; what is said there is shown here \
                 before your next message is sent",
            ),
            Left::Abruptly => {
                let card = session.record().await?.card;
                let kept = match card.messages {
                    0 => "Nothing had been said".to_owned(),
                    1 => "The message it had kept is here".to_owned(),
                    some => format!("All {some} messages it had kept are here"),
                };
                ui.status(format_args!(
                    "Recovered: the last chat here ended without leaving. {kept}, up to entry {}.",
                    card.head
                ));
                let unfinished = session.tail(1).await?.pop();
                let cut_off = unfinished
                    .as_ref()
                    .and_then(|entry| entry.message())
                    .is_some_and(|message| message.incomplete);
                if session.unanswered().await?.is_some() {
                    ui.status("Your last message has no answer yet: /retry asks again.");
                } else if cut_off {
                    ui.status("The last answer was cut off.");
                }
            }
        }
        Ok(())
    }

    /// What a person sees of a session they come back to. None of it goes to the model.
    pub(super) async fn welcome_back(&self, session: &Session) -> Result<()> {
        let ui = &self.app.ui;
        let record = session.record().await?;
        if record.card.head == Seq::ZERO {
            return Ok(());
        }
        for line in banner(&record.card).lines() {
            ui.status(ui.dim_err(&crate::markdown::safe(line)));
        }
        let now = self.tl.now();
        let tail = session.tail(AMONG).await?;
        let mut said: Vec<_> = tail
            .iter()
            .filter(|entry| entry.message().is_some())
            .collect();
        for entry in said.split_off(said.len().saturating_sub(SHOWN)) {
            let shown = entries::entry(self.app, entry, &record.standing, now);
            ui.status("");
            ui.status(shown.trim_end());
        }
        Ok(())
    }

    /// Whether the person wants this agent for a session that was with another.
    pub(super) async fn accepts_agent(&mut self, session: &Session) -> Result<bool> {
        let card = session.record().await?.card;
        let (Some(before), Some(now)) = (&card.agent, self.voice.agent_ref()) else {
            self.voice.take_up(self.app, card.agent.as_ref())?;
            return Ok(true);
        };
        let yes = self.accepts_change(before, &now)?;
        if yes && !same_agent(before, &now) {
            session.append(throughline::Body::AgentSet(now)).await?;
        }
        Ok(yes)
    }

    /// Whether the person wants one agent to go on where another was.
    pub(super) fn accepts_change(&mut self, before: &AgentRef, now: &AgentRef) -> Result<bool> {
        if same_agent(before, now) {
            return Ok(true);
        }
        let question = format!(
            "⚠ Session created with {}, using {}. Continue? (y/n)",
            shown(before),
            shown(now)
        );
        let Some(answer) = self.ask(&question)? else {
            return Err(Refusal::invalid(format!(
                "the session was with {}, and now it would be with {}",
                shown(before),
                shown(now)
            ))
            .hint("nobody can be asked here; use the same --agent, or --new")
            .into());
        };
        Ok(matches!(answer.as_str(), "y" | "yes"))
    }

    fn say_who_answers(&self) {
        let told = match self.voice.model() {
            Some(model) => format!("{} answers.", crate::markdown::safe(model.name())),
            None => {
                "No model is connected: the offline agent answers. /model tells more.".to_owned()
            }
        };
        let ui = &self.app.ui;
        ui.status(ui.dim_err(&told));
    }

    /// Names that can be completed.
    pub(super) async fn known_names(&self) -> Result<Known> {
        if matches!(self.input, Input::Pipe) {
            return Ok(Known::default());
        }
        let cards = self.tl.list(&Filter::default(), None, NAMES).await?.items;
        let mut tags: Vec<String> = cards
            .iter()
            .flat_map(|card| card.tags.iter().map(ToString::to_string))
            .collect();
        tags.sort_unstable();
        tags.dedup();
        Ok(Known {
            sessions: cards.iter().map(|card| card.title().to_owned()).collect(),
            tags,
        })
    }
}

fn shown(agent: &AgentRef) -> String {
    agent.path.clone().unwrap_or_else(|| agent.name.clone())
}

/// The path tells an agent where both have one; the name where one has not.
fn same_agent(one: &AgentRef, other: &AgentRef) -> bool {
    match (&one.path, &other.path) {
        (Some(one), Some(other)) => one == other,
        _ => one.name == other.name,
    }
}

/// Puts away what is too much, where that is configured, and says so.
async fn tidy(app: &App, tl: &Throughline) -> Result<()> {
    let Some(most) = app.config.max_sessions() else {
        return Ok(());
    };
    let purge = Purge {
        grace: None,
        max_sessions: Some(most),
        dry_run: false,
    };
    let trashed = tl.purge(purge).await?.trashed.len() as u64;
    if trashed > 0 {
        app.ui.status(format_args!(
            "Moved {} to the trash, as max_sessions is {most}; `tl sessions --trash` lists them.",
            counted(trashed, "session")
        ));
    }
    Ok(())
}

/// The session that is asked for; none if the person looked and chose none.
async fn chosen(app: &App, tl: &Throughline, args: &ChatArgs) -> Result<Option<Place>> {
    let mut new = NewSession::default();
    locate(app, &mut new).await?;
    match &args.resume {
        Some(Some(spec)) => return Ok(Some(Place::In(app.session(spec).await?))),
        Some(None) => {
            return Ok(match crate::finder::sessions(app, tl).await? {
                Some(card) => Some(Place::In(tl.session(&card.id).await?)),
                None => None,
            });
        }
        None => {}
    }
    if !args.new
        && let Some(card) = latest(tl, &new).await?
    {
        return Ok(Some(Place::In(tl.session(&card.id).await?)));
    }
    if args.go_on {
        app.ui
            .status("There is no session of this project to continue.");
    }
    Ok(Some(Place::New(Box::new(new))))
}

/// The last session of this project that is in use.
pub(super) async fn latest(tl: &Throughline, here: &NewSession) -> Result<Option<Card>> {
    let filter = Filter {
        project: here.project.clone(),
        status: Some(Status::Active),
        ..Filter::default()
    };
    Ok(tl.list(&filter, None, 1).await?.items.pop())
}

/// A session that was asked for by what the person typed.
pub(super) fn spec(text: &str) -> Result<SessionSpec> {
    text.parse()
        .map_err(|error| Refusal::invalid(format!("{error}")).into())
}
