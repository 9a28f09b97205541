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
use throughline_model::{Digest, EntryId, Record, Seq, SessionInfo, SessionRef};
use throughline_store::{AppendDecision, AppendKind, StoreError, decide_append};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::append::{self, EntryRows, WriterReply};
use crate::error::{Fault, commit_failure, during, is_connection_lost};
use crate::optimistic_append::OptimisticAppend;
use crate::rows::{self, HeadColumns, SessionColumns};
use crate::tx::{LOCK_TIMEOUT, OwnerScope, PlannerHints, Tx, TxMode, TxSettings};
use crate::writer::{QueuedAppend, WriterContext};
use crate::{change_feed, lease, tx};

/// How many sessions' records are remembered.
const MAX_CACHED_SESSIONS: usize = 4_096;

/// What the writer remembers between batches.
#[derive(Debug, Default)]
pub(crate) struct SessionCache {
    sessions: HashMap<SessionRef, CachedSession>,
}

impl SessionCache {
    pub(crate) fn clear(&mut self) {
        self.sessions.clear();
    }

    pub(crate) fn contains(&self, session: &SessionRef) -> bool {
        self.sessions.contains_key(session)
    }

    pub(crate) fn take(&mut self, session: &SessionRef) -> Option<CachedSession> {
        self.sessions.remove(session)
    }

    pub(crate) fn insert_all<T>(&mut self, sessions: T)
    where
        T: IntoIterator<Item = (SessionRef, CachedSession)>,
        T::IntoIter: ExactSizeIterator,
    {
        let sessions = sessions.into_iter();
        if self.sessions.len() + sessions.len() > MAX_CACHED_SESSIONS {
            self.clear();
        }
        self.sessions.extend(sessions);
    }
}

/// A session in use, as the writer knows it.
#[derive(Clone, Debug)]
pub(crate) struct CachedSession {
    pub(crate) log: i64,
    pub(crate) epoch: i64,
    pub(crate) record: Record,
    /// The card as it was last written whole.
    saved_info: SessionInfo,
}

impl CachedSession {
    pub(crate) fn head(&self) -> Seq {
        self.record.info.head
    }

    /// Whether more of its card has changed than the counts.
    pub(crate) fn has_session_changes(&self) -> bool {
        !rows::differ_only_in_head_columns(&self.saved_info, &self.record.info)
    }
}

/// A session whose row is locked.
#[derive(Clone, Copy, Debug)]
struct LockedHead {
    log: i64,
    head: i64,
    epoch: i64,
    trashed: bool,
}

/// Locks heads, in the order of their numbers: `$1` owners, `$2` ids, both sorted.
const LOCK_HEADS: &str = "SELECT a.place, h.log, h.head, h.epoch, h.trashed
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (owner, id, place)
    JOIN throughline.session s ON s.owner = a.owner AND s.id = a.id
    JOIN throughline.head h ON h.owner = s.owner AND h.log = s.log
    ORDER BY h.owner, h.log
    FOR NO KEY UPDATE OF h";

/// The same without those that others have locked.
const LOCK_HEADS_SKIP_LOCKED: &str = "SELECT a.place, h.log, h.head, h.epoch, h.trashed
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (owner, id, place)
    JOIN throughline.session s ON s.owner = a.owner AND s.id = a.id
    JOIN throughline.head h ON h.owner = s.owner AND h.log = s.log
    ORDER BY h.owner, h.log
    FOR NO KEY UPDATE OF h SKIP LOCKED";

/// The sessions that exist, locked or not.
const SELECT_EXISTING: &str = "SELECT a.place
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
const LOCATE_ENTRIES: &str = "SELECT s.owner, s.id, e.id, e.seq
    FROM unnest($1::text[], $2::text[], $3::uuid[]) AS a (owner, id, entry)
    JOIN throughline.session s ON s.owner = a.owner AND s.id = a.id
    CROSS JOIN LATERAL (
        SELECT id, seq FROM throughline.entry
        WHERE owner = s.owner AND log = s.log AND id = a.entry OFFSET 0
    ) AS e";

