//! The duration and seed of a randomized test.
//!
//! In the regular suite such a test runs a fixed number of rounds from a fixed seed, so
//! that it is deterministic. `cargo xtask torture` runs it for a given time from
//! another seed, which it prints, and passes both through environment variables.

use std::time::{Duration, Instant};

/// The environment variable with the duration in seconds.
pub const SECONDS_VARIABLE: &str = "TL_TORTURE_SECONDS";
/// The environment variable with the seed.
pub const SEED_VARIABLE: &str = "TL_TORTURE_SEED";

/// The duration and seed of a randomized test.
#[derive(Clone, Copy, Debug)]
pub struct TortureBudget {
    /// The seed of the run.
    pub seed: u64,
    rounds: u64,
    deadline: Option<Instant>,
}

impl TortureBudget {
    /// Reads what `cargo xtask torture` requested; defaults to this many rounds from
    /// this seed.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test reads its budget from the environment"
    )]
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
            // At least one round, so that no run passes without testing anything.
            Some(deadline) => round == 0 || Instant::now() < deadline,
            None => round < self.rounds,
        }
    }
}
