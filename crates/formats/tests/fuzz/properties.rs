//! Properties that hold for every source, whatever it contains.

use std::collections::HashSet;
use std::path::Path;

use throughline_formats::{ReadError, SourceFormat, read_source};
use throughline_model::{
    Body, Content, Digest, EntryId, GENESIS, ImportEvent, IncomingItem, Seq, StoredEntry,
    Timestamp, encode_payload,
};

/// Reads a source. If it cannot be read at all, the error must name it.
pub(crate) fn read(agent: SourceFormat, path: &Path) -> Option<Vec<IncomingItem>> {
    let mut output = Vec::new();
    let read = read_source(agent, path, None, &mut |incoming| {
        output.push(incoming);
        true
    });
    match read {
        Ok(_) => Some(output),
        Err(error @ (ReadError::Io { .. } | ReadError::WrongFormat { .. })) => {
            assert!(error.to_string().contains(path.to_str().unwrap()));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Reads a source and checks everything that was emitted.
pub(crate) fn check(agent: SourceFormat, path: &Path) -> Option<Vec<IncomingItem>> {
    let _ = SourceFormat::detect(path);
    let output = read(agent, path);
    assert_eq!(
        output,
        read(agent, path),
        "reading it again tells something else"
    );
    let output = output?;
    let mut blobs = HashSet::new();
    let mut within = false;
    for incoming in &output {
        match incoming {
            IncomingItem::Session(_) => within = true,
            IncomingItem::Blob(bytes) => {
                blobs.insert(Digest::of(bytes));
            }
            IncomingItem::Entry(entry) => {
                assert!(within, "an entry before any session: {entry:?}");
                if let ImportEvent::Body(body) = &entry.event {
                    assert_round_trips(body, entry.author.as_deref());
                    if let Body::Message(message) = body {
                        assert_blobs_precede(&message.content, &blobs);
                    }
                }
            }
            IncomingItem::Skipped(passed) => assert!(!passed.description.is_empty()),
        }
    }
    Some(output)
}

/// Checks that an entry can be stored and reads back the same.
pub(crate) fn assert_round_trips(body: &Body, author: Option<&str>) {
    let payload = encode_payload(body, author, None, None).expect("it can be encoded");
    let id = EntryId::from_bytes([1; 16]);
    let hash = Digest::of(payload.as_bytes());
    let at = Timestamp::UNIX_EPOCH;
    let stored = StoredEntry::from_payload(&GENESIS, Seq(1), id, at, payload, &hash);
    let decoded = stored.decode().expect("what was encoded can be decoded");
    assert_eq!(&decoded.body, body);
    assert_eq!(decoded.author.as_deref(), author);
}

/// Checks that the bytes of every attachment came before it.
fn assert_blobs_precede(content: &Content, blobs: &HashSet<Digest>) {
    for file in content.attachments() {
        assert!(blobs.contains(&file.blob), "{file:?} has no bytes");
    }
}

/// Checks that every line that is not JSON is reported as damaged, with its number.
pub(crate) fn assert_garbage_reported(bytes: &[u8], output: &[IncomingItem]) {
    let places: HashSet<u64> = output
        .iter()
        .filter_map(|incoming| match incoming {
            IncomingItem::Skipped(passed) => Some(passed.position),
            _ => None,
        })
        .collect();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if line.starts_with(b"garbage") {
            assert!(
                places.contains(&number),
                "line {number} was passed over unsaid"
            );
        }
    }
}
