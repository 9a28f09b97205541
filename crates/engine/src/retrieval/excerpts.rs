//! What was said before that bears on a message: for the request, and for quoting.

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

/// How many are looked for: more than fit into any request.
const MAX_HITS: usize = 80;
/// How many where most of those say the same.
const MAX_HITS_WITH_DUPLICATES: usize = 2_000;
/// How many are told what was said just before them.
const EXCERPTS_WITH_LEAD: usize = 4;
/// How many are quoted to a person.
const MAX_QUOTES: usize = 3;
/// How long the index may keep a request waiting.
const INDEX_WAIT: IndexWait = IndexWait::For(Duration::from_millis(1_500));
/// So much at most may have been said that the index lacks: in changes, and in bytes.
const MAX_UNINDEXED_CHANGES: usize = 16;
const MAX_UNINDEXED_BYTES: usize = 8_000;
/// From this position on an index is large.
const LARGE_INDEX: u64 = 1_000;
/// How much of a passage an excerpt has, in characters.
const MAX_EXCERPT_CHARS: usize = 1_200;

/// What of the last things said in a session the index may lack: it is not waited for
/// then, and gets them while the question is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StalenessTolerance {
    /// So many bytes, which are in view of whoever is asked.
    VisibleBytes(usize),
    /// What the offline agent said, which is not quoted again.
    OfflineAnswers,
}

