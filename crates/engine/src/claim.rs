//! The right to run a turn in a session: one process at a time, whichever it is.
//!
//! A turn is claimed before anything of it is written. Its entries (the question, the answer,
//! what of it came before it was stopped, tool results, a checkpoint made on the way) are
//! appended through [`TurnClaim::session`] and carry the claim's fence. A process that was
//! stalled for so long that another took the turn over can therefore append nothing more:
//! the store refuses it in the transaction that would have.
//!
//! Invariant: of two processes that run a turn for the same question, one appends an answer.

use throughline_model::EntryId;
use throughline_store::LeaseHolder;

use crate::lease::LeaseGuard;
use crate::{Error, Session};

/// The right to run a turn in a session. Given back when dropped.
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

    /// Who runs a turn here now, in whichever process; none where nobody does. The holder's
    /// id is the turn's.
    pub async fn turn_holder(&self) -> Result<Option<LeaseHolder>, Error> {
        let (store, owner) = (&self.tl.store, &self.tl.owner);
        let held = store.peek_lease(owner, &self.turn_lease_name()).await?;
        Ok(held.map(|lease| LeaseHolder::parse(&lease.holder)))
    }

    /// Claims the next turn, after those that other processes run.
    pub async fn claim_turn(&self) -> Result<TurnClaim, Error> {
        self.claim_turn_as(self.tl.environment.new_entry_id()).await
    }

    /// The same, under an id for the turn that no other has.
    pub async fn claim_turn_as(&self, id: EntryId) -> Result<TurnClaim, Error> {
        let held = self
            .tl
            .acquire_lease_as(&self.turn_lease_name(), id.to_string())
            .await?;
        Ok(self.new_claim(held, id))
    }

    /// Claims the next turn; none if another process runs one.
    pub async fn try_claim_turn_as(&self, id: EntryId) -> Result<Option<TurnClaim>, Error> {
        let held = self
            .tl
            .try_acquire_lease(&self.turn_lease_name(), id.to_string())
            .await?;
        Ok(held.ok().map(|held| self.new_claim(held, id)))
    }
}

impl TurnClaim {
    /// The session, as the turn writes to it: what is appended through this is refused with
    /// [`StoreError::LeaseLost`](crate::StoreError::LeaseLost) once another process has taken
    /// the turn over, or the claim was released.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Runs something of the turn and renews the claim meanwhile. Gives it up with
    /// [`StoreError::LeaseLost`](crate::StoreError::LeaseLost) as soon as it is known that
    /// another process has taken the turn over.
    pub async fn run_with_renewal<T, E: From<Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.lease.run_with_renewal(work).await
    }

    /// The claim for a turn whose question went into `session`: another one where late words
    /// became a fork.
    pub async fn move_to(self, session: &Session) -> Result<Self, Error> {
        if session.id() == self.session.id() {
            return Ok(self);
        }
        let moved = session.claim_turn_as(self.id).await?;
        self.release().await;
        Ok(moved)
    }

    /// Gives it back, for whoever waits.
    pub async fn release(self) {
        self.lease.release().await;
    }
}
