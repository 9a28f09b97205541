//! Reading a log: only the rows that are returned are touched, and a few on the way.

use rusqlite::{Connection, OptionalExtension, Row};
use throughline_model::{Entry, Seq, SessionId, StoredEntry};
use throughline_store::{Read, StoreError, decode};

use crate::error::during;
use crate::links::{self, End, Link};
use crate::rows;

/// An entry and its place.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) link: Link,
    pub(crate) stored: StoredEntry,
}

fn placed(row: &Row<'_>) -> Result<Placed, StoreError> {
    let failed = during("reading an entry");
    Ok(Placed {
        link: Link {
            pk: row.get(0).map_err(failed)?,
            session: row.get(1).map_err(failed)?,
            seq: rows::to_seq(row.get(2).map_err(failed)?),
            back: row.get(3).map_err(failed)?,
            jump: row.get(4).map_err(failed)?,
        },
        stored: rows::stored(row)?,
    })
}

/// The entry at a place, which must have this number.
fn fetch(connection: &Connection, pk: Option<i64>, seq: Seq) -> Result<Placed, StoreError> {
    let failed = during("reading entries");
    let mut query = connection
        .prepare_cached(
            "SELECT pk, session, seq, back, jump, id, at, digest, payload
             FROM entry WHERE pk = ?1",
        )
        .map_err(failed)?;
    let mut found = query.query([pk]).map_err(failed)?;
    let found = found.next().map_err(failed)?.map(placed).transpose()?;
    found
        .filter(|placed| placed.link.seq == seq)
        .ok_or(StoreError::Missing { seq })
}

/// A page of the log that ends here.
pub(crate) fn page(
    connection: &Connection,
    end: End,
    read: Read,
) -> Result<Vec<Placed>, StoreError> {
    let from = read.from.max(Seq(1));
    let last = read.to.unwrap_or(end.head).min(end.head);
    if from > last || read.limit == 0 {
        return Ok(Vec::new());
    }
    if read.from_end {
        backward(connection, end, from, last, read.limit)
    } else {
        let limit = u64::try_from(read.limit).unwrap_or(u64::MAX);
        let last = last.min(Seq(from.0.saturating_add(limit - 1)));
        forward(connection, end, from, last)
    }
}

/// The last entries of a stretch.
fn backward(
    connection: &Connection,
    end: End,
    from: Seq,
    last: Seq,
    limit: usize,
) -> Result<Vec<Placed>, StoreError> {
    let mut entries: Vec<Placed> = Vec::new();
    let mut bytes = 0;
    let mut next = (Some(links::seek(connection, end, last)?.pk), last);
    while next.1 >= from && entries.len() < limit && bytes < Read::PAGE_BYTES {
        let placed = fetch(connection, next.0, next.1)?;
        bytes += placed.stored.payload.len();
        next = (placed.link.back, Seq(next.1.0 - 1));
        entries.push(placed);
    }
    entries.reverse();
    Ok(entries)
}

/// The first entries of a stretch. Links lead back, so the places are gathered first,
/// without reading what is there.
fn forward(
    connection: &Connection,
    end: End,
    from: Seq,
    last: Seq,
) -> Result<Vec<Placed>, StoreError> {
    let places = links::between(connection, end, from, last)?;
    let mut entries = Vec::with_capacity(places.len().min(1_024));
    let mut bytes = 0;
    for link in places {
        if bytes >= Read::PAGE_BYTES {
            break;
        }
        let placed = fetch(connection, Some(link.pk), link.seq)?;
        bytes += placed.stored.payload.len();
        entries.push(placed);
    }
    Ok(entries)
}

/// A page of the log that ends here, without the places.
pub(crate) fn stored(
    connection: &Connection,
    end: End,
    read: Read,
) -> Result<Vec<StoredEntry>, StoreError> {
    let page = page(connection, end, read)?;
    Ok(page.into_iter().map(|placed| placed.stored).collect())
}

/// Exactly `count` entries, decoded.
pub(crate) fn decoded(
    connection: &Connection,
    of: &SessionId,
    end: End,
    from: Seq,
    count: usize,
) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::with_capacity(count);
    let mut next = from;
    while entries.len() < count {
        let page = stored(connection, end, Read::from(next, count - entries.len()))?;
        let Some(last) = page.last() else {
            break;
        };
        next = last.seq.next();
        for stored in &page {
            entries.push(decode(of, stored)?);
        }
    }
    Ok(entries)
}

/// Where the log of the session with this number ends.
pub(crate) fn end_of(connection: &Connection, session: i64) -> Result<Option<End>, StoreError> {
    connection
        .prepare_cached("SELECT head, head_entry FROM session WHERE pk = ?1")
        .and_then(|mut query| {
            query
                .query_row([session], |row| {
                    Ok(End {
                        head: rows::to_seq(row.get(0)?),
                        entry: row.get(1)?,
                    })
                })
                .optional()
        })
        .map_err(during("finding the end of a log"))
}
