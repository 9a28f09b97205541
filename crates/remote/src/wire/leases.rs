//! Work that must happen once.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throughline_store::Lease;

use super::Call;

/// Takes a lease for so long, unless somebody else has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcquireLease {
    /// What is to be done.
    pub name: String,
    /// Who does it.
    pub holder: String,
    /// For how long.
    pub term: Duration,
}

impl Call for AcquireLease {
    const NAME: &'static str = "take_lease";
    type Answer = Lease;
}

/// Has a lease last for so long from now.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenewLease {
    /// The lease. Whose it is follows from the token.
    pub lease: Lease,
    /// For how long.
    pub term: Duration,
}

impl Call for RenewLease {
    const NAME: &'static str = "renew_lease";
    type Answer = Lease;
}

/// Gives a lease back.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseLease {
    /// The lease. Whose it is follows from the token.
    pub lease: Lease,
}

impl Call for ReleaseLease {
    const NAME: &'static str = "release_lease";
    type Answer = ();
}

/// Finds the lease that keeps others from this work now.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeekLease {
    /// What the lease is called.
    pub name: String,
}

impl Call for PeekLease {
    const NAME: &'static str = "peek_lease";
    type Answer = Option<Lease>;
}
