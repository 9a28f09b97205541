//! The environment of the engine: clock, randomness and timers.
//!
//! Everything nondeterministic is passed in through [`Environment`], so that tests can
//! control it.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

use throughline_model::{EntryId, SessionId, Timestamp};

/// A source of time and randomness. Tests supply their own.
pub trait Environment: Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Fills `bytes` with random bytes.
    fn fill_random(&self, bytes: &mut [u8]);

    /// Waits for a duration. The default works on any async runtime.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(futures_timer::Delay::new(duration))
    }
}

impl dyn Environment + '_ {
    pub(crate) fn new_session_id(&self) -> SessionId {
        let mut random = [0; 4];
        self.fill_random(&mut random);
        SessionId::mint(self.now(), u32::from_le_bytes(random))
    }

    pub(crate) fn new_entry_id(&self) -> EntryId {
        let mut random = [0; 10];
        self.fill_random(&mut random);
        EntryId::mint(self.now(), random)
    }
}

/// The system's clock and source of randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEnvironment;

#[allow(
    clippy::disallowed_methods,
    reason = "the one place that reads the system clock"
)]
impl Environment for SystemEnvironment {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        if getrandom::fill(bytes).is_err() {
            // No source of randomness is available. Ids created in the same nanosecond
            // by the same process must still differ.
            use std::hash::{BuildHasher, Hasher};
            for chunk in bytes.chunks_mut(8) {
                let hash = std::collections::hash_map::RandomState::new().build_hasher();
                chunk.copy_from_slice(&hash.finish().to_le_bytes()[..chunk.len()]);
            }
        }
    }
}
