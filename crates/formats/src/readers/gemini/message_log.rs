//! Indexes the messages of a session by their positions in its file.
//!
//! Invariant: only positions are held in memory; the text of messages stays in the file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::Digest;

use super::super::emitter::Emitter;
use super::super::message_content::decode;
use crate::json_members;
use crate::surrogate::replace_lone_surrogates;

/// Metadata of the session.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) session_id: Option<String>,
    pub(super) start_time: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) directories: Option<Vec<String>>,
    pub(super) summary: Option<String>,
}

/// The text that positions refer to.
pub(super) enum SourceText {
    /// A file, which may be large.
    File(FileWindow),
    /// A document that is in memory.
    Whole(String),
}

/// A buffered section of a file. Most messages are read in file order, so the next one is
/// usually in the buffer.
pub(super) struct FileWindow {
    file: File,
    start: u64,
    bytes: Vec<u8>,
}

impl FileWindow {
    /// Approximate number of bytes to read at a time.
    const READ_AHEAD: u64 = 256 * 1024;

    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            start: 0,
            bytes: Vec::new(),
        }
    }

    fn read_range(&mut self, at: &Range<u64>) -> io::Result<&[u8]> {
        if at.start < self.start || at.end > self.start + self.bytes.len() as u64 {
            let wanted = (at.end - at.start).max(Self::READ_AHEAD);
            self.start = self.file.seek(SeekFrom::Start(at.start))?;
            self.bytes.clear();
            self.bytes.shrink_to(to_offset(Self::READ_AHEAD)?);
            self.bytes.reserve(to_offset(wanted)?);
            (&mut self.file).take(wanted).read_to_end(&mut self.bytes)?;
        }
        let stretch = to_offset(at.start - self.start)?..to_offset(at.end - self.start)?;
        self.bytes.get(stretch).ok_or_else(truncated_error)
    }
}

fn to_offset(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(io::Error::other)
}

fn truncated_error() -> io::Error {
    io::Error::other("the text is shorter than it was")
}

impl SourceText {
    /// Returns the text of a range.
    pub(super) fn read_text(&mut self, at: &Range<u64>) -> io::Result<Cow<'_, str>> {
        match self {
            Self::File(window) => {
                let text = std::str::from_utf8(window.read_range(at)?).map_err(io::Error::other)?;
                Ok(replace_lone_surrogates(text).map_or(Cow::Borrowed(text), Cow::Owned))
            }
            Self::Whole(text) => {
                let stretch = text.get(to_offset(at.start)?..to_offset(at.end)?);
                stretch.map(Cow::Borrowed).ok_or_else(truncated_error)
            }
        }
    }
}

/// The messages of a session and their rewinds, in order.
#[derive(Default)]
pub(super) struct MessageLog {
    pub(super) metadata: Metadata,
    pub(super) messages: Vec<MessagePosition>,
    by_id: HashMap<IdHash, usize>,
    pub(super) events: Vec<Event>,
    /// Indexes of the messages in effect.
    current: Vec<usize>,
}

/// A message: its first position, and its latest version.
pub(super) struct MessagePosition {
    pub(super) place: u64,
    pub(super) at: Range<u64>,
    is_current: bool,
}

pub(super) enum Event {
    /// The message with this index.
    Message(usize),
    /// A rewind to the message with this index, or to the start.
    Rewind(u64, Option<usize>),
}

/// A hash of an id, to save memory.
#[derive(PartialEq, Eq, Hash)]
struct IdHash([u8; 16]);

impl IdHash {
    fn of(id: &str) -> Self {
        let mut name = [0; 16];
        name.copy_from_slice(&Digest::of(id.as_bytes()).as_bytes()[..16]);
        Self(name)
    }
}

impl MessageLog {
    /// Creates a log without messages.
    pub(super) fn new(metadata: Metadata) -> Self {
        Self {
            metadata,
            ..Self::default()
        }
    }

