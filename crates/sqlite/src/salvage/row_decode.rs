//! Rows, as far as they matter here and can be read.

use std::str::FromStr;

use throughline_model::{
    AgentRef, ApiToken, Digest, EntryId, Key, Lineage, Seq, SessionHeader, SessionId, Timestamp,
};

use super::page_reader::PageReader;
use super::record_format::RawRow;
use super::scan::RowLocation;

/// A session's row, as far as it matters here.
#[derive(Clone, Debug)]
pub(super) struct SessionRow {
    pub(super) owner: i64,
    pub(super) birth: SessionHeader,
    pub(super) shared: u64,
    pub(super) trashed: Option<Timestamp>,
    pub(super) gone: bool,
    pub(super) head: u64,
}

/// An entry's row, as far as it can be read.
#[derive(Clone, Debug)]
pub(super) struct EntryRow {
    pub(super) seq: Seq,
    pub(super) id: EntryId,
    pub(super) at: Timestamp,
    pub(super) digest: Digest,
    pub(super) payload: Option<String>,
}

/// The session in a row of its table.
pub(super) fn decode_session(row: &RawRow) -> Option<SessionRow> {
    fn parsed<T: FromStr>(row: &RawRow, column: usize) -> Option<T> {
        row.text(column)?.parse().ok()
    }
    let count = |column| u64::try_from(row.integer(column)?).ok();
    let time = |column| Timestamp::from_microsecond(row.integer(column)?).ok();
    let text = |column| row.text(column).map(ToOwned::to_owned);
    let lineage: Lineage = serde_json::from_str(row.text(22)?).ok()?;
    let birth = SessionHeader {
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
        birth,
        shared: count(5)?,
        trashed: time(6),
        gone: row.integer(7)? != 0,
        head: count(8)?,
    })
}

/// The token in a row of its table, revoked: of a row that was found without its tree, nobody
/// can say whether a later one revoked it.
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
    /// The entry that is here.
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

    /// The number of the owner of the attachment that is here.
    pub(super) fn read_blob_owner(self, pages: &mut PageReader) -> Option<i64> {
        pages.read_local_row(self.page, self.cell)?.integer(1)
    }

    /// The attachment that is here: its owner's number, and its bytes where they are
    /// what was put.
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
