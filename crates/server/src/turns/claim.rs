//! One turn at a time in a session, whichever server over a store runs it.
//!
//! Whoever answers holds a lease of the store's, under the turn's own id, and renews it while
//! at it. A server that dies is taken for gone when its lease has run out.

use std::time::Duration;

use throughline::{Lease, Session, StoreError, Throughline};
use tokio::task::AbortHandle;

use super::TurnId;
use crate::Problem;

/// How long a server that says nothing more is taken to be at it.
const TERM: Duration = Duration::from_secs(30);
/// How often whoever waits looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The right to answer in a session. Given back when dropped.
#[derive(Debug)]
pub(super) struct Claim {
    tl: Throughline,
    lease: Option<Lease>,
    renewing: AbortHandle,
}

fn name(session: &Session) -> String {
    format!("turn in {}", session.id())
}

/// The turn under way in a session, at whichever server; none where there is none.
pub(super) async fn holder(
    tl: &Throughline,
    session: &Session,
) -> Result<Option<String>, StoreError> {
    let held = tl.store().peek_lease(tl.owner(), &name(session)).await?;
    Ok(held.map(|lease| lease.holder))
}

impl Claim {
    /// Takes the turn; none where another server has it.
    pub(super) async fn take(
        tl: &Throughline,
        session: &Session,
        turn: &TurnId,
    ) -> Result<Option<Self>, Problem> {
        let (name, holder) = (name(session), turn.to_string());
        let store = tl.store();
        let taking = store.take_lease(tl.owner(), &name, &holder, TERM);
        let lease = match taking.await {
            Ok(lease) => lease,
            Err(StoreError::LeaseHeld { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let renewing = tokio::spawn(renew(tl.clone(), lease.clone())).abort_handle();
        Ok(Some(Self {
            tl: tl.clone(),
            lease: Some(lease),
            renewing,
        }))
    }

    /// Waits until it can be taken.
    pub(super) async fn wait(
        tl: &Throughline,
        session: &Session,
        turn: &TurnId,
    ) -> Result<Self, Problem> {
        loop {
            if let Some(claim) = Self::take(tl, session, turn).await? {
                return Ok(claim);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Gives it back, for whoever waits.
    pub(super) async fn release(mut self) {
        if let Some(lease) = self.lease.take() {
            release(&self.tl, &lease).await;
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.renewing.abort();
        if let (Some(lease), Ok(runtime)) =
            (self.lease.take(), tokio::runtime::Handle::try_current())
        {
            let tl = self.tl.clone();
            runtime.spawn(async move { release(&tl, &lease).await });
        }
    }
}

async fn release(tl: &Throughline, lease: &Lease) {
    if let Err(error) = tl.store().release_lease(lease).await {
        // It runs out by itself.
        tracing::warn!(%error, "a turn cannot be given back");
    }
}

async fn renew(tl: Throughline, lease: Lease) {
    loop {
        tokio::time::sleep(TERM / 4).await;
        match tl.store().renew_lease(&lease, TERM).await {
            Ok(_) => {}
            Err(StoreError::LeaseLost { .. }) => {
                tracing::warn!("a turn took so long to say more that another server may answer");
                return;
            }
            Err(error) => tracing::warn!(%error, "a turn cannot be renewed"),
        }
    }
}
