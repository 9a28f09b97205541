//! One batch of appends in one transaction.
//!
//! Two trips to the database, where one is not enough ([`Foreseen`]): the first begins, locks
//! the sessions in the order of their numbers, looks the entry ids up and takes positions;
//! the second writes everything and commits. In between, each append is settled by itself:
//! one that is refused leaves nothing behind and nobody else out.
//!
//! What is known of sessions lately written is remembered, so that an append need not read
//! what it is about to change. It is trusted only if the locked row has the same head
//! and epoch.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{join, join3};
use throughline_model::{Card, Digest, EntryId, Record, Seq, SessionRef};
use throughline_store::{How, Settled, StoreError, settle};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::append::{self, Answer, NewRows};
use crate::error::{Fault, committing, during, is_cut};
use crate::foreseen::Foreseen;
use crate::rows::{self, Counts, Shown};
use crate::tx::{Behalf, LOCK_TIMEOUT, Manner, Plan, Purpose, Tx};
use crate::writer::{Job, Lane};
use crate::{feed, lease, tx};

/// How many sessions' records are remembered.
const REMEMBERED: usize = 4_096;

/// What the writer remembers between batches.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    sessions: HashMap<SessionRef, Live>,
}

impl Cache {
    pub(crate) fn clear(&mut self) {
        self.sessions.clear();
    }

    pub(crate) fn knows(&self, session: &SessionRef) -> bool {
        self.sessions.contains_key(session)
    }

    pub(crate) fn take(&mut self, session: &SessionRef) -> Option<Live> {
        self.sessions.remove(session)
    }

    pub(crate) fn remember<T>(&mut self, sessions: T)
    where
        T: IntoIterator<Item = (SessionRef, Live)>,
        T::IntoIter: ExactSizeIterator,
    {
        let sessions = sessions.into_iter();
        if self.sessions.len() + sessions.len() > REMEMBERED {
            self.clear();
        }
        self.sessions.extend(sessions);
    }
}

/// A session in use, as the writer knows it.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) log: i64,
    pub(crate) epoch: i64,
    pub(crate) record: Record,
    /// The card as it was last written whole.
    saved: Card,
}

impl Live {
    pub(crate) fn head(&self) -> Seq {
        self.record.card.head
    }

    /// Whether more of its card has changed than the counts.
    pub(crate) fn shows_otherwise(&self) -> bool {
        !rows::differ_in_counts_only(&self.saved, &self.record.card)
    }
}

/// A session whose row is locked.
#[derive(Clone, Copy, Debug)]
struct Locked {
    log: i64,
    head: i64,
    epoch: i64,
    trashed: bool,
}

/// Locks heads, in the order of their numbers: `$1` owners, `$2` ids, both sorted.
const LOCK: &str = "SELECT a.place, h.log, h.head, h.epoch, h.trashed
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (owner, id, place)
    JOIN throughline.session s ON s.owner = a.owner AND s.id = a.id
    JOIN throughline.head h ON h.owner = s.owner AND h.log = s.log
    ORDER BY h.owner, h.log
    FOR NO KEY UPDATE OF h";

/// The same without those that others have locked.
const LOCK_UNLOCKED: &str = "SELECT a.place, h.log, h.head, h.epoch, h.trashed
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (owner, id, place)
    JOIN throughline.session s ON s.owner = a.owner AND s.id = a.id
    JOIN throughline.head h ON h.owner = s.owner AND h.log = s.log
    ORDER BY h.owner, h.log
    FOR NO KEY UPDATE OF h SKIP LOCKED";

/// The sessions that exist, locked or not.
const EXISTING: &str = "SELECT a.place
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (owner, id, place)
    JOIN throughline.session s ON s.owner = a.owner AND s.id = a.id
    JOIN throughline.head h ON h.owner = s.owner AND h.log = s.log";

/// What a batch does about rows that others have locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowLocks {
    /// Waits for them, up to the limit that every write has.
    Wait,
    /// Goes on without the appends they concern.
    Skip,
}

