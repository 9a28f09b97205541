//! Random operations, compared step by step with the in-memory store.

use proptest::prelude::*;
use throughline_model::{
    Body, NameSource, NewEntry, Role, Seq, SessionHeader, SessionId, SessionRef,
};

use super::{Fixture, at, owner};
use crate::{
    Append, Catalog, Change, ChangeFeed, Expect, LogStore, MemoryStore, OnConflict, Position,
    ReadRange, SessionFilter, SessionScope, Store, StoreError,
};

/// The number of session ids that random operations choose from.
const SESSIONS: u8 = 6;

/// An operation on a store.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Operation {
    Create {
        session: u8,
        key: Option<u8>,
    },
    Append {
        session: u8,
        entries: Vec<RandomEntry>,
        stale: Option<u8>,
        on_conflict: u8,
    },
    Repeat {
        session: u8,
    },
    Fork {
        of: u8,
        into: u8,
        at: u8,
    },
    Trash(u8),
    Restore(u8),
    Remove(u8),
    Erase {
        session: u8,
        seq: u8,
    },
}

/// An entry to append.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum RandomEntry {
    Text(String),
    Pin(u8),
    Decide(u8),
    Tag(u8),
    Untag(u8),
    Name(u8),
    Rewind(u8),
    Clear,
    Archive(bool),
}

/// Any sequence of operations.
pub fn any_operations() -> impl Strategy<Value = Vec<Operation>> {
    let session = || 0..SESSIONS;
    let entry = prop_oneof![
        5 => "[a-z]{0,6}".prop_map(RandomEntry::Text),
        1 => (0..3_u8).prop_map(RandomEntry::Pin),
        1 => (0..3_u8).prop_map(RandomEntry::Decide),
        1 => (0..3_u8).prop_map(RandomEntry::Tag),
        1 => (0..3_u8).prop_map(RandomEntry::Untag),
        1 => (0..3_u8).prop_map(RandomEntry::Name),
        1 => (0..9_u8).prop_map(RandomEntry::Rewind),
        1 => Just(RandomEntry::Clear),
        1 => any::<bool>().prop_map(RandomEntry::Archive),
    ];
    let op = prop_oneof![
        3 => (session(), prop::option::of(0..2_u8))
            .prop_map(|(session, key)| Operation::Create { session, key }),
        8 => (
            session(),
            prop::collection::vec(entry, 1..4),
            prop::option::of(0..3_u8),
            0..3_u8,
        )
            .prop_map(|(session, entries, stale, on_conflict)| Operation::Append {
                session, entries, stale, on_conflict
            }),
        1 => session().prop_map(|session| Operation::Repeat { session }),
        3 => (session(), session(), 0..12_u8).prop_map(|(of, into, at)| Operation::Fork { of, into, at }),
        2 => session().prop_map(Operation::Trash),
        1 => session().prop_map(Operation::Restore),
        2 => session().prop_map(Operation::Remove),
        1 => (session(), 0..8_u8).prop_map(|(session, seq)| Operation::Erase { session, seq }),
    ];
    prop::collection::vec(op, 1..60)
}

/// Runs the operations on `store` and on an in-memory store and compares every result;
/// then checks the store, rebuilds derived data, and compares again.
pub async fn assert_agrees_with_memory<S: Store>(fixture: &Fixture<S>, ops: &[Operation]) {
    let store = &fixture.store;
    let memory = assert_answers_as_memory(store, ops).await;
    let report = store.check(&|_, _| ()).await.unwrap();
    assert_eq!(report.findings, []);
    store.rebuild(&|_, _| ()).await.unwrap();
    assert_same_contents(store, &memory).await;
}

/// Runs the operations on `store` and on an in-memory store, and compares every result
/// and finally all visible contents.
pub async fn assert_answers_as_memory<S: Store>(store: &S, ops: &[Operation]) -> MemoryStore {
    let memory = MemoryStore::new();
    let mut run = OperationRun {
        last: vec![None; SESSIONS.into()],
        step: 0,
    };
    for op in ops {
        run.step += 1;
        let prepared = run.prepare(op, &memory).await;
        let theirs = perform(store, prepared.clone()).await;
        let ours = perform(&memory, prepared).await;
        assert_eq!(theirs, ours, "after {op:?} (step {})", run.step);
    }
    assert_same_contents(store, &memory).await;
    memory
}

