//! Forks: a row, a few references, and no copying.

use rusqlite::{OptionalExtension, params};
use throughline_model::{Birth, Lineage, Record, Seq, SessionRef};
use throughline_store::StoreError;

use crate::append::{refuse_taken_key, write_snapshot};
use crate::error::{damaged, during};
use crate::open::SqliteStore;
use crate::read::{self, Stretch};
use crate::rows;
use crate::tx::Tx;

impl SqliteStore {
    pub(crate) async fn fork_session(
        &self,
        of: &SessionRef,
        at: Seq,
        birth: Birth,
    ) -> Result<Record, StoreError> {
        let of = of.clone();
        self.writer
            .write(move |tx| fork(tx, &of, at, birth.clone()))
            .await
    }
}

/// Makes a fork of `of` at `at`.
pub(crate) fn fork(
    tx: &mut Tx<'_>,
    of: &SessionRef,
    at: Seq,
    mut birth: Birth,
) -> Result<Record, StoreError> {
    let live = tx.live(of)?;
    let (pk, shared, head) = (live.pk, live.shared, live.record.card.head);
    if at > head {
        return Err(StoreError::NoSuchEntry {
            id: of.id.clone(),
            seq: at,
            head,
        });
    }
    birth.lineage = Lineage::Forked {
        session: of.id.clone(),
        at,
    };
    let at_head = (at == head).then(|| live.record.clone());
    let mut stretches = read::stretches(tx.connection, pk, shared, head)?;
    stretches.retain(|stretch| stretch.from <= at);
    if let Some(last) = stretches.last_mut() {
        last.to = last.to.min(at);
    }
    let record = match (at_head, stretches.last()) {
        (Some(record), _) => record,
        (None, Some(last)) => record_at(tx, *last, at)?,
        // At zero, nothing is shared: the fork starts as its origin did.
        (None, None) => Record::new(&rows::birth(tx.connection, pk)?),
    };
    let (birth, record) = record.fork(birth);

    let session = of.owner.session(&birth.id);
    if let Some(found) = rows::find(tx.connection, &session)? {
        if !found.trashed && rows::birth(tx.connection, found.pk)? == birth {
            return Ok(tx.live(&session)?.record.clone());
        }
        return Err(StoreError::SessionExists(birth.id));
    }
    refuse_taken_key(tx, &of.owner, &birth)?;
    let fork = tx.insert_session(&of.owner, &birth, at, &record)?;
    for stretch in &stretches {
        tx.change("INSERT INTO inherits (session, upto, base) VALUES (?1, ?2, ?3)")
            .and_then(|mut insert| {
                insert.execute(params![fork, rows::seq(stretch.to), stretch.session])
            })
            .map_err(during("noting what a fork shares"))?;
    }
    write_snapshot(tx, fork, &record)?;
    Ok(record)
}

/// The record of the session that owns a stretch, as it was at one of its entries: the
/// nearest one kept, and the few entries after it.
fn record_at(tx: &Tx<'_>, stretch: Stretch, at: Seq) -> Result<Record, StoreError> {
    let failed = during("finding a record");
    let kept: Option<String> = tx
        .query(
            "SELECT json FROM snapshot WHERE session = ?1 AND seq <= ?2
             ORDER BY seq DESC LIMIT 1",
        )
        .and_then(|mut query| {
            query
                .query_row(params![stretch.session, rows::seq(at)], |row| row.get(0))
                .optional()
        })
        .map_err(failed)?;
    let birth = rows::birth(tx.connection, stretch.session)?;
    let mut record = match kept {
        None => Record::new(&birth),
        Some(json) => serde_json::from_str(&json)
            .map_err(|error| damaged("a record that was kept cannot be decoded", error))?,
    };
    while record.card.head < at {
        let missing = |seq: Seq| StoreError::DamagedStore {
            what: format!("entry {seq} of session {} is missing", birth.id),
            source: None,
        };
        let next = record.card.head.next();
        let page = read::stored(tx.connection, stretch.session, next, 256)?;
        if page.first().is_none_or(|first| first.seq > at) {
            return Err(missing(next));
        }
        for stored in page.iter().take_while(|stored| stored.seq <= at) {
            let next = record.card.head.next();
            if stored.seq != next {
                return Err(missing(next));
            }
            let entry = stored.decode().map_err(|source| StoreError::Damaged {
                id: birth.id.clone(),
                seq: stored.seq,
                source,
            })?;
            record.apply(&entry);
        }
    }
    Ok(record)
}
