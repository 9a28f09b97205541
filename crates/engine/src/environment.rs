//! What comes from outside: time and chance.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

use throughline_model::{EntryId, SessionId, Timestamp};

/// Where time and chance come from. A test may bring its own.
pub trait Environment: Debug + Send + Sync {
    /// What time it is.
    fn now(&self) -> Timestamp;

    /// Fills `bytes` with chance.
    fn fill_random(&self, bytes: &mut [u8]);

    /// Waits, on whichever runtime.
    fn sleep(&self, how_long: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(futures_timer::Delay::new(how_long))
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

#[allow(clippy::disallowed_methods, reason = "this is where they enter")]
impl Environment for SystemEnvironment {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        if getrandom::fill(bytes).is_err() {
            // No source of randomness: ids made in one nanosecond of one process must
            // still differ from each other.
            use std::hash::{BuildHasher, Hasher};
            for chunk in bytes.chunks_mut(8) {
                let hash = std::collections::hash_map::RandomState::new().build_hasher();
                chunk.copy_from_slice(&hash.finish().to_le_bytes()[..chunk.len()]);
            }
        }
    }
}
