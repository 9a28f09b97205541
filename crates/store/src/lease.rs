//! Work that must happen once, whichever machine does it: who may, and until when.
//!
//! A lease is taken for a while and renewed by whoever is still at it. When it has run out
//! somebody else may take it, and gets a higher number. What is written under a lease
//! carries its number, and the store refuses it, in the transaction that would write it, once
//! the lease is somebody else's: whoever was only slow cannot overwrite.
//!
//! Invariant: the numbers of all leases there ever were on a name only grow.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use throughline_model::{Owner, Timestamp};

use crate::StoreError;

/// The right to do something alone, for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// On whose behalf it is done. Each owner has their own leases.
    pub owner: Owner,
    /// What is done.
    pub name: String,
    /// Who does it.
    pub holder: String,
    /// Higher than that of everybody who did it before.
    pub number: u64,
    /// When others may take it, by the store's clock. Until somebody does, it holds.
    pub expires_at: Timestamp,
}

impl Lease {
    /// What is written under this lease carries this.
    pub fn fence(&self) -> Fence {
        Fence {
            name: self.name.clone(),
            number: self.number,
        }
    }
}

/// Says under which lease something is written: refused with [`StoreError::LeaseLost`] once
/// that is another's. The owner is that of what is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// What the lease is called.
    pub name: String,
    /// Its number.
    pub number: u64,
}

impl Fence {
    /// What somebody is told whose lease is gone.
    pub fn lost(&self) -> StoreError {
        StoreError::LeaseLost {
            name: self.name.clone(),
        }
    }
}

/// Gives work to one at a time. Expiry is by the store's clock: those of the machines that
/// take leases need not agree.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes a lease for so long, unless somebody else has it: [`StoreError::LeaseHeld`].
    ///
    /// Whoever has it already takes it anew, under a higher number. A holder's name is
    /// therefore chosen anew for each piece of work.
    async fn take_lease(
        &self,
        owner: &Owner,
        name: &str,
        holder: &str,
        term: Duration,
    ) -> Result<Lease, StoreError>;

    /// Has a lease last for so long from now. One that has run out may still be renewed, but
    /// not once somebody else has taken it: [`StoreError::LeaseLost`].
    async fn renew_lease(&self, lease: &Lease, term: Duration) -> Result<Lease, StoreError>;

    /// Gives a lease back. One that is another's by now stays theirs.
    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError>;
}
