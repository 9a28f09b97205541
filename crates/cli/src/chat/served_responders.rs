//! Responders for sessions served over HTTP.
//!
//! Callers may choose only agents in the user's own configuration, by name, and only models
//! that the user has listed. Invariant: nobody on the network decides which files are read or
//! where keys are sent. The folders of sessions are not read either.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use async_trait::async_trait;
use throughline::llm::OFFLINE_MODEL;
use throughline::{Responder as Answering, Session};
use throughline_server::{ResponderChoice, ResponderError, ResponderRegistry};

use super::responder::Responder;
use crate::app::App;
use crate::commands::context::PolicyArgs;
use crate::error_report;

/// Creates and caches responders for served sessions.
#[derive(Debug)]
pub(crate) struct ServedResponders {
    app: App,
    default_responder: Arc<Responder>,
    /// Additional models that may be chosen: id and model spec.
    models: Vec<(String, String)>,
    /// The user's own agents.
    agents: Vec<String>,
    /// Responders by agent and model.
    cache: Mutex<HashMap<ResponderChoice, Arc<Responder>>>,
}

impl ServedResponders {
    /// Creates the responders as configured. Listed models are connected now, so that errors are
    /// reported to the user who listed them.
    pub(crate) fn new(app: &App) -> Result<Self> {
        let app = app.clone_without_store();
        let usual = Arc::new(Responder::choose(&app, None, None)?);
        let mut models = Vec::new();
        for spec in app.config.models() {
            let responder = Responder::choose(&app, None, Some(spec))
                .with_context(|| format!("models: {spec:?} is not available"))?;
            models.push((responder.model_id(), spec.to_owned()));
        }
        models.push((OFFLINE_MODEL.to_owned(), OFFLINE_MODEL.to_owned()));
        let agents = Responder::list_own_agents(&app)?;
        Ok(Self {
            app,
            default_responder: usual,
            models,
            agents,
            cache: Mutex::default(),
        })
    }

    /// Returns the responder for an agent and a model, creating it if necessary.
    fn get_or_create(&self, of: &ResponderChoice) -> Result<Arc<Responder>> {
        if *of == ResponderChoice::default() {
            return Ok(Arc::clone(&self.default_responder));
        }
        let mut made = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.get(of) {
            return Ok(Arc::clone(known));
        }
        let spec = of.model.as_ref().and_then(|id| {
            let listed = self.models.iter().find(|(known, _)| known == id);
            listed.map(|(_, spec)| spec.as_str())
        });
        let responder = Arc::new(Responder::choose(&self.app, of.agent.as_deref(), spec)?);
        made.insert(of.clone(), Arc::clone(&responder));
        Ok(responder)
    }

    /// Resolves the agent and model from the caller's choice and the session.
    async fn resolve_choice(
        &self,
        session: Option<&Session>,
        choice: &ResponderChoice,
    ) -> Result<ResponderChoice> {
        let mut model = choice.resolve_model(&self.models())?;
        // The default model is the same as no choice.
        if model == self.default_model() {
            model = None;
        }
        let agent = match (&choice.agent, session) {
            (Some(named), _) if !self.agents.contains(named) => {
                return Err(ResponderError::no_such_agent(named, &self.agents).into());
            }
            (Some(named), _) => Some(named.clone()),
            (None, Some(session)) => {
                let agent = session.record().await?.info.agent;
                // Other agents' descriptions are not available here.
                let own = agent.filter(|agent| self.agents.contains(&agent.name));
                own.map(|agent| agent.name)
            }
            (None, None) => None,
        };
        Ok(ResponderChoice { model, agent })
    }

    async fn build_responder(
        &self,
        session: Option<&Session>,
        choice: &ResponderChoice,
    ) -> Result<Answering> {
        let responder = self.get_or_create(&self.resolve_choice(session, choice).await?)?;
        let how = PolicyArgs::default();
        let policy = how
            .resolve_policy(&self.app, session, responder.policy())
            .await?;
        Ok(responder.to_engine_responder(&self.app, policy))
    }
}

#[async_trait]
impl ResponderRegistry for ServedResponders {
    async fn responder(
        &self,
        session: Option<&Session>,
        choice: &ResponderChoice,
    ) -> Result<Answering, ResponderError> {
        let found = self.build_responder(session, choice).await;
        found.map_err(|error| match error.downcast::<throughline::Error>() {
            Ok(error) => ResponderError::Engine(error),
            Err(error) => match error.downcast::<ResponderError>() {
                Ok(error) => error,
                Err(error) => ResponderError::Invalid(error_report::describe_error(&error).message),
            },
        })
    }

    fn models(&self) -> Vec<String> {
        let mut ids = vec![self.default_responder.model_id()];
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

    fn restricts_models(&self) -> bool {
        self.app.config.models().next().is_some()
    }
}