impl RowLocks {
    /// How long to wait for one lock.
    fn timeout(self) -> &'static str {
        match self {
            Self::Wait => LOCK_TIMEOUT,
            // Not every lock can be skipped: those that others hold for longer than this are
            // found out by waiting.
            Self::Skip => "10ms",
        }
    }
}

/// Finds entries by id: `$1` owners, `$2` session ids, `$3` entry ids. One by one, so that
/// the index is asked for a log's and not for all the owner's.
const LOCATE: &str = "SELECT s.owner, s.id, e.id, e.seq
    FROM unnest($1::text[], $2::text[], $3::uuid[]) AS a (owner, id, entry)
    JOIN throughline.session s ON s.owner = a.owner AND s.id = a.id
    CROSS JOIN LATERAL (
        SELECT id, seq FROM throughline.entry
        WHERE owner = s.owner AND log = s.log AND id = a.entry OFFSET 0
    ) AS e";

/// Writes what every append touches.
const TOUCH: &str = "UPDATE throughline.head h
    SET head = a.head, digest = a.digest, last_activity = a.last_activity,
        messages = a.messages, queries = a.queries, latest = a.latest
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[],
        $7::bigint[], $8::text[])
        AS a (owner, log, head, digest, last_activity, messages, queries, latest)
    WHERE h.owner = a.owner AND h.log = a.log";

/// Writes the rest of cards.
const SHOW: &str = "UPDATE throughline.session s
    SET card = a.card, status = a.status, name = a.name, project = a.project, agent = a.agent
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[],
        $7::text[]) AS a (owner, log, card, status, name, project, agent)
    WHERE s.owner = a.owner AND s.log = a.log";

/// One transaction with all of the batch in it, committed or undone. Jobs that are not
/// settled by it are left for the next; those that a lock is to blame for are marked as
/// blocked. `commit_sent` is set before anything is sent that commits.
pub(crate) async fn attempt(
    lane: &Lane,
    cache: &mut Cache,
    batch: &mut [Job],
    locks: RowLocks,
    commit_sent: &AtomicBool,
) -> Result<(), Fault> {
    if locks == RowLocks::Wait
        && let Some(foreseen) = Foreseen::of(cache, batch)
        && foreseen.commit(lane, cache, batch, commit_sent).await?
    {
        return Ok(());
    }
    let asked = Asked::of(batch);
    let owners = asked.owners();
    let behalf = Behalf::Owners(&owners);
    let manner = Manner {
        lock_timeout: locks.timeout(),
        ..lane.manner.clone()
    };
    let tx = Tx::begin(&lane.pool, &manner, Purpose::Write, behalf).await?;
    let settling = async {
        tx.plan(Plan::ByKeys).await?;
        let looked = tx.while_opening(asked.look(&tx, cache, locks)).await;
        if looked.as_ref().is_err_and(Fault::is_locked) {
            // A table, and so everybody's.
            for job in batch.iter_mut() {
                job.blocked = true;
            }
        }
        let mut batching = looked?;
        for job in batch.iter_mut() {
            let settled = batching.settle(&tx, job).await;
            job.blocked |= settled.as_ref().is_err_and(Fault::is_locked);
            settled?;
        }
        Ok(batching)
    };
    let batching = match settling.await {
        Ok(batching) => batching,
        Err(fault) => {
            tx.undo(&fault).await;
            return Err(fault);
        }
    };
    batching.commit(tx, cache, commit_sent).await
}

/// What a batch asks the database.
#[derive(Debug, Default)]
struct Asked {
    /// The sessions, each once, by owner and id.
    sessions: Vec<SessionRef>,
    /// The entry ids, each with the place of its session.
    entries: Vec<(usize, Uuid)>,
}

impl Asked {
    fn of(batch: &[Job]) -> Self {
        let sessions: BTreeMap<_, _> = batch
            .iter()
            .map(|job| ((job.to.owner.as_str(), job.to.id.as_str()), &job.to))
            .collect();
        let places: HashMap<&SessionRef, usize> = sessions.values().copied().zip(0..).collect();
        let entries = batch.iter().flat_map(|job| {
            let place = places[&job.to];
            let new = job.prepared.append.entries.iter();
            new.map(move |new| (place, rows::uuid(new.id)))
        });
        Self {
            entries: entries.collect(),
            sessions: sessions.into_values().cloned().collect(),
        }
    }