/// An operation with all arguments chosen.
#[derive(Clone, Debug)]
enum PreparedOperation {
    Create(SessionHeader),
    Append(SessionRef, Append),
    Fork(SessionRef, Seq, SessionHeader),
    Trash(SessionRef, i64),
    Restore(SessionRef),
    Remove(SessionRef),
    Erase(SessionRef, Seq),
    Nothing,
}

struct OperationRun {
    last: Vec<Option<Append>>,
    step: u32,
}

impl OperationRun {
    async fn prepare(&mut self, op: &Operation, memory: &MemoryStore) -> PreparedOperation {
        let second = i64::from(self.step);
        match op {
            Operation::Create { session, key } => {
                let mut header = SessionHeader::new(session_id(*session), at(second));
                header.key = key.map(|key| format!("key-{key}").parse().unwrap());
                PreparedOperation::Create(header)
            }
            Operation::Append {
                session,
                entries,
                stale,
                on_conflict,
            } => {
                let reference = session_ref(*session);
                let head = memory.record(&reference).await.map_or(0, |r| r.info.head.0);
                let entries = entries.iter().enumerate();
                let append = Append {
                    expect: stale.map_or(Expect::Any, |stale| {
                        Expect::At(Seq(head.saturating_sub(stale.into())))
                    }),
                    on_conflict: match on_conflict {
                        0 => OnConflict::Reject,
                        1 => OnConflict::Rebase,
                        _ => OnConflict::Fork(Box::new(SessionHeader::new(
                            format!("late-{}", self.step).parse().unwrap(),
                            at(second),
                        ))),
                    },
                    ..Append::unconditional(
                        entries.map(|(n, entry)| self.new_entry(n, entry)).collect(),
                    )
                };
                self.last[usize::from(*session)] = Some(append.clone());
                PreparedOperation::Append(reference, append)
            }
            Operation::Repeat { session } => match &self.last[usize::from(*session)] {
                Some(append) => PreparedOperation::Append(session_ref(*session), append.clone()),
                None => PreparedOperation::Nothing,
            },
            Operation::Fork { of, into, at: seq } => PreparedOperation::Fork(
                session_ref(*of),
                Seq((*seq).into()),
                SessionHeader::new(session_id(*into), at(second)),
            ),
            Operation::Trash(session) => PreparedOperation::Trash(session_ref(*session), second),
            Operation::Restore(session) => PreparedOperation::Restore(session_ref(*session)),
            Operation::Remove(session) => PreparedOperation::Remove(session_ref(*session)),
            Operation::Erase { session, seq } => {
                PreparedOperation::Erase(session_ref(*session), Seq((*seq).into()))
            }
        }
    }

    fn new_entry(&self, n: usize, entry: &RandomEntry) -> NewEntry {
        let id = throughline_model::EntryId::derive(&[&self.step.to_le_bytes(), &n.to_le_bytes()]);
        let tag = |n: &u8| vec![format!("tag{n}").parse().unwrap()];
        let body = match entry {
            RandomEntry::Text(text) => {
                return NewEntry::text(id, at(self.step.into()), Role::User, text);
            }
            RandomEntry::Pin(n) => Body::Pinned {
                text: n.to_string(),
            },
            RandomEntry::Decide(n) => Body::Decided {
                text: n.to_string(),
            },
            RandomEntry::Tag(n) => Body::Tagged { tags: tag(n) },
            RandomEntry::Untag(n) => Body::Untagged { tags: tag(n) },
            RandomEntry::Name(n) => Body::Renamed {
                name: format!("name{n}").parse().ok(),
                by: NameSource::Person,
            },
            RandomEntry::Rewind(to) => Body::Rewound {
                to: Seq((*to).into()),
            },
            RandomEntry::Clear => Body::Cleared,
            RandomEntry::Archive(true) => Body::Archived,
            RandomEntry::Archive(false) => Body::Unarchived,
        };
        NewEntry::new(id, at(self.step.into()), body)
    }
}

