//! Commits a batch of appends in one round trip, assuming cached session records are
//! current.
//!
//! Usually a batch is for sessions that this process wrote last. Then everything is
//! computed beforehand from the cache and sent together with the commit. The database
//! verifies the assumptions: that each session's head is unchanged, and that no entry is
//! stored already. If one fails, it refuses the whole batch without side effects, and the
//! batch is run with locks and lookups instead (`batch.rs`).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use deadpool_postgres::Object;
use throughline_model::{Seq, SessionRef};
use throughline_store::{AppendDecision, AppendKind, StoreError, decide_append};
use tokio_postgres::error::SqlState;

use crate::append::{self, EntryRows, WriterReply};
use crate::batch::{CachedSession, HeadRows, SessionCache};
use crate::error::{Fault, commit_failure, during, is_connection_lost};
use crate::tx::{Params, TxSettings};
use crate::writer::{QueuedAppend, WriterContext};
use crate::{change_feed, rows, tx};

/// One statement, which commits by itself.
const APPEND: &str = "SELECT throughline.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
    $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";

/// The same for one entry to one session.
const APPEND_ONE: &str = "SELECT throughline.append_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
    $11, $12, $13, $14, $15, $16)";

/// The SQLSTATE returned when a session's head is not as assumed.
const STALE_HEAD_CODE: &str = "TL001";

/// A batch with all its rows computed.
pub(crate) struct OptimisticAppend {
    sessions: Vec<(SessionRef, CachedSession)>,
    rows: EntryRows,
    heads: HeadRows,
    epochs: Vec<i64>,
    expected_heads: Vec<i64>,
    replies: Vec<WriterReply>,
}

impl OptimisticAppend {
    /// Computes a batch, if all records it needs are cached and it only appends to the ends
    /// of logs. Removes those records from the cache.
    pub(crate) fn plan(cache: &mut SessionCache, batch: &[QueuedAppend]) -> Option<Self> {
        let mut ids = HashSet::new();
        for job in batch {
            let append = &job.prepared.append;
            let plain = job.unconfirmed.is_none()
                && append.fence.is_none()
                && job.prepared.attachments.is_empty()
                && cache.contains(&job.to);
            let all_new = append
                .entries
                .iter()
                .all(|new| ids.insert((&job.to, new.id)));
            if !plain || !all_new {
                return None;
            }
        }
        let sessions: HashSet<&SessionRef> = batch.iter().map(|job| &job.to).collect();
        let mut sessions: Vec<_> = sessions
            .into_iter()
            .filter_map(|session| Some((session.clone(), cache.take(session)?)))
            .collect();
        // In lock order, the same for every transaction.
        sessions.sort_by(|(a, known), (b, other)| {
            (a.owner.as_str(), known.log).cmp(&(b.owner.as_str(), other.log))
        });
        let before: Vec<Seq> = sessions.iter().map(|(_, live)| live.head()).collect();
        let indexes: HashMap<SessionRef, usize> =
            sessions.iter().map(|(of, _)| of.clone()).zip(0..).collect();
        let mut rows = EntryRows::default();
        let mut answers = Vec::with_capacity(batch.len());
        for job in batch {
            let (_, live) = &mut sessions[*indexes.get(&job.to)?];
            answers.push(predict_append(live, job, &mut rows)?);
        }
        let mut planned = Self {
            rows,
            replies: answers,
            heads: HeadRows::default(),
            epochs: sessions.iter().map(|(_, live)| live.epoch).collect(),
            expected_heads: before.iter().map(|seq| rows::seq_to_i64(*seq)).collect(),
            sessions,
        };
        for ((session, live), before) in planned.sessions.iter().zip(before) {
            if live.has_session_changes() || live.record.state.changed > before {
                return None;
            }
            let key = (session.owner.as_str().to_owned(), live.log);
            planned.heads.add(&key, &live.record.info).ok()?;
        }
        (planned.rows.chunks().len() == 1).then_some(planned)
    }

