//! Finds earlier messages that are relevant to a new one, for requests and for quoting.

use std::collections::HashSet;
use std::time::Duration;

use jiff::tz::TimeZone;
use throughline_context::{EntryRef, Excerpt, Retention};
use throughline_llm::{OFFLINE_PROVIDER, OfflineExcerpt};
use throughline_model::{Entry, Message, Record, Role, SessionId, redact};
use throughline_recall::{Hit, Query, QueryResults, Scope, SessionRange, has_searchable_words};
use throughline_store::{Change, ChangeKind, Position, ReadRange};

use super::{CachedSearch, IndexWait};
use crate::{Error, RequestOptions, Session};

/// The number of hits searched for: more than fit into any request.
const MAX_HITS: usize = 80;
/// The number of hits if most of them are duplicates.
const MAX_HITS_WITH_DUPLICATES: usize = 2_000;
/// The number of excerpts that include the preceding message.
const EXCERPTS_WITH_LEAD: usize = 4;
/// The number of passages quoted to a user.
const MAX_QUOTES: usize = 3;
/// How long a request waits for the index.
const INDEX_WAIT: IndexWait = IndexWait::For(Duration::from_millis(1_500));
/// The most changes and bytes that the index may lag behind for a request not to wait.
const MAX_UNINDEXED_CHANGES: usize = 16;
const MAX_UNINDEXED_BYTES: usize = 8_000;
/// From this position on an index counts as large.
const LARGE_INDEX: u64 = 1_000;
/// The maximum length of an excerpt, in characters.
const MAX_EXCERPT_CHARS: usize = 1_200;

/// Which of a session's latest messages the index may lack. The request then does not
/// wait for the index, which is updated while the question is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StalenessTolerance {
    /// This many bytes, which the request contains anyway.
    VisibleBytes(usize),
    /// Answers of the offline agent, which are not quoted.
    OfflineAnswers,
}

impl StalenessTolerance {
    /// Returns the tolerance for a request: what it contains anyway.
    pub(crate) fn for_request(options: &RequestOptions<'_>) -> Self {
        Self::VisibleBytes(match options.policy.keep {
            // The request may contain no message at all.
            Retention::Messages { .. } => 0,
            // About a quarter of the budget, since a token has about four bytes.
            _ => usize::try_from(options.token_budget()).unwrap_or(MAX_UNINDEXED_BYTES),
        })
    }

    fn max_bytes(self) -> usize {
        match self {
            Self::VisibleBytes(bytes) => bytes.min(MAX_UNINDEXED_BYTES),
            Self::OfflineAnswers => MAX_UNINDEXED_BYTES,
        }
    }

    fn allows(self, message: &Message) -> bool {
        match self {
            Self::VisibleBytes(_) => true,
            Self::OfflineAnswers => message.provider.as_deref() == Some(OFFLINE_PROVIDER),
        }
    }
}

impl Session {
    /// Finds excerpts in this project that are relevant to a text, best first, except
    /// what the model sees anyway.
    pub(crate) async fn find_excerpts(
        &self,
        text: &str,
        record: &Record,
        tolerance: StalenessTolerance,
    ) -> Result<Vec<Excerpt>, Error> {
        let hits = self.find_relevant(text, record, tolerance).await?;
        let mut excerpts = Vec::with_capacity(hits.len());
        for (index, hit) in hits.into_iter().enumerate() {
            let lead = if index < EXCERPTS_WITH_LEAD {
                self.preceding_message(&hit).await?
            } else {
                None
            };
            excerpts.push(Excerpt {
                author: speaker(hit.author.as_deref(), hit.role),
                text: redact(&truncate_text(&hit.text)).into_owned(),
                at: hit.at,
                score: hit.score,
                source: EntryRef {
                    session: hit.session,
                    seq: hit.seq,
                    external_id: hit.external_id,
                },
                lead,
            });
        }
        Ok(excerpts)
    }

