//! Runs a batch of appends in one transaction.
//!
//! Used when the optimistic path ([`OptimisticAppend`]) does not apply. Takes two round
//! trips: the first begins, locks the sessions in log order, looks up the entry ids and
//! takes feed positions; the second writes everything and commits. In between, each append
//! is decided separately: a refused one leaves nothing behind and does not affect the
//! others.
//!
//! Records of recently written sessions are cached, so that an append need not read what it
//! is about to change. A cached record is used only if the locked row has the same head and
//! epoch.

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

/// How many sessions' records are cached.
const MAX_CACHED_SESSIONS: usize = 4_096;

/// Records of recently written sessions, cached by the writer between batches.
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

/// The cached record of a live session.
#[derive(Clone, Debug)]
pub(crate) struct CachedSession {
    pub(crate) log: i64,
    pub(crate) epoch: i64,
    pub(crate) record: Record,
    /// The session info as last written in full to `session`.
    saved_info: SessionInfo,
}

impl CachedSession {
    pub(crate) fn head(&self) -> Seq {
        self.record.info.head
    }

    /// Whether session info has changed beyond what `head` stores.
    pub(crate) fn has_session_changes(&self) -> bool {
        !rows::differ_only_in_head_columns(&self.saved_info, &self.record.info)
    }
}

/// A `head` row that this transaction has locked.
#[derive(Clone, Copy, Debug)]
struct LockedHead {
    log: i64,
    head: i64,
    epoch: i64,
    trashed: bool,
}

/// Locks `head` rows in log order. `$1` owners, `$2` session ids, both sorted.
const LOCK_HEADS: &str = "SELECT a.place, h.log, h.head, h.epoch, h.trashed
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (owner, id, place)
    JOIN throughline.session s ON s.owner = a.owner AND s.id = a.id
    JOIN throughline.head h ON h.owner = s.owner AND h.log = s.log
    ORDER BY h.owner, h.log
    FOR NO KEY UPDATE OF h";

/// The same, skipping rows that other transactions have locked.
const LOCK_HEADS_SKIP_LOCKED: &str = "SELECT a.place, h.log, h.head, h.epoch, h.trashed
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (owner, id, place)
    JOIN throughline.session s ON s.owner = a.owner AND s.id = a.id
    JOIN throughline.head h ON h.owner = s.owner AND h.log = s.log
    ORDER BY h.owner, h.log
    FOR NO KEY UPDATE OF h SKIP LOCKED";

/// Selects which of the sessions exist, locked or not.
const SELECT_EXISTING: &str = "SELECT a.place
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (owner, id, place)
    JOIN throughline.session s ON s.owner = a.owner AND s.id = a.id
    JOIN throughline.head h ON h.owner = s.owner AND h.log = s.log";

/// How a batch treats rows that other transactions have locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowLocks {
    /// Waits for them, up to the lock timeout of every write.
    Wait,
    /// Continues without the appends that need them.
    Skip,
}

impl RowLocks {
    /// The lock timeout of the batch's transaction.
    fn timeout(self) -> &'static str {
        match self {
            Self::Wait => LOCK_TIMEOUT,
            // `SKIP LOCKED` covers `head` rows only; other locks are detected by waiting
            // this long.
            Self::Skip => "10ms",
        }
    }
}

/// Finds entries by id. `$1` owners, `$2` session ids, `$3` entry ids. The lateral join
/// makes the index look up each id within its log, not among all of the owner's entries.
const LOCATE_ENTRIES: &str = "SELECT s.owner, s.id, e.id, e.seq
    FROM unnest($1::text[], $2::text[], $3::uuid[]) AS a (owner, id, entry)
    JOIN throughline.session s ON s.owner = a.owner AND s.id = a.id
    CROSS JOIN LATERAL (
        SELECT id, seq FROM throughline.entry
        WHERE owner = s.owner AND log = s.log AND id = a.entry OFFSET 0
    ) AS e";

/// Writes the columns that every append changes.
const UPDATE_HEADS: &str = "UPDATE throughline.head h
    SET head = a.head, digest = a.digest, last_activity = a.last_activity,
        messages = a.messages, queries = a.queries, latest = a.latest
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[],
        $7::bigint[], $8::text[])
        AS a (owner, log, head, digest, last_activity, messages, queries, latest)
    WHERE h.owner = a.owner AND h.log = a.log";

/// Writes the rest of the session info.
const UPDATE_SESSIONS: &str = "UPDATE throughline.session s
    SET card = a.card, status = a.status, name = a.name, project = a.project, agent = a.agent
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[],
        $7::text[]) AS a (owner, log, card, status, name, project, agent)
    WHERE s.owner = a.owner AND s.log = a.log";