fn session_id(session: u8) -> SessionId {
    format!("session-{session}").parse().unwrap()
}

fn session_ref(session: u8) -> SessionRef {
    owner().session(&session_id(session))
}

/// Performs an operation and returns the result in a comparable form.
async fn perform<S: Store>(store: &S, prepared: PreparedOperation) -> String {
    let shown = |result: Result<String, StoreError>| match result {
        Ok(answer) => answer,
        Err(error) => format!("! {error}"),
    };
    shown(match prepared {
        PreparedOperation::Create(header) => {
            let created = store.create(&owner(), header).await;
            created.map(|created| format!("{created:?}"))
        }
        PreparedOperation::Append(to, append) => {
            let appended = store.append(&to, append).await;
            appended.map(|appended| format!("{appended:?}"))
        }
        PreparedOperation::Fork(of, at, header) => {
            let forked = store.fork(&of, at, header).await;
            forked.map(|record| format!("{record:?}"))
        }
        PreparedOperation::Trash(session, second) => store
            .trash(&session, at(second))
            .await
            .map(|()| String::new()),
        PreparedOperation::Restore(session) => {
            store.restore(&session).await.map(|()| String::new())
        }
        PreparedOperation::Remove(session) => store.remove(&session).await.map(|()| String::new()),
        PreparedOperation::Erase(session, seq) => store
            .erase(&session, &[seq], None)
            .await
            .map(|()| String::new()),
        PreparedOperation::Nothing => Ok(String::new()),
    })
}

/// Asserts that all visible contents of both stores are equal.
async fn assert_same_contents<S: Store>(store: &S, memory: &MemoryStore) {
    let owner = owner();
    let without_positions = |changes: Vec<Change>| -> Vec<_> {
        let changes = changes.into_iter();
        changes.map(|c| (c.owner, c.session, c.kind)).collect()
    };
    let theirs = store.changes(Position(0), 10_000).await.unwrap();
    let ours = memory.changes(Position(0), 10_000).await.unwrap();
    assert_eq!(without_positions(theirs), without_positions(ours));
    for scope in [SessionScope::Live, SessionScope::Trash] {
        let filter = SessionFilter {
            scope,
            ..SessionFilter::default()
        };
        let theirs = store.list(&owner, &filter, None, 1_000).await.unwrap();
        let ours = memory.list(&owner, &filter, None, 1_000).await.unwrap();
        assert_eq!(theirs, ours);
        for tag in ["tag0", "tag1", "tag2"] {
            let tagged = SessionFilter {
                tags: vec![tag.parse().unwrap()],
                ..filter.clone()
            };
            let theirs = store.list(&owner, &tagged, None, 1_000).await.unwrap();
            let ours = memory.list(&owner, &tagged, None, 1_000).await.unwrap();
            assert_eq!(theirs, ours);
        }
        if scope == SessionScope::Live {
            for info in &ours.items {
                let session = owner.session(&info.id);
                assert_eq!(
                    store.record(&session).await.unwrap(),
                    memory.record(&session).await.unwrap()
                );
                for read in [
                    ReadRange::starting_at(Seq(1), 1_000),
                    ReadRange::tail(3),
                    ReadRange::starting_at(Seq(2), 4),
                ] {
                    assert_eq!(
                        store.read_stored(&session, read).await.unwrap(),
                        memory.read_stored(&session, read).await.unwrap()
                    );
                }
            }
        }
    }
}

/// Implementation of [`conformance!`](crate::conformance!).
#[macro_export]
#[doc(hidden)]
macro_rules! random_conformance {
    ($make:expr, $holds:path) => {
        #[test]
        fn random_operations_agree_with_the_store_in_memory() {
            use $crate::conformance::random;
            let mut runner = $crate::conformance::proptest::test_runner::TestRunner::new(
                $crate::conformance::proptest::test_runner::Config {
                    cases: 64,
                    failure_persistence: None,
                    ..Default::default()
                },
            );
            runner
                .run(&random::any_operations(), |ops| {
                    $crate::conformance::run(async {
                        let fixture = $make;
                        $holds(&fixture, &ops).await;
                    });
                    Ok(())
                })
                .unwrap();
        }
    };
}
