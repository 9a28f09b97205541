//! The index trait: one writer, any number of concurrent searches.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use throughline_model::Digest;

use crate::encoding_cache::EncodingCache;
use crate::rerank::RerankPass;
use crate::search::search;
use crate::{
    IndexReader, IndexState, Indexer, Passage, Query, QueryResults, RecallError, Reranker, Scope,
};

/// An open search index. Its methods block, so call them off the async runtime.
pub trait Index: Debug + Send + Sync {
    /// Returns the only writer of the index, or `None` while another process holds it.
    fn indexer(&self) -> Result<Option<Indexer>, RecallError>;

    /// Returns how far the index has advanced, and fingerprints of the store it was built
    /// from.
    fn state(&self) -> Result<IndexState, RecallError>;

    /// Returns the store position up to which entries are indexed.
    fn watermark(&self) -> Result<u64, RecallError> {
        Ok(self.state()?.upto)
    }

    /// Returns the number of indexed passages, of all owners.
    fn passage_count(&self) -> Result<u64, RecallError>;

    /// Calls `each` for every indexed passage of all owners, in no particular order. Returns
    /// the state that was read; passages indexed since then are left out.
    fn scan(&self, each: &mut dyn FnMut(Passage)) -> Result<IndexState, RecallError>;

    /// Opens a reader on the newest commit, restricted to a scope and to passages that contain
    /// all the phrases.
    fn reader(
        &self,
        scope: &Scope,
        phrases: &[String],
    ) -> Result<Box<dyn IndexReader + '_>, RecallError>;

    /// Returns the cache of passage encodings made by a model.
    fn encoding_cache(&self, model: &Digest) -> Result<Arc<EncodingCache>, RecallError>;

    /// Runs a query.
    fn search(&self, query: &Query) -> Result<QueryResults, RecallError> {
        search(&*self.reader(&query.scope, &query.phrases)?, query, None)
    }

    /// Runs a query and lets a reranker rescore the first hits within the time limit. If it
    /// fails, the hits are ranked without it and the report contains the error.
    fn search_reranked(
        &self,
        query: &Query,
        by: &dyn Reranker,
        within: Duration,
    ) -> Result<QueryResults, RecallError> {
        let pass = RerankPass {
            reranker: by,
            cache: &*self.encoding_cache(&by.digest())?,
            owner: &query.scope.owner,
            time_limit: within,
        };
        search(
            &*self.reader(&query.scope, &query.phrases)?,
            query,
            Some(&pass),
        )
    }
}
