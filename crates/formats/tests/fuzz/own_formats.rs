//! Fuzz targets for our own formats: what is read and written again reads the same.

use std::fs;

use throughline_formats::{
    DocumentWriter, LogItem, LogItems, LogWriter, MessageLines, is_log, read_document, read_memory,
    read_transcript, replace_memory, write_memory,
};
use throughline_fuzz::mutate::{self, Mutation};
use throughline_fuzz::{Case, Input, Target, fuzz};
use throughline_model::{
    Body, Digest, EntryId, GENESIS, NewEntry, Role, Seq, SessionHeader, StoredEntry, Timestamp,
};

use crate::{corpus, fixtures};

fn target(name: &'static str, seeds: Vec<Vec<u8>>, mutation: Mutation) -> Target {
    let case = Case {
        name: "document".to_owned(),
        seeds,
        mutation,
    };
    Target::new(name, &corpus(), vec![case])
}

fn header() -> SessionHeader {
    SessionHeader::new("s1".parse().unwrap(), Timestamp::UNIX_EPOCH)
}

/// Creates a few chained entries.
fn entries() -> Vec<StoredEntry> {
    let new = |seq: u8, body: Option<Body>| {
        let id = EntryId::from_bytes([seq; 16]);
        match body {
            Some(body) => NewEntry::new(id, Timestamp::UNIX_EPOCH, body),
            None => NewEntry::text(id, Timestamp::UNIX_EPOCH, Role::User, "hello"),
        }
    };
    let mut previous = GENESIS;
    let entries = [
        new(1, None),
        new(2, Some(Body::Pinned { text: "é".into() })),
        new(3, Some(Body::Cleared)),
    ];
    (1..)
        .zip(entries)
        .map(|(seq, new)| {
            let stored = StoredEntry::from_new(&previous, Seq(seq), &new, None).unwrap();
            previous = stored.digest;
            stored
        })
        .collect()
}

fn head_of(entries: &[StoredEntry]) -> (Seq, Digest) {
    let last = entries.last();
    last.map_or((Seq(0), GENESIS), |entry| (entry.seq, entry.digest))
}

fn write_log(items: &[LogItem]) -> Vec<u8> {
    let mut log = Vec::new();
    for item in items {
        match item {
            LogItem::Session {
                header: birth,
                head,
                digest,
            } => {
                LogWriter::new(&mut log, birth, *head, digest).unwrap();
            }
            other => {
                // The writer needs a session first; entries are separate lines.
                let mut writer = LogWriter::new(Vec::new(), &header(), Seq(0), &GENESIS).unwrap();
                match other {
                    LogItem::Entry(entry) => writer.write_entry(entry).unwrap(),
                    LogItem::Blob(bytes) => writer.write_blob(bytes).unwrap(),
                    LogItem::Session { .. } => unreachable!("matched above"),
                }
                let lines = writer.finish().unwrap();
                let start = lines.iter().position(|byte| *byte == b'\n').unwrap() + 1;
                log.extend_from_slice(&lines[start..]);
            }
        }
    }
    log
}

/// Returns the items of a log; every non-blank line is an item or an error.
fn read_items(log: &[u8]) -> Vec<LogItem> {
    let mut reader = LogItems::new(log);
    let read: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.bytes_read(), log.len() as u64);
    let items = read.into_iter().filter_map(|(_, item)| item.ok());
    items.collect()
}

#[test]
fn log() {
    let mut all: Vec<_> = entries().into_iter().map(LogItem::Entry).collect();
    let (head, digest) = head_of(&entries());
    let session = LogItem::Session {
        header: Box::new(header()),
        head,
        digest,
    };
    all.insert(0, session);
    all.push(LogItem::Blob(b"bytes".to_vec()));
    let target = target("log", vec![write_log(&all)], mutate::json_lines);
    fuzz!(target, |input: &Input| {
        let _ = is_log(&String::from_utf8_lossy(&input.bytes));
        let read = read_items(&input.bytes);
        assert_eq!(read_items(&write_log(&read)), read);
    });
}

#[test]
fn document() {
    let (head, digest) = head_of(&entries());
    let write = |birth: &SessionHeader, head, digest: &Digest, entries: &[StoredEntry]| {
        let mut writer = DocumentWriter::new(Vec::new(), birth, head, digest).unwrap();
        for entry in entries {
            writer.write_entry(entry).unwrap();
        }
        writer.finish().unwrap()
    };
    let seed = write(&header(), head, &digest, &entries());
    let target = target("document", vec![seed], mutate::json_document);
    fuzz!(target, |input: &Input| {
        let Ok(read) = read_document(&input.bytes[..]) else {
            return;
        };
        let written = write(&read.header, read.head, &read.digest, &read.entries);
        assert_eq!(read_document(&written[..]).unwrap(), read);
    });
}

#[test]
fn messages() {
    let seed = br#"{"session":"auth","role":"human","content":"hello","at":"2026-01-02T10:00:00Z"}
{"role":"assistant","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}}],"usage":{"input_tokens":3,"output_tokens":4},"model":"m"}
{"role":"tool","tool_call_id":"c1","content":"done"}
{"role":"user","parts":[{"text":"as Gemini has it"}]}
"#;
    let target = target("messages", vec![seed.to_vec()], mutate::json_lines);
    fuzz!(target, |input: &Input| {
        let mut lines = MessageLines::new(&input.bytes[..]);
        for line in lines.by_ref() {
            if let (_, Ok(line)) = line.unwrap() {
                let body = Body::Message(line.message);
                crate::properties::assert_round_trips(&body, None);
            }
        }
        assert_eq!(lines.bytes_read(), input.bytes.len() as u64);
    });
}

#[test]
fn transcript() {
    let seed = fs::read(fixtures().join("chat_loop.md")).unwrap();
    let target = target("transcript", vec![seed], mutate::text);
    fuzz!(target, |input: &Input| {
        let _ = read_transcript(&String::from_utf8_lossy(&input.bytes));
    });
}

#[test]
fn memory() {
    let seed = "# Rules\n\n<!-- throughline:memory:start -->\n## Memory\n\n- Tests run with `make`\n  on every machine\n\n\
        ### `src/a.rs`, `b`\n\n- Never `unwrap`\n<!-- throughline:memory:end -->\nMore\n";
    let target = target("memory", vec![seed.into()], mutate::text);
    fuzz!(target, |input: &Input| {
        let document = String::from_utf8_lossy(&input.bytes);
        let Ok(lines) = read_memory(&document) else {
            return;
        };
        let section = write_memory(&lines);
        let read = |document: &str| {
            let mut lines = read_memory(document).unwrap();
            lines.sort_by(|a, b| (&a.files, &a.text).cmp(&(&b.files, &b.text)));
            lines
        };
        let mut sorted = lines;
        sorted.sort_by(|a, b| (&a.files, &a.text).cmp(&(&b.files, &b.text)));
        assert_eq!(read(&section), sorted);
        let placed = replace_memory(&document, &section).unwrap();
        assert_eq!(read(&placed), sorted);
    });
}
