//! Who answers in sessions that are served: the voices of the chat, for people who are
//! somewhere else.
//!
//! What they say of a session names an agent by its name only, and only one in the
//! person's own configuration; a model only if the person has listed it: nobody on the
//! network decides which files are read or where keys are sent. Folders of sessions are
//! not read either.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use async_trait::async_trait;
use throughline::llm::OFFLINE;
use throughline::{Session, Voice as Answering};
use throughline_server::{Choice, VoiceError, Voices};

use super::voice::Voice;
use crate::app::App;
use crate::commands::context::How;
use crate::report;

/// Who answers in sessions that are served.
#[derive(Debug)]
pub(crate) struct ServedVoices {
    app: App,
    usual: Arc<Voice>,
    /// Models that may be chosen besides, by their ids, and how each is asked for.
    models: Vec<(String, String)>,
    /// Agents of the person's own.
    agents: Vec<String>,
    /// Voices that were made, by agent and model.
    made: Mutex<HashMap<Choice, Arc<Voice>>>,
}

impl ServedVoices {
    /// As it is configured. Models that may be chosen are connected now, so that what is
    /// wrong with one is told to the person who listed it.
    pub(crate) fn new(app: &App) -> Result<Self> {
        let app = app.another();
        let usual = Arc::new(Voice::choose(&app, None, None)?);
        let mut models = Vec::new();
        for spec in app.config.models() {
            let voice = Voice::choose(&app, None, Some(spec))
                .with_context(|| format!("models: {spec:?} cannot be had"))?;
            models.push((voice.id(), spec.to_owned()));
        }
        models.push((OFFLINE.to_owned(), OFFLINE.to_owned()));
        let agents = Voice::own_agents(&app)?;
        Ok(Self {
            app,
            usual,
            models,
            agents,
            made: Mutex::default(),
        })
    }

    /// The voice of an agent and a model, where either is named.
    fn made(&self, of: &Choice) -> Result<Arc<Voice>> {
        if *of == Choice::default() {
            return Ok(Arc::clone(&self.usual));
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.get(of) {
            return Ok(Arc::clone(known));
        }
        let spec = of.model.as_ref().and_then(|id| {
            let listed = self.models.iter().find(|(known, _)| known == id);
            listed.map(|(_, spec)| spec.as_str())
        });
        let voice = Arc::new(Voice::choose(&self.app, of.agent.as_deref(), spec)?);
        made.insert(of.clone(), Arc::clone(&voice));
        Ok(voice)
    }

    /// Whom a caller and a session mean.
    async fn meant(&self, session: Option<&Session>, choice: &Choice) -> Result<Choice> {
        let mut model = choice.model_among(&self.models())?;
        // The usual one is what there is where nothing is chosen.
        if model == self.usual() {
            model = None;
        }
        let agent = match (&choice.agent, session) {
            (Some(named), _) if !self.agents.contains(named) => {
                return Err(VoiceError::no_agent(named, &self.agents).into());
            }
            (Some(named), _) => Some(named.clone()),
            (None, Some(session)) => {
                let agent = session.record().await?.card.agent;
                // Of an agent of somebody else's only they know the description.
                let own = agent.filter(|agent| self.agents.contains(&agent.name));
                own.map(|agent| agent.name)
            }
            (None, None) => None,
        };
        Ok(Choice { model, agent })
    }

    async fn found(&self, session: Option<&Session>, choice: &Choice) -> Result<Answering> {
        let voice = self.made(&self.meant(session, choice).await?)?;
        let how = How::default();
        let policy = how.policy_of(&self.app, session, voice.policy()).await?;
        Ok(voice.answering(&self.app, policy))
    }
}

#[async_trait]
impl Voices for ServedVoices {
    async fn voice(
        &self,
        session: Option<&Session>,
        choice: &Choice,
    ) -> Result<Answering, VoiceError> {
        let found = self.found(session, choice).await;
        found.map_err(|error| match error.downcast::<throughline::Error>() {
            Ok(error) => VoiceError::Engine(error),
            Err(error) => match error.downcast::<VoiceError>() {
                Ok(error) => error,
                Err(error) => VoiceError::Invalid(report::told(&error).message),
            },
        })
    }

    fn models(&self) -> Vec<String> {
        let mut ids = vec![self.usual.id()];
        for (id, _) in &self.models {
            if !ids.contains(id) {
                ids.push(id.clone());
            }
        }
        ids
    }

    fn agents(&self) -> Vec<String> {
        self.agents.clone()
    }

    fn names_models(&self) -> bool {
        self.app.config.models().next().is_some()
    }
}
