//! Who answers in a session. The program knows how models are connected; the server
//! asks it.

use std::fmt::Debug;

use async_trait::async_trait;
use throughline::llm::OFFLINE_MODEL;
use throughline::{Responder, Session};

/// Finds who answers in a session.
#[async_trait]
pub trait ResponderRegistry: Debug + Send + Sync {
    /// Who answers in this session, or in one that is yet to be made: its agent, its policy
    /// and its model, but for what a caller chooses.
    ///
    /// What a session says of itself came over the network, and so did the choice: neither
    /// may decide which files of this machine are read, or where keys are sent.
    async fn responder(
        &self,
        session: Option<&Session>,
        choice: &ResponderChoice,
    ) -> Result<Responder, ResponderError>;

    /// The models that may be chosen, the usual one first: `anthropic/claude-sonnet-4-5`,
    /// `offline`. There is always one.
    fn models(&self) -> Vec<String>;

    /// The agents that may be chosen.
    fn agents(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether somebody said which models may be chosen, so that others are refused to
    /// clients of other servers too, who always name one.
    fn restricts_models(&self) -> bool {
        false
    }

    /// What is connected where a session says nothing of it; none for the offline agent.
    fn default_model(&self) -> Option<String> {
        self.models()
            .into_iter()
            .next()
            .filter(|id| id != OFFLINE_MODEL)
    }
}

/// Whom a caller wants to be answered by, as far as they say so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResponderChoice {
    /// The model, by one of the names in [`Voices::models`].
    pub model: Option<String>,
    /// The agent, by one of the names in [`Voices::agents`].
    pub agent: Option<String>,
}

impl ResponderChoice {
    /// The id of the chosen model among these: by its whole id, or by its name alone where
    /// only one has it.
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

/// Why nobody can answer.
#[derive(Debug, thiserror::Error)]
pub enum ResponderError {
    /// The session wants what cannot be had.
    #[error("{0}")]
    Invalid(String),
    /// The caller chose a model that is not offered.
    #[error("there is no model {named:?} here; there are {known}")]
    NoSuchModel {
        /// What they called it.
        named: String,
        /// What there is.
        known: String,
    },
    /// The caller chose an agent that is not offered.
    #[error("there is no agent {named:?} here; there are {known}")]
    NoSuchAgent {
        /// What they called it.
        named: String,
        /// What there is.
        known: String,
    },
    /// The store failed meanwhile.
    #[error(transparent)]
    Engine(#[from] throughline::Error),
}

impl ResponderError {
    /// An agent that is not among these.
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

/// Nobody but the offline agent.
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
        let mut voice = Responder::offline();
        if let Some(session) = session
            && let Some(text) = session.policy_document().await?
        {
            let policy = voice.policy.with_spec(&text);
            voice.policy = policy.map_err(throughline::Error::from)?;
        }
        Ok(voice)
    }

    fn models(&self) -> Vec<String> {
        vec![OFFLINE_MODEL.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_chosen_by_its_id_or_by_a_name_that_only_it_has() {
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
                format!(
                    "there is no model {name:?} here; there are a/small, b/small, a/large, offline"
                )
            );
        }
    }
}
