//! Passes the items that a reader finds to its sink.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throughline_model::{
    AgentRef, Attachment, Block, Body, Digest, EntryIdentity, ImportEvent, IncomingEntry,
    IncomingItem, IncomingSession, Json, MAX_JSON_DEPTH, Message, SkippedRecord, Timestamp,
};

use super::{ReadError, RecordSink, SourceFormat};
use crate::error::parser_message;

/// The source being read and the sink for its items.
pub(super) struct Emitter<'a> {
    pub(super) format: SourceFormat,
    pub(super) path: &'a Path,
    sink: RecordSink<'a>,
    stopped: bool,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(format: SourceFormat, path: &'a Path, sink: RecordSink<'a>) -> Self {
        Self {
            format,
            path,
            sink,
            stopped: false,
        }
    }

    /// Emits an item. Entries that are nested too deeply are reported as damaged instead.
    pub(super) fn emit(&mut self, incoming: IncomingItem) {
        if let IncomingItem::Entry(entry) = &incoming
            && let ImportEvent::Body(body) = &entry.event
            && body.is_too_deep()
        {
            let reason = format!("nested deeper than {MAX_JSON_DEPTH} levels");
            return self.emit_damaged(entry.position, reason);
        }
        if !self.stopped {
            self.stopped = !(self.sink)(incoming);
        }
    }

    /// Fails once the sink has stopped the reading.
    pub(super) fn check_stopped(&self) -> Result<(), ReadError> {
        if self.stopped {
            return Err(ReadError::Stopped);
        }
        Ok(())
    }

    /// Creates a session of this source, to be emitted with [`emit_session`](Self::emit_session).
    pub(super) fn new_session(&self, id: impl Into<String>) -> IncomingSession {
        IncomingSession {
            source_system: Some(self.format.name().to_owned()),
            id: id.into(),
            agent: Some(AgentRef {
                name: self.format.name().to_owned(),
                path: None,
            }),
            ..IncomingSession::default()
        }
    }

    pub(super) fn emit_session(&mut self, session: IncomingSession) {
        self.emit(IncomingItem::Session(Box::new(session)));
    }

    /// Emits a message.
    pub(super) fn emit_message(
        &mut self,
        place: u64,
        id: Option<String>,
        at: Option<Timestamp>,
        message: Message,
    ) {
        let entry = IncomingEntry::message(place, id, at, message);
        self.emit(IncomingItem::Entry(Box::new(entry)));
    }

    /// Emits an event.
    pub(super) fn emit_event(
        &mut self,
        place: u64,
        identity: EntryIdentity,
        at: Option<Timestamp>,
        what: ImportEvent,
    ) {
        self.emit(IncomingItem::Entry(Box::new(IncomingEntry {
            identity,
            at,
            author: None,
            event: what,
            position: place,
        })));
    }

    /// Emits an entry that is identified by `word`.
    pub(super) fn emit_body(&mut self, place: u64, word: &str, at: Option<Timestamp>, body: Body) {
        let identity = EntryIdentity::Position(word.to_owned());
        self.emit_event(place, identity, at, ImportEvent::Body(body));
    }

    /// Emits a title.
    pub(super) fn emit_title(
        &mut self,
        place: u64,
        word: &str,
        at: Option<Timestamp>,
        title: &str,
        by_person: bool,
    ) {
        let title = title.trim();
        if title.is_empty() {
            return;
        }
        let what = ImportEvent::Titled {
            title: title.to_owned(),
            by_person,
        };
        self.emit_event(place, EntryIdentity::Position(word.to_owned()), at, what);
    }

    /// Emits an unknown record, stored as it is.
    pub(super) fn emit_foreign(
        &mut self,
        place: u64,
        id: Option<String>,
        at: Option<Timestamp>,
        record: &str,
    ) {
        let data = match Json::parse(record.trim()) {
            Ok(data) => data,
            Err(error) => {
                return self.emit_damaged(place, format!("not JSON: {}", parser_message(&error)));
            }
        };
        let identity = id.map_or_else(
            || EntryIdentity::Position(place.to_string()),
            EntryIdentity::External,
        );
        let from = self.format.name().to_owned();
        let what = ImportEvent::Body(Body::Foreign { from, data });
        self.emit_event(place, identity, at, what);
    }

    /// Reports a record as skipped.
    pub(super) fn emit_skipped(&mut self, place: u64, what: impl Into<String>) {
        self.emit(IncomingItem::Skipped(SkippedRecord {
            position: place,
            description: what.into(),
            damaged: false,
        }));
    }

    /// Reports a record as damaged.
    pub(super) fn emit_damaged(&mut self, place: u64, what: impl Into<String>) {
        self.emit(IncomingItem::Skipped(SkippedRecord {
            position: place,
            description: what.into(),
            damaged: true,
        }));
    }

    /// Turns a base64 file into an attachment, and emits its bytes first.
    pub(super) fn attach_base64(
        &mut self,
        media_type: &str,
        base64: &str,
        name: Option<&str>,
    ) -> Option<Block> {
        let bytes = STANDARD.decode(base64.trim()).ok()?;
        Some(self.attach_bytes(media_type, bytes, name))
    }

    /// Like [`attach_base64`](Self::attach_base64), for bytes.
    pub(super) fn attach_bytes(
        &mut self,
        media_type: &str,
        bytes: Vec<u8>,
        name: Option<&str>,
    ) -> Block {
        let attachment = Attachment {
            blob: Digest::of(&bytes),
            media_type: media_type.to_owned(),
            bytes: bytes.len() as u64,
            name: name.map(ToOwned::to_owned),
        };
        self.emit(IncomingItem::Blob(bytes));
        Block::Attachment(attachment)
    }

    /// Like [`attach_base64`](Self::attach_base64), for a `data:` URL.
    pub(super) fn attach_data_url(&mut self, url: &str, name: Option<&str>) -> Option<Block> {
        let rest = url.strip_prefix("data:")?;
        let (head, data) = rest.split_once(',')?;
        let media_type = head.strip_suffix(";base64")?;
        let media_type = media_type.split(';').next().unwrap_or(media_type);
        self.attach_base64(media_type, data, name)
    }
}
