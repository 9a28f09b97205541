//! The document format: one session as one JSON value.
//!
//! Its fields are those of a log's session line; `entries` has the entry lines, each on a
//! line of its own, so that documents are easy to read and diff.
//!
//! Invariant: as in the log, payloads are preserved byte for byte.

use std::io::{self, Read, Write};

use serde::Deserialize;
use throughline_model::{Digest, MAX_JSON_DEPTH, Seq, SessionHeader, StoredEntry};

use crate::log_objects::{
    EntryObject, FORMAT_VERSION, VersionTag, write_entry, write_session_header,
};

/// Writes one session, entry by entry.
#[derive(Debug)]
pub struct DocumentWriter<W: Write> {
    out: W,
    entries: u64,
}

impl<W: Write> DocumentWriter<W> {
    /// Starts the document.
    pub fn new(mut out: W, header: &SessionHeader, head: Seq, digest: &Digest) -> io::Result<Self> {
        write_session_header(&mut out, header, head, digest)?;
        out.write_all(br#","entries":["#)?;
        Ok(Self { out, entries: 0 })
    }

    /// Writes an entry.
    pub fn write_entry(&mut self, entry: &StoredEntry) -> io::Result<()> {
        let separator: &[u8] = if self.entries == 0 { b"\n" } else { b",\n" };
        self.out.write_all(separator)?;
        self.entries += 1;
        write_entry(&mut self.out, entry)
    }

    /// Ends the document, flushes, and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A session read from a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The session header.
    pub header: SessionHeader,
    /// The sequence number of its last entry when it was written.
    pub head: Seq,
    /// The digest of that entry.
    pub digest: Digest,
    /// Its entries.
    pub entries: Vec<StoredEntry>,
}

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// I/O error.
    #[error("the document could not be read")]
    Io(#[from] io::Error),
    /// Not JSON, or not a session document.
    #[error("not a session document")]
    InvalidShape(#[from] serde_json::Error),
    /// The JSON is not an object.
    #[error("not a JSON object")]
    NotAnObject,
    /// The document has a newer version.
    #[error("document version {0} is not supported: only version 1 can be read")]
    UnsupportedVersion(u64),
    /// An entry has no payload.
    #[error("entry {0} of the document has no payload")]
    MissingPayload(Seq),
    /// An entry is nested too deeply.
    #[error("entry {0} of the document is nested deeper than {MAX_JSON_DEPTH} levels")]
    TooDeep(Seq),
}

/// Reads one session.
///
/// Loads the whole document into memory; use the log for larger sessions.
pub fn read_document<R: Read>(mut reader: R) -> Result<Document, DocumentError> {
    #[derive(Deserialize)]
    struct RawDocument<'a> {
        throughline: u64,
        session: SessionHeader,
        head: Seq,
        digest: Digest,
        #[serde(borrow)]
        entries: Vec<EntryObject<'a>>,
    }

    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    let shape: RawDocument<'_> = match serde_json::from_slice(text) {
        Ok(shape) => shape,
        // A newer version may have another structure: report the version, not the difference.
        Err(error) => match serde_json::from_slice::<VersionTag>(text) {
            Ok(VersionTag { throughline }) if throughline != FORMAT_VERSION => {
                return Err(DocumentError::UnsupportedVersion(throughline));
            }
            _ => return Err(error.into()),
        },
    };
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(DocumentError::NotAnObject);
    }
    if shape.throughline != FORMAT_VERSION {
        return Err(DocumentError::UnsupportedVersion(shape.throughline));
    }
    let entries = shape
        .entries
        .into_iter()
        .map(|entry| {
            let seq = entry.seq();
            if entry.is_too_deep() {
                return Err(DocumentError::TooDeep(seq));
            }
            entry
                .into_stored()
                .ok_or(DocumentError::MissingPayload(seq))
        })
        .collect::<Result<_, _>>()?;
    Ok(Document {
        header: shape.session,
        head: shape.head,
        digest: shape.digest,
        entries,
    })
}

#[cfg(test)]
mod tests {
    use throughline_model::{EntryId, GENESIS, NewEntry, Role, SessionId, Timestamp};

    use super::*;

    fn header() -> SessionHeader {
        SessionHeader::new("s1".parse::<SessionId>().unwrap(), Timestamp::UNIX_EPOCH)
    }

    fn entries() -> Vec<StoredEntry> {
        let mut previous = GENESIS;
        (1..=2)
            .map(|seq| {
                let id = EntryId::from_bytes([u8::try_from(seq).unwrap(); 16]);
                let new = NewEntry::text(id, Timestamp::UNIX_EPOCH, Role::User, "hi");
                let stored = StoredEntry::from_new(&previous, Seq(seq), &new, None).unwrap();
                previous = stored.digest;
                stored
            })
            .collect()
    }

    fn render(entries: &[StoredEntry]) -> String {
        let digest = entries.last().map_or(GENESIS, |entry| entry.digest);
        let head = Seq(entries.len() as u64);
        let mut writer = DocumentWriter::new(Vec::new(), &header(), head, &digest).unwrap();
        for entry in entries {
            writer.write_entry(entry).unwrap();
        }
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn an_entry_stands_on_a_line_of_its_own() {
        let text = render(&entries());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[0].starts_with(r#"{"throughline":1,"session":{"id":"s1","#));
        assert!(lines[0].ends_with(r#","entries":["#));
        assert!(lines[1].starts_with(
            r#"{"seq":1,"id":"01010101-0101-0101-0101-010101010101","at":"1970-01-01T00:00:00.000000Z","digest":""#
        ));
        assert!(
            lines[1].ends_with(r#""payload":{"kind":"message","role":"user","content":"hi"}},"#)
        );
        assert_eq!(lines[3], "]}");
        assert!(!crate::is_log(lines[0]));
    }

    #[test]
    fn what_was_written_reads_back_and_verifies() {
        for entries in [Vec::new(), entries()] {
            let document = read_document(render(&entries).as_bytes()).unwrap();
            assert_eq!(document.header, header());
            assert_eq!(document.entries, entries);
            let end = document.entries.iter().fold(GENESIS, |previous, entry| {
                entry.verify(&previous).unwrap();
                entry.digest
            });
            assert_eq!(document.digest, end);
        }
    }

    #[test]
    fn what_is_wrong_with_a_document_is_reported() {
        let of = |text: &str| read_document(text.as_bytes()).unwrap_err();
        assert!(matches!(of(""), DocumentError::InvalidShape(_)));
        assert!(matches!(
            of(r#"{"throughline":1}"#),
            DocumentError::InvalidShape(_)
        ));
        assert!(matches!(
            of(r#"{"throughline":2,"anything":[]}"#),
            DocumentError::UnsupportedVersion(2)
        ));
        let without = render(&entries()).replace(r#""payload""#, r#""pay""#);
        assert!(matches!(
            of(&without),
            DocumentError::MissingPayload(Seq(1))
        ));
    }
}
