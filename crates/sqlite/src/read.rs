//! Reading a log: only the rows that are returned are touched.

use rusqlite::Connection;
use throughline_model::{Entry, Seq, SessionRef, StoredEntry};
use throughline_store::{Read, StoreError};

use crate::error::during;
use crate::rows::{self, Found};

/// A stretch of a log and the session whose entries it consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) session: i64,
    pub(crate) from: Seq,
    pub(crate) to: Seq,
}

/// The stretches that make up a session's log, in order.
pub(crate) fn stretches(
    connection: &Connection,
    pk: i64,
    shared: Seq,
    head: Seq,
) -> Result<Vec<Stretch>, StoreError> {
    let mut stretches = Vec::new();
    let mut from = Seq(1);
    if shared > Seq::ZERO {
        let failed = during("reading what a fork shares");
        let mut query = connection
            .prepare_cached("SELECT upto, base FROM inherits WHERE session = ?1 ORDER BY upto")
            .map_err(failed)?;
        let mut found = query.query([pk]).map_err(failed)?;
        while let Some(row) = found.next().map_err(failed)? {
            let to = rows::to_seq(row.get(0).map_err(failed)?);
            let session = row.get(1).map_err(failed)?;
            stretches.push(Stretch { session, from, to });
            from = to.next();
        }
    }
    stretches.push(Stretch {
        session: pk,
        from,
        to: head,
    });
    Ok(stretches)
}

/// A page of a session's log.
pub(crate) fn page(
    connection: &Connection,
    of: &Found,
    read: Read,
) -> Result<Vec<StoredEntry>, StoreError> {
    entries(connection, (of.pk, of.shared, of.head), read)
}

/// A page of the log of the session with this number, which shares and has so much.
pub(crate) fn entries(
    connection: &Connection,
    (pk, shared, head): (i64, Seq, Seq),
    read: Read,
) -> Result<Vec<StoredEntry>, StoreError> {
    let mut stretches = stretches(connection, pk, shared, head)?;
    if read.from_end {
        stretches.reverse();
    }
    let mut page = Page {
        entries: Vec::new(),
        limit: read.limit,
        bytes: 0,
    };
    let last = read.to.unwrap_or(head).min(head);
    for stretch in stretches {
        let from = stretch.from.max(read.from);
        let to = stretch.to.min(last);
        if from <= to && !page.is_full() {
            page.take(
                connection,
                Stretch {
                    from,
                    to,
                    ..stretch
                },
                read.from_end,
            )?;
        }
    }
    if read.from_end {
        page.entries.reverse();
    }
    Ok(page.entries)
}

const UPWARD: &str = "SELECT pos, id, at, digest, payload FROM entry \
                      WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos";
const DOWNWARD: &str = "SELECT pos, id, at, digest, payload FROM entry \
                        WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos DESC";

struct Page {
    entries: Vec<StoredEntry>,
    limit: usize,
    bytes: usize,
}

impl Page {
    fn is_full(&self) -> bool {
        self.entries.len() >= self.limit || self.bytes >= Read::PAGE_BYTES
    }

    fn take(
        &mut self,
        connection: &Connection,
        stretch: Stretch,
        from_end: bool,
    ) -> Result<(), StoreError> {
        let failed = during("reading entries");
        let sql = if from_end { DOWNWARD } else { UPWARD };
        let mut query = connection.prepare_cached(sql).map_err(failed)?;
        let mut found = query
            .query([
                rows::pos(stretch.session, stretch.from),
                rows::pos(stretch.session, stretch.to),
            ])
            .map_err(failed)?;
        while !self.is_full() {
            let Some(row) = found.next().map_err(failed)? else {
                break;
            };
            let entry = rows::stored(row)?;
            self.bytes += entry.payload.len();
            self.entries.push(entry);
        }
        Ok(())
    }
}

/// Entries of one session's own, from `from` on.
pub(crate) fn stored(
    connection: &Connection,
    pk: i64,
    from: Seq,
    limit: usize,
) -> Result<Vec<StoredEntry>, StoreError> {
    let mut page = Page {
        entries: Vec::new(),
        limit,
        bytes: 0,
    };
    let stretch = Stretch {
        session: pk,
        from,
        to: Seq(u64::MAX),
    };
    page.take(connection, stretch, false)?;
    Ok(page.entries)
}

/// Exactly `count` entries of one session's own, decoded.
pub(crate) fn decoded(
    connection: &Connection,
    of: &SessionRef,
    pk: i64,
    from: Seq,
    count: usize,
) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::with_capacity(count);
    let mut next = from;
    while entries.len() < count {
        let page = stored(connection, pk, next, count - entries.len())?;
        let Some(last) = page.last() else {
            break;
        };
        next = last.seq.next();
        for stored in &page {
            entries.push(stored.decode().map_err(|source| StoreError::Damaged {
                id: of.id.clone(),
                seq: stored.seq,
                source,
            })?);
        }
    }
    Ok(entries)
}
