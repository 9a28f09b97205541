//! Work that must happen once, whichever machine does it: who may, and until when.
//!
//! A lease is taken for a while and renewed by whoever is still at it. When it has run out
//! somebody else may take it, and gets a higher number. What is written under a lease
//! carries its number, and the store refuses it, in the transaction that would write it, once
//! the lease is somebody else's: whoever was only slow cannot overwrite.
//!
//! Invariant: the numbers of all leases there ever were on a name only grow.

use std::fmt;
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
    #[serde(rename = "number")]
    pub fencing_token: u64,
    /// When others may take it, by the store's clock. Until somebody does, it holds.
    pub expires_at: Timestamp,
}

/// How far the store's clock may be set back before a lease that was granted "later" than the
/// time it is now is taken for expired. Clocks are corrected by less than this while somebody
/// holds a lease, and that alone is no reason to take it from them.
pub const MAX_CLOCK_CORRECTION: Duration = Duration::from_secs(1);

/// Whether a lease keeps others from taking it, by the store's clock.
///
/// Not once it has expired, nor if it was granted in the future: the clock was set back since,
/// and an expiry by the old time could be a day away. A holder that is still at work renews it
/// by the new time.
pub fn is_lease_in_effect(granted_at: Timestamp, expires_at: Timestamp, now: Timestamp) -> bool {
    let latest_grant = now
        .checked_add(MAX_CLOCK_CORRECTION)
        .unwrap_or(Timestamp::MAX);
    granted_at <= latest_grant && now < expires_at
}

/// Who holds a lease, as stored in [`Lease::holder`]: an id of its own for each piece of work,
/// and a description for people (`tl compact, process 12 on host`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// Tells this piece of work from every other.
    pub id: String,
    /// What holds it, and where that runs.
    pub description: Option<String>,
}

impl LeaseHolder {
    /// Reads a stored holder. One without a description is all id.
    pub fn parse(stored: &str) -> Self {
        let described = stored
            .strip_suffix(')')
            .and_then(|stored| stored.rsplit_once(" ("));
        match described {
            Some((description, id)) => Self {
                id: id.to_owned(),
                description: Some(description.to_owned()),
            },
            None => Self {
                id: stored.to_owned(),
                description: None,
            },
        }
    }

    /// What to call it: its description, or else its id.
    pub fn name(&self) -> &str {
        self.description.as_deref().unwrap_or(&self.id)
    }
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.description {
            Some(description) => write!(f, "{description} ({})", self.id),
            None => f.write_str(&self.id),
        }
    }
}

impl Lease {
    /// What is written under this lease carries this.
    pub fn fence(&self) -> Fence {
        Fence {
            name: self.name.clone(),
            fencing_token: self.fencing_token,
            outer: None,
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
    #[serde(rename = "number")]
    pub fencing_token: u64,
    /// The fence of the work that this is part of, as a compaction is of a turn: what is
    /// written is refused once either lease is another's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "within")]
    pub outer: Option<Box<Fence>>,
}

impl Fence {
    /// The same, as part of work under another lease.
    #[must_use]
    pub fn nested_in(self, outer: Option<Fence>) -> Self {
        Self {
            outer: outer.map(Box::new),
            ..self
        }
    }

    /// Every lease that must be held, this one first.
    pub fn iter(&self) -> impl Iterator<Item = &Fence> {
        std::iter::successors(Some(self), |fence| fence.outer.as_deref())
    }

    /// What somebody is told whose lease is gone.
    pub fn lost_error(&self) -> StoreError {
        StoreError::LeaseLost {
            name: self.name.clone(),
        }
    }
}

/// Gives work to one at a time. Expiry is by the store's clock: those of the machines that
/// take leases need not agree. [`is_in_effect`] says when a lease keeps others away.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Takes a lease for so long, unless somebody else has it: [`StoreError::LeaseHeld`].
    ///
    /// Whoever has it already takes it anew, under a higher number. A holder's name is
    /// therefore chosen anew for each piece of work.
    async fn acquire_lease(
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

    /// Finds the lease that keeps others from this work now; none where it could be taken.
    /// Changes nothing.
    async fn peek_lease(&self, owner: &Owner, name: &str) -> Result<Option<Lease>, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_read_as_it_was_written() {
        for (id, description) in [
            ("01K", None),
            ("01K", Some("tl compact, process 12 on host")),
            ("01K", Some("tl (beta), process 12 on host (home)")),
        ] {
            let holder = LeaseHolder {
                id: id.to_owned(),
                description: description.map(str::to_owned),
            };
            assert_eq!(LeaseHolder::parse(&holder.to_string()), holder);
            assert_eq!(holder.name(), description.unwrap_or(id));
        }
        assert_eq!(LeaseHolder::parse("server a)").id, "server a)");
    }

    #[test]
    fn a_lease_granted_in_the_future_is_not_in_effect() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert!(is_lease_in_effect(at(100), at(115), at(100)));
        assert!(is_lease_in_effect(at(100), at(115), at(114)));
        assert!(!is_lease_in_effect(at(100), at(115), at(115)));
        assert!(is_lease_in_effect(at(100), at(115), at(99)), "a correction");
        assert!(!is_lease_in_effect(at(100), at(115), at(98)), "set back");
    }
}