impl StalenessTolerance {
    /// What a request shows anyway.
    pub(crate) fn for_request(asking: &RequestOptions<'_>) -> Self {
        Self::VisibleBytes(match asking.policy.keep {
            // It may show no message at all.
            Retention::Messages { .. } => 0,
            // About a quarter of it.
            _ => usize::try_from(asking.token_budget()).unwrap_or(MAX_UNINDEXED_BYTES),
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
    /// What was said before in this project that bears on a text, the best first; not
    /// what the model sees anyway.
    pub(crate) async fn find_excerpts(
        &self,
        text: &str,
        record: &Record,
        may_lack: StalenessTolerance,
    ) -> Result<Vec<Excerpt>, Error> {
        let hits = self.find_relevant(text, record, may_lack).await?;
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

    /// What was said before in this project that bears on a text, for a person to read.
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
        // What merely stands beside something that bears on it is no answer.
        let bears = |hit: &&Hit| !hit.snippet.marks.is_empty() && hit.score_parts.late > 0.35;
        for hit in hits.iter().filter(bears).take(MAX_QUOTES) {
            let known = crate::throughline::find_record(&self.tl, &hit.session).await?;
            let title = known
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

    /// The passages that bear on a text.
    async fn find_relevant(
        &self,
        text: &str,
        record: &Record,
        may_lack: StalenessTolerance,
    ) -> Result<Vec<Hit>, Error> {
        // "And now?" bears on nothing but what was said last.
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
        // Not fatal: one that cannot be read is made anew below.
        if !self.tl.is_index_consistent().await.unwrap_or(true) {
            self.tl.catch_up(INDEX_WAIT, &mut |_, _| {}).await?;
        }
        let lately = self.tl.index.cached_search(&query, at);
        let watermark = match &lately {
            Some(lately) => lately.watermark,
            // One that cannot be read is made anew below.
            None => self.tl.watermark().await.unwrap_or_default(),
        };
        let enough = self.is_fresh_enough(watermark, text, may_lack).await?;
        match lately {
            Some(mut lately) if enough => {
                self.tl.drop_stale_hits_if_local(&mut lately.hits).await?;
                return Ok(lately.hits);
            }
            _ if enough => {}
            _ => {
                self.tl.catch_up(INDEX_WAIT, &mut |_, _| {}).await?;
            }
        }
        let mut found = self.search_for_request(&query).await?;
        let all = found.hits.len() < MAX_HITS;
        deduplicate_hits(&mut found.hits, text);
        if !all && found.hits.len() < MAX_QUOTES {
            query.limit = MAX_HITS_WITH_DUPLICATES;
            found = self.search_for_request(&query).await?;
            deduplicate_hits(&mut found.hits, text);
            found.hits.truncate(MAX_HITS);
            query.limit = MAX_HITS;
        }
        if enough {
            // Not before: what is found must not depend on how far it has got.
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

    /// Whether the index has everything but the text itself and what it may lack.
    async fn is_fresh_enough(
        &self,
        watermark: Position,
        text: &str,
        may_lack: StalenessTolerance,
    ) -> Result<bool, Error> {
        let since = self
            .tl
            .store
            .changes(watermark, MAX_UNINDEXED_CHANGES + 1)
            .await?;
        let mut bytes = 0;
        let mut may_wait = |change: &Change| {
            let here = change.owner == self.reference.owner && change.session == *self.id();
            here && match &change.kind {
                ChangeKind::Created => true,
                ChangeKind::Appended(stored) => stored.decode().is_ok_and(|entry| {
                    entry.message().is_none_or(|message| {
                        bytes += stored.payload.len();
                        may_lack.allows(message) || message.content.to_text().trim() == text.trim()
                    })
                }),
                _ => false,
            }
        };
        if since.is_empty() {
            return Ok(true);
        }
        // A small index is fed in no time, and each passage changes which words are rare.
        let all = watermark.0 >= LARGE_INDEX && since.len() <= MAX_UNINDEXED_CHANGES;
        Ok(all && since.iter().all(&mut may_wait) && bytes <= may_lack.max_bytes())
    }

    async fn search_for_request(&self, query: &Query) -> Result<QueryResults, Error> {
        self.tl
            .search_index(query.clone(), |within| within.request)
            .await
    }

    /// This session, and the others of its project.
    async fn project_ranges(&self, record: &Record) -> Result<Vec<SessionRange>, Error> {
        let mut stretches = self.log_ranges().await?;
        if let Some(project) = &record.info.project {
            let sessions = self.tl.list_project_sessions(project).await?;
            // All of a session has in it what was shared of it.
            let whole: HashSet<&SessionId> = sessions.iter().collect();
            stretches.retain(|stretch| !whole.contains(&stretch.session));
            stretches.extend(sessions.iter().map(|session| SessionRange {
                session: session.clone(),
                to: None,
            }));
        }
        Ok(stretches)
    }

    /// What was said just before a hit, and by whom.
    async fn preceding_message(&self, hit: &Hit) -> Result<Option<(String, String)>, Error> {
        let Some(before) = hit.seq.0.checked_sub(1).filter(|seq| *seq > 0) else {
            return Ok(None);
        };
        let seq = throughline_model::Seq(before);
        let session = self.tl.handle(&hit.session);
        let read = match session.read(ReadRange::between(seq, seq, 1)).await {
            Ok(mut page) => page.pop(),
            // Gone since, or into the trash.
            Err(_) => None,
        };
        Ok(read.as_ref().and_then(Entry::message).map(|message| {
            let author = read.as_ref().and_then(|entry| entry.author.as_deref());
            let said = redact(&message.content.to_text()).into_owned();
            (speaker(author, message.role), said)
        }))
    }
}

/// Leaves out the message itself, which is in the index by now and may have been asked
/// before; what was said twice is told once, as it was said last.
fn deduplicate_hits(hits: &mut Vec<Hit>, message: &str) {
    let mut told = HashSet::from([message.trim().to_owned()]);
    hits.retain(|hit| told.insert(hit.text.trim().to_owned()));
}

fn speaker(author: Option<&str>, role: Role) -> String {
    match (author, role) {
        (Some(author), _) => author.to_owned(),
        (None, Role::User) => "you".to_owned(),
        (None, role) => role.as_str().to_owned(),
    }
}

/// The beginning of a long text, whole words.
fn truncate_text(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= MAX_EXCERPT_CHARS {
        return text.to_owned();
    }
    let cut: String = text.chars().take(MAX_EXCERPT_CHARS).collect();
    let whole = cut.rsplit_once(char::is_whitespace);
    format!("{} …", whole.map_or(cut.as_str(), |(whole, _)| whole))
}
