//! The trait for storing the token counts of entries.

use async_trait::async_trait;
use throughline_model::{Seq, SessionRef};

use crate::StoreError;

/// Stores token counts of entries per encoding. Forks share the counts of shared
/// entries.
#[async_trait]
pub trait TokenCounts: Send + Sync {
    /// The known counts of a range of entries, both ends included, in order.
    async fn token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        from: Seq,
        to: Seq,
    ) -> Result<Vec<(Seq, u64)>, StoreError>;

    /// Stores counts. An existing count is not replaced.
    async fn put_token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        counts: &[(Seq, u64)],
    ) -> Result<(), StoreError>;
}
