//! Interface to the models and agents that answer turns.
//!
//! The server does not know how models are connected; the program implements [`ResponderRegistry`].

use std::fmt::Debug;

use async_trait::async_trait;
use throughline::llm::OFFLINE_MODEL;
use throughline::{Responder, Session};

/// Provides the responders that answer in sessions.
#[async_trait]
pub trait ResponderRegistry: Debug + Send + Sync {
    /// Returns the responder for a session, existing or about to be created: its agent, policy and
    /// model, with the caller's choices applied.
    ///
    /// The session's settings and the choices come from the network: neither may decide which local
    /// files are read or where keys are sent.
    async fn responder(
        &self,
        session: Option<&Session>,
        choice: &ResponderChoice,
    ) -> Result<Responder, ResponderError>;

    /// The models that may be chosen, the default first, such as `anthropic/claude-sonnet-4-5` or
    /// `offline`. Never empty.
    fn models(&self) -> Vec<String>;

    /// The agents that may be chosen.
    fn agents(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the choice of models is restricted by configuration. If so, OpenAI clients, which
    /// always name a model, may only name one of these.
    fn restricts_models(&self) -> bool {
        false
    }

    /// The default model for a session without one; `None` for the offline agent.
    fn default_model(&self) -> Option<String> {
        self.models()
            .into_iter()
            .next()
            .filter(|id| id != OFFLINE_MODEL)
    }
}

/// The model and agent a caller chose for a turn, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResponderChoice {
    /// The model: one of [`ResponderRegistry::models`].
    pub model: Option<String>,
    /// The agent: one of [`ResponderRegistry::agents`].
    pub agent: Option<String>,
}

impl ResponderChoice {
    /// Resolves the chosen model among these ids: by its full id, or by its name alone if only one
    /// model has that name.
    pub fn resolve_model(&self, ids: &[String]) -> Result<Option<String>, ResponderError> {
        let Some(named) = &self.model else {
            return Ok(None);
        };
        if ids.contains(named) {
            return Ok(Some(named.clone()));
        }
        let is_named = |id: &&String| id.split_once('/').is_some_and(|(_, name)| name == named);
        let mut found = ids.iter().filter(is_named);
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(Some(only.clone())),
            _ => Err(ResponderError::NoSuchModel {
                named: named.clone(),
                known: ids.join(", "),
            }),
        }
    }
}

/// Why no responder is available.
#[derive(Debug, thiserror::Error)]
pub enum ResponderError {
    /// The session's settings cannot be satisfied.
    #[error("{0}")]
    Invalid(String),
    /// The chosen model is not offered.
    #[error("unknown model {named:?}; available: {known}")]
    NoSuchModel {
        /// The chosen name.
        named: String,
        /// The models on offer.
        known: String,
    },
    /// The chosen agent is not offered.
    #[error("unknown agent {named:?}; available: {known}")]
    NoSuchAgent {
        /// The chosen name.
        named: String,
        /// The agents on offer.
        known: String,
    },
    /// The store failed.
    #[error(transparent)]
    Engine(#[from] throughline::Error),
}

impl ResponderError {
    /// The error for an agent that is not among these.
    pub fn no_such_agent(named: &str, known: &[String]) -> Self {
        Self::NoSuchAgent {
            named: named.to_owned(),
            known: match known {
                [] => "none".to_owned(),
                known => known.join(", "),
            },
        }
    }
}

/// A registry with the offline agent only.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfflineRegistry;

#[async_trait]
impl ResponderRegistry for OfflineRegistry {
    async fn responder(
        &self,
        session: Option<&Session>,
        choice: &ResponderChoice,
    ) -> Result<Responder, ResponderError> {
        choice.resolve_model(&self.models())?;
        if let Some(agent) = &choice.agent {
            return Err(ResponderError::no_such_agent(agent, &[]));
        }
        let mut responder = Responder::offline();
        if let Some(session) = session
            && let Some(text) = session.policy_document().await?
        {
            let policy = responder.policy.with_spec(&text);
            responder.policy = policy.map_err(throughline::Error::from)?;
        }
        Ok(responder)
    }

    fn models(&self) -> Vec<String> {
        vec![OFFLINE_MODEL.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_chosen_by_id_or_unique_name() {
        let ids = ["a/small", "b/small", "a/large", "offline"].map(str::to_owned);
        let chosen = |name: &str| {
            let choice = ResponderChoice {
                model: Some(name.to_owned()),
                agent: None,
            };
            choice.resolve_model(&ids)
        };
        for (name, id) in [
            ("b/small", "b/small"),
            ("large", "a/large"),
            ("offline", "offline"),
        ] {
            assert_eq!(chosen(name).unwrap().as_deref(), Some(id));
        }
        for name in ["small", "medium", "a", ""] {
            let error = chosen(name).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("unknown model {name:?}; available: a/small, b/small, a/large, offline")
            );
        }
    }
}
