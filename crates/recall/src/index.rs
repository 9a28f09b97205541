//! An index: fed by one, searched by any number.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use throughline_model::Digest;

use crate::compare::Again;
use crate::encoded::Encoded;
use crate::search::search;
use crate::{Compare, Feeder, Found, IndexState, Passage, Query, RecallError, Scope, Sight};

/// An index, open. It may take its time: ask it where that keeps nobody waiting.
pub trait Index: Debug + Send + Sync {
    /// The one writer of the index, or `None` while another has it.
    fn feeder(&self) -> Result<Option<Feeder>, RecallError>;

    /// How far the index goes, and what it was made from.
    fn state(&self) -> Result<IndexState, RecallError>;

    /// The position up to which the store is in the index.
    fn watermark(&self) -> Result<u64, RecallError> {
        Ok(self.state()?.upto)
    }

    /// How many passages are in the index, of all owners.
    fn passages(&self) -> Result<u64, RecallError>;

    /// Reads every passage in the index, of all owners, in no particular order; tells how
    /// far the index goes. What was fed since then is left out.
    fn scan(&self, each: &mut dyn FnMut(Passage)) -> Result<IndexState, RecallError>;

    /// The newest state of the index, whoever wrote it, narrowed to a scope and to passages
    /// that have all the phrases.
    fn sight(&self, scope: &Scope, phrases: &[String]) -> Result<Box<dyn Sight + '_>, RecallError>;

    /// What a model made of passages.
    fn encoded(&self, model: &Digest) -> Result<Arc<Encoded>, RecallError>;

    /// Looks for something.
    fn search(&self, query: &Query) -> Result<Found, RecallError> {
        search(&*self.sight(&query.scope, &query.phrases)?, query, None)
    }

    /// Looks for something, and lets a model compare the first hits again for as long as
    /// `within` allows. If it fails, the hits are as without it, and it is told why.
    fn search_again(
        &self,
        query: &Query,
        by: &dyn Compare,
        within: Duration,
    ) -> Result<Found, RecallError> {
        let again = Again {
            by,
            kept: &*self.encoded(&by.digest())?,
            owner: &query.scope.owner,
            within,
        };
        search(
            &*self.sight(&query.scope, &query.phrases)?,
            query,
            Some(&again),
        )
    }
}