    fn owners(&self) -> Vec<String> {
        let owners: BTreeSet<_> = self.sessions.iter().map(|s| s.owner.as_str()).collect();
        owners.into_iter().map(ToOwned::to_owned).collect()
    }

    /// The first trip: locks the sessions, and then looks.
    async fn look(self, tx: &Tx, cache: &mut Cache, locks: RowLocks) -> Result<Batching, Fault> {
        let failed = during("looking up sessions to append to");
        let client = tx.client()?;
        let lock = match locks {
            RowLocks::Wait => LOCK,
            RowLocks::Skip => LOCK_UNLOCKED,
        };
        let lock = client.prepare_cached(lock).await.map_err(failed)?;
        let locate = client.prepare_cached(LOCATE).await.map_err(failed)?;
        let begin = client
            .prepare_cached(feed::BEGIN_TAKING)
            .await
            .map_err(failed)?;
        let take = client.prepare_cached(feed::TAKE).await.map_err(failed)?;

        let owners: Vec<&str> = self.sessions.iter().map(|s| s.owner.as_str()).collect();
        let ids: Vec<&str> = self.sessions.iter().map(|s| s.id.as_str()).collect();
        let of = |list: &[&str]| -> Vec<String> {
            let places = self.entries.iter();
            places.map(|(place, _)| list[*place].to_owned()).collect()
        };
        let (entry_owners, entry_sessions) = (of(&owners), of(&ids));
        let entry_ids: Vec<Uuid> = self.entries.iter().map(|(_, id)| *id).collect();
        let mark = feed::mark();
        let wanted = rows::number(self.entries.len() as u64);

        let locking: tx::Params<'_> = params![owners, ids];
        let locating: tx::Params<'_> = params![entry_owners, entry_sessions, entry_ids];
        let (begin_with, take_how_many): (tx::Params<'_>, tx::Params<'_>) =
            (params![mark], params![wanted]);
        let (locked, located, (begun, taken)) = join3(
            client.query(&lock, locking),
            client.query(&locate, locating),
            join(
                client.query(&begin, begin_with),
                client.query(&take, take_how_many),
            ),
        )
        .await;
        let locked = locked.map_err(failed)?;
        let located = located.map_err(failed)?;
        begun.map_err(failed)?;
        let taken = taken.map_err(failed)?;

        let mut batching = Batching {
            positions: taken
                .iter()
                .map(|row| rows::get(row, 0))
                .collect::<Result<_, _>>()?,
            located: self.located(&located)?,
            ..Batching::default()
        };
        for row in &locked {
            let (place, locked) = read_locked(row)?;
            batching.locked.insert(self.sessions[place].clone(), locked);
        }
        if locks == RowLocks::Skip && batching.locked.len() < self.sessions.len() {
            let doing = "looking for locked sessions";
            for row in tx.query(doing, EXISTING, locking).await? {
                let session = &self.sessions[read_place(&row)?];
                if !batching.locked.contains_key(session) {
                    batching.blocked.insert(session.clone());
                }
            }
        }
        batching.load(tx, cache).await?;
        Ok(batching)
    }

    fn located(&self, found: &[Row]) -> Result<HashMap<(SessionRef, EntryId), Seq>, StoreError> {
        let sessions: HashMap<(&str, &str), &SessionRef> = self
            .sessions
            .iter()
            .map(|session| ((session.owner.as_str(), session.id.as_str()), session))
            .collect();
        let mut located = HashMap::new();
        for row in found {
            let of = sessions.get(&(rows::get(row, 0)?, rows::get(row, 1)?));
            let id: Uuid = rows::get(row, 2)?;
            if let Some(of) = of {
                let id = EntryId::from_bytes(id.into_bytes());
                located.insert(((*of).clone(), id), rows::to_seq(rows::get(row, 3)?));
            }
        }
        Ok(located)
    }
}