    /// Finds quotes in this project that are relevant to a text, for a user to read.
    pub(crate) async fn find_quotes(
        &self,
        text: &str,
        zone: &TimeZone,
    ) -> Result<Vec<OfflineExcerpt>, Error> {
        let record = self.record().await?;
        let hits = self
            .find_relevant(text, &record, StalenessTolerance::OfflineAnswers)
            .await?;
        let mut quotes = Vec::new();
        // A passage that was found only because of its neighbors is not an answer.
        let is_relevant = |hit: &&Hit| !hit.snippet.marks.is_empty() && hit.score_parts.late > 0.35;
        for hit in hits.iter().filter(is_relevant).take(MAX_QUOTES) {
            let record = crate::throughline::find_record(&self.tl, &hit.session).await?;
            let title = record
                .as_ref()
                .map_or(hit.session.as_str(), |record| record.info.title());
            quotes.push(OfflineExcerpt {
                author: speaker(hit.author.as_deref(), hit.role),
                when: hit
                    .at
                    .to_zoned(zone.clone())
                    .strftime("%Y-%m-%d")
                    .to_string(),
                location: format!("{title}, entry {}", hit.seq),
                text: hit.text.clone(),
            });
        }
        Ok(quotes)
    }

    /// Finds the passages that are relevant to a text.
    async fn find_relevant(
        &self,
        text: &str,
        record: &Record,
        tolerance: StalenessTolerance,
    ) -> Result<Vec<Hit>, Error> {
        // A text such as "And now?" refers only to the preceding messages.
        if !has_searchable_words(text) {
            return Ok(Vec::new());
        }
        self.tl.preload_reranker();
        let at = self.tl.store.last_position().await?;
        let mut scope = Scope::new(self.reference.owner.clone());
        scope.sessions = Some(self.project_ranges(record).await?);
        let mut query = Query {
            limit: MAX_HITS,
            ..Query::new(text, scope)
        };
        // Not fatal: an unreadable index is rebuilt below.
        if !self.tl.is_index_consistent().await.unwrap_or(true) {
            self.tl.catch_up(INDEX_WAIT, &mut |_, _| {}).await?;
        }
        let cached = self.tl.index.cached_search(&query, at);
        let watermark = match &cached {
            Some(cached) => cached.watermark,
            // An unreadable index is rebuilt below.
            None => self.tl.watermark().await.unwrap_or_default(),
        };
        let is_fresh = self.is_fresh_enough(watermark, text, tolerance).await?;
        match cached {
            Some(mut cached) if is_fresh => {
                self.tl.drop_stale_hits_if_local(&mut cached.hits).await?;
                return Ok(cached.hits);
            }
            _ if is_fresh => {}
            _ => {
                self.tl.catch_up(INDEX_WAIT, &mut |_, _| {}).await?;
            }
        }
        let mut found = self.search_for_request(&query).await?;
        let is_complete = found.hits.len() < MAX_HITS;
        deduplicate_hits(&mut found.hits, text);
        if !is_complete && found.hits.len() < MAX_QUOTES {
            query.limit = MAX_HITS_WITH_DUPLICATES;
            found = self.search_for_request(&query).await?;
            deduplicate_hits(&mut found.hits, text);
            found.hits.truncate(MAX_HITS);
            query.limit = MAX_HITS;
        }
        if is_fresh {
            // Only after the search: the results must not depend on the progress of the
            // update.
            self.tl.catch_up_in_background();
        }
        let mut hits = found.hits;
        if self.tl.drop_stale_hits_if_local(&mut hits).await? {
            self.tl.catch_up_in_background();
        }
        self.tl.index.cache_search(CachedSearch {
            query,
            position: at,
            watermark: Position(found.watermark),
            hits: hits.clone(),
        });
        Ok(hits)
    }

