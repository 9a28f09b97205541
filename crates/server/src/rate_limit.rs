//! How often one caller may call, and how often a login may fail. Both are counted by this
//! server alone.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use throughline::{Owner, TokenId};

use crate::RateLimit;

/// After so many requests, callers that have long been quiet are forgotten.
const CLEANUP_INTERVAL: u32 = 4_096;
/// How much more often a service may call, for all of its users, than one user may.
const SERVICE_RATE_FACTOR: u32 = 4;

/// Whose requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RateKey {
    /// A user, also one of a service's.
    Owner(Owner),
    /// A service's token, whomever it calls on behalf of.
    Service(TokenId),
    /// Somebody without a token.
    Address(IpAddr),
    /// Somebody without a token who looks at the login page: apart, so that a flood of
    /// other requests leaves it alone.
    Login(IpAddr),
}

/// Counts requests by caller.
#[derive(Debug)]
pub(crate) struct CallerRateLimiter {
    limiters: Option<Limiters>,
    since_cleanup: AtomicU32,
    clock: DefaultClock,
}

#[derive(Debug)]
struct Limiters {
    callers: DefaultKeyedRateLimiter<RateKey>,
    services: DefaultKeyedRateLimiter<RateKey>,
}

impl CallerRateLimiter {
    pub(crate) fn new(rate: Option<RateLimit>) -> Self {
        let limiter = |rate: RateLimit, times: u32| {
            let some = |number: u32| {
                NonZeroU32::new(number.saturating_mul(times)).unwrap_or(NonZeroU32::MIN)
            };
            let quota = Quota::per_second(some(rate.per_second)).allow_burst(some(rate.burst));
            RateLimiter::keyed(quota)
        };
        let limiters = rate.map(|rate| Limiters {
            callers: limiter(rate, 1),
            services: limiter(rate, SERVICE_RATE_FACTOR),
        });
        Self {
            limiters,
            since_cleanup: AtomicU32::new(0),
            clock: DefaultClock::default(),
        }
    }

    /// Lets one more request of a caller through, or tells in how many seconds it may
    /// come again.
    pub(crate) fn check(&self, caller: &RateKey) -> Result<(), u32> {
        let Some(limiters) = &self.limiters else {
            return Ok(());
        };
        if self.since_cleanup.fetch_add(1, Ordering::Relaxed) >= CLEANUP_INTERVAL {
            self.since_cleanup.store(0, Ordering::Relaxed);
            limiters.callers.retain_recent();
            limiters.services.retain_recent();
        }
        let limiter = match caller {
            RateKey::Service(_) => &limiters.services,
            RateKey::Owner(_) | RateKey::Address(_) | RateKey::Login(_) => &limiters.callers,
        };
        limiter
            .check_key(caller)
            .map_err(|until| whole_seconds(until.wait_time_from(self.clock.now())))
    }
}

fn whole_seconds(wait: Duration) -> u32 {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// Logins of an address that may fail before it has to wait.
const FREE_FAILURES: u32 = 5;
/// The longest wait after a failed login.
const MAX_LOGIN_WAIT: Duration = Duration::from_secs(60);
/// After so long without a failure, an address starts anew.
const FAILURE_TTL: Duration = Duration::from_secs(900);
/// Addresses that are remembered.
const MAX_TRACKED_ADDRESSES: usize = 10_000;

/// Makes an address wait longer after each failed login: 1 s, 2 s, 4 s, up to a minute.
#[derive(Debug, Default)]
pub(crate) struct LoginBackoff(Mutex<HashMap<IpAddr, LoginFailures>>);

#[derive(Clone, Copy, Debug)]
struct LoginFailures {
    count: u32,
    last: Instant,
}

impl LoginFailures {
    fn wait(self) -> Duration {
        if self.count < FREE_FAILURES {
            return Duration::ZERO;
        }
        let doublings = (self.count - FREE_FAILURES).min(6);
        Duration::from_secs(1 << doublings).min(MAX_LOGIN_WAIT)
    }
}

impl LoginBackoff {
    fn failures(&self) -> MutexGuard<'_, HashMap<IpAddr, LoginFailures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets an address try, or tells in how many seconds it may.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), u32> {
        let failures = self.failures().get(&address).copied();
        let left = failures.map_or(Duration::ZERO, |failures| {
            failures.wait().saturating_sub(failures.last.elapsed())
        });
        if left.is_zero() {
            Ok(())
        } else {
            Err(whole_seconds(left))
        }
    }

    /// A login failed.
    pub(crate) fn record_failure(&self, address: IpAddr) {
        let mut all = self.failures();
        if all.len() >= MAX_TRACKED_ADDRESSES && !all.contains_key(&address) {
            all.retain(|_, failures| failures.last.elapsed() < FAILURE_TTL);
            if all.len() >= MAX_TRACKED_ADDRESSES {
                let oldest = all.iter().min_by_key(|(_, failures)| failures.last);
                if let Some(oldest) = oldest.map(|(address, _)| *address) {
                    all.remove(&oldest);
                }
            }
        }
        let now = Instant::now();
        let failures = all.entry(address).or_insert(LoginFailures {
            count: 0,
            last: now,
        });
        if failures.last.elapsed() >= FAILURE_TTL {
            failures.count = 0;
        }
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
    }

    /// A login succeeded.
    pub(crate) fn record_success(&self, address: IpAddr) {
        self.failures().remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_logins_make_their_address_wait_and_no_other() {
        let logins = LoginBackoff::default();
        let (one, other): (IpAddr, IpAddr) =
            ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        for _ in 0..FREE_FAILURES {
            assert_eq!(logins.check(one), Ok(()));
            logins.record_failure(one);
        }
        assert!(logins.check(one).is_err_and(|seconds| seconds <= 1));
        for _ in 0..20 {
            logins.record_failure(one);
        }
        assert!(logins.check(one).is_err_and(|seconds| seconds > 50));
        assert_eq!(logins.check(other), Ok(()));
        logins.record_success(one);
        assert_eq!(logins.check(one), Ok(()));
    }
}
