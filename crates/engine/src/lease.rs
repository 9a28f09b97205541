//! Leases: work that only one process at a time may do.
//!
//! A process acquires a lease from the store and renews it while it works. If the
//! process dies, the lease expires and another one can take it. A process that was
//! merely slow and has lost its lease is stopped here once a renewal fails; anything it
//! still writes is rejected by the store, because every write under a lease carries its
//! fencing token.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use throughline_model::Timestamp;
use throughline_store::{Fence, Lease, LeaseHolder, Store, StoreError};

use crate::{Environment, Error, Throughline};

/// How long a lease lasts unless it is renewed.
pub(crate) const TERM: Duration = Duration::from_secs(15);
/// How often a waiting process tries to acquire a lease.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// How long a wait lasts before it is reported; most waits are shorter.
const REPORT_AFTER: Duration = Duration::from_secs(1);
/// How often a lease is renewed within its term.
const RENEWALS_PER_TERM: u32 = 4;

/// A wait for a lease that another process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseWait {
    /// The lease's name, which says what it is for: `compact SESSION`, `turn in
    /// SESSION`, `purge`.
    pub name: String,
    /// The process that holds the lease.
    pub holder: LeaseHolder,
    /// When the lease expires unless renewed, by the store's clock.
    pub until: Timestamp,
}

/// A callback for waits that take longer than a moment.
#[derive(Clone)]
pub(crate) struct WaitListener(Arc<dyn Fn(&LeaseWait) + Send + Sync>);

impl fmt::Debug for WaitListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitListener")
    }
}

/// An acquired lease. Released when dropped.
#[derive(Debug)]
pub(crate) struct LeaseGuard {
    store: Arc<dyn Store>,
    environment: Arc<dyn Environment>,
    lease: Option<Lease>,
    term: Duration,
}

impl Throughline {
    /// Sets the name under which processes that wait for this one see it (`tl serve,
    /// process 12 on host`).
    #[must_use]
    pub fn with_description(mut self, description: &str) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets a callback that is called when an operation waits for another process for
    /// longer than a moment, and once more for each further process it waits for.
    #[must_use]
    pub fn on_lease_wait(mut self, report: impl Fn(&LeaseWait) + Send + Sync + 'static) -> Self {
        self.wait_listener = Some(WaitListener(Arc::new(report)));
        self
    }

    /// Waits until a lease is free, and acquires it.
    ///
    /// The work may have been done by the previous holder: the caller has to check
    /// again.
    pub(crate) async fn acquire_lease(&self, name: &str) -> Result<LeaseGuard, Error> {
        self.acquire_lease_as(name, self.environment.new_entry_id().to_string())
            .await
    }

    /// Waits until a lease is free, and acquires it under a unique id.
    pub(crate) async fn acquire_lease_as(
        &self,
        name: &str,
        id: String,
    ) -> Result<LeaseGuard, Error> {
        let mut waited = Duration::ZERO;
        let mut reported = None;
        loop {
            let wait = match self.try_acquire_lease(name, id.clone()).await? {
                Ok(held) => return Ok(held),
                Err(wait) => wait,
            };
            if waited >= REPORT_AFTER && reported.as_ref() != Some(&wait.holder) {
                if let Some(WaitListener(report)) = &self.wait_listener {
                    report(&wait);
                }
                reported = Some(wait.holder);
            }
            self.environment.sleep(RETRY_INTERVAL).await;
            waited += RETRY_INTERVAL;
        }
    }

    /// Acquires a lease, or returns which process holds it.
    pub(crate) async fn try_acquire_lease(
        &self,
        name: &str,
        id: String,
    ) -> Result<Result<LeaseGuard, LeaseWait>, Error> {
        let holder = LeaseHolder {
            id,
            description: self.description.as_deref().map(str::to_owned),
        };
        let holder = holder.to_string();
        let acquired = self
            .store
            .acquire_lease(&self.owner, name, &holder, self.lease_term);
        match acquired.await {
            Ok(lease) => Ok(Ok(LeaseGuard {
                store: Arc::clone(&self.store),
                environment: Arc::clone(&self.environment),
                lease: Some(lease),
                term: self.lease_term,
            })),
            Err(StoreError::LeaseHeld {
                name,
                holder,
                until,
            }) => Ok(Err(LeaseWait {
                name,
                holder: LeaseHolder::parse(&holder),
                until,
            })),
            Err(error) => Err(error.into()),
        }
    }
}

impl LeaseGuard {
    /// The fencing token that writes under this lease carry.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.lease.as_ref().map(Lease::fence)
    }

    /// Runs `work` and renews the lease meanwhile. Aborts with
    /// [`StoreError::LeaseLost`] as soon as another process is known to have taken the
    /// lease.
    pub(crate) async fn run_with_renewal<T, E: From<Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some(lease) = &self.lease else {
            return work.await;
        };
        let lost = async {
            loop {
                self.environment.sleep(self.term / RENEWALS_PER_TERM).await;
                let renewed = self.store.renew_lease(lease, self.term).await;
                // While the store is unavailable, it gives the lease to no other
                // process either; a later renewal reports whether it is still held.
                if let Err(lost @ StoreError::LeaseLost { .. }) = renewed {
                    return Error::from(lost);
                }
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            lost = lost => Err(lost.into()),
        }
    }

    /// Releases the lease, so that a waiting process can acquire it.
    pub(crate) async fn release(mut self) {
        if let Some(lease) = self.lease.take() {
            // If the release fails, the lease expires by itself.
            let _ = self.store.release_lease(&lease).await;
        }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        // The work was cancelled. Without a runtime, the lease expires by itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let store = Arc::clone(&self.store);
            runtime.spawn(async move { store.release_lease(&lease).await });
        }
    }
}
