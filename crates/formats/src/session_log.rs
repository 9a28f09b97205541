//! The log format: sessions as they are stored, a line for each entry.
//!
//! ```json
//! {"throughline":1,"session":{"id":"s1","at":"…","lineage":{"from":"root"}},"head":1,"digest":"…"}
//! {"seq":1,"id":"…","at":"2026-11-15T10:00:00.000000Z","digest":"…","payload":{"kind":"cleared"}}
//! ```
//!
//! Several sessions may follow one another; each entry belongs to the session line
//! before it. The bytes of an attachment stand in a line of their own, once, before the
//! first entry that names them: `{"blob":"…","base64":"…"}`.
//!
//! Invariant: what is read is what was written, to the byte, and verifies if it did
//! before. Whether it does is for the reader's caller to check, against the digest in
//! the session line.

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

/// Writes sessions, one after the other.
#[derive(Debug)]
pub struct LogWriter<W: Write> {
    out: W,
}

impl<W: Write> LogWriter<W> {
    /// Starts a file with a session.
    pub fn new(out: W, birth: &SessionHeader, head: Seq, digest: &Digest) -> io::Result<Self> {
        let mut writer = Self { out };
        writer.start_session(birth, head, digest)?;
        Ok(writer)
    }

    /// Starts a further session.
    pub fn start_session(
        &mut self,
        birth: &SessionHeader,
        head: Seq,
        digest: &Digest,
    ) -> io::Result<()> {
        write_session_header(&mut self.out, birth, head, digest)?;
        self.out.write_all(b"}\n")
    }

    /// Writes an entry of the session started last.
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

    /// Flushes, and gives back what was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// What a line of a log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogItem {
    /// A session begins; the entries after it are its own.
    Session {
        /// What was known of it at the start.
        header: Box<SessionHeader>,
        /// The number of its last entry when it was written.
        head: Seq,
        /// The digest of that entry.
        digest: Digest,
    },
    /// An entry of the session.
    Entry(StoredEntry),
    /// The bytes of an attachment, which are what their digest says.
    Blob(Vec<u8>),
}

/// An attachment as a line.
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
            "the bytes are not those of attachment {blob}"
        ))),
    })
}

/// The items of a log, each with the number of its line.
///
/// Errors are as with [`MessageLines`](crate::MessageLines): the inner one is the
/// line's, the outer one the reader's. Entries after a session line that cannot be read
/// are errors too, lest they be taken for entries of the session before.
#[derive(Debug)]
pub struct LogItems<R> {
    lines: LineReader<R>,
    in_session: bool,
}

impl<R: BufRead> LogItems<R> {
    /// The items in `reader`.
    pub fn new(reader: R) -> Self {
        Self {
            lines: LineReader::new(reader),
            in_session: false,
        }
    }

    /// The same, with lines of at most `limit` bytes.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.lines.set_limit(limit);
        self
    }

    /// How many bytes have been read so far, for whoever shows progress.
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

/// Whether a file that begins with this line is a log.
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
    // Nearly every line is an entry, so that is tried first.
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
