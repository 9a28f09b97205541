//! The skip list that links the entries of a log.
//!
//! Every entry links to the one before it and to one further back: the entry whose number is
//! its own with the lowest set bit cleared. From any entry, any earlier one is reached in O(log
//! distance) steps, and appending only needs as many row ids as the head's number has bits.

use rusqlite::{Connection, OptionalExtension};
use throughline_model::Seq;
use throughline_store::StoreError;

use crate::error::during;
use crate::rows;

/// The end of a log: the number of its last entry and that entry's row id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    pub(crate) head: Seq,
    pub(crate) entry: Option<i64>,
}

/// An entry's row id and its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryLink {
    pub(crate) pk: i64,
    pub(crate) session: i64,
    pub(crate) seq: Seq,
    pub(crate) back: Option<i64>,
    pub(crate) jump: Option<i64>,
}

/// Returns the number of the entry that `seq` jumps to.
fn jump_target(seq: Seq) -> Seq {
    Seq(seq.0 & seq.0.saturating_sub(1))
}

/// Loads the link in a row, which must belong to the entry with this number.
fn load_link(connection: &Connection, pk: Option<i64>, seq: Seq) -> Result<EntryLink, StoreError> {
    let found = connection
        .prepare_cached("SELECT session, seq, back, jump FROM entry WHERE pk = ?1")
        .and_then(|mut query| {
            query
                .query_row([pk], |row| {
                    Ok(EntryLink {
                        pk: pk.unwrap_or_default(),
                        session: row.get(0)?,
                        seq: rows::seq_from_i64(row.get(1)?),
                        back: row.get(2)?,
                        jump: row.get(3)?,
                    })
                })
                .optional()
        })
        .map_err(during("following a log"))?;
    found
        .filter(|link| link.seq == seq)
        .ok_or(StoreError::MissingEntry { seq })
}

/// Finds an entry by its number, which must not be past the end.
pub(crate) fn seek(
    connection: &Connection,
    end: LogEnd,
    seq: Seq,
) -> Result<EntryLink, StoreError> {
    let mut at = load_link(connection, end.entry, end.head)?;
    while at.seq > seq {
        let jump = jump_target(at.seq);
        at = if jump >= seq {
            load_link(connection, at.jump, jump)?
        } else {
            load_link(connection, at.back, Seq(at.seq.0 - 1))?
        };
    }
    if at.seq == seq {
        Ok(at)
    } else {
        Err(StoreError::MissingEntry { seq })
    }
}

/// Loads the link of the previous entry.
pub(crate) fn load_previous(
    connection: &Connection,
    at: &EntryLink,
) -> Result<EntryLink, StoreError> {
    load_link(connection, at.back, Seq(at.seq.0.saturating_sub(1)))
}

/// Loads the links of a range of entries, both ends included, in order, as far as they exist.
pub(crate) fn load_range(
    connection: &Connection,
    end: LogEnd,
    from: Seq,
    to: Seq,
) -> Result<Vec<EntryLink>, StoreError> {
    let (from, to) = (from.max(Seq(1)), to.min(end.head));
    if from > to {
        return Ok(Vec::new());
    }
    let mut at = seek(connection, end, to)?;
    let mut links = vec![at];
    while at.seq > from {
        at = load_previous(connection, &at)?;
        links.push(at);
    }
    links.reverse();
    Ok(links)
}

/// The row ids that future entries will link back to: the head, and the entries reached by
/// clearing one set bit of its number after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JumpPointers(Vec<(Seq, i64)>);

impl LogEnd {
    /// The end of an empty log.
    pub(crate) const EMPTY: Self = Self {
        head: Seq::ZERO,
        entry: None,
    };
}

impl JumpPointers {
    /// Loads them for a log that ends at `end`.
    pub(crate) fn load(connection: &Connection, end: LogEnd) -> Result<Self, StoreError> {
        let mut anchors = Vec::new();
        let (mut pk, mut seq) = (end.entry, end.head);
        while seq > Seq::ZERO {
            let at = load_link(connection, pk, seq)?;
            anchors.push((at.seq, at.pk));
            (pk, seq) = (at.jump, jump_target(at.seq));
        }
        anchors.reverse();
        Ok(Self(anchors))
    }

    /// Returns the end of the log.
    pub(crate) fn end(&self) -> LogEnd {
        match self.0.last() {
            None => LogEnd::EMPTY,
            Some((head, pk)) => LogEnd {
                head: *head,
                entry: Some(*pk),
            },
        }
    }

    /// Returns the links of the next entry: to the one before it and to its jump target.
    pub(crate) fn next_links(&mut self) -> (Option<i64>, Option<i64>) {
        let end = self.end();
        let jump = jump_target(end.head.next());
        while self.0.last().is_some_and(|(seq, _)| *seq > jump) {
            self.0.pop();
        }
        (end.entry, self.0.last().map(|(_, pk)| *pk))
    }

    /// Adds the entry that was linked with [`next_links`](Self::next_links).
    pub(crate) fn push(&mut self, seq: Seq, pk: i64) {
        self.0.push((seq, pk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_jumps_to_its_number_with_the_lowest_bit_cleared() {
        let mut anchors = JumpPointers::default();
        for n in 1..=2_000_i64 {
            let (back, jump) = anchors.next_links();
            // Row ids are the numbers times ten, to tell them apart.
            assert_eq!(back, (n > 1).then_some((n - 1) * 10));
            let expected = n & (n - 1);
            assert_eq!(jump, (expected > 0).then_some(expected * 10), "{n}");
            anchors.push(rows::seq_from_i64(n), n * 10);
            assert!(anchors.0.len() <= 11);
        }
    }
}
