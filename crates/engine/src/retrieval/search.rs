//! Searches all messages of an owner.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use throughline_model::{ProjectId, SessionId, SessionInfo};
use throughline_recall::{Hit, Mode, Query, QueryResults, parse_query};
use throughline_store::Position;

use super::{IndexRebuild, IndexWait, RerankBudget, needs_rebuild, run_index_task};
use crate::{Error, Throughline};

/// How long a search waits for an index to be rebuilt.
const REBUILD_WAIT: IndexWait = IndexWait::For(Duration::from_secs(10));

/// Options for a search.
#[derive(Clone, Debug)]
pub struct SearchOptions<'a> {
    /// The query as typed: words, "phrases" and filters.
    pub query: &'a str,
    /// By words, by meaning, or both.
    pub mode: Mode,
    /// The most hits to return.
    pub limit: usize,
    /// Whether the last word is still being typed.
    pub typing: bool,
    /// Search only this project.
    pub project: Option<&'a ProjectId>,
    /// The last listing the user saw, for `session:3`.
    pub listing: &'a [SessionId],
    /// The user's time zone, for `after:yesterday`.
    pub zone: &'a TimeZone,
    /// How long to wait for the index to be up to date.
    pub index_wait: IndexWait,
}

/// The results of a search.
#[derive(Debug)]
pub struct SearchResults {
    /// The hits, best first.
    pub found: QueryResults,
    /// The sessions of the hits, except those in the trash.
    pub sessions: Vec<SessionInfo>,
    /// The number of positions that are not indexed yet.
    pub lag: u64,
}

impl SearchResults {
    /// The position up to which everything was searched.
    pub fn watermark(&self) -> Position {
        Position(self.found.watermark)
    }

    /// Returns the session of a hit.
    pub fn session(&self, session: &SessionId) -> Option<&SessionInfo> {
        self.sessions.iter().find(|info| info.id == *session)
    }
}

impl Throughline {
    /// Searches all messages of the owner.
    pub async fn search(&self, options: &SearchOptions<'_>) -> Result<SearchResults, Error> {
        let now = self.now().to_zoned(options.zone.clone());
        let parsed = parse_query(options.query, &now)?;
        if !options.typing && options.mode != Mode::Text {
            self.preload_reranker();
        }
        let progress = self.catch_up(options.index_wait, &mut |_, _| {}).await?;
        let scope = self
            .build_search_scope(&parsed.filters, options.project, options.listing)
            .await?;
        let query = Query {
            phrases: parsed.phrases,
            mode: options.mode,
            limit: options.limit,
            typing: options.typing,
            ..Query::new(parsed.words, scope)
        };
        let mut found = self
            .search_index(query.clone(), |budget| budget.search)
            .await?;
        if self.drop_stale_hits(&mut found.hits).await? {
            // Entries erased meanwhile are removed from the index by now.
            self.catch_up(REBUILD_WAIT, &mut |_, _| {}).await?;
            found = self
                .search_index(query.clone(), |budget| budget.search)
                .await?;
            if self.drop_stale_hits(&mut found.hits).await? {
                self.rebuild_mismatched_index(REBUILD_WAIT).await?;
                found = self.search_index(query, |budget| budget.search).await?;
                self.drop_stale_hits(&mut found.hits).await?;
            }
        }
        drop_irrelevant_hits(&mut found.hits);
        let mut sessions: Vec<SessionInfo> = Vec::new();
        for hit in &found.hits {
            if sessions.iter().all(|info| info.id != hit.session)
                && let Some(record) = crate::throughline::find_record(self, &hit.session).await?
            {
                sessions.push(record.info);
            }
        }
        Ok(SearchResults {
            found,
            sessions,
            lag: progress.lag,
        })
    }

    /// Queries the index; `budget` selects how long reranking may take.
    ///
    /// An unreadable index is rebuilt first, for at most as long as a user would wait.
    pub(super) async fn search_index(
        &self,
        query: Query,
        budget: fn(RerankBudget) -> Duration,
    ) -> Result<QueryResults, Error> {
        match self.try_search_index(query.clone(), budget).await {
            Err(error) if needs_rebuild(&error) => {
                self.discard_index(IndexRebuild::Damaged).await?;
                self.catch_up(REBUILD_WAIT, &mut |_, _| {}).await?;
                self.try_search_index(query, budget).await
            }
            found => found,
        }
    }

    async fn try_search_index(
        &self,
        query: Query,
        budget: fn(RerankBudget) -> Duration,
    ) -> Result<QueryResults, Error> {
        let index_handle = Arc::clone(&self.index);
        // No reranking while the user is typing, or when searching by words only.
        let reranker = self.reranker.clone();
        let reranker = reranker.filter(|_| !query.typing && query.mode != Mode::Text);
        run_index_task(move || {
            let index = index_handle.open_index()?;
            let index = index.as_index();
            let Some(reranker) = reranker else {
                return Ok(index.search(&query)?);
            };
            let found = match reranker.get_or_load() {
                Ok(model) => index.search_reranked(&query, model, budget(reranker.budget()))?,
                Err(report) => QueryResults {
                    rerank: Some(report),
                    ..index.search(&query)?
                },
            };
            if let Some(report) = &found.rerank {
                reranker.record_outcome(report);
            }
            Ok(found)
        })
        .await
    }
}

/// Removes weak hits: if some hits contain words of the query, in them or around them, one
/// without any must at least have a very similar meaning.
fn drop_irrelevant_hits(hits: &mut Vec<Hit>) {
    const MIN_SIMILARITY: f32 = 0.6;
    if hits.iter().any(|hit| hit.score_parts.text > 0.0) {
        hits.retain(|hit| hit.score_parts.text > 0.0 || hit.score_parts.late >= MIN_SIMILARITY);
    }
}
