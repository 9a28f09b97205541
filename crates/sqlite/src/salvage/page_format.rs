//! Parses SQLite's file format below the tables: varints, pages and cells.
//!
//! The input may be arbitrary bytes. What does not parse is `None`; nothing panics, and no
//! length that was read is trusted for an allocation.

use std::ops::Range;

/// Page type: table leaf.
const TABLE_LEAF: u8 = 0x0d;
/// Page type: index leaf.
const INDEX_LEAF: u8 = 0x0a;
/// Page type: index interior, whose rows are not repeated in the leaves.
const INDEX_INTERIOR: u8 = 0x02;

/// The kind of a page that holds rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageKind {
    Table,
    Index,
    IndexInterior,
}

/// A page that holds rows, with the offset of each.
#[derive(Debug)]
pub(super) struct RowPage {
    pub(super) kind: PageKind,
    pub(super) cells: Vec<u16>,
}

impl RowPage {
    /// Parses page `number`; `None` if it holds no rows.
    pub(super) fn parse(page: &[u8], number: u32) -> Option<Self> {
        // The first page starts with the file header.
        let start = if number == 1 { 100 } else { 0 };
        let (kind, pointers) = match *page.get(start)? {
            TABLE_LEAF => (PageKind::Table, start + 8),
            INDEX_LEAF => (PageKind::Index, start + 8),
            INDEX_INTERIOR => (PageKind::IndexInterior, start + 12),
            _ => return None,
        };
        let count = usize::from(read_u16_be(page, start + 3)?);
        let end = pointers + count * 2;
        if count == 0 || end > page.len() {
            return None;
        }
        let within = |cell: &u16| (end..page.len()).contains(&usize::from(*cell));
        let cells = (0..count)
            .filter_map(|index| read_u16_be(page, pointers + index * 2))
            .filter(within)
            .collect();
        Some(Self { kind, cells })
    }
}

/// A row in a page: its length and the location of the part that is in the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// The row id; zero in an index.
    pub(super) key: i64,
    /// The length of the whole record.
    pub(super) length: usize,
    /// The part of the record in this page.
    pub(super) local: Range<usize>,
    /// The overflow page where the record continues, or zero.
    pub(super) overflow: u32,
}

impl Cell {
    pub(super) fn parse(page: &[u8], kind: PageKind, at: usize) -> Option<Self> {
        let mut at = match kind {
            PageKind::Table | PageKind::Index => at,
            PageKind::IndexInterior => at + 4,
        };
        let (length, taken) = read_varint(page.get(at..)?)?;
        at += taken;
        let key = if kind == PageKind::Table {
            let (key, taken) = read_varint(page.get(at..)?)?;
            at += taken;
            key.cast_signed()
        } else {
            0
        };
        let length = usize::try_from(length).ok()?;
        let here = local_length(page.len(), kind, length);
        let local = at..at.checked_add(here)?;
        page.get(local.clone())?;
        let overflow = if here < length {
            read_u32_be(page, local.end)?
        } else {
            0
        };
        Some(Self {
            key,
            length,
            local,
            overflow,
        })
    }
}

/// Returns how much of a record is stored in its own page.
fn local_length(page: usize, kind: PageKind, length: usize) -> usize {
    let most = match kind {
        PageKind::Table => page - 35,
        PageKind::Index | PageKind::IndexInterior => (page - 12) * 64 / 255 - 23,
    };
    if length <= most {
        return length;
    }
    let least = (page - 12) * 32 / 255 - 23;
    let fitting = least + (length - least) % (page - 4);
    if fitting <= most { fitting } else { least }
}

/// Reads a varint of one to nine bytes; returns the value and its length.
pub(super) fn read_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for index in 0..8 {
        let byte = *bytes.get(index)?;
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    Some(((value << 8) | u64::from(*bytes.get(8)?), 9))
}

pub(super) fn read_u16_be(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

pub(super) fn read_u32_be(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::record_format::{RawRow, RecordHeader};
    use super::*;

    #[test]
    fn varints_are_read_as_they_are_written() {
        assert_eq!(read_varint(&[0x7f]), Some((127, 1)));
        assert_eq!(read_varint(&[0x81, 0x00]), Some((128, 2)));
        assert_eq!(read_varint(&[0xff; 9]), Some((u64::MAX, 9)));
        assert_eq!(read_varint(&[0xff; 8]), None);
        assert_eq!(read_varint(&[]), None);
    }

    proptest! {
        #[test]
        fn garbage_is_read_without_a_panic(
            mut page in prop::collection::vec(any::<u8>(), 512),
            kind in prop::sample::select(vec![TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR]),
        ) {
            page[0] = kind;
            if let Some(leaf) = RowPage::parse(&page, 2) {
                for at in leaf.cells {
                    if let Some(cell) = Cell::parse(&page, leaf.kind, at.into()) {
                        let local = &page[cell.local.clone()];
                        if let Some(header) = RecordHeader::parse(local, cell.length) {
                            let row = RawRow { key: 0, header, bytes: local.to_vec() };
                            for column in 0..8 {
                                let _ = (row.integer(column), row.text(column), row.blob(column));
                            }
                        }
                    }
                }
            }
        }
    }
}
