//! Calls for leases.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throughline_store::Lease;

use super::Call;

/// Acquires a lease, unless another holder has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcquireLease {
    /// The name of the lease.
    pub name: String,
    /// The holder.
    pub holder: String,
    /// How long it lasts.
    pub term: Duration,
}

impl Call for AcquireLease {
    const NAME: &'static str = "take_lease";
    type Answer = Lease;
}

/// Extends a lease, counted from now.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenewLease {
    /// The lease. Its owner follows from the token.
    pub lease: Lease,
    /// How long it lasts from now.
    pub term: Duration,
}

impl Call for RenewLease {
    const NAME: &'static str = "renew_lease";
    type Answer = Lease;
}

/// Releases a lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseLease {
    /// The lease. Its owner follows from the token.
    pub lease: Lease,
}

impl Call for ReleaseLease {
    const NAME: &'static str = "release_lease";
    type Answer = ();
}

/// Gets the lease of that name that is in effect.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeekLease {
    /// The name of the lease.
    pub name: String,
}

impl Call for PeekLease {
    const NAME: &'static str = "peek_lease";
    type Answer = Option<Lease>;
}
