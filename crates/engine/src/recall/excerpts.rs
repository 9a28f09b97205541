//! What was said before that bears on a message: for the request, and for quoting.

use std::collections::HashSet;
use std::time::Duration;

use jiff::tz::TimeZone;
use throughline_context::{EntryRef, Excerpt, Keep};
use throughline_llm::{OFFLINE_PROVIDER, Quote};
use throughline_model::{Entry, Message, Record, Role, SessionId, redact};
use throughline_recall::{Found, Hit, Query, Scope, Stretch, says_something};
use throughline_store::{Change, Position, Read, What};

use super::{Lately, Patience};
use crate::{Asking, Error, Session};

/// How many are looked for: more than fit into any request.
const HITS: usize = 80;
/// How many where most of those say the same.
const MANY_HITS: usize = 2_000;
/// How many are told what was said just before them.
const LEADS: usize = 4;
/// How many are quoted to a person.
const QUOTES: usize = 3;
/// How long the index may keep a request waiting.
const PATIENCE: Patience = Patience::For(Duration::from_millis(1_500));
/// So much at most may have been said that the index lacks: in changes, and in bytes.
const JUST_SAID: usize = 16;
const JUST_SAID_BYTES: usize = 8_000;
/// From this position on an index is large.
const LARGE: u64 = 1_000;
/// How much of a passage an excerpt has, in characters.
const LONGEST: usize = 1_200;

/// What of the last things said in a session the index may lack: it is not waited for
/// then, and gets them while the question is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MayLack {
    /// So many bytes, which are in view of whoever is asked.
    InView(usize),
    /// What the offline agent said, which is not quoted again.
    ItsOwn,
}

