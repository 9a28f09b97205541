//! The file format below the tables: varints, cells and records.
//!
//! Everything here takes bytes that may be anything. What does not parse is `None`;
//! nothing panics, and nothing is allocated on the word of a length that was read.

use std::ops::Range;

/// A page of a table's rows.
const TABLE_LEAF: u8 = 0x0d;
/// A page of an index's rows.
const INDEX_LEAF: u8 = 0x0a;
/// A page within an index, whose rows are not repeated in the leaves.
const INDEX_INTERIOR: u8 = 0x02;

/// The most columns a row is looked at with: more than any table here will have.
const MOST_COLUMNS: usize = 128;

/// What a page holds, if it holds rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Table,
    Index,
    IndexInterior,
}

/// A page that holds rows, and where each of them starts.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) kind: Kind,
    pub(super) cells: Vec<u16>,
}

impl Leaf {
    /// Looks at page `number`.
    pub(super) fn parse(page: &[u8], number: u32) -> Option<Self> {
        // The first page starts with the file's own header.
        let start = if number == 1 { 100 } else { 0 };
        let (kind, pointers) = match *page.get(start)? {
            TABLE_LEAF => (Kind::Table, start + 8),
            INDEX_LEAF => (Kind::Index, start + 8),
            INDEX_INTERIOR => (Kind::IndexInterior, start + 12),
            _ => return None,
        };
        let count = usize::from(big_u16(page, start + 3)?);
        let end = pointers + count * 2;
        if count == 0 || end > page.len() {
            return None;
        }
        let within = |cell: &u16| (end..page.len()).contains(&usize::from(*cell));
        let cells = (0..count)
            .filter_map(|index| big_u16(page, pointers + index * 2))
            .filter(within)
            .collect();
        Some(Self { kind, cells })
    }
}

/// A row in a page: how long it is, and where the part of it that is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// The row's number; zero in an index.
    pub(super) key: i64,
    /// How long the whole record is.
    pub(super) length: usize,
    /// The part of it in this page.
    pub(super) local: Range<usize>,
    /// The page where it goes on, or zero.
    pub(super) overflow: u32,
}

impl Cell {
    pub(super) fn parse(page: &[u8], kind: Kind, at: usize) -> Option<Self> {
        let mut at = match kind {
            Kind::Table | Kind::Index => at,
            Kind::IndexInterior => at + 4,
        };
        let (length, taken) = varint(page.get(at..)?)?;
        at += taken;
        let key = if kind == Kind::Table {
            let (key, taken) = varint(page.get(at..)?)?;
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
            big_u32(page, local.end)?
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

/// How much of a record is in its own page.
fn local_length(page: usize, kind: Kind, length: usize) -> usize {
    let most = match kind {
        Kind::Table => page - 35,
        Kind::Index | Kind::IndexInterior => (page - 12) * 64 / 255 - 23,
    };
    if length <= most {
        return length;
    }
    let least = (page - 12) * 32 / 255 - 23;
    let fitting = least + (length - least) % (page - 4);
    if fitting <= most { fitting } else { least }
}

/// What a record says of its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The type of each column.
    types: Vec<u64>,
    /// Where the first column starts.
    start: usize,
}

impl Header {
    /// Reads the header of a record of `length` bytes, which must add up exactly.
    pub(super) fn parse(record: &[u8], length: usize) -> Option<Self> {
        let (start, mut at) = varint(record)?;
        let start = usize::try_from(start).ok()?;
        if start > record.len() {
            return None;
        }
        let mut types = Vec::new();
        let mut end = start;
        while at < start {
            let (kind, taken) = varint(record.get(at..start)?)?;
            at += taken;
            end = end.checked_add(width(kind)?)?;
            types.push(kind);
            if types.len() > MOST_COLUMNS {
                return None;
            }
        }
        (end == length).then_some(Self { types, start })
    }

    /// Whether the columns are of these types, one letter each; more columns may follow.
    ///
    /// `-` null, `i` integer, `t` text, `b` blob, `@` a blob of 16 bytes, `#` one of 32;
    /// `I` and `T` may also be null.
    pub(super) fn is(&self, shape: &str, or_wider: bool) -> bool {
        let fits = if or_wider {
            self.types.len() >= shape.len()
        } else {
            self.types.len() == shape.len()
        };
        let integer = |kind| matches!(kind, 1..=6 | 8 | 9);
        let text = |kind| kind >= 13 && kind % 2 == 1;
        fits && shape
            .bytes()
            .zip(&self.types)
            .all(|(letter, kind)| match letter {
                b'-' => *kind == 0,
                b'i' => integer(*kind),
                b'I' => *kind == 0 || integer(*kind),
                b't' => text(*kind),
                b'T' => *kind == 0 || text(*kind),
                b'b' => *kind >= 12 && kind % 2 == 0,
                b'@' => *kind == 12 + 2 * 16,
                b'#' => *kind == 12 + 2 * 32,
                _ => false,
            })
    }
}

/// How many bytes a column of this type takes.
fn width(kind: u64) -> Option<usize> {
    Some(match kind {
        0 | 8 | 9 => 0,
        1..=4 => usize::try_from(kind).ok()?,
        5 => 6,
        6 | 7 => 8,
        10 | 11 => return None,
        _ => usize::try_from((kind - 12) / 2).ok()?,
    })
}

/// A row, or as much of it as could be read.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: i64,
    pub(super) header: Header,
    pub(super) bytes: Vec<u8>,
}

impl Row {
    fn column(&self, column: usize) -> Option<(u64, &[u8])> {
        let kind = *self.header.types.get(column)?;
        let mut start = self.header.start;
        for before in self.header.types.get(..column)? {
            start = start.checked_add(width(*before)?)?;
        }
        let end = start.checked_add(width(kind)?)?;
        Some((kind, self.bytes.get(start..end)?))
    }

