//! Rate limits per caller and backoff for failed logins. Both are counted per server process.

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

/// Number of requests after which idle callers are removed.
const CLEANUP_INTERVAL: u32 = 4_096;
/// How much higher the rate of a service token is, for all of its users together, than one user's.
const SERVICE_RATE_FACTOR: u32 = 4;

/// Whose requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RateKey {
    /// A user, including one that a service acts for.
    Owner(Owner),
    /// A service token, regardless of the user it acts for.
    Service(TokenId),
    /// A caller without a token, by address.
    Address(IpAddr),
    /// The login page for a caller without a token, counted separately so that a flood of other
    /// requests does not block logins.
    Login(IpAddr),
}

/// Counts requests per caller.
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

    /// Admits one more request of a caller, or returns after how many seconds to retry.
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

/// Failed logins per address before it has to wait.
const FREE_FAILURES: u32 = 5;
/// Maximum wait after a failed login.
const MAX_LOGIN_WAIT: Duration = Duration::from_secs(60);
/// Time without a failure after which an address is reset.
const FAILURE_TTL: Duration = Duration::from_secs(900);
/// Maximum number of tracked addresses.
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

    /// Admits a login attempt, or returns after how many seconds to retry.
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

    /// Records a failed login.
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

    /// Records a successful login.
    pub(crate) fn record_success(&self, address: IpAddr) {
        self.failures().remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_logins_delay_only_their_address() {
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
