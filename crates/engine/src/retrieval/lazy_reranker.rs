//! A reranker that is loaded on first use and may fail.
//!
//! Invariant: if the model fails, the search returns the same hits in their original
//! order, and the failure is reported.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use throughline_recall::{RerankError, RerankReport, Reranker};

use crate::Throughline;

type LoadReranker = Box<dyn FnOnce() -> Result<Box<dyn Reranker>, RerankError> + Send>;

/// How long reranking may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RerankBudget {
    /// For a search by a user.
    pub search: Duration,
    /// For a request or a quote.
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

/// A model that reranks the first hits of a search, loaded on first use. Cheap to
/// clone.
#[derive(Clone)]
pub struct LazyReranker(Arc<Inner>);

struct Inner {
    name: String,
    budget: RerankBudget,
    load: Mutex<Option<LoadReranker>>,
    loaded: OnceLock<Result<Box<dyn Reranker>, RerankReport>>,
    failure: Mutex<FailureNotice>,
}

/// A failure of the model, until it has been reported.
#[derive(Default)]
struct FailureNotice {
    unreported: Option<String>,
    reported: bool,
}

impl LazyReranker {
    /// Creates a reranker from a loader, with a name for messages.
    pub fn new(
        name: impl Into<String>,
        budget: RerankBudget,
        load: impl FnOnce() -> Result<Box<dyn Reranker>, RerankError> + Send + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            name: name.into(),
            budget,
            load: Mutex::new(Some(Box::new(load))),
            loaded: OnceLock::new(),
            failure: Mutex::default(),
        }))
    }

    /// How long it may take.
    pub(super) fn budget(&self) -> RerankBudget {
        self.0.budget
    }

    /// Returns the model, loading it on first use, or why it could not be loaded.
    pub(super) fn get_or_load(&self) -> Result<&dyn Reranker, RerankReport> {
        let loaded = self.0.loaded.get_or_init(|| {
            let mut load = self.0.load.lock().unwrap_or_else(PoisonError::into_inner);
            let loaded = match load.take() {
                Some(load) => load(),
                None => Err("it failed to load earlier".into()),
            };
            loaded.map_err(|error| RerankReport::failed(&self.0.name, &error))
        });
        loaded.as_deref().map_err(Clone::clone)
    }

    /// Records whether reranking succeeded.
    pub(super) fn record_outcome(&self, report: &RerankReport) {
        let mut notice = self.lock_failure();
        match &report.error {
            // After a success, the next failure is reported again.
            None => *notice = FailureNotice::default(),
            Some(_) if notice.reported => {}
            Some(why) => {
                let name = &self.0.name;
                let text = format!("{name} could not rerank the results: {why}");
                notice.unreported = Some(text);
            }
        }
    }

    fn lock_failure(&self) -> MutexGuard<'_, FailureNotice> {
        let notice = self.0.failure.lock();
        notice.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LazyReranker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyReranker")
            .field("name", &self.0.name)
            .field("budget", &self.0.budget)
            .finish_non_exhaustive()
    }
}

impl Throughline {
    /// Returns a message about the reranker's failure, once until it works again.
    pub fn take_reranker_failure(&self) -> Option<String> {
        let mut notice = self.reranker.as_ref()?.lock_failure();
        let message = notice.unreported.take();
        notice.reported |= message.is_some();
        message
    }

    /// Starts to load the model, so that it is ready when needed.
    pub(super) fn preload_reranker(&self) {
        if let Some(reranker) = self.reranker.clone()
            && reranker.0.loaded.get().is_none()
        {
            tokio::task::spawn_blocking(move || drop(reranker.get_or_load().map(|_| ())));
        }
    }
}