    pub(super) fn integer(&self, column: usize) -> Option<i64> {
        let (kind, bytes) = self.column(column)?;
        match kind {
            8 => Some(0),
            9 => Some(1),
            1..=6 => {
                let negative = *bytes.first()? >= 0x80;
                let start = if negative { -1 } else { 0 };
                let value = bytes
                    .iter()
                    .fold(start, |value: i64, byte| (value << 8) | i64::from(*byte));
                Some(value)
            }
            _ => None,
        }
    }

    pub(super) fn text(&self, column: usize) -> Option<&str> {
        match self.column(column)? {
            (kind, bytes) if kind >= 13 && kind % 2 == 1 => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub(super) fn blob(&self, column: usize) -> Option<&[u8]> {
        match self.column(column)? {
            (kind, bytes) if kind >= 12 && kind % 2 == 0 => Some(bytes),
            _ => None,
        }
    }
}

/// A number of one to nine bytes, and how many it took.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
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

pub(super) fn big_u16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

pub(super) fn big_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn varints_are_read_as_they_are_written() {
        assert_eq!(varint(&[0x7f]), Some((127, 1)));
        assert_eq!(varint(&[0x81, 0x00]), Some((128, 2)));
        assert_eq!(varint(&[0xff; 9]), Some((u64::MAX, 9)));
        assert_eq!(varint(&[0xff; 8]), None);
        assert_eq!(varint(&[]), None);
    }

    #[test]
    fn a_record_that_does_not_add_up_is_none() {
        // Three columns: null, the integer 5, the text "hi".
        let record = [4, 0, 1, 17, 5, b'h', b'i'];
        let header = Header::parse(&record, record.len()).unwrap();
        assert!(header.is("-it", false));
        assert!(!header.is("-i", false));
        assert!(header.is("-i", true));
        let row = Row {
            key: 1,
            header,
            bytes: record.to_vec(),
        };
        assert_eq!(row.integer(1), Some(5));
        assert_eq!(row.text(2), Some("hi"));
        assert_eq!(row.blob(2), None);
        assert_eq!(Header::parse(&record, record.len() + 1), None);
    }

    #[test]
    fn negative_numbers_keep_their_sign() {
        let record = [3, 1, 2, 0xff, 0xff, 0x00];
        let row = Row {
            key: 1,
            header: Header::parse(&record, record.len()).unwrap(),
            bytes: record.to_vec(),
        };
        assert_eq!(row.integer(0), Some(-1));
        assert_eq!(row.integer(1), Some(-256));
    }

    proptest! {
        #[test]
        fn garbage_is_read_without_a_panic(
            mut page in prop::collection::vec(any::<u8>(), 512),
            kind in prop::sample::select(vec![TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR]),
        ) {
            page[0] = kind;
            if let Some(leaf) = Leaf::parse(&page, 2) {
                for at in leaf.cells {
                    if let Some(cell) = Cell::parse(&page, leaf.kind, at.into()) {
                        let local = &page[cell.local.clone()];
                        if let Some(header) = Header::parse(local, cell.length) {
                            let row = Row { key: 0, header, bytes: local.to_vec() };
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
