//! The fold that derives a session's record from its entries.
//!
//! A pure function. Every store applies it within the transaction of an append, and `tl
//! doctor` reapplies it from the first entry to check what is stored.

use serde::{Deserialize, Serialize};

use crate::{Body, Digest, Entry, Seq, SessionHeader, SessionInfo, SessionState, Timestamp};

/// The derived state of a session: the fold of its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What a listing shows.
    #[serde(rename = "card")]
    pub info: SessionInfo,
    /// What the next request needs.
    #[serde(rename = "standing")]
    pub state: SessionState,
}

impl Record {
    /// Creates the record of an empty session.
    pub fn new(header: &SessionHeader) -> Self {
        Self {
            info: SessionInfo::new(header),
            state: SessionState::default(),
        }
    }

    /// Applies the next entry.
    pub fn apply(&mut self, entry: &Entry) {
        self.apply_body(entry.seq, entry.at, entry.digest, &entry.body);
    }

    /// Applies the next entry, given as its parts.
    pub fn apply_body(&mut self, seq: Seq, at: Timestamp, digest: Digest, body: &Body) {
        debug_assert_eq!(seq, self.info.head.next(), "entries come in order");
        self.info.apply(seq, at, digest, body);
        self.state.apply(seq, body);
    }

    /// Creates the header and record of a fork at the end of this record.
    ///
    /// Equal to folding the shared entries from that header, without reading them. The
    /// fork inherits the agent, project and folder in effect here; its name and key are
    /// its own.
    #[must_use]
    pub fn fork(&self, mut header: SessionHeader) -> (SessionHeader, Self) {
        header.agent.clone_from(&self.info.agent);
        header.project.clone_from(&self.info.project);
        header.workspace.clone_from(&self.info.workspace);
        header.at = header.at.max(self.info.created_at);
        let initial = SessionInfo::new(&header);
        let info = SessionInfo {
            id: initial.id,
            name: initial.name,
            named_by: initial.named_by,
            key: initial.key,
            status: initial.status,
            lineage: initial.lineage,
            created_at: initial.created_at,
            last_activity: self.info.last_activity.max(initial.last_activity),
            ..self.info.clone()
        };
        let state = self.state.clone();
        (header, Self { info, state })
    }
}

