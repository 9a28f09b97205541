//! Test sessions written by hand, and the inputs of their next request.
#![allow(dead_code, reason = "each test file uses a part")]

use throughline_context::{
    ContextDocument, CountedEntry, Encoding, EntryRef, Excerpt, MemoryFact, Policy, Request,
    RequestError, RequestInputs, SectionName, build_request, count_entry_tokens,
};
use throughline_model::{
    Attachment, Block, Body, Checkpoint, Content, Digest, Entry, EntryId, GENESIS, Json, Message,
    NewEntry, Record, Role, Seq, SessionHeader, SessionId, StoredEntry, Summary, Timestamp,
    ToolCall, ToolResult,
};

/// A session log with its other request inputs.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) entries: Vec<Entry>,
    pub(crate) record: Record,
    pub(crate) agent: Option<String>,
    pub(crate) documents: Vec<ContextDocument>,
    pub(crate) memory: Vec<MemoryFact>,
    pub(crate) recalled: Vec<Excerpt>,
    pub(crate) encoding: Encoding,
}

impl Session {
    pub(crate) fn new() -> Self {
        let id: SessionId = "s1".parse().expect("an id");
        let header = SessionHeader::new(id.clone(), Timestamp::UNIX_EPOCH);
        Self {
            id,
            entries: Vec::new(),
            record: Record::new(&header),
            agent: None,
            documents: Vec::new(),
            memory: Vec::new(),
            recalled: Vec::new(),
            encoding: Encoding::Rough,
        }
    }

    pub(crate) fn of(bodies: impl IntoIterator<Item = Body>) -> Self {
        let mut session = Self::new();
        for body in bodies {
            session.append(body);
        }
        session
    }

    pub(crate) fn append(&mut self, body: Body) -> Seq {
        let seq = self.record.info.head.next();
        let previous = self.entries.last().map_or(GENESIS, |entry| entry.digest);
        let id = EntryId::derive(&[&seq.0.to_le_bytes()]);
        let at = Timestamp::from_second(i64::try_from(seq.0).expect("small")).expect("a time");
        let mut new = NewEntry::new(id, at, body);
        new.external_id = Some(format!("x{seq}"));
        let entry = StoredEntry::from_new(&previous, seq, &new, None)
            .expect("encodes")
            .decode()
            .expect("decodes");
        self.record.apply(&entry);
        self.entries.push(entry);
        seq
    }

    /// The visible entries after the checkpoint in effect.
    pub(crate) fn visible(&self) -> Vec<CountedEntry> {
        let spans = self.record.state.verbatim_spans();
        self.entries
            .iter()
            .filter(|entry| {
                spans
                    .iter()
                    .any(|span| span.from <= entry.seq && span.to.is_none_or(|to| entry.seq <= to))
            })
            .map(|entry| CountedEntry {
                tokens: count_entry_tokens(self.encoding, entry),
                entry: entry.clone(),
            })
            .collect()
    }

    pub(crate) fn checkpoint(&self) -> Option<(&Entry, &Checkpoint)> {
        let mark = self.record.state.checkpoint()?;
        let entry = self.entries.iter().find(|entry| entry.seq == mark.seq)?;
        match &entry.body {
            Body::Checkpoint(checkpoint) => Some((entry, checkpoint)),
            _ => None,
        }
    }

    pub(crate) fn request(
        &self,
        message: Option<&Content>,
        policy: &Policy,
        budget: u64,
    ) -> Result<Request, RequestError> {
        let entries = self.visible();
        let material = RequestInputs {
            session: &self.id,
            agent: self.agent.as_deref(),
            documents: &self.documents,
            memory: &self.memory,
            record: &self.record,
            checkpoint: self.checkpoint(),
            entries: &entries,
            unloaded_entries: 0,
            recalled: &self.recalled,
            message,
        };
        build_request(&material, policy, budget, self.encoding)
    }

    /// Builds a request that fits, with a preset.
    pub(crate) fn request_with_preset(&self, text: &str, preset: &str, budget: u64) -> Request {
        let policy = Policy::preset(preset).expect("a preset");
        self.request(Some(&Content::text(text)), &policy, budget)
            .expect("it fits")
    }
}

