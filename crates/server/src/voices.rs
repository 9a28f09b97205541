//! Who answers in a session. The program knows how models are connected; the server
//! asks it.

use std::fmt::Debug;

use async_trait::async_trait;
use throughline::{Session, Voice};

/// Finds who answers in a session.
#[async_trait]
pub trait Voices: Debug + Send + Sync {
    /// Who answers in this session: its agent, its policy and its model.
    ///
    /// What a session says of itself came over the network: it must not decide which files
    /// of this machine are read, or where keys are sent.
    async fn voice(&self, session: &Session) -> Result<Voice, VoiceError>;

    /// What is connected where a session says nothing of it: `anthropic/claude-sonnet-4-5`.
    fn usual(&self) -> Option<String>;
}

/// Why nobody can answer.
#[derive(Debug, thiserror::Error)]
pub enum VoiceError {
    /// The session wants what cannot be had.
    #[error("{0}")]
    Invalid(String),
    /// The store failed meanwhile.
    #[error(transparent)]
    Engine(#[from] throughline::Error),
}

/// Nobody but the offline agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfflineVoices;

#[async_trait]
impl Voices for OfflineVoices {
    async fn voice(&self, session: &Session) -> Result<Voice, VoiceError> {
        let mut voice = Voice::offline();
        if let Some(text) = session.policy_document().await? {
            let policy = voice.policy.described(&text);
            voice.policy = policy.map_err(throughline::Error::from)?;
        }
        Ok(voice)
    }

    fn usual(&self) -> Option<String> {
        None
    }
}