fn read_locked(row: &Row) -> Result<(usize, Locked), StoreError> {
    let locked = Locked {
        log: rows::get(row, 1)?,
        head: rows::get(row, 2)?,
        epoch: rows::get(row, 3)?,
        trashed: rows::get(row, 4)?,
    };
    Ok((read_place(row)?, locked))
}

/// The place of a session among those asked for.
fn read_place(row: &Row) -> Result<usize, StoreError> {
    let place: i64 = rows::get(row, 0)?;
    Ok(usize::try_from(place - 1).unwrap_or(0))
}

/// A batch under way.
#[derive(Debug, Default)]
struct Batching {
    locked: HashMap<SessionRef, Locked>,
    /// The sessions that others have locked.
    blocked: HashSet<SessionRef>,
    located: HashMap<(SessionRef, EntryId), Seq>,
    positions: Vec<i64>,
    lives: HashMap<SessionRef, Live>,
    /// The sessions that something was appended to.
    touched: BTreeSet<(String, i64)>,
    by_log: HashMap<(String, i64), SessionRef>,
    /// The ids that this batch brings.
    brought: BTreeSet<(i64, EntryId)>,
    rows: NewRows,
    kept: Vec<(SessionRef, i64, Record)>,
    uses: Vec<(SessionRef, i64, Vec<Digest>)>,
}

