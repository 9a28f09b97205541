//! Work that must happen once, whichever process of however many does it.
//!
//! Whoever does it holds a lease of the store's and renews it while at work. A process that
//! dies is replaced once its lease has expired. One that was only slow, and has been replaced,
//! is stopped here where it can be told; what it writes all the same is refused by the
//! store, since everything written under a lease carries its number.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use throughline_model::Timestamp;
use throughline_store::{Fence, Lease, LeaseHolder, Store, StoreError};

use crate::{Environment, Error, Throughline};

/// How long a lease lasts that is not renewed.
pub(crate) const TERM: Duration = Duration::from_secs(15);
/// How often a process that waits for a lease tries to take it.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// How long a wait lasts before it is reported: most are over sooner.
const REPORT_AFTER: Duration = Duration::from_secs(1);
/// How often a lease is renewed before it would expire.
const RENEWALS_PER_TERM: u32 = 4;

/// A wait for work that another process does at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseWait {
    /// The lease's name, which says what is done: `compact SESSION`, `turn in SESSION`, `purge`.
    pub name: String,
    /// Who does it.
    pub holder: LeaseHolder,
    /// When the wait ends at the latest if that process has died, by the store's clock.
    pub until: Timestamp,
}

/// Called when a wait for a lease takes longer than a moment.
#[derive(Clone)]
pub(crate) struct WaitListener(Arc<dyn Fn(&LeaseWait) + Send + Sync>);

impl fmt::Debug for WaitListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitListener")
    }
}

/// A lease that is held here. Given back when dropped.
#[derive(Debug)]
pub(crate) struct LeaseGuard {
    store: Arc<dyn Store>,
    environment: Arc<dyn Environment>,
    lease: Option<Lease>,
    term: Duration,
}

impl Throughline {
    /// The same store; people who wait for what it does see this as the name of who does it
    /// (`tl serve, process 12 on host`).
    #[must_use]
    pub fn with_description(mut self, description: &str) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The same store; `report` is called when something has to wait for another process for
    /// longer than a moment, and again when it waits for yet another one.
    #[must_use]
    pub fn on_lease_wait(mut self, report: impl Fn(&LeaseWait) + Send + Sync + 'static) -> Self {
        self.wait_listener = Some(WaitListener(Arc::new(report)));
        self
    }

    /// Waits until nobody else holds a lease, and takes it.
    ///
    /// What it is about may have been done meanwhile: whoever takes it looks again.
    pub(crate) async fn acquire_lease(&self, name: &str) -> Result<LeaseGuard, Error> {
        self.acquire_lease_as(name, self.environment.new_entry_id().to_string())
            .await
    }

    /// The same, with an id for the piece of work, which nobody else has.
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

    /// Takes a lease, or answers whom one would have to wait for.
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
        let taking = self
            .store
            .acquire_lease(&self.owner, name, &holder, self.lease_term);
        match taking.await {
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
    /// What is written under it carries this.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.lease.as_ref().map(Lease::fence)
    }

    /// Does the work and renews the lease meanwhile. Gives the work up as soon as it is known
    /// that another process has taken the lease: [`StoreError::LeaseLost`].
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
                // A store that is away gives it to nobody else either, and when it is back it
                // knows whose it is.
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

    /// Gives it back, for whoever waits.
    pub(crate) async fn release(mut self) {
        if let Some(lease) = self.lease.take() {
            // If that fails it expires by itself, and the work is done.
            let _ = self.store.release_lease(&lease).await;
        }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        // Stopped in the middle. Without a runtime, it expires by itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let store = Arc::clone(&self.store);
            runtime.spawn(async move { store.release_lease(&lease).await });
        }
    }
}
