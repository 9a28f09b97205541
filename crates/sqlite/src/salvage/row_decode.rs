//! Decodes raw rows into sessions, entries, tokens and attachments, as far as they are
//! readable.

use std::str::FromStr;

use throughline_model::{
    AgentRef, ApiToken, Digest, EntryId, Key, Lineage, Seq, SessionHeader, SessionId, Timestamp,
};

use super::page_reader::PageReader;
use super::record_format::RawRow;
use super::scan::RowLocation;

/// The columns of a session's row that the salvage needs.
#[derive(Clone, Debug)]
pub(super) struct SessionRow {
    pub(super) owner: i64,
    pub(super) header: SessionHeader,
    pub(super) shared: u64,
    pub(super) trashed: Option<Timestamp>,
    pub(super) gone: bool,
    pub(super) head: u64,
}

/// An entry's row, as far as it is readable.
#[derive(Clone, Debug)]
pub(super) struct EntryRow {
    pub(super) seq: Seq,
    pub(super) id: EntryId,
    pub(super) at: Timestamp,
    pub(super) digest: Digest,
    pub(super) payload: Option<String>,
}

/// Decodes a session row.
pub(super) fn decode_session(row: &RawRow) -> Option<SessionRow> {
    fn parsed<T: FromStr>(row: &RawRow, column: usize) -> Option<T> {
        row.text(column)?.parse().ok()
    }
    let count = |column| u64::try_from(row.integer(column)?).ok();
    let time = |column| Timestamp::from_microsecond(row.integer(column)?).ok();
    let text = |column| row.text(column).map(ToOwned::to_owned);
    let lineage: Lineage = serde_json::from_str(row.text(22)?).ok()?;
    let header = SessionHeader {
        id: parsed::<SessionId>(row, 2)?,
        at: time(11)?,
        key: parsed::<Key>(row, 3),
        lineage,
        name: parsed(row, 19),
        agent: text(25).map(|name| AgentRef {
            name,
            path: text(26),
        }),
        project: parsed(row, 23),
        workspace: text(24),
    };
    Some(SessionRow {
        owner: row.integer(1)?,
        header,
        shared: count(5)?,
        trashed: time(6),
        gone: row.integer(7)? != 0,
        head: count(8)?,
    })
}

/// Decodes a token row, as revoked: for a row found without its B-tree it is unknown whether a
/// newer version revoked it.
pub(super) fn decode_token(row: &RawRow) -> Option<ApiToken> {
    let time = |column| Timestamp::from_microsecond(row.integer(column)?).ok();
    let created_at = time(5)?;
    Some(ApiToken {
        id: row.text(0)?.parse().ok()?,
        hash: Digest::from_bytes(row.blob(1)?.try_into().ok()?),
        owner: row.text(2)?.parse().ok()?,
        role: row.text(3)?.parse().ok()?,
        label: row.text(4).map(ToOwned::to_owned),
        created_at,
        expires_at: time(6),
        revoked_at: Some(time(7).unwrap_or(created_at)),
    })
}

impl RowLocation {
    /// Reads the entry at this location.
    pub(super) fn read_entry(self, pages: &mut PageReader) -> Option<EntryRow> {
        let row = pages.read_row(self.page, self.cell)?;
        Some(EntryRow {
            seq: Seq(self.key.1),
            id: EntryId::from_bytes(row.blob(5)?.try_into().ok()?),
            at: Timestamp::from_microsecond(row.integer(6)?).ok()?,
            digest: Digest::from_bytes(row.blob(7)?.try_into().ok()?),
            payload: row.text(8).map(ToOwned::to_owned),
        })
    }

    /// Reads the owner's row id of the attachment at this location.
    pub(super) fn read_blob_owner(self, pages: &mut PageReader) -> Option<i64> {
        pages.read_local_row(self.page, self.cell)?.integer(1)
    }

    /// Reads the attachment at this location: its owner's row id, and its bytes if they match
    /// the digest.
    pub(super) fn read_blob(
        self,
        pages: &mut PageReader,
    ) -> Option<(i64, Digest, Option<Vec<u8>>)> {
        let row = pages.read_row(self.page, self.cell)?;
        let owner = row.integer(1)?;
        let digest = Digest::from_bytes(row.blob(2)?.try_into().ok()?);
        let data = row.blob(3).filter(|data| Digest::of(data) == digest);
        Some((owner, digest, data.map(<[u8]>::to_vec)))
    }
}
