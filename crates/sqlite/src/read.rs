//! Reads pages of a log by following skip-list links, touching only the returned rows and a few
//! on the way.

use rusqlite::{Connection, OptionalExtension, Row};
use throughline_model::{Entry, Seq, SessionId, StoredEntry};
use throughline_store::{ReadRange, StoreError, decode_entry};

use crate::error::during;
use crate::rows;
use crate::skip_list::{self, EntryLink, LogEnd};

/// An entry and its row id and links.
#[derive(Debug)]
pub(crate) struct LinkedEntry {
    pub(crate) link: EntryLink,
    pub(crate) stored: StoredEntry,
}

fn linked_entry_from_row(row: &Row<'_>) -> Result<LinkedEntry, StoreError> {
    let failed = during("reading an entry");
    Ok(LinkedEntry {
        link: EntryLink {
            pk: row.get(0).map_err(failed)?,
            session: row.get(1).map_err(failed)?,
            seq: rows::seq_from_i64(row.get(2).map_err(failed)?),
            back: row.get(3).map_err(failed)?,
            jump: row.get(4).map_err(failed)?,
        },
        stored: rows::stored_entry_from_row(row)?,
    })
}

/// Reads the entry in a row, which must have this sequence number.
fn fetch_entry(
    connection: &Connection,
    pk: Option<i64>,
    seq: Seq,
) -> Result<LinkedEntry, StoreError> {
    let failed = during("reading entries");
    let mut query = connection
        .prepare_cached(
            "SELECT pk, session, seq, back, jump, id, at, digest, payload
             FROM entry WHERE pk = ?1",
        )
        .map_err(failed)?;
    let mut found = query.query([pk]).map_err(failed)?;
    let found = found
        .next()
        .map_err(failed)?
        .map(linked_entry_from_row)
        .transpose()?;
    found
        .filter(|placed| placed.link.seq == seq)
        .ok_or(StoreError::MissingEntry { seq })
}

/// Reads a page of the log that ends at `end`.
pub(crate) fn read_page(
    connection: &Connection,
    end: LogEnd,
    read: ReadRange,
) -> Result<Vec<LinkedEntry>, StoreError> {
    let from = read.from.max(Seq(1));
    let last = read.to.unwrap_or(end.head).min(end.head);
    if from > last || read.limit == 0 {
        return Ok(Vec::new());
    }
    if read.from_end {
        read_backward(connection, end, from, last, read.limit)
    } else {
        let limit = u64::try_from(read.limit).unwrap_or(u64::MAX);
        let last = last.min(Seq(from.0.saturating_add(limit - 1)));
        read_forward(connection, end, from, last)
    }
}

/// Reads the last entries of a range.
fn read_backward(
    connection: &Connection,
    end: LogEnd,
    from: Seq,
    last: Seq,
    limit: usize,
) -> Result<Vec<LinkedEntry>, StoreError> {
    let mut entries: Vec<LinkedEntry> = Vec::new();
    let mut bytes = 0;
    let mut next = (Some(skip_list::seek(connection, end, last)?.pk), last);
    while next.1 >= from && entries.len() < limit && bytes < ReadRange::PAGE_BYTES {
        let placed = fetch_entry(connection, next.0, next.1)?;
        bytes += placed.stored.payload.len();
        next = (placed.link.back, Seq(next.1.0 - 1));
        entries.push(placed);
    }
    entries.reverse();
    Ok(entries)
}

/// Reads the first entries of a range. Links lead backward, so the row ids are collected first,
/// without reading the payloads.
fn read_forward(
    connection: &Connection,
    end: LogEnd,
    from: Seq,
    last: Seq,
) -> Result<Vec<LinkedEntry>, StoreError> {
    let links = skip_list::load_range(connection, end, from, last)?;
    let mut entries = Vec::with_capacity(links.len().min(1_024));
    let mut bytes = 0;
    for link in links {
        if bytes >= ReadRange::PAGE_BYTES {
            break;
        }
        let placed = fetch_entry(connection, Some(link.pk), link.seq)?;
        bytes += placed.stored.payload.len();
        entries.push(placed);
    }
    Ok(entries)
}

/// Reads a page of the log that ends at `end`, without the links.
pub(crate) fn read_stored(
    connection: &Connection,
    end: LogEnd,
    read: ReadRange,
) -> Result<Vec<StoredEntry>, StoreError> {
    let page = read_page(connection, end, read)?;
    Ok(page.into_iter().map(|placed| placed.stored).collect())
}

/// Reads exactly `count` entries, decoded.
pub(crate) fn read_decoded(
    connection: &Connection,
    of: &SessionId,
    end: LogEnd,
    from: Seq,
    count: usize,
) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::with_capacity(count);
    let mut next = from;
    while entries.len() < count {
        let page = read_stored(
            connection,
            end,
            ReadRange::starting_at(next, count - entries.len()),
        )?;
        let Some(last) = page.last() else {
            break;
        };
        next = last.seq.next();
        for stored in &page {
            entries.push(decode_entry(of, stored)?);
        }
    }
    Ok(entries)
}

/// Returns the end of a session's log, by the session's row id.
pub(crate) fn load_log_end(
    connection: &Connection,
    session: i64,
) -> Result<Option<LogEnd>, StoreError> {
    connection
        .prepare_cached("SELECT head, head_entry FROM session WHERE pk = ?1")
        .and_then(|mut query| {
            query
                .query_row([session], |row| {
                    Ok(LogEnd {
                        head: rows::seq_from_i64(row.get(0)?),
                        entry: row.get(1)?,
                    })
                })
                .optional()
        })
        .map_err(during("finding the end of a log"))
}