    /// Adds a record, whose text starts at `offset`.
    pub(super) fn add_record(
        &mut self,
        emitter: &mut Emitter<'_>,
        place: u64,
        offset: u64,
        text: &str,
    ) -> Result<(), String> {
        #[derive(Deserialize)]
        struct RawRecord<'a> {
            #[serde(borrow, rename = "$set")]
            set: Option<&'a RawValue>,
            #[serde(rename = "$rewindTo")]
            rewind: Option<String>,
            #[serde(borrow, rename = "sessionId")]
            session: Option<&'a RawValue>,
            #[serde(borrow, rename = "type")]
            r#type: Option<&'a RawValue>,
            id: Option<String>,
        }
        let operator: RawRecord<'_> = json_members::parse_object(text.trim_start())?;
        if let Some(set) = operator.set {
            return self.apply_set(place, offset, text, set);
        }
        if let Some(to) = operator.rewind {
            self.rewind(place, &to);
            return Ok(());
        }
        if operator.r#type.is_none() && operator.session.is_some() {
            self.metadata = serde_json::from_str(text).map_err(|error| error.to_string())?;
            return Ok(());
        }
        if operator.r#type.is_none() {
            emitter.emit_skipped(place, "record of unknown type");
            return Ok(());
        }
        let id = operator.id.unwrap_or_else(|| format!("#{place}"));
        self.add_message(place, &id, offset..offset + text.len() as u64);
        Ok(())
    }

    fn add_message(&mut self, place: u64, id: &str, at: Range<u64>) {
        let next = self.messages.len();
        let index = *self.by_id.entry(IdHash::of(id)).or_insert(next);
        if index == next {
            let counts = false;
            self.messages.push(MessagePosition {
                place,
                at,
                is_current: counts,
            });
            self.events.push(Event::Message(index));
        } else {
            self.messages[index].at = at;
        }
        let written = &mut self.messages[index];
        if !written.is_current {
            written.is_current = true;
            self.current.push(index);
        }
    }

    fn rewind(&mut self, place: u64, to: &str) {
        let to = self.by_id.get(&IdHash::of(to));
        let kept = to.and_then(|to| self.current.iter().position(|index| index == to));
        self.truncate_to(place, kept.unwrap_or(0));
    }

    /// Truncates the messages in effect to the first `kept`.
    fn truncate_to(&mut self, place: u64, kept: usize) {
        for index in self.current.drain(kept..) {
            self.messages[index].is_current = false;
        }
        let last = self.current.last().copied();
        self.events.push(Event::Rewind(place, last));
    }

    fn apply_set(
        &mut self,
        place: u64,
        offset: u64,
        line: &str,
        set: &RawValue,
    ) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Messages<'a> {
            #[serde(borrow)]
            messages: Option<Vec<&'a RawValue>>,
        }
        #[derive(Deserialize)]
        struct Identified {
            id: Option<String>,
        }
        let wrong = |error: serde_json::Error| error.to_string();
        let head: Metadata = serde_json::from_str(set.get()).map_err(wrong)?;
        self.metadata.summary = head.summary.or_else(|| self.metadata.summary.take());
        self.metadata.directories = head
            .directories
            .or_else(|| self.metadata.directories.take());
        let messages: Messages<'_> = serde_json::from_str(set.get()).map_err(wrong)?;
        let Some(messages) = messages.messages else {
            return Ok(());
        };
        let ids: Vec<String> = messages
            .iter()
            .enumerate()
            .map(|(index, raw)| {
                let named: Option<Identified> = decode(Some(raw));
                let own = named.and_then(|named| named.id);
                own.unwrap_or_else(|| format!("#{place}.{index}"))
            })
            .collect();
        // The common prefix stays; the rest is rewound and emitted again.
        let known = ids.iter().map(|id| self.by_id.get(&IdHash::of(id)));
        let both = self.current.iter().zip(known);
        let same = both.take_while(|(here, there)| Some(*here) == *there);
        let same = same.count();
        if same < self.current.len() {
            self.truncate_to(place, same);
        }
        for (raw, id) in messages.iter().zip(&ids) {
            let start = offset + offset_within(line, raw.get());
            self.add_message(place, id, start..start + raw.get().len() as u64);
        }
        Ok(())
    }
}

/// Returns the offset of a part of a text.
pub(super) fn offset_within(text: &str, part: &str) -> u64 {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize) as u64
}
