//! Reads pages of a log, fetching only the rows that are returned.

use throughline_model::{Entry, Owner, Record, Seq, StoredEntry};
use throughline_store::{ReadRange, StoreError, decode_entry};

use crate::error::Fault;
use crate::rows::{self, SessionRow};
use crate::tx::Tx;

/// Reads one page of a log.
pub(crate) async fn read_page(
    tx: &Tx,
    owner: &Owner,
    found: &SessionRow,
    read: ReadRange,
) -> Result<Vec<StoredEntry>, Fault> {
    let from = read.from.max(Seq(1));
    let last = read.to.unwrap_or(found.head).min(found.head);
    if from > last || read.limit == 0 {
        return Ok(Vec::new());
    }
    let limit = u64::try_from(read.limit).unwrap_or(u64::MAX);
    let (from, last) = if read.from_end {
        (from.max(Seq(last.0.saturating_sub(limit - 1))), last)
    } else {
        (from, last.min(Seq(from.0.saturating_add(limit - 1))))
    };
    let stretches = found.log_ranges(from, last);
    let logs: Vec<i64> = stretches.iter().map(|(log, ..)| *log).collect();
    let firsts: Vec<i64> = stretches
        .iter()
        .map(|(_, from, _)| rows::seq_to_i64(*from))
        .collect();
    let lasts: Vec<i64> = stretches
        .iter()
        .map(|(.., to)| rows::seq_to_i64(*to))
        .collect();
    let order = if read.from_end { "DESC" } else { "ASC" };
    let columns = rows::ENTRY_COLUMNS;
    // Payload sizes can be summed without reading the payloads: fetch only rows that fit.
    let fits = format!(
        "(sum(octet_length(e.payload)) OVER (ORDER BY e.seq {order}) - octet_length(e.payload))
             < {}",
        ReadRange::PAGE_BYTES
    );
    let rows = if let ([log], [first], [last]) = (&logs[..], &firsts[..], &lasts[..]) {
        let sql = format!(
            "SELECT {columns}, {fits} FROM throughline.entry e
             WHERE e.owner = $1 AND e.log = $2 AND e.seq BETWEEN $3 AND $4
             ORDER BY e.seq {order}"
        );
        let sql = limit_to_page_bytes(&sql, order);
        let params = params![owner.as_str(), log, first, last];
        tx.query("reading entries", &sql, params).await?
    } else {
        let sql = format!(
            "SELECT {columns}, {fits}
             FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (log, first, last)
             JOIN throughline.entry e
                 ON e.owner = $1 AND e.log = part.log AND e.seq BETWEEN part.first AND part.last
             ORDER BY e.seq {order}"
        );
        let sql = limit_to_page_bytes(&sql, order);
        let params = params![owner.as_str(), logs, firsts, lasts];
        tx.query("reading entries", &sql, params).await?
    };
    let mut entries = rows
        .iter()
        .map(|row| rows::stored_entry_from_row(row, 0))
        .collect::<Result<Vec<_>, _>>()?;
    if read.from_end {
        entries.reverse();
    }
    refuse_gaps(&entries, from, last, read.from_end)?;
    Ok(entries)
}

fn limit_to_page_bytes(sql: &str, order: &str) -> String {
    format!(
        "SELECT seq, id, at, digest, payload FROM ({sql})
             AS p (seq, id, at, digest, payload, fits)
         WHERE fits ORDER BY seq {order}"
    )
}

/// Refuses a page with gaps. Entry numbers are dense, so a gap means a missing entry.
fn refuse_gaps(
    entries: &[StoredEntry],
    from: Seq,
    last: Seq,
    from_end: bool,
) -> Result<(), StoreError> {
    let bytes: usize = entries.iter().map(|entry| entry.payload.len()).sum();
    let is_short = bytes >= ReadRange::PAGE_BYTES;
    let count = entries.len() as u64;
    let first = match (is_short, from_end) {
        (true, true) => Seq(last.0.saturating_sub(count.saturating_sub(1))),
        _ => from,
    };
    let end = if is_short {
        Seq(first.0 + count.saturating_sub(1))
    } else {
        last
    };
    let numbers = (first.0..=end.0).map(Seq);
    let mut found = entries.iter().map(|entry| entry.seq);
    for seq in numbers {
        if found.next() != Some(seq) {
            return Err(StoreError::MissingEntry { seq });
        }
    }
    Ok(())
}

/// Reads exactly `count` entries and decodes them.
pub(crate) async fn read_decoded(
    tx: &Tx,
    owner: &Owner,
    found: &SessionRow,
    from: Seq,
    count: usize,
) -> Result<Vec<Entry>, Fault> {
    let mut entries = Vec::with_capacity(count);
    let mut next = from;
    while entries.len() < count {
        let read = ReadRange::starting_at(next, count - entries.len());
        let page = read_page(tx, owner, found, read).await?;
        let Some(last) = page.last() else {
            break;
        };
        next = last.seq.next();
        for stored in &page {
            entries.push(decode_entry(&found.id, stored)?);
        }
    }
    Ok(entries)
}

/// Folds a log into a record, from the record's head to the end of the log, and calls
/// `each` for every entry. Fails if an entry is missing.
pub(crate) async fn fold_to(
    tx: &Tx,
    owner: &Owner,
    record: &mut Record,
    found: &SessionRow,
    mut each: impl FnMut(&Record) + Send,
) -> Result<(), Fault> {
    while record.info.head < found.head {
        let next = record.info.head.next();
        for stored in read_page(tx, owner, found, ReadRange::starting_at(next, 1_000)).await? {
            record.apply(&decode_entry(&found.id, &stored)?);
            each(record);
        }
    }
    Ok(())
}
