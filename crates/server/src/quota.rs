//! Quotas for concurrent use of a resource, per caller and in total.
//!
//! Invariant: whatever was acquired is released when its [`QuotaPermit`] is dropped.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use throughline::Owner;

use crate::{Cap, Problem};

/// Whom usage is counted for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallerKey {
    /// The owner of a token, even when it acts on behalf of another.
    Owner(Owner),
    /// A caller without a token, by address.
    Address(IpAddr),
}

/// A limited resource.
#[derive(Debug)]
pub(crate) struct Quota {
    cap: Cap,
    /// Error code and description for a caller over its cap.
    code: &'static str,
    resource: &'static str,
    usage: Mutex<Usage>,
}

#[derive(Debug, Default)]
struct Usage {
    total: usize,
    callers: HashMap<CallerKey, usize>,
}

impl Quota {
    pub(crate) fn new(cap: Cap, code: &'static str, what: &'static str) -> Arc<Self> {
        Arc::new(Self {
            cap,
            code,
            resource: what,
            usage: Mutex::default(),
        })
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires an amount for a caller, or returns why it was refused.
    pub(crate) fn acquire(
        self: &Arc<Self>,
        caller: &CallerKey,
        amount: usize,
    ) -> Result<QuotaPermit, Problem> {
        let mut share = QuotaPermit {
            quota: Arc::clone(self),
            caller: caller.clone(),
            amount: 0,
        };
        share.grow(amount)?;
        Ok(share)
    }
}

/// An amount held by a caller until this is dropped.
#[derive(Debug)]
pub(crate) struct QuotaPermit {
    quota: Arc<Quota>,
    caller: CallerKey,
    amount: usize,
}

impl QuotaPermit {
    /// Acquires more.
    pub(crate) fn grow(&mut self, amount: usize) -> Result<(), Problem> {
        let cap = self.quota.cap;
        let mut usage = self.quota.usage();
        let used = usage.callers.get(&self.caller).copied().unwrap_or(0);
        if used + amount > cap.per_caller {
            let problem = Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                self.quota.code,
                format!(
                    "each caller may have {} {} at once; wait for some to finish",
                    cap.per_caller, self.quota.resource
                ),
            );
            return Err(problem.with_retry_after(1));
        }
        if usage.total + amount > cap.total {
            let problem = Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "overloaded",
                format!(
                    "the server is at its limit of {} {}; try again soon",
                    cap.total, self.quota.resource
                ),
            );
            return Err(problem.with_retry_after(1));
        }
        usage.total += amount;
        *usage.callers.entry(self.caller.clone()).or_default() += amount;
        drop(usage);
        self.amount += amount;
        Ok(())
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        let mut usage = self.quota.usage();
        usage.total = usage.total.saturating_sub(self.amount);
        if let Some(used) = usage.callers.get_mut(&self.caller) {
            *used = used.saturating_sub(self.amount);
            if *used == 0 {
                usage.callers.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> CallerKey {
        CallerKey::Owner(name.parse().unwrap())
    }

    #[test]
    fn one_caller_cannot_exhaust_a_quota_and_permits_are_released() {
        let cap = Cap {
            total: 5,
            per_caller: 3,
        };
        let quota = Quota::new(cap, "too_many_streams", "streams");
        let alice = quota.acquire(&caller("alice"), 3).unwrap();
        let refused = quota.acquire(&caller("alice"), 1).unwrap_err();
        assert_eq!(
            (refused.status.as_u16(), refused.code),
            (429, "too_many_streams")
        );
        assert_eq!(refused.retry_after, Some(1));
        let _bob = quota.acquire(&caller("bob"), 2).unwrap();
        let refused = quota.acquire(&caller("carol"), 1).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.code), (503, "overloaded"));
        drop(alice);
        quota.acquire(&caller("alice"), 3).unwrap();
        assert_eq!(quota.usage().callers.len(), 1, "only bob is remembered");
    }
}
