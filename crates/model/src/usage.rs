//! Tokens, as providers report them.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens that a provider reported for one answer, or the sum over many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input: u64,
    /// Tokens generated.
    pub output: u64,
    /// Of the input, how many came from the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Of the input, how many were written to the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Input and output together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        // Reported by others: absurd figures must not bring a session down.
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}
