//! Random operations, compared step by step with the store in memory.

use proptest::prelude::*;
use throughline_model::{Birth, Body, NamedBy, NewEntry, Role, Seq, SessionId, SessionRef};

use super::{Fixture, at, owner};
use crate::{
    Append, Catalog, Change, Expect, Feed, Filter, LogStore, MemoryStore, OnConflict, Position,
    Read, Scope, Store, StoreError,
};

/// How many session ids random operations choose from.
const SESSIONS: u8 = 6;

/// Something to do to a store.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Op {
    Create {
        session: u8,
        key: Option<u8>,
    },
    Append {
        session: u8,
        entries: Vec<Said>,
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

/// Something to append.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Said {
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
pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let session = || 0..SESSIONS;
    let said = prop_oneof![
        5 => "[a-z]{0,6}".prop_map(Said::Text),
        1 => (0..3_u8).prop_map(Said::Pin),
        1 => (0..3_u8).prop_map(Said::Decide),
        1 => (0..3_u8).prop_map(Said::Tag),
        1 => (0..3_u8).prop_map(Said::Untag),
        1 => (0..3_u8).prop_map(Said::Name),
        1 => (0..9_u8).prop_map(Said::Rewind),
        1 => Just(Said::Clear),
        1 => any::<bool>().prop_map(Said::Archive),
    ];
    let op = prop_oneof![
        3 => (session(), prop::option::of(0..2_u8))
            .prop_map(|(session, key)| Op::Create { session, key }),
        8 => (
            session(),
            prop::collection::vec(said, 1..4),
            prop::option::of(0..3_u8),
            0..3_u8,
        )
            .prop_map(|(session, entries, stale, on_conflict)| Op::Append {
                session, entries, stale, on_conflict
            }),
        1 => session().prop_map(|session| Op::Repeat { session }),
        3 => (session(), session(), 0..12_u8).prop_map(|(of, into, at)| Op::Fork { of, into, at }),
        2 => session().prop_map(Op::Trash),
        1 => session().prop_map(Op::Restore),
        2 => session().prop_map(Op::Remove),
        1 => (session(), 0..8_u8).prop_map(|(session, seq)| Op::Erase { session, seq }),
    ];
    prop::collection::vec(op, 1..60)
}

/// Runs the operations on `store` and on one in memory, and compares every answer; then
/// checks the store, makes what is derived anew, and compares again.
pub async fn agrees_with_memory<S: Store>(fixture: &Fixture<S>, ops: &[Op]) {
    let store = &fixture.store;
    let memory = answers_as_memory(store, ops).await;
    let report = store.check(&|_, _| ()).await.unwrap();
    assert_eq!(report.findings, []);
    store.rebuild(&|_, _| ()).await.unwrap();
    compare(store, &memory).await;
}

