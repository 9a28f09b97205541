//! Searching everything an owner ever said.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use throughline_model::{ProjectId, SessionId, SessionInfo};
use throughline_recall::{Hit, Mode, Query, QueryResults, parse_query};
use throughline_store::Position;

use super::{IndexRebuild, IndexWait, RerankBudget, needs_rebuild, run_index_task};
use crate::{Error, Throughline};

/// How long a search waits for an index that turned out to be unusable.
const REBUILD_WAIT: IndexWait = IndexWait::For(Duration::from_secs(10));

/// What to look for, and how.
#[derive(Clone, Debug)]
pub struct SearchOptions<'a> {
    /// What was typed: words, "phrases" and filters.
    pub query: &'a str,
    /// By words, by meaning, or by both.
    pub mode: Mode,
    /// At most so many hits.
    pub limit: usize,
    /// Whether the last word is still being typed.
    pub typing: bool,
    /// Only in this project.
    pub project: Option<&'a ProjectId>,
    /// The last listing the person saw, for `session:3`.
    pub listing: &'a [SessionId],
    /// Where the person is, for `after:yesterday`.
    pub zone: &'a TimeZone,
    /// How long to wait for what was just said to be findable.
    pub index_wait: IndexWait,
}

/// What was found.
#[derive(Debug)]
pub struct SearchResults {
    /// The hits, the best first.
    pub found: QueryResults,
    /// The sessions they are in, as far as they are in use.
    pub sessions: Vec<SessionInfo>,
    /// How many positions could not be searched yet.
    pub lag: u64,
}

impl SearchResults {
    /// Everything up to here was searched.
    pub fn watermark(&self) -> Position {
        Position(self.found.watermark)
    }

    /// The session of a hit.
    pub fn session(&self, session: &SessionId) -> Option<&SessionInfo> {
        self.sessions.iter().find(|card| card.id == *session)
    }
}

impl Throughline {
    /// Looks for something in everything that was ever said.
    pub async fn search(&self, searching: &SearchOptions<'_>) -> Result<SearchResults, Error> {
        let now = self.now().to_zoned(searching.zone.clone());
        let parsed = parse_query(searching.query, &now)?;
        if !searching.typing && searching.mode != Mode::Text {
            self.preload_reranker();
        }
        let caught = self.catch_up(searching.index_wait, &mut |_, _| {}).await?;
        let scope = self
            .build_search_scope(&parsed.filters, searching.project, searching.listing)
            .await?;
        let query = Query {
            phrases: parsed.phrases,
            mode: searching.mode,
            limit: searching.limit,
            typing: searching.typing,
            ..Query::new(parsed.words, scope)
        };
        let mut found = self
            .search_index(query.clone(), |within| within.search)
            .await?;
        if self.drop_stale_hits(&mut found.hits).await? {
            // What was erased meanwhile is gone from the index as well by now.
            self.catch_up(REBUILD_WAIT, &mut |_, _| {}).await?;
            found = self
                .search_index(query.clone(), |within| within.search)
                .await?;
            if self.drop_stale_hits(&mut found.hits).await? {
                self.rebuild_mismatched_index(REBUILD_WAIT).await?;
                found = self.search_index(query, |within| within.search).await?;
                self.drop_stale_hits(&mut found.hits).await?;
            }
        }
        drop_irrelevant_hits(&mut found.hits);
        let mut cards: Vec<SessionInfo> = Vec::new();
        for hit in &found.hits {
            if cards.iter().all(|card| card.id != hit.session)
                && let Some(record) = crate::throughline::find_record(self, &hit.session).await?
            {
                cards.push(record.info);
            }
        }
        Ok(SearchResults {
            found,
            sessions: cards,
            lag: caught.lag,
        })
    }

    /// Asks the index; what compares again may take as long as `within` says.
    ///
    /// An index that cannot be read is rebuilt first, as far as that takes no longer than a
    /// person would wait.
    pub(super) async fn search_index(
        &self,
        query: Query,
        within: fn(RerankBudget) -> Duration,
    ) -> Result<QueryResults, Error> {
        match self.try_search_index(query.clone(), within).await {
            Err(error) if needs_rebuild(&error) => {
                self.discard_index(IndexRebuild::Damaged).await?;
                self.catch_up(REBUILD_WAIT, &mut |_, _| {}).await?;
                self.try_search_index(query, within).await
            }
            found => found,
        }
    }

    async fn try_search_index(
        &self,
        query: Query,
        within: fn(RerankBudget) -> Duration,
    ) -> Result<QueryResults, Error> {
        let shelf = Arc::clone(&self.index);
        // Whoever is typing is not kept waiting, and words are not a matter of meaning.
        let again = self.reranker.clone();
        let again = again.filter(|_| !query.typing && query.mode != Mode::Text);
        run_index_task(move || {
            let index = shelf.open_index()?;
            let index = index.as_index();
            let Some(again) = again else {
                return Ok(index.search(&query)?);
            };
            let found = match again.get_or_load() {
                Ok(model) => index.search_reranked(&query, model, within(again.budget()))?,
                Err(unable) => QueryResults {
                    rerank: Some(unable),
                    ..index.search(&query)?
                },
            };
            if let Some(compared) = &found.rerank {
                again.record_outcome(compared);
            }
            Ok(found)
        })
        .await
    }
}

/// Leaves out what merely came along: where some hits have the words, in them or around
/// them, one that has none must at least mean much the same.
fn drop_irrelevant_hits(hits: &mut Vec<Hit>) {
    const MIN_SIMILARITY: f32 = 0.6;
    if hits.iter().any(|hit| hit.score_parts.text > 0.0) {
        hits.retain(|hit| hit.score_parts.text > 0.0 || hit.score_parts.late >= MIN_SIMILARITY);
    }
}