impl MayLack {
    /// What a request shows anyway.
    pub(crate) fn of(asking: &Asking<'_>) -> Self {
        Self::InView(match asking.policy.keep {
            // It may show no message at all.
            Keep::Messages { .. } => 0,
            // About a quarter of it.
            _ => usize::try_from(asking.allowance()).unwrap_or(JUST_SAID_BYTES),
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::InView(bytes) => bytes.min(JUST_SAID_BYTES),
            Self::ItsOwn => JUST_SAID_BYTES,
        }
    }

    fn message(self, message: &Message) -> bool {
        match self {
            Self::InView(_) => true,
            Self::ItsOwn => message.provider.as_deref() == Some(OFFLINE_PROVIDER),
        }
    }
}

impl Session {
    /// What was said before in this project that bears on a text, the best first; not
    /// what the model sees anyway.
    pub(crate) async fn excerpts(
        &self,
        text: &str,
        record: &Record,
        may_lack: MayLack,
    ) -> Result<Vec<Excerpt>, Error> {
        let hits = self.bearing_on(text, record, may_lack).await?;
        let mut excerpts = Vec::with_capacity(hits.len());
        for (index, hit) in hits.into_iter().enumerate() {
            let lead = if index < LEADS {
                self.lead(&hit).await?
            } else {
                None
            };
            excerpts.push(Excerpt {
                author: speaker(hit.author.as_deref(), hit.role),
                text: redact(&shortened(&hit.text)).into_owned(),
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
    pub(crate) async fn quotes(&self, text: &str, zone: &TimeZone) -> Result<Vec<Quote>, Error> {
        let record = self.record().await?;
        let hits = self.bearing_on(text, &record, MayLack::ItsOwn).await?;
        let mut quotes = Vec::new();
        // What merely stands beside something that bears on it is no answer.
        let bears = |hit: &&Hit| !hit.snippet.marks.is_empty() && hit.why.late > 0.35;
        for hit in hits.iter().filter(bears).take(QUOTES) {
            let known = crate::throughline::record_if_any(&self.tl, &hit.session).await?;
            let title = known
                .as_ref()
                .map_or(hit.session.as_str(), |record| record.card.title());
            quotes.push(Quote {
                who: speaker(hit.author.as_deref(), hit.role),
                when: hit
                    .at
                    .to_zoned(zone.clone())
                    .strftime("%Y-%m-%d")
                    .to_string(),
                place: format!("{title}, entry {}", hit.seq),
                text: hit.text.clone(),
            });
        }
        Ok(quotes)
    }

    /// The passages that bear on a text.
    async fn bearing_on(
        &self,
        text: &str,
        record: &Record,
        may_lack: MayLack,
    ) -> Result<Vec<Hit>, Error> {
        // "And now?" bears on nothing but what was said last.
        if !says_something(text) {
            return Ok(Vec::new());
        }
        self.tl.get_ready_to_compare();
        let at = self.tl.store.last_position().await?;
        let mut scope = Scope::new(self.reference.owner.clone());
        scope.sessions = Some(self.stretches(record).await?);
        let mut query = Query {
            limit: HITS,
            ..Query::new(text, scope)
        };
        // Not fatal: one that cannot be read is made anew below.
        if !self.tl.index_matches_store().await.unwrap_or(true) {
            self.tl.catch_up(PATIENCE, &mut |_, _| {}).await?;
        }
        let lately = self.tl.shelf.lately(&query, at);
        let watermark = match &lately {
            Some(lately) => lately.watermark,
            // One that cannot be read is made anew below.
            None => self.tl.watermark().await.unwrap_or_default(),
        };
        let enough = self.has_enough(watermark, text, may_lack).await?;
        match lately {
            Some(mut lately) if enough => {
                self.tl.drop_outdated_if_cheap(&mut lately.hits).await?;
                return Ok(lately.hits);
            }
            _ if enough => {}
            _ => {
                self.tl.catch_up(PATIENCE, &mut |_, _| {}).await?;
            }
        }
        let mut found = self.found_for_request(&query).await?;
        let all = found.hits.len() < HITS;
        once_each(&mut found.hits, text);
        if !all && found.hits.len() < QUOTES {
            query.limit = MANY_HITS;
            found = self.found_for_request(&query).await?;
            once_each(&mut found.hits, text);
            found.hits.truncate(HITS);
            query.limit = HITS;
        }
        if enough {
            // Not before: what is found must not depend on how far it has got.
            self.tl.catch_up_behind();
        }
        let mut hits = found.hits;
        if self.tl.drop_outdated_if_cheap(&mut hits).await? {
            self.tl.catch_up_behind();
        }
        self.tl.shelf.remember(Lately {
            query,
            at,
            watermark: Position(found.watermark),
            hits: hits.clone(),
        });
        Ok(hits)
    }

    /// Whether the index has everything but the text itself and what it may lack.
    async fn has_enough(
        &self,
        watermark: Position,
        text: &str,
        may_lack: MayLack,
    ) -> Result<bool, Error> {
        let since = self.tl.store.changes(watermark, JUST_SAID + 1).await?;
        let mut bytes = 0;
        let mut may_wait = |change: &Change| {
            let here = change.owner == self.reference.owner && change.session == *self.id();
            here && match &change.what {
                What::Created => true,
                What::Appended(stored) => stored.decode().is_ok_and(|entry| {
                    entry.message().is_none_or(|message| {
                        bytes += stored.payload.len();
                        may_lack.message(message) || message.content.to_text().trim() == text.trim()
                    })
                }),
                _ => false,
            }
        };
        if since.is_empty() {
            return Ok(true);
        }
        // A small index is fed in no time, and each passage changes which words are rare.
        let all = watermark.0 >= LARGE && since.len() <= JUST_SAID;
        Ok(all && since.iter().all(&mut may_wait) && bytes <= may_lack.bytes())
    }

    async fn found_for_request(&self, query: &Query) -> Result<Found, Error> {
        self.tl.found(query.clone(), |within| within.request).await
    }

    /// This session, and the others of its project.
    async fn stretches(&self, record: &Record) -> Result<Vec<Stretch>, Error> {
        let mut stretches = self.whole_log().await?;
        if let Some(project) = &record.card.project {
            let sessions = self.tl.sessions_of(project).await?;
            // All of a session has in it what was shared of it.
            let whole: HashSet<&SessionId> = sessions.iter().collect();
            stretches.retain(|stretch| !whole.contains(&stretch.session));
            stretches.extend(sessions.iter().map(|session| Stretch {
                session: session.clone(),
                to: None,
            }));
        }
        Ok(stretches)
    }

    /// What was said just before a hit, and by whom.
    async fn lead(&self, hit: &Hit) -> Result<Option<(String, String)>, Error> {
        let Some(before) = hit.seq.0.checked_sub(1).filter(|seq| *seq > 0) else {
            return Ok(None);
        };
        let seq = throughline_model::Seq(before);
        let session = self.tl.handle(&hit.session);
        let read = match session.read(Read::between(seq, seq, 1)).await {
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
fn once_each(hits: &mut Vec<Hit>, message: &str) {
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
fn shortened(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let cut: String = text.chars().take(LONGEST).collect();
    let whole = cut.rsplit_once(char::is_whitespace);
    format!("{} …", whole.map_or(cut.as_str(), |(whole, _)| whole))
}