impl Batching {
    /// Takes what is remembered and still holds, and reads the rest.
    async fn load(&mut self, tx: &Tx, cache: &mut Cache) -> Result<(), Fault> {
        let (mut owners, mut logs, mut unknown) = (Vec::new(), Vec::new(), HashMap::new());
        for (session, locked) in &self.locked {
            let remembered = cache.sessions.remove(session).filter(|live| {
                (live.log, live.epoch) == (locked.log, locked.epoch)
                    && rows::seq(live.record.card.head) == locked.head
            });
            if let Some(live) = remembered {
                self.lives.insert(session.clone(), live);
            } else if !locked.trashed {
                owners.push(session.owner.as_str());
                logs.push(locked.log);
                unknown.insert(
                    (session.owner.as_str().to_owned(), locked.log),
                    session.clone(),
                );
            }
        }
        if logs.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "SELECT {}, t.json, h.owner, h.log
             FROM unnest($1::text[], $2::bigint[]) AS a (owner, log)
             JOIN throughline.head h ON h.owner = a.owner AND h.log = a.log
             JOIN throughline.session s ON s.owner = a.owner AND s.log = a.log
             LEFT JOIN throughline.standing t ON t.owner = a.owner AND t.log = a.log",
            rows::CARD
        );
        let found = tx
            .query("reading records", &sql, params![owners, logs])
            .await?;
        for row in &found {
            let card = rows::card(row, 0)?;
            let standing = rows::standing(rows::get(row, rows::CARD_COLUMNS)?)?;
            let owner: String = rows::get(row, rows::CARD_COLUMNS + 1)?;
            let log: i64 = rows::get(row, rows::CARD_COLUMNS + 2)?;
            if let Some(session) = unknown.remove(&(owner, log)) {
                let live = Live {
                    log,
                    epoch: self.locked[&session].epoch,
                    saved: card.clone(),
                    record: Record { card, standing },
                };
                self.lives.insert(session, live);
            }
        }
        Ok(())
    }

    /// Settles one append, unless it must wait for the next batch. An error is the
    /// database's; a refusal is the job's own.
    async fn settle(&mut self, tx: &Tx, job: &mut Job) -> Result<(), Fault> {
        if self.blocked.contains(&job.to) {
            job.blocked = true;
            return Ok(());
        }
        match self.try_to_settle(tx, job).await {
            Ok(settled) => job.settled = settled.map(Ok),
            Err(Fault::Store(refusal)) => job.settled = Some(Err(refusal)),
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    async fn try_to_settle(&mut self, tx: &Tx, job: &Job) -> Result<Option<Answer>, Fault> {
        let (to, prepared) = (&job.to, &job.prepared);
        append::hold_blobs(tx, &to.owner, &prepared.attachments).await?;
        let holds = lease::holds(tx, &to.owner, prepared.append.fence.as_ref()).await?;
        let Some(live) = self.lives.get_mut(to) else {
            let in_trash = self.locked.get(to).is_some_and(|locked| locked.trashed);
            return Err(Fault::Store(if in_trash {
                StoreError::InTrash(to.id.clone())
            } else {
                StoreError::NoSuchSession(to.id.clone())
            }));
        };
        let ids: Vec<_> = prepared.append.entries.iter().map(|new| new.id).collect();
        if ids.iter().any(|id| self.brought.contains(&(live.log, *id))) {
            // It repeats what this batch brings, and is settled when that is there.
            return Ok(None);
        }
        let found: Vec<_> = ids
            .iter()
            .map(|id| self.located.get(&(to.clone(), *id)).copied())
            .collect();
        let head = live.record.card.head;
        match settle(&to.id, head, &prepared.append, &found, holds)? {
            Settled::Repeat(start) => Ok(Some(Answer::There {
                start,
                how: job.may_be.unwrap_or(How::Repeated),
            })),
            Settled::Fork(at) => Ok(Some(Answer::Fork(at))),
            Settled::Append { rebased } => {
                let mut kept = Vec::new();
                let places = append::place(
                    &to.owner,
                    live.log,
                    &mut live.record,
                    prepared,
                    rebased,
                    &mut self.rows,
                    &mut kept,
                )?;
                let log = live.log;
                let records = kept.into_iter().map(|record| (to.clone(), log, record));
                self.kept.extend(records);
                self.brought.extend(ids.into_iter().map(|id| (log, id)));
                let key = (to.owner.as_str().to_owned(), log);
                if self.touched.insert(key.clone()) {
                    self.by_log.insert(key, to.clone());
                }
                if !prepared.attachments.is_empty() {
                    let used = prepared.attachments.clone();
                    self.uses.push((to.clone(), log, used));
                }
                Ok(Some(Answer::Placed {
                    rebased,
                    how: match rebased {
                        None => How::Appended,
                        Some(_) => How::Rebased,
                    },
                    places,
                }))
            }
        }
    }

    /// The second trip: writes everything and commits.
    async fn commit(
        mut self,
        mut tx: Tx,
        cache: &mut Cache,
        commit_sent: &AtomicBool,
    ) -> Result<(), Fault> {
        if self.rows.len() == 0 {
            tx.finish(Ok(())).await?;
        } else if let Err(fault) = self.write(&tx, commit_sent).await {
            tx.undo(&fault).await;
            return Err(fault);
        } else {
            tx.release();
        }
        cache.remember(self.lives.drain());
        Ok(())
    }

    async fn write(&mut self, tx: &Tx, commit_sent: &AtomicBool) -> Result<(), Fault> {
        self.write_cards(tx).await?;
        for (of, log, record) in &self.kept {
            append::write_snapshot(tx, &of.owner, *log, record).await?;
        }
        for (of, log, digests) in &self.uses {
            append::use_blobs(tx, &of.owner, *log, digests).await?;
        }
        let failed = during("appending");
        let client = tx.client()?;
        let touch = client.prepare_cached(TOUCH).await.map_err(failed)?;
        let mut touched = Touched::default();
        for key in &self.touched {
            if let Some(live) = self.by_log.get(key).and_then(|s| self.lives.get(s)) {
                touched.add(key, &live.record.card)?;
            }
        }
        let insert = client
            .prepare_cached(append::INSERT)
            .await
            .map_err(failed)?;
        let mut chunks = self.rows.chunks();
        let last = chunks.pop().unwrap_or(0..0);
        for chunk in chunks {
            self.rows
                .write_chunk(client, &insert, chunk, &self.positions)
                .await?;
        }
        let touched = touched.params();
        commit_sent.store(true, Ordering::Relaxed);
        let (rows, touching, committed) = join3(
            self.rows
                .write_chunk(client, &insert, last, &self.positions),
            client.execute(&touch, touched.as_slice()),
            client.batch_execute("COMMIT"),
        )
        .await;
        // The commit was sent with them: if the connection was lost, it may have taken place.
        match rows {
            Err(Fault::Database { error, .. }) if is_cut(&error) => return Err(committing(error)),
            rows => rows?,
        }
        match touching {
            Err(error) if is_cut(&error) => return Err(committing(error)),
            touching => touching.map_err(failed)?,
        };
        committed.map_err(committing)
    }

    /// Writes what has changed of cards besides the counts: as a rule, nothing.
    async fn write_cards(&mut self, tx: &Tx) -> Result<(), Fault> {
        let mut changed: [Vec<Option<String>>; 5] = Default::default();
        let (mut owners, mut logs) = (Vec::new(), Vec::new());
        for key in &self.touched {
            let Some(of) = self.by_log.get(key) else {
                continue;
            };
            let Some(live) = self.lives.get_mut(of) else {
                continue;
            };
            if !live.shows_otherwise() {
                continue;
            }
            let (card, saved) = (&live.record.card, &live.saved);
            let shown = Shown::of(card)?;
            owners.push(key.0.clone());
            logs.push(key.1);
            changed[0].push(Some(shown.card));
            changed[1].push(Some(shown.status.to_owned()));
            changed[2].push(shown.name);
            changed[3].push(shown.project);
            changed[4].push(shown.agent);
            if saved.tags != card.tags {
                rows::write_tags(tx, &of.owner, key.1, &card.tags).await?;
            }
            live.saved = card.clone();
        }
        if !logs.is_empty() {
            let [cards, statuses, names, projects, agents] = &changed;
            tx.execute(
                "writing cards",
                SHOW,
                params![owners, logs, cards, statuses, names, projects, agents],
            )
            .await?;
        }
        for key in &self.touched {
            let live = self.by_log.get(key).and_then(|of| {
                let live = self.lives.get(of)?;
                Some((of, live))
            });
            if let Some((of, live)) = live
                && live.record.standing.changed > rows::to_seq(self.locked[of].head)
            {
                rows::write_standing(tx, &of.owner, key.1, &live.record.standing).await?;
            }
        }
        Ok(())
    }
}

/// Heads to be written.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    owners: Vec<String>,
    logs: Vec<i64>,
    heads: Vec<i64>,
    digests: Vec<Vec<u8>>,
    activities: Vec<i64>,
    messages: Vec<i64>,
    queries: Vec<i64>,
    latest: Vec<Option<String>>,
}

