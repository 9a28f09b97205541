//! [`TokenCounts`] of the in-memory store.

use async_trait::async_trait;
use throughline_model::{Seq, SessionRef};

use super::{MemoryStore, seq_to_usize};
use crate::{StoreError, TokenCounts};

#[async_trait]
impl TokenCounts for MemoryStore {
    async fn token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        from: Seq,
        to: Seq,
    ) -> Result<Vec<(Seq, u64)>, StoreError> {
        self.with_owner(&of.owner, |space| {
            let entries = space.live_session(&of.id)?.log.clone();
            let known = entries
                .iter()
                .filter(|entry| from <= entry.seq && entry.seq <= to)
                .filter_map(|entry| {
                    let count = space
                        .token_counts
                        .get(&(encoding.to_owned(), entry.digest))?;
                    Some((entry.seq, *count))
                });
            Ok(known.collect())
        })
    }

    async fn put_token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        counts: &[(Seq, u64)],
    ) -> Result<(), StoreError> {
        self.with_owner(&of.owner, |space| {
            let log = space.live_session(&of.id)?.log.clone();
            for (seq, count) in counts {
                let entry = seq_to_usize(*seq)
                    .checked_sub(1)
                    .and_then(|index| log.get(index));
                if let Some(entry) = entry {
                    let key = (encoding.to_owned(), entry.digest);
                    space.token_counts.entry(key).or_insert(*count);
                }
            }
            Ok(())
        })
    }
}
