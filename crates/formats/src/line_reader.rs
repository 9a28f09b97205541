//! Reads a file of any size line by line.
//!
//! Invariant: at most one line is in memory, up to the limit. An invalid line is an error
//! for that line only; reading ends only on an I/O error.

use std::io::{self, BufRead, Read};

use crate::LineError;

/// Default limit of a line: 256 MiB.
pub const DEFAULT_LINE_LIMIT: usize = 256 << 20;

/// Capacity of the buffer that is retained between lines.
const RETAINED_BUFFER: usize = 1 << 20;

/// The numbered, non-blank lines of a reader.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    reader: R,
    buffer: Vec<u8>,
    limit: usize,
    number: u64,
    bytes: u64,
    failed: bool,
    terminated: bool,
    include_blank: bool,
}

/// The position of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinePosition {
    /// Line number.
    pub(crate) number: u64,
    /// Byte offset of its text.
    pub(crate) offset: u64,
}

/// A line's number, and its parsed text or an error.
pub(crate) type NumberedLine<T> = (u64, Result<T, LineError>);

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            limit: DEFAULT_LINE_LIMIT,
            number: 0,
            bytes: 0,
            failed: false,
            terminated: true,
            include_blank: false,
        }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Returns blank lines too.
    pub(crate) fn include_blank(&mut self) {
        self.include_blank = true;
    }

    /// Returns the number of bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes
    }

    /// Whether the last line ended with a line break, not with the end of the file.
    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// Parses the next non-blank line with `parse`.
    pub(crate) fn next_with<T>(
        &mut self,
        parse: impl FnOnce(&str) -> Result<T, LineError>,
    ) -> Option<io::Result<NumberedLine<T>>> {
        self.next_with_position(|_, line| parse(line))
    }

    /// Like [`next_with`](Self::next_with), with the position of the line.
    pub(crate) fn next_with_position<T>(
        &mut self,
        parse: impl FnOnce(LinePosition, &str) -> Result<T, LineError>,
    ) -> Option<io::Result<NumberedLine<T>>> {
        if self.failed {
            return None;
        }
        loop {
            let mut offset = self.bytes;
            let complete = match self.read_line() {
                Ok(0) => return None,
                Ok(_) => self.buffer.len() <= self.limit,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            };
            self.number += 1;
            if !complete {
                let limit = self.limit;
                return Some(Ok((self.number, Err(LineError::TooLong { limit }))));
            }
            let mut line = self.buffer.as_slice();
            if self.number == 1 {
                let whole = line.len();
                line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
                offset += (whole - line.len()) as u64;
            }
            if !self.include_blank && line.trim_ascii().is_empty() {
                continue;
            }
            let parsed = match std::str::from_utf8(line) {
                Ok(text) => {
                    let number = self.number;
                    parse(LinePosition { number, offset }, text)
                }
                Err(error) => Err(LineError::NotUtf8 {
                    byte: error.valid_up_to() + 1,
                }),
            };
            return Some(Ok((self.number, parsed)));
        }
    }

    /// Reads one line into the buffer, without its line break; returns its length in bytes.
    ///
    /// Of a line that is too long, only enough to exceed the limit is stored.
    fn read_line(&mut self) -> io::Result<u64> {
        self.buffer.clear();
        self.buffer.shrink_to(RETAINED_BUFFER);
        // Space for the line break, which does not count.
        let most = self.limit.saturating_add(2) as u64;
        let mut taken = (&mut self.reader)
            .take(most)
            .read_until(b'\n', &mut self.buffer)? as u64;
        self.terminated = self.buffer.last() == Some(&b'\n');
        if self.terminated {
            self.buffer.pop();
            if self.buffer.last() == Some(&b'\r') {
                self.buffer.pop();
            }
        } else if taken == most {
            taken += self.reader.skip_until(b'\n')? as u64;
            self.terminated = true;
        }
        self.bytes += taken;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(bytes: &[u8], limit: usize) -> Vec<NumberedLine<String>> {
        let mut lines = LineReader::new(bytes);
        lines.set_limit(limit);
        let mut all = Vec::new();
        while let Some(line) = lines.next_with(|text| Ok(text.to_owned())) {
            all.push(line.unwrap());
        }
        assert_eq!(lines.bytes_read(), bytes.len() as u64);
        all
    }

    #[test]
    fn marks_line_ends_and_blank_lines_are_not_content() {
        assert_eq!(
            read_all(b"\xEF\xBB\xBFone\r\n\r\n  \ntwo", 9),
            [(1, Ok("one".into())), (4, Ok("two".into()))]
        );
        assert_eq!(read_all(b"", 9), []);
        assert_eq!(read_all(b"\n\n", 9), []);
    }

    #[test]
    fn a_line_is_reported_with_where_its_text_begins() {
        let bytes = b"\xEF\xBB\xBFone\r\n\n  two";
        let mut lines = LineReader::new(&bytes[..]);
        let mut places = Vec::new();
        while let Some(next) = lines.next_with_position(|at, text| Ok((at.offset, text.len()))) {
            places.push(next.unwrap().1.unwrap());
        }
        let text = |(offset, length): &(u64, usize)| {
            let start = usize::try_from(*offset).unwrap();
            &bytes[start..start + length]
        };
        let texts: Vec<&[u8]> = places.iter().map(text).collect();
        assert_eq!(texts, [&b"one"[..], b"  two"]);
    }

    #[test]
    fn bytes_that_are_no_text_spoil_their_own_line_only() {
        assert_eq!(
            read_all(b"ab\xFF\nok\n", 9),
            [
                (1, Err(LineError::NotUtf8 { byte: 3 })),
                (2, Ok("ok".into()))
            ]
        );
    }

    #[test]
    fn a_line_over_the_limit_is_skipped() {
        let too_long = || Err(LineError::TooLong { limit: 4 });
        assert_eq!(
            read_all(b"1234\r\n12345\n123456\n1234567\n1234\n12345", 4),
            [
                (1, Ok("1234".into())),
                (2, too_long()),
                (3, too_long()),
                (4, too_long()),
                (5, Ok("1234".into())),
                (6, too_long()),
            ]
        );
    }

    #[test]
    fn a_failing_reader_ends_the_lines_with_its_error() {
        struct FailingReader;
        impl Read for FailingReader {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("unplugged"))
            }
        }
        let mut lines = LineReader::new(io::BufReader::new((&b"one\ntw"[..]).chain(FailingReader)));
        let mut next = || lines.next_with(|text| Ok(text.to_owned()));
        assert_eq!(next().unwrap().unwrap(), (1, Ok("one".into())));
        assert_eq!(next().unwrap().unwrap_err().to_string(), "unplugged");
        assert!(next().is_none());
    }
}
