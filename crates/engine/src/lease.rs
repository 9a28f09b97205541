//! Work that must happen once, whichever process of however many does it.
//!
//! Whoever does it holds a lease of the store's and renews it while at work. A process that
//! dies is replaced once its lease has run out. One that was only slow, and has been replaced,
//! is stopped here where it can be told; what it writes all the same is refused by the
//! store, since everything written under a lease carries its number.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use throughline_store::{Fence, Lease, Store, StoreError};
use tokio::sync::mpsc;

use crate::recall::aside;
use crate::{Error, Throughline};

/// How long a lease lasts that is not renewed.
pub(crate) const TERM: Duration = Duration::from_secs(15);
/// How often whoever else does it is looked after.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How often a lease is renewed before it would run out.
const RENEWALS: u32 = 4;

/// Work that one at a time does, and here it is done. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    store: Arc<dyn Store>,
    lease: Option<Lease>,
    term: Duration,
}

impl Throughline {
    /// Waits until nobody else does this, and takes it on.
    ///
    /// What it is about may have been done meanwhile: whoever takes it on looks again.
    pub(crate) async fn hold(&self, name: &str) -> Result<Held, Error> {
        let holder = self.world.entry_id().to_string();
        loop {
            let taking = self
                .store
                .take_lease(&self.owner, name, &holder, self.lease_term);
            match taking.await {
                Ok(lease) => {
                    return Ok(Held {
                        store: Arc::clone(&self.store),
                        lease: Some(lease),
                        term: self.lease_term,
                    });
                }
                Err(StoreError::LeaseHeld { .. }) => {
                    let pause = || {
                        std::thread::sleep(LOOK_AGAIN);
                        Ok(())
                    };
                    aside(pause).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Held {
    /// What is written under it carries this.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.lease.as_ref().map(Lease::fence)
    }

    /// Does the work, and says that it is still being done. Given up as soon as it is known
    /// that somebody else has been given it: [`StoreError::LeaseLost`].
    pub(crate) async fn keep<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let Some(lease) = &self.lease else {
            return work.await;
        };
        let lost = async {
            let mut ticks = Ticks::every(self.term / RENEWALS);
            loop {
                ticks.next().await;
                let renewed = self.store.renew_lease(lease, self.term).await;
                // A store that is away gives it to nobody else either, and when it is back it
                // knows whose it is.
                if let Err(lost @ StoreError::LeaseLost { .. }) = renewed {
                    return lost;
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
            // If that fails it runs out by itself, and the work is done.
            let _ = self.store.release_lease(&lease).await;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        // Stopped in the middle. Without a runtime, it runs out by itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let store = Arc::clone(&self.store);
            runtime.spawn(async move { store.release_lease(&lease).await });
        }
    }
}

/// Something to wait for again and again, on runtimes without a timer as well.
struct Ticks {
    ticks: mpsc::UnboundedReceiver<()>,
    /// Dropped with this, which ends the thread.
    _listening: Sender<()>,
}

impl Ticks {
    fn every(pause: Duration) -> Self {
        let (tick, ticks) = mpsc::unbounded_channel();
        let (listening, gone) = channel();
        let thread = std::thread::Builder::new().name("tl-lease".to_owned());
        // Without a thread the lease is not renewed, and may be lost: the store knows.
        let _ = thread.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = gone.recv_timeout(pause) {
                if tick.send(()).is_err() {
                    return;
                }
            }
        });
        Self {
            ticks,
            _listening: listening,
        }
    }

    async fn next(&mut self) {
        if self.ticks.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