    /// Sends everything and commits; returns whether the assumptions held.
    pub(crate) async fn commit(
        mut self,
        lane: &WriterContext,
        cache: &mut SessionCache,
        batch: &mut [QueuedAppend],
        commit_sent: &AtomicBool,
    ) -> Result<bool, Fault> {
        for (job, answer) in batch.iter_mut().zip(self.replies.drain(..)) {
            // If the connection is lost, this may be the outcome.
            job.outcome = Some(Ok(answer));
        }
        let sent = self.send(lane, commit_sent).await?;
        if sent {
            cache.insert_all(self.sessions);
        } else {
            for job in batch {
                job.outcome = None;
            }
        }
        Ok(sent)
    }

    async fn send(&self, lane: &WriterContext, commit_sent: &AtomicBool) -> Result<bool, Fault> {
        let mut connection = DiscardOnDrop(Some(tx::connect(&lane.pool).await?));
        let otherwise = [
            SqlState::from_code(STALE_HEAD_CODE),
            SqlState::UNIQUE_VIOLATION,
        ];
        let client = connection.0.as_ref().ok_or(StoreError::Closed)?;
        let sent = self.send_on(client, &lane.settings, commit_sent).await;
        if !sent
            .as_ref()
            .is_err_and(|f| f.is_connection_lost() || f.is_stale_statement())
        {
            // Return the connection to the pool.
            connection.0.take();
        }
        match sent {
            Ok(()) => Ok(true),
            Err(fault) if fault.is_one_of(&otherwise) => {
                commit_sent.store(false, Ordering::Relaxed);
                Ok(false)
            }
            Err(fault) => Err(fault),
        }
    }

    async fn send_on(
        &self,
        client: &Object,
        settings: &TxSettings,
        commit_sent: &AtomicBool,
    ) -> Result<(), Fault> {
        let mark = change_feed::lock_class();
        if let (Some(head), Some(row)) = (self.heads.single_params(), self.rows.single_params())
            && let ([epoch], [before]) = (&self.epochs[..], &self.expected_heads[..])
        {
            let context: Params<'_> = params![settings.role, settings.synchronous_commit, mark];
            let before: Params<'_> = params![epoch, before];
            let values = [context, &head, before, &row].concat();
            return run_append(client, APPEND_ONE, &values, commit_sent).await;
        }
        let owners = self.sessions.iter().map(|(of, _)| of.owner.as_str());
        let mut owners: Vec<&str> = owners.collect();
        owners.dedup();
        let context: Params<'_> = params![settings.role, owners, settings.synchronous_commit, mark];
        let before: Params<'_> = params![self.epochs, self.expected_heads];
        let (heads, rows) = (self.heads.params(), self.rows.params());
        let values = [context, &heads, before, &rows].concat();
        run_append(client, APPEND, &values, commit_sent).await
    }
}

async fn run_append(
    client: &Object,
    append: &str,
    values: Params<'_>,
    commit_sent: &AtomicBool,
) -> Result<(), Fault> {
    let failed = during("appending");
    let append = client.prepare_cached(append).await.map_err(failed)?;
    commit_sent.store(true, Ordering::Relaxed);
    match client.query(&append, values).await {
        Ok(_) => Ok(()),
        Err(error) if is_connection_lost(&error) => Err(commit_failure(error)),
        Err(error) => Err(failed(error)),
    }
}

/// Closes the connection when dropped, unless it was taken out before: statements sent on
/// it may still be running.
struct DiscardOnDrop(Option<Object>);

impl Drop for DiscardOnDrop {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

/// Computes the outcome of one append, if it is a plain append at the head.
fn predict_append(
    live: &mut CachedSession,
    job: &QueuedAppend,
    new_rows: &mut EntryRows,
) -> Option<WriterReply> {
    let append = &job.prepared.append;
    let none_there = vec![None; append.entries.len()];
    let decision = decide_append(&job.to.id, live.head(), append, &none_there, true);
    let Ok(AppendDecision::Append { rebased: None }) = decision else {
        return None;
    };
    let mut snapshots = Vec::new();
    let assigned = append::chain_entries(
        &job.to.owner,
        live.log,
        &mut live.record,
        &job.prepared,
        None,
        new_rows,
        &mut snapshots,
    );
    snapshots.is_empty().then_some(WriterReply::Written {
        rebased: None,
        kind: AppendKind::Appended,
        assigned: assigned.ok()?,
    })
}