pub(crate) fn user(text: &str) -> Body {
    Body::Message(Message::text(Role::User, text))
}

pub(crate) fn assistant(text: &str) -> Body {
    Body::Message(Message::text(Role::Assistant, text))
}

pub(crate) fn message(role: Role, blocks: Vec<Block>) -> Body {
    Body::Message(Message::new(role, Content(blocks)))
}

pub(crate) fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

pub(crate) fn call(id: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        input: Json::parse(r#"{"path":"a.rs"}"#).expect("json"),
    })
}

pub(crate) fn result(id: &str, out: &str) -> Block {
    Block::ToolResult(ToolResult {
        call_id: id.to_owned(),
        content: Content::text(out),
        is_error: false,
    })
}

pub(crate) fn image() -> Block {
    Block::Attachment(Attachment {
        blob: Digest::of(b"picture"),
        media_type: "image/png".to_owned(),
        bytes: 12,
        name: None,
    })
}

pub(crate) fn checkpoint(covers: u64, decision: &str) -> Body {
    Body::from(Checkpoint {
        covers: Seq(covers),
        summary: Summary {
            background: "We began.".to_owned(),
            decisions: vec![decision.to_owned()],
            ..Summary::default()
        },
        by: "test".to_owned(),
        messages: covers,
        oldest: None,
        newest: None,
        usage: None,
    })
}

pub(crate) fn excerpt(session: &str, seq: u64, text: &str) -> Excerpt {
    Excerpt {
        source: EntryRef {
            session: session.parse().expect("an id"),
            seq: Seq(seq),
            external_id: None,
        },
        at: Timestamp::UNIX_EPOCH,
        author: "user".to_owned(),
        text: text.to_owned(),
        score: 1.0,
        lead: None,
    }
}

/// Lists the structural faults of a request.
pub(crate) fn find_faults(request: &Request) -> Vec<String> {
    let mut faults = Vec::new();
    let sum: u64 = request.sections.iter().map(|section| section.tokens).sum();
    if request.tokens > request.budget || sum != request.tokens {
        faults.push(format!("{} of {} tokens", request.tokens, request.budget));
    }
    let names: Vec<_> = request
        .sections
        .iter()
        .map(|section| section.name)
        .collect();
    if names != SectionName::ALL {
        faults.push(format!("sections {names:?}"));
    }
    let mut messages = request.messages.iter().peekable();
    messages.next_if(|message| message.role == Role::System);
    if messages
        .peek()
        .is_some_and(|first| first.role != Role::User)
    {
        faults.push("the user does not begin".to_owned());
    }
    let mut ids = std::collections::HashSet::new();
    let mut previous: Option<&throughline_context::RequestMessage> = None;
    for message in messages {
        let blank = |block: &Block| block.as_text().is_some_and(|text| text.trim().is_empty());
        if message.content.0.is_empty() || message.content.0.iter().any(blank) {
            faults.push("empty content".to_owned());
        }
        if message.role == Role::System || previous.is_some_and(|last| last.role == message.role) {
            faults.push(format!("{} out of order", message.role));
        }
        let asked: Vec<_> = previous
            .into_iter()
            .flat_map(|last| last.content.tool_calls())
            .map(|call| call.id.as_str())
            .collect();
        let mut answered: Vec<_> = message
            .content
            .tool_results()
            .map(|result| result.call_id.as_str())
            .collect();
        answered.sort_by_key(|id| asked.iter().position(|call| call == id));
        if asked != answered {
            faults.push(format!("calls {asked:?} results {answered:?}"));
        }
        let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
        let tool = message.role == Role::Tool;
        if message
            .content
            .0
            .iter()
            .any(|block| is_result(block) != tool)
        {
            faults.push(format!("wrong blocks in a {} message", message.role));
        }
        for call in message.content.tool_calls() {
            if message.role != Role::Assistant || !ids.insert(call.id.clone()) {
                faults.push(format!("call {:?}", call.id));
            }
        }
        previous = Some(message);
    }
    if previous.is_some_and(|last| last.content.tool_calls().next().is_some()) {
        faults.push("a call at the end".to_owned());
    }
    faults
}
