//! What every handler works with.

use std::ops::Deref;
use std::sync::Arc;

use throughline::{Error, Session, Voice};

use crate::auth::Doorkeeper;
use crate::events::Hub;
use crate::metrics::Metrics;
use crate::rate::Rates;
use crate::turns::Turns;
use crate::{Choice, Gate, Limits, Serving, VoiceError};

/// A server at work. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App(Arc<Inner>);

/// What an [`App`] is made of.
#[derive(Debug)]
pub struct Inner {
    pub(crate) serving: Serving,
    pub(crate) door: Doorkeeper,
    pub(crate) rates: Rates,
    pub(crate) hub: Hub,
    pub(crate) turns: Turns,
    pub(crate) metrics: Metrics,
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl App {
    /// Gets to work. Needs a runtime: events are fed by a task of their own, which ends
    /// with the last of the clones.
    pub fn new(serving: Serving) -> Self {
        let hub = Hub::start(serving.tl.clone());
        Self(Arc::new(Inner {
            door: Doorkeeper::new(serving.tl.clone(), serving.gate.clone()),
            rates: Rates::new(serving.limits.rate),
            turns: Turns::new(serving.limits.turns),
            metrics: Metrics::new(),
            hub,
            serving,
        }))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.serving.limits
    }

    /// Who answers in a session, where nobody chooses.
    pub(crate) async fn voice(&self, session: &Session) -> Result<Voice, VoiceError> {
        let voices = &self.serving.voices;
        voices.voice(Some(session), &Choice::default()).await
    }

    /// Whether whoever reaches it is let in at the moment.
    pub async fn is_open(&self) -> Result<bool, Error> {
        match self.serving.gate {
            Gate::Tokens => Ok(false),
            Gate::Open(_) => self.door.is_open().await,
        }
    }

    /// Waits until the turns under way are done, or stops them after a while.
    pub async fn finish(&self, patience: std::time::Duration) {
        self.turns.finish(patience).await;
    }
}
