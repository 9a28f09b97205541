//! A batch whose outcome is foreseen: one trip to the database.
//!
//! As a rule a batch is for sessions lately written here, and nobody else has written to them
//! since. Then all of it is worked out beforehand and sent at once, the commit with it. The
//! database checks what was taken for granted: that each session stands where it did, and
//! that no entry is there already. Where it finds otherwise it refuses the whole, nothing is
//! left behind, and the batch is settled by asking first.

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

/// One statement, which is a transaction of its own.
const APPEND: &str = "SELECT throughline.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
    $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";

/// The same for one entry to one session.
const APPEND_ONE: &str = "SELECT throughline.append_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
    $11, $12, $13, $14, $15, $16)";

/// What the database says where a session does not stand as foreseen.
const STALE_HEAD_CODE: &str = "TL001";

/// A batch, worked out.
pub(crate) struct OptimisticAppend {
    sessions: Vec<(SessionRef, CachedSession)>,
    rows: EntryRows,
    heads: HeadRows,
    epochs: Vec<i64>,
    expected_heads: Vec<i64>,
    replies: Vec<WriterReply>,
}

impl OptimisticAppend {
    /// Works a batch out, if everything it needs to know is remembered and it changes no more
    /// than ends of logs. What is remembered of its sessions is taken.
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
        // In the order in which everybody locks them.
        sessions.sort_by(|(a, known), (b, other)| {
            (a.owner.as_str(), known.log).cmp(&(b.owner.as_str(), other.log))
        });
        let before: Vec<Seq> = sessions.iter().map(|(_, live)| live.head()).collect();
        let places: HashMap<SessionRef, usize> =
            sessions.iter().map(|(of, _)| of.clone()).zip(0..).collect();
        let mut rows = EntryRows::default();
        let mut answers = Vec::with_capacity(batch.len());
        for job in batch {
            let (_, live) = &mut sessions[*places.get(&job.to)?];
            answers.push(predict_append(live, job, &mut rows)?);
        }
        let mut foreseen = Self {
            rows,
            replies: answers,
            heads: HeadRows::default(),
            epochs: sessions.iter().map(|(_, live)| live.epoch).collect(),
            expected_heads: before.iter().map(|seq| rows::seq_to_i64(*seq)).collect(),
            sessions,
        };
        for ((session, live), before) in foreseen.sessions.iter().zip(before) {
            if live.has_session_changes() || live.record.state.changed > before {
                return None;
            }
            let key = (session.owner.as_str().to_owned(), live.log);
            foreseen.heads.add(&key, &live.record.info).ok()?;
        }
        (foreseen.rows.chunks().len() == 1).then_some(foreseen)
    }

    /// Sends it all and commits; whether it was as foreseen.
    pub(crate) async fn commit(
        mut self,
        lane: &WriterContext,
        cache: &mut SessionCache,
        batch: &mut [QueuedAppend],
        commit_sent: &AtomicBool,
    ) -> Result<bool, Fault> {
        for (job, answer) in batch.iter_mut().zip(self.replies.drain(..)) {
            // Should the connection be lost, this may be what has happened.
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
            // Back to the pool.
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
        manner: &TxSettings,
        commit_sent: &AtomicBool,
    ) -> Result<(), Fault> {
        let mark = change_feed::lock_class();
        if let (Some(head), Some(row)) = (self.heads.single_params(), self.rows.single_params())
            && let ([epoch], [before]) = (&self.epochs[..], &self.expected_heads[..])
        {
            let told: Params<'_> = params![manner.role, manner.synchronous_commit, mark];
            let before: Params<'_> = params![epoch, before];
            let values = [told, &head, before, &row].concat();
            return run_append(client, APPEND_ONE, &values, commit_sent).await;
        }
        let owners = self.sessions.iter().map(|(of, _)| of.owner.as_str());
        let mut owners: Vec<&str> = owners.collect();
        owners.dedup();
        let told: Params<'_> = params![manner.role, owners, manner.synchronous_commit, mark];
        let before: Params<'_> = params![self.epochs, self.expected_heads];
        let (heads, rows) = (self.heads.params(), self.rows.params());
        let values = [told, &heads, before, &rows].concat();
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

/// A connection that is closed when this is dropped, unless it was taken out before: what was
/// sent on it may still be under way.
struct DiscardOnDrop(Option<Object>);

impl Drop for DiscardOnDrop {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

/// What one append will come to, if it is nothing but an append to the end.
fn predict_append(
    live: &mut CachedSession,
    job: &QueuedAppend,
    new_rows: &mut EntryRows,
) -> Option<WriterReply> {
    let append = &job.prepared.append;
    let none_there = vec![None; append.entries.len()];
    let settled = decide_append(&job.to.id, live.head(), append, &none_there, true);
    let Ok(AppendDecision::Append { rebased: None }) = settled else {
        return None;
    };
    let mut kept = Vec::new();
    let places = append::chain_entries(
        &job.to.owner,
        live.log,
        &mut live.record,
        &job.prepared,
        None,
        new_rows,
        &mut kept,
    );
    kept.is_empty().then_some(WriterReply::Written {
        rebased: None,
        kind: AppendKind::Appended,
        assigned: places.ok()?,
    })
}
