//! What compares the first hits of a search again: a model that is loaded when it is first
//! needed, and may fail.
//!
//! Invariant: a model that fails changes nothing about what is found, and is told of.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use throughline_recall::{Compare, CompareError, Compared};

use crate::Throughline;

type Load = Box<dyn FnOnce() -> Result<Box<dyn Compare>, CompareError> + Send>;

/// How long comparing may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// When a person searches.
    pub search: Duration,
    /// When a request is made, or something is quoted.
    pub request: Duration,
}

impl Within {
    /// For a model on this machine.
    pub const HERE: Self = Self {
        search: Duration::from_millis(400),
        request: Duration::from_millis(250),
    };
    /// For a model across the network.
    pub const AWAY: Self = Self {
        search: Duration::from_secs(3),
        request: Duration::from_millis(1_500),
    };
}

/// A model that compares the first hits of a search again. Cheap to clone.
#[derive(Clone)]
pub struct Again(Arc<Inner>);

struct Inner {
    name: String,
    within: Within,
    load: Mutex<Option<Load>>,
    loaded: OnceLock<Result<Box<dyn Compare>, Compared>>,
    trouble: Mutex<Trouble>,
}

/// What is wrong with it, until somebody was told.
#[derive(Default)]
struct Trouble {
    untold: Option<String>,
    told: bool,
}

impl Again {
    /// The model that `load` gives, under the name a person knows it by.
    pub fn new(
        name: impl Into<String>,
        within: Within,
        load: impl FnOnce() -> Result<Box<dyn Compare>, CompareError> + Send + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            name: name.into(),
            within,
            load: Mutex::new(Some(Box::new(load))),
            loaded: OnceLock::new(),
            trouble: Mutex::default(),
        }))
    }

    /// How long it may take.
    pub(super) fn within(&self) -> Within {
        self.0.within
    }

    /// The model, loaded if it was not; or why it cannot be.
    pub(super) fn model(&self) -> Result<&dyn Compare, Compared> {
        let loaded = self.0.loaded.get_or_init(|| {
            let mut load = self.0.load.lock().unwrap_or_else(PoisonError::into_inner);
            let loaded = match load.take() {
                Some(load) => load(),
                None => Err("it failed to load before".into()),
            };
            loaded.map_err(|error| Compared::failed(&self.0.name, &error))
        });
        loaded.as_deref().map_err(Clone::clone)
    }

    /// Takes note of what came of it.
    pub(super) fn heard(&self, compared: &Compared) {
        let mut trouble = self.trouble();
        match &compared.unable {
            // What works again may be told of when it fails again.
            None => *trouble = Trouble::default(),
            Some(_) if trouble.told => {}
            Some(why) => {
                let name = &self.0.name;
                let text = format!("{name} did not compare what was found: {why}");
                trouble.untold = Some(text);
            }
        }
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        let trouble = self.0.trouble.lock();
        trouble.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Again")
            .field("name", &self.0.name)
            .field("within", &self.0.within)
            .finish_non_exhaustive()
    }
}

impl Throughline {
    /// What went wrong with the model that compares again, for the person to know; once,
    /// until it works again.
    pub fn trouble_comparing(&self) -> Option<String> {
        let mut trouble = self.again.as_ref()?.trouble();
        let untold = trouble.untold.take();
        trouble.told |= untold.is_some();
        untold
    }

    /// Has the model loaded by the time it is needed.
    pub(super) fn get_ready_to_compare(&self) {
        if let Some(again) = self.again.clone()
            && again.0.loaded.get().is_none()
        {
            tokio::task::spawn_blocking(move || drop(again.model().map(|_| ())));
        }
    }
}
