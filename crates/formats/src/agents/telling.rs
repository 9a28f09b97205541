//! How a reader tells what it finds.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throughline_model::{
    AgentRef, Attachment, Block, Body, Digest, Happened, Identity, Incoming, IncomingEntry,
    IncomingSession, Json, MAX_JSON_DEPTH, Message, Passed, Timestamp,
};

use super::{Agent, Listener, ReadError};
use crate::error::reason;

/// Where a reader is, and who listens.
pub(super) struct Telling<'a> {
    pub(super) agent: Agent,
    pub(super) path: &'a Path,
    listener: Listener<'a>,
    stopped: bool,
}

impl<'a> Telling<'a> {
    pub(super) fn new(agent: Agent, path: &'a Path, listener: Listener<'a>) -> Self {
        Self {
            agent,
            path,
            listener,
            stopped: false,
        }
    }

    /// Tells anything, but for entries that are nested too deeply: those are reported as
    /// damaged.
    pub(super) fn tell(&mut self, incoming: Incoming) {
        if let Incoming::Entry(entry) = &incoming
            && let Happened::Body(body) = &entry.what
            && body.is_too_deep()
        {
            let reason = format!("nested deeper than {MAX_JSON_DEPTH} levels");
            return self.damaged(entry.place, reason);
        }
        if !self.stopped {
            self.stopped = !(self.listener)(incoming);
        }
    }

    /// An error once whoever listens has heard enough.
    pub(super) fn go_on(&self) -> Result<(), ReadError> {
        if self.stopped {
            return Err(ReadError::Stopped);
        }
        Ok(())
    }

    /// A session of this agent, to be told with [`session`](Self::session).
    pub(super) fn found(&self, id: impl Into<String>) -> IncomingSession {
        IncomingSession {
            from: Some(self.agent.name().to_owned()),
            id: id.into(),
            agent: Some(AgentRef {
                name: self.agent.name().to_owned(),
                path: None,
            }),
            ..IncomingSession::default()
        }
    }

    pub(super) fn session(&mut self, session: IncomingSession) {
        self.tell(Incoming::Session(Box::new(session)));
    }

    /// A message.
    pub(super) fn message(
        &mut self,
        place: u64,
        id: Option<String>,
        at: Option<Timestamp>,
        message: Message,
    ) {
        let entry = IncomingEntry::message(place, id, at, message);
        self.tell(Incoming::Entry(Box::new(entry)));
    }

    /// Something else that happened.
    pub(super) fn happened(
        &mut self,
        place: u64,
        identity: Identity,
        at: Option<Timestamp>,
        what: Happened,
    ) {
        self.tell(Incoming::Entry(Box::new(IncomingEntry {
            identity,
            at,
            author: None,
            what,
            place,
        })));
    }

    /// Something else that happened, recognised by a word.
    pub(super) fn body(&mut self, place: u64, word: &str, at: Option<Timestamp>, body: Body) {
        let identity = Identity::Place(word.to_owned());
        self.happened(place, identity, at, Happened::Body(body));
    }

    /// A title.
    pub(super) fn titled(
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
        let what = Happened::Titled {
            title: title.to_owned(),
            by_person,
        };
        self.happened(place, Identity::Place(word.to_owned()), at, what);
    }

    /// A record that means nothing here, kept as it is.
    pub(super) fn foreign(
        &mut self,
        place: u64,
        id: Option<String>,
        at: Option<Timestamp>,
        record: &str,
    ) {
        let data = match Json::parse(record.trim()) {
            Ok(data) => data,
            Err(error) => return self.damaged(place, format!("not JSON: {}", reason(&error))),
        };
        let identity = id.map_or_else(|| Identity::Place(place.to_string()), Identity::Own);
        let from = self.agent.name().to_owned();
        let what = Happened::Body(Body::Foreign { from, data });
        self.happened(place, identity, at, what);
    }

    /// Something of no use here.
    pub(super) fn passed(&mut self, place: u64, what: impl Into<String>) {
        self.tell(Incoming::Passed(Passed {
            place,
            what: what.into(),
            damaged: false,
        }));
    }

    /// Something that cannot be read.
    pub(super) fn damaged(&mut self, place: u64, what: impl Into<String>) {
        self.tell(Incoming::Passed(Passed {
            place,
            what: what.into(),
            damaged: true,
        }));
    }

    /// A file inlined as base64 becomes an attachment, its bytes told before it.
    pub(super) fn inlined(
        &mut self,
        media_type: &str,
        base64: &str,
        name: Option<&str>,
    ) -> Option<Block> {
        let bytes = STANDARD.decode(base64.trim()).ok()?;
        Some(self.attached(media_type, bytes, name))
    }

    /// The same for bytes.
    pub(super) fn attached(
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
        self.tell(Incoming::Blob(bytes));
        Block::Attachment(attachment)
    }

    /// The same for a `data:` address.
    pub(super) fn data_url(&mut self, url: &str, name: Option<&str>) -> Option<Block> {
        let rest = url.strip_prefix("data:")?;
        let (head, data) = rest.split_once(',')?;
        let media_type = head.strip_suffix(";base64")?;
        let media_type = media_type.split(';').next().unwrap_or(media_type);
        self.inlined(media_type, data, name)
    }
}