/// Writes what every append touches.
const UPDATE_HEADS: &str = "UPDATE throughline.head h
    SET head = a.head, digest = a.digest, last_activity = a.last_activity,
        messages = a.messages, queries = a.queries, latest = a.latest
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[],
        $7::bigint[], $8::text[])
        AS a (owner, log, head, digest, last_activity, messages, queries, latest)
    WHERE h.owner = a.owner AND h.log = a.log";

/// Writes the rest of cards.
const UPDATE_SESSIONS: &str = "UPDATE throughline.session s
    SET card = a.info, status = a.status, name = a.name, project = a.project, agent = a.agent
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[],
        $7::text[]) AS a (owner, log, card, status, name, project, agent)
    WHERE s.owner = a.owner AND s.log = a.log";

/// One transaction with all of the batch in it, committed or undone. Jobs that are not
/// settled by it are left for the next; those that a lock is to blame for are marked as
/// blocked. `commit_sent` is set before anything is sent that commits.
pub(crate) async fn attempt_batch(
    lane: &WriterContext,
    cache: &mut SessionCache,
    batch: &mut [QueuedAppend],
    locks: RowLocks,
    commit_sent: &AtomicBool,
) -> Result<(), Fault> {
    if locks == RowLocks::Wait
        && let Some(foreseen) = OptimisticAppend::plan(cache, batch)
        && foreseen.commit(lane, cache, batch, commit_sent).await?
    {
        return Ok(());
    }
    let asked = BatchLookup::from_jobs(batch);
    let owners = asked.owners();
    let behalf = OwnerScope::Owners(&owners);
    let manner = TxSettings {
        lock_timeout: locks.timeout(),
        ..lane.settings.clone()
    };
    let tx = Tx::begin(&lane.pool, &manner, TxMode::Write, behalf).await?;
    let settling = async {
        tx.set_planner_hints(PlannerHints::KeyLookups).await?;
        let looked = tx
            .run_while_opening(asked.lock_and_read(&tx, cache, locks))
            .await;
        if looked.as_ref().is_err_and(Fault::is_locked) {
            // A table, and so everybody's.
            for job in batch.iter_mut() {
                job.blocked = true;
            }
        }
        let mut batching = looked?;
        for job in batch.iter_mut() {
            let settled = batching.run_job(&tx, job).await;
            job.blocked |= settled.as_ref().is_err_and(Fault::is_locked);
            settled?;
        }
        Ok(batching)
    };
    let batching = match settling.await {
        Ok(batching) => batching,
        Err(fault) => {
            tx.rollback(&fault).await;
            return Err(fault);
        }
    };
    batching.commit(tx, cache, commit_sent).await
}

/// What a batch asks the database.
#[derive(Debug, Default)]
struct BatchLookup {
    /// The sessions, each once, by owner and id.
    sessions: Vec<SessionRef>,
    /// The entry ids, each with the place of its session.
    entries: Vec<(usize, Uuid)>,
}