/// Runs the operations on `store` and on one in memory, and compares every answer, and at
/// the end everything that can be seen.
pub async fn answers_as_memory<S: Store>(store: &S, ops: &[Op]) -> MemoryStore {
    let memory = MemoryStore::new();
    let mut run = Run {
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
    compare(store, &memory).await;
    memory
}

/// An operation with everything chosen.
#[derive(Clone, Debug)]
enum Prepared {
    Create(Birth),
    Append(SessionRef, Append),
    Fork(SessionRef, Seq, Birth),
    Trash(SessionRef, i64),
    Restore(SessionRef),
    Remove(SessionRef),
    Erase(SessionRef, Seq),
    Nothing,
}

struct Run {
    last: Vec<Option<Append>>,
    step: u32,
}

impl Run {
    async fn prepare(&mut self, op: &Op, memory: &MemoryStore) -> Prepared {
        let second = i64::from(self.step);
        match op {
            Op::Create { session, key } => {
                let mut birth = Birth::new(id(*session), at(second));
                birth.key = key.map(|key| format!("key-{key}").parse().unwrap());
                Prepared::Create(birth)
            }
            Op::Append {
                session,
                entries,
                stale,
                on_conflict,
            } => {
                let reference = reference(*session);
                let head = memory.record(&reference).await.map_or(0, |r| r.card.head.0);
                let entries = entries.iter().enumerate();
                let append = Append {
                    expect: stale.map_or(Expect::Any, |stale| {
                        Expect::At(Seq(head.saturating_sub(stale.into())))
                    }),
                    on_conflict: match on_conflict {
                        0 => OnConflict::Reject,
                        1 => OnConflict::Rebase,
                        _ => OnConflict::Fork(Box::new(Birth::new(
                            format!("late-{}", self.step).parse().unwrap(),
                            at(second),
                        ))),
                    },
                    ..Append::any(entries.map(|(n, said)| self.entry(n, said)).collect())
                };
                self.last[usize::from(*session)] = Some(append.clone());
                Prepared::Append(reference, append)
            }
            Op::Repeat { session } => match &self.last[usize::from(*session)] {
                Some(append) => Prepared::Append(reference(*session), append.clone()),
                None => Prepared::Nothing,
            },
            Op::Fork { of, into, at: seq } => Prepared::Fork(
                reference(*of),
                Seq((*seq).into()),
                Birth::new(id(*into), at(second)),
            ),
            Op::Trash(session) => Prepared::Trash(reference(*session), second),
            Op::Restore(session) => Prepared::Restore(reference(*session)),
            Op::Remove(session) => Prepared::Remove(reference(*session)),
            Op::Erase { session, seq } => Prepared::Erase(reference(*session), Seq((*seq).into())),
        }
    }

    fn entry(&self, n: usize, said: &Said) -> NewEntry {
        let id = throughline_model::EntryId::derived(&[&self.step.to_le_bytes(), &n.to_le_bytes()]);
        let tag = |n: &u8| vec![format!("tag{n}").parse().unwrap()];
        let body = match said {
            Said::Text(text) => {
                return NewEntry::text(id, at(self.step.into()), Role::User, text);
            }
            Said::Pin(n) => Body::Pinned {
                text: n.to_string(),
            },
            Said::Decide(n) => Body::Decided {
                text: n.to_string(),
            },
            Said::Tag(n) => Body::Tagged { tags: tag(n) },
            Said::Untag(n) => Body::Untagged { tags: tag(n) },
            Said::Name(n) => Body::Renamed {
                name: format!("name{n}").parse().ok(),
                by: NamedBy::Person,
            },
            Said::Rewind(to) => Body::Rewound {
                to: Seq((*to).into()),
            },
            Said::Clear => Body::Cleared,
            Said::Archive(true) => Body::Archived,
            Said::Archive(false) => Body::Unarchived,
        };
        NewEntry::new(id, at(self.step.into()), body)
    }
}

fn id(session: u8) -> SessionId {
    format!("session-{session}").parse().unwrap()
}

fn reference(session: u8) -> SessionRef {
    owner().session(&id(session))
}

/// The answer, in a form that can be compared.
async fn perform<S: Store>(store: &S, prepared: Prepared) -> String {
    let shown = |result: Result<String, StoreError>| match result {
        Ok(answer) => answer,
        Err(error) => format!("! {error}"),
    };
    shown(match prepared {
        Prepared::Create(birth) => {
            let created = store.create(&owner(), birth).await;
            created.map(|created| format!("{created:?}"))
        }
        Prepared::Append(to, append) => {
            let appended = store.append(&to, append).await;
            appended.map(|appended| format!("{appended:?}"))
        }
        Prepared::Fork(of, at, birth) => {
            let forked = store.fork(&of, at, birth).await;
            forked.map(|record| format!("{record:?}"))
        }
        Prepared::Trash(session, second) => store
            .trash(&session, at(second))
            .await
            .map(|()| String::new()),
        Prepared::Restore(session) => store.restore(&session).await.map(|()| String::new()),
        Prepared::Remove(session) => store.remove(&session).await.map(|()| String::new()),
        Prepared::Erase(session, seq) => store
            .erase(&session, &[seq], None)
            .await
            .map(|()| String::new()),
        Prepared::Nothing => Ok(String::new()),
    })
}

/// Everything that can be seen of both is the same.
async fn compare<S: Store>(store: &S, memory: &MemoryStore) {
    let owner = owner();
    let without_positions = |changes: Vec<Change>| -> Vec<_> {
        let told = changes.into_iter();
        told.map(|c| (c.owner, c.session, c.what)).collect()
    };
    let theirs = store.changes(Position(0), 10_000).await.unwrap();
    let ours = memory.changes(Position(0), 10_000).await.unwrap();
    assert_eq!(without_positions(theirs), without_positions(ours));
    for scope in [Scope::Live, Scope::Trash] {
        let filter = Filter {
            scope,
            ..Filter::default()
        };
        let theirs = store.list(&owner, &filter, None, 1_000).await.unwrap();
        let ours = memory.list(&owner, &filter, None, 1_000).await.unwrap();
        assert_eq!(theirs, ours);
        for tag in ["tag0", "tag1", "tag2"] {
            let tagged = Filter {
                tags: vec![tag.parse().unwrap()],
                ..filter.clone()
            };
            let theirs = store.list(&owner, &tagged, None, 1_000).await.unwrap();
            let ours = memory.list(&owner, &tagged, None, 1_000).await.unwrap();
            assert_eq!(theirs, ours);
        }
        if scope == Scope::Live {
            for card in &ours.items {
                let session = owner.session(&card.id);
                assert_eq!(
                    store.record(&session).await.unwrap(),
                    memory.record(&session).await.unwrap()
                );
                for read in [
                    Read::from(Seq(1), 1_000),
                    Read::tail(3),
                    Read::from(Seq(2), 4),
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

/// See [`conformance!`](crate::conformance!).
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
                .run(&random::ops(), |ops| {
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