    /// Returns whether the index lacks nothing but the text itself and what is
    /// tolerated.
    async fn is_fresh_enough(
        &self,
        watermark: Position,
        text: &str,
        tolerance: StalenessTolerance,
    ) -> Result<bool, Error> {
        let since = self
            .tl
            .store
            .changes(watermark, MAX_UNINDEXED_CHANGES + 1)
            .await?;
        let mut bytes = 0;
        let mut is_tolerated = |change: &Change| {
            let is_own = change.owner == self.reference.owner && change.session == *self.id();
            is_own
                && match &change.kind {
                    ChangeKind::Created => true,
                    ChangeKind::Appended(stored) => stored.decode().is_ok_and(|entry| {
                        entry.message().is_none_or(|message| {
                            bytes += stored.payload.len();
                            tolerance.allows(message)
                                || message.content.to_text().trim() == text.trim()
                        })
                    }),
                    _ => false,
                }
        };
        if since.is_empty() {
            return Ok(true);
        }
        // A small index is updated quickly, and every passage affects which words are
        // rare.
        let is_small_gap = watermark.0 >= LARGE_INDEX && since.len() <= MAX_UNINDEXED_CHANGES;
        Ok(is_small_gap && since.iter().all(&mut is_tolerated) && bytes <= tolerance.max_bytes())
    }

    async fn search_for_request(&self, query: &Query) -> Result<QueryResults, Error> {
        self.tl
            .search_index(query.clone(), |budget| budget.request)
            .await
    }

    /// The log ranges of this session and of the others in its project.
    async fn project_ranges(&self, record: &Record) -> Result<Vec<SessionRange>, Error> {
        let mut ranges = self.log_ranges().await?;
        if let Some(project) = &record.info.project {
            let sessions = self.tl.list_project_sessions(project).await?;
            // A whole session includes the range of it that forks share.
            let whole: HashSet<&SessionId> = sessions.iter().collect();
            ranges.retain(|range| !whole.contains(&range.session));
            ranges.extend(sessions.iter().map(|session| SessionRange {
                session: session.clone(),
                to: None,
            }));
        }
        Ok(ranges)
    }

    /// Returns the author and text of the message before a hit.
    async fn preceding_message(&self, hit: &Hit) -> Result<Option<(String, String)>, Error> {
        let Some(before) = hit.seq.0.checked_sub(1).filter(|seq| *seq > 0) else {
            return Ok(None);
        };
        let seq = throughline_model::Seq(before);
        let session = self.tl.handle(&hit.session);
        let read = match session.read(ReadRange::between(seq, seq, 1)).await {
            Ok(mut page) => page.pop(),
            // Removed or trashed meanwhile.
            Err(_) => None,
        };
        Ok(read.as_ref().and_then(Entry::message).map(|message| {
            let author = read.as_ref().and_then(|entry| entry.author.as_deref());
            let text = redact(&message.content.to_text()).into_owned();
            (speaker(author, message.role), text)
        }))
    }
}

/// Removes the message itself, which may be indexed by now or have been asked before,
/// and repeated texts, keeping the first hit of each.
fn deduplicate_hits(hits: &mut Vec<Hit>, message: &str) {
    let mut seen = HashSet::from([message.trim().to_owned()]);
    hits.retain(|hit| seen.insert(hit.text.trim().to_owned()));
}

fn speaker(author: Option<&str>, role: Role) -> String {
    match (author, role) {
        (Some(author), _) => author.to_owned(),
        (None, Role::User) => "you".to_owned(),
        (None, role) => role.as_str().to_owned(),
    }
}

/// Truncates a long text at a word boundary.
fn truncate_text(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= MAX_EXCERPT_CHARS {
        return text.to_owned();
    }
    let cut: String = text.chars().take(MAX_EXCERPT_CHARS).collect();
    let whole = cut.rsplit_once(char::is_whitespace);
    format!("{} …", whole.map_or(cut.as_str(), |(whole, _)| whole))
}
