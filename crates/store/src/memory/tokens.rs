//! Token counts in memory.

use async_trait::async_trait;
use throughline_model::{Seq, SessionRef};

use super::{MemoryStore, usize_of};
use crate::{StoreError, TokenStore};

#[async_trait]
impl TokenStore for MemoryStore {
    async fn token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        from: Seq,
        to: Seq,
    ) -> Result<Vec<(Seq, u64)>, StoreError> {
        self.with(&of.owner, |space| {
            let entries = space.live(&of.id)?.log.clone();
            let known = entries
                .iter()
                .filter(|entry| from <= entry.seq && entry.seq <= to)
                .filter_map(|entry| {
                    let count = space.tokens.get(&(encoding.to_owned(), entry.digest))?;
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
        self.with(&of.owner, |space| {
            let log = space.live(&of.id)?.log.clone();
            for (seq, count) in counts {
                let entry = usize_of(*seq)
                    .checked_sub(1)
                    .and_then(|index| log.get(index));
                if let Some(entry) = entry {
                    let key = (encoding.to_owned(), entry.digest);
                    space.tokens.entry(key).or_insert(*count);
                }
            }
            Ok(())
        })
    }
}
