//! Parses SQLite records: the header with the column types, and the values.
//!
//! As with pages, input that is inconsistent is `None`.

use super::page_format::read_varint;

/// Maximum number of columns parsed: more than any table of a store will have.
const MAX_COLUMNS: usize = 128;

/// A record's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    /// The serial type of each column.
    types: Vec<u64>,
    /// The offset of the first column.
    start: usize,
}

impl RecordHeader {
    /// Parses the header of a record of `length` bytes, whose columns must add up to exactly
    /// that.
    pub(super) fn parse(record: &[u8], length: usize) -> Option<Self> {
        let (start, mut at) = read_varint(record)?;
        let start = usize::try_from(start).ok()?;
        if start > record.len() {
            return None;
        }
        let mut types = Vec::new();
        let mut end = start;
        while at < start {
            let (kind, taken) = read_varint(record.get(at..start)?)?;
            at += taken;
            end = end.checked_add(column_width(kind)?)?;
            types.push(kind);
            if types.len() > MAX_COLUMNS {
                return None;
            }
        }
        (end == length).then_some(Self { types, start })
    }

    /// Whether the columns have these types, one letter each; with `or_wider`, more may follow.
    ///
    /// `-` null, `i` integer, `t` text, `b` blob, `@` a blob of 16 bytes, `#` one of 32;
    /// `I` and `T` may also be null.
    pub(super) fn matches_shape(&self, shape: &str, or_wider: bool) -> bool {
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

/// Returns how many bytes a column of this serial type takes.
fn column_width(kind: u64) -> Option<usize> {
    Some(match kind {
        0 | 8 | 9 => 0,
        1..=4 => usize::try_from(kind).ok()?,
        5 => 6,
        6 | 7 => 8,
        10 | 11 => return None,
        _ => usize::try_from((kind - 12) / 2).ok()?,
    })
}

/// A row, or as much of it as was readable.
#[derive(Debug)]
pub(super) struct RawRow {
    pub(super) key: i64,
    pub(super) header: RecordHeader,
    pub(super) bytes: Vec<u8>,
}

impl RawRow {
    fn column(&self, column: usize) -> Option<(u64, &[u8])> {
        let kind = *self.header.types.get(column)?;
        let mut start = self.header.start;
        for before in self.header.types.get(..column)? {
            start = start.checked_add(column_width(*before)?)?;
        }
        let end = start.checked_add(column_width(kind)?)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_does_not_add_up_is_none() {
        // Three columns: null, the integer 5, the text "hi".
        let record = [4, 0, 1, 17, 5, b'h', b'i'];
        let header = RecordHeader::parse(&record, record.len()).unwrap();
        assert!(header.matches_shape("-it", false));
        assert!(!header.matches_shape("-i", false));
        assert!(header.matches_shape("-i", true));
        let row = RawRow {
            key: 1,
            header,
            bytes: record.to_vec(),
        };
        assert_eq!(row.integer(1), Some(5));
        assert_eq!(row.text(2), Some("hi"));
        assert_eq!(row.blob(2), None);
        assert_eq!(RecordHeader::parse(&record, record.len() + 1), None);
    }

    #[test]
    fn negative_numbers_keep_their_sign() {
        let record = [3, 1, 2, 0xff, 0xff, 0x00];
        let row = RawRow {
            key: 1,
            header: RecordHeader::parse(&record, record.len()).unwrap(),
            bytes: record.to_vec(),
        };
        assert_eq!(row.integer(0), Some(-1));
        assert_eq!(row.integer(1), Some(-256));
    }
}