/// Folds a whole log.
pub fn fold<'a>(header: &SessionHeader, entries: impl IntoIterator<Item = &'a Entry>) -> Record {
    let mut record = Record::new(header);
    for entry in entries {
        record.apply(entry);
    }
    record
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        AgentRef, Checkpoint, Lineage, Message, NameSource, NewEntry, Role, SessionId, StoredEntry,
        Summary, Usage,
    };

    fn header(id: &str) -> SessionHeader {
        SessionHeader::new(id.parse().unwrap(), Timestamp::from_second(1_000).unwrap())
    }

    fn log(bodies: Vec<Body>) -> Vec<Entry> {
        let mut digest = crate::GENESIS;
        let mut entries = Vec::new();
        for (index, body) in bodies.into_iter().enumerate() {
            let seq = Seq(index as u64 + 1);
            let at = Timestamp::from_second(2_000 + i64::try_from(index).unwrap()).unwrap();
            let id = crate::EntryId::derive(&[&seq.0.to_le_bytes()]);
            let stored =
                StoredEntry::from_new(&digest, seq, &NewEntry::new(id, at, body), None).unwrap();
            digest = stored.digest;
            entries.push(stored.decode().unwrap());
        }
        entries
    }

    fn text_message(role: Role, text: &str) -> Body {
        Body::Message(Message::text(role, text))
    }

    fn any_body() -> impl Strategy<Value = Body> {
        prop_oneof![
            4 => "[a-z ]{0,12}".prop_map(|text| text_message(Role::User, &text)),
            4 => (any::<u16>(), "[a-z]{1,3}").prop_map(|(tokens, model)| {
                let mut message = Message::text(Role::Assistant, "ok");
                message.usage = Some(Usage { input: tokens.into(), ..Usage::default() });
                message.model = Some(model);
                Body::Message(message)
            }),
            1 => "[a-c]".prop_map(|text| Body::Pinned { text }),
            1 => (1..20_u64).prop_map(|pin| Body::Unpinned { pin: Seq(pin) }),
            1 => "[a-c]".prop_map(|text| Body::Decided { text }),
            1 => "[a-z]{3}".prop_map(|name| Body::Renamed {
                name: name.parse().ok(),
                by: crate::NameSource::Person,
            }),
            1 => "[a-c]".prop_map(|tag| Body::Tagged { tags: vec![tag.parse().unwrap()] }),
            1 => "[a-c]".prop_map(|tag| Body::Untagged { tags: vec![tag.parse().unwrap()] }),
            1 => "[a-c]".prop_map(|name| Body::AgentSet(AgentRef { name, path: None })),
            1 => "[a-c]".prop_map(|workspace| Body::Moved { workspace, project: None }),
            1 => (1..20_u64).prop_map(|to| Body::Rewound { to: Seq(to) }),
            1 => (1..20_u64).prop_map(|covers| Body::Checkpoint(Box::new(Checkpoint {
                covers: Seq(covers),
                summary: Summary::default(),
                by: "test".into(),
                messages: 1,
                oldest: None,
                newest: None,
                usage: None,
            }))),
            1 => (1..20_u64).prop_map(|covers| Body::Summarized(Box::new(Checkpoint {
                covers: Seq(covers),
                summary: Summary::default(),
                by: "test".into(),
                messages: 0,
                oldest: None,
                newest: None,
                usage: Some(Usage { input: covers, ..Usage::default() }),
            }))),
            1 => (1..20_u64)
                .prop_map(|seq| Body::CheckpointRetracted { checkpoint: Seq(seq) }),
            1 => Just(Body::Cleared),
            1 => Just(Body::Archived),
            1 => Just(Body::Unarchived),
        ]
    }

    proptest! {
        #[test]
        fn a_fork_made_without_reading_equals_the_fold_of_what_it_shares(
            bodies in prop::collection::vec(any_body(), 0..30),
            at in 0..30_usize,
        ) {
            let entries = log(bodies);
            let at = at.min(entries.len());
            let origin = fold(&header("origin"), &entries[..at]);
            let mut fork = header("fork");
            fork.lineage = Lineage::Forked {
                session: "origin".parse::<SessionId>().unwrap(),
                at: Seq(at as u64),
            };
            fork.name = "mine".parse().ok();

            let (fork_header, record) = origin.fork(fork);

            prop_assert_eq!(&record, &fold(&fork_header, &entries[..at]));
            prop_assert_eq!(record.info.title(), "mine");
        }

        #[test]
        fn undoing_a_checkpoint_restores_the_previous_state(
            bodies in prop::collection::vec(any_body(), 0..20),
        ) {
            let mut undone = bodies.clone();
            let seq = Seq(bodies.len() as u64 + 1);
            undone.push(Body::Checkpoint(Box::new(Checkpoint {
                covers: Seq(bodies.len() as u64),
                summary: Summary::default(),
                by: "test".into(),
                messages: 0,
                oldest: None,
                newest: None,
                usage: None,
            })));
            undone.push(Body::CheckpointRetracted { checkpoint: seq });
            let before = fold(&header("s"), &log(bodies)).state;
            let mut after = fold(&header("s"), &log(undone)).state;
            after.changed = before.changed;
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn the_info_counts_messages_and_tokens() {
        let mut answer = Message::text(Role::Assistant, "hello");
        answer.usage = Some(Usage {
            input: 10,
            output: 5,
            ..Usage::default()
        });
        answer.model = Some("m1".into());
        let entries = log(vec![
            text_message(Role::User, "first\n question"),
            Body::Message(answer),
            text_message(Role::User, "second"),
        ]);
        let info = fold(&header("s"), &entries).info;
        assert_eq!(
            (info.messages, info.queries, info.tokens.total()),
            (3, 2, 15)
        );
        assert_eq!(info.preview, "first question");
        assert_eq!(info.model.as_deref(), Some("m1"));
        assert_eq!(info.head, Seq(3));
        assert_eq!(info.digest, entries[2].digest);
    }

    #[test]
    fn the_program_names_only_what_has_no_name() {
        let named = |name: Option<&str>, by| Body::Renamed {
            name: name.map(|name| name.parse().unwrap()),
            by,
        };
        let (person, program) = (NameSource::Person, NameSource::Program);
        let title = |bodies| fold(&header("s"), &log(bodies)).info.title().to_owned();
        assert_eq!(title(vec![named(Some("a"), program)]), "a");
        let twice = vec![named(Some("a"), program), named(Some("b"), program)];
        assert_eq!(title(twice), "a");
        let both = vec![named(Some("b"), person), named(Some("a"), program)];
        assert_eq!(title(both), "b");
        let freed = vec![
            named(Some("b"), person),
            named(None, person),
            named(Some("a"), program),
        ];
        assert_eq!(title(freed), "a");
    }

    #[test]
    fn clearing_hides_the_past_from_the_model_only() {
        let entries = log(vec![
            text_message(Role::User, "a"),
            Body::Cleared,
            text_message(Role::User, "b"),
        ]);
        let record = fold(&header("s"), &entries);
        assert_eq!(record.info.messages, 2);
        assert_eq!(record.state.verbatim_spans()[0].from, Seq(3));
    }

    #[test]
    fn rewinding_hides_later_entries_and_continues() {
        let entries = log(vec![
            text_message(Role::User, "1"),
            text_message(Role::Assistant, "2"),
            Body::Decided { text: "no".into() },
            Body::Pinned {
                text: "kept".into(),
            },
            Body::Rewound { to: Seq(2) },
            text_message(Role::User, "6"),
        ]);
        let state = fold(&header("s"), &entries).state;
        let spans: Vec<_> = state
            .verbatim_spans()
            .iter()
            .map(|s| (s.from.0, s.to))
            .collect();
        assert_eq!(spans, [(1, Some(Seq(2))), (6, None)]);
        assert!(state.decisions.is_empty());
        assert_eq!(state.pins.len(), 1);
    }
}
