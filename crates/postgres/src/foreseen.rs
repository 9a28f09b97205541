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
use throughline_store::{How, Settled, StoreError, settle};
use tokio_postgres::error::SqlState;

use crate::append::{self, Answer, NewRows};
use crate::batch::{Cache, Live, Touched};
use crate::error::{Fault, committing, during, is_cut};
use crate::tx::{Manner, Params};
use crate::writer::{Job, Lane};
use crate::{feed, rows, tx};

/// One statement, which is a transaction of its own.
const APPEND: &str = "SELECT throughline.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
    $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";

/// The same for one entry to one session.
const APPEND_ONE: &str = "SELECT throughline.append_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
    $11, $12, $13, $14, $15, $16)";

/// What the database says where a session does not stand as foreseen.
const OTHERWISE: &str = "TL001";

/// A batch, worked out.
pub(crate) struct Foreseen {
    sessions: Vec<(SessionRef, Live)>,
    rows: NewRows,
    touched: Touched,
    epochs: Vec<i64>,
    before: Vec<i64>,
    answers: Vec<Answer>,
}

impl Foreseen {
    /// Works a batch out, if everything it needs to know is remembered and it changes no more
    /// than ends of logs. What is remembered of its sessions is taken.
    pub(crate) fn of(cache: &mut Cache, batch: &[Job]) -> Option<Self> {
        let mut ids = HashSet::new();
        for job in batch {
            let append = &job.prepared.append;
            let plain = job.may_be.is_none()
                && append.fence.is_none()
                && job.prepared.attachments.is_empty()
                && cache.knows(&job.to);
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
        let mut rows = NewRows::default();
        let mut answers = Vec::with_capacity(batch.len());
        for job in batch {
            let (_, live) = &mut sessions[*places.get(&job.to)?];
            answers.push(foresee(live, job, &mut rows)?);
        }
        let mut foreseen = Self {
            rows,
            answers,
            touched: Touched::default(),
            epochs: sessions.iter().map(|(_, live)| live.epoch).collect(),
            before: before.iter().map(|seq| rows::seq(*seq)).collect(),
            sessions,
        };
        for ((session, live), before) in foreseen.sessions.iter().zip(before) {
            if live.shows_otherwise() || live.record.standing.changed > before {
                return None;
            }
            let key = (session.owner.as_str().to_owned(), live.log);
            foreseen.touched.add(&key, &live.record.card).ok()?;
        }
        (foreseen.rows.chunks().len() == 1).then_some(foreseen)
    }

    /// Sends it all and commits; whether it was as foreseen.
    pub(crate) async fn commit(
        mut self,
        lane: &Lane,
        cache: &mut Cache,
        batch: &mut [Job],
        commit_sent: &AtomicBool,
    ) -> Result<bool, Fault> {
        for (job, answer) in batch.iter_mut().zip(self.answers.drain(..)) {
            // Should the connection be lost, this may be what has happened.
            job.settled = Some(Ok(answer));
        }
        let sent = self.send(lane, commit_sent).await?;
        if sent {
            cache.remember(self.sessions);
        } else {
            for job in batch {
                job.settled = None;
            }
        }
        Ok(sent)
    }

    async fn send(&self, lane: &Lane, commit_sent: &AtomicBool) -> Result<bool, Fault> {
        let mut connection = DiscardOnDrop(Some(tx::connect(&lane.pool).await?));
        let otherwise = [SqlState::from_code(OTHERWISE), SqlState::UNIQUE_VIOLATION];
        let client = connection.0.as_ref().ok_or(StoreError::Closed)?;
        let sent = self.send_on(client, &lane.manner, commit_sent).await;
        if !sent.as_ref().is_err_and(|f| f.is_cut() || f.is_stale()) {
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
        manner: &Manner,
        commit_sent: &AtomicBool,
    ) -> Result<(), Fault> {
        let mark = feed::mark();
        if let (Some(head), Some(row)) = (self.touched.only(), self.rows.only())
            && let ([epoch], [before]) = (&self.epochs[..], &self.before[..])
        {
            let told: Params<'_> = params![manner.role, manner.synchronous, mark];
            let before: Params<'_> = params![epoch, before];
            let values = [told, &head, before, &row].concat();
            return query(client, APPEND_ONE, &values, commit_sent).await;
        }
        let owners = self.sessions.iter().map(|(of, _)| of.owner.as_str());
        let mut owners: Vec<&str> = owners.collect();
        owners.dedup();
        let told: Params<'_> = params![manner.role, owners, manner.synchronous, mark];
        let before: Params<'_> = params![self.epochs, self.before];
        let (heads, rows) = (self.touched.params(), self.rows.params());
        let values = [told, &heads, before, &rows].concat();
        query(client, APPEND, &values, commit_sent).await
    }
}

async fn query(
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
        Err(error) if is_cut(&error) => Err(committing(error)),
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
fn foresee(live: &mut Live, job: &Job, new_rows: &mut NewRows) -> Option<Answer> {
    let append = &job.prepared.append;
    let none_there = vec![None; append.entries.len()];
    let settled = settle(&job.to.id, live.head(), append, &none_there, true);
    let Ok(Settled::Append { rebased: None }) = settled else {
        return None;
    };
    let mut kept = Vec::new();
    let places = append::place(
        &job.to.owner,
        live.log,
        &mut live.record,
        &job.prepared,
        None,
        new_rows,
        &mut kept,
    );
    kept.is_empty().then_some(Answer::Placed {
        rebased: None,
        how: How::Appended,
        places: places.ok()?,
    })
}
