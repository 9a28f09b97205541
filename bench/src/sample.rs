//! Sample messages of one size, with realistic times and ids.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use jiff::Timestamp;
use throughline_model::{EntryId, NewEntry, Owner, Role, SessionHeader, SessionRef};
use throughline_sqlite::{Durability, Options, SqliteStore};
use throughline_store::{Append, LogStore};

/// Bytes of text in a message.
pub(crate) const TEXT_BYTES: usize = 634;

/// Returns the text of a message.
pub(crate) fn message_text() -> String {
    const WORDS: &str = "The build fails on the second step because the lock file names a \
                         version that is no longer there; pin the older one and try again. ";
    WORDS.chars().cycle().take(TEXT_BYTES).collect()
}

/// A deterministic clock and random generator: a fixed day plus the run's elapsed time.
#[derive(Debug)]
pub(crate) struct SampleClock {
    midnight: i64,
    start: Instant,
    random_state: AtomicU64,
}

impl SampleClock {
    pub(crate) fn start() -> Result<Self> {
        let midnight: Timestamp = "2026-11-15T00:00:00Z".parse()?;
        Ok(Self {
            midnight: midnight.as_microsecond(),
            start: Instant::now(),
            random_state: AtomicU64::new(0),
        })
    }

    pub(crate) fn now(&self) -> Result<Timestamp> {
        let elapsed = i64::try_from(self.start.elapsed().as_micros())?;
        Ok(Timestamp::from_microsecond(self.midnight + elapsed)?)
    }

    /// Returns pseudo-random numbers (splitmix64).
    fn next_random(&self) -> u64 {
        let step = self
            .random_state
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mixed = (step ^ (step >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a message to append now.
    pub(crate) fn message(&self, text: &str) -> Result<NewEntry> {
        let mut random = [0; 10];
        random[..8].copy_from_slice(&self.next_random().to_le_bytes());
        let at = self.now()?;
        Ok(NewEntry::text(
            EntryId::mint(at, random),
            at,
            Role::User,
            text,
        ))
    }

    /// Returns an append of that many messages.
    pub(crate) fn messages(&self, text: &str, count: u64) -> Result<Append> {
        let entries = (0..count).map(|_| self.message(text));
        Ok(Append::unconditional(entries.collect::<Result<_>>()?))
    }
}

/// Creates a store with full durability.
pub(crate) fn create_store(folder: &Path, name: &str) -> Result<SqliteStore> {
    let options = Options {
        durability: Durability::Full,
        ..Options::default()
    };
    Ok(SqliteStore::open(folder.join(name), options)?)
}

/// Creates a session with that many messages.
pub(crate) async fn create_session(
    store: &dyn LogStore,
    clock: &SampleClock,
    owner: &Owner,
    name: &str,
    messages: u64,
) -> Result<SessionRef> {
    let id = name.parse()?;
    store
        .create(owner, SessionHeader::new(id, clock.now()?))
        .await?;
    let session = owner.session(&name.parse()?);
    let text = message_text();
    let mut left = messages;
    while left > 0 {
        let some = left.min(1_000);
        store.append(&session, clock.messages(&text, some)?).await?;
        left -= some;
    }
    Ok(session)
}

/// Returns the JSON line of a message for a plain-file baseline.
pub(crate) fn jsonl_line(clock: &SampleClock) -> Result<Vec<u8>> {
    let mut line = clock
        .message(&message_text())?
        .encode_payload(None)?
        .into_bytes();
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_of_one_size_and_never_the_same() {
        let clock = SampleClock::start().unwrap();
        assert_eq!(message_text().len(), TEXT_BYTES);
        let (one, two) = (clock.message("x").unwrap(), clock.message("x").unwrap());
        assert_ne!(one.id, two.id);
    }
}