impl Touched {
    pub(crate) fn add(
        &mut self,
        (owner, log): &(String, i64),
        card: &Card,
    ) -> Result<(), StoreError> {
        let counts = Counts::of(card)?;
        self.owners.push(owner.clone());
        self.logs.push(*log);
        self.heads.push(counts.head);
        self.digests.push(counts.digest);
        self.activities.push(counts.last_activity);
        self.messages.push(counts.messages);
        self.queries.push(counts.queries);
        self.latest.push(counts.latest);
        Ok(())
    }

    /// The only one there is, as a statement's values.
    pub(crate) fn only(&self) -> Option<[&(dyn tokio_postgres::types::ToSql + Sync); 8]> {
        let ([owner], [log], [head], [digest], [activity], [messages], [queries], [latest]) = (
            &self.owners[..],
            &self.logs[..],
            &self.heads[..],
            &self.digests[..],
            &self.activities[..],
            &self.messages[..],
            &self.queries[..],
            &self.latest[..],
        ) else {
            return None;
        };
        Some([
            owner, log, head, digest, activity, messages, queries, latest,
        ])
    }

    pub(crate) fn params(&self) -> [&(dyn tokio_postgres::types::ToSql + Sync); 8] {
        [
            &self.owners,
            &self.logs,
            &self.heads,
            &self.digests,
            &self.activities,
            &self.messages,
            &self.queries,
            &self.latest,
        ]
    }
}