/// Runs the batch in one transaction and commits it or rolls it back.
///
/// Jobs left without an outcome are for the next batch; those that a lock held up are
/// marked as blocked. `commit_sent` is set before anything that commits is sent.
pub(crate) async fn attempt_batch(
    lane: &WriterContext,
    cache: &mut SessionCache,
    batch: &mut [QueuedAppend],
    locks: RowLocks,
    commit_sent: &AtomicBool,
) -> Result<(), Fault> {
    if locks == RowLocks::Wait
        && let Some(optimistic) = OptimisticAppend::plan(cache, batch)
        && optimistic.commit(lane, cache, batch, commit_sent).await?
    {
        return Ok(());
    }
    let asked = BatchLookup::from_jobs(batch);
    let owners = asked.owners();
    let scope = OwnerScope::Owners(&owners);
    let settings = TxSettings {
        lock_timeout: locks.timeout(),
        ..lane.settings.clone()
    };
    let tx = Tx::begin(&lane.pool, &settings, TxMode::Write, scope).await?;
    let settling = async {
        tx.set_planner_hints(PlannerHints::KeyLookups).await?;
        let looked = tx
            .run_while_opening(asked.lock_and_read(&tx, cache, locks))
            .await;
        if looked.as_ref().is_err_and(Fault::is_locked) {
            // A table is locked, so every append is affected.
            for job in batch.iter_mut() {
                job.blocked = true;
            }
        }
        let mut batching = looked?;
        for job in batch.iter_mut() {
            let result = batching.run_job(&tx, job).await;
            job.blocked |= result.as_ref().is_err_and(Fault::is_locked);
            result?;
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

/// What a batch looks up in the database.
#[derive(Debug, Default)]
struct BatchLookup {
    /// The sessions, deduplicated and sorted by owner and id.
    sessions: Vec<SessionRef>,
    /// The entry ids, each with the index of its session in `sessions`.
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

    /// The first round trip: locks the sessions, then looks up entries and takes positions.
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
        let count = rows::u64_to_i64(self.entries.len() as u64);

        let locking: tx::Params<'_> = params![owners, ids];
        let locating: tx::Params<'_> = params![entry_owners, entry_sessions, entry_ids];
        let (begin_with, take_how_many): (tx::Params<'_>, tx::Params<'_>) =
            (params![mark], params![count]);
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

/// The index of a session in [`BatchLookup::sessions`].
fn decode_ordinal(row: &Row) -> Result<usize, StoreError> {
    let ordinal: i64 = rows::get(row, 0)?;
    Ok(usize::try_from(ordinal - 1).unwrap_or(0))
}

/// A batch that is being worked out.
#[derive(Debug, Default)]
struct PendingBatch {
    locked: HashMap<SessionRef, LockedHead>,
    /// Sessions that other transactions have locked.
    blocked: HashSet<SessionRef>,
    located: HashMap<(SessionRef, EntryId), Seq>,
    positions: Vec<i64>,
    sessions: HashMap<SessionRef, CachedSession>,
    /// Logs that this batch appends to.
    appended_logs: BTreeSet<(String, i64)>,
    by_log: HashMap<(String, i64), SessionRef>,
    /// Entry ids that this batch adds.
    new_ids: BTreeSet<(i64, EntryId)>,
    rows: EntryRows,
    snapshots: Vec<(SessionRef, i64, Record)>,
    blob_uses: Vec<(SessionRef, i64, Vec<Digest>)>,
}

impl PendingBatch {
    /// Takes over cached records that are still current, and reads the others.
    async fn load(&mut self, tx: &Tx, cache: &mut SessionCache) -> Result<(), Fault> {
        let (mut owners, mut logs, mut unknown) = (Vec::new(), Vec::new(), HashMap::new());
        for (session, locked) in &self.locked {
            let cached = cache.sessions.remove(session).filter(|live| {
                (live.log, live.epoch) == (locked.log, locked.epoch)
                    && rows::seq_to_i64(live.record.info.head) == locked.head
            });
            if let Some(live) = cached {
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
            let info = rows::info_from_row(row, 0)?;
            let state = rows::decode_state(rows::get(row, rows::INFO_COLUMN_COUNT)?)?;
            let owner: String = rows::get(row, rows::INFO_COLUMN_COUNT + 1)?;
            let log: i64 = rows::get(row, rows::INFO_COLUMN_COUNT + 2)?;
            if let Some(session) = unknown.remove(&(owner, log)) {
                let live = CachedSession {
                    log,
                    epoch: self.locked[&session].epoch,
                    saved_info: info.clone(),
                    record: Record { info, state },
                };
                self.sessions.insert(session, live);
            }
        }
        Ok(())
    }

    /// Decides one append, unless it must wait for the next batch. Returns database errors;
    /// a refusal becomes the job's outcome.
    async fn run_job(&mut self, tx: &Tx, job: &mut QueuedAppend) -> Result<(), Fault> {
        if self.blocked.contains(&job.to) {
            job.blocked = true;
            return Ok(());
        }
        match self.try_append(tx, job).await {
            Ok(outcome) => job.outcome = outcome.map(Ok),
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
            // Repeats entries of this same batch; decided once those are stored.
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
                let mut snapshots = Vec::new();
                let assigned = append::chain_entries(
                    &to.owner,
                    live.log,
                    &mut live.record,
                    prepared,
                    rebased,
                    &mut self.rows,
                    &mut snapshots,
                )?;
                let log = live.log;
                let records = snapshots
                    .into_iter()
                    .map(|record| (to.clone(), log, record));
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
                    assigned,
                }))
            }
        }
    }

    /// The second round trip: writes everything and commits.
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
        // The commit was sent with them: if the connection was lost, it may have succeeded.
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

    /// Writes session info that has changed beyond the `head` columns; usually there is
    /// none.
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
            let (info, saved) = (&live.record.info, &live.saved_info);
            let columns = SessionColumns::of(info)?;
            owners.push(key.0.clone());
            logs.push(key.1);
            changed[0].push(Some(columns.card));
            changed[1].push(Some(columns.status.to_owned()));
            changed[2].push(columns.name);
            changed[3].push(columns.project);
            changed[4].push(columns.agent);
            if saved.tags != info.tags {
                rows::write_tags(tx, &of.owner, key.1, &info.tags).await?;
            }
            live.saved_info = info.clone();
        }
        if !logs.is_empty() {
            let [infos, statuses, names, projects, agents] = &changed;
            tx.execute(
                "updating sessions",
                UPDATE_SESSIONS,
                params![owners, logs, infos, statuses, names, projects, agents],
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

/// `head` rows to update, column by column.
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
        info: &SessionInfo,
    ) -> Result<(), StoreError> {
        let counts = HeadColumns::of(info)?;
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

    /// The only row as statement parameters; `None` unless there is exactly one.
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
