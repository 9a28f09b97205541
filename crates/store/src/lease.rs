//! Leases: exclusive, expiring rights to do a piece of work, with fencing tokens.
//!
//! A holder takes a lease for a limited time and renews it while it is working. Once it
//! has expired, another holder may take it and gets a higher fencing token. Writes
//! under a lease carry its token; the store rejects them within their transaction once
//! another holder has the lease, so a slow process cannot overwrite newer work.
//!
//! Invariant: the fencing tokens of all leases ever granted on a name only grow.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use throughline_model::{Owner, Timestamp};

use crate::StoreError;

/// An exclusive right to do a piece of work for a limited time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The owner of the data. Each owner has separate leases.
    pub owner: Owner,
    /// The name of the work.
    pub name: String,
    /// The holder.
    pub holder: String,
    /// The fencing token: higher than that of every earlier holder.
    #[serde(rename = "number")]
    pub fencing_token: u64,
    /// When others may take it, by the store's clock. It stays valid until another
    /// does.
    pub expires_at: Timestamp,
}

/// The maximum clock correction that does not expire a lease. If the store's clock is
/// set back further than this, a lease granted "in the future" counts as expired.
/// Smaller corrections are normal while a lease is held and are no reason to revoke it.
pub const MAX_CLOCK_CORRECTION: Duration = Duration::from_secs(1);

/// Whether a lease prevents others from taking it, by the store's clock.
///
/// False once it has expired, or if it was granted in the future: then the clock was
/// set back, and the expiry by the old time could be a day away. An active holder
/// renews it by the new time.
pub fn is_lease_in_effect(granted_at: Timestamp, expires_at: Timestamp, now: Timestamp) -> bool {
    let latest_grant = now
        .checked_add(MAX_CLOCK_CORRECTION)
        .unwrap_or(Timestamp::MAX);
    granted_at <= latest_grant && now < expires_at
}

/// The holder of a lease, as stored in [`Lease::holder`]: a unique id for each piece of
/// work, and a readable description (`tl compact, process 12 on host`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// A unique id for this piece of work.
    pub id: String,
    /// The program that holds it, and where that runs.
    pub description: Option<String>,
}

impl LeaseHolder {
    /// Parses a stored holder. Without a description, the whole text is the id.
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

    /// The display name: its description, or else its id.
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
    /// The fence for writes under this lease.
    pub fn fence(&self) -> Fence {
        Fence {
            name: self.name.clone(),
            fencing_token: self.fencing_token,
            outer: None,
        }
    }
}

/// The lease that a write requires: the write fails with [`StoreError::LeaseLost`] once
/// another holder has it. The owner is that of the written data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// The lease's name.
    pub name: String,
    /// The lease's fencing token.
    #[serde(rename = "number")]
    pub fencing_token: u64,
    /// The fence of the enclosing work, such as the turn that a compaction is part of:
    /// a write fails once either lease is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "within")]
    pub outer: Option<Box<Fence>>,
}

impl Fence {
    /// Returns this fence nested in that of the enclosing work.
    #[must_use]
    pub fn nested_in(self, outer: Option<Fence>) -> Self {
        Self {
            outer: outer.map(Box::new),
            ..self
        }
    }

    /// All leases that must be held, this one first.
    pub fn iter(&self) -> impl Iterator<Item = &Fence> {
        std::iter::successors(Some(self), |fence| fence.outer.as_deref())
    }

    /// The error for a write whose lease was lost.
    pub fn lost_error(&self) -> StoreError {
        StoreError::LeaseLost {
            name: self.name.clone(),
        }
    }
}

/// Grants leases. Expiry is by the store's clock, so the clocks of the holders need not
/// agree. See [`is_lease_in_effect`].
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Acquires a lease for `term`; fails with [`StoreError::LeaseHeld`] if another
    /// holder has it.
    ///
    /// The same holder acquires it again, with a higher fencing token. A holder must
    /// therefore use a new name for each piece of work.
    async fn acquire_lease(
        &self,
        owner: &Owner,
        name: &str,
        holder: &str,
        term: Duration,
    ) -> Result<Lease, StoreError>;

    /// Extends a lease to `term` from now. An expired lease can be renewed until
    /// another holder takes it; then this fails with [`StoreError::LeaseLost`].
    async fn renew_lease(&self, lease: &Lease, term: Duration) -> Result<Lease, StoreError>;

    /// Releases a lease. Has no effect if another holder has it by now.
    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError>;

    /// The lease currently in effect, or `None` if it could be acquired. Read-only.
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
