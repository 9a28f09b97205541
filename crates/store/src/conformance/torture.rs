//! How long a randomized test runs, and from which seed.
//!
//! In the suite such a test runs a fixed number of rounds from a fixed seed, so that it does
//! the same every time. `cargo xtask torture` runs it for a given time from another
//! seed, which it prints, and tells the test through two variables.

use std::time::{Duration, Instant};

/// How many seconds to run.
pub const SECONDS_VARIABLE: &str = "TL_TORTURE_SECONDS";
/// Which seed to start from.
pub const SEED_VARIABLE: &str = "TL_TORTURE_SEED";

/// How long a randomized test runs, and from which seed.
#[derive(Clone, Copy, Debug)]
pub struct TortureBudget {
    /// The seed of the run.
    pub seed: u64,
    rounds: u64,
    deadline: Option<Instant>,
}

impl TortureBudget {
    /// What `cargo xtask torture` asked for, or else this many rounds from this seed.
    #[expect(clippy::disallowed_methods, reason = "how a test learns its budget")]
    pub fn from_env(rounds: u64, seed: u64) -> Self {
        let number = |name| -> Option<u64> {
            let value = std::env::var(name).ok()?;
            Some(value.parse().expect("a number"))
        };
        Self {
            seed: number(SEED_VARIABLE).unwrap_or(seed),
            rounds,
            deadline: number(SECONDS_VARIABLE)
                .map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        }
    }

    /// Whether this is a long run.
    pub fn is_torture(&self) -> bool {
        self.deadline.is_some()
    }

    /// Whether to run the round with this number, counted from zero.
    pub fn allows_round(&self, round: u64) -> bool {
        match self.deadline {
            // One round at least, so that no run can pass by doing nothing.
            Some(deadline) => round == 0 || Instant::now() < deadline,
            None => round < self.rounds,
        }
    }
}
