//! Who answers in sessions that are served: the voices of the chat, for people who are
//! somewhere else.
//!
//! What they say of a session names an agent by its name only, and only one in the
//! person's own configuration: nobody on the network decides which files are read or
//! where keys are sent. Folders of sessions are not read either.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use async_trait::async_trait;
use throughline::{Session, Voice as Answering};
use throughline_server::{VoiceError, Voices};

use super::voice::Voice;
use crate::app::App;
use crate::commands::context::How;
use crate::report;

/// Who answers in sessions that are served.
#[derive(Debug)]
pub(crate) struct ServedVoices {
    app: App,
    usual: Arc<Voice>,
    agents: Mutex<HashMap<String, Arc<Voice>>>,
}

impl ServedVoices {
    /// As it is configured.
    pub(crate) fn new(app: &App) -> Result<Self> {
        let app = app.another();
        let usual = Arc::new(Voice::choose(&app, None, None)?);
        Ok(Self {
            app,
            usual,
            agents: Mutex::default(),
        })
    }

    fn agent(&self, name: &str) -> Result<Arc<Voice>> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = agents.get(name) {
            return Ok(Arc::clone(known));
        }
        if !Voice::has_own_agent(&self.app, name) {
            // An agent of somebody else's that only they know the description of.
            return Ok(Arc::clone(&self.usual));
        }
        let voice = Arc::new(Voice::choose(&self.app, Some(name), None)?);
        agents.insert(name.to_owned(), Arc::clone(&voice));
        Ok(voice)
    }

    async fn found(&self, session: &Session) -> Result<Answering> {
        let agent = session.record().await?.card.agent;
        let voice = match &agent {
            Some(agent) => self.agent(&agent.name)?,
            None => Arc::clone(&self.usual),
        };
        let how = How::default();
        let policy = how
            .policy_of(&self.app, Some(session), voice.policy())
            .await?;
        Ok(voice.answering(&self.app, policy))
    }
}

#[async_trait]
impl Voices for ServedVoices {
    async fn voice(&self, session: &Session) -> Result<Answering, VoiceError> {
        self.found(session)
            .await
            .map_err(|error| match error.downcast::<throughline::Error>() {
                Ok(error) => VoiceError::Engine(error),
                Err(error) => VoiceError::Invalid(report::told(&error).message),
            })
    }

    fn usual(&self) -> Option<String> {
        self.usual.connected()
    }
}
