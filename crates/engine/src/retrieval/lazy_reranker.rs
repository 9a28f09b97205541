//! What compares the first hits of a search again: a model that is loaded when it is first
//! needed, and may fail.
//!
//! Invariant: a model that fails changes nothing about what is found, and is told of.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use throughline_recall::{RerankError, RerankReport, Reranker};

use crate::Throughline;

type LoadReranker = Box<dyn FnOnce() -> Result<Box<dyn Reranker>, RerankError> + Send>;

/// How long comparing may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RerankBudget {
    /// When a person searches.
    pub search: Duration,
    /// When a request is made, or something is quoted.
    pub request: Duration,
}

impl RerankBudget {
    /// For a model on this machine.
    pub const LOCAL: Self = Self {
        search: Duration::from_millis(400),
        request: Duration::from_millis(250),
    };
    /// For a model across the network.
    pub const REMOTE: Self = Self {
        search: Duration::from_secs(3),
        request: Duration::from_millis(1_500),
    };
}

/// A model that compares the first hits of a search again. Cheap to clone.
#[derive(Clone)]
pub struct LazyReranker(Arc<Inner>);

struct Inner {
    name: String,
    budget: RerankBudget,
    load: Mutex<Option<LoadReranker>>,
    loaded: OnceLock<Result<Box<dyn Reranker>, RerankReport>>,
    failure: Mutex<FailureNotice>,
}

/// What is wrong with it, until somebody was told.
#[derive(Default)]
struct FailureNotice {
    unreported: Option<String>,
    reported: bool,
}

impl LazyReranker {
    /// The model that `load` gives, under the name a person knows it by.
    pub fn new(
        name: impl Into<String>,
        within: RerankBudget,
        load: impl FnOnce() -> Result<Box<dyn Reranker>, RerankError> + Send + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            name: name.into(),
            budget: within,
            load: Mutex::new(Some(Box::new(load))),
            loaded: OnceLock::new(),
            failure: Mutex::default(),
        }))
    }

    /// How long it may take.
    pub(super) fn budget(&self) -> RerankBudget {
        self.0.budget
    }

    /// The model, loaded if it was not; or why it cannot be.
    pub(super) fn get_or_load(&self) -> Result<&dyn Reranker, RerankReport> {
        let loaded = self.0.loaded.get_or_init(|| {
            let mut load = self.0.load.lock().unwrap_or_else(PoisonError::into_inner);
            let loaded = match load.take() {
                Some(load) => load(),
                None => Err("it failed to load before".into()),
            };
            loaded.map_err(|error| RerankReport::failed(&self.0.name, &error))
        });
        loaded.as_deref().map_err(Clone::clone)
    }

    /// Takes note of what came of it.
    pub(super) fn record_outcome(&self, compared: &RerankReport) {
        let mut trouble = self.lock_failure();
        match &compared.error {
            // What works again may be told of when it fails again.
            None => *trouble = FailureNotice::default(),
            Some(_) if trouble.reported => {}
            Some(why) => {
                let name = &self.0.name;
                let text = format!("{name} did not compare what was found: {why}");
                trouble.unreported = Some(text);
            }
        }
    }

    fn lock_failure(&self) -> MutexGuard<'_, FailureNotice> {
        let trouble = self.0.failure.lock();
        trouble.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LazyReranker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Again")
            .field("name", &self.0.name)
            .field("within", &self.0.budget)
            .finish_non_exhaustive()
    }
}

impl Throughline {
    /// What went wrong with the model that compares again, for the person to know; once,
    /// until it works again.
    pub fn take_reranker_failure(&self) -> Option<String> {
        let mut trouble = self.reranker.as_ref()?.lock_failure();
        let untold = trouble.unreported.take();
        trouble.reported |= untold.is_some();
        untold
    }

    /// Has the model loaded by the time it is needed.
    pub(super) fn preload_reranker(&self) {
        if let Some(again) = self.reranker.clone()
            && again.0.loaded.get().is_none()
        {
            tokio::task::spawn_blocking(move || drop(again.get_or_load().map(|_| ())));
        }
    }
}
