//! Token counts: derived from entries once, and kept beside them.

use async_trait::async_trait;
use throughline_model::{Seq, SessionRef};

use crate::StoreError;

/// Keeps what entries cost in tokens, per encoding. A fork knows what its origin knows.
#[async_trait]
pub trait TokenCounts: Send + Sync {
    /// What is known of the entries from one to another, both included, in order.
    async fn token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        from: Seq,
        to: Seq,
    ) -> Result<Vec<(Seq, u64)>, StoreError>;

    /// Keeps counts. An entry that has one keeps it.
    async fn put_token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        counts: &[(Seq, u64)],
    ) -> Result<(), StoreError>;
}
