//! Message lines: a file with one message per line.
//!
//! Invariant: memory use depends on the longest line, not on the size of the file.

use std::io::{self, BufRead};

use crate::line_reader::LineReader;
use crate::{LineError, MessageLine, parse_message};

/// Iterates over the messages of a file, each with its line number.
///
/// An invalid line is an inner error, and reading continues with the next one; an I/O error
/// is the outer error and the last item.
///
/// ```
/// # use throughline_formats::MessageLines;
/// let file = &b"{\"role\":\"user\",\"content\":\"hi\"}\nnonsense\n"[..];
/// for line in MessageLines::new(file) {
///     let (number, message) = line?;
///     assert_eq!(message.is_ok(), number == 1);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct MessageLines<R>(LineReader<R>);

impl<R: BufRead> MessageLines<R> {
    /// Reads messages from `reader`.
    pub fn new(reader: R) -> Self {
        Self(LineReader::new(reader))
    }

    /// Limits lines to `limit` bytes.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.0.set_limit(limit);
        self
    }

    /// Returns the number of bytes read so far, for showing progress.
    pub fn bytes_read(&self) -> u64 {
        self.0.bytes_read()
    }
}

impl<R: BufRead> Iterator for MessageLines<R> {
    type Item = io::Result<(u64, Result<MessageLine, LineError>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_with(parse_message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_line_does_not_stop_the_rest() {
        let file = "{\"role\":\"user\",\"content\":\"one\"}\n\n{\"role\":\n{\"role\":\"ai\",\"content\":\"two\"}";
        let mut lines = MessageLines::new(file.as_bytes());
        let mut seen = Vec::new();
        for line in &mut lines {
            let (number, message) = line.unwrap();
            seen.push((
                number,
                message.map(|m| m.message.content.to_text().into_owned()),
            ));
        }
        assert_eq!(seen[0], (1, Ok("one".into())));
        assert!(matches!(seen[1], (3, Err(LineError::NotJson { .. }))));
        assert_eq!(seen[2], (4, Ok("two".into())));
        assert_eq!(lines.bytes_read(), file.len() as u64);
    }
}
