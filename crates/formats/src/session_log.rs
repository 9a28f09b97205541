//! The log format: stored sessions, one line per entry.
//!
//! ```json
//! {"throughline":1,"session":{"id":"s1","at":"…","lineage":{"from":"root"}},"head":1,"digest":"…"}
//! {"seq":1,"id":"…","at":"2026-11-15T10:00:00.000000Z","digest":"…","payload":{"kind":"cleared"}}
//! ```
//!
//! A file may contain several sessions; each entry belongs to the session line before it.
//! The bytes of an attachment are on a line of their own, once, before the first entry that
//! refers to them: `{"blob":"…","base64":"…"}`.
//!
//! Invariant: reading returns exactly the bytes that were written. The caller has to verify
//! the entries against the digest in the session line.

use std::io::{self, BufRead, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use throughline_model::{Digest, Seq, SessionHeader, StoredEntry};

use crate::LineError;
use crate::error::parser_message;
use crate::line_reader::LineReader;
use crate::log_objects::{
    EntryObject, FORMAT_VERSION, SessionObject, VersionTag, write_entry, write_session_header,
};

/// Writes one or more sessions.
#[derive(Debug)]
pub struct LogWriter<W: Write> {
    out: W,
}

impl<W: Write> LogWriter<W> {
    /// Starts a file with a session.
    pub fn new(out: W, header: &SessionHeader, head: Seq, digest: &Digest) -> io::Result<Self> {
        let mut writer = Self { out };
        writer.start_session(header, head, digest)?;
        Ok(writer)
    }

    /// Starts another session.
    pub fn start_session(
        &mut self,
        header: &SessionHeader,
        head: Seq,
        digest: &Digest,
    ) -> io::Result<()> {
        write_session_header(&mut self.out, header, head, digest)?;
        self.out.write_all(b"}\n")
    }

    /// Writes an entry of the current session.
    pub fn write_entry(&mut self, entry: &StoredEntry) -> io::Result<()> {
        write_entry(&mut self.out, entry)?;
        self.out.write_all(b"\n")
    }

    /// Writes the bytes of an attachment.
    pub fn write_blob(&mut self, bytes: &[u8]) -> io::Result<()> {
        let line = BlobLine {
            blob: Digest::of(bytes),
            base64: STANDARD.encode(bytes),
        };
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")
    }

    /// Flushes, and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// An item of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogItem {
    /// The start of a session; the entries after it belong to it.
    Session {
        /// The session header.
        header: Box<SessionHeader>,
        /// The sequence number of its last entry when it was written.
        head: Seq,
        /// The digest of that entry.
        digest: Digest,
    },
    /// An entry of the session.
    Entry(StoredEntry),
    /// The bytes of an attachment, verified against their digest.
    Blob(Vec<u8>),
}

/// An attachment line.
#[derive(Serialize, Deserialize)]
struct BlobLine {
    blob: Digest,
    base64: String,
}

fn parse_blob(line: &str) -> Option<Result<LogItem, LineError>> {
    let BlobLine { blob, base64 } = serde_json::from_str(line).ok()?;
    let bytes = STANDARD.decode(base64).ok();
    Some(match bytes.filter(|bytes| Digest::of(bytes) == blob) {
        Some(bytes) => Ok(LogItem::Blob(bytes)),
        None => Err(LineError::NotALogLine(format!(
            "the bytes do not match the digest of attachment {blob}"
        ))),
    })
}

/// Iterates over the items of a log, each with its line number.
///
/// Errors are as in [`MessageLines`](crate::MessageLines): the inner error is for the line,
/// the outer one for the reader. Entries after an invalid session line are errors too, so
/// that they are not assigned to the session before.
#[derive(Debug)]
pub struct LogItems<R> {
    lines: LineReader<R>,
    in_session: bool,
}

impl<R: BufRead> LogItems<R> {
    /// Reads items from `reader`.
    pub fn new(reader: R) -> Self {
        Self {
            lines: LineReader::new(reader),
            in_session: false,
        }
    }

    /// Limits lines to `limit` bytes.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.lines.set_limit(limit);
        self
    }

    /// Returns the number of bytes read so far, for showing progress.
    pub fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }
}

impl<R: BufRead> Iterator for LogItems<R> {
    type Item = io::Result<(u64, Result<LogItem, LineError>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let in_session = &mut self.in_session;
        self.lines.next_with(|line| match parse_line(line) {
            Ok(LogItem::Entry(_)) if !*in_session => Err(LineError::MissingSession),
            Ok(blob @ LogItem::Blob(_)) => Ok(blob),
            Ok(item) => {
                *in_session = true;
                Ok(item)
            }
            Err(error) => {
                *in_session &= !has_signature(line);
                Err(error)
            }
        })
    }
}

/// Whether a file that starts with this line is a log.
pub fn is_log(first_line: &str) -> bool {
    has_signature(first_line.trim_start_matches('\u{feff}'))
}

fn has_signature(line: &str) -> bool {
    parse_version(line).is_some()
}

fn parse_version(line: &str) -> Option<u64> {
    let line = line.trim();
    let signature: VersionTag = line
        .starts_with('{')
        .then(|| serde_json::from_str(line).ok())??;
    Some(signature.throughline)
}

fn parse_line(line: &str) -> Result<LogItem, LineError> {
    // Try an entry first, since nearly every line is one.
    let not_an_entry = match serde_json::from_str::<EntryObject<'_>>(line) {
        Ok(entry) if line.trim_start().starts_with('{') => {
            if entry.is_too_deep() {
                return Err(LineError::TooDeep);
            }
            let missing = || LineError::NotALogLine("missing field `payload`".to_owned());
            return entry.into_stored().map(LogItem::Entry).ok_or_else(missing);
        }
        Ok(_) => return Err(LineError::NotAnObject),
        Err(error) => error,
    };
    if not_an_entry.is_syntax() || not_an_entry.is_eof() {
        return Err(LineError::not_json(&not_an_entry));
    }
    match parse_version(line) {
        None => parse_blob(line)
            .unwrap_or_else(|| Err(LineError::NotALogLine(parser_message(&not_an_entry)))),
        Some(FORMAT_VERSION) => {
            let SessionObject {
                session,
                head,
                digest,
            } = serde_json::from_str(line)
                .map_err(|error| LineError::NotALogLine(parser_message(&error)))?;
            Ok(LogItem::Session {
                header: Box::new(session),
                head,
                digest,
            })
        }
        Some(version) => Err(LineError::UnsupportedVersion(version)),
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
