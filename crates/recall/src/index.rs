//! An index: fed by one, searched by any number.

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

/// An index, open. It may take its time: ask it where that keeps nobody waiting.
pub trait Index: Debug + Send + Sync {
    /// The one writer of the index, or `None` while another has it.
    fn indexer(&self) -> Result<Option<Indexer>, RecallError>;

    /// How far the index goes, and what it was made from.
    fn state(&self) -> Result<IndexState, RecallError>;

    /// The position up to which the store is in the index.
    fn watermark(&self) -> Result<u64, RecallError> {
        Ok(self.state()?.upto)
    }

    /// How many passages are in the index, of all owners.
    fn passage_count(&self) -> Result<u64, RecallError>;

    /// Reads every passage in the index, of all owners, in no particular order; tells how
    /// far the index goes. What was fed since then is left out.
    fn scan(&self, each: &mut dyn FnMut(Passage)) -> Result<IndexState, RecallError>;

    /// The newest state of the index, whoever wrote it, narrowed to a scope and to passages
    /// that have all the phrases.
    fn reader(
        &self,
        scope: &Scope,
        phrases: &[String],
    ) -> Result<Box<dyn IndexReader + '_>, RecallError>;

    /// What a model made of passages.
    fn encoding_cache(&self, model: &Digest) -> Result<Arc<EncodingCache>, RecallError>;

    /// Looks for something.
    fn search(&self, query: &Query) -> Result<QueryResults, RecallError> {
        search(&*self.reader(&query.scope, &query.phrases)?, query, None)
    }

    /// Looks for something, and lets a model compare the first hits again for as long as
    /// `within` allows. If it fails, the hits are as without it, and it is told why.
    fn search_reranked(
        &self,
        query: &Query,
        by: &dyn Reranker,
        within: Duration,
    ) -> Result<QueryResults, RecallError> {
        let again = RerankPass {
            reranker: by,
            cache: &*self.encoding_cache(&by.digest())?,
            owner: &query.scope.owner,
            time_limit: within,
        };
        search(
            &*self.reader(&query.scope, &query.phrases)?,
            query,
            Some(&again),
        )
    }
}