impl BatchLookup {
    fn from_jobs(batch: &[QueuedAppend]) -> Self {
        let sessions: BTreeMap<_, _> = batch
            .iter()
            .map(|job| ((job.to.owner.as_str(), job.to.id.as_str()), &job.to))
            .collect();
        let places: HashMap<&SessionRef, usize> = sessions.values().copied().zip(0..).collect();
        let entries = batch.iter().flat_map(|job| {
            let place = places[&job.to];
            let new = job.prepared.append.entries.iter();
            new.map(move |new| (place, rows::entry_id_to_uuid(new.id)))
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
    async fn lock_and_read(
        self,
        tx: &Tx,
        cache: &mut SessionCache,
        locks: RowLocks,
    ) -> Result<PendingBatch, Fault> {
        let failed = during("looking up sessions to append to");
        let client = tx.client()?;
        let lock = match locks {
            RowLocks::Wait => LOCK_HEADS,
            RowLocks::Skip => LOCK_HEADS_SKIP_LOCKED,
        };
        let lock = client.prepare_cached(lock).await.map_err(failed)?;
        let locate = client
            .prepare_cached(LOCATE_ENTRIES)
            .await
            .map_err(failed)?;
        let begin = client
            .prepare_cached(change_feed::LOCK_LAST_POSITION)
            .await
            .map_err(failed)?;
        let take = client
            .prepare_cached(change_feed::TAKE_POSITIONS)
            .await
            .map_err(failed)?;

        let owners: Vec<&str> = self.sessions.iter().map(|s| s.owner.as_str()).collect();
        let ids: Vec<&str> = self.sessions.iter().map(|s| s.id.as_str()).collect();
        let of = |list: &[&str]| -> Vec<String> {
            let places = self.entries.iter();
            places.map(|(place, _)| list[*place].to_owned()).collect()
        };
        let (entry_owners, entry_sessions) = (of(&owners), of(&ids));
        let entry_ids: Vec<Uuid> = self.entries.iter().map(|(_, id)| *id).collect();
        let mark = change_feed::lock_class();
        let wanted = rows::u64_to_i64(self.entries.len() as u64);

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

        let mut batching = PendingBatch {
            positions: taken
                .iter()
                .map(|row| rows::get(row, 0))
                .collect::<Result<_, _>>()?,
            located: self.decode_located(&located)?,
            ..PendingBatch::default()
        };
        for row in &locked {
            let (place, locked) = decode_locked_head(row)?;
            batching.locked.insert(self.sessions[place].clone(), locked);
        }
        if locks == RowLocks::Skip && batching.locked.len() < self.sessions.len() {
            let doing = "looking for locked sessions";
            for row in tx.query(doing, SELECT_EXISTING, locking).await? {
                let session = &self.sessions[decode_ordinal(&row)?];
                if !batching.locked.contains_key(session) {
                    batching.blocked.insert(session.clone());
                }
            }
        }
        batching.load(tx, cache).await?;
        Ok(batching)
    }

    fn decode_located(
        &self,
        found: &[Row],
    ) -> Result<HashMap<(SessionRef, EntryId), Seq>, StoreError> {
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
                located.insert(((*of).clone(), id), rows::seq_from_i64(rows::get(row, 3)?));
            }
        }
        Ok(located)
    }
}

fn decode_locked_head(row: &Row) -> Result<(usize, LockedHead), StoreError> {
    let locked = LockedHead {
        log: rows::get(row, 1)?,
        head: rows::get(row, 2)?,
        epoch: rows::get(row, 3)?,
        trashed: rows::get(row, 4)?,
    };
    Ok((decode_ordinal(row)?, locked))
}

/// The place of a session among those asked for.
fn decode_ordinal(row: &Row) -> Result<usize, StoreError> {
    let place: i64 = rows::get(row, 0)?;
    Ok(usize::try_from(place - 1).unwrap_or(0))
}

/// A batch under way.
#[derive(Debug, Default)]
struct PendingBatch {
    locked: HashMap<SessionRef, LockedHead>,
    /// The sessions that others have locked.
    blocked: HashSet<SessionRef>,
    located: HashMap<(SessionRef, EntryId), Seq>,
    positions: Vec<i64>,
    sessions: HashMap<SessionRef, CachedSession>,
    /// The sessions that something was appended to.
    appended_logs: BTreeSet<(String, i64)>,
    by_log: HashMap<(String, i64), SessionRef>,
    /// The ids that this batch brings.
    new_ids: BTreeSet<(i64, EntryId)>,
    rows: EntryRows,
    snapshots: Vec<(SessionRef, i64, Record)>,
    blob_uses: Vec<(SessionRef, i64, Vec<Digest>)>,
}

impl PendingBatch {
    /// Takes what is remembered and still holds, and reads the rest.
    async fn load(&mut self, tx: &Tx, cache: &mut SessionCache) -> Result<(), Fault> {
        let (mut owners, mut logs, mut unknown) = (Vec::new(), Vec::new(), HashMap::new());
        for (session, locked) in &self.locked {
            let remembered = cache.sessions.remove(session).filter(|live| {
                (live.log, live.epoch) == (locked.log, locked.epoch)
                    && rows::seq_to_i64(live.record.info.head) == locked.head
            });
            if let Some(live) = remembered {
                self.sessions.insert(session.clone(), live);
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
            rows::INFO_COLUMNS
        );
        let found = tx
            .query("reading records", &sql, params![owners, logs])
            .await?;
        for row in &found {
            let card = rows::info_from_row(row, 0)?;
            let standing = rows::decode_state(rows::get(row, rows::INFO_COLUMN_COUNT)?)?;
            let owner: String = rows::get(row, rows::INFO_COLUMN_COUNT + 1)?;
            let log: i64 = rows::get(row, rows::INFO_COLUMN_COUNT + 2)?;
            if let Some(session) = unknown.remove(&(owner, log)) {
                let live = CachedSession {
                    log,
                    epoch: self.locked[&session].epoch,
                    saved_info: card.clone(),
                    record: Record {
                        info: card,
                        state: standing,
                    },
                };
                self.sessions.insert(session, live);
            }
        }
        Ok(())
    }

    /// Settles one append, unless it must wait for the next batch. An error is the
    /// database's; a refusal is the job's own.
    async fn run_job(&mut self, tx: &Tx, job: &mut QueuedAppend) -> Result<(), Fault> {
        if self.blocked.contains(&job.to) {
            job.blocked = true;
            return Ok(());
        }
        match self.try_append(tx, job).await {
            Ok(settled) => job.outcome = settled.map(Ok),
            Err(Fault::Store(refusal)) => job.outcome = Some(Err(refusal)),
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    async fn try_append(
        &mut self,
        tx: &Tx,
        job: &QueuedAppend,
    ) -> Result<Option<WriterReply>, Fault> {
        let (to, prepared) = (&job.to, &job.prepared);
        append::lock_blobs(tx, &to.owner, &prepared.attachments).await?;
        let holds = lease::holds_lease(tx, &to.owner, prepared.append.fence.as_ref()).await?;
        let Some(live) = self.sessions.get_mut(to) else {
            let in_trash = self.locked.get(to).is_some_and(|locked| locked.trashed);
            return Err(Fault::Store(if in_trash {
                StoreError::InTrash(to.id.clone())
            } else {
                StoreError::NoSuchSession(to.id.clone())
            }));
        };
        let ids: Vec<_> = prepared.append.entries.iter().map(|new| new.id).collect();
        if ids.iter().any(|id| self.new_ids.contains(&(live.log, *id))) {
            // It repeats what this batch brings, and is settled when that is there.
            return Ok(None);
        }
        let found: Vec<_> = ids
            .iter()
            .map(|id| self.located.get(&(to.clone(), *id)).copied())
            .collect();
        let head = live.record.info.head;
        match decide_append(&to.id, head, &prepared.append, &found, holds)? {
            AppendDecision::Repeat(start) => Ok(Some(WriterReply::AlreadyStored {
                start,
                kind: job.unconfirmed.unwrap_or(AppendKind::Repeated),
            })),
            AppendDecision::Fork(at) => Ok(Some(WriterReply::NeedsFork(at))),
            AppendDecision::Append { rebased } => {
                let mut kept = Vec::new();
                let places = append::chain_entries(
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
                self.snapshots.extend(records);
                self.new_ids.extend(ids.into_iter().map(|id| (log, id)));
                let key = (to.owner.as_str().to_owned(), log);
                if self.appended_logs.insert(key.clone()) {
                    self.by_log.insert(key, to.clone());
                }
                if !prepared.attachments.is_empty() {
                    let used = prepared.attachments.clone();
                    self.blob_uses.push((to.clone(), log, used));
                }
                Ok(Some(WriterReply::Written {
                    rebased,
                    kind: match rebased {
                        None => AppendKind::Appended,
                        Some(_) => AppendKind::Rebased,
                    },
                    assigned: places,
                }))
            }
        }
    }

    /// The second trip: writes everything and commits.
    async fn commit(
        mut self,
        mut tx: Tx,
        cache: &mut SessionCache,
        commit_sent: &AtomicBool,
    ) -> Result<(), Fault> {
        if self.rows.len() == 0 {
            tx.finish(Ok(())).await?;
        } else if let Err(fault) = self.write(&tx, commit_sent).await {
            tx.rollback(&fault).await;
            return Err(fault);
        } else {
            tx.return_connection();
        }
        cache.insert_all(self.sessions.drain());
        Ok(())
    }

    async fn write(&mut self, tx: &Tx, commit_sent: &AtomicBool) -> Result<(), Fault> {
        self.write_changed_sessions(tx).await?;
        for (of, log, record) in &self.snapshots {
            append::write_snapshot(tx, &of.owner, *log, record).await?;
        }
        for (of, log, digests) in &self.blob_uses {
            append::record_blob_uses(tx, &of.owner, *log, digests).await?;
        }
        let failed = during("appending");
        let client = tx.client()?;
        let touch = client.prepare_cached(UPDATE_HEADS).await.map_err(failed)?;
        let mut touched = HeadRows::default();
        for key in &self.appended_logs {
            if let Some(live) = self.by_log.get(key).and_then(|s| self.sessions.get(s)) {
                touched.add(key, &live.record.info)?;
            }
        }
        let insert = client
            .prepare_cached(append::INSERT_ENTRIES)
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
            Err(Fault::Database { error, .. }) if is_connection_lost(&error) => {
                return Err(commit_failure(error));
            }
            rows => rows?,
        }
        match touching {
            Err(error) if is_connection_lost(&error) => return Err(commit_failure(error)),
            touching => touching.map_err(failed)?,
        };
        committed.map_err(commit_failure)
    }

    /// Writes what has changed of cards besides the counts: as a rule, nothing.
    async fn write_changed_sessions(&mut self, tx: &Tx) -> Result<(), Fault> {
        let mut changed: [Vec<Option<String>>; 5] = Default::default();
        let (mut owners, mut logs) = (Vec::new(), Vec::new());
        for key in &self.appended_logs {
            let Some(of) = self.by_log.get(key) else {
                continue;
            };
            let Some(live) = self.sessions.get_mut(of) else {
                continue;
            };
            if !live.has_session_changes() {
                continue;
            }
            let (card, saved) = (&live.record.info, &live.saved_info);
            let shown = SessionColumns::of(card)?;
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
            live.saved_info = card.clone();
        }
        if !logs.is_empty() {
            let [cards, statuses, names, projects, agents] = &changed;
            tx.execute(
                "writing cards",
                UPDATE_SESSIONS,
                params![owners, logs, cards, statuses, names, projects, agents],
            )
            .await?;
        }
        for key in &self.appended_logs {
            let live = self.by_log.get(key).and_then(|of| {
                let live = self.sessions.get(of)?;
                Some((of, live))
            });
            if let Some((of, live)) = live
                && live.record.state.changed > rows::seq_from_i64(self.locked[of].head)
            {
                rows::write_state(tx, &of.owner, key.1, &live.record.state).await?;
            }
        }
        Ok(())
    }
}

/// Heads to be written.
#[derive(Debug, Default)]
pub(crate) struct HeadRows {
    owners: Vec<String>,
    logs: Vec<i64>,
    heads: Vec<i64>,
    digests: Vec<Vec<u8>>,
    activities: Vec<i64>,
    messages: Vec<i64>,
    queries: Vec<i64>,
    latest: Vec<Option<String>>,
}

impl HeadRows {
    pub(crate) fn add(
        &mut self,
        (owner, log): &(String, i64),
        card: &SessionInfo,
    ) -> Result<(), StoreError> {
        let counts = HeadColumns::of(card)?;
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
    pub(crate) fn single_params(&self) -> Option<[&(dyn tokio_postgres::types::ToSql + Sync); 8]> {
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
