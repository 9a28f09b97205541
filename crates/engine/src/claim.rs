//! Turn claims: the exclusive right of one process to run a turn in a session.
//!
//! A turn is claimed before any of its entries is written. The question, the answer (or
//! the partial answer, if it was stopped), tool results and checkpoints are appended
//! through [`TurnClaim::session`] and carry the claim's fencing token. If a process
//! stalls for so long that another one takes the turn over, the store rejects every
//! later append of the stalled process within the append's own transaction.
//!
//! Invariant: if two processes run a turn for the same question, only one of them
//! appends an answer.

use throughline_model::EntryId;
use throughline_store::LeaseHolder;

use crate::lease::LeaseGuard;
use crate::{Error, Session};

/// The exclusive right to run a turn in a session. Released when dropped.
#[derive(Debug)]
pub struct TurnClaim {
    lease: LeaseGuard,
    session: Session,
    id: EntryId,
}

impl Session {
    fn turn_lease_name(&self) -> String {
        format!("turn in {}", self.id())
    }

    fn new_claim(&self, held: LeaseGuard, id: EntryId) -> TurnClaim {
        let session = self.with_fence(held.fence());
        TurnClaim {
            lease: held,
            session,
            id,
        }
    }

    /// Returns which process runs a turn in this session now, if any. The holder's id
    /// is the turn's id.
    pub async fn turn_holder(&self) -> Result<Option<LeaseHolder>, Error> {
        let (store, owner) = (&self.tl.store, &self.tl.owner);
        let held = store.peek_lease(owner, &self.turn_lease_name()).await?;
        Ok(held.map(|lease| LeaseHolder::parse(&lease.holder)))
    }

    /// Claims the next turn, waiting for turns that other processes run.
    pub async fn claim_turn(&self) -> Result<TurnClaim, Error> {
        self.claim_turn_as(self.tl.environment.new_entry_id()).await
    }

    /// Claims the next turn under a given id, which must be unique.
    pub async fn claim_turn_as(&self, id: EntryId) -> Result<TurnClaim, Error> {
        let held = self
            .tl
            .acquire_lease_as(&self.turn_lease_name(), id.to_string())
            .await?;
        Ok(self.new_claim(held, id))
    }

    /// Claims the next turn, or returns `None` if another process runs one.
    pub async fn try_claim_turn_as(&self, id: EntryId) -> Result<Option<TurnClaim>, Error> {
        let held = self
            .tl
            .try_acquire_lease(&self.turn_lease_name(), id.to_string())
            .await?;
        Ok(held.ok().map(|held| self.new_claim(held, id)))
    }
}

impl TurnClaim {
    /// The session through which the turn appends its entries. Appends fail with
    /// [`StoreError::LeaseLost`](crate::StoreError::LeaseLost) once another process has
    /// taken the turn over or the claim has been released.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Runs a part of the turn and renews the claim meanwhile. Aborts with
    /// [`StoreError::LeaseLost`](crate::StoreError::LeaseLost) as soon as another
    /// process is known to have taken the turn over.
    pub async fn run_with_renewal<T, E: From<Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.lease.run_with_renewal(work).await
    }

    /// Moves the claim to `session`, the one the question was stored in. It differs
    /// from the claimed session if a conflicting append became a fork.
    pub async fn move_to(self, session: &Session) -> Result<Self, Error> {
        if session.id() == self.session.id() {
            return Ok(self);
        }
        let moved = session.claim_turn_as(self.id).await?;
        self.release().await;
        Ok(moved)
    }

    /// Releases the claim, so that a waiting process can take it.
    pub async fn release(self) {
        self.lease.release().await;
    }
}
